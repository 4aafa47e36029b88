//! Tests of the policy for every message type in each direction, with one table per version. Each row is a test, and
//! docs/messages.md is made from the rows.
//!
//! A row is `from | type name | policy | remark`; the indented lines below the row are the scenario that shows the
//! policy. The policies: `forward` (only the xid changes), `translate`, `answer` (by Weir), `reject` with an error,
//! `count` (no answer is needed). Run with `WEIR_BLESS=1` to write the page.

use crate::support::*;
use hypervisor::{RefusedBy, TenantId};
use std::fmt::Write;

/// Red and blue have ports, green has a low limit, reader may only read, and violet has a network of its own.
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

impl Row<'_> {
    /// Whether the row is for several types. Then the type in the scenario is an example.
    fn is_of_several_types(&self) -> bool {
        ["any", "changes", "requests"].iter().any(|it| self.name.starts_with(it))
    }
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
        // In a row about a limit, Weir forwards the first message.
        let some = row.name.contains("limit");
        assert!(passed == should || some, "{named}: reached the switch: {passed}");
        let error = row.scenario.contains(" ERROR ");
        let own = row.name.contains("granted") && should;
        let policy_error = row.policy.strip_prefix("reject ");
        assert_eq!(error && !own, policy_error.is_some(), "{named}");
        let shown = policy_error.is_none_or(|it| row.scenario.contains(&format!(" ERROR {it} ")));
        assert!(shown, "another error: {named}");
        let tenants: Vec<TenantId> = world.core.tenants().map(|tenant| tenant.id).collect();
        let refusals = tenants.into_iter().flat_map(|tenant| world.core.refusals(tenant));
        let whys: Vec<_> = refusals.map(|it| (it.by(), it.reason(version))).collect();
        let is_expected = |(by, why): &(RefusedBy, String)| match by {
            RefusedBy::Weir => !why.contains("cannot be read"),
            _ => own,
        };
        assert_eq!(whys.is_empty(), !error, "{named}");
        assert!(whys.iter().all(is_expected), "{named}: {whys:?}");
    }
}

#[test]
fn every_row_of_the_message_policy_is_true_on_1_0() {
    check(Version::V1_0, V10);
}

#[test]
fn every_row_of_the_message_policy_is_true_on_1_3() {
    check(Version::V1_3, V13);
}

#[test]
fn every_message_type_has_a_row_in_the_message_policy() {
    for (version, text) in [(Version::V1_0, V10), (Version::V1_3, V13)] {
        let rows = rows(text);
        for type_ in 0..=u8::MAX {
            let name = match version {
                Version::V1_0 => openflow::v10::MessageType(type_).name(),
                _ => openflow::v13::MessageType(type_).name(),
            };
            let rows_from = |from: &str| -> Vec<&Row<'_>> {
                let is_of_type = |row: &&Row<'_>| row.from == from && row.type_ == type_.into();
                rows.iter().filter(is_of_type).collect()
            };
            let by_controllers = rows_from("controller");
            let Some(name) = name else {
                let named = by_controllers.iter().find(|row| row.name != "unknown types");
                assert!(named.is_none(), "{version:?}: the codec has no name for {type_}");
                continue;
            };
            let mut of_this = by_controllers.iter().filter(|row| row.name.starts_with(name));
            let Some(first) = of_this.next() else {
                panic!("{version:?}: no row for {type_} {name} from a controller");
            };
            assert!(
                by_controllers.iter().all(|row| row.name != "unknown types"),
                "{name} is known"
            );
            // A type that Weir rejects from controllers with OFPBRC_BAD_TYPE is sent only by switches. Such a type
            // needs a row for the switch.
            let has_a_row = rows_from("switch").iter().any(|row| row.name.starts_with(name));
            assert!(
                has_a_row || first.policy != "reject OFPBRC_BAD_TYPE",
                "{version:?}: no row for {type_} {name} from the switch"
            );
        }
    }
}

/// The text above the tables of the page.
const HEAD: &str = "\
# Policy for every OpenFlow message

This page says what Weir does with each OpenFlow message, in each direction. Look for the message type; the policy shows the error
that a refused request gets. Each row is a test (`crates/hypervisor/tests/behaviour/policy/*.txt`).

| policy | meaning |
|---|---|
| forward | Weir passes the message on, and changes only the transaction id. |
| translate | Weir passes the message on, and replaces numbers, ports or entries by those of the other side. |
| answer | Weir answers itself. |
| reject | The sender gets this error, with its own transaction id and bytes. |
| count | The message needs no answer. Weir counts the message and does not pass it on. |

`OFPBRC_BAD_TYPE` is the last row of each controller's table: these types come only from switches, or are unknown.

[networks-openflow.md](networks-openflow.md#what-is-refused) lists further errors in tenants' own networks,
[configuration.md](configuration.md#tenantslimits) the errors of limits. [Big switches](design/big-switches.md) have a table for messages
between member switches.
";

fn page() -> String {
    let mut page = String::from(HEAD);
    for (title, text) in [("1.0", V10), ("1.3", V13)] {
        for (from, heading) in [("controller", "a controller"), ("switch", "the switch")] {
            write!(page, "\n## OpenFlow {title}, from {heading}\n\n").unwrap();
            page.push_str("| type | message | policy | remark |\n|---|---|---|---|\n");
            let mut rows = rows(text);
            rows.retain(|row| row.from == from);
            rows.sort_by_key(|row| (row.is_of_several_types(), row.type_));
            let (of_switches, others): (Vec<Row<'_>>, Vec<Row<'_>>) =
                rows.into_iter().partition(|row| row.policy == "reject OFPBRC_BAD_TYPE");
            for row in others {
                let Row { type_, name, policy, remark, .. } = row;
                let type_ =
                    if row.is_of_several_types() { String::new() } else { type_.to_string() };
                writeln!(page, "| {type_} | {name} | {policy} | {remark} |").unwrap();
            }
            if let Some(policy) = of_switches.first().map(|row| row.policy) {
                let types = joined(of_switches.iter().map(|row| row.type_.to_string()));
                let names = joined(of_switches.iter().map(|row| row.name.to_owned()));
                writeln!(page, "| {types} and up | {names} | {policy} |  |").unwrap();
            }
        }
    }
    page
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn the_messages_page_in_the_docs_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/messages.md");
    let wanted = page();
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == wanted, "docs/messages.md is stale: run the test with WEIR_BLESS=1");
}
