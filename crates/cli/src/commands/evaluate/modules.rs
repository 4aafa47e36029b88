//! Each experiment's own options, and how they become the experiment.

use evaluate::modules::{MatchKind, Priorities};
use evaluate::{Common, Experiment, modules, probe};

/// Options that make an experiment; `quick` asks for fewer cases where none are named.
pub trait Build {
    fn build(&self, common: Common, quick: bool) -> Result<Box<dyn Experiment>, String>;
}

/// How entries match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Matching {
    /// Every field of OpenFlow 1.0
    Exact,
    /// Hardware source, address and port of the destination
    Wildcard,
}

/// In which order of priorities entries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    Increasing,
    Decreasing,
    Equal,
    Random,
}

/// Which entries.
#[derive(clap::Args)]
pub struct Insert {
    /// Numbers of entries [default: 1,10,100,1000]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=i64::from(probe::MAX_FLOWS)))]
    rules: Vec<u32>,
    /// How entries match
    #[arg(long = "match", value_name = "KINDS", value_delimiter = ',', default_value = "exact")]
    matches: Vec<Matching>,
    /// In which order of priorities they come
    #[arg(
        long = "priority",
        value_name = "ORDERS",
        value_delimiter = ',',
        default_value = "equal"
    )]
    priorities: Vec<Order>,
}

impl Insert {
    fn plan(&self, common: Common, quick: bool) -> modules::Insert {
        let mut plan = modules::Insert::new(common);
        if quick {
            plan.rules = vec![10, 100];
        }
        if !self.rules.is_empty() {
            plan.rules.clone_from(&self.rules);
        }
        plan.matches = self
            .matches
            .iter()
            .map(|kind| match kind {
                Matching::Exact => MatchKind::Exact,
                Matching::Wildcard => MatchKind::Wildcard,
            })
            .collect();
        plan.priorities = self
            .priorities
            .iter()
            .map(|order| match order {
                Order::Increasing => Priorities::Increasing,
                Order::Decreasing => Priorities::Decreasing,
                Order::Equal => Priorities::Equal,
                Order::Random => Priorities::Random,
            })
            .collect();
        plan
    }
}

impl Build for Insert {
    fn build(&self, common: Common, quick: bool) -> Result<Box<dyn Experiment>, String> {
        Ok(Box::new(self.plan(common, quick)))
    }
}

/// Which entries.
#[derive(clap::Args)]
pub struct Change {
    #[command(flatten)]
    insert: Insert,
}

impl Build for Change {
    fn build(&self, common: Common, quick: bool) -> Result<Box<dyn Experiment>, String> {
        Ok(Box::new(modules::Change(self.insert.plan(common, quick))))
    }
}

/// Which entries.
#[derive(clap::Args)]
pub struct Delete {
    #[command(flatten)]
    insert: Insert,
}

impl Build for Delete {
    fn build(&self, common: Common, quick: bool) -> Result<Box<dyn Experiment>, String> {
        Ok(Box::new(modules::Delete(self.insert.plan(common, quick))))
    }
}

/// What changes, and how often is polled.
#[derive(clap::Args)]
pub struct Interaction {
    /// Entries that change at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rules: u32,
    /// Entries in the table in all
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    table: u32,
    /// Polls of all flow statistics per second
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "0,1,5,10,50", value_parser = polls)]
    polls: Vec<f64>,
}

impl Build for Interaction {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        if self.rules >= self.table {
            return Err(format!(
                "--rules {} leaves nothing of a table of {}: give --table more",
                self.rules, self.table
            ));
        }
        Ok(Box::new(modules::Interaction {
            common,
            rules: self.rules,
            table: self.table,
            polls: self.polls.clone(),
        }))
    }
}

/// Polls per second.
fn polls(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (0.0..=10_000.0).contains(rate));
    rate.ok_or_else(|| "not a number of polls per second within 0 to 10000".to_owned())
}

/// How long.
#[derive(clap::Args)]
pub struct Timestamp {
    /// Seconds of probes, 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    duration: u64,
}

impl Build for Timestamp {
    fn build(&self, common: Common, quick: bool) -> Result<Box<dyn Experiment>, String> {
        let seconds = if quick { self.duration.min(2) } else { self.duration };
        Ok(Box::new(modules::Timestamp { common, duration: seconds * 1_000_000_000 }))
    }
}
