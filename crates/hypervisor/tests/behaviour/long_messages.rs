//! Tests of rules, groups and replies that are long. Weir refuses a request whose rules have no room on the switch or
//! in a message. Long replies are complete, in several parts.

use crate::support::networks::two_networks;
use crate::support::*;
use openflow::Version;

const BOTH: [Version; 2] = [Version::V1_0, Version::V1_3];
const TOO_MANY: &str = "7 ERROR OFPBAC_TOO_MANY of type 14 xid 7";

fn list(action: &str, count: usize) -> String {
    vec![action; count].join(",")
}

fn rules(testbed: &Testbed, priority: u16) -> usize {
    let entries = testbed.entries(1);
    entries.iter().filter(|it| it.contains(&format!("prio={priority} "))).count()
}

/// A rule has more actions than the entry. An OUTPUT to a link becomes three actions: add a tag, OUTPUT, remove the
/// tag. In a slice, FLOOD becomes an OUTPUT to each port of the slice.
#[test]
fn an_entry_with_a_rule_too_long_for_a_message_is_refused() {
    for (version, fits, more) in [(Version::V1_0, 2000, 2100), (Version::V1_3, 1000, 1100)] {
        let mut testbed = Testbed::new(version, two_networks());
        let add = |count| {
            let actions = list("output:10,output:2", count);
            format!("flow add match=in_port=1 prio=5 actions={actions}")
        };
        assert_eq!(testbed.say(0, 1, &add(more)), [TOO_MANY], "{version:?}");
        let reply = testbed.say(0, 1, "stats flow").concat();
        assert!(!reply.contains("prio=") && rules(&testbed, 5) == 0, "{version:?}: {reply}");
        assert_eq!(testbed.say(0, 1, &add(fits)), [""; 0], "{version:?}");
        assert!(rules(&testbed, 5) > 0, "{version:?}");

        let modify =
            format!("flow modify match=in_port=1 actions={}", list("output:10,output:2", more));
        let before = testbed.entries(1);
        assert_eq!(testbed.say(0, 1, &modify), [TOO_MANY], "{version:?}");
        assert_eq!(testbed.entries(1), before, "{version:?}");
    }
    for version in BOTH {
        let ports = (1..=4).map(|port| format!("red: in_port={port}\n")).collect::<String>();
        let mut world = World::new(Setup::new(version, &format!("{ports}blue: in_port=5")));
        let red = world.connect("red");
        world.say(red, 7, &format!("flow add match=in_port=1 actions={}", list("flood", 3500)));
        assert_eq!(world.heard(red), [TOO_MANY], "{version:?}");
    }
}

/// Weir copies a packet for many hosts for each host, at each ingress port.
#[test]
fn an_entry_with_too_many_copies_for_hosts_at_shared_ports_is_refused() {
    let mut red = Plan { edges: vec![(1, 1, 1)], ..Plan::default() };
    for n in 0..40 {
        red.shared.push((1, 4, 7, [2, 0, 0, 0, 1, n]));
        red.shared.push((1, 3, 8, [2, 0, 0, 0, 2, n]));
    }
    let mut testbed = Testbed::new(Version::V1_0, vec![red]);
    for (count, expected) in [(4000, vec![TOO_MANY]), (4, vec![])] {
        let actions = list("all", count);
        let words = format!("flow add match=dl_dst=ff:ff:ff:ff:ff:ff prio=5 actions={actions}");
        assert_eq!(testbed.say(0, 1, &words), expected, "{count}");
    }
}

/// A long entry counts as several entries, also if one MODIFY makes many entries long.
#[test]
fn a_long_entry_counts_as_several_entries_for_the_limit() {
    for (version, full) in [(Version::V1_0, "ALL_TABLES_FULL"), (Version::V1_3, "TABLE_FULL")] {
        let mut world = World::new(Setup::new(version, "red entries=30: any"));
        let red = world.connect("red");
        for priority in 1..=20 {
            world.say(
                red,
                1,
                &format!("flow add match=in_port=1 prio={priority} actions=output:2"),
            );
        }
        assert_eq!(world.heard(red), [""; 0], "{version:?}");
        let of = |count| format!("flow modify actions={}", list("output:2", count));
        world.say(red, 7, &of(200));
        let refused = format!("7 ERROR OFPFMFC_{full} of type 14 xid 7");
        assert_eq!(world.heard(red), [refused], "{version:?}");
        world.say(red, 8, &of(20));
        assert_eq!(world.heard(red), [""; 0], "{version:?}");
        world.say(red, 9, "flow delete match=in_port=1");
        world.say(red, 10, &format!("flow add actions={}", list("output:2", 800)));
        assert_eq!(world.heard(red), [""; 0], "{version:?}");
    }
}

/// The MODIFY needs about 50 rules for each of 700 entries. The limit must stop Weir early, because other tenants wait
/// while Weir makes the rules.
#[test]
fn a_modify_that_needs_too_many_rules_is_refused_and_changes_no_rule() {
    let plan = Plan {
        edges: vec![(1, 1, 1), (2, 1, 1)],
        links: (10..60).map(|port| [(1, port), (2, port)]).collect(),
        ..Plan::default()
    };
    let mut testbed = Testbed::new(Version::V1_3, vec![plan]);
    for number in 0..700 {
        let source = format!("10.1.{}.{}", number >> 8, number & 255);
        testbed.say(0, 1, &format!("flow add match=ip,nw_src={source} prio=7 actions=drop"));
    }
    let before = testbed.entries(1);
    let received = testbed.say(0, 1, "flow modify actions=in_port");
    assert_eq!(received, ["7 ERROR OFPFMFC_TABLE_FULL of type 14 xid 7"]);
    assert_eq!(testbed.entries(1), before);
}

#[test]
fn long_entries_are_reported_in_several_parts() {
    for (version, count) in [(Version::V1_0, 3700), (Version::V1_3, 1900)] {
        let mut testbed = Testbed::new(version, two_networks());
        for priority in 5..=16 {
            let actions = list("output:2", count);
            let words = format!("flow add match=in_port=1 prio={priority} actions={actions}");
            assert_eq!(testbed.say(0, 1, &words), [""; 0], "{version:?}");
        }
        let parts = testbed.say(0, 1, "stats flow");
        let entries: usize = parts.iter().map(|part| part.matches("prio=").count()).sum();
        assert_eq!(entries, 12, "{version:?}");
    }
}

/// Weir refuses a group that does not fit into a statistics reply. So Weir can report all existing groups.
#[test]
fn groups_too_long_for_a_statistics_reply_are_refused() {
    let mut world = World::new(Setup::new(Version::V1_3, "red: any"));
    let red = world.connect("red");
    // The description of this group has 65,528 bytes. A description is longer than the GROUP_MOD of the group.
    let long = list("mod_dl_src:02.00.00.00.00.01", 4093);
    let group = |id: u32, buckets: &str| format!("group add id={id} buckets={buckets}");
    world.say(red, 7, &group(1, &format!("{long},dec_ttl")));
    let out_of_buckets = "7 ERROR OFPGMFC_OUT_OF_BUCKETS of type 15 xid 7";
    assert_eq!(world.heard(red), [out_of_buckets]);
    world.say(red, 7, &group(3, &vec!["drop"; 4093].join("|")));
    assert_eq!(world.heard(red), [out_of_buckets]);
    assert!(!world.south_types().contains(&15), "the switch has refused it");
    world.say(red, 6, &group(4, &vec!["drop"; 4092].join("|")));
    assert!(world.south_types().contains(&15), "4,092 buckets: the switch itself has no room");
    assert_eq!(world.heard(red).len(), 1);
    world.say(red, 7, &group(1, &long));
    world.say(red, 8, &group(2, "output:1"));
    world.say(red, 9, &group(3, &vec!["drop"; 200].join("|")));
    world.say(red, 10, "stats group_desc");
    world.say(red, 11, "stats group");
    let heard = world.heard(red);
    assert!(
        heard[0].starts_with("10 STATS group_desc 1:") && heard[0].ends_with('+'),
        "{}",
        &heard[0][..40]
    );
    assert!(heard.iter().any(|it| it.contains("2:output:1")));
    assert!(heard.last().unwrap().starts_with("11 STATS group"));
}

/// On 1.0, one message must contain all ports of the switch. If the message has no room for all ports, Weir sends an
/// error.
#[test]
fn a_features_request_with_too_many_ports_gets_an_error_on_1_0() {
    let mut world = World::new(Setup { ports: 1364, ..Setup::new(Version::V1_0, "red: any") });
    let red = world.connect("red");
    world.say(red, 7, "features");
    assert!(world.heard(red)[0].starts_with("7 FEATURES 2a tables=1 ports=1 2 "));
    happen(&mut world, "add 1365");
    assert_eq!(world.heard(red), ["PORT_STATUS ADD 1365"]);
    world.say(red, 8, "features");
    assert_eq!(world.heard(red), ["8 ERROR OFPBRC_BAD_LEN of type 5 xid 8"]);
    happen(&mut world, "remove 1365");
    world.heard(red);
    world.say(red, 9, "features");
    assert!(world.heard(red)[0].starts_with("9 FEATURES 2a tables=1 ports=1 2 "));
}

#[test]
fn long_groups_are_reported_in_several_parts() {
    let mut testbed = Testbed::new(Version::V1_3, two_networks());
    let buckets = vec![list("mod_dl_src:02.00.00.00.00.01", 30); 100].join("|");
    for id in 1..=3 {
        let words = format!("group add id={id} type=all buckets={buckets}");
        assert_eq!(testbed.say(0, 1, &words), [""; 0]);
    }
    let parts = testbed.say(0, 1, "stats group_desc");
    assert_eq!(parts.len(), 3, "{}", parts.len());
}
