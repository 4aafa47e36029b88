//! Exchanges the messages of a controller with one switch.

use hashbrown::HashMap;
use openflow::hello::{Hello, negotiate};
use openflow::{Version, VersionSet, error, frame};

use super::behaviour::Behaviour;
use super::heard::{Heard, PacketIn};
use super::malformed::malformed_messages;
use super::{v10, v13};

pub(super) struct Conversation {
    version: Option<Version>,
    dpid: Option<u64>,
    stations: HashMap<[u8; 6], u32>,
    next_xid: u32,
    /// The number of malformed messages sent.
    malformed: usize,
    /// The end of the handshake, ns, and the number of messages that the storm sent since then.
    storm: (u64, u64),
}

const MULTICAST: u8 = 0x01;
const SECOND: u128 = 1_000_000_000;
/// The maximum number of storm messages that one tick appends. A late tick sends the rest in steps.
const STORM_STEP: u64 = 1024;

impl Conversation {
    pub(super) fn begin(versions: VersionSet, out: &mut Vec<u8>) -> Conversation {
        // A HELLO always fits.
        let _ = Hello::write_message(versions, 1, out);
        Conversation {
            version: None,
            dpid: None,
            stations: HashMap::new(),
            next_xid: 2,
            malformed: 0,
            storm: (0, 0),
        }
    }

    pub(super) fn established(&self) -> Option<(u64, Version)> {
        Some((self.dpid?, self.version?))
    }

    /// Handles a message. Returns `false` if there is no version in common.
    pub(super) fn handle(
        &mut self,
        behaviour: &Behaviour,
        versions: VersionSet,
        now: u64,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(version) = self.version else { return self.greet(versions, message, out) };
        let heard = match version {
            Version::V1_0 => v10::hear(message),
            _ => v13::hear(message),
        };
        let xid = frame::xid(message).unwrap_or_default();
        match heard {
            Heard::Features { dpid } => {
                self.dpid = Some(dpid);
                self.storm = (now, 0);
                self.settle(behaviour, version, out);
            }
            Heard::EchoRequest(data) => {
                let echo = |out: &mut Vec<u8>| out.extend_from_slice(data);
                // The data came in a frame, so the data fits in a frame.
                let _ = frame::write(version, ECHO_REPLY, xid, out, echo);
            }
            Heard::PacketIn(packet) => self.decide(behaviour, version, &packet, out),
            Heard::Other => {}
        }
        true
    }

    fn greet(&mut self, versions: VersionSet, message: &[u8], out: &mut Vec<u8>) -> bool {
        let hello = Hello::parse_frame(message).ok();
        let agreed = hello
            .and_then(|(header, hello)| negotiate(versions, header.version.0, hello.versions()));
        let Some(version) = agreed else {
            let version = versions.highest().unwrap_or(Version::V1_0);
            let code = error::v13::HELLO_FAILED_INCOMPATIBLE;
            let refusal = error::Error { code, data: b"no version in common" };
            // An ERROR with so little data always fits.
            let _ = refusal.write_message(version, frame::xid(message).unwrap_or_default(), out);
            return false;
        };
        self.version = Some(version);
        let xid = self.xid();
        // A message without a body always fits.
        let _ = frame::write(version, FEATURES_REQUEST, xid, out, |_| {});
        true
    }

    /// Sends the first messages after the handshake. A 1.3 switch drops packets without an entry,
    /// so the controller installs a table-miss entry.
    fn settle(&mut self, behaviour: &Behaviour, version: Version, out: &mut Vec<u8>) {
        let wants_packets = !matches!(behaviour, Behaviour::Silent | Behaviour::Storm { .. });
        if wants_packets && version == Version::V1_3 {
            let xid = self.xid();
            v13::table_miss(xid, out);
        }
        if *behaviour == Behaviour::Malformed {
            self.send_malformed(version, out);
        }
    }

    fn decide(
        &mut self,
        behaviour: &Behaviour,
        version: Version,
        packet: &PacketIn<'_>,
        out: &mut Vec<u8>,
    ) {
        match behaviour {
            Behaviour::Silent | Behaviour::Storm { .. } => {}
            Behaviour::Hub => self.packet_out(version, packet, FLOOD, out),
            Behaviour::Reflector => self.packet_out(version, packet, IN_PORT, out),
            Behaviour::Malformed => self.send_malformed(version, out),
            Behaviour::LearningSwitch { idle_timeout } => {
                self.learn(version, packet, *idle_timeout, out);
            }
        }
    }

    fn learn(
        &mut self,
        version: Version,
        packet: &PacketIn<'_>,
        idle_timeout: u16,
        out: &mut Vec<u8>,
    ) {
        let mac = |at: usize| <[u8; 6]>::try_from(packet.data.get(at..at + 6)?).ok();
        let (Some(destination), Some(source)) = (mac(0), mac(6)) else { return };
        if source[0] & MULTICAST == 0 {
            self.stations.insert(source, packet.in_port);
        }
        let known = self.stations.get(&destination).filter(|_| destination[0] & MULTICAST == 0);
        let Some(port) = known.copied() else {
            return self.packet_out(version, packet, FLOOD, out);
        };
        let xid = self.xid();
        match version {
            Version::V1_0 => v10::flow_mod(xid, packet, destination, port, idle_timeout, out),
            _ => v13::flow_mod(xid, packet, destination, port, idle_timeout, out),
        }
        if packet.buffer_id == openflow::NO_BUFFER {
            self.packet_out(version, packet, port, out);
        }
    }

    fn packet_out(
        &mut self,
        version: Version,
        packet: &PacketIn<'_>,
        port: u32,
        out: &mut Vec<u8>,
    ) {
        let xid = self.xid();
        match version {
            Version::V1_0 => v10::packet_out(xid, packet, port, out),
            _ => v13::packet_out(xid, packet, port, out),
        }
    }

    fn send_malformed(&mut self, version: Version, out: &mut Vec<u8>) {
        let messages = malformed_messages(version);
        if let Some((_, message)) = messages.get(self.malformed % messages.len().max(1)) {
            out.extend_from_slice(message);
        }
        self.malformed += 1;
    }

    /// Sends the messages of a storm that are due at `now`.
    pub(super) fn tick(&mut self, behaviour: &Behaviour, now: u64, out: &mut Vec<u8>) {
        let Behaviour::Storm { frame: template, per_second } = behaviour else { return };
        if self.dpid.is_none() {
            return;
        }
        let (since, sent) = self.storm;
        let elapsed = u128::from(now.saturating_sub(since));
        let due = (elapsed * u128::from(*per_second) / SECOND) as u64;
        let count = due.saturating_sub(sent).min(STORM_STEP);
        for _ in 0..count {
            let start = out.len();
            out.extend_from_slice(template);
            let xid = self.xid();
            if let Some(message) = out.get_mut(start..) {
                frame::set_xid(message, xid);
            }
        }
        self.storm.1 = sent + count;
    }

    pub(super) fn next_deadline(&self, behaviour: &Behaviour) -> Option<u64> {
        let Behaviour::Storm { per_second, .. } = behaviour else { return None };
        self.dpid?;
        let (since, sent) = self.storm;
        let after = u128::from(sent + 1) * SECOND;
        let after = after.div_ceil(u128::from(*per_second).max(1));
        Some(since.saturating_add(u64::try_from(after).unwrap_or(u64::MAX)))
    }

    fn xid(&mut self) -> u32 {
        self.next_xid = self.next_xid.wrapping_add(1);
        self.next_xid
    }
}

/// Message types that are the same in both versions.
const ECHO_REPLY: u8 = 3;
const FEATURES_REQUEST: u8 = 5;

/// Reserved ports, with the numbers of 1.3.
const FLOOD: u32 = crate::action::port::FLOOD;
const IN_PORT: u32 = crate::action::port::IN_PORT;
