//! Tests of big switches: one virtual switch on several physical switches, its members. Counters, barriers, refusals
//! and the ends of entries are those of one switch. `networks` has the property that a big switch forwards as one
//! switch.

use crate::support::big_switches::{say, stage};
use crate::support::networks::both_say;
use crate::support::*;

#[test]
fn it_has_all_ports_and_one_datapath_id() {
    for version in VERSIONS {
        let mut stage = stage(version);
        let features = stage.say(0, 1, "features");
        assert_eq!(features.len(), 1);
        assert!(features[0].contains("a1"), "{version:?}: {features:?}");
        let ports = stage.say(0, 1, "stats port");
        assert_eq!(ports.len(), 1, "{version:?}: {ports:?}");
        for port in ["1", "2", "3", "4"] {
            assert!(ports[0].contains(port), "{version:?}: {ports:?}");
        }
    }
}

#[test]
fn an_entrys_counts_are_those_of_all_members() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=output:4");
        stage.say_beside(0, 1, "flow add match=ip prio=5 actions=output:4");
        for (switch, port) in [(1, 1), (1, 2), (2, 3), (2, 3)] {
            let frame = packet("10.0.0.1>10.0.0.2");
            let seen = stage.send(0, switch, port, &frame);
            assert_eq!(seen.delivered, [(0, 3, 4, frame.clone())], "{version:?}");
            assert_eq!(seen, stage.send_beside(0, switch, port, &frame));
        }
        for question in ["stats flow", "stats aggregate"] {
            let told = stage.say(0, 1, question);
            assert_eq!(told, stage.say_beside(0, 1, question), "{version:?}");
        }
    }
}

#[test]
fn all_members_are_asked_for_what_is_wanted() {
    let mut stage = stage(Version::V1_3);
    say(&mut stage, "flow add match=ip prio=5 actions=dec_ttl,output:4");
    say(&mut stage, "set_async in=7/0");
    stage.lose(0, 1, 2);
    stage.find(0, 1, 2);
    for (switch, port) in [(1, 1), (2, 3)] {
        let seen = stage.send(0, switch, port, &packet("ttl1:10.0.0.1>10.0.0.2"));
        let told = format!("PACKET_IN {port} INVALID_TTL 10.0.0.1>10.0.0.2");
        assert_eq!(seen.told, [(0, 1, told)]);
    }
}

#[test]
fn a_barrier_is_answered_once_and_behind_what_came_before() {
    for version in VERSIONS {
        let mut stage = stage(version);
        let told = stage.say(0, 1, "barrier");
        assert_eq!(told.len(), 1, "{version:?}: {told:?}");
        assert!(told[0].contains("BARRIER_REPLY"), "{version:?}: {told:?}");
    }
}

#[test]
fn what_a_member_refuses_is_refused_once_and_stands_nowhere() {
    for version in VERSIONS {
        let mut stage = stage(version);
        let before: Vec<_> = (1..=3).map(|switch| stage.entries(switch)).collect();
        let refused = stage.say(0, 1, "flow add match=ip prio=5 actions=output:9");
        assert_eq!(refused.len(), 1, "{version:?}: {refused:?}");
        assert!(refused[0].starts_with("7 ERROR"), "{version:?}: {refused:?}");
        let after: Vec<_> = (1..=3).map(|switch| stage.entries(switch)).collect();
        assert_eq!(before, after, "{version:?}");
        let flows = stage.say(0, 1, "stats flow");
        assert!(!flows.join("").contains("prio=5"), "{version:?}: {flows:?}");
    }
}

#[test]
fn a_deleted_entry_is_told_of_once_with_the_counts_of_all() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=output:4 flags=rem cookie=77");
        for (switch, port) in [(1, 1), (2, 3)] {
            stage.send(0, switch, port, &packet("10.0.0.1>10.0.0.2"));
        }
        let told = stage.say(0, 1, "flow delete match=");
        assert_eq!(told.len(), 1, "{version:?}: {told:?}");
        assert!(told[0].starts_with("FLOW_REMOVED"), "{version:?}: {told:?}");
        assert!(told[0].contains("n=2"), "{version:?}: {told:?}");
    }
}

#[test]
fn an_entry_is_idle_when_it_is_on_all_members() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=output:4 idle=4 flags=rem");
        stage.take_told();
        // One member has packets, the others have none: the entry lives on all.
        for _ in 0..6 {
            stage.wait(2);
            stage.send(0, 2, 3, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!(stage.take_told(), [], "{version:?}");
        }
        stage.wait(1);
        let frame = packet("10.0.0.1>10.0.0.2");
        let elsewhere = stage.send(0, 1, 1, &frame);
        assert_eq!(elsewhere.delivered, [(0, 3, 4, frame)], "{version:?}");
        stage.wait(12);
        let told = stage.take_told();
        assert_eq!(told.len(), 1, "{version:?}: {told:?}");
        assert!(told[0].2.starts_with("FLOW_REMOVED"), "{version:?}: {told:?}");
        assert!(told[0].2.contains("n=7"), "{version:?}: {told:?}");
        let flows = stage.say(0, 1, "stats flow").join("");
        assert!(!flows.contains("prio=5"), "{version:?}: {flows:?}");
    }
}

#[test]
fn an_entry_whose_time_is_over_ends_once() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=output:4 hard=3 flags=rem");
        say(&mut stage, "flow add match=in_port=3,ip prio=6 actions=output:4 hard=3 flags=rem");
        stage.send(0, 1, 1, &packet("10.0.0.1>10.0.0.2"));
        stage.send(0, 2, 3, &packet("10.0.0.1>10.0.0.2"));
        stage.take_told();
        stage.wait(6);
        let told = stage.take_told();
        assert_eq!(told.len(), 2, "{version:?}: {told:?}");
        assert!(told.iter().all(|(_, _, words)| words.contains("n=1")), "{told:?}");
    }
}

#[test]
fn a_lost_members_ports_are_down_and_it_is_filled_when_it_comes_back() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=in_port=1 prio=5 actions=output:2");
        stage.take_told();
        stage.lose(0, 1, 2);
        let told = stage.take_told();
        assert_eq!(told.len(), 1, "{version:?}: {told:?}");
        assert!(told[0].2.starts_with("PORT_STATUS"), "{version:?}: {told:?}");
        // The rest goes on, and changes.
        say(&mut stage, "flow delete match=");
        say(&mut stage, "flow add match=ip prio=6 actions=output:4");
        assert_eq!(stage.say(0, 1, "barrier").len(), 1);
        let frame = packet("10.0.0.1>10.0.0.2");
        assert_eq!(stage.send(0, 1, 1, &frame).delivered, [(0, 3, 4, frame.clone())]);
        stage.find(0, 1, 2);
        let told = stage.take_told();
        assert_eq!(told.len(), 1, "{version:?}: {told:?}");
        assert_eq!(stage.send(0, 2, 3, &frame).delivered, [(0, 3, 4, frame.clone())]);
        let flows = stage.say(0, 1, "stats flow").join("");
        assert!(flows.contains("prio=6") && !flows.contains("prio=5"), "{version:?}: {flows}");
    }
}

/// The member gets a group after all groups that the group sends to or watches, whatever their numbers are. Groups are
/// deleted in the reverse order.
#[test]
fn a_member_that_was_away_is_given_groups_in_order() {
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
        let mut stage = stage(Version::V1_3);
        before.iter().for_each(|words| say(&mut stage, words));
        stage.lose(0, 1, 2);
        away.iter().for_each(|words| say(&mut stage, words));
        if groups == 2 {
            say(&mut stage, "flow add match= prio=6 actions=group:1");
        }
        stage.find(0, 1, 2);
        stage.take_told();
        assert_eq!([1, 2, 3].map(|switch| stage.groups(switch)), [groups; 3], "{away:?}");
        let frame = packet("10.0.0.1>10.0.0.2");
        let seen = stage.send(0, 2, 3, &frame).delivered;
        let expected = if groups == 2 { vec![(0, 3, 4, frame)] } else { Vec::new() };
        assert_eq!(seen, expected, "{away:?}");
    }
}

/// Also groups that watch each other. No order puts each of them after the groups that it names.
#[test]
fn a_member_that_was_away_is_given_groups_that_name_each_other() {
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
        // Through a third.
        (vec![plain], vec![one, three, "group modify id=2 type=ff buckets=g3@output:4"], 3),
        (vec![], vec![one, two, three, "group modify id=1 type=ff buckets=g3@drop|4@output:4"], 3),
        // One sends to the other, which watches it.
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
        // What is watched is gone.
        (vec![], vec![one, two, circle, "group delete id=2"], 1),
        (vec![one], vec![two, "group delete id=1"], 1),
        (vec![one, two, circle], vec!["group delete id=1"], 1),
        (vec![one, two, circle], vec!["group delete id=all"], 0),
    ] {
        let mut stage = stage(Version::V1_3);
        before.iter().for_each(|words| both_say(&mut stage, 0, 1, words));
        stage.lose(0, 1, 2);
        away.iter().for_each(|words| both_say(&mut stage, 0, 1, words));
        for number in 1..=3 {
            let entry = format!("flow add match=ip,nw_src=10.0.0.{number} actions=group:{number}");
            if stage.say(0, 1, &entry).is_empty() {
                stage.say_beside(0, 1, &entry);
            }
        }
        stage.find(0, 1, 2);
        stage.take_told();
        assert_eq!(
            [1, 2, 3].map(|switch| stage.groups(switch)),
            [groups; 3],
            "{before:?} {away:?}"
        );
        for number in 1..=3 {
            for (switch, port) in [(1, 1), (2, 3), (3, 4)] {
                let frame = packet(&format!("10.0.0.{number}>10.0.0.9"));
                let seen = stage.send(0, switch, port, &frame);
                let beside = stage.send_beside(0, switch, port, &frame);
                assert_eq!(seen, beside, "{before:?} {away:?}: {number} at {switch}");
            }
        }
    }
}

#[test]
fn a_packet_out_leaves_by_any_members_port() {
    for version in VERSIONS {
        let mut stage = stage(version);
        for (port, switch) in [(1, 1), (3, 2), (4, 3)] {
            let words =
                format!("out in_port=controller actions=output:{port} data=10.0.0.1>10.0.0.2");
            let seen = stage.out(0, 1, &words);
            let to: Vec<_> = seen.delivered.iter().map(|(_, s, p, _)| (*s, *p)).collect();
            assert_eq!(to, [(switch, port)], "{version:?}");
        }
        let seen = stage.out(0, 1, "out in_port=3 actions=flood data=10.0.0.1>10.0.0.2");
        let to: Vec<_> = seen.delivered.iter().map(|(_, s, p, _)| (*s, *p)).collect();
        assert_eq!(to, [(1, 1), (1, 2), (3, 4)], "{version:?}");
    }
}

/// The configuration of a port holds for packets from all members.
#[test]
fn a_port_is_configured_on_all_members() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=all");
        stage.say_beside(0, 1, "flow add match=ip prio=5 actions=all");
        let frame = packet("10.0.0.1>10.0.0.2");
        for (port, bits) in [(4, 1), (3, 0x20), (4, 0), (1, 4), (3, 0), (1, 1), (2, 0x21), (1, 0)] {
            let words = format!("port_mod port={port} config={bits} mask=0x25");
            let told = stage.say(0, 1, &words);
            let config = if bits == 0 { String::new() } else { format!(":{bits:#x}") };
            assert_eq!(told, [format!("PORT_STATUS MODIFY {port}{config}")], "{version:?}");
            stage.say_beside(0, 1, &words);
            for (switch, port) in [(1, 1), (1, 2), (2, 3), (3, 4)] {
                let seen = stage.send(0, switch, port, &frame);
                let beside = stage.send_beside(0, switch, port, &frame);
                assert_eq!(seen, beside, "{version:?} {words}: from {port}");
            }
            assert_eq!(stage.say(0, 1, "barrier").len(), 1, "{version:?}");
        }
    }
}

#[test]
fn a_member_that_was_away_is_told_what_ports_are_configured_to() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=all");
        stage.say(0, 1, "port_mod port=1 config=0x20 mask=0x20");
        stage.lose(0, 1, 2);
        stage.say(0, 1, "port_mod port=4 config=1 mask=1");
        stage.say(0, 1, "port_mod port=3 config=4 mask=4");
        stage.say(0, 1, "port_mod port=1 config=0 mask=0x20");
        stage.find(0, 1, 2);
        stage.take_told();
        let frame = packet("10.0.0.1>10.0.0.2");
        assert_eq!(stage.send(0, 2, 3, &frame).delivered, [], "{version:?}");
        stage.say(0, 1, "port_mod port=3 config=0 mask=4");
        let to = |seen: Seen| -> Vec<_> { seen.delivered.iter().map(|it| (it.1, it.2)).collect() };
        assert_eq!(to(stage.send(0, 2, 3, &frame)), [(1, 1), (1, 2)], "{version:?}");
        assert_eq!(to(stage.send(0, 1, 1, &frame)), [(1, 2), (2, 3)], "{version:?}");
    }
}

#[test]
fn a_port_mod_that_cannot_be_is_refused_once() {
    for version in VERSIONS {
        let mut stage = stage(version);
        let before: Vec<_> = (1..=3).map(|switch| stage.entries(switch)).collect();
        for (words, code) in [
            ("port=4 config=1 mask=1 mac=02:00:00:00:00:09", "OFPPMFC_BAD_HW_ADDR"),
            ("port=9 config=1 mask=1", "OFPPMFC_BAD_PORT"),
        ] {
            let told = stage.say(0, 1, &format!("port_mod {words}"));
            assert_eq!(told.len(), 1, "{version:?}: {told:?}");
            assert!(told[0].starts_with(&format!("7 ERROR {code}")), "{version:?}: {told:?}");
        }
        let after: Vec<_> = (1..=3).map(|switch| stage.entries(switch)).collect();
        assert_eq!(before, after, "{version:?}");
        let asked = if version == Version::V1_0 { "features" } else { "stats port_desc" };
        assert!(!stage.say(0, 1, asked)[0].contains(":0x"), "{version:?}");
    }
}

/// The counters of a group or a meter are the sums over its members, for each bucket and each band.
#[test]
fn groups_and_meters_are_counted_on_all_members() {
    let mut stage = stage(Version::V1_3);
    for words in [
        "group add id=1 type=all buckets=output:4|mod_nw_dst:10.0.0.9,output:4",
        "group add id=2 type=ff buckets=1@output:1|2@output:2",
        "meter add id=3",
        "flow add match=ip,in_port=1 prio=5 actions=group:1",
        "flow add match=ip,in_port=3 prio=5 actions=meter=3;group:1",
        "flow add match=ip,in_port=4 prio=5 actions=meter=3;group:2",
    ] {
        say(&mut stage, words);
        assert_eq!(stage.say_beside(0, 1, words), Vec::<String>::new(), "{words}");
    }
    let frame = packet("10.0.0.1>10.0.0.2");
    for (switch, port) in [(1, 1), (2, 3), (2, 3), (3, 4), (2, 3), (3, 4)] {
        assert_eq!(stage.send(0, switch, port, &frame), stage.send_beside(0, switch, port, &frame));
    }
    for (question, counts) in [("stats group", "1:4(4 4) 2:2(2 0)"), ("stats meter", "3:5(0)")] {
        let told = stage.say(0, 1, question);
        assert_eq!(told, [format!("7 STATS {} {counts}", &question[6..])]);
    }
}

/// One of the physical switches has no room: the others restore their state before the change, and the controller gets
/// one error.
#[test]
fn what_one_member_alone_refuses_is_taken_back_on_the_others() {
    use emulate::Fault::{RefuseFlowMods, RefuseGroupMods};
    for version in VERSIONS {
        for member in [1, 2, 3] {
            let mut stage = stage(version);
            say(&mut stage, "flow add match=in_port=2 prio=4 actions=output:3");
            let everything =
                |stage: &Stage| (1..=3).map(|switch| stage.entries(switch)).collect::<Vec<_>>();
            let before = everything(&stage);
            stage.plant(member, vec![RefuseFlowMods { every: 1 }, RefuseGroupMods { every: 1 }]);
            let mut changes = vec!["flow add match=ip prio=5 actions=output:4"];
            if version == Version::V1_3 {
                changes.push("group add id=1 type=all buckets=output:4");
            }
            for words in changes {
                let told = stage.say(0, 1, words);
                assert_eq!(told.len(), 1, "{version:?} {member} {words}: {told:?}");
                assert!(told[0].starts_with("7 ERROR"), "{version:?} {member}: {told:?}");
                assert_eq!(stage.say(0, 1, "barrier").len(), 1);
                assert_eq!(everything(&stage), before, "{version:?} {member} {words}");
                // And once it has room it is as if nothing had been asked.
                stage.plant(member, Vec::new());
                say(&mut stage, words);
                stage.say(0, 1, &words.replace("add", "delete"));
                assert_eq!(everything(&stage), before, "{version:?} {member} {words}");
                stage
                    .plant(member, vec![RefuseFlowMods { every: 1 }, RefuseGroupMods { every: 1 }]);
            }
        }
    }
}

#[test]
fn a_restart_of_the_front_changes_nothing_on_the_members() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=all cookie=77");
        stage.say(0, 1, "port_mod port=4 config=1 mask=1");
        if version == Version::V1_3 {
            say(&mut stage, "group add id=1 type=all buckets=output:3");
            say(&mut stage, "flow add match=arp prio=6 actions=group:1");
        }
        let frame = packet("10.0.0.1>10.0.0.2");
        let seen = stage.send(0, 1, 1, &frame);
        let everything =
            |stage: &Stage| (1..=3).map(|switch| stage.entries(switch)).collect::<Vec<_>>();
        let (before, flows) = (everything(&stage), stage.say(0, 1, "stats flow"));
        stage.restart_front(0, 1);
        assert_eq!(everything(&stage), before, "{version:?}");
        assert_eq!(stage.say(0, 1, "stats flow"), flows, "{version:?}");
        assert_eq!(stage.send(0, 1, 1, &frame), seen, "{version:?}");
        let asked = if version == Version::V1_0 { "features" } else { "stats port_desc" };
        assert!(stage.say(0, 1, asked)[0].contains("1 2 3 4:0x1"), "{version:?}");
        // It goes on from there.
        stage.say(0, 1, "port_mod port=4 config=0 mask=1");
        assert_eq!(stage.send(0, 1, 1, &frame).delivered.len(), 3, "{version:?}");
        say(&mut stage, "flow delete match=");
        assert_eq!(stage.send(0, 1, 1, &frame).delivered, [], "{version:?}");
    }
}

#[test]
fn a_member_that_is_lost_while_it_is_asked_is_not_waited_for() {
    for version in VERSIONS {
        let mut stage = stage(version);
        say(&mut stage, "flow add match=ip prio=5 actions=output:2 idle=4 flags=rem");
        let question = if version == Version::V1_0 { 16 } else { 18 };
        let frame = packet("10.0.0.1>10.0.0.2");
        stage.wait(2);
        stage.send(0, 2, 3, &frame);
        stage.send(0, 3, 4, &frame);
        stage.plant(2, vec![emulate::Fault::NeverAnswers { message_type: question }]);
        stage.wait(3);
        stage.lose(0, 1, 2);
        stage.plant(2, Vec::new());
        stage.send(0, 3, 4, &frame);
        let seen = stage.send(0, 1, 1, &frame);
        assert_eq!(seen.delivered, [(0, 1, 2, frame.clone())], "{version:?}");
    }
}

/// Also an entry for a port that does not exist for some time.
#[test]
fn an_entry_ends_that_no_packet_can_come_to() {
    for version in VERSIONS {
        let plan = shared_ports::big_plan(0);
        let mut stage = Stage::new(version, vec![plan.clone()]);
        let link = plan.links[0];
        let port = link[0].1;
        stage.cut(0, vec![link], 2100);
        let words =
            format!("flow add match=in_port={port},ip prio=5 actions=output:1 idle=4 flags=rem");
        say(&mut stage, &words);
        stage.wait(10);
        let told = stage.take_told();
        assert!(told.iter().any(|it| it.2.starts_with("FLOW_REMOVED")), "{version:?}: {told:?}");
    }
}

/// The members answer in any order, not in the order of the requests.
#[test]
fn it_takes_more_than_a_window_of_changes() {
    for version in VERSIONS {
        let mut stage = stage(version);
        let add = |at| format!("flow add match=ip,nw_src=10.0.1.{at} prio=5 actions=output:4");
        let adds: Vec<String> = (0..100).map(add).collect();
        let adds: Vec<&str> = adds.iter().map(String::as_str).collect();
        assert_eq!(stage.say_together(0, 1, &adds), [""; 0], "{version:?}");
        assert_eq!(stage.say(0, 1, "barrier").len(), 1, "{version:?}");
        let flows = stage.say(0, 1, "stats flow").concat();
        assert_eq!(flows.matches("prio=5").count(), 100, "{version:?}");
    }
}

/// The tenant has a form of link labels. The ports of its big switch have no labels, as the ports of its other virtual
/// switches have none.
#[test]
fn its_ports_have_no_labels() {
    use hypervisor::policy::LabelForm;
    for version in VERSIONS {
        let plan = Plan { edges: vec![(1, 1, 1), (2, 1, 2)], big: vec![1, 2], ..Plan::default() };
        let plain = Stage::new(version, vec![plan.clone()]).say(0, 1, "features");
        for form in [LabelForm::OpenFlow10, LabelForm::OpenFlow13, LabelForm::Experimenter] {
            let plan = Plan { labels: Some(form), ..plan.clone() };
            let told = Stage::new(version, vec![plan]).say(0, 1, "features");
            assert_eq!(told, plain, "{version:?} {form:?}");
        }
    }
}
