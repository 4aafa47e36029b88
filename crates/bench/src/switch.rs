//! The emulated switch for load. The switch answers every request at once. With a service time the
//! switch answers one request after the other, like a slow switch's processor.
//!
//! Without the option [`Table`] (of crate `emulate`) the switch has no flow table: FLOW_MODs have no
//! effect, and flow statistics are empty.

use crate::plan::{Setup, Version};
use crate::wire::{
    GET_ASYNC_REPLY, GET_ASYNC_REQUEST, HEADER_LEN, ROLE_REPLY, ROLE_REQUEST, Types, be16, be32,
    kind, message,
};

/// The number of tables on 1.3; on 1.0 there is one table.
const TABLES: u8 = 254;
/// The reported size of each table, in entries, if the table has no bound.
const MAX_ENTRIES: u32 = 1 << 20;

/// The state that determines the switch's answers.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    version: Version,
    types: Types,
    dpid: u64,
    ports: u16,
    /// The reported size of each table, in entries.
    entries: u32,
}

/// The meaning of a message for the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The message is answered, or needs no answer.
    Done,
    /// A PACKET_OUT: the packet is at the data plane.
    PacketOut,
    /// A FLOW_MOD.
    FlowMod,
    /// The controller has the switch's features, so the handshake is complete.
    Introduced,
    /// The other end does not have the switch's version.
    WrongVersion(u8),
}

impl Switch {
    pub(crate) fn new(setup: &Setup, index: usize) -> Self {
        Self {
            version: setup.version,
            types: Types::of(setup.version),
            dpid: index as u64 + 1,
            ports: setup.ports() as u16,
            entries: if setup.switch.entries == 0 { MAX_ENTRIES } else { setup.switch.entries },
        }
    }

    /// Handles one whole frame and appends the answer to `out`.
    pub(crate) fn handle(&self, frame: &[u8], out: &mut Vec<u8>) -> Meaning {
        let (Some(&version), Some(&message_type)) = (frame.first(), frame.get(1)) else {
            return Meaning::Done;
        };
        let xid = be32(frame, 4).unwrap_or(0);
        let body = frame.get(HEADER_LEN..).unwrap_or_default();
        if message_type == kind::HELLO {
            return if version < self.version.wire() {
                Meaning::WrongVersion(version)
            } else {
                Meaning::Done
            };
        }
        let mut reply =
            |reply_type: u8, body: &[u8]| message(out, self.version, reply_type, xid, body);
        match message_type {
            kind::PACKET_OUT => return Meaning::PacketOut,
            kind::FLOW_MOD => return Meaning::FlowMod,
            kind::ECHO_REQUEST => reply(kind::ECHO_REPLY, body),
            kind::FEATURES_REQUEST => {
                reply(kind::FEATURES_REPLY, &self.features());
                return Meaning::Introduced;
            }
            kind::GET_CONFIG_REQUEST => reply(kind::GET_CONFIG_REPLY, &[0, 0, 0xff, 0xff]),
            t if t == self.types.barrier_request => reply(self.types.barrier_reply, &[]),
            t if t == self.types.stats_request => {
                if let Some(body) = self.statistics(body) {
                    reply(self.types.stats_reply, &body);
                } else {
                    // BAD_REQUEST / BAD_STAT (1.0), BAD_MULTIPART (1.3): both 1 / 2.
                    reply(kind::ERROR, &error_body(1, 2, frame));
                }
            }
            t if t == self.types.queue_config_request => {
                let port = if self.version == Version::V1_0 { 2 } else { 4 };
                let mut answer = body.get(..port).unwrap_or_default().to_vec();
                answer.resize(8, 0);
                reply(self.types.queue_config_reply, &answer);
            }
            ROLE_REQUEST if self.version == Version::V1_3 => reply(ROLE_REPLY, &role_reply(body)),
            GET_ASYNC_REQUEST if self.version == Version::V1_3 => reply(GET_ASYNC_REPLY, &[0; 24]),
            // BAD_REQUEST / BAD_VENDOR or BAD_EXPERIMENTER.
            kind::VENDOR => reply(kind::ERROR, &error_body(1, 3, frame)),
            t if self.needs_no_answer(t) => {}
            // BAD_REQUEST / BAD_TYPE.
            _ => reply(kind::ERROR, &error_body(1, 1, frame)),
        }
        Meaning::Done
    }

    fn needs_no_answer(&self, message_type: u8) -> bool {
        let modifications = match self.version {
            Version::V1_0 => &[15][..],
            Version::V1_3 => &[15, 16, 17, 28, 29],
        };
        matches!(message_type, kind::ERROR | kind::ECHO_REPLY | kind::SET_CONFIG)
            || modifications.contains(&message_type)
    }

    fn features(&self) -> Vec<u8> {
        let mut body = self.dpid.to_be_bytes().to_vec();
        // 256 buffers; one table would do, but 1.3 pipelines want several.
        body.extend_from_slice(&256u32.to_be_bytes());
        match self.version {
            Version::V1_0 => {
                body.extend_from_slice(&[1, 0, 0, 0]);
                // Flow, table, port and queue statistics; all actions but ENQUEUE's successors.
                body.extend_from_slice(&[0, 0, 0, 0x47, 0, 0, 0x0f, 0xff]);
                (1..=self.ports).for_each(|port| body.extend_from_slice(&self.port(port)));
            }
            Version::V1_3 => {
                body.extend_from_slice(&[TABLES, 0, 0, 0, 0, 0, 0, 0x4f, 0, 0, 0, 0]);
            }
        }
        body
    }

    /// The description of one port: 48 bytes in 1.0, 64 bytes in 1.3.
    pub(crate) fn port(&self, number: u16) -> Vec<u8> {
        let mut port = match self.version {
            Version::V1_0 => number.to_be_bytes().to_vec(),
            Version::V1_3 => {
                let mut bytes = u32::from(number).to_be_bytes().to_vec();
                bytes.extend_from_slice(&[0; 4]);
                bytes
            }
        };
        let [high, low] = number.to_be_bytes();
        port.extend_from_slice(&[2, 0x5e, 0, self.dpid as u8, high, low]);
        if self.version == Version::V1_3 {
            port.extend_from_slice(&[0; 2]);
        }
        let mut name = format!("eth{number}").into_bytes();
        name.resize(16, 0);
        port.extend_from_slice(&name);
        port.resize(if self.version == Version::V1_0 { 48 } else { 64 }, 0);
        port
    }

    /// A statistics reply's body, from the request's; `None` for a type that is not known.
    fn statistics(&self, request: &[u8]) -> Option<Vec<u8>> {
        let stats_type = be16(request, 0)?;
        let mut body = stats_type.to_be_bytes().to_vec();
        body.extend_from_slice(&[0, 0]);
        let v13 = self.version == Version::V1_3;
        if v13 {
            body.extend_from_slice(&[0; 4]);
        }
        match stats_type {
            0 => {
                let mut text = |text: &str, room| {
                    let mut bytes = text.as_bytes().to_vec();
                    bytes.resize(room, 0);
                    body.extend_from_slice(&bytes);
                };
                text("Weir", 256);
                text("emulated switch for load", 256);
                text(env!("CARGO_PKG_VERSION"), 256);
                text("none", 32);
                text(&format!("switch {}", self.dpid), 256);
            }
            // The switch has no flows and no queues, so these statistics have no entries.
            1 | 5 => {}
            3 if v13 => (0..TABLES).for_each(|table| {
                body.push(table);
                body.resize(body.len() + 23, 0);
            }),
            // The one table, named "all", with all wildcards of 1.0.
            3 => {
                let mut table = b"\0\0\0\0all".to_vec();
                table.resize(36, 0);
                table.extend_from_slice(&0x003f_ffffu32.to_be_bytes());
                table.extend_from_slice(&self.entries.to_be_bytes());
                table.resize(64, 0);
                body.extend_from_slice(&table);
            }
            2 => body.resize(body.len() + 24, 0),
            4 => self.port_statistics(request, &mut body),
            6 | 7 | 9 | 10 if v13 => {}
            12 if v13 => (0..TABLES).for_each(|table| {
                let mut features = vec![0, 64, table];
                features.resize(40, 0);
                // All bits of the metadata, to match on and to write.
                features.extend_from_slice(&[0xff; 16]);
                features.extend_from_slice(&[0; 4]);
                features.extend_from_slice(&self.entries.to_be_bytes());
                body.extend_from_slice(&features);
            }),
            8 if v13 => body.resize(body.len() + 40, 0),
            11 if v13 => body.resize(body.len() + 16, 0),
            13 if v13 => (1..=self.ports).for_each(|port| body.extend_from_slice(&self.port(port))),
            _ => return None,
        }
        Some(body)
    }

    fn port_statistics(&self, request: &[u8], body: &mut Vec<u8>) {
        let wanted = match self.version {
            Version::V1_0 => be16(request, 4).map_or(u32::MAX, u32::from),
            Version::V1_3 => be32(request, 8).unwrap_or(u32::MAX),
        };
        let all = wanted == u32::MAX || (self.version == Version::V1_0 && wanted == 0xffff);
        for port in (1..=self.ports).filter(|&port| all || u32::from(port) == wanted) {
            match self.version {
                Version::V1_0 => {
                    body.extend_from_slice(&port.to_be_bytes());
                    body.resize(body.len() + 102, 0);
                }
                Version::V1_3 => {
                    body.extend_from_slice(&u32::from(port).to_be_bytes());
                    body.resize(body.len() + 108, 0);
                }
            }
        }
    }
}

/// A role reply repeats the requested role; the answer to "no change" is EQUAL.
fn role_reply(body: &[u8]) -> Vec<u8> {
    let mut answer = body.get(..16).unwrap_or(&[0; 16]).to_vec();
    if be32(&answer, 0) == Some(0)
        && let Some(role) = answer.get_mut(3)
    {
        *role = 1;
    }
    answer
}

/// Appends the HELLO that opens the connection of a switch or a controller.
pub(crate) fn hello(version: Version, out: &mut Vec<u8>) {
    let body: &[u8] = match version {
        Version::V1_0 => &[],
        Version::V1_3 => &[0, 1, 0, 8, 0, 0, 0, 1 << 4],
    };
    message(out, version, kind::HELLO, 0, body);
}

pub(crate) fn error_body(error_type: u16, code: u16, offending: &[u8]) -> Vec<u8> {
    let mut body = error_type.to_be_bytes().to_vec();
    body.extend_from_slice(&code.to_be_bytes());
    body.extend_from_slice(offending.get(..64).unwrap_or(offending));
    body
}

/// A real flow table of the load's switch: FLOW_MODs change the table, and packets pass through the
/// table.
pub(crate) struct Table(emulate::Switch);

impl Table {
    pub(crate) fn new(setup: &Setup, index: usize) -> Self {
        let mut config = emulate::Config::new(index as u64 + 1, setup.ports() as u32);
        config.n_buffers = 0;
        if setup.switch.entries > 0 {
            config.max_flows = setup.switch.entries as usize;
        }
        if setup.switch.lies_ns > 0 {
            config.faults.push(emulate::Fault::BarrierLies { by: setup.switch.lies_ns });
        }
        let mut table = emulate::Switch::new(config);
        let (mut opening, mut ignored) = (Vec::new(), Vec::new());
        table.connect(&mut ignored);
        hello(setup.version, &mut opening);
        table.handle_message(0, &opening, &mut ignored);
        Self(table)
    }

    /// Carries out a FLOW_MOD, and appends the ERROR, if any, to `out`.
    pub(crate) fn modify(&mut self, now: u64, frame: &[u8], out: &mut Vec<u8>) {
        self.0.handle_message(now, frame, out);
    }

    /// Whether a packet that enters by the first port leaves by the second port.
    pub(crate) fn forwards(&mut self, now: u64, [from, to]: [u16; 2], packet: &[u8]) -> bool {
        // A miss would make a PACKET_IN for a controller; here the PACKET_IN is ignored.
        let mut ignored = Vec::new();
        let outcome = self.0.receive_packet(now, u32::from(from), packet, &mut ignored);
        outcome.sent.iter().any(|sent| sent.port == u32::from(to))
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("flows", &self.0.flow_count()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Kind;
    use crate::plan::Topology;
    use crate::template::Template;

    fn setup(version: Version) -> Setup {
        Setup { version, ..Setup::new(Topology::Direct, 2) }
    }

    fn answer(version: Version, frame: &[u8]) -> (Meaning, Vec<u8>) {
        let mut out = Vec::new();
        let meaning = Switch::new(&setup(version), 0).handle(frame, &mut out);
        assert!(out.is_empty() || be16(&out, 2) == Some(out.len() as u16));
        (meaning, out)
    }

    /// Statistics and table features have as many tables as FEATURES_REPLY.
    #[test]
    fn table_statistics_and_table_features_list_all_tables() {
        use openflow::{v10, v13};
        let ask = |version, type_: u8| {
            let mut frame = Vec::new();
            let body = if version == Version::V1_0 { 4 } else { 8 };
            let mut request = vec![0, type_];
            request.resize(body, 0);
            message(&mut frame, version, Types::of(version).stats_request, 7, &request);
            answer(version, &frame).1
        };
        let bytes = ask(Version::V1_0, 3);
        let (_, v10::Message::StatsReply(reply)) = v10::Message::parse(&bytes).unwrap() else {
            panic!("{bytes:?}")
        };
        let v10::StatsReplyBody::Table(tables) = reply.body else { panic!("{reply:?}") };
        assert_eq!(tables.iter().map(|table| table.table_id).collect::<Vec<_>>(), [0]);
        let all: Vec<u8> = (0..TABLES).collect();
        for (type_, name) in [(3, "statistics"), (12, "features")] {
            let bytes = ask(Version::V1_3, type_);
            let (_, v13::Message::MultipartReply(reply)) = v13::Message::parse(&bytes).unwrap()
            else {
                panic!("{bytes:?}")
            };
            let tables: Vec<u8> = match reply.body {
                v13::MultipartReplyBody::Table(tables) => {
                    tables.iter().map(|table| table.table_id).collect()
                }
                v13::MultipartReplyBody::TableFeatures(tables) => {
                    tables.iter().map(|table| table.table_id).collect()
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(tables, all, "{name}");
        }
    }

    #[test]
    fn each_request_gets_the_right_reply_type_with_the_xid_of_the_request() {
        for version in [Version::V1_0, Version::V1_3] {
            let types = Types::of(version);
            for (kind, want) in [
                (Kind::Echo, kind::ECHO_REPLY),
                (Kind::Features, kind::FEATURES_REPLY),
                (Kind::PortStats, types.stats_reply),
                (Kind::FlowStats, types.stats_reply),
                (Kind::Barrier, types.barrier_reply),
                (Kind::Role, if version == Version::V1_3 { ROLE_REPLY } else { kind::ERROR }),
            ] {
                let mut frame = Template::new(kind, &setup(version), 0).bytes;
                frame[4..8].copy_from_slice(&77u32.to_be_bytes());
                let (_, out) = answer(version, &frame);
                assert_eq!(
                    (out.get(1), be32(&out, 4)),
                    (Some(&want), Some(77)),
                    "{kind:?} {version:?}"
                );
            }
        }
    }

    #[test]
    fn statistics_replies_have_the_lengths_of_the_specification() {
        for (version, stats_type, want) in [
            (Version::V1_0, 0, 4 + 1056),
            (Version::V1_0, 1, 4),
            (Version::V1_0, 2, 4 + 24),
            (Version::V1_0, 4, 4 + 4 * 104),
            (Version::V1_3, 4, 8 + 4 * 112),
            (Version::V1_3, 8, 8 + 40),
            (Version::V1_3, 11, 8 + 16),
            (Version::V1_3, 13, 8 + 4 * 64),
        ] {
            let mut frame = Vec::new();
            let mut body = vec![0, stats_type, 0, 0];
            body.resize(16, 0xff);
            message(&mut frame, version, Types::of(version).stats_request, 9, &body);
            let (_, out) = answer(version, &frame);
            assert_eq!(out.len(), HEADER_LEN + want, "{version:?} {stats_type}");
        }
    }

    #[test]
    fn an_unknown_message_type_gets_an_error_with_the_offending_bytes() {
        let mut frame = Vec::new();
        message(&mut frame, Version::V1_0, 200, 5, &[1, 2, 3]);
        let (_, out) = answer(Version::V1_0, &frame);
        assert_eq!(out[1], kind::ERROR);
        assert_eq!(out[8..12], [0, 1, 0, 1]);
        assert_eq!(out[12..], frame);
    }

    #[test]
    fn a_hello_of_an_older_version_is_recognised() {
        let mut frame = Vec::new();
        message(&mut frame, Version::V1_0, kind::HELLO, 0, &[]);
        assert_eq!(answer(Version::V1_3, &frame).0, Meaning::WrongVersion(1));
        assert_eq!(answer(Version::V1_0, &frame).0, Meaning::Done);
    }
}
