//! Tests that sending, receiving and recording allocate no memory per message.

#![allow(clippy::unwrap_used, reason = "test code")]

use bench::{Controllers, Kind, Load, Session, Setup, Topology};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn generator_allocations_do_not_grow_with_the_number_of_messages() {
    let controllers = Controllers::bind(2, "127.0.0.1:0".parse().unwrap()).unwrap();
    let mut session = Session::open(Setup::new(Topology::Direct, 2), &controllers).unwrap();
    for kind in [Kind::PacketIn, Kind::PacketOut, Kind::Echo, Kind::PortStats] {
        let mut count = |rate| {
            let load = Load::constant(kind, 2, rate, 500);
            let region = Region::new(ALLOCATOR);
            let outcome = session.run(&load, &[]).unwrap();
            (outcome.counts().received, region.change().allocations)
        };
        let (few, many) = (count(200.0), count(20_000.0));
        assert_eq!((few.0, many.0), (100, 10_000));
        // An emulated switch builds the body of a statistics reply, which needs allocations.
        let allowed = if kind == Kind::PortStats { 100_000 } else { 500 };
        assert!(many.1 < few.1 + allowed, "{kind:?}: {many:?} against {few:?}");
    }
}
