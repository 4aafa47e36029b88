//! Tests of tenants with networks of their own. Each tenant sees the packets, ports and messages that it would see on
//! switches of its own, and nothing of other tenants.

use crate::support::networks::{big_networks, two_networks};
use crate::support::*;

#[test]
fn packets_cross_virtual_links_like_physical_links() {
    both_versions(two_networks()).play("
        red@1> flow add match=in_port=1 prio=5 actions=output:10
        blue@1> flow add match=in_port=1 prio=5 actions=output:11
        red,blue@2> flow add match=in_port=10 prio=5 actions=output:11
        red,blue@3> flow add match=dl_dst=00:00:00:00:00:00/00:00:00:00:00:00 prio=5 actions=output:1
        red@1:1> 10.0.0.1>10.0.0.2 -> red@3:1
        blue@1:1> 10.0.0.1>10.0.0.2 -> blue@3:1
    ");
}

#[test]
fn a_table_miss_packet_in_has_the_virtual_port_and_the_original_packet() {
    both_versions(two_networks()).play(
        "
        [1.3] blue@1,2,3> flow add prio=0 actions=controller
        blue@1> flow add match=in_port=1 prio=5 actions=output:11,output:10
        blue@1:1> 10.0.0.1>10.0.0.2
        blue@2< PACKET_IN 10 NO_MATCH 10.0.0.1>10.0.0.2
        blue@3< PACKET_IN 11 NO_MATCH 10.0.0.1>10.0.0.2
    ",
    );
}

#[test]
fn a_packet_out_to_a_virtual_link_causes_a_packet_in_at_the_far_end() {
    both_versions(two_networks()).play(
        "
        [1.3] blue@3> flow add prio=0 actions=controller
        blue@1> out in_port=controller actions=output:11 data=lldp
        blue@3< PACKET_IN 11 NO_MATCH lldp
    ",
    );
}

/// On OpenFlow 1.0 a frame has one tag, and on a link this is the tag of the link. A frame with a tag of the tenant's
/// does not cross the link.
#[test]
fn frames_with_a_vlan_tag_do_not_cross_links_on_1_0() {
    for plans in [two_networks(), big_networks()] {
        // Blue's port 11 leads to its third switch, which outputs packets from this link to port 1. A tagged frame
        // matches no entry that outputs to the link. At edge ports, all tags belong to the tenant. A PACKET_OUT or an
        // entry that outputs a tagged frame to the link is refused. An entry that adds a tag to a frame from the link
        // is refused too.
        Testbed::new(Version::V1_0, plans).play(
            "
            blue@1> flow add match=in_port=1 prio=5 actions=output:11
            blue@3> flow add match=in_port=11 prio=5 actions=output:1
            blue@1:1> 10.0.0.1>10.0.0.2 -> blue@3:1
            only blue@1:1> vlan5:10.0.0.1>10.0.0.2
            blue@1< PACKET_IN 1 NO_MATCH vlan5:10.0.0.1>10.0.0.2
            only blue@1:1> vlan8197:10.0.0.1>10.0.0.2
            blue@1< PACKET_IN 1 NO_MATCH vlan8197:10.0.0.1>10.0.0.2
            blue@3> flow add match=in_port=1,dl_vlan=5 prio=9 actions=output:2
            blue@3:1> vlan5:10.0.0.1>10.0.0.2 -> blue@3:2
            blue@1> out in_port=controller actions=strip_vlan,output:11 data=vlan9:10.0.0.1>10.0.0.2
            wire< blue@3:1[10.0.0.1>10.0.0.2]
            only blue@1> out in_port=controller actions=output:11 data=vlan5:10.0.0.1>10.0.0.2 -> ERROR OFPBAC_BAD_ARGUMENT
            only blue@1> flow add match=in_port=1 prio=7 actions=mod_vlan_vid:5,output:11 -> ERROR OFPBAC_BAD_ARGUMENT
            only blue@1> flow add match=in_port=1,dl_vlan=5 prio=7 actions=output:11 -> ERROR OFPBAC_BAD_ARGUMENT
            only blue@3> flow add match=in_port=11 prio=7 actions=mod_vlan_vid:5,controller -> ERROR OFPBAC_BAD_ARGUMENT
        ",
        );
    }
}

/// On OpenFlow 1.0, a MODIFY may give an entry several rules. Another entry already owns one of these rules, and stays
/// the owner of this rule.
#[test]
fn a_rule_stays_with_its_owner_when_a_modified_entry_needs_an_equal_rule() {
    Testbed::new(Version::V1_0, two_networks()).play(
        "
        blue@1> flow add match=in_port=1 prio=5 actions=controller
        blue@1> flow add match=in_port=1,dl_vlan=0xffff prio=5 actions=drop
        blue@1> flow modify_strict match=in_port=1 prio=5 actions=output:11
        note
        blue@1> flow delete_strict match=in_port=1,dl_vlan=5 prio=5
        as noted
        blue@1> flow delete match=in_port=1
        not as noted 1
    ",
    );
}

#[test]
fn an_output_to_a_port_of_another_tenant_is_refused() {
    // Port 3 of the first switch belongs to blue. Red's switch has no port 3.
    both_versions(two_networks()).play(
        "
        only red@1> flow add match=in_port=1 prio=5 actions=output:3 -> ERROR OFPBAC_BAD_OUT_PORT
        only red@1> out in_port=1 actions=output:3 data=10.0.0.1>10.0.0.2 -> ERROR OFPBAC_BAD_OUT_PORT
    ",
    );
}

#[test]
fn features_and_statistics_describe_the_virtual_switch_of_the_tenant() {
    both_versions(two_networks()).play(
        "
        [1.0] only blue@1> features
        [1.3] blue@1> features
        [1.0] blue@1< 7 FEATURES b1 tables=1 ports=1 10 11
        [1.3] blue@1< 7 FEATURES b1 tables=14
        blue@1> flow add match=in_port=10 prio=5 actions=flood
        blue@1> flow add match= prio=6 actions=output:10,output:11
        blue@1> stats flow -> STATS flow prio=5 in_port=10 n=0 flood; prio=6 any n=0 output:10,output:11
        blue@1> stats port -> STATS port 1 10 11
        blue@1> barrier -> BARRIER_REPLY
    ",
    );
}

#[test]
fn a_shared_edge_port_separates_tenants_by_host_address() {
    let plan = |n| Plan {
        edges: vec![(2, u32::from(n) + 1, 1)],
        shared: vec![(1, 4, 7, [0x02, 0, 0, 0, 0x10, n])],
        links: vec![[(1, 10), (2, 10)]],
        ..Plan::default()
    };
    // A broadcast is delivered to the tenant's own host, with the address of this host. A packet to the other tenant's
    // host is delivered to no host. A host on the shared port that no tenant has configured belongs to no tenant.
    both_versions(vec![plan(0), plan(1)]).play(
        "
        red,blue@1> flow add match=in_port=7 prio=5 actions=output:10
        red,blue@1> flow add match=in_port=10 prio=5 actions=output:10
        red@1> flow add match=in_port=10,dl_dst=02:00:00:00:10:00 prio=9 actions=output:7
        blue@1> flow add match=in_port=10,dl_dst=02:00:00:00:10:01 prio=9 actions=output:7
        red,blue@1> flow add match=in_port=10,dl_dst=ff:ff:ff:ff:ff:ff prio=9 actions=output:7
        red,blue@2> flow add match=in_port=1 prio=5 actions=output:10
        red,blue@2> flow add match=in_port=10 prio=5 actions=output:1
        red@1:7> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:00 dl_dst=02:00:00:00:10:09 -> red@2:1
        blue@1:7> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:01 dl_dst=02:00:00:00:10:09 -> blue@2:1
        only red@2:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:09 dl_dst=ff:ff:ff:ff:ff:ff
        wire< red@1:7[dl_dst=02:00:00:00:10:00] blue@1:7[dl_dst=02:00:00:00:10:00]
        only blue@2:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:09 dl_dst=ff:ff:ff:ff:ff:ff
        wire< red@1:7[dl_dst=02:00:00:00:10:01] blue@1:7[dl_dst=02:00:00:00:10:01]
        red@2:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:09 dl_dst=02:00:00:00:10:01
        blue@2:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:09 dl_dst=02:00:00:00:10:00
        only red@1:7> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:05 dl_dst=02:00:00:00:10:09
    ",
    );
}

#[test]
fn a_host_cannot_reach_another_tenant_with_a_forged_vlan_tag() {
    for version in VERSIONS {
        let mut testbed = Testbed::new(version, two_networks());
        for tenant in [0, 1] {
            for switch in [1, 2, 3] {
                testbed.say(tenant, switch, "flow add prio=5 actions=flood,controller");
            }
        }
        for tag in 2000..2020u16 {
            let frame = packet(&format!("vlan{tag}:10.0.0.1>10.0.0.2"));
            let seen = testbed.send(0, 1, 1, &frame);
            assert!(
                seen.delivered.iter().all(|(tenant, ..)| *tenant == 0),
                "{version:?}: {seen:?}"
            );
            assert!(seen.received.iter().all(|(tenant, ..)| *tenant == 0), "{version:?}: {seen:?}");
        }
    }
}

#[test]
fn entries_work_after_a_link_moves_and_a_link_without_a_path_is_a_down_port() {
    both_versions(two_networks()).play(
        "
        blue@1> flow add match=in_port=1 prio=5 actions=output:11
        blue@3> flow add match=in_port=11 prio=5 actions=output:1
        blue@1:1> 10.0.0.1>10.0.0.2 -> blue@3:1
        note
        tags 3000
        not as noted 3
        blue@1:1> 10.0.0.1>10.0.0.2 -> blue@3:1
        cut red 1:10-2:10 2:11-3:10
        red@1< PORT_STATUS MODIFY 10
        red@2< PORT_STATUS MODIFY 10
        red@2< PORT_STATUS MODIFY 11
        red@3< PORT_STATUS MODIFY 10
        cut blue 1:10-2:10 2:11-3:10 1:11-3:11
        blue@1< PORT_STATUS MODIFY 10
        blue@1< PORT_STATUS MODIFY 11
        blue@2< PORT_STATUS MODIFY 10
        blue@2< PORT_STATUS MODIFY 11
        blue@3< PORT_STATUS MODIFY 10
        blue@3< PORT_STATUS MODIFY 11
        blue@1:1> 10.0.0.1>10.0.0.2
        blue@3> stats flow -> STATS flow prio=5 in_port=11 n=2 output:1
        cut blue
        blue@1< PORT_STATUS MODIFY 10
        blue@1< PORT_STATUS MODIFY 11
        blue@2< PORT_STATUS MODIFY 10
        blue@2< PORT_STATUS MODIFY 11
        blue@3< PORT_STATUS MODIFY 10
        blue@3< PORT_STATUS MODIFY 11
        cut red
        same
        tags 2000
        blue@1:1> 10.0.0.1>10.0.0.2 -> blue@3:1
    ",
    );
}

#[test]
fn rules_of_a_tenant_are_deleted_when_the_network_is_removed() {
    for version in VERSIONS {
        let mut testbed = Testbed::new(version, two_networks());
        let empty = testbed.entries(1);
        testbed.say(0, 1, "flow add match=in_port=1 prio=5 actions=output:10");
        assert_ne!(testbed.entries(1), empty);
        let (mut maps, tags) = Testbed::maps_from(2000, &two_networks());
        for map in maps.values_mut() {
            map.members.remove(&hypervisor::TenantId(1));
        }
        testbed.set_maps(&maps, 2000..=tags);
        let left = testbed.entries(1);
        assert!(left.len() < empty.len() || version == Version::V1_0, "{version:?}: {left:?}");
        assert!(left.iter().all(|entry| empty.contains(entry)), "{version:?}: {left:?}");
    }
}
