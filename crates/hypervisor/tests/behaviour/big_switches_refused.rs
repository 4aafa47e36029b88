//! Tests of members of a big switch that refuse a request while more requests for the same entry, group or port are in
//! flight. The refused change is on no member, and the later changes are on all members.

use crate::support::big_switches::{everything, reached, say, testbed};
use crate::support::*;
use emulate::Fault::RefuseOnce;
use proptest::prelude::*;

#[test]
fn an_entry_with_two_refused_changes_is_on_no_member() {
    let add = "flow add match=ip prio=5 actions=output:9";
    for version in VERSIONS {
        for second in [add, "flow modify_strict match=ip prio=5 actions=output:9"] {
            let mut testbed = testbed(version);
            let before = everything(&testbed);
            let received = testbed.say_together(0, 1, &[add, second]);
            assert!(
                received.iter().all(|it| it.starts_with("7 ERROR")),
                "{version:?}: {received:?}"
            );
            assert_eq!(everything(&testbed), before, "{version:?} {second}");
        }
        for member in [1, 2, 3] {
            let mut testbed = testbed(version);
            let before = everything(&testbed);
            testbed.plant(member, vec![RefuseOnce { nth: 1 }]);
            let good = "flow add match=ip prio=5 actions=output:4";
            let received = testbed.say_together(0, 1, &[good, add]);
            assert_eq!(received.len(), 2, "{version:?}: {received:?}");
            assert_eq!(everything(&testbed), before, "{version:?} {member}");
            assert_eq!(reached(&mut testbed), vec![Vec::<u32>::new(); 4], "{version:?} {member}");
        }
    }
}

#[test]
fn an_entry_is_restored_to_the_state_before_two_refused_changes() {
    for version in VERSIONS {
        for member in [1, 2, 3] {
            let mut testbed = testbed(version);
            say(&mut testbed, "flow add match=ip prio=5 actions=output:4");
            let before = reached(&mut testbed);
            testbed.plant(member, vec![RefuseOnce { nth: 1 }]);
            let changes = [
                "flow add match=ip prio=5 actions=output:3",
                "flow modify match=ip actions=output:9",
            ];
            let received = testbed.say_together(0, 1, &changes);
            assert_eq!(received.len(), 2, "{version:?}: {received:?}");
            assert_eq!(reached(&mut testbed), before, "{version:?} {member}");
        }
    }
}

#[test]
fn an_entry_deleted_after_a_refused_change_stays_deleted() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        let before = everything(&testbed);
        say(&mut testbed, "flow add match=ip prio=5 actions=output:4 flags=rem");
        let changes = ["flow modify match=ip actions=output:9", "flow delete match="];
        let received = testbed.say_together(0, 1, &changes);
        assert_eq!(received.len(), 2, "{version:?}: {received:?}");
        assert!(
            received.iter().any(|it| it.starts_with("FLOW_REMOVED")),
            "{version:?}: {received:?}"
        );
        assert_eq!(everything(&testbed), before, "{version:?}");
    }
}

#[test]
fn a_group_has_the_buckets_of_the_last_accepted_change() {
    let four = "group add id=1 buckets=output:4";
    let (bad, three) = ("group modify id=1 buckets=output:9", "group modify id=1 buckets=output:3");
    for (changes, to) in [(vec![bad, three], 3), (vec![three, bad], 3), (vec![bad, bad], 4)] {
        let mut testbed = testbed(Version::V1_3);
        say(&mut testbed, four);
        say(&mut testbed, "flow add match=ip prio=5 actions=group:1");
        testbed.say_together(0, 1, &changes);
        let others = |port: u32| if port == to { vec![] } else { vec![to] };
        assert_eq!(reached(&mut testbed), [1, 2, 3, 4].map(others), "{changes:?}");
    }
}

#[test]
fn a_refused_group_with_a_later_modification_is_on_no_member() {
    for member in [1, 2, 3] {
        let mut testbed = testbed(Version::V1_3);
        testbed.plant(member, vec![RefuseOnce { nth: 1 }]);
        let add = "group add id=1 buckets=output:4";
        let received = testbed.say_together(0, 1, &[add, "group modify id=1 buckets=output:3"]);
        assert_eq!(received.len(), 2, "{member}: {received:?}");
        assert_eq!([1, 2, 3].map(|switch| testbed.groups(switch)), [0; 3], "{member}");
        say(&mut testbed, add);
        assert_eq!([1, 2, 3].map(|switch| testbed.groups(switch)), [1; 3], "{member}");
    }
}

#[test]
fn a_refused_port_mod_does_not_configure_the_port() {
    for version in VERSIONS {
        let bad = "port_mod port=4 config=1 mask=1 mac=02:00:00:00:00:09";
        let also_bad = "port_mod port=4 config=0x20 mask=0x20 mac=02:00:00:00:00:09";
        let good = "port_mod port=4 config=4 mask=4";
        for (changes, config) in [(vec![bad, also_bad], ""), (vec![bad, good], ":0x4")] {
            let mut testbed = testbed(version);
            let received = testbed.say_together(0, 1, &changes);
            assert_eq!(received.len(), 2, "{version:?}: {received:?}");
            let asked = if version == Version::V1_0 { "features" } else { "stats port_desc" };
            let received = testbed.say(0, 1, asked);
            assert_eq!(
                received[0].contains("4:0x4"),
                config == ":0x4",
                "{version:?}: {received:?}"
            );
            assert_eq!(
                received[0].matches(":0x").count(),
                config.matches(':').count(),
                "{received:?}"
            );
            say(&mut testbed, "flow add match=ip prio=5 actions=output:2");
            let at_four = if config.is_empty() { vec![2] } else { Vec::new() };
            assert_eq!(reached(&mut testbed), [vec![2], vec![], vec![2], at_four], "{version:?}");
        }
    }
}

/// A member refuses an addition while the front is disconnected. Weir undoes the addition on the other members, and the
/// next front sends the addition again.
#[test]
fn an_entry_refused_while_the_front_restarts_is_later_on_all_members() {
    for version in VERSIONS {
        for member in [1, 2, 3] {
            let mut testbed = testbed(version);
            testbed.plant(member, vec![RefuseOnce { nth: 1 }]);
            testbed.restart_front_behind(0, 1, &["flow add match=ip prio=5 actions=output:4"]);
            let at_four = vec![vec![4], vec![4], vec![4], vec![]];
            assert_eq!(reached(&mut testbed), at_four, "{version:?} {member}");

            let mut testbed = self::testbed(version);
            say(&mut testbed, "flow add match=ip prio=5 actions=output:4");
            testbed.plant(member, vec![RefuseOnce { nth: 1 }]);
            testbed.restart_front_behind(0, 1, &["flow add match=ip prio=5 actions=output:3"]);
            let at_three = vec![vec![3], vec![3], vec![], vec![3]];
            assert_eq!(reached(&mut testbed), at_three, "{version:?} {member}");
        }
    }
}

/// Member 2 answers no barrier for 30 seconds. Weir asks the member again.
#[test]
fn a_front_restarts_although_a_member_does_not_answer_in_time() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        let words = "flow add match=ip prio=5 actions=output:4";
        testbed.restart_front_past(0, 1, (2, 30), &[words]);
        assert_eq!(reached(&mut testbed), [vec![4], vec![4], vec![4], vec![]], "{version:?}");
    }
}

#[test]
fn a_group_refused_while_the_front_restarts_is_later_on_all_members() {
    for member in [1, 2, 3] {
        let mut testbed = testbed(Version::V1_3);
        testbed.plant(member, vec![RefuseOnce { nth: 1 }]);
        testbed.restart_front_behind(0, 1, &["group add id=1 buckets=output:4"]);
        assert_eq!([1, 2, 3].map(|switch| testbed.groups(switch)), [1; 3], "{member}");
    }
}

/// The new session uses the same xids as the old session.
#[test]
fn errors_for_the_old_session_of_the_front_are_not_sent_to_the_new_session() {
    for version in VERSIONS {
        let mut testbed = testbed(version);
        say(&mut testbed, "flow add match=ip prio=5 actions=output:4");
        let bad = "out in_port=controller actions=output:9 data=10.0.0.1>10.0.0.2";
        let refused = testbed.errors_to_front(0, 1);
        testbed.restart_front_behind(0, 1, &[bad; 9]);
        assert_eq!(testbed.errors_to_front(0, 1), refused, "{version:?}");
        let at_four = vec![vec![4], vec![4], vec![4], vec![]];
        assert_eq!(reached(&mut testbed), at_four, "{version:?}");
    }
}

/// One member refuses a change of the entry, and another member refuses to restore the old entry. The controller gets
/// an error and a FLOW_REMOVED.
#[test]
fn a_failed_restoration_on_one_member_removes_the_entry_from_all_members() {
    for version in VERSIONS {
        for (refuses, keeps) in [(1, 2), (1, 3), (2, 3), (3, 2)] {
            let mut testbed = testbed(version);
            let before = everything(&testbed);
            say(&mut testbed, "flow add match=ip prio=5 actions=output:4 idle=60 flags=rem");
            testbed.plant(refuses, vec![RefuseOnce { nth: 1 }]);
            testbed.plant(keeps, vec![RefuseOnce { nth: 2 }]);
            let add = "flow add match=ip prio=5 actions=output:3 flags=rem";
            let mut received = testbed.say_together(0, 1, &[add, "barrier"]);
            received.sort();
            assert_eq!(received.len(), 3, "{version:?} {refuses} {keeps}: {received:?}");
            assert!(received[1].starts_with("7 ERROR"), "{version:?}: {received:?}");
            assert!(received[2].starts_with("FLOW_REMOVED"), "{version:?}: {received:?}");
            assert_eq!(everything(&testbed), before, "{version:?} {refuses} {keeps}");
            let flows = testbed.say(0, 1, "stats flow").concat();
            assert!(!flows.contains("prio=5"), "{version:?} {refuses} {keeps}: {flows}");
        }
    }
}

/// For each refused change, Weir sends one barrier to each member. The number does not depend on the barriers of the
/// front that wait for the change.
#[test]
fn refused_changes_need_few_barriers_when_many_barriers_are_in_flight() {
    for (version, barrier) in [(Version::V1_0, 18), (Version::V1_3, 20)] {
        let mut testbed = testbed(version);
        let adds: Vec<String> = (0..200)
            .map(|at| format!("flow add match=ip,nw_src=10.0.1.{at} prio=5 actions=output:9"))
            .collect();
        let all: Vec<&str> = adds.iter().flat_map(|add| [add, "barrier"]).collect();
        let before = testbed.sent(2, barrier);
        let received = testbed.say_together(0, 1, &all);
        assert_eq!(received.len(), 400, "{version:?}");
        let sent = testbed.sent(2, barrier) - before;
        assert!(sent < 1_000, "{version:?}: {sent}");
    }
}

/// Changes that the controller sends together, and the member that refuses the first addition or GROUP_MOD, or `None`.
type Burst = (Vec<String>, Option<u64>);

fn change(kinds: &'static [&'static str], to: &'static [u32]) -> impl Strategy<Value = String> {
    let words = (prop::sample::select(kinds), prop::sample::select(to));
    words.prop_map(|(words, to)| words.replace('?', &to.to_string()))
}

fn bursts(kinds: &'static [&'static str]) -> impl Strategy<Value = Vec<Burst>> {
    let refused = prop::collection::vec(change(kinds, &[3, 4]), 1..5);
    let refused = (refused, (1_u64..4).prop_map(Some));
    let wrong = (prop::collection::vec(change(kinds, &[3, 4, 9]), 1..5), Just(None));
    prop::collection::vec(prop_oneof![refused, wrong], 1..5)
}

/// Asserts after each burst that all members forward as the replies to the controller say. At the end the controller
/// deletes its entries and groups, and the members have no other rules.
fn agrees(version: Version, bursts: &[Burst]) -> Result<(), TestCaseError> {
    let mut testbed = testbed(version);
    let nothing = everything(&testbed);
    for (changes, refuses) in bursts {
        if let Some(member) = refuses {
            testbed.plant(*member, vec![RefuseOnce { nth: 1 }]);
        }
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        testbed.say_together(0, 1, &changes);
        testbed.plant(refuses.unwrap_or(1), Vec::new());
        let mut reply = testbed.say(0, 1, "stats flow").concat();
        if reply.contains("group:1") {
            reply = testbed.say(0, 1, "stats group_desc").concat();
        }
        let to: Vec<u32> =
            (1..=4).filter(|port| reply.contains(&format!("output:{port}"))).collect();
        let reached = reached(&mut testbed);
        for (from, reached) in (1..).zip(&reached) {
            let expected: Vec<u32> = to.iter().copied().filter(|to| *to != from).collect();
            prop_assert_eq!(reached, &expected, "{:?} after {:?}: {}", version, changes, reply);
        }
    }
    testbed.say(0, 1, "flow delete match=");
    if version == Version::V1_3 {
        testbed.say(0, 1, "group delete id=all");
        prop_assert_eq!([1, 2, 3].map(|switch| testbed.groups(switch)), [0; 3]);
    }
    prop_assert_eq!(everything(&testbed), nothing);
    Ok(())
}

const ENTRY: &[&str] = &[
    "flow add match=ip prio=5 actions=output:?",
    "flow add match=ip prio=5 idle=60 actions=output:?",
    "flow modify_strict match=ip prio=5 actions=output:?",
    "flow delete match=",
];
const GROUP: &[&str] = &[
    "group add id=1 buckets=output:?",
    "group modify id=1 buckets=output:?",
    "group delete id=1",
    "flow add match=ip prio=5 actions=group:1",
];

proptest! {
    #[test]
    fn members_agree_on_entries_after_refusals(bursts in bursts(ENTRY)) {
        for version in VERSIONS {
            agrees(version, &bursts)?;
        }
    }

    #[test]
    fn members_agree_on_groups_after_refusals(bursts in bursts(GROUP)) {
        agrees(Version::V1_3, &bursts)?;
    }
}
