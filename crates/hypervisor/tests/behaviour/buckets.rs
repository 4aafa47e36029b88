//! Tests of group buckets in tenants' networks whose actions one action set cannot do: VLAN actions before a link,
//! FLOOD and ALL. Such buckets send to groups of Weir's own, the egress groups. The file `courses` tests random
//! buckets.

use crate::support::hairpin::{BLUE, all_same, testbed, without_eleven};
use crate::support::networks::{both_say, same};
use crate::support::*;
use emulate::Fault;
use std::collections::BTreeSet;

/// An entry sends every packet to group 1, which adds, removes or changes the VLAN tag of the tenant. The test sends
/// frames with and without a tag. In a frame without a tag, the action that sets the VLAN id adds a tag.
#[test]
fn the_vlan_tag_of_a_tenant_is_kept_under_the_link_tag() {
    for (buckets, tags) in [
        ("push_vlan:8100,mod_vlan_vid:7,output:10", "+"),
        ("mod_nw_dst:10.0.0.2,push_vlan:8100,mod_vlan_vid:7,mod_vlan_pcp:3,output:11", "+"),
        ("strip_vlan,output:10", "-"),
        ("mod_vlan_vid:7,output:10", "="),
        ("strip_vlan,push_vlan:88a8,mod_vlan_vid:7,output:11", "="),
    ] {
        let mut testbed = testbed();
        both_say(&mut testbed, BLUE, 1, &format!("group add id=1 buckets={buckets}"));
        both_say(&mut testbed, BLUE, 1, "flow add prio=5 actions=group:1");
        for (tag, length) in [("", 60), ("vlan5:", 64)] {
            let frame = packet(&format!("{tag}10.0.0.1>10.0.0.9"));
            assert_eq!(frame.len(), length);
            for (switch, port) in [(1, 1), (2, 1), (3, 1)] {
                same(&mut testbed, BLUE, switch, port, &frame);
            }
            let seen = same(&mut testbed, BLUE, 1, 1, &frame);
            let [(_, _, 1, arrived)] = &seen.delivered[..] else { panic!("{buckets}: {seen:?}") };
            let more = match tags {
                "+" => 4,
                "-" if !tag.is_empty() => -4,
                "=" if tag.is_empty() => 4,
                _ => 0,
            };
            assert_eq!(arrived.len() as i32 - length as i32, more, "{buckets} {tag}");
        }
    }
}

/// All groups that need the same egress group share it. The egress group has as many instances as the groups need.
#[test]
fn egress_groups_are_created_once_and_only_where_needed() {
    let mut testbed = testbed();
    for (words, groups) in [
        // An edge port needs no link tag, so the bucket itself can push the tenant's tag.
        ("group add id=1 buckets=push_vlan:8100,mod_vlan_vid:7,output:1", 1),
        ("group add id=2 buckets=push_vlan:8100,mod_vlan_vid:7,controller", 2),
        ("group add id=3 buckets=mod_nw_dst:10.0.0.2,output:10", 5),
        // FLOOD needs no egress group if another output or a group of the bucket replaces FLOOD.
        ("group add id=4 buckets=push_vlan:8100,flood,output:10,output:1", 6),
        ("group add id=5 buckets=push_vlan:8100,flood,group:1", 7),
        // The group has three instances, and the egress group has three instances.
        ("group add id=6 buckets=strip_vlan,output:10", 13),
        ("group add id=7 buckets=push_vlan:8100,output:10", 16),
        ("group add id=8 type=all buckets=flood|flood|output:1", 22),
        ("group modify id=8 type=all buckets=flood|mod_vlan_vid:6,output:10", 22),
        ("group add id=9 type=all buckets=group:8", 25),
        ("group delete id=all", 6),
    ] {
        both_say(&mut testbed, BLUE, 1, words);
        assert_eq!(testbed.groups(1), groups, "{words}");
    }
    assert_eq!(testbed.say(BLUE, 1, "stats group"), ["7 STATS group"]);
}

#[test]
fn group_statistics_show_no_references_by_egress_groups() {
    let mut testbed = testbed();
    both_say(&mut testbed, BLUE, 1, "group add id=1 type=all buckets=flood|strip_vlan,output:10");
    both_say(&mut testbed, BLUE, 1, "group add id=2 buckets=flood");
    both_say(&mut testbed, BLUE, 1, "flow add prio=5 actions=group:1");
    assert_eq!(testbed.references(BLUE, 1), [(1, 1), (2, 0)]);
    for words in ["group delete id=2", "group delete id=1"] {
        both_say(&mut testbed, BLUE, 1, words);
    }
    assert_eq!(testbed.say(BLUE, 1, "stats flow"), testbed.say_beside(BLUE, 1, "stats flow"));
}

#[test]
fn flood_of_a_packet_out_leaves_out_the_named_ingress_port() {
    testbed().play(
        "
        blue@1> group add id=1 type=all buckets=flood|mod_vlan_vid:7,in_port
        blue@1> out in_port=1 actions=group:1 data=vlan5:10.0.0.1>10.0.0.2
        wire< blue@1:1[vlan7:10.0.0.1>10.0.0.2] blue@2:1 blue@3:1
        blue@1> out in_port=10 actions=group:1 data=vlan5:10.0.0.1>10.0.0.2
        wire< blue@1:1 blue@2:1[vlan7:10.0.0.1>10.0.0.2] blue@3:1
        blue@1> out in_port=11 actions=group:1 data=vlan5:10.0.0.1>10.0.0.2
        wire< blue@1:1 blue@2:1 blue@3:1[vlan7:10.0.0.1>10.0.0.2]
        blue@1> out in_port=controller actions=group:1 data=vlan5:10.0.0.1>10.0.0.2 -> blue@1:1 blue@2:1 blue@3:1
    ",
    );
}

#[test]
fn a_group_and_its_egress_groups_are_refused_with_one_error() {
    for (words, messages) in [
        // The change adds two egress groups and the group itself, with three instances each.
        ("group add id=3 type=all buckets=flood|push_vlan:8100,output:10", 3 + 3 + 3),
        // Group 1 gets instances, and therefore group 2 gets instances too. The entry becomes one rule for each ingress
        // port and one rule for packets without an ingress port.
        ("group modify id=1 type=all buckets=mod_vlan_vid:7,output:11", 3 + 3 + 2 + 4),
    ] {
        let refused = (1..15).filter(|nth| refuse_one(words, *nth));
        assert_eq!(refused.count(), messages, "{words}");
    }
}

/// The switch refuses message `nth` of a change. Returns whether the change has so many messages.
fn refuse_one(words: &str, nth: u32) -> bool {
    let mut testbed = testbed();
    for words in [
        "group add id=1 type=all buckets=output:1",
        "group add id=2 type=all buckets=group:1|output:1",
        "flow add prio=5 match=ip,nw_src=10.0.0.1 actions=group:2",
    ] {
        both_say(&mut testbed, BLUE, 1, words);
    }
    let entries = testbed.entries(1);
    let context = format!("{words} {nth}");
    testbed.plant(1, vec![Fault::RefuseOnce { nth }]);
    let received = testbed.say(BLUE, 1, words);
    testbed.plant(1, Vec::new());
    let is_refused = !received.is_empty();
    if is_refused {
        assert_eq!(received, ["7 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 7"], "{context}");
        assert_eq!(testbed.entries(1), entries, "{context}");
        // Egress groups that were not refused stay on the switch.
        assert!([2, 5, 8].contains(&testbed.groups(1)), "{context}: {}", testbed.groups(1));
        all_same(&mut testbed);
        assert_eq!(testbed.say(BLUE, 1, words), [""; 0], "{context}");
    }
    testbed.say_beside(BLUE, 1, words);
    all_same(&mut testbed);
    for question in ["stats group_desc", "stats flow"] {
        let received = testbed.say(BLUE, 1, question);
        assert_eq!(received, testbed.say_beside(BLUE, 1, question), "{context}");
    }
    is_refused
}

/// The switch refuses a GROUP_MOD for the egress group of a new group, so the group does not exist. Then Weir refuses
/// an entry that uses the group.
#[test]
fn an_entry_and_its_group_are_refused_when_an_egress_group_is_refused() {
    testbed().play(
        "
        note
        refuses 1 2
        only blue@1> group add id=1 buckets=flood -> ERROR OFPGMFC_OUT_OF_GROUPS
        blue@1> flow add prio=5 actions=group:1 -> ERROR OFPBAC_BAD_OUT_GROUP
        groups 0 0 0
        as noted
    ",
    );
}

#[test]
fn buckets_with_egress_groups_are_refused_without_group_chaining() {
    testbed().play(
        "
        refuses 1 chains
        only blue@1> group add id=1 type=all buckets=flood -> ERROR OFPGMFC_CHAINING_UNSUPPORTED
        only blue@1> group add id=1 type=all buckets=output:1|all -> ERROR OFPGMFC_CHAINING_UNSUPPORTED
        only blue@1> group add id=1 type=all buckets=push_vlan:8100,mod_vlan_vid:7,output:10 -> ERROR OFPGMFC_CHAINING_UNSUPPORTED
        blue@1> stats group_desc -> STATS group_desc
        blue@1> group add id=1 buckets=output:10
        blue@1> group delete id=1
        blue@1> group add id=1 buckets=mod_nw_dst:10.0.0.2,in_port
        blue@1> group delete id=1
        blue@1> group add id=1 buckets=push_vlan:8100,mod_vlan_vid:7,output:1
        blue@1> group delete id=1
    ",
    );
}

/// Groups and their egress groups change when a link is removed or added again, and when the configuration of a port
/// changes.
#[test]
fn groups_with_egress_groups_follow_links_and_port_configuration() {
    let mut testbed = testbed();
    for words in [
        "group add id=1 type=all buckets=flood|push_vlan:8100,mod_vlan_vid:7,output:10",
        "group add id=2 type=ff buckets=11@mod_vlan_vid:7,output:11|10@all",
        "flow add prio=5 actions=group:1",
        "flow add prio=6 match=ip,nw_src=10.0.0.2 actions=group:2",
    ] {
        both_say(&mut testbed, BLUE, 1, words);
    }
    assert!(all_same(&mut testbed) > 0);
    let groups = testbed.groups(1);
    assert_eq!(groups, 6 + 4 * 3);
    for _ in 0..2 {
        without_eleven(&mut testbed, true);
        // Each group has one instance.
        assert_eq!(testbed.groups(1), 6);
        let frame = packet("10.0.0.0>10.0.0.9");
        assert_eq!(testbed.send(BLUE, 1, 1, &frame).delivered.len(), 2);
        without_eleven(&mut testbed, false);
        assert_eq!(testbed.groups(1), groups);
        assert_eq!(testbed.send(BLUE, 1, 1, &frame).delivered.len(), 3);
    }
    for bits in [1, 0, 0x20, 0] {
        for port in [1, 10, 11] {
            let words = format!("port_mod port={port} config={bits} mask=0x21");
            assert_eq!(testbed.say(BLUE, 1, &words), testbed.say_beside(BLUE, 1, &words));
            all_same(&mut testbed);
        }
    }
}

/// On a big switch a port may be on another member. The buckets of the egress group send to such a port through a
/// tunnel.
#[test]
fn buckets_of_a_big_switch_send_to_ports_of_other_members() {
    let mut testbed = Testbed::new(Version::V1_3, networks::big_networks());
    let words = "group add id=1 type=all buckets=flood|push_vlan:8100,mod_vlan_vid:7,output:11|\
                 strip_vlan,output:1|mod_vlan_vid:6,in_port";
    both_say(&mut testbed, 0, 1, words);
    both_say(&mut testbed, 0, 1, "flow add prio=5 actions=group:1");
    for (switch, port) in [(1, 1), (1, 2), (2, 10), (3, 11)] {
        for tag in ["", "vlan5:"] {
            let frame = packet(&format!("{tag}10.0.0.1>10.0.0.2"));
            let seen = same(&mut testbed, 0, switch, port, &frame);
            assert!(seen.delivered.len() >= 4, "{switch}:{port}: {seen:?}");
        }
    }
    for question in ["stats group", "stats group_desc"] {
        assert_eq!(testbed.say(0, 1, question), testbed.say_beside(0, 1, question), "{question}");
    }
}

/// The destination address that a bucket writes selects the host at the shared port. A packet to the address of another
/// tenant's host is not delivered.
#[test]
fn buckets_send_only_to_hosts_of_the_tenant_at_a_shared_edge_port() {
    let host = |n: u8| [2, 0, 0, 0, 0x10, n];
    let plan = |n: u8| Plan {
        edges: vec![(1, u32::from(n) + 1, 1)],
        shared: vec![(1, 4, 7, host(n))],
        ..Plan::default()
    };
    let mut testbed = Testbed::new(Version::V1_3, vec![plan(0), plan(1)]);
    let bucket = |n: u8| format!("mod_dl_dst:02.00.00.00.10.{n:02x},output:7");
    // An action set executes the rewrite before the output, whatever their order in the request is.
    let behind = "output:7,mod_dl_dst:02.00.00.00.10.00".to_owned();
    let own = [bucket(0), behind, bucket(0).replace("output:7", "in_port")];
    for buckets in own.iter().cloned().chain([bucket(1), bucket(9)]) {
        assert_eq!(testbed.say(0, 1, &format!("group add id=1 buckets={buckets}")), [""; 0]);
        assert_eq!(testbed.say(0, 1, "flow add prio=5 actions=group:1"), [""; 0]);
        let entry = if buckets.contains("in_port") { 7 } else { 1 };
        let mut frame = packet("10.0.0.1>10.0.0.2");
        frame[6..12].copy_from_slice(&host(0));
        let seen = testbed.send(0, 1, entry, &frame);
        // Both tenants have a port at the same wire, so one frame may be delivered twice.
        let to: BTreeSet<_> =
            seen.delivered.iter().map(|(_, _, port, f)| (*port, &f[..6])).collect();
        let own_host = host(0);
        let expected = own.contains(&buckets).then_some((7, &own_host[..]));
        assert_eq!(to, expected.into_iter().collect(), "{buckets}");
        testbed.say(0, 1, "group delete id=1");
    }
}
