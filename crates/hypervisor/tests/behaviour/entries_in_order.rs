//! Tests of entries that Weir deletes together with their group. The controller changes such an entry before the switch
//! has accepted or refused the deletion.

use crate::support::hairpin::{hairpin_map, policy_on, say};
use crate::support::*;
use emulate::Fault;

/// A slow switch, and a tenant that has added group 1.
fn slow(policy: &str) -> (World, Seat) {
    let mut world =
        World::new(Setup { per_second: Some(1_000), ..Setup::new(Version::V1_3, policy) });
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=1 buckets=output:1");
    (world, blue)
}

/// The controller adds an entry and sends the `refused` requests, which delete a group and its entry. The switch
/// refuses the first of these requests. Then the controller sends `change`. Returns whether the old entry and the
/// changed entry exist at the end.
fn left_of(entry: &str, refused: &[&str], change: &str) -> [bool; 2] {
    let (mut world, blue) = slow("blue: any");
    say(&mut world, blue, &format!("flow add prio=7 actions={entry}"));
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    let heard = at_once(&mut world, blue, &[refused, &[change, "barrier"]].concat());
    assert_eq!(heard.len(), 2, "{change}: {heard:?}");
    assert!(heard[0].starts_with("1 ERROR"), "{change}: {heard:?}");
    let flows = at_once(&mut world, blue, &["stats flow"]).concat();
    let left = [entry, "output:2"].map(|it| flows.contains(it));
    let count = left.iter().filter(|it| **it).count();
    assert_eq!(world.tenant_flows().len(), count, "{change}: {flows} {:?}", world.tenant_flows());
    left
}

/// The switch refuses the deletion of a group, so Weir restores the entry of the group. Later requests of the
/// controller apply to the restored entry.
#[test]
fn an_entry_kept_by_a_refused_group_deletion_is_changed_by_later_requests() {
    for (change, left) in [
        ("flow delete", [false, false]),
        ("flow delete_strict prio=7", [false, false]),
        ("flow delete_strict prio=8", [true, false]),
        ("flow delete out_group=1", [false, false]),
        ("flow modify prio=7 actions=output:2", [false, true]),
        ("flow add prio=7 actions=output:2", [false, true]),
    ] {
        assert_eq!(left_of("group:1", &["group delete id=1"], change), left, "{change}");
    }
}

/// The switch refuses to change the actions of an entry to a group, so Weir restores the entry with its old actions.
/// Later requests apply to the restored entry.
#[test]
fn an_entry_restored_after_a_refused_change_is_changed_by_later_requests() {
    for (change, left) in [
        ("flow delete", [false, false]),
        ("flow delete_strict prio=7", [false, false]),
        ("flow delete_strict prio=8", [true, false]),
        ("flow delete out_port=2", [true, false]),
        ("flow delete out_port=1", [false, false]),
        ("flow modify_strict prio=7 actions=output:2", [false, true]),
        ("flow modify_strict prio=8 actions=output:2", [true, false]),
        ("flow add prio=7 actions=output:2", [false, true]),
    ] {
        let refused = ["flow add prio=7 actions=group:1", "group delete id=1"];
        assert_eq!(left_of("output:1", &refused, change), left, "{change}");
    }
}

/// The switch refuses a modification of two entries, and the controller deletes the group of the modified entries. Weir
/// refuses two new entries, because the restored entries need the room.
#[test]
fn restored_entries_do_not_exceed_the_limit_of_the_tenant() {
    let (mut world, blue) = slow("blue flows=2: any");
    say(&mut world, blue, "flow add match=in_port=1 prio=1 actions=output:1");
    say(&mut world, blue, "flow add match=in_port=2 prio=2 actions=output:1");
    for round in 1..4 {
        let adds = [10, 11].map(|prio| {
            format!("flow add match=in_port=1 prio={} actions=output:1", prio + 2 * round)
        });
        // The switch refuses this action in an entry that does not match IP packets.
        let modify = "flow modify match= actions=mod_nw_src:1.2.3.4,group:1";
        let all = [modify, "group delete id=1", &adds[0], &adds[1], "group add id=1 buckets=drop"];
        let heard = at_once(&mut world, blue, &all);
        assert_eq!(heard.iter().filter(|it| it.contains("ERROR")).count(), 3, "{heard:?}");
        assert_eq!(world.tenant_flows().len(), 2, "{heard:?}");
    }
}

/// The switch refuses to replace an entry of three rules by an entry of one rule. Weir keeps the room of the three
/// rules for the restored entry, so it refuses new entries.
#[test]
fn rules_of_a_restored_entry_keep_their_room_on_the_switch() {
    for change in ["flow add prio=7 actions=drop", "flow modify_strict prio=7 actions=drop"] {
        let mut policy = policy_on(hairpin_map());
        policy.tenants[1].limits.entries = 3;
        let per_second = Some(1_000);
        let mut world =
            World::new(Setup { policy, ports: 6, per_second, ..Setup::new(Version::V1_3, "") });
        let blue = world.connect("blue");
        say(&mut world, blue, "flow add prio=7 actions=in_port");
        let before = world.tenant_flows();
        assert_eq!(before.len(), 3);
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
        let [one, two] =
            [8, 9].map(|prio| format!("flow add prio={prio} match=in_port=1 actions=drop"));
        let heard = at_once(&mut world, blue, &[change, &one, &two]);
        let refused: Vec<bool> =
            (1..4).map(|xid| heard[xid - 1].starts_with(&format!("{xid} ERROR"))).collect();
        assert_eq!(refused, [true; 3], "{change}: {heard:?}");
        assert_eq!(world.tenant_flows(), before, "{change}");
    }
}

/// The switch refuses a modification to output 3, so the entry still outputs to port 2. A later DELETE with out_port 3
/// does not delete the entry.
#[test]
fn an_entry_with_a_refused_modification_stays_after_a_delete_by_out_port() {
    let (mut world, blue) = slow("blue flows=2: any");
    for round in 0..5 {
        say(&mut world, blue, &format!("flow add match=in_port={round} prio=1 actions=output:2"));
        let modify = format!(
            "flow modify_strict match=in_port={round} prio=1 actions=mod_nw_src:1.2.3.4,output:3"
        );
        let heard = at_once(&mut world, blue, &[&modify, "flow delete out_port=3", "barrier"]);
        assert!(heard[0].starts_with("1 ERROR") && heard.len() == 2, "{heard:?}");
        assert_eq!(world.tenant_flows().len(), 1);
        say(&mut world, blue, "flow delete");
    }
}

#[test]
fn waiting_requests_are_done_after_their_controller_disconnects() {
    let (mut world, blue) = slow("blue: any");
    say(&mut world, blue, "flow add prio=7 actions=group:1");
    say(&mut world, blue, "flow add prio=8 actions=output:2");
    world.say(blue, 1, "group delete id=1");
    world.say(blue, 2, "flow delete");
    world.core.controller_disconnected(world.controllers[blue.0].index);
    world.advance(1_000_000_000);
    assert_eq!(world.tenant_flows(), [""; 0]);
}

#[test]
fn waiting_requests_are_done_before_requests_of_a_later_connection() {
    for version in VERSIONS {
        let mut world =
            World::new(Setup { per_second: Some(1_000), ..Setup::new(version, "blue: any") });
        let blue = world.connect("blue");
        world.say(blue, 1, "flow add prio=7 actions=output:1");
        world.say(blue, 2, "flow modify actions=output:2");
        world.core.controller_disconnected(world.controllers[blue.0].index);
        let again = world.connect("blue");
        world.say(again, 3, "flow delete");
        world.say(again, 4, "barrier");
        world.advance(1_000_000_000);
        assert_eq!(world.heard(again), ["4 BARRIER_REPLY"], "{version:?}");
        assert_eq!(world.tenant_flows(), [""; 0], "{version:?}");
    }
}

#[test]
fn requests_delayed_by_the_rate_limit_of_the_tenant_are_done() {
    let (mut world, blue) = slow("blue flow_mod=10/1: any");
    say(&mut world, blue, "flow add prio=7 actions=group:1");
    world.advance(2_000_000_000);
    for number in 0..150 {
        let words = format!("flow add match=in_port=1 prio={} actions=output:1", 100 + number);
        world.say(blue, 1000 + number, &words);
    }
    for (xid, words) in (1..).zip(["group delete id=1", "flow delete", "barrier"]) {
        world.say(blue, xid, words);
    }
    world.advance(60_000_000_000);
    assert_eq!(world.heard(blue), ["3 BARRIER_REPLY"]);
    assert_eq!(world.tenant_flows(), [""; 0]);
}

/// The switch refuses to delete a group, so the entry of the group stays. When the switch deletes the entry later, the
/// controller gets a FLOW_REMOVED.
#[test]
fn an_entry_kept_by_a_refused_group_deletion_sends_flow_removed_at_its_end() {
    let (mut world, blue) = slow("blue: any");
    say(&mut world, blue, "flow add prio=7 actions=group:1 flags=rem");
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    let heard = at_once(&mut world, blue, &["group delete id=1", "barrier"]);
    assert!(heard[0].starts_with("1 ERROR"), "{heard:?}");
    let mut said = Vec::new();
    let delete = request(Version::V1_3, 1, "flow delete table=1");
    let now = world.now;
    world.switch.switch_mut().handle_message(now, &delete, &mut said);
    world.switch_says(&said);
    let heard = world.heard(blue);
    assert!(heard.len() == 1 && heard[0].contains("FLOW_REMOVED"), "{heard:?}");
    let flows = at_once(&mut world, blue, &["stats flow"]).concat();
    assert!(!flows.contains("prio=7"), "{flows}");
}
