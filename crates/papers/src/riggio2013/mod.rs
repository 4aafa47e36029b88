//! Reproduces *The Price of Virtualization* (2013), section V: the bandwidth that tenants lose when no tenant sees the
//! load of other tenants, and the gain through link labels.

mod idle;
mod scene;

use crate::reproduction::{self, Reproduction};
use crate::vnics::VNICS;
use anyhow::Context;
use idle::Cpu;
use lab::Interrupt;
use report::figure::{Line, Lines};
use report::pace::Pace;
use report::results::Extras;
use report::stats::{confidence95, mean};
use report::{Better, Environment, Figure, Finding, Metric, Point, Results, Table};
pub use scene::Form;
use scene::{Choice, FLOWS, GaveUp, Halt, Outcome, SAMPLE, Scene};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Riggio2013 {
    /// Whether to make a quick run; results state this.
    pub quick: bool,
    /// The number of runs of each kind.
    pub runs: u32,
    /// The seconds between the starts of flows: an even number, so that samples begin with the flows.
    pub gap: u32,
    /// The form of link labels for controllers.
    pub openflow: Form,
    /// Whether the three kinds run at the same time, each kind in its own lab.
    pub side_by_side: bool,
    /// Whether shapers limit flows to the bandwidths of their VNICs; otherwise flows share links as TCP does.
    pub shapers: bool,
}

const CHOICES: [Choice; 3] = [Choice::Labels, Choice::Random, Choice::Same];
/// The nominal bandwidth in Mbit/s: two paths of 10 Mbit/s.
const NOMINAL: f64 = 20.0;
/// The bandwidth that flows have to reach with labels, in every run.
const WANTED: f64 = 0.95 * NOMINAL;
/// The maximum difference of a flow from its VNICs' bandwidth, as a share of that bandwidth.
const TOLERANCE: f64 = 0.05;

impl Riggio2013 {
    /// Makes labs, and measures. The run calls `talk` with progress messages.
    ///
    /// # Errors
    /// The missing features of the labs, the controllers or the agent; [`lab::Interrupted`] if there is not one
    /// complete run of each kind yet.
    pub fn run(
        &self,
        interrupt: &Interrupt,
        talk: &(dyn Fn(&str) + Sync),
    ) -> anyhow::Result<Reproduction> {
        let missing = lab::Requirements::ALL.check();
        if !missing.is_empty() {
            return Err(lab::Error::Missing(missing).into());
        }
        let runs = self.runs;
        let gap = Duration::from_secs(self.gap.into());
        let work = Work::new()?;
        let halt = Halt::new(interrupt.clone());
        Scene::clear()?;
        let count = if self.side_by_side { CHOICES.len() } else { 1 };
        let scenes: Vec<Scene> = (0..count)
            .map(|number| Scene::up(self.openflow, self.shapers, number))
            .collect::<anyhow::Result<_>>()?;
        let mut outcomes = CHOICES.map(|choice| (choice, Vec::new()));
        // Flows start one after another, and the last flow runs as long; the start and the end of a run take a quarter
        // of a minute.
        let a_round = (gap * 3 + Duration::from_secs(15)) * if self.side_by_side { 1 } else { 3 };
        let mut pace = Pace::new(runs as usize, a_round);
        let mut partial = None;
        talk(&format!("{runs} runs of each kind: {}", pace.whole()));
        for run in 0..runs {
            talk(&format!("run {}", pace.step()));
            let folder = work.0.join(run.to_string());
            let once = |scene: &Scene, choice: Choice| -> anyhow::Result<Outcome> {
                let folder = folder.with_extension(format!("{choice:?}"));
                fs::create_dir_all(&folder).context("cannot make a folder for a run")?;
                let cpu = Cpu::now();
                let mut outcome = scene.run(choice, gap, &folder, &halt)?;
                outcome.idle = Cpu::now().idle_since(&cpu);
                talk(&sentence(run, choice, &outcome, gap));
                Ok(outcome)
            };
            // The kinds alternate or run at the same time, so other load of the machine affects all kinds equally.
            match round(&scenes, &halt, once) {
                // An incomplete round does not count, because the runs of a round are compared with each other.
                Err(_) if interrupt.is_asked() && run > 0 => {
                    partial = Some(format!("interrupted: {run} of {runs} runs of each kind"));
                    break;
                }
                outcome => {
                    for ((_, done), outcome) in outcomes.iter_mut().zip(outcome?) {
                        done.push(outcome);
                    }
                }
            }
        }
        drop(scenes);
        Ok(self.reproduction(&outcomes, gap, partial.as_deref()))
    }

    fn reproduction(
        &self,
        outcomes: &[(Choice, Vec<Outcome>)],
        gap: Duration,
        partial: Option<&str>,
    ) -> Reproduction {
        let mut results = Results::new("reproduce riggio2013", 0, Environment::capture(&[]));
        partial.inspect(|text| results.mark_partial(text));
        results.settings.insert("quick".to_owned(), self.quick.into());
        results.settings.insert("gap_s".to_owned(), (gap.as_secs() as f64).into());
        results.settings.insert("shapers".to_owned(), (self.shapers).into());
        results.settings.insert("side_by_side".to_owned(), self.side_by_side.into());
        for (choice, runs) in outcomes {
            if *choice == Choice::Labels {
                results.findings.extend(below_nominal(runs, gap));
                if self.shapers {
                    results.findings.extend(off_share(runs, gap));
                }
            }
            results.points.push(point(*choice, runs, gap));
        }
        let extras = self.extras(outcomes, gap);
        let remarks = reproduction::remarks(&results);
        let samples = Some(("samples.csv", all_samples(outcomes, gap)));
        Reproduction { results, extras, remarks, samples }
    }

    fn extras(&self, outcomes: &[(Choice, Vec<Outcome>)], gap: Duration) -> Extras {
        let mut extras = Extras::default();
        let heading = "Mbit/s of frames when all three flows run: mean over runs ± 95 % confidence, and the worst run; \
                       of TCP's payload, likewise; and % of CPU idle, mean and least";
        let heading = match !self.shapers {
            true => format!("Without shapers: {heading}"),
            false => heading.to_owned(),
        };
        extras.tables.push((heading, table(outcomes, gap, self.shapers)));
        let of = |wanted: Choice| outcomes.iter().find(|(choice, _)| *choice == wanted);
        let note = format!(
            "runs of each kind: {}; flows {} s apart{}",
            outcomes.first().map_or(0, |it| it.1.len()),
            gap.as_secs(),
            if !self.shapers { "; no shapers" } else { "" }
        );
        let mut figure = |name: &str, title: &str, lines: Vec<Line>, caption: &str| {
            let drawing = Lines {
                title: title.to_owned(),
                x_label: "s".to_owned(),
                y_label: "Mbit/s of frames".to_owned(),
                x_from_zero: true,
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

/// Makes one run of each kind: each kind in its own scene, or one kind after another in the only scene.
fn round(
    scenes: &[Scene],
    halt: &Halt,
    once: impl Fn(&Scene, Choice) -> anyhow::Result<Outcome> + Sync,
) -> anyhow::Result<Vec<Outcome>> {
    if let [scene] = scenes {
        return CHOICES.into_iter().map(|choice| once(scene, choice)).collect();
    }
    let once = |(scene, choice)| once(scene, choice).inspect_err(|_| halt.fail());
    let outcomes: Vec<anyhow::Result<Outcome>> = std::thread::scope(|scope| {
        let pairs = scenes.iter().zip(CHOICES);
        let threads: Vec<_> = pairs.map(|pair| scope.spawn(move || once(pair))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let (done, mut failed): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    // The error that made the other runs give up has the reason.
    failed.sort_by_key(|it| it.as_ref().is_err_and(|error| error.is::<GaveUp>()));
    match failed.into_iter().next() {
        Some(error) => error.map(|_| Vec::new()),
        None => done.into_iter().collect(),
    }
}

/// Describes a run in one sentence.
fn sentence(run: u32, choice: Choice, outcome: &Outcome, gap: Duration) -> String {
    let name = |spine: Option<u64>| spine.map_or_else(|| "?".to_owned(), |it| format!("s{it}"));
    let idle = outcome.idle.map_or_else(|| "?".to_owned(), |idle| format!("{idle:.0}"));
    format!(
        "run {}: {}: by {}; {:.2} Mbit/s in the end, {:.2} of it TCP's payload; CPU {idle} % idle",
        run + 1,
        choice.name(),
        outcome.spines.map(name).join(", "),
        total(&outcome.wire, gap),
        total(&outcome.goodput, gap),
    )
}

fn point(choice: Choice, runs: &[Outcome], gap: Duration) -> Point {
    let mut point = Point::new(choice.name(), [("flows", "A-B, E-F, C-D")]);
    let mut add = |name: String, unit: &str, samples: Vec<f64>| {
        point.metrics.insert(name, Metric::new(unit, Better::Higher, samples));
    };
    let each = |measure: &dyn Fn(&Outcome) -> f64| runs.iter().map(measure).collect::<Vec<f64>>();
    add("total_mbit_s".to_owned(), "Mbit/s", each(&|run| total(&run.wire, gap)));
    add("total_goodput_mbit_s".to_owned(), "Mbit/s", each(&|run| total(&run.goodput, gap)));
    for (at, (from, to, _)) in FLOWS.iter().enumerate() {
        let name = |what: &str| format!("{from}{to}_{what}mbit_s");
        add(name(""), "Mbit/s", each(&|run| settled(&run.wire, at, gap)));
        add(name("goodput_"), "Mbit/s", each(&|run| settled(&run.goodput, at, gap)));
    }
    add("cpu_idle".to_owned(), "%", runs.iter().filter_map(|run| run.idle).collect());
    point
}

fn below_nominal(runs: &[Outcome], gap: Duration) -> Option<Finding> {
    let totals: Vec<f64> = runs.iter().map(|run| total(&run.wire, gap)).collect();
    let text = format!("with labels, a run stayed below {WANTED} Mbit/s: {totals:.2?}");
    let low = totals.iter().any(|total| *total < WANTED);
    low.then(|| Finding { code: "below-nominal".to_owned(), text })
}

/// The findings for each flow of each run with a difference of more than [`TOLERANCE`] from its share.
fn off_share(runs: &[Outcome], gap: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for (at, (from, to, _)) in FLOWS.iter().enumerate() {
            let (rate, share) = (settled(&run.wire, at, gap), share(from));
            if (rate - share).abs() > TOLERANCE * share {
                let text = format!(
                    "with labels, run {}: {from} to {to} had {rate:.2} Mbit/s, not within {:.0} % of its share of {share}",
                    number + 1,
                    TOLERANCE * 100.0
                );
                findings.push(Finding { code: "off-share".to_owned(), text });
            }
        }
    }
    findings
}

/// The share of a flow: the bandwidth of the sender's VNIC in Mbit/s. The receiver's VNIC has the same bandwidth, and
/// no other flow goes to the receiver.
fn share(from: &str) -> f64 {
    VNICS.iter().find(|(host, ..)| *host == from).map_or(0.0, |(_, _, mbit)| *mbit as f64)
}

fn table(outcomes: &[(Choice, Vec<Outcome>)], gap: Duration, shaped: bool) -> Table {
    let mut table = Table::new([
        "choice of paths",
        "A to B",
        "E to F",
        "C to D",
        "together",
        "worst run",
        "payload",
        "idle",
        "published together",
    ]);
    if shaped {
        let shares = FLOWS.map(|(from, ..)| share(from));
        let mut row = vec!["bought".to_owned()];
        row.extend(shares.map(|share| share.to_string()));
        row.push(shares.iter().sum::<f64>().to_string());
        row.extend(["", "", "", ""].map(str::to_owned));
        table.row(row);
    }
    for (choice, runs) in outcomes {
        let cell = |values: &[f64]| {
            let middle = mean(values).map_or_else(|| "–".to_owned(), |it| format!("{it:.2}"));
            match confidence95(values) {
                Some(half) => format!("{middle} ± {half:.2}"),
                None => middle,
            }
        };
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let mut row = vec![choice.name().to_owned()];
        for at in 0..FLOWS.len() {
            let rates: Vec<f64> = runs.iter().map(|run| settled(&run.wire, at, gap)).collect();
            row.push(cell(&rates));
        }
        let totals: Vec<f64> = runs.iter().map(|run| total(&run.wire, gap)).collect();
        row.push(cell(&totals));
        row.push(format!("{:.2}", least(&totals)));
        row.push(cell(&runs.iter().map(|run| total(&run.goodput, gap)).collect::<Vec<_>>()));
        let idle: Vec<f64> = runs.iter().filter_map(|run| run.idle).collect();
        row.push(
            mean(&idle).map_or_else(
                || "–".to_owned(),
                |middle| format!("{middle:.0}, {:.0}", least(&idle)),
            ),
        );
        row.push(match choice {
            Choice::Labels => "close to 20".to_owned(),
            Choice::Random => "–".to_owned(),
            Choice::Same => "10".to_owned(),
        });
        table.row(row);
    }
    table
}

/// The table of all samples, for users who draw their own figures.
fn all_samples(outcomes: &[(Choice, Vec<Outcome>)], gap: Duration) -> Table {
    let mut table =
        Table::new(["paths", "run", "from", "to", "second", "frames_mbit_s", "payload_mbit_s"]);
    for (choice, runs) in outcomes {
        for (number, run) in runs.iter().enumerate() {
            for ((from, to, after), (wire, goodput)) in
                FLOWS.iter().zip(run.wire.iter().zip(&run.goodput))
            {
                for (at, rate) in wire.iter().enumerate() {
                    let second =
                        gap.as_secs() * u64::from(*after) + (at as u64 + 1) * u64::from(SAMPLE);
                    let payload = goodput.get(at).map_or_else(String::new, |it| format!("{it:.3}"));
                    table.row([
                        choice.name().to_owned(),
                        (number + 1).to_string(),
                        (*from).to_owned(),
                        (*to).to_owned(),
                        second.to_string(),
                        format!("{rate:.3}"),
                        payload,
                    ]);
                }
            }
        }
    }
    table
}

/// The mean rate of a flow when all three flows run and have settled: over the last two thirds of that time.
fn settled(flows: &[Vec<f64>; 3], flow: usize, gap: Duration) -> f64 {
    let count = (gap.as_secs() * 2 / 3 / u64::from(SAMPLE)).max(1) as usize;
    let Some(samples) = flows.get(flow) else { return 0.0 };
    mean(samples.get(samples.len().saturating_sub(count)..).unwrap_or_default()).unwrap_or(0.0)
}

fn total(flows: &[Vec<f64>; 3], gap: Duration) -> f64 {
    (0..FLOWS.len()).map(|flow| settled(flows, flow, gap)).sum()
}

/// The sum of the rates of all flows, sample by sample.
fn aggregate(run: &Outcome, gap: Duration) -> Vec<f64> {
    let per_gap = (gap.as_secs() / u64::from(SAMPLE)) as usize;
    (0..per_gap * 3)
        .map(|at| {
            FLOWS
                .iter()
                .zip(&run.wire)
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
                runs.iter().filter_map(|run| run.wire.get(at).cloned()).collect();
            let start = (gap * *after).as_secs_f64();
            Line {
                name: format!("{from} to {to}"),
                points: over_time(&all, start),
                ..Line::default()
            }
        })
        .collect()
}

/// The means over runs, at the end of each sample.
fn over_time(runs: &[Vec<f64>], start: f64) -> Vec<(f64, f64)> {
    let longest = runs.iter().map(Vec::len).min().unwrap_or(0);
    (0..longest)
        .filter_map(|at| {
            let values: Vec<f64> = runs.iter().filter_map(|run| run.get(at).copied()).collect();
            Some((start + f64::from(SAMPLE) * (at + 1) as f64, mean(&values)?))
        })
        .collect()
}

/// A temporary folder for logs; removed at the end.
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
        // The folder is in the system's temporary folder, which the system cleans up later.
        let _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_flows_and_runs_are_combined_by_sample_time() {
        let gap = Duration::from_secs(6);
        let run = outcome([9.0, 8.0, 1.0]);
        assert_eq!(aggregate(&run, gap), [9.0, 9.0, 9.0, 17.0, 17.0, 17.0, 18.0, 18.0, 18.0]);
        assert!((total(&run.wire, gap) - 18.0).abs() < 1e-9);
        let points = over_time(&[vec![1.0, 3.0], vec![3.0, 5.0, 7.0]], 6.0);
        assert_eq!(points, [(8.0, 2.0), (10.0, 4.0)]);
    }

    fn outcome(rates: [f64; 3]) -> Outcome {
        let [a, e, c] = rates;
        Outcome { wire: [vec![a; 9], vec![e; 6], vec![c; 3]], ..Outcome::default() }
    }

    /// A flow's difference from its share and the sum of all flows are separate findings.
    #[test]
    fn a_low_total_rate_and_flows_off_their_share_are_separate_findings() {
        for (rates, below, off) in [
            ([8.0, 10.0, 2.0], false, 0),
            ([7.7, 9.6, 1.92], false, 0),
            ([7.61, 9.51, 1.87], true, 1),
            ([5.0, 10.0, 5.0], false, 2),
            ([8.41, 9.49, 2.11], false, 3),
        ] {
            let gap = Duration::from_secs(6);
            let runs = [outcome([8.0, 10.0, 2.0]), outcome(rates)];
            assert_eq!(below_nominal(&runs, gap).is_some(), below, "{rates:?}");
            let found = off_share(&runs, gap);
            assert_eq!(found.len(), off, "{rates:?}: {found:?}");
            assert!(found.iter().all(|it| it.text.contains("run 2")), "{found:?}");
        }
    }
}
