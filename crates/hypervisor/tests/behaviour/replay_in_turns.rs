//! Tests of the replay of requests after a refusal. Weir does the replay in turns: one turn of the event loop does a
//! bounded amount of work. An event between two turns has the result that it would have before or after the replay.

use crate::support::*;
use emulate::Fault;
use hypervisor::{Instant, Side};

const BEFORE: &str = "quiet: ip,nw_src=10.1.0.0/16\nmany: ip,nw_src=10.2.0.0/16";
/// The match of all entries of `many` changes on a switch of OpenFlow 1.0.
const AFTER: &str = "quiet: ip,nw_src=10.1.0.0/16\nmany: ip,nw_src=10.2.0.0/16,nw_dst=10.9.0.0/16";
/// The number of entries in one page. A test with more entries needs a second page.
const ENTRIES: usize = 250;
const BATCH: usize = 8;
/// The number of bytes that the daemon reads from a connection in one turn.
const READ: usize = 4096;
/// The cost of one turn in examined entries: two batches, and a look at each entry.
const TURN: u64 = 2 * 96 * BATCH as u64 + 2 * ENTRIES as u64;

/// The progress of the replay.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    TakingBack,
    Applying,
}

/// `many` has its entries, the first with a hard timeout of one minute, and adds an entry that the switch refuses. Then
/// `many` modifies all entries. Gives the world when the replay has this progress.
fn in_the_middle(version: Version, place: Place) -> (World, Seat) {
    let setup = Setup::new(version, BEFORE);
    let mut setup = Setup { per_second: Some(20_000), delay: 1_000_000, ..setup };
    setup.settings.batch = BATCH;
    let mut world = World::new(setup);
    let (many, quiet) = (world.connect("many"), world.connect("quiet"));
    world.say(quiet, 1, "flow add actions=output:controller");
    for n in 0..ENTRIES {
        let ends = if n == 0 { "hard=60 flags=rem " } else { "" };
        let words = format!("flow add match=ip,nw_src=10.2.0.{n} {ends}actions=output:1");
        world.say(many, 1, &words);
    }
    world.advance(1_000_000_000);
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    for (xid, words) in [
        (8, "flow add match=ip,nw_src=10.2.1.0 actions=output:1"),
        (7, "flow modify actions=output:2"),
    ] {
        world.controllers[many.0].outgoing.push_back(request(version, xid, words));
    }
    let (mut most, mut is_taken_back) = (0, false);
    for _ in 0..5_000 {
        next_turn(&mut world);
        let modified = showing(&world, 2);
        is_taken_back |= modified < most;
        most = most.max(modified);
        if is_taken_back && (place == Place::TakingBack || modified > ENTRIES / 2) {
            assert!(modified > 0 && modified < ENTRIES, "{version:?} {modified} of {most}");
            return (world, many);
        }
    }
    panic!("{version:?}: nothing is taken back of {most}");
}

fn worlds() -> impl Iterator<Item = (Version, World, Seat)> {
    let places = [Place::TakingBack, Place::Applying];
    let all = VERSIONS.into_iter().flat_map(move |version| places.map(|place| (version, place)));
    all.map(|(version, place)| {
        let (world, many) = in_the_middle(version, place);
        (version, world, many)
    })
}

fn next_turn(world: &mut World) {
    world.turn(READ);
    world.now += 10_000;
    if world.core.poll_timeout().is_some_and(|at| at.0 <= world.now) {
        world.core.handle_timeout(Instant(world.now));
    }
}

/// The number of entries of `many` that output to this port.
fn showing(world: &World, port: u8) -> usize {
    let output: &[u8] = match world.version {
        Version::V1_0 => &[0, 0, 0, 8, 0, port],
        _ => &[0, 0, 0, 16, 0, 0, 0, port],
    };
    let page = world.core.flow_page(world.tenant("many"), Side::Tenant, None).unwrap();
    let sends = |it: &&Vec<u8>| it.windows(output.len()).any(|bytes| bytes == output);
    page.flow_mods.iter().filter(sends).count()
}

/// The world is at rest: `many` has this number of entries, all changed by the MODIFY, and the switch holds exactly the
/// rules of the tables.
fn check(world: &mut World, entries: usize) {
    world.advance(10_000_000_000);
    assert!(!world.core.is_turn_awaited());
    assert_eq!((showing(world, 2), showing(world, 1)), (entries, 0));
    world.check_agreement();
}

fn is_refused(heard: &[String]) -> bool {
    heard.iter().filter(|it| it.starts_with("8 ERROR")).count() == 1
}

#[test]
fn another_tenant_is_served_in_each_turn_of_a_replay() {
    for (version, mut world, many) in worlds() {
        let quiet = world.connect("quiet");
        let examined = |world: &World| world.core.tenants().nth(1).unwrap().counters.examined;
        let (began, mut turns) = (examined(&world), 0);
        while world.core.is_turn_awaited() {
            turns += 1;
            world.controllers[quiet.0].outgoing.push_back(request(version, turns, "echo"));
            let (frame, mut came) = (packet("10.1.0.1>10.9.0.1"), Vec::new());
            world.switch.switch_mut().receive_packet(world.now, 1, &frame, &mut came);
            for message in frames(&came) {
                world.core.handle_switch_message(&message, Instant(world.now));
            }
            let before = examined(&world);
            next_turn(&mut world);
            assert_eq!(world.heard(quiet).len(), 2, "{version:?} turn {turns}: ECHO, PACKET_IN");
            let cost = examined(&world) - before;
            assert!(cost <= TURN, "{version:?} turn {turns}: {cost}");
            assert!(turns < 10_000);
        }
        // The replay changes half of the entries, and compiles and compares all entries.
        assert!(turns as usize > 2 * ENTRIES / BATCH, "{version:?}: {turns}");
        assert!(examined(&world) - began > 4 * TURN, "{version:?}");
        world.advance(1_000_000_000);
        assert!(is_refused(&world.heard(many)));
        check(&mut world, ENTRIES);
    }
}

#[test]
fn requests_except_echo_wait_until_the_replay_ends() {
    for (version, mut world, many) in worlds() {
        let index = world.controllers[many.0].index;
        for (xid, words) in [(20, "stats flow"), (22, "barrier"), (23, "echo")] {
            let message = request(version, xid, words);
            world.core.handle_controller_message(index, &message, Instant(world.now));
        }
        next_turn(&mut world);
        let heard = world.heard(many);
        assert!(heard.len() == 1 && heard[0].starts_with("23 ECHO"), "{heard:?}");
        world.advance(1_000_000_000);
        let heard = world.heard(many);
        assert!(is_refused(&heard), "{heard:?}");
        let reply: String = heard.iter().filter(|it| it.starts_with("20 ")).cloned().collect();
        assert_eq!(reply.matches("nw_src=10.2.").count(), ENTRIES, "{reply}");
        assert_eq!(reply.matches("output:1").count(), 0, "{reply}");
        assert!(heard.iter().any(|it| it.starts_with("22 BARRIER")), "{heard:?}");
        check(&mut world, ENTRIES);
    }
}

/// The refusal of the earlier request arrives when the MODIFY is applied in part or as a whole. Until a replay begins,
/// the tables show this part. The replay may begin while Weir builds a reply.
#[test]
fn statistics_do_not_show_a_part_of_an_interrupted_change() {
    for version in VERSIONS {
        for (is_cached, delay) in [(false, 100_000), (true, 100_000), (true, 600_000)] {
            let text =
                if is_cached { BEFORE.replace("many", "many cached=60000") } else { BEFORE.into() };
            let setup = Setup { delay, ..Setup::new(version, &text) };
            let mut setup = Setup { per_second: Some(20_000), ..setup };
            setup.settings.batch = BATCH;
            let mut world = World::new(setup);
            let many = world.connect("many");
            let index = world.controllers[many.0].index;
            for n in 0..ENTRIES {
                let words = format!("flow add match=ip,nw_src=10.2.0.{n} actions=output:1");
                world.say(many, 1, &words);
            }
            if is_cached {
                world.say(many, 1, "stats flow");
            }
            world.advance(1_000_000_000);
            let _ = world.heard(many);
            world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
            for (xid, words) in [
                (8, "flow add match=ip,nw_src=10.2.1.0 actions=output:1"),
                (20, "stats flow"),
                (7, "flow modify actions=output:2"),
            ] {
                world.controllers[many.0].outgoing.push_back(request(version, xid, words));
            }
            let mut heard = Vec::new();
            for turn in 0..2_000 {
                next_turn(&mut world);
                if is_cached && turn % 4 == 0 && turn < 200 {
                    let message = request(version, 21 + turn, "stats flow");
                    world.core.handle_controller_message(index, &message, Instant(world.now));
                }
                heard.extend(world.heard(many));
            }
            world.advance(1_000_000_000);
            heard.extend(world.heard(many));
            assert!(is_refused(&heard), "{version:?}");
            let answers: Vec<&String> = heard.iter().filter(|it| it.contains("STATS")).collect();
            assert_eq!(answers.len(), if is_cached { 51 } else { 1 }, "{version:?}");
            for answer in answers {
                let [one, two] = [1, 2].map(|n| answer.matches(&format!("output:{n}")).count());
                assert!(one == 0 || two == 0, "{version:?} {is_cached}: {one} and {two}");
                assert!([ENTRIES, ENTRIES + 1].contains(&(one + two)), "{version:?}: {answer}");
            }
            check(&mut world, ENTRIES);
        }
    }
}

#[test]
fn an_entry_that_expires_during_a_replay_is_removed_once() {
    for (version, mut world, many) in worlds() {
        world.now += 60_000_000_000;
        world.advance(1_000_000_000);
        let heard = world.heard(many);
        assert!(is_refused(&heard), "{heard:?}");
        let ends = heard.iter().filter(|it| it.contains("FLOW_REMOVED")).count();
        assert_eq!(ends, 1, "{version:?}: {heard:?}");
        check(&mut world, ENTRIES - 1);
    }
}

#[test]
fn each_entry_is_in_its_old_or_new_state_after_a_reconnect_during_a_replay() {
    for (version, mut world, _) in worlds() {
        world.reconnect();
        let entries = showing(&world, 1) + showing(&world, 2);
        // The refused entry may exist, because no controller has received an ERROR for this entry.
        assert!([ENTRIES, ENTRIES + 1].contains(&entries), "{version:?}: {entries}");
        world.check_agreement();
    }
}

#[test]
fn a_new_policy_waits_until_the_replay_ends() {
    for (version, mut world, many) in worlds() {
        world.begin_policy(policy(AFTER));
        world.advance(1_000_000_000);
        assert!(is_refused(&world.heard(many)), "{version:?}");
        check(&mut world, ENTRIES);
    }
}

/// The replay waits until all entries have followed the new policy.
#[test]
fn entries_are_correct_after_a_refusal_during_a_policy_change() {
    for version in VERSIONS {
        let mut setup = Setup { per_second: Some(20_000), ..Setup::new(version, BEFORE) };
        setup.settings.batch = BATCH;
        let mut world = World::new(setup);
        let many = world.connect("many");
        for n in 0..ENTRIES {
            world.say(many, 1, &format!("flow add match=ip,nw_src=10.2.0.{n} actions=output:2"));
        }
        world.advance(1_000_000_000);
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
        let words = "flow add match=ip,nw_src=10.2.1.0 actions=output:1";
        world.controllers[many.0].outgoing.push_back(request(version, 8, words));
        world.turn(READ);
        world.begin_policy(policy(AFTER));
        for _ in 0..ENTRIES {
            next_turn(&mut world);
        }
        world.advance(1_000_000_000);
        assert!(is_refused(&world.heard(many)), "{version:?}");
        check(&mut world, ENTRIES);
    }
}
