//! Measures the latency that Weir adds. The same load is sent switch-only and through `weir serve`, in turn.

mod ends;

use crate::folder::Folder;
use crate::screen::Screen;
use crate::settings::Settings;
use bench::{Collector, Kind, Load, Measurement};
use ends::{Place, SYSTEMS, System};
use lab::Interrupt;
use report::pace::Pace;
use report::table::number;
use report::{Environment, Extras, Results, Scalar, terminal};
use std::time::Duration;

/// The messages, and their rate per second in total.
const LOADS: [(Kind, f64); 4] = [
    (Kind::PacketIn, 10_000.0),
    (Kind::PacketIn, 20_000.0),
    (Kind::PacketIn, 40_000.0),
    (Kind::PacketOut, 60_000.0),
];

/// The time in ms to wait for messages that may be lost. An overloaded Open vSwitch loses some messages.
const DRAIN_MS: u64 = 500;
/// The time in ms at each end of a run that is not measured.
const CUT_MS: u64 = 100;

/// The number and the duration of the runs.
struct Effort {
    runs: usize,
    duration_ms: u64,
}

/// Measures the latencies, shows the tables, and writes the results.
pub(crate) fn measure(
    screen: &mut Screen,
    interrupt: &Interrupt,
    settings: &Settings,
    folder: &Folder,
) -> anyhow::Result<()> {
    let effort = match settings.quick {
        true => Effort { runs: 1, duration_ms: 500 },
        false => Effort { runs: 2, duration_ms: 700 },
    };
    let place = Place { version: settings.version, work: folder.work() };
    let mut all = Vec::new();
    screen.heading("What it costs: latency in µs, switch-only beside through Weir")?;
    screen.line("(from when a message was meant to leave until it arrived)")?;
    screen.blank()?;
    if settings.has_open_vswitch() {
        screen.line("Open vSwitch, its ports' far ends and emulated controllers:")?;
        let systems = ends::real(&place)?;
        let measured = in_turn(interrupt, &effort, systems, "openvswitch")?;
        show(screen, &measured)?;
        judge_real(screen, &measured)?;
        all.extend(measured);
        screen.blank()?;
    }
    screen.line("Emulated switch and controllers, which are fast enough to show Weir alone:")?;
    let systems = ends::emulated(&place)?;
    let measured = in_turn(interrupt, &effort, systems, "emulated")?;
    show(screen, &measured)?;
    judge(screen, &measured)?;
    all.extend(measured);
    show_lateness(screen, &all)?;
    write(settings, folder, &effort, all, screen)
}

/// Measures each load with each system in turn, so that other work of the machine disturbs all systems equally. The
/// results are in the order of the loads, then of the systems.
fn in_turn(
    interrupt: &Interrupt,
    effort: &Effort,
    mut systems: Vec<System>,
    switch: &str,
) -> anyhow::Result<Vec<Measurement>> {
    let collector = |(kind, rate): &(Kind, f64), system: &System| {
        let parameters: [(&str, Scalar); 4] = [
            ("switch", switch.into()),
            ("message", kind.name().into()),
            ("rate", (*rate).into()),
            ("tenants", system.tenants.into()),
        ];
        Collector::new(system.name, &parameters)
    };
    let step = Duration::from_millis(effort.duration_ms + DRAIN_MS);
    let mut pace = Pace::new(effort.runs * LOADS.len() * systems.len(), step);
    let mut collectors: Vec<Collector> = LOADS
        .iter()
        .flat_map(|load| systems.iter().map(|system| collector(load, system)).collect::<Vec<_>>())
        .collect();
    for _ in 0..effort.runs {
        for ((kind, rate), collectors) in LOADS.iter().zip(collectors.chunks_mut(systems.len())) {
            for (system, collector) in systems.iter_mut().zip(collectors) {
                interrupt.check()?;
                terminal::talk(&format!(
                    "{} at {}/s, {} with {} tenants ({})",
                    kind.name(),
                    number(*rate),
                    system.name,
                    system.tenants,
                    pace.step()
                ));
                let load = Load::constant(*kind, system.tenants, *rate, effort.duration_ms);
                let load = Load { cut_ms: CUT_MS, drain_ms: DRAIN_MS, ..load };
                collector.add(&system.session.run(&load, &system.pids)?);
            }
        }
    }
    terminal::quiet();
    Ok(collectors.into_iter().map(Collector::finish).collect())
}

fn show(screen: &mut Screen, measured: &[Measurement]) -> anyhow::Result<()> {
    screen.line("                        switch-only     Weir, 2 tenants    Weir, 20 tenants")?;
    screen.line("message     rate/s       p50      p99       p50      p99       p50      p99")?;
    for ((kind, rate), points) in LOADS.iter().zip(measured.chunks(SYSTEMS)) {
        screen.line(&row(*kind, *rate, points))?;
    }
    Ok(())
}

fn row(kind: Kind, rate: f64, points: &[Measurement]) -> String {
    let mut line = format!("{:<10} {:>7}", kind.name(), number(rate));
    for Measurement { point, .. } in points {
        let us =
            |metric| point.mean(metric).map_or("–".to_owned(), |value| format!("{value:.0}"));
        line += &format!(" {:>9} {:>8}", us("p50_us"), us("p99_us"));
    }
    line
}

/// Judges the conditions that are independent of the machine.
fn judge(screen: &mut Screen, measured: &[Measurement]) -> anyhow::Result<()> {
    let (sent, received) = accounts(measured, "weir");
    let text = format!("{} of {} messages arrived through Weir", count(received), count(sent));
    let points = measured.iter().filter(|one| one.point.system == "weir").map(|one| {
        let (sent, received) = accounts(std::slice::from_ref(one), "weir");
        (sent, received, is_late(one))
    });
    match have_arrived(points) {
        Some(holds) => screen.verdict(holds, &text)?,
        None => {
            screen.undecided(&text)?;
            screen.line(
                "    not judged: messages are missing only where the generator was late. It is",
            )?;
            screen.line(
                "    the controllers, too; Weir drops what a controller does not read in time",
            )?;
        }
    }
    no_leaks(screen, measured)
}

/// Whether all messages have arrived at all points. Each point has the number of sent messages, the number of received
/// messages, and whether the generator was late. A generator that has no time to send has no time to read as
/// controllers either, and the buffer of a controller is bounded. So messages that are missing only at late points
/// prove nothing.
fn have_arrived(points: impl Iterator<Item = (u64, u64, bool)>) -> Option<bool> {
    let differing: Vec<_> = points.filter(|(sent, received, _)| sent != received).collect();
    let is_open = |(sent, received, is_late): &(u64, u64, bool)| received < sent && *is_late;
    match differing.iter().all(is_open) {
        true if differing.is_empty() => Some(true),
        true => None,
        false => Some(false),
    }
}

/// Shows the share of messages that arrived, without a verdict. An overloaded real switch drops PACKET_INs in every
/// system, so the reader has to judge this share.
fn judge_real(screen: &mut Screen, measured: &[Measurement]) -> anyhow::Result<()> {
    let percent = |system: &str| {
        let (sent, received) = accounts(measured, system);
        received as f64 * 100.0 / sent.max(1) as f64
    };
    let (direct, weir) = (percent("direct"), percent("weir"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    screen.line(&format!(
        "    {direct:.0} % of the messages arrived switch-only, {weir:.0} % through Weir; switch,"
    ))?;
    screen.line(&format!("    Weir, controllers and generator share {cores} cores here"))?;
    no_leaks(screen, measured)
}

/// The numbers of sent and received messages.
fn accounts(measured: &[Measurement], system: &str) -> (u64, u64) {
    let tenants = measured.iter().filter(|one| one.point.system == system);
    let tenants = tenants.flat_map(|one| &one.point.tenants);
    tenants.fold((0, 0), |(sent, received), one| (sent + one.sent, received + one.received))
}

fn no_leaks(screen: &mut Screen, measured: &[Measurement]) -> anyhow::Result<()> {
    let leaks: f64 = measured
        .iter()
        .filter(|one| one.point.system == "weir")
        .filter_map(|one| one.point.metrics.get("leaked"))
        .flat_map(|metric| &metric.samples)
        .sum();
    Ok(screen.verdict(leaks == 0.0, &format!("{leaks} of them came to another tenant"))?)
}

fn count(number: u64) -> String {
    report::table::number(number as f64)
}

/// Whether the generator was late in a run of this point.
fn is_late(measured: &Measurement) -> bool {
    measured.findings.iter().any(|finding| finding.code == "generator-behind")
}

/// Shows how many figures contain the delay of a late generator.
fn show_lateness(screen: &mut Screen, measured: &[Measurement]) -> anyhow::Result<()> {
    let late = measured.iter().filter(|one| is_late(one)).count();
    if late > 0 {
        let all = measured.len();
        screen.line(&format!(
            "  ! at {late} of {all} points the generator itself was late: this machine is busy,"
        ))?;
        screen.line("    and these figures are higher than Weir's own")?;
    }
    Ok(())
}

fn write(
    settings: &Settings,
    folder: &Folder,
    effort: &Effort,
    measurements: Vec<Measurement>,
    screen: &Screen,
) -> anyhow::Result<()> {
    let environment = Environment::capture(&[("openvswitch", "ovs-vswitchd", &["--version"])]);
    let mut results = Results::new("demo", 1, environment);
    let openflow = if settings.version == openflow::Version::V1_0 { "1.0" } else { "1.3" };
    let settings: [(&str, Scalar); 4] = [
        ("runs", effort.runs.into()),
        ("duration_ms", effort.duration_ms.into()),
        ("cut_ms", CUT_MS.into()),
        ("openflow", openflow.into()),
    ];
    results.settings.extend(settings.map(|(name, value)| (name.to_owned(), value)));
    let mut histograms = Vec::new();
    for measurement in measurements {
        results.points.push(measurement.point);
        results.findings.extend(measurement.findings);
        histograms.extend(measurement.histograms);
    }
    let window = Duration::from_millis(effort.duration_ms - 2 * CUT_MS);
    let tables = vec![("What the demo did".to_owned(), screen.steps())];
    let extras = Extras { tables, ..Extras::default() };
    Ok(results.write_with(&folder.out, &histograms, window, &extras)?)
}

#[cfg(test)]
mod tests {
    use super::have_arrived;

    #[test]
    fn messages_missing_only_at_points_with_a_late_generator_are_not_judged() {
        const LATE: bool = true;
        for (points, expected) in [
            (&[(9, 9, false), (9, 9, LATE)][..], Some(true)),
            (&[(9, 9, false), (9, 8, LATE)], None),
            (&[(9, 8, false), (9, 9, LATE)], Some(false)),
            (&[(9, 8, false), (9, 8, LATE)], Some(false)),
            (&[(9, 10, LATE)], Some(false)),
            // Together the points have as many received messages as sent messages.
            (&[(9, 10, LATE), (9, 8, LATE)], Some(false)),
        ] {
            assert_eq!(have_arrived(points.iter().copied()), expected, "{points:?}");
        }
    }
}
