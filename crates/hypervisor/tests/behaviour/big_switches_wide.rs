//! Tests of big switches with more ports than one message has room for.

use crate::support::*;
use hypervisor::big_switch::{BigSwitch, Event, Plan};
use hypervisor::{Instant, TenantId};
use openflow::text::Name;
use openflow::v13::MultipartReplyBody;
use openflow::{Header, frame, v10, v13};
use std::collections::{BTreeMap, BTreeSet};

const KEY: u64 = 0xffff_0001_0000_0b16;
const NOW: Instant = Instant(1_000_000_000);

/// A big switch of two connected members without rules. Each member has this number of ports, numbered from 1.
fn joined(version: Version, ports: u32) -> BigSwitch {
    let owners: BTreeMap<u32, u64> =
        (1..=2 * ports).map(|number| (number, 1 + u64::from(number > ports))).collect();
    let plan = Plan {
        tenant: TenantId(1),
        datapath: 0xb16,
        members: BTreeSet::from([1, 2]),
        owners: owners.clone(),
    };
    let mut joint = BigSwitch::new(KEY, plan, version);
    for dpid in [1, 2] {
        let own: Vec<u32> = owners.iter().filter(|it| *it.1 == dpid).map(|it| *it.0).collect();
        joint.member_connected(dpid, &features(version, dpid, &own), NOW);
        loop {
            let outbox = joint.member_outbox(dpid).unwrap();
            let asked: Vec<Vec<u8>> = frames(outbox.as_slice()).collect();
            let length = outbox.len();
            outbox.consume(length);
            if asked.is_empty() {
                break;
            }
            for question in asked {
                let reply = reply(version, &question, &own);
                frames(&reply).for_each(|message| joint.handle_member(dpid, &message, NOW));
            }
        }
    }
    joint
}

fn port_v10(number: u32) -> v10::PhyPort {
    v10::PhyPort {
        port_no: v10::PortNo(number as u16),
        hw_addr: [2, 0, 0, 0, (number >> 8) as u8, number as u8],
        name: Name::new(format!("v{number}").as_str()),
        config: v10::PortConfig(0),
        state: v10::PortState(0),
        curr: v10::PortFeatures(0),
        advertised: v10::PortFeatures(0),
        supported: v10::PortFeatures(0),
        peer: v10::PortFeatures(0),
    }
}

fn port_v13(number: u32) -> v13::Port {
    v13::Port {
        port_no: v13::PortNo(number),
        hw_addr: [2, 0, 0, 0, (number >> 8) as u8, number as u8],
        name: Name::new(format!("v{number}").as_str()),
        config: v13::PortConfig(0),
        state: v13::PortState::LIVE,
        curr: v13::PortFeatures(0),
        advertised: v13::PortFeatures(0),
        supported: v13::PortFeatures(0),
        peer: v13::PortFeatures(0),
        curr_speed: 0,
        max_speed: 0,
    }
}

/// The FEATURES_REPLY of a member.
fn features(version: Version, dpid: u64, ports: &[u32]) -> Vec<u8> {
    let mut body = dpid.to_be_bytes().to_vec();
    body.extend_from_slice(&[0, 0, 0, 0, 15, 0, 0, 0]);
    body.extend_from_slice(&[0; 8]);
    if version == Version::V1_0 {
        ports.iter().for_each(|number| port_v10(*number).write(&mut body));
    }
    let mut out = Vec::new();
    frame::write(version, 6, 0, &mut out, |out| out.extend_from_slice(&body)).unwrap();
    out
}

/// The reply of a member with these ports and no rules.
fn reply(version: Version, question: &[u8], ports: &[u32]) -> Vec<u8> {
    let (type_, xid) = (frame::type_(question).unwrap(), frame::xid(question).unwrap());
    let is_statistics = type_ == if version == Version::V1_0 { 16 } else { 18 };
    let mut out = Vec::new();
    if !is_statistics {
        frame::write(version, type_ + 1, xid, &mut out, |_| {}).unwrap();
        return out;
    }
    let of = &question[Header::LEN..Header::LEN + 2];
    let has_ports = of == v13::MultipartType::PORT_DESC.0.to_be_bytes();
    let padding = if version == Version::V1_0 { 0 } else { 4 };
    let parts: Vec<&[u32]> = if has_ports { ports.chunks(500).collect() } else { vec![&[]] };
    for (at, part) in parts.iter().enumerate() {
        let more = u16::from(at + 1 < parts.len());
        frame::write(version, type_ + 1, xid, &mut out, |out| {
            out.extend_from_slice(of);
            out.extend_from_slice(&more.to_be_bytes());
            out.resize(out.len() + padding, 0);
            part.iter().for_each(|number| port_v13(*number).write(out));
        })
        .unwrap();
    }
    out
}

#[test]
fn port_desc_reports_all_ports_of_a_big_switch_with_many_ports() {
    for ports in [500, 512, 2000] {
        let mut joint = joined(Version::V1_3, ports);
        let Some(Event::Start(_)) = joint.poll_event() else { panic!("it is not shown") };
        joint.handle_front(&request(Version::V1_3, 7, "stats port_desc"), NOW);
        let mut reported = Vec::new();
        let messages: Vec<_> = frames(joint.front_outbox().as_slice()).collect();
        // A port takes 64 bytes, and a message has at most 65,535 bytes.
        assert_eq!(messages.len() > 1, 2 * ports * 64 + 16 > 0xffff, "{ports}");
        for message in messages {
            let (header, message) = v13::Message::parse(&message).unwrap();
            let v13::Message::MultipartReply(part) = message else { panic!("{message:?}") };
            let MultipartReplyBody::PortDesc(part) = part.body else { panic!("{part:?}") };
            assert_eq!(header.xid, 7);
            reported.extend(part.iter().map(|port| port.port_no.0));
        }
        assert_eq!(reported, (1..=2 * ports).collect::<Vec<u32>>());
    }
}

/// On OpenFlow 1.0, one FEATURES_REPLY has all ports.
#[test]
fn a_big_switch_with_too_many_ports_does_not_start_on_1_0() {
    let mut joint = joined(Version::V1_0, 682);
    let Some(Event::Start(features)) = joint.poll_event() else { panic!("it is not shown") };
    assert_eq!(features.len(), 32 + 1364 * 48);

    let mut joint = joined(Version::V1_0, 683);
    assert_eq!(joint.poll_event(), Some(Event::TooManyPorts(1366)));
    assert_eq!((joint.poll_event(), joint.poll_timeout()), (None, None));
    // The big switch starts as soon as it has fewer ports.
    for number in [1, 2] {
        let mut status = Vec::new();
        frame::write(Version::V1_0, 12, 0, &mut status, |out| {
            out.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]);
            port_v10(number).write(out);
        })
        .unwrap();
        joint.handle_member(1, &status, NOW);
    }
    assert!(matches!(joint.poll_event(), Some(Event::Start(_))));
}
