//! Tests of changes that Weir makes in turns: Weir's own rules after a new map, and the rules, groups and meters of a
//! switch that connects. One turn of the event loop does a bounded amount of work.

use crate::support::*;
use emulate::{Config, Fault, ServiceTime, SlowSwitch};
use fabric::PortNumber;
use fabric::embedding::{Exit, Hop, SwitchMap, Tag, Transit};
use hypervisor::{Event, Instant, Policy};
use openflow::VersionSet;
use std::sync::Arc;

/// The number of Weir's own rules for transit.
const RULES: u16 = 240;
const GROUPS: usize = 250;
const BATCH: usize = 8;
/// The number of bytes that the daemon reads from a connection in one turn.
const READ: usize = 4096;
const FLOW_MOD: u8 = 14;

/// A policy with a tenant at port 4, and with transit packets at ports 1 to 3. The labels of the transit packets start
/// at `label`.
fn passing(label: u16) -> Policy {
    let hop = |n: u16| Hop {
        port: PortNumber::new(1 + u32::from(n % 3)).unwrap(),
        tag: Tag::new(label + n).unwrap(),
    };
    let transit = |n| Transit { from: hop(n), to: Exit::Next(hop(n + 1)), leaves_by: None };
    let mut map = SwitchMap { transit: (0..RULES).map(transit).collect(), ..Default::default() };
    map.transit.sort_by_key(|it| it.from);
    let mut policy = policy("quiet: in_port=4");
    policy.maps.insert(DPID, Arc::new(map));
    policy
}

fn world(version: Version) -> World {
    let mut setup = Setup { policy: passing(100), ..Setup::new(version, "") };
    setup.settings.batch = BATCH;
    World::new(setup)
}

/// The number of rules for packets with a label from `label` on, and of rules for other labels.
fn with_labels(world: &World, label: u16) -> (usize, usize) {
    let flows = world.switch_flows();
    let passes = |flow: &&String| flow.contains("dl_vlan=") || flow.contains("vlan_vid=");
    let labelled: Vec<&String> = flows.iter().filter(passes).collect();
    let is_new = |flow: &&&String| {
        (label..label + RULES).any(|at| {
            let is = |text: String| flow.split([' ', ',']).any(|word| word == text);
            is(format!("dl_vlan={at}")) || is(format!("vlan_vid={at}"))
        })
    };
    let new = labelled.iter().filter(is_new).count();
    (new, labelled.len() - new)
}

fn check(world: &mut World, label: u16) {
    world.advance(10_000_000_000);
    assert_eq!(with_labels(world, label), (RULES.into(), 0), "{:?}", world.switch_flows());
    world.check_agreement();
}

#[test]
fn a_new_map_is_applied_in_turns_and_tenant_requests_wait() {
    for version in VERSIONS {
        let mut world = world(version);
        let quiet = world.connect("quiet");
        world.say(quiet, 1, "flow add actions=output:controller");
        world.heard(quiet);
        world.south.clear();
        world.begin_policy(passing(1000));
        let late = request(version, 9, "flow add match=in_port=4 prio=7 actions=output:4");
        let index = world.controllers[quiet.0].index;
        world.core.handle_controller_message(index, &late, Instant(world.now));
        let mut turns = 0;
        while world.core.is_turn_awaited() {
            turns += 1;
            world.controllers[quiet.0].outgoing.push_back(request(version, turns, "echo"));
            let (frame, mut came) = (packet("10.1.0.1>10.9.0.1"), Vec::new());
            world.switch.switch_mut().receive_packet(world.now, 4, &frame, &mut came);
            for message in frames(&came) {
                world.core.handle_switch_message(&message, Instant(world.now));
            }
            let before = world.south.len();
            world.turn(READ);
            let is_change = |it: &&Vec<u8>| it[1] == FLOW_MOD;
            let changes = world.south[before..].iter().filter(is_change).count();
            // Weir makes the first batch when the map arrives, and the first turn sends this batch and the next batch.
            assert!(changes <= 2 * BATCH, "{version:?} turn {turns}: {changes}");
            assert_eq!(world.heard(quiet).len(), 2, "{version:?} turn {turns}: ECHO, PACKET_IN");
            assert!(turns < 1_000);
        }
        assert!(turns as usize >= 2 * usize::from(RULES) / BATCH, "{version:?}: {turns}");
        world.advance(1_000_000_000);
        let changes = world.south.iter().filter(|it| it[1] == FLOW_MOD);
        let place = changes.clone().position(|it| it[4..8] != late[4..8] && is_late(it));
        assert_eq!(place, Some(2 * usize::from(RULES)), "{version:?}: behind Weir's own");
        assert_eq!(changes.count(), 2 * usize::from(RULES) + 1, "{version:?}");
        check(&mut world, 1000);
    }
}

/// Whether a FLOW_MOD has priority 7, which only the tenant's request has.
fn is_late(message: &[u8]) -> bool {
    match message[0] {
        1 => message[62..64] == [0, 7],
        _ => message[30..32] == [0, 7],
    }
}

#[test]
fn a_rule_that_is_refused_during_a_map_change_is_sent_again() {
    for version in VERSIONS {
        let mut world = world(version);
        world.begin_policy(passing(1000));
        for _ in 0..RULES / BATCH as u16 + 5 {
            world.turn(READ);
        }
        assert!(world.core.is_turn_awaited());
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
        check(&mut world, 1000);
        assert!(!world.events.iter().any(|it| matches!(it, Event::OwnRefused { .. })));
    }
}

/// The event happens after 3 turns, and in another run after 40 turns. Then the switch has the rules of a map whose
/// labels start at `labels`.
fn check_interrupted(labels: u16, event: impl Fn(&mut World)) {
    for version in VERSIONS {
        for turns in [3, 40] {
            let mut world = world(version);
            world.begin_policy(passing(1000));
            (0..turns).for_each(|_| world.turn(READ));
            assert!(world.core.is_turn_awaited());
            event(&mut world);
            check(&mut world, labels);
        }
    }
}

#[test]
fn a_map_that_arrives_during_a_map_change_is_applied_next() {
    check_interrupted(1100, |world| {
        world.begin_policy(passing(1100));
        world.turn(READ);
    });
}

#[test]
fn a_reconnect_during_a_map_change_installs_the_missing_rules() {
    check_interrupted(1000, |world| {
        world.reconnect();
    });
}

/// Replaces the switch by a switch without rules. Returns the number of messages of this type in each turn.
fn comes_empty(world: &mut World, type_: u8) -> Vec<usize> {
    let mut config = Config::new(DPID, 4);
    config.versions = VersionSet::only(world.version);
    config.n_buffers = 0;
    world.switch = SlowSwitch::new(emulate::Switch::new(config), ServiceTime::default());
    world.begin_to_reconnect();
    let mut turns = Vec::new();
    while !world.core.is_ready() {
        let before = world.south.len();
        world.turn(READ);
        turns.push(world.south[before..].iter().filter(|it| it[1] == type_).count());
        assert!(turns.len() < 1_000);
    }
    turns
}

#[test]
fn a_switch_that_connects_gets_weirs_own_rules_in_turns() {
    for version in VERSIONS {
        let mut world = world(version);
        let turns = comes_empty(&mut world, FLOW_MOD);
        assert!(turns.iter().all(|it| *it <= 2 * BATCH), "{version:?}: {turns:?}");
        assert!(turns.iter().sum::<usize>() >= RULES.into(), "{version:?}: {turns:?}");
        check(&mut world, 100);
    }
}

#[test]
fn a_switch_that_connects_gets_groups_and_meters_in_turns() {
    const GROUP_MOD: u8 = 15;
    let mut setup = Setup::new(Version::V1_3, "red own=3+4: -");
    setup.settings.batch = BATCH;
    let mut world = World::new(setup);
    let red = world.connect("red");
    for n in 0..GROUPS {
        // Each group of the second half sends to a group that has a higher number.
        let half = GROUPS / 2;
        let (id, buckets) = match n < half {
            true => (500 + n, "output:1".to_owned()),
            false => (n - half + 1, format!("group:{}", 500 + n - half)),
        };
        world.say(red, 1, &format!("group add id={id} buckets={buckets}"));
    }
    world.say(red, 1, "meter add id=7 rate=100");
    world.say(red, 1, "flow add actions=meter=7;group:1");
    assert_eq!(world.heard(red), Vec::<String>::new());
    let before = world.switch_groups();
    let turns = comes_empty(&mut world, GROUP_MOD);
    assert!(turns.iter().all(|it| *it <= 2 * BATCH), "{turns:?}");
    assert_eq!(turns.iter().sum::<usize>(), GROUPS, "{turns:?}");
    assert_eq!(world.switch_groups(), before);
    world.advance(1_000_000_000);
    world.check_agreement();
}
