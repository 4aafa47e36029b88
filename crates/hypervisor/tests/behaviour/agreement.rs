//! Tests that the virtual tables, the switch and the store agree when no message is in flight. Before, the switch has
//! refused requests and entries have expired. The check reconnects the switch, and Weir finds no difference.

use crate::support::*;
use emulate::Fault;
use proptest::collection::vec;
use proptest::prelude::*;

/// On OpenFlow 1.0, a wide entry of red is two rules on the switch.
const RULES: &str = "
    red flows=4: ip,nw_src=10.1.0.0/16
    red: ip,nw_dst=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16 @50
";

#[test]
fn two_refused_adds_of_the_same_entry_leave_no_entry() {
    for version in VERSIONS {
        let mut world = World::new(Setup { per_second: Some(1_000), ..Setup::new(version, RULES) });
        let red = world.connect("red");
        world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every: 1 }]);
        world.say(red, 1, "flow add match=ip,nw_src=10.1.0.1 actions=output:1");
        world.say(red, 2, "flow add match=ip,nw_src=10.1.0.1 actions=output:2");
        world.say(red, 3, "barrier");
        world.advance(1_000_000_000);
        let heard = world.heard(red);
        assert_eq!(heard.len(), 3, "{heard:?}");
        assert_eq!(world.core.tenants().next().unwrap().flows, 0);
        assert_eq!(world.tenant_flows(), [""; 0]);
        world.switch.switch_mut().plant(Vec::new());
        tables_agree(&mut world).unwrap();
    }
}

#[test]
fn an_entry_can_be_changed_after_one_of_its_two_rules_has_expired() {
    let mut world = World::new(Setup::new(Version::V1_0, RULES));
    play(
        &mut world,
        "
        red> 1 flow add actions=output:3 cookie=7 prio=5 flags=rem idle=2
        wait 1s
        wire> 1 10.1.0.1>10.9.0.1
        wait 1500ms
        count= 2
        red> 2 flow modify actions=output:4
        count= 2
        red> 3 stats flow
        red< 3 STATS flow prio=5 any n=1 output:4
        wait 400ms
        wire> 1 10.9.0.1>10.1.0.1
        wire< 4
        wait 1900ms
        red<
        wait 200ms
        red< FLOW_REMOVED prio=5 any cookie=0x0 IDLE_TIMEOUT n=2
        count= 0
    ",
    );
    tables_agree(&mut world).unwrap();
}

/// The switch refuses some FLOW_MODs of entries with a timeout and of the same entries without a timeout. No rule with
/// the timeouts of a refused entry stays on the switch.
#[test]
fn timeouts_of_a_refused_entry_do_not_stay_on_the_switch() {
    const SHORT: &str = "flow add match=ip prio=11 actions=output:1 idle=1 flags=rem";
    const LONG: &str = "flow add match=ip prio=11 actions=output:1";
    const MODIFY: &str = "flow modify match=ip prio=11 actions=output:2";
    let courses: [&[&str]; 4] = [
        &[SHORT, LONG],
        &[SHORT, LONG, MODIFY],
        &[LONG, SHORT, LONG],
        &[LONG, SHORT, LONG, MODIFY],
    ];
    for (version, course) in VERSIONS.into_iter().flat_map(|it| courses.map(|course| (it, course)))
    {
        // `first` and `every` determine which FLOW_MODs the switch refuses, and how many messages are in the switch's
        // queue before them.
        for (first, every) in (0..8).flat_map(|first| [2, 3].map(|every| (first, every))) {
            let setup = Setup { per_second: Some(1_000), ..Setup::new(version, RULES) };
            let mut world = World::new(setup.in_batches(first + every as usize));
            let red = world.connect("red");
            for prio in 20..20 + first {
                world.say(red, 1, &format!("flow add match=ip prio={prio} actions=output:1"));
            }
            world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every }]);
            course.iter().for_each(|words| world.say(red, 1, words));
            world.advance(100_000_000);
            world.switch.switch_mut().plant(Vec::new());
            world.advance(5_000_000_000);
            let case = format!("{version:?}, every {every} after {first}: {course:?}");
            tables_agree(&mut world).unwrap_or_else(|error| panic!("{case}: {error}"));
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Say(bool, String),
    Refuse(u32),
    Wait(u64),
    Packet(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    let command =
        prop::sample::select(vec!["add", "modify", "modify_strict", "delete", "delete_strict"]);
    // There are few priorities, because two matches of one priority may become the same entry when Weir restricts them
    // to the slice.
    let match_ = prop::sample::select(vec![
        ("", 10),
        ("ip", 10),
        ("ip,nw_src=10.1.0.1", 10),
        ("ip,nw_src=10.1.0.1,nw_dst=10.1.0.2", 10),
        ("ip,nw_src=10.2.0.0/24", 10),
        ("ip,nw_dst=10.1.0.0/24", 10),
    ]);
    let action = prop::sample::select(vec!["output:1", "output:2", "flood", "normal"]);
    let timeouts = prop::sample::select(vec!["", "", "", " idle=1 flags=rem", " hard=2 flags=rem"]);
    prop_oneof![
        8 => (any::<bool>(), command, match_, 1..3u8, action, timeouts).prop_map(
            |(red, command, (match_, base), prio, action, timeouts)| {
                let prio = base + prio;
                Step::Say(red, format!("flow {command} match={match_} prio={prio} actions={action}{timeouts}"))
            }
        ),

        1 => (1..30u32).prop_map(Step::Refuse),
        1 => (0..2_000u64).prop_map(Step::Wait),
        1 => (1..3u8, 1..3u8).prop_map(|(from, to)| Step::Packet(from, to)),
    ]
}

proptest! {
    #[test]
    fn tables_switch_and_store_agree_when_no_message_is_in_flight(steps in vec(step(), 1..40), slow in any::<bool>()) {
        for version in VERSIONS {
            let per_second = slow.then_some(1_000);
            let setup = Setup { per_second, ..Setup::new(version, RULES) };
            let mut world = World::new(setup.in_batches(steps.len()));
            let seats = [world.connect("blue"), world.connect("red")];
            for step in &steps {
                match step {
                    Step::Say(red, words) => world.say(seats[usize::from(*red)], 1, words),
                    Step::Refuse(every) => {
                        world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every: *every }]);
                    }
                    Step::Wait(ms) => world.advance(ms * 1_000_000),
                    Step::Packet(from, to) => {
                        world.packet(1, &packet(&format!("10.{from}.0.1>10.{to}.0.2")));
                    }
                }
            }
            world.switch.switch_mut().plant(Vec::new());
            world.advance(60_000_000_000);
            prop_assert!(world.core.tenants().all(|tenant| tenant.flows <= 4 || tenant.id.0 == 2));
            tables_agree(&mut world)?;
        }
    }
}
