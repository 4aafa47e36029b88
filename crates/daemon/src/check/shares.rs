//! Who divides each switch's tables with whom, as far as the file says: how much these hold, switches say when they connect.

use std::collections::{BTreeMap, BTreeSet};

use hypervisor::policy::Switches;
use serde::Serialize;

use crate::config::{Config, Tenant};
use crate::dpid::Dpid;

/// The tenants that divide a switch's tables.
#[derive(Debug, Serialize)]
pub struct Shared {
    /// The datapath id, or `any other` for those that the file does not name.
    pub switch: String,
    /// In the order of the file.
    pub tenants: Vec<Share>,
}

/// What one tenant gets.
#[derive(Debug, Serialize)]
pub struct Share {
    /// Its name.
    pub tenant: String,
    /// Its weight.
    pub weight: u32,
    /// The weights of all tenants that have a part of the switch.
    pub of: u64,
    /// The rules that it may have there at most, by its own limit.
    pub most_rules: u32,
    /// Groups and meters, likewise (1.3).
    pub most_groups: u32,
    /// See `most_groups`.
    pub most_meters: u32,
}

/// For each switch that the file names, and for any other. One at a time: there may be many of them with many tenants.
pub fn shares(config: &Config) -> impl Iterator<Item = Shared> + '_ {
    let mut everywhere = Vec::new();
    let mut by_switch: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    by_switch.extend(config.switches.iter().map(|listed| (listed.dpid, BTreeSet::new())));
    for (at, tenant) in config.tenants.iter().enumerate() {
        let all = tenant.flowspace.iter().any(|entry| entry.switches == Switches::Any);
        if all {
            everywhere.push(at);
        }
        for dpid in named(tenant) {
            by_switch.entry(dpid).or_default().insert(at);
        }
    }
    let named = by_switch.into_iter().map(|(dpid, tenants)| (Dpid(dpid).to_string(), tenants));
    let others = (config.listen.unlisted > 0).then(|| ("any other".to_owned(), BTreeSet::new()));
    named.chain(others).map(move |(switch, mut tenants)| {
        tenants.extend(&everywhere);
        let all = || tenants.iter().filter_map(|&at| config.tenants.get(at));
        let of = all().map(|tenant| u64::from(tenant.weight)).sum();
        let share = |tenant: &Tenant| Share {
            tenant: tenant.name.clone(),
            weight: tenant.weight,
            of,
            most_rules: tenant.limits.entries,
            most_groups: tenant.limits.groups,
            most_meters: tenant.limits.meters,
        };
        Shared { switch, tenants: all().map(share).collect() }
    })
}

/// The switches that a tenant names.
fn named(tenant: &Tenant) -> impl Iterator<Item = u64> + '_ {
    let of_slice = tenant.flowspace.iter().filter_map(|entry| match &entry.switches {
        Switches::Only(dpids) => Some(dpids.iter().copied()),
        Switches::Any => None,
    });
    let network = tenant.network.iter().flat_map(|network| &network.spec.switches);
    let of_network = network.flat_map(|switch| switch.members.iter().map(|dpid| dpid.0));
    of_slice.flatten().chain(of_network)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_has_those_that_divide_its_tables() {
        let text = "[listen]\nunlisted = 4\n[[switches]]\ndpid = \"9\"\n\
            [[tenants]]\nname = \"a\"\nweight = 2\n[[tenants.flowspace]]\nmatch = \"in_port=1\"\n\
            [[tenants]]\nname = \"b\"\nlimits = { entries = 7 }\n[[tenants.flowspace]]\n\
            match = \"in_port=2\"\nswitches = [\"1\"]\n\
            [[tenants]]\nname = \"c\"\n[tenants.network]\naddresses = \"10.0.0.0/30\"\n\
            [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
            [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\n\
            [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 1\"\n\
            [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\n";
        let config = Config::parse("weir.toml", text).unwrap_or_else(|errors| panic!("{errors}"));
        let told = shares(&config).map(|shared| {
            let tenants = shared.tenants.iter();
            let tenants = tenants
                .map(|it| format!("{} {}/{} {}", it.tenant, it.weight, it.of, it.most_rules));
            format!("{}: {}", shared.switch, tenants.collect::<Vec<_>>().join(", "))
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                "00:00:00:00:00:00:00:01: a 2/4 100000, b 1/4 7, c 1/4 100000",
                "00:00:00:00:00:00:00:02: a 2/3 100000, c 1/3 100000",
                "00:00:00:00:00:00:00:09: a 2/2 100000",
                "any other: a 2/2 100000",
            ]
        );
    }
}
