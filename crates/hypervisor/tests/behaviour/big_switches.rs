//! Tests of big switches: one virtual switch on several physical switches, its members. The tenant sees counters,
//! barriers, refusals and expired entries as on one switch. The file `courses` tests that a big switch forwards as one
//! switch.

use crate::support::big_switches::{plans, say, testbed};
use crate::support::networks::both_say;
use crate::support::*;

#[test]
fn a_big_switch_has_the_ports_of_all_members_and_one_datapath_id() {
    both_versions(plans()).play(
        "
        [1.0] only red@1> features -> FEATURES a1 tables=1 ports=1 2 3 4
        [1.3] red@1> features -> FEATURES a1 tables=14
        red@1> stats port -> STATS port 1 2 3 4
    ",
    );
}

#[test]
fn entry_counters_are_sums_over_all_members() {
    both_versions(plans()).play(
        "
        red@1> flow add match=ip prio=5 actions=output:4
        red@1:1> 10.0.0.1>10.0.0.2 -> red@3:4
        red@1:2> 10.0.0.1>10.0.0.2 -> red@3:4
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4
        red@1> stats flow -> STATS flow prio=5 ip n=4 output:4
        red@1> stats aggregate -> STATS aggregate flows=1 n=4
    ",
    );
}

#[test]
fn async_settings_hold_on_all_members_and_after_a_reconnection() {
    testbed(Version::V1_3).play(
        "
        red@1> flow add match=ip prio=5 actions=dec_ttl,output:4
        red@1> set_async in=7/0
        lose red@1 2
        red@1< PORT_STATUS MODIFY 3
        find red@1 2
        red@1< PORT_STATUS MODIFY 3
        red@1:1> ttl1:10.0.0.1>10.0.0.2
        red@1< PACKET_IN 1 INVALID_TTL 10.0.0.1>10.0.0.2
        red@2:3> ttl1:10.0.0.1>10.0.0.2
        red@1< PACKET_IN 3 INVALID_TTL 10.0.0.1>10.0.0.2
    ",
    );
}

#[test]
fn a_barrier_to_a_big_switch_gets_one_reply() {
    both_versions(plans()).play(
        "
        red@1> barrier -> BARRIER_REPLY
    ",
    );
}

#[test]
fn an_entry_refused_by_a_member_gets_one_error_and_is_on_no_member() {
    both_versions(plans()).play(
        "
        note
        only red@1> flow add match=ip prio=5 actions=output:9 -> ERROR OFPBAC_BAD_OUT_PORT
        as noted
        red@1> stats flow -> STATS flow
    ",
    );
}

#[test]
fn a_deleted_entry_gets_one_flow_removed_with_counters_of_all_members() {
    both_versions(plans()).play(
        "
        red@1> flow add match=ip prio=5 actions=output:4 flags=rem cookie=77
        red@1:1> 10.0.0.1>10.0.0.2 -> red@3:4
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4
        red@1> flow delete match= -> FLOW_REMOVED prio=5 ip cookie=0x4d DELETE n=2
    ",
    );
}

#[test]
fn an_idle_timeout_expires_only_when_the_entry_is_idle_on_all_members() {
    // Only one member receives packets of the entry. The entry stays on all members.
    let packets = "
        wait 2
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4
    ";
    let add = "red@1> flow add match=ip prio=5 actions=output:4 idle=4 flags=rem";
    let end = "
        wait 1
        red@1:1> 10.0.0.1>10.0.0.2 -> red@3:4
        wait 12
        red@1< FLOW_REMOVED prio=5 ip cookie=0x0 IDLE_TIMEOUT n=7
        red@1> stats flow -> STATS flow
    ";
    both_versions(plans()).play(&[add, &packets.repeat(6), end].concat());
}

#[test]
fn an_expired_hard_timeout_sends_one_flow_removed() {
    both_versions(plans()).play(
        "
        red@1> flow add match=ip prio=5 actions=output:4 hard=3 flags=rem
        red@1> flow add match=in_port=3,ip prio=6 actions=output:4 hard=3 flags=rem
        red@1:1> 10.0.0.1>10.0.0.2 -> red@3:4
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4
        wait 6
        red@1< FLOW_REMOVED prio=5 ip cookie=0x0 HARD_TIMEOUT n=1
        red@1< FLOW_REMOVED prio=6 ip,in_port=3 cookie=0x0 HARD_TIMEOUT n=1
    ",
    );
}

#[test]
fn ports_of_a_lost_member_are_down_and_a_reconnected_member_gets_all_entries() {
    both_versions(plans()).play(
        "
        red@1> flow add match=in_port=1 prio=5 actions=output:2
        lose red@1 2
        red@1< PORT_STATUS MODIFY 3
        red@1> flow delete match=
        red@1> flow add match=ip prio=6 actions=output:4
        red@1> barrier -> BARRIER_REPLY
        red@1:1> 10.0.0.1>10.0.0.2 -> red@3:4
        find red@1 2
        red@1< PORT_STATUS MODIFY 3
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4
        red@1> stats flow -> STATS flow prio=6 ip n=2 output:4
    ",
    );
}

/// If a group sends to another group or watches it, the member gets the other group first, whatever the group ids are.
/// Weir deletes groups in the reverse order.
#[test]
fn a_reconnected_member_gets_groups_in_order_of_their_references() {
    let two = ["group add id=1 type=ff buckets=1@drop", "group add id=2 buckets=output:4"];
    let sends = "group modify id=1 type=ff buckets=1@group:2";
    let watches = "group modify id=1 type=ff buckets=g2@output:4";
    let gone = ["group delete id=1", "group delete id=2"];
    for (before, away, groups) in [
        (Vec::new(), [&two[..], &[sends]].concat(), 2),
        (Vec::new(), [&two[..], &[watches]].concat(), 2),
        (two.to_vec(), vec![sends], 2),
        ([&two[..], &[sends]].concat(), gone.to_vec(), 0),
        (
            [&two[..], &[sends]].concat(),
            vec!["group delete id=all", "group add id=9 buckets=drop"],
            1,
        ),
    ] {
        let mut testbed = testbed(Version::V1_3);
        before.iter().for_each(|words| say(&mut testbed, words));
        testbed.lose(0, 1, 2);
        away.iter().for_each(|words| say(&mut testbed, words));
        if groups == 2 {
            say(&mut testbed, "flow add match= prio=6 actions=group:1");
        }
        testbed.find(0, 1, 2);
        testbed.take_received();
        assert_eq!([1, 2, 3].map(|switch| testbed.groups(switch)), [groups; 3], "{away:?}");
        let frame = packet("10.0.0.1>10.0.0.2");
        let seen = testbed.send(0, 2, 3, &frame).delivered;
        let expected = if groups == 2 { vec![(0, 3, 4, frame)] } else { Vec::new() };
        assert_eq!(seen, expected, "{away:?}");
    }
}

/// The groups watch each other or send to each other. No order of the groups has each group after all groups that it
/// refers to.
#[test]
fn a_reconnected_member_gets_groups_that_refer_to_each_other() {
    let one = "group add id=1 type=ff buckets=4@output:4";
    let two = "group add id=2 type=ff buckets=g1@output:4";
    let three = "group add id=3 type=ff buckets=g2@output:2|g1@output:4";
    let circle = "group modify id=1 type=ff buckets=g2@output:3|4@output:4";
    let plain = "group add id=2 buckets=output:4";
    for (before, away, groups) in [
        (vec![], vec![one, two, circle], 2),
        (vec![one], vec![two, circle], 2),
        (vec![one, two], vec![circle], 2),
        (vec![one, two, circle], vec!["group modify id=1 type=ff buckets=4@output:4"], 2),
        (vec![plain], vec![one, "group modify id=2 type=ff buckets=g1@output:4", circle], 2),
        // The circle of references includes a third group.
        (vec![plain], vec![one, three, "group modify id=2 type=ff buckets=g3@output:4"], 3),
        (vec![], vec![one, two, three, "group modify id=1 type=ff buckets=g3@drop|4@output:4"], 3),
        // One group sends to another group, and the other group watches the first group.
        (vec![], vec![one, two, "group modify id=1 buckets=group:2"], 2),
        (
            vec![],
            vec![
                one,
                plain,
                "group modify id=1 type=ff buckets=g2@output:4",
                "group modify id=2 buckets=group:1",
            ],
            2,
        ),
        // The watched group is deleted.
        (vec![], vec![one, two, circle, "group delete id=2"], 1),
        (vec![one], vec![two, "group delete id=1"], 1),
        (vec![one, two, circle], vec!["group delete id=1"], 1),
        (vec![one, two, circle], vec!["group delete id=all"], 0),
    ] {
        let mut testbed = testbed(Version::V1_3);
        before.iter().for_each(|words| both_say(&mut testbed, 0, 1, words));
        testbed.lose(0, 1, 2);
        away.iter().for_each(|words| both_say(&mut testbed, 0, 1, words));
        for number in 1..=3 {
            let entry = format!("flow add match=ip,nw_src=10.0.0.{number} actions=group:{number}");
            if testbed.say(0, 1, &entry).is_empty() {
                testbed.say_beside(0, 1, &entry);
            }
        }
        testbed.find(0, 1, 2);
        testbed.take_received();
        assert_eq!(
            [1, 2, 3].map(|switch| testbed.groups(switch)),
            [groups; 3],
            "{before:?} {away:?}"
        );
        for number in 1..=3 {
            for (switch, port) in [(1, 1), (2, 3), (3, 4)] {
                let frame = packet(&format!("10.0.0.{number}>10.0.0.9"));
                let seen = testbed.send(0, switch, port, &frame);
                let beside = testbed.send_beside(0, switch, port, &frame);
                assert_eq!(seen, beside, "{before:?} {away:?}: {number} at {switch}");
            }
        }
    }
}

#[test]
fn a_packet_out_can_leave_by_ports_of_all_members() {
    both_versions(plans()).play(
        "
        red@1> out in_port=controller actions=output:1 data=10.0.0.1>10.0.0.2 -> red@1:1
        red@1> out in_port=controller actions=output:3 data=10.0.0.1>10.0.0.2 -> red@2:3
        red@1> out in_port=controller actions=output:4 data=10.0.0.1>10.0.0.2 -> red@3:4
        red@1> out in_port=3 actions=flood data=10.0.0.1>10.0.0.2 -> red@1:1 red@1:2 red@3:4
    ",
    );
}

#[test]
fn a_port_mod_holds_for_packets_from_all_members() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        say(&mut testbed, "flow add match=ip prio=5 actions=all");
        testbed.say_beside(0, 1, "flow add match=ip prio=5 actions=all");
        let frame = packet("10.0.0.1>10.0.0.2");
        for (port, bits) in [(4, 1), (3, 0x20), (4, 0), (1, 4), (3, 0), (1, 1), (2, 0x21), (1, 0)] {
            let words = format!("port_mod port={port} config={bits} mask=0x25");
            let received = testbed.say(0, 1, &words);
            let config = if bits == 0 { String::new() } else { format!(":{bits:#x}") };
            assert_eq!(received, [format!("PORT_STATUS MODIFY {port}{config}")], "{version:?}");
            testbed.say_beside(0, 1, &words);
            for (switch, port) in [(1, 1), (1, 2), (2, 3), (3, 4)] {
                let seen = testbed.send(0, switch, port, &frame);
                let beside = testbed.send_beside(0, switch, port, &frame);
                assert_eq!(seen, beside, "{version:?} {words}: from {port}");
            }
            assert_eq!(testbed.say(0, 1, "barrier").len(), 1, "{version:?}");
        }
    }
}

#[test]
fn a_reconnected_member_gets_the_port_configuration() {
    both_versions(plans()).play(
        "
        red@1> flow add match=ip prio=5 actions=all
        only red@1> port_mod port=1 config=0x20 mask=0x20 -> PORT_STATUS MODIFY 1:0x20
        lose red@1 2
        red@1< PORT_STATUS MODIFY 3
        only red@1> port_mod port=4 config=1 mask=1 -> PORT_STATUS MODIFY 4:0x1
        only red@1> port_mod port=3 config=4 mask=4 -> PORT_STATUS MODIFY 3:0x4
        only red@1> port_mod port=1 config=0 mask=0x20 -> PORT_STATUS MODIFY 1
        find red@1 2
        red@1< PORT_STATUS MODIFY 3:0x4
        only red@2:3> 10.0.0.1>10.0.0.2
        only red@1> port_mod port=3 config=0 mask=4 -> PORT_STATUS MODIFY 3
        only red@2:3> 10.0.0.1>10.0.0.2 -> red@1:1 red@1:2
        only red@1:1> 10.0.0.1>10.0.0.2 -> red@1:2 red@2:3
    ",
    );
}

#[test]
fn an_invalid_port_mod_gets_one_error() {
    both_versions(plans()).play(
        "
        note
        only red@1> port_mod port=4 config=1 mask=1 mac=02:00:00:00:00:09 -> ERROR OFPPMFC_BAD_HW_ADDR
        only red@1> port_mod port=9 config=1 mask=1 -> ERROR OFPPMFC_BAD_PORT
        as noted
        [1.0] only red@1> features -> FEATURES a1 tables=1 ports=1 2 3 4
        [1.3] red@1> stats port_desc -> STATS port_desc 1 2 3 4
    ",
    );
}

/// The counters of each bucket and each band are sums too.
#[test]
fn group_and_meter_counters_are_sums_over_all_members() {
    testbed(Version::V1_3).play(
        "
        red@1> group add id=1 type=all buckets=output:4|mod_nw_dst:10.0.0.9,output:4
        red@1> group add id=2 type=ff buckets=1@output:1|2@output:2
        red@1> meter add id=3
        red@1> flow add match=ip,in_port=1 prio=5 actions=group:1
        red@1> flow add match=ip,in_port=3 prio=5 actions=meter=3;group:1
        red@1> flow add match=ip,in_port=4 prio=5 actions=meter=3;group:2
        red@1:1> 10.0.0.1>10.0.0.2 -> red@3:4[10.0.0.1>10.0.0.9] red@3:4
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4[10.0.0.1>10.0.0.9] red@3:4
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4[10.0.0.1>10.0.0.9] red@3:4
        red@3:4> 10.0.0.1>10.0.0.2 -> red@1:1
        red@2:3> 10.0.0.1>10.0.0.2 -> red@3:4[10.0.0.1>10.0.0.9] red@3:4
        red@3:4> 10.0.0.1>10.0.0.2 -> red@1:1
        red@1> stats group -> STATS group 1:4(4 4) 2:2(2 0)
        red@1> stats meter -> STATS meter 3:5(0)
    ",
    );
}

/// One of the members has no room. The other members restore their state before the change, and the controller gets one
/// error.
#[test]
fn a_change_refused_by_one_member_is_undone_on_the_other_members() {
    // When the member has room again, the same change is accepted.
    for member in [1, 2, 3] {
        both_versions(plans()).play(&format!(
            "
            only red@1> flow add match=in_port=2 prio=4 actions=output:3
            note
            refuses {member} flows groups
            only red@1> flow add match=ip prio=5 actions=output:4
            [1.0] red@1< 7 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 7
            [1.3] red@1< 7 ERROR OFPFMFC_TABLE_FULL of type 14 xid 7
            only red@1> barrier -> BARRIER_REPLY
            as noted
            refuses {member}
            only red@1> flow add match=ip prio=5 actions=output:4
            only red@1> flow delete match=ip prio=5 actions=output:4
            as noted
            [1.3] refuses {member} flows groups
            [1.3] only red@1> group add id=1 type=all buckets=output:4 -> ERROR OFPGMFC_OUT_OF_GROUPS
            [1.3] only red@1> barrier -> BARRIER_REPLY
            [1.3] as noted
            [1.3] refuses {member}
            [1.3] only red@1> group add id=1 type=all buckets=output:4
            [1.3] only red@1> group delete id=1
            as noted
        "
        ));
    }
}

#[test]
fn a_restart_of_the_front_leaves_the_members_unchanged() {
    both_versions(plans()).play(
        "
        red@1> flow add match=ip prio=5 actions=all cookie=77
        only red@1> port_mod port=4 config=1 mask=1 -> PORT_STATUS MODIFY 4:0x1
        [1.3] red@1> group add id=1 type=all buckets=output:3
        [1.3] red@1> flow add match=arp prio=6 actions=group:1
        only red@1:1> 10.0.0.1>10.0.0.2 -> red@1:2 red@2:3
        note
        only red@1> stats flow
        [1.0] red@1< 7 STATS flow prio=5 ip cookie=0x4d n=1 all
        [1.3] red@1< 7 STATS flow prio=5 ip cookie=0x4d n=1 all; prio=6 arp n=0 group:1
        restart red@1
        as noted
        only red@1> stats flow
        [1.0] red@1< 7 STATS flow prio=5 ip cookie=0x4d n=1 all
        [1.3] red@1< 7 STATS flow prio=5 ip cookie=0x4d n=1 all; prio=6 arp n=0 group:1
        only red@1:1> 10.0.0.1>10.0.0.2 -> red@1:2 red@2:3
        [1.0] only red@1> features -> FEATURES a1 tables=1 ports=1 2 3 4:0x1
        [1.3] only red@1> stats port_desc -> STATS port_desc 1 2 3 4:0x1
        only red@1> port_mod port=4 config=0 mask=1 -> PORT_STATUS MODIFY 4
        only red@1:1> 10.0.0.1>10.0.0.2 -> red@1:2 red@2:3 red@3:4
        only red@1> flow delete match=
        only red@1:1> 10.0.0.1>10.0.0.2
        [1.0] red@1< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2
    ",
    );
}

#[test]
fn an_idle_timeout_check_does_not_wait_for_a_lost_member() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        say(&mut testbed, "flow add match=ip prio=5 actions=output:2 idle=4 flags=rem");
        let question = if version == Version::V1_0 { 16 } else { 18 };
        let frame = packet("10.0.0.1>10.0.0.2");
        testbed.wait(2);
        testbed.send(0, 2, 3, &frame);
        testbed.send(0, 3, 4, &frame);
        testbed.plant(2, vec![emulate::Fault::NeverAnswers { message_type: question }]);
        testbed.wait(3);
        testbed.lose(0, 1, 2);
        testbed.plant(2, Vec::new());
        testbed.send(0, 3, 4, &frame);
        let seen = testbed.send(0, 1, 1, &frame);
        assert_eq!(seen.delivered, [(0, 1, 2, frame.clone())], "{version:?}");
    }
}

/// The link of port 10 has no path, so the port is down and the entry has no packets.
#[test]
fn an_entry_for_an_ingress_port_without_a_link_times_out() {
    both_versions(vec![shared_ports::big_plan(0)]).play(
        "
        only cut red 2:10-3:10
        red@1< PORT_STATUS MODIFY 10
        red@3< PORT_STATUS MODIFY 10
        red@1> flow add match=in_port=10,ip prio=5 actions=output:1 idle=4 flags=rem
        wait 10
        red@1< FLOW_REMOVED prio=5 ip,in_port=10 cookie=0x0 IDLE_TIMEOUT n=0
    ",
    );
}

/// The controller sends 100 additions without waiting for replies. All additions are accepted.
#[test]
fn a_big_switch_accepts_more_changes_at_once_than_one_window() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        let add = |at| format!("flow add match=ip,nw_src=10.0.1.{at} prio=5 actions=output:4");
        let adds: Vec<String> = (0..100).map(add).collect();
        let adds: Vec<&str> = adds.iter().map(String::as_str).collect();
        assert_eq!(testbed.say_together(0, 1, &adds), [""; 0], "{version:?}");
        assert_eq!(testbed.say(0, 1, "barrier").len(), 1, "{version:?}");
        let flows = testbed.say(0, 1, "stats flow").concat();
        assert_eq!(flows.matches("prio=5").count(), 100, "{version:?}");
    }
}

/// The policy has a form of link labels for the tenant. The descriptions of the ports are the same as without this
/// form.
#[test]
fn ports_of_a_big_switch_have_no_link_labels() {
    use hypervisor::policy::LabelForm;
    for version in VERSIONS {
        let plan = Plan { edges: vec![(1, 1, 1), (2, 1, 2)], big: vec![1, 2], ..Plan::default() };
        // The request whose answer describes the ports.
        let ports = if version == Version::V1_0 { "features" } else { "stats port_desc" };
        let plain = Testbed::new(version, vec![plan.clone()]).say(0, 1, ports);
        for form in [LabelForm::OpenFlow10, LabelForm::OpenFlow13, LabelForm::Experimenter] {
            let plan = Plan { labels: Some(form), ..plan.clone() };
            let received = Testbed::new(version, vec![plan]).say(0, 1, ports);
            assert_eq!(received, plain, "{version:?} {form:?}");
        }
    }
}
