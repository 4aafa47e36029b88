//! Random networks that share edge ports with other networks. Networks without shared ports are in
//! [`courses`](super::courses).

use super::courses::{Case, cases, group_mod};
use super::networks::{big_networks, two_networks};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// The plans of `two_networks`. At the second switch both tenants share two ports, and both have hosts at each of these
/// ports. The second shared port is LOCAL.
pub fn sharing() -> Vec<Plan> {
    let mut plans = two_networks();
    plans[0].shared = vec![(2, 2, 2, mac(1)), (2, 2, 2, mac(0)), (2, 4, LOCAL, mac(2))];
    plans[1].shared = vec![(2, 2, 2, mac(2)), (2, 4, LOCAL, mac(1)), (2, 4, LOCAL, mac(0))];
    plans
}

/// The plans of `big_networks`, with one shared port at each of the first two members.
pub fn sharing_big() -> Vec<Plan> {
    let mut plans = big_networks();
    for plan in &mut plans {
        plan.edges.retain(|edge| edge.2 != 2 || edge.0 == 3);
    }
    plans[0].shared = vec![(1, 2, 2, mac(1)), (1, 2, 2, mac(0)), (2, 4, LOCAL, mac(2))];
    plans[1].shared = vec![(1, 2, 2, mac(2)), (2, 4, LOCAL, mac(1)), (2, 4, LOCAL, mac(0))];
    plans
}

/// The address of 10.0.0.n.
fn mac(n: u8) -> [u8; 6] {
    emulate::frame::build::host_mac(n.into())
}

/// The address of a host, a broadcast address or a multicast address, in octets.
fn addresses() -> impl Strategy<Value = [String; 6]> {
    let all = (0..3).map(mac).chain([[0xff; 6], [0x33, 0x33, 0, 0, 0, 1]]);
    let words = |it: [u8; 6]| it.map(|octet| format!("{octet:02x}"));
    prop::sample::select(all.map(words).collect::<Vec<_>>())
}

/// Rules that use groups, and rules of a later table that write a destination. Most of the rules with groups match on a
/// destination.
fn naming() -> impl Strategy<Value = String> {
    let rewrites = (addresses(), 1..60_000u16).prop_map(|(to, priority)| {
        let to = to.join(".");
        format!("flow add match=ip prio={priority} actions=write=mod_dl_dst:{to} table=1")
    });
    prop_oneof![4 => using(), 1 => rewrites]
}

/// The match of IP packets at this port, if any, to this address, if any.
fn match_of(port: Option<&str>, to: Option<String>) -> String {
    let mut match_ = vec!["ip".to_owned()];
    match_.extend(port.map(|port| format!("in_port={port}")));
    match_.extend(to.map(|to| format!("dl_dst={to}")));
    match_.join(",")
}

fn port() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::weighted(0.3, prop::sample::select(vec!["1", "2", "10", "LOCAL"]))
}

/// A tenant, a switch, and rules for the switch.
type Rules = (usize, u64, Vec<String>);

/// The case with these rules, half of them before the other commands and half after.
fn with_rules((mut case, said): (Case, Vec<Rules>)) -> Case {
    for (at, (tenant, switch, rules)) in said.into_iter().enumerate() {
        let words = rules.into_iter().map(|words| (tenant, switch, words));
        let at = if at % 2 == 0 { 0 } else { case.commands.len() };
        case.commands.splice(at..at, words);
    }
    case
}

fn using() -> impl Strategy<Value = String> {
    let one = addresses().prop_map(|it| it.join(":"));
    let many = Just("01:00:00:00:00:00/01:00:00:00:00:00".to_owned());
    let matched = prop::option::weighted(0.8, prop_oneof![6 => one, 1 => many]);
    let written = prop::option::weighted(0.2, addresses());
    let ends = prop::sample::select(vec!["", "", ",output:1", ",flood", ";goto=1", ";goto=1"]);
    let how = prop::sample::select(vec!["", "", "", "write=", "clear;write="]);
    (port(), matched, written, 1..6u32, ends, how, 1..60_000u16).prop_map(
        |(port, matched, written, group, ends, how, priority)| {
            let match_ = match_of(port, matched);
            let written = written.map(|it| format!("mod_dl_dst:{},", it.join(".")));
            let actions = format!("{how}{}group:{group}{ends}", written.unwrap_or_default());
            format!("flow add match={match_} prio={priority} actions={actions}")
        },
    )
}

/// Cases with more groups and with rules of [`naming`], before or after all other commands.
pub fn grouping() -> impl Strategy<Value = Case> {
    let said = vec((0..2usize, 1..=3u64, group_mod(), [naming(), naming(), naming()]), 0..6);
    (cases(Version::V1_3, 0.3), said, any::<bool>()).prop_map(|(mut case, said, first)| {
        let each = |(tenant, switch, group, rules): (usize, u64, String, [String; 3])| {
            let words = std::iter::once(group).chain(rules);
            words.map(move |words| (tenant, switch, words))
        };
        let said: Vec<_> = said.into_iter().flat_map(each).collect();
        let (mut all, more) = if first { (said, case.commands) } else { (case.commands, said) };
        all.extend(more);
        case.commands = all;
        case
    })
}

/// Cases with rules in all tables whose action lists output to shared ports. Any actions may follow the output, and the
/// action set may be any set.
pub fn listing() -> impl Strategy<Value = Case> {
    let output = || {
        prop::sample::select(vec![
            "flood", "all", "local", "output:2", "output:2", "output:1", "in_port", "group:4",
        ])
    };
    let change = prop_oneof![
        2 => prop::sample::select(vec![
            "mod_nw_dst:10.0.0.1".to_owned(),
            "mod_dl_src:02.00.00.00.00.77".to_owned(),
            "controller".to_owned(),
        ]),
        1 => addresses().prop_map(|to| format!("mod_dl_dst:{}", to.join("."))),
    ];
    let action = prop_oneof![4 => output().prop_map(str::to_owned), 1 => change.clone()];
    let applied = vec(action, 0..4).prop_map(|actions| actions.join(","));
    let set = vec(prop_oneof![2 => output().prop_map(str::to_owned), 1 => change], 1..3);
    let set = set.prop_map(|actions| format!("write={}", actions.join(",")));
    let set = prop_oneof![4 => Just(String::new()), 1 => Just("clear".to_owned()), 3 => set];
    let meta = prop_oneof![6 => Just(""), 1 => Just("meta=5/ff")];
    let one = addresses().prop_map(|it| it.join(":"));
    let some = prop::sample::select(vec![
        "01:00:00:00:00:00/01:00:00:00:00:00",
        "33:33:00:00:00:00/ff:ff:00:00:00:00",
        "00:00:00:00:00:00/01:00:00:00:00:00",
        "02:00:00:00:00:00/ff:ff:ff:ff:ff:fe",
    ]);
    let to = prop_oneof![6 => one, 2 => some.prop_map(str::to_owned)];
    let to = prop::option::weighted(0.7, to);
    let next = prop_oneof![3 => Just(None), 2 => (1..=2u8).prop_map(Some)];
    let rule = (port(), to, (applied, set, meta), next, 0..=2u8, 1..60_000u16).prop_map(
        |(port, to, (applied, set, meta), next, table, priority)| {
            let next = next.filter(|next| *next > table).map(|next| format!("goto={next}"));
            let words = [applied, set, meta.to_owned(), next.unwrap_or_default()];
            let words: Vec<_> = words.into_iter().filter(|it| !it.is_empty()).collect();
            let actions = if words.is_empty() { "drop".to_owned() } else { words.join(";") };
            let match_ = match_of(port, to);
            format!("flow add match={match_} prio={priority} actions={actions} table={table}")
        },
    );
    let pass = (1..=2u8, 1..60_000u16).prop_map(|(next, priority)| {
        format!("flow add match=ip prio={priority} actions=meta=5/ff;goto={next}")
    });
    let rules = (vec(rule, 1..4), pass).prop_map(|(mut rules, pass)| {
        rules.push(pass);
        rules
    });
    let said = vec((0..2usize, 1..=3u64, rules), 1..8);
    (cases(Version::V1_3, 0.3), said).prop_map(with_rules)
}

/// Cases with rules of 1.0 that output to shared ports. Weir accepts those rules that match on a destination. Some
/// rules send a packet to the controller as it arrived and as it was changed.
pub fn naming_v10() -> impl Strategy<Value = Case> {
    let output = prop::sample::select(vec![
        "flood",
        "all",
        "local",
        "output:2",
        "output:2",
        "output:1",
        "output:10",
        "in_port",
    ]);
    let change = prop_oneof![
        2 => prop::sample::select(vec![
            "mod_nw_dst:10.0.0.1".to_owned(),
            "mod_dl_src:02.00.00.00.00.77".to_owned(),
            "mod_nw_tos:8".to_owned(),
            "strip_vlan".to_owned(),
            "controller".to_owned(),
            "controller".to_owned(),
        ]),
        1 => addresses().prop_map(|to| format!("mod_dl_dst:{}", to.join("."))),
    ];
    let action = prop_oneof![3 => output.prop_map(str::to_owned), 1 => change];
    let actions = vec(action, 1..6).prop_map(|actions| actions.join(","));
    let to = prop::option::weighted(0.7, addresses().prop_map(|it| it.join(":")));
    let rule = (port(), to, actions, 1..60_000u16).prop_map(|(port, to, actions, priority)| {
        format!("flow add match={} prio={priority} actions={actions}", match_of(port, to))
    });
    let said = vec((0..2usize, 1..=3u64, vec(rule, 1..4)), 1..8);
    (cases(Version::V1_0, 0.3), said).prop_map(with_rules)
}
