//! Simulates how close tenants come to the optimum, with each way to choose paths (`weir fabric simulate`).

use crate::exit::Exit;
use crate::out::Output;
use anyhow::Context;
use fabric::Bandwidth;
use lab::{Rate, Topology};
use report::pace::left_after;
use report::terminal::talk;
use report::{Environment, Results};
use simulate::{Error, Plan, Study, World};
use std::time::Instant;

/// Simulate tenants who choose paths at random, by equal-cost hashing and by link labels, beside the optimum
///
/// Servers are divided among tenants, and every virtual interface sends to another of its tenant at the rate that it is
/// entitled to. Time goes in steps of 0.1 s. With labels, "new flows" follow them only when they begin, "herding" goes
/// where there is the most room at every update, and "damped" goes only from overloaded links, by chance and to any
/// path with enough room. Exit status 1: damped choice by the freshest labels stays below 95 % of the optimum.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir fabric simulate fattree,8 --tenants 100 --quick
  weir fabric simulate fattree,16 --tenants 500 --out results/
  weir fabric simulate leafspine,4,2,8 --tenants 20 --vnics 1,2

See docs/fabric.md.")]
pub struct Simulate {
    /// A built-in topology or a topology file, as for `weir lab up`
    #[arg(default_value = "fattree,16")]
    topology: String,
    /// How many tenants share the servers
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=65_534))]
    tenants: u32,
    /// Into how many virtual interfaces a server is divided, each 1 to 64; each server draws one of these
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "2,4,8", value_parser = clap::value_parser!(u8).range(1..=64))]
    vnics: Vec<u8>,
    /// The rate of links without a rate of their own
    #[arg(long, value_name = "RATE", default_value = "10Gbit")]
    rate: Rate,
    /// How long a tenant's job lasts on average, in seconds, 0.1 to 86400; then it sends to others
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    lifetime: f64,
    /// Seconds between two updates of all labels, each 0.1 to 86400
    #[arg(long, value_name = "SECONDS", value_delimiter = ',', default_value = "0.1,0.5,2,10", value_parser = seconds)]
    intervals: Vec<f64>,
    /// Labels are multiples of this [default: exact]
    #[arg(long, value_name = "RATE")]
    step: Option<Rate>,
    /// Labels are off by up to this much [default: exact]
    #[arg(long, value_name = "RATE")]
    noise: Option<Rate>,
    /// Simulated seconds that are measured, 0.1 to 86400, after 10 s in which tenants arrive [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Runs, each with a seed of its own, 1 to 1000 [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
    /// The seed of random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The linear program for the optimum is solved up to so many variables
    #[arg(long, value_name = "N", default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    variables: u32,
    /// One run of 10 s: a quick look
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

impl Simulate {
    pub fn run(self) -> anyhow::Result<Exit> {
        let topology = Topology::load(&self.topology)?;
        let study = topology
            .network(self.rate)
            .map_err(anyhow::Error::from)
            .and_then(|network| Ok(self.simulate(&World::new(network)?)?));
        let study = match study {
            Ok(study) => study,
            Err(error) if error.is::<Error>() => return usage_or_failure(error),
            Err(error) => return Err(error),
        };
        self.output.give(
            &study.to_string(),
            || study.results().to_json(),
            |out| study.write(out).with_context(|| format!("cannot write to {}", out.display())),
        )?;
        Ok(if study.is_below_target() { Exit::Finding } else { Exit::Success })
    }

    fn simulate(&self, world: &World) -> Result<Study, Error> {
        let plan = self.plan();
        let mut study =
            Study::new(Results::new("fabric simulate", self.seed, Environment::capture(&[])));
        let texts = [
            ("topology", self.topology.clone()),
            ("rate", self.rate.to_string()),
            ("step", self.step.map_or_else(|| "exact".to_owned(), |rate| rate.to_string())),
            ("noise", self.noise.map_or_else(|| "none".to_owned(), |rate| rate.to_string())),
            ("vnics", format!("{:?}", self.vnics)),
        ];
        texts.into_iter().for_each(|(name, text)| study.set(name, text));
        let numbers = [
            ("tenants", f64::from(plan.tenants)),
            ("lifetime_s", plan.lifetime),
            ("duration_s", plan.duration),
            ("runs", f64::from(plan.runs)),
        ];
        numbers.into_iter().for_each(|(name, number)| study.set(name, number));
        let begun = Instant::now();
        plan.run(world, &mut study, |done, all, what| {
            talk(&format!("{what}{}", left_after(done, all, begun.elapsed())));
        })?;
        Ok(study)
    }

    fn plan(&self) -> Plan {
        let bandwidth = |rate: Option<Rate>| {
            Bandwidth::from_bits_per_second(rate.map_or(0, Rate::bits_per_second))
        };
        Plan {
            tenants: self.tenants,
            divisions: self.vnics.iter().map(|it| u64::from(*it)).collect(),
            lifetime: self.lifetime,
            duration: self.duration.unwrap_or(if self.quick { 10.0 } else { 30.0 }),
            intervals: self.intervals.clone(),
            step: bandwidth(self.step),
            noise: bandwidth(self.noise),
            runs: self.runs.unwrap_or(if self.quick { 1 } else { 3 }),
            seed: self.seed,
            variables: self.variables,
        }
    }
}

/// An error in the network or the arguments is a usage error. An internal error is a failure.
fn usage_or_failure(error: anyhow::Error) -> anyhow::Result<Exit> {
    match error.downcast_ref::<Error>() {
        Some(Error::Fabric(_) | Error::Solver(_)) | None => Err(error),
        Some(_) => Ok(Exit::usage(&error)),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|it| (0.1..=86_400.0).contains(it));
    seconds.ok_or_else(|| "not a number of seconds within 0.1 to 86400".to_owned())
}
