//! Draws the data sheet on one sheet of paper: each value with its curve.

use super::{DataSheet, text};
use report::figure::{Drawing, Line, Lines, Mark, Marks, Scale, Shape};
use report::page::{Block, Sheet};
use report::table::number;
use report::{Results, Scalar};
use std::collections::BTreeMap;

/// The most rows that fit the sheet; `datasheet.json` has all rows.
const MOST_ROWS: usize = 14;

impl DataSheet {
    /// The page of the data sheet; the curves come from `results`, from which the data sheet was
    /// made.
    pub fn page(&self, results: &Results) -> Sheet {
        let name =
            self.switch.get("switch").map_or_else(|| "a switch".to_owned(), ToString::to_string);
        let switch = self.switch.iter().filter(|(name, _)| name.as_str() != "switch");
        let switch: Vec<String> = switch.map(|(name, value)| format!("{name} {value}")).collect();
        Sheet {
            heading: format!("Data sheet of {name}"),
            about: format!(
                "Measured {} by Weir {}; {}.",
                self.measured,
                results.environment.weir,
                switch.join("; ")
            ),
            blocks: vec![
                self.safe(),
                self.size(results),
                self.lies(results),
                self.updates(results),
                self.slow(),
                polling(results),
            ],
            findings: self.findings.clone(),
        }
    }

    fn safe(&self) -> Block {
        let least = self.safe_rates.iter().min_by(|a, b| a.1.total_cmp(b.1));
        let least = least.map(|(name, rate)| {
            format!(" The least is {}: {} per second.", words(name), number(*rate))
        });
        Block {
            heading: "Safe rates".to_owned(),
            sentence: format!(
                "At these rates nothing was lost and everything became true.{}",
                least.unwrap_or_default()
            ),
            figure: bars("Safe rates", "messages, per second", &self.safe_rates),
        }
    }

    fn size(&self, results: &Results) -> Block {
        let sizes = self.capacity.iter().map(|(kind, capacity)| {
            let more = if capacity.is_full { "" } else { " or more" };
            format!("{}{more} with {kind} matches", number(capacity.entries))
        });
        let sizes: Vec<String> = sizes.collect();
        Block {
            heading: "Table size".to_owned(),
            sentence: match sizes.is_empty() {
                true => "It was not measured how many entries fit.".to_owned(),
                false => format!("Entries that fit: {}.", sizes.join(", ")),
            },
            figure: curves(
                "Time for an entry while the table fills",
                ("flow entries", "time per entry, µs"),
                of(results, &["capacity"], "fill_up_to", "rule_us", "match"),
            ),
        }
    }

    fn lies(&self, results: &Results) -> Block {
        let sentence = match (self.barrier_honest, self.barrier_lie_us) {
            (Some(true), _) => "No barrier was answered before its change was real.".to_owned(),
            (Some(false), lie) => format!(
                "Barriers were answered before the change was real, by {} ms or more.",
                number(lie.unwrap_or(0.0) / 1e3)
            ),
            (None, _) => {
                "It could not be seen whether barriers were answered before the change was real."
                    .to_owned()
            }
        };
        let lost = self.modification_loss.iter().filter(|(_, loss)| **loss >= 5.0);
        let lost: Vec<String> =
            lost.take(5).map(|(name, loss)| format!("{name} {} %", number(*loss))).collect();
        let lost = match lost.is_empty() {
            true => String::new(),
            false => format!(" Packets lost where they are changed: {}.", lost.join(", ")),
        };
        Block {
            heading: "What lies".to_owned(),
            sentence: format!("{sentence}{lost}"),
            figure: curves(
                "Barrier's answer before the change was real",
                ("flow entries", "early by at least, µs"),
                of(results, &UPDATES, "rules", "lie_at_least_us", "module"),
            ),
        }
    }

    fn updates(&self, results: &Results) -> Block {
        let rate = |name: &str, what: &str| {
            let rate = self.safe_rates.get(name)?;
            Some(format!("{} {what}", number(*rate)))
        };
        let rates = [
            rate("flow-mod-add", "inserted"),
            rate("flow-mod-modify", "modified"),
            rate("flow-mod-delete", "deleted"),
        ];
        let rates: Vec<String> = rates.into_iter().flatten().collect();
        Block {
            heading: "How fast tables change".to_owned(),
            sentence: match rates.is_empty() {
                true => "It was not measured how fast tables change.".to_owned(),
                false => {
                    format!("Entries real in the data plane per second: {}.", rates.join(", "))
                }
            },
            figure: curves(
                "Until the last entry is real",
                ("flow entries", "time, ms"),
                scaled(of(results, &UPDATES, "rules", "last_rule_us", "module"), 1e-3),
            ),
        }
    }

    fn slow(&self) -> Block {
        let most = self.latency_us.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let most =
            most.map(|(name, us)| format!("The slowest is {}: {} µs.", words(name), number(*us)));
        // Modifications of one field represent modifications of several fields.
        let single: BTreeMap<String, f64> = self
            .latency_us
            .iter()
            .filter(|(name, _)| !name.contains('+'))
            .map(|(name, us)| (name.clone(), *us))
            .collect();
        Block {
            heading: "What is slow".to_owned(),
            sentence: format!("Medians without load. {}", most.unwrap_or_default()),
            figure: bars("Latency without load", "median, µs", &single),
        }
    }
}

const UPDATES: [&str; 3] = ["insert", "change", "delete"];

fn polling(results: &Results) -> Block {
    let mut lines: BTreeMap<String, Line> = BTreeMap::new();
    for point in results.points.iter().filter(|point| text(point, "module") == "statistics") {
        let Some(Scalar::Number(polls)) = point.parameters.get("polls_per_s") else { continue };
        let Some(reply) = point.latency.get("reply") else { continue };
        let kind = text(point, "kind").to_owned();
        let line =
            lines.entry(kind.clone()).or_insert_with(|| Line { name: kind, ..Line::default() });
        line.points.push((*polls, reply.p50_us / 1e3));
    }
    let entries = results.points.iter().find_map(|point| match point.parameters.get("rules") {
        Some(Scalar::Number(rules)) if text(point, "module") == "statistics" => Some(*rules),
        _ => None,
    });
    let of_entries = entries.map(|rules| format!(" of {} entries", number(rules)));
    Block {
        heading: "Statistics".to_owned(),
        sentence: format!(
            "How long a reply{} takes while it is polled.",
            of_entries.unwrap_or_default()
        ),
        figure: curves(
            "Reply time while polled",
            ("polls per second", "median, ms"),
            lines.into_values().collect(),
        ),
    }
}

/// The means of a metric against the parameter `x`; one line for each value of the parameter `by`.
fn of(results: &Results, modules: &[&str], x: &str, metric: &str, by: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for point in results.points.iter().filter(|point| modules.contains(&text(point, "module"))) {
        let Some(Scalar::Number(x)) = point.parameters.get(x) else { continue };
        let (Some(y), name) = (point.mean(metric), text(point, by)) else { continue };
        // The line has the first of several matches; the report has all matches.
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) if line.points.iter().any(|(known, _)| known == x) => {}
            Some(line) => line.points.push((*x, y)),
            None => {
                let (name, points) = (name.to_owned(), vec![(*x, y)]);
                lines.push(Line { name, points, ..Line::default() });
            }
        }
    }
    lines
}

fn scaled(mut lines: Vec<Line>, factor: f64) -> Vec<Line> {
    lines.iter_mut().flat_map(|line| &mut line.points).for_each(|point| point.1 *= factor);
    lines
}

fn curves(title: &str, (x_label, y_label): (&str, &str), lines: Vec<Line>) -> Option<Drawing> {
    let (title, x_label, y_label) = (title.to_owned(), x_label.to_owned(), y_label.to_owned());
    let is_any = lines.iter().any(|line| !line.points.is_empty());
    is_any.then(|| Lines { title, x_label, y_label, lines, ..Lines::default() }.draw())
}

fn bars(title: &str, label: &str, values: &BTreeMap<String, f64>) -> Option<Drawing> {
    let mark = |(name, value): (&String, &f64)| Mark {
        category: format!("{}: {}", words(name), number(*value)),
        system: title.to_owned(),
        shape: Shape { bar: Some(*value), ..Shape::default() },
        ..Mark::default()
    };
    let marks: Vec<Mark> = values.iter().take(MOST_ROWS).map(mark).collect();
    (!marks.is_empty()).then(|| Marks::new(title, label, Scale::Logarithmic, marks).draw())
}

fn words(name: &str) -> String {
    match name.strip_prefix("stats-") {
        Some(kind) => format!("{kind} statistics"),
        None => name.replace('-', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Better, Environment, Metric, Point};

    #[test]
    fn each_block_of_the_data_sheet_has_a_sentence_even_without_results() {
        let mut results = Results::new("evaluate all", 1, Environment::default());
        let empty = DataSheet::of(&results).page(&results);
        assert_eq!(empty.blocks.len(), 6);
        assert!(
            empty.blocks.iter().all(|block| !block.sentence.is_empty() && block.figure.is_none())
        );
        for rules in [10.0, 100.0] {
            let place: [(&str, Scalar); 3] =
                [("module", "insert".into()), ("match", "exact".into()), ("rules", rules.into())];
            let mut point = Point::new("emulated", place);
            for metric in ["last_rule_us", "lie_at_least_us", "all_rules_us", "barrier_honest"] {
                let metric_of = Metric::new("µs", Better::Lower, vec![rules]);
                point.metrics.insert(metric.into(), metric_of);
            }
            results.points.push(point);
        }
        let sheet = DataSheet::of(&results).page(&results);
        let with: Vec<&str> = sheet
            .blocks
            .iter()
            .filter(|block| block.figure.is_some())
            .map(|block| block.heading.as_str())
            .collect();
        assert_eq!(with, ["Safe rates", "What lies", "How fast tables change"]);
        assert!(
            report::page::sheet(&sheet)
                .contains("No barrier was answered before its change was real.")
        );
    }
}
