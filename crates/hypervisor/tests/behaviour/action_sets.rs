//! Tests of action sets in tenants' networks, also of sets that several tables merge.
//!
//! A set that may be merged with another set can send to groups and to the controller, but not to a port: Weir must
//! know the egress port where the set is written. The file `courses` tests random action sets. The file `groups_agree`
//! tests egress groups when the switch refuses requests.

use crate::support::hairpin::{BLUE, all_same, testbed};
use crate::support::hairpin::{hairpin_map, policy_on};
use crate::support::networks::{both_say, same, two_networks};
use crate::support::*;
use emulate::Fault;
use openflow::v13::{MultipartReply, MultipartReplyBody};

/// Three tables write actions into the set, one after another. The tenant sees the same packets and statistics as on a
/// dedicated switch. If the set has a group and an output, the switch executes only the group, whichever is written
/// first.
#[test]
fn merged_action_sets_forward_as_on_a_dedicated_switch() {
    let sets = [
        "drop",
        "write=group:1",
        "write=controller",
        "write=controller:60,group:1",
        "clear",
        "clear;write=group:2",
        "write=mod_dl_src:02.00.00.00.00.55",
        "output:11",
    ];
    let last = ["clear;write=output:11", "clear;write=flood,mod_nw_dst:10.0.0.7"];
    let pairs = sets.iter().flat_map(|first| sets.iter().map(move |second| (first, second)));
    let thirds = || sets.iter().chain(&last);
    for (first, second, third) in pairs.flat_map(|(a, b)| thirds().map(move |c| (a, b, c))) {
        let mut testbed = testbed();
        let context = format!("{first} {second} {third}");
        let mut words = [
            "group add id=1 type=all buckets=output:11|output:1".to_owned(),
            "group add id=2 buckets=mod_dl_src:02.00.00.00.00.66,output:1".to_owned(),
            format!("flow add prio=5 match=ip actions={first};goto=1"),
            format!("flow add prio=5 match=ip table=1 actions={second};goto=2"),
            format!("flow add prio=5 match=ip table=2 actions={third}"),
        ];
        // The controller adds the entries of the three tables in different orders.
        let last = (first.len() + second.len()) % 3;
        words[2..].rotate_left(last);
        words.iter().for_each(|words| both_say(&mut testbed, BLUE, 1, words));
        same(&mut testbed, BLUE, 1, 1, &packet("10.0.0.1>10.0.0.9"));
        all_same(&mut testbed);
        let out = "out in_port=1 actions=table data=10.0.0.1>10.0.0.9";
        assert_eq!(testbed.out(BLUE, 1, out), testbed.out_beside(BLUE, 1, out), "{context}");
        for question in ["stats flow", "stats aggregate", "stats group", "stats group_desc"] {
            let received = testbed.say(BLUE, 1, question);
            assert_eq!(received, testbed.say_beside(BLUE, 1, question), "{context} {question}");
        }
    }
}

/// Weir must know the egress port where a set is written. Weir also refuses the request while the configuration of the
/// port has PORT_DOWN or NO_FWD.
#[test]
fn output_is_refused_in_action_sets_that_may_be_merged() {
    let mut plans = two_networks();
    plans[0].shared = vec![(1, 4, 7, [2, 0, 0, 0, 0x10, 0])];
    let mut testbed = Testbed::new(Version::V1_3, plans);
    let say = |testbed: &mut Testbed, words: &str| testbed.say(0, 1, words).join("");
    assert_eq!(say(&mut testbed, "group add id=1 buckets=output:10"), "");
    let ports = ["output:1", "output:10", "output:7", "in_port", "flood", "all"];
    for set in ports.map(|port| format!("{port},mod_dl_src:02.00.00.00.00.55")) {
        for bits in [0, 1, 0x20] {
            say(&mut testbed, &format!("port_mod port=10 config={bits} mask=0x21"));
            for (table, words) in [
                (0, format!("write={set};goto=1")),
                (0, format!("clear;write={set};goto=1")),
                (1, format!("write={set}")),
                (1, format!("clear;write={set};goto=2")),
            ] {
                let words = format!("prio=5 actions={words} table={table}");
                for command in ["add", "modify"] {
                    let reply = say(&mut testbed, &format!("flow {command} {words}"));
                    assert!(reply.contains("OFPBIC_UNSUP_INST"), "{command} {words}: {reply}");
                }
            }
        }
    }
    for (table, words) in [
        (0, "write=output:10"),
        (1, "clear;write=output:7"),
        (1, "clear;write=flood"),
        (0, "write=group:1;goto=1"),
        (0, "write=output:1,group:1;goto=1"),
        (1, "write=group:1"),
        (1, "write=controller"),
        (0, "write=output:1,controller;goto=1"),
    ] {
        let words = format!("flow add prio=5 actions={words} table={table}");
        assert_eq!(say(&mut testbed, &words), "", "{words}");
    }
}

/// The tenant writes and matches the lower 32 bits of the metadata. Bits of the value outside the mask are not written.
#[test]
fn later_tables_match_the_metadata_that_the_tenant_has_written() {
    for first in ["write=group:1", "write=controller", "clear", "clear;write=group:1"] {
        for metadata in ["", ";meta=5/ff", ";meta=ffffffff00000005/ffffffff", ";meta=ffffffff/4"] {
            let mut testbed = testbed();
            for words in [
                "group add id=1 type=all buckets=output:11|output:1",
                &format!("flow add prio=5 match=ip actions={first}{metadata};goto=1"),
                // A match without a mask works too, because the tenant sees all other bits of the metadata as 0.
                "flow add prio=5 match=metadata=0x5 table=1 \
                 actions=controller;write=group:1,mod_dl_src:02.00.00.00.00.55;goto=2",
                "flow add prio=4 match=metadata=0x4/0x4 table=1 actions=write=group:1;goto=2",
                "flow add prio=3 table=1 actions=meta=f0000000/f0000000;goto=2",
                "flow add prio=5 match=metadata=0xf0000000/0xf0000000 table=2 \
                 actions=controller;write=group:1",
                "flow add prio=4 table=2 actions=controller",
            ] {
                both_say(&mut testbed, BLUE, 1, words);
            }
            let seen = same(&mut testbed, BLUE, 1, 1, &packet("10.0.0.1>10.0.0.9"));
            assert!(!seen.received.is_empty(), "{first}{metadata}: {seen:?}");
            all_same(&mut testbed);
        }
    }
}

#[test]
fn a_tenant_can_neither_match_nor_write_metadata_bits_of_weir() {
    let mut testbed = testbed();
    for (words, code) in [
        ("flow add match=metadata=0x100000000/0x100000000 prio=5", "OFPBMC_BAD_MASK"),
        ("flow add match=metadata=0x100000005 prio=5", "OFPBMC_BAD_MASK"),
        ("flow delete match=metadata=0x100000000/0x100000000", "OFPBMC_BAD_MASK"),
        ("stats flow match=metadata=0x100000000/0x100000000", "OFPBMC_BAD_MASK"),
        ("flow add prio=5 actions=meta=100000000/100000000;goto=1", "OFPBIC_UNSUP_METADATA_MASK"),
        ("flow add prio=5 actions=meta=0/1ffffffff;goto=1", "OFPBIC_UNSUP_METADATA_MASK"),
    ] {
        let received = testbed.say(BLUE, 1, words).join("");
        assert!(received.contains(code), "{words}: {received}");
    }
    for (policy, bits) in
        [(policy_on(hairpin_map()), 0xffff_ffff), (policy("blue: ip"), 0xffff_ffff_ffff)]
    {
        let setup = Setup { policy, ..Setup::new(Version::V1_3, "") };
        let mut world = World::new(setup);
        let blue = world.connect("blue");
        world.say(blue, 1, "stats table_features");
        let received = world.received(blue);
        let reply = MultipartReply::parse(&received[0][8..]).unwrap();
        let MultipartReplyBody::TableFeatures(tables) = reply.body else { panic!("{reply:?}") };
        assert!(!tables.is_empty());
        for table in tables {
            assert_eq!((table.metadata_match, table.metadata_write), (bits, bits));
        }
    }
}

#[test]
fn action_sets_with_unknown_ports_or_groups_are_refused() {
    for (actions, table, expected) in [
        ("write=output:10", 0, ""),
        ("write=mod_dl_src:02.00.00.00.00.55,output:10", 0, ""),
        ("output:1;write=flood", 0, ""),
        ("clear;write=output:10", 1, ""),
        ("write=controller", 1, ""),
        ("write=controller;goto=1", 0, ""),
        ("write=output:10", 1, "UNSUP_INST"),
        ("write=output:10;goto=1", 0, "UNSUP_INST"),
        ("clear;write=output:10;goto=2", 1, "UNSUP_INST"),
        // Weir also checks an output that another action of the set replaces.
        ("write=output:77,output:10", 0, "BAD_OUT_PORT"),
        ("write=output:77,output:10;goto=1", 0, "BAD_OUT_PORT"),
        ("write=output:77;goto=1", 0, "BAD_OUT_PORT"),
        ("write=output:10,group:7", 0, "BAD_OUT_GROUP"),
        ("write=output:10,group:7;goto=1", 0, "BAD_OUT_GROUP"),
    ] {
        let mut testbed = Testbed::new(Version::V1_3, two_networks());
        let words = format!("flow add match=in_port=1 prio=5 actions={actions} table={table}");
        let received = testbed.say(0, 1, &words).join("");
        match expected {
            "" => assert_eq!(received, "", "{words}"),
            code => assert!(received.contains(code), "{words}: {received}"),
        }
        // Flow statistics report the actions of the tenant's request.
        if expected.is_empty() {
            let flows = testbed.say(0, 1, "stats flow").join("");
            assert!(flows.contains("write="), "{words}: {flows}");
        }
    }
}

/// The switch refuses one GROUP_MOD of the change. It is for an instance of the egress group or for an instance of the
/// group.
#[test]
fn a_group_and_its_egress_group_are_refused_with_one_error() {
    let mut refused = 0;
    let words = "group add id=1 buckets=strip_vlan,output:10";
    for nth in 1..9 {
        let mut testbed = testbed();
        testbed.plant(1, vec![Fault::RefuseOnce { nth }]);
        let received = testbed.say(BLUE, 1, words);
        testbed.plant(1, Vec::new());
        if received.is_empty() {
            testbed.say_beside(BLUE, 1, words);
        } else {
            refused += 1;
            assert_eq!(received, ["7 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 7"], "{nth}");
            both_say(&mut testbed, BLUE, 1, words);
        }
        assert_eq!(testbed.groups(1), 6, "{nth}");
        both_say(&mut testbed, BLUE, 1, "flow add prio=5 actions=group:1");
        assert!(all_same(&mut testbed) > 0);
    }
    assert_eq!(refused, 6);
}

#[test]
fn a_tenant_can_neither_see_nor_change_egress_groups() {
    // 4294967041 is the number of the first egress group.
    let mut testbed = testbed();
    testbed.play(
        "
        blue@1> group add id=1 buckets=strip_vlan,output:10
        blue@1> flow add prio=5 actions=group:1
        groups 6 0 0
        blue@1> stats group -> STATS group 1:0(0)
        blue@1> stats group_desc -> STATS group_desc 1:PopVlan,output:10
        blue@1> stats flow out_group=4294967041 -> STATS flow
        blue@1> stats group id=4294967041 -> STATS group
        only blue@1> group add id=4294967041 buckets=output:1 -> ERROR OFPGMFC_INVALID_GROUP
        only blue@1> group modify id=4294967041 buckets=output:1 -> ERROR OFPGMFC_UNKNOWN_GROUP
        blue@1> group add id=2 buckets=group:4294967041 -> ERROR OFPBAC_BAD_OUT_GROUP
        only blue@1> group add id=2 type=ff buckets=g4294967041@output:1 -> ERROR OFPGMFC_BAD_WATCH
        blue@1> flow add prio=6 actions=group:4294967041 -> ERROR OFPBAC_BAD_OUT_GROUP
        blue@1> flow add prio=6 actions=write=group:4294967041;goto=1 -> ERROR OFPBAC_BAD_OUT_GROUP
        blue@1> out in_port=1 actions=group:4294967041 data=10.0.0.1>10.0.0.2 -> ERROR OFPBAC_BAD_OUT_GROUP
        blue@1> group delete id=4294967041
    ",
    );
    assert!(all_same(&mut testbed) > 0);
    testbed.play(
        "
        blue@1> group delete id=all
        groups 3 0 0
    ",
    );
}

/// The switch executes an action set after it writes the metadata, so the PACKET_IN has the metadata. The switch
/// executes an action list before it writes the metadata, so the last PACKET_IN has no metadata.
#[test]
fn a_packet_in_of_an_action_set_has_the_metadata_that_the_entry_writes() {
    testbed().play(
        "
        blue@1> group add id=1 type=all buckets=controller|output:10
        blue@1> flow add prio=5 actions=write=controller;meta=5/ff
        blue@1:1> 10.0.0.1>10.0.0.9
        blue@1< PACKET_IN 1 ACTION 10.0.0.1>10.0.0.9 metadata=0x5
        blue@1> flow add prio=5 actions=write=group:1;meta=5/ff
        blue@1:1> 10.0.0.1>10.0.0.9 -> blue@2:1
        blue@1< PACKET_IN 1 ACTION 10.0.0.1>10.0.0.9 metadata=0x5
        blue@1> flow add prio=5 actions=controller;meta=5/ff
        blue@1:1> 10.0.0.1>10.0.0.9
        blue@1< PACKET_IN 1 ACTION 10.0.0.1>10.0.0.9
    ",
    );
}

/// The packet matches no entry of table 1. Like Open vSwitch, the switch then executes the action set, and its
/// PACKET_IN does not name the entry.
#[test]
fn an_action_set_that_runs_on_a_table_miss_sends_a_packet_in() {
    let make = Make { runs_sets: true, ..Make::default() };
    Testbed::made([Version::V1_3; 3], two_networks(), make).play(
        "
        red,blue@1> flow add match=in_port=1 prio=5 actions=write=controller;goto=1
        red@1:1> 10.0.0.1>10.0.0.2
        red@1< PACKET_IN 1 ACTION 10.0.0.1>10.0.0.2
        blue@1:1> 10.0.0.1>10.0.0.2
        blue@1< PACKET_IN 1 ACTION 10.0.0.1>10.0.0.2
    ",
    );
}
