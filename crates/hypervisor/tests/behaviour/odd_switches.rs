//! Tests of switches that answer barriers late, twice, with a wrong xid or not at all. Weir waits no longer than the
//! reply timeout, loses no request and counts the unexpected replies. One test has a switch that also refuses
//! deletions.

use crate::support::*;

const TENANTS: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
    green: ip,nw_src=10.3.0.0/16
";
const SECOND: u64 = 1_000_000_000;
const MESSAGES: usize = 1_000;

/// A world with a slow switch that has this fault. Red and blue each have 1,000 PACKET_OUTs to send, and both tenants
/// compete for the switch.
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
fn unanswered_barriers_block_messages_only_until_the_reply_timeout() {
    for version in VERSIONS {
        let message_type = if version == Version::V1_0 { 18 } else { 20 };
        let mut world = flood(version, emulate::Fault::NeverAnswers { message_type });
        let begin = world.now;
        world.advance(10 * SECOND - 1);
        assert_ne!(left(&world), [MESSAGES; 2], "the wait for an answer has not ended yet");
        assert_eq!(world.core.counters().unanswered, 0);
        while world.core.counters().unanswered == 0 {
            world.advance(SECOND / 100);
            assert!(world.now < begin + 20 * SECOND, "{version:?}");
        }
        // Weir waits ten seconds for a reply, and checks for missing replies every 2.5 seconds.
        let waited = world.now - begin;
        assert!(waited < 12 * SECOND + SECOND / 2, "{version:?}: {waited}");
        // The switch handles all messages in 250 ms.
        world.advance(SECOND / 2);
        assert_eq!(left(&world), [MESSAGES; 2], "{version:?}");
    }
}

#[test]
fn no_message_is_in_flight_after_the_switch_answers_barriers_again() {
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
fn duplicate_replies_and_replies_with_a_wrong_xid_lose_no_message() {
    // The switch needs 250 ms for 2,000 messages. Weir gives up a barrier after ten seconds if the reply has another
    // xid.
    let faults = [
        (emulate::Fault::ReplyTwice { every: 1 }, SECOND),
        (emulate::Fault::WrongXid { every: 2 }, 15 * SECOND),
    ];
    for (version, (fault, within)) in
        VERSIONS.into_iter().flat_map(|v| faults.clone().map(|f| (v, f)))
    {
        let context = format!("{version:?} {fault:?}");
        let mut world = flood(version, fault);
        world.advance(within);
        assert_eq!(left(&world), [MESSAGES; 2], "{context}");
        assert!(world.core.counters().unexpected > 0, "{context}");
    }
}

#[test]
fn barrier_replies_before_the_rules_are_installed_lose_no_request() {
    const ENTRIES: u32 = 300;
    for version in VERSIONS {
        let mut world =
            World::new(Setup { per_second: Some(8_000), ..Setup::new(version, TENANTS) });
        let seats = [world.connect("red"), world.connect("blue")];
        // The switch answers a barrier at once, and changes its table 50 ms later.
        world.switch.switch_mut().plant(vec![emulate::Fault::BarrierLies { by: 50_000_000 }]);
        for n in 0..ENTRIES {
            for (tenant, seat) in (1..).zip(seats) {
                let (high, low) = (n / 250, n % 250);
                let words = format!(
                    "flow add match=ip,nw_src=10.{tenant}.{high}.{low} actions=output:{tenant}"
                );
                world.controllers[seat.0].outgoing.push_back(request(version, n + 1, &words));
            }
        }
        for seat in seats {
            world.controllers[seat.0].outgoing.push_back(request(version, 9_999, "barrier"));
        }
        world.advance(SECOND / 2);
        for seat in seats {
            assert_eq!(world.heard(seat), ["9999 BARRIER_REPLY"], "{version:?}");
        }
        world.advance(SECOND / 2);
        assert_eq!(world.core.window().1, 0, "{version:?}: all is known to be done");
        // Weir cannot distinguish these replies from correct replies.
        let counters = world.core.counters();
        assert_eq!((counters.unanswered, counters.unexpected), (0, 0), "{version:?}");
        world.switch.switch_mut().plant(Vec::new());
        world.check_agreement();
        assert_eq!(world.tenant_flows().len(), 2 * ENTRIES as usize, "{version:?}");
    }
}

/// The number of messages that one tenant has sent to the switch, and the number that waits for the switch.
fn sent_and_waiting(world: &World, name: &str, type_: usize) -> (usize, usize) {
    let id = world.tenant(name);
    let state = world.core.tenants().find(|state| state.id == id).unwrap();
    (state.counters.to_switch[type_] as usize, state.waiting_south)
}

/// Waiting PACKET_OUTs are lost with the session, as on any switch. Table changes are kept in the store.
#[test]
fn table_changes_that_wait_at_a_full_window_are_installed_after_a_reconnect() {
    const ENTRIES: u32 = 5;
    for version in VERSIONS {
        let message_type = if version == Version::V1_0 { 18 } else { 20 };
        let mut world = flood(version, emulate::Fault::NeverAnswers { message_type });
        world.advance(SECOND);
        let (limit, in_flight) = world.core.window();
        assert!(in_flight >= limit, "{version:?}: {in_flight} of {limit}");
        let green = world.connect("green");
        for n in 1..=ENTRIES {
            let words = format!("flow add match=ip,nw_src=10.3.0.{n} actions=output:3");
            world.say(green, n, &words);
        }
        world.say(green, 99, "barrier");
        world.advance(SECOND);
        // Each PACKET_OUT of the tenant has left, or waits in Weir, or Weir has not read it.
        let before = left(&world);
        for (at, name) in ["red", "blue"].into_iter().enumerate() {
            let (sent, waiting) = sent_and_waiting(&world, name, 13);
            assert_eq!(sent, before[at], "{version:?} {name}");
            let unread = world.controllers[at].outgoing.len();
            assert!(waiting > 0 && unread > 0, "{version:?} {name}: {waiting} {unread}");
            assert_eq!(sent + waiting + unread, MESSAGES, "{version:?} {name}");
        }
        assert_eq!(sent_and_waiting(&world, "green", 14), (0, ENTRIES as usize + 1), "{version:?}");
        assert_eq!(world.heard(green), [""; 0], "{version:?}: nothing is confirmed");
        // The switch disconnects before Weir gives up an unanswered barrier.
        assert_eq!(world.core.counters().unanswered, 0, "{version:?}");
        world.switch.switch_mut().plant(Vec::new());
        world.reconnect();
        assert_eq!(world.core.window().1, 0, "{version:?}");
        // Weir installs the waiting changes once, without a new request of the tenant.
        assert_eq!(world.tenant_flows().len(), ENTRIES as usize, "{version:?}");
        assert_eq!(left(&world), before, "{version:?}: no PACKET_OUT is sent to a later session");
        world.left.clear();
        for (tenant, name) in [(1, "red"), (2, "blue"), (3, "green")] {
            let seat = world.connect(name);
            for n in 0..MESSAGES as u32 {
                let words = format!("out actions=output:{tenant} data=10.{tenant}.0.1>10.9.0.1");
                world.controllers[seat.0].outgoing.push_back(request(version, n + 1, &words));
            }
        }
        world.advance(SECOND);
        assert_eq!(left(&world), [MESSAGES; 2], "{version:?}");
        let greens = world.left.iter().filter(|left| left.port == 3).count();
        assert_eq!(greens, MESSAGES, "{version:?}");
        let counters = world.core.counters();
        assert_eq!((counters.unanswered, counters.unexpected), (0, 0), "{version:?}");
        world.check_agreement();
    }
}

/// The switch accepts only the first FLOW_MOD and refuses all later FLOW_MODs, also deletions. Weir sends fewer than
/// 100 FLOW_MODs, and the tenant gets errors and the BARRIER_REPLY.
#[test]
fn a_switch_that_refuses_deletions_causes_errors_and_no_endless_retries() {
    for version in VERSIONS {
        let policy = "red: in_port=1\nred: in_port=2";
        let mut world = World::new(Setup::new(version, policy));
        let red = world.connect("red");
        world.lose_south(true);
        world.south.clear();
        world.say(red, 1, "flow add match=in_port=1 actions=output:1");
        world.say(red, 2, "flow delete match=in_port=1");
        world.say(red, 3, "flow add prio=7 match=in_port=2 actions=output:2");
        world.say(red, 4, "barrier");
        let (barrier, full) = match version {
            Version::V1_0 => (18, openflow::error::v10::FLOW_MOD_FAILED_ALL_TABLES_FULL),
            _ => (20, openflow::error::v13::FLOW_MOD_FAILED_TABLE_FULL),
        };
        let (mut received, mut mods) = (Vec::new(), 0);
        for _ in 0..400 {
            world.advance(100_000_000);
            for message in std::mem::take(&mut world.south) {
                let (type_, xid) = (message[1], openflow::frame::xid(&message).unwrap());
                let mut answer = Vec::new();
                if type_ == barrier {
                    answer.extend_from_slice(&[version.0, barrier + 1, 0, 8]);
                    answer.extend_from_slice(&xid.to_be_bytes());
                } else if type_ == 14 {
                    mods += 1;
                    let error = openflow::error::Error { code: full, data: &[] };
                    // The switch accepts the first FLOW_MOD and refuses all other FLOW_MODs.
                    if mods > 1 {
                        error.write_message(version, xid, &mut answer).unwrap();
                    }
                }
                if !answer.is_empty() {
                    world.switch_says(&answer);
                }
            }
            received.extend(world.heard(red));
        }
        assert!(mods < 100, "{version:?}: {mods}");
        let [errors @ .., last] = &received[..] else { panic!("{version:?}: {received:?}") };
        assert_eq!(last, "4 BARRIER_REPLY", "{version:?}: {received:?}");
        let are_errors = !errors.is_empty() && errors.iter().all(|it| it.contains("ERROR"));
        assert!(are_errors, "{version:?}: {received:?}");
    }
}
