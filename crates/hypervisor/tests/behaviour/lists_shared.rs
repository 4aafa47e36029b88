//! Lists of actions that send by shared edge ports, do not name the destination, and cannot leave it for the end: on the switch
//! they are several rules, by destination. That random ones forward as they would on a switch of the tenant's own is in
//! `sharing`, that all agree whatever is refused in `groups_agree`.

use crate::deliveries::{
    BIG_FROM, BLUE, BROADCAST, EVERY_NODE, RED, WHOLE, accept, big_plan, frame, host, map, plan,
    plan_before_sharing, stage, world_on,
};
use crate::groups_kept::{on, say};
use crate::groups_shared::{STRANGER, all_same, both, destinations, same, with};
use crate::networks::both_say;
use crate::support::*;
use emulate::Fault;
use fabric::embedding::SwitchMap;

/// What is for many, whichever its address is.
const MANY: &str = "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00";

/// What the switch has for rules of the first switch, of all its tenants.
fn entries(stage: &Stage) -> usize {
    stage.entries(1).len()
}

/// More is to come behind the output: to both tenants it is one rule, and to the switch one for each destination.
#[test]
fn each_form_sends_to_the_tenants_own_hosts() {
    for (match_, actions) in [
        // Other tables.
        ("", "flood;goto=1"),
        ("", "output:7;goto=1"),
        ("", "flood;meta=5/ff;goto=1"),
        ("", "output:7;write=controller;goto=1"),
        ("", "output:8;write=group:1;goto=1"),
        ("", "output:8;write=mod_dl_src:02.00.00.00.00.77;goto=1"),
        // The packet changes, or its address.
        ("", "flood,mod_dl_src:02.00.00.00.00.77,output:1"),
        ("", "output:7,mod_dl_dst:02.00.00.00.10.03,output:8,output:1"),
        ("", "output:7,mod_dl_dst:ff.ff.ff.ff.ff.ff,flood"),
        ("", "output:8,mod_dl_dst:02.00.00.00.11.03,output:8,output:10"),
        ("", "output:7,push_vlan:8100,mod_vlan_vid:5,output:8,output:1"),
        ("", "all,group:1,mod_dl_src:02.00.00.00.00.77,flood"),
        ("", "output:7;write=mod_dl_src:02.00.00.00.00.77,output:1"),
        ("", "flood;write=mod_dl_src:02.00.00.00.00.77,output:8"),
        // The controller is told the metadata.
        ("", "output:7;write=group:1;meta=5/ff"),
        // Twice, and back to where it came from.
        ("", "output:7,output:7"),
        ("", "flood,output:8"),
        ("", "output:8,flood,output:1,all"),
        ("", "output:8;write=output:8"),
        ("", "in_port"),
        ("", "flood,in_port"),
        ("in_port=7", "in_port,output:7,output:8,output:1"),
        ("in_port=8", "mod_dl_src:02.00.00.00.00.77,in_port"),
        // A part of the destinations.
        (MANY, "flood;goto=1"),
        (MANY, "output:7,output:7"),
        ("dl_dst=33:33:00:00:00:00/ff:ff:00:00:00:00", "in_port,output:8"),
        ("dl_dst=00:00:00:00:00:00/01:00:00:00:00:00", "flood,flood"),
        ("dl_dst=02:00:00:00:10:00/ff:ff:ff:ff:ff:fd", "flood;goto=1"),
        ("dl_dst=02:00:00:00:11:01", "flood,in_port;goto=1"),
        ("dl_dst=ff:ff:ff:ff:ff:ff", "flood,in_port;goto=1"),
    ] {
        let mut stage = both();
        for tenant in [RED, BLUE] {
            let words = "group add id=1 type=all buckets=output:1|mod_dl_src:2.0.0.0.0.9,output:10";
            both_say(&mut stage, tenant, 1, words);
            let later = "flow add table=1 prio=5 actions=mod_dl_src:02.00.00.00.00.66,output:1";
            both_say(&mut stage, tenant, 1, later);
            let words = format!("flow add prio=5 match={match_} actions={actions}");
            both_say(&mut stage, tenant, 1, &words);
        }
        for tenant in [RED, BLUE] {
            all_same(&mut stage, &plan(tenant), tenant, &format!("{match_} {actions}"));
            for question in ["stats flow", "stats aggregate", "stats group", "stats group_desc"] {
                let told = stage.say(tenant, 1, question);
                assert_eq!(told, stage.say_beside(tenant, 1, question), "{actions} {question}");
            }
        }
    }
}

/// What is for many goes to each host by its own address, and on with the one that it had.
#[test]
fn what_is_for_many_keeps_its_address() {
    let mut stage = both();
    both_say(
        &mut stage,
        RED,
        1,
        "flow add prio=5 actions=flood,mod_dl_src:02.00.00.00.00.77,output:7,output:1",
    );
    for to in [BROADCAST, EVERY_NODE, [0x33, 0x33, 0, 0, 0, 7]] {
        let seen = same(&mut stage, &plan(RED), (RED, 1, 8), to, "many");
        let at = |port: u32, host: [u8; 6], source: [u8; 6]| {
            let is_it = |it: &&(usize, u64, u32, Vec<u8>)| {
                it.2 == port && it.3[..6] == host && it.3[6..12] == source
            };
            seen.delivered.iter().filter(is_it).count()
        };
        let (own, changed) = (host(RED, 3), [2, 0, 0, 0, 0, 0x77]);
        for source in [own, changed] {
            assert_eq!(at(7, host(RED, 1), source), 1, "{seen:?}");
            assert_eq!(at(7, host(RED, 2), source), 1, "{seen:?}");
            // Flooded by the link as well, and at its other end.
            assert_eq!(at(WHOLE, to, source), if source == own { 2 } else { 1 }, "{seen:?}");
        }
    }
}

/// A match on all that is for many stays one; and what can be left for the end takes no group.
#[test]
fn what_it_takes() {
    let mut stage = stage();
    let without = entries(&stage);
    for (match_, actions, more, groups) in [
        ("", "flood", 1, 0),
        ("", "output:7,output:8", 1, 0),
        ("in_port=7", "in_port", 50, 25),
        ("in_port=1", "in_port", 1, 0),
        ("", "flood;goto=1", 50, 7),
        ("", "output:7;goto=1", 50, 4),
        ("", "output:1;goto=1", 1, 0),
        (MANY, "flood;goto=1", 1, 7),
        ("dl_dst=00:00:00:00:00:00/01:00:00:00:00:00", "flood;goto=1", 49, 0),
        ("dl_dst=ff:ff:ff:ff:ff:ff", "flood;goto=1", 1, 0),
        ("", "mod_dl_dst:ff.ff.ff.ff.ff.ff,flood;goto=1", 1, 0),
    ] {
        let words = format!("flow add prio=5 match={match_} actions={actions}");
        accept(&mut stage, RED, 1, &words);
        assert_eq!((entries(&stage) - without, stage.groups(1)), (more, groups), "{words}");
        accept(&mut stage, RED, 1, "flow delete match=");
        stage.wait(20);
        assert_eq!((entries(&stage), stage.groups(1)), (without, 0), "{words}");
    }
}

/// A group of Weir's own stays as long as one needs it, whichever.
#[test]
fn rules_and_groups_share_what_they_send_by() {
    let mut stage = stage();
    accept(&mut stage, RED, 1, "flow add prio=5 match=arp actions=output:7;goto=1");
    accept(&mut stage, RED, 1, "flow add prio=6 match=ip actions=output:7,output:7");
    accept(&mut stage, RED, 1, "group add id=1 type=all buckets=output:7");
    assert_eq!(stage.groups(1), 8);
    for (goes, left) in [
        ("flow delete match=arp", 8),
        ("group delete id=1", 4),
        ("flow modify match=ip actions=output:1", 0),
    ] {
        accept(&mut stage, RED, 1, goes);
        stage.wait(20);
        assert_eq!(stage.groups(1), left, "{goes}");
    }
}

/// Hosts that have nothing in common make what is for nobody long.
#[test]
fn rules_are_refused_that_would_be_too_many() {
    let mut far = plan(RED);
    far.shared.extend((0..32).map(|n| (1, 4, 7, [n << 3 | 2, n, 0, n, 0, 1])));
    let mut stage = Stage::new(Version::V1_3, vec![far.clone()]);
    let told = stage.say(RED, 1, "flow add prio=5 actions=flood;goto=1");
    assert_eq!(told, ["7 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 7"]);
    stage.wait(20);
    assert_eq!(stage.groups(1), 0);
    for match_ in [MANY, "dl_dst=02:00:00:00:10:00/ff:ff:ff:ff:ff:00"] {
        let words = format!("flow add prio=5 match={match_} actions=flood;goto=1");
        both_say(&mut stage, RED, 1, &words);
    }
    for to in destinations(RED) {
        same(&mut stage, &far, (RED, 1, WHOLE), to, "near");
    }
}

/// Each of the messages that a rule becomes is refused once: then all of it is.
#[test]
fn a_rule_is_refused_with_all_that_it_needs() {
    for (words, messages) in [
        // Four of the exit for one port, three for the other, and the entries.
        ("flow add prio=5 actions=flood;goto=1", 7 + 50),
        ("flow add prio=5 match=in_port=7 actions=in_port,output:8", 25 + 3 + 50),
        ("flow modify_strict prio=7 match=arp actions=output:7,output:7", 4 + 50),
    ] {
        let refused = (1..90).filter(|nth| {
            let mut stage = both();
            both_say(&mut stage, RED, 1, "flow add prio=7 match=arp actions=output:10");
            both_say(
                &mut stage,
                RED,
                1,
                "flow add prio=8 match=arp,dl_dst=02:00:00:00:10:01 actions=drop",
            );
            let before = (stage.entries(1), stage.say(RED, 1, "stats flow"));
            stage.plant(1, vec![Fault::RefuseOnce { nth: *nth }]);
            let told = stage.say(RED, 1, words);
            stage.plant(1, Vec::new());
            if told.is_empty() {
                return false;
            }
            assert_eq!(told, ["7 ERROR OFPFMFC_TABLE_FULL of type 14 xid 7"], "{words} {nth}");
            assert_eq!(
                (stage.entries(1), stage.say(RED, 1, "stats flow")),
                before,
                "{words} {nth}"
            );
            stage.wait(20);
            assert_eq!(stage.groups(1), 0, "{words} {nth}");
            both_say(&mut stage, RED, 1, words);
            all_same(&mut stage, &plan(RED), RED, words);
            true
        });
        assert_eq!(refused.count(), messages, "{words}");
    }
}

/// One change may make two rules the same on the switch for one destination: it is refused.
#[test]
fn rules_do_not_become_one() {
    let mut stage = both();
    let first = "flow add prio=5 match=ip actions=output:1";
    let second = "flow add prio=5 match=ip,dl_dst=02:00:00:00:10:01 actions=output:10";
    both_say(&mut stage, RED, 1, first);
    both_say(&mut stage, RED, 1, second);
    let before = stage.entries(1);
    let told = stage.say(RED, 1, "flow modify match=ip actions=output:7,output:7");
    assert_eq!(told, ["7 ERROR OFPFMFC_OVERLAP of type 14 xid 7"]);
    assert_eq!(stage.entries(1), before);
    both_say(&mut stage, RED, 1, "flow delete match=ip");
    both_say(&mut stage, RED, 1, &first.replace("prio=5", "prio=4"));
    both_say(&mut stage, RED, 1, second);
    both_say(&mut stage, RED, 1, "flow modify match=ip actions=output:7,output:7");
    all_same(&mut stage, &plan(RED), RED, "apart");
}

/// A switch that takes no groups takes what needs none.
#[test]
fn a_switch_without_groups_refuses_them() {
    let mut stage = stage();
    stage.plant(1, vec![Fault::RefuseGroupMods { every: 1 }]);
    for actions in ["flood;goto=1", "output:7,output:7", "in_port"] {
        let told = stage.say(RED, 1, &format!("flow add prio=5 actions={actions}"));
        assert_eq!(told, ["7 ERROR OFPFMFC_TABLE_FULL of type 14 xid 7"], "{actions}");
    }
    accept(&mut stage, RED, 1, "flow add prio=5 actions=flood");
    accept(
        &mut stage,
        RED,
        1,
        "flow add prio=6 match=dl_dst=ff:ff:ff:ff:ff:ff actions=flood;goto=1",
    );
    let unicast = "flow add prio=6 match=dl_dst=00:00:00:00:00:00/01:00:00:00:00:00";
    accept(&mut stage, RED, 1, &format!("{unicast} actions=flood;goto=1"));
    // Chains it need not have.
    stage.plant(1, vec![Fault::RefuseChaining]);
    accept(&mut stage, RED, 1, "flow add prio=5 actions=flood;goto=1");
}

/// Rules of both forms follow hosts and ports that come and go.
#[test]
fn hosts_and_ports_come_and_go() {
    const TWICE: &str = "flow add prio=6 match=ip,in_port=1 actions=output:8,output:8,in_port";
    let mut stage = both();
    both_say(&mut stage, RED, 1, "flow add prio=5 actions=flood;goto=1");
    both_say(&mut stage, RED, 1, TWICE);
    let (before, groups) = (stage.entries(1), stage.groups(1));
    let own = plan(RED);
    for red in [
        with(&own, &[(1, 3, 8, host(RED, 4))], &[]),
        with(&own, &[], &[host(RED, 2)]),
        with(&own, &[(1, 3, 8, host(RED, 2))], &[host(RED, 2)]),
        with(&own, &[(1, 4, 9, host(RED, 4))], &[]),
        with(&own, &[], &[host(RED, 3)]),
        with(&own, &[], &[]),
    ] {
        let (maps, tags) = Stage::maps_from(2000, &[red.clone(), plan(BLUE)]);
        stage.set_maps(&maps, 2000..=tags);
        let told = stage.take_told();
        assert!(told.iter().all(|it| it.2.starts_with("PORT_STATUS")), "{told:?}");
        // A rule that names a port goes with it.
        let has_all = [7, 8].iter().all(|port| red.shared.iter().any(|it| it.2 == *port));
        if has_all {
            both_say(&mut stage, RED, 1, TWICE);
        }
        for to in [1, 2, 3, 4].map(|n| host(RED, n)).into_iter().chain([BROADCAST, EVERY_NODE]) {
            // Of a new port the tenant's own switch knows nothing.
            if has_all && red.shared.iter().all(|it| it.2 != 9) {
                same(&mut stage, &red, (RED, 1, WHOLE), to, "map");
                same(&mut stage, &red, (RED, 1, 7), to, "map");
            }
        }
        stage.wait(20);
    }
    assert_eq!(stage.entries(1).len(), before.len());
    assert_eq!(stage.groups(1), groups);
    all_same(&mut stage, &own, RED, "as it was");
}

/// The tenant's port becomes shared under rules, and is its own again.
#[test]
fn a_port_comes_to_be_shared() {
    let mut stage = Stage::new(Version::V1_3, vec![plan_before_sharing(RED)]);
    for words in [
        "flow add prio=5 flags=rem actions=output:8;goto=1",
        "flow add prio=6 match=arp flags=rem actions=output:8,output:8",
        "flow add prio=7 match=dl_vlan=5 flags=rem actions=output:8",
    ] {
        accept(&mut stage, RED, 1, words);
    }
    let before = stage.entries(1);
    assert_eq!(stage.groups(1), 0);
    for _ in 0..2 {
        let (maps, tags) = Stage::maps_from(2000, &[plan(RED)]);
        stage.set_maps(&maps, 2000..=tags);
        let told = stage.take_told();
        assert!(told.iter().all(|it| !it.2.starts_with("FLOW_REMOVED")), "{told:?}");
        assert_eq!(stage.groups(1), 3);
        for (to, reached) in [
            (BROADCAST, Some(host(RED, 3))),
            (host(RED, 3), Some(host(RED, 3))),
            (host(BLUE, 3), None),
            (STRANGER, None),
        ] {
            let seen = stage.send(RED, 1, WHOLE, &frame(STRANGER, to));
            let expected = reached.map(|host| (RED, 1, 8, frame(STRANGER, host)));
            assert_eq!(seen.delivered, expected.into_iter().collect::<Vec<_>>(), "{to:x?}");
        }
        let (maps, tags) = Stage::maps_from(2000, &[plan_before_sharing(RED)]);
        stage.set_maps(&maps, 2000..=tags);
        let seen = stage.send(RED, 1, WHOLE, &frame(STRANGER, BROADCAST));
        assert_eq!(seen.delivered, [(RED, 1, 8, frame(STRANGER, BROADCAST))]);
        stage.wait(20);
        assert_eq!((stage.groups(1), stage.entries(1)), (0, before.clone()));
    }
}

/// What is configured of ports bears on them, also while none is open.
#[test]
fn ports_open_and_close() {
    let mut stage = both();
    both_say(&mut stage, RED, 1, "flow add prio=5 actions=flood,output:8;goto=1");
    both_say(&mut stage, RED, 1, "flow add prio=6 match=ip actions=output:7,output:7,in_port");
    let (entries, groups) = (stage.entries(1), stage.groups(1));
    for (port, bits) in [(7, "0x20"), (8, "0x1"), (7, "0"), (8, "0x4"), (8, "0")] {
        both_say(&mut stage, RED, 1, &format!("port_mod port={port} config={bits} mask=0x25"));
        let words = format!("{port} {bits}");
        for (switch, port) in [(1, WHOLE), (2, WHOLE)] {
            for to in destinations(RED) {
                same(&mut stage, &plan(RED), (RED, switch, port), to, &words);
            }
        }
        assert_eq!(stage.groups(1), groups, "{words}");
    }
    assert_eq!(stage.entries(1), entries);
}

/// On a big switch a host may be behind a port of another member.
#[test]
fn members_of_a_big_switch_send_to_each_others_hosts() {
    for actions in [
        "flood;goto=1",
        "output:8,mod_dl_src:02.00.00.00.00.77,output:7,output:8,output:1",
        "in_port,flood",
    ] {
        let mut stage = Stage::new(Version::V1_3, vec![big_plan(RED), big_plan(BLUE)]);
        for tenant in [RED, BLUE] {
            both_say(&mut stage, tenant, 3, "flow add prio=5 match=in_port=10 actions=output:1");
            both_say(&mut stage, tenant, 3, "flow add prio=5 match=in_port=1 actions=output:10");
            both_say(&mut stage, tenant, 1, &format!("flow add prio=5 actions={actions}"));
        }
        for (switch, port) in BIG_FROM {
            for to in destinations(RED) {
                same(&mut stage, &big_plan(RED), (RED, switch, port), to, actions);
            }
        }
    }
}

/// Two of the tenant's ports on one port of the switch: a packet from one to the other goes back by it.
#[test]
fn packets_go_back_to_hosts_at_another_port_of_the_tenants() {
    let mut plan = plan(RED);
    plan.shared.push((1, 4, 9, host(RED, 4)));
    let mut stage = Stage::new(Version::V1_3, vec![plan]);
    accept(&mut stage, RED, 1, "flow add prio=5 actions=flood;goto=1");
    for (from, at, to, expected) in [
        (host(RED, 1), 7, BROADCAST, vec![host(RED, 3), host(RED, 4), BROADCAST]),
        (host(RED, 4), 7, EVERY_NODE, vec![host(RED, 1), host(RED, 2), host(RED, 3), EVERY_NODE]),
        (host(RED, 3), 8, BROADCAST, vec![host(RED, 1), host(RED, 2), host(RED, 4), BROADCAST]),
        (host(RED, 1), 7, host(RED, 4), vec![host(RED, 4)]),
        (host(RED, 4), 7, host(RED, 2), vec![host(RED, 2)]),
        (host(RED, 1), 7, host(RED, 2), vec![host(RED, 2)]),
    ] {
        let seen = stage.send(RED, 1, at, &frame(from, to));
        let mut reached: Vec<[u8; 6]> =
            seen.delivered.iter().map(|it| it.3[..6].try_into().unwrap()).collect();
        reached.sort_unstable();
        reached.dedup();
        let mut expected = expected;
        expected.sort_unstable();
        assert_eq!(reached, expected, "{from:x?} {to:x?}");
    }
}

fn map_with(added: &[(u64, u32, u32, [u8; 6])]) -> SwitchMap {
    Stage::maps_from(2000, &[with(&plan(RED), added, &[]), plan(BLUE)]).0.remove(&1).unwrap()
}

/// The same, but port 8 is the tenant's alone.
fn map_without() -> SwitchMap {
    let mut red = plan(RED);
    red.shared.retain(|it| it.2 != 8);
    red.edges.push((1, 3, 8));
    let mut blue = plan(BLUE);
    blue.shared.retain(|it| it.2 != 8);
    Stage::maps_from(2000, &[red, blue]).0.remove(&1).unwrap()
}

#[test]
fn all_of_it_is_found_again() {
    let (mut world, red) = world_on(map(), |config| config.n_buffers = 0);
    for words in [
        "flow add prio=5 actions=flood;goto=1",
        "flow add prio=6 match=in_port=7 actions=in_port,output:8",
        "flow add prio=6 table=1 actions=output:1",
    ] {
        say(&mut world, red, words);
    }
    let there = (world.switch_groups(), world.switch_entries());
    let reached = |world: &mut World| {
        let reached = |to| world.packet(1, &frame(STRANGER, to)).len();
        [BROADCAST, host(RED, 3), host(RED, 4), STRANGER].map(reached)
    };
    assert_eq!(reached(&mut world), [4, 2, 1, 1]);
    for _ in 0..2 {
        world.reconnect();
        assert_eq!((world.switch_groups(), world.switch_entries()), there);
    }
    // What the switch has lost is put back.
    world.behind("flow delete table=255");
    world.behind("group delete id=all");
    world.reconnect();
    assert_eq!((world.switch_groups(), world.switch_entries()), there);
    // Hosts and ports have come while Weir was away, and have gone.
    for (map, expected) in [
        (map_with(&[(1, 3, 8, host(RED, 4))]), [5, 2, 2, 1]),
        (map(), [4, 2, 1, 1]),
        (map_with(&[(1, 2, 9, host(RED, 4))]), [5, 2, 2, 1]),
        // All that comes to be another's: of the exits that it takes there is none in the store.
        (map_without(), [4, 2, 2, 2]),
        (map(), [4, 2, 1, 1]),
    ] {
        world.restart_with(on(map));
        world.advance(20_000_000_000);
        assert_eq!(reached(&mut world), expected);
    }
    assert_eq!(world.switch_entries().len(), there.1.len());
    assert_eq!(world.switch_groups().len(), there.0.len());
}

/// What these take on the switch is limited, also by way of a group. What the operator does with ports may go beyond.
#[test]
fn the_switch_has_room_for_so_many() {
    let limited = |map: SwitchMap, entries| {
        let mut policy = on(map);
        policy.tenants[RED].limits.entries = entries;
        policy
    };
    let (mut world, red) = world_on(map(), |config| config.n_buffers = 0);
    let without = world.switch_entries().len();
    say(&mut world, red, "flow add prio=5 actions=flood;goto=1");
    let several = world.switch_entries().len() - without;
    assert!(several > 10, "{several}");
    say(&mut world, red, "flow delete match=");
    let refused = |world: &mut World, words: &str, error: &str| {
        world.say(red, 9, words);
        world.advance(100_000_000);
        let told = world.heard(red);
        assert!(
            matches!(&told[..], [it] if it.starts_with(&format!("9 ERROR {error} "))),
            "{told:?}"
        );
    };
    world.set_policy(limited(map(), several as u32 + 1));
    world.advance(1_000_000_000);
    for words in [
        "group add id=1 buckets=output:1",
        "flow add prio=5 actions=flood;goto=1",
        "flow add prio=5 match=arp actions=group:1",
    ] {
        say(&mut world, red, words);
    }
    let entries = world.switch_entries();
    assert_eq!(entries.len() - without, several + 1);
    for (words, error) in [
        ("flow add prio=6 match=arp actions=output:1", "OFPFMFC_TABLE_FULL"),
        ("flow modify match=arp actions=flood;goto=1", "OFPFMFC_TABLE_FULL"),
        ("group modify id=1 buckets=output:7", "OFPGMFC_EPERM"),
    ] {
        refused(&mut world, words, error);
        assert_eq!(world.switch_entries(), entries, "{words}");
    }
    // As many as there are may be changed, and fewer.
    say(&mut world, red, "flow modify match=arp actions=output:10");
    say(&mut world, red, "flow modify prio=5 match= actions=output:10");
    assert_eq!(world.switch_entries().len() - without, 2);
    say(&mut world, red, "flow add prio=5 actions=flood;goto=1");

    let mut bare = plan(RED);
    bare.shared.clear();
    bare.edges.extend([(1, 4, 7), (1, 3, 8)]);
    let bare = Stage::maps_from(2000, &[bare]).0.remove(&1).unwrap();
    world.set_policy(limited(bare, 2));
    world.advance(1_000_000_000);
    world.set_policy(limited(map(), 2));
    world.advance(1_000_000_000);
    assert_eq!(world.heard(red), [""; 0]);
    assert_eq!(world.switch_entries().len() - without, several + 1);
    refused(&mut world, "flow add prio=6 match=arp actions=output:1", "OFPFMFC_TABLE_FULL");
    say(&mut world, red, "flow delete match=");
    say(&mut world, red, "flow add prio=6 match=arp actions=output:1");
}
