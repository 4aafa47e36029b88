//! The senders, messages and times: kinds of messages, streams, and the load, which consists of
//! streams.
//!
//! This module has plain data that can be written in a scenario file, and opens no socket.

use crate::arrivals::{Arrivals, Schedule};
use crate::error::{Error, setting};
use crate::kind::{MOST_RULES, PROBED};
use crate::plan::{Setup, Slicing, Topology, Version};
use serde::{Deserialize, Serialize};

pub use crate::kind::{Kind, MAX_STREAMS};

/// One tenant's messages of one arrival process. A tenant may have several streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// The tenant, counted from 0.
    pub tenant: usize,
    /// The kinds of messages with weights; the kind of each message is drawn independently.
    pub mix: Vec<(Kind, u32)>,
    /// The send times.
    pub arrivals: Arrivals,
    /// The earliest intended send time, in ms since the run's start.
    #[serde(default)]
    pub start_ms: u64,
    /// The end of the intended send times, in ms since the run's start; absent: the run's end.
    #[serde(default)]
    pub stop_ms: Option<u64>,
    /// Whether the stream's latency counts in the total. Otherwise the latency is only in the row of the stream's own
    /// tenant: a neighbour that misbehaves is load, not a subject of the measurement.
    #[serde(default = "yes")]
    pub subject: bool,
}

impl Stream {
    /// A stream with one kind of message for the whole run.
    #[must_use]
    pub fn new(tenant: usize, kind: Kind, arrivals: Arrivals) -> Self {
        Self { tenant, mix: vec![(kind, 1)], arrivals, start_ms: 0, stop_ms: None, subject: true }
    }

    /// Whether the stream has rules that the data plane probes.
    pub(crate) fn is_probed(&self) -> bool {
        self.mix.iter().any(|&(kind, weight)| kind == PROBED && weight > 0)
    }

    /// The same stream as a neighbour whose own latency is not measured.
    #[must_use]
    pub fn as_background(mut self) -> Self {
        self.subject = false;
        self
    }
}

/// A scenario file: the connections, and the load. Tenants, rates and mixes change during a run by streams with start
/// and stop times, and by [`Arrivals::Steps`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The connections.
    pub setup: Setup,
    /// The load: senders, messages and times.
    pub load: Load,
}

/// The load: senders, messages and times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The streams of all tenants.
    pub streams: Vec<Stream>,
    /// The sending time.
    pub duration_ms: u64,
    /// The time that is cut off at each end of the results.
    #[serde(default)]
    pub cut_ms: u64,
    /// The time to wait for messages in flight after the end.
    #[serde(default = "two_thousand")]
    pub drain_ms: u64,
    /// A message with a higher latency than this counts as late, and is still measured.
    #[serde(default = "one_thousand")]
    pub late_ms: u64,
    /// The most messages in one write; 0: all messages that are due, up to 64 KiB.
    #[serde(default)]
    pub batch: usize,
    /// The seed of random choices.
    #[serde(default = "seed")]
    pub seed: u64,
}

fn yes() -> bool {
    true
}
fn two_thousand() -> u64 {
    2000
}
fn one_thousand() -> u64 {
    1000
}
fn seed() -> u64 {
    1
}

impl Load {
    /// A load with the defaults. No time is cut off.
    #[must_use]
    pub fn new(streams: Vec<Stream>, duration_ms: u64) -> Self {
        Self {
            streams,
            duration_ms,
            cut_ms: 0,
            drain_ms: two_thousand(),
            late_ms: one_thousand(),
            batch: 0,
            seed: seed(),
        }
    }

    /// A load in which every tenant sends `kind` at an equal share of `total_rate`, evenly spaced.
    #[must_use]
    pub fn constant(kind: Kind, tenants: usize, total_rate: f64, duration_ms: u64) -> Self {
        let rate = total_rate / tenants as f64;
        Self::each(kind, tenants, &Arrivals::Constant { rate }, duration_ms)
    }

    /// A load in which every tenant sends `kind` as fast as the system under test reads.
    #[must_use]
    pub fn saturating(kind: Kind, tenants: usize, duration_ms: u64) -> Self {
        Self::each(kind, tenants, &Arrivals::Saturate, duration_ms)
    }

    /// A load in which every tenant sends `kind` at these times.
    #[must_use]
    pub fn each(kind: Kind, tenants: usize, arrivals: &Arrivals, duration_ms: u64) -> Self {
        let stream = |tenant| Stream::new(tenant, kind, arrivals.clone());
        Self::new((0..tenants).map(stream).collect(), duration_ms)
    }

    /// The seed of stream `number`.
    pub(crate) fn seed_of(&self, number: usize) -> u64 {
        self.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The intended send times of stream `number`; every call returns the same times.
    pub(crate) fn schedule(&self, number: usize) -> Option<Schedule> {
        let arrivals = self.streams.get(number)?.arrivals.clone();
        let phase = number as f64 / self.streams.len() as f64;
        Some(Schedule::new(arrivals, phase, self.seed_of(number)))
    }

    /// The sum of the streams' mean rates in messages per second; `None` if a stream has no schedule.
    pub(crate) fn mean_rate(&self) -> Option<f64> {
        let seconds = self.duration_ms as f64 / 1e3;
        self.streams.iter().map(|stream| stream.arrivals.mean_rate(seconds)).sum()
    }

    /// The window of intended times that counts, in ns since the run's start.
    #[must_use]
    pub fn window_ns(&self) -> (u64, u64) {
        (self.cut_ms * 1_000_000, (self.duration_ms - self.cut_ms) * 1_000_000)
    }

    /// The window's length in seconds.
    #[must_use]
    pub fn window_s(&self) -> f64 {
        let (from, to) = self.window_ns();
        (to - from) as f64 / 1e9
    }

    /// # Errors
    /// [`Error::Setting`] naming the setting and its range.
    pub fn check(&self, setup: &Setup) -> Result<(), Error> {
        let streams = self.streams.len();
        setting((1..=MAX_STREAMS).contains(&streams), "streams", streams, "1 to 2,046")?;
        setting(
            (1..=86_400_000).contains(&self.duration_ms),
            "duration",
            format!("{} ms", self.duration_ms),
            "1 ms to 24 hours",
        )?;
        setting(
            self.cut_ms * 2 < self.duration_ms,
            "cut",
            format!("{} ms", self.cut_ms),
            "less than half the duration",
        )?;
        self.streams.iter().try_for_each(|stream| check_stream(stream, setup))?;
        self.check_probed(setup)
    }
}

impl Load {
    fn check_probed(&self, setup: &Setup) -> Result<(), Error> {
        let probed = || self.streams.iter().filter(|stream| stream.is_probed());
        let seconds = self.duration_ms as f64 / 1e3;
        for stream in probed() {
            let alone = stream.mix.iter().all(|&(kind, weight)| kind == PROBED || weight == 0);
            let once = probed().filter(|other| other.tenant == stream.tenant).count() == 1;
            setting(alone && once, "mix", PROBED.name(), "alone, in one stream per tenant")?;
            let rules = stream.arrivals.mean_rate(seconds).map(|rate| rate * seconds);
            setting(
                rules.is_some_and(|rules| rules <= MOST_RULES as f64),
                "rules of a tenant in a run",
                rules.map_or("without a schedule".to_owned(), |rules| format!("{rules:.0}")),
                "at most 10,000, at a rate",
            )?;
            setting(
                setup.slicing != Slicing::InPort,
                "slicing",
                "in-port",
                "another one: rules lead from port to port",
            )?;
            let real = matches!(&setup.topology, Topology::Interfaces { .. });
            setting(
                real || setup.switch.table,
                "switch.table",
                "false",
                "true: rules have to be kept",
            )?;
            let two = match &setup.topology {
                Topology::Interfaces { ports, .. } => ports.len() >= 2,
                _ => setup.ports() >= 2,
            };
            setting(two, "ports", 1, "two at least: rules lead from port to port")?;
        }
        Ok(())
    }
}

fn check_stream(stream: &Stream, setup: &Setup) -> Result<(), Error> {
    let range = format!("0 to {}", setup.tenants - 1);
    setting(stream.tenant < setup.tenants, "stream's tenant", stream.tenant, &range)?;
    let weights: u32 = stream.mix.iter().map(|&(_, weight)| weight.min(1_000_000)).sum();
    setting(
        weights > 0 && stream.mix.iter().all(|&(_, weight)| weight <= 1_000_000),
        "mix",
        format!("{:?}", stream.mix),
        "weights up to 1,000,000, not all 0",
    )?;
    let role = stream.mix.iter().any(|&(kind, _)| kind == Kind::Role);
    setting(!role || setup.version == Version::V1_3, "mix", "ROLE", "OpenFlow 1.3 for that")?;
    let sides =
        [true, false].map(|side| stream.mix.iter().any(|(kind, _)| kind.from_switch() == side));
    let unscheduled = stream.arrivals.mean_rate(0.001).is_none();
    setting(
        !(unscheduled && sides == [true, true]),
        "mix",
        "from both sides",
        "one side when there is no schedule",
    )?;
    let wires = matches!(setup.topology, Topology::Interfaces { .. });
    let is_paced = stream.arrivals != Arrivals::Saturate;
    let probes = |&(kind, _): &(Kind, u32)| !kind.from_switch() || kind == Kind::PacketIn;
    setting(
        !wires || (stream.mix.iter().all(probes) && (is_paced || !sides[0])),
        "mix over interfaces",
        format!("{:?}", stream.mix),
        "PACKET_IN at a rate, and controllers' messages",
    )?;
    let closed = matches!(stream.arrivals, Arrivals::Closed { .. });
    setting(
        !closed || stream.mix.iter().all(|(kind, _)| kind.has_reply()),
        "closed arrivals",
        "without replies",
        "only messages that have a reply",
    )?;
    stream.arrivals.check().map_err(Error::Arrivals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(tenants: usize) -> Setup {
        Setup::new(Topology::Direct, tenants)
    }

    #[test]
    fn errors_for_invalid_load_settings_name_the_setting_and_the_range() {
        let ok = Load::constant(Kind::PacketIn, 1, 1000.0, 100);
        let load = |change: fn(&mut Load)| {
            let mut load = ok.clone();
            change(&mut load);
            load.check(&direct(1))
        };
        let probed = |change: fn(&mut Setup, &mut Stream)| {
            let (mut setup, mut load) = (direct(2), Load::constant(PROBED, 1, 10.0, 1000));
            setup.switch.table = true;
            change(&mut setup, &mut load.streams[0]);
            load.check(&setup)
        };
        for (result, words) in [
            (direct(0).check(), ["tenants", "1 to 2,046"]),
            (direct(3000).check(), ["tenants", "1 to 2,046"]),
            (Setup { threads: 9, ..direct(1) }.check(), ["threads", "1 or 2"]),
            (
                Setup::new(Topology::PerTenant { switch_addresses: vec![] }, 2).check(),
                ["switch addresses", "one per tenant"],
            ),
            (load(|l| l.streams.clear()), ["streams", "1 to"]),
            (load(|l| l.cut_ms = 50), ["cut", "half"]),
            (load(|l| l.duration_ms = 0), ["duration", "1 ms"]),
            (load(|l| l.streams[0].tenant = 1), ["tenant", "0 to 0"]),
            (load(|l| l.streams[0].mix = vec![(Kind::Echo, 0)]), ["mix", "weights"]),
            (load(|l| l.streams[0].mix = vec![(Kind::Role, 1)]), ["mix", "1.3"]),
            (
                load(|l| {
                    l.streams[0].mix = vec![(Kind::PacketIn, 1), (Kind::Echo, 1)];
                    l.streams[0].arrivals = Arrivals::Saturate;
                }),
                ["mix", "one side"],
            ),
            (
                load(|l| l.streams[0].arrivals = Arrivals::Closed { outstanding: 1 }),
                ["closed", "reply"],
            ),
            (
                load(|l| l.streams[0].arrivals = Arrivals::Poisson { rate: -1.0 }),
                ["rate", "above 0"],
            ),
            (probed(|setup, _| setup.switch.table = false), ["switch.table", "true"]),
            (probed(|setup, _| setup.slicing = Slicing::InPort), ["slicing", "another one"]),
            (
                probed(|_, s| s.arrivals = Arrivals::Constant { rate: 20_000.0 }),
                ["rules of a tenant", "10,000"],
            ),
            (probed(|_, s| s.mix.push((Kind::Echo, 1))), ["mix", "alone"]),
            (
                probed(|_, s| s.arrivals = Arrivals::Saturate),
                ["rules of a tenant", "without a schedule"],
            ),
        ] {
            let text = result.unwrap_err().to_string();
            assert!(words.iter().all(|word| text.contains(word)), "{text} lacks {words:?}");
        }
        assert!(ok.check(&direct(1)).is_ok());
    }

    #[test]
    fn a_scenario_file_is_read_and_written() {
        let text = r#"{
            "setup": { "version": "1.3", "tenants": 2, "slicing": "vlan" },
            "load": { "duration_ms": 3000, "streams": [
                { "tenant": 0, "mix": [["packet-in", 1]], "arrivals": { "poisson": { "rate": 500 } } },
                { "tenant": 1, "mix": [["echo", 1]], "start_ms": 1000, "subject": false,
                  "arrivals": { "steps": { "steps": [[0, 100], [1, 5000]] } } }
            ] }
        }"#;
        let plan: Plan = serde_json::from_str(text).unwrap();
        assert!(plan.setup.check().is_ok() && plan.load.check(&plan.setup).is_ok());
        assert_eq!(plan.setup.version, Version::V1_3);
        assert_eq!(plan.load.streams[1].start_ms, 1000);
        let again = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&again).unwrap(), plan);
        let typo = text.replace("duration_ms", "duration_sm");
        let error = serde_json::from_str::<Plan>(&typo).unwrap_err().to_string();
        assert!(error.contains("duration_sm"), "{error}");
    }

    #[test]
    fn message_kinds_are_parsed_by_name() {
        assert_eq!("packet-in".parse(), Ok(Kind::PacketIn));
        assert_eq!("PORT_STATS".parse(), Ok(Kind::PortStats));
        assert!("ping".parse::<Kind>().unwrap_err().contains("FLOW_MOD"));
    }
}
