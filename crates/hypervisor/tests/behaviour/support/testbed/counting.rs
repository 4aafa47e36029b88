//! The port counters of tenants on the testbed, and the messages about these counters between the testbed's cores.

use super::{Testbed, shake_hands};
use crate::support::world::core_of;
use crate::support::{frames, request};
use emulate::{SessionId, SwitchIndex};
use hypervisor::{Count, Counts, Event, Instant, Settings, TenantId};
use openflow::Version;

/// The packets and bytes that a port has received, and those that a port has sent. `None` means "not counted".
pub type Counted = (Option<(u64, u64)>, Option<(u64, u64)>);

impl Testbed {
    /// The counters of a port in the reply to a tenant's controller, after a second without other requests.
    pub fn counted(&mut self, tenant: usize, switch: u64, port: u32) -> Counted {
        self.wait(1);
        self.counted_at_once(tenant, switch, port).unwrap_or_else(|| {
            self.wait(1);
            self.take_counters(switch).expect("no answer")
        })
    }

    /// The packets and bytes that a port has received on the tenant's reference network.
    pub fn received_beside(&mut self, tenant: usize, switch: u64, port: u32) -> (u64, u64) {
        let version = self.version(switch);
        let message = request(version, 7, &format!("stats port port={port}"));
        let at = super::reference_index(&self.plans[tenant], switch);
        let reference = &mut self.references[tenant];
        reference.handle_message(self.now, at, &message);
        let answer = reference.take_output(at, SessionId::MAIN);
        self.raw = frames(&answer).collect();
        self.raw.retain(|frame| matches!((version, frame[1]), (Version::V1_0, 17) | (_, 19)));
        self.take_counters(switch).and_then(|counted| counted.0).expect("a count")
    }

    /// The counters in the reply, if the reply arrives before time passes.
    pub fn counted_at_once(&mut self, tenant: usize, switch: u64, port: u32) -> Option<Counted> {
        self.raw.clear();
        let port = if port == super::LOCAL { "local".to_owned() } else { port.to_string() };
        self.speak(tenant, switch, &format!("stats port port={port}"));
        self.take_counters(switch)
    }

    fn take_counters(&mut self, switch: u64) -> Option<Counted> {
        let messages = std::mem::take(&mut self.raw);
        let message = messages.first()?.get(8..).unwrap();
        assert_eq!(messages.len(), 1);
        let one = |packets, bytes| (packets != u64::MAX).then_some((packets, bytes));
        if self.version(switch) == Version::V1_0 {
            let reply = openflow::v10::StatsReply::parse(message).unwrap();
            let openflow::v10::StatsReplyBody::Port(ports) = reply.body else { panic!() };
            let it = ports.iter().next().unwrap();
            return Some((one(it.rx_packets, it.rx_bytes), one(it.tx_packets, it.tx_bytes)));
        }
        let reply = openflow::v13::MultipartReply::parse(message).unwrap();
        let openflow::v13::MultipartReplyBody::PortStats(ports) = reply.body else { panic!() };
        let it = ports.iter().next().unwrap();
        Some((one(it.rx_packets, it.rx_bytes), one(it.tx_packets, it.tx_bytes)))
    }

    /// From now on the core of this switch exchanges no requests and replies with other cores, or exchanges them again.
    pub fn deafen(&mut self, switch: u64, is_deaf: bool) {
        if is_deaf {
            self.deaf.insert(switch);
        } else {
            self.deaf.remove(&switch);
        }
    }

    /// A switch connects again. The new core starts with the stored state.
    pub fn reconnect(&mut self, switch: u64) {
        let (at, version) = (switch as usize - 1, self.version(switch));
        let features = shake_hands(&mut self.physical, SwitchIndex(at), version);
        let (settings, store) = (Settings::default(), &self.stores[at]);
        self.cores[at] = core_of(&features, &self.policy, settings, store, self.now);
        self.pump();
        let seats = self.seats.iter_mut().filter(|((_, other), _)| *other == switch);
        for (&(tenant, _), seat) in seats {
            let id = TenantId(tenant as u16 + 1);
            *seat = self.cores[at].controller_connected(id).expect("not served");
        }
        self.pump();
    }

    /// The core of switch `to` gets the received counters of switch `from`: port, packets and bytes.
    pub fn report_counts(&mut self, to: u64, from: u64, tenant: usize, ports: &[(u32, u64, u64)]) {
        let received = ports.iter().map(|&(port, packets, bytes)| (port, Count { packets, bytes }));
        let tenant = TenantId(tenant as u16 + 1);
        let counts = Counts { tenant, received: Some(received.collect()) };
        let now = Instant(self.now);
        self.cores[to as usize - 1].handle_counters_reply(from, counts, now);
    }

    /// The number of quarters of a second that have begun.
    pub fn quarters_passed(&self) -> u64 {
        self.now / 250_000_000 + 1
    }

    /// The number of statistics requests that a physical switch of 1.3 has received.
    pub fn asked_for_statistics(&self, switch: u64) -> u64 {
        const MULTIPART_REQUEST: usize = 18;
        self.sent(switch, MULTIPART_REQUEST)
    }

    /// The number of messages of this type that a physical switch has received.
    pub fn sent(&self, switch: u64, type_: usize) -> u64 {
        self.cores[switch as usize - 1].counters().to_switch[type_]
    }

    /// Hands an event of a core to another core, or notes the refused ports. Gives whether the event was of these
    /// kinds.
    pub(super) fn take_event(&mut self, from: u64, event: Event) -> bool {
        let (now, is_deaf) = (Instant(self.now), |dpid| self.deaf.contains(&dpid));
        match event {
            Event::CountersRequest { of, tenant } if !is_deaf(of) && !is_deaf(from) => {
                self.cores[of as usize - 1].handle_counters_request(tenant, from, now);
                true
            }
            Event::CountersReply { to, counts } if !is_deaf(to) && !is_deaf(from) => {
                self.cores[to as usize - 1].handle_counters_reply(from, counts, now);
                true
            }
            Event::RefusedPorts(ports) => {
                self.refused.insert(from, ports);
                true
            }
            _ => false,
        }
    }
}
