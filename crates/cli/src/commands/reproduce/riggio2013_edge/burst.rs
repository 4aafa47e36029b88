//! How long a burst of UDP at ten times its share is felt by a neighbour's TCP.
//!
//! Three hosts on a switch, all links and VNICs 20 Mbit/s, all one tenant's. h1 sends TCP to h3 all the time; h2 sends UDP
//! to h3, 100 Mbit/s where its share is 10, for three seconds, again and again. What h3's TCP gets is counted by tenths of
//! a second, of which each is 82 segments: a machine that stands still for five milliseconds takes a twentieth of one. So
//! there is a third case, in which h1 has bought those 10 Mbit/s and is alone: what its TCP lacks there no neighbour took.

use super::traffic::{Udp, connect, read, write};
use super::{Ending, settings_of, wait};
use crate::signals::Interrupt;
use agent::edge::Edge;
use anyhow::ensure;
use lab::{Lab, LabGuard, Options, Rate, StateDirectory, Topology};
use report::figure::{Line, Lines};
use report::stats::mean;
use report::{Better, Figure, Finding, Metric, Point, Table};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MBIT: u64 = 1_000_000;
const LINK: u64 = 20 * MBIT;
const SENT: u64 = 100 * MBIT;
const EVERY: Duration = Duration::from_millis(5);
const TENTH: Duration = Duration::from_millis(100);
/// Tenths that are counted before a burst and while it lasts.
const BEFORE: usize = 5;
const DURING: usize = 30;
/// Between bursts, until TCP has its link again.
const PAUSE: Duration = Duration::from_secs(2);
/// Half of the link, of which 1,448 bytes of each frame's 1,514 are TCP's payload.
const GUARANTEE: f64 = 10.0 * 1448.0 / 1514.0;
const WANTED: f64 = 0.95 * GUARANTEE;

/// Above the table.
pub const HEADING: &str =
    "A neighbour's TCP beside UDP at ten times its share: Mbit/s of payload; the guarantee is 9.56";

/// TCP's goodput in Mbit/s, by tenths of a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Burst {
    before: Vec<f64>,
    during: Vec<f64>,
}

impl Burst {
    /// After the first tenth of a second.
    fn later(&self) -> &[f64] {
        self.during.get(1..).unwrap_or_default()
    }
}

/// Who sends beside TCP, and what holds it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Bare,
    Shaped,
    /// Nobody: TCP has its guarantee and no more.
    Alone,
}

impl Case {
    pub const ALL: [Case; 3] = [Case::Bare, Case::Shaped, Case::Alone];

    fn name(self) -> &'static str {
        match self {
            Case::Bare => "without shapers",
            Case::Shaped => "with shapers",
            Case::Alone => "alone",
        }
    }
}

/// Runs so many bursts in a lab of its own. Needs root and Open vSwitch.
pub fn measure(
    case: Case,
    bursts: u32,
    state: &StateDirectory,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Burst>> {
    let mut topology = Topology::builder();
    topology.switch("s1")?;
    for host in ["h1", "h2", "h3"] {
        let rate = Some(Rate::from_bits_per_second(LINK)?);
        topology.host(host)?.link(host, "s1", rate)?;
    }
    let options =
        Options { state: state.clone(), static_arp: true, ephemeral: true, ..Options::default() };
    let lab = LabGuard::new(Lab::up(&topology.build()?, &options)?);
    let bought = if case == Case::Alone { LINK / 2 } else { LINK };
    let vnics =
        [("h1", bought), ("h2", LINK), ("h3", LINK)].map(|(host, rate)| (host, "red", rate / MBIT));
    let settings = settings_of(&lab, &vnics)?;
    let mut edge = (case != Case::Bare).then(|| Edge::open(&settings)).transpose()?;
    let udp = Udp::new(&lab, "h2", "h3")?;
    let (sender, receiver) = connect(&lab, "h1", "h3")?;
    let (stop, on, arrived) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let measured = std::thread::scope(|scope| -> anyhow::Result<Vec<Burst>> {
        let _end = Ending { stop: &stop, on: &on };
        let (stop, on, udp, arrived) = (&stop, &on, &udp, &arrived);
        let agent = edge
            .as_mut()
            .map(|edge| scope.spawn(move || edge.run(stop, |_| Ok::<(), agent::Error>(()))));
        scope.spawn(move || write(sender, stop));
        scope.spawn(move || read(receiver, stop, arrived));
        let mut measured = Vec::new();
        for _ in 0..bursts {
            wait(PAUSE, interrupt)?;
            let mut meter = Meter::new(arrived);
            let mut burst = Burst::default();
            for _ in 0..BEFORE {
                burst.before.push(meter.tenth());
            }
            on.store(case != Case::Alone, Ordering::SeqCst);
            let sending = scope.spawn(move || udp.send(SENT, EVERY, on));
            for _ in 0..DURING {
                interrupt.check()?;
                burst.during.push(meter.tenth());
            }
            on.store(false, Ordering::SeqCst);
            ensure!(sending.join().is_ok(), "the sender of UDP failed");
            measured.push(burst);
        }
        ensure!(agent.is_none_or(|agent| !agent.is_finished()), "the agent ended by itself");
        Ok(measured)
    })?;
    if let Some(edge) = edge {
        edge.close()?;
    }
    Ok(measured)
}

/// Counts what arrives, tenth by tenth.
struct Meter<'a> {
    arrived: &'a AtomicU64,
    before: u64,
    looked: Instant,
}

impl<'a> Meter<'a> {
    fn new(arrived: &'a AtomicU64) -> Meter<'a> {
        Meter { arrived, before: arrived.load(Ordering::SeqCst), looked: Instant::now() }
    }

    /// Mbit/s over the tenth of a second that follows, or a little more.
    fn tenth(&mut self) -> f64 {
        std::thread::sleep(TENTH.saturating_sub(self.looked.elapsed()));
        let (now, arrived) = (Instant::now(), self.arrived.load(Ordering::SeqCst));
        let rate = (arrived - self.before) as f64 * 8e-6 / (now - self.looked).as_secs_f64();
        (self.before, self.looked) = (arrived, now);
        rate
    }
}

fn later(bursts: &[Burst]) -> Vec<f64> {
    bursts.iter().flat_map(|burst| burst.later().iter().copied()).collect()
}

fn first(bursts: &[Burst]) -> Vec<f64> {
    bursts.iter().filter_map(|burst| burst.during.first().copied()).collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn low(bursts: &[Burst]) -> usize {
    later(bursts).iter().filter(|rate| **rate < WANTED).count()
}

pub fn point(case: Case, bursts: &[Burst]) -> Point {
    let mut point = Point::new(&format!("burst, {}", case.name()), [("guarantee", "9.56 Mbit/s")]);
    for (name, samples) in
        [("first_tenth_mbit_s", first(bursts)), ("later_tenths_mbit_s", later(bursts))]
    {
        point.metrics.insert(name.to_owned(), Metric::new("Mbit/s", Better::Higher, samples));
    }
    point
}

/// A tenth after the first in which TCP beside a burst had less than 95 % of what it is guaranteed. How often that happens
/// without a neighbour is said with it, and excuses nothing.
pub fn below_guarantee(measured: &[(Case, Vec<Burst>)]) -> Option<Finding> {
    let of = |case| {
        let found = measured.iter().find(|(other, _)| *other == case);
        found.map_or(&[][..], |(_, bursts)| bursts)
    };
    let (shaped, alone) = (of(Case::Shaped), of(Case::Alone));
    let (low, all) = (low(shaped), later(shaped));
    let text = format!(
        "with shapers, TCP stayed below 95 % of its guarantee in {low} of {} tenths of a second, the lowest {:.2} Mbit/s; alone in {} of {}",
        all.len(),
        least(&all),
        self::low(alone),
        later(alone).len()
    );
    (low > 0).then(|| Finding { code: "below-guarantee".to_owned(), text })
}

pub fn table(measured: &[(Case, Vec<Burst>)]) -> Table {
    let mut table = Table::new(["", "first 100 ms", "later", "lowest tenth", "tenths below 95 %"]);
    for (case, bursts) in measured {
        let (first, later) = (first(bursts), later(bursts));
        let cell =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.2}"));
        table.row([
            case.name().to_owned(),
            cell(mean(&first)),
            cell(mean(&later)),
            cell(Some(least(&later))),
            format!("{} of {}", low(bursts), later.len()),
        ]);
    }
    table
}

/// Mean over bursts, and the lowest, by time since the burst began.
pub fn figure(measured: &[(Case, Vec<Burst>)]) -> Figure {
    let mut lines = Vec::new();
    for (case, bursts) in measured {
        let over = |pick: &dyn Fn(&[f64]) -> Option<f64>| -> Vec<(f64, f64)> {
            let at = |index: usize| {
                let of =
                    |burst: &Burst| burst.before.iter().chain(&burst.during).nth(index).copied();
                let values: Vec<f64> = bursts.iter().filter_map(of).collect();
                // At the end of its tenth, counted from the burst's start.
                Some(((index as f64 + 1.0 - BEFORE as f64) * 100.0, pick(&values)?))
            };
            (0..BEFORE + DURING).filter_map(at).collect()
        };
        let line = |name: String, points| Line { name, points, ..Line::default() };
        lines.push(line(format!("{}, mean", case.name()), over(&mean)));
        if *case != Case::Bare {
            let lowest = over(&|values| Some(least(values)).filter(|it| it.is_finite()));
            lines.push(line(format!("{}, lowest", case.name()), lowest));
        }
    }
    let ends = ((1.0 - BEFORE as f64) * 100.0, DURING as f64 * 100.0);
    for (name, value) in [("guarantee", GUARANTEE), ("95 % of it", WANTED)] {
        let points = vec![(ends.0, value), (ends.1, value)];
        lines.push(Line { name: name.to_owned(), points, dashed: true, ..Line::default() });
    }
    let drawing = Lines {
        title: "TCP beside a burst of UDP at ten times its share".to_owned(),
        x_label: "ms since the burst began".to_owned(),
        y_label: "Mbit/s of TCP's payload".to_owned(),
        lines,
        ..Lines::default()
    };
    let count = measured.first().map_or(0, |(_, bursts)| bursts.len());
    Figure {
        name: "burst".to_owned(),
        drawing: drawing
            .draw()
            .with_note(&format!("bursts of each kind: {count}; a point is 100 ms")),
        caption: "Both VNICs and the receiver's have 20 Mbit/s; UDP sends 100 from 0 ms on."
            .to_owned(),
    }
}

/// Every tenth, for those who draw it themselves.
pub fn tenths(measured: &[(Case, Vec<Burst>)]) -> Table {
    let mut table = Table::new(["case", "burst", "end_ms", "tcp_mbit_s"]);
    for (case, bursts) in measured {
        for (number, burst) in bursts.iter().enumerate() {
            for (index, rate) in burst.before.iter().chain(&burst.during).enumerate() {
                let end = (index as i64 + 1 - BEFORE as i64) * 100;
                let cells = [case.name().to_owned(), (number + 1).to_string()];
                table.row(cells.into_iter().chain([end.to_string(), format!("{rate:.3}")]));
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tenth_is_free_and_the_others_are_not() {
        let burst = |during: &[f64]| Burst { before: vec![19.1; BEFORE], during: during.to_vec() };
        for (during, low) in [
            (&[1.0, 9.5, 9.6][..], None),
            (&[9.5, 9.5, 9.0], Some("1 of 2")),
            (&[9.5, 9.0, 0.0], Some("2 of 2")),
            (&[], None),
        ] {
            // However it is alone.
            let alone = vec![burst(&[9.5, 9.0, 9.0, 9.0])];
            let measured = [(Case::Shaped, vec![burst(during)]), (Case::Alone, alone)];
            let found = below_guarantee(&measured).map(|finding| finding.text);
            assert_eq!(found.is_some(), low.is_some(), "{during:?}: {found:?}");
            assert!(found.unwrap_or_default().contains(low.unwrap_or_default()), "{during:?}");
        }
        let cases = [(Case::Shaped, vec![burst(&[9.0, 9.5])])];
        let csv = tenths(&cases).to_csv();
        assert!(
            csv.contains("with shapers,1,-400,19.1") && csv.ends_with("1,200,9.500\r\n"),
            "{csv}"
        );
    }
}
