//! Action sets of tenants' own networks, also such that are merged with others' and send into links. That random ones forward
//! as they would on a switch of the tenant's own is in `networks`; that exits outlive refusals is in `groups_agree`, too. Sets in
//! which a group meets an output are in `groups_in_sets`.

use crate::groups::{BLUE, all_same, stage, without_eleven};
use crate::networks::{both_say, same, two};
use crate::support::*;
use emulate::Fault;

/// What an entry of the first table and one of the second write: what the tenant's own switch does with it is done, and told.
#[test]
fn merged_sets_forward_as_on_a_switch_of_the_tenants_own() {
    for first in ["write=output:10", "write=output:1", "write=mod_nw_dst:10.0.0.7,flood"] {
        for (second, delivers) in [
            ("write=mod_dl_src:02.00.00.00.00.55", first != "write=output:1"),
            ("write=output:11", true),
            // By which it came.
            ("write=output:1", false),
            ("write=in_port", true),
            ("clear", false),
            ("clear;write=output:11;goto=2", true),
            ("write=group:1", true),
            ("write=output:10,group:1,output:11", true),
            ("output:11", true),
            ("write=flood", true),
            ("write=all;goto=2", true),
            ("write=controller", false),
        ] {
            let mut stage = stage();
            let context = format!("{first} {second}");
            for words in [
                "group add id=1 type=all buckets=output:11|output:1",
                &format!("flow add prio=5 match=ip actions={first};goto=1"),
                &format!("flow add prio=5 match=ip table=1 actions={second}"),
                "flow add prio=5 match=ip table=2 actions=write=mod_dl_src:02.00.00.00.00.66",
            ] {
                both_say(&mut stage, BLUE, 1, words);
            }
            let seen = same(&mut stage, BLUE, 1, 1, &packet("10.0.0.1>10.0.0.9"));
            assert_eq!(!seen.delivered.is_empty(), delivers, "{context}: {seen:?}");
            assert_eq!(seen.told.len(), usize::from(second == "write=controller"), "{context}");
            all_same(&mut stage);
            for question in ["stats flow", "stats aggregate", "stats group", "stats group_desc"] {
                let told = stage.say(BLUE, 1, question);
                assert_eq!(told, stage.say_beside(BLUE, 1, question), "{context} {question}");
            }
        }
    }
}

#[test]
fn sets_are_refused_that_name_what_is_not_the_tenants() {
    for (actions, table, expected) in [
        ("write=output:10", 0, ""),
        ("write=mod_dl_src:02.00.00.00.00.55,output:10", 0, ""),
        ("output:1;write=flood", 0, ""),
        ("clear;write=output:10", 1, ""),
        ("write=output:10", 1, ""),
        ("write=output:10;goto=1", 0, ""),
        ("clear;write=output:10;goto=2", 1, ""),
        // What another takes the place of is the tenant's as well.
        ("write=output:77,output:10", 0, "BAD_OUT_PORT"),
        ("write=output:77,output:10;goto=1", 0, "BAD_OUT_PORT"),
        ("write=output:77;goto=1", 0, "BAD_OUT_PORT"),
        ("write=output:10,group:7", 0, "BAD_OUT_GROUP"),
        ("write=output:10,group:7;goto=1", 0, "BAD_OUT_GROUP"),
    ] {
        let mut stage = Stage::new(Version::V1_3, two());
        let words = format!("flow add match=in_port=1 prio=5 actions={actions} table={table}");
        let told = stage.say(0, 1, &words).join("");
        match expected {
            "" => assert_eq!(told, "", "{words}"),
            code => assert!(told.contains(code), "{words}: {told}"),
        }
        // Statistics tell what the tenant said.
        if expected.is_empty() {
            let flows = stage.say(0, 1, "stats flow").join("");
            assert!(flows.contains("write="), "{words}: {flows}");
        }
    }
}

/// The switch refuses one of the messages: the exit's, each of its copies', or one of the entry's pieces.
#[test]
fn an_entry_is_refused_once_with_its_exit() {
    let mut refused = 0;
    for match_ in ["ip", "ip,in_port=1"] {
        for nth in 1..12 {
            let mut stage = stage();
            let context = format!("{match_} {nth}");
            both_say(
                &mut stage,
                BLUE,
                1,
                &format!("flow add prio=5 match={match_} actions=output:1"),
            );
            let entries = stage.entries(1);
            stage.plant(1, vec![Fault::RefuseOnce { nth }]);
            let words = format!("flow add prio=5 match={match_} actions=write=output:10;goto=1");
            let told = stage.say(BLUE, 1, &words);
            stage.plant(1, Vec::new());
            if told.is_empty() {
                assert_eq!(stage.groups(1), 3, "{context}");
                stage.say_beside(BLUE, 1, &words);
            } else {
                refused += 1;
                assert_eq!(told, ["7 ERROR OFPFMFC_TABLE_FULL of type 14 xid 7"], "{context}");
                assert_eq!(stage.entries(1), entries, "{context}");
            }
            all_same(&mut stage);
            both_say(&mut stage, BLUE, 1, &words);
            all_same(&mut stage);
            assert_eq!(stage.groups(1), 3, "{context}");
        }
    }
    // Three groups and, for packets by any port, four entries, one of them for those by none; else one.
    assert_eq!(refused, 3 + 4 + 3 + 1);
}

#[test]
fn exits_are_not_the_tenants_to_see_or_to_change() {
    let mut stage = stage();
    both_say(&mut stage, BLUE, 1, "group add id=1 buckets=output:1");
    both_say(&mut stage, BLUE, 1, "flow add prio=5 actions=write=output:10;goto=1");
    assert_eq!(stage.groups(1), 4);
    for question in ["stats group", "stats group_desc", "stats flow out_group=4294967041"] {
        let told = stage.say(BLUE, 1, question);
        assert_eq!(told, stage.say_beside(BLUE, 1, question), "{question}");
    }
    let first = u32::MAX - 254;
    assert_eq!(stage.say(BLUE, 1, &format!("stats group id={first}")), ["7 STATS group"]);
    for (words, code) in [
        (format!("group add id={first} buckets=output:1"), "OFPGMFC_INVALID_GROUP"),
        (format!("group modify id={first} buckets=output:1"), "OFPGMFC_UNKNOWN_GROUP"),
        (format!("group add id=2 buckets=group:{first}"), "OFPBAC_BAD_OUT_GROUP"),
        (format!("group add id=2 type=ff buckets=g{first}@output:1"), "OFPGMFC_BAD_WATCH"),
        (format!("flow add prio=6 actions=group:{first}"), "OFPBAC_BAD_OUT_GROUP"),
        (format!("flow add prio=6 actions=write=group:{first};goto=1"), "OFPBAC_BAD_OUT_GROUP"),
        (
            format!("out in_port=1 actions=group:{first} data=10.0.0.1>10.0.0.2"),
            "OFPBAC_BAD_OUT_GROUP",
        ),
    ] {
        let told = stage.say(BLUE, 1, &words).join("");
        assert!(told.contains(code), "{words}: {told}");
    }
    assert_eq!(stage.say(BLUE, 1, &format!("group delete id={first}")), [""; 0]);
    both_say(&mut stage, BLUE, 1, "group delete id=all");
    assert_eq!(stage.groups(1), 3);
    assert!(all_same(&mut stage) > 0);
}

/// Exits and the entries that use them follow links that move, go and come back, and what is configured of ports.
#[test]
fn exits_follow_the_network() {
    let mut stage = stage();
    for (table, actions) in
        [(0, "write=output:10;goto=1"), (1, "write=mod_dl_src:02.00.00.00.00.55")]
    {
        both_say(&mut stage, BLUE, 1, &format!("flow add prio=5 table={table} actions={actions}"));
    }
    both_say(
        &mut stage,
        BLUE,
        1,
        "flow add prio=6 match=ip,nw_src=10.0.0.2 actions=write=flood;goto=1",
    );
    for _ in 0..2 {
        assert!(all_same(&mut stage) > 0);
        assert_eq!(stage.groups(1), 6);
        without_eleven(&mut stage, true);
        assert_eq!(stage.groups(1), 2);
        let frame = packet("10.0.0.0>10.0.0.9");
        assert_eq!(stage.send(BLUE, 1, 1, &frame).delivered.len(), 1);
        stage.send_beside(BLUE, 1, 1, &frame);
        without_eleven(&mut stage, false);
    }
    for bits in [1, 0, 0x20, 0] {
        let words = format!("port_mod port=10 config={bits} mask=0x21");
        assert_eq!(stage.say(BLUE, 1, &words), stage.say_beside(BLUE, 1, &words));
        all_same(&mut stage);
    }
}

/// On a big switch the port may be on another member, to which the exit's bucket sends by a tunnel.
#[test]
fn merged_sets_send_to_ports_of_other_members() {
    let mut stage = Stage::new(Version::V1_3, crate::networks::big());
    both_say(&mut stage, 0, 1, "flow add prio=5 actions=write=output:11;goto=1");
    both_say(
        &mut stage,
        0,
        1,
        "flow add prio=5 table=1 actions=write=mod_dl_src:02.00.00.00.00.55",
    );
    both_say(&mut stage, 0, 1, "flow add prio=6 match=in_port=11 actions=write=flood;goto=1");
    for (switch, port, copies) in [(1, 1, 1), (1, 2, 1), (2, 10, 1), (3, 11, 3)] {
        let seen = same(&mut stage, 0, switch, port, &packet("10.0.0.1>10.0.0.2"));
        assert_eq!(seen.delivered.len(), copies, "{switch}:{port}: {seen:?}");
    }
}

/// A list would come before the metadata are written.
#[test]
fn a_controller_is_told_the_metadata_that_the_entry_itself_has_written() {
    for (set, told) in [
        ("write=controller", "PACKET_IN 1 ACTION 10.0.0.1>10.0.0.9 metadata=0x5"),
        ("write=group:1", "PACKET_IN 1 ACTION 10.0.0.1>10.0.0.9 metadata=0x5"),
        ("controller", "PACKET_IN 1 ACTION 10.0.0.1>10.0.0.9"),
    ] {
        let mut stage = stage();
        both_say(&mut stage, BLUE, 1, "group add id=1 type=all buckets=controller|output:10");
        both_say(&mut stage, BLUE, 1, &format!("flow add prio=5 actions={set};meta=5/ff"));
        let seen = same(&mut stage, BLUE, 1, 1, &packet("10.0.0.1>10.0.0.9"));
        assert_eq!(seen.told, [(BLUE, 1, told.to_owned())], "{set}");
    }
}
