//! A switch on which two links of one tenant end at one physical port, a hairpin port: a packet can leave by its
//! ingress port.

use super::networks::{both_say, same, two_networks};
use super::*;
use fabric::embedding::SwitchMap;
use hypervisor::{Policy, TenantId};
use std::sync::Arc;

/// The map of the testbed's first switch with the networks of `two_networks`: blue's ports 10 and 11 are on one
/// physical port.
pub fn hairpin_map() -> SwitchMap {
    Testbed::maps_from(2000, &two_networks()).0.remove(&1).unwrap()
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

/// Blue is the tenant whose ports 10 and 11 of the first switch are on one physical port.
pub const BLUE: usize = 1;

/// A testbed in which blue's second and third switches output packets from links to port 1, and packets from port 1 to
/// both links. Blue's first switch has no entries yet.
pub fn testbed() -> Testbed {
    let mut testbed = Testbed::new(Version::V1_3, two_networks());
    for switch in [2, 3] {
        let words = "flow add prio=4 match=in_port=1 actions=output:10,output:11";
        both_say(&mut testbed, BLUE, switch, words);
        both_say(&mut testbed, BLUE, switch, "flow add prio=3 actions=output:1");
    }
    testbed
}

/// Sends packets of several flows from port 1 of each of blue's switches. The result is the same on the testbed and on
/// blue's reference network. Gives the number of delivered packets.
pub fn all_same(testbed: &mut Testbed) -> usize {
    let mut delivered = 0;
    for last in 0..4 {
        for (switch, port) in [(1, 1), (2, 1), (3, 1)] {
            let frame = packet(&format!("10.0.0.{last}>10.0.0.9"));
            delivered += same(testbed, BLUE, switch, port, &frame).delivered.len();
        }
    }
    delivered
}

/// Removes or restores the path of blue's link at port 11. Without this path ports 10 and 11 are no hairpin ports.
pub fn without_eleven(testbed: &mut Testbed, without: bool) {
    let (mut maps, tags) = Testbed::maps_from(if without { 3000 } else { 2000 }, &two_networks());
    let blue = TenantId(BLUE as u16 + 1);
    for dpid in [1, 3].into_iter().filter(|_| without) {
        cut(maps.get_mut(&dpid).unwrap(), blue, 11);
    }
    testbed.set_maps(&maps, 2000..=tags.max(3999));
    testbed.take_received();
}
