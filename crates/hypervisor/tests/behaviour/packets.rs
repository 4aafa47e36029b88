//! Tests of PACKET_IN, PACKET_OUT and buffers. Weir sends a PACKET_IN to the owner of the packet. A PACKET_OUT leaves
//! the switch only by ports of the slice.

use crate::support::*;

/// Tenants that share all ports and differ by addresses.
const BY_ADDRESS: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

/// Tenants with ports of their own.
const BY_PORT: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";

/// On OpenFlow 1.3 a table without entries drops packets. This entry sends the packets to the controller.
const MISS: &str = "
    [1.3] red> 900 flow add prio=0 actions=controller
    [1.3] blue> 900 flow add prio=0 actions=controller
    red>
    blue>
";

fn check(policy: &str, script: &str) {
    both(policy, &format!("{MISS}{script}"));
}

#[test]
fn a_packet_in_is_sent_only_to_the_owner_of_the_packet() {
    check(
        BY_ADDRESS,
        "
        wire> 1 10.1.0.1>10.2.0.1
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1
        wire> 1 10.2.0.1>10.1.0.1
        blue< PACKET_IN 1 NO_MATCH 10.2.0.1>10.1.0.1
        wire> 1 10.3.0.1>10.1.0.1
        wire> 1 arp:10.1.0.1>10.2.0.1
        wire<
    ",
    );
    check(
        BY_PORT,
        "
        wire> 2 10.1.0.1>10.2.0.1
        red< PACKET_IN 2 NO_MATCH 10.1.0.1>10.2.0.1
        wire> 3 10.1.0.1>10.2.0.1
        blue< PACKET_IN 3 NO_MATCH 10.1.0.1>10.2.0.1
        wire> 4 10.1.0.1>10.2.0.1
    ",
    );
}

#[test]
fn the_priority_decides_the_owner_where_flowspaces_overlap() {
    check(
        "
        red: ip @100
        blue: ip,nw_src=10.2.0.0/16 @200
    ",
        "
        wire> 1 10.1.0.1>10.2.0.1
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1
        wire> 1 10.2.0.1>10.1.0.1
        blue< PACKET_IN 1 NO_MATCH 10.2.0.1>10.1.0.1
    ",
    );
}

#[test]
fn a_read_only_tenant_gets_packet_in_copies_and_no_write_access() {
    check(
        "
        red: ip,nw_src=10.1.0.0/16
        blue: ip read
    ",
        "
        [1.3] blue< 900 ERROR OFPBRC_EPERM of type 14 xid 900
        wire> 1 10.1.0.1>10.2.0.1
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1
        blue< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1
        blue> 1 flow add match=ip actions=drop
        [1.0] blue< 1 ERROR OFPFMFC_EPERM of type 14 xid 1
        [1.3] blue< 1 ERROR OFPBRC_EPERM of type 14 xid 1
        blue> 2 out actions=output:1 data=10.1.0.1>10.2.0.1
        blue< 2 ERROR OFPBRC_EPERM of type 13 xid 2
        blue> 3 port_mod port=1 config=1 mask=1
        [1.0] blue< 3 ERROR OFPBRC_EPERM of type 15 xid 3
        [1.3] blue< 3 ERROR OFPBRC_EPERM of type 16 xid 3
        left
    ",
    );
}

#[test]
fn a_packet_out_outside_the_slice_is_refused() {
    check(
        BY_ADDRESS,
        "
        red> 1 out in_port=1 actions=output:2 data=10.1.0.1>10.2.0.1
        left 2
        red> 2 out actions=output:2,output:3 data=10.1.0.1>10.2.0.1
        left 2 3
        red> 3 out in_port=1 actions=output:2 data=10.2.0.1>10.1.0.1
        red< 3 ERROR OFPBRC_EPERM of type 13 xid 3
        red> 4 out actions=output:2 data=10.2.0.1>10.1.0.1
        red< 4 ERROR OFPBRC_EPERM of type 13 xid 4
        red> 5 out actions=output:2 data=arp:10.1.0.1>10.2.0.1
        red< 5 ERROR OFPBRC_EPERM of type 13 xid 5
        left
    ",
    );
    check(
        BY_PORT,
        "
        red> 1 out in_port=1 actions=output:2 data=10.2.0.1>10.1.0.1
        left 2
        red> 2 out actions=output:3 data=10.2.0.1>10.1.0.1
        red< 2 ERROR OFPBAC_BAD_OUT_PORT of type 13 xid 2
        red> 3 out in_port=3 actions=output:1 data=10.2.0.1>10.1.0.1
        [1.0] red< 3 ERROR OFPBRC_EPERM of type 13 xid 3
        [1.3] red< 3 ERROR OFPBRC_BAD_PORT of type 13 xid 3
        red> 4 out in_port=1 actions=in_port data=10.2.0.1>10.1.0.1
        left 1
        red> 5 out in_port=1 actions=normal data=10.2.0.1>10.1.0.1
        red< 5 ERROR OFPBAC_BAD_OUT_PORT of type 13 xid 5
        red> 6 out actions=output:2 data=hex:0102
        [1.0] red< 6 ERROR OFPBRC_BAD_LEN of type 13 xid 6
        [1.3] red< 6 ERROR OFPBRC_BAD_PACKET of type 13 xid 6
        left
    ",
    );
}

#[test]
fn flood_sends_only_to_ports_of_the_slice() {
    check(
        BY_PORT,
        "
        red> 1 out in_port=1 actions=flood data=10.1.0.1>10.1.0.2
        left 2
        red> 2 out actions=all data=10.1.0.1>10.1.0.2
        left 1 2
        blue> 3 out actions=flood data=10.1.0.1>10.1.0.2
        left 3
    ",
    );
    check(
        BY_ADDRESS,
        "
        red> 1 out in_port=1 actions=flood data=10.1.0.1>10.1.0.2
        left 2 3 4
    ",
    );
}

#[test]
fn a_packet_out_to_table_uses_the_tenants_own_entries() {
    check(
        BY_ADDRESS,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.0/16 actions=output:3
        red> 2 out in_port=1 actions=table data=10.1.0.1>10.2.0.1
        left 3
        red> 3 flow add match=ip,nw_src=10.1.0.0/16 actions=table prio=5
        red< 3 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 3
    ",
    );
}

#[test]
fn an_lldp_probe_is_reported_only_to_the_tenant_that_sent_the_probe() {
    for version in VERSIONS {
        let policy = "
            red: in_port=1,ip
            red: in_port=2,ip
            blue: in_port=3
        ";
        let mut world = World::new(Setup::new(version, policy));
        let red = world.connect("red");
        let blue = world.connect("blue");
        for seat in [red, blue] {
            world.say(seat, 1, "out actions=output:2 data=lldp");
        }
        let [Left { port: 2, frame: probe, .. }] = &world.left[..] else {
            panic!("{:?}", world.left)
        };
        let probe = probe.clone();
        assert!(probe.len() > packet("lldp").len(), "untagged");
        assert_eq!(world.heard(blue), ["1 ERROR OFPBAC_BAD_OUT_PORT of type 13 xid 1"]);
        // The probe arrives at red's other port, then at blue's port, and then at red's port after the probe has
        // expired.
        world.packet(1, &probe);
        assert_eq!(world.heard(red).len(), 1);
        world.packet(3, &probe);
        assert_eq!((world.heard(red), world.heard(blue)), (vec![], vec![]));
        world.advance(6_000_000_000);
        world.packet(1, &probe);
        assert_eq!(world.heard(red), [""; 0]);
    }
}

#[test]
fn an_lldp_probe_is_not_reported_to_another_tenant_with_lldp_in_the_slice() {
    // The other end of the link may be at another tenant's port.
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, BY_PORT));
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.say(red, 1, "out actions=output:2 data=lldp");
        let probe = world.left[0].frame.clone();
        if version == Version::V1_3 {
            // On 1.3 a packet that matches no entry causes no PACKET_IN.
            for seat in [red, blue] {
                world.say(seat, 2, "flow add prio=0 actions=controller");
            }
        }
        world.packet(3, &probe);
        assert_eq!((world.heard(red), world.heard(blue)), (vec![], vec![]));
        world.packet(1, &probe);
        assert!(world.received(red)[0].ends_with(&packet("lldp")));
    }
}

#[test]
fn an_lldp_probe_returns_unchanged_to_the_tenant() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, BY_ADDRESS));
        let red = world.connect("red");
        world.say(red, 1, "out actions=output:2 data=lldp");
        let probe = world.left[0].frame.clone();
        world.packet(3, &probe);
        let [message] = &world.received(red)[..] else { panic!("one PACKET_IN") };
        assert!(message.ends_with(&packet("lldp")));
    }
}

/// A setup in which the switch has packet buffers. The buffer ids of each tenant start at 0.
fn with_buffers(version: Version) -> Setup {
    Setup { configure: |_| {}, ..Setup::new(version, BY_ADDRESS) }
}

#[test]
fn a_buffer_id_can_be_used_once_and_only_by_the_receiving_tenant() {
    play_with(
        with_buffers(Version::V1_0),
        "
        red>
        blue>
        wire> 1 10.1.0.1>10.2.0.1*200
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1 buffer=0 cut=128
        blue> 3 out buffer=0 actions=output:2
        blue< 3 ERROR OFPBRC_BUFFER_UNKNOWN of type 13 xid 3
        left
        red> 4 out buffer=0 actions=output:3
        left 3
        red> 5 out buffer=0 actions=output:3
        red< 5 ERROR OFPBRC_BUFFER_UNKNOWN of type 13 xid 5
        wire> 1 10.2.0.1>10.1.0.1
        blue< PACKET_IN 1 NO_MATCH 10.2.0.1>10.1.0.1 buffer=0
        wire> 1 10.1.0.1>10.2.0.1
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1 buffer=1
        red> 6 out buffer=0 actions=output:3
        red< 6 ERROR OFPBRC_BUFFER_UNKNOWN of type 13 xid 6
        red> 7 out buffer=99 actions=output:3
        red< 7 ERROR OFPBRC_BUFFER_UNKNOWN of type 13 xid 7
        red> 8 out buffer=1 actions=normal
        red< 8 ERROR OFPBAC_BAD_OUT_PORT of type 13 xid 8
        red> 9 out buffer=1 actions=output:4
        left 4
    ",
    );
}

#[test]
fn a_new_entry_is_applied_to_the_packet_of_its_buffer() {
    for (command, prio) in [("add", 5), ("modify", 6)] {
        play_with(
            with_buffers(Version::V1_0),
            &format!(
                "
            red>
            wire> 1 10.1.0.1>10.2.0.1
            red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1 buffer=0
            blue> 1 flow add match=ip actions=output:2 buffer=0
            blue< 1 ERROR OFPBRC_BUFFER_UNKNOWN of type 14 xid 1
            red> 2 flow {command} prio={prio} match=ip actions=output:2 buffer=0
            left 2
            red> 3 flow {command} prio={prio} match=ip actions=output:2 buffer=0
            red< 3 ERROR OFPBRC_BUFFER_UNKNOWN of type 14 xid 3
        "
            ),
        );
    }
}

#[test]
fn a_modified_entry_is_applied_to_the_packet_of_its_buffer() {
    play_with(
        with_buffers(Version::V1_0),
        "
        red>
        wire> 1 10.1.0.1>10.2.0.1
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1 buffer=0
        red> 1 flow add match=ip actions=output:2
        red> 2 flow modify match=ip actions=output:3 buffer=0
        left 3
    ",
    );
}

/// The MODIFY may match several entries. The packet is sent through the tables once, after the MODIFY.
#[test]
fn on_1_3_a_modify_sends_the_buffered_packet_through_the_tables_once() {
    for modify in [
        "modify match=ip",
        "modify_strict match=ip prio=5",
        "modify match=ip cookie=7 cookie_mask=7",
    ] {
        play_with(
            with_buffers(Version::V1_3),
            &format!(
                "
            red> 1 flow add match=ip prio=5 actions=controller:40 cookie=7
            red> 2 flow add match=ip,nw_src=10.1.0.1 prio=4 actions=output:4 cookie=7
            wire> 1 10.1.0.1>10.2.0.1*500
            red< PACKET_IN 1 ACTION 10.1.0.1>10.2.0.1 buffer=0 cut=40
            red> 3 flow {modify} actions=output:3 buffer=0
            left 3
            red> 4 flow {modify} actions=output:3 buffer=0
            red< 4 ERROR OFPBRC_BUFFER_UNKNOWN of type 14 xid 4
        "
            ),
        );
    }
}

#[test]
fn a_buffered_packet_that_matches_two_rules_of_an_entry_is_sent_once() {
    let setup = Setup::new(
        Version::V1_0,
        "
        red: ip,nw_src=10.1.0.0/16
        red: ip,nw_dst=10.1.0.0/16
    ",
    );
    play_with(
        Setup { configure: |_| {}, ..setup },
        "
        red>
        wire> 1 10.1.0.1>10.1.0.2
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.1.0.2 buffer=0
        red> 2 flow add actions=output:2 buffer=0
        left 2
        count= 2
    ",
    );
}

#[test]
fn a_buffered_packet_that_the_new_entry_does_not_match_uses_the_table() {
    play_with(
        with_buffers(Version::V1_0),
        "
        red>
        wire> 1 10.1.0.1>10.2.0.1
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1 buffer=0
        red> 1 flow add match=ip,nw_src=10.1.0.1 actions=output:4
        red> 2 flow add match=ip,nw_src=10.1.0.9 actions=output:2 buffer=0
        left 4
    ",
    );
}

#[test]
fn a_packet_in_of_a_buffered_packet_has_the_length_of_set_config() {
    play_with(
        with_buffers(Version::V1_0),
        "
        red> 1 set_config len=40
        blue> 1 set_config len=200
        wire> 1 10.1.0.1>10.2.0.1*500
        red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1 buffer=0 cut=40
        wire> 1 10.2.0.1>10.1.0.1*500
        blue< PACKET_IN 1 NO_MATCH 10.2.0.1>10.1.0.1 buffer=0 cut=200
    ",
    );
}

/// On OpenFlow 1.0 only the bytes of a packet identify the owner. So the switch sends enough bytes, whatever max_len
/// the entry has, and the tenant gets all these bytes.
#[test]
fn on_1_0_a_packet_in_can_be_longer_than_the_max_len_of_the_entry() {
    for length in [0, 20, 90] {
        let policy = "
            red: in_port=1 @10
            red: in_port=2 @10
            blue: ip,nw_src=10.2.0.0/16 @20
            blue: udp6,tp_dst=53 @20
        ";
        let setup = Setup::new(Version::V1_0, policy);
        play_with(
            Setup { configure: |_| {}, ..setup },
            &format!(
                "
                red>
                blue> 1 flow add match=ip,nw_src=10.2.0.0/16 prio=5 actions=controller:{length}
                blue> 2 flow add match=udp6,tp_dst=53 prio=5 actions=controller:{length}
                wire> 1 10.2.0.1>10.1.0.1*500
                blue< PACKET_IN 1 ACTION 10.2.0.1>10.1.0.1 buffer=0 cut=110
                wire> 1 tp53:10.1.0.1>10.2.0.1*500
                red< PACKET_IN 1 NO_MATCH 10.1.0.1>10.2.0.1 buffer=0 cut=128
                wire> 1 hex:{}
                blue< PACKET_IN 1 ACTION 0x86dd buffer=1
                blue> 3 stats flow match=udp6
                blue< 3 STATS flow prio=5 udp6,tp_dst=53 n=1 controller:{length}
            ",
                hex(&behind_options(53)),
            ),
        );
    }
}

/// From the bytes of a packet, Weir also decides which tenants may read the packet and which actions are permitted for
/// the packet.
#[test]
fn readers_and_permissions_do_not_depend_on_the_max_len_of_the_entry() {
    for version in VERSIONS {
        let policy = "
            red: in_port=1 @10
            red: in_port=2 @10
            blue: ip,nw_src=10.2.0.0/16 @20
            green: udp,tp_dst=2000 read
        ";
        let packet_in = if version == Version::V1_0 {
            "10.1.0.1>10.3.0.1 buffer=0 cut=110"
        } else {
            "0x0000 buffer=0 cut=0"
        };
        let script = format!(
            "
            green>
            red> 1 flow add match=in_port=1,ip,nw_src=10.1.0.0/16 prio=5 actions=controller:0
            wire> 1 10.1.0.1>10.3.0.1*500
            red< PACKET_IN 1 ACTION {packet_in}
            green< PACKET_IN 1 ACTION 10.1.0.1>10.3.0.1 cut=110
            red> 2 out buffer=0 actions=mod_nw_src:10.2.0.1,output:2
            red< 2 ERROR OFPBAC_EPERM of type 13 xid 2
            red> 3 out buffer=0 actions=mod_nw_src:10.4.0.1,output:2
            left 2
            red> 4 stats flow
            red< 4 STATS flow prio=5 ip,in_port=1,nw_src=10.1.0.0/16 n=1 controller:0
        "
        );
        play_with(Setup { configure: |_| {}, ..Setup::new(version, policy) }, &script);
    }
}

/// A UDP datagram over IPv6 to this port. The options before the UDP header are longer than all options of IPv4 can be.
fn behind_options(port: u16) -> Vec<u8> {
    const BYTES: usize = 512;
    let mut frame = packet("10.1.0.1>10.2.0.1")[..12].to_vec();
    frame.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0, 0x02, 0x08, 60, 64]);
    frame.extend_from_slice(&[0xfe; 32]);
    frame.extend_from_slice(&[17, (BYTES / 8 - 1) as u8, 1, (BYTES - 4) as u8]);
    frame.resize(frame.len() + BYTES - 4, 0);
    frame.extend_from_slice(&1000u16.to_be_bytes());
    frame.extend_from_slice(&port.to_be_bytes());
    frame.extend_from_slice(&[0, 8, 0, 0]);
    frame
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn on_1_0_a_small_max_len_does_not_hide_lldp_probes() {
    let mut world = World::new(with_buffers(Version::V1_0));
    world.set_policy(policy(BY_PORT));
    let red = world.connect("red");
    world.say(red, 1, "flow add match=dl_type=0x88cc actions=controller:20");
    world.say(red, 2, "out actions=output:2 data=lldp");
    let probe = world.left[0].frame.clone();
    world.packet(1, &probe);
    assert!(world.received(red)[0].ends_with(&packet("lldp")));
}

#[test]
fn packet_ins_beyond_the_rate_are_dropped_and_counted() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "red packet_in=10/3: any"));
        let red = world.connect("red");
        if version == Version::V1_3 {
            world.say(red, 1, "flow add prio=0 actions=controller");
        }
        for _ in 0..10 {
            world.packet(1, &packet("10.1.0.1>10.2.0.1"));
        }
        assert_eq!(world.heard(red).len(), 3);
        world.advance(1_000_000_000);
        world.packet(1, &packet("10.1.0.1>10.2.0.1"));
        assert_eq!(world.heard(red).len(), 1);
        let limited = world.core.tenants().next().unwrap().counters.limited;
        assert_eq!(limited, 7);
    }
}
