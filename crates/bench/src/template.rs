//! Messages that are sent many times. The generator copies a message and overwrites the xid and the tag, because a
//! generator that builds messages field by field would be its own bottleneck.

use crate::flow_change;
use crate::kind::Kind;
use crate::kind::PROBED;
use crate::plan::{Setup, Slicing, Topology, Version};
use crate::tag::TAG_LEN;
use crate::wire::{HEADER_LEN, ROLE_REQUEST, Types, be16, kind, message, put32};

/// The length of a probe's Ethernet frame: the smallest Ethernet frame, with the space for its checksum.
const PROBE_LEN: usize = 64;

/// A message that is sent many times with another xid and tag.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    /// One message, or a FLOW_MOD and its BARRIER_REQUEST.
    pub(crate) bytes: Vec<u8>,
    /// Whether there are xids to patch: a bare packet has no xid.
    pub(crate) has_xid: bool,
    /// The place of the tag, if the message has a tag.
    pub(crate) tag_at: Option<usize>,
    /// The start of the second message, if there are two.
    pub(crate) second_at: Option<usize>,
    /// The place of a number that makes each FLOW_MOD another rule.
    pub(crate) rule_at: Option<usize>,
    /// The place of the port number, and the number of ports, if each request is for another port.
    pub(crate) port_in_turn: Option<(usize, u16)>,
    /// The places that make each FLOW_MOD another change.
    pub(crate) change: Option<Change>,
    /// The places of the buffer id that the answer repeats, of the packet, and of the low byte of the ingress port, so
    /// that every message has its own hosts.
    pub(crate) hosts: Option<Hosts>,
}

/// The places that are patched so that each message seems to come from another host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hosts {
    pub(crate) macs: u32,
    pub(crate) ports: u32,
    pub(crate) buffer_id_at: usize,
    pub(crate) packet_at: usize,
    pub(crate) port_at: usize,
}

impl Hosts {
    /// Host `sequence` sends to the next host. Each host has its own port, so that a learning controller has seen both
    /// hosts after one round.
    #[inline]
    pub(crate) fn patch(&self, bytes: &mut [u8], buffer_id: u32, sequence: u32) {
        let (source, destination) = (sequence % self.macs, (sequence + 1) % self.macs);
        put32(bytes, self.buffer_id_at, buffer_id);
        put32(bytes, self.packet_at + 2, destination);
        put32(bytes, self.packet_at + 8, source);
        if let Some(port) = bytes.get_mut(self.port_at) {
            *port = (source % self.ports + 1) as u8;
        }
    }
}

/// The places that are patched so that each FLOW_MOD is another change of [`flow_change`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    network: [u8; 4],
    source_at: usize,
    destination_at: usize,
    command_at: usize,
    /// The output ports of rules, and the place of the output port.
    ports: [u16; 2],
    port_at: usize,
}

impl Change {
    #[inline]
    pub(crate) fn patch(&self, bytes: &mut [u8], sequence: u32) {
        let change = flow_change::change(self.network, sequence);
        put32(bytes, self.source_at, u32::from_be_bytes(change.source));
        put32(bytes, self.destination_at, u32::from_be_bytes(change.destination));
        if let Some(place) = bytes.get_mut(self.command_at) {
            *place = change.command;
        }
        if let Some(place) = bytes.get_mut(self.port_at..self.port_at + 2) {
            place.copy_from_slice(&self.ports[change.out % 2].to_be_bytes());
        }
    }
}

impl Template {
    /// The template of `kind` for tenant `index`.
    pub(crate) fn new(kind: Kind, setup: &Setup, index: usize) -> Self {
        let version = setup.version;
        let types = Types::of(version);
        if kind == Kind::PacketIn && matches!(setup.topology, Topology::Interfaces { .. }) {
            // A packet for the data plane of a real switch. The switch makes the PACKET_IN of this packet.
            return Self { has_xid: false, ..Self::of(probe(setup, index)).tagged() };
        }
        let simple = |message_type, body: &[u8]| {
            let mut bytes = Vec::new();
            message(&mut bytes, version, message_type, 0, body);
            Self::of(bytes)
        };
        // A FLOW_MOD and its BARRIER_REQUEST.
        let confirmed = |body: &[u8]| {
            let mut template = simple(kind::FLOW_MOD, body);
            template.second_at = Some(template.bytes.len());
            message(&mut template.bytes, version, types.barrier_request, 0, &[]);
            template
        };
        match kind {
            Kind::PacketIn => {
                let packet = probe(setup, index);
                let body = packet_in(version, setup.port(index), packet.len());
                simple(kind::PACKET_IN, &[body, packet].concat()).tagged()
            }
            Kind::PacketOut => {
                let body = packet_out(version, setup.port(index));
                simple(kind::PACKET_OUT, &[body, probe(setup, index)].concat()).tagged()
            }
            Kind::Echo => {
                Self { tag_at: Some(HEADER_LEN), ..simple(kind::ECHO_REQUEST, &[0; TAG_LEN]) }
            }
            Kind::Response => {
                let template = Self::new(Kind::PacketIn, setup, index);
                let (packet_at, port_at) = match version {
                    Version::V1_0 => (18, 15),
                    Version::V1_3 => (42, 35),
                };
                let macs = if setup.switch.macs == 0 { 100 } else { setup.switch.macs };
                let ports = setup.ports().min(250) as u32;
                let hosts = Hosts { macs, ports, buffer_id_at: HEADER_LEN, packet_at, port_at };
                Self { hosts: Some(hosts), ..template }
            }
            // Four bytes of a PACKET_IN's fields, then nothing.
            Kind::Malformed => simple(kind::PACKET_IN, &[0xff; 4]),
            Kind::Features => simple(kind::FEATURES_REQUEST, &[]),
            Kind::Barrier => simple(types.barrier_request, &[]),
            Kind::PortStats => {
                let mut template = simple(types.stats_request, &port_stats_request(version));
                // The low half of the port's number; in 1.3 the high half is 0 for every single port.
                let at = if version == Version::V1_0 { 12 } else { 18 };
                if setup.switch.ports_in_turn
                    && version == Version::V1_3
                    && let Some(high) = template.bytes.get_mut(at - 2..at)
                {
                    high.fill(0);
                }
                let ports = setup.ports() as u16;
                Self { port_in_turn: setup.switch.ports_in_turn.then_some((at, ports)), ..template }
            }
            Kind::FlowStats => simple(types.stats_request, &flow_stats_request(version)),
            Kind::Role => simple(ROLE_REQUEST, &[0; 16]),
            PROBED => {
                let (body, rule_at) = flow_mod(setup, index, setup.other_port(index), false);
                let template = simple(kind::FLOW_MOD, &body);
                Self { rule_at: Some(HEADER_LEN + rule_at), ..template }
            }
            Kind::FlowChange => {
                let (body, at) = flow_mod(setup, index, setup.other_port(index), true);
                let destination_at = HEADER_LEN + at;
                // The command: in 1.0 its low byte, after match and cookie; in 1.3 after cookie, mask and table. In 1.3
                // a field header precedes the destination. The rule ends with its one action: port, length and padding.
                let end = HEADER_LEN + body.len();
                let (source_at, command_at, port_at) = match version {
                    Version::V1_0 => (destination_at - 4, HEADER_LEN + 49, end - 4),
                    Version::V1_3 => (destination_at - 8, HEADER_LEN + 17, end - 10),
                };
                let (network, _) = Slicing::source_network(index, setup.tenants);
                let ports = [setup.other_port(index), setup.port(index)];
                let change =
                    Change { network, source_at, destination_at, command_at, ports, port_at };
                Self { change: Some(change), ..confirmed(&body) }
            }
            Kind::FlowMod => {
                let (body, rule_at) = flow_mod(setup, index, setup.port(index), false);
                Self { rule_at: Some(HEADER_LEN + rule_at), ..confirmed(&body) }
            }
        }
    }

    /// A message of which only the xid is patched.
    fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            has_xid: true,
            tag_at: None,
            second_at: None,
            rule_at: None,
            port_in_turn: None,
            change: None,
            hosts: None,
        }
    }

    /// The same template with a tag at the end of the packet, which is the end of the message.
    fn tagged(self) -> Self {
        Self { tag_at: Some(self.bytes.len() - TAG_LEN), ..self }
    }

    /// The FLOW_MOD without its BARRIER_REQUEST, and the place of the number that makes each FLOW_MOD another rule.
    pub(crate) fn flow_mod(&self) -> (&[u8], usize) {
        let end = self.second_at.unwrap_or(0);
        (self.bytes.get(..end).unwrap_or_default(), self.rule_at.unwrap_or(0))
    }
}

/// The message of a controller to a real switch, so that the controller gets every packet without a rule completely: a
/// table-miss rule in 1.3, SET_CONFIG in 1.0.
pub(crate) fn ask_for_misses(version: Version, out: &mut Vec<u8>) {
    match version {
        Version::V1_0 => message(out, version, kind::SET_CONFIG, 0, &[0, 0, 0xff, 0xff]),
        Version::V1_3 => {
            let mut body = vec![0; 24];
            body.extend_from_slice(&NO_BUFFER);
            body.extend_from_slice(&[0xff; 8]);
            body.extend_from_slice(&[0, 0, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0, 0, 4, 0, 24, 0, 0, 0, 0]);
            // OUTPUT to CONTROLLER, without buffering.
            body.extend_from_slice(&[
                0, 0, 0, 16, 0xff, 0xff, 0xff, 0xfd, 0xff, 0xff, 0, 0, 0, 0, 0, 0,
            ]);
            message(out, version, kind::FLOW_MOD, 0, &body);
        }
    }
}

/// A 64-byte UDP packet of tenant `index`; its last [`TAG_LEN`] bytes are for the tag.
pub(crate) fn probe(setup: &Setup, index: usize) -> Vec<u8> {
    let mut packet = Vec::with_capacity(PROBE_LEN);
    let [high, low] = (index as u16 + 1).to_be_bytes();
    packet.extend_from_slice(&[2, 0, 0, 1, high, low]);
    packet.extend_from_slice(&[2, 0, 0, 0, high, low]);
    if setup.slicing == Slicing::Vlan {
        packet.extend_from_slice(&[0x81, 0]);
        packet.extend_from_slice(&((index as u16 + 1) & 0xfff).to_be_bytes());
    }
    packet.extend_from_slice(&[0x08, 0]);
    let ip_len = (PROBE_LEN - packet.len()) as u16;
    let ([a, b, c, _], _) = Slicing::source_network(index, setup.tenants);
    let mut ip = vec![0x45, 0];
    ip.extend_from_slice(&ip_len.to_be_bytes());
    ip.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip.extend_from_slice(&[a, b, c, 1]);
    ip.extend_from_slice(&[10, 255, 255, 254]);
    write_ipv4_checksum(&mut ip);
    packet.extend_from_slice(&ip);
    // The UDP checksum is 0, which means no checksum, because the tag changes with every message.
    packet.extend_from_slice(&[0x23, 0x28, 0x23, 0x29]);
    packet.extend_from_slice(&(ip_len - 20).to_be_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.resize(PROBE_LEN, 0);
    packet
}

/// Writes the checksum (RFC 1071) of an IPv4 header without options.
pub(crate) fn write_ipv4_checksum(header: &mut [u8]) {
    if let Some(place) = header.get_mut(10..12) {
        place.fill(0);
    }
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(be16(pair, 0).unwrap_or(0))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    if let Some(place) = header.get_mut(10..12) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
}

const NO_BUFFER: [u8; 4] = [0xff; 4];

fn packet_in(version: Version, in_port: u16, total_len: usize) -> Vec<u8> {
    let mut body = NO_BUFFER.to_vec();
    body.extend_from_slice(&(total_len as u16).to_be_bytes());
    match version {
        Version::V1_0 => {
            body.extend_from_slice(&in_port.to_be_bytes());
            body.extend_from_slice(&[0, 0]);
        }
        Version::V1_3 => {
            body.extend_from_slice(&[0, 0]);
            body.extend_from_slice(&[0; 8]);
            body.extend_from_slice(&match_in_port(in_port));
            body.extend_from_slice(&[0, 0]);
        }
    }
    body
}

/// A 1.3 match on one ingress port, padded.
fn match_in_port(port: u16) -> Vec<u8> {
    let mut bytes = vec![0, 1, 0, 12, 0x80, 0, 0, 4];
    bytes.extend_from_slice(&u32::from(port).to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

fn packet_out(version: Version, out_port: u16) -> Vec<u8> {
    let mut body = NO_BUFFER.to_vec();
    match version {
        Version::V1_0 => {
            // in_port NONE, 8 bytes of actions.
            body.extend_from_slice(&[0xff, 0xff, 0, 8]);
        }
        Version::V1_3 => {
            // in_port CONTROLLER, 16 bytes of actions.
            body.extend_from_slice(&[0xff, 0xff, 0xff, 0xfd, 0, 16, 0, 0, 0, 0, 0, 0]);
        }
    }
    body.extend_from_slice(&output(version, out_port));
    body
}

fn output(version: Version, port: u16) -> Vec<u8> {
    let mut action = vec![0, 0];
    match version {
        Version::V1_0 => {
            action.extend_from_slice(&[0, 8]);
            action.extend_from_slice(&port.to_be_bytes());
            action.extend_from_slice(&[0, 0]);
        }
        Version::V1_3 => {
            action.extend_from_slice(&[0, 16]);
            action.extend_from_slice(&u32::from(port).to_be_bytes());
            action.extend_from_slice(&[0; 8]);
        }
    }
    action
}

fn port_stats_request(version: Version) -> Vec<u8> {
    match version {
        Version::V1_0 => vec![0, 4, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0],
        Version::V1_3 => {
            vec![0, 4, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]
        }
    }
}

fn flow_stats_request(version: Version) -> Vec<u8> {
    match version {
        Version::V1_0 => {
            let mut body = vec![0, 1, 0, 0];
            body.extend_from_slice(&0x003f_ffff_u32.to_be_bytes());
            body.resize(4 + 40, 0);
            body.extend_from_slice(&[0xff, 0, 0xff, 0xff]);
            body
        }
        Version::V1_3 => {
            let mut body = vec![0, 1, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0];
            body.extend_from_slice(&[0xff; 8]);
            body.resize(body.len() + 4 + 16, 0);
            body.extend_from_slice(&[0, 1, 0, 4, 0, 0, 0, 0]);
            body
        }
    }
}

/// A rule inside tenant `index`'s flowspace, and the place of the four bytes that differ between its rules (the IPv4
/// destination). With `one_source` the source is an address, not a network.
fn flow_mod(setup: &Setup, index: usize, out_port: u16, one_source: bool) -> (Vec<u8>, usize) {
    let (network, length) = Slicing::source_network(index, setup.tenants);
    let length = if one_source { 32 } else { length };
    let port = setup.port(index);
    let mut body = Vec::new();
    match setup.version {
        Version::V1_0 => {
            // Wildcards: all fields except dl_type, nw_src, nw_dst, and in_port or VLAN if these fields separate
            // tenants.
            let mut wildcards: u32 = 0x003f_ffff & !(1 << 4) & !(0x3f << 8) & !(0x3f << 14);
            wildcards |= u32::from(32 - length) << 8;
            let mut vlan = 0;
            match setup.slicing {
                Slicing::SourcePrefix => {}
                Slicing::Vlan => {
                    wildcards &= !(1 << 1);
                    vlan = index as u16 + 1;
                }
                Slicing::InPort => wildcards &= !1,
            }
            body.extend_from_slice(&wildcards.to_be_bytes());
            body.extend_from_slice(&port.to_be_bytes());
            body.extend_from_slice(&[0; 12]);
            body.extend_from_slice(&vlan.to_be_bytes());
            body.extend_from_slice(&[0, 0, 0x08, 0, 0, 0, 0, 0]);
            body.extend_from_slice(&network);
            let rule_at = body.len();
            body.extend_from_slice(&[0; 4 + 4]);
            body.extend_from_slice(&[0; 8]);
            // ADD, no time-outs, priority 100, no buffer, no out_port, no flags.
            body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 100]);
            body.extend_from_slice(&NO_BUFFER);
            body.extend_from_slice(&[0xff, 0xff, 0, 0]);
            body.extend_from_slice(&output(setup.version, out_port));
            (body, rule_at)
        }
        Version::V1_3 => {
            body.extend_from_slice(&[0; 16]);
            // Table 0, ADD, no time-outs, priority 100, no buffer, any port and group, no flags.
            body.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 100]);
            body.extend_from_slice(&NO_BUFFER);
            body.extend_from_slice(&[0xff; 8]);
            body.extend_from_slice(&[0; 4]);
            let mut fields = Vec::new();
            match setup.slicing {
                Slicing::SourcePrefix => {}
                Slicing::Vlan => {
                    let vlan = 0x1000 | (index as u16 + 1);
                    fields.extend_from_slice(&[0x80, 0, 6 << 1, 2]);
                    fields.extend_from_slice(&vlan.to_be_bytes());
                }
                Slicing::InPort => {
                    fields.extend_from_slice(&[0x80, 0, 0, 4]);
                    fields.extend_from_slice(&u32::from(port).to_be_bytes());
                }
            }
            fields.extend_from_slice(&[0x80, 0, 5 << 1, 2, 0x08, 0]);
            if one_source {
                fields.extend_from_slice(&[0x80, 0, 11 << 1, 4]);
                fields.extend_from_slice(&network);
            } else {
                fields.extend_from_slice(&[0x80, 0, 11 << 1 | 1, 8]);
                fields.extend_from_slice(&network);
                fields.extend_from_slice(&(u32::MAX << (32 - u32::from(length))).to_be_bytes());
            }
            fields.extend_from_slice(&[0x80, 0, 12 << 1, 4]);
            let rule_at = body.len() + 4 + fields.len();
            fields.extend_from_slice(&[0; 4]);
            let match_len = 4 + fields.len();
            body.extend_from_slice(&[0, 1]);
            body.extend_from_slice(&(match_len as u16).to_be_bytes());
            body.extend_from_slice(&fields);
            body.resize(body.len() + match_len.next_multiple_of(8) - match_len, 0);
            // APPLY_ACTIONS with one output.
            body.extend_from_slice(&[0, 4, 0, 24, 0, 0, 0, 0]);
            body.extend_from_slice(&output(setup.version, out_port));
            (body, rule_at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Tag;
    use crate::wire::{be32, packet_in_data, packet_out_data};

    fn setups() -> impl Iterator<Item = Setup> {
        [Version::V1_0, Version::V1_3].into_iter().flat_map(|version| {
            [Slicing::SourcePrefix, Slicing::Vlan, Slicing::InPort].map(|slicing| Setup {
                version,
                slicing,
                ..Setup::new(Topology::Direct, 3)
            })
        })
    }

    #[test]
    fn packet_in_has_82_bytes_and_packet_out_88_as_in_published_measurements() {
        let setup = Setup::new(Topology::Direct, 1);
        assert_eq!(Template::new(Kind::PacketIn, &setup, 0).bytes.len(), 82);
        assert_eq!(Template::new(Kind::PacketOut, &setup, 0).bytes.len(), 88);
    }

    #[test]
    fn each_template_has_the_right_length_field_and_a_readable_tag() {
        for setup in setups() {
            for kind in Kind::ALL {
                let mut template = Template::new(kind, &setup, 2);
                let first = usize::from(be16(&template.bytes, 2).unwrap());
                let rest = template.bytes.len() - first;
                let barrier = matches!(kind, Kind::FlowMod | Kind::FlowChange);
                assert_eq!(rest, if barrier { 8 } else { 0 }, "{kind:?} {setup:?}");
                let tag = Tag { run: 1, stream: 2, sequence: 3, intended: 4 };
                let Some(at) = template.tag_at else { continue };
                tag.write(&mut template.bytes[at..]);
                let data = match kind {
                    Kind::PacketIn => packet_in_data(setup.version, &template.bytes),
                    Kind::PacketOut => packet_out_data(setup.version, &template.bytes),
                    _ => template.bytes.get(HEADER_LEN..),
                };
                assert_eq!(data.and_then(Tag::read_end), Some(tag), "{kind:?} {setup:?}");
            }
        }
    }

    #[test]
    fn port_statistics_requests_can_ask_for_each_port_in_turn() {
        for version in [Version::V1_0, Version::V1_3] {
            let mut setup = Setup { version, ..Setup::new(Topology::Direct, 1) };
            assert_eq!(Template::new(Kind::PortStats, &setup, 0).port_in_turn, None);
            setup.switch.ports_in_turn = true;
            let mut template = Template::new(Kind::PortStats, &setup, 0);
            let (at, ports) = template.port_in_turn.unwrap();
            template.bytes[at..at + 2].copy_from_slice(&3u16.to_be_bytes());
            let port = match version {
                Version::V1_0 => be16(&template.bytes, 12).map(u32::from),
                Version::V1_3 => be32(&template.bytes, 16),
            };
            assert_eq!((port, ports), (Some(3), 4));
        }
    }

    #[test]
    fn flow_mods_have_the_source_prefix_and_a_variable_destination_address() {
        for setup in setups() {
            let template = Template::new(Kind::FlowMod, &setup, 1);
            let at = template.rule_at.unwrap();
            assert_eq!(be32(&template.bytes, at), Some(0));
            let network = Slicing::source_network(1, 3).0;
            let before = match setup.version {
                Version::V1_0 => at - 4,
                Version::V1_3 => at - 12,
            };
            assert_eq!(template.bytes[before..before + 4], network, "{setup:?}");
        }
    }
}
