//! `weir sampling calibrate`: what sampling costs here: α and β of each mechanism, measured and fitted.
//!
//! ```text
//!   h1 ══ s1-eth1 ┐                        mechanisms stand at s1-eth1 and s1-eth2,
//!                 s1 (Open vSwitch)        at the frames that come in, and take the share s of them
//!   h2 ══ s1-eth2 ┘
//!                 s1-eth3 ══ remote        where mirrored frames go
//! ```
//!
//! A TCP stream as fast as it goes from h1 to h2 is the load; its throughput T(s) is what is measured. Switch, hosts and
//! samplers share one CPU: that is the model's server, whose capacity forwarding and sampling compete for. With a CPU
//! each, what one of them does would cost the others nothing.
//!
//! Beside throughput per second, as the paper has it, the throughput per second of CPU time is recorded: the same where
//! the CPU has nothing else to do, and still right where it has. Cases are run in a
//! random order within each repetition, so that a drift of the machine falls on all of them alike.

mod bridge;
mod cpu;
mod mechanism;

use super::{Output, write};
use crate::exit::Exit;
use crate::signals::Interrupt;
use anyhow::Context;
use bridge::{Bridge, Throughput};
use mechanism::Mechanism;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use report::figure::{Figure, Line, Lines};
use report::results::Extras;
use report::stats::student_t975;
use report::{Better, Environment, Finding, Metric, Point, Results, Table};
use sampling::fit::{Fit, Sample, fit};
use std::io::Write;
use std::time::Duration;

/// Measure what sampling and mirroring cost on this machine, and fit the model's α and β
///
/// Makes a lab with a real Open vSwitch, sends a TCP stream through it as fast as it goes, and samples at rates from 0 to
/// 1 with each mechanism in turn. Needs root, Open vSwitch and iperf3. Exit status 1: a fit below R² = 0.99, which means
/// that the machine was too noisy or the law does not hold here.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling calibrate --quick
  weir sampling calibrate --repetitions 10 --out calibration/
  weir sampling plan --servers servers.csv --traffic matrix.csv --alpha 1.2 --beta 0.3")]
pub struct Calibrate {
    /// Mechanisms to measure
    #[arg(
        long,
        value_name = "MECHANISMS",
        value_delimiter = ',',
        default_value = "ovs-sflow,mirror,user-space,user-space-read,weir"
    )]
    mechanism: Vec<Mechanism>,
    /// Sampling rates as "one of N packets"
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "20,10,5,3,2,1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    one_in: Vec<u32>,
    /// How often each case is measured, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repetitions: u16,
    /// Seconds of each measurement, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=3600))]
    seconds: u16,
    /// Seconds of each line of figure 2a, 2 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(2..=3600))]
    course: u16,
    /// Three repetitions of one second at one of 10, 3 and 1: for a look, not for a verdict
    #[arg(long)]
    quick: bool,
    /// The CPU that switch, hosts and samplers share [default: the last]
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    /// What the order of cases is drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

impl Calibrate {
    pub fn run(mut self) -> anyhow::Result<Exit> {
        if self.quick {
            (self.repetitions, self.seconds, self.course) = (3, 1, 4);
            self.one_in = vec![10, 3, 1];
        }
        let interrupt = Interrupt::catch()?;
        // Before the lab is made: its processes inherit it.
        let cpu = share_one_cpu(self.cpu)?;
        let bridge = Bridge::up(cpu)?;
        let measured = self.measure(&bridge, &interrupt);
        bridge.down()?;
        let mut calibration = measured?;
        calibration.results.settings.insert("cpu".to_owned(), cpu.into());
        let mut stdout = std::io::stdout().lock();
        if self.output.json {
            write!(stdout, "{}", calibration.results.to_json())?;
        } else {
            write!(stdout, "{}\n{}", calibration.table(), calibration.remarks())?;
        }
        if let Some(out) = &self.output.out {
            calibration.results.write_with(out, &[], Duration::ZERO, &calibration.extras())?;
            write(&out.join("samples.csv"), &calibration.samples_table().to_csv())?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        let is_clean = calibration.results.findings.is_empty();
        Ok(if is_clean { Exit::Success } else { Exit::Finding })
    }

    fn measure(&self, bridge: &Bridge, interrupt: &Interrupt) -> anyhow::Result<Calibration> {
        let mut cases = self.cases();
        let total = usize::from(self.repetitions) * cases.len();
        let mut random = Shuffle(self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut samples = Vec::with_capacity(total);
        // The first stream warms up caches, neighbours and the switch's flow table; it counts for nothing.
        bridge.throughput(1)?;
        for repetition in 1..=self.repetitions {
            random.shuffle(&mut cases);
            for case in &cases {
                interrupt.check()?;
                talk(&format!("repetition {repetition} of {}: {}", self.repetitions, case.name()));
                let running =
                    case.mechanism.map(|one| one.start(bridge, case.one_in)).transpose()?;
                let throughput = bridge.throughput(self.seconds)?;
                running.map(mechanism::Running::stop).transpose()?;
                samples.push(Taken { mechanism: case.mechanism, rate: case.rate(), throughput });
            }
        }
        let mut courses = vec![("no sampling".to_owned(), bridge.course(self.course)?)];
        for mechanism in &self.mechanism {
            interrupt.check()?;
            talk(&format!("over time: {}", mechanism.name()));
            let running = mechanism.start(bridge, 1)?;
            courses.push((mechanism.name().to_owned(), bridge.course(self.course)?));
            running.stop()?;
        }
        self.judge(&samples, courses)
    }

    /// Every mechanism at every rate, and as often as there are mechanisms none.
    fn cases(&self) -> Vec<Case> {
        let with = self.mechanism.iter().flat_map(|mechanism| {
            self.one_in.iter().map(|one_in| Case { mechanism: Some(*mechanism), one_in: *one_in })
        });
        let without = self.mechanism.iter().map(|_| Case { mechanism: None, one_in: 0 });
        with.chain(without).collect()
    }

    fn judge(
        &self,
        samples: &[Taken],
        courses: Vec<(String, Vec<(f64, f64)>)>,
    ) -> anyhow::Result<Calibration> {
        let peers: &[(&str, &str, &[&str])] =
            &[("ovs", "ovs-vswitchd", &["--version"]), ("iperf3", "iperf3", &["--version"])];
        let mut results =
            Results::new("sampling calibrate", self.seed, Environment::capture(peers));
        for (name, value) in [
            ("repetitions", u32::from(self.repetitions)),
            ("seconds", u32::from(self.seconds)),
            ("course_seconds", u32::from(self.course)),
        ] {
            results.settings.insert(name.to_owned(), value.into());
        }
        results.settings.insert("quick".to_owned(), self.quick.into());
        let mut costs = Vec::new();
        for &mechanism in &self.mechanism {
            // The switch without sampling is the same for all.
            let is_its = |taken: &&Taken| taken.mechanism.is_none_or(|of| of == mechanism);
            let own: Vec<Taken> = samples.iter().filter(is_its).copied().collect();
            let cost = Cost::of(mechanism, &own).with_context(|| mechanism.name())?;
            results.points.push(cost.point());
            let r_squared = cost.by_second.r_squared.max(cost.by_cpu.r_squared);
            if r_squared < 0.99 {
                let text = format!("{}: R² is {r_squared:.4}, less than 0.99", mechanism.name());
                results.findings.push(Finding { code: "poor-fit".to_owned(), text });
            }
            costs.push(cost);
        }
        Ok(Calibration { results, costs, courses, quick: self.quick })
    }
}

/// One thing to measure.
#[derive(Clone, Copy)]
struct Case {
    mechanism: Option<Mechanism>,
    one_in: u32,
}

impl Case {
    fn rate(self) -> f64 {
        if self.mechanism.is_some() { 1.0 / f64::from(self.one_in) } else { 0.0 }
    }

    fn name(self) -> String {
        match self.mechanism {
            Some(mechanism) => format!("{}, one of {}", mechanism.name(), self.one_in),
            None => "no sampling".to_owned(),
        }
    }
}

/// One measurement.
#[derive(Clone, Copy)]
struct Taken {
    mechanism: Option<Mechanism>,
    rate: f64,
    throughput: Throughput,
}

/// A mechanism's measurements and the laws fitted to them.
struct Cost {
    mechanism: Mechanism,
    samples: Vec<Taken>,
    by_second: Fit,
    by_cpu: Fit,
}

impl Cost {
    fn of(mechanism: Mechanism, samples: &[Taken]) -> Result<Cost, sampling::Error> {
        let law = |throughput: fn(&Throughput) -> f64| {
            let sample = |taken: &Taken| Sample {
                rate: taken.rate,
                throughput: throughput(&taken.throughput),
            };
            fit(&samples.iter().map(sample).collect::<Vec<_>>())
        };
        let by_second = law(|one| one.per_second)?;
        let by_cpu = law(|one| one.per_cpu_second)?;
        Ok(Cost { mechanism, samples: samples.to_vec(), by_second, by_cpu })
    }

    fn point(&self) -> Point {
        let mut point = Point::new(self.mechanism.name(), [("cost", self.mechanism.symbol())]);
        let mut put = |name: String, unit: &str, better, values: Vec<f64>| {
            point.metrics.insert(name, Metric::new(unit, better, values));
        };
        for (by, fit) in [("", &self.by_second), ("_by_cpu", &self.by_cpu)] {
            put(format!("cost{by}"), "", Better::Lower, vec![fit.cost]);
            put(format!("cost_ci95{by}"), "", Better::Lower, vec![half95(fit)]);
            put(format!("r_squared{by}"), "", Better::Higher, vec![fit.r_squared]);
            put(
                format!("r_squared_of_samples{by}"),
                "",
                Better::Higher,
                vec![fit.r_squared_of_samples],
            );
            put(format!("baseline{by}"), "bit/s", Better::Higher, vec![fit.baseline]);
        }
        for rate in self.rates() {
            let values = |value: fn(&Throughput) -> f64| self.at(rate).map(value).collect();
            put(
                format!("throughput_at_{rate:.3}"),
                "bit/s",
                Better::Higher,
                values(|one| one.per_second),
            );
            put(
                format!("throughput_by_cpu_at_{rate:.3}"),
                "bit/s",
                Better::Higher,
                values(|one| one.per_cpu_second),
            );
        }
        point
    }

    fn rates(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.samples.iter().map(|taken| taken.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates
    }

    fn at(&self, rate: f64) -> impl Iterator<Item = &Throughput> {
        self.samples.iter().filter(move |taken| taken.rate == rate).map(|taken| &taken.throughput)
    }
}

/// Half the width of the cost's 95 % confidence interval.
fn half95(fit: &Fit) -> f64 {
    student_t975(fit.freedom as f64) * fit.cost_error
}
/// What was measured and fitted.
struct Calibration {
    results: Results,
    costs: Vec<Cost>,
    courses: Vec<(String, Vec<(f64, f64)>)>,
    quick: bool,
}

impl Calibration {
    /// Published beside measured.
    fn table(&self) -> Table {
        let mut table = Table::new([
            "mechanism",
            "cost",
            "published",
            "by throughput",
            "± 95 %",
            "R²",
            "by CPU time",
            "± 95 %",
            "R²",
        ]);
        for cost in &self.costs {
            let mechanism = cost.mechanism;
            let mut row = vec![
                mechanism.name().to_owned(),
                mechanism.symbol().to_owned(),
                mechanism.published().map_or_else(|| "–".to_owned(), |cost| format!("{cost:.2}")),
            ];
            for fit in [&cost.by_second, &cost.by_cpu] {
                row.extend([
                    format!("{:.3}", fit.cost),
                    format!("{:.3}", half95(fit)),
                    format!("{:.4}", fit.r_squared),
                ]);
            }
            table.row(row);
        }
        table
    }

    fn remarks(&self) -> String {
        let cost = |wanted| self.costs.iter().find(|one| one.mechanism == wanted);
        let mut text = String::new();
        if let (Some(theirs), Some(ours)) = (cost(Mechanism::OvsSflow), cost(Mechanism::Weir)) {
            let [by_second, by_cpu] = [
                ours.by_second.cost / theirs.by_second.cost,
                ours.by_cpu.cost / theirs.by_cpu.cost,
            ];
            text += &format!(
                "Weir's sampler costs {by_second:.2} times what Open vSwitch's sFlow costs by throughput, {by_cpu:.2} times by CPU time.\n"
            );
        }
        if let Some(first) = self.costs.first() {
            text += &format!(
                "Without sampling: {:.2} Gbit/s, {:.2} Gbit per second of CPU time.\n",
                first.by_second.baseline / 1e9,
                first.by_cpu.baseline / 1e9
            );
        }
        for finding in &self.results.findings {
            text += &format!("{}: {}\n", finding.code, finding.text);
        }
        text
    }

    fn samples_table(&self) -> Table {
        let mut table = Table::new(["mechanism", "rate", "bits_per_s", "bits_per_cpu_s"]);
        for cost in &self.costs {
            for taken in &cost.samples {
                table.row([
                    cost.mechanism.name().to_owned(),
                    taken.rate.to_string(),
                    taken.throughput.per_second.to_string(),
                    taken.throughput.per_cpu_second.to_string(),
                ]);
            }
        }
        table
    }

    fn extras(&self) -> Extras {
        let by_cpu = self.figure_2b(
            "Throughput per second of CPU time",
            |cost| &cost.by_cpu,
            |one| one.per_cpu_second,
        );
        let by_second = self.figure_2b(
            "Throughput at each sampling rate",
            |cost| &cost.by_second,
            |one| one.per_second,
        );
        let figures = [("2a", self.figure_2a()), ("2b", by_second), ("2b-by-cpu", by_cpu)];
        let figure = |(name, lines): (&str, Lines)| {
            let drawing = lines.draw();
            let drawing = if self.quick {
                drawing.with_note("quick run: few short repetitions, for a look only")
            } else {
                drawing
            };
            let caption = match name {
                "2a" => {
                    "As figure 2a of the paper: all packets sampled, TCP throughput second by second."
                }
                _ => {
                    "As figure 2b of the paper: means with 95 % confidence intervals; dashed the fitted law T(0)/(1 + αs)."
                }
            };
            Figure { name: name.to_owned(), drawing, caption: caption.to_owned() }
        };
        Extras {
            figures: figures.into_iter().map(figure).collect(),
            tables: vec![("Costs, published and measured".to_owned(), self.table())],
        }
    }

    fn figure_2a(&self) -> Lines {
        let line = |(name, points): &(String, Vec<(f64, f64)>)| Line {
            name: name.clone(),
            points: points.iter().map(|(second, rate)| (*second, rate / 1e9)).collect(),
            ..Line::default()
        };
        Lines {
            title: "Throughput over time, all packets sampled".to_owned(),
            x_label: "seconds".to_owned(),
            y_label: "Gbit/s".to_owned(),
            lines: self.courses.iter().map(line).collect(),
            ..Lines::default()
        }
    }

    fn figure_2b(
        &self,
        title: &str,
        law: fn(&Cost) -> &Fit,
        value: fn(&Throughput) -> f64,
    ) -> Lines {
        let mut lines = Vec::new();
        for cost in &self.costs {
            let mut measured = Line { name: cost.mechanism.name().to_owned(), ..Line::default() };
            for rate in cost.rates() {
                let at: Vec<f64> = cost.at(rate).map(|one| value(one) / 1e9).collect();
                measured.points.push((rate, report::stats::mean(&at).unwrap_or(0.0)));
                measured.errors.push(report::stats::confidence95(&at).unwrap_or(0.0));
            }
            lines.push(measured);
            let fit = law(cost);
            let rates = (0..=20).map(|step| f64::from(step) / 20.0);
            lines.push(Line {
                name: format!("{} = {:.2}", cost.mechanism.symbol(), fit.cost),
                points: rates.map(|rate| (rate, fit.throughput(rate) / 1e9)).collect(),
                dashed: true,
                ..Line::default()
            });
        }
        Lines {
            title: title.to_owned(),
            x_label: "s: share of packets sampled".to_owned(),
            y_label: "Gbit/s".to_owned(),
            lines,
            ..Lines::default()
        }
    }
}

/// From here on this process and what it starts run on one CPU: that one, or the last that they may use.
fn share_one_cpu(wanted: Option<usize>) -> anyhow::Result<usize> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this).context("cannot ask for this process's CPUs")?;
    let may = |cpu: &usize| allowed.is_set(*cpu) == Ok(true);
    let cpu = match wanted {
        Some(cpu) => Some(cpu).filter(may),
        None => (0..CpuSet::count()).rev().find(may),
    };
    let cpu = cpu.ok_or_else(|| sampling::Error::Input {
        place: "--cpu".to_owned(),
        message: "this process may not use that CPU".to_owned(),
    })?;
    let mut one = CpuSet::new();
    one.set(cpu).context("there is no such CPU")?;
    sched_setaffinity(this, &one).context("cannot choose a CPU")?;
    Ok(cpu)
}

/// Says on stderr what is being done.
fn talk(text: &str) {
    // If stderr is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Fisher and Yates's shuffle on Marsaglia's xorshift: an order that a seed repeats.
struct Shuffle(u64);

impl Shuffle {
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            items.swap(last, (self.0 % (last as u64 + 1)) as usize);
        }
    }
}
