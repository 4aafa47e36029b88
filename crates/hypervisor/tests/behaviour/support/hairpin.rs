//! A switch on which two links of one tenant end at one physical port, a hairpin port: a packet can leave by the port by
//! which it came in.

use super::networks::two_networks;
use super::*;
use fabric::embedding::SwitchMap;
use hypervisor::{Policy, TenantId};
use std::sync::Arc;

/// The first of the stage's switches with the networks of `two_networks`: blue's ports 10 and 11 stand on one physical port.
pub fn hairpin_map() -> SwitchMap {
    Stage::maps_from(2000, &two_networks()).0.remove(&1).unwrap()
}

/// The same map with blue's port 11 down, so that there is no hairpin port.
pub fn map_without_hairpin() -> SwitchMap {
    let mut map = hairpin_map();
    cut(&mut map, TenantId(2), 11);
    map
}

/// The policy of two tenants on one switch with this map.
pub fn policy_on(map: SwitchMap) -> Policy {
    let maps = [(0x2a, Arc::new(map))].into_iter().collect();
    Policy { maps, tags: Some(2000..=3999), ..policy("red: -\nblue: -") }
}

/// A controller sends a message, and the message is accepted.
pub fn say(world: &mut World, seat: Seat, words: &str) {
    world.say(seat, 1, words);
    world.advance(100_000_000);
    assert_eq!(world.heard(seat), [""; 0], "{words}");
}
