//! Measures how long a burst of UDP at ten times its share affects a neighbour's TCP.
//!
//! Three hosts of one tenant are on a switch; all links and VNICs have 50 Mbit/s. h1 sends TCP to h3 all the time. h2
//! sends UDP to h3 for three seconds, again and again, at 250 Mbit/s; h2's share is 25 Mbit/s. The experiment counts
//! h3's TCP goodput in tenths of a second. A tenth has 206 segments: a machine that stands still for five milliseconds
//! takes a twentieth of a tenth, and a connection with a loss then needs time to recover. Therefore a tenth counts only
//! if the machine did not stand still during the tenth or shortly before. A [`Watch`] detects this by interrupts that
//! no packet delays. In a third case, h1 has a bandwidth of 25 Mbit/s and is alone: no neighbour causes the missing
//! goodput of that case.

use super::standstill::Watch;
use super::threads::{Ending, wait};
use super::traffic::{Udp, connect, read, write};
use crate::vnics::settings_of;
use agent::edge::Edge;
use anyhow::ensure;
use lab::Interrupt;
use lab::{Lab, LabGuard, Options, Rate, StateDirectory, Topology};
use report::figure::{Line, Lines};
use report::stats::mean;
use report::{Better, Figure, Finding, Metric, Point, Table};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MBIT: u64 = 1_000_000;
const LINK: u64 = 50 * MBIT;
const SENT: u64 = 10 * LINK / 2;
const EVERY: Duration = Duration::from_millis(5);
const TENTH: Duration = Duration::from_millis(100);
/// The number of tenths before a burst and during a burst.
const BEFORE: usize = 5;
const DURING: usize = 30;
/// The pause between bursts, in which TCP gets its link back.
const PAUSE: Duration = Duration::from_secs(2);
/// A tenth does not count if the machine stood still for longer than `STILL` in total, during the tenth or the time
/// `SHORTLY` before.
const STILL: Duration = Duration::from_millis(2);
const SHORTLY: Duration = Duration::from_millis(500);
/// Half of the link; of each frame's 1,514 bytes, 1,448 bytes are TCP payload.
const GUARANTEE: f64 = 25.0 * 1448.0 / 1514.0;
const WANTED: f64 = 0.95 * GUARANTEE;

/// The heading of the table.
pub(super) const HEADING: &str = "A neighbour's TCP beside UDP at ten times its share: Mbit/s of payload; the guarantee is 23.91";

/// A measurement over a tenth of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tenth {
    /// The goodput of TCP in Mbit/s.
    rate: f64,
    /// The time that the machine stood still during the tenth and shortly before.
    stood: Duration,
}

impl Tenth {
    fn counts(&self) -> bool {
        self.stood <= STILL
    }
}

/// The tenths before a burst and during the burst.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Burst {
    before: Vec<Tenth>,
    during: Vec<Tenth>,
}

impl Burst {
    /// The tenths after the burst's first tenth.
    fn later(&self) -> &[Tenth] {
        self.during.get(1..).unwrap_or_default()
    }
}

/// The traffic besides TCP, and its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Bare,
    Shaped,
    /// No other traffic: TCP has its guarantee and no more.
    Alone,
}

impl Case {
    pub(super) const ALL: [Case; 3] = [Case::Bare, Case::Shaped, Case::Alone];

    fn name(self) -> &'static str {
        match self {
            Case::Bare => "without shapers",
            Case::Shaped => "with shapers",
            Case::Alone => "alone",
        }
    }
}

/// Makes `bursts` bursts in a lab of its own. Needs root and Open vSwitch.
pub(super) fn measure(
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
    let watch = watch()?;
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
            let mut meter = Meter::new(arrived, watch.as_ref());
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

/// Starts a watch. Without a watch, every tenth counts.
fn watch() -> anyhow::Result<Option<Watch>> {
    let watch = Watch::start();
    if let Err(error) = &watch {
        let stderr = std::io::stderr();
        writeln!(stderr.lock(), "weir: when the machine stands still is not known: {error:#}")?;
    }
    Ok(watch.ok())
}

/// Counts the arriving bytes, tenth by tenth.
struct Meter<'a> {
    arrived: &'a AtomicU64,
    watch: Option<&'a Watch>,
    before: u64,
    looked: Instant,
}

impl<'a> Meter<'a> {
    fn new(arrived: &'a AtomicU64, watch: Option<&'a Watch>) -> Meter<'a> {
        Meter { arrived, watch, before: arrived.load(Ordering::SeqCst), looked: Instant::now() }
    }

    /// Measures the next tenth of a second, or a little more.
    fn tenth(&mut self) -> Tenth {
        std::thread::sleep(TENTH.saturating_sub(self.looked.elapsed()));
        let (now, arrived) = (Instant::now(), self.arrived.load(Ordering::SeqCst));
        let rate = (arrived - self.before) as f64 * 8e-6 / (now - self.looked).as_secs_f64();
        let from = self.looked.checked_sub(SHORTLY).unwrap_or(self.looked);
        let stood = self.watch.map(|watch| watch.stood(from, now)).unwrap_or_default();
        (self.before, self.looked) = (arrived, now);
        Tenth { rate, stood }
    }
}

/// The counting rates of the tenths after a burst's first tenth.
fn later(bursts: &[Burst]) -> Vec<f64> {
    let all = bursts.iter().flat_map(|burst| burst.later());
    all.filter(|tenth| tenth.counts()).map(|tenth| tenth.rate).collect()
}

/// The rates of the tenths that do not count.
fn left_out(bursts: &[Burst]) -> Vec<f64> {
    let all = bursts.iter().flat_map(|burst| burst.later());
    all.filter(|tenth| !tenth.counts()).map(|tenth| tenth.rate).collect()
}

fn first(bursts: &[Burst]) -> Vec<f64> {
    let all = bursts.iter().filter_map(|burst| burst.during.first());
    all.filter(|tenth| tenth.counts()).map(|tenth| tenth.rate).collect()
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn low(rates: &[f64]) -> usize {
    rates.iter().filter(|rate| **rate < WANTED).count()
}

pub(super) fn point(case: Case, bursts: &[Burst]) -> Point {
    let mut point = Point::new(&format!("burst, {}", case.name()), [("guarantee", "23.91 Mbit/s")]);
    for (name, samples) in [
        ("first_tenth_mbit_s", first(bursts)),
        ("later_tenths_mbit_s", later(bursts)),
        ("left_out_tenths_mbit_s", left_out(bursts)),
    ] {
        point.metrics.insert(name.to_owned(), Metric::new("Mbit/s", Better::Higher, samples));
    }
    point
}

/// Finds tenths after the first tenth in which TCP during a burst had less than 95 % of its guarantee. The text also
/// has the number of such tenths without a neighbour, for information only. Another finding: the machine stood still so
/// often that too few tenths count.
pub(super) fn findings(measured: &[(Case, Vec<Burst>)]) -> Vec<Finding> {
    let of = |case| {
        let found = measured.iter().find(|(other, _)| *other == case);
        found.map_or(&[][..], |(_, bursts)| bursts)
    };
    let (shaped, alone) = (later(of(Case::Shaped)), later(of(Case::Alone)));
    let mut findings = Vec::new();
    let mut find = |code: &str, text| findings.push(Finding { code: code.to_owned(), text });
    if low(&shaped) > 0 {
        let text = format!(
            "with shapers, TCP stayed below 95 % of its guarantee in {} of {} tenths of a second, the lowest {:.2} Mbit/s; alone in {} of {}",
            low(&shaped),
            shaped.len(),
            least(&shaped),
            low(&alone),
            alone.len()
        );
        find("below-guarantee", text);
    }
    let left_out = left_out(of(Case::Shaped)).len();
    if left_out > shaped.len() {
        let text = format!(
            "the machine stood still in, or shortly before, {left_out} of {} tenths of a second: too few are left",
            left_out + shaped.len()
        );
        find("machine-stood-still", text);
    }
    findings
}

pub(super) fn table(measured: &[(Case, Vec<Burst>)]) -> Table {
    let mut table = Table::new([
        "",
        "first 100 ms",
        "later",
        "lowest tenth",
        "tenths below 95 %",
        "left out",
        "below 95 % of them",
    ]);
    for (case, bursts) in measured {
        let (first, later, left_out) = (first(bursts), later(bursts), left_out(bursts));
        let cell = |value: Option<f64>| {
            let value = value.filter(|value| value.is_finite());
            value.map_or_else(|| "–".to_owned(), |it| format!("{it:.2}"))
        };
        table.row([
            case.name().to_owned(),
            cell(mean(&first)),
            cell(mean(&later)),
            cell(Some(least(&later))),
            format!("{} of {}", low(&later), later.len()),
            left_out.len().to_string(),
            low(&left_out).to_string(),
        ]);
    }
    table
}

/// The mean over bursts, and the minimum, against the time since the start of the burst.
pub(super) fn figure(measured: &[(Case, Vec<Burst>)]) -> Figure {
    let mut lines = Vec::new();
    for (case, bursts) in measured {
        let over = |pick: &dyn Fn(&[f64]) -> Option<f64>| -> Vec<(f64, f64)> {
            let at = |index: usize| {
                let of =
                    |burst: &Burst| burst.before.iter().chain(&burst.during).nth(index).copied();
                let counting = bursts.iter().filter_map(of).filter(Tenth::counts);
                let values: Vec<f64> = counting.map(|tenth| tenth.rate).collect();
                // The point is at the end of its tenth; the time starts with the burst.
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
        caption: "Both VNICs and the receiver's have 50 Mbit/s; UDP sends 250 from 0 ms on. Tenths are left out in which, or shortly before which, the machine stood still."
            .to_owned(),
    }
}

/// The table of all tenths, for users who draw their own figures.
pub(super) fn tenths(measured: &[(Case, Vec<Burst>)]) -> Table {
    let mut table = Table::new(["case", "burst", "end_ms", "tcp_mbit_s", "stood_still_ms"]);
    for (case, bursts) in measured {
        for (number, burst) in bursts.iter().enumerate() {
            for (index, tenth) in burst.before.iter().chain(&burst.during).enumerate() {
                let end = (index as i64 + 1 - BEFORE as i64) * 100;
                let cells = [case.name().to_owned(), (number + 1).to_string()];
                let stood = tenth.stood.as_secs_f64() * 1e3;
                let values = [end.to_string(), format!("{:.3}", tenth.rate), format!("{stood:.1}")];
                table.row(cells.into_iter().chain(values));
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst with these rates; in a tenth with a negative rate, the machine stands still.
    fn burst(during: &[f64]) -> Burst {
        let tenth = |rate: f64| Tenth {
            rate: rate.abs(),
            stood: if rate < 0.0 { 2 * STILL } else { STILL },
        };
        let during = during.iter().copied().map(tenth).collect();
        Burst { before: vec![tenth(47.8); BEFORE], during }
    }

    #[test]
    fn tcp_below_its_guarantee_after_the_first_tenth_of_a_burst_is_a_finding() {
        for (during, codes, text) in [
            (&[1.0, 23.5, 23.9][..], &[][..], ""),
            (&[23.5, 23.5, 22.0], &["below-guarantee"], "1 of 2"),
            (&[23.5, 22.0, 0.0], &["below-guarantee"], "2 of 2"),
            (&[], &[], ""),
            (&[23.5, -12.0, 23.5], &[], ""),
            (&[23.5, -12.0, 22.0], &["below-guarantee"], "1 of 1"),
            (&[23.5, -12.0, -23.0, 23.5], &["machine-stood-still"], "2 of 3"),
        ] {
            // The rates of TCP alone have no effect on the findings.
            let alone = vec![burst(&[23.5, 22.0, 22.0, 22.0])];
            let measured = [(Case::Shaped, vec![burst(during)]), (Case::Alone, alone)];
            let found = findings(&measured);
            let of: Vec<&str> = found.iter().map(|finding| finding.code.as_str()).collect();
            assert_eq!(of, codes, "{during:?}");
            assert!(found.iter().all(|finding| finding.text.contains(text)), "{found:?}");
        }
    }

    #[test]
    fn the_table_has_the_number_of_values_that_were_left_out() {
        let cases = [(Case::Shaped, vec![burst(&[22.0, 23.5, -12.0])])];
        let csv = tenths(&cases).to_csv();
        let ends = ["with shapers,1,-400,47.800,2.0", "with shapers,1,300,12.000,4.0"];
        assert!(ends.iter().all(|line| csv.contains(line)), "{csv}");
        let shown = table(&cases).to_csv();
        assert!(shown.ends_with("with shapers,22.00,23.50,23.50,0 of 1,1,1\r\n"), "{shown}");
    }
}
