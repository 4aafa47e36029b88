//! The division of each switch among the tenants, as far as the file and its data sheets say. Switches report the sizes
//! of their tables only when they connect.

use std::collections::{BTreeMap, BTreeSet};

use hypervisor::policy::{Limits, Rate, Switches};
use hypervisor::sheet::{MessageClass, Sheet};
use serde::Serialize;

use crate::config::{Config, Tenant};
use crate::dpid::Dpid;
use crate::sheets;

/// The tenants that divide a switch's tables.
#[derive(Debug, Serialize)]
pub struct Shared {
    /// The datapath id, or `any other` for switches that the file does not name.
    pub switch: String,
    /// The data sheet, if the file names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datasheet: Option<String>,
    /// The size of a table in the data sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<u32>,
    /// The tenants in the order of the file.
    pub tenants: Vec<Share>,
}

/// The share of one tenant.
#[derive(Debug, Serialize)]
pub struct Share {
    /// The name of the tenant.
    pub tenant: String,
    /// The weight of the tenant.
    pub weight: u32,
    /// The weights of all tenants that have a part of the switch.
    pub of: u64,
    /// The most rules on the switch by the tenant's own limit.
    pub most_rules: u32,
    /// The most groups by the tenant's own limit (1.3).
    pub most_groups: u32,
    /// The most meters by the tenant's own limit (1.3).
    pub most_meters: u32,
    /// The tenant's share of a table by the data sheet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<u32>,
    /// The tenant's message rates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<ShareOfRate>,
}

/// The rate of a class of messages that a tenant may send, or get.
#[derive(Debug, Serialize)]
pub struct ShareOfRate {
    /// The class of messages.
    pub messages: &'static str,
    /// Messages per second.
    pub per_second: f64,
    /// The burst: messages at once, after a silence.
    pub burst: u32,
    /// The reason for the rate.
    pub why: String,
}

/// The shares for each switch that the file names, and for any other switch. The iterator makes one switch at a time,
/// because there may be many switches with many tenants.
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
    let sheet = |dpid: u64| {
        let listed = config.switches.iter().find(|listed| listed.dpid == dpid);
        let own = listed.and_then(|listed| listed.datasheet.as_deref());
        own.or(config.datasheet.as_deref())
    };
    let named = by_switch.into_iter();
    let named = named.map(move |(dpid, tenants)| (Dpid(dpid).to_string(), tenants, sheet(dpid)));
    let others = (config.listen.unlisted > 0)
        .then(|| ("any other".to_owned(), BTreeSet::new(), config.datasheet.as_deref()));
    named.chain(others).map(move |(switch, mut tenants, sheet)| {
        tenants.extend(&everywhere);
        let all = || tenants.iter().filter_map(|&at| config.tenants.get(at));
        let of = all().map(|tenant| u64::from(tenant.weight)).sum();
        let table = sheet.and_then(|sheet| Some(sheet.table.as_ref()?.rules));
        let claims: Vec<(u32, u32)> =
            all().map(|tenant| (tenant.weight, tenant.limits.entries)).collect();
        let rules = table.map(|table| hypervisor::divide_table(table, &claims));
        let share = |(at, tenant): (usize, &Tenant)| Share {
            tenant: tenant.name.clone(),
            weight: tenant.weight,
            of,
            most_rules: tenant.limits.entries,
            most_groups: tenant.limits.groups,
            most_meters: tenant.limits.meters,
            rules: rules.as_ref().and_then(|rules| rules.get(at).copied()),
            rates: rates(&tenant.limits, sheet, tenant.weight.into(), of),
        };
        let datasheet = sheet.map(|sheet| sheet.file.clone());
        Shared { switch, datasheet, table, tenants: all().enumerate().map(share).collect() }
    })
}

/// A tenant's message rates: from the tenant's limits, otherwise from the data sheet.
fn rates(limits: &Limits, sheet: Option<&Sheet>, weight: u64, weights: u64) -> Vec<ShareOfRate> {
    let own = |class| match class {
        MessageClass::PacketOut => limits.packet_out,
        MessageClass::FlowMod => limits.flow_mod,
        MessageClass::Statistics => limits.statistics,
        MessageClass::PacketIn => limits.packet_in,
        MessageClass::Other => None,
    };
    let of = |class| {
        let (per_second, burst, why) = match (own(class), sheet) {
            (Some(Rate { per_second, burst }), _) => {
                (f64::from(per_second), burst, "its own limit".to_owned())
            }
            (None, Some(sheet)) => {
                let (per_second, burst) = hypervisor::share_of(sheet, class, weight, weights)?;
                let measured = sheet.classes.get(&class)?;
                (per_second, burst, sheets::reason(measured, &sheet.file, weight, weights))
            }
            (None, None) => return None,
        };
        Some(ShareOfRate { messages: sheets::name(class), per_second, burst, why })
    };
    MessageClass::ALL.into_iter().filter_map(of).collect()
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
    fn each_switch_lists_the_weights_of_tenants_that_share_the_flow_tables() {
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
        let lines = shares(&config).map(|shared| {
            let tenants = shared.tenants.iter();
            let tenants = tenants
                .map(|it| format!("{} {}/{} {}", it.tenant, it.weight, it.of, it.most_rules));
            format!("{}: {}", shared.switch, tenants.collect::<Vec<_>>().join(", "))
        });
        assert_eq!(
            lines.collect::<Vec<_>>(),
            [
                "00:00:00:00:00:00:00:01: a 2/4 100000, b 1/4 7, c 1/4 100000",
                "00:00:00:00:00:00:00:02: a 2/3 100000, c 1/3 100000",
                "00:00:00:00:00:00:00:09: a 2/2 100000",
                "any other: a 2/2 100000",
            ]
        );
    }
}
