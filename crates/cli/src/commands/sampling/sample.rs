//! Runs Weir's sampler on one interface, or Open vSwitch's own sampler on a bridge (`weir sampling sample`). The
//! samples are sent as sFlow.

use crate::exit::Exit;
use crate::signals;
use agent::config::{SWITCH, collector, one_in};
use agent::ovsdb::OvsSampling;
use agent::standing::{BridgeSampling, OwnSampler, OwnSampling};
use agent::{Sent, Taken};
use anyhow::bail;
use lab::Interrupt;
use serde_json::json;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Sample the packets that an interface receives, and send the samples to a collector as sFlow v5
///
/// The kernel decides for each packet at random, and copies only the first bytes of sampled packets. The command runs
/// until Ctrl-C or for
/// --seconds, and then prints how many packets were sampled, sent and lost. While the collector is down its samples are lost, and
/// sampling goes on. Needs CAP_NET_RAW. With --bridge Open vSwitch itself samples by sFlow, at all ports of the bridge.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling sample eth0 --one-in 100 --collector 192.0.2.1
  weir sampling sample vxlan1 --stands-for 4.9 --sub-agent 1 --collector 192.0.2.1
  weir sampling sample eth0 --namespace weir-lab1.h1 --one-in 2.5 --collector 127.0.0.1:6343 --seconds 10
  weir sampling sample --bridge br0 --one-in 100 --collector 192.0.2.1")]
pub struct Sample {
    /// The interface
    #[arg(required_unless_present = "bridge")]
    interface: Option<String>,
    /// Let Open vSwitch sample on this bridge; --one-in has to be a whole number
    #[arg(long, value_name = "NAME", conflicts_with_all = ["interface", "stands_for", "agent", "sub_agent", "namespace", "json"])]
    bridge: Option<String>,
    /// The directory with the sockets of the bridge's Open vSwitch
    #[arg(long, value_name = "DIR", default_value = SWITCH, requires = "bridge")]
    switch: PathBuf,
    /// One of N packets, 1 to 10^9; may be a fraction
    #[arg(long, value_name = "N", value_parser = one_in, required_unless_present = "stands_for")]
    one_in: Option<f64>,
    /// Take all packets, each of which stands for N packets: the packets were sampled before they were mirrored
    #[arg(long, value_name = "N", value_parser = one_in, conflicts_with = "one_in")]
    stands_for: Option<f64>,
    /// The collector; the default port is 6343
    #[arg(long, value_name = "IP[:PORT]", value_parser = collector)]
    collector: SocketAddr,
    /// The agent address in the samples [default: the source address of the datagrams]
    #[arg(long, value_name = "IP")]
    agent: Option<IpAddr>,
    /// The sFlow sub-agent id, for several samplers with one agent address
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    sub_agent: u32,
    /// The network namespace of the interface; samples are sent from the namespace of this process
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Bytes of each packet, 14 to 1024; Open vSwitch sends at most 512
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(14..=1024))]
    header: u32,
    /// Stop after so many seconds, 1 to 86400 [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: Option<u32>,
    /// Print JSON instead of a sentence
    #[arg(long)]
    json: bool,
}

impl Sample {
    pub fn run(self) -> anyhow::Result<Exit> {
        let interrupt = signals::interrupt()?;
        match (&self.bridge, &self.interface) {
            (Some(bridge), _) => self.by_switch(bridge, &interrupt),
            (None, Some(interface)) => self.by_weir(interface, &interrupt),
            (None, None) => bail!("neither an interface nor a bridge is given"),
        }
    }

    /// Runs Weir's own sampler until the end.
    fn by_weir(&self, name: &str, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let one_in = self.one_in.unwrap_or(1.0);
        let mut sampler = OwnSampler::open(&OwnSampling {
            interface: name.to_owned(),
            namespace: self.namespace.clone(),
            one_in,
            stands_for: self.stands_for.unwrap_or(one_in),
            header: self.header,
            collector: self.collector,
            agent: self.agent,
            sub_agent: self.sub_agent,
        })?;
        writeln!(std::io::stderr(), "sampling one of {one_in} on {name}")?;
        let end = self.end();
        while !interrupt.is_asked() && end.is_none_or(|end| Instant::now() < end) {
            sampler.turn(Duration::from_millis(100))?;
        }
        let (taken, sent) = sampler.counts()?;
        self.print(taken, sent)
    }

    fn end(&self) -> Option<Instant> {
        self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()))
    }

    /// Runs Open vSwitch's own sFlow until the end.
    fn by_switch(&self, bridge: &str, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let one_in = self.one_in.filter(|number| number.fract() == 0.0).ok_or_else(|| {
            let message = "Open vSwitch samples one of a whole number of packets".to_owned();
            sampling::Error::Input { place: "--one-in".to_owned(), message }
        })?;
        let sampling =
            OvsSampling { collector: self.collector, one_in: one_in as u32, header: self.header };
        let (bridge, switch) = (bridge.to_owned(), self.switch.clone());
        let sampling = BridgeSampling { bridge, switch, sampling };
        sampling.begin()?;
        let bridge = &sampling.bridge;
        writeln!(std::io::stderr(), "Open vSwitch samples one of {one_in} on {bridge}")?;
        let end = self.end();
        while !interrupt.is_asked() && end.is_none_or(|end| Instant::now() < end) {
            std::thread::sleep(Duration::from_millis(50));
        }
        sampling.end()?;
        writeln!(std::io::stderr(), "Open vSwitch no longer samples on {bridge}")?;
        Ok(Exit::Success)
    }

    fn print(&self, taken: Taken, sent: Sent) -> anyhow::Result<Exit> {
        let mut stdout = std::io::stdout().lock();
        if self.json {
            let counts = json!({
                "chosen": taken.chosen, "dropped": taken.dropped, "samples": sent.samples,
                "datagrams": sent.datagrams, "lost_datagrams": sent.lost,
            });
            writeln!(stdout, "{counts:#}")?;
        } else {
            writeln!(
                stdout,
                "{} packets were chosen, {} of them dropped; {} samples in {} datagrams, {} lost.",
                taken.chosen, taken.dropped, sent.samples, sent.datagrams, sent.lost
            )?;
        }
        Ok(Exit::Success)
    }
}
