//! Tests of entries with timeouts that are several rules on the switch. The tenant sees the same packets, counters and
//! expiry times as for an entry of one rule.

use crate::support::*;
use emulate::Fault;
use proptest::collection::vec;
use proptest::prelude::*;

/// On OpenFlow 1.0, an entry without an ingress port has one rule for each port.
const SLICE: &str = "
    red: in_port=1
    red: in_port=2
    red: in_port=3
    red: in_port=4
";
const NETWORK: &str = "red own=1+2+3+4: -";

/// An entry with an idle timeout, and an entry with a lower priority that outputs the same packets to port 4.
const ABOVE_ANOTHER: &str = "
    red> 1 flow add match=ip prio=9 actions=output:3 cookie=7 idle=4 flags=rem
    red> 2 flow add prio=1 actions=output:4 cookie=8
";

/// If only one rule of the entry is idle, Weir installs this rule again before the next packet arrives. So no packet
/// matches the entry with the lower priority.
#[test]
fn an_entry_keeps_its_rules_at_every_port_while_one_port_has_packets() {
    for policy in [SLICE, NETWORK] {
        let course = "
            wait 3s
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wait 3s
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wire> 2 10.1.0.1>10.9.0.1
            wire< 3
            wait 3s
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wait 3500ms
            wire> 2 10.1.0.1>10.9.0.1
            wire< 3
            red> 3 stats aggregate match=ip
            red< 3 STATS aggregate flows=1 n=5
            wait 3900ms
            red<
            wait 200ms
            red< FLOW_REMOVED prio=9 ip cookie=0x7 IDLE_TIMEOUT n=5
            wire> 2 10.1.0.1>10.9.0.1
            wire< 4
        ";
        both(policy, &format!("{ABOVE_ANOTHER}{course}"));
    }
}

/// Some rules of the entry are idle several times, also at times that are not whole seconds.
#[test]
fn an_entry_ends_at_the_hard_timeout_though_some_rules_were_idle() {
    for policy in [SLICE, NETWORK] {
        both(
            policy,
            "
            red> 1 flow add match=ip prio=9 actions=output:3 cookie=7 idle=2 hard=9 flags=rem
            red> 2 flow add prio=1 actions=output:4 cookie=8
            wait 700ms
            wire> 2 10.1.0.1>10.9.0.1
            wire< 3
            wait 1s
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wait 1700ms
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wait 1700ms
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wait 1700ms
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wait 1700ms
            wire> 2 10.1.0.1>10.9.0.1
            wire< 3
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            wait 400ms
            red<
            wait 200ms
            red< FLOW_REMOVED prio=9 ip cookie=0x7 HARD_TIMEOUT n=7
            wire> 1 10.1.0.1>10.9.0.1
            wire< 4
            wire> 2 10.1.0.1>10.9.0.1
            wire< 4
            wait 10s
        ",
        );
    }
}

#[test]
fn an_entry_that_is_added_again_has_its_full_timeouts() {
    for policy in [SLICE, NETWORK] {
        both(
            policy,
            "
            red> 1 flow add match=ip prio=9 actions=output:3 cookie=7 idle=4 hard=9 flags=rem
            red> 2 flow add prio=1 actions=output:4 cookie=8
            wait 3s
            wire> 1 10.1.0.1>10.9.0.1
            wait 3s
            red> 3 flow add match=ip prio=9 actions=output:3 cookie=7 idle=4 hard=9 flags=rem
            wait 3s
            wire> 2 10.1.0.1>10.9.0.1
            wire< 3
            wait 3s
            wire> 2 10.1.0.1>10.9.0.1
            wire< 3
            wait 2900ms
            wire> 1 10.1.0.1>10.9.0.1
            wire< 3
            red<
            wait 200ms
            [1.0] red< FLOW_REMOVED prio=9 ip cookie=0x7 HARD_TIMEOUT n=3
            [1.3] red< FLOW_REMOVED prio=9 ip cookie=0x7 HARD_TIMEOUT n=4
            wire> 1 10.1.0.1>10.9.0.1
            wire< 4
        ",
        );
    }
}

/// Weir removes and installs rules of the entry as the slice changes. The packets of the removed rules count as use of
/// the entry.
#[test]
fn packets_of_removed_rules_count_for_the_idle_timeout_of_the_entry() {
    let course = format!(
        "
        red> 1 flow add match=ip prio=9 actions=output:3 cookie=7 idle=4 flags=rem
        wait 3s
        wire> 1 10.1.0.1>10.9.0.1
        wire< 3
        wait 2s
        {AWAY_AND_BACK}
        wire> 2 10.1.0.1>10.9.0.1
        wire< 3
        wait 500ms
        {AWAY_AND_BACK}
        wait 3s
        wire> 2 10.1.0.1>10.9.0.1
        wire< 3
        wait 3900ms
        red<
        wait 200ms
        red< FLOW_REMOVED prio=9 ip cookie=0x7 IDLE_TIMEOUT n=3
        "
    );
    let mut world = World::new(Setup::new(Version::V1_0, SLICE));
    play(&mut world, &course);
    assert_eq!(world.tenant_flows(), [""; 0]);
}

const AWAY_AND_BACK: &str = "
    policy
    red: in_port=1
    red: in_port=3
    red: in_port=4
    end
    red< PORT_STATUS DELETE 2
    policy
    red: in_port=1
    red: in_port=2
    red: in_port=3
    red: in_port=4
    end
    red< PORT_STATUS ADD 2
";

/// The switch refuses a MODIFY at different times around the idle timeout. The entry ends once, whatever rules Weir
/// installs again meanwhile.
#[test]
fn an_entry_ends_with_one_flow_removed_after_a_refused_modification() {
    for offset in (0..200).step_by(5) {
        let setup = Setup { per_second: Some(100), ..Setup::new(Version::V1_0, SLICE) };
        let mut world = World::new(setup);
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip prio=9 actions=output:3 idle=4 flags=rem");
        world.advance(3_950_000_000 + offset * 1_000_000);
        world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every: 1 }]);
        world.say(red, 2, "flow modify match=ip actions=output:2");
        world.advance(100_000_000);
        world.switch.switch_mut().plant(Vec::new());
        world.advance(20_000_000_000);
        let heard = world.heard(red);
        let ends = heard.iter().filter(|words| words.starts_with("FLOW_REMOVED")).count();
        assert_eq!(ends, 1, "{offset}: {heard:?}");
        assert_eq!(world.tenant_flows(), [""; 0], "{offset}");
    }
}

/// A switch may restart the hard timeout at a MODIFY, but Weir does not. The rules that Weir installs again end
/// together with the other rules.
#[test]
fn rules_of_a_modified_entry_end_together_at_the_hard_timeout() {
    let mut world = World::new(Setup::new(Version::V1_0, SLICE));
    let red = world.connect("red");
    world.say(red, 1, "flow add match=ip prio=9 actions=output:3 idle=2 hard=9 flags=rem");
    let frame = packet("10.1.0.1>10.9.0.1");
    let mut sent = 0;
    for half in 0..40 {
        if half == 11 {
            world.say(red, 2, "flow modify match=ip actions=output:4");
        }
        world.advance(500_000_000);
        let out = if half < 11 { 3 } else { 4 };
        let left = world.packet(1, &frame);
        if left.is_empty() {
            break;
        }
        assert_eq!(left, [out]);
        sent += 1;
        assert_eq!(world.tenant_flows().len(), 4);
    }
    assert!((17..=20).contains(&sent), "{sent}");
    let heard: Vec<String> = world.heard(red);
    let ended = format!("FLOW_REMOVED prio=9 ip cookie=0x0 HARD_TIMEOUT n={sent}");
    assert_eq!(heard.iter().filter(|words| **words == ended).count(), 1, "{heard:?}");
    assert_eq!(world.tenant_flows(), [""; 0]);
}

/// The store needs 5 seconds, which is longer than both timeouts. The timeouts start when Weir sends the entry to the
/// switch.
#[test]
fn the_timeouts_of_an_entry_start_after_the_store_has_saved_the_entry() {
    let setup = Setup { store_at_once: false, ..Setup::new(Version::V1_0, SLICE) };
    let mut world = World::new(setup);
    let red = world.connect("red");
    world.say(red, 1, "flow add match=ip prio=9 actions=output:3 idle=2 hard=4 flags=rem");
    world.advance(5_000_000_000);
    assert_eq!(world.tenant_flows(), [""; 0]);
    world.store_at_once(true);
    world.stored();
    for _ in 0..3 {
        world.advance(1_300_000_000);
        assert_eq!((world.heard(red), world.tenant_flows().len()), (Vec::new(), 4));
        world.packet(1, &packet("10.1.0.1>10.9.0.1"));
    }
    world.advance(200_000_000);
    assert_eq!(world.heard(red), ["FLOW_REMOVED prio=9 ip cookie=0x0 HARD_TIMEOUT n=3"]);
    assert_eq!(world.tenant_flows(), [""; 0]);
}

/// A MODIFY of an entry waits for the store. The timeouts of the entry still count from the ADD.
#[test]
fn a_modification_that_waits_for_the_store_does_not_lengthen_the_timeouts() {
    let mut world = World::new(Setup::new(Version::V1_0, "red: in_port=1\nred: in_port=2"));
    let red = world.connect("red");
    world.say(red, 1, "flow add match=ip prio=9 actions=output:1 idle=3 hard=6 flags=rem");
    world.store_at_once(false);
    world.say(red, 2, "flow modify match=ip actions=output:2");
    world.advance(1_000_000_000);
    world.store_at_once(true);
    world.stored();
    for (wait, port) in [(300, 1), (2_900, 2), (1_300, 2)] {
        world.advance(wait * 1_000_000);
        world.packet(port, &packet("10.1.0.1>10.9.0.1"));
    }
    world.advance(900_000_000);
    let ended = "FLOW_REMOVED prio=9 ip cookie=0x0 HARD_TIMEOUT n=3";
    assert_eq!(world.heard(red), [ended]);
    assert_eq!(world.tenant_flows(), [""; 0]);
}

/// The MODIFY gives the entry more rules on the switch.
#[test]
fn a_modification_that_adds_rules_does_not_lengthen_the_hard_timeout() {
    // An entry with IN_PORT has one rule for each ingress port. The emulated switch counts the hard timeout from the
    // MODIFY, as Open vSwitch does.
    let mut testbed = Testbed::new(Version::V1_3, networks::two_networks());
    testbed.play("blue@1> flow add match=ip prio=5 hard=4 flags=rem actions=drop");
    let before = testbed.entries(1).len();
    testbed.play(
        "
        wait 3
        blue@1> flow modify match=ip actions=in_port
    ",
    );
    assert!(testbed.entries(1).len() > before);
    testbed.play(
        "
        only wait 2
        blue@1< FLOW_REMOVED prio=5 ip cookie=0x0 HARD_TIMEOUT n=0
        only blue@1> stats flow -> STATS flow
    ",
    );
}

#[test]
fn a_new_tag_of_the_link_does_not_lengthen_the_hard_timeout() {
    for wait in 1..=3 {
        let left = 5 - wait;
        both_versions(networks::two_networks()).play(&format!(
            "
            blue@1> flow add match=in_port=10 prio=5 hard=4 flags=rem actions=output:1
            wait {wait}
            tags 3000
            blue@1> stats flow -> STATS flow prio=5 in_port=10 n=0 output:1
            wait {left}
            blue@1< FLOW_REMOVED prio=5 in_port=10 cookie=0x0 HARD_TIMEOUT n=0
            blue@1> stats flow -> STATS flow
        "
        ));
    }
}

/// Weir installs a rule of the entry later, after a change of the slice and after a restart. All rules end at the hard
/// timeout of the entry.
#[test]
fn rules_that_are_installed_later_end_with_the_other_rules_of_the_entry() {
    for restarts in [false, true] {
        let mut world = World::new(Setup::new(Version::V1_0, SLICE));
        let mut red = world.connect("red");
        world.say(red, 1, "flow add match=ip prio=9 actions=output:3 hard=9 flags=rem");
        world.advance(3_500_000_000);
        if restarts {
            // A reconnect takes one second.
            world.reconnect();
            red = world.connect("red");
        } else {
            world.advance(1_000_000_000);
        }
        for policy in [SLICE.replace("red: in_port=2", ""), SLICE.to_owned()] {
            world.set_policy(crate::support::policy(&policy));
            world.advance(1_000_000_000);
        }
        assert_eq!(world.tenant_flows().len(), 4);
        let _ = world.heard(red);
        world.advance(2_400_000_000);
        assert_eq!((world.heard(red), world.tenant_flows().len()), (Vec::new(), 4));
        world.advance(200_000_000);
        let ended = "FLOW_REMOVED prio=9 ip cookie=0x0 HARD_TIMEOUT n=0";
        assert_eq!(world.heard(red), [ended], "{restarts}");
        assert_eq!(world.tenant_flows(), [""; 0]);
    }
}

#[test]
fn an_entry_keeps_its_hard_timeout_when_the_replacement_is_refused() {
    for (hard, every) in [4, 9].into_iter().flat_map(|hard| [1, 2, 3, 4].map(|it| (hard, it))) {
        let setup = Setup { per_second: Some(100), ..Setup::new(Version::V1_0, SLICE) };
        let mut world = World::new(setup);
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip prio=9 actions=output:3 hard=4 flags=rem");
        world.advance(2_500_000_000);
        world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every }]);
        world.say(red, 2, &format!("flow add match=ip prio=9 actions=output:4 hard={hard}"));
        world.advance(41_000_000);
        world.switch.switch_mut().plant(Vec::new());
        world.advance(1_400_000_000);
        let heard = world.heard(red);
        assert!(heard.iter().all(|words| words.starts_with("2 ERROR")), "{heard:?}");
        assert_eq!((heard.len(), world.tenant_flows().len()), (1, 4), "{hard} {every}");
        world.advance(1_200_000_000);
        let ended = "FLOW_REMOVED prio=9 ip cookie=0x0 HARD_TIMEOUT n=0";
        assert_eq!(world.heard(red), [ended], "{hard} {every}");
        assert_eq!(world.tenant_flows(), [""; 0]);
    }
}

/// While packets arrive at one or more ports of the tenant's switch, the entry stays. Then the entry ends with one
/// FLOW_REMOVED.
#[test]
fn an_entry_in_a_network_ends_when_every_port_is_idle() {
    let courses = [&[1][..], &[2], &[1, 2], &[1, 1, 1, 2, 2], &[2, 1, 1, 1]];
    for (version, ports) in VERSIONS.into_iter().flat_map(|it| courses.map(|ports| (it, ports))) {
        for packets in 0..7 {
            let mut testbed = Testbed::new(version, networks::two_networks());
            for words in [
                "flow add match=ip prio=6 actions=output:1,output:2 idle=4 flags=rem",
                "flow add match=ip prio=1 actions=output:10",
            ] {
                assert_eq!(testbed.say(0, 1, words), [""; 0]);
            }
            let frame = packet("10.0.0.1>10.0.0.9");
            for port in ports.iter().cycle().take(packets) {
                testbed.wait(3);
                let seen = testbed.send(0, 1, *port, &frame);
                assert_eq!(seen.delivered, [(0, 1, 3 - *port, frame.clone())], "{version:?}");
            }
            testbed.wait(3);
            assert_eq!(testbed.take_received(), []);
            testbed.wait(2);
            let received = testbed.take_received();
            let [(_, _, words)] = &received[..] else {
                panic!("{version:?} {ports:?}: {received:?}")
            };
            assert!(words.contains(&format!("IDLE_TIMEOUT n={packets}")), "{words}");
            testbed.wait(9);
            assert_eq!(testbed.take_received(), []);
        }
    }
}

/// The message type of STATS_REQUEST.
const ASKS: u8 = 16;

/// A world with two entries of red, which have this number of rules each. The entry with the higher priority has an
/// idle timeout.
fn wide(rules: usize) -> (World, Seat) {
    let policy: String = (0..rules).map(|n| format!("red: ip,nw_src=10.1.{n}.0/24\n")).collect();
    let mut world = World::new(Setup::new(Version::V1_0, &policy));
    let red = world.connect("red");
    world.say(red, 1, "flow add prio=9 actions=output:3 cookie=7 idle=4 flags=rem");
    world.say(red, 2, "flow add prio=1 actions=output:4 cookie=8");
    assert_eq!(world.tenant_flows().len(), 2 * rules);
    (world, red)
}

/// Weir requests the counters of a few rules at a time. When one rule has received packets, Weir stops the requests.
#[test]
fn counters_of_an_entry_with_many_rules_are_requested_in_parts() {
    let (mut world, red) = wide(200);
    let frame = |at: u8| packet(&format!("10.1.{at}.1>10.9.0.1"));
    for (wait, at) in [(1, 190), (2, 100), (3, 190)] {
        world.advance(wait * 1_000_000_000);
        assert_eq!(world.packet(1, &frame(at)), [3]);
    }
    world.south.clear();
    world.advance(1_500_000_000);
    let asked = world.south_types().iter().filter(|type_| **type_ == ASKS).count();
    assert!((1..100).contains(&asked), "{asked}");
    assert_eq!(world.tenant_flows().len(), 400);
    world.advance(2_000_000_000);
    assert_eq!(world.heard(red), [""; 0]);
    world.advance(1_000_000_000);
    assert_eq!(world.heard(red), ["FLOW_REMOVED prio=9 any cookie=0x7 IDLE_TIMEOUT n=3"]);
}

/// The switch does not answer the statistics requests for a while. The entry stays, and Weir sends the requests again.
#[test]
fn an_entry_with_many_rules_ends_only_after_the_switch_has_sent_the_counters() {
    let (mut world, red) = wide(200);
    world.switch.switch_mut().plant(vec![Fault::NeverAnswers { message_type: ASKS }]);
    world.advance(20_000_000_000);
    assert_eq!(world.heard(red), [""; 0]);
    world.switch.switch_mut().plant(Vec::new());
    // Weir gives up an unanswered request before Weir sends the request again.
    world.advance(30_000_000_000);
    assert_eq!(world.heard(red), ["FLOW_REMOVED prio=9 any cookie=0x7 IDLE_TIMEOUT n=0"]);
    assert_eq!(world.tenant_flows().len(), 200);
}

#[test]
fn an_entry_with_many_rules_stays_while_one_rule_receives_packets() {
    for at in [0, 100, 199] {
        let (mut world, red) = wide(200);
        let frame = packet(&format!("10.1.{at}.1>10.9.0.1"));
        for _ in 0..9 {
            world.advance(3_000_000_000);
            assert_eq!(world.packet(1, &frame), [3]);
            assert_eq!(world.heard(red), [""; 0]);
            assert_eq!(world.packet(1, &packet("10.1.55.1>10.9.0.1")), [3]);
        }
        world.advance(3_900_000_000);
        assert_eq!(world.heard(red), [""; 0]);
        world.advance(200_000_000);
        assert_eq!(world.heard(red), ["FLOW_REMOVED prio=9 any cookie=0x7 IDLE_TIMEOUT n=18"]);
        assert_eq!(world.packet(1, &frame), [4]);
    }
}

/// Weir installs red's rules again in red's turns, so blue's changes do not wait for all of red's rules.
#[test]
fn reinstalled_rules_of_a_tenant_do_not_delay_changes_of_another_tenant() {
    let policy: String = (0..200).map(|n| format!("red: ip,nw_src=10.1.{n}.0/24\n")).collect();
    let policy = format!("{policy}blue: ip,nw_src=10.2.0.0/16");
    let setup = Setup { per_second: Some(1_000), ..Setup::new(Version::V1_0, &policy) };
    let mut world = World::new(setup);
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    // Both tenants use the switch. So Weir does not let one tenant fill the socket of the switch.
    world.say(blue, 9, "barrier");
    world.advance(10_000_000);
    assert_eq!(world.heard(blue), ["9 BARRIER_REPLY"]);
    world.say(red, 1, "flow add prio=9 actions=output:3 cookie=7 idle=2 flags=rem");
    world.advance(1_000_000_000);
    // All rules end at the same time, except one rule for which the entry stays.
    for n in 0..200 {
        world.packet(1, &packet(&format!("10.1.{n}.1>10.9.0.1")));
    }
    world.advance(1_000_000_000);
    world.packet(1, &packet("10.1.7.1>10.9.0.1"));
    world.advance(1_050_000_000);
    let rules = world.tenant_flows().len();
    assert!((20..100).contains(&rules), "{rules}");
    world.say(blue, 1, "flow add match=ip,nw_src=10.2.0.1 actions=output:2");
    world.say(blue, 2, "barrier");
    // The window has some 16 messages, which take 16 ms.
    world.advance(40_000_000);
    assert_eq!(world.heard(blue), ["2 BARRIER_REPLY"]);
    world.advance(300_000_000);
    assert_eq!(world.tenant_flows().len(), 201);
}

#[derive(Clone, Debug)]
enum Step {
    Say(String),
    Packet(u32, u8),
    /// Quarters of a second.
    Wait(u64),
    Refuse(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let command = prop::sample::select(vec!["add", "add", "add", "modify", "delete"]);
    let match_ = prop::sample::select(vec![
        "prio=1",
        "match=ip prio=2",
        "match=ip,nw_src=10.1.0.1 prio=3",
        "match=ip,nw_dst=10.1.0.0/24 prio=4",
        "match=in_port=2 prio=5",
    ]);
    let action =
        prop::sample::select(vec!["output:1", "output:2", "output:3", "output:4,output:1"]);
    let idle = prop::sample::select(vec!["", " idle=1", " idle=2", " idle=3"]);
    prop_oneof![
        2 => (command, match_, action, idle).prop_map(|(command, match_, action, idle)| {
            Step::Say(format!("flow {command} {match_} actions={action}{idle} flags=rem"))
        }),
        6 => (1..5u32, 1..3u8).prop_map(|(port, host)| Step::Packet(port, host)),
        6 => (1..9u64).prop_map(Step::Wait),
    ]
}

/// The steps of `step`, with hard timeouts, and refusals of FLOW_MODs.
fn rough_step() -> impl Strategy<Value = Step> {
    let hard = prop::sample::select(vec!["", " hard=2", " hard=3"]);
    let said = (step(), hard).prop_map(|(step, hard)| match step {
        Step::Say(words) => Step::Say(format!("{words}{hard}")),
        other => other,
    });
    prop_oneof![9 => said, 1 => (1..9u32).prop_map(Step::Refuse)]
}

fn take(world: &mut World, red: Seat, step: &Step) -> Vec<u32> {
    match step {
        Step::Say(words) => world.say(red, 1, words),
        Step::Wait(quarters) => world.advance(quarters * 250_000_000),
        Step::Refuse(every) => {
            world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every: *every }]);
        }
        Step::Packet(port, host) => {
            return world.packet(*port, &packet(&format!("10.1.0.{host}>10.1.{host}.2")));
        }
    }
    Vec::new()
}

proptest! {
    /// Random requests and packets have the same results for an entry with several rules and for an entry with one
    /// rule.
    #[test]
    fn an_entry_with_several_rules_behaves_like_an_entry_with_one_rule(steps in vec(step(), 1..60)) {
        for policy in [SLICE, NETWORK] {
            let mut world = World::new(Setup::new(Version::V1_0, policy));
            let mut beside = World::new(Setup::new(Version::V1_0, "red:"));
            let (red, red_beside) = (world.connect("red"), beside.connect("red"));
            for step in steps.iter().chain(&[Step::Say("stats flow".to_owned()), Step::Wait(20)]) {
                let left = take(&mut world, red, step);
                prop_assert_eq!(left, take(&mut beside, red_beside, step), "{:?}", step);
                let (mut heard, mut heard_beside) = (world.heard(red), beside.heard(red_beside));
                heard.sort();
                heard_beside.sort();
                prop_assert_eq!(heard, heard_beside, "{:?}", step);
            }
        }
    }

    /// The switch refuses some FLOW_MODs. After 30 seconds the switch has no rule with a timeout, and the tables agree.
    #[test]
    fn every_entry_with_a_timeout_ends_also_after_refusals(steps in vec(rough_step(), 1..60), slow in any::<bool>()) {
        for policy in [SLICE, NETWORK] {
            let per_second = slow.then_some(500);
            let mut world = World::new(Setup { per_second, ..Setup::new(Version::V1_0, policy) });
            let red = world.connect("red");
            for step in &steps {
                take(&mut world, red, step);
            }
            world.switch.switch_mut().plant(Vec::new());
            world.advance(30_000_000_000);
            let flows = world.switch.switch().flows();
            let left = flows.filter(|(_, flow)| flow.idle_timeout > 0 || flow.hard_timeout > 0);
            prop_assert_eq!(left.count(), 0);
            tables_agree(&mut world)?;
        }
    }
}
