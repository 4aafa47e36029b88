//! Tests of shared edge ports on OpenFlow 1.3 with rules that name no destination address. Packets reach only the
//! tenant's own hosts.

use crate::support::hairpin::{policy_on, say};
use crate::support::shared_ports::*;
use crate::support::*;
use emulate::Fault;
use fabric::embedding::SwitchMap;
use hypervisor::{Event, TenantId};

#[test]
fn outputs_to_shared_ports_reach_only_hosts_of_the_tenant() {
    let sets: [(&str, &[u32]); 6] = [
        // Weir knows the whole action set, and writes it as an action list.
        ("write=flood", EVERYWHERE),
        ("write=output:8", &[8]),
        ("output:1;write=output:7", &[WHOLE, 7]),
        // The entry writes the tenant's metadata, but the packet continues in no table that matches on metadata.
        ("flood;meta=5/7fffffff", EVERYWHERE),
        ("group:1,flood", EVERYWHERE),
        ("flood,group:1", EVERYWHERE),
    ];
    for (actions, by) in LISTS.into_iter().chain(sets) {
        let mut testbed = testbed();
        for tenant in [RED, BLUE] {
            accept(&mut testbed, tenant, 1, "group add id=1 type=all buckets=drop");
            accept(&mut testbed, tenant, 1, &format!("flow add prio=5 actions={actions}"));
        }
        for tenant in [RED, BLUE] {
            leaves_by(&mut testbed, tenant, by, actions);
        }
    }
}

#[test]
fn rules_that_match_the_ingress_port_reach_the_tenants_hosts() {
    let mut testbed = testbed();
    for (port, out) in [(1, "flood"), (7, "output:8,output:1"), (8, "flood"), (10, "all")] {
        accept(
            &mut testbed,
            RED,
            1,
            &format!("flow add prio=5 match=in_port={port} actions={out}"),
        );
    }
    for (at, from, by) in [
        ((1, WHOLE), WHOLE, EVERYWHERE),
        ((1, 7), 7, &[WHOLE, 8]),
        ((1, 8), 8, EVERYWHERE),
        ((2, WHOLE), LINK, EVERYWHERE),
    ] {
        for to in [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST] {
            let seen = reached(&mut testbed, RED, at, to);
            assert_eq!(seen, meant(&plan(RED).shared, from, by, to), "{at:?} {to:x?}");
        }
    }
}

/// In a later table Weir accepts FLOOD only in an entry that clears the action set.
#[test]
fn flood_in_a_later_table_is_refused_without_clear_actions() {
    let mut testbed = testbed();
    accept(&mut testbed, RED, 1, "group add id=1 buckets=output:1");
    accept(&mut testbed, RED, 1, "flow add prio=5 actions=write=group:1;meta=7/ff;goto=1");
    let entries = testbed.entries(1).len();
    let words = "flow add table=1 prio=5 match=metadata=0x7/0xff actions=clear;flood";
    accept(&mut testbed, RED, 1, words);
    assert_eq!(testbed.entries(1).len(), entries + 1);
    leaves_by(&mut testbed, RED, EVERYWHERE, "clear");
    let received = testbed.say(RED, 1, &words.replace("clear;", ""));
    assert_eq!(received, ["7 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 7"]);
}

#[test]
fn hosts_receive_the_source_address_that_is_set_before_a_flood() {
    let mut testbed = testbed();
    accept(&mut testbed, RED, 1, "flow add prio=5 actions=mod_dl_src:02.00.00.00.00.77,flood");
    let seen = testbed.send(RED, 1, WHOLE, &frame(host(RED, 9), BROADCAST));
    assert_eq!(seen.delivered.iter().filter(|it| it.0 == RED).count(), 4, "{seen:?}");
    assert!(seen.delivered.iter().all(|it| it.3[6..12] == [2, 0, 0, 0, 0, 0x77]), "{seen:?}");
}

#[test]
fn a_rule_can_output_to_one_or_all_of_three_shared_ports_but_not_to_two() {
    let mut plan = plan(RED);
    plan.shared.push((1, 2, 9, host(RED, 4)));
    let mut testbed = Testbed::new(Version::V1_3, vec![plan]);
    let without = testbed.entries(1).len();
    for (actions, entries) in [
        ("output:7", 1),
        ("output:8,output:7,output:9", 1),
        ("flood", 1),
        ("output:9,output:1", 1),
        ("flood", 1),
    ] {
        accept(&mut testbed, RED, 1, &format!("flow add prio=5 actions={actions}"));
        assert_eq!(testbed.entries(1).len() - without, entries, "{actions}");
    }
    for actions in ["output:7,output:9", "output:1,output:8,output:9"] {
        let received = testbed.say(RED, 1, &format!("flow add prio=5 actions={actions}"));
        assert_eq!(received, ["7 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 7"], "{actions}");
    }
    // These rules output to all shared ports except the ingress port.
    for (port, actions) in [(9, "output:7,output:8"), (7, "output:7,output:8,output:7,output:9")] {
        let words = format!("flow add prio=9 match=in_port={port} actions={actions}");
        let without = testbed.entries(1).len();
        accept(&mut testbed, RED, 1, &words);
        assert_eq!(testbed.entries(1).len() - without, 1, "{words}");
    }
    // FLOOD outputs to all shared ports without OFPPC_NO_FWD (0x20).
    accept(&mut testbed, RED, 1, "flow add prio=5 actions=flood");
    for (port, bits, reached) in [(8, "0x20", 3), (8, "0", 4), (7, "0x20", 2), (7, "0", 4)] {
        accept(&mut testbed, RED, 1, &format!("port_mod port={port} config={bits} mask=0x20"));
        let seen = testbed.send(RED, 1, WHOLE, &frame(host(RED, 9), BROADCAST));
        let at_hosts = seen.delivered.iter().filter(|it| it.2 != WHOLE).count();
        assert_eq!(at_hosts, reached, "{port} {bits}: {seen:?}");
    }
}

/// The shared port may be on another member, at the far end of a tunnel.
#[test]
fn outputs_to_shared_ports_on_a_big_switch_reach_only_the_tenants_hosts() {
    for (actions, by) in [
        ("flood", &[1, 2, 7, 8, LINK][..]),
        ("output:8,output:7", &[7, 8]),
        ("output:8", &[8]),
        ("output:1,output:7", &[1, 7]),
    ] {
        let mut testbed = big_testbed(Version::V1_3);
        for tenant in [RED, BLUE] {
            accept(&mut testbed, tenant, 1, &format!("flow add prio=5 actions={actions}"));
        }
        let strangers = [host(BLUE, 1), host(BLUE, 2), [2, 0, 0, 0, 0x66, 6]];
        let own = [host(RED, 1), host(RED, 2), host(RED, 3), BROADCAST, EVERY_NODE];
        for from in BIG_FROM {
            for to in strangers.into_iter().chain(own) {
                leaves_big(&mut testbed, from, by, to, actions);
            }
        }
    }
}

/// At shared ports a rule that matches on another tenant's address reaches no host, whichever member has the port. A
/// rule that matches on the broadcast address reaches the tenant's own hosts.
#[test]
fn rules_with_a_destination_on_a_big_switch_reach_only_the_tenants_hosts() {
    for version in VERSIONS {
        let mut testbed = big_testbed(version);
        for to in [host(BLUE, 1), host(BLUE, 2), host(RED, 1), host(RED, 3), BROADCAST] {
            let address = to.map(|octet| format!("{octet:02x}")).join(":");
            for (actions, by) in
                [("flood", &[1, 2, 7, 8, LINK][..]), ("output:8,output:7", &[7, 8])]
            {
                let words = format!("flow add match=dl_dst={address} prio=5 actions={actions}");
                accept(&mut testbed, RED, 1, &words);
                for from in BIG_FROM {
                    leaves_big(&mut testbed, from, by, to, actions);
                }
            }
        }
    }
}

#[test]
fn flooding_to_shared_ports_follows_the_port_configuration() {
    let mut testbed = testbed();
    accept(&mut testbed, RED, 1, "flow add prio=5 actions=flood");
    accept(&mut testbed, RED, 1, "flow add prio=6 match=dl_vlan=5 actions=output:7,output:8");
    let all = testbed.entries(1);
    for (port, bits, open) in [
        (7, "0x20", &[WHOLE, 8, LINK][..]),
        (7, "0x1", &[WHOLE, 8, LINK]),
        (7, "0", EVERYWHERE),
        (8, "0x20", &[WHOLE, 7, LINK]),
        (8, "0x4", EVERYWHERE),
        (8, "0", EVERYWHERE),
    ] {
        let words = format!("port_mod port={port} config={bits} mask=0x25");
        accept(&mut testbed, RED, 1, &words);
        for (at, from) in [((1, WHOLE), WHOLE), ((2, WHOLE), LINK), ((1, 7), 7), ((1, 8), 8)] {
            // A port with NO_FWD (0x20) receives packets. A port with PORT_DOWN (0x1) or NO_RECV (0x4) receives none.
            let is_let_in = from != port || ["0", "0x20"].contains(&bits);
            for to in [host(RED, 1), host(RED, 3), BROADCAST] {
                let seen = reached(&mut testbed, RED, at, to);
                let meant = meant(&plan(RED).shared, from, if is_let_in { open } else { &[] }, to);
                assert_eq!(seen, meant, "{words} {at:?} {to:x?}");
            }
        }
        // With NO_RECV the switch has entries with the same matches, but the entries drop packets.
        assert_eq!(testbed.entries(1) == all, ["0", "0x4"].contains(&bits), "{words}");
    }
    // With NO_FWD on both shared ports no packet leaves by these ports. After NO_FWD is removed, three hosts receive
    // packets again.
    for (bits, left) in [("0x20", 0), ("0", 3)] {
        for port in SHARED {
            accept(&mut testbed, RED, 1, &format!("port_mod port={port} config={bits} mask=0x20"));
        }
        let seen = reached(&mut testbed, RED, (1, WHOLE), BROADCAST);
        assert_eq!(seen.iter().filter(|it| SHARED.contains(&it.1)).count(), left, "{seen:?}");
    }
    assert_eq!(testbed.entries(1), all);
}

/// Hosts of red are added and removed at shared ports, and then all hosts of blue are removed.
#[test]
fn flooding_follows_added_and_removed_hosts_at_shared_ports() {
    let mut testbed = testbed();
    accept(&mut testbed, RED, 1, "flow add prio=5 actions=flood");
    let before = testbed.entries(1);
    let more = |added: &[(u64, u32, u32, [u8; 6])], removed: &[[u8; 6]]| {
        let mut plan = plan(RED);
        plan.shared.retain(|it| !removed.contains(&it.3));
        plan.shared.extend_from_slice(added);
        plan
    };
    for red in [
        more(&[(1, 3, 8, host(RED, 4))], &[]),
        more(&[], &[host(RED, 2)]),
        more(&[], &[host(RED, 3)]),
        more(&[(1, 4, 7, host(RED, 3))], &[host(RED, 1), host(RED, 3)]),
        more(&[], &[]),
    ] {
        let (maps, tags) = Testbed::maps_from(2000, &[red.clone(), plan(BLUE)]);
        testbed.set_maps(&maps, 2000..=tags);
        testbed.take_received();
        for to in [host(RED, 1), host(RED, 2), host(RED, 3), host(RED, 4), BROADCAST] {
            let seen = reached(&mut testbed, RED, (1, WHOLE), to);
            assert_eq!(seen, meant(&red.shared, WHOLE, EVERYWHERE, to), "{red:?} {to:x?}");
        }
    }
    assert_eq!(testbed.entries(1), before);
    // The work for one tenant does not grow with other tenants: without blue, red has the same number of rules in the
    // last table.
    let (maps, tags) = Testbed::maps_from(2000, &[plan(RED)]);
    testbed.set_maps(&maps, 2000..=tags);
    let own = |it: &&String| it.starts_with("15 ") && it.contains("metadata=0x1");
    let entries = testbed.entries(1);
    assert_eq!(entries.iter().filter(own).count(), before.iter().filter(own).count());
}

/// Red has two ports on one physical port. A packet from one port to the other leaves by its physical ingress port.
#[test]
fn packets_between_two_virtual_ports_on_one_physical_port_are_delivered() {
    let mut plan = plan(RED);
    plan.shared.push((1, 4, 9, host(RED, 4)));
    let mut testbed = Testbed::new(Version::V1_3, vec![plan]);
    accept(&mut testbed, RED, 1, "flow add prio=5 actions=flood");
    let to = |testbed: &mut Testbed, from: [u8; 6], to: [u8; 6]| {
        let seen = testbed.send(RED, 1, 7, &frame(from, to));
        // Both virtual ports have the same wire, so the testbed shows each packet at both ports.
        let mut at: Vec<[u8; 6]> =
            seen.delivered.iter().map(|it| it.3[..6].try_into().unwrap()).collect();
        at.sort_unstable();
        at.dedup();
        at
    };
    let whole = BROADCAST;
    let cases = [
        (host(RED, 1), BROADCAST, vec![host(RED, 3), host(RED, 4), whole]),
        (host(RED, 4), BROADCAST, vec![host(RED, 1), host(RED, 2), host(RED, 3), whole]),
        (host(RED, 1), host(RED, 4), vec![host(RED, 4)]),
        (host(RED, 4), host(RED, 2), vec![host(RED, 2)]),
    ];
    for (from, dst, expected) in cases {
        assert_eq!(to(&mut testbed, from, dst), expected, "{from:x?} {dst:x?}");
    }
    accept(&mut testbed, RED, 1, "flow add prio=5 actions=output:9");
    assert_eq!(to(&mut testbed, host(RED, 1), BROADCAST), [host(RED, 4)]);
    assert_eq!(to(&mut testbed, host(RED, 4), BROADCAST), [[0; 6]; 0]);
}

/// The tenant sees the actions that it has written, and a switch with one table less.
#[test]
fn the_last_table_is_hidden_from_the_tenant() {
    testbed().play(
        "
        red@1> flow add prio=5 actions=flood;meta=5/ff
        red@1> features -> FEATURES a1 tables=14
        red@1> stats flow -> STATS flow prio=5 any n=0 flood;WriteMetadata { metadata: 5 mask: 255 }
        red@1> stats aggregate -> STATS aggregate flows=1 n=0
        red@1> stats table -> same
        red@1> stats flow table=13 -> STATS flow
        red@1> stats flow table=14 -> ERROR OFPBRC_BAD_TABLE_ID
        red@1> flow add table=14 prio=5 actions=output:1 -> ERROR OFPFMFC_BAD_TABLE_ID
        red@1> flow add prio=7 actions=goto=14 -> ERROR OFPBIC_BAD_TABLE_ID
        red@1> table_mod table=14 -> ERROR OFPTMFC_BAD_TABLE
        red@1> flow add prio=7 actions=goto=13
        red@1> stats table_features -> same
    ",
    );
}

/// The map of the first switch, with one more host of red at the second shared port.
fn map_with_more() -> SwitchMap {
    let mut red = plan(RED);
    red.shared.push((1, 3, 8, host(RED, 4)));
    Testbed::maps_from(2000, &[red, plan(BLUE)]).0.remove(&1).unwrap()
}

#[test]
fn rules_of_the_last_table_are_restored_after_a_reconnect_and_restart() {
    let (mut world, red) = world_on(map(), |config| config.n_buffers = 0);
    say(&mut world, red, "flow add prio=5 actions=flood");
    let there = world.switch_entries();
    assert!(there.iter().any(|it| it.starts_with("15 ")), "{there:?}");
    let reconciled = |world: &World| {
        let event = world.events.iter().find(|it| matches!(it, Event::Reconciled { .. }));
        let Some(Event::Reconciled { installed, removed, .. }) = event else { panic!() };
        (*installed, *removed)
    };
    for _ in 0..2 {
        world.reconnect();
        assert_eq!(world.switch_entries(), there);
        assert_eq!(reconciled(&world), (0, 0));
    }
    // While Weir is stopped, a host is added, and later removed.
    world.restart_with(policy_on(map_with_more()));
    world.advance(1_000_000_000);
    assert_ne!(world.switch_entries(), there);
    world.restart_with(policy_on(map()));
    world.advance(1_000_000_000);
    assert_eq!(world.switch_entries(), there);
    // Weir installs the rules that the switch has lost.
    world.behind("flow delete table=255");
    world.reconnect();
    assert_eq!(world.switch_entries(), there);
    // Without networks the last table has no rules.
    world.set_policy(policy("red: -\nblue: -"));
    world.advance(1_000_000_000);
    assert!(!world.switch_entries().iter().any(|it| it.starts_with("15 ")));
}

/// Weir sends a refused rule once more. If the switch refuses the rule twice, only the ports that need this rule are
/// down.
#[test]
fn a_rule_refused_twice_takes_down_only_the_ports_that_need_this_rule() {
    let refuse = |world: &mut World, nth: &[u32]| {
        let faults = nth.iter().map(|&nth| Fault::RefuseOnce { nth }).collect();
        world.switch.switch_mut().plant(faults);
        world.set_policy(policy_on(map_with_more()));
        world.advance(1_000_000_000);
        world.switch.switch_mut().plant(Vec::new());
    };
    let table = |world: &World| {
        let flows = world.switch_flows();
        flows.into_iter().filter(|it| it.starts_with("15 ")).collect::<Vec<_>>()
    };
    let (mut whole, _) = world_on(map_with_more(), |config| config.n_buffers = 0);
    whole.advance(1_000_000_000);
    let expected = table(&whole);
    // For the new host Weir sends five FLOW_MODs: rules for packets from the host, and the rules that output to the
    // host's port or to all ports. FLOW_MODs that Weir sends again follow these five.
    let sent = 5;
    let (mut of_one, mut of_all) = (0, 0);
    for nth in 1..=sent {
        let (mut world, red) = world_on(map(), |config| config.n_buffers = 0);
        say(&mut world, red, "flow add prio=5 actions=flood");
        refuse(&mut world, &[nth]);
        assert_eq!(table(&world), expected, "{nth}");
        assert_eq!(world.heard(red), [""; 0], "{nth}");
        assert_eq!(world.core.counters().own_refused, 1);

        let (mut world, red) = world_on(map(), |config| config.n_buffers = 0);
        say(&mut world, red, "flow add prio=5 actions=flood");
        refuse(&mut world, &[nth, sent + 1]);
        assert_eq!(world.core.counters().own_refused, 2);
        let received = world.heard(red);
        let left = match &received.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["PORT_STATUS MODIFY 8"] => {
                of_one += 1;
                vec![4, 4, 5]
            }
            ["PORT_STATUS MODIFY 7", "PORT_STATUS MODIFY 8"] => {
                of_all += 1;
                vec![5]
            }
            other => panic!("{nth}: {other:?}"),
        };
        assert_eq!(world.packet(1, &frame(host(RED, 9), BROADCAST)), left, "{nth}");
    }
    assert_eq!((of_one, of_all), (3, 2));
}

/// A switch with two tables has no last table for outputs to shared ports, so rules must name their destination.
#[test]
fn flood_without_a_destination_is_refused_on_a_switch_with_two_tables() {
    let two = |config: &mut emulate::Config| (config.n_buffers, config.n_tables) = (0, 2);
    let three = |config: &mut emulate::Config| (config.n_buffers, config.n_tables) = (0, 3);
    let (mut world, red) = world_on(map(), three);
    let without = world.switch_entries().len();
    say(&mut world, red, "flow add prio=5 actions=flood");
    assert_eq!(world.switch_entries().len() - without, 1);
    let (mut world, red) = world_on(map(), two);
    world.say(red, 1, "flow add prio=5 actions=flood");
    world.advance(100_000_000);
    assert_eq!(world.heard(red), ["1 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 1"]);
    say(&mut world, red, "flow add prio=5 match=dl_dst=ff:ff:ff:ff:ff:ff actions=flood");
    assert_eq!(world.packet(1, &frame(host(RED, 9), BROADCAST)).len(), 4);
}

/// A slice has all tables after table 0.
#[test]
fn a_slice_can_use_the_last_table_and_a_network_cannot() {
    let mut world = World::new(Setup::new(Version::V1_3, "red: in_port=1"));
    let red = world.connect("red");
    say(&mut world, red, "flow add table=14 prio=5 actions=output:1");
    say(&mut world, red, "flow add prio=5 actions=goto=14");
    // Red gets a network instead of the slice. The last table is not available to a network, so Weir removes both
    // entries.
    let before = world.tenant_flows().len();
    let mut policy = policy_on(map());
    policy.tenants.retain(|tenant| tenant.id == TenantId(1));
    world.set_policy(policy);
    world.advance(1_000_000_000);
    let own = |it: &&String| !it.starts_with("15 ");
    assert_eq!((before, world.tenant_flows().iter().filter(own).count()), (2, 0));
}
