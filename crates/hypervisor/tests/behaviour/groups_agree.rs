//! Tests of groups, of entries that use groups, and of ports. After random requests, refusals and changes of the map,
//! the virtual tables, the switch and the store agree. Named cases are sequences that failed in earlier random tests.

use crate::support::hairpin::{hairpin_map, map_without_hairpin, policy_on};
use crate::support::shared_ports::{host, plan};
use crate::support::*;
use emulate::Fault;
use fabric::embedding::SwitchMap;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

#[derive(Clone, Debug)]
enum Step {
    Say(bool, String),
    Refuse(u32),
    Wait(u64),
    Crowded(bool),
}

/// Random steps of tenants with several links at one physical port.
fn step() -> impl Strategy<Value = Step> {
    let output = prop::sample::select(vec![
        "output:1",
        "output:10",
        "output:11",
        "in_port",
        "flood",
        "strip_vlan,output:10",
        "group:1",
        "group:2",
        "group:3",
        "drop",
    ]);
    let what = prop::sample::select(vec!["add", "add", "modify", "modify", "delete"]);
    let watched = prop::sample::select(vec!["g1@", "g2@", "10@"]);
    let watching = (watched, output.clone()).prop_map(|(watched, it)| format!("{watched}{it}"));
    let buckets = prop_oneof![
        4 => vec(output, 1..3).prop_map(|buckets| buckets.join("|")),
        1 => vec(watching, 1..3).prop_map(|buckets| format!("{} type=ff", buckets.join("|"))),
    ];
    let group = (any::<bool>(), what, 1..5u32, buckets).prop_map(|(blue, what, id, buckets)| {
        let id = if id == 4 { "all".to_owned() } else { id.to_string() };
        let id = if id == "all" && what != "delete" { "3".to_owned() } else { id };
        let buckets = if what == "delete" { String::new() } else { buckets };
        Step::Say(blue, format!("group {what} id={id} buckets={buckets}"))
    });
    let what = prop::sample::select(vec!["add", "add", "modify", "delete"]);
    let actions = prop::sample::select(vec![
        "group:1",
        "group:2",
        "group:3",
        "output:10",
        "output:1",
        "write=group:1",
        "write=group:2;goto=1",
        "write=output:10;goto=1",
        "write=in_port;goto=1",
    ]);
    let match_ = prop::sample::select(vec!["ip prio=5", "ip,in_port=10 prio=6", "arp prio=7"]);
    let flow = (any::<bool>(), what, match_, actions).prop_map(|(blue, what, match_, actions)| {
        Step::Say(blue, format!("flow {what} match={match_} actions={actions}"))
    });
    // An entry of table 1 has several rules on the switch: for packets with a group in the action set, and for packets
    // without.
    let actions = prop::sample::select(vec![
        "write=output:10",
        "write=in_port;goto=2",
        "clear;write=output:10;goto=2",
        "write=group:1",
        "output:1",
    ]);
    let what = prop::sample::select(vec!["add", "modify"]);
    let time = prop::sample::select(vec!["", "", "", " idle=1", " idle=1 hard=3"]);
    let later = (any::<bool>(), what, actions, time).prop_map(|(blue, what, actions, time)| {
        Step::Say(blue, format!("flow {what} match=ip prio=5 table=1 actions={actions}{time}"))
    });
    prop_oneof![
        6 => group,
        4 => flow,
        2 => later,
        2 => (1..12u32).prop_map(Step::Refuse),
        1 => prop_oneof![4 => 0..100u64, 1 => 0..4_000u64].prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Crowded),
    ]
}

/// Random steps of tenants with shared edge ports. Some entries have no destination address, neither in the match nor
/// in the actions.
fn sharing_step() -> impl Strategy<Value = Step> {
    let output = prop::sample::select(vec![
        "output:1",
        "output:7",
        "output:8",
        "output:9",
        "in_port",
        "flood",
        "mod_dl_dst:02.00.00.00.10.01,flood",
        "mod_dl_dst:ff.ff.ff.ff.ff.ff,output:7",
        "group:1",
        "group:2",
        "mod_dl_dst:02.00.00.00.10.02,group:3",
    ]);
    let what = prop::sample::select(vec!["add", "add", "modify", "modify", "delete"]);
    let buckets = vec(output, 1..3).prop_map(|buckets| buckets.join("|"));
    let group = (any::<bool>(), what, 1..4u32, buckets).prop_map(|(blue, what, id, buckets)| {
        let buckets = if what == "delete" { String::new() } else { buckets };
        Step::Say(blue, format!("group {what} id={id} type=all buckets={buckets}"))
    });
    let what = prop::sample::select(vec!["add", "add", "modify", "delete"]);
    let actions = prop::sample::select(vec![
        "group:1",
        "group:2",
        "group:3",
        "flood",
        "write=group:1",
        "write=group:2;goto=1",
        "write=output:1;goto=1",
        "write=output:8;goto=1",
        "flood;write=flood;goto=1",
        "write=mod_dl_dst:02.00.00.00.10.01;goto=1",
        "flood;goto=1",
        "output:7,output:7",
        "in_port,output:8;write=output:1;goto=1",
        "output:9,output:8,mod_dl_src:02.00.00.00.00.77,output:1",
    ]);
    let match_ = prop::sample::select(vec![
        "ip prio=4",
        "in_port=7 prio=4",
        "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00 prio=5",
        "dl_dst=02:00:00:00:10:01 prio=5",
        "dl_dst=02:00:00:00:10:02 prio=5",
        "dl_dst=ff:ff:ff:ff:ff:ff prio=6",
        "in_port=7,dl_dst=ff:ff:ff:ff:ff:ff prio=7",
        "arp prio=8",
    ]);
    let flow = (any::<bool>(), what, match_, actions).prop_map(|(blue, what, match_, actions)| {
        Step::Say(blue, format!("flow {what} match={match_} actions={actions}"))
    });
    let what = prop::sample::select(vec!["add", "add", "modify", "delete"]);
    let actions = prop::sample::select(vec![
        "flood",
        "output:7",
        "output:9;write=output:1",
        "write=output:8",
        "write=group:1",
        "output:1",
        "clear;flood",
        "mod_dl_dst:02.00.00.00.10.02,output:1",
        "clear;mod_dl_dst:02.00.00.00.10.02,flood",
    ]);
    let match_ = prop::sample::select(vec!["", "dl_dst=02:00:00:00:10:01", "arp"]);
    // Some entries have hundreds of rules. A slow switch cannot install so many rules again each second, so the idle
    // timeout is longer.
    let time = prop::sample::select(vec!["", "", "", " idle=5"]);
    let later = (any::<bool>(), what, match_, actions, time).prop_map(
        |(blue, what, match_, actions, time)| {
            let words = format!("flow {what} match={match_} prio=5 table=1 actions={actions}");
            Step::Say(blue, format!("{words}{time}"))
        },
    );
    prop_oneof![
        6 => group,
        6 => flow,
        4 => later,
        2 => (1..20u32).prop_map(Step::Refuse),
        1 => prop_oneof![4 => 0..100u64, 1 => 0..4_000u64].prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Crowded),
    ]
}

/// The two maps between which a sequence of steps changes. The first map has more links or hosts at ports of the switch
/// than the second map.
type Maps = fn() -> [SwitchMap; 2];

fn linked() -> [SwitchMap; 2] {
    [hairpin_map(), map_without_hairpin()]
}

/// Two maps with shared edge ports: one with an additional host at an additional port, and one without one of the
/// hosts.
fn sharing() -> [SwitchMap; 2] {
    let plan = |tenant, is_crowded: bool| {
        let mut plan = plan(tenant);
        if is_crowded {
            plan.shared.push((1, 4, 9, host(tenant, 4)));
        } else {
            plan.shared.retain(|it| it.3 != host(tenant, 2));
        }
        plan
    };
    let map = |is| Testbed::maps_from(2000, &[plan(0, is), plan(1, is)]).0.remove(&1).unwrap();
    [true, false].map(map)
}

/// The random sequences are the same in each run, unless the environment sets other values, for example
/// `PROPTEST_CASES=20000` and `PROPTEST_RNG_SEED=7`.
fn configs() -> Vec<ProptestConfig> {
    let default = || ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let seeded =
        |seed| ProptestConfig { rng_seed: RngSeed::Fixed(seed), cases: 1_000, ..default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => vec![default()],
        None => [5, 11, 22].map(seeded).into(),
    }
}

/// After random requests, refusals and changes of the map, a new connection of the switch changes no group, no rule and
/// no entry. After all deletions, the switch has no group and the store is empty.
#[test]
fn tables_switch_and_store_agree_on_groups_when_no_message_is_in_flight() {
    all_agree(linked, step);
}

/// On shared edge ports, a group has further instances for hosts.
#[test]
fn tables_switch_and_store_agree_on_groups_with_shared_edge_ports() {
    all_agree(sharing, sharing_step);
}

fn all_agree<S: Strategy<Value = Step>>(maps: Maps, step: fn() -> S) {
    for config in configs() {
        let courses = (vec(step(), 1..30), any::<bool>());
        let mut runner = TestRunner::new(config);
        let checked = runner.run(&courses, |(steps, slow)| at_rest(maps, &steps, slow));
        checked.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Sequences that failed in random tests. Each sequence runs twice, the second time with exchanged tenants.
#[test]
fn tables_switch_and_store_agree_after_sequences_that_failed_before() {
    for course in [
        // The switch reports the removal of rules of an entry that Weir has given up, and that Weir has restored
        // meanwhile.
        "flow add match=arp prio=7 actions=output:10; group add id=1 buckets=output:10; refuse 4; \
         flow add match=arp prio=7 actions=write=group:1; wait 4",
        // The switch reports the removal of rules that were removed with a group. Meanwhile the entry has other rules.
        "group add id=1 buckets=output:1; group modify id=1 buckets=output:10; \
         flow add match=ip prio=5 actions=group:1; group delete id=all buckets=; \
         group add id=1 buckets=output:1; refuse 8; wait 8",
        // The switch refuses a change of an entry that Weir has given up.
        "group add id=2 buckets=in_port; flow add match=ip,in_port=10 prio=6 actions=output:10; \
         flow modify match=ip prio=5 actions=group:2; refuse 4; wait 4",
        // Weir restores an entry after a refusal, but the entry's group has been deleted meanwhile.
        "group add id=2 buckets=in_port; flow add match=ip prio=5 actions=group:2; wait 7; refuse 1; \
         flow add match=ip prio=5 actions=output:10; group delete id=2 buckets=; wait 5",
        // The deletion of a group removes an entry. Then the switch refuses the change that made the entry use the
        // group.
        "group add id=1 buckets=in_port; flow add match=ip,in_port=10 prio=6 actions=output:10; \
         flow add match=ip,in_port=10 prio=6 actions=group:1; wait 4; group delete id=1 buckets=; \
         refuse 2; wait 2",
        // A group gets an instance back after a refusal. Weir sends the groups and entries that use the group again.
        "group add id=3 buckets=in_port; group modify id=3 buckets=output:10; refuse 5; \
         group add id=1 buckets=in_port|group:3; wait 5",
        // The switch refuses an entry that has got other rules by a change of its group.
        "group add id=3 buckets=drop; flow add match=ip prio=5 actions=write=in_port;goto=1; \
         flow add match=arp prio=7 actions=group:3; group modify id=3 buckets=in_port; refuse 9; \
         wait 10",
        // A MODIFY cannot restore a rule that has not reached the switch.
        "flow add match=ip prio=5 actions=write=output:10;goto=1; other group add id=1 buckets=output:1; \
         flow add match=ip prio=5 actions=write=in_port;goto=1; \
         flow add match=ip prio=5 actions=write=output:10;goto=1; refuse 3; wait 3",
        // The deletion of a group removes a rule that no longer uses the group, just before Weir installs the rule
        // again.
        "other flow modify match=ip prio=5 actions=write=output:10;goto=1; \
         flow add match=arp prio=7 actions=write=in_port;goto=1; group add id=1 buckets=output:10; \
         other group add id=1 buckets=in_port; group add id=2 buckets=output:10; refuse 4; \
         flow add match=arp prio=7 actions=write=group:1; wait 17; refuse 3; \
         flow add match=arp prio=7 actions=group:1; wait 9; flow add match=arp prio=7 actions=output:1",
        // The same with a group of Weir's own: the switch refuses the group, and so also the change that uses the
        // group.
        "refuse 3; flow add match=ip,in_port=10 prio=6 actions=output:10; \
         flow add match=ip,in_port=10 prio=6 actions=write=in_port;goto=1; \
         flow add match=arp prio=7 actions=write=in_port;goto=1; wait 3",
        "flow add match=ip,in_port=10 prio=6 actions=output:10; wait 1; \
         flow add match=ip,in_port=10 prio=6 actions=write=output:10;goto=1; refuse 1; \
         flow add match=ip prio=5 actions=write=output:10;goto=1; wait 1",
        // A group number with two pending deletions is free only after the second deletion.
        "refuse 1; other group add id=2 buckets=in_port; group add id=1 buckets=output:10; \
         other group add id=3 buckets=group:2; wait 19; other group add id=1 buckets=output:1; \
         refuse 3; wait 5",
        // Only a refused change has used these group instances. After the deletion of the group, the instances have no
        // owner.
        "refuse 1; flow add match=ip prio=5 actions=write=output:10;goto=1; \
         other group add id=1 buckets=in_port; group add id=3 buckets=strip_vlan,output:10; wait 1; \
         group modify id=3 buckets=output:10; roomy; group delete id=3 buckets=",
        // The switch refuses a rule that was added for a new group instance. Later changes only modify this rule.
        "group add id=1 buckets=output:1; flow add match=arp prio=7 actions=write=group:1; \
         group modify id=1 buckets=flood; flow modify match=arp prio=7 actions=output:10; refuse 4; wait 4",
        // Weir sends an entry again, but the switch meanwhile refuses the entry's group.
        "flow add match=ip,in_port=10 prio=6 actions=write=output:10;goto=1; \
         flow modify match=ip prio=5 actions=output:10; refuse 3; \
         flow add match=ip,in_port=10 prio=6 actions=write=output:10;goto=1; wait 3",
        // Weir adds a group again that the switch has refused. A later GROUP_MOD MODIFY finds the group on the switch.
        "refuse 1; group add id=3 buckets=flood; wait 1; roomy; group modify id=3 buckets=output:1",
        // Weir restores an entry after a refusal, but the entry was compiled for an earlier map.
        "group add id=1 buckets=flood; other group add id=2 buckets=in_port; \
         other group add id=1 buckets=in_port; other flow add match=arp prio=7 actions=group:1; \
         group add id=2 buckets=group:1; refuse 2; flow add match=ip prio=5 actions=group:1; \
         flow add match=arp prio=7 actions=output:10; flow add match=arp prio=7 actions=group:1; \
         other flow add match=arp prio=7 actions=output:10; wait 5; roomy",
        // Weir restores an entry. A refused change has already installed some of the entry's rules.
        "group add id=1 buckets=flood; wait 2; flow add match=ip prio=5 actions=write=group:1; \
         flow add match=ip prio=5 actions=write=in_port;goto=1; refuse 3; \
         group modify id=1 buckets=in_port; wait 3",
        // Weir restores a group that watches another group, but the watched group no longer exists.
        "group add id=1 buckets=strip_vlan,output:10; group add id=3 buckets=g1@in_port type=ff; \
         group modify id=3 buckets=strip_vlan,output:10; refuse 1; wait 1",
        // Rules of an entry time out during a replacement. The replacement installs the rules again.
        "flow add match=ip prio=5 table=1 actions=write=in_port;goto=2 idle=1; crowded; refuse 1; \
         other group add id=1 buckets=in_port; flow add match=ip prio=5 table=1 actions=write=output:10",
        // Rules of an entry time out during a replacement that the switch refuses.
        "crowded; flow add match=ip prio=5 table=1 actions=write=in_port;goto=2 idle=1; refuse 8; \
         other flow add match=ip prio=5 actions=write=in_port;goto=1; \
         flow add match=ip prio=5 table=1 actions=write=output:10 idle=1; wait 8",
        // Rules of an entry time out during a MODIFY that the switch refuses.
        "crowded; flow add match=ip prio=5 table=1 actions=write=in_port;goto=2 idle=1; refuse 8; \
         other flow add match=ip prio=5 actions=write=in_port;goto=1; \
         flow modify match=ip prio=5 table=1 actions=write=output:10; wait 8",
        // An entry with one rule times out during a MODIFY of two entries. The other entry gets other rules.
        "crowded; flow add match=ip prio=5 actions=in_port; \
         flow add match=arp prio=7 actions=output:1 idle=1; refuse 12; \
         flow modify match= actions=output:10; wait 12",
        // The switch refuses the deletion of an egress group that no entry or group needs.
        "group add id=1 buckets=flood|group:1; wait 2000; refuse 1; wait 4000",
    ] {
        for is_blue in [true, false] {
            let step = |words: &str| match words.trim().split_once(' ') {
                Some(("refuse", nth)) => Step::Refuse(nth.parse().unwrap()),
                Some(("wait", ms)) => Step::Wait(ms.parse().unwrap()),
                None => Step::Crowded(words.trim() != "roomy"),
                Some(("other", words)) => Step::Say(!is_blue, words.to_owned()),
                _ => Step::Say(is_blue, words.trim().to_owned()),
            };
            let steps: Vec<Step> = course.split("; ").map(step).collect();
            at_rest(linked, &steps, true).unwrap_or_else(|error| panic!("{course}: {error}"));
        }
    }
}

/// Runs the steps. Then checks that a reconnect changes nothing, and that all groups and entries can be deleted.
fn at_rest(maps: Maps, steps: &[Step], slow: bool) -> Result<(), TestCaseError> {
    let per_second = slow.then_some(1_000);
    let [crowded, roomy] = maps();
    let setup = Setup {
        policy: policy_on(crowded.clone()),
        ports: 6,
        per_second,
        ..Setup::new(Version::V1_3, "")
    };
    let mut world = World::new(setup.in_batches(steps.len()));
    let seats = [world.connect("red"), world.connect("blue")];
    let mut has_moved = false;
    for step in steps {
        match step {
            Step::Say(blue, words) => world.say(seats[usize::from(*blue)], 1, words),
            // The switch refuses only one message. If the switch refuses an entry twice, Weir cannot restore the entry
            // and reports the entry as removed.
            Step::Refuse(nth) => {
                // Weir first finishes its own messages after the change of the map, because no tenant gets an error for
                // a refusal of these messages.
                if std::mem::take(&mut has_moved) {
                    world.advance(1_000_000_000);
                }
                world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: *nth }]);
            }
            Step::Wait(ms) => world.advance(ms * 1_000_000),
            Step::Crowded(is) => {
                has_moved = true;
                world.switch.switch_mut().plant(Vec::new());
                world.set_policy(policy_on(if *is { crowded.clone() } else { roomy.clone() }));
            }
        }
    }
    world.switch.switch_mut().plant(Vec::new());
    world.advance(60_000_000_000);
    let flows: Vec<usize> = world.core.tenants().map(|tenant| tenant.flows).collect();
    let (groups, entries) = (world.switch_groups(), world.switch_entries());
    let mut received: Vec<String> = Vec::new();
    for seat in seats {
        world.heard(seat);
        world.say(seat, 9, "stats group_desc");
        received.extend(world.heard(seat));
    }
    world.reconnect();
    prop_assert_eq!(world.switch_groups(), groups, "{:?}", received);
    prop_assert_eq!(world.switch_entries(), entries);
    prop_assert_eq!(world.core.tenants().map(|it| it.flows).collect::<Vec<_>>(), flows);
    // All groups and entries can be deleted.
    for name in ["red", "blue"] {
        let seat = world.connect(name);
        world.say(seat, 1, "group delete id=all");
        world.say(seat, 2, "flow delete match=");
    }
    world.advance(5_000_000_000);
    // Egress groups are deleted with the network.
    world.set_policy(policy("red: -\nblue: -"));
    world.advance(5_000_000_000);
    prop_assert_eq!(world.switch.switch().group_count(), 0);
    prop_assert_eq!(world.store.len(), 0);
    Ok(())
}

/// The switch refuses the first group, so for Weir the switch has no room for groups. Then Weir deletes an unused
/// egress group at once. The deletion must follow the ADD of the egress group.
#[test]
fn an_egress_group_is_deleted_after_the_add_when_weir_refuses_the_group() {
    let say = |words: &str| Step::Say(false, words.to_owned());
    let steps = [
        Step::Refuse(1),
        say("group add id=1 buckets=in_port"),
        say("flow add match=ip prio=5 table=1 actions=output:1"),
        say("group add id=1 buckets=group:1|flood"),
    ];
    at_rest(linked, &steps, false).unwrap_or_else(|error| panic!("{error}"));
}
