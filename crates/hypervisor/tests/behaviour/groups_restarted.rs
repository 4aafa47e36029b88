//! Tests of groups with several instances on the switch, over restarts, refusals and crashes. The virtual tables, the
//! switch and the store agree, and groups of other tenants do not change.

use crate::support::hairpin::{hairpin_map, map_without_hairpin, policy_on, say};
use crate::support::*;
use emulate::Fault;
use fabric::embedding::{Hop, PortKind, SwitchMap};
use hypervisor::TenantId;

const GROUP_MOD: u8 = 15;

fn world() -> World {
    world_on(hairpin_map())
}

fn world_on(map: SwitchMap) -> World {
    World::new(Setup { policy: policy_on(map), ports: 6, ..Setup::new(Version::V1_3, "") })
}

/// A world whose switch handles a thousand messages per second.
fn slow_world() -> World {
    World::new(Setup {
        policy: policy_on(hairpin_map()),
        ports: 6,
        per_second: Some(1_000),
        ..Setup::new(Version::V1_3, "")
    })
}

/// The two ends of blue's link at a port: the sending end and the receiving end.
fn ends(port: u32) -> (Hop, Hop) {
    match &hairpin_map().members[&TenantId(2)].ports[&port].kind {
        PortKind::Link { sends, receives, .. } => (sends.unwrap(), receives[0]),
        other => panic!("{other:?}"),
    }
}

/// A packet that arrives over one link leaves over the other link, on the same port of the switch, and by no other
/// port.
fn crosses(world: &mut World, from: u32, to: u32) {
    let (comes, leaves) = (ends(from).1, ends(to).0);
    world.left.clear();
    let frame = packet(&format!("vlan{}:10.0.0.1>10.0.0.2", comes.tag.get()));
    world.packet(comes.port.get(), &frame);
    let expected = packet(&format!("vlan{}:10.0.0.1>10.0.0.2", leaves.tag.get()));
    let left: Vec<_> = world.left.iter().map(|left| (left.port, left.frame.clone())).collect();
    assert_eq!(left, [(leaves.port.get(), expected)], "from {from}");
}

/// The switch holds these groups and rules, and forwards from each of the ports to the other.
fn holds(world: &mut World, groups: &[String], flows: &[String]) {
    assert_eq!(world.switch_groups(), groups);
    assert_eq!(world.switch_flows(), flows);
    crosses(world, 10, 11);
    crosses(world, 11, 10);
}

#[test]
fn groups_with_several_instances_are_restored_after_a_restart() {
    let mut world = world();
    world.behind("group add id=2 buckets=output:4");
    world.reconnect();
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=7 buckets=output:10|output:11");
    say(&mut world, blue, "group add id=3 buckets=group:7");
    say(&mut world, blue, "flow add prio=5 actions=group:3");
    let (groups, flows) = (world.switch_groups(), world.switch_flows());
    let check = |world: &mut World| holds(world, &groups, &flows);
    check(&mut world);
    // Six of blue's, and a stranger's, whose number nobody else was given.
    assert_eq!(world.switch.switch().group_count(), 7);
    assert!(groups[0].contains(" 2:output:4"), "{groups:?}");
    for _ in 0..2 {
        world.reconnect();
        check(&mut world);
    }
    // What the switch has lost is put back, what others name first.
    world.behind("group delete id=all");
    world.behind("group add id=2 buckets=output:4");
    world.reconnect();
    check(&mut world);
    // The same by another way: while Weir was away there was no hairpin port, and now there is one again.
    world.restart_with(policy_on(map_without_hairpin()));
    world.advance(1_000_000_000);
    assert_eq!(world.switch.switch().group_count(), 3);
    world.restart_with(policy_on(hairpin_map()));
    world.advance(1_000_000_000);
    assert_eq!(world.switch.switch().group_count(), 7);
    crosses(&mut world, 10, 11);
    crosses(&mut world, 11, 10);
    let blue = world.connect("blue");
    world.say(blue, 9, "stats group_desc");
    assert_eq!(world.heard(blue), ["9 STATS group_desc 3:group:7 7:output:10 output:11"]);
    say(&mut world, blue, "flow delete match=");
    say(&mut world, blue, "group delete id=all");
    assert_eq!(world.switch_groups(), ["1 STATS group_desc 2:output:4"]);
    assert_eq!(world.remembered(), 0);
}

/// An older version of Weir accepted such entries. They are removed before any group that they name can be deleted.
#[test]
fn a_stored_entry_that_names_a_group_twice_is_removed() {
    let mut world = world();
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=7 buckets=output:10");
    say(&mut world, blue, "group add id=8 buckets=output:10");
    say(&mut world, blue, "flow add prio=5 actions=group:7,group:8");
    let group = |number: u8| [0, 22, 0, 8, 0, 0, 0, number];
    for bytes in world.store.values_mut() {
        let at = bytes.windows(8).position(|window| *window == group(8));
        at.into_iter().for_each(|at| bytes[at + 7] = 7);
    }
    world.reconnect();
    let blue = world.connect("blue");
    world.say(blue, 1, "stats flow");
    world.say(blue, 2, "stats group_desc");
    assert_eq!(world.heard(blue), ["1 STATS flow", "2 STATS group_desc 7:output:10 8:output:10"]);
    assert!(world.switch_flows().iter().all(|flow| !flow.contains("group")));
}

/// Also the egress groups, which the tenant does not see.
#[test]
fn egress_groups_are_restored_after_a_restart() {
    let sets: &[&str] = &[
        "group add id=7 type=all buckets=strip_vlan,output:10|strip_vlan,output:11",
        "flow add prio=5 actions=write=group:7;goto=1",
        "flow add prio=5 table=1 actions=drop",
    ];
    let buckets: &[&str] = &[
        "group add id=7 type=all buckets=strip_vlan,output:10|mod_vlan_pcp:2,output:11",
        "group add id=8 buckets=all",
        "flow add prio=5 actions=group:7",
        "flow add prio=6 match=arp actions=group:8",
    ];
    for (all, own, egress_groups) in [(sets, 1, 2), (buckets, 2, 3)] {
        let mut world = world();
        let blue = world.connect("blue");
        all.iter().for_each(|words| say(&mut world, blue, words));
        let (groups, flows) = (world.switch_groups(), world.switch_flows());
        // For packets by 10, by 11, and by others.
        assert_eq!(world.switch.switch().group_count(), 3 * (own + egress_groups));
        let check = |world: &mut World| holds(world, &groups, &flows);
        check(&mut world);
        world.reconnect();
        check(&mut world);
        world.behind("group delete id=all");
        world.reconnect();
        check(&mut world);
        world.restart_with(policy_on(hairpin_map()));
        world.advance(1_000_000_000);
        check(&mut world);
        let blue = world.connect("blue");
        world.say(blue, 9, "stats group_desc");
        let received = world.heard(blue).join("");
        assert_eq!(received.matches(':').count() > 0, own > 0, "{received}");
        // They stay for what may come, and go with the network.
        say(&mut world, blue, "group delete id=all");
        say(&mut world, blue, "flow delete match=");
        assert_eq!(world.switch.switch().group_count(), 3 * egress_groups);
        world.set_policy(policy("red: -\nblue: -"));
        world.advance(1_000_000_000);
        assert_eq!(world.switch.switch().group_count(), 0);
        assert_eq!(world.store.len(), 0);
    }
}

/// An edge port needs no egress group. When the port becomes the end of a link, a group that adds a VLAN tag there gets
/// one.
#[test]
fn a_group_gets_an_egress_group_when_an_edge_port_becomes_a_link_port() {
    let at_the_edge = || {
        let mut map = hairpin_map();
        let ports = &mut map.members.get_mut(&TenantId(2)).unwrap().ports;
        let port = fabric::PortNumber::new(6).unwrap();
        ports.get_mut(&11).unwrap().kind = PortKind::Edge { port, hosts: Vec::new() };
        policy_on(map)
    };
    let mut world =
        World::new(Setup { policy: at_the_edge(), ports: 6, ..Setup::new(Version::V1_3, "") });
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=7 buckets=mod_vlan_pcp:2,output:11");
    say(&mut world, blue, "group add id=8 buckets=group:7");
    say(&mut world, blue, "flow add prio=5 actions=group:8");
    assert_eq!(world.switch.switch().group_count(), 2);
    for restarts in [false, true] {
        match restarts {
            false => world.set_policy(policy_on(hairpin_map())),
            true => world.restart_with(policy_on(hairpin_map())),
        }
        world.advance(1_000_000_000);
        // Each of them, and the egress group, for packets by 10, by 11, and by others.
        assert_eq!(world.switch.switch().group_count(), 9);
        crosses(&mut world, 10, 11);
        let groups = world.switch_groups();
        world.reconnect();
        assert_eq!(world.switch_groups(), groups);
        match restarts {
            false => world.set_policy(at_the_edge()),
            true => world.restart_with(at_the_edge()),
        }
        world.advance(1_000_000_000);
        // The egress group stays for what may come, in the one form that is left of it.
        assert_eq!(world.switch.switch().group_count(), 3);
    }
}

/// The switch refuses rules of an entry that is to use a group. Weir restores the old entry, though the switch reports
/// only afterwards that some of its rules have ended.
#[test]
fn an_entry_is_restored_when_a_rule_of_the_modification_is_refused() {
    for nth in 1..4 {
        let mut world = world();
        let red = world.connect("red");
        say(&mut world, red, "flow add match=ip,in_port=10 prio=6 actions=output:10");
        say(&mut world, red, "flow add match=ip prio=5 actions=output:10");
        say(&mut world, red, "group add id=1 buckets=in_port");
        let (groups, flows) = (world.switch.switch().group_count(), world.switch_flows());
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
        world.say(red, 1, "flow modify match=ip prio=5 actions=write=group:1;goto=1");
        world.advance(1_000_000_000);
        assert_eq!(world.heard(red), ["1 ERROR OFPFMFC_TABLE_FULL of type 14 xid 1"], "{nth}");
        assert_eq!(world.switch_flows(), flows, "{nth}");
        world.reconnect();
        assert_eq!(world.switch_flows(), flows, "{nth}");
        assert_eq!(world.switch.switch().group_count(), groups, "{nth}");
    }
}

/// The network changes while such a refusal is in flight.
#[test]
fn a_refusal_during_a_network_change_leaves_no_missing_group_or_rule() {
    for nth in 1..12 {
        let mut world = slow_world();
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.say(blue, 1, "flow add match=ip prio=5 actions=output:1");
        world.say(red, 1, "group add id=1 buckets=strip_vlan,output:10");
        world.say(red, 1, "flow add match=ip prio=5 actions=write=group:1;goto=1");
        world.say(red, 1, "flow add match=ip prio=5 actions=in_port;goto=1");
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
        world.advance(6_000_000);
        world.switch.switch_mut().plant(Vec::new());
        world.set_policy(policy_on(map_without_hairpin()));
        world.advance(60_000_000_000);
        let (groups, flows) = (world.switch_groups(), world.switch_flows());
        world.reconnect();
        assert_eq!(world.switch_groups(), groups, "{nth}");
        assert_eq!(world.switch_flows(), flows, "{nth}");
    }
}

/// The switch refuses an egress group, or another message, while more requests that need it arrive. Each request fails
/// at most once.
#[test]
fn each_request_that_needs_a_refused_egress_group_fails_at_most_once() {
    let mut refused = 0;
    for nth in 1..30 {
        let mut world = slow_world();
        let blue = world.connect("blue");
        say(&mut world, blue, "group add id=1 buckets=output:1");
        say(&mut world, blue, "flow add match=arp prio=6 actions=group:1");
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
        for (xid, words) in [
            (2, "group add id=2 type=all buckets=flood|strip_vlan,output:10"),
            (3, "group modify id=1 type=all buckets=group:2|mod_vlan_vid:6,output:10"),
            (4, "flow add match=ip prio=5 actions=group:1"),
            (5, "flow add match=ip prio=7 actions=write=group:2;goto=1"),
        ] {
            world.say(blue, xid, words);
        }
        world.advance(60_000_000_000);
        let heard = world.heard(blue);
        for xid in 2..=5 {
            let errors = heard.iter().filter(|it| it.starts_with(&format!("{xid} ERROR")));
            assert!(errors.count() <= 1, "{nth}: {heard:?}");
        }
        refused += usize::from(!heard.is_empty());
        let (groups, flows) = (world.switch_groups(), world.switch_flows());
        world.switch.switch_mut().plant(Vec::new());
        world.reconnect();
        assert_eq!(world.switch_groups(), groups, "{nth}: {heard:?}");
        assert_eq!(world.switch_flows(), flows, "{nth}: {heard:?}");
        let blue = world.connect("blue");
        say(&mut world, blue, "group delete id=all");
        say(&mut world, blue, "flow delete match=");
        world.set_policy(policy("red: -\nblue: -"));
        world.advance(1_000_000_000);
        assert_eq!(world.switch.switch().group_count(), 0, "{nth}");
        assert_eq!(world.store.len(), 0, "{nth}");
    }
    assert!(refused > 12, "{refused}");
}

/// Blue in a network without a hairpin port, with groups that need several instances if there is one.
fn blue_where_it_is_roomy(world: &mut World) -> Seat {
    let blue = world.connect("blue");
    say(world, blue, "group add id=7 buckets=output:10|output:11");
    say(world, blue, "group add id=3 buckets=group:7");
    say(world, blue, "flow add prio=5 actions=group:3 flags=rem");
    say(world, blue, "flow add prio=6 match=in_port=10 actions=write=group:3;goto=1");
    blue
}

/// A new map needs more groups, and the switch refuses one of the messages. Weir tries again. The tables, the switch
/// and the store agree, whatever happens to the entries.
#[test]
fn new_group_instances_are_sent_again_after_one_refusal() {
    for nth in 1..10 {
        let mut world = world_on(map_without_hairpin());
        let blue = blue_where_it_is_roomy(&mut world);
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
        world.set_policy(policy_on(hairpin_map()));
        world.advance(1_000_000_000);
        world.switch.switch_mut().plant(Vec::new());
        world.say(blue, 9, "stats group_desc");
        let received = world.heard(blue);
        let last = "9 STATS group_desc 3:group:7 7:output:10 output:11";
        assert_eq!(received.last().map(String::as_str), Some(last), "{nth}");
        let (groups, entries) = (world.switch_groups(), world.switch_entries());
        let flows: Vec<usize> = world.core.tenants().map(|tenant| tenant.flows).collect();
        world.reconnect();
        assert_eq!((world.switch_groups(), world.switch_entries()), (groups, entries), "{nth}");
        assert_eq!(world.core.tenants().map(|it| it.flows).collect::<Vec<_>>(), flows, "{nth}");
        // An entry that came to the switch before its group is lost, and reported as removed.
        let lost = received.iter().filter(|words| words.contains("FLOW_REMOVED")).count();
        assert_eq!(
            lost == 0,
            world.switch_flows().iter().any(|it| it.contains(" prio=5 ")),
            "{nth}"
        );
    }
}

/// A group that is refused each time is not reported as present.
#[test]
fn a_group_and_its_entries_are_removed_when_the_new_instances_are_refused() {
    let mut world = world_on(map_without_hairpin());
    let blue = blue_where_it_is_roomy(&mut world);
    say(&mut world, blue, "group add id=9 buckets=drop");
    world.switch.switch_mut().plant(vec![Fault::RefuseGroupMods { every: 1 }]);
    world.set_policy(policy_on(hairpin_map()));
    world.advance(1_000_000_000);
    world.switch.switch_mut().plant(Vec::new());
    // For packets without an ingress port the group needs no copy, so the entry had a rule for these packets. Weir
    // waits for the switch's reports about the other rules.
    world.advance(11_000_000_000);
    world.say(blue, 9, "stats group_desc");
    let received = world.heard(blue);
    assert!(
        received.contains(&"FLOW_REMOVED prio=5 any cookie=0x0 DELETE n=0".to_owned()),
        "{received:?}"
    );
    assert_eq!(
        received.last().unwrap(),
        "9 STATS group_desc 9:",
        "what is as it has to be is left"
    );
    assert_eq!(world.tenant_flows(), [""; 0]);
    assert_eq!(world.core.tenants().map(|it| it.flows).collect::<Vec<_>>(), [0, 0]);
    // What could not even be deleted goes with the next connection.
    world.reconnect();
    assert_eq!(world.switch.switch().group_count(), 1);
    world.advance(1_000_000_000);
    assert_eq!(world.store.len(), 1);
}

/// The format of earlier versions: the number on the switch, and the body of the GROUP_MOD.
#[test]
fn groups_in_the_store_format_of_an_earlier_version_are_read() {
    let mut world = world_on(map_without_hairpin());
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=7 buckets=output:10");
    say(&mut world, blue, "flow add prio=5 actions=group:7");
    let body = &request(Version::V1_3, 1, "group add id=7 buckets=output:10")[8..];
    let earlier = [&1u32.to_be_bytes()[..], body].concat();
    assert!(world.store.values().any(|stored| *stored == earlier));
    world.restart_with(policy_on(hairpin_map()));
    world.advance(1_000_000_000);
    assert_eq!(world.switch.switch().group_count(), 3);
    crosses(&mut world, 11, 10);
}

/// A tenant that was removed from the configuration while Weir was down leaves no groups behind.
#[test]
fn groups_of_a_tenant_that_was_removed_during_downtime_are_deleted() {
    let mut world = world();
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=7 buckets=output:10");
    assert_eq!(world.switch.switch().group_count(), 3);
    world.restart_with(policy("red: -"));
    world.advance(1_000_000_000);
    assert_eq!(world.switch.switch().group_count(), 0);
    assert_eq!(world.store.len(), 0);
}

/// Weir is killed after it has stored its next messages and before the switch has received them.
#[test]
fn a_crash_before_the_switch_gets_a_stored_change_leaves_no_extra_group() {
    for words in ["group delete id=7", "group modify id=7 buckets=output:1"] {
        let mut world = world();
        let blue = world.connect("blue");
        say(&mut world, blue, "group add id=7 buckets=output:10");
        say(&mut world, blue, "flow add prio=5 actions=group:7");
        world.lose_south(true);
        world.say(blue, 1, words);
        world.lose_south(false);
        world.reconnect();
        let left = if words.contains("delete") { 0 } else { 1 };
        assert_eq!(world.switch.switch().group_count(), left, "{words}");
        assert_eq!(world.store.len(), 2 * left, "{words}");
        assert_eq!(world.tenant_flows().len(), left, "{words}");
    }
}

/// Weir is killed after a new map or a restart has made instances of groups, and before the store has recorded them.
#[test]
fn a_crash_before_group_instances_are_stored_leaves_no_extra_group() {
    for with_restart in [false, true] {
        let mut world = world_on(map_without_hairpin());
        blue_where_it_is_roomy(&mut world);
        let groups = world.switch.switch().group_count();
        world.store_at_once(false);
        match with_restart {
            false => world.set_policy(policy_on(hairpin_map())),
            true => world.restart_with(policy_on(hairpin_map())),
        }
        world.advance(1_000_000_000);
        assert_eq!(world.switch.switch().group_count(), groups, "nothing is sent");
        world.store_at_once(true);
        world.restart_with(policy_on(map_without_hairpin()));
        world.advance(1_000_000_000);
        assert_eq!(world.switch.switch().group_count(), groups, "{with_restart}");
        // When the store has it they come, before the entries that use them, and what tenants ask for meanwhile.
        world.store_at_once(false);
        let blue = world.connect("blue");
        world.set_policy(policy_on(hairpin_map()));
        world.heard(blue);
        world.say(blue, 1, "flow add prio=9 match=in_port=11 actions=group:7");
        world.say(blue, 2, "barrier");
        world.advance(1_000_000_000);
        assert_eq!(world.heard(blue), [""; 0]);
        world.store_at_once(true);
        world.stored();
        world.advance(1_000_000_000);
        assert_eq!(world.heard(blue), ["2 BARRIER_REPLY"]);
        assert_eq!(world.switch.switch().group_count(), groups + 4);
        crosses(&mut world, 11, 10);
        let (groups, entries) = (world.switch_groups(), world.switch_entries());
        world.reconnect();
        assert_eq!((world.switch_groups(), world.switch_entries()), (groups, entries));
        let blue = world.connect("blue");
        world.say(blue, 3, "flow delete match=");
        world.say(blue, 4, "group delete id=all");
        world.advance(1_000_000_000);
        world.set_policy(policy("red: -\nblue: -"));
        world.advance(1_000_000_000);
        assert_eq!((world.switch.switch().group_count(), world.store.len()), (0, 0));
    }
}

/// A deletion that was pending before a crash stays pending until the switch has confirmed it: there may be another
/// crash.
#[test]
fn a_pending_group_deletion_stays_stored_until_the_switch_confirms() {
    let mut world = slow_world();
    let blue = world.connect("blue");
    say(&mut world, blue, "group add id=7 buckets=output:10");
    say(&mut world, blue, "group add id=8 buckets=group:7");
    world.lose_south(true);
    world.say(blue, 1, "group delete id=all");
    world.lose_south(false);
    world.restart_with(policy_on(hairpin_map()));
    assert_eq!((world.switch.switch().group_count(), world.store.len()), (6, 6));
    world.advance(1_000_000_000);
    assert_eq!((world.switch.switch().group_count(), world.store.len()), (0, 0));
}

/// A group number is given out again only when the switch has confirmed that the group is deleted.
#[test]
fn a_group_number_is_not_reused_before_the_switch_confirms_the_deletion() {
    let mut world = world();
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    say(&mut world, blue, "group add id=1 buckets=output:10");
    for words in ["group modify id=1 buckets=in_port", "group delete id=1"] {
        for nth in 1..4 {
            world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
            world.say(blue, 1, words);
            world.say(red, 1, "group add id=1 buckets=output:1");
            world.say(red, 2, "group delete id=1");
            world.advance(100_000_000);
        }
    }
    world.switch.switch_mut().plant(Vec::new());
    world.heard(blue);
    world.heard(red);
    say(&mut world, red, "group add id=9 buckets=output:1|output:2");
    let groups = world.switch_groups();
    world.reconnect();
    assert_eq!(world.switch_groups(), groups);
}

/// A new entry replaces an entry that went with its group. The new entry stays, though the group is restored.
#[test]
fn a_replacement_entry_stays_when_the_deletion_of_the_old_group_is_refused() {
    for nth in 1..4 {
        let mut world = slow_world();
        let blue = world.connect("blue");
        say(&mut world, blue, "group add id=1 buckets=in_port");
        say(&mut world, blue, "flow add match=arp prio=7 actions=group:1");
        world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth }]);
        world.say(blue, 1, "group delete id=1");
        world.say(blue, 2, "flow add match=arp prio=7 actions=output:1");
        world.advance(1_000_000_000);
        assert_eq!(world.tenant_flows().len(), 1, "{nth}");
        world.say(blue, 3, "stats flow");
        world.advance(100_000_000);
        let heard = world.heard(blue);
        assert!(heard[1].contains("output:1"), "{heard:?}");
    }
}

/// A change in flight when the hairpin port is removed still needs the instances that other groups name.
#[test]
fn group_instances_without_a_hairpin_port_are_deleted_after_a_pending_change() {
    let mut world = world();
    let blue = world.connect("blue");
    world.say(blue, 1, "group add id=1 buckets=output:10");
    world.say(blue, 2, "group add id=3 buckets=output:10");
    world.say(blue, 3, "group modify id=3 buckets=group:1");
    world.set_policy(policy_on(map_without_hairpin()));
    world.advance(1_000_000_000);
    assert_eq!(world.switch.switch().group_count(), 2);
    assert_eq!(world.store.len(), 2);
}

#[test]
fn a_barrier_reply_follows_the_changes_of_every_group_instance() {
    let setup = Setup {
        policy: policy_on(hairpin_map()),
        ports: 6,
        per_second: Some(1_000),
        ..Setup::new(Version::V1_3, "")
    };
    let mut world = World::new(setup);
    let blue = world.connect("blue");
    world.say(blue, 1, "group add id=1 buckets=output:1");
    world.say(blue, 2, "flow add prio=5 actions=group:1");
    world.advance(1_000_000_000);
    let expected = [("modify id=1 buckets=output:10", 3, 4), ("delete id=1", 0, 0)];
    for (words, groups, entries) in expected {
        world.say(blue, 3, &format!("group {words}"));
        world.say(blue, 4, "barrier");
        let mut waited = 0;
        while world.heard(blue).is_empty() {
            world.advance(100_000);
            waited += 1;
        }
        assert!(waited > 30, "{words}: {waited}");
        assert_eq!(world.switch.switch().group_count(), groups, "{words}");
        assert_eq!(world.tenant_flows().len(), entries, "{words}");
        world.advance(1_000_000_000);
    }
}

#[test]
fn a_group_mod_is_sent_only_after_the_store_has_saved_the_group() {
    let mut world = World::new(Setup {
        policy: policy_on(hairpin_map()),
        ports: 6,
        store_at_once: false,
        ..Setup::new(Version::V1_3, "")
    });
    let blue = world.connect("blue");
    world.south.clear();
    world.say(blue, 1, "group add id=1 buckets=output:10");
    world.advance(100_000_000);
    assert!(!world.south_types().contains(&GROUP_MOD));
    world.stored();
    assert_eq!(world.south_types().iter().filter(|type_| **type_ == GROUP_MOD).count(), 3);
}
