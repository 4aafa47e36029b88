//! `[labels]`, and the keys of tenants for labels and virtual interfaces.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use fabric::{Bandwidth, MacAddress, PortId};
use hypervisor::policy::LabelForm;

use super::agents::Agents;
use super::diagnostic::Position;
use super::reader::{Table, Value};
use super::topology::bandwidth;

/// The most virtual interfaces of one tenant: flows between all pairs may have to be followed.
const MOST_VNICS: usize = 1024;
/// The most addresses of a virtual interface: packets between all pairs of two interfaces' addresses are followed
/// separately.
const MOST_ADDRESSES: usize = 4;

/// `[labels]`: when and how exactly all tenants get link labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// A smaller change is not sent. Default 1 kbit/s.
    pub hysteresis: Bandwidth,
    /// The shortest time between two labels of the same link. Default 100 ms.
    pub minimum_interval: Duration,
    /// Labels are rounded down to multiples of this value. Default 0: exact.
    pub step: Bandwidth,
    /// The largest noise of a label before rounding. Default 0.
    pub noise: Bandwidth,
    /// A label changes at most once in each period of this length, at an instant that does not depend on any load.
    /// Default 0: whenever the load changes.
    pub hold: Duration,
    /// The most labels per second for one tenant, all links together. Default 100.
    pub notices: u32,
}

impl Default for Labels {
    fn default() -> Labels {
        Labels {
            hysteresis: Bandwidth::from_kilobits_per_second(1),
            minimum_interval: Duration::from_millis(100),
            step: Bandwidth::ZERO,
            noise: Bandwidth::ZERO,
            hold: Duration::ZERO,
            notices: 100,
        }
    }
}

/// How Weir sends labels to a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelPolicy {
    /// REST and server-sent events only.
    Rest,
    /// Also on the tenant's OpenFlow connections.
    OpenFlow(LabelForm),
}

/// One `[[tenants.vnics]]`: a virtual interface and the bandwidth that was bought for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vnic {
    /// The place in the file.
    pub at: Position,
    /// The port by which the interface's packets enter and leave.
    pub port: PortId,
    /// The hardware address.
    pub mac: MacAddress,
    /// The IPv4 and IPv6 addresses, each once; empty if unknown.
    pub ip: Vec<IpAddr>,
    /// The VLAN of the packets where they enter; 0: untagged.
    pub vlan: Option<u16>,
    /// The bandwidth that the interface may send and receive.
    pub bandwidth: Bandwidth,
    /// The agent that measures the interface, if any.
    pub agent: Option<String>,
}

pub(super) fn read(table: &mut Table<'_, '_>) -> Labels {
    let default = Labels::default();
    let any = |value: &Value<'_, '_>| value.parsed::<Bandwidth>();
    let longest = Duration::from_secs(3600);
    let interval = table.get("minimum_interval", |v| v.duration(Duration::ZERO..=longest));
    Labels {
        hysteresis: table.get("hysteresis", any).unwrap_or(default.hysteresis),
        minimum_interval: interval.unwrap_or(default.minimum_interval),
        step: table.get("step", any).unwrap_or(default.step),
        noise: table.get("noise", any).unwrap_or(default.noise),
        hold: table
            .get("hold", |value| value.duration(Duration::ZERO..=longest))
            .unwrap_or(default.hold),
        notices: table
            .get("notices", |value| value.integer(1..=100_000))
            .unwrap_or(default.notices),
    }
}

pub(super) fn policy(value: &Value<'_, '_>) -> Option<LabelPolicy> {
    value.choice(&[
        ("of10", LabelPolicy::OpenFlow(LabelForm::OpenFlow10)),
        ("of13", LabelPolicy::OpenFlow(LabelForm::OpenFlow13)),
        ("experimenter", LabelPolicy::OpenFlow(LabelForm::Experimenter)),
        ("rest", LabelPolicy::Rest),
    ])
}

/// Reads tenants' virtual interfaces.
pub(super) struct Vnics<'a> {
    has_agents: bool,
    agents: Option<&'a Agents>,
    macs: BTreeMap<MacAddress, Position>,
}

impl<'a> Vnics<'a> {
    /// `agents`: also `None` if the section has errors.
    pub(super) fn new(has_agents: bool, agents: Option<&'a Agents>) -> Vnics<'a> {
        Vnics { has_agents, agents, macs: BTreeMap::new() }
    }

    /// Reads the virtual interfaces of one tenant.
    pub(super) fn read(&mut self, value: &Value<'_, '_>) -> Option<Vec<Vnic>> {
        if !self.has_agents {
            // Agents distinguish interfaces by their addresses alone; without agents, each tenant has its own
            // addresses.
            self.macs.clear();
        }
        let vnics = value.tables(|table| vnic(table, self))?;
        if vnics.len() > MOST_VNICS {
            return value.refuse(format!("more than {MOST_VNICS} virtual interfaces"), None);
        }
        Some(vnics)
    }

    fn agent(&self, value: &Value<'_, '_>) -> Option<String> {
        let name = value.string()?;
        match self.agents {
            Some(agents) if !agents.servers.iter().any(|server| server == name) => {
                let help = format!("[agents] servers has {}", agents.servers.join(", "));
                value.refuse(format!("there is no agent \"{name}\""), Some(help))
            }
            None if !self.has_agents => value.refuse("there is no section [agents]", None),
            _ => Some(name.to_owned()),
        }
    }

    /// The only agent, which measures all interfaces.
    fn only_agent(&self) -> Option<String> {
        match self.agents?.servers.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }
}

fn vnic(table: &mut Table<'_, '_>, all: &mut Vnics<'_>) -> Option<Vnic> {
    let port = table.require("port", "\"00:00:00:00:00:00:00:01 port 1\"", Value::parsed::<PortId>);
    let mac = table.require("mac", "\"02:00:00:00:00:01\"", |value| {
        let mac = value.parsed::<MacAddress>()?;
        if let Some(first) = all.macs.get(&mac) {
            let help = format!("it stands in line {} already", first.line);
            return value
                .refuse(format!("two virtual interfaces have the address {mac}"), Some(help));
        }
        all.macs.insert(mac, value.position());
        Some(mac)
    });
    let bandwidth = table.require("bandwidth", "\"1Gbit\"", bandwidth);
    let ip = table.get("ip", addresses).unwrap_or_default();
    let vlan = table.get("vlan", |value| value.integer(0..=4094));
    let agent = table.get("agent", |value| all.agent(value)).or_else(|| all.only_agent());
    let at = table.position();
    Some(Vnic { at, port: port?, mac: mac?, ip, vlan, bandwidth: bandwidth?, agent })
}

/// One address, or a list of some.
fn addresses(value: &Value<'_, '_>) -> Option<Vec<IpAddr>> {
    let mut known: Vec<IpAddr> = Vec::new();
    let all = value.one_or_list(|value| {
        let address = value.parsed::<IpAddr>()?;
        if known.contains(&address) {
            return value.refuse(format!("the address {address} stands here twice"), None);
        }
        // An address that no interface can have is a typing error.
        if address.is_unspecified() || address.is_multicast() {
            return value.refuse(format!("{address} is no host's address"), None);
        }
        known.push(address);
        Some(())
    })?;
    if all.len() > MOST_ADDRESSES {
        let message = format!("more than {MOST_ADDRESSES} addresses of a virtual interface");
        return value.refuse(message, None);
    }
    if value.is_empty_list() {
        let help = "leave it out if the addresses are not known".to_owned();
        return value.refuse("no address", Some(help));
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[test]
    fn label_settings_and_virtual_interfaces_are_read() {
        let text = "[labels]\nhysteresis = \"1Mbit\"\nhold = \"30s\"\nnotices = 7\n[[tenants]]\nname = \"red\"\nlabels = \"of13\"\n\
                    [[tenants.vnics]]\nport = \"1 port 1\"\nmac = \"02:00:00:00:00:01\"\nip = \"10.0.0.1\"\n\
                    vlan = 7\nbandwidth = \"8Mbit\"";
        let config = Config::parse("weir.toml", text).unwrap();
        assert_eq!(config.labels.hysteresis, Bandwidth::from_megabits_per_second(1));
        assert_eq!(config.labels.hold, Duration::from_secs(30));
        assert_eq!((config.labels.notices, config.labels.step), (7, Bandwidth::ZERO));
        let tenant = &config.tenants[0];
        assert_eq!(tenant.labels, Some(LabelPolicy::OpenFlow(LabelForm::OpenFlow13)));
        assert_eq!(tenant.vnics[0].ip, ["10.0.0.1".parse::<IpAddr>().unwrap()]);
        let text = text.replace("\"10.0.0.1\"", "[\"10.0.0.1\", \"fd00::1\", \"fe80::ff:fe00:1\"]");
        let config = Config::parse("weir.toml", &text).unwrap();
        let addresses: Vec<String> =
            config.tenants[0].vnics[0].ip.iter().map(IpAddr::to_string).collect();
        assert_eq!(addresses, ["10.0.0.1", "fd00::1", "fe80::ff:fe00:1"]);
        assert_eq!((tenant.vnics[0].vlan, tenant.vnics.len()), (Some(7), 1));
    }

    #[test]
    fn errors_in_label_settings_and_virtual_interfaces_are_reported() {
        let vnic = "port = \"1 port 1\"\nmac = \"02:00:00:00:00:01\"\nbandwidth = \"1Mbit\"\n";
        let twice = format!("{vnic}[[tenants.vnics]]\n{vnic}");
        for (text, message) in [
            ("labels = \"of12\"".to_owned(), "unknown value \"of12\""),
            (
                format!("[[tenants.vnics]]\n{}", vnic.replace("1Mbit", "0bit")),
                "a bandwidth of nothing",
            ),
            (
                format!("[[tenants.vnics]]\n{}", vnic.replace("02:", "03:")),
                "expected a host's MAC address",
            ),
            (format!("[[tenants.vnics]]\n{vnic}vlan = 4095"), "4095 is out of range"),
            (format!("[[tenants.vnics]]\n{vnic}ip = \"10\""), "invalid IP address"),
            (format!("[[tenants.vnics]]\n{vnic}ip = \"fd00::1/64\""), "invalid IP address"),
            (format!("[[tenants.vnics]]\n{vnic}ip = []"), "no address"),
            (format!("[[tenants.vnics]]\n{vnic}ip = [\"fd00::1\", 7]"), "expected a string"),
            (format!("[[tenants.vnics]]\n{vnic}ip = \"ff02::1\""), "no host's address"),
            (format!("[[tenants.vnics]]\n{vnic}ip = [\"::1\", \"0::1\"]"), "stands here twice"),
            (
                format!(
                    "[[tenants.vnics]]\n{vnic}ip = [\"fd00::1\", \"fd00::2\", \"fd00::3\", \"fd00::4\", \"10.0.0.1\"]"
                ),
                "more than 4 addresses",
            ),
            (format!("[[tenants.vnics]]\n{twice}"), "two virtual interfaces have the address"),
        ] {
            let text = format!("[[tenants]]\nname = \"red\"\n{text}");
            let errors = Config::parse("weir.toml", &text).unwrap_err();
            assert!(errors.iter().any(|error| error.message.contains(message)), "{text}: {errors}");
        }
    }
}
