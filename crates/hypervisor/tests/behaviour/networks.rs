//! Tests of tenants with networks of their own. Each tenant sees the packets, ports and messages that it would see on
//! switches of its own, and nothing of other tenants.

use crate::support::networks::{big_networks, both_say, same, two_networks};
use crate::support::*;

#[test]
fn a_packet_crosses_virtual_links_as_it_would_real_ones() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        for tenant in [0, 1] {
            let out = if tenant == 0 { "output:10" } else { "output:11" };
            both_say(
                &mut stage,
                tenant,
                1,
                &format!("flow add match=in_port=1 prio=5 actions={out}"),
            );
            both_say(&mut stage, tenant, 2, "flow add match=in_port=10 prio=5 actions=output:11");
            both_say(
                &mut stage,
                tenant,
                3,
                "flow add match=dl_dst=00:00:00:00:00:00/00:00:00:00:00:00 prio=5 actions=output:1",
            );
        }
        let frame = packet("10.0.0.1>10.0.0.2");
        let red = same(&mut stage, 0, 1, 1, &frame);
        assert_eq!(red.delivered, [(0, 3, 1, frame.clone())], "{version:?}");
        let blue = same(&mut stage, 1, 1, 1, &frame);
        assert_eq!(blue.delivered, [(1, 3, 1, frame.clone())], "{version:?}");
    }
}

#[test]
fn a_miss_is_told_with_the_tenants_own_port_and_the_packet_as_it_was_sent() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        if version == Version::V1_3 {
            for switch in [1, 2, 3] {
                both_say(&mut stage, 1, switch, "flow add prio=0 actions=controller");
            }
        }
        both_say(&mut stage, 1, 1, "flow add match=in_port=1 prio=5 actions=output:11,output:10");
        let seen = same(&mut stage, 1, 1, 1, &packet("10.0.0.1>10.0.0.2"));
        assert_eq!(seen.told.len(), 2, "{version:?}: {seen:?}");
    }
}

#[test]
fn a_packet_out_into_a_virtual_link_is_a_packet_in_at_its_other_end() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        if version == Version::V1_3 {
            both_say(&mut stage, 1, 3, "flow add prio=0 actions=controller");
        }
        let words = "out in_port=controller actions=output:11 data=lldp";
        let seen = stage.out(1, 1, words);
        assert_eq!(seen.told.len(), 1, "{version:?}: {seen:?}");
        assert_eq!(seen, stage.out_beside(1, 1, words), "{version:?}");
    }
}

/// On OpenFlow 1.0 a frame has one tag, and on a link this is the tag of the link. A frame with a tag of the tenant's
/// does not cross the link.
#[test]
fn frames_of_vlans_do_not_cross_links_of_openflow_1_0() {
    let version = Version::V1_0;
    for plans in [two_networks(), big_networks()] {
        let mut stage = Stage::new(version, plans);
        let head = stage.head(1, 1);
        // Blue's port 11 leads to its third switch; whatever comes by it there leaves by port 1.
        both_say(&mut stage, 1, head, "flow add match=in_port=1 prio=5 actions=output:11");
        both_say(&mut stage, 1, 3, "flow add match=in_port=11 prio=5 actions=output:1");
        let frame = packet("10.0.0.1>10.0.0.2");
        let seen = same(&mut stage, 1, 1, 1, &frame);
        assert_eq!(seen.delivered, [(1, 3, 1, frame)]);
        // There it meets no entry, whatever the entry's wildcards.
        for tag in ["vlan5:", "vlan8197:"] {
            let tagged = stage.send(1, 1, 1, &packet(&format!("{tag}10.0.0.1>10.0.0.2")));
            assert_eq!((tagged.delivered, tagged.told.len()), (vec![], 1), "{tag}");
        }
        // At the edge tags are the tenant's.
        both_say(&mut stage, 1, 3, "flow add match=in_port=1,dl_vlan=5 prio=9 actions=output:2");
        let frame = packet("vlan5:10.0.0.1>10.0.0.2");
        let seen = same(&mut stage, 1, 3, 1, &frame);
        assert_eq!(seen.delivered, [(1, 3, 2, frame)]);
        let words =
            "out in_port=controller actions=strip_vlan,output:11 data=vlan9:10.0.0.1>10.0.0.2";
        let seen = stage.out(1, head, words);
        assert_eq!(seen, stage.out_beside(1, head, words));
        assert_eq!(seen.delivered.len(), 1, "{seen:?}");
        // A packet with a tag is refused, before a link and as come by one.
        for words in [
            "out in_port=controller actions=output:11 data=vlan5:10.0.0.1>10.0.0.2",
            "flow add match=in_port=1 prio=7 actions=mod_vlan_vid:5,output:11",
            "flow add match=in_port=1,dl_vlan=5 prio=7 actions=output:11",
            "flow add match=in_port=11 prio=7 actions=mod_vlan_vid:5,controller",
        ] {
            let at = if words.contains("in_port=11") { 3 } else { head };
            let refused = stage.say(1, at, words);
            assert_eq!(refused.len(), 1, "{words}: {refused:?}");
            assert!(refused[0].contains("OFPBAC_BAD_ARGUMENT"), "{words}: {refused:?}");
        }
    }
}

/// A change may turn one rule into several, one of which another entry owns. This rule stays with its owner (OpenFlow
/// 1.0).
#[test]
fn rules_of_vlans_become_one() {
    let mut stage = Stage::new(Version::V1_0, two_networks());
    for rule in [
        "match=in_port=1 prio=5 actions=controller",
        "match=in_port=1,dl_vlan=0xffff prio=5 actions=drop",
    ] {
        assert_eq!(stage.say(1, 1, &format!("flow add {rule}")), [""; 0], "{rule}");
    }
    let change = "flow modify_strict match=in_port=1 prio=5 actions=output:11";
    assert_eq!(stage.say(1, 1, change), [""; 0]);
    let before = stage.entries(1);
    assert_eq!(stage.say(1, 1, "flow delete_strict match=in_port=1,dl_vlan=5 prio=5"), [""; 0]);
    assert_eq!(stage.entries(1), before);
    assert_eq!(stage.say(1, 1, "flow delete match=in_port=1"), [""; 0]);
    assert_ne!(stage.entries(1), before);
}

#[test]
fn ports_of_one_tenant_are_not_anothers() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        // Port 3 of the first switch is blue's, by which red knows no port.
        let refused = stage.say(0, 1, "flow add match=in_port=1 prio=5 actions=output:3");
        assert_eq!(refused.len(), 1, "{version:?}: {refused:?}");
        let refused = stage.say(0, 1, "out in_port=1 actions=output:3 data=10.0.0.1>10.0.0.2");
        assert_eq!(refused.len(), 1, "{version:?}: {refused:?}");
    }
}

#[test]
fn the_switch_is_described_as_the_tenants_own() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        let features = stage.say(1, 1, "features").join("\n");
        assert!(features.contains("b1"), "{version:?}: {features}");
        both_say(&mut stage, 1, 1, "flow add match=in_port=10 prio=5 actions=flood");
        stage.say(1, 1, "flow add match= prio=6 actions=output:10,output:11");
        let flows = stage.say(1, 1, "stats flow");
        assert_eq!(flows.len(), 1, "{version:?}: {flows:?}");
        let ports = stage.say(1, 1, "stats port").join("\n");
        for port in ["1", "10", "11"] {
            assert!(ports.contains(port), "{version:?}: {ports}");
        }
        let barrier = stage.say(1, 1, "barrier");
        assert_eq!(barrier.len(), 1, "{version:?}");
    }
}

#[test]
fn a_shared_edge_port_tells_tenants_apart_by_their_hosts() {
    let host = |n: u8| [0x02, 0, 0, 0, 0x10, n];
    for version in VERSIONS {
        let plan = |n| Plan {
            edges: vec![(2, u32::from(n) + 1, 1)],
            shared: vec![(1, 4, 7, host(n))],
            links: vec![[(1, 10), (2, 10)]],
            ..Plan::default()
        };
        let mut stage = Stage::new(version, vec![plan(0), plan(1)]);
        for tenant in [0, 1] {
            for rule in [
                "match=in_port=7 prio=5 actions=output:10",
                "match=in_port=10 prio=5 actions=output:10",
            ] {
                assert_eq!(stage.say(tenant, 1, &format!("flow add {rule}")), Vec::<String>::new());
            }
            let to = format!("02:00:00:00:10:{tenant:02x}");
            let rule = format!("flow add match=in_port=10,dl_dst={to} prio=9 actions=output:7");
            assert_eq!(stage.say(tenant, 1, &rule), Vec::<String>::new());
            let rule = "flow add match=in_port=10,dl_dst=ff:ff:ff:ff:ff:ff prio=9 actions=output:7";
            assert_eq!(stage.say(tenant, 1, rule), Vec::<String>::new());
            for rule in [
                "match=in_port=1 prio=5 actions=output:10",
                "match=in_port=10 prio=5 actions=output:1",
            ] {
                assert_eq!(stage.say(tenant, 2, &format!("flow add {rule}")), Vec::<String>::new());
            }
        }
        let frame = |from: [u8; 6], to: [u8; 6]| {
            let mut frame = packet("10.0.0.1>10.0.0.2");
            frame[..6].copy_from_slice(&to);
            frame[6..12].copy_from_slice(&from);
            frame
        };
        for tenant in [0u8, 1] {
            let there = stage.send(tenant.into(), 1, 7, &frame(host(tenant), host(9)));
            let to: Vec<_> = there.delivered.iter().map(|(t, s, p, _)| (*t, *s, *p)).collect();
            assert_eq!(to, [(tenant.into(), 2, 1)], "{version:?}");
            // What is for everybody goes to the tenant's own host, by its address.
            let back = stage.send(tenant.into(), 2, 1, &frame(host(9), [0xff; 6]));
            assert!(!back.delivered.is_empty());
            for (_, _, _, bytes) in &back.delivered {
                assert_eq!(bytes[..6], host(tenant), "{version:?}");
            }
            // And nothing reaches the other's.
            let across = stage.send(tenant.into(), 2, 1, &frame(host(9), host(1 - tenant)));
            assert_eq!(across.delivered, [], "{version:?}");
        }
        // A stranger on the shared wire belongs to nobody.
        let stranger = stage.send(0, 1, 7, &frame(host(5), host(9)));
        assert_eq!(stranger.delivered, [], "{version:?}");
        assert_eq!(stranger.told, [], "{version:?}");
    }
}

#[test]
fn a_host_cannot_forge_a_tag() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        for tenant in [0, 1] {
            for switch in [1, 2, 3] {
                stage.say(tenant, switch, "flow add prio=5 actions=flood,controller");
            }
        }
        for tag in 2000..2020u16 {
            let frame = packet(&format!("vlan{tag}:10.0.0.1>10.0.0.2"));
            let seen = stage.send(0, 1, 1, &frame);
            assert!(
                seen.delivered.iter().all(|(tenant, ..)| *tenant == 0),
                "{version:?}: {seen:?}"
            );
            assert!(seen.told.iter().all(|(tenant, ..)| *tenant == 0), "{version:?}: {seen:?}");
        }
    }
}

#[test]
fn a_link_that_moves_takes_its_entries_along_and_one_without_a_path_is_a_port_that_is_down() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        both_say(&mut stage, 1, 1, "flow add match=in_port=1 prio=5 actions=output:11");
        both_say(&mut stage, 1, 3, "flow add match=in_port=11 prio=5 actions=output:1");
        let frame = packet("10.0.0.1>10.0.0.2");
        let before = same(&mut stage, 1, 1, 1, &frame);
        assert_eq!(before.delivered.len(), 1);
        // Other tags: what the switches hold has changed, and nothing of what the tenant sees.
        let (mut maps, tags) = Stage::maps_from(3000, &two_networks());
        stage.set_maps(&maps, 2000..=tags);
        assert_eq!(stage.take_told(), [], "{version:?}");
        assert_eq!(same(&mut stage, 1, 1, 1, &frame), before, "{version:?}");
        // No path: the port is down, and its entries stay the tenant's.
        for map in maps.values_mut() {
            for port in map.members.values_mut().flat_map(|member| member.ports.values_mut()) {
                let kind = &mut port.kind;
                if let fabric::embedding::PortKind::Link { sends, receives, .. } = kind {
                    (*sends, port.up) = (None, false);
                    receives.clear();
                }
            }
            map.transit.clear();
        }
        stage.set_maps(&maps, 2000..=tags);
        let told = stage.take_told();
        assert_eq!(told.len(), 10, "{version:?}: {told:?}");
        assert!(told.iter().all(|(_, _, words)| words.starts_with("PORT_STATUS")), "{told:?}");
        assert_eq!(stage.send(1, 1, 1, &frame).delivered, [], "{version:?}");
        let flows = stage.say(1, 3, "stats flow").join("");
        assert!(flows.contains("in_port=11"), "{version:?}: {flows}");
        // And back.
        let (maps, tags) = Stage::maps_from(2000, &two_networks());
        stage.set_maps(&maps, 2000..=tags);
        assert_eq!(stage.take_told().len(), 10, "{version:?}");
        assert_eq!(same(&mut stage, 1, 1, 1, &frame), before, "{version:?}");
    }
}

#[test]
fn a_tenant_that_loses_its_network_leaves_nothing_behind() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two_networks());
        let empty = stage.entries(1);
        stage.say(0, 1, "flow add match=in_port=1 prio=5 actions=output:10");
        assert_ne!(stage.entries(1), empty);
        let (mut maps, tags) = Stage::maps_from(2000, &two_networks());
        for map in maps.values_mut() {
            map.members.remove(&hypervisor::TenantId(1));
        }
        stage.set_maps(&maps, 2000..=tags);
        let left = stage.entries(1);
        assert!(left.len() < empty.len() || version == Version::V1_0, "{version:?}: {left:?}");
        assert!(left.iter().all(|entry| empty.contains(entry)), "{version:?}: {left:?}");
    }
}
