//! Runs every experiment on one switch, and writes the data sheet of the switch (`weir evaluate all`).

use super::effort::Effort;
use super::measure::measure;
use super::target::Target;
use crate::exit::Exit;
use crate::out::Output;
use anyhow::Context;
use evaluate::modules::{
    Capacity, Change, Delete, Insert, Interaction, MatchKind, Modify, Packets, PathDelay,
    PortStatus, Queue, Statistics, Way,
};
use evaluate::{DataSheet, Experiment};
use std::fs;

/// Every experiment on one switch, and its data sheet
///
/// --out also writes datasheet.json, from which `weir serve` can read limits, and datasheet.html.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir evaluate all --quick --out sheet/")]
pub struct All {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    effort: Effort,
    #[command(flatten)]
    output: Output,
}

impl All {
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(wrong) = self.target.wrong() {
            return Ok(Exit::usage(&wrong));
        }
        let evaluation = measure(
            "evaluate all",
            &self.target,
            &self.effort,
            &self.effort.floor(),
            &self.experiments(),
        )?;
        let sheet = DataSheet::of(&evaluation.results);
        let tables = sheet.tables().into_iter();
        let mut text: String =
            tables.map(|(heading, table)| format!("{heading}\n{table}\n")).collect();
        for finding in &sheet.findings {
            text += &format!("{}: {}\n", finding.code, finding.text);
        }
        self.output.give(
            &text,
            || sheet.to_json(),
            |out| {
                evaluation.write(out, report::Extras::default())?;
                let write = |name: &str, text: &str| {
                    let path = out.join(name);
                    fs::write(&path, text)
                        .with_context(|| format!("cannot write {}", path.display()))
                };
                write("datasheet.json", &sheet.to_json())?;
                let page = report::page::sheet(&sheet.page(&evaluation.results));
                write("datasheet.html", &page)
            },
        )?;
        Ok(Exit::of_results(&evaluation.results))
    }

    fn experiments(&self) -> Vec<Box<dyn Experiment>> {
        let (common, quick) = (self.effort.common(), self.effort.is_quick());
        let duration = if quick { 300_000_000 } else { 1_000_000_000 };
        let rules = if quick { vec![10, 100] } else { vec![1, 10, 100, 1000] };
        let insert = Insert { rules, ..Insert::new(common.clone()) };
        let capacity = |match_| Capacity {
            match_,
            limit: if quick { 2_000 } else { 100_000 },
            batch: if quick { 100 } else { 1_000 },
            ..Capacity::new(evaluate::Common { repetitions: 1, ..common.clone() })
        };
        let packets = |way| Packets {
            duration,
            most: if quick { 32_000.0 } else { 200_000.0 },
            // A search consists of many trials.
            ..Packets::new(
                evaluate::Common { repetitions: common.repetitions.min(3), ..common.clone() },
                way,
            )
        };
        let polls = if quick { vec![0.0, 10.0] } else { vec![0.0, 1.0, 5.0, 10.0, 50.0] };
        let mut all: Vec<Box<dyn Experiment>> = vec![
            Box::new(insert.clone()),
            Box::new(Change(insert.clone())),
            Box::new(Delete(insert)),
            Box::new(capacity(MatchKind::Exact)),
            Box::new(capacity(MatchKind::Wildcard)),
            Box::new(Modify { duration, ..Modify::new(common.clone()) }),
            Box::new(PathDelay { duration, ..PathDelay::new(common.clone()) }),
        ];
        for way in [Way::In, Way::Out, Way::Echo, Way::Barrier] {
            all.push(Box::new(packets(way)));
        }
        all.push(Box::new(Statistics {
            duration: 2 * duration,
            ..Statistics::new(common.clone())
        }));
        all.push(Box::new(Interaction { polls, ..Interaction::new(common.clone()) }));
        all.push(Box::new(Queue { duration, ..Queue::new(common.clone()) }));
        all.push(Box::new(PortStatus { common }));
        all
    }
}
