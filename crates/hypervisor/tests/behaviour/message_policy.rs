//! What becomes of every message, in each direction: one table per version. Each row is exercised, and docs/messages.md is
//! made of the rows.
//!
//! A row is `from | type name | policy | remark`; the lines below it, indented, are the scenario that shows it. The
//! policies: `forward` (as it is, but for the xid), `translate`, `answer` (the hypervisor itself), `reject` with an
//! error, `count` (in need of no answer). Run with `WEIR_BLESS=1` to write the page anew.

use crate::support::*;
use hypervisor::{RefusedBy, TenantId};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Two tenants with ports, one with little room, one that only reads, one with a network of its own.
const POLICY: &str = "
    red queues=1 vendor=0x99: in_port=1
    red: in_port=2
    blue: in_port=3,ip
    green flows=1: in_port=4,ip,nw_src=10.4.0.0/16
    reader: in_port=2,arp read
    violet own=5: -
";

struct Row<'a> {
    from: &'a str,
    type_: usize,
    name: &'a str,
    policy: &'a str,
    remark: &'a str,
    scenario: String,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in text.lines() {
        if line.starts_with(' ') {
            let row = rows.last_mut().unwrap();
            row.scenario.push_str(line);
            row.scenario.push('\n');
            continue;
        }
        let mut columns = line.split('|').map(str::trim);
        let mut next = || columns.next().unwrap();
        let (from, message, policy, remark) = (next(), next(), next(), next());
        let (type_, name) = message.split_once(' ').unwrap();
        let type_ = type_.parse().unwrap();
        rows.push(Row { from, type_, name, policy, remark, scenario: String::new() });
    }
    rows
}

const V10: &str = include_str!("policy/v10.txt");
const V13: &str = include_str!("policy/v13.txt");

fn check(version: Version, text: &str) {
    for row in rows(text) {
        let mut setup = Setup { ports: 5, ..Setup::new(version, POLICY) };
        setup.configure = |config| {
            config.n_buffers = 0;
            config.ports.iter_mut().for_each(|port| port.queues = vec![0, 1, 2]);
        };
        let mut world = World::new(setup);
        let before = world.core.counters().from_switch[row.type_];
        play(&mut world, &row.scenario);
        let named = format!("{version:?} {} {} {}", row.from, row.type_, row.name);
        let count = |counts: fn(&hypervisor::counters::Counters) -> &[u64; 32]| -> u64 {
            world.core.tenants().map(|tenant| counts(tenant.counters)[row.type_]).sum()
        };
        if row.from == "switch" {
            assert!(world.core.counters().from_switch[row.type_] > before, "not sent: {named}");
            continue;
        }
        assert!(count(|c| &c.from_controller) > 0, "not sent: {named}");
        let passed = count(|c| &c.to_switch) > 0;
        let should = matches!(row.policy, "forward" | "translate");
        // Within a limit the first passes.
        let some = row.name.contains("limit");
        assert!(passed == should || some, "{named}: reached the switch: {passed}");
        let error = row.scenario.contains(" ERROR ");
        let own = row.name.contains("granted") && should;
        assert_eq!(error && !own, row.policy.starts_with("reject"), "{named}");
        let tenants: Vec<TenantId> = world.core.tenants().map(|tenant| tenant.id).collect();
        let refusals = tenants.into_iter().flat_map(|tenant| world.core.refusals(tenant));
        let whys: Vec<_> = refusals.map(|it| (it.by(), it.reason(version))).collect();
        let told = |(by, why): &(RefusedBy, String)| match by {
            RefusedBy::Weir => !why.contains("cannot be read"),
            _ => own,
        };
        assert_eq!(whys.is_empty(), !error, "{named}");
        assert!(whys.iter().all(told), "{named}: {whys:?}");
    }
}

#[test]
fn every_row_of_1_0_is_so() {
    check(Version::V1_0, V10);
}

#[test]
fn every_row_of_1_3_is_so() {
    check(Version::V1_3, V13);
}

#[test]
fn every_type_has_a_row() {
    for (text, last) in [(V10, 21), (V13, 29)] {
        let from = |who: &str| -> BTreeSet<usize> {
            rows(text).iter().filter(|row| row.from == who).map(|row| row.type_).collect()
        };
        let missing: Vec<usize> =
            (0..=last).filter(|type_| !from("controller").contains(type_)).collect();
        assert_eq!(missing, [0; 0]);
        // What only controllers send is one row of the switch's.
        assert!(from("switch").contains(&13));
    }
}

fn page() -> String {
    let mut page = String::from(
        "# What becomes of every message\n\n\
         Each row of these tables is a test: `crates/hypervisor/tests/behaviour/policy/*.txt`.\n\n\
         - *forward*: Weir passes the message on and changes the transaction id alone.\n\
         - *translate*: Weir replaces numbers, ports or entries by those of the other side.\n\
         - *answer*: Weir answers itself.\n\
         - *reject*: the sender gets this error, with the sender's own transaction id and bytes.\n\
         - *count*: the message needs no answer; Weir counts the message.\n\n\
         For big switches, [another table](design/big-switches.md) says what happens between the member switches.\n",
    );
    for (title, text) in [("1.0", V10), ("1.3", V13)] {
        for (from, heading) in [("controller", "a controller"), ("switch", "the switch")] {
            write!(page, "\n## OpenFlow {title}, from {heading}\n\n").unwrap();
            page.push_str("| type | message | policy | remark |\n|---|---|---|---|\n");
            let mut rows = rows(text);
            rows.retain(|row| row.from == from);
            rows.sort_by_key(|row| (row.name.starts_with("any") as usize, row.type_));
            for Row { type_, name, policy, remark, .. } in rows {
                let type_ = if name.starts_with("any") { String::new() } else { type_.to_string() };
                writeln!(page, "| {type_} | {name} | {policy} | {remark} |").unwrap();
            }
        }
    }
    page
}

#[test]
fn the_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/messages.md");
    let wanted = page();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == wanted, "docs/messages.md is stale: run the test with WEIR_BLESS=1");
}
