//! Tests of networks in memory: packets are followed across switches, and the test acts as the controllers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use common::path;
use emulate::{HostIndex, Network, Point, SessionId, SwitchIndex};
use openflow::v10::{Action, FlowMod, Match, Message, PacketOut, PortNo, Wildcards};
use openflow::{ListBuf, Version, VersionSet};

/// Connects a 1.0 controller to every switch.
fn connected(mut network: Network) -> Network {
    let mut hello = Vec::new();
    openflow::Hello::write_message(VersionSet::only(Version::V1_0), 1, &mut hello).unwrap();
    for index in network.switch_indices() {
        network.connect(index, &mut Vec::new());
        network.handle_message(0, index, &hello);
        assert_eq!(network.switch(index).unwrap().version(), Some(Version::V1_0));
        network.take_output(index, SessionId::MAIN);
    }
    network
}

fn send(network: &mut Network, switch: usize, message: Message<'_>) -> emulate::Journey {
    let mut frame = Vec::new();
    message.write(1, &mut frame).unwrap();
    network.handle_message(0, SwitchIndex(switch), &frame)
}

/// Installs an entry, so that packets to `mac` leave `switch` by `port`.
fn route(network: &mut Network, switch: usize, mac: [u8; 6], port: u16) {
    let wildcards = Wildcards::ALL.without(Wildcards::DL_DST);
    let match_ = Match { wildcards, dl_dst: mac, ..Match::ANY };
    let actions = ListBuf::from([Action::Output { port: PortNo(port), max_len: 0 }]);
    let body = FlowMod { match_, actions: actions.as_list(), ..FlowMod::default() };
    send(network, switch, Message::FlowMod(body));
}

#[test]
fn a_ping_crosses_three_switches_in_both_directions() {
    let mut network = connected(Network::linear(3, |_| {}));
    let there = path(1, 3);
    for (switch, right, left) in [(0, 3, 1), (1, 3, 2), (2, 1, 2)] {
        route(&mut network, switch, there.eth_dst, right);
        route(&mut network, switch, there.eth_src, left);
    }
    let journey = network.inject(0, HostIndex(0), &there.icmp_echo(false, 1, 2, b"data"));
    let hops: Vec<(usize, u32)> = journey.hops.iter().map(|p| (p.switch.0, p.port)).collect();
    assert_eq!(hops, [(0, 1), (1, 2), (2, 2), (2, 1), (1, 3), (0, 3)]);
    assert_eq!(journey.reached(), [HostIndex(0), HostIndex(2)]);
    assert_eq!(journey.delivered[1].1, path(3, 1).icmp_echo(true, 1, 2, b"data"));
    assert!(journey.packet_ins.is_empty() && journey.lost.is_empty());
    let journey = network.inject(0, HostIndex(1), &path(2, 9).udp(1, 2, b""));
    assert_eq!((journey.packet_ins, journey.delivered), (vec![SwitchIndex(1)], vec![]));
}

#[test]
fn a_packet_out_without_entry_at_the_next_switch_causes_a_packet_in() {
    let mut network = connected(Network::linear(2, |_| {}));
    let frame = path(1, 2).udp(1, 2, b"");
    let actions = ListBuf::from([Action::Output { port: PortNo::FLOOD, max_len: 0 }]);
    let body = PacketOut { actions: actions.as_list(), data: &frame, ..PacketOut::default() };
    let journey = send(&mut network, 0, Message::PacketOut(body));
    assert_eq!(journey.reached(), [HostIndex(0)]);
    assert_eq!(journey.lost, [Point { switch: SwitchIndex(0), port: 2 }]);
    assert_eq!(journey.packet_ins, [SwitchIndex(1)]);
    let output = network.take_output(SwitchIndex(1), SessionId::MAIN);
    let (_, Message::PacketIn(body)) = Message::parse(&output).unwrap() else { panic!() };
    assert_eq!((body.in_port, body.data), (PortNo(2), &frame[..]));
}

#[test]
fn a_packet_in_a_forwarding_loop_is_reported_as_endless() {
    let mut network = connected(Network::linear(2, |_| {}));
    let point = |switch, port| Point { switch: SwitchIndex(switch), port };
    network.link(point(0, 2), point(1, 3));
    let actions = ListBuf::from([Action::Output { port: PortNo::FLOOD, max_len: 0 }]);
    for switch in 0..2 {
        let body = FlowMod { actions: actions.as_list(), ..FlowMod::default() };
        send(&mut network, switch, Message::FlowMod(body));
    }
    let journey = network.inject(0, HostIndex(0), &path(1, 2).udp(1, 2, b""));
    assert!(journey.endless);

    network.set_link_up(point(0, 2), false);
    let down = |switch| {
        network.switch(SwitchIndex(switch)).unwrap().ports().filter(|p| !p.link_up).count()
    };
    assert_eq!((down(0), down(1)), (1, 1));
    let journey = network.inject(0, HostIndex(0), &path(1, 2).udp(1, 2, b""));
    assert_eq!((journey.endless, journey.reached()), (false, vec![HostIndex(1)]));
}

#[test]
fn a_host_sends_the_arp_reply_in_the_vlan_of_the_request() {
    let mut network = connected(Network::single(2, |_| {}));
    let actions = ListBuf::from([Action::Output { port: PortNo::FLOOD, max_len: 0 }]);
    let body = FlowMod { actions: actions.as_list(), ..FlowMod::default() };
    send(&mut network, 0, Message::FlowMod(body));
    let mut question = path(1, 2).arp_request();
    emulate::frame::set_vlan_vid_or_push(&mut question, 7);
    let mut answer = path(2, 1).arp_reply();
    emulate::frame::set_vlan_vid_or_push(&mut answer, 7);
    let journey = network.inject(0, HostIndex(0), &question);
    assert_eq!(journey.delivered, [(HostIndex(1), question), (HostIndex(0), answer)]);
    let other = path(1, 9).arp_request();
    assert_eq!(network.inject(0, HostIndex(0), &other).delivered, [(HostIndex(1), other)]);
    let host = network.host(HostIndex(1)).unwrap();
    assert_eq!((host.packets, host.received().count()), (2, 2));
}
