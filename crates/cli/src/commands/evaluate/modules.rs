//! The own options of each experiment, and the conversion of the options into the experiment.

use evaluate::modules::{MatchKind, Modification, Priorities, StatisticsKind, Way};
use evaluate::{Common, Experiment, modules, probe};

/// Options that make an experiment. With `quick` and without named cases, the experiment has fewer cases.
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

impl Matching {
    fn kind(self) -> MatchKind {
        match self {
            Matching::Exact => MatchKind::Exact,
            Matching::Wildcard => MatchKind::Wildcard,
        }
    }
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
    /// The order of priorities in which entries are added
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
        plan.matches = self.matches.iter().map(|kind| kind.kind()).collect();
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
    /// All entries in the table
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

/// Reads a number of polls per second.
fn polls(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (0.0..=10_000.0).contains(rate));
    rate.ok_or_else(|| "not a number of polls per second within 0 to 10000".to_owned())
}

/// Which modifications, how long.
#[derive(clap::Args)]
pub struct Modify {
    /// Sets of modifications, such as forward,tos,source-mac+tos [default: forward, each one, and several at once]
    #[arg(long = "set", value_name = "SETS", value_delimiter = ',', value_parser = set)]
    sets: Vec<Set>,
    /// Seconds of probes per repetition, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    duration: u64,
}

/// With a type of this name, clap takes the list as one value.
type Set = Vec<Modification>;

impl Build for Modify {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        let mut plan = modules::Modify { duration: self.duration, ..modules::Modify::new(common) };
        if !self.sets.is_empty() {
            plan.sets.clone_from(&self.sets);
        }
        Ok(Box::new(plan))
    }
}

fn set(text: &str) -> Result<Set, String> {
    if text == "forward" {
        return Ok(Vec::new());
    }
    let set: Set = text.split('+').map(str::parse).collect::<Result<_, _>>()?;
    if set.contains(&Modification::StripVlan)
        && set.iter().any(|it| matches!(it, Modification::VlanId | Modification::VlanPriority))
    {
        return Err("strip-vlan leaves nothing of vlan-id and vlan-priority".to_owned());
    }
    Ok(set)
}

/// Reads seconds, and returns nanoseconds.
fn seconds(text: &str) -> Result<u64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|it| (0.1..=3_600.0).contains(it));
    seconds
        .map(|seconds| (seconds * 1e9) as u64)
        .ok_or_else(|| "not a number of seconds within 0.1 to 3600".to_owned())
}

/// How many.
#[derive(clap::Args)]
pub struct Capacity {
    /// How entries match
    #[arg(long = "match", value_name = "KIND", default_value = "exact")]
    match_: Matching,
    /// The most entries that are added
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=i64::from(probe::MAX_FLOWS)))]
    limit: u32,
    /// Entries per barrier
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
}

impl Build for Capacity {
    fn build(&self, common: Common, quick: bool) -> Result<Box<dyn Experiment>, String> {
        let limit = if quick { self.limit.min(2_000) } else { self.limit };
        let match_ = self.match_.kind();
        Ok(Box::new(modules::Capacity { common, match_, limit, batch: self.batch }))
    }
}

/// Up to which rate.
#[derive(clap::Args)]
pub struct Packets {
    /// The rate at which the search begins, per second
    #[arg(long, value_name = "RATE", default_value = "1000", value_parser = super::effort::rate)]
    from: f64,
    /// The highest rate that is tried, per second
    #[arg(long, value_name = "RATE", default_value = "200000", value_parser = super::effort::rate)]
    to: f64,
    /// Seconds per trial, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    duration: u64,
}

impl Packets {
    fn plan(&self, common: Common, way: Way) -> Result<Box<dyn Experiment>, String> {
        if self.from > self.to {
            return Err(format!("--from {} is above --to {}", self.from, self.to));
        }
        let common = Common { rate: self.from, ..common };
        Ok(Box::new(modules::Packets { common, duration: self.duration, most: self.to, way }))
    }
}

/// PACKET_IN.
#[derive(clap::Args)]
pub struct PacketIn {
    #[command(flatten)]
    packets: Packets,
}

impl Build for PacketIn {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        self.packets.plan(common, Way::In)
    }
}

/// PACKET_OUT.
#[derive(clap::Args)]
pub struct PacketOut {
    #[command(flatten)]
    packets: Packets,
}

impl Build for PacketOut {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        self.packets.plan(common, Way::Out)
    }
}

/// ECHO_REQUEST.
#[derive(clap::Args)]
pub struct Echo {
    #[command(flatten)]
    packets: Packets,
}

impl Build for Echo {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        self.packets.plan(common, Way::Echo)
    }
}

/// BARRIER_REQUEST.
#[derive(clap::Args)]
pub struct Barrier {
    #[command(flatten)]
    packets: Packets,
}

impl Build for Barrier {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        self.packets.plan(common, Way::Barrier)
    }
}

/// Which statistics, how often.
#[derive(clap::Args)]
pub struct Statistics {
    /// Entries in the table
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rules: u32,
    /// Which statistics
    #[arg(
        long = "kind",
        value_name = "KINDS",
        value_delimiter = ',',
        default_value = "flow,aggregate"
    )]
    kinds: Vec<Kind>,
    /// Polls per second
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "1,10,50,100", value_parser = some_polls)]
    polls: Vec<f64>,
    /// Seconds per repetition, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    duration: u64,
}

/// Which statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Flow,
    Aggregate,
}

impl Build for Statistics {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        let kinds = self.kinds.iter().map(|kind| match kind {
            Kind::Flow => StatisticsKind::Flow,
            Kind::Aggregate => StatisticsKind::Aggregate,
        });
        Ok(Box::new(modules::Statistics {
            common,
            duration: self.duration,
            rules: self.rules,
            kinds: kinds.collect(),
            polls: self.polls.clone(),
        }))
    }
}

/// Reads a number of polls per second above 0.
fn some_polls(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|rate| (0.01..=10_000.0).contains(rate));
    rate.ok_or_else(|| "not a number of polls per second within 0.01 to 10000".to_owned())
}

/// Which rates and sizes.
#[derive(clap::Args)]
pub struct PathDelay {
    /// Probes per second, instead of --rate
    #[arg(long = "rates", value_name = "RATES", value_delimiter = ',', default_value = "1000,12500", value_parser = super::effort::rate)]
    rates: Vec<f64>,
    /// Bytes of a probe, instead of --length
    #[arg(long = "lengths", value_name = "BYTES", value_delimiter = ',', default_value = "60,100,1500", value_parser = clap::value_parser!(u16).range(60..=9000))]
    lengths: Vec<u16>,
    /// Seconds per repetition, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    duration: u64,
}

impl Build for PathDelay {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        Ok(Box::new(modules::PathDelay {
            common,
            duration: self.duration,
            rates: self.rates.clone(),
            lengths: self.lengths.iter().map(|length| usize::from(*length)).collect(),
        }))
    }
}

/// Nothing of its own.
#[derive(clap::Args)]
pub struct PortStatus {}

impl Build for PortStatus {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        Ok(Box::new(modules::PortStatus { common }))
    }
}

/// Which queues.
#[derive(clap::Args)]
pub struct Queue {
    /// Queues of the receiving port [default: those that the switch names]
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    queues: Vec<u32>,
    /// Probes per second, instead of --rate
    #[arg(long = "rates", value_name = "RATES", value_delimiter = ',', default_value = "1000,12500", value_parser = super::effort::rate)]
    rates: Vec<f64>,
    /// Seconds per repetition, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    duration: u64,
}

impl Build for Queue {
    fn build(&self, common: Common, _quick: bool) -> Result<Box<dyn Experiment>, String> {
        Ok(Box::new(modules::Queue {
            common,
            duration: self.duration,
            queues: self.queues.clone(),
            rates: self.rates.clone(),
        }))
    }
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
