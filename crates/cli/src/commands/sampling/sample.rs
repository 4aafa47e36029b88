//! `weir sampling sample`: Weir's sampler on one interface, or Open vSwitch's own on a bridge, sFlow out.

use crate::exit::Exit;
use crate::signals::Interrupt;
use agent::ovsdb::{Database, OvsSampling};
use agent::sflow::{Origin, PORT};
use agent::{Exporter, Sampler, SamplerOptions, Sent, Taken};
use anyhow::{Context, bail};
use serde_json::json;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Sample what comes in on an interface, and send it to a collector as sFlow v5
///
/// The kernel draws for each packet and copies only the sampled ones' first bytes. Until Ctrl-C or for --seconds; then
/// says what was taken, sent and lost. A collector that is down costs its samples and nothing else. Needs CAP_NET_RAW.
/// With --bridge Open vSwitch samples by its own sFlow meanwhile, whatever comes in at any of the bridge's ports.
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
    /// Have Open vSwitch sample on this bridge; --one-in has to be a whole number then
    #[arg(long, value_name = "NAME", conflicts_with_all = ["interface", "stands_for", "agent", "sub_agent", "namespace", "json"])]
    bridge: Option<String>,
    /// Where the sockets of that bridge's Open vSwitch are
    #[arg(long, value_name = "DIR", default_value = "/run/openvswitch", requires = "bridge")]
    switch: PathBuf,
    /// One of so many packets, 1 to 10^9; need not be a whole number
    #[arg(long, value_name = "N", value_parser = one_in, required_unless_present = "stands_for")]
    one_in: Option<f64>,
    /// Take every packet, each of which stands for so many: it was sampled where it was mirrored
    #[arg(long, value_name = "N", value_parser = one_in, conflicts_with = "one_in")]
    stands_for: Option<f64>,
    /// Where samples go; port 6343 if none is given
    #[arg(long, value_name = "IP[:PORT]", value_parser = collector)]
    collector: SocketAddr,
    /// Who the samples say that they are from [default: the address from which they are sent]
    #[arg(long, value_name = "IP")]
    agent: Option<Ipv4Addr>,
    /// Tells apart several origins behind one agent
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    sub_agent: u32,
    /// The network namespace in which the interface is; samples are sent from this process's own
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Bytes of each packet, 14 to 1024
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
        let interrupt = Interrupt::catch()?;
        match (&self.bridge, &self.interface) {
            (Some(bridge), _) => self.by_switch(bridge, &interrupt),
            (None, Some(interface)) => self.by_weir(interface, &interrupt),
            (None, None) => bail!("neither an interface nor a bridge is given"),
        }
    }

    /// Weir's own sampler, until the end.
    fn by_weir(&self, name: &str, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let (mut sampler, interface) = self.open(name)?;
        let agent = self.agent.map_or_else(|| self.own_address(), Ok)?;
        let origin = Origin { agent, sub_agent: self.sub_agent, interface };
        let one_in = self.one_in.unwrap_or(1.0);
        let mut exporter =
            Exporter::new(self.collector, origin, self.stands_for.unwrap_or(one_in))?;
        writeln!(std::io::stderr(), "sampling one of {one_in} on {name}")?;
        let end = self.end();
        while !interrupt.is_asked() && end.is_none_or(|end| Instant::now() < end) {
            sampler
                .read(Duration::from_millis(100), |bytes, length| exporter.add(bytes, length))?;
            exporter.set_drops(sampler.taken()?.dropped);
            // What was read goes out now: an estimate is to be of the present.
            exporter.flush();
        }
        self.tell(sampler.taken()?, exporter.sent())
    }

    fn end(&self) -> Option<Instant> {
        self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()))
    }

    /// Open vSwitch's own sFlow, until the end.
    fn by_switch(&self, bridge: &str, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let one_in = self.one_in.filter(|number| number.fract() == 0.0).ok_or_else(|| {
            let message = "Open vSwitch samples one of a whole number of packets".to_owned();
            sampling::Error::Input { place: "--one-in".to_owned(), message }
        })?;
        let sampling =
            OvsSampling { collector: self.collector, one_in: one_in as u32, header: self.header };
        let database = || Database::connect(&self.switch.join("db.sock"));
        if database()?.is_sampling(bridge)? {
            bail!("{bridge} samples by sFlow already, which this would end");
        }
        database()?.set_sampling(bridge, &sampling)?;
        writeln!(std::io::stderr(), "Open vSwitch samples one of {one_in} on {bridge}")?;
        let end = self.end();
        while !interrupt.is_asked() && end.is_none_or(|end| Instant::now() < end) {
            std::thread::sleep(Duration::from_millis(50));
        }
        // The database closes what is silent for long.
        database()?.clear_sampling(bridge)?;
        writeln!(std::io::stderr(), "Open vSwitch no longer samples on {bridge}")?;
        Ok(Exit::Success)
    }

    fn open(&self, name: &str) -> anyhow::Result<(Sampler, u32)> {
        let options = SamplerOptions {
            rate: 1.0 / self.one_in.unwrap_or(1.0),
            header: self.header,
            ..SamplerOptions::default()
        };
        let open = || -> agent::Result<(Sampler, u32)> {
            let index = packet::Interface::find(name)?.index;
            Ok((Sampler::open(name, &options)?, index))
        };
        Ok(match &self.namespace {
            Some(namespace) => packet::in_namespace(namespace, open)??,
            None => open()?,
        })
    }

    fn own_address(&self) -> anyhow::Result<Ipv4Addr> {
        let here: SocketAddr = match self.collector {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            // sFlow's agents have IPv4 addresses here; over IPv6 somebody has to say which.
            SocketAddr::V6(_) => return Ok(Ipv4Addr::UNSPECIFIED),
        };
        let local = UdpSocket::bind(here).and_then(|socket| {
            socket.connect(self.collector)?;
            socket.local_addr()
        });
        match local.with_context(|| format!("there is no way to {}", self.collector))?.ip() {
            IpAddr::V4(address) => Ok(address),
            IpAddr::V6(_) => Ok(Ipv4Addr::UNSPECIFIED),
        }
    }

    fn tell(&self, taken: Taken, sent: Sent) -> anyhow::Result<Exit> {
        let mut stdout = std::io::stdout().lock();
        if self.json {
            let told = json!({
                "chosen": taken.chosen, "dropped": taken.dropped, "samples": sent.samples,
                "datagrams": sent.datagrams, "lost_datagrams": sent.lost,
            });
            writeln!(stdout, "{told:#}")?;
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

fn one_in(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (1.0..=1e9).contains(number));
    number.ok_or_else(|| "not a number within 1 to 1000000000".to_owned())
}

fn collector(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse().ok();
    let without = || Some(SocketAddr::new(text.parse().ok()?, PORT));
    with_port
        .or_else(without)
        .ok_or_else(|| "not an address such as 192.0.2.1 or 192.0.2.1:6343".to_owned())
}
