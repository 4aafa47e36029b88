//! The numbers and times of `weir bench controller`.

use super::super::values;
use bench::ControllerPlan;
use emulate::Layout;

/// Everything that is a number, and the topology.
#[derive(clap::Args)]
#[command(next_help_heading = "Settings")]
pub(super) struct Settings {
    /// leafspine,LEAVES,SPINES or linear,SWITCHES or ring,SWITCHES; again for more sizes of discovery-time
    #[arg(long = "topology", value_name = "TOPOLOGY", default_value = "leafspine,2,1")]
    layouts: Vec<Layout>,
    /// How often each test is repeated, 1 to 1000; the RFC wants ten at least
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    trials: u16,
    /// Seconds that one trial sends
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = values::seconds)]
    trial: u64,
    /// Seconds that one trial waits for anything at most
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = values::seconds)]
    limit: u64,
    /// Seconds that all handshakes of a trial may take
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = values::seconds)]
    handshake: u64,
    /// Seconds that the controller is left alone between trials
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = values::seconds)]
    settle: u64,
    /// Seconds between looks at the northbound interface and at flow tables
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = values::seconds)]
    query: u64,
    /// Bytes of a probe without its check sequence, 64 to 1518; the RFC names 128, 512 and 1508
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u16).range(64..=1518))]
    frame: u16,
    /// Switches that are each alone, in latency, throughput and rate, 1 to 2046
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=2046))]
    switches: u16,
    /// Hosts of each of these, and destinations of paths, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    macs: u32,
    /// Messages in flight per switch in throughput, paths in the making in path rates, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    outstanding: u32,
    /// Messages per second of all switches where the rate is steady; should be what test rate found
    #[arg(long, value_name = "RATE", default_value = "500", value_parser = rate)]
    steady: f64,
    /// Packets per second each way, in failover and reprovisioning
    #[arg(long, value_name = "RATE", default_value = "200", value_parser = rate)]
    traffic: f64,
    /// The highest rate that is tried
    #[arg(long, value_name = "RATE", default_value = "500000", value_parser = rate)]
    most_rate: f64,
    /// The most sessions that are tried, 1 to 2046
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u16).range(1..=2046))]
    most_sessions: u16,
    /// The most switches that are to be discovered, 2 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(2..=1000))]
    most_switches: u16,
    /// The most flow entries that are tried, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    most_flows: u32,
    /// The seed of random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

impl Settings {
    pub(super) fn apply(self, plan: &mut ControllerPlan) {
        plan.layouts = self.layouts;
        plan.trials = self.trials.into();
        plan.trial_ms = self.trial;
        plan.limit_ms = self.limit;
        plan.handshake_ms = self.handshake;
        plan.settle_ms = self.settle;
        plan.query_ms = self.query;
        plan.frame_bytes = self.frame.into();
        plan.switches = self.switches.into();
        plan.macs = self.macs;
        plan.outstanding = self.outstanding;
        plan.steady_rate = self.steady;
        plan.traffic_rate = self.traffic;
        plan.highest_rate = self.most_rate;
        plan.most_sessions = self.most_sessions.into();
        plan.most_switches = self.most_switches;
        plan.most_flows = self.most_flows as usize;
        plan.seed = self.seed;
    }
}

/// Reads a rate of the benchmarks. No benchmark has a highest rate of its own.
fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok().filter(|it| (0.1..=10_000_000.0).contains(it));
    rate.ok_or_else(|| "not a number per second within 0.1 to 10000000".to_owned())
}
