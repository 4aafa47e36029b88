//! What the core allocates: nothing on the forwarding path (PACKET_IN and PACKET_OUT through a warm core), and a bounded number of
//! bytes for each entry that one request changes.
//!
//! A binary of its own, because its allocator counts. The allocator counts each thread by itself: the test harness has threads
//! that allocate when they like.

// In a test a panic is the finding.
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

/// One tenant adds entries, modifies all of them by one request, then deletes all. While that is done each entry is kept as it was,
/// and a modified one is made before any is put in its place: all of them share their matches and actions.
#[test]
fn a_change_of_all_entries_uses_few_bytes_per_entry() {
    const ENTRIES: u32 = 5_000;
    // Bytes for each entry: as it stands, and the most while all are modified, and deleted. An entry of a network on 1.0 is two
    // rules; what is known of each rule on the switch (`south::installed`) takes some 70 bytes of that. Each figure leaves room for
    // 35 bytes more as it stands: the table of requests in flight has 256 places of 680 bytes or, by chance of its hashes, 512.
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
