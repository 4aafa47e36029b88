//! The forwarding path allocates nothing: PACKET_IN and PACKET_OUT through a warm core, on both versions.
//!
//! A binary of its own, because its allocator counts; one test, because the count is the process's.

// In a test a panic is the finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "behaviour/support/mod.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::{Mode, WarmCore};

struct Counting;

thread_local! {
    /// By thread: the test harness has threads that allocate when they like.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // While a thread ends its counter may be gone; nobody asks then.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: everything is the system's allocator; counting touches only a cell without a destructor.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is passed on.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the caller keeps `GlobalAlloc::dealloc`'s contract, which is passed on.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above; the pointer came from `alloc` and so from the system.
        unsafe { System.dealloc(pointer, layout) }
    }

    // SAFETY: the caller keeps `GlobalAlloc::realloc`'s contract, which is passed on.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
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
