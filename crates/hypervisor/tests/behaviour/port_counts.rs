//! Tests of port statistics in tenants' networks. Each port counts the packets that the tenant received and sent by
//! this port, and no packets of other tenants.

use crate::support::networks::{big_networks, two_networks};
use crate::support::*;

const V13: Version = Version::V1_3;

fn say(testbed: &mut Testbed, tenant: usize, switch: u64, words: &str) {
    assert_eq!(testbed.say(tenant, switch, words), Vec::<String>::new(), "{words}");
}

/// A testbed of `two_networks` with entries. Blue's frames from port 1 of the first switch cross the link to the third
/// switch, and red's frames cross the link to the second switch.
fn forwarding(version: Version) -> Testbed {
    let mut testbed = Testbed::new(version, two_networks());
    for (tenant, switch, rule) in [
        (0, 1, "match=in_port=1 prio=5 actions=output:10"),
        (0, 2, "match=in_port=10 prio=5 actions=output:1"),
        (1, 1, "match=in_port=1 prio=5 actions=output:11"),
        (1, 3, "match=in_port=11 prio=5 actions=output:1"),
        (1, 3, "match=in_port=1 prio=5 actions=output:11"),
        (1, 1, "match=in_port=11 prio=5 actions=output:1"),
    ] {
        say(&mut testbed, tenant, switch, &format!("flow add {rule}"));
    }
    testbed
}

fn send(testbed: &mut Testbed, tenant: usize, switch: u64, times: usize) {
    for _ in 0..times {
        let seen = testbed.send(tenant, switch, 1, &frame());
        assert_eq!(seen.delivered.len(), 1, "{seen:?}");
    }
}

fn frame() -> Vec<u8> {
    packet("10.0.0.1>10.0.0.2")
}

/// The counters for this number of frames: packets and bytes.
fn frames_of(packets: u64) -> Option<(u64, u64)> {
    Some((packets, packets * frame().len() as u64))
}

#[track_caller]
fn check(
    testbed: &mut Testbed,
    (tenant, switch, port): (usize, u64, u32),
    received: u64,
    sent: u64,
) {
    let counted = testbed.counted(tenant, switch, port);
    assert_eq!(counted, (frames_of(received), frames_of(sent)), "{tenant} {switch} {port}");
}

#[test]
fn a_link_port_counts_only_packets_of_the_link() {
    let mut testbed = forwarding(V13);
    send(&mut testbed, 1, 1, 3);
    send(&mut testbed, 1, 3, 2);
    check(&mut testbed, (1, 1, 11), 2, 3);
    check(&mut testbed, (1, 3, 11), 3, 2);
    // The tenant's other link uses the same physical port of the first switch, and counts no packets.
    check(&mut testbed, (1, 1, 10), 0, 0);
    check(&mut testbed, (1, 2, 10), 0, 0);
    // The frames only pass through the second switch, so its ports do not count the frames.
    check(&mut testbed, (1, 2, 11), 0, 0);
}

/// On OpenFlow 1.0 no rule counts for a single link or for a tenant's hosts at a shared port. A port that belongs
/// wholly to the tenant has the switch's counters.
#[test]
fn on_1_0_only_ports_that_belong_wholly_to_the_tenant_have_counters() {
    let mut testbed = forwarding(Version::V1_0);
    send(&mut testbed, 1, 1, 3);
    assert_eq!(testbed.counted(1, 1, 11), (None, None));
    assert_eq!(testbed.counted(1, 3, 11), (None, None));
    assert_eq!(testbed.counted(1, 1, 1), (frames_of(3), frames_of(0)));
    assert_eq!(testbed.counted(1, 3, 1), (frames_of(0), frames_of(3)));
}

#[test]
fn port_counters_do_not_include_packets_of_another_tenant() {
    let mut testbed = forwarding(V13);
    send(&mut testbed, 1, 1, 3);
    let red = [(1, 10), (2, 10), (2, 11), (3, 10)];
    for (switch, port) in red {
        check(&mut testbed, (0, switch, port), 0, 0);
    }
    send(&mut testbed, 0, 1, 5);
    for (switch, port, received, sent) in [(1, 10, 0, 5), (2, 10, 5, 0), (2, 11, 0, 0)] {
        check(&mut testbed, (0, switch, port), received, sent);
    }
    check(&mut testbed, (1, 1, 11), 0, 3);
    check(&mut testbed, (1, 2, 10), 0, 0);
}

#[test]
fn packet_outs_are_counted_at_both_ends_of_a_link() {
    let mut testbed = forwarding(V13);
    testbed.out(1, 1, "out in_port=controller actions=output:11 data=10.0.0.1>10.0.0.2");
    check(&mut testbed, (1, 1, 11), 0, 1);
    check(&mut testbed, (1, 3, 11), 1, 0);
}

/// The counters of removed rules are not kept.
#[test]
fn port_counters_start_at_zero_after_a_link_moves() {
    let mut testbed = forwarding(V13);
    send(&mut testbed, 1, 1, 3);
    check(&mut testbed, (1, 3, 11), 3, 0);
    let (maps, tags) = Testbed::maps_from(3000, &two_networks());
    testbed.set_maps(&maps, 2000..=tags);
    check(&mut testbed, (1, 3, 11), 0, 0);
    check(&mut testbed, (1, 1, 11), 0, 0);
    send(&mut testbed, 1, 1, 2);
    check(&mut testbed, (1, 1, 11), 0, 2);
    check(&mut testbed, (1, 3, 11), 2, 0);
}

/// The rules that count stay on the switch.
#[test]
fn port_counters_are_kept_when_the_switch_reconnects() {
    let mut testbed = forwarding(V13);
    send(&mut testbed, 1, 1, 3);
    for switch in [3, 1] {
        testbed.reconnect(switch);
        check(&mut testbed, (1, 3, 11), 3, 0);
        check(&mut testbed, (1, 1, 11), 0, 3);
    }
}

#[test]
fn port_counters_start_at_zero_after_a_port_is_removed_and_added_again() {
    for version in [V13] {
        let mut testbed = forwarding(version);
        send(&mut testbed, 1, 1, 3);
        let (maps, tags) = Testbed::maps_from(2000, &two_networks());
        let mut less = maps.clone();
        for switch in [1, 3] {
            let member = less.get_mut(&switch).unwrap().members.get_mut(&hypervisor::TenantId(2));
            member.unwrap().ports.remove(&11);
        }
        testbed.set_maps(&less, 2000..=tags);
        testbed.set_maps(&maps, 2000..=tags);
        check(&mut testbed, (1, 3, 11), 0, 0);
        check(&mut testbed, (1, 1, 11), 0, 0);
    }
}

#[test]
fn port_counters_continue_after_a_port_mod() {
    for version in [V13] {
        let mut testbed = forwarding(version);
        send(&mut testbed, 1, 1, 3);
        // The other end does not get the PORT_MOD and still sends, so both ends count the frame.
        for (config, lets_in) in [("1", false), ("0", true), ("4", false), ("0", true)] {
            say(&mut testbed, 1, 3, &format!("port_mod port=11 config={config} mask=5"));
            let before = testbed.counted(1, 3, 11).0.unwrap().0;
            let seen = testbed.send(1, 1, 1, &frame());
            assert_eq!(seen.delivered.len(), usize::from(lets_in));
            check(&mut testbed, (1, 3, 11), before + 1, 0);
            check(&mut testbed, (1, 1, 11), 0, before + 1);
        }
    }
}

#[test]
fn port_statistics_are_answered_when_the_switch_at_the_far_end_is_silent() {
    for version in [V13] {
        let mut testbed = forwarding(version);
        testbed.deafen(3, true);
        send(&mut testbed, 1, 1, 3);
        send(&mut testbed, 1, 3, 2);
        // Weir waits once for the silent switch, for a quarter of a second. The counters that this switch has not
        // reported are missing.
        assert_eq!(testbed.counted_at_once(1, 1, 11), None);
        testbed.wait(1);
        for _ in 0..2 {
            testbed.wait(1);
            let counted = testbed.counted_at_once(1, 1, 11);
            assert_eq!(counted, Some((frames_of(2), None)));
        }
        testbed.deafen(3, false);
        testbed.counted(1, 1, 11);
        check(&mut testbed, (1, 1, 11), 2, 3);
        // The last counters of a silent switch are used until the switch answers again.
        testbed.deafen(3, true);
        send(&mut testbed, 1, 1, 4);
        check(&mut testbed, (1, 1, 11), 2, 3);
        check(&mut testbed, (1, 1, 10), 0, 0);
        testbed.deafen(3, false);
        testbed.counted(1, 1, 11);
        check(&mut testbed, (1, 1, 11), 2, 7);
    }
}

#[test]
fn statistics_requests_to_the_far_end_are_few_and_stop_without_demand() {
    let mut testbed = forwarding(V13);
    check(&mut testbed, (1, 1, 11), 0, 0);
    let before = testbed.asked_for_statistics(3);
    for _ in 0..100 {
        testbed.counted_at_once(1, 1, 11);
    }
    let quarters = testbed.quarters_passed();
    let asked = testbed.asked_for_statistics(3) - before;
    assert!(asked <= quarters, "{asked} questions in {quarters} quarters of a second");
    let before = testbed.asked_for_statistics(3);
    testbed.wait(30);
    assert_eq!(testbed.asked_for_statistics(3), before);
}

#[test]
fn counters_from_the_far_end_count_only_for_the_tenant_of_the_link() {
    let mut testbed = forwarding(V13);
    testbed.deafen(3, true);
    testbed.counted(1, 1, 11);
    testbed.report_counts(1, 3, 1, &[(11, 3, 180), (12, 9, 900)]);
    assert_eq!(testbed.counted(1, 1, 11), (Some((0, 0)), Some((3, 180))));
    assert_eq!(testbed.counted(0, 1, 10), (Some((0, 0)), Some((0, 0))));
}

#[test]
fn a_shared_edge_port_counts_only_frames_from_the_tenants_hosts() {
    for version in VERSIONS {
        let host = |n: u8| [0x02, 0, 0, 0, 0x10, n];
        let plan = |n| Plan {
            edges: vec![(2, u32::from(n) + 1, 1)],
            shared: vec![(1, 4, 7, host(n))],
            links: vec![[(1, 10), (2, 10)]],
            ..Plan::default()
        };
        let mut testbed = Testbed::new(version, vec![plan(0), plan(1)]);
        let from = |host: [u8; 6]| {
            let mut frame = frame();
            frame[6..12].copy_from_slice(&host);
            frame
        };
        for (n, times) in [(0, 2), (1, 5), (9, 1)] {
            for _ in 0..times {
                testbed.send(0, 1, 7, &from(host(n)));
            }
        }
        for (tenant, received) in [(0, 2), (1, 5)] {
            let received = frames_of(received).filter(|_| version == V13);
            assert_eq!(testbed.counted(tenant, 1, 7), (received, None), "{version:?}");
        }
    }
}

#[test]
fn a_link_port_of_a_big_switch_counts_at_the_member_with_the_link_end() {
    let mut testbed = Testbed::new(V13, big_networks());
    for (switch, rule) in [
        (1, "match=in_port=1 prio=5 actions=output:10"),
        (1, "match=in_port=10 prio=5 actions=output:1"),
        (3, "match=in_port=10 prio=5 actions=output:1"),
        (3, "match=in_port=1 prio=5 actions=output:10"),
    ] {
        say(&mut testbed, 1, switch, &format!("flow add {rule}"));
    }
    send(&mut testbed, 1, 1, 3);
    send(&mut testbed, 1, 3, 2);
    check(&mut testbed, (1, 1, 10), 2, 3);
    check(&mut testbed, (1, 3, 10), 3, 2);
    // The link now ends at another member of the big switch.
    let mut plans = big_networks();
    plans[1].links[0] = [(1, 10), (3, 10)];
    let (maps, tags) = Testbed::maps_from(3000, &plans);
    testbed.set_maps(&maps, 2000..=tags);
    check(&mut testbed, (1, 1, 10), 0, 0);
    send(&mut testbed, 1, 1, 1);
    send(&mut testbed, 1, 3, 4);
    check(&mut testbed, (1, 1, 10), 4, 1);
    check(&mut testbed, (1, 3, 10), 1, 4);
}
