use super::*;
use crate::edge::{Grant, Rates};
use alloc::vec;
use alloc::vec::Vec;
use proptest::prelude::*;

const RED: TenantId = TenantId(1);
const BLUE: TenantId = TenantId(2);
const ONE: AgentId = AgentId(1);
const TWO: AgentId = AgentId(2);

fn mac(last: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, last]).unwrap()
}

fn mbit(number: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(number)
}

fn millis(number: u64) -> Instant {
    Instant(number * 1_000_000)
}

/// Red has VNICs 1, 2 and 3 with 8 Mbit/s each, VNIC 3 at the other agent. Blue has VNICs 4 and 5; no agent measures
/// VNIC 5.
fn measured() -> Measured {
    let vnic = |last, tenant, agent| Vnic { mac: mac(last), tenant, bandwidth: mbit(8), agent };
    let vnics = [
        vnic(1, RED, Some(ONE)),
        vnic(2, RED, Some(ONE)),
        vnic(3, RED, Some(TWO)),
        vnic(4, BLUE, Some(TWO)),
        vnic(5, BLUE, None),
    ];
    Measured::new(vnics, Duration::from_secs(1))
}

fn report(from: u8, to: u8, bytes: u64) -> Message {
    let wish = Report::EVERYTHING;
    Message::Reports(vec![Report { from: mac(from), to: mac(to), bytes, wish }])
}

fn rates(vnic: u8, sent: Bandwidth) -> Message {
    Message::Rates(vec![Rates { vnic: mac(vnic), received: mbit(0), sent }])
}

/// Sends reports of a steady rate every 100 ms, and returns the reported changes: times in milliseconds and rates in
/// Mbit/s.
fn steady(all: &mut Measured, times: core::ops::Range<u64>, rate: u64) -> Vec<(u64, Option<u64>)> {
    let mut changes = Vec::new();
    for ms in times.step_by(100) {
        all.handle_message(millis(ms), ONE, &report(1, 2, rate * 125 * ms));
        all.handle_timeout(millis(ms));
        while let Some(change) = all.poll_change() {
            changes.push((ms, only(&change)));
        }
    }
    changes
}

/// The rate from the first VNIC to the second; the test fails if another rate is reported.
fn only((tenant, from, sent): &(TenantId, MacAddress, Sent)) -> Option<u64> {
    assert_eq!((*tenant, *from), (RED, mac(1)));
    let sent = sent.as_ref()?;
    assert!(sent.keys().all(|to| *to == mac(2)));
    Some(sent.get(&mac(2)).map_or(0, |rate| rate.bits_per_second() / 1_000_000))
}

#[test]
fn measured_rates_are_reported_on_change_and_expire_after_one_second() {
    let mut all = measured();
    assert_eq!(all.next_due(), None);
    // The rate is reported once when it is certain, and not again while it does not change.
    assert_eq!(steady(&mut all, 0..2_000, 4), [(300, Some(4))]);
    assert_eq!(all.len(), 1);
    // A pair without reports sends nothing; reports about its VNIC still arrive.
    for ms in (2_000..3_000).step_by(100) {
        all.handle_message(millis(ms), ONE, &rates(1, mbit(0)));
        all.handle_timeout(millis(ms));
    }
    assert_eq!(all.poll_change().as_ref().map(only), Some(Some(0)));
    // The agent disappears: a second later no rate is known.
    assert_eq!(all.next_due(), Some(millis(3_000)));
    all.handle_timeout(millis(3_899));
    assert_eq!(all.poll_change(), None);
    all.handle_timeout(millis(3_900));
    assert_eq!(all.poll_change(), Some((RED, mac(1), None)));
    assert_eq!((all.next_due(), all.is_empty(), all.impossible()), (None, true, 0));
    // The agent returns.
    assert_eq!(steady(&mut all, 5_000..6_000, 6), [(5_300, Some(6))]);
}

#[test]
fn measuring_starts_again_after_a_clock_jump() {
    let mut all = measured();
    assert_eq!(steady(&mut all, 100_000..101_000, 4), [(100_300, Some(4))]);
    // The clock jumps far back: the meter starts again, and no VNIC stays measured until the clock has caught up.
    let changes = steady(&mut all, 1_000..3_000, 4);
    assert_eq!(changes.last(), Some(&(1_100, Some(4))), "{changes:?}");
    all.handle_timeout(millis(3_900));
    assert_eq!(all.poll_change(), Some((RED, mac(1), None)));
    // The clock jumps far ahead: all reports are too old.
    steady(&mut all, 4_000..5_000, 4);
    all.handle_timeout(Instant(u64::MAX));
    assert_eq!(all.poll_change(), Some((RED, mac(1), None)));
    assert_eq!(all.impossible(), 0);
}

#[test]
fn impossible_rates_are_cut_and_misplaced_reports_are_counted() {
    let mut all = measured();
    for ms in (0..1_000).step_by(100) {
        // A VNIC with 8 Mbit/s reports 80 Mbit/s to each of two VNICs of the same tenant.
        all.handle_message(millis(ms), ONE, &report(1, 2, ms * 10_000));
        all.handle_message(millis(ms), ONE, &report(1, 3, ms * 10_000));
    }
    let Some((RED, from, Some(sent))) = all.poll_change() else { panic!("nothing is reported") };
    assert_eq!((from, sent.into_values().collect::<Vec<_>>()), (mac(1), vec![mbit(4); 2]));
    assert!(all.impossible() > 10);
    let before = all.impossible();
    all.handle_message(millis(1_000), ONE, &rates(2, mbit(9)));
    all.handle_message(millis(1_000), ONE, &rates(2, mbit(8)));
    assert_eq!(all.impossible() - before, 1);
    // Reports about VNICs of another agent, a VNIC without agent, receivers of another tenant, unknown VNICs, the
    // sender itself, and messages that are not for the hypervisor.
    for (agent, message) in [
        (TWO, report(1, 2, 0)),
        (ONE, rates(3, mbit(1))),
        (TWO, rates(5, mbit(1))),
        (TWO, report(4, 1, 0)),
        (ONE, report(1, 9, 0)),
        (ONE, report(1, 1, 0)),
        (ONE, report(9, 1, 0)),
        (ONE, Message::Grants(vec![Grant { from: mac(1), to: mac(2), rate: mbit(1) }])),
    ] {
        let before = all.misplaced();
        all.handle_message(millis(1_000), agent, &message);
        let refused = match &message {
            Message::Reports(all) => all.len(),
            Message::Rates(all) => all.len(),
            _ => 1,
        };
        assert_eq!(all.misplaced() - before, refused as u64, "{message:?}");
    }
}

proptest! {
    /// For any messages of any agents at any time: reported rates belong to VNICs of the reporting agent, name
    /// receivers of the same tenant, and do not exceed the bandwidth.
    #[test]
    fn reported_rates_never_exceed_the_bandwidth_for_any_messages(
        said in proptest::collection::vec(
            (any::<bool>(), any::<bool>(), 1..7_u8, 1..7_u8, 0..3_000_u64, prop_oneof![0..10_000_000_u64, any::<u64>()]),
            1..200,
        )
    ) {
        let mut all = measured();
        for (is_one, is_report, from, to, ms, number) in said {
            let message = match is_report {
                true => report(from, to, number),
                false => rates(from, Bandwidth::from_bits_per_second(number)),
            };
            all.handle_message(millis(ms), if is_one { ONE } else { TWO }, &message);
            all.handle_timeout(millis(ms));
            while let Some((tenant, from, sent)) = all.poll_change() {
                let red = [mac(1), mac(2), mac(3)];
                prop_assert_eq!(tenant == RED, red.contains(&from));
                let sent = sent.unwrap_or_default();
                prop_assert!(sent.keys().all(|to| *to != from && (tenant == RED) == red.contains(to)));
                let sum: u64 = sent.values().map(|rate| rate.bits_per_second()).sum();
                prop_assert!(sum <= mbit(8).bits_per_second());
            }
        }
    }
}
