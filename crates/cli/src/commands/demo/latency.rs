//! What Weir costs: the same load with nothing between switch and controllers, and through `weir serve`, in turn.

use super::screen::Screen;
use super::{Demo, Folder, process};
use crate::signals::Interrupt;
use anyhow::Context;
use bench::system::Target;
use bench::{
    Collector, Controllers, Kind, Load, Measurement, Session, Setup, System, Topology, Version,
};
use report::{Environment, Point, Results, Scalar};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// What is sent, in messages per second in total.
const LOADS: [(Kind, f64); 4] = [
    (Kind::PacketIn, 10_000.0),
    (Kind::PacketIn, 20_000.0),
    (Kind::PacketIn, 40_000.0),
    (Kind::PacketOut, 60_000.0),
];
const TENANTS: [usize; 2] = [2, 20];

/// How long, how often.
struct Effort {
    runs: usize,
    duration_ms: u64,
    cut_ms: u64,
}

/// Measures, shows the table, and writes the results.
pub fn measure(
    screen: &mut Screen,
    interrupt: &Interrupt,
    demo: &Demo,
    folder: &Folder,
) -> anyhow::Result<()> {
    let effort = match demo.quick {
        true => Effort { runs: 1, duration_ms: 500, cut_ms: 100 },
        false => Effort { runs: 2, duration_ms: 1_200, cut_ms: 200 },
    };
    screen.heading("What it costs: latency in µs, switch-only beside through Weir")?;
    screen.line("(emulated switch and controllers, TCP over loopback, open loop: the time is")?;
    screen.line("from when a message was meant to leave until it arrived)")?;
    screen.blank()?;
    screen.line("                               switch-only       through Weir")?;
    screen.line("message     rate/s  tenants     p50     p99       p50     p99    p50 added")?;
    let mut measurements = Vec::new();
    for tenants in TENANTS {
        let rows = pair(screen, interrupt, demo, folder, &effort, tenants)?;
        for (place, pair) in rows.chunks(2).enumerate() {
            screen.progress("");
            if let ([direct, weir], Some((kind, rate))) = (pair, LOADS.get(place)) {
                screen.line(&row(*kind, *rate, tenants, &direct.point, &weir.point))?;
            }
        }
        measurements.extend(rows);
    }
    screen.blank()?;
    judge(screen, &measurements)?;
    write(demo, folder, &effort, measurements)
}

/// Both systems with this many tenants, under each load in turn: switch-only first, then Weir, load by load.
fn pair(
    screen: &Screen,
    interrupt: &Interrupt,
    demo: &Demo,
    folder: &Folder,
    effort: &Effort,
    tenants: usize,
) -> anyhow::Result<Vec<Measurement>> {
    let command = vec![process::own_program()?.display().to_string(), "serve".to_owned()];
    let weir = System::Weir { command, extra: String::new() };
    let mut systems =
        [open(&System::Direct, demo, folder, tenants)?, open(&weir, demo, folder, tenants)?];
    let mut collectors: Vec<Collector> = LOADS
        .iter()
        .flat_map(|(kind, rate)| {
            ["direct", "weir"].map(|system| {
                let parameters: [(&str, Scalar); 3] = [
                    ("message", kind.name().into()),
                    ("rate", (*rate).into()),
                    ("tenants", tenants.into()),
                ];
                Collector::new(system, &parameters)
            })
        })
        .collect();
    for run in 1..=effort.runs {
        for ((kind, rate), collectors) in LOADS.iter().zip(collectors.chunks_mut(2)) {
            let load = Load {
                cut_ms: effort.cut_ms,
                ..Load::constant(*kind, tenants, *rate, effort.duration_ms)
            };
            for (bench, collector) in systems.iter_mut().zip(collectors) {
                interrupt.check()?;
                screen.progress(&format!(
                    "measuring {} at {rate}/s with {tenants} tenants, run {run} of {}",
                    kind.name(),
                    effort.runs
                ));
                let outcome = bench.session.run(&load, &bench.target.pids)?;
                collector.add(&outcome);
            }
        }
    }
    Ok(collectors.into_iter().map(Collector::finish).collect())
}

/// A system with its two ends connected. Fields end in this order: the ends first.
struct Bench {
    session: Session,
    target: Target,
}

fn open(system: &System, demo: &Demo, folder: &Folder, tenants: usize) -> anyhow::Result<Bench> {
    let version = match demo.version() {
        openflow::Version::V1_0 => Version::V1_0,
        _ => Version::V1_3,
    };
    let setup = Setup { version, ..Setup::new(Topology::Direct, tenants) };
    let controllers = Controllers::bind(tenants, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let dir = folder.work().join(format!("{}-{tenants}-tenants", system.name()));
    std::fs::create_dir_all(&dir).context("cannot make a folder for a measurement")?;
    let target = system.start(&setup, &controllers, &dir)?;
    let setup = Setup { topology: target.topology.clone(), ..setup };
    let session = Session::open(setup, &controllers)?;
    Ok(Bench { session, target })
}

fn row(kind: Kind, rate: f64, tenants: usize, direct: &Point, weir: &Point) -> String {
    let us = |point: &Point, metric| match point.mean(metric) {
        Some(value) => format!("{value:.0}"),
        None => "–".to_owned(),
    };
    let added = match (weir.mean("p50_us"), direct.mean("p50_us")) {
        (Some(upper), Some(lower)) => format!("{:+.0}", upper - lower),
        _ => "–".to_owned(),
    };
    format!(
        "{:<10} {:>7}  {tenants:>7} {:>7} {:>7}   {:>7} {:>7}    {added:>9}",
        kind.name(),
        report::table::number(rate),
        us(direct, "p50_us"),
        us(direct, "p99_us"),
        us(weir, "p50_us"),
        us(weir, "p99_us"),
    )
}

/// What must hold whatever the machine; and what a reader has to know of the figures.
fn judge(screen: &mut Screen, measurements: &[Measurement]) -> anyhow::Result<()> {
    let through_weir = || measurements.iter().filter(|one| one.point.system == "weir");
    let sum = |of: fn(&report::TenantRow) -> u64| -> u64 {
        through_weir().flat_map(|one| &one.point.tenants).map(of).sum()
    };
    let (sent, received) = (sum(|tenant| tenant.sent), sum(|tenant| tenant.received));
    let count = |number: u64| report::table::number(number as f64);
    let text = format!("{} of {} messages arrived through Weir", count(received), count(sent));
    screen.verdict(received == sent, &text)?;
    let leaks: f64 = through_weir()
        .filter_map(|one| one.point.metrics.get("leaked"))
        .flat_map(|metric| &metric.samples)
        .sum();
    screen.verdict(leaks == 0.0, &format!("{leaks} of them came to another tenant"))?;
    let behind = measurements
        .iter()
        .flat_map(|one| &one.findings)
        .filter(|finding| finding.code == "generator-behind")
        .count();
    if behind > 0 {
        screen.line(&format!(
            "  ! at {behind} of {} points the generator itself was late: this machine is busy,",
            measurements.len()
        ))?;
        screen.line("    and these figures are higher than Weir's own")?;
    }
    Ok(())
}

fn write(
    demo: &Demo,
    folder: &Folder,
    effort: &Effort,
    measurements: Vec<Measurement>,
) -> anyhow::Result<()> {
    let environment = Environment::capture(&[("openvswitch", "ovs-vswitchd", &["--version"])]);
    let mut results = Results::new("demo", 1, environment);
    let openflow = if demo.version() == openflow::Version::V1_0 { "1.0" } else { "1.3" };
    let settings: [(&str, Scalar); 4] = [
        ("runs", effort.runs.into()),
        ("duration_ms", effort.duration_ms.into()),
        ("cut_ms", effort.cut_ms.into()),
        ("openflow", openflow.into()),
    ];
    results.settings.extend(settings.map(|(name, value)| (name.to_owned(), value)));
    let mut histograms = Vec::new();
    for measurement in measurements {
        results.points.push(measurement.point);
        results.findings.extend(measurement.findings);
        histograms.extend(measurement.histograms);
    }
    let window = Duration::from_millis(effort.duration_ms - 2 * effort.cut_ms);
    Ok(results.write(&folder.out, &histograms, window)?)
}
