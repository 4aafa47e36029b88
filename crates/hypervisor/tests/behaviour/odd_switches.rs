//! Switches that answer barriers in ways of their own: nobody waits for longer than a reply is waited for, nothing is lost,
//! and it is counted.

use crate::support::*;

const TENANTS: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";
const SECOND: u64 = 1_000_000_000;
const MESSAGES: usize = 1_000;

/// Both tenants send PACKET_OUTs, red first, so that both want the switch; gives the world when all have been sent.
fn flood(version: Version, fault: emulate::Fault) -> World {
    let mut world = World::new(Setup { per_second: Some(8_000), ..Setup::new(version, TENANTS) });
    let seats = [world.connect("red"), world.connect("blue")];
    world.switch.switch_mut().plant(vec![fault]);
    for n in 0..MESSAGES as u32 {
        for (tenant, seat) in (1..).zip(seats) {
            let words = format!("out actions=output:{tenant} data=10.{tenant}.0.1>10.9.0.1");
            world.controllers[seat.0].outgoing.push_back(request(version, n + 1, &words));
        }
    }
    world
}

fn left(world: &World) -> [usize; 2] {
    [1, 2].map(|port| world.left.iter().filter(|left| left.port == port).count())
}

#[test]
fn barriers_that_are_never_answered_stop_nobody_for_long() {
    for version in VERSIONS {
        let message_type = if version == Version::V1_0 { 18 } else { 20 };
        let mut world = flood(version, emulate::Fault::NeverAnswers { message_type });
        world.advance(5 * SECOND);
        assert_ne!(left(&world), [MESSAGES; 2], "nothing tells yet that no answer will come");
        // A reply is waited for ten seconds, and looked for at times.
        world.advance(10 * SECOND);
        assert_eq!(left(&world), [MESSAGES; 2], "{version:?}");
        assert!(world.core.counters().unanswered > 0);
    }
}

#[test]
fn barriers_that_are_answered_again_bind_the_window_again() {
    for version in VERSIONS {
        let message_type = if version == Version::V1_0 { 18 } else { 20 };
        let mut world = flood(version, emulate::Fault::NeverAnswers { message_type });
        world.advance(15 * SECOND);
        world.switch.switch_mut().plant(Vec::new());
        world.advance(15 * SECOND);
        assert_eq!(world.core.window().1, 0, "all is known to be done");
    }
}

#[test]
fn answers_that_come_twice_or_early_lose_nothing() {
    let faults = [
        emulate::Fault::ReplyTwice { every: 1 },
        emulate::Fault::BarrierLies { by: 50_000_000 },
        emulate::Fault::WrongXid { every: 2 },
    ];
    for (version, fault) in VERSIONS.into_iter().flat_map(|v| faults.clone().map(|f| (v, f))) {
        let told = format!("{version:?} {fault:?}");
        let mut world = flood(version, fault);
        world.advance(30 * SECOND);
        assert_eq!(left(&world), [MESSAGES; 2], "{told}");
    }
}
