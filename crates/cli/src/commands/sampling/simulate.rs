//! Simulates the gain of collaboration, after section IV-C of the 2019 paper (`weir sampling simulate`).

use super::options::CostOptions;
use crate::exit::Exit;
use crate::out::Output;
use papers::elbouanani2019::gain::{SERVERS, simulate};
use std::time::Duration;

/// Simulate geometric loads: the gain of collaboration over sampling locally only
///
/// A total volume is divided among servers of equal capacity in proportion to p, p², p³, … If a server gets more
/// packets than it can forward, the case is infeasible. The paper does not give its number of servers, so results for
/// several numbers stand beside the published results.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  weir sampling simulate --servers 10,100 --steps 50 --out results/"
)]
pub struct Simulate {
    /// Numbers of servers, 2 to 10000
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = SERVERS.map(|number| number as u32), value_parser = clap::value_parser!(u32).range(2..=10_000))]
    servers: Vec<u32>,
    /// Steps along each axis of the heat map, 2 to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u8).range(2..=200))]
    steps: u8,
    #[command(flatten)]
    costs: CostOptions,
    #[command(flatten)]
    output: Output,
}

impl Simulate {
    pub fn run(self) -> anyhow::Result<Exit> {
        let costs = self.costs.costs()?;
        let numbers: Vec<usize> = self.servers.iter().map(|number| *number as usize).collect();
        let simulated = simulate(&numbers, usize::from(self.steps), costs)?;
        let results = &simulated.results;
        self.output.give(
            &simulated.table.to_string(),
            || results.to_json(),
            |out| Ok(results.write_with(out, &[], Duration::ZERO, &simulated.extras)?),
        )?;
        Ok(Exit::Success)
    }
}
