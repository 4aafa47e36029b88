//! Tests of LLDP in slices on OpenFlow 1.3. The tenants' own entries handle the LLDP frames of hosts and tenants. A
//! tenant without LLDP in its slice also gets its own probes back.

use crate::support::*;
use openflow::v13::Message;

const BY_PORT: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
    blue: in_port=4
";

/// Red has a small slice. All other packets, also LLDP, belong to blue.
const GUEST: &str = "
    red: ip,nw_src=10.1.0.0/16 @200
    blue: any
";

fn world(policy: &str) -> World {
    World::new(Setup::new(Version::V1_3, policy))
}

/// The ingress ports, reasons and cookies of the PACKET_INs that a controller has received. Each PACKET_IN must contain
/// the unchanged LLDP frame.
fn packet_ins(world: &mut World, seat: Seat) -> Vec<(u32, u8, u64)> {
    let messages = world.received(seat);
    let packet_ins = messages.iter().map(|message| match Message::parse(message) {
        Ok((_, Message::PacketIn(packet_in))) => {
            assert_eq!(
                (packet_in.data, usize::from(packet_in.total_len)),
                (&packet("lldp")[..], packet_in.data.len())
            );
            (packet_in.match_.in_port().unwrap().0, packet_in.reason.0, packet_in.cookie)
        }
        other => panic!("{other:?}"),
    });
    packet_ins.collect()
}

const NO_MATCH: u8 = 0;
const ACTION: u8 = 1;

#[test]
fn lldp_frames_of_hosts_are_handled_by_the_tenants_entries() {
    let mut world = world(BY_PORT);
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    // As on a switch without Weir, a packet without a matching entry causes no PACKET_IN.
    assert_eq!(world.packet(1, &packet("lldp")), [0; 0]);
    assert_eq!(packet_ins(&mut world, red), []);
    world.say(red, 1, "flow add prio=0 cookie=6 actions=controller");
    world.packet(1, &packet("lldp"));
    assert_eq!(packet_ins(&mut world, red), [(1, NO_MATCH, 6)]);
    world.say(red, 2, "flow add match=dl_type=0x88cc prio=1 cookie=7 actions=controller");
    world.packet(2, &packet("lldp"));
    assert_eq!(packet_ins(&mut world, red), [(2, ACTION, 7)]);
    world.say(red, 3, "flow add match=dl_type=0x88cc prio=2 actions=output:2");
    assert_eq!(world.packet(1, &packet("lldp")), [2]);
    world.say(red, 4, "flow add match=dl_type=0x88cc prio=3 actions=");
    assert_eq!(world.packet(1, &packet("lldp")), [0; 0]);
    assert_eq!((packet_ins(&mut world, red), packet_ins(&mut world, blue)), (vec![], vec![]));
}

#[test]
fn lldp_frames_sent_by_a_tenant_are_handled_by_the_tenants_entries() {
    let mut world = world(BY_PORT);
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    world.say(red, 1, "out actions=output:2 data=lldp");
    let probe = world.left[0].frame.clone();
    world.packet(1, &probe);
    assert_eq!(packet_ins(&mut world, red), []);
    world.say(red, 2, "flow add match=dl_type=0x88cc table=1 cookie=7 actions=controller");
    world.say(red, 3, "flow add match=dl_type=0x88cc cookie=6 actions=meta=5/ff;goto=1");
    world.packet(1, &probe);
    assert_eq!(packet_ins(&mut world, red), [(1, ACTION, 7)]);
    // At blue's port, no tenant gets red's probe, although blue has an entry for LLDP.
    world.say(blue, 4, "flow add match=dl_type=0x88cc cookie=8 actions=controller");
    world.packet(3, &probe);
    assert_eq!((packet_ins(&mut world, red), packet_ins(&mut world, blue)), (vec![], vec![]));
}

#[test]
fn a_probe_of_a_tenant_causes_a_packet_in_when_the_slice_has_no_lldp() {
    for policy in [GUEST, "red: ip,nw_src=10.1.0.0/16", "red: in_port=1\nred: in_port=2,ip"] {
        let mut world = world(policy);
        let red = world.connect("red");
        if policy == GUEST {
            let blue = world.connect("blue");
            world.say(blue, 1, "flow add match= cookie=8 actions=output:4");
        }
        world.say(red, 2, "out in_port=none actions=output:1 data=lldp");
        let probe = world.left.remove(0).frame;
        assert_eq!(world.packet(2, &probe), [0; 0], "{policy}");
        assert_eq!(packet_ins(&mut world, red), [(2, ACTION, u64::MAX)], "{policy}");
    }
}

#[test]
fn a_changed_probe_is_reported_only_to_the_owner_of_the_packet() {
    let mut world = world(GUEST);
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    world.say(red, 1, "out actions=output:1 data=lldp");
    let mut probe = world.left.remove(0).frame;
    *probe.last_mut().unwrap() ^= 1;
    let changed = probe.len() - 8;
    probe[changed] ^= 1;
    world.packet(2, &probe);
    // The changed frame is not a probe of red. The frame belongs to blue, the owner of LLDP packets.
    assert_eq!((world.received(red).len(), world.received(blue).len()), (0, 1));
}
