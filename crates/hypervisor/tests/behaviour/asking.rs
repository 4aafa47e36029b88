//! Shared edge ports on OpenFlow 1.0: of packets that a rule sends there without a word of whom they are for, the hypervisor is
//! told, and takes them to the tenant's own hosts.

use crate::deliveries::{
    BLUE, BROADCAST, EVERYWHERE, LINK, LISTS, RED, WHOLE, accept, big_plan, frame, host,
    leaves_big, leaves_by, plan, stage_of,
};
use crate::support::*;

/// Ports of what is delivered to a tenant, in order.
fn ports(seen: &Seen, tenant: usize) -> Vec<u32> {
    let own = seen.delivered.iter().filter(|it| it.0 == tenant);
    let mut ports: Vec<u32> = own.map(|it| it.2).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn a_hub_reaches_the_tenants_own_hosts_and_nobody_elses() {
    for (actions, by) in LISTS {
        let mut stage = stage_of(Version::V1_0);
        for tenant in [RED, BLUE] {
            let entries = stage.entries(1).len();
            accept(&mut stage, tenant, 1, &format!("flow add prio=5 actions={actions}"));
            // By the whole port, the three hosts at shared ones, and the link.
            assert_eq!(stage.entries(1).len(), entries + 5);
        }
        for tenant in [RED, BLUE] {
            leaves_by(&mut stage, tenant, by, actions);
        }
    }
}

/// Rules of all priorities beside each other: the one that a packet meets counts, whoever is told by others.
#[test]
fn the_rule_that_a_packet_meets_says_where_it_goes() {
    let mut stage = stage_of(Version::V1_0);
    for words in [
        "flow add prio=4 actions=output:8",
        "flow add prio=5 actions=flood",
        "flow add prio=6 match=in_port=1,dl_src=02:00:00:00:00:05 actions=output:7",
        "flow add prio=6 match=in_port=1,dl_src=02:00:00:00:00:06 actions=controller",
        "flow add prio=6 match=in_port=1,dl_src=02:00:00:00:00:07 actions=drop",
    ] {
        accept(&mut stage, RED, 1, words);
    }
    for (from, told, reached) in
        [(5, 0, &[7, 7][..]), (6, 1, &[]), (7, 0, &[]), (8, 0, &[WHOLE, 7, 7, 8])]
    {
        let from = [2, 0, 0, 0, 0, from];
        let seen = stage.send(RED, 1, WHOLE, &frame(from, BROADCAST));
        let reached: Vec<u32> = reached.iter().copied().filter(|port| *port != WHOLE).collect();
        let at_hosts: Vec<u32> =
            ports(&seen, RED).into_iter().filter(|port| *port != WHOLE).collect();
        assert_eq!((seen.told.len(), at_hosts), (told, reached), "{from:x?}: {seen:?}");
    }
    // It goes, and the one below counts.
    accept(&mut stage, RED, 1, "flow delete_strict prio=5");
    let seen = stage.send(RED, 1, WHOLE, &frame(host(RED, 9), BROADCAST));
    assert_eq!(ports(&seen, RED), [8]);
}

/// However little a rule wants to know of its packets, they are not taken for another's.
#[test]
fn a_rule_that_asks_for_little_is_told_from_others() {
    for (buffers, length) in [(0, 0), (0, 20), (16, 0), (16, 20)] {
        let plans = vec![plan(RED), plan(BLUE)];
        let mut stage = Stage::with_buffers(Version::V1_0, plans, buffers);
        let told = format!("flow add prio=9 match=udp,tp_dst=2000 actions=controller:{length}");
        accept(&mut stage, RED, 1, &told);
        accept(&mut stage, RED, 1, "flow add prio=5 actions=output:7");
        accept(&mut stage, RED, 2, "flow add prio=5 match=in_port=1 actions=output:10");
        let frame = frame(host(RED, 9), BROADCAST);
        for from in [1, 2] {
            let seen = stage.send(RED, from, WHOLE, &frame);
            assert_eq!((seen.told.len(), ports(&seen, RED)), (1, vec![]), "{buffers}: {seen:?}");
            let port = if from == 1 { WHOLE } else { LINK };
            let words = format!("PACKET_IN {port} ACTION 10.0.0.1>10.0.0.2");
            assert!(seen.told[0].2.starts_with(&words), "{buffers}: {seen:?}");
        }
        let told = stage.say(RED, 1, "stats flow");
        assert!(told[0].ends_with(&format!("controller:{length}")), "{told:?}");
    }
}

/// What comes by a link is known by its tag, also where the tenant wants nothing of it; and what is kept can be sent on.
#[test]
fn nothing_of_a_packet_is_enough_to_have_it() {
    let mut stage = Stage::with_buffers(Version::V1_0, vec![plan(RED), plan(BLUE)], 16);
    for tenant in [RED, BLUE] {
        accept(&mut stage, tenant, 1, "flow add prio=5 match=in_port=10 actions=controller:0");
        accept(&mut stage, tenant, 2, "flow add prio=5 match=in_port=1 actions=output:10");
    }
    for tenant in [RED, BLUE] {
        let packet = frame(host(tenant, 9), host(tenant, 3));
        let seen = stage.send(tenant, 2, WHOLE, &packet);
        let [(whose, 1, words)] = &seen.told[..] else { panic!("{seen:?}") };
        assert_eq!(*whose, tenant);
        let buffer = words.split_once("buffer=").unwrap_or_else(|| panic!("{words}")).1;
        let buffer = buffer.split(' ').next().unwrap_or_default();
        let sent = stage.out(tenant, 1, &format!("out buffer={buffer} actions=output:8"));
        assert_eq!(ports(&sent, tenant), [8], "{sent:?}");
        assert!(sent.delivered.iter().all(|it| it.3 == packet), "{sent:?}");
    }
}

/// The tenant is told as often as its rule says, of the packet as it came.
#[test]
fn the_controller_is_told_beside_it() {
    for (actions, told) in [("controller,flood", 1), ("flood,controller", 1), ("flood", 0)] {
        for buffers in [0, 16] {
            let plans = vec![plan(RED), plan(BLUE)];
            let mut stage = Stage::with_buffers(Version::V1_0, plans, buffers);
            accept(&mut stage, RED, 1, &format!("flow add prio=5 actions={actions}"));
            let seen = stage.send(RED, 1, WHOLE, &frame(host(RED, 9), BROADCAST));
            let at_hosts = ports(&seen, RED).into_iter().filter(|port| [7, 8].contains(port));
            assert_eq!(at_hosts.collect::<Vec<_>>(), [7, 7, 8], "{actions} {buffers}: {seen:?}");
            // The second switch has no rules, and tells of what comes by the link.
            let at_first: Vec<_> = seen.told.iter().filter(|it| it.1 == 1).collect();
            assert_eq!(at_first.len(), told, "{actions} {buffers}: {seen:?}");
            let words = "PACKET_IN 1 ACTION 10.0.0.1>10.0.0.2";
            assert!(at_first.iter().all(|it| it.0 == RED && it.2 == words), "{at_first:?}");
        }
    }
}

/// What changes before it leaves is changed; what names the destination before is the switch's.
#[test]
fn changes_count_in_their_order() {
    let mut stage = stage_of(Version::V1_0);
    let changes = "mod_dl_src:02.00.00.00.00.77,output:7,mod_dl_src:02.00.00.00.00.78,output:8";
    accept(&mut stage, RED, 1, &format!("flow add prio=5 actions={changes}"));
    let seen = stage.send(RED, 1, WHOLE, &frame(host(RED, 9), BROADCAST));
    let own = seen.delivered.iter().filter(|it| it.0 == RED);
    let mut sources: Vec<_> = own.map(|it| (it.2, it.3[11])).collect();
    sources.sort_unstable();
    assert_eq!(sources, [(7, 0x77), (7, 0x77), (8, 0x78)]);
    // To the third host by name, behind what goes to whoever it was for.
    let named = "output:7,mod_dl_dst:02.00.00.00.10.03,output:8,output:7";
    accept(&mut stage, RED, 1, &format!("flow add prio=5 actions={named}"));
    let seen = stage.send(RED, 1, WHOLE, &frame(host(RED, 9), host(RED, 1)));
    assert_eq!(ports(&seen, RED), [7, 8], "{seen:?}");
}

/// It is told of as what it has become, and taken for nothing else: not by the rule itself, which it still meets, nor by another.
#[test]
fn the_controller_is_told_what_has_become_of_a_packet() {
    for (actions, told, at_hosts) in [
        ("output:7,mod_nw_src:10.0.0.9,controller", &["10.0.0.9>10.0.0.2"][..], 2),
        (
            "controller,mod_nw_src:10.0.0.9,controller,flood,mod_nw_dst:10.0.0.8,controller",
            &["10.0.0.1>10.0.0.2", "10.0.0.9>10.0.0.2", "10.0.0.9>10.0.0.8"],
            3,
        ),
        ("mod_vlan_vid:5,mod_nw_src:10.0.0.9,controller", &["vlan5:10.0.0.9>10.0.0.2"], 0),
        // It looks then as if it had met the rule below.
        ("mod_dl_src:02.00.00.00.00.77,controller", &["10.0.0.1>10.0.0.2"], 0),
    ] {
        for buffers in [0, 16] {
            let plans = vec![plan(RED), plan(BLUE)];
            let mut stage = Stage::with_buffers(Version::V1_0, plans, buffers);
            let words = format!("flow add prio=5 match=in_port=1 actions={actions}");
            accept(&mut stage, RED, 1, &words);
            let below = "flow add prio=9 match=dl_src=02:00:00:00:00:77 actions=output:7";
            accept(&mut stage, RED, 1, below);
            let seen = stage.send(RED, 1, WHOLE, &frame(host(RED, 9), BROADCAST));
            let here = seen.told.iter().filter(|it| it.0 == RED && it.1 == 1);
            let here: Vec<_> = here.map(|it| it.2.as_str()).collect();
            let told = told.iter().map(|it| format!("PACKET_IN 1 ACTION {it}"));
            assert_eq!(here, told.collect::<Vec<_>>(), "{actions} {buffers}");
            let reached = ports(&seen, RED).into_iter().filter(|port| [7, 8].contains(port));
            assert_eq!(reached.count(), at_hosts, "{actions} {buffers}: {seen:?}");
        }
    }
}

/// What an experimenter's action makes of a packet is known to the switch alone, so it does the whole list, once.
#[test]
fn a_list_with_an_experimenters_action_is_the_hypervisors() {
    let mut stage = stage_of(Version::V1_0);
    let rule = "flow add prio=5 match=in_port=1 actions=";
    let told = stage.say(RED, 1, &format!("{rule}output:7,vendor:2320,controller"));
    assert!(matches!(&told[..], [it] if it.contains("OFPBAC_BAD_OUT_PORT")), "{told:?}");
    // The switch, which would refuse the action, takes the entry; what it is given then it does not do.
    accept(&mut stage, RED, 1, &format!("{rule}controller,output:7,vendor:2320"));
    assert_eq!(stage.entries(1).iter().filter(|it| it.contains("prio=5")).count(), 1);
    let seen = stage.send(RED, 1, WHOLE, &frame(host(RED, 9), BROADCAST));
    assert_eq!((seen.told.len(), seen.delivered.len()), (1, 0), "{seen:?}");
    // Where it asks nobody, the switch is given the action.
    let told = stage.say(RED, 1, &format!("{rule}vendor:2320,output:10"));
    assert!(matches!(&told[..], [it] if it.contains("VENDOR")), "{told:?}");
}

/// The hypervisor goes through a list for each packet that asks.
#[test]
fn a_list_that_asks_has_a_bounded_number_of_actions() {
    let mut stage = stage_of(Version::V1_0);
    let list = |first: &str, count: usize| {
        [&[first][..], &vec!["mod_nw_tos:8"; count - 1]].concat().join(",")
    };
    let rule = |actions: String| format!("flow add prio=5 match=in_port=1 actions={actions}");
    accept(&mut stage, RED, 1, &rule(list("output:10", 65)));
    for first in ["output:7", "flood", "mod_nw_src:10.0.0.9,controller"] {
        let told = stage.say(RED, 1, &rule(list(first, 65)));
        assert!(matches!(&told[..], [it] if it.contains("OFPBAC_TOO_MANY")), "{told:?}");
        let most = if first.contains(',') { 63 } else { 64 };
        accept(&mut stage, RED, 1, &rule(list(first, most)));
    }
}

/// What a tenant sends to itself comes back as what it is, whatever rules it would meet.
#[test]
fn a_packet_out_to_the_controller_meets_no_rule() {
    let mut stage = stage_of(Version::V1_0);
    accept(&mut stage, RED, 1, "flow add prio=5 actions=flood");
    for port in ["1", "7", "10", "none"] {
        let words = format!(
            "out in_port={port} actions=controller,mod_nw_src:10.0.0.9,controller data=10.0.0.1>10.0.0.2"
        );
        let seen = stage.out(RED, 1, &words);
        assert_eq!(seen.delivered, []);
        let told: Vec<_> = seen.told.iter().map(|it| it.2.as_str()).collect();
        let own = if port == "none" { "65535" } else { port };
        let expected = ["10.0.0.1>10.0.0.2", "10.0.0.9>10.0.0.2"]
            .map(|it| format!("PACKET_IN {own} ACTION {it}"));
        assert_eq!(told, expected, "{port}");
    }
}

/// A port that comes to be shared beneath a hub's rule.
#[test]
fn a_rule_stands_when_its_port_comes_to_be_shared() {
    let plans = |of: fn(usize) -> Plan| vec![of(RED), of(BLUE)];
    let before = |tenant| {
        let mut plan = crate::deliveries::plan_before_sharing(tenant);
        // The other has no such port yet.
        plan.edges.retain(|edge| tenant == RED || edge.2 != 8);
        plan
    };
    let mut stage = Stage::new(Version::V1_0, plans(before));
    accept(&mut stage, RED, 2, "flow add prio=5 match=in_port=10 actions=output:1");
    accept(&mut stage, RED, 2, "flow add prio=5 match=in_port=1 actions=output:10");
    accept(&mut stage, RED, 1, "flow add prio=5 actions=flood");
    let (maps, last) = Stage::maps_from(100, &plans(plan));
    stage.set_maps(&maps, 100..=last);
    assert_eq!(stage.take_told().iter().filter(|it| it.2.contains("FLOW_REMOVED")).count(), 0);
    leaves_by(&mut stage, RED, EVERYWHERE, "shared");
}

#[test]
fn members_of_big_switches_ask_too() {
    for (actions, by) in
        [("flood", &[1, 2, 7, 8, LINK][..]), ("output:8", &[8]), ("output:7,output:1", &[1, 7])]
    {
        let mut stage = Stage::new(Version::V1_0, vec![big_plan(RED), big_plan(BLUE)]);
        accept(&mut stage, RED, 1, &format!("flow add prio=5 actions={actions}"));
        accept(&mut stage, RED, 3, "flow add prio=5 match=in_port=10 actions=output:1");
        for from in [(1, 1), (1, 7), (2, 2), (2, 8)] {
            for to in [host(RED, 1), host(RED, 2), host(RED, 3), host(BLUE, 1), BROADCAST] {
                leaves_big(&mut stage, from, by, to, actions);
            }
        }
    }
}

/// Inside a big switch frames go by links as well, so what cannot leave by one is refused whoever it is for.
#[test]
fn what_no_tag_stands_for_does_not_get_to_another_member() {
    let mut stage = Stage::new(Version::V1_0, vec![big_plan(RED), big_plan(BLUE)]);
    let told = stage.say(RED, 1, "flow add prio=5 actions=mod_vlan_vid:9,output:8");
    assert!(matches!(&told[..], [it] if it.contains("OFPBAC_BAD_ARGUMENT")), "{told:?}");
}

/// Each mask among rules that tell anybody takes a probe for each packet that asks, and that time is everybody's.
#[test]
fn rules_that_tell_beside_one_that_asks_have_a_bounded_number_of_masks() {
    const MASKS: u32 = 128;
    let mask = |at: u32| {
        let (source, destination) = (at % 32 + 1, at / 32 + 1);
        format!("ip,nw_src=10.0.0.0/{source},nw_dst=10.0.0.0/{destination}")
    };
    let tells =
        |at: u32| format!("flow add prio=9 match=in_port=1,{} actions=controller", mask(at));
    let refuse = |stage: &mut Stage, words: &str| {
        let told = stage.say(RED, 1, words);
        assert!(matches!(&told[..], [it] if it.contains("OFPFMFC_ALL_TABLES_FULL")), "{told:?}");
    };
    let mut stage = stage_of(Version::V1_0);
    // Whoever asks nobody has as many as there are; then the one that would ask is refused.
    for at in 0..MASKS {
        accept(&mut stage, RED, 1, &tells(at));
    }
    let hub = "flow add prio=1 match=in_port=1 actions=output:7";
    refuse(&mut stage, hub);
    accept(&mut stage, RED, 1, &tells(MASKS));
    // With as many as there may be, others of the same masks are welcome, and what tells nobody.
    for at in [0, MASKS] {
        accept(&mut stage, RED, 1, &tells(at).replace("add prio=9", "delete_strict prio=9"));
    }
    accept(&mut stage, RED, 1, hub);
    refuse(&mut stage, &tells(0));
    accept(&mut stage, RED, 1, &tells(0).replace("actions=controller", "actions=drop"));
    refuse(&mut stage, &tells(0).replace("add", "modify"));
    accept(&mut stage, RED, 1, &tells(1).replace("10.0.0.0", "11.0.0.0"));
    // Of another tenant that is nothing.
    accept(&mut stage, BLUE, 1, &tells(0));
    accept(&mut stage, BLUE, 1, hub);
}
