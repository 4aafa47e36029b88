//! Known attacks on shared control planes from the literature, one test for each attack. Attacks on buffers, cookies
//! and xids are in the files about these subjects. See docs/messages.md for the error that answers each refused
//! message.

use crate::support::*;

const PORTS: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
    blue: in_port=4
";

const ADDRESSES: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

#[test]
fn wildcard_delete_across_tenants() {
    both(
        ADDRESSES,
        "
        blue> 1 flow add match=ip,nw_src=10.2.0.1 actions=output:2 flags=rem
        red> 2 flow delete
        red> 3 flow delete match=ip
        red> 4 flow delete_strict match=ip,nw_src=10.2.0.1
        [1.3] red> 5 flow delete table=255
        [1.3] red> 6 flow delete table=255 cookie=0 cookie_mask=0
        count= 1
        wire> 1 10.2.0.1>10.1.0.1
        wire< 2
    ",
    );
}

#[test]
fn priority_shadowing() {
    // Red's entry with the highest priority does not precede blue's entry with the lowest priority on the switch.
    both(
        ADDRESSES,
        "
        blue> 1 flow add match=ip prio=1 actions=output:2
        red> 2 flow add prio=65535 actions=drop
        wire> 1 10.2.0.1>10.1.0.1
        wire< 2
    ",
    );
    // The same is true if the flowspaces overlap.
    both(
        "
        red: ip @10
        blue: ip,nw_src=10.2.0.0/16 @20
    ",
        "
        blue> 1 flow add match=ip,nw_src=10.2.0.0/16 prio=1 actions=output:2
        red> 2 flow add match=ip prio=65535 actions=drop
        [1.0] red< 2 ERROR OFPFMFC_EPERM of type 14 xid 2
        wire> 1 10.2.0.1>10.1.0.1
        wire< 2
    ",
    );
}

#[test]
fn group_meter_and_queue_squatting() {
    play_on(
        Version::V1_3,
        PORTS,
        "
        blue> 1 group add id=7 buckets=output:4
        blue> 2 meter add id=7
        red> 3 flow add match=in_port=1 actions=group:7
        red< 3 ERROR OFPBAC_BAD_OUT_GROUP of type 14 xid 3
        red> 4 group modify id=7 buckets=output:1
        red< 4 ERROR OFPGMFC_UNKNOWN_GROUP of type 15 xid 4
        red> 5 meter modify id=7
        red< 5 ERROR OFPMMFC_UNKNOWN_METER of type 29 xid 5
        red> 6 flow add match=in_port=1 actions=set_queue:1,output:2
        red< 6 ERROR OFPBAC_BAD_QUEUE of type 14 xid 6
        red> 7 group delete id=all
        red> 8 meter delete id=all
        blue> 9 stats group_desc
        blue< 9 STATS group_desc 7:output:4
        blue> 10 stats meter
        blue< 10 STATS meter 7:0(0)
        red> 11 group add id=7 buckets=output:1
        red> 12 stats group_desc
        red< 12 STATS group_desc 7:output:1
    ",
    );
}

#[test]
fn multipart_interleaving() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, ADDRESSES));
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        for n in 0..30 {
            world.say(red, n, &format!("flow add match=ip,nw_src=10.1.0.{n} actions=output:1"));
            world.say(blue, n, &format!("flow add match=ip,nw_src=10.2.0.{n} actions=output:1"));
        }
        // The switch sends both replies at the same time, in small parts.
        let pace = emulate::Fault::PaceStatistics { entries: 3, interval: 1_000_000 };
        world.switch.switch_mut().plant(vec![pace]);
        world.say(red, 5, "stats flow");
        world.say(blue, 5, "stats flow");
        world.say(red, 6, "stats port port=1");
        world.advance(1_000_000_000);
        for (seat, own, other) in [(red, "10.1.", "10.2."), (blue, "10.2.", "10.1.")] {
            let heard = world.heard(seat).join("\n");
            assert_eq!((heard.matches(own).count(), heard.matches(other).count()), (30, 0));
        }
    }
}

#[test]
fn goto_table_and_metadata_escape() {
    play_on(
        Version::V1_3,
        PORTS,
        "
        blue> 1 flow add table=1 actions=output:4
        red> 2 flow add match=in_port=1 actions=meta=2000000000000/ffff000000000000;goto=1
        red< 2 ERROR OFPBIC_UNSUP_METADATA_MASK of type 14 xid 2
        red> 3 flow add match=in_port=1 actions=goto=15
        red< 3 ERROR OFPBIC_BAD_TABLE_ID of type 14 xid 3
        red> 4 flow add match=in_port=1 actions=goto=0
        red< 4 ERROR OFPBIC_BAD_TABLE_ID of type 14 xid 4
        red> 5 flow add match=in_port=1,metadata=0x2000000000000/0xffff000000000000 actions=output:2
        red< 5 ERROR OFPBMC_BAD_MASK of type 14 xid 5
        red> 6 flow add match=in_port=1 actions=goto=1
        wire> 1 10.0.0.1>10.0.0.2
        wire<
    ",
    );
}

#[test]
fn push_vlan_escape() {
    play_on(
        Version::V1_3,
        "
        red: in_port=1,dl_vlan=5
        red: in_port=2,dl_vlan=5
        blue: dl_vlan=6
    ",
        "
        red> 1 flow add match=in_port=1 actions=push_vlan:8100,mod_vlan_vid:6,output:2
        red< 1 ERROR OFPBAC_EPERM of type 14 xid 1
        red> 2 flow add match=in_port=1 actions=push_vlan:88a8,output:2
        red< 2 ERROR OFPBAC_EPERM of type 14 xid 2
        red> 3 flow add match=in_port=1 actions=strip_vlan,output:2
        red< 3 ERROR OFPBAC_EPERM of type 14 xid 3
        red> 4 flow add match=in_port=1 actions=mod_vlan_vid:6,output:2
        red< 4 ERROR OFPBAC_EPERM of type 14 xid 4
        red> 5 flow add match=in_port=1,dl_vlan=5 actions=mod_vlan_vid:5,output:2
        count= 1
    ",
    );
    play_on(
        Version::V1_0,
        "
        red: in_port=1,dl_vlan=5
        red: in_port=2,dl_vlan=5
        blue: dl_vlan=6
    ",
        "
        red> 1 flow add match=in_port=1 actions=mod_vlan_vid:6,output:2
        red< 1 ERROR OFPBAC_EPERM of type 14 xid 1
        red> 2 flow add match=in_port=1 actions=strip_vlan,output:2
        red< 2 ERROR OFPBAC_EPERM of type 14 xid 2
    ",
    );
}

#[test]
fn set_field_into_the_flowspace_of_another_tenant() {
    both(
        ADDRESSES,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.1 actions=mod_nw_src:10.2.0.1,output:2
        red< 1 ERROR OFPBAC_EPERM of type 14 xid 1
        red> 2 out actions=mod_nw_src:10.2.0.1,output:2 data=10.1.0.1>10.2.0.1
        red< 2 ERROR OFPBAC_EPERM of type 13 xid 2
        red> 3 out in_port=1 actions=mod_nw_src:10.2.0.1,table data=10.1.0.1>10.2.0.1
        red< 3 ERROR OFPBAC_EPERM of type 13 xid 3
        left
        count= 0
    ",
    );
}

#[test]
fn resubmit_and_other_vendor_actions_are_refused() {
    // 0x2320 is the vendor id of Nicira. Its actions resubmit packets, learn entries and move registers.
    both(
        PORTS,
        "
        red> 1 flow add match=in_port=1 actions=vendor:2320
        [1.0] red< 1 ERROR OFPBAC_BAD_VENDOR of type 14 xid 1
        [1.3] red< 1 ERROR OFPBAC_BAD_EXPERIMENTER of type 14 xid 1
        red> 2 out in_port=1 actions=vendor:2320 data=10.0.0.1>10.0.0.2
        [1.0] red< 2 ERROR OFPBAC_BAD_VENDOR of type 13 xid 2
        [1.3] red< 2 ERROR OFPBAC_BAD_EXPERIMENTER of type 13 xid 2
        left
    ",
    );
}

#[test]
fn port_mod_cannot_disable_ports_of_another_tenant() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, PORTS));
        let red = world.connect("red");
        for port in [3, 4, 99] {
            world.say(red, port, &format!("port_mod port={port} config=1 mask=1"));
        }
        assert_eq!(world.heard(red).len(), 3);
        assert!(world.switch.switch().ports().all(|port| port.config == 0));
    }
}

#[test]
fn generation_id_abuse() {
    // The generation ids of one tenant do not affect the roles of another tenant.
    play_on(
        Version::V1_3,
        PORTS,
        "
        red> 1 role master generation=0xfffffffffffffff0
        red< 1 ROLE MASTER generation=0xfffffffffffffff0
        blue> 2 role master generation=1
        blue< 2 ROLE MASTER generation=0x1
        blue> 3 flow add match=in_port=3 actions=output:4
        red> 4 role master generation=3
        red< 4 ROLE MASTER generation=0x3
        count= 1
    ",
    );
}

/// A host changes one byte of a recorded link probe, for each byte in turn, or sends LLDP of its own. No tenant
/// receives the frame.
#[test]
fn lldp_forging() {
    let spaces = "
        red: ip,nw_src=10.1.0.0/16
        blue: ip,nw_src=10.2.0.0/16
    ";
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, spaces));
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.say(red, 1, "out actions=output:2 data=lldp");
        let probe = world.left[0].frame.clone();
        // A host knows the format of red's tag, but not the key. For example, the host changes the tag so that it names
        // blue.
        for at in 14..probe.len() {
            let mut forged = probe.clone();
            forged[at] ^= 1;
            world.packet(3, &forged);
        }
        world.packet(3, &packet("lldp"));
        assert_eq!((world.heard(red), world.heard(blue)), (vec![], vec![]));
    }
}

#[test]
fn lldp_replay_and_port_probing() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(
            version,
            "
            red: in_port=1,ip
            red: in_port=2,ip
            blue: in_port=3,ip
        ",
        ));
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.say(red, 1, "out actions=output:2 data=lldp");
        let probe = world.left[0].frame.clone();
        // The host replays the probe at ports that are not red's. Red finds no link there, and blue does not receive
        // the probe.
        world.packet(3, &probe);
        world.packet(4, &probe);
        assert_eq!((world.heard(red), world.heard(blue)), (vec![], vec![]));
        world.advance(6_000_000_000);
        world.packet(1, &probe);
        assert_eq!(world.heard(red), [""; 0]);
        world.say(red, 2, "out actions=output:3 data=lldp");
        assert_eq!(world.heard(red), ["2 ERROR OFPBAC_BAD_OUT_PORT of type 13 xid 2"]);
    }
}

/// A host records one of Weir's own link probes, and its tenant sends the recorded bytes in a PACKET_OUT. The data has
/// additional headers, and the actions remove them.
#[test]
fn a_packet_out_that_produces_a_link_probe_of_weir_is_refused() {
    let probe = probe();
    let hex = |tags: &str| {
        let hex: String = probe.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("hex:{}{tags}{}", &hex[..24], &hex[24..])
    };
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, "red: "));
        let red = world.connect("red");
        for (xid, tags) in (1..).zip(["81000005", "8100000588a80006", "88a80007"]) {
            world.say(red, xid, &format!("out actions=strip_vlan,output:2 data={}", hex(tags)));
            let refused = format!("{xid} ERROR OFPBRC_EPERM of type 13 xid {xid}");
            assert_eq!((world.heard(red), world.left.len()), (vec![refused], 0), "{tags}");
        }
        if version == Version::V1_3 {
            let behind = |outer: &str| hex(outer).replace(&format!("{outer}88cc"), outer);
            for (xid, outer, actions) in [
                (4, "884700001140000088cc", "pop_mpls:8100,strip_vlan"),
                (5, "1234", "push_mpls:8847,pop_mpls:88cc"),
            ] {
                let data = behind(outer);
                world.say(red, xid, &format!("out actions={actions},output:2 data={data}"));
                let refused = format!("{xid} ERROR OFPBRC_EPERM of type 13 xid {xid}");
                assert_eq!((world.heard(red), world.left.len()), (vec![refused], 0), "{outer}");
            }
        }
        // Without additional headers, Weir adds red's tag to the frame. So only red receives the frame, wherever it
        // arrives.
        world.say(red, 9, &format!("out actions=output:2 data={}", hex("")));
        assert_eq!((world.heard(red), world.left.len()), (vec![], 1));
        assert!(world.left[0].frame.len() > probe.len());
        // Red's own link probes may have a VLAN tag.
        let own: String = packet("lldp").iter().map(|byte| format!("{byte:02x}")).collect();
        let own = format!("hex:{}81000005{}", &own[..24], &own[24..]);
        world.say(red, 10, &format!("out actions=output:2 data={own}"));
        assert_eq!((world.heard(red), world.left.len()), (vec![], 2));
    }
}

#[test]
fn table_overflow_inference() {
    // The replies to red do not depend on blue's entries.
    both(
        "
        red flows=3: ip,nw_src=10.1.0.0/16
        blue flows=3: ip,nw_src=10.2.0.0/16
    ",
        "
        blue> 1 flow add match=ip,nw_src=10.2.0.1 actions=output:1
        blue> 2 flow add match=ip,nw_src=10.2.0.2 actions=output:1
        blue> 3 flow add match=ip,nw_src=10.2.0.3 actions=output:1
        red> 1 flow add match=ip,nw_src=10.1.0.1 actions=output:1
        red> 2 stats aggregate
        red< 2 STATS aggregate flows=1 n=0
        [1.0] red> 3 stats table
        [1.0] red< 3 STATS table 0:1
        red> 4 flow add match=ip,nw_src=10.1.0.2 actions=output:1
        red> 5 flow add match=ip,nw_src=10.1.0.3 actions=output:1
        blue> 4 flow add match=ip,nw_src=10.2.0.4 actions=output:1
        [1.0] blue< 4 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 4
        [1.3] blue< 4 ERROR OFPFMFC_TABLE_FULL of type 14 xid 4
    ",
    );
}

/// A switch that reads only one VLAN tag does not find the IP header of a packet with two VLAN tags. So the switch
/// takes the packet for a packet that is not IP.
#[test]
fn a_second_vlan_tag_does_not_bypass_the_flowspace_check() {
    // A packet from 10.1.0.1 with the VLAN tags 5 and 6.
    let frame = "hex:0200000000020200000000018100000581000006080045000014000000004011000\
                 00a0100010a090001";
    both(
        "
        red: ip,nw_src=10.1.0.0/16
        blue: dl_vlan=5 @50
        green: dl_vlan=5,dl_type=0x8100 @60
        ",
        &format!(
            "
        red> 1 out in_port=1 actions=output:2 data={frame}
        red< 1 ERROR OFPBRC_EPERM of type 13 xid 1
        blue> 1 out in_port=1 actions=output:2 data={frame}
        blue< 1 ERROR OFPBRC_EPERM of type 13 xid 1
        green> 1 out in_port=1 actions=output:2 data={frame}
        green< 1 ERROR OFPBRC_EPERM of type 13 xid 1
        "
        ),
    );
    both("red: dl_vlan=5", &format!("red> 1 out in_port=1 actions=output:2 data={frame}\nleft 2"));
}
