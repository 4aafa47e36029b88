//! Tests of two entries of one tenant that would be the same rule on the switch (OpenFlow 1.0). Weir accepts both
//! entries. The first entry owns the rule, and the second entry takes the rule over when the first entry ends.

use crate::support::*;
use emulate::Fault;
use proptest::collection::vec;
use proptest::prelude::*;

/// An entry of red without an ingress port has one rule for each of red's ports.
const PORTS: &str = "
    red flows=5 entries=8: in_port=1
    red: in_port=2
    red: in_port=3
";

fn world() -> World {
    World::new(Setup::new(Version::V1_0, PORTS))
}

/// Red's rules on the switch: the match and the number of the owning entry.
fn owned(world: &World) -> Vec<String> {
    let flows = world.switch.switch().flows().filter(|(_, flow)| flow.cookie as u32 != 0);
    let flows = flows.map(|(_, it)| format!("{} {}", it.match_, it.cookie as u32));
    let mut flows: Vec<String> = flows.collect();
    flows.sort();
    flows
}

#[test]
fn two_entries_with_an_equal_rule_are_accepted_and_the_first_owns_the_rule() {
    for (first, second) in [("", "match=in_port=2"), ("match=in_port=2", "")] {
        let mut world = world();
        play(
            &mut world,
            &format!(
                "
                red> 1 flow add {first} prio=7 actions=output:3 cookie=1
                red> 2 flow add {second} prio=7 actions=output:1 cookie=2
                count= 3
                wire> 2 10.1.0.1>10.1.0.2
                wire< 3
                red> 3 stats aggregate
                red< 3 STATS aggregate flows=2 n=1
            "
            ),
        );
        tables_agree(&mut world).unwrap();
    }
}

#[test]
fn the_second_entry_takes_the_rule_over_when_the_owner_is_deleted() {
    let mut world = world();
    play(
        &mut world,
        "
        red> 1 flow add match=in_port=2 prio=7 actions=output:3 cookie=1 flags=rem
        red> 2 flow add prio=7 actions=output:1 cookie=2 flags=rem
        wire> 2 10.1.0.1>10.1.0.2
        wire< 3
        red> 3 flow delete_strict match=in_port=2 prio=7
        red< FLOW_REMOVED prio=7 in_port=2 cookie=0x1 DELETE n=1
        count= 3
        wire> 2 10.1.0.1>10.1.0.2
        wire< 1
        red> 4 stats flow
        red< 4 STATS flow prio=7 any cookie=0x2 n=1 output:1
        ",
    );
    tables_agree(&mut world).unwrap();
}

#[test]
fn no_rule_is_left_when_both_entries_of_a_rule_are_deleted() {
    let mut world = world();
    play(
        &mut world,
        "
        red> 1 flow add match=in_port=2 prio=7 actions=output:3 cookie=1
        red> 2 flow add prio=7 actions=output:1 cookie=2
        red> 3 flow add prio=6 actions=output:1 cookie=3
        red> 4 flow delete match=in_port=2
        red> 5 flow delete
        count= 0
        ",
    );
    tables_agree(&mut world).unwrap();
}

#[test]
fn the_second_entry_takes_the_rule_over_when_the_owner_times_out() {
    for (timeout, why) in [("idle=1", "IDLE_TIMEOUT"), ("hard=1", "HARD_TIMEOUT")] {
        let mut world = world();
        play(
            &mut world,
            &format!(
                "
                red> 1 flow add match=in_port=2 prio=7 actions=output:3 cookie=1 {timeout} flags=rem
                red> 2 flow add prio=7 actions=output:1 cookie=2
                wait 1200ms
                red< FLOW_REMOVED prio=7 in_port=2 cookie=0x1 {why} n=0
                count= 3
                wire> 2 10.1.0.1>10.1.0.2
                wire< 1
            "
            ),
        );
        tables_agree(&mut world).unwrap();
    }
}

/// Another entry owns the rule, so this entry counts no packets, like an entry that no packet matches.
#[test]
fn an_entry_without_an_owned_rule_has_its_own_timeouts() {
    let mut world = world();
    play(
        &mut world,
        "
        red> 1 flow add prio=7 actions=output:1 cookie=2
        red> 2 flow add match=in_port=2 prio=7 actions=output:3 cookie=1 idle=2 flags=rem
        red> 3 flow add match=in_port=3 prio=7 actions=output:2 cookie=3 hard=3 flags=rem
        wait 1s
        wire> 2 10.1.0.1>10.1.0.2
        wire< 1
        wait 1100ms
        red< FLOW_REMOVED prio=7 in_port=2 cookie=0x1 IDLE_TIMEOUT n=0
        red> 4 flow delete_strict prio=7
        count= 1
        wire> 3 10.1.0.1>10.1.0.2
        wire< 2
        wait 1s
        red< FLOW_REMOVED prio=7 in_port=3 cookie=0x3 HARD_TIMEOUT n=1
        count= 0
        ",
    );
    tables_agree(&mut world).unwrap();
}

#[test]
fn both_entries_with_an_equal_rule_can_be_modified() {
    let mut world = world();
    play(
        &mut world,
        "
        red> 1 flow add match=in_port=2 prio=7 actions=output:3 cookie=1
        red> 2 flow add prio=7 actions=output:1 cookie=2
        red> 3 flow modify_strict prio=7 actions=flood cookie=2
        wire> 2 10.1.0.1>10.1.0.2
        wire< 3
        red> 4 flow modify_strict match=in_port=2 prio=7 actions=output:1 cookie=1
        wire> 2 10.1.0.1>10.1.0.2
        wire< 1
        red> 5 flow delete_strict match=in_port=2 prio=7
        wire> 2 10.1.0.1>10.1.0.2
        wire< 1 3
        red> 6 flow modify actions=output:1
        wire> 2 10.1.0.1>10.1.0.2
        wire< 1
        ",
    );
    tables_agree(&mut world).unwrap();
}

#[test]
fn rules_have_the_same_owners_after_a_restart() {
    let mut world = world();
    let red = world.connect("red");
    world.say(red, 1, "flow add match=in_port=2 prio=7 actions=output:3 cookie=1");
    world.say(red, 2, "flow add prio=7 actions=output:1 cookie=2");
    world.say(red, 3, "flow add match=in_port=3 prio=7 actions=output:1 cookie=3");
    let before = owned(&world);
    assert_eq!(before, ["in_port=1 2", "in_port=2 1", "in_port=3 2"]);
    world.say(red, 4, "flow delete_strict match=in_port=2 prio=7");
    world.say(red, 5, "flow add match=in_port=2 prio=7 actions=output:3 cookie=1");
    // Again, the entry with the lowest number does not own all the rules that the entry could own.
    world.say(red, 6, "flow delete_strict prio=7");
    world.say(red, 7, "flow add prio=7 actions=output:1 cookie=2");
    let before = owned(&world);
    tables_agree(&mut world).unwrap();
    assert_eq!(owned(&world), before);
    // The rule of an owner is deleted on the switch without Weir's knowledge.
    let red = world.connect("red");
    world.say(red, 8, "flow delete");
    world.say(red, 9, "flow add match=in_port=2 prio=7 actions=output:3 idle=1");
    world.say(red, 10, "flow add prio=7 actions=output:1");
    world.behind("flow delete match=in_port=2");
    world.reconnect();
    assert_eq!(owned(&world).len(), 3);
    tables_agree(&mut world).unwrap();
}

#[test]
fn the_second_entry_takes_the_rule_over_when_the_owner_is_refused() {
    let setup = Setup { per_second: Some(1_000), ..Setup::new(Version::V1_0, PORTS) };
    let mut world = World::new(setup);
    let red = world.connect("red");
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    world.say(red, 1, "flow add match=in_port=2 prio=7 actions=output:3");
    world.say(red, 2, "flow add prio=7 actions=output:1");
    world.advance(1_000_000_000);
    assert_eq!(world.heard(red).len(), 1);
    assert_eq!(owned(&world), ["in_port=1 2", "in_port=2 2", "in_port=3 2"]);
    tables_agree(&mut world).unwrap();
}

#[test]
fn an_entry_is_removed_when_the_switch_refuses_the_take_over_of_a_rule() {
    let mut world = world();
    let red = world.connect("red");
    world.say(red, 1, "flow add match=in_port=2 prio=7 actions=output:3");
    world.say(red, 2, "flow add prio=7 actions=output:1 flags=rem cookie=2");
    world.say(red, 3, "flow add match=in_port=2,dl_type=0x0800 prio=7 actions=output:1");
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    world.say(red, 4, "flow delete_strict match=in_port=2 prio=7");
    world.advance(1_000_000_000);
    let heard = world.heard(red);
    assert!(heard.len() == 1 && heard[0].starts_with("FLOW_REMOVED prio=7 any"), "{heard:?}");
    assert_eq!(world.core.tenants().next().unwrap().flows, 1);
    tables_agree(&mut world).unwrap();
}

#[test]
fn entries_without_an_owned_rule_count_toward_the_rule_limit() {
    let mut world = world();
    play(
        &mut world,
        "
        red> 1 flow add prio=7 actions=output:1
        red> 2 flow add match=in_port=1 prio=7 actions=output:1
        red> 3 flow add match=in_port=2 prio=7 actions=output:1
        red> 4 flow add match=in_port=3 prio=7 actions=output:1
        red> 5 flow add prio=9 actions=output:1
        red< 5 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 5
        red> 6 flow delete_strict prio=7
        count= 3
        red> 7 flow add prio=9 actions=output:1
        count= 6
        ",
    );
    tables_agree(&mut world).unwrap();
}

/// In the narrow slice, two entries have an equal rule. In the wide slice, each entry has its own rule.
#[test]
fn a_new_slice_merges_the_rules_of_two_entries_and_splits_the_rules_again() {
    let wide = "red: any";
    let narrow = "red: in_port=2";
    let mut world = World::new(Setup::new(Version::V1_0, wide));
    let red = world.connect("red");
    world.say(red, 1, "flow add match=in_port=2 prio=7 actions=controller");
    world.say(red, 2, "flow add prio=7 actions=controller");
    world.say(red, 3, "flow add match=in_port=2,dl_vlan=5 prio=7 actions=controller");
    for (policy_, count) in [(narrow, 2), (wide, 3), (narrow, 2)] {
        world.set_policy(policy(policy_));
        world.advance(1_000_000_000);
        assert_eq!(world.core.tenants().next().unwrap().flows, 3, "{policy_}");
        assert_eq!(world.tenant_flows().len(), count, "{policy_}");
    }
    assert!(world.heard(red).iter().all(|message| message.starts_with("PORT_STATUS")));
    tables_agree(&mut world).unwrap();
}

#[test]
fn an_entry_without_an_owned_rule_keeps_its_timeout_after_a_refused_change() {
    let mut world = world();
    play(
        &mut world,
        "
        red> 1 flow add prio=7 actions=output:1
        red> 2 flow add match=in_port=1 prio=7 actions=output:2 idle=1 flags=rem
        ",
    );
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    play(
        &mut world,
        "
        red> 3 flow modify actions=output:3
        red< 3 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 3
        wait 1500ms
        red< FLOW_REMOVED prio=7 in_port=1 cookie=0x0 IDLE_TIMEOUT n=0
        ",
    );
    tables_agree(&mut world).unwrap();
}

/// Two entries take over rules of an entry that times out. The switch refuses one take-over, and this refusal stops the
/// queue. The other take-over waits in the queue and is done later.
#[test]
fn a_waiting_take_over_is_done_after_another_take_over_is_refused() {
    let setup = Setup { per_second: Some(1_000), ..Setup::new(Version::V1_0, PORTS) };
    let mut world = World::new(setup);
    let red = world.connect("red");
    for words in ["match= hard=2", "match=dl_type=0x0800", "match=in_port=3", "match=in_port=2"] {
        world.say(red, 1, &format!("flow add {words} prio=7 actions=output:1 flags=rem"));
    }
    world.advance(1_234_567_890);
    // The rules of the first entry time out one after the other.
    world.switch.switch_mut().plant(vec![Fault::RefuseOnce { nth: 1 }]);
    world.advance(60_000_000_000);
    assert!(owned(&world).contains(&"in_port=3 3".to_owned()), "{:?}", owned(&world));
    tables_agree(&mut world).unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Say(String),
    Refuse(Vec<u32>),
    Wait(u64),
    Packet(u32),
    Policy(usize),
    Reconnect,
}

fn step() -> impl Strategy<Value = Step> {
    let command = prop::sample::select(vec![
        "add",
        "add",
        "modify",
        "modify_strict",
        "delete",
        "delete_strict",
    ]);
    let match_ =
        prop::sample::select(vec!["", "in_port=1", "in_port=2", "in_port=3", "dl_type=0x0800"]);
    let timeouts = prop::sample::select(vec!["", "", "", " idle=1", " hard=2", " idle=2 hard=3"]);
    let action = prop::sample::select(vec!["output:1", "output:2", "flood"]);
    prop_oneof![
        10 => (command, match_, action, timeouts).prop_map(|(command, match_, action, timeouts)| {
            Step::Say(format!("flow {command} match={match_} prio=7 actions={action}{timeouts} flags=rem"))
        }),
        2 => vec(1..12u32, 1..3).prop_map(Step::Refuse),
        2 => (0..2_000u64).prop_map(Step::Wait),
        1 => (1..4u32).prop_map(Step::Packet),
        1 => (0..3usize).prop_map(Step::Policy),
        1 => Just(Step::Reconnect),
    ]
}

proptest! {
    /// After random events, a reconnect finds no missing rule and no extra rule, and no rule changes its owner.
    #[test]
    fn every_rule_has_one_owner_after_random_events(steps in vec(step(), 1..40), slow in any::<bool>()) {
        let policies = [PORTS, "red: in_port=2\nred: in_port=3", "red: dl_type=0x0800\nred: in_port=1"];
        let per_second = slow.then_some(1_000);
        let mut world = World::new(Setup { per_second, ..Setup::new(Version::V1_0, PORTS) });
        let mut red = world.connect("red");
        for step in &steps {
            match step {
                Step::Say(words) => world.say(red, 1, words),
                Step::Refuse(nth) => {
                    let faults = nth.iter().map(|&nth| Fault::RefuseOnce { nth }).collect();
                    world.switch.switch_mut().plant(faults);
                }
                Step::Wait(ms) => world.advance(ms * 1_000_000),
                Step::Packet(port) => drop(world.packet(*port, &packet("10.1.0.1>10.1.0.2"))),
                Step::Policy(at) => world.set_policy(policy(policies[*at])),
                Step::Reconnect => {
                    // Before the reconnect, the switch receives all messages. No rule times out at this moment.
                    world.advance(1_234_567_890);
                    world.reconnect();
                    red = world.connect("red");
                }
            }
        }
        world.switch.switch_mut().plant(Vec::new());
        world.advance(60_000_000_000);
        let before = owned(&world);
        tables_agree(&mut world)?;
        prop_assert_eq!(owned(&world), before);
    }
}
