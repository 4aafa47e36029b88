//! The hypervisor's own entries on 1.0: what passes through for networks, or is not let in by a port, and nobody's rules
//! are asked.

use crate::cookie::Installation;
use crate::network::{Network, at_hop};
use crate::switch::{Own, OwnChange, Switch};
use alloc::vec::Vec;
use fabric::embedding::{Exit, Transit};
use flowspace::port_to_v10;
use openflow::List;
use openflow::v10::{Action, FlowMod, FlowModCommand, PortNo};

/// Above whatever a tenant may say of its own packets; no tenant's entry meets these.
const TAGGED: u16 = u16::MAX;
/// Above a tenant's entries for the same packets, but for those of this very priority, which are not written for a port
/// that lets nothing in.
const CLOSED: u16 = u16::MAX;

impl Switch {
    /// What the table has to hold beside the tenants' entries.
    pub(crate) fn wanted_own_v10(&self) -> Vec<Own> {
        let Some(map) = self.policy.maps.get(&self.dpid) else { return Vec::new() };
        let passing = map.transit.iter().filter_map(passed);
        let networks = || {
            let networks = self.tenants.iter();
            networks.filter_map(|tenant| Some((tenant.id, tenant.network.as_deref()?)))
        };
        let closed = networks()
            .flat_map(|(_, network)| network.entries().flat_map(|port| closed(network, port)));
        passing.chain(closed).collect()
    }
}

/// What passes something on. `None` for a port that 1.0 cannot say.
fn passed(transit: &Transit) -> Option<Own> {
    let (port, change) = match transit.to {
        Exit::Next(hop) => (hop.port, Action::SetVlanVid(hop.tag.get())),
        Exit::Edge(port) => (port, Action::StripVlan),
    };
    let mut actions = Vec::new();
    change.write(&mut actions);
    let port_no = match port == transit.from.port {
        true => PortNo::IN_PORT,
        false => PortNo(port_to_v10(port.get())?),
    };
    Action::Output { port: port_no, max_len: 0 }.write(&mut actions);
    let match_ = at_hop(&transit.from);
    Some(Own { table: 0, match_, priority: TAGGED, actions, counted: None })
}

/// What drops the packets that come to a port which lets nothing in.
pub(crate) fn closed(network: &Network, port: u32) -> Vec<Own> {
    if network.admits(port) {
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
        OwnChange::Add => (FlowModCommand::ADD, List::parse(&own.actions).unwrap_or_default()),
        OwnChange::Remove => (FlowModCommand::DELETE_STRICT, List::EMPTY),
    };
    FlowMod {
        match_,
        cookie: own.cookie(by),
        command,
        priority: own.priority,
        actions,
        ..FlowMod::default()
    }
    .write_message(0, out)
    .is_ok()
}
