//! Tests of buffered packets. A tenant that releases a buffer releases its own packet, at the switch and port at which
//! the packet arrived.

use crate::support::networks::two_networks;
use crate::support::*;
use openflow::{Version, frame};

const BY_ADDRESS: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

#[test]
fn a_reused_buffer_id_belongs_only_to_the_tenant_of_the_last_packet() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut world = World::new(Setup { configure: |_| {}, ..Setup::new(version, BY_ADDRESS) });
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.switch_says(&announcement(version, 7, &packet("10.1.0.1>10.2.0.1")));
        // Red does not release the packet, and the switch uses the buffer id for a packet of blue.
        world.switch_says(&announcement(version, 7, &packet("10.2.0.1>10.1.0.1")));
        let _ = (world.heard(red), world.heard(blue));
        world.south.clear();
        world.say(red, 5, "out buffer=0 actions=output:3");
        assert_eq!(world.heard(red), ["5 ERROR OFPBRC_BUFFER_UNKNOWN of type 13 xid 5"]);
        assert!(world.south.is_empty(), "{version:?}: {:x?}", world.south);
        world.say(blue, 6, "out buffer=0 actions=output:3");
        assert_eq!(world.south.len(), 1, "{version:?}: blue's own");
    }
}

/// Red sends a request that releases the packet in buffer 7, and red's rate limit delays the request. If `is_taken`,
/// the switch meanwhile uses the buffer for a packet of blue. Returns the FLOW_MODs and PACKET_OUTs to the switch, and
/// the messages to red.
fn waits(version: Version, release: &str, is_taken: bool) -> (Vec<String>, Vec<String>) {
    let policy = BY_ADDRESS.replace("red:", "red packet_out=1/1 flow_mod=1/1:");
    let mut world = World::new(Setup { configure: |_| {}, ..Setup::new(version, &policy) });
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    world.lose_south(true);
    // The first two requests use up red's rate limits.
    world.say(red, 1, "out data=10.1.0.1>10.2.0.1 actions=output:3");
    world.say(red, 2, "flow add match=ip,nw_dst=10.2.0.9 actions=output:3");
    world.switch_says(&announcement(version, 7, &packet("10.1.0.1>10.2.0.1")));
    world.south.clear();
    world.say(red, 3, release);
    if is_taken {
        world.switch_says(&announcement(version, 7, &packet("10.2.0.1>10.1.0.1")));
    }
    let _ = (world.heard(red), world.heard(blue));
    world.advance(2_000_000_000);
    let is_change = |message: &&Vec<u8>| matches!(frame::type_(message), Some(13 | 14));
    let sent = world.south.iter().filter(is_change).map(|message| describe(message)).collect();
    (sent, world.heard(red))
}

#[test]
fn a_delayed_request_does_not_release_a_later_packet_with_the_same_buffer_id() {
    for version in [Version::V1_0, Version::V1_3] {
        for (release, expected) in [
            (
                "out buffer=0 actions=output:3",
                &["3 ERROR OFPBRC_BUFFER_UNKNOWN of type 13 xid 3"][..],
            ),
            // Weir sends the FLOW_MOD without the buffer id.
            ("flow add match=ip,nw_dst=10.2.0.1 buffer=0 actions=output:3", &[]),
        ] {
            let (sent, heard) = waits(version, release, false);
            assert!(sent.len() == 1 && sent[0].contains("buffer_id: 7,"), "{version:?}: {sent:?}");
            assert_eq!(heard, [""; 0], "{version:?}: {release}");
            let (sent, heard) = waits(version, release, true);
            assert!(sent.len() == 1 && sent[0].contains("buffer_id: 4294967295,"), "{sent:?}");
            let sends = sent[0].contains("Output");
            assert_eq!(sends, release.starts_with("flow"), "{version:?}: {sent:?}");
            assert_eq!(heard, expected, "{version:?}: {release}");
        }
    }
}

/// A packet of blue is buffered at `switch`, and a FLOW_MOD of blue there releases the packet. Returns the tenants,
/// switches and ports at which the packet is delivered.
fn released(switch: u64, change: &str) -> Vec<(usize, u64, u32)> {
    let mut testbed = Testbed::with_buffers(Version::V1_3, two_networks(), 8);
    // Physical port 1 is red's, and blue's port 1 is another physical port. If Weir used the wrong port, red's entries
    // would forward the packet.
    let mut rules = vec![(0, 1, "prio=1 actions=output:2"), (0, 2, "prio=1 actions=output:1")];
    match switch {
        1 => rules.push((1, 1, "match=in_port=1 prio=5 actions=controller:40")),
        _ => {
            rules.push((1, 1, "match=in_port=1 prio=5 actions=output:10"));
            rules.push((1, 2, "match=in_port=10 prio=5 actions=controller:40"));
        }
    }
    for (tenant, switch, rule) in rules {
        assert_eq!(testbed.say(tenant, switch, &format!("flow add {rule}")), [""; 0]);
    }
    let seen = testbed.send(1, 1, 1, &packet("10.0.0.1>10.0.0.2*200"));
    assert!(seen.delivered.is_empty() && seen.received[0].2.contains("buffer=0"), "{seen:?}");
    let seen = testbed.out(1, switch, &format!("flow {change} buffer=0"));
    seen.delivered.iter().map(|(tenant, switch, port, _)| (*tenant, *switch, *port)).collect()
}

#[test]
fn a_flow_mod_releases_a_packet_at_its_ingress_port_in_a_network_on_1_3() {
    let to_the_far_host = vec![(1, 2, 1)];
    for (switch, change, reached) in [
        (1, "modify match=in_port=1 actions=drop", vec![]),
        (1, "add match=in_port=1 prio=9 actions=drop", vec![]),
        (1, "add prio=9 actions=output:10,output:11", vec![]),
        (2, "modify match=in_port=10 actions=drop", vec![]),
        (2, "modify match=in_port=10 actions=output:1", to_the_far_host.clone()),
        (2, "add match=in_port=10 prio=9 actions=output:1", to_the_far_host.clone()),
        (2, "add prio=9 actions=output:1", to_the_far_host),
    ] {
        assert_eq!(released(switch, change), reached, "{switch}: {change}");
    }
}
