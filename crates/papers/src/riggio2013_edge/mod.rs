//! Measures the example of section II of *The Price of Virtualization* (2013), in Mbit/s instead of Gbit/s, with bursty
//! UDP.
//!
//! ```text
//!        s1 ─────── s2            spines                    VNICs: A, B 8 (red)
//!       /  \       /  \                                            C, D 2, E, F 10 (blue)
//!     s3 ────×────── s4           leaves                    links: 10 each
//!    /  \            /  \
//!   s5   E         s6    F        s5: the server of A and C; s6: the server of B and D
//!  / \            / \
//! A   C          B   D            A → B and E → F: TCP; C → D: bursts of UDP, 6 on average, with a VNIC of 2
//! ```
//!
//! With these loads, a plain network has the figures of the paper. The bursts leave TCP 4 Mbit/s of the server's link.
//! E → F has the other 6 Mbit/s of the link to s1, which A → B does not use. All three flows together have 16 of 20
//! Mbit/s.
//!
//! Without labels, the red controller and the blue controller both choose s1, for A → B and E → F (figure 1d); C → D
//! goes through s2. With labels, E → F has s2 alone, and C → D goes through s1 (figure 2c). The experiment installs the
//! paths of the figures on the switches. The experiment of section V tests controllers that find the paths with labels.
//! The shapers are those of [`agent::edge`].
//!
//! [`measure`] runs one of the four combinations in a lab of its own. The module `burst` measures how long a burst
//! affects a neighbour. [`Riggio2013Edge`] runs all these measurements.

mod burst;
mod standstill;
mod threads;
mod traffic;

use crate::reproduction::{self, Reproduction};
use crate::vnics::settings;
use agent::edge::Edge;
use anyhow::{Context, ensure};
use burst::Case;
use lab::{FailMode, Interrupt, Lab, LabGuard, Options, Rate, StateDirectory, Topology};
use report::pace::Pace;
use report::results::Extras;
use report::{Better, Environment, Figure, Finding, Metric, Point, Results, Table};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};
use threads::{Ending, wait};
use traffic::{Udp, connect, read, write};

const MBIT: u64 = 1_000_000;
/// Shapers and queues settle in less than this time.
const SETTLE: Duration = Duration::from_secs(2);
/// The approximate time of a burst with its preparation and its end.
const A_BURST: Duration = Duration::from_secs(4);

/// The sender and the receiver of each flow.
const FLOWS: [(&str, &str); 3] = [("A", "B"), ("C", "D"), ("E", "F")];
/// The rate of C's bursts, three times the bandwidth of C's VNIC, and the time between bursts. The bursts leave A only
/// the rest of the link.
const BURSTS: (u64, Duration) = (6 * MBIT, Duration::from_millis(20));

/// The active remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedies {
    /// Paths are those of controllers that see link labels.
    pub labels: bool,
    /// Shapers limit senders to their VNICs' bandwidths, and to their shares of congested receivers.
    pub shapers: bool,
}

impl Remedies {
    /// The four combinations; the first combination has no remedy.
    pub const ALL: [Remedies; 4] = [
        Remedies { labels: false, shapers: false },
        Remedies { labels: false, shapers: true },
        Remedies { labels: true, shapers: false },
        Remedies { labels: true, shapers: true },
    ];

    fn name(self) -> &'static str {
        match (self.labels, self.shapers) {
            (false, false) => "neither",
            (false, true) => "shapers",
            (true, false) => "labels",
            (true, true) => "labels and shapers",
        }
    }
}

/// The arriving rates of the flows, in Mbit/s of whole frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// A → B; the VNICs have 8 Mbit/s.
    pub a_b: f64,
    /// C → D; the VNICs have 2 Mbit/s.
    pub c_d: f64,
    /// E → F; the VNICs have 10 Mbit/s.
    pub e_f: f64,
}

impl Shares {
    /// The paper's calculation for case 1d.
    pub const PUBLISHED: Shares = Shares { a_b: 4.0, c_d: 6.0, e_f: 6.0 };
    /// The paper's calculation for case 2c.
    pub const PUBLISHED_WITH_BOTH: Shares = Shares { a_b: 8.0, c_d: 2.0, e_f: 10.0 };

    /// The sum of all flows, at most 20 Mbit/s.
    pub fn total(&self) -> f64 {
        self.a_b + self.c_d + self.e_f
    }

    fn rates(&self) -> [(&'static str, f64); 3] {
        [("A→B", self.a_b), ("C→D", self.c_d), ("E→F", self.e_f)]
    }

    /// The findings for flows with a difference of more than 5 % from their VNICs' bandwidth.
    fn off_share(&self) -> Vec<Finding> {
        let bought = Shares::PUBLISHED_WITH_BOTH.rates().map(|(_, rate)| rate);
        let pairs = self.rates().into_iter().zip(bought);
        let off = pairs.filter(|((_, rate), share)| (rate - share).abs() > 0.05 * share);
        off.map(|((name, rate), share)| Finding {
            code: "off-share".to_owned(),
            text: format!(
                "with labels and shapers {name} had {rate:.2} Mbit/s, not within 5 % of {share}"
            ),
        })
        .collect()
    }
}

/// The experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Riggio2013Edge {
    /// The duration of each of the four cases, in seconds.
    pub seconds: u32,
    /// The number of bursts of UDP without shapers, and with shapers; also the number of measurements without bursts.
    pub bursts: u32,
}

impl Riggio2013Edge {
    /// Makes labs, and measures. The run calls `talk` with progress messages.
    ///
    /// # Errors
    /// The missing features of the labs or the agent; [`Interrupted`] if there are no measurements yet.
    ///
    /// [`Interrupted`]: lab::Interrupted
    pub fn run(
        &self,
        interrupt: &Interrupt,
        talk: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Reproduction> {
        let missing = lab::Requirements::ALL.check();
        if !missing.is_empty() {
            return Err(lab::Error::Missing(missing).into());
        }
        let state = StateDirectory::default();
        let time = Duration::from_secs(self.seconds.into());
        let steps = Remedies::ALL.len() + Case::ALL.len();
        let mut pace = Pace::new(steps, SETTLE + time.max(A_BURST * self.bursts));
        let mut begin = |what: &str| talk(&format!("{what} ({})", pace.step()));
        let (mut measured, mut bursts) = (Vec::new(), Vec::new());
        let outcome = (|| -> anyhow::Result<()> {
            for remedies in Remedies::ALL {
                begin(remedies.name());
                measured.push((remedies, measure(remedies, time, &state, interrupt)?));
            }
            for case in Case::ALL {
                begin("bursts");
                bursts.push((case, burst::measure(case, self.bursts, &state, interrupt)?));
            }
            Ok(())
        })();
        let is_partial = interrupt.is_asked() && outcome.is_err() && !measured.is_empty();
        if !is_partial {
            outcome?;
        }
        let (mut results, extras) = self.results(&measured, &bursts);
        if is_partial {
            let made = measured.len() + bursts.len();
            results.mark_partial(&format!("interrupted: {made} of {steps} measurements were made"));
        }
        let remarks = reproduction::remarks(&results);
        let samples = Some(("tenths.csv", burst::tenths(&bursts)));
        Ok(Reproduction { results, extras, remarks, samples })
    }

    fn results(
        &self,
        measured: &[(Remedies, Shares)],
        bursts: &[(Case, Vec<burst::Burst>)],
    ) -> (Results, Extras) {
        let mut results = Results::new("reproduce riggio2013-edge", 0, Environment::capture(&[]));
        results.settings.insert("seconds".to_owned(), f64::from(self.seconds).into());
        results.settings.insert("bursts".to_owned(), f64::from(self.bursts).into());
        for (remedies, shares) in measured {
            let mut point = Point::new(remedies.name(), [("flows", "A-B, C-D, E-F")]);
            let rates = shares.rates().into_iter().chain([("total", shares.total())]);
            for (name, rate) in rates {
                let name = format!("{}_mbit_s", name.replace('→', ""));
                point.metrics.insert(name, Metric::new("Mbit/s", Better::Higher, vec![rate]));
            }
            results.points.push(point);
            if remedies.labels && remedies.shapers {
                results.findings.extend(shares.off_share());
            }
        }
        results.points.extend(bursts.iter().map(|(case, bursts)| burst::point(*case, bursts)));
        results.findings.extend(burst::findings(bursts));
        let mut extras = Extras::default();
        extras.tables.push(("Mbit/s of frames".to_owned(), table(measured)));
        extras.tables.push((burst::HEADING.to_owned(), burst::table(bursts)));
        extras.figures.push(figure(measured));
        extras.figures.push(burst::figure(bursts));
        (results, extras)
    }
}

fn table(measured: &[(Remedies, Shares)]) -> Table {
    let mut table = Table::new(["", "A→B (8)", "C→D (2)", "E→F (10)", "total (20)"]);
    for (label, shares) in with_published(measured) {
        let rates = shares.rates().map(|(_, rate)| rate).into_iter().chain([shares.total()]);
        table.row([label.to_owned()].into_iter().chain(rates.map(|rate| format!("{rate:.2}"))));
    }
    table
}

fn with_published(measured: &[(Remedies, Shares)]) -> Vec<(&'static str, Shares)> {
    let mut all = vec![("published, neither", Shares::PUBLISHED)];
    all.extend(measured.iter().map(|(remedies, shares)| (remedies.name(), *shares)));
    all.push(("published, both", Shares::PUBLISHED_WITH_BOTH));
    all
}

fn figure(measured: &[(Remedies, Shares)]) -> Figure {
    let groups: Vec<(String, Vec<f64>)> = with_published(measured)
        .into_iter()
        .map(|(name, shares)| (name.to_owned(), shares.rates().map(|(_, rate)| rate).to_vec()))
        .collect();
    let names = ["A→B, bought 8", "C→D, bought 2", "E→F, bought 10"];
    let title = "Section II: who gets what";
    Figure {
        name: "section2".to_owned(),
        drawing: report::figure::draw_groups(title, "Mbit/s of frames", &names, &groups),
        caption: "Published: as the paper reckons them (figures 1d and 2c), in Gbit/s.".to_owned(),
    }
}

/// Runs the example in a lab of its own for `time`, and returns the arriving rates. Needs root and Open vSwitch.
///
/// # Errors
/// The missing features of the lab or the agent, and [`lab::Interrupted`].
pub fn measure(
    remedies: Remedies,
    time: Duration,
    state: &StateDirectory,
    interrupt: &Interrupt,
) -> anyhow::Result<Shares> {
    let options = Options {
        state: state.clone(),
        fail_mode: Some(FailMode::Secure),
        static_arp: true,
        ephemeral: true,
        ..Options::default()
    };
    let lab = LabGuard::new(Lab::up(&topology()?, &options)?);
    write_paths(&lab, remedies.labels)?;
    let settings = settings(&lab)?;
    let mut edge = remedies.shapers.then(|| Edge::open(&settings)).transpose()?;
    let udp = Udp::new(&lab, "C", "D")?;
    let stop = AtomicBool::new(false);
    let (on, arrived) = (AtomicBool::new(true), AtomicU64::new(0));
    let shares = std::thread::scope(|scope| -> anyhow::Result<Shares> {
        // The threads end on every return and error below.
        let _end = Ending { stop: &stop, on: &on };
        let agent = edge.as_mut().map(|edge| {
            let stop = &stop;
            scope.spawn(move || edge.run(stop, |_| Ok::<(), agent::Error>(())))
        });
        for (from, to) in FLOWS {
            let (stop, on, udp, arrived) = (&stop, &on, &udp, &arrived);
            if (from, to) == ("C", "D") {
                scope.spawn(move || udp.send(BURSTS.0, BURSTS.1, on));
            } else {
                let (sender, receiver) = connect(&lab, from, to)?;
                scope.spawn(move || write(sender, stop));
                scope.spawn(move || read(receiver, stop, arrived));
            }
        }
        wait(SETTLE, interrupt)?;
        let start = Instant::now();
        let before = received(&lab)?;
        wait(time, interrupt)?;
        let after = received(&lab)?;
        let elapsed = start.elapsed().as_secs_f64();
        ensure!(agent.is_none_or(|agent| !agent.is_finished()), "the agent ended by itself");
        let [a_b, c_d, e_f] =
            std::array::from_fn(|flow| (after[flow] - before[flow]) as f64 * 8e-6 / elapsed);
        Ok(Shares { a_b, c_d, e_f })
    })?;
    if let Some(edge) = edge {
        edge.close()?;
    }
    Ok(shares)
}

/// The ports of a switch are in the order of the links: at s5 and s6 the hosts come first; at s3 and s4 the order is
/// the server, the host, s1, s2.
fn topology() -> anyhow::Result<Topology> {
    let rate = Some(Rate::from_bits_per_second(10 * MBIT)?);
    let mut builder = Topology::builder();
    for switch in ["s1", "s2", "s3", "s4", "s5", "s6"] {
        builder.switch(switch)?;
    }
    for host in ["A", "B", "C", "D", "E", "F"] {
        builder.host(host)?;
    }
    for (a, b) in [
        ("A", "s5"),
        ("C", "s5"),
        ("B", "s6"),
        ("D", "s6"),
        ("s5", "s3"),
        ("s6", "s4"),
        ("E", "s3"),
        ("F", "s4"),
        ("s3", "s1"),
        ("s3", "s2"),
        ("s4", "s1"),
        ("s4", "s2"),
    ] {
        builder.link(a, b, rate)?;
    }
    Ok(builder.build()?)
}

fn write_paths(lab: &Lab, labels: bool) -> anyhow::Result<()> {
    // At the leaves, port 3 leads to s1 and port 4 to s2.
    let up = |to: &str| match (to, labels) {
        ("B", _) | ("F", false) | ("D", true) => 3,
        _ => 4,
    };
    for (from, to) in FLOWS {
        let way = up(to);
        let spine = if way == 3 { "s1" } else { "s2" };
        // Acknowledgements take the same path back.
        let forth = (to, ["s5", "s3", "s4", "s6"], 2);
        let back = (from, ["s6", "s4", "s3", "s5"], 1);
        for (host, [server, leaf, far_leaf, far_server], across) in [forth, back] {
            let mac = lab.topology().host(host).with_context(|| format!("no host {host}"))?.mac;
            let (down, last) = match host {
                "A" | "B" => (1, Some(1)),
                "C" | "D" => (1, Some(2)),
                _ => (2, None),
            };
            let mut hops = vec![(server, 3), (leaf, way), (spine, across), (far_leaf, down)];
            hops.extend(last.map(|port| (far_server, port)));
            for (switch, port) in hops {
                add_entry(lab, switch, mac, port)?;
            }
        }
    }
    Ok(())
}

fn add_entry(lab: &Lab, switch: &str, to: lab::MacAddress, port: u16) -> anyhow::Result<()> {
    let entry = format!("dl_dst={to},actions=output:{port}");
    let output = lab.exec(switch, &["ovs-ofctl", "add-flow", switch, &entry])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ovs-ofctl add-flow {switch} {entry}: {}", said.trim());
    Ok(())
}

/// The received bytes at B, D and F.
fn received(lab: &Lab) -> anyhow::Result<[u64; 3]> {
    let mut found = [0; 3];
    for ((_, to), bytes) in FLOWS.into_iter().zip(&mut found) {
        let output = lab.exec(to, &["cat", "/sys/class/net/eth0/statistics/rx_bytes"])?;
        let text = String::from_utf8_lossy(&output.stdout);
        *bytes = text.trim().parse().with_context(|| format!("{to} counts {:?}", text.trim()))?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than the rate of one link, with a margin for frames that waited before.
    const TWO_LINKS: f64 = 10.5;

    /// Without the remedies both effects appear, and with the remedies neither effect appears, over seconds and with
    /// generous limits. On busy cores TCP cannot fill a link, with or without other traffic. Therefore the test
    /// compares A → B with E → F: E → F has its own path and shows the present rate of a link.
    #[test]
    fn ovs_labels_and_shapers_together_correct_rates_and_fairness() {
        if lab::testing::skip(
            "ovs_labels_and_shapers_together_correct_rates_and_fairness",
            lab::Requirements::ALL,
        ) {
            return;
        }
        let folder = std::env::temp_dir().join(format!("weir-section-two-{}", std::process::id()));
        let state = StateDirectory::at(folder);
        let interrupt = Interrupt::default();
        let [neither, .., both] = Remedies::ALL;
        let shares =
            |remedies| measure(remedies, Duration::from_secs(3), &state, &interrupt).unwrap();
        let without = shares(neither);
        assert!(without.total() < 17.5, "sub-optimal: {without:?}");
        assert!(without.a_b + without.e_f < TWO_LINKS, "on one link: {without:?}");
        assert!(without.c_d > 4.0 && without.a_b < 5.0, "unfair: {without:?}");
        // The limits exclude chance: one link never carries so much, and next to bursts without shapers A has less than
        // half of a link. Busy cores can only reduce the rates, so one success in five attempts is enough.
        let is_shown = |with: &Shares| {
            let link = with.e_f;
            with.a_b + link > TWO_LINKS && with.a_b > 0.64 * link && with.total() > 1.85 * link
        };
        let mut measured = Vec::new();
        while measured.len() < 5 && !measured.last().is_some_and(is_shown) {
            let with = shares(both);
            // On every machine, shapers limit every sender to its bandwidth, and bursts of UDP need no
            // acknowledgements.
            assert!(with.a_b < 8.8 && (with.c_d - 2.0).abs() < 0.3, "{with:?}");
            measured.push(with);
        }
        assert!(measured.last().is_some_and(is_shown), "{measured:?}");
    }
}
