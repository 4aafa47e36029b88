//! Tests of controllers that send requests and do not read the replies. The memory for unread replies is bounded for
//! each tenant, over all its connections and switches.

use crate::support::*;
use hypervisor::{Account, Event};
use std::sync::Arc;

const SPACES: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";
const LIMIT: usize = 2 << 20;

/// Two switches. Each tenant has one account for both switches. Also gives red's account.
fn switches(version: Version) -> ([World; 2], Arc<Account>) {
    let accounts = [Arc::<Account>::default(), Arc::default()];
    let worlds = [(); 2].map(|()| {
        let mut setup = Setup::new(version, SPACES);
        setup.settings.tenant_unread = LIMIT;
        let mut world = World::new(setup);
        for (name, account) in ["red", "blue"].into_iter().zip(&accounts) {
            world.core.share_account(world.tenant(name), account.clone());
        }
        let red = world.connect("red");
        world.say(red, 1, "flow add prio=0 actions=controller");
        // Each reply has more than 64 KiB. Weir counts a smaller amount only when the driver has written.
        for n in 0..1_200 {
            let words = format!("flow add match=udp,nw_src=10.1.0.1,tp_src={n} actions=output:2");
            world.say(red, n, &words);
        }
        world.advance(100_000_000);
        assert_eq!(world.heard(red), [""; 0]);
        world
    });
    (worlds, accounts[0].clone())
}

#[test]
fn unread_replies_of_a_tenant_are_bounded_over_all_connections() {
    for version in VERSIONS {
        let (mut worlds, account) = switches(version);
        let mut silent: Vec<Vec<Seat>> = Vec::new();
        for world in &mut worlds {
            let seats: Vec<Seat> = (0..20).map(|_| world.connect("red")).collect();
            seats.iter().for_each(|seat| world.controllers[seat.0].reads = false);
            silent.push(seats);
        }
        let mut most = 0;
        for round in 0..50 {
            for (world, seats) in worlds.iter_mut().zip(&silent) {
                for seat in seats {
                    let outgoing = &mut world.controllers[seat.0].outgoing;
                    outgoing.push_back(request(version, round, "stats flow"));
                }
                world.advance(10_000_000);
                most = most.max(account.bytes());
            }
        }
        let closed = worlds.iter().flat_map(|world| &world.events);
        let closed = closed.filter(|event| matches!(event, Event::CloseController(_))).count();
        assert!(most <= LIMIT, "{version:?}: {most}");
        assert!(most > LIMIT / 2, "{version:?}: {most}");
        // Before the bound is reached, Weir stops reading from controllers with unread replies. So Weir closes
        // connections only if many controllers send requests at the same moment.
        assert!(closed < 40, "{version:?}: {closed}");
        for world in &mut worlds {
            // Blue gets replies. A controller of red that reads its replies gets replies, too.
            let blue = world.connect("blue");
            world.say(blue, 1, "stats flow");
            world.say(blue, 2, "barrier");
            assert_eq!(world.heard(blue).len(), 2);
            world.say(Seat(0), 3, "echo");
            assert_eq!(world.heard(Seat(0)).len(), 1);
        }
        for (world, seats) in worlds.iter_mut().zip(&silent) {
            for seat in seats {
                world.core.controller_disconnected(world.controllers[seat.0].index);
            }
        }
        assert_eq!(account.bytes(), 0, "{version:?}");
    }
}

#[test]
fn a_controller_that_reads_replies_again_is_served_again() {
    for version in VERSIONS {
        let (mut worlds, account) = switches(version);
        for world in &mut worlds {
            let seat = world.connect("red");
            world.controllers[seat.0].reads = false;
            for n in 0..6 {
                world.say(seat, n, "stats flow");
                world.advance(10_000_000);
            }
        }
        assert!(account.bytes() > LIMIT / 2, "{version:?}: {}", account.bytes());
        for world in &mut worlds {
            let seat = Seat(world.controllers.len() - 1);
            (0..6).for_each(|n| world.say(seat, n, "stats flow"));
            world.advance(10_000_000);
            assert!(!world.controllers[seat.0].outgoing.is_empty(), "{version:?}");
            assert!(!world.events.iter().any(|event| matches!(event, Event::CloseController(_))));
        }
        for world in &mut worlds {
            let seat = world.controllers.len() - 1;
            world.controllers[seat].reads = true;
            let index = world.controllers[seat].index;
            world.core.written(index, false);
            world.advance(1_000_000_000);
            let left = world.controllers[seat].outgoing.len();
            assert_eq!(left, 0, "{version:?}");
        }
        drop(worlds);
        assert_eq!(account.bytes(), 0, "{version:?}");
    }
}

#[test]
fn packet_ins_to_a_slow_controller_are_dropped_when_unread_data_is_high() {
    for version in VERSIONS {
        let (mut worlds, account) = switches(version);
        let [here, there] = &mut worlds;
        let elsewhere: Vec<Seat> = (0..30).map(|_| there.connect("red")).collect();
        for seat in elsewhere {
            there.controllers[seat.0].reads = false;
            there.say(seat, 1, "stats flow");
            there.advance(10_000_000);
        }
        assert!(account.bytes() > LIMIT / 2);
        here.controllers[0].reads = false;
        let frame = packet("10.1.0.9>10.9.0.1");
        for _ in 0..2_000 {
            here.packet(1, &frame);
        }
        let index = here.controllers[0].index;
        let waits = here.core.controller_outbox(index).unwrap().len();
        assert!((1..=65 << 10).contains(&waits), "{version:?}: {waits}");
        let red = here.core.tenants().next().unwrap();
        assert!(red.counters.overflowed > 0, "{version:?}");
    }
}
