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

/// Checks that a packet from one link leaves over the other link at the same physical port, and by no other port.
fn crosses(world: &mut World, from: u32, to: u32) {
    let (comes, leaves) = (ends(from).1, ends(to).0);
    world.left.clear();
    let frame = packet(&format!("vlan{}:10.0.0.1>10.0.0.2", comes.tag.get()));
    world.packet(comes.port.get(), &frame);
    let expected = packet(&format!("vlan{}:10.0.0.1>10.0.0.2", leaves.tag.get()));
    let left: Vec<_> = world.left.iter().map(|left| (left.port, left.frame.clone())).collect();
    assert_eq!(left, [(leaves.port.get(), expected)], "from {from}");
}

/// Checks that the switch holds these groups and rules, and forwards packets from port 10 to port 11 and from port 11
/// to port 10.
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
    // Blue's two groups have six instances. The seventh group was not added by Weir, and Weir gives its number to no
    // other group.
    assert_eq!(world.switch.switch().group_count(), 7);
    assert!(groups[0].contains(" 2:output:4"), "{groups:?}");
    for _ in 0..2 {
        world.reconnect();
        check(&mut world);
    }
    // Weir restores the groups that the switch has lost. Weir restores a group before the groups that use this group.
    world.behind("group delete id=all");
    world.behind("group add id=2 buckets=output:4");
    world.reconnect();
    check(&mut world);
    // Weir restarts with a map without a hairpin port, and later with a map with a hairpin port.
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

/// An older version of Weir accepted entries that name a group twice. When the switch connects, Weir removes such
/// entries, so that their groups can be deleted.
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

/// The tenant does not see egress groups. Weir restores egress groups also after the switch has lost all groups.
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
        // Each group has an instance for packets from port 10, one for packets from port 11, and one for other packets.
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
        // Egress groups stay for later requests. Egress groups are deleted with the network.
        say(&mut world, blue, "group delete id=all");
        say(&mut world, blue, "flow delete match=");
        assert_eq!(world.switch.switch().group_count(), 3 * egress_groups);
        world.set_policy(policy("red: -\nblue: -"));
        world.advance(1_000_000_000);
        assert_eq!(world.switch.switch().group_count(), 0);
        assert_eq!(world.store.len(), 0);
    }
}

/// An edge port needs no egress group. When the port becomes the end of a link, a group that sets a VLAN field before
/// the output to this port gets an egress group.
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
        // Both groups and the egress group have three instances: for packets from port 10, from port 11, and from other
        // ports.
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
        // The egress group stays for later requests, with one instance.
        assert_eq!(world.switch.switch().group_count(), 3);
    }
}

/// The switch refuses a rule of a MODIFY that makes an entry use a group. Weir restores the old entry, although the
/// switch reports the end of some old rules only after the refusal.
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

/// The network changes while the refusal of a message is in flight. A later reconnect changes no group and no rule.
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

/// The switch refuses one message, for example the ADD of an egress group, while more requests that need this egress
/// group arrive. Each request fails at most once.
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

/// Connects blue's controller, and adds groups and entries. The groups need several instances if the network has a
/// hairpin port.
fn blue_where_it_is_roomy(world: &mut World) -> Seat {
    let blue = world.connect("blue");
    say(world, blue, "group add id=7 buckets=output:10|output:11");
    say(world, blue, "group add id=3 buckets=group:7");
    say(world, blue, "flow add prio=5 actions=group:3 flags=rem");
    say(world, blue, "flow add prio=6 match=in_port=10 actions=write=group:3;goto=1");
    blue
}

/// A new map needs more group instances, and the switch refuses one of the messages. Weir sends the group again. The
/// tables, the switch and the store agree, also if an entry is lost.
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
        // An entry that reaches the switch before its group is lost, and Weir reports the entry as removed.
        let lost = received.iter().filter(|words| words.contains("FLOW_REMOVED")).count();
        assert_eq!(
            lost == 0,
            world.switch_flows().iter().any(|it| it.contains(" prio=5 ")),
            "{nth}"
        );
    }
}

/// The switch refuses all group messages after a new map. Weir no longer reports the group, and removes its entries
/// with FLOW_REMOVED.
#[test]
fn a_group_and_its_entries_are_removed_when_the_new_instances_are_refused() {
    let mut world = world_on(map_without_hairpin());
    let blue = blue_where_it_is_roomy(&mut world);
    say(&mut world, blue, "group add id=9 buckets=drop");
    world.switch.switch_mut().plant(vec![Fault::RefuseGroupMods { every: 1 }]);
    world.set_policy(policy_on(hairpin_map()));
    world.advance(1_000_000_000);
    world.switch.switch_mut().plant(Vec::new());
    // For packets without an ingress port the group needs no new instance, so the entry has a rule for these packets.
    // Weir waits for the switch's reports about the other rules.
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
    // The next connection deletes the groups whose deletion the switch has refused.
    world.reconnect();
    assert_eq!(world.switch.switch().group_count(), 1);
    world.advance(1_000_000_000);
    assert_eq!(world.store.len(), 1);
}

/// The earlier format of a stored group is the group number on the switch and the body of the GROUP_MOD.
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

/// The configuration loses a tenant while Weir does not run. After the start, Weir deletes the tenant's groups on the
/// switch and in the store.
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

/// Weir is killed after the store has saved the change and before the switch has received the change.
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

/// Weir is killed after a new map or a restart has created group instances, and before the store has saved the
/// instances.
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
        // When the store has saved the new instances, Weir sends the instances, then the entries that use the
        // instances, then the changes that tenants have requested meanwhile.
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

/// A group deletion is pending when Weir crashes. The deletion stays in the store until the switch has confirmed the
/// deletion, because Weir may crash again.
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

/// Red adds a group while the switch refuses changes and deletions of blue's group. At the end, a reconnect does not
/// change the groups on the switch.
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

/// A deletion removes a group and its entry, and a new entry replaces the old entry. The switch refuses a message of
/// the deletion, so Weir restores the group. The new entry stays.
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

/// A change of groups is in flight when the hairpin port is removed. Until the switch has confirmed the change, other
/// groups still use the old instances.
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
