//! Tests of groups in tenants' networks with a hairpin port: two links of the tenant use one physical port. A group
//! that uses such a port has several instances on the switch. `courses` tests random groups, `groups_restarted` tests
//! restarts and `groups_agree` tests refusals.

use crate::support::hairpin::{BLUE, all_same, testbed, without_eleven};
use crate::support::networks::both_say;
use crate::support::*;
use emulate::Fault;

#[test]
fn every_group_type_forwards_between_two_links_on_one_physical_port() {
    for (kind, buckets) in [
        ("all", "output:10|output:11|output:1|in_port"),
        ("all", "mod_nw_dst:10.0.0.2,output:11|drop|output:10"),
        ("select", "1*output:10|1*output:11|2*output:1|1*in_port"),
        ("indirect", "output:11"),
        ("indirect", "in_port"),
        ("ff", "11@output:11|10@output:10|1@output:1"),
        // Weir adds egress groups for these buckets, because one action set cannot express a whole bucket.
        ("all", "push_vlan:8100,mod_vlan_vid:7,output:10|strip_vlan,output:11|output:1"),
        ("all", "mod_nw_dst:10.0.0.2,flood|drop|mod_vlan_vid:6,in_port"),
        ("select", "1*push_vlan:8100,mod_vlan_vid:7,flood|2*all|1*mod_vlan_pcp:3,output:11"),
        ("indirect", "flood"),
        ("indirect", "push_vlan:8100,mod_vlan_vid:7,in_port"),
        ("ff", "11@strip_vlan,output:11|10@all|1@output:1"),
    ] {
        let mut testbed = testbed();
        both_say(&mut testbed, BLUE, 1, &format!("group add id=1 type={kind} buckets={buckets}"));
        both_say(&mut testbed, BLUE, 1, "flow add prio=5 actions=group:1 cookie=9");
        assert!(all_same(&mut testbed) > 0, "{kind} {buckets}");
        // The tenant sees all instances of a group as one group, and all rules of an entry as one entry.
        for question in ["stats group", "stats group_desc", "stats flow", "stats flow out_group=1"]
        {
            let received = testbed.say(BLUE, 1, question);
            assert_eq!(
                received,
                testbed.say_beside(BLUE, 1, question),
                "{kind} {buckets} {question}"
            );
            assert!(received[0].len() > "7 STATS group_desc".len(), "{received:?}");
        }
        assert_eq!(testbed.say(BLUE, 1, "stats group id=1"), testbed.say(BLUE, 1, "stats group"));
        assert_eq!(testbed.say(BLUE, 1, "stats flow out_group=2"), ["7 STATS flow"]);
    }
}

#[test]
fn only_groups_that_use_a_hairpin_port_have_several_instances() {
    let mut testbed = testbed();
    for (words, groups) in [
        ("group add id=1 type=all buckets=output:1|controller", 1),
        // Group 2 has an instance for packets from port 10, one for packets from port 11, and one for all other
        // packets.
        ("group add id=2 type=all buckets=output:10|output:1", 4),
        // For each ingress port, IN_PORT is a different port. So group 3 has four instances.
        ("group add id=3 type=indirect buckets=in_port", 8),
        ("group add id=4 type=indirect buckets=group:1", 9),
        ("group add id=5 type=indirect buckets=group:4", 10),
        // Groups that use group 1 also get several instances: group 4 uses group 1 directly, group 5 through group 4.
        ("group modify id=1 type=all buckets=output:11", 16),
        ("group modify id=1 type=all buckets=output:1", 10),
        ("group modify id=4 type=indirect buckets=group:3", 16),
        ("group modify id=3 type=indirect buckets=drop", 7),
        ("group delete id=5", 6),
        ("group delete id=all", 0),
    ] {
        both_say(&mut testbed, BLUE, 1, words);
        assert_eq!(testbed.groups(1), groups, "{words}");
    }
}

/// When a group gets more or fewer instances, Weir updates all entries that use the group, directly or through another
/// group.
#[test]
fn entries_are_updated_when_a_modified_group_needs_other_instances() {
    let mut testbed = testbed();
    for words in [
        "group add id=1 type=all buckets=output:1",
        "group add id=2 type=all buckets=group:1|controller",
        "flow add prio=5 match=ip,nw_src=10.0.0.0 actions=group:1",
        "flow add prio=5 match=ip,nw_src=10.0.0.1 actions=group:2",
        "flow add prio=5 match=ip,nw_src=10.0.0.2,in_port=10 actions=group:2",
        "flow add prio=5 match=ip,nw_src=10.0.0.3 actions=write=group:1;goto=1",
        "flow add prio=5 table=1 actions=write=mod_dl_src:02.00.00.00.00.55",
    ] {
        both_say(&mut testbed, BLUE, 1, words);
    }
    let entries = testbed.entries(1);
    all_same(&mut testbed);
    for buckets in ["output:10|output:11", "in_port|output:11", "output:1"] {
        let words = format!("group modify id=1 type=all buckets={buckets}");
        both_say(&mut testbed, BLUE, 1, &words);
        all_same(&mut testbed);
        assert_eq!(testbed.entries(1) == entries, buckets == "output:1", "{buckets}");
        // The flow statistics still include the packets from before the change.
        let flows = testbed.say(BLUE, 1, "stats flow");
        assert_eq!(flows, testbed.say_beside(BLUE, 1, "stats flow"), "{buckets}");
    }
    // The deletion of a group deletes the entries that use the group, each with one FLOW_REMOVED. A group that other
    // groups use is not deleted.
    both_say(&mut testbed, BLUE, 1, "flow modify match=ip,nw_src=10.0.0.0 actions=group:1");
    both_say(&mut testbed, BLUE, 1, "group modify id=1 type=all buckets=output:10|output:11");
    both_say(
        &mut testbed,
        BLUE,
        1,
        "flow add prio=5 match=ip,nw_src=10.0.0.0 actions=group:1 flags=rem",
    );
    for words in ["group delete id=1", "group delete id=2", "group delete id=1"] {
        let received = testbed.say(BLUE, 1, words);
        assert_eq!(received, testbed.say_beside(BLUE, 1, words), "{words}");
    }
    assert_eq!(testbed.groups(1), 0);
    assert_eq!(testbed.say(BLUE, 1, "stats flow"), testbed.say_beside(BLUE, 1, "stats flow"));
}

#[test]
fn a_packet_out_uses_the_group_instance_for_the_in_port() {
    testbed().play(
        "
        blue@1> group add id=1 type=all buckets=output:10|output:11|output:1|in_port
        blue@1> out in_port=1 actions=group:1 data=10.0.0.1>10.0.0.2 -> blue@1:1 blue@2:1 blue@3:1
        blue@1> out in_port=10 actions=group:1 data=10.0.0.1>10.0.0.2 -> blue@1:1 blue@2:1 blue@3:1
        blue@1> out in_port=11 actions=group:1 data=10.0.0.1>10.0.0.2 -> blue@1:1 blue@2:1 blue@3:1
        blue@1> out in_port=controller actions=group:1 data=10.0.0.1>10.0.0.2 -> blue@1:1 blue@2:1 blue@3:1
    ",
    );
}

/// Such an entry is refused also if the group is in the action set, and if the group has several instances on the
/// switch.
#[test]
fn an_entry_that_names_a_group_twice_is_refused() {
    let mut testbed = testbed();
    testbed.play(
        "
        blue@1> group add id=1 type=all buckets=output:10|output:11
        blue@1> group add id=2 type=all buckets=output:1
        only blue@1> flow add prio=5 actions=group:1,group:1 -> ERROR OFPBAC_TOO_MANY
        only blue@1> flow add prio=5 actions=group:2,output:10,group:2 -> ERROR OFPBAC_TOO_MANY
        only blue@1> flow add prio=5 actions=group:2;write=group:2 -> ERROR OFPBAC_TOO_MANY
        only blue@1> flow add prio=5 actions=group:2;write=group:2;goto=1 -> ERROR OFPBAC_TOO_MANY
        only blue@1> flow add prio=5 actions=write=group:1,group:1;goto=1 -> ERROR OFPBAC_TOO_MANY
        blue@1> flow add prio=5 actions=group:1,group:2
    ",
    );
    all_same(&mut testbed);
}

#[test]
fn loops_of_groups_are_refused() {
    testbed().play(
        "
        blue@1> group add id=1 buckets=output:10
        blue@1> group add id=2 buckets=group:1
        blue@1> group add id=3 buckets=group:2|output:1
        blue@1> group modify id=1 buckets=group:3 -> ERROR OFPGMFC_LOOP
        blue@1> group modify id=1 buckets=group:1 -> ERROR OFPGMFC_LOOP
    ",
    );
}

/// An entry with one rule for each ingress port may need the same rule as an entry that matches on the port. A switch
/// may use either entry for a packet, so Weir accepts both entries. When the first entry ends, the other entry owns the
/// rule.
#[test]
fn two_entries_with_an_equal_rule_are_both_accepted() {
    for last in ["flow add prio=5 actions=output:11", "flow add prio=5 actions=group:1"] {
        let mut testbed = testbed();
        both_say(&mut testbed, BLUE, 1, "group add id=1 buckets=output:1");
        both_say(&mut testbed, BLUE, 1, "flow add prio=5 match=in_port=10 actions=output:11");
        both_say(&mut testbed, BLUE, 1, last);
        both_say(&mut testbed, BLUE, 1, "group modify id=1 buckets=output:11");
        all_same(&mut testbed);
        let entries = testbed.entries(1);
        both_say(&mut testbed, BLUE, 1, "flow delete_strict prio=5 match=in_port=10");
        all_same(&mut testbed);
        assert_eq!(testbed.entries(1).len(), entries.len());
        both_say(&mut testbed, BLUE, 1, "group modify id=1 buckets=output:1");
        all_same(&mut testbed);
    }
}

#[test]
fn a_group_change_is_undone_when_the_switch_refuses_one_message_of_the_change() {
    for (words, messages) in [
        ("group add id=3 type=all buckets=output:10|output:11", 3),
        ("group modify id=1 type=all buckets=output:10|output:11", 9),
        ("group modify id=1 type=all buckets=in_port", 11),
        ("group modify id=2 type=all buckets=output:1", 3),
        ("group modify id=4 type=all buckets=group:1", 2),
        ("group delete id=4", 4),
    ] {
        let refused = (1..14).filter(|nth| refuse_one(words, *nth));
        assert_eq!(refused.count(), messages, "{words}");
    }
}

/// The switch refuses the message with number `nth` of a change. Returns whether the change has so many messages.
fn refuse_one(words: &str, nth: u32) -> bool {
    let mut testbed = testbed();
    for words in [
        "group add id=1 type=all buckets=output:1",
        "group add id=2 type=all buckets=output:11|in_port",
        "group add id=4 type=all buckets=group:2|group:1",
        "flow add prio=5 match=ip,nw_src=10.0.0.0 actions=group:1",
        "flow add prio=5 match=ip,nw_src=10.0.0.1 actions=group:2",
        "flow add prio=4 actions=group:4",
    ] {
        both_say(&mut testbed, BLUE, 1, words);
    }
    all_same(&mut testbed);
    let (groups, entries) = (testbed.groups(1), testbed.entries(1));
    let context = format!("{words} {nth}");
    testbed.plant(1, vec![Fault::RefuseOnce { nth }]);
    let received = testbed.say(BLUE, 1, words);
    testbed.plant(1, Vec::new());
    assert_eq!(testbed.say(BLUE, 1, "barrier"), ["7 BARRIER_REPLY"], "{context}");
    if received.is_empty() {
        assert_eq!(testbed.say_beside(BLUE, 1, words), [""; 0], "{context}");
    } else {
        assert_eq!(received, ["7 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 7"], "{context}");
        assert_eq!(testbed.groups(1), groups, "{context}");
        assert_eq!(testbed.entries(1), entries, "{context}");
    }
    all_same(&mut testbed);
    let described = testbed.say(BLUE, 1, "stats group_desc");
    assert_eq!(described, testbed.say_beside(BLUE, 1, "stats group_desc"), "{context}");
    !received.is_empty()
}

#[test]
fn group_instances_are_added_and_removed_together_with_the_hairpin_port() {
    let mut testbed = testbed();
    for words in [
        "group add id=1 type=all buckets=output:10|output:1",
        "group add id=2 type=select buckets=1*group:1|1*output:1",
        "flow add prio=5 match=ip,nw_src=10.0.0.0 actions=group:1",
        "flow add prio=4 actions=group:2",
    ] {
        both_say(&mut testbed, BLUE, 1, words);
    }
    without_eleven(&mut testbed, false);
    all_same(&mut testbed);
    let (groups, entries) = (testbed.groups(1), testbed.entries(1).len());
    assert_eq!(groups, 6);
    for _ in 0..2 {
        without_eleven(&mut testbed, true);
        assert_eq!(testbed.groups(1), 2);
        assert!(testbed.entries(1).len() < entries);
        // The group still forwards packets over the link at port 10.
        let frame = packet("10.0.0.0>10.0.0.9");
        assert_eq!(testbed.send(BLUE, 1, 1, &frame).delivered, [(BLUE, 2, 1, frame.clone())]);
        let back = testbed.send(BLUE, 2, 1, &frame).delivered;
        assert!(back.contains(&(BLUE, 1, 1, frame.clone())), "{back:?}");
        without_eleven(&mut testbed, false);
        assert_eq!((testbed.groups(1), testbed.entries(1).len()), (groups, entries));
        // With the hairpin port, packets are again forwarded as in the reference network.
        all_same(&mut testbed);
    }
    let flows = testbed.say(BLUE, 1, "stats flow");
    assert!(flows[0].contains("group:1") && flows[0].contains("group:2"), "{flows:?}");
    // A PORT_MOD applies to all instances of the groups that output to the port.
    for bits in [1, 0, 0x20, 0] {
        let words = format!("port_mod port=10 config={bits} mask=0x21");
        assert_eq!(testbed.say(BLUE, 1, &words), testbed.say_beside(BLUE, 1, &words));
        all_same(&mut testbed);
    }
    assert_eq!(testbed.groups(1), groups);
}

#[test]
fn the_reference_count_of_a_group_counts_the_tenants_own_references() {
    let mut testbed = testbed();
    both_say(&mut testbed, BLUE, 1, "group add id=1 buckets=output:10");
    both_say(&mut testbed, BLUE, 1, "group add id=2 buckets=group:1|output:1");
    both_say(&mut testbed, BLUE, 1, "flow add prio=5 actions=group:1");
    both_say(&mut testbed, BLUE, 1, "flow add prio=6 match=in_port=10 actions=group:1");
    assert_eq!(testbed.references(BLUE, 1), [(1, 3), (2, 0)]);
}

#[test]
fn each_member_of_a_big_switch_has_its_own_group_instances() {
    Testbed::new(Version::V1_3, networks::big_networks()).play(
        "
        red@1> group add id=1 type=all buckets=output:10|output:11|output:1|in_port
        red@1> flow add prio=5 actions=group:1
        groups 3 2 2
        red@1:1> 10.0.0.1>10.0.0.2 -> red@1:1 red@2:10 red@3:11
        red@1:2> 10.0.0.1>10.0.0.2 -> red@1:1 red@1:2 red@2:10 red@3:11
        red@2:10> 10.0.0.1>10.0.0.2 -> red@1:1 red@2:10 red@3:11
        red@3:11> 10.0.0.1>10.0.0.2 -> red@1:1 red@2:10 red@3:11
        red@1> stats group -> same
        red@1> stats group_desc -> same
        red@1> group delete id=1
        groups 0 0 0
    ",
    );
}
