//! The Prometheus text format, version 0.0.4. The code is hand-written because the set of families is fixed and all
//! numbers are already in arrays; a client library would add a map look-up per series and a second copy of each
//! counter.

mod families;
mod sums;
mod writer;

use std::sync::Arc;

use super::api::ApiRefusal;
use super::instruments::Gauge;
use super::kinds::{Direction, DropReason, Kind, Rejection};
use super::names;
use super::registry::Registry;
use super::series::{AgentMetrics, LabelMetrics, SwitchMetrics, TenantMetrics};
use families::*;
use hypervisor::PortTraffic;
use sums::{OfTenant, sum};
use writer::{Text, dpid, seconds};

use crate::lock::lock;

/// The detail of tenants' counters on switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Sums per tenant over all switches, and per switch over all tenants.
    #[default]
    Sums,
    /// Series for each tenant on each switch: the product of both numbers.
    Product,
}

const PORT_PACKETS_HELP: &str =
    "Packets that a tenant's ports have counted, as far as they are the tenant's alone.";
const PORT_BYTES_HELP: &str =
    "Bytes that a tenant's ports have counted, as far as they are the tenant's alone.";

/// Writes all series in the Prometheus text format 0.0.4, in parts of some 32 kB, as long as `take` accepts more.
pub fn encode(registry: &Registry, detail: Detail, take: &mut dyn FnMut(String) -> bool) {
    let (switches, totals) = registry.moment();
    let switches: Vec<(Arc<SwitchMetrics>, Tenants)> = switches
        .into_iter()
        .map(|switch| {
            let tenants = switch.tenants();
            (switch, tenants)
        })
        .collect();
    let mut text = Text::new(take);
    text.process(registry);
    text.event_loops(registry);
    let contacts = totals.iter().map(|(name, (totals, _))| (name.as_str(), &totals.contacts));
    text.contacts(contacts.collect());
    text.switches(&switches);
    text.sums_of_switches(&switches);
    match detail {
        Detail::Product => text.tenants(&switches),
        Detail::Sums => {
            let past = totals.into_iter().map(|(name, (_, past))| (name, OfTenant::new(past)));
            text.sums_of_tenants(&sum(&switches, past.collect()));
        }
    }
    text.hand_over(0);
}

impl Text<'_> {
    fn process(&mut self, registry: &Registry) {
        let process = &registry.process;
        self.family("weir_build_info", "gauge", "Always 1; the label says what runs.");
        self.sample("weir_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        self.family(
            "weir_connections_total",
            "counter",
            "Connections that shook hands, by who is at the other end.",
        );
        for (kind, peer) in Kind::ALL {
            let value = process.connections(kind).get();
            self.sample("weir_connections_total", &[("peer", peer)], value);
        }
        self.family(
            "weir_connections_rejected_total",
            "counter",
            "Connections that did not come to shaking hands.",
        );
        for (kind, peer) in Kind::ALL {
            for (why, reason) in Rejection::ALL {
                let labels = [("peer", peer), ("reason", reason)];
                let value = process.rejected(kind, why).get();
                self.sample("weir_connections_rejected_total", &labels, value);
            }
        }
        const API: &str = "weir_api_refused_total";
        self.family(API, "counter", "Clients of the REST interface that were refused or cut off.");
        for (why, reason) in ApiRefusal::ALL {
            self.sample(API, &[("reason", reason)], process.api.refused(why).get());
        }
        const CERTIFICATE: &str = "weir_certificate_expiry_timestamp_seconds";
        self.family(
            CERTIFICATE,
            "gauge",
            "Until when Weir's own certificate is valid, in Unix time; 0 without one.",
        );
        self.sample(CERTIFICATE, &[], process.certificate_not_after.get());
        const DESCRIPTORS: &str = "weir_file_descriptors";
        self.family(
            DESCRIPTORS,
            "gauge",
            "File descriptors: the limit, those of switches, those towards controllers.",
        );
        for (of, gauge) in ["limit", "switches", "controllers"].iter().zip(&process.descriptors) {
            self.sample(DESCRIPTORS, &[("of", of)], gauge.get());
        }
        self.family(
            "weir_reloads_total",
            "counter",
            "Configurations read, by whether they were taken over.",
        );
        self.sample("weir_reloads_total", &[("result", "applied")], process.reloads_applied.get());
        self.sample("weir_reloads_total", &[("result", "refused")], process.reloads_refused.get());
        self.agents(&process.agents);
        self.labels(&process.labels);
        self.family(
            "weir_store_changes_total",
            "counter",
            "Changes of flow state that were stored.",
        );
        self.sample("weir_store_changes_total", &[], process.store_changes.get());
        self.family("weir_store_failures_total", "counter", "Commits of the store that failed.");
        self.sample("weir_store_failures_total", &[], process.store_failed.get());
        self.family(
            "weir_store_full",
            "gauge",
            "1 while what tenants add is refused since state cannot be stored.",
        );
        self.sample("weir_store_full", &[], process.store_full.get());
        const UNJOURNALED: &str = "weir_store_unjournaled_total";
        self.family(
            UNJOURNALED,
            "counter",
            "Batches of changes that no journal took: their messages waited for a commit of the store.",
        );
        self.sample(UNJOURNALED, &[], process.store_unjournaled.get());
        self.family(
            "weir_store_commit_seconds",
            "histogram",
            "Time of one group commit of the store.",
        );
        self.histogram("weir_store_commit_seconds", &[], &process.store_commit);
    }

    fn event_loops(&mut self, registry: &Registry) {
        let event_loops: Vec<_> = registry
            .event_loops()
            .into_iter()
            .map(|(number, metrics)| (number.to_string(), metrics))
            .collect();
        const COALESCED: &str = "weir_event_loop_coalesced";
        self.family(
            COALESCED,
            "gauge",
            "1 while the event loop has fewer turns because threads wait for a core.",
        );
        for (number, metrics) in &event_loops {
            self.sample(COALESCED, &[("event_loop", number)], metrics.coalesced.get());
        }
        const TIME: &str = "weir_event_loop_coalesced_seconds_total";
        self.family(TIME, "counter", "Time in which the event loop had fewer turns.");
        for (number, metrics) in &event_loops {
            let time = seconds(metrics.coalesced_nanos.get());
            self.sample(TIME, &[("event_loop", number)], time);
        }
    }

    fn agents(&mut self, agents: &AgentMetrics) {
        const DATAGRAMS: &str = "weir_agent_datagrams_total";
        self.family(DATAGRAMS, "counter", "Datagrams from agents, by what became of them.");
        for (result, counter) in agents.datagrams() {
            self.sample(DATAGRAMS, &[("result", result)], counter.get());
        }
        const REFUSED: &str = "weir_agent_entries_refused_total";
        self.family(
            REFUSED,
            "counter",
            "Entries of agents that were not believed: not theirs to say, or cut to the interface's bandwidth.",
        );
        self.sample(REFUSED, &[("reason", "misplaced")], agents.misplaced.get());
        self.sample(REFUSED, &[("reason", "impossible")], agents.impossible.get());
        const MEASURED: &str = "weir_measured_vnics";
        self.family(MEASURED, "gauge", "Virtual interfaces that agents measure now.");
        self.sample(MEASURED, &[], agents.measured.get());
    }

    fn labels(&mut self, labels: &LabelMetrics) {
        const FLOWS: &str = "weir_followed_flows";
        self.family(FLOWS, "gauge", "Flows between virtual interfaces that are followed.");
        self.sample(FLOWS, &[], labels.flows.get());
        const LOST: &str = "weir_followed_flows_lost";
        self.family(LOST, "gauge", "Flows among them that do not come to their receiver.");
        self.sample(LOST, &[], labels.lost_flows.get());
        const SENT: &str = "weir_labels_sent_total";
        self.family(SENT, "counter", "Labels of links sent to tenants.");
        self.sample(SENT, &[], labels.sent.get());
        const REPLACED: &str = "weir_labels_replaced_total";
        self.family(REPLACED, "counter", "Labels that a newer one replaced before they were sent.");
        self.sample(REPLACED, &[], labels.replaced.get());
    }

    fn switches(&mut self, switches: &[(Arc<SwitchMetrics>, Tenants)]) {
        self.family("weir_switches", "gauge", "Switches connected now.");
        self.sample("weir_switches", &[], switches.len() as u64);
        const MESSAGES: &str = "weir_switch_messages_total";
        self.family(
            MESSAGES,
            "counter",
            "Messages on the connection of a switch, Weir's own included.",
        );
        for (switch, _) in switches {
            let dpid = dpid(switch.dpid);
            let both =
                [(Direction::FromSwitch, &switch.received), (Direction::ToSwitch, &switch.sent)];
            for (direction, messages) in both {
                let labels = [("switch", dpid.as_str()), ("direction", direction.name())];
                self.messages(MESSAGES, &labels, switch.version, messages);
            }
        }
        const UNCLAIMED: &str = "weir_switch_packet_in_unclaimed_total";
        self.family(UNCLAIMED, "counter", "PACKET_INs dropped because no tenant owns the packet.");
        self.per_switch(UNCLAIMED, switches, |switch| switch.packet_in_unclaimed.get());
        const UNEXPECTED: &str = "weir_switch_unexpected_total";
        self.family(
            UNEXPECTED,
            "counter",
            "Messages of the switch that are malformed or answer nothing.",
        );
        self.per_switch(UNEXPECTED, switches, |switch| switch.unexpected.get());
        const UNANSWERED: &str = "weir_switch_unanswered_total";
        self.family(UNANSWERED, "counter", "Requests that the switch did not answer in time.");
        self.per_switch(UNANSWERED, switches, |switch| switch.unanswered.get());
        const OWN_MESSAGES: &str = "weir_switch_own_messages_total";
        self.family(
            OWN_MESSAGES,
            "counter",
            "Messages to the switch that no tenant asked for, such as barriers of Weir's own.",
        );
        self.per_switch(OWN_MESSAGES, switches, |switch| switch.own_messages.get());
        const OWN_REFUSED: &str = "weir_switch_own_refused_total";
        self.family(
            OWN_REFUSED,
            "counter",
            "Changes that Weir made itself and the switch refused.",
        );
        self.per_switch(OWN_REFUSED, switches, |switch| switch.own_refused.get());
        const OTHERS_RULES: &str = "weir_switch_others_rules";
        self.family(
            OTHERS_RULES,
            "gauge",
            "Rules of other installations of Weir that were left on the switch when it connected.",
        );
        self.per_switch(OTHERS_RULES, switches, |switch| switch.others_rules.get());
        const WINDOW: &str = "weir_switch_window_messages";
        self.family(
            WINDOW,
            "gauge",
            "Messages that may be unacknowledged at the switch at a time.",
        );
        self.per_switch(WINDOW, switches, |switch| switch.window.get());
        const OUTSTANDING: &str = "weir_switch_outstanding_messages";
        self.family(OUTSTANDING, "gauge", "Messages that are unacknowledged at the switch now.");
        self.per_switch(OUTSTANDING, switches, |switch| switch.outstanding.get());
    }

    fn tenants(&mut self, switches: &[(Arc<SwitchMetrics>, Tenants)]) {
        self.family(MESSAGES, "counter", MESSAGES_HELP);
        each(switches, |switch, dpid, tenant| {
            for (direction, name) in Direction::ALL {
                let labels = [("switch", dpid), ("tenant", &tenant.name), ("direction", name)];
                self.messages(MESSAGES, &labels, switch.version, tenant.messages(direction));
            }
        });
        self.family(REFUSED, "counter", REFUSED_HELP);
        each(switches, |switch, dpid, tenant| {
            for (error, count) in tenant.refusals() {
                let error = names::error(switch.version, error);
                self.sample(
                    REFUSED,
                    &[("switch", dpid), ("tenant", &tenant.name), ("error", &error)],
                    count,
                );
            }
        });
        self.family(DROPPED, "counter", DROPPED_HELP);
        each(switches, |_, dpid, tenant| {
            for (why, reason) in DropReason::ALL {
                let labels = [("switch", dpid), ("tenant", &tenant.name), ("reason", reason)];
                self.sample(DROPPED, &labels, tenant.dropped(why).get());
            }
        });
        self.family(QUEUE, "gauge", QUEUE_HELP);
        each(switches, |_, dpid, tenant| {
            let both = [&tenant.queue_southbound, &tenant.queue_northbound];
            for (towards, gauge) in TOWARDS.into_iter().zip(both) {
                let labels =
                    [("switch", dpid), ("tenant", tenant.name.as_str()), ("towards", towards)];
                self.sample(QUEUE, &labels, gauge.get());
            }
        });
        self.per_tenant(CONTROLLERS, CONTROLLERS_HELP, switches, |t| &t.controllers);
        self.per_tenant(FLOWS, FLOWS_HELP, switches, |t| &t.flows);
        self.per_tenant(ENTRIES, ENTRIES_HELP, switches, |t| &t.entries);
        self.per_tenant(HELD, HELD_HELP, switches, |t| &t.held);
        self.family(EXAMINED, "counter", EXAMINED_HELP);
        each(switches, |_, dpid, tenant| {
            let labels = [("switch", dpid), ("tenant", tenant.name.as_str())];
            self.sample(EXAMINED, &labels, tenant.examined.get());
        });
        type Counted = fn(hypervisor::Count) -> u64;
        let families: [(&str, &str, Counted); 2] = [
            ("weir_port_packets_total", PORT_PACKETS_HELP, |count| count.packets),
            ("weir_port_bytes_total", PORT_BYTES_HELP, |count| count.bytes),
        ];
        for (name, help, counted) in families {
            self.family(name, "counter", help);
            each(switches, |_, dpid, tenant| {
                let ports = lock(&tenant.ports).clone();
                for PortTraffic { port, received, sent } in ports {
                    let port = port.to_string();
                    for (direction, count) in [("received", received), ("sent", sent)] {
                        let Some(count) = count else { continue };
                        let labels = [
                            ("switch", dpid),
                            ("tenant", tenant.name.as_str()),
                            ("port", &port),
                            ("direction", direction),
                        ];
                        self.sample(name, &labels, counted(count));
                    }
                }
            });
        }
        self.family(ADDED, "histogram", ADDED_HELP);
        each(switches, |_, dpid, tenant| {
            let both = [&tenant.added_southbound, &tenant.added_northbound];
            for (towards, histogram) in TOWARDS.into_iter().zip(both) {
                let labels =
                    [("switch", dpid), ("tenant", tenant.name.as_str()), ("towards", towards)];
                self.histogram(ADDED, &labels, histogram);
            }
        });
    }

    fn per_switch(
        &mut self,
        name: &str,
        switches: &[(Arc<SwitchMetrics>, Tenants)],
        value: impl Fn(&SwitchMetrics) -> u64,
    ) {
        for (switch, _) in switches {
            self.sample(name, &[("switch", &dpid(switch.dpid))], value(switch));
        }
    }

    fn per_tenant(
        &mut self,
        name: &str,
        help: &str,
        switches: &[(Arc<SwitchMetrics>, Tenants)],
        gauge: impl Fn(&TenantMetrics) -> &Gauge,
    ) {
        self.family(name, "gauge", help);
        each(switches, |_, dpid, tenant| {
            self.sample(name, &[("switch", dpid), ("tenant", &tenant.name)], gauge(tenant).get());
        });
    }
}

fn each(
    switches: &[(Arc<SwitchMetrics>, Tenants)],
    mut f: impl FnMut(&SwitchMetrics, &str, &TenantMetrics),
) {
    for (switch, tenants) in switches {
        let dpid = dpid(switch.dpid);
        tenants.iter().for_each(|tenant| f(switch, &dpid, tenant));
    }
}

#[cfg(test)]
mod tests;
