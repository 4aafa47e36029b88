//! Provides one switch with four hosts: Open vSwitch with network namespaces, or an emulated switch with emulated
//! hosts.

use anyhow::Context;
use channel::Address;
use emulate::frame::build::{Path, host_mac};
use emulate::{Config, Host, HostIndex, Point, Runner, Running, Switch, SwitchIndex};
use lab::{FailMode, Lab, LabGuard, MacAddress, PingOptions, StateDirectory};
use openflow::{Version, VersionSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The addresses of the hosts. Hosts 1 and 2 belong to tenant red, and hosts 3 and 4 to tenant blue. The number of a
/// host is the number of its port.
pub(crate) const ADDRESSES: [Ipv4Addr; 4] = [
    Ipv4Addr::new(10, 1, 0, 1),
    Ipv4Addr::new(10, 1, 0, 2),
    Ipv4Addr::new(10, 2, 0, 1),
    Ipv4Addr::new(10, 2, 0, 2),
];

/// The requirements of a real switch that this machine does not meet.
pub(crate) fn missing() -> Vec<lab::Missing> {
    lab::Requirements { switches: true, rates: false }.check()
}

/// One switch with four hosts.
pub(crate) trait Network {
    /// The description of the network, for the user.
    fn name(&self) -> String;

    /// The address at which a controller of the switch has to listen.
    fn controller_host(&self) -> IpAddr;

    /// Gives the switch its one controller.
    fn connect(&mut self, controller: SocketAddr) -> anyhow::Result<()>;

    /// Pings one host from another host, counted from 0. Returns the time until the answer, or `None` without an
    /// answer.
    fn ping(
        &mut self,
        from: usize,
        to: usize,
        patience: Duration,
    ) -> anyhow::Result<Option<Duration>>;

    /// The switch's flow entries, without counters.
    fn rules(&self) -> anyhow::Result<Vec<String>>;
}

/// Open vSwitch in a lab.
pub(crate) struct Real {
    lab: LabGuard,
    protocol: lab::Protocol,
}

impl Real {
    pub(crate) fn up(version: Version) -> anyhow::Result<Real> {
        // The labs that a killed demo left are removed.
        Lab::down_abandoned(&StateDirectory::default()).context("cannot clear old labs")?;
        let mut topology = lab::Topology::builder();
        topology.switch("s1")?;
        for (number, address) in (1..).zip(ADDRESSES) {
            let name = format!("h{number}");
            topology.host_with(&name, MacAddress::from_number(number), address, 8)?;
            topology.link("s1", &name, None)?;
        }
        let protocol = match version {
            Version::V1_0 => lab::Protocol::OPENFLOW10,
            _ => lab::Protocol::OPENFLOW13,
        };
        let options = lab::Options {
            name: Some(format!("demo{}", std::process::id())),
            protocols: vec![protocol],
            // Without a controller the switch forwards no packet, so each forwarded packet was allowed by a controller.
            fail_mode: Some(FailMode::Secure),
            ephemeral: true,
            ..lab::Options::default()
        };
        let lab = Lab::up(&topology.build()?, &options)?;
        Ok(Real { lab: LabGuard::new(lab), protocol })
    }
}

impl Network for Real {
    fn name(&self) -> String {
        let release = lab::OpenVSwitch::version().unwrap_or_default();
        format!("Open vSwitch {release}; hosts in network namespaces")
    }

    fn controller_host(&self) -> IpAddr {
        self.lab.controller_address().unwrap_or(Ipv4Addr::LOCALHOST).into()
    }

    fn connect(&mut self, controller: SocketAddr) -> anyhow::Result<()> {
        let target: lab::Controller = format!("tcp:{controller}").parse()?;
        Ok(self.lab.set_controllers_of(&[("s1", &[target])])?)
    }

    fn ping(
        &mut self,
        from: usize,
        to: usize,
        patience: Duration,
    ) -> anyhow::Result<Option<Duration>> {
        let (from, to) = (format!("h{}", from + 1), format!("h{}", to + 1));
        let options = PingOptions { timeout: patience, attempts: 1 };
        let report = self.lab.ping(&[&from, &to], &options)?;
        let pair = report.pairs.iter().find(|pair| pair.from == from && pair.to == to);
        Ok(pair.and_then(|pair| pair.round_trip))
    }

    fn rules(&self) -> anyhow::Result<Vec<String>> {
        let switches = self.lab.open_vswitch().context("the lab has no switch")?;
        let listing =
            switches.ofctl(["-O", self.protocol.name(), "--no-stats", "dump-flows", "s1"])?;
        Ok(listing.lines().filter(|line| line.contains("actions=")).map(without_cookie).collect())
    }
}

/// Removes the cookie, which has a meaning only for Weir, from ` cookie=0x1, priority=5,in_port=1 actions=drop`.
fn without_cookie(line: &str) -> String {
    let line = line.trim();
    line.split_once(' ')
        .filter(|(first, _)| first.starts_with("cookie="))
        .map_or(line, |it| it.1)
        .to_owned()
}

/// An emulated switch on real sockets.
pub(crate) struct Emulated {
    version: Version,
    running: Option<Running>,
    /// The sequence number that distinguishes pings.
    sequence: u16,
}

const SWITCH: SwitchIndex = SwitchIndex(0);

impl Emulated {
    pub(crate) fn new(version: Version) -> Emulated {
        Emulated { version, running: None, sequence: 0 }
    }

    fn running(&self) -> anyhow::Result<&Running> {
        self.running.as_ref().context("the switch is not connected")
    }
}

impl Network for Emulated {
    fn name(&self) -> String {
        "emulated, and so are its hosts".to_owned()
    }

    fn controller_host(&self) -> IpAddr {
        Ipv4Addr::LOCALHOST.into()
    }

    fn connect(&mut self, controller: SocketAddr) -> anyhow::Result<()> {
        let mut network = emulate::Network::new();
        let mut config = Config::new(1, 4);
        config.versions = VersionSet::only(self.version);
        let switch = network.add_switch(Switch::new(config));
        for (number, address) in (1..).zip(ADDRESSES) {
            let host = Host::new(host_mac(number), address.to_bits());
            network.add_host(host, Point { switch, port: number.into() });
        }
        let runner = Runner::new(network).dial(SWITCH, Address::tcp(controller));
        self.running = Some(runner.start()?);
        Ok(())
    }

    fn ping(
        &mut self,
        from: usize,
        to: usize,
        patience: Duration,
    ) -> anyhow::Result<Option<Duration>> {
        self.sequence = self.sequence.wrapping_add(1);
        let [there, back] = [(from, to), (to, from)].map(|(a, b)| path(a, b));
        let request = there.icmp_echo(false, 1, self.sequence, b"weir demo");
        let reply = back.icmp_echo(true, 1, self.sequence, b"weir demo");
        let started = std::time::Instant::now();
        let running = self.running()?;
        running.call(move |network, now| network.inject(now, HostIndex(from), &request))?;
        let has_answer = move |network: &mut emulate::Network| {
            network.host(HostIndex(from)).is_some_and(|host| host.received().any(|it| it == reply))
        };
        let answered = running.wait_for("an answer", patience, has_answer).is_ok();
        Ok(answered.then(|| started.elapsed()))
    }

    fn rules(&self) -> anyhow::Result<Vec<String>> {
        let list = |network: &mut emulate::Network, _| -> Vec<String> {
            let flows = network.switch(SWITCH).into_iter().flat_map(Switch::flows);
            flows
                .map(|(table, flow)| {
                    format!("table={table}, priority={},{}", flow.priority, flow.match_)
                })
                .collect()
        };
        Ok(self.running()?.call(list)?)
    }
}

fn path(from: usize, to: usize) -> Path {
    let mac = |host: usize| host_mac(u16::try_from(host + 1).unwrap_or(u16::MAX));
    let ip = |host: usize| ADDRESSES.get(host).map_or(0, |address| address.to_bits());
    Path { eth_src: mac(from), eth_dst: mac(to), ip_src: ip(from), ip_dst: ip(to) }
}

#[cfg(test)]
mod tests {
    use super::without_cookie;

    #[test]
    fn cookies_are_removed_from_the_text_of_rules() {
        for (line, expected) in [
            (" cookie=0x1, priority=5,in_port=1 actions=drop", "priority=5,in_port=1 actions=drop"),
            (" priority=5 actions=drop", "priority=5 actions=drop"),
            ("", ""),
        ] {
            assert_eq!(without_cookie(line), expected);
        }
    }
}
