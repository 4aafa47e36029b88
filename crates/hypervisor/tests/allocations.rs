//! Tests of the memory that the core allocates. PACKET_INs and PACKET_OUTs through a warm core allocate nothing. A
//! request that changes entries allocates a bounded number of bytes for each entry.
//!
//! These tests have a test program of their own, because its allocator counts allocations. The allocator counts each
//! thread separately, because threads of the test harness allocate at any time.

// A test reports a failure with a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "behaviour/support/mod.rs"]
mod support;

use allocation_counter::measure;
use support::{Mode, WarmCore, request};

#[test]
fn packets_through_a_warm_core_allocate_no_memory() {
    const TENANTS: u16 = 20;
    const ROUNDS: u64 = 500;
    let modes = support::VERSIONS
        .into_iter()
        .flat_map(|version| [Mode::Slices, Mode::Networks].map(|mode| (version, mode)));
    for (version, mode) in modes {
        let mut core = WarmCore::new(version, TENANTS, mode);
        let messages = WarmCore::messages(version, TENANTS, mode);
        let round = |core: &mut WarmCore| core.round(&messages);
        for _ in 0..300 {
            round(&mut core);
        }
        let (north, south) = (core.north, core.south);
        assert_eq!(
            measure(|| drop(std::hint::black_box(Box::new(1)))).count_total,
            1,
            "nothing is counted"
        );
        let allocations = measure(|| (0..ROUNDS).for_each(|_| round(&mut core))).count_total;
        let expected = ROUNDS * u64::from(TENANTS);
        assert_eq!(
            (core.north - north, core.south - south),
            (expected, expected),
            "{version:?} {mode:?}"
        );
        assert_eq!(allocations, 0, "{version:?} {mode:?}, for {expected} messages each way");
    }
}

/// One tenant adds entries, modifies all of them with one request, and then deletes all of them with one request.
/// During a request Weir keeps the state of each entry before the request. Weir makes all modified entries before it
/// replaces the first entry. The entries share their matches and actions, so each entry needs few bytes.
#[test]
fn a_change_of_all_entries_uses_few_bytes_per_entry() {
    const ENTRIES: u32 = 5_000;
    // The bounds are bytes per entry: for an installed entry, the maximum while all entries are modified, and the
    // maximum while all entries are deleted. An entry of a network on 1.0 is two rules. The record of each rule on the
    // switch (`south::installed`) takes some 70 of these bytes. Each bound for an installed entry leaves room for 35
    // more bytes: the table of requests in flight has 256 places of 680 bytes or, depending on its hashes, 512 places.
    let bounds = [[990, 1_000, 350], [1_510, 2_620, 700], [1_010, 500, 250], [1_040, 1_020, 350]];
    let modes = support::VERSIONS
        .into_iter()
        .flat_map(|version| [Mode::Slices, Mode::Networks].map(|mode| (version, mode)));
    for ((version, mode), most) in modes.zip(bounds) {
        let mut core = WarmCore::new(version, 2, mode);
        let add = |n: u32| {
            let (high, low) = (n / 250, n % 250);
            let words = format!("flow add match=ip,nw_src=10.1.{high}.{low} actions=output:2");
            request(version, n, &words)
        };
        let adds: Vec<Vec<u8>> = (0..ENTRIES).map(add).collect();
        let modify = request(version, 1, "flow modify actions=output:1");
        let delete = request(version, 1, "flow delete");
        let stand = measure(|| adds.iter().for_each(|it| core.down(0, it))).bytes_current;
        core.rest();
        let modified = measure(|| core.down(0, &modify)).bytes_max;
        core.rest();
        let deleted = measure(|| core.down(0, &delete)).bytes_max;
        core.rest();
        let stand = u64::try_from(stand).unwrap();
        let found = [stand, modified, deleted].map(|bytes| bytes / u64::from(ENTRIES));
        let is_bounded = found.iter().zip(most).all(|(it, most)| *it <= most);
        assert!(is_bounded, "{version:?} {mode:?}: {found:?}, at most {most:?}");
    }
}
