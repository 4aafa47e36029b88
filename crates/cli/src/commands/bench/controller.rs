//! `weir bench controller`: a real controller.

use super::values::OpenFlow;
use super::{Output, talk, values};
use crate::exit::Exit;
use anyhow::Context;
use bench::{ControllerPlan, Test};
use channel::{Address, Scheme};

/// Measure a real controller by emulated switches that dial it
///
/// Tests: latency and throughput (cbench's modes, each answer matched to its question), rate, sessions, exceptions and
/// denial-of-service (RFC 8456). The controller should be a learning switch.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  ovs-testcontroller ptcp:6653 &
  weir bench controller tcp:127.0.0.1:6653 --test latency,throughput --trials 3")]
pub struct Controller {
    /// Where it listens
    #[arg(value_name = "tcp:IP:PORT")]
    address: Address,
    /// What results call it
    #[arg(long, default_value = "controller")]
    name: String,
    /// Its process, if it is on this machine: its CPU and memory are observed
    #[arg(long)]
    pid: Option<u32>,
    /// Which tests [default: all]
    #[arg(long = "test", value_name = "TESTS", value_delimiter = ',')]
    tests: Vec<Test>,
    /// Emulated switches, 1 to 2046
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=2046))]
    switches: u16,
    /// How often each test is repeated, 1 to 1000; the RFC wants ten at least
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    trials: u16,
    /// Seconds per trial
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = values::seconds)]
    trial: u64,
    /// The OpenFlow version
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    openflow: OpenFlow,
    #[command(flatten)]
    output: Output,
}

impl Controller {
    pub fn run(self) -> anyhow::Result<Exit> {
        if self.address.scheme != Scheme::Tcp {
            return Ok(Exit::usage(&"a controller is measured over tcp: only"));
        }
        let mut plan = ControllerPlan::new(&self.name, self.address.addr, self.openflow.version());
        plan.pid = self.pid;
        plan.switches = usize::from(self.switches);
        plan.trials = usize::from(self.trials);
        plan.trial_ms = self.trial;
        let tests = if self.tests.is_empty() { Test::ALL.to_vec() } else { self.tests };
        let verdict = plan
            .run(&tests, &mut talk)
            .with_context(|| format!("is a controller listening on {}?", self.address))?;
        self.output.give(&verdict)
    }
}
