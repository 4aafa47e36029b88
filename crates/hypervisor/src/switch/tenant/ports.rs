//! What Weir knows of a tenant's ports, other than the map.

use crate::label::Label;
use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::Network;
use fabric::embedding::Member;
use openflow::v10::PortConfig;

/// See the module.
#[derive(Default)]
pub(crate) struct Ports {
    /// The configuration of the network's ports that the tenant has configured.
    config: BTreeMap<u32, PortConfig>,
    /// Ports of the network that are down, since the switch refuses the rules that bring packets in by these ports
    /// (1.3).
    refused: BTreeSet<u32>,
    /// The last label of each port that has one.
    labels: BTreeMap<u32, Label>,
}

impl Ports {
    /// The tenant's network, made from the tenant's part of the map.
    pub(crate) fn network(&self, member: &Member) -> Network {
        Network::new(&without(member, &self.refused), self.config.clone())
    }

    /// The tenant's network, if one port had this configuration.
    pub(crate) fn network_with(&self, member: &Member, port: u32, config: PortConfig) -> Network {
        let mut configured = self.config.clone();
        set(&mut configured, port, config);
        Network::new(&without(member, &self.refused), configured)
    }

    /// The tenant has configured a port.
    pub(crate) fn configure(&mut self, port: u32, config: PortConfig) {
        set(&mut self.config, port, config);
    }

    /// Whether any port is configured.
    pub(crate) fn is_any_configured(&self) -> bool {
        !self.config.is_empty()
    }

    /// Forgets the configuration of removed ports. Returns the ports whose configuration is forgotten.
    pub(crate) fn keep(&mut self, has_port: impl Fn(u32) -> bool) -> Vec<u32> {
        let gone = self.config.keys().copied().filter(|port| !has_port(*port));
        let gone: Vec<u32> = gone.collect();
        for port in &gone {
            self.config.remove(port);
        }
        gone
    }

    /// From now on a port is down, since the switch refuses its rules. Returns whether the port was not down for that
    /// reason before.
    pub(crate) fn refuse(&mut self, port: u32) -> bool {
        self.refused.insert(port)
    }

    /// Ports that are down since the switch refuses their rules.
    pub(crate) fn refused(&self) -> &BTreeSet<u32> {
        &self.refused
    }

    /// There is a new map: the switch has refused no rule yet.
    pub(crate) fn forget_refused(&mut self) {
        self.refused.clear();
    }

    /// The last label of a port.
    pub(crate) fn label(&self, port: u32) -> Option<Label> {
        self.labels.get(&port).copied()
    }

    /// The last labels of all ports that have one.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (u32, Label)> {
        self.labels.iter().map(|(port, label)| (*port, *label))
    }

    /// A port has a new label.
    pub(crate) fn set_label(&mut self, port: u32, label: Label) {
        self.labels.insert(port, label);
    }
}

fn set(configured: &mut BTreeMap<u32, PortConfig>, port: u32, config: PortConfig) {
    match config.is_empty() {
        true => configured.remove(&port),
        false => configured.insert(port, config),
    };
}

/// A tenant's part of the switch, with these ports down.
fn without<'a>(member: &'a Member, refused: &BTreeSet<u32>) -> Cow<'a, Member> {
    let mut member = Cow::Borrowed(member);
    for number in refused {
        if let Some(port) = member.to_mut().ports.get_mut(number) {
            port.up = false;
        }
    }
    member
}
