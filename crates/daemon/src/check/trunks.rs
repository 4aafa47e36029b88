//! Slices of ports alone, on several switches: packets go from switch to switch only by a link whose ports are in the
//! slice.

use std::collections::{BTreeMap, BTreeSet};

use fabric::PortId;
use flowspace::Field;
use hypervisor::policy::{Permission, Switches};

use super::{Checker, Severity, Topic};
use crate::config::{Entry, Position, Tenant};

impl Checker<'_> {
    /// Names the tenants whose packets cannot pass from switch to switch. With declared links this is certain; without
    /// any, one of the ports may have a link.
    pub(super) fn trunks(&mut self) {
        let config = self.config;
        for tenant in config.tenants.iter().filter(|tenant| tenant.network.is_none()) {
            let Some(slice) = Slice::of_ports(tenant) else { continue };
            let links = config.topology.links.iter().map(|link| link.between);
            let between: Vec<[PortId; 2]> =
                links.filter(|ends| ends.iter().all(|end| slice.is_on(end.dpid.0))).collect();
            let (severity, message) = if between.is_empty() && slice.listed.len() > 1 {
                let count = slice.listed.len();
                let message = format!(
                    "has ports alone, on {count} switches: its packets go from switch to switch only if the ports of a \
                     link between them are among these"
                );
                (Severity::Note, message)
            } else if let Some([a, b]) = slice.apart(&between) {
                let message = format!(
                    "has ports alone, and its packets cannot go from {} to {}: {a} and {b}, the ports of a link \
                     between them, are not both in its flowspace",
                    a.dpid, b.dpid
                );
                (Severity::Finding, message)
            } else {
                continue;
            };
            self.say(severity, Topic::Trunk, slice.at, &tenant.name, message);
        }
    }
}

/// The ports that a slice consists of.
struct Slice<'a> {
    /// The place of the first entry in the file.
    at: Position,
    entries: Vec<(&'a Switches, u32)>,
    /// The named switches.
    listed: BTreeSet<u64>,
}

impl Slice<'_> {
    /// The slice of a tenant; `None` if an entry matches packets of any port.
    fn of_ports(tenant: &Tenant) -> Option<Slice<'_>> {
        let writes = || tenant.flowspace.iter().filter(|it| it.permission == Permission::Write);
        let port = |entry: &Entry| Some(entry.match_.exact_value(Field::InPort)? as u32);
        let entries: Option<Vec<_>> =
            writes().map(|entry| Some((&entry.switches, port(entry)?))).collect();
        let (entries, at) = (entries?, writes().next()?.at);
        let mut listed = BTreeSet::new();
        for (switches, _) in &entries {
            if let Switches::Only(some) = switches {
                listed.extend(some.iter().copied());
            }
        }
        Some(Slice { at, entries, listed })
    }

    /// A link between two switches that no links of the slice connect, if there is one.
    fn apart(&self, links: &[[PortId; 2]]) -> Option<[PortId; 2]> {
        let (own, others): (Vec<[PortId; 2]>, Vec<[PortId; 2]>) =
            links.iter().partition(|ends| ends.iter().all(|end| self.has(*end)));
        // Each connected part has one of its switches as its name.
        let mut parts = BTreeMap::new();
        for [a, b] in own {
            let part_of = |dpid| parts.get(&dpid).copied().unwrap_or(dpid);
            let (kept, gone) = (part_of(a.dpid), part_of(b.dpid));
            for dpid in [a.dpid, b.dpid] {
                parts.entry(dpid).or_insert(dpid);
            }
            parts.values_mut().filter(|part| **part == gone).for_each(|part| *part = kept);
        }
        let part_of = |dpid| parts.get(&dpid).copied().unwrap_or(dpid);
        others.into_iter().find(|[a, b]| part_of(a.dpid) != part_of(b.dpid))
    }

    fn is_on(&self, dpid: u64) -> bool {
        self.entries.iter().any(|(switches, _)| switches.includes(dpid))
    }

    fn has(&self, end: PortId) -> bool {
        let (dpid, port) = (end.dpid.0, end.port.get());
        self.entries.iter().any(|(switches, own)| *own == port && switches.includes(dpid))
    }
}
