//! The switch's last table, the hypervisor's own for networks: it delivers to the hosts behind shared edge ports what entries
//! send there that do not say for which host packets are.
//!
//! Tenants' entries name in the bits of the metadata that were the tenant's own by which port the packet is to leave, or that
//! it is to leave by all shared ones, and send it here ([`super::network`], `deferred`). What is for one of the tenant's
//! hosts there goes to it, what is for many goes to each, and all else ends here.
//!
//! ```text
//!   priority   metadata              in_port   eth_dst      does
//!   HERE       tenant, name          any       a host's     OUTPUT
//!              tenant, name          any       multicast    for each host: its address, OUTPUT
//!   BACK       tenant, port, name    one       as above     the same but for hosts at that port; IN_PORT where that leads back
//! ```
//! On a big switch a host may be behind a port of another member: then OUTPUT is with the tag of the tunnel to that port, by
//! which it leaves there without asking anybody.
//!
//! The entries of BACK are for packets that came by one of several of the tenant's ports on the same port of the switch, and at
//! that, which sends nothing back there unless it is told IN_PORT. Entries are made for each name, whatever the tenant has in its tables: so they follow
//! the map and the ports' configuration as table 0 does, and no change of a tenant's has to wait for one. There are no more of
//! them for other tenants' hosts.

use super::network::wires::Marking;
use super::{METADATA_OWN, METADATA_PORT, METADATA_TENANT, metadata_at, metadata_of, network};
use crate::network::{Entrance, MULTICAST, Network, at_port, from_16_bits, in_16_bits, number_of};
use crate::policy::TenantId;
use crate::switch::{Own, Switch};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::MacAddress;
use flowspace::{Field, Match};
use openflow::List;
use openflow::v13::{Instruction, OxmField, PortNo};

/// Wherever packets came from.
const HERE: u16 = 1;
/// Packets that may have to go back by the switch's port that they came by.
const BACK: u16 = 2;
/// All shared ports, in the metadata: above all numbers of ports.
const ALL: u64 = 1 << 16;

/// Which shared edge ports packets are to leave by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Port(u32),
    All,
}

impl Name {
    /// How it is written to the metadata, with the mask.
    pub(crate) fn to_metadata(self) -> (u64, u64) {
        let value = match self {
            Name::Port(number) => in_16_bits(number).map_or(0, u64::from),
            Name::All => ALL,
        };
        (value, METADATA_OWN)
    }

    fn from_metadata(metadata: u64) -> Name {
        match metadata & METADATA_OWN {
            ALL => Name::All,
            number => Name::Port(from_16_bits(number as u16)),
        }
    }

    /// The ports, as far as packets can leave by them.
    pub(crate) fn ports(self, network: &Network) -> Vec<u32> {
        let is_meant = |number: &u32| self == Name::All || self == Name::Port(*number);
        let is_open = |number: &u32| network.way_back(*number).is_some();
        network.shared_edges().filter(is_meant).filter(is_open).collect()
    }
}

impl Switch {
    /// What the last table has to hold for a tenant.
    pub(crate) fn add_deliveries(&self, id: TenantId, network: &Network, wanted: &mut Vec<Own>) {
        let Some(table) = self.delivery_table() else { return };
        let ports = Name::All.ports(network);
        let all = (ports.len() > 1).then_some(Name::All);
        for name in ports.into_iter().map(Name::Port).chain(all) {
            let ports = name.ports(network);
            let mut deliveries = Deliveries { table, id, network, name, wanted: &mut *wanted };
            deliveries.add(&ports, None, HERE);
            let beside: BTreeSet<Entrance> =
                ports.iter().flat_map(|port| network.entrances_beside(*port)).collect();
            for entry in beside {
                deliveries.add(&ports, Some(entry), BACK);
            }
        }
    }
}

/// Entries for one name.
struct Deliveries<'a> {
    table: u8,
    id: TenantId,
    network: &'a Network,
    name: Name,
    wanted: &'a mut Vec<Own>,
}

impl Deliveries<'_> {
    /// Those that send to the hosts behind these ports, but for the one by which packets came.
    fn add(&mut self, ports: &[u32], came: Option<Entrance>, priority: u16) {
        let mut hosts: BTreeMap<MacAddress, Vec<u8>> = BTreeMap::new();
        for &number in ports.iter().filter(|port| came.map(|it| it.port) != Some(**port)) {
            let Some(way) = self.network.way_back(number) else { continue };
            let is_back = came.is_some_and(|came| came.at == way.port);
            let port = if is_back { PortNo::IN_PORT } else { PortNo(way.port) };
            for host in way.hosts {
                Marking::stacked(way.wire).send_to(port, hosts.entry(*host).or_default());
            }
        }
        let mut to_each = Vec::new();
        for (host, sends) in hosts {
            let address = number_of(host);
            let is_for = |match_: Match| match_.with(Field::DlDst, address);
            self.entry(came, priority, is_for, &sends);
            network::set(OxmField::ETH_DST, address, &mut to_each);
            to_each.extend(sends);
        }
        if !to_each.is_empty() {
            let is_for = |match_: Match| match_.with_masked(Field::DlDst, MULTICAST, MULTICAST);
            self.entry(came, priority, is_for, &to_each);
        }
    }

    fn entry(
        &mut self,
        came: Option<Entrance>,
        priority: u16,
        is_for: impl Fn(Match) -> Match,
        actions: &[u8],
    ) {
        let (name, named) = self.name.to_metadata();
        let (own, mask) = match came {
            Some(came) => (metadata_at(self.id, came.port), METADATA_PORT),
            None => (metadata_of(self.id), METADATA_TENANT),
        };
        let metadata = (u128::from(own | name), u128::from(mask | named));
        let here = came.map_or(Match::ANY, |came| at_port(came.at));
        let match_ = is_for(here.with_masked(Field::Metadata, metadata.0, metadata.1));
        let mut instructions = Vec::new();
        Instruction::ApplyActions(List::parse(actions).unwrap_or_default())
            .write(&mut instructions);
        let (table, actions) = (self.table, instructions);
        self.wanted.push(Own { table, match_, priority, actions, counted: None });
    }
}

/// For whose packets an entry of this table is, and which ports they name.
pub(crate) fn named_by(own: &Own) -> Option<(TenantId, Name)> {
    let metadata = own.match_.get(Field::Metadata).0 as u64;
    (own.table > 0).then(|| (TenantId((metadata >> 48) as u16), Name::from_metadata(metadata)))
}
