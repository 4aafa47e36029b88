//! Tests of PORT_MOD in tenants' networks. Weir handles packets as a switch of the tenant's own does, and other tenants
//! notice no change.

use crate::support::networks::two_networks;
use crate::support::*;

const PORT_DOWN: u32 = 1;
const NO_RECV: u32 = 1 << 2;
const NO_RECV_STP: u32 = 1 << 3;
const NO_FLOOD: u32 = 1 << 4;
const NO_FWD: u32 = 1 << 5;
const NO_PACKET_IN: u32 = 1 << 6;

fn bits(version: Version) -> Vec<u32> {
    let mut bits = vec![PORT_DOWN, NO_RECV, NO_FWD, NO_PACKET_IN, NO_RECV | NO_FWD];
    if version == Version::V1_0 {
        bits.extend([NO_FLOOD, NO_FLOOD | NO_RECV]);
    }
    bits
}

fn set(testbed: &mut Testbed, tenant: usize, switch: u64, port: u32, config: u32) -> Vec<String> {
    let mask = if testbed.version(switch) == Version::V1_0 { 0x7d } else { 0x65 };
    let words = format!("port_mod port={port} config={config} mask={mask}");
    // A controller gets no PORT_STATUS for its own PORT_MOD.
    assert_eq!(testbed.say_beside(tenant, switch, &words), Vec::<String>::new(), "{words}");
    testbed.say(tenant, switch, &words)
}

/// Sends the same request to the testbed and to the reference switch of the tenant.
fn both_say(testbed: &mut Testbed, tenant: usize, switch: u64, words: &str) {
    assert_eq!(testbed.say(tenant, switch, words), Vec::<String>::new(), "{words}");
    assert_eq!(testbed.say_beside(tenant, switch, words), Vec::<String>::new(), "{words}");
}

/// Sends a packet from each edge port of both tenants. The result is the same on the testbed and on the reference
/// networks. Gives the blue tenant's result.
fn all_same(testbed: &mut Testbed, context: &str) -> Vec<Seen> {
    let mut blue = Vec::new();
    for (tenant, plan) in two_networks().iter().enumerate() {
        for &(switch, _, port) in &plan.edges {
            let frame = packet("10.0.0.1>10.0.0.2");
            let seen = testbed.send(tenant, switch, port, &frame);
            let beside = testbed.send_beside(tenant, switch, port, &frame);
            assert_eq!(seen, beside, "{context}: from {tenant} {switch} {port}");
            blue.extend((tenant == 1).then_some(seen));
        }
    }
    blue
}

/// Adds entries on the tenants' switches. With `forward` the entries send packets along the links, and red's entries
/// also send PACKET_INs. Without `forward` each packet causes a PACKET_IN.
fn rules(testbed: &mut Testbed, version: Version, forward: bool) {
    let floods = "prio=5 actions=flood,controller";
    for switch in [1, 2, 3] {
        if forward {
            both_say(testbed, 0, switch, &format!("flow add {floods}"));
        } else if version == Version::V1_3 {
            both_say(testbed, 0, switch, "flow add prio=0 actions=controller");
            both_say(testbed, 1, switch, "flow add prio=0 actions=controller");
        }
    }
    for (switch, from, to) in [
        // Ports 10 and 11 of the first switch are on one physical port.
        (1, 1, "output:10,output:11"),
        (1, 10, "output:11,output:1"),
        (1, 11, "all"),
        (2, 1, "flood"),
        (2, 10, "output:1,in_port"),
        (2, 11, "output:1"),
        (3, 1, "output:11,output:2"),
        (3, 2, "all"),
        (3, 10, "output:1"),
        (3, 11, "flood"),
    ] {
        if forward && !(switch == 3 && matches!(from, 11)) {
            let words = format!("flow add match=in_port={from} prio=5 actions={to}");
            both_say(testbed, 1, switch, &words);
        }
    }
}

#[test]
fn port_mod_acts_as_on_a_switch_of_the_tenants_own() {
    for version in VERSIONS {
        for forward in [true, false] {
            for bits in bits(version) {
                if forward && bits & NO_PACKET_IN != 0 {
                    // With OFPPC_NO_PACKET_IN the reference switch drops also PACKET_INs of entries. The specification
                    // names only PACKET_INs of misses.
                    continue;
                }
                let mut testbed = Testbed::new(version, two_networks());
                rules(&mut testbed, version, forward);
                let before = all_same(&mut testbed, "before");
                let entries: Vec<_> = (1..=3).map(|switch| testbed.entries(switch)).collect();
                for (tenant, switch, port) in
                    [(0, 1, 1), (0, 2, 10), (0, 3, 1), (1, 1, 1), (1, 1, 10), (1, 1, 11), (1, 3, 2)]
                {
                    let context =
                        format!("{version:?} {bits:#x} at {tenant} {switch} {port}, {forward}");
                    assert_eq!(set(&mut testbed, tenant, switch, port, bits), [""; 0], "{context}");
                    let after = all_same(&mut testbed, &context);
                    assert!(tenant == 1 || after == before, "{context}: it is felt by another");
                    assert_eq!(set(&mut testbed, tenant, switch, port, 0), [""; 0], "{context}");
                    assert_eq!(all_same(&mut testbed, &context), before, "{context}: undone");
                    let left: Vec<_> = (1..=3).map(|switch| testbed.entries(switch)).collect();
                    assert_eq!(left, entries, "{context}: something is left behind");
                }
            }
        }
    }
}

#[test]
fn a_packet_out_does_not_leave_by_a_port_that_is_down_or_does_not_forward() {
    for version in VERSIONS {
        let mut testbed = Testbed::new(version, two_networks());
        for bits in [PORT_DOWN, NO_FWD, 0] {
            set(&mut testbed, 1, 1, 11, bits);
            set(&mut testbed, 1, 1, 1, bits);
            for to in ["output:1,output:10,output:11", "all", "flood"] {
                let words = format!("out in_port=controller actions={to} data=10.0.0.1>10.0.0.2");
                let seen = testbed.out(1, 1, &words);
                assert_eq!(seen, testbed.out_beside(1, 1, &words), "{version:?} {bits:#x} {to}");
            }
        }
    }
}

#[test]
fn port_mod_with_invalid_or_unsupported_values_is_refused() {
    // Port 11 is blue's. Weir refuses the bit NO_RECV_STP, because Weir cannot drop spanning-tree frames alone;
    // OpenFlow 1.3 has no such bit. Bits of the configuration outside the mask may have any value.
    both_versions(two_networks()).play(
        "
        note
        only red@1> port_mod port=9 config=1 mask=1 -> ERROR OFPPMFC_BAD_PORT
        only red@1> port_mod port=11 config=1 mask=1 -> ERROR OFPPMFC_BAD_PORT
        only red@1> port_mod port=1 config=1 mask=1 mac=02:00:01:00:00:02 -> ERROR OFPPMFC_BAD_HW_ADDR
        only red@1> port_mod port=1 config=0x100 mask=0x100
        [1.0] red@1< 7 ERROR OFPBRC_EPERM of type 15 xid 7
        [1.3] red@1< 7 ERROR OFPPMFC_BAD_CONFIG of type 16 xid 7
        only red@1> port_mod port=1 config=8 mask=8
        [1.0] red@1< 7 ERROR OFPBRC_EPERM of type 15 xid 7
        [1.3] red@1< 7 ERROR OFPPMFC_BAD_CONFIG of type 16 xid 7
        only red@1> port_mod port=1 config=9 mask=9
        [1.0] red@1< 7 ERROR OFPBRC_EPERM of type 15 xid 7
        [1.3] red@1< 7 ERROR OFPPMFC_BAD_CONFIG of type 16 xid 7
        only red@1> port_mod port=1 advertise=1
        [1.0] red@1< 7 ERROR OFPBRC_EPERM of type 15 xid 7
        [1.3] red@1< 7 ERROR OFPPMFC_BAD_ADVERTISE of type 16 xid 7
        as noted
        only red@1> port_mod port=1 config=0x108 mask=1
    ",
    );
}

/// A port with NO_RECV or PORT_DOWN drops spanning-tree frames and other frames. Weir refuses the bit NO_RECV_STP.
#[test]
fn spanning_tree_frames_are_treated_like_other_frames() {
    let mut testbed = Testbed::new(Version::V1_0, two_networks());
    testbed.say(0, 1, "flow add prio=65535 actions=output:2");
    let mut spanning_tree = packet("10.0.0.1>10.0.0.2");
    spanning_tree[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0]);
    let other = packet("10.0.0.1>10.0.0.2");
    for (bits, let_in) in
        [(0, true), (NO_RECV, false), (PORT_DOWN, false), (PORT_DOWN | NO_RECV, false), (0, true)]
    {
        assert_eq!(testbed.say(0, 1, &format!("port_mod port=1 config={bits} mask=0x7d")), [""; 0]);
        for frame in [&spanning_tree, &other] {
            let seen = testbed.send(0, 1, 1, frame);
            let delivered = if let_in { vec![(0, 1, 2, frame.clone())] } else { Vec::new() };
            assert_eq!((seen.delivered, seen.received), (delivered, Vec::new()), "{bits:#x}");
        }
    }
    // A spanning-tree frame that matches no entry causes no PACKET_IN.
    testbed.say(0, 1, "flow delete match=");
    testbed.say(0, 1, &format!("port_mod port=1 config={NO_RECV} mask=0x7d"));
    assert_eq!(testbed.send(0, 1, 1, &spanning_tree).received, []);
    for bits in [NO_RECV_STP, NO_RECV | NO_RECV_STP] {
        let refused = testbed.say(0, 1, &format!("port_mod port=1 config={bits} mask={bits}"));
        assert_eq!(refused, ["7 ERROR OFPBRC_EPERM of type 15 xid 7"], "{bits:#x}");
    }
}

#[test]
fn fast_failover_groups_skip_ports_that_port_mod_sets_down() {
    // Each PORT_MOD makes Weir write the group again, so the counters begin at zero. Each count is reported at its own
    // bucket.
    Testbed::new(Version::V1_3, two_networks()).play(
        "
        blue@2> group add id=1 type=ff buckets=11@output:11|10@output:10
        blue@2> flow add match=in_port=1 prio=5 actions=group:1
        blue@1,3> flow add match=in_port=10 prio=5 actions=output:1
        blue@2> port_mod port=11 config=0 mask=0x65
        blue@2:1> 10.0.0.1>10.0.0.2 -> blue@3:1
        only blue@2> stats group -> STATS group 1:1(1 0)
        blue@2> port_mod port=11 config=1 mask=0x65
        blue@2:1> 10.0.0.1>10.0.0.2 -> blue@1:1
        only blue@2> stats group -> STATS group 1:1(0 1)
        blue@2> port_mod port=10 config=1 mask=0x65
        blue@2:1> 10.0.0.1>10.0.0.2
        only blue@2> stats group -> STATS group 1:1(0 0)
        blue@2> port_mod port=11 config=0 mask=0x65
        blue@2:1> 10.0.0.1>10.0.0.2 -> blue@3:1
        only blue@2> stats group -> STATS group 1:1(1 0)
    ",
    );
}

#[test]
fn unsupported_outputs_are_refused_also_when_the_port_is_down() {
    let mut plans = two_networks();
    plans[0].shared = vec![(1, 4, 7, [2, 0, 0, 0, 0x10, 0])];
    // On 1.0 a frame with a VLAN tag cannot cross a link. On 1.3 an action set that continues in a later table cannot
    // output to a port.
    for bits in [0, PORT_DOWN, NO_FWD] {
        both_versions(plans.clone()).play(&format!(
            "
            [1.0] red@1> port_mod port=10 config={bits} mask=0x21
            [1.0] only red@1> flow add match=in_port=1 prio=5 actions=mod_vlan_vid:99,output:10 -> ERROR OFPBAC_BAD_ARGUMENT
            [1.3] red@1> port_mod port=7 config={bits} mask=0x21
            [1.3] only red@1> flow add match=in_port=1 prio=5 actions=write=output:7;goto=1 -> ERROR OFPBIC_UNSUP_INST
        "
        ));
    }
}

const OWN: &str = "
    violet own=3+4: -
    red: in_port=1
";

#[test]
fn port_mod_sends_port_status_to_other_controllers_of_the_tenant() {
    both(
        OWN,
        "
        violet> 1 port_mod port=2 config=1 mask=1 mac=02:00:00:00:00:02
        violet2> 2 port_mod port=2 config=0x20 mask=0x21 mac=02:00:00:00:00:02
        violet< PORT_STATUS MODIFY 2:0x20
        violet> 3 port_mod port=2 config=0x20 mask=0x21 mac=02:00:00:00:00:02
        [1.0] violet> 4 features
        [1.0] violet< 4 FEATURES b1 tables=1 ports=1 2:0x20
        [1.3] violet> 4 stats port_desc
        [1.3] violet< 4 STATS port_desc 1 2:0x20
        violet> 5 port_mod port=2 config=0 mask=0xff mac=02:00:00:00:00:02
        violet2< PORT_STATUS MODIFY 2
        red> 6 echo
        red< 6 ECHO_REPLY
    ",
    );
}

#[test]
fn port_mod_in_a_network_leaves_the_port_of_the_switch_unchanged() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, OWN));
        let violet = world.connect("violet");
        for bits in [1, 4, 0x20, 0x40, 0x65] {
            let words = format!("port_mod port=1 config={bits} mask=0x7d mac=02:00:00:00:00:01");
            world.say(violet, 1, &words);
            assert_eq!(world.switch.switch().port(3).unwrap().config, 0, "{version:?}");
        }
        assert_eq!(world.heard(violet), [""; 0], "{version:?}");
    }
}

#[test]
fn a_port_configuration_survives_reconnects_and_ends_with_the_port() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, OWN));
        let violet = world.connect("violet");
        let fresh = world.switch_flows();
        world.say(violet, 1, "flow add match=in_port=1 prio=5 actions=output:2");
        world.say(violet, 2, "flow add match=in_port=2 prio=5 actions=output:1");
        world.say(violet, 3, "port_mod port=1 config=1 mask=1 mac=02:00:00:00:00:01");
        world.advance(1_000_000_000);
        let check = |world: &mut World, passes: bool| {
            let frame = packet("10.0.0.1>10.0.0.2");
            let ports = |open: u32| if passes { vec![open] } else { Vec::new() };
            assert_eq!(world.packet(3, &frame), ports(4), "{version:?}");
            assert_eq!(world.packet(4, &frame), ports(3), "{version:?}");
        };
        check(&mut world, false);
        let flows = world.switch_flows();
        for _ in 0..2 {
            world.reconnect();
            assert_eq!(world.switch_flows(), flows, "{version:?}");
            check(&mut world, false);
        }
        // Another program deletes rules on the switch. Weir installs the rules again when the switch connects again.
        world.behind("flow delete match=");
        world.reconnect();
        assert_eq!(world.switch_flows(), flows, "{version:?}");
        check(&mut world, false);
        let violet = world.connect("violet");
        let asked = if version == Version::V1_0 { "features" } else { "stats port_desc" };
        world.say(violet, 4, asked);
        assert!(world.heard(violet)[0].contains("1:0x1"), "{version:?}");
        world.say(violet, 5, "port_mod port=1 config=0 mask=1 mac=02:00:00:00:00:01");
        world.advance(1_000_000_000);
        check(&mut world, true);
        // Port 2 is removed and added again. Then the configuration of port 2 is the default.
        world.say(violet, 6, "port_mod port=2 config=1 mask=1 mac=02:00:00:00:00:02");
        check(&mut world, false);
        let stored = world.store.len();
        world.set_policy(policy(
            "
            violet own=3: -
            red: in_port=1
        ",
        ));
        // Weir removes the entries that name port 2.
        assert!(world.store.len() < stored, "{version:?}");
        world.set_policy(policy(OWN));
        assert_eq!(world.store.len(), 0, "{version:?}");
        assert_eq!(world.switch_flows(), fresh, "{version:?}");
    }
}

#[test]
fn port_mod_takes_effect_only_after_the_configuration_is_stored() {
    for version in VERSIONS {
        let mut world = World::new(Setup { store_at_once: false, ..Setup::new(version, OWN) });
        let violet = world.connect("violet");
        let fresh = world.switch_flows();
        // PORT_DOWN needs other rules on the switch. The second PORT_MOD replaces PORT_DOWN by NO_PACKET_IN, which
        // needs the same rules as the default configuration.
        for (bit, entries) in [(1, true), (0x40, false)] {
            let words = format!("port_mod port=1 config={bit} mask=0x7d mac=02:00:00:00:00:01");
            world.south.clear();
            world.say(violet, 1, &words);
            world.say(violet, 2, "barrier");
            world.advance(1_000_000_000);
            assert_eq!(world.heard(violet), [""; 0], "{version:?}");
            assert!(!world.south_types().contains(&14), "{version:?}");
            world.stored();
            world.advance(1_000_000_000);
            assert_eq!(world.heard(violet), ["2 BARRIER_REPLY"], "{version:?}");
            let same = version == Version::V1_3 || !entries;
            assert_eq!(world.switch_flows() == fresh, same, "{version:?}");
        }
    }
}

/// Weir has one rule for each host at a shared port. A PORT_MOD replaces all these rules.
#[test]
fn port_mod_of_a_shared_port_applies_to_each_host_of_the_tenant() {
    const HOSTS: u8 = 30;
    let host = |tenant: usize, n: u8| [2, 0, 0, 0, 0x10 + tenant as u8, n];
    let shared = |tenant| (0..HOSTS).map(|n| (1, 2, 2, host(tenant, n))).collect();
    let plan = |tenant: usize| Plan {
        edges: vec![(1, 3 + tenant as u32, 1)],
        shared: shared(tenant),
        ..Plan::default()
    };
    for version in VERSIONS {
        let mut testbed = Testbed::new(version, vec![plan(0), plan(1)]);
        for tenant in [0, 1] {
            both_say(&mut testbed, tenant, 1, "flow add match=in_port=2 actions=output:1");
        }
        let arrive = |testbed: &mut Testbed, tenant: usize| {
            let all = (0..HOSTS).map(|n| {
                let mut frame = packet("10.0.0.1>10.0.0.2");
                frame[6..12].copy_from_slice(&host(tenant, n));
                let seen = testbed.send(tenant, 1, 2, &frame);
                let passes = seen.delivered == [(tenant, 1, 1, frame.clone())];
                assert!(
                    passes || seen.delivered.is_empty() && seen.received.is_empty(),
                    "{seen:?}"
                );
                usize::from(passes)
            });
            all.sum::<usize>()
        };
        let all = usize::from(HOSTS);
        let before = testbed.entries(1);
        for bits in [PORT_DOWN, NO_RECV, NO_FWD, PORT_DOWN | NO_FWD] {
            assert_eq!(set(&mut testbed, 0, 1, 2, bits), [""; 0], "{version:?} {bits:#x}");
            let admitted = if bits & (PORT_DOWN | NO_RECV) == 0 { all } else { 0 };
            assert_eq!(arrive(&mut testbed, 0), admitted, "{version:?} {bits:#x}");
            assert_eq!(arrive(&mut testbed, 1), all, "{version:?} {bits:#x}: felt by another");
            assert_eq!(set(&mut testbed, 0, 1, 2, 0), [""; 0], "{version:?} {bits:#x}");
            assert_eq!(arrive(&mut testbed, 0), all, "{version:?} {bits:#x}: undone");
            assert_eq!(
                testbed.entries(1),
                before,
                "{version:?} {bits:#x}: something is left behind"
            );
        }
    }
}
