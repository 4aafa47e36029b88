//! Counters of tenants' ports, for the operator: the driver calls [`Switch::ask_traffic`] every few seconds.
//!
//! A port that belongs to one tenant has the switch's counters. For a port of a network that other tenants share, table
//! 0 counts received packets (1.3), and other switches report what arrives at the far ends of links: see
//! [`super::counts`]. Other ports have no counters for one tenant.
//!
//! Two consecutive answers of the switch also show how much each port sends, for all tenants together.

pub(crate) mod port_traffic;

use super::Switch;
use crate::messages;
use crate::policy::TenantId;
use crate::south::pending::{Awaits, Purpose};
use crate::tally::Count;
use crate::time::Instant;
use alloc::vec::Vec;
use port_traffic::PortTraffic;

impl Switch {
    /// Asks the switch for the counters of its ports, unless a question is in flight. The driver calls this every few
    /// seconds.
    pub fn ask_traffic(&mut self, now: Instant) {
        if !self.is_ready() || self.datapath.is_joined() || !self.datapath.traffic_mut().ask() {
            return;
        }
        let question = messages::port_counters(self.wire);
        self.send_own(Awaits::Own(Purpose::PortCounters), &question, now);
        for tenant in self.tenants.indices() {
            self.ask_received(tenant, now);
        }
    }

    /// Bits per second that each physical port sent between the switch's last two answers.
    pub fn port_loads(&self) -> impl Iterator<Item = (u32, u64)> {
        self.datapath.traffic().loads.iter().map(|(port, load)| (*port, *load))
    }

    /// The counters of a tenant's ports, as far as they are counted for the tenant alone.
    pub fn traffic_of(&self, tenant: TenantId) -> Vec<PortTraffic> {
        let Some(at) = self.tenant_of(tenant) else { return Vec::new() };
        let of_switch = |port, at: u32| {
            let (received, sent) = *self.datapath.traffic().ports.get(&at)?;
            Some(PortTraffic { port, received: Some(received), sent: Some(sent) })
        };
        match self.tenants[at].network.as_deref() {
            None => {
                let whole = |port: &&u32| self.map.ownership().owns_port_whole(at, **port);
                let ports = self.datapath.traffic().ports.keys().filter(whole);
                ports.filter_map(|&port| of_switch(port, port)).collect()
            }
            Some(network) => {
                let counted = |&port: &u32| match network.whole_edge(port) {
                    Some(physical) => of_switch(port, physical),
                    None => {
                        let known = self.traffic(at, port);
                        (known.received.is_some() || known.sent.is_some()).then_some(known)
                    }
                };
                network.ports().keys().filter_map(counted).collect()
            }
        }
    }

    /// The switch reports the counters of its ports.
    pub(super) fn traffic_part(&mut self, entries: &[u8], has_more: bool, now: Instant) {
        let count = |packets, bytes| Count { packets, bytes };
        let mut counted = messages::ports(self.wire, entries);
        // An answer without end names ever new ports. Those that the switch has are bounded.
        counted.retain(|it| self.datapath.ports().contains_key(&it.port_no.0));
        let ports = counted.into_iter().map(|it| {
            let both = (count(it.rx_packets, it.rx_bytes), count(it.tx_packets, it.tx_bytes));
            (it.port_no.0, both)
        });
        self.datapath.traffic_mut().part(ports, has_more, now);
    }
}
