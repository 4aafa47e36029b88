//! A controller's connection to a switch in memory: it sends messages and takes the answers.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use emulate::frame::build::{Path, host_mac};
use emulate::{Config, Outcome, Switch};
use openflow::{Version, VersionSet};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// A packet from host `a` to host `b`, which have addresses 10.0.0.a and 10.0.0.b.
pub(crate) fn path(a: u16, b: u16) -> Path {
    Path {
        eth_src: host_mac(a),
        eth_dst: host_mac(b),
        ip_src: 0x0a00_0000 + u32::from(a),
        ip_dst: 0x0a00_0000 + u32::from(b),
    }
}

pub(crate) struct Peer {
    pub(crate) switch: Switch,
    pub(crate) now: u64,
    pub(crate) out: Vec<u8>,
}

impl Peer {
    pub(crate) fn connected(version: Version, config: Config) -> Peer {
        let mut peer = Peer { switch: Switch::new(config), now: 0, out: Vec::new() };
        peer.switch.connect(&mut peer.out);
        let mut hello = Vec::new();
        openflow::Hello::write_message(VersionSet::only(version), 1, &mut hello).unwrap();
        let outcome = peer.switch.handle_message(0, &hello, &mut peer.out);
        assert!(!outcome.disconnect);
        assert_eq!(peer.switch.version(), Some(version));
        peer.out.clear();
        peer
    }

    /// Sends one frame; the answers can be taken with [`Peer::frames`].
    pub(crate) fn send(&mut self, frame: &[u8]) -> Outcome {
        self.switch.handle_message(self.now, frame, &mut self.out)
    }

    pub(crate) fn receive(&mut self, in_port: u32, frame: &[u8]) -> Outcome {
        self.switch.receive_packet(self.now, in_port, frame, &mut self.out)
    }

    pub(crate) fn tick(&mut self, now: u64) -> Outcome {
        self.now = now;
        self.switch.tick(now, &mut self.out)
    }

    /// Takes the frames that the switch sent since.
    pub(crate) fn frames(&mut self) -> Vec<Vec<u8>> {
        let bytes = std::mem::take(&mut self.out);
        let mut rest = bytes.as_slice();
        let mut frames = Vec::new();
        while let Some(length) = openflow::frame::next(rest).unwrap() {
            frames.push(rest[..length].to_vec());
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "the switch wrote {} bytes of no frame", rest.len());
        frames
    }
}

/// The ports that a packet left by, with their queues where they are not 0.
pub(crate) fn ports(outcome: &Outcome) -> Vec<u32> {
    outcome.sent.iter().map(|transmit| transmit.port).collect()
}
