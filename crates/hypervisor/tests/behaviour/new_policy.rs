//! Tests of a new policy, which Weir applies in turns. One turn of the event loop compiles a bounded number of entries
//! again.

use crate::support::*;

const BEFORE: &str = "
    quiet: ip,nw_src=10.1.0.0/16
    many: ip,nw_src=10.2.0.0/16
    more: ip,nw_src=10.3.0.0/16
";
/// The match of all entries of `many` changes on the switch, and some entries of `more` are removed.
const AFTER: &str = "
    quiet: ip,nw_src=10.1.0.0/16
    many: ip,nw_src=10.2.0.0/16,nw_dst=10.9.0.0/16
    more: ip,nw_src=10.3.0.0/17
";
const ENTRIES: usize = 2_000;
/// The number of entries of `more` that stay.
const STAYING: usize = 1_024;

/// The number of entries of `more` that stay. On OpenFlow 1.3 a table of Weir's own separates slices, so a new policy
/// changes no tenants' rules.
fn staying(version: Version, few: usize) -> usize {
    if version == Version::V1_3 { ENTRIES } else { few }
}

/// The number of bytes that the daemon reads from a connection in one turn.
const READ: usize = 4096;

/// A world in which `many` and `more` have their entries, and a controller of `quiet`.
fn world(version: Version) -> (World, Seat) {
    let mut world = World::new(Setup::new(version, BEFORE));
    for (name, net) in [("many", 2), ("more", 3)] {
        let seat = world.connect(name);
        for n in 0..ENTRIES {
            let (high, low) = (n % 256, n / 256);
            let words = format!("flow add match=ip,nw_src=10.{net}.{high}.{low} actions=output:1");
            world.controllers[seat.0].outgoing.push_back(request(version, 1, &words));
        }
    }
    world.pump();
    world.stored();
    world.advance(100_000_000);
    assert_eq!(rules(&world), 2 * ENTRIES);
    let quiet = world.connect("quiet");
    (world, quiet)
}

/// The number of rules of all tenants on the switch.
fn rules(world: &World) -> usize {
    world.core.tenants().map(|it| it.entries).sum()
}

#[test]
fn another_tenant_is_served_between_two_batches_of_a_new_policy() {
    for version in VERSIONS {
        let (mut world, quiet) = world(version);
        world.begin_policy(policy(AFTER));
        let mut turns = 0;
        while world.core.is_turn_awaited() {
            turns += 1;
            world.controllers[quiet.0].outgoing.push_back(request(version, turns, "echo"));
            let out =
                request(version, turns, "out in_port=1 actions=output:2 data=10.1.0.1>10.9.0.1");
            world.controllers[quiet.0].outgoing.push_back(out);
            world.turn(READ);
            world.now += 100_000;
            assert_eq!(world.heard(quiet).len(), 1, "{version:?} turn {turns}: ECHO");
            // A PACKET_OUT leaves one turn later, behind the switch's replies.
            assert!(world.left.len() + 1 >= turns as usize, "{version:?} turn {turns}: PACKET_OUT");
            assert!(turns < 1_000);
        }
        // Weir compiles 4,000 entries in batches of 128 entries. On 1.0, half of the entries have an old rule and a new
        // rule.
        assert!((31..=64).contains(&turns), "{version:?}: {turns}");
        world.pump();
        assert_eq!(rules(&world), ENTRIES + staying(version, STAYING), "{version:?}");
        world.check_agreement();
    }
}

#[test]
fn requests_wait_until_a_new_policy_is_applied_to_every_entry() {
    for version in VERSIONS {
        let (mut world, _) = world(version);
        let more = world.connect("more");
        world.begin_policy(policy(AFTER));
        world.controllers[more.0].outgoing.push_back(request(version, 7, "stats flow"));
        world.controllers[more.0].outgoing.push_back(request(version, 8, "flow delete"));
        world.controllers[more.0].outgoing.push_back(request(version, 9, "barrier"));
        world.turn(READ);
        assert!(world.core.is_turn_awaited());
        world.pump();
        world.stored();
        world.pump();
        let heard = world.heard(more);
        // A tenant gets FLOW_REMOVED for an entry that the policy removes only if the entry has the flag SEND_FLOW_REM.
        let entries: usize = heard.iter().map(|it| it.matches("nw_src=10.3.").count()).sum();
        assert_eq!(entries, staying(version, STAYING), "{version:?}");
        assert!(heard.last().is_some_and(|it| it.starts_with("9 BARRIER")), "{heard:?}");
        assert_eq!(rules(&world), ENTRIES, "{version:?}");
        world.check_agreement();
    }
}

#[test]
fn two_tenants_can_exchange_their_ports_in_a_new_policy() {
    for version in VERSIONS {
        for batch in [1, 128] {
            let mut setup = Setup::new(version, "red: in_port=1\nblue: in_port=2");
            setup.settings.batch = batch;
            let mut world = World::new(setup);
            play(
                &mut world,
                "
                red> 1 flow add match=ip actions=output:controller
                red> 2 flow add match=arp actions=output:controller
                blue> 1 flow add match=ip actions=output:controller
                blue> 2 flow add match=arp actions=output:controller
            ",
            );
            world.set_policy(policy("red: in_port=2\nblue: in_port=1"));
            world.stored();
            assert_eq!(rules(&world), 4, "{version:?}");
            world.check_agreement();
        }
    }
}

#[test]
fn the_latest_policy_that_arrives_during_a_policy_change_is_applied() {
    for version in VERSIONS {
        let (mut world, _) = world(version);
        world.begin_policy(policy(AFTER));
        world.turn(READ);
        assert!(world.core.is_turn_awaited());
        world.begin_policy(policy(BEFORE));
        world.begin_policy(policy(
            "quiet: ip,nw_src=10.1.0.0/16\nmany: -\nmore: ip,nw_src=10.3.0.0/24",
        ));
        world.pump();
        world.stored();
        world.pump();
        assert_eq!(rules(&world), staying(version, 8), "{version:?}");
        world.check_agreement();
    }
}

/// Every tenth group watches the last group.
#[test]
fn groups_are_updated_in_batches_after_a_new_policy() {
    const GROUPS: usize = 500;
    let before = "quiet: ip,nw_src=10.1.0.0/16\nmany own=1+2: -";
    let mut world = World::new(Setup::new(Version::V1_3, before));
    let (many, quiet) = (world.connect("many"), world.connect("quiet"));
    world.say(many, 1, &format!("group add id={GROUPS} buckets=output:2"));
    for id in 1..GROUPS {
        let buckets = match id % 10 {
            0 => format!("g{GROUPS}@output:2 type=ff"),
            _ => "output:2".to_owned(),
        };
        world.say(many, 1, &format!("group add id={id} buckets={buckets}"));
    }
    world.stored();
    let sends_to = |world: &mut World, port: &str| {
        let groups = world.switch_groups().join(" ");
        groups.split(' ').filter(|it| it.ends_with(port)).count()
    };
    assert_eq!(sends_to(&mut world, "output:2"), GROUPS);
    world.begin_policy(policy("quiet: ip,nw_src=10.1.0.0/16\nmany own=1+3: -"));
    let mut turns = 0;
    while world.core.is_turn_awaited() {
        turns += 1;
        let echo = request(Version::V1_3, turns, "echo");
        world.controllers[quiet.0].outgoing.push_back(echo);
        world.turn(READ);
        world.now += 100_000;
        let heard = world.heard(quiet);
        assert!(heard.iter().any(|it| it.contains("ECHO")), "turn {turns}: {heard:?}");
        assert!(turns < 100);
    }
    // Weir updates 500 groups in batches of 128 groups. The search for groups that watch other groups counts too.
    assert!((4..=8).contains(&turns), "{turns}");
    world.pump();
    assert_eq!(sends_to(&mut world, "output:3"), GROUPS);
    let groups = world.switch_groups();
    world.check_agreement();
    assert_eq!(world.switch_groups(), groups);
}
