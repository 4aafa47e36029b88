//! Tests of emulated controllers with emulated switches, in memory and over loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;

use std::time::Duration;

use common::path;
use emulate::controller::{
    Behaviour, ConnectionId, Controller, ControllerRunner, Manner, malformed_messages,
};
use emulate::{HostIndex, Journey, Network, Runner, SessionId, SwitchIndex};
use openflow::{Version, VersionSet};

const SECONDS: Duration = Duration::from_secs(20);

/// A network and its only controller, connected in memory.
struct Pair {
    network: Network,
    controller: Controller,
    ids: Vec<ConnectionId>,
}

impl Pair {
    fn new(network: Network, behaviour: Behaviour, version: Version) -> Pair {
        let controller = Controller::new(behaviour, VersionSet::only(version));
        let mut pair = Pair { network, controller, ids: Vec::new() };
        for index in pair.network.switch_indices() {
            let mut hello = Vec::new();
            let id = pair.controller.connect(&mut hello);
            pair.ids.push(id);
            let mut switch_hello = Vec::new();
            pair.network.connect(index, &mut switch_hello);
            pair.controller.handle_message(0, id, &switch_hello, &mut hello);
            pair.carry(index, &hello);
        }
        pair.settle();
        let spoken: Vec<Version> = pair.controller.switches().map(|(_, _, v)| v).collect();
        assert_eq!(spoken, vec![version; pair.ids.len()]);
        pair
    }

    fn carry(&mut self, index: SwitchIndex, mut bytes: &[u8]) -> Vec<Journey> {
        let mut journeys = Vec::new();
        while let Some(length) = openflow::frame::next(bytes).unwrap() {
            journeys.push(self.network.handle_message(0, index, &bytes[..length]));
            bytes = &bytes[length..];
        }
        journeys
    }

    /// Carries messages until no message is left, and returns the hosts that were reached.
    fn settle(&mut self) -> Vec<HostIndex> {
        let mut reached = Vec::new();
        for _ in 0..100 {
            let mut quiet = true;
            for (index, id) in self.network.switch_indices().zip(self.ids.clone()) {
                let output = self.network.take_output(index, SessionId::MAIN);
                let (mut rest, mut answers) = (output.as_slice(), Vec::new());
                while let Some(length) = openflow::frame::next(rest).unwrap() {
                    quiet = false;
                    self.controller.handle_message(0, id, &rest[..length], &mut answers);
                    rest = &rest[length..];
                }
                let journeys = self.carry(index, &answers);
                reached.extend(journeys.iter().flat_map(Journey::reached));
            }
            if quiet {
                return reached;
            }
        }
        panic!("they go on and on");
    }

    /// A host sends a frame. Returns the hosts that receive this frame or a later frame caused by it.
    fn inject(&mut self, host: usize, frame: &[u8]) -> Vec<usize> {
        let mut reached = self.network.inject(0, HostIndex(host), frame).reached();
        reached.extend(self.settle());
        reached.iter().map(|host| host.0).collect()
    }
}

const LEARNING: Behaviour = Behaviour::LearningSwitch { idle_timeout: 60 };

#[test]
fn a_learning_switch_installs_entries_for_both_directions() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut pair = Pair::new(Network::linear(3, |_| {}), LEARNING, version);
        let before = pair.network.switches().map(|(_, s)| s.flow_count()).sum::<usize>();
        // The ARP request is flooded to both other hosts, and the ARP reply is sent only to the host that asked.
        let mut reached = pair.inject(0, &path(1, 3).arp_request());
        reached.sort_unstable();
        assert_eq!(reached, [0, 1, 2], "{version:?}");
        let ping = path(1, 3).icmp_echo(false, 1, 1, b"");
        let mut reached = pair.inject(0, &ping);
        reached.sort_unstable();
        assert_eq!(reached, [0, 2], "{version:?}: there and back");
        let flows = pair.network.switches().map(|(_, s)| s.flow_count()).sum::<usize>();
        assert_eq!(flows - before, 6, "{version:?}: both directions at three switches");
        let journey = pair.network.inject(0, HostIndex(0), &ping);
        assert_eq!((journey.packet_ins.len(), journey.reached().len()), (0, 2), "{version:?}");
    }
}

#[test]
fn hub_floods_reflector_returns_packets_and_silent_controller_sends_none() {
    for version in [Version::V1_0, Version::V1_3] {
        let frame = path(1, 9).udp(1, 2, b"");
        let run =
            |behaviour| Pair::new(Network::single(3, |_| {}), behaviour, version).inject(0, &frame);
        assert_eq!(run(Behaviour::Hub), [1, 2], "{version:?}");
        assert_eq!(run(Behaviour::Reflector), [0], "{version:?}");
        assert_eq!(run(Behaviour::Silent), [0usize; 0], "{version:?}");
    }
}

#[test]
fn a_message_storm_keeps_the_configured_rate() {
    let mut frame = Vec::new();
    openflow::v10::Message::BarrierRequest.write(0, &mut frame).unwrap();
    let storm = Behaviour::Storm { frame: frame.clone(), per_second: 1000 };
    let mut pair = Pair::new(Network::single(1, |_| {}), storm, Version::V1_0);
    let id = pair.ids[0];
    let mut sent = 0;
    for ms in 0..=500u64 {
        assert_eq!(pair.controller.next_deadline(id), Some((sent + 1) * 1_000_000));
        let mut out = Vec::new();
        pair.controller.tick(ms * 1_000_000, id, &mut out);
        sent += (out.len() / frame.len()) as u64;
        assert_eq!(sent, ms);
    }
}

#[test]
fn malformed_messages_are_refused_or_ignored_without_disconnect() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut pair = Pair::new(Network::single(1, |_| {}), Behaviour::Silent, version);
        let switch = SwitchIndex(0);
        for (what, message) in malformed_messages(version) {
            let journey = pair.network.handle_message(0, switch, &message);
            assert!(!journey.disconnect, "{what}");
            let output = pair.network.take_output(switch, SessionId::MAIN);
            // An ERROR is the only message that is not answered with an ERROR.
            let is_error = message[1] == 1;
            let answer = output.get(1).copied();
            assert_eq!(answer, (!is_error).then_some(1), "{version:?}: {what}");
        }
        assert_eq!(pair.network.switch(switch).unwrap().flow_count(), 0);
    }
}

#[test]
fn over_sockets_two_hosts_ping_through_a_learning_switch() {
    for version in [Version::V1_0, Version::V1_3] {
        for manner in [Manner::Polite, Manner::OneByteAtATime] {
            let controller = ControllerRunner::new(LEARNING)
                .versions(VersionSet::only(version))
                .manner(manner)
                .start("tcp:127.0.0.1:0".parse().unwrap())
                .unwrap();
            let running = Runner::new(Network::linear(2, |_| {}))
                .dial_all(controller.address())
                .start()
                .unwrap();
            controller.wait_for("both switches", SECONDS, |c| c.switches == 2).unwrap();
            if version == Version::V1_3 {
                let has_miss = |n: &mut Network| n.switches().all(|(_, s)| s.flow_count() == 1);
                running.wait_for("the table-miss entries", SECONDS, has_miss).unwrap();
            }
            let ping = path(1, 2).icmp_echo(false, 1, 1, b"over sockets");
            running.call(move |n, now| n.inject(now, HostIndex(0), &ping)).unwrap();
            let reply = path(2, 1).icmp_echo(true, 1, 1, b"over sockets");
            let has_reply = move |n: &mut Network| {
                n.host(HostIndex(0)).is_some_and(|host| host.received().any(|f| f == reply))
            };
            running.wait_for("the reply", SECONDS, has_reply).unwrap();
            assert!(controller.counters().packet_ins >= 2);
            controller.stop().unwrap();
        }
    }
}

#[test]
fn a_switch_connects_to_a_controller_that_never_reads() {
    let controller = ControllerRunner::new(Behaviour::Silent)
        .manner(Manner::NeverReads)
        .start("tcp:127.0.0.1:0".parse().unwrap())
        .unwrap();
    let running =
        Runner::new(Network::single(1, |_| {})).dial_all(controller.address()).start().unwrap();
    running.wait_connected(SECONDS).unwrap();
    assert_eq!((controller.counters().connections, controller.counters().received), (1, 0));
}
