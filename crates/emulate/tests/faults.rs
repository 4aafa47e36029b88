//! Tests of planted faults: each fault has its stated effect by the stated amount.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use common::{Peer, path};
use emulate::{Config, Fault};
use openflow::v10::{
    Action, FlowMod, FlowStatsRequest, Match, Message, PortNo, StatsReplyBody, StatsRequest,
    StatsRequestBody,
};
use openflow::{ListBuf, Version};

const MS: u64 = 1_000_000;

fn with(fault: Fault) -> Peer {
    Peer::connected(Version::V1_0, Config { faults: vec![fault], ..Config::new(1, 3) })
}

fn send(peer: &mut Peer, xid: u32, message: Message<'_>) -> emulate::Outcome {
    let mut frame = Vec::new();
    message.write(xid, &mut frame).unwrap();
    peer.send(&frame)
}

fn add(peer: &mut Peer, priority: u16, actions: &[Action<'_>]) {
    let actions = ListBuf::from(actions);
    let body = FlowMod { priority, actions: actions.as_list(), ..FlowMod::default() };
    send(peer, u32::from(priority), Message::FlowMod(body));
}

fn output(port: u16) -> Action<'static> {
    Action::Output { port: PortNo(port), max_len: 0 }
}

/// The types and xids of the messages that the switch has sent since the last call.
fn heard(peer: &mut Peer) -> Vec<(u8, u32)> {
    let frames = peer.frames();
    frames.iter().map(|frame| (frame[1], openflow::frame::xid(frame).unwrap())).collect()
}

#[test]
fn the_barrier_fault_delays_flow_mods_by_the_configured_time() {
    let mut peer = with(Fault::BarrierLies { by: 7 * MS });
    peer.now = 3 * MS;
    add(&mut peer, 1, &[output(2)]);
    send(&mut peer, 9, Message::BarrierRequest);
    assert_eq!(heard(&mut peer), [(19, 9)], "the barrier is answered at once");
    let packet = path(1, 2).udp(1, 2, b"");
    assert_eq!(peer.switch.next_deadline(), Some(10 * MS));
    peer.now = 10 * MS - 1;
    assert_eq!(peer.receive(1, &packet).sent.len(), 0);
    peer.now = 10 * MS;
    assert_eq!(peer.receive(1, &packet).sent.len(), 1);
    peer.out.clear();

    // The ERROR for a command is as late as the command.
    let overlap = FlowMod {
        flags: openflow::v10::FlowModFlags::CHECK_OVERLAP,
        priority: 1,
        ..FlowMod::default()
    };
    let wildcards = openflow::v10::Wildcards::ALL.without(openflow::v10::Wildcards::IN_PORT);
    let match_ = Match { wildcards, in_port: PortNo(1), ..Match::ANY };
    send(&mut peer, 11, Message::FlowMod(FlowMod { match_, ..overlap }));
    assert_eq!(heard(&mut peer), []);
    peer.tick(17 * MS);
    assert_eq!(heard(&mut peer), [(1, 11)]);
}

#[test]
fn every_third_flow_add_is_refused() {
    let mut peer = with(Fault::RefuseFlowMods { every: 3 });
    for priority in 1..=7 {
        add(&mut peer, priority, &[]);
    }
    assert_eq!(heard(&mut peer), [(1, 3), (1, 6)]);
    let mut priorities: Vec<u16> = peer.switch.flows().map(|(_, flow)| flow.priority).collect();
    priorities.sort_unstable();
    assert_eq!(priorities, [1, 2, 4, 5, 7]);
}

#[test]
fn only_the_second_flow_add_is_refused() {
    let mut peer = with(Fault::RefuseOnce { nth: 2 });
    for priority in 1..=5 {
        add(&mut peer, priority, &[]);
    }
    assert_eq!(heard(&mut peer), [(1, 2)]);
    assert_eq!(peer.switch.flows().count(), 4);
}

#[test]
fn a_message_type_with_the_never_answers_fault_gets_no_reply() {
    let mut peer = with(Fault::NeverAnswers { message_type: 18 });
    send(&mut peer, 1, Message::BarrierRequest);
    send(&mut peer, 2, Message::EchoRequest(b""));
    assert_eq!(heard(&mut peer), [(3, 2)]);
}

#[test]
fn an_echo_reply_overtakes_paced_statistics_replies() {
    let mut peer = with(Fault::PaceStatistics { entries: 4, interval: 5 * MS });
    for priority in 1..=10 {
        add(&mut peer, priority, &[]);
    }
    peer.now = 100 * MS;
    let request = StatsRequestBody::Flow(FlowStatsRequest::default());
    send(&mut peer, 1, Message::StatsRequest(StatsRequest::from(request)));
    send(&mut peer, 2, Message::EchoRequest(b""));
    assert_eq!(heard(&mut peer), [(3, 2)]);
    let mut parts = Vec::new();
    while let Some(due) = peer.switch.next_deadline() {
        peer.tick(due);
        for frame in peer.frames() {
            let Message::StatsReply(reply) = Message::parse(&frame).unwrap().1 else { panic!() };
            let StatsReplyBody::Flow(list) = reply.body else { panic!() };
            parts.push((due / MS, list.count(), reply.flags.0));
        }
    }
    assert_eq!(parts, [(105, 4, 1), (110, 4, 1), (115, 2, 0)]);
}

#[test]
fn the_drop_fault_loses_only_packets_with_changed_headers() {
    let mut peer = with(Fault::DropChangedPackets);
    add(&mut peer, 1, &[output(2), Action::SetDlSrc([9; 6]), output(3)]);
    let packet = path(1, 2).udp(1, 2, b"");
    assert_eq!(common::ports(&peer.receive(1, &packet)), [2]);
    peer.switch.plant(Vec::new());
    assert_eq!(common::ports(&peer.receive(1, &packet)), [2, 3]);
}

#[test]
fn reply_faults_cut_duplicate_or_corrupt_replies_or_change_the_xid() {
    // HELLO is message 1, so the fault is in the reply to the second request.
    let mut peer = with(Fault::DisconnectInReply { message: 3 });
    assert!(!send(&mut peer, 1, Message::EchoRequest(&[7; 12])).disconnect);
    assert_eq!(heard(&mut peer), [(3, 1)]);
    assert!(send(&mut peer, 2, Message::EchoRequest(&[7; 12])).disconnect);
    assert_eq!(peer.out.len(), 10, "half of 20 bytes");

    let mut peer = with(Fault::ReplyTwice { every: 2 });
    for xid in 1..=4 {
        send(&mut peer, xid, Message::EchoRequest(b""));
    }
    assert_eq!(heard(&mut peer), [(3, 1), (3, 2), (3, 2), (3, 3), (3, 4), (3, 4)]);

    let mut peer = with(Fault::WrongXid { every: 2 });
    for xid in 1..=2 {
        send(&mut peer, xid, Message::EchoRequest(b""));
    }
    assert_eq!(heard(&mut peer), [(3, 1), (3, 2 ^ 0x5a5a_5a5a)]);

    let mut peer = with(Fault::Garbage { message: 2, bytes: b"garbage".to_vec() });
    send(&mut peer, 1, Message::BarrierRequest);
    assert_eq!(&peer.out[8..], b"garbage");
}
