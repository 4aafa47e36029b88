//! Tests of a switch with arbitrary bytes, damaged messages and odd packets: the switch continues to work.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use common::{Peer, path};
use emulate::controller::malformed_messages;
use emulate::{Config, Instructions, frame};
use openflow::error::Error;
use openflow::error::v13::BAD_REQUEST_BAD_TYPE as BAD_TYPE;
use openflow::v13::{Action, FlowMod, Instruction, MatchBuf, Message, Oxm, OxmField, PortNo};
use openflow::{ListBuf, Version};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Correct and malformed frames of a version, to which a test adds damage.
fn seeds(version: Version) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        malformed_messages(version).into_iter().map(|(_, frame)| frame).collect();
    let mut frame = Vec::new();
    if version == Version::V1_3 {
        let actions = ListBuf::from([
            Action::PushVlan(0x8100),
            Action::SetField(Oxm::exact(OxmField::VLAN_VID, &[0x10, 7])),
            Action::Output { port: PortNo::FLOOD, max_len: 0 },
        ]);
        let instructions = ListBuf::from([Instruction::ApplyActions(actions.as_list())]);
        let mut match_ = MatchBuf::new();
        match_.exact(OxmField::ETH_TYPE, 0x0800).masked(
            OxmField::IPV4_SRC,
            0x0a00_0000,
            0xff00_0000,
        );
        let body = FlowMod {
            match_: match_.as_match(),
            instructions: instructions.as_list(),
            ..FlowMod::default()
        };
        Message::FlowMod(body).write(1, &mut frame).unwrap();
    } else {
        let actions = ListBuf::from([
            openflow::v10::Action::SetVlanVid(7),
            openflow::v10::Action::SetNwSrc(7),
            openflow::v10::Action::Output { port: openflow::v10::PortNo::FLOOD, max_len: 0 },
        ]);
        let body = openflow::v10::FlowMod { actions: actions.as_list(), ..Default::default() };
        openflow::v10::Message::FlowMod(body).write(1, &mut frame).unwrap();
    }
    seeds.push(frame);
    seeds
}

/// A message that only switches send is refused by its type, also if its body cannot be read.
#[test]
fn bad_type_errors_depend_on_the_message_type_and_not_on_the_body() {
    for version in [Version::V1_0, Version::V1_3] {
        for type_ in 0..=u8::MAX {
            // Some of these lengths are right for the type.
            let is_refused = (8..=80).step_by(8).map(|length: u8| {
                let mut peer = Peer::connected(version, Config::new(1, 4));
                let mut message = vec![0; length.into()];
                message[..4].copy_from_slice(&[version.0, type_, 0, length]);
                peer.send(&message);
                let answers = peer.frames();
                let error = answers.iter().find(|frame| frame[1] == Error::TYPE);
                error.is_some_and(|frame| Error::parse(&frame[8..]).unwrap().code == BAD_TYPE)
            });
            let outcomes: BTreeSet<bool> = is_refused.collect();
            assert_eq!(outcomes.len(), 1, "{version:?}: type {type_}");
        }
    }
}

fn packets() -> Vec<Vec<u8>> {
    let mut tagged = path(1, 2).tcp(1, 2, b"x");
    frame::push_vlan(&mut tagged, frame::ETH_VLAN);
    let mut labelled = path(1, 2).udp(1, 2, b"x");
    frame::push_mpls(&mut labelled, frame::ETH_MPLS);
    vec![tagged, labelled, path(1, 2).arp_request(), path(1, 2).icmp_echo(false, 1, 1, b"x")]
}

/// Checks that every answer is a whole frame of the agreed version, and that the switch answers an ECHO_REQUEST
/// afterwards.
fn goes_on(peer: &mut Peer, version: Version) {
    for frame in peer.frames() {
        assert_eq!(openflow::frame::version(&frame), Some(version));
    }
    peer.send(&[version.0, 2, 0, 8, 0, 0, 0, 9]);
    assert_eq!(peer.frames(), [[version.0, 3, 0, 8, 0, 0, 0, 9]]);
}

proptest! {
    #[test]
    fn a_switch_keeps_working_after_damaged_messages_and_packets(
        is_v13 in any::<bool>(),
        choices in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..20),
        packet_choices in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let version = if is_v13 { Version::V1_3 } else { Version::V1_0 };
        let mut peer = Peer::connected(version, Config::new(1, 4));
        let (seeds, packets) = (seeds(version), packets());
        for (seed, at, value) in choices {
            let mut message = seed.get(&seeds).clone();
            // The version and the length in the header stay, because the switch would close the connection if they were
            // wrong.
            let at = 4 + at.index(message.len() - 4);
            message[at] = value;
            peer.send(&message);
        }
        for (packet, at, value) in packet_choices {
            let mut packet = packet.get(&packets).clone();
            let at = at.index(packet.len());
            packet[at] = value;
            packet.truncate(packet.len() - usize::from(value) % 16);
            peer.receive(1, &packet);
        }
        goes_on(&mut peer, version);
    }

    #[test]
    fn a_switch_keeps_working_after_messages_with_arbitrary_bodies(
        is_v13 in any::<bool>(),
        type_ in 0u8..32,
        body in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let version = if is_v13 { Version::V1_3 } else { Version::V1_0 };
        let mut peer = Peer::connected(version, Config::new(1, 4));
        let mut message = vec![version.0, type_, 0, 0, 0, 0, 0, 1];
        message.extend_from_slice(&body);
        let length = (message.len() as u16).to_be_bytes();
        message[2..4].copy_from_slice(&length);
        peer.send(&message);
        goes_on(&mut peer, version);
    }

    /// For any addresses, the entry changes a packet exactly as its actions say.
    #[test]
    fn rewritten_packets_have_right_checksums(
        source: u32, destination: u32, port: u16, dscp in 0u8..64,
        data in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let actions = [
            openflow::v10::Action::SetNwSrc(source),
            openflow::v10::Action::SetNwDst(destination),
            openflow::v10::Action::SetTpDst(port),
            openflow::v10::Action::SetNwTos(dscp << 2),
            openflow::v10::Action::Output { port: openflow::v10::PortNo(2), max_len: 0 },
        ];
        let mut peer = Peer::connected(Version::V1_0, Config::new(1, 4));
        let list = ListBuf::from(actions);
        let body = openflow::v10::FlowMod { actions: list.as_list(), ..Default::default() };
        let mut message = Vec::new();
        openflow::v10::Message::FlowMod(body).write(1, &mut message).unwrap();
        peer.send(&message);
        let outcome = peer.receive(1, &path(1, 2).tcp(7, 8, &data));
        let mut expected = frame::build::Path {
            ip_src: source,
            ip_dst: destination,
            ..path(1, 2)
        }
        .tcp(7, port, &data);
        frame::set_dscp(&mut expected, dscp);
        // The one's complement has two zeros, and the computation decides which zero is the result. So the frames are
        // compared without checksums.
        prop_assert_eq!(without_checksums(&outcome.sent[0].frame), without_checksums(&expected));
        prop_assert_eq!(frame::internet_checksum(&[&outcome.sent[0].frame[14..34]]), 0);
        prop_assert!(matches!(peer.switch.flows().next(), Some((0, flow)) if flow.packets == 1));
        let unchanged = Instructions::default();
        prop_assert!(peer.switch.flows().all(|(_, flow)| *flow.instructions != unchanged));
    }
}

fn without_checksums(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[24..26].fill(0);
    frame[50..52].fill(0);
    frame
}
