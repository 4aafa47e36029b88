//! `weir reproduce riggio2013`: what tenants lose when they cannot see one another's load, and what labels give back.

mod scene;

use crate::exit::Exit;
use crate::signals::Interrupt;
use anyhow::Context;
use report::figure::{Line, Lines};
use report::results::Extras;
use report::stats::{confidence95, mean};
use report::{Better, Environment, Figure, Finding, Metric, Point, Results, Table};
use scene::{Choice, FLOWS, Form, Outcome, SAMPLE, Scene};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The Price of Virtualization (2013): throughput of two tenants with and without link labels
///
/// On the paper's network of 10 Mbit/s links red sends from A to B, then blue from E to F, then from C to D, each as much
/// as TCP gets. Each tenant's controller chooses among two paths: by the labels that Weir tells it, at random, or, as the
/// worst case, always the first. Needs root, Open vSwitch, iperf3 and os-ken. A full run takes an hour and three quarters.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir reproduce riggio2013 --quick --out results/

See docs/reproduce/riggio2013.md.")]
pub struct Riggio2013 {
    /// Two runs of each kind, flows 12 s apart instead of 60
    #[arg(long)]
    quick: bool,
    /// Runs of each kind [default: 10, 2 with --quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: Option<u32>,
    /// Seconds between the flows' starts [default: 60, 12 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(6..=600))]
    gap: Option<u32>,
    /// How labels are told
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    openflow: Form,
    /// Write result.json, CSV, report.html and figures/ here
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print result.json instead of tables
    #[arg(long)]
    json: bool,
}

const CHOICES: [Choice; 3] = [Choice::Labels, Choice::Random, Choice::Same];
/// Nominal: two paths of 10 Mbit/s.
const NOMINAL: f64 = 20.0;
/// What labels have to reach, in every run.
const WANTED: f64 = 0.95 * NOMINAL;

impl Riggio2013 {
    pub fn run(self) -> anyhow::Result<Exit> {
        let missing = lab::Requirements::ALL.check();
        if !missing.is_empty() {
            return Err(lab::Error::Missing(missing).into());
        }
        let interrupt = Interrupt::catch()?;
        let (runs, gap) = match self.quick {
            true => (self.runs.unwrap_or(2), self.gap.unwrap_or(12)),
            false => (self.runs.unwrap_or(10), self.gap.unwrap_or(60)),
        };
        let work = Work::new()?;
        let scene = Scene::up(self.openflow)?;
        let mut outcomes: Vec<(Choice, Vec<Outcome>)> =
            CHOICES.iter().map(|choice| (*choice, Vec::new())).collect();
        for run in 0..runs {
            // Interleaved, so that what the machine does meanwhile falls on all alike.
            for (choice, done) in &mut outcomes {
                let folder = work.0.join(format!("{run}-{}", done.len()));
                let folder = folder.with_extension(format!("{choice:?}"));
                fs::create_dir_all(&folder).context("cannot make a folder for a run")?;
                let gap = Duration::from_secs(gap.into());
                let outcome = scene.run(*choice, gap, &folder, &interrupt)?;
                let total = aggregate(&outcome, gap).last().copied();
                let spines = outcome
                    .spines
                    .map(|spine| spine.map_or_else(|| "?".to_owned(), |s| format!("s{s}")));
                writeln!(
                    std::io::stderr(),
                    "run {}: {}: by {}, {:.1} Mbit/s in the end",
                    run + 1,
                    choice.name(),
                    spines.join(", "),
                    total.unwrap_or(0.0)
                )?;
                done.push(outcome);
            }
        }
        drop(scene);
        self.give(&outcomes, Duration::from_secs(gap.into()))
    }

    fn give(&self, outcomes: &[(Choice, Vec<Outcome>)], gap: Duration) -> anyhow::Result<Exit> {
        let mut results = Results::new("reproduce riggio2013", 0, Environment::capture(&[]));
        results.settings.insert("quick".to_owned(), self.quick.into());
        results.settings.insert("gap_s".to_owned(), (gap.as_secs() as f64).into());
        for (choice, runs) in outcomes {
            let mut point = Point::new(choice.name(), [("flows", "A-B, E-F, C-D")]);
            let totals: Vec<f64> = runs.iter().map(|run| settled_total(run, gap)).collect();
            if *choice == Choice::Labels && totals.iter().any(|total| *total < WANTED) {
                results.findings.push(Finding {
                    code: "below-nominal".to_owned(),
                    text: format!("with labels, a run stayed below {WANTED} Mbit/s: {totals:.2?}"),
                });
            }
            point
                .metrics
                .insert("total_mbit_s".to_owned(), Metric::new("Mbit/s", Better::Higher, totals));
            for (at, (from, to, _)) in FLOWS.iter().enumerate() {
                let rates = runs.iter().map(|run| settled(run, at, gap)).collect();
                let name = format!("{from}{to}_mbit_s");
                point.metrics.insert(name, Metric::new("Mbit/s", Better::Higher, rates));
            }
            results.points.push(point);
        }
        let extras = self.extras(outcomes, gap);
        let mut stdout = std::io::stdout().lock();
        if self.json {
            write!(stdout, "{}", results.to_json())?;
        } else {
            for (heading, table) in &extras.tables {
                writeln!(stdout, "{heading}\n{table}")?;
            }
            for finding in &results.findings {
                writeln!(stdout, "! {}", finding.text)?;
            }
        }
        if let Some(out) = &self.out {
            results.write_with(out, &[], Duration::ZERO, &extras)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(if results.findings.is_empty() { Exit::Success } else { Exit::Finding })
    }

    fn extras(&self, outcomes: &[(Choice, Vec<Outcome>)], gap: Duration) -> Extras {
        let mut extras = Extras::default();
        let heading =
            "Mbit/s when all three flows run: mean over runs ± 95 % confidence, and the worst run";
        extras.tables.push((heading.to_owned(), table(outcomes, gap)));
        let of = |wanted: Choice| outcomes.iter().find(|(choice, _)| *choice == wanted);
        let note = format!(
            "runs of each kind: {}; flows {} s apart",
            outcomes.first().map_or(0, |it| it.1.len()),
            gap.as_secs()
        );
        let mut figure = |name: &str, title: &str, lines: Vec<Line>, caption: &str| {
            let drawing = Lines {
                title: title.to_owned(),
                x_label: "s".to_owned(),
                y_label: "Mbit/s".to_owned(),
                lines,
                ..Lines::default()
            };
            let drawing = drawing.draw().with_note(&note);
            let (name, caption) = (name.to_owned(), caption.to_owned());
            extras.figures.push(Figure { name, drawing, caption });
        };
        if let Some((_, runs)) = of(Choice::Random) {
            figure(
                "4a",
                "Throughput per flow without labels, paths at random",
                per_flow(runs, gap),
                "Mean over runs. Published: a drawing without numbers; the text says that the final bandwidth depends on a choice of probability 0.5.",
            );
        }
        if let Some((_, runs)) = of(Choice::Labels) {
            figure(
                "4b",
                "Throughput per flow with labels",
                per_flow(runs, gap),
                "Mean over runs. Published: a drawing without numbers; the text says that it is always possible to converge to the optimum.",
            );
        }
        let mut lines: Vec<Line> = outcomes
            .iter()
            .map(|(choice, runs)| {
                let all: Vec<Vec<f64>> = runs.iter().map(|run| aggregate(run, gap)).collect();
                Line {
                    name: choice.name().to_owned(),
                    points: over_time(&all, 0.0),
                    ..Line::default()
                }
            })
            .collect();
        let end = (gap * 3).as_secs_f64();
        let last = (gap * 2).as_secs_f64();
        for (name, value) in
            [("published worst case", 10.0), ("published with labels, close to", NOMINAL)]
        {
            let points = vec![(last, value), (end, value)];
            lines.push(Line { name: name.to_owned(), points, dashed: true, ..Line::default() });
        }
        figure(
            "4c",
            "Aggregate throughput",
            lines,
            "Mean over runs. Published, in the text: 10 Mb/s without labels in the worst case, closely approaching 20 Mb/s with them (dashed).",
        );
        extras
    }
}

fn table(outcomes: &[(Choice, Vec<Outcome>)], gap: Duration) -> Table {
    let mut table = Table::new([
        "choice of paths",
        "A to B",
        "E to F",
        "C to D",
        "together",
        "worst run",
        "published together",
    ]);
    for (choice, runs) in outcomes {
        let cell = |values: &[f64]| {
            let middle = mean(values).map_or_else(|| "–".to_owned(), |it| format!("{it:.2}"));
            match confidence95(values) {
                Some(half) => format!("{middle} ± {half:.2}"),
                None => middle,
            }
        };
        let mut row = vec![choice.name().to_owned()];
        for at in 0..FLOWS.len() {
            row.push(cell(&runs.iter().map(|run| settled(run, at, gap)).collect::<Vec<_>>()));
        }
        let totals: Vec<f64> = runs.iter().map(|run| settled_total(run, gap)).collect();
        row.push(cell(&totals));
        row.push(format!("{:.2}", totals.iter().copied().fold(f64::INFINITY, f64::min)));
        row.push(match choice {
            Choice::Labels => "close to 20".to_owned(),
            Choice::Random => "–".to_owned(),
            Choice::Same => "10".to_owned(),
        });
        table.row(row);
    }
    table
}

/// A flow's mean rate once all three run and have settled: the last two thirds of that time.
fn settled(run: &Outcome, flow: usize, gap: Duration) -> f64 {
    let count = (gap.as_secs() * 2 / 3 / u64::from(SAMPLE)).max(1) as usize;
    let Some(samples) = run.flows.get(flow) else { return 0.0 };
    mean(samples.get(samples.len().saturating_sub(count)..).unwrap_or_default()).unwrap_or(0.0)
}

fn settled_total(run: &Outcome, gap: Duration) -> f64 {
    (0..FLOWS.len()).map(|flow| settled(run, flow, gap)).sum()
}

/// What all flows get together, sample by sample.
fn aggregate(run: &Outcome, gap: Duration) -> Vec<f64> {
    let per_gap = (gap.as_secs() / u64::from(SAMPLE)) as usize;
    (0..per_gap * 3)
        .map(|at| {
            FLOWS
                .iter()
                .zip(&run.flows)
                .filter_map(|((_, _, after), samples)| {
                    samples.get(at.checked_sub(per_gap * *after as usize)?)
                })
                .sum()
        })
        .collect()
}

fn per_flow(runs: &[Outcome], gap: Duration) -> Vec<Line> {
    FLOWS
        .iter()
        .enumerate()
        .map(|(at, (from, to, after))| {
            let all: Vec<Vec<f64>> =
                runs.iter().filter_map(|run| run.flows.get(at).cloned()).collect();
            let start = (gap * *after).as_secs_f64();
            Line {
                name: format!("{from} to {to}"),
                points: over_time(&all, start),
                ..Line::default()
            }
        })
        .collect()
}

/// Means over runs, at the end of each sample.
fn over_time(runs: &[Vec<f64>], start: f64) -> Vec<(f64, f64)> {
    let longest = runs.iter().map(Vec::len).min().unwrap_or(0);
    (0..longest)
        .filter_map(|at| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.get(at).copied()).collect();
            Some((start + f64::from(SAMPLE) * (at + 1) as f64, mean(&values)?))
        })
        .collect()
}

/// A folder for logs, removed in the end.
struct Work(PathBuf);

impl Work {
    fn new() -> anyhow::Result<Work> {
        let path = std::env::temp_dir().join(format!("weir-riggio2013-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Work(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let path: &Path = &self.0;
        // It is in the folder for temporary files: whatever is left goes some day.
        let _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_put_together_by_their_time() {
        let gap = Duration::from_secs(6);
        let flows = [vec![9.0; 9], vec![8.0; 6], vec![1.0; 3]];
        let run = Outcome { flows, spines: [None; 3] };
        assert_eq!(aggregate(&run, gap), [9.0, 9.0, 9.0, 17.0, 17.0, 17.0, 18.0, 18.0, 18.0]);
        assert!((settled_total(&run, gap) - 18.0).abs() < 1e-9);
        let points = over_time(&[vec![1.0, 3.0], vec![3.0, 5.0, 7.0]], 6.0);
        assert_eq!(points, [(8.0, 2.0), (10.0, 4.0)]);
    }
}
