//! Ports that several slices use: a switch counts the packets of all tenants together.

use std::collections::{BTreeMap, BTreeSet};

use flowspace::Field;
use hypervisor::policy::{PortCounters, Switches};

use super::{Checker, Severity, Topic, quoted, some_of};
use crate::dpid::Dpid;

/// The tenants that use each port of a switch, by their places in the file. `None`: the tenants that use every port.
type Ports = BTreeMap<Option<u32>, BTreeSet<usize>>;

impl Checker<'_> {
    /// Names shared ports, once for all ports that the same tenants share. A tenant that only reads sends no packets,
    /// so it does not share a port. The file does not say which ports the links of networks use.
    pub(super) fn shared_ports(&mut self) {
        let config = self.config;
        for (tenants, places) in self.shared() {
            let tenants = || tenants.iter().filter_map(|&at| config.tenants.get(at));
            let is_shown = |counters| counters == PortCounters::Switch;
            let seeing = tenants().filter(|it| is_shown(it.limits.shared_port_counters));
            let seeing: Vec<&str> = seeing.map(|it| it.name.as_str()).collect();
            let Some(tenant) = tenants().nth(1).filter(|_| !seeing.is_empty()) else { continue };
            let others = tenants().map(|it| it.name.as_str()).filter(|name| *name != tenant.name);
            let message = format!(
                "shares {} with {}: the port counters of the switch show {} how much the others send; \
                 [limits] shared_port_counters = \"unsupported\" hides them",
                some_of(places),
                quoted(&others.collect::<Vec<_>>()),
                quoted(&seeing),
            );
            self.say(Severity::Note, Topic::SharedPort, tenant.at, &tenant.name, message);
        }
    }

    /// The ports that each set of tenants shares, in words.
    fn shared(&self) -> BTreeMap<Vec<usize>, Vec<String>> {
        let mut everywhere = Ports::new();
        let mut on: BTreeMap<u64, Ports> = BTreeMap::new();
        for owned in &self.writes {
            let port = owned.entry.match_.exact_value(Field::InPort).map(|port| port as u32);
            let add = |ports: &mut Ports| ports.entry(port).or_default().insert(owned.owner);
            match &owned.entry.switches {
                Switches::Any => _ = add(&mut everywhere),
                Switches::Only(dpids) => {
                    dpids.iter().for_each(|dpid| _ = add(on.entry(*dpid).or_default()));
                }
            }
        }
        let mut shared: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        let mut add = |users: &BTreeSet<usize>, port: Option<u32>, switch: &str| {
            let port = port.map_or("every port".to_owned(), |port| format!("port {port}"));
            let users = users.iter().copied().collect();
            shared.entry(users).or_default().push(format!("{port} of {switch}"));
        };
        let of_all = users(&everywhere, &Ports::new());
        for (&port, users) in &of_all {
            if is_new(users, port, &of_all) {
                add(users, port, "every switch");
            }
        }
        for (dpid, here) in &on {
            let of_this = users(&everywhere, here);
            for (&port, users) in &of_this {
                // The note about every switch also holds for this switch.
                if of_all.get(&port) != Some(users) && is_new(users, port, &of_this) {
                    add(users, port, &Dpid(*dpid).to_string());
                }
            }
        }
        shared
    }
}

/// Who uses the ports of one switch.
fn users(everywhere: &Ports, here: &Ports) -> Ports {
    let of = |port: &Option<u32>| {
        let users = [everywhere.get(port), here.get(port)].into_iter().flatten().flatten();
        users.copied().collect::<BTreeSet<usize>>()
    };
    let every = of(&None);
    let ports = everywhere.keys().chain(here.keys());
    ports.map(|port| (*port, &of(port) | &every)).collect()
}

/// Whether a port is shared, by more tenants than every port is.
fn is_new(users: &BTreeSet<usize>, port: Option<u32>, all: &Ports) -> bool {
    users.len() > 1 && (port.is_none() || all.get(&None) != Some(users))
}
