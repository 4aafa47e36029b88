//! Policies as text.
//!
//! Each line is one flowspace entry: `red weight=2 queues=1+2: in_port=1 @200 read`. Before the colon is the tenant's
//! name with the tenant's options, which may be in any of its lines. After the colon is the match as in the
//! configuration file, then the priority and the permission, if they are not the defaults. A tenant's number is its
//! place in the text, from 1. `own=3+4` gives the tenant a network of its own instead: a virtual switch with two ports,
//! at ports 3 and 4.

use super::world::DPID as WORLD;
use fabric::embedding::{Member, PortKind, SwitchMap, VirtualPort};
use fabric::{Dpid, PortNumber};
use hypervisor::Policy;
use hypervisor::TenantId;
use hypervisor::policy::{FlowspaceEntry, Limits, Permission, Rate, Statistics, Switches, Tenant};
use std::sync::Arc;

/// Reads a policy. Panics on invalid text, which is a mistake in the test.
pub fn policy(text: &str) -> Policy {
    let mut tenants: Vec<Tenant> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, entry) = line.split_once(':').unwrap_or_else(|| panic!("no colon: {line}"));
        let mut words = head.split_whitespace();
        let name = words.next().unwrap();
        let at = tenants.iter().position(|tenant| tenant.name == name).unwrap_or_else(|| {
            let id = tenants.len() as u16 + 1;
            tenants.push(new_tenant(id, name));
            tenants.len() - 1
        });
        for option in words {
            let (key, value) = option.split_once('=').unwrap();
            set(&mut tenants[at], key, value);
        }
        let entry = entry.trim();
        if entry != "-" {
            tenants[at].flowspace.push(read_entry(entry));
        }
    }
    let mut policy = Policy { tenants, ..Policy::default() };
    for line in text.lines().filter(|line| line.contains(" own=")) {
        add_network(line, &mut policy);
    }
    policy
}

/// Adds a virtual switch for the tenant. For each port of the world's switch that the line names, the virtual switch
/// has one port, numbered from 1.
fn add_network(line: &str, policy: &mut Policy) {
    let mut words = line.trim().split([' ', ':']);
    let name = words.next().unwrap();
    let own = words.find_map(|word| word.strip_prefix("own=")).unwrap();
    let id = policy.tenants.iter().find(|tenant| tenant.name == name).unwrap().id;
    let ports = own.split('+').zip(1..).map(|(at, number)| {
        let kind = PortKind::Edge {
            port: PortNumber::new(at.parse().unwrap()).unwrap(),
            hosts: Vec::new(),
        };
        let mac = [2, 0, 0, 0, 0, number as u8];
        let (name, up) = (format!("v{number}"), true);
        let port = VirtualPort { mac, name, up, speed: None, kind };
        (number, port)
    });
    let datapath = Dpid(0xb0 + u64::from(id.0));
    let member =
        Member { datapath, name: name.to_owned(), ports: ports.collect(), shared_with: false };
    let mut map = policy.maps.remove(&WORLD).map_or_else(SwitchMap::default, Arc::unwrap_or_clone);
    map.members.insert(id, member);
    policy.maps.insert(WORLD, Arc::new(map));
}

pub fn new_tenant(id: u16, name: &str) -> Tenant {
    Tenant {
        id: TenantId(id),
        name: name.to_owned(),
        weight: 1,
        flowspace: Vec::new(),
        limits: Limits::default(),
        queues: Vec::new(),
        experimenters: Vec::new(),
        statistics: Statistics::Passthrough,
        labels: None,
    }
}

fn read_entry(text: &str) -> FlowspaceEntry {
    let mut entry = FlowspaceEntry {
        match_: "".parse().unwrap(),
        priority: 100,
        switches: Switches::Any,
        permission: Permission::Write,
    };
    for word in text.split_whitespace() {
        match word.strip_prefix('@') {
            Some(priority) => entry.priority = priority.parse().unwrap(),
            None if word == "read" => entry.permission = Permission::Read,
            None if word == "any" => {}
            None => entry.match_ = word.parse().unwrap_or_else(|e| panic!("{word}: {e}")),
        }
    }
    entry
}

fn set(tenant: &mut Tenant, key: &str, value: &str) {
    let number = || value.parse::<u32>().unwrap_or_else(|_| panic!("{key}={value}"));
    match key {
        // See `add_network`.
        "own" => {}
        "id" => tenant.id = TenantId(number() as u16),
        "weight" => tenant.weight = number(),
        "flows" => tenant.limits.flows = number(),
        "entries" => tenant.limits.entries = number(),
        "queues" => tenant.queues = value.split('+').map(|q| q.parse().unwrap()).collect(),
        "vendor" => {
            let digits = value.trim_start_matches("0x");
            tenant.experimenters.push(u32::from_str_radix(digits, 16).unwrap());
        }
        "cached" => {
            tenant.statistics = Statistics::Cached { max_age: u64::from(number()) * 1_000_000 };
        }
        "packet_out" => tenant.limits.packet_out = Some(rate(value)),
        "flow_mod" => tenant.limits.flow_mod = Some(rate(value)),
        "statistics" => tenant.limits.statistics = Some(rate(value)),
        "packet_in" => tenant.limits.packet_in = Some(rate(value)),
        _ => panic!("no such option: {key}"),
    }
}

/// `PER_SECOND/BURST`.
fn rate(text: &str) -> Rate {
    let (per_second, burst) = text.split_once('/').unwrap();
    Rate { per_second: per_second.parse().unwrap(), burst: burst.parse().unwrap() }
}
