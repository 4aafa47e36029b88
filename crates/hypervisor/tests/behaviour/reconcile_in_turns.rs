//! Tests of a connecting switch with many rules. Weir reconciles these rules in turns: one turn of the event loop does
//! a bounded amount of work.

use crate::support::*;
use hypervisor::{Event, Instant};

const BEFORE: &str = "many: ip,nw_src=10.2.0.0/16";
/// The match of all entries of `many` changes on a switch of OpenFlow 1.0.
const AFTER: &str = "many: ip,nw_src=10.2.0.0/16,nw_dst=10.9.0.0/16";
const ENTRIES: usize = 250;
const BATCH: usize = 8;
/// The number of bytes that the daemon reads from a connection in one turn.
const READ: usize = 4096;

/// `many` has its entries, the first with a hard timeout of one minute. The switch disconnects and connects again.
/// Gives the world at the start of the reconciliation.
fn in_the_middle(version: Version) -> World {
    let mut setup = Setup::new(version, BEFORE);
    setup.settings.batch = BATCH;
    let mut world = World::new(setup);
    let many = world.connect("many");
    for n in 0..ENTRIES {
        let ends = if n == 0 { "hard=60 flags=rem " } else { "" };
        let words = format!("flow add match=ip,nw_src=10.2.0.{n} {ends}actions=output:1");
        world.say(many, 1, &words);
    }
    world.advance(1_000_000_000);
    world.begin_to_reconnect();
    for _ in 0..100 {
        world.turn(READ);
        if world.core.is_turn_awaited() {
            assert!(!world.core.is_ready());
            return world;
        }
    }
    panic!("{version:?}: the switch has not said what it holds");
}

/// The numbers of rules that the last reconciliation kept, installed and removed.
fn reconciled(world: &mut World) -> Option<(usize, usize, usize)> {
    world.pump();
    world.events.iter().find_map(|event| match *event {
        Event::Reconciled { kept, installed, removed, .. } => Some((kept, installed, removed)),
        _ => None,
    })
}

/// The switch holds the rules of this number of entries, and a new connection finds no difference.
fn check(world: &mut World, entries: usize) {
    world.advance(10_000_000_000);
    assert_eq!(world.core.tenants().map(|it| it.flows).sum::<usize>(), entries);
    world.check_agreement();
    assert_eq!(world.core.tenants().map(|it| it.flows).sum::<usize>(), entries);
}

#[test]
fn the_switch_gets_an_echo_reply_in_each_turn_of_reconciliation() {
    for version in VERSIONS {
        let (mut world, mut turns) = (in_the_middle(version), 0);
        while world.core.is_turn_awaited() {
            turns += 1;
            let echo = request(version, turns, "echo");
            world.core.handle_switch_message(&echo, Instant(world.now));
            world.south.clear();
            world.turn(READ);
            let is_answer = |it: &Vec<u8>| it[1] == 3 && it[4..8] == echo[4..8];
            assert!(world.south.iter().any(is_answer), "{version:?} turn {turns}");
            assert!(turns < 1_000);
        }
        // Weir restores the entries and looks for them on the switch. Weir also reads, looks up and compares the rules.
        assert!(turns as usize > 4 * ENTRIES / BATCH, "{version:?}: {turns}");
        let (kept, installed, removed) = reconciled(&mut world).expect("a reconciliation");
        assert!(kept >= ENTRIES && (installed, removed) == (0, 0), "{version:?}");
        assert!(world.events.iter().any(|it| matches!(it, Event::Serve(_))));
        check(&mut world, ENTRIES);
    }
}

#[test]
fn an_entry_that_expires_during_reconciliation_is_removed() {
    for version in VERSIONS {
        let mut world = in_the_middle(version);
        world.now += 60_000_000_000;
        world.turn(READ);
        assert!(world.core.is_turn_awaited());
        assert!(reconciled(&mut world).is_some());
        check(&mut world, ENTRIES - 1);
    }
}

#[test]
fn a_policy_change_during_reconciliation_is_applied_afterwards() {
    for version in VERSIONS {
        let mut world = in_the_middle(version);
        world.begin_policy(policy(AFTER));
        world.turn(READ);
        world.begin_policy(policy("many: ip,nw_src=10.2.0.0/25,nw_dst=10.9.0.0/16"));
        assert!(reconciled(&mut world).is_some());
        // On 1.3 one of Weir's own tables distinguishes slices, so a new policy changes no rules of tenants.
        check(&mut world, if version == Version::V1_3 { ENTRIES } else { 128 });
    }
}

#[test]
fn a_switch_that_sends_too_much_during_reconciliation_is_disconnected() {
    for version in VERSIONS {
        let mut world = in_the_middle(version);
        let mut port_status = vec![0; 64];
        port_status[..4].copy_from_slice(&[version.0, 12, 0, 64]);
        for _ in 0..=(1 << 20) / port_status.len() {
            world.core.handle_switch_message(&port_status, Instant(world.now));
        }
        world.pump();
        assert!(world.events.iter().any(|it| matches!(it, Event::CloseSwitch(_))), "{version:?}");
    }
}
