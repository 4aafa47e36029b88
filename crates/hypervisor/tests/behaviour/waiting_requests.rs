//! Tests of requests that wait for the results of earlier requests. Weir asks the switch for these results at once and
//! carries out the requests in order. Requests of other controllers do not delay the results.

use crate::support::hairpin::{hairpin_map, policy_on, say};
use crate::support::*;
use hypervisor::Instant;

const MS: u64 = 1_000_000;

/// A controller sends a request, and does not wait until earlier changes are stored.
fn push(world: &mut World, seat: Seat, xid: u32, words: &str) {
    let message = request(world.version, xid, words);
    world.controllers[seat.0].outgoing.push_back(message);
}

/// Lets time pass as a driver does: calls the core when its timeout expires. After this time the store finishes its
/// work.
fn pass(world: &mut World, duration: u64) {
    let until = world.now + duration;
    loop {
        world.pump();
        let next = [world.core.poll_timeout().map(|at| at.0), world.switch.next_deadline()];
        let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= until) else { break };
        world.now = world.now.max(at);
        if world.core.poll_timeout().is_some_and(|at| at.0 <= world.now) {
            world.core.handle_timeout(Instant(world.now));
        }
    }
    world.now = until;
    world.pump();
    world.stored();
}

/// A world in which messages to the switch take one millisecond, and changes are stored only when the test calls the
/// store.
fn far(policy: &str, version: Version) -> World {
    let mut world = World::new(Setup { delay: MS, ..Setup::new(version, policy) });
    world.store_at_once(false);
    world
}

#[test]
fn the_result_for_a_waiting_request_is_requested_without_idle_delay() {
    for version in VERSIONS {
        let mut world = far("blue: any", version);
        let blue = world.connect("blue");
        for number in 0..100 {
            let entry = format!("prio={}", 100 + number);
            push(&mut world, blue, 1, &format!("flow add {entry} actions=output:1"));
            push(&mut world, blue, 1, &format!("flow modify_strict {entry} actions=output:2"));
        }
        push(&mut world, blue, 1, "barrier");
        // 500 ms are enough for one round trip to the store and one to the switch for each request, but not for the
        // time after which Weir sends a barrier by itself.
        (0..500).for_each(|_| pass(&mut world, MS));
        assert_eq!(world.heard(blue), ["1 BARRIER_REPLY"], "{version:?}");
    }
}

#[test]
fn a_tenant_with_full_request_memory_is_served_without_idle_delay() {
    for version in VERSIONS {
        let mut world = far("blue: any", version);
        let blue = world.connect("blue");
        // Weir stops reading before the window is half full, because each change holds many bytes.
        let actions = vec!["output:1"; 1_000].join(",");
        for number in 0..500 {
            push(&mut world, blue, 1, &format!("flow add prio={number} actions={actions}"));
        }
        push(&mut world, blue, 1, "barrier");
        // 100 ms are enough for some round trips to the store and to the switch for each group of changes that has
        // room.
        (0..100).for_each(|_| pass(&mut world, MS));
        assert_eq!(world.heard(blue), ["1 BARRIER_REPLY"], "{version:?}");
    }
}

#[test]
fn the_first_request_of_a_tenant_is_sent_without_idle_delay() {
    for version in VERSIONS {
        let policy = "blue: in_port=1\nred: in_port=2";
        let mut world = World::new(Setup { delay: MS, ..Setup::new(version, policy) });
        let (blue, red) = (world.connect("blue"), world.connect("red"));
        // Blue sends more messages than the window of two tenants holds, but too few for a barrier while blue is alone.
        for _ in 0..20 {
            world.say(blue, 1, "out actions=output:1 data=10.0.0.1>10.0.0.2");
        }
        world.say(red, 2, "stats port port=2");
        // One round trip to the switch for the barrier behind blue's messages, and one for red's request.
        world.advance(4 * MS);
        assert_eq!(world.heard(red).len(), 1, "{version:?}");
    }
}

#[test]
fn statistics_of_another_tenant_do_not_delay_a_waiting_request() {
    let mut world = far("blue: in_port=1\nred: in_port=2", Version::V1_3);
    let (blue, red) = (world.connect("blue"), world.connect("red"));
    push(&mut world, blue, 1, "flow add prio=7 match=in_port=1 actions=drop");
    push(&mut world, blue, 2, "flow modify match=in_port=1 actions=drop");
    push(&mut world, blue, 3, "barrier");
    for round in 0..10 {
        pass(&mut world, 10 * MS);
        world.say(red, round, "stats port port=2");
    }
    assert_eq!(world.heard(blue), ["3 BARRIER_REPLY"]);
}

/// One controller changes entries all the time. A request of another controller is done all the same, because all
/// changes of tables are in one order.
#[test]
fn changes_of_another_controller_do_not_delay_a_waiting_request() {
    for version in VERSIONS {
        let mut world = World::new(Setup { delay: 10 * MS, ..Setup::new(version, "blue: any") });
        let (a, b) = (world.connect("blue"), world.connect("blue"));
        for round in 0..500 {
            world.say(b, round, &format!("flow add prio={} actions=output:1", 1 + round));
            if round == 100 {
                world.say(a, 1, "flow modify actions=output:2");
                world.say(a, 2, "barrier");
            }
            world.advance(5 * MS);
        }
        assert_eq!(world.heard(a), ["2 BARRIER_REPLY"], "{version:?}");
        world.advance(1_000 * MS);
        assert_eq!(world.heard(b), [""; 0], "{version:?}");
        assert_eq!(world.tenant_flows().len(), 500, "{version:?}");
    }
}

#[test]
fn echo_is_answered_while_earlier_requests_wait() {
    let policy = "blue flow_mod=1/1: any";
    let mut world = World::new(Setup::new(Version::V1_3, policy));
    let blue = world.connect("blue");
    for number in 0..10 {
        world.say(blue, number, &format!("flow add prio={} actions=output:1", 1 + number));
    }
    world.say(blue, 20, "flow modify actions=output:2");
    world.say(blue, 21, "echo data=01");
    assert_eq!(world.heard(blue), ["21 ECHO_REPLY 01"]);
}

/// The old master sends an addition and a modification. The new master's statistics show both, also if the old master
/// disconnects.
#[test]
fn a_new_master_sees_the_requests_of_the_old_master_done() {
    for goes in [false, true] {
        let mut world =
            World::new(Setup { per_second: Some(100), ..Setup::new(Version::V1_3, "blue: any") });
        let (a, b) = (world.connect("blue"), world.connect("blue"));
        at_once(&mut world, a, &["role master generation=1"]);
        world.say(a, 1, "flow add prio=7 actions=output:1");
        world.say(a, 2, "flow modify actions=output:2");
        world.say(b, 1, "role master generation=2");
        world.say(b, 2, "stats flow");
        if goes {
            world.core.controller_disconnected(world.controllers[a.0].index);
        }
        world.advance(2_000 * MS);
        let heard = world.heard(b);
        assert_eq!(heard[0], "1 ROLE MASTER generation=0x2", "{goes}");
        assert!(heard[1].contains("output:2"), "{goes}: {heard:?}");
    }
}

/// A controller that has disconnected gets no reply, so Weir sends no statistics request of this controller. Type 16 is
/// a statistics request on OpenFlow 1.0 and PORT_MOD on OpenFlow 1.3.
#[test]
fn port_mod_of_a_disconnected_controller_is_done_and_statistics_are_not() {
    const STATS_REQUEST: [u8; 2] = [16, 18];
    const PORT_MOD: [u8; 2] = [15, 16];
    for (at, version) in VERSIONS.into_iter().enumerate() {
        let mut world =
            World::new(Setup { per_second: Some(100), ..Setup::new(version, "blue: any") });
        let blue = world.connect("blue");
        world.say(blue, 1, "flow add prio=7 actions=output:1");
        world.south.clear();
        world.say(blue, 2, "barrier");
        world.say(blue, 3, "port_mod port=1 config=1 mask=1");
        world.say(blue, 4, "stats port port=1");
        world.core.controller_disconnected(world.controllers[blue.0].index);
        world.advance(2_000 * MS);
        let types = world.south_types();
        assert!(types.contains(&PORT_MOD[at]), "{version:?}: {types:?}");
        assert!(!types.contains(&STATS_REQUEST[at]), "{version:?}: {types:?}");
    }
}

/// The switch refuses a modification by which an entry would use group 1. After this refusal Weir accepts a change of
/// group 1.
#[test]
fn a_group_change_is_accepted_when_an_entry_with_the_group_is_refused() {
    let setup =
        Setup { policy: policy_on(hairpin_map()), ports: 6, ..Setup::new(Version::V1_3, "") };
    let mut world = World::new(Setup { per_second: Some(1_000), ..setup });
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=1 buckets=output:1");
    say(&mut world, blue, "flow add prio=7 actions=output:1");
    // The switch refuses this action in an entry that does not match on IP packets.
    let entry = "flow modify_strict prio=7 actions=mod_nw_src:1.2.3.4,group:1";
    let group = "group modify id=1 buckets=output:11";
    let heard = at_once(&mut world, blue, &[entry, group, "barrier"]);
    assert!(heard[0].starts_with("1 ERROR"), "{heard:?}");
    assert_eq!(heard[1..], ["3 BARRIER_REPLY"]);
}

/// The second request conflicts with the first while the first is in flight. The switch refuses the first request, so
/// Weir accepts the second.
#[test]
fn a_request_is_accepted_when_the_conflicting_change_is_refused() {
    for (policy, second) in [
        ("blue flows=1: any", "flow add prio=8 actions=output:2"),
        ("blue: any", "flow add match=in_port=1 prio=7 flags=overlap actions=output:2"),
    ] {
        for version in VERSIONS {
            let mut world =
                World::new(Setup { per_second: Some(1_000), ..Setup::new(version, policy) });
            let blue = world.connect("blue");
            world.switch.switch_mut().plant(vec![emulate::Fault::RefuseOnce { nth: 1 }]);
            let heard =
                at_once(&mut world, blue, &["flow add prio=7 actions=output:1", second, "barrier"]);
            assert!(heard[0].starts_with("1 ERROR"), "{version:?}: {heard:?}");
            assert_eq!(heard[1..], ["3 BARRIER_REPLY"], "{version:?}");
            assert_eq!(world.tenant_flows().len(), 1, "{version:?}");
        }
    }
}

/// PACKET_OUTs beyond the rate wait, and so do later requests. The entry is in the store, so Weir installs the entry
/// after the reconnect.
#[test]
fn waiting_requests_except_stored_changes_are_lost_when_the_switch_reconnects() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "red packet_out=100/10: any"));
        let red = world.connect("red");
        let lost = |world: &World| {
            let (_, by_type) = world.core.lost().next().unwrap();
            let counted = (0..).zip(by_type).filter(|(_, count)| *count > 0);
            counted.collect::<Vec<(usize, u64)>>()
        };
        for xid in 1..=15 {
            world.say(red, xid, "out actions=output:1 data=10.1.0.1>10.9.0.1");
        }
        assert_eq!(lost(&world), [(13, 5)]);
        world.say(red, 20, "flow add prio=7 actions=output:1");
        assert_eq!(lost(&world), [(13, 5)], "the entry is in the store");
        world.say(red, 21, "barrier");
        let barrier = if version == Version::V1_0 { 18 } else { 20 };
        assert_eq!(lost(&world), [(13, 5), (barrier, 1)]);
        // The requests behind the barrier wait for its reply: Weir has answered no FEATURES_REQUEST, and has added no
        // entry.
        world.say(red, 22, "features");
        world.say(red, 23, "flow add prio=8 actions=output:2");
        assert_eq!(lost(&world), [(5, 1), (13, 5), (14, 1), (barrier, 1)]);
        assert!(world.tenant_flows().is_empty());
        world.reconnect();
        let flows = world.tenant_flows();
        assert!(flows.len() == 1 && flows[0].contains("prio=7"), "{flows:?}");
        assert_eq!(world.left.len(), 10, "five packets never left");
        assert!(lost(&world).is_empty());
    }
}

/// After one turn Weir has changed some of the entries, and the store has these changes. Weir has neither carried out
/// nor refused the request. After all turns the request no longer counts as lost.
#[test]
fn a_partly_applied_modify_counts_as_lost() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "red: any"));
        let red = world.connect("red");
        let lost = |world: &World| {
            let (_, by_type) = world.core.lost().next().unwrap();
            by_type[14]
        };
        for n in 1..=400 {
            world.say(red, n, &format!("flow add prio={n} actions=output:1"));
        }
        assert_eq!(lost(&world), 0);
        let before = world.switch_entries();
        let modify = request(version, 500, "flow modify actions=output:2");
        world.controllers[red.0].outgoing.push_back(modify);
        world.turn(usize::MAX);
        let changed = |world: &World| {
            world.switch_entries().iter().filter(|entry| !before.contains(entry)).count()
        };
        assert!((1..400).contains(&changed(&world)), "{version:?}: {}", changed(&world));
        assert_eq!(lost(&world), 1, "{version:?}");
        world.pump();
        assert_eq!((changed(&world), lost(&world)), (400, 0), "{version:?}");
    }
}
