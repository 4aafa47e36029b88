//! What the core allocates: nothing on the forwarding path (PACKET_IN and PACKET_OUT through a warm core), and a bounded number of
//! bytes for each entry that one request changes.
//!
//! A binary of its own, because its allocator counts.

// In a test a panic is the finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "behaviour/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::{Mode, WarmCore, request};

struct Counting;

thread_local! {
    /// By thread: the test harness has threads that allocate when they like.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes allocated and not freed, and the most that these ever were.
    static BYTES: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

fn count(more: usize, less: usize) {
    // While a thread ends its counter may be gone; nobody asks then.
    if more > 0 {
        let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
    }
    let _ = BYTES.try_with(|bytes| {
        let (now, most) = bytes.get();
        let now = now + more as i64 - less as i64;
        bytes.set((now, most.max(now)));
    });
}

/// Bytes that are allocated after some work, and the most that were during it, beside those before it.
fn bytes_of(work: impl FnOnce()) -> (i64, i64) {
    let (before, _) = BYTES.get();
    BYTES.set((before, before));
    work();
    let (now, most) = BYTES.get();
    (now - before, most - before)
}

// SAFETY: everything is the system's allocator; counting touches only a cell without a destructor.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is passed on.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller keeps `GlobalAlloc::dealloc`'s contract, which is passed on.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above; the pointer came from `alloc` and so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }

    // SAFETY: the caller keeps `GlobalAlloc::realloc`'s contract, which is passed on.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn packets_through_a_warm_core_allocate_nothing() {
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
        let before = ALLOCATIONS.get();
        assert!(before > 0, "nothing is counted");
        for _ in 0..ROUNDS {
            round(&mut core);
        }
        let allocations = ALLOCATIONS.get() - before;
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
fn a_change_of_all_entries_holds_few_bytes_for_each() {
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
        let each = |bytes: i64| bytes / i64::from(ENTRIES);
        let (stand, _) = bytes_of(|| adds.iter().for_each(|it| core.down(0, it)));
        core.rest();
        let (_, modified) = bytes_of(|| core.down(0, &modify));
        core.rest();
        let (_, deleted) = bytes_of(|| core.down(0, &delete));
        core.rest();
        let found = [stand, modified, deleted].map(each);
        let is_bounded = found.iter().zip(most).all(|(it, most)| *it <= most);
        assert!(is_bounded, "{version:?} {mode:?}: {found:?}, at most {most:?}");
    }
}
