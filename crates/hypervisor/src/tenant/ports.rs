//! What is known of a tenant's ports beside what the map says.

use crate::switch::Label;
use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use compile::Network;
use fabric::embedding::Member;
use openflow::v10::PortConfig;

/// See the module.
#[derive(Default)]
pub(crate) struct Ports {
    /// What it has configured of its network's ports, where that is anything.
    config: BTreeMap<u32, PortConfig>,
    /// Its network's ports that are down because the switch refuses what brings packets in by them (1.3).
    refused: BTreeSet<u32>,
    /// What it was told last of what is left of links.
    labels: BTreeMap<u32, Label>,
}

impl Ports {
    /// The tenant's network, of this part of the map.
    pub(crate) fn network(&self, member: &Member) -> Network {
        Network::new(&without(member, &self.refused), self.config.clone())
    }

    /// The same if one port were configured so.
    pub(crate) fn network_with(&self, member: &Member, port: u32, config: PortConfig) -> Network {
        let mut configured = self.config.clone();
        set(&mut configured, port, config);
        Network::new(&without(member, &self.refused), configured)
    }

    /// The tenant has configured a port so.
    pub(crate) fn configure(&mut self, port: u32, config: PortConfig) {
        set(&mut self.config, port, config);
    }

    /// Whether any port is configured.
    pub(crate) fn is_any_configured(&self) -> bool {
        !self.config.is_empty()
    }

    /// With a port goes what was said of it. Gives the ports of which that was anything.
    pub(crate) fn keep(&mut self, has_port: impl Fn(u32) -> bool) -> Vec<u32> {
        let gone = self.config.keys().copied().filter(|port| !has_port(*port));
        let gone: Vec<u32> = gone.collect();
        for port in &gone {
            self.config.remove(port);
        }
        gone
    }

    /// A port is down from now on because of what the switch refuses. Says whether it was not.
    pub(crate) fn refuse(&mut self, port: u32) -> bool {
        self.refused.insert(port)
    }

    /// Ports that are down because of what the switch refuses.
    pub(crate) fn refused(&self) -> &BTreeSet<u32> {
        &self.refused
    }

    /// There is another map: nothing is refused yet.
    pub(crate) fn forget_refused(&mut self) {
        self.refused.clear();
    }

    /// What is left of the link behind a port, as far as that is known.
    pub(crate) fn label(&self, port: u32) -> Option<Label> {
        self.labels.get(&port).copied()
    }

    /// The same of all ports.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (u32, Label)> {
        self.labels.iter().map(|(port, label)| (*port, *label))
    }

    /// So much is left of the link behind a port.
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
