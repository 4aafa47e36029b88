//! The connections of a measurement: versions, topologies, the separation of tenants, the emulated switch.
//!
//! This module has plain data that can be written in a scenario file, and opens no socket. [`crate::load`] has the
//! senders, messages and times.

use crate::error::{Error, setting};
use crate::kind::{Kind, MAX_STREAMS};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The OpenFlow version that both ends speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// Wire version 0x01.
    #[default]
    #[serde(rename = "1.0")]
    V1_0,
    /// Wire version 0x04.
    #[serde(rename = "1.3")]
    V1_3,
}

impl Version {
    /// The same version, for the codec.
    pub(crate) const fn openflow(self) -> openflow::Version {
        match self {
            Self::V1_0 => openflow::Version::V1_0,
            Self::V1_3 => openflow::Version::V1_3,
        }
    }

    /// The version byte of every message.
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::V1_0 => 1,
            Self::V1_3 => 4,
        }
    }
}

/// The system between the emulated switches and the emulated controllers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// No system: every tenant has its own switch, which dials the tenant's controller.
    #[default]
    Direct,
    /// A relay: tenant *i*'s own switch dials address *i*, and the relay connects the switch to the tenant's
    /// controller.
    PerTenant {
        /// One address per tenant.
        switch_addresses: Vec<SocketAddr>,
    },
    /// A hypervisor: all tenants share the switches.
    Shared {
        /// The address that the switches dial.
        switch_address: SocketAddr,
        /// The number of switches.
        switches: usize,
    },
    /// A real switch, or a hypervisor with real switches. The switch or hypervisor dials the controllers, and the data
    /// plane is at the far ends of the switch's ports.
    Interfaces {
        /// The ports. Tenants use the ports in turn.
        ports: Vec<DataPort>,
        /// The number of switches with which each tenant's controller has a session.
        switches: usize,
        /// The first switch's datapath id.
        #[serde(default = "one_dpid")]
        dpid: u64,
    },
    /// A real controller: every "tenant" is a separate switch that dials the controller, and there are no emulated
    /// controllers.
    Controller {
        /// The address of the controller.
        address: SocketAddr,
    },
}

/// A port of a real switch, seen from the other end of its cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataPort {
    /// The interface at the far end.
    pub interface: String,
    /// The name of the interface's network namespace; absent: this process's namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The port's number at the switch.
    pub switch_port: u16,
}

/// The field that separates the tenants' packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Slicing {
    /// The source address: 10.*i*.0.0/16 for up to 255 tenants, else 10.*x*.*y*.0/24, from 10.1.
    #[default]
    SourcePrefix,
    /// The VLAN id: 1 for the first tenant, and so on.
    Vlan,
    /// The switch port: 1 for the first tenant, and so on.
    InPort,
}

impl Slicing {
    /// The source network of tenant `index` (counted from 0) of `tenants`: address and prefix length.
    #[must_use]
    pub fn source_network(index: usize, tenants: usize) -> ([u8; 4], u8) {
        let number = index + 1;
        let byte = |n: usize| (n & 0xff) as u8;
        if tenants <= 255 {
            ([10, byte(number), 0, 0], 16)
        } else {
            ([10, byte(number >> 8), byte(number), 0], 24)
        }
    }

    /// The match, in ovs-ofctl syntax, that bounds tenant `index` of `tenants`.
    #[must_use]
    pub fn flowspace(self, index: usize, tenants: usize) -> String {
        match self {
            Self::SourcePrefix => {
                let ([a, b, c, d], length) = Self::source_network(index, tenants);
                format!("ip,nw_src={a}.{b}.{c}.{d}/{length}")
            }
            Self::Vlan => format!("dl_vlan={}", index + 1),
            Self::InPort => format!("in_port={}", index + 1),
        }
    }
}

/// The emulated switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchModel {
    /// The service time of each received message in ns. The switch serves one message after the other. 0 means no
    /// service time.
    pub service_ns: u64,
    /// The number of messages in one batch. The switch takes waiting messages only at the end of the time for a whole
    /// batch. 0 and 1 mean one message at a time.
    pub batch: u32,
    /// The number of tokens in a full bucket. Each message takes a token, and a token comes back in each service time,
    /// so this number of messages is done at once after an idle time. 0 means no bucket. `batch` does not apply then.
    pub bucket: u32,
    /// The delay of the switch's work or of its answers.
    pub delay: Delay,
    /// The number of received messages that may wait for service before the switch stops reading; 0 is 64.
    pub queue: usize,
    /// The number of ports; 0 is 4, or one per tenant if ports separate tenants.
    pub ports: usize,
    /// Whether each [`Kind::PortStats`] requests another port in turn, not all ports. A hypervisor then cannot answer
    /// several requests with one request to the switch.
    pub ports_in_turn: bool,
    /// Whether the switch has a real flow table, which [`Kind::FlowModPacket`] needs. Without a flow table FLOW_MODs
    /// have no effect.
    pub table: bool,
    /// With a table: the time from the arrival of a FLOW_MOD until the FLOW_MOD takes effect, independent of barrier
    /// replies.
    pub lies_ns: u64,
    /// Whether each tenant needs two ports: the tenant's rules forward from one port to the other.
    pub pairs: bool,
    /// The number of host addresses that the packets of [`Kind::Response`] use in turn; 0 is 100.
    pub macs: u32,
    /// The number of entries of each table: the switch reports this number, and refuses more. 0: a number that is never
    /// reached.
    pub entries: u32,
}

/// A delay of a slow switch's work or of its answers, or a false answer. The times are in `crate::service`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// There is no delay: each message is answered at the end of its service time.
    #[default]
    None,
    /// The host of the switch stops for 5 ms every 200 ms.
    Stalls,
    /// Each answer is 50 to 150 µs late, independent of waiting messages.
    Late,
    /// The round trip to the switch takes 10 ms.
    Far,
    /// The switch is ten times as fast in every other half second.
    ChangesSpeed,
    /// The switch answers barriers at once, before the work is done.
    EarlyBarriers,
}

impl SwitchModel {
    /// The same switch with a flow table and two ports for each tenant, if one of these kinds needs a table or two
    /// ports.
    #[must_use]
    pub fn for_kinds(&self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        let needed = kinds.into_iter().any(|kind| kind == Kind::FlowModPacket);
        Self { table: self.table || needed, pairs: self.pairs || needed, ..self.clone() }
    }
}

/// A TLS identity: PEM files, as in `ovs-vsctl set-ssl KEY CERT CA`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The private key.
    pub private_key: PathBuf,
    /// The certificate.
    pub certificate: PathBuf,
    /// The authority that signs the peers' certificates.
    pub ca: PathBuf,
}

/// The sides that use TLS, with their identities.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSides {
    /// The emulated switches' identity; absent: the switches use plain TCP.
    pub switches: Option<Identity>,
    /// The emulated controllers' identity; absent: the controllers use plain TCP.
    pub controllers: Option<Identity>,
    /// The identity, towards both sides, of a system under test that this crate starts.
    pub system: Option<Identity>,
}

impl TlsSides {
    /// Whether any side uses TLS.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.switches.is_some() || self.controllers.is_some()
    }
}

/// The connections of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// The OpenFlow version.
    #[serde(default)]
    pub version: Version,
    /// The system between switches and controllers.
    #[serde(default)]
    pub topology: Topology,
    /// The number of tenants.
    pub tenants: usize,
    /// The field that separates the tenants' packets.
    #[serde(default)]
    pub slicing: Slicing,
    /// The emulated switches.
    #[serde(default)]
    pub switch: SwitchModel,
    /// The number of ports that belong to each tenant alone; 0: tenants use all ports in turn.
    #[serde(default)]
    pub own_ports: usize,
    /// Whether only the first switch has slices. A stranger that emulates a switch has no slices.
    #[serde(default)]
    pub bound_to_switch: bool,
    /// Whether the generator's sockets have TCP_NODELAY (ND); without TCP_NODELAY the mode is AGG.
    #[serde(default = "yes")]
    pub nodelay: bool,
    /// Whether the emulated switches' sockets have TCP_NODELAY; absent: like the other sockets.
    #[serde(default)]
    pub switch_nodelay: Option<bool>,
    /// The sides that use TLS, with their identities.
    #[serde(default)]
    pub tls: TlsSides,
    /// The number of threads. 1: one thread plays both sides, so that with two cores the other core is free for the
    /// system under test. 2: one thread plays the switches, and one thread plays the controllers.
    #[serde(default = "one")]
    pub threads: usize,
    /// With a hypervisor that this crate starts: the number of controllers of each tenant but the first. All
    /// controllers of a tenant have one port, at 127.0.0.1, 127.0.0.2, and so on.
    #[serde(skip, default = "one")]
    pub controllers_each: usize,
    /// With one thread: whether the thread alone uses the first CPU, and a system that this crate starts uses the other
    /// CPUs.
    #[serde(default)]
    pub apart: bool,
    /// With emulated switches: a thread spins and does not sleep if the time in ns until the next message is shorter
    /// than this value.
    #[serde(default = "default_spin_ns")]
    pub spin_ns: u64,
    /// The longest time in ms for all handshakes.
    #[serde(default = "ten_thousand")]
    pub handshake_ms: u64,
}

fn yes() -> bool {
    true
}
fn one() -> usize {
    1
}
fn default_spin_ns() -> u64 {
    30_000
}

fn one_dpid() -> u64 {
    1
}
fn ten_thousand() -> u64 {
    10_000
}

impl Setup {
    /// A setup with the defaults.
    #[must_use]
    pub fn new(topology: Topology, tenants: usize) -> Self {
        Self {
            version: Version::default(),
            topology,
            tenants,
            slicing: Slicing::default(),
            switch: SwitchModel::default(),
            own_ports: 0,
            bound_to_switch: false,
            nodelay: true,
            switch_nodelay: None,
            tls: TlsSides::default(),
            threads: 1,
            controllers_each: 1,
            apart: false,
            spin_ns: default_spin_ns(),
            handshake_ms: ten_thousand(),
        }
    }

    /// The number of switches.
    #[must_use]
    pub fn switches(&self) -> usize {
        match &self.topology {
            Topology::Direct | Topology::PerTenant { .. } | Topology::Controller { .. } => {
                self.tenants
            }
            Topology::Shared { switches, .. } | Topology::Interfaces { switches, .. } => *switches,
        }
    }

    /// The number of ports of each switch.
    #[must_use]
    pub fn ports(&self) -> usize {
        match (self.switch.ports, self.slicing) {
            (0, Slicing::InPort) => self.tenants,
            (0, _) => 4,
            (ports, _) => ports,
        }
    }

    /// The port by which tenant `index`'s packets enter and leave the switch.
    #[must_use]
    pub fn port(&self, index: usize) -> u16 {
        if matches!(self.topology, Topology::Interfaces { .. }) {
            return self.data_port(self.place(index));
        }
        let port = match self.slicing {
            Slicing::InPort => index + 1,
            Slicing::SourcePrefix | Slicing::Vlan => self.place(index) + 1,
        };
        u16::try_from(port).unwrap_or(1)
    }

    /// The place of [`Setup::port`] among all ports, counted from 0.
    #[must_use]
    pub fn place(&self, index: usize) -> usize {
        index.saturating_mul(self.own_ports.max(1)).checked_rem(self.places()).unwrap_or(0)
    }

    /// The place of [`Setup::other_port`] among all ports.
    #[must_use]
    pub fn other_place(&self, index: usize) -> usize {
        (self.place(index) + 1).checked_rem(self.places()).unwrap_or(0)
    }

    fn places(&self) -> usize {
        match &self.topology {
            Topology::Interfaces { ports, .. } => ports.len(),
            _ => self.ports(),
        }
    }

    /// The number of a real switch's port, by its place.
    fn data_port(&self, place: usize) -> u16 {
        match &self.topology {
            Topology::Interfaces { ports, .. } => {
                ports.get(place).map_or(1, |port| port.switch_port)
            }
            _ => 1,
        }
    }

    /// The datapath id of the first switch.
    #[must_use]
    pub fn dpid(&self) -> u64 {
        match self.topology {
            Topology::Interfaces { dpid, .. } => dpid,
            _ => 1,
        }
    }

    /// The highest port number by which packets enter or leave the switch.
    #[must_use]
    pub fn last_port(&self) -> usize {
        match &self.topology {
            Topology::Interfaces { ports, .. } => {
                ports.iter().map(|port| usize::from(port.switch_port)).max().unwrap_or(0)
            }
            _ => self.ports(),
        }
    }

    /// The port to which tenant `index`'s rules send, if this port must differ from [`Setup::port`].
    #[must_use]
    pub fn other_port(&self, index: usize) -> u16 {
        match &self.topology {
            Topology::Interfaces { .. } => self.data_port(self.other_place(index)),
            _ => self.port(index) % self.ports() as u16 + 1,
        }
    }

    /// Checks the setup.
    ///
    /// # Errors
    /// [`Error::Setting`] naming the setting and its range.
    pub fn check(&self) -> Result<(), Error> {
        setting((1..=MAX_STREAMS).contains(&self.tenants), "tenants", self.tenants, "1 to 2,046")?;
        setting((1..=2).contains(&self.threads), "threads", self.threads, "1 or 2")?;
        setting(
            self.ports() <= 1300,
            "ports",
            self.ports(),
            "1 to 1,300, what one FEATURES_REPLY holds",
        )?;
        self.check_tls()?;
        match &self.topology {
            Topology::Direct | Topology::Controller { .. } => Ok(()),
            Topology::PerTenant { switch_addresses: list } => setting(
                list.len() == self.tenants,
                "switch addresses",
                list.len(),
                "one per tenant",
            ),
            Topology::Interfaces { ports, .. } => {
                setting(!ports.is_empty(), "ports", ports.len(), "at least one")
            }
            Topology::Shared { switches, .. } => {
                setting((1..=1000).contains(switches), "switches", switches, "1 to 1,000")
            }
        }
    }

    fn check_tls(&self) -> Result<(), Error> {
        let TlsSides { switches, controllers, system } = &self.tls;
        for identity in [switches, controllers, system].into_iter().flatten() {
            for file in [&identity.private_key, &identity.certificate, &identity.ca] {
                let found = std::fs::metadata(file);
                found.map_err(|error| Error::Tls(format!("{}: {error}", file.display())))?;
            }
        }
        Ok(())
    }

    /// Checks whether the sides that use TLS fit the system between the sides. This check is not a part of
    /// [`Setup::check`], because a system under test may determine the topology only when the system starts.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn check_tls_sides(&self, topology: &Topology) -> Result<(), Error> {
        let sides = (self.tls.switches.is_some(), self.tls.controllers.is_some());
        let (good, range) = match topology {
            // The two sides are connected to each other, directly or through a relay.
            Topology::Direct | Topology::PerTenant { .. } => {
                (sides.0 == sides.1, "both sides or none, where nothing ends TLS between them")
            }
            Topology::Interfaces { .. } => {
                (!sides.0, "the controllers' side only: a real switch has its own identity")
            }
            Topology::Shared { .. } | Topology::Controller { .. } => (true, ""),
        };
        setting(good, "TLS", format!("{} at switches, {} at controllers", sides.0, sides.1), range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tenant_has_a_different_source_prefix() {
        for tenants in [1, 255, 256, 1000] {
            let mut seen: Vec<_> =
                (0..tenants).map(|i| Slicing::source_network(i, tenants)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), tenants);
        }
        assert_eq!(Slicing::SourcePrefix.flowspace(0, 2), "ip,nw_src=10.1.0.0/16");
        assert_eq!(Slicing::SourcePrefix.flowspace(999, 1000), "ip,nw_src=10.3.232.0/24");
    }
}
