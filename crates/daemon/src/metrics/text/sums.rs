//! Sums: per tenant over all switches, per switch over all tenants.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::contacts::{ContactCounts, Lost};
use super::super::kinds::{Direction, DropReason};
use super::super::series::{SwitchMetrics, TenantMetrics};
use super::super::totals::Sums;
use super::families::*;
use super::writer::{Text, dpid};

/// A family's name, its help, and its value.
type Figure<T> = (&'static str, &'static str, fn(&T) -> u64);

/// The counters of one tenant on all switches.
pub(super) struct OfTenant {
    sums: Sums,
    queues: [u64; 2],
    controllers: u64,
    flows: u64,
    entries: u64,
    held: u64,
}

impl OfTenant {
    pub(super) fn new(sums: Sums) -> Self {
        OfTenant { sums, queues: [0; 2], controllers: 0, flows: 0, entries: 0, held: 0 }
    }
}

/// Adds the tenants' counts on these switches to their counts on disconnected switches.
pub(super) fn sum(
    switches: &[(Arc<SwitchMetrics>, Tenants)],
    mut tenants: BTreeMap<String, OfTenant>,
) -> BTreeMap<String, OfTenant> {
    for (switch, on_switch) in switches {
        for tenant in on_switch {
            let sums = match tenants.get_mut(&tenant.name) {
                Some(sums) => sums,
                None => tenants
                    .entry(tenant.name.clone())
                    .or_insert_with(|| OfTenant::new(Sums::default())),
            };
            tenant.add_to(&mut sums.sums, switch.version);
            sums.queues[0] += tenant.queue_southbound.get();
            sums.queues[1] += tenant.queue_northbound.get();
            sums.controllers += tenant.controllers.get();
            sums.flows += tenant.flows.get();
            sums.entries += tenant.entries.get();
            sums.held += tenant.held.get();
        }
    }
    tenants
}

impl Text<'_> {
    pub(super) fn contacts(&mut self, tenants: Vec<(&str, &ContactCounts)>) {
        const DIALS: &str = "weir_controller_dials_total";
        self.family(DIALS, "counter", "Attempts to connect to a tenant's controllers.");
        for (name, counts) in &tenants {
            self.sample(DIALS, &[("tenant", name)], counts.dials.get());
        }
        const LOST: &str = "weir_controller_lost_total";
        self.family(
            LOST,
            "counter",
            "Attempts to connect to a tenant's controllers that failed, and connections that ended, by reason.",
        );
        for (name, counts) in &tenants {
            for (why, reason) in Lost::ALL {
                let labels = [("tenant", *name), ("reason", reason)];
                self.sample(LOST, &labels, counts.lost(why).get());
            }
        }
    }

    pub(super) fn sums_of_switches(&mut self, switches: &[(Arc<SwitchMetrics>, Tenants)]) {
        let gauges: [Figure<TenantMetrics>; 4] = [
            ("weir_switch_controllers", "Controllers connected for a switch.", |tenant| {
                tenant.controllers.get()
            }),
            ("weir_switch_flows", "Entries in all tenants' virtual flow tables.", |tenant| {
                tenant.flows.get()
            }),
            ("weir_switch_entries", "Entries on the switch that stand for them.", |tenant| {
                tenant.entries.get()
            }),
            (
                "weir_switch_queue_messages",
                "Messages that wait for the switch or for controllers, of all tenants.",
                |tenant| tenant.queue_southbound.get() + tenant.queue_northbound.get(),
            ),
        ];
        for (name, help, value) in gauges {
            self.family(name, "gauge", help);
            for (switch, tenants) in switches {
                let sum: u64 = tenants.iter().map(|tenant| value(tenant)).sum();
                self.sample(name, &[("switch", &dpid(switch.dpid))], sum);
            }
        }
    }

    pub(super) fn sums_of_tenants(&mut self, tenants: &BTreeMap<String, OfTenant>) {
        self.family(MESSAGES, "counter", MESSAGES_HELP);
        for (name, of) in tenants {
            for (&(direction, message_type), &count) in &of.sums.messages {
                let direction = Direction::ALL.get(direction).map(|(_, name)| *name);
                let labels = [
                    ("tenant", name.as_str()),
                    ("direction", direction.unwrap_or_default()),
                    ("type", message_type),
                ];
                self.sample(MESSAGES, &labels, count);
            }
            for (message_type, &count) in &of.sums.lost {
                let labels =
                    [("tenant", name.as_str()), ("direction", "lost"), ("type", message_type)];
                self.sample(MESSAGES, &labels, count);
            }
        }
        self.family(REFUSED, "counter", REFUSED_HELP);
        for (name, of) in tenants {
            for (error, &count) in &of.sums.refused {
                self.sample(REFUSED, &[("tenant", name), ("error", error)], count);
            }
        }
        self.family(DROPPED, "counter", DROPPED_HELP);
        for (name, of) in tenants {
            for ((_, reason), &count) in DropReason::ALL.into_iter().zip(&of.sums.dropped) {
                self.sample(DROPPED, &[("tenant", name), ("reason", reason)], count);
            }
        }
        self.family(QUEUE, "gauge", QUEUE_HELP);
        for (name, of) in tenants {
            for (towards, count) in TOWARDS.into_iter().zip(of.queues) {
                self.sample(QUEUE, &[("tenant", name), ("towards", towards)], count);
            }
        }
        let gauges: [Figure<OfTenant>; 4] = [
            (CONTROLLERS, CONTROLLERS_HELP, |of| of.controllers),
            (FLOWS, FLOWS_HELP, |of| of.flows),
            (ENTRIES, ENTRIES_HELP, |of| of.entries),
            (HELD, HELD_HELP, |of| of.held),
        ];
        for (family, help, value) in gauges {
            self.family(family, "gauge", help);
            for (name, of) in tenants {
                self.sample(family, &[("tenant", name)], value(of));
            }
        }
        self.family(EXAMINED, "counter", EXAMINED_HELP);
        for (name, of) in tenants {
            self.sample(EXAMINED, &[("tenant", name)], of.sums.examined);
        }
        self.family(ADDED, "histogram", ADDED_HELP);
        for (name, of) in tenants {
            for (towards, snapshot) in TOWARDS.into_iter().zip(&of.sums.added) {
                let labels = [("tenant", name.as_str()), ("towards", towards)];
                if let Some(snapshot) = snapshot {
                    self.snapshot(ADDED, &labels, snapshot);
                }
            }
        }
    }
}
