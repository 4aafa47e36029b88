//! The results of a calibration: fitted laws, tables and figures.

use super::mechanism::Mechanism;
use super::settings::Settings;
use super::turns::{Compared, Throughput};
use anyhow::Context;
use report::figure::{Figure, Line, Lines};
use report::results::Extras;
use report::stats::student_t975;
use report::{Better, Environment, Finding, Metric, Point, Results, Table};
use sampling::fit::{Fit, Sample, fit};

/// One measurement.
#[derive(Clone, Copy)]
pub(crate) struct Taken {
    pub(crate) repetition: u16,
    pub(crate) mechanism: Mechanism,
    /// 0 if the mechanism is present and selects nothing; `None` without the mechanism.
    pub(crate) rate: Option<f64>,
    pub(crate) throughput: Throughput,
}

/// One measurement, without corrections.
#[derive(Clone, Copy)]
pub(crate) struct Turned {
    pub(crate) repetition: u16,
    pub(crate) mechanism: Mechanism,
    pub(crate) rate: Option<f64>,
    pub(crate) compared: Compared,
}

/// The lost frames and samples: with less work, a measurement shows too low a cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lost {
    /// Frames of the load.
    pub(crate) frames: u64,
    /// Samples that a sampler had selected, and had no room for.
    pub(crate) samples: u64,
}

/// Removes changes of the machine's speed: each measurement is divided by the throughput of the path without sampling
/// at the same time, and multiplied by that path's mean.
fn at_one_pace(turned: &[Turned]) -> Vec<Taken> {
    let whole = |of: fn(&Throughput) -> f64| {
        let all: Vec<f64> = turned.iter().map(|one| of(&one.compared.without)).collect();
        report::stats::mean(&all).unwrap_or(0.0)
    };
    let (by_second, by_cpu) = (whole(per_second), whole(per_cpu_second));
    let adjusted = |one: &Turned| {
        let Compared { without, with, .. } = one.compared;
        Taken {
            repetition: one.repetition,
            mechanism: one.mechanism,
            rate: one.rate,
            throughput: Throughput {
                per_second: with.per_second / without.per_second * by_second,
                per_cpu_second: with.per_cpu_second / without.per_cpu_second * by_cpu,
            },
        }
    };
    turned.iter().map(adjusted).collect()
}

/// A mechanism's measurements and the laws fitted to them.
struct Cost {
    mechanism: Mechanism,
    samples: Vec<Taken>,
    by_second: Fit,
    by_cpu: Fit,
    /// The cost of the mechanism's presence, in units of forwarding a packet, at any rate: one value per repetition.
    standing: Vec<f64>,
}

impl Cost {
    fn of(mechanism: Mechanism, samples: &[Taken]) -> Result<Cost, sampling::Error> {
        let law = |throughput: fn(&Throughput) -> f64| {
            fit(&samples.iter().filter_map(|taken| taken.sample(throughput)).collect::<Vec<_>>())
        };
        let by_second = law(per_second)?;
        let by_cpu = law(per_cpu_second)?;
        let standing = standing(samples);
        Ok(Cost { mechanism, samples: samples.to_vec(), by_second, by_cpu, standing })
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
            put(format!("baseline{by}"), "packet/s", Better::Higher, vec![fit.baseline]);
        }
        put("standing".to_owned(), "", Better::Lower, self.standing.clone());
        for rate in self.rates() {
            let values = |value: fn(&Throughput) -> f64| self.at(rate).map(value).collect();
            put(
                format!("throughput_at_{rate:.3}"),
                "packet/s",
                Better::Higher,
                values(|one| one.per_second),
            );
            put(
                format!("throughput_by_cpu_at_{rate:.3}"),
                "packet/s",
                Better::Higher,
                values(|one| one.per_cpu_second),
            );
        }
        point
    }

    fn rates(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.samples.iter().filter_map(|taken| taken.rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates
    }

    fn at(&self, rate: f64) -> impl Iterator<Item = &Throughput> {
        let at = self.samples.iter().filter(move |taken| taken.rate == Some(rate));
        at.map(|taken| &taken.throughput)
    }

    /// Half the width of the 95 % confidence interval of the cost of presence.
    fn standing95(&self) -> f64 {
        report::stats::confidence95(&self.standing).unwrap_or(f64::NAN)
    }
}

impl Taken {
    /// The measurements to which the law is fitted.
    fn sample(&self, of: fn(&Throughput) -> f64) -> Option<Sample> {
        let rate = self.rate.filter(|&rate| self.mechanism.is_itself_at(rate));
        rate.map(|rate| Sample { rate, throughput: of(&self.throughput) })
    }
}

/// The additional cost of a packet when the mechanism is present and selects nothing, in each repetition.
fn standing(samples: &[Taken]) -> Vec<f64> {
    let at = |rate: Option<f64>| samples.iter().filter(move |taken| taken.rate == rate);
    let pairs = at(None).filter_map(|off| {
        let there = at(Some(0.0)).find(|there| there.repetition == off.repetition)?;
        Some(off.throughput.per_cpu_second / there.throughput.per_cpu_second - 1.0)
    });
    pairs.collect()
}

fn per_second(throughput: &Throughput) -> f64 {
    throughput.per_second
}

fn per_cpu_second(throughput: &Throughput) -> f64 {
    throughput.per_cpu_second
}

/// A quotient of two costs, with half the width of its 95 % confidence interval, if the interval is known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ratio {
    value: f64,
    half95: Option<f64>,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.half95 {
            Some(half) => write!(f, "{:.2} ± {half:.2}", self.value),
            None => write!(f, "{:.2}", self.value),
        }
    }
}

/// The cost of one mechanism, in units of the cost of another.
///
/// The interval is the jackknife's: both laws are fitted again without each repetition in turn. In a repetition the two
/// mechanisms are measured interleaved and share the measurements without sampling. Leaving a whole repetition out
/// accounts for this correlation, which adding up two intervals would not.
fn ratio(ours: &Cost, theirs: &Cost, by: fn(&Throughput) -> f64) -> Ratio {
    let quotient = |without: Option<u16>| {
        let law = |cost: &Cost| {
            let kept = cost.samples.iter().filter(|taken| Some(taken.repetition) != without);
            let samples: Vec<Sample> = kept.filter_map(|taken| taken.sample(by)).collect();
            fit(&samples).ok().map(|fit| fit.cost)
        };
        Some(law(ours)? / law(theirs)?).filter(|value| value.is_finite())
    };
    let value = quotient(None).unwrap_or(f64::NAN);
    let mut repetitions: Vec<u16> = ours.samples.iter().map(|taken| taken.repetition).collect();
    repetitions.sort_unstable();
    repetitions.dedup();
    let left_out: Option<Vec<f64>> =
        repetitions.into_iter().map(|one| quotient(Some(one))).collect();
    let half95 = left_out.filter(|all| all.len() > 1).map(|all| {
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let spread: f64 = all.iter().map(|one| (one - mean).powi(2)).sum();
        student_t975(count - 1.0) * (spread * (count - 1.0) / count).sqrt()
    });
    Ratio { value, half95 }
}

/// Half the width of the cost's 95 % confidence interval.
fn half95(fit: &Fit) -> f64 {
    student_t975(fit.freedom as f64) * fit.cost_error
}
/// The cost of Weir's sampler relative to Open vSwitch's sampler, if both were measured.
fn cheaper(costs: &[Cost]) -> Option<Point> {
    let cost = |wanted| costs.iter().find(|one| one.mechanism == wanted);
    let (ours, theirs) = (cost(Mechanism::Weir)?, cost(Mechanism::OvsSflow)?);
    let mut point = Point::new("weir over ovs-sflow", [("cost", "ratio of α")]);
    for (by, throughput) in
        [("", per_second as fn(&Throughput) -> f64), ("_by_cpu", per_cpu_second)]
    {
        let ratio = ratio(ours, theirs, throughput);
        let mut put = |name: String, value: f64| {
            point.metrics.insert(name, Metric::new("", Better::Lower, vec![value]));
        };
        put(format!("ratio{by}"), ratio.value);
        if let Some(half) = ratio.half95 {
            put(format!("ratio_ci95{by}"), half);
        }
    }
    Some(point)
}

/// The measurements and the fitted laws.
pub struct Calibration {
    /// The points and the findings.
    pub results: Results,
    costs: Vec<Cost>,
    courses: Vec<(String, Vec<(f64, f64)>)>,
    quick: bool,
}

impl Calibration {
    /// Fits the laws.
    pub(crate) fn of(
        settings: &Settings,
        turned: &[Turned],
        lost: Lost,
        courses: Vec<(String, Vec<(f64, f64)>)>,
    ) -> anyhow::Result<Calibration> {
        let peers: &[(&str, &str, &[&str])] =
            &[("ovs", "ovs-vswitchd", &["--version"]), ("iperf3", "iperf3", &["--version"])];
        let mut results =
            Results::new("sampling calibrate", settings.seed, Environment::capture(peers));
        results.settings.insert("repetitions".to_owned(), u32::from(settings.repetitions).into());
        results.settings.insert("batch".to_owned(), u32::from(settings.batch).into());
        results.settings.insert("length".to_owned(), u32::from(settings.length).into());
        results.settings.insert("seconds".to_owned(), settings.seconds.into());
        results.settings.insert("course_seconds".to_owned(), u32::from(settings.course).into());
        results.settings.insert("lost_frames".to_owned(), lost.frames.into());
        results.settings.insert("lost_samples".to_owned(), lost.samples.into());
        let rounds: u32 = turned.iter().map(|one| one.compared.rounds).sum();
        let stalled: u32 = turned.iter().map(|one| one.compared.stalled).sum();
        results.settings.insert("rounds".to_owned(), rounds.into());
        results.settings.insert("stalled_rounds".to_owned(), stalled.into());
        if lost.samples > 0 {
            let text = format!("{} samples were lost: their costs are too low", lost.samples);
            results.findings.push(Finding { code: "lost-samples".to_owned(), text });
        }
        results.settings.insert("quick".to_owned(), settings.quick.into());
        let samples = at_one_pace(turned);
        let mut costs = Vec::new();
        for &mechanism in &settings.mechanism {
            let is_its = |taken: &&Taken| taken.mechanism == mechanism;
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
        if let Some(point) = cheaper(&costs) {
            results.points.push(point);
        }
        Ok(Calibration { results, costs, courses, quick: settings.quick })
    }

    /// The table of published and measured values.
    #[must_use]
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
            "standing",
            "± 95 %",
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
            let standing = report::stats::mean(&cost.standing).unwrap_or(f64::NAN);
            row.extend([format!("{standing:.3}"), format!("{:.3}", cost.standing95())]);
            table.row(row);
        }
        table
    }

    /// Sentences about the results: lost samples, the cheaper mechanism, the costs for plans.
    #[must_use]
    pub fn remarks(&self) -> String {
        let cost = |wanted| self.costs.iter().find(|one| one.mechanism == wanted);
        let mut text = String::new();
        if let (Some(theirs), Some(ours)) = (cost(Mechanism::OvsSflow), cost(Mechanism::Weir)) {
            let [by_second, by_cpu] =
                [per_second, per_cpu_second].map(|by| ratio(ours, theirs, by));
            text += &format!(
                "Weir's sampler costs {by_second} times what Open vSwitch's sFlow costs by throughput, {by_cpu} times by CPU time.\n"
            );
        }
        if let Some(first) = self.costs.first() {
            text += &format!(
                "With nothing sampled a packet takes {:.2} µs, {:.2} µs of them of the lab's CPU time.\n",
                1e6 / first.by_second.baseline,
                1e6 / first.by_cpu.baseline
            );
        }
        for finding in &self.results.findings {
            text += &format!("{}: {}\n", finding.code, finding.text);
        }
        text
    }

    /// Every measurement, one row each.
    #[must_use]
    pub fn samples_table(&self) -> Table {
        let mut table =
            Table::new(["mechanism", "repetition", "rate", "packets_per_s", "packets_per_cpu_s"]);
        for cost in &self.costs {
            for taken in &cost.samples {
                table.row([
                    cost.mechanism.name().to_owned(),
                    taken.repetition.to_string(),
                    taken.rate.map_or_else(|| "off".to_owned(), |rate| rate.to_string()),
                    taken.throughput.per_second.to_string(),
                    taken.throughput.per_cpu_second.to_string(),
                ]);
            }
        }
        table
    }

    /// The tables and figures.
    #[must_use]
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
        let note = match self.quick {
            true => "quick run: few short repetitions, for a look only",
            false => "",
        };
        let figure = |(name, lines): (&str, Lines)| {
            let drawing = lines.draw().with_note(note);
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
                let at: Vec<f64> = cost.at(rate).map(|one| value(one) / 1e3).collect();
                measured.points.push((rate, report::stats::mean(&at).unwrap_or(0.0)));
                measured.errors.push(report::stats::confidence95(&at).unwrap_or(0.0));
            }
            lines.push(measured);
        }
        Lines {
            title: title.to_owned(),
            x_label: "s: share of packets sampled".to_owned(),
            y_label: "1,000 packets/s".to_owned(),
            lines,
            ..Lines::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_machine_speed_are_removed_from_the_measurement() {
        // The machine becomes slower and slower. With sampling it forwards four fifths.
        let turned = |index: u16| {
            let rate = f64::from(index % 2);
            let at = |value: f64| Throughput { per_second: value, per_cpu_second: 2.0 * value };
            let pace = 1000.0 - f64::from(index);
            let with = at(pace * (1.0 - rate / 5.0));
            let compared = Compared { without: at(pace), with, stalled: 0, rounds: 1 };
            Turned { repetition: 1, mechanism: Mechanism::Weir, rate: Some(rate), compared }
        };
        for taken in at_one_pace(&(0..100).map(turned).collect::<Vec<_>>()) {
            let expected = 950.5 * (1.0 - taken.rate.unwrap() / 5.0);
            assert!((taken.throughput.per_second - expected).abs() < 1e-6);
            assert!((taken.throughput.per_cpu_second - 2.0 * expected).abs() < 1e-6);
        }
    }

    /// Measurements that follow the law exactly but for a drift of each repetition.
    fn cost(mechanism: Mechanism, alpha: [f64; 4]) -> Cost {
        let mut samples = Vec::new();
        for (repetition, alpha) in (1..).zip(alpha) {
            for rate in [0.0, 0.5, 1.0] {
                let value = 1e9 / (1.0 + alpha * rate);
                let throughput = Throughput { per_second: value, per_cpu_second: value };
                samples.push(Taken { repetition, mechanism, rate: Some(rate), throughput });
            }
        }
        Cost::of(mechanism, &samples).unwrap()
    }

    #[test]
    fn the_standing_cost_is_measured_at_sampling_rate_zero() {
        let taken = |repetition, rate, value| Taken {
            repetition,
            mechanism: Mechanism::Weir,
            rate,
            throughput: Throughput { per_second: 1.0, per_cpu_second: value },
        };
        let samples = [
            taken(1, None, 100.0),
            taken(1, Some(0.0), 80.0),
            taken(1, Some(1.0), 50.0),
            taken(2, Some(0.0), 90.0),
            taken(2, None, 90.0),
            taken(3, None, 90.0),
        ];
        assert_eq!(standing(&samples), [0.25, 0.0]);
    }

    #[test]
    fn the_cost_ratio_has_a_jackknife_interval_over_the_repetitions() {
        let theirs = cost(Mechanism::OvsSflow, [0.5; 4]);
        let exact = ratio(&cost(Mechanism::Weir, [0.25; 4]), &theirs, per_second);
        assert!((exact.value - 0.5).abs() < 1e-6 && exact.half95.unwrap() < 1e-6, "{exact:?}");
        // The interval of four different repetitions is around their mean, and is not wider than their range.
        let noisy = ratio(&cost(Mechanism::Weir, [0.2, 0.3, 0.24, 0.26]), &theirs, per_cpu_second);
        let half = noisy.half95.unwrap();
        assert!((noisy.value - 0.5).abs() < half && (0.02..0.2).contains(&half), "{noisy:?}");
        assert_eq!(Ratio { value: 0.5, half95: None }.to_string(), "0.50");
    }
}
