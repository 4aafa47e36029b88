//! What a calibration found: the laws fitted to it, tables and figures.

use super::Effort;
use super::bridge::Throughput;
use super::mechanism::Mechanism;
use anyhow::Context;
use report::figure::{Figure, Line, Lines};
use report::results::Extras;
use report::stats::student_t975;
use report::{Better, Environment, Finding, Metric, Point, Results, Table};
use sampling::fit::{Fit, Sample, fit};

/// One measurement.
#[derive(Clone, Copy)]
pub struct Taken {
    pub mechanism: Option<Mechanism>,
    pub rate: f64,
    pub throughput: Throughput,
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
pub struct Calibration {
    pub results: Results,
    costs: Vec<Cost>,
    courses: Vec<(String, Vec<(f64, f64)>)>,
    quick: bool,
}

impl Calibration {
    /// Fits the laws.
    pub fn of(
        effort: &Effort,
        samples: &[Taken],
        courses: Vec<(String, Vec<(f64, f64)>)>,
    ) -> anyhow::Result<Calibration> {
        let peers: &[(&str, &str, &[&str])] =
            &[("ovs", "ovs-vswitchd", &["--version"]), ("iperf3", "iperf3", &["--version"])];
        let mut results =
            Results::new("sampling calibrate", effort.seed, Environment::capture(peers));
        for (name, value) in [
            ("repetitions", u32::from(effort.repetitions)),
            ("seconds", u32::from(effort.seconds)),
            ("course_seconds", u32::from(effort.course)),
        ] {
            results.settings.insert(name.to_owned(), value.into());
        }
        results.settings.insert("quick".to_owned(), effort.quick.into());
        let mut costs = Vec::new();
        for &mechanism in &effort.mechanism {
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
        Ok(Calibration { results, costs, courses, quick: effort.quick })
    }

    /// Published beside measured.
    pub fn table(&self) -> Table {
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

    pub fn remarks(&self) -> String {
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

    pub fn samples_table(&self) -> Table {
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

    pub fn extras(&self) -> Extras {
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
        let figures = [
            ("2a", self.figure_2a()),
            ("2b", by_second),
            ("2b-by-cpu", by_cpu),
            ("2b-published", self.beside_published()),
        ];
        let figure = |(name, lines): (&str, Lines)| {
            let drawing = lines.draw();
            let drawing = if self.quick {
                drawing.with_note("quick run: few short repetitions, for a look only")
            } else {
                drawing
            };
            let caption = match name {
                "2b-published" => {
                    "Shares of the throughput without sampling, per second of CPU time; dashed the published laws."
                }
                "2a" => {
                    "As figure 2a of the paper: all packets sampled, TCP throughput second by second."
                }
                _ => {
                    "As figure 2b of the paper: means with 95 % confidence intervals; beside the names the costs of the fitted laws T(0)/(1 + αs)."
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

    /// The paper's text has no throughput, only costs: so the comparison is one of shares.
    fn beside_published(&self) -> Lines {
        let mut lines = Vec::new();
        for cost in &self.costs {
            let baseline = cost.by_cpu.baseline;
            let mean = |rate: f64| {
                let at: Vec<f64> =
                    cost.at(rate).map(|one| one.per_cpu_second / baseline * 100.0).collect();
                (rate, report::stats::mean(&at).unwrap_or(0.0))
            };
            let points = cost.rates().into_iter().map(mean).collect();
            lines.push(Line { name: cost.mechanism.name().to_owned(), points, ..Line::default() });
        }
        let published = [Mechanism::OvsSflow, Mechanism::Mirror].map(|one| (one, one.published()));
        for (mechanism, cost) in published {
            let Some(cost) = cost else { continue };
            let rates = (0..=20).map(|step| f64::from(step) / 20.0);
            lines.push(Line {
                name: format!("{}, published: {} = {cost}", mechanism.name(), mechanism.symbol()),
                points: rates.map(|rate| (rate, 100.0 / (1.0 + cost * rate))).collect(),
                dashed: true,
                ..Line::default()
            });
        }
        Lines {
            title: "Throughput beside the published laws".to_owned(),
            x_label: "s: share of packets sampled".to_owned(),
            y_label: "% of that without sampling".to_owned(),
            lines,
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
            let symbol = cost.mechanism.symbol();
            let name = format!("{}: {symbol} = {:.2}", cost.mechanism.name(), law(cost).cost);
            let mut measured = Line { name, ..Line::default() };
            for rate in cost.rates() {
                let at: Vec<f64> = cost.at(rate).map(|one| value(one) / 1e9).collect();
                measured.points.push((rate, report::stats::mean(&at).unwrap_or(0.0)));
                measured.errors.push(report::stats::confidence95(&at).unwrap_or(0.0));
            }
            lines.push(measured);
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
