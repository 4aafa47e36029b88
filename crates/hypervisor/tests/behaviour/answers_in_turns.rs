//! Tests of long statistics replies, which Weir builds in turns. One turn of the event loop does a bounded amount of
//! work. The reply reports each entry once, and never a part of a change.

use crate::support::*;
use emulate::Fault;
use hypervisor::Instant;
use proptest::prelude::*;

const SPACES: &str = "quiet: ip,nw_src=10.1.0.0/16\nmany: ip,nw_src=10.2.0.0/16";
/// The flowspaces of `many` overlap, so Weir asks a switch on 1.0 twice for some rules.
const TWICE: &str = "
    quiet: ip,nw_src=10.1.0.0/16
    many: ip,nw_src=10.2.0.0/16
    many: ip,nw_src=10.2.0.0/24,nw_dst=10.9.0.0/16
";
const ENTRIES: usize = 240;
const BATCH: usize = 2;
/// The number of entries that one turn examines.
const AT_ONCE: usize = 8 * BATCH;
/// The number of bytes that the daemon reads from a connection in one turn.
const READ: usize = 4096;

const WHAT: [&str; 3] = ["stats flow", "stats aggregate cookie=1 cookie_mask=1", "stats table"];

/// A world in which `many` has added its entries. Entries with an even number output to port 1, entries with an odd
/// number output to port 2. All entries have cookie 1.
fn world(version: Version, text: &str) -> (World, Seat) {
    let mut setup = Setup { per_second: Some(50_000), ..Setup::new(version, text) };
    setup.settings.batch = BATCH;
    let mut world = World::new(setup);
    let many = world.connect("many");
    for n in 0..ENTRIES {
        let ends = if n % 10 == 9 { "hard=60 flags=rem " } else { "" };
        let words = format!(
            "flow add match=ip,nw_src=10.2.0.{n} cookie=1 {ends}actions=output:{}",
            n % 2 + 1
        );
        world.say(many, 1, &words);
    }
    world.advance(1_000_000_000);
    assert_eq!(world.heard(many), [""; 0]);
    (world, many)
}

fn next_turn(world: &mut World) {
    world.turn(READ);
    world.now += 10_000;
    if world.core.poll_timeout().is_some_and(|at| at.0 <= world.now) {
        world.core.handle_timeout(Instant(world.now));
    }
}

/// Delivers a message, also when the core does not want to read from the controller.
fn say_at_once(world: &mut World, seat: Seat, xid: u32, words: &str) {
    let message = request(world.version, xid, words);
    let index = world.controllers[seat.0].index;
    world.core.handle_controller_message(index, &message, Instant(world.now));
}

/// Sends a request, and runs turns until Weir builds the reply in turns.
fn ask(world: &mut World, seat: Seat, words: &str) {
    say_at_once(world, seat, 7, words);
    for _ in 0..10_000 {
        if world.core.is_turn_awaited() {
            break;
        }
        next_turn(world);
    }
    assert!(world.core.is_turn_awaited());
    assert_eq!(world.heard(seat), [""; 0]);
}

fn flows(world: &World) -> usize {
    world.core.tenants().nth(1).unwrap().flows
}

/// The numbers of the entries in a reply, in the order of the reply.
fn entries_in(heard: &[String]) -> Vec<u32> {
    let parts = heard.iter().filter(|it| it.starts_with("7 STATS flow"));
    let words = parts.flat_map(|it| it.split([' ', ',', ';']));
    let numbers = words.filter_map(|it| it.strip_prefix("nw_src=10.2.0."));
    numbers.map(|it| it.parse().unwrap()).collect()
}

/// Whether the reply to `many` has each entry once.
fn is_of_all(words: &str, heard: &[String]) -> bool {
    let all = format!("flows={ENTRIES}");
    match words {
        "stats flow" => {
            let mut entries = entries_in(heard);
            entries.sort_unstable();
            entries == Vec::from_iter(0..ENTRIES as u32)
        }
        "stats table" => heard.iter().any(|it| it.contains(&format!(" 0:{ENTRIES}"))),
        _ => heard.iter().any(|it| it.contains(&all)),
    }
}

#[test]
fn other_controllers_are_served_while_a_long_reply_is_built() {
    for version in VERSIONS {
        for (text, words) in [SPACES, TWICE].into_iter().flat_map(|text| WHAT.map(|it| (text, it)))
        {
            let (mut world, many) = world(version, text);
            let (quiet, beside) = (world.connect("quiet"), world.connect("many"));
            ask(&mut world, many, words);
            let examined = |world: &World| world.core.tenants().nth(1).unwrap().counters.examined;
            let (mut heard, mut turns) = (Vec::new(), 0);
            while world.core.is_turn_awaited() {
                turns += 1;
                world.controllers[quiet.0].outgoing.push_back(request(version, turns, "echo"));
                // Another controller of the same tenant also gets its reply.
                say_at_once(&mut world, beside, turns, "stats desc");
                let before = examined(&world);
                next_turn(&mut world);
                assert_eq!(world.heard(quiet).len(), 1, "{version:?} {words} turn {turns}");
                assert_eq!(world.heard(beside).len(), 1, "{version:?} {words} turn {turns}");
                let cost = examined(&world) - before;
                assert!(cost <= 12 * AT_ONCE as u64, "{version:?} {words} turn {turns}: {cost}");
                let more = world.heard(many);
                assert!(entries_in(&more).len() <= ENTRIES, "{more:?}");
                heard.extend(more);
                assert!(turns < 10_000);
            }
            // Weir needs turns to read all rules, and more turns to report all entries.
            assert!(turns as usize >= 2 * ENTRIES / AT_ONCE, "{version:?} {words}: {turns}");
            assert!(is_of_all(words, &heard), "{version:?} {words}: {heard:?}");
        }
    }
}

#[test]
fn requests_after_a_statistics_request_are_done_after_the_whole_reply() {
    for version in VERSIONS {
        for words in WHAT {
            let (mut world, many) = world(version, SPACES);
            let beside = world.connect("many");
            ask(&mut world, many, words);
            next_turn(&mut world);
            next_turn(&mut world);
            say_at_once(&mut world, beside, 20, "flow delete match=ip,nw_src=10.2.0.1");
            say_at_once(&mut world, many, 21, "flow modify actions=output:3");
            say_at_once(&mut world, many, 22, "barrier");
            assert_eq!(flows(&world), ENTRIES);
            world.advance(1_000_000_000);
            let heard = world.heard(many);
            let (barrier, answer) = heard.split_last().unwrap();
            assert_eq!(barrier, "22 BARRIER_REPLY", "{version:?} {words}");
            assert!(answer.iter().all(|it| it.starts_with("7 STATS")), "{heard:?}");
            assert!(is_of_all(words, answer), "{version:?} {words}: {heard:?}");
            assert!(!answer.concat().contains("output:3"), "{version:?}: {heard:?}");
            assert_eq!(flows(&world), ENTRIES - 1);
            world.check_agreement();
        }
    }
}

/// Three controllers of a tenant ask for statistics, and one of them then deletes an entry. The deletion is done after
/// the first reply. The queued replies are built later and do not have the entry.
#[test]
fn a_change_waits_for_the_current_long_reply_but_not_for_queued_replies() {
    for version in VERSIONS {
        let (mut world, many) = world(version, SPACES);
        let others = [world.connect("many"), world.connect("many")];
        ask(&mut world, many, "stats flow");
        for seat in others {
            say_at_once(&mut world, seat, 7, "stats flow");
        }
        say_at_once(&mut world, others[1], 8, "flow delete match=ip,nw_src=10.2.0.1");
        for turn in 0.. {
            assert!(turn < 10_000);
            assert_eq!(flows(&world), ENTRIES);
            next_turn(&mut world);
            if world.heard(many).iter().any(|it| !it.ends_with('+')) {
                break;
            }
        }
        next_turn(&mut world);
        next_turn(&mut world);
        assert_eq!(flows(&world), ENTRIES - 1, "{version:?}");
        world.advance(1_000_000_000);
        for seat in others {
            assert_eq!(entries_in(&world.heard(seat)).len(), ENTRIES - 1, "{version:?}");
        }
    }
}

#[test]
fn cached_statistics_replies_are_also_built_in_turns() {
    for version in VERSIONS {
        let text = SPACES.replace("many", "many cached=1000");
        let (mut world, many) = world(version, &text);
        ask(&mut world, many, "stats flow");
        world.pump();
        world.advance(10_000_000);
        assert!(is_of_all("stats flow", &world.heard(many)), "{version:?}");
        world.south.clear();
        for _ in 0..2 {
            ask(&mut world, many, "stats flow");
            let mut turns = 0;
            while world.core.is_turn_awaited() {
                next_turn(&mut world);
                turns += 1;
            }
            assert!(turns >= 2 * ENTRIES / AT_ONCE, "{version:?}: {turns}");
            assert!(is_of_all("stats flow", &world.heard(many)), "{version:?}");
        }
        assert_eq!(world.south, [[0; 0]; 0], "{version:?}");
    }
}

#[test]
fn a_long_reply_is_dropped_when_its_controller_disconnects() {
    for version in VERSIONS {
        let (mut world, many) = world(version, SPACES);
        let beside = world.connect("many");
        ask(&mut world, many, "stats flow");
        next_turn(&mut world);
        world.core.controller_disconnected(world.controllers[many.0].index);
        say_at_once(&mut world, beside, 8, "flow delete");
        let mut turns = 0;
        while flows(&world) > 0 && turns < 10_000 {
            next_turn(&mut world);
            turns += 1;
        }
        assert!(turns < ENTRIES / BATCH + 10, "{version:?}: {turns}");
        world.advance(1_000_000_000);
        assert!(!world.core.is_turn_awaited());
        assert!(world.core.tenants().all(|it| it.held == 0));
        world.check_agreement();
    }
}

/// Events between the turns: entries expire, the policy changes the tenant's flowspace, the policy removes the tenant,
/// or the switch refuses a rule.
const MEANWHILE: [&str; 5] = ["nothing", "time", "policy", "no policy", "refused"];

proptest! {
    #[test]
    fn a_long_reply_reports_each_entry_once_despite_events_between_turns(
        version in prop::sample::select(&VERSIONS[..]),
        meanwhile in prop::sample::select(&MEANWHILE[..]),
        words in prop::sample::select(&WHAT[..]),
        turns in 0..40_usize,
        batch in 0..3_usize,
    ) {
        let (mut world, many) = world(version, [SPACES, TWICE][batch % 2]);
        if meanwhile == "refused" {
            // The switch refuses the rule after Weir has begun the reply.
            world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
            say_at_once(&mut world, many, 8, "flow add match=ip,nw_src=10.2.1.0 actions=output:1");
        }
        ask(&mut world, many, words);
        let before = flows(&world);
        for _ in 0..turns {
            next_turn(&mut world);
        }
        match meanwhile {
            "time" => {
                world.now += 60_000_000_000;
            }
            "policy" => world.begin_policy(policy(
                "quiet: ip,nw_src=10.1.0.0/16\nmany: ip,nw_src=10.2.0.0/16,nw_dst=10.8.0.0/16",
            )),
            "no policy" => world.begin_policy(policy("quiet: ip,nw_src=10.1.0.0/16")),
            _ => {}
        }
        world.advance(1_000_000_000);
        prop_assert!(!world.core.is_turn_awaited());
        if meanwhile == "no policy" {
            return Ok(());
        }
        let heard = world.heard(many);
        let answer: Vec<String> =
            heard.iter().filter(|it| it.starts_with("7 STATS")).cloned().collect();
        let last = answer.iter().filter(|it| !it.ends_with('+')).count();
        prop_assert_eq!(last, 1, "{:?}", heard);
        if words == "stats flow" {
            let mut entries = entries_in(&answer);
            let all = entries.len();
            entries.sort_unstable();
            entries.dedup();
            prop_assert_eq!(entries.len(), all);
            let stays = |n: &u32| n % 10 != 9 || meanwhile != "time";
            let staying = (0..ENTRIES as u32).filter(stays);
            prop_assert!(staying.into_iter().all(|n| entries.contains(&n)), "{:?}", heard);
        } else if !["time", "refused"].contains(&meanwhile) {
            prop_assert!(is_of_all(words, &answer), "{} {:?}", before, heard);
        }
        // Weir handles requests after the reply.
        world.say(many, 30, "flow delete");
        world.say(many, 31, "barrier");
        world.advance(1_000_000_000);
        let heard = world.heard(many);
        prop_assert!(heard.iter().any(|it| it == "31 BARRIER_REPLY"), "{heard:?}");
        prop_assert_eq!(flows(&world), 0);
        prop_assert!(world.core.tenants().all(|it| it.held == 0));
        world.check_agreement();
    }
}
