//! Tests of rules that another program deletes on the switch while a tenant changes the entry. Weir installs the rule
//! once more, then ends the entry and notifies the tenant.

use crate::support::*;
use openflow::{v10, v13};

/// The FLOW_REMOVED that the switch sends if another program deletes the rule of this FLOW_MOD at once. Empty if the
/// FLOW_MOD is no ADD.
fn deleted(version: Version, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    if version == Version::V1_0 {
        let added = v10::FlowMod::parse(&message[8..]).unwrap();
        if added.command == v10::FlowModCommand::ADD {
            let removed = v10::FlowRemoved {
                match_: added.match_,
                cookie: added.cookie,
                priority: added.priority,
                reason: v10::FlowRemovedReason::DELETE,
                duration_sec: 0,
                duration_nsec: 0,
                idle_timeout: 0,
                packet_count: 0,
                byte_count: 0,
            };
            removed.write_message(0, &mut out).unwrap();
        }
        return out;
    }
    let added = v13::FlowMod::parse(&message[8..]).unwrap();
    if added.command == v13::FlowModCommand::ADD {
        let removed = v13::FlowRemoved {
            match_: added.match_,
            cookie: added.cookie,
            priority: added.priority,
            table_id: added.table_id,
            reason: v13::FlowRemovedReason::DELETE,
            duration_sec: 0,
            duration_nsec: 0,
            idle_timeout: 0,
            hard_timeout: 0,
            packet_count: 0,
            byte_count: 0,
        };
        removed.write_message(0, &mut out).unwrap();
    }
    out
}

/// The first FLOW_REMOVED may belong to an earlier rule with the same match and priority, so Weir installs the rule a
/// second time. After the second FLOW_REMOVED Weir ends the entry and sends FLOW_REMOVED to the tenant.
#[test]
fn an_entry_ends_after_its_rule_is_deleted_externally_twice() {
    const FLOW_MOD: u8 = 14;
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "red own=1+2: -"));
        let red = world.connect("red");
        world.lose_south(true);
        world.south.clear();
        world.say(red, 1, "flow add match=in_port=1,ip prio=9 flags=rem actions=output:2");
        let barrier = if version == Version::V1_0 { 18 } else { 20 };
        let mut added = 0;
        for _ in 0..100 {
            world.advance(25_000_000);
            for mut message in std::mem::take(&mut world.south) {
                if message[1] == barrier {
                    message[1] += 1;
                    world.switch_says(&message);
                } else if message[1] == FLOW_MOD {
                    let flow_removed = deleted(version, &message);
                    added += usize::from(!flow_removed.is_empty());
                    world.switch_says(&flow_removed);
                }
            }
        }
        assert_eq!(added, 2, "{version:?}");
        // The controller gets FLOW_REMOVED when the last counters arrive, or when Weir stops waiting for these
        // counters.
        world.advance(10_000_000_000);
        let received = world.heard(red);
        assert!(
            received.iter().any(|it| it.starts_with("FLOW_REMOVED")),
            "{version:?}: {received:?}"
        );
    }
}
