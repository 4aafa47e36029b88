//! Packets that the switch keeps: whoever has one released gets its own, where and as it came in.

use crate::networks::two;
use crate::support::*;
use openflow::Version;
use openflow::v10;
use openflow::v13::{self, MatchBuf, OxmField};

const BY_ADDRESS: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

/// A switch's word that it keeps a packet by this number.
fn announcement(version: Version, number: u32, frame: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let total_len = u16::try_from(frame.len()).unwrap();
    let mut match_ = MatchBuf::new();
    match_.exact(OxmField::IN_PORT, 1);
    let written = match version {
        Version::V1_0 => v10::PacketIn {
            buffer_id: number,
            total_len,
            in_port: v10::PortNo(1),
            reason: v10::PacketInReason::NO_MATCH,
            data: frame,
        }
        .write_message(0, &mut out),
        _ => v13::PacketIn {
            buffer_id: number,
            total_len,
            reason: v13::PacketInReason::NO_MATCH,
            table_id: 1,
            cookie: 0,
            match_: match_.as_match(),
            data: frame,
        }
        .write_message(0, &mut out),
    };
    written.unwrap();
    out
}

#[test]
fn a_number_that_the_switch_gives_out_again_is_the_last_ones_alone() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut world = World::new(Setup { configure: |_| {}, ..Setup::new(version, BY_ADDRESS) });
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.switch_says(&announcement(version, 7, &packet("10.1.0.1>10.2.0.1")));
        // Red does nothing with it, and the switch takes the place for a packet of blue's.
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

/// Where a packet of blue's gets to that the controller has been told of at `switch`, once a change has released it there:
/// tenant, switch and port of the tenant's.
fn released(switch: u64, change: &str) -> Vec<(usize, u64, u32)> {
    let mut stage = Stage::with_buffers(Version::V1_3, two(), 8);
    // Blue's port 1 has a number that is one of red's ports on the switch.
    let mut rules = vec![(0, 1, "prio=1 actions=output:2"), (0, 2, "prio=1 actions=output:1")];
    match switch {
        1 => rules.push((1, 1, "match=in_port=1 prio=5 actions=controller:40")),
        _ => {
            rules.push((1, 1, "match=in_port=1 prio=5 actions=output:10"));
            rules.push((1, 2, "match=in_port=10 prio=5 actions=controller:40"));
        }
    }
    for (tenant, switch, rule) in rules {
        assert_eq!(stage.say(tenant, switch, &format!("flow add {rule}")), [""; 0]);
    }
    let seen = stage.send(1, 1, 1, &packet("10.0.0.1>10.0.0.2*200"));
    assert!(seen.delivered.is_empty() && seen.told[0].2.contains("buffer=0"), "{seen:?}");
    let seen = stage.out(1, switch, &format!("flow {change} buffer=0"));
    seen.delivered.iter().map(|(tenant, switch, port, _)| (*tenant, *switch, *port)).collect()
}

#[test]
fn in_a_network_of_1_3_a_change_releases_a_packet_as_it_came() {
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
