//! The hypervisor's own entries on 1.0: what passes through for networks, or is not let in by a port, and nobody's rules
//! are asked.

use super::egress;
use super::network::{ASK, addresses};
use crate::cookie::Installation;
use crate::network::{Admits, Network, at_hop};
use crate::switch::{Own, OwnChange, Switch};
use crate::tally::Counted;
use crate::v13::own::EXCHANGED;
use alloc::vec::Vec;
use fabric::PortNumber;
use fabric::embedding::{Exit, SwitchMap, Transit};
use flowspace::{Match, port_to_v10};
use openflow::List;
use openflow::v10::{Action, FlowMod, FlowModCommand, FlowModFlags, PortNo};

/// Above whatever a tenant may say of its own packets; no tenant's entry meets these.
const TAGGED: u16 = u16::MAX;
/// Above a tenant's entries for the same packets, but for those of this very priority, which are not written for a port
/// that lets nothing in.
const CLOSED: u16 = u16::MAX;

impl Switch {
    /// What the table has to hold beside the tenants' entries.
    pub(crate) fn wanted_own_v10(&self) -> Vec<Own> {
        let Some(map) = self.policy.maps.get(&self.dpid) else { return Vec::new() };
        let passing = map.transit.iter().flat_map(|transit| {
            let counted = transit.leaves_by.and_then(|leaves_by| self.counted_transit(leaves_by));
            passed(map, transit).into_iter().map(move |own| counting(own, transit, counted))
        });
        let networks = || {
            let networks = self.tenants.iter();
            networks.filter_map(|tenant| Some((tenant.id, tenant.network.as_deref()?)))
        };
        let closed = networks()
            .flat_map(|(_, network)| network.entries().flat_map(|port| closed(network, port)));
        let leaving = networks().flat_map(|(id, network)| egress::entries(id, network));
        passing.chain(closed).chain(leaving).collect()
    }
}

/// The entry, for whose port it counts what it sends, if it does not ask the hypervisor.
fn counting(own: Own, transit: &Transit, counted: Option<Counted>) -> Own {
    let mut asking = Vec::new();
    ASK.write(&mut asking);
    let counted = counted.filter(|_| own.actions != asking);
    // The link's tag was in the place of another.
    let is_as_long = counted.is_some() && transit.vlan.is_some();
    Own { counted, priority: if is_as_long { EXCHANGED } else { own.priority }, ..own }
}

/// What passes something on: one entry, or for packets with physical addresses, which get their own back, one for each that
/// they may bear; if those are too many, one that asks the hypervisor.
fn passed(map: &SwitchMap, transit: &Transit) -> Vec<Own> {
    let (port, actions) = match transit.to {
        Exit::Next(hop) => (hop.port, Vec::from([Action::SetVlanVid(hop.tag.get())])),
        Exit::Edge(port) => {
            let own = transit.vlan.map_or(Action::StripVlan, Action::SetVlanVid);
            (port, Vec::from([own]))
        }
        Exit::Restored(port, tenant, mapped) => {
            let by = map.members.get(&tenant).and_then(|member| member.addresses.as_ref());
            if by.is_some_and(|by| !by.is_restored_by_entries(mapped)) {
                let mut actions = Vec::new();
                ASK.write(&mut actions);
                let match_ = at_hop(&transit.from);
                return Vec::from([Own {
                    table: 0,
                    match_,
                    priority: TAGGED,
                    actions,
                    counted: None,
                }]);
            }
            let all = by.into_iter().flat_map(|by| addresses::restorations(by, mapped));
            let restored = all.filter_map(|(borne, mut actions)| {
                actions.push(Action::StripVlan);
                pass(transit, port, at_hop(&transit.from).intersect(&borne)?, &actions)
            });
            return restored.collect();
        }
    };
    pass(transit, port, at_hop(&transit.from), &actions).into_iter().collect()
}

/// One entry: by that port, with these changes. `None` for a port that 1.0 cannot say.
fn pass(
    transit: &Transit,
    port: PortNumber,
    match_: Match,
    changes: &[Action<'static>],
) -> Option<Own> {
    let mut actions = Vec::new();
    changes.iter().for_each(|change| change.write(&mut actions));
    let port = match port == transit.from.port {
        true => PortNo::IN_PORT,
        false => PortNo(port_to_v10(port.get())?),
    };
    Action::Output { port, max_len: 0 }.write(&mut actions);
    Some(Own { table: 0, match_, priority: TAGGED, actions, counted: None })
}

/// What drops the packets that come to a port which lets nothing in.
pub(crate) fn closed(network: &Network, port: u32) -> Vec<Own> {
    if network.admits(port) != Admits::Nothing {
        return Vec::new();
    }
    let own =
        |match_| Own { table: 0, match_, priority: CLOSED, actions: Vec::new(), counted: None };
    network.arrivals(port).into_iter().map(|arrival| own(arrival.looks)).collect()
}

/// Appends the FLOW_MOD that adds or removes an entry. False for a match that 1.0 cannot say.
pub(crate) fn write_entry(
    own: &Own,
    by: Installation,
    change: OwnChange,
    out: &mut Vec<u8>,
) -> bool {
    let Ok(match_) = own.match_.to_v10() else { return false };
    let (command, actions) = match change {
        OwnChange::Add | OwnChange::Replace => {
            (FlowModCommand::ADD, List::parse(&own.actions).unwrap_or_default())
        }
        OwnChange::Remove => (FlowModCommand::DELETE_STRICT, List::EMPTY),
    };
    let is_told = own.actions.is_empty() || own.counted.is_some();
    FlowMod {
        match_,
        cookie: own.cookie(by),
        // Where there is more than one table, Open vSwitch has been told that it is named here.
        command: FlowModCommand(u16::from(own.table) << 8 | command.0),
        priority: own.priority,
        // What is dropped has come in: the switch is to tell how much that was.
        flags: if is_told { FlowModFlags::SEND_FLOW_REM } else { FlowModFlags(0) },
        actions,
        ..FlowMod::default()
    }
    .write_message(0, out)
    .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use core::net::Ipv4Addr;
    use fabric::embedding::{AddressMap, Hop, Mapped, Member, Tag};
    use fabric::{Dpid, TenantId};
    use openflow::v10::Message;

    /// By that it is known again after a new connection.
    #[test]
    fn what_restores_addresses_is_read_back_as_it_was_written() {
        let hosts = [1, 2].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let (own, physical) = ("10.0.0.0/24".parse().unwrap(), "172.16.5.0/24".parse().unwrap());
        let addresses = AddressMap::new(own, physical, hosts);
        let (datapath, ports) = (Dpid(1), BTreeMap::new());
        let member = Member { datapath, name: String::new(), ports, shared_with: true, addresses };
        let members = BTreeMap::from([(TenantId(1), member)]);
        let map = SwitchMap { members, transit: Vec::new() };
        let port = |number| PortNumber::new(number).unwrap();
        let from = Hop { port: port(1), tag: Tag::new(2000).unwrap() };
        for (mapped, count) in [(Mapped::Source, 2), (Mapped::Destination, 2), (Mapped::Both, 4)] {
            let to = Exit::Restored(port(2), TenantId(1), mapped);
            let entries = passed(&map, &Transit { from, to, vlan: None, leaves_by: None });
            assert_eq!(entries.len(), count, "{mapped:?}");
            for entry in entries {
                let mut wire = Vec::new();
                assert!(write_entry(&entry, Installation::default(), OwnChange::Add, &mut wire));
                let Ok((_, Message::FlowMod(flow_mod))) = Message::parse(&wire) else {
                    panic!("no FLOW_MOD");
                };
                assert_eq!(Match::from_v10(&flow_mod.match_), entry.match_);
                assert_eq!(flow_mod.actions.as_bytes(), entry.actions);
            }
        }
    }
}
