//! An entry of a flow table, in the words of `ovs-ofctl --no-stats dump-flows`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter, Write};
use core::net::{Ipv4Addr, Ipv6Addr};

use openflow::nicira::Resubmit;
use openflow::v13::{Instruction, Oxm, OxmField};
use openflow::{Header, List, Version, v10, v13};

use super::print::EthernetAddress;
use super::vocabulary::PORTS;
use crate::{Match, port_from_v10, port_to_v10};

/// An entry as text. `Display` gives the line that `ovs-ofctl --no-stats dump-flows` prints for such an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowText {
    /// The cookie.
    pub cookie: u64,
    /// The table; 0 on OpenFlow 1.0.
    pub table: u8,
    /// The priority.
    pub priority: u16,
    /// Seconds, 0 for none.
    pub idle_timeout: u16,
    /// Seconds, 0 for none.
    pub hard_timeout: u16,
    /// Names of the flags that are set.
    pub flags: Vec<&'static str>,
    /// The match.
    pub match_: String,
    /// The actions (1.0) or instructions (1.3); `drop` if there are none.
    pub actions: String,
}

impl FlowText {
    /// The entry that this FLOW_MOD adds; `None` if the frame is no FLOW_MOD of 1.0 or 1.3.
    pub fn of_flow_mod(frame: &[u8]) -> Option<FlowText> {
        let header = Header::parse(frame).ok()?;
        let body =
            frame.get(Header::LEN..).filter(|_| usize::from(header.length) == frame.len())?;
        match header.version {
            Version::V1_0 if header.type_ == v10::MessageType::FLOW_MOD.0 => of_v10(body),
            Version::V1_3 if header.type_ == v13::MessageType::FLOW_MOD.0 => of_v13(body),
            _ => None,
        }
    }
}

impl Display for FlowText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.cookie != 0 {
            write!(f, "cookie={:#x}, ", self.cookie)?;
        }
        for (name, value) in [
            ("table", self.table.into()),
            ("idle_timeout", self.idle_timeout),
            ("hard_timeout", self.hard_timeout),
        ] {
            if value != 0 {
                write!(f, "{name}={value}, ")?;
            }
        }
        for flag in &self.flags {
            write!(f, "{flag} ")?;
        }
        let has_priority = self.priority != v10::FlowMod::DEFAULT_PRIORITY;
        if has_priority {
            write!(f, "priority={}", self.priority)?;
        }
        if !self.match_.is_empty() {
            write!(f, "{}{}", if has_priority { "," } else { "" }, self.match_)?;
        }
        if has_priority || !self.match_.is_empty() {
            f.write_char(' ')?;
        }
        write!(f, "actions={}", self.actions)
    }
}

fn of_v10(body: &[u8]) -> Option<FlowText> {
    let flow = v10::FlowMod::parse(body).ok()?;
    let names = ["send_flow_rem", "check_overlap", "emerg"];
    Some(FlowText {
        cookie: flow.cookie,
        table: 0,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: flags(flow.flags.0, &names),
        match_: Match::from_v10(&flow.match_).to_string(),
        actions: or_drop(comma_separated(flow.actions.iter().map(ActionV10))),
    })
}

fn of_v13(body: &[u8]) -> Option<FlowText> {
    let flow = v13::FlowMod::parse(body).ok()?;
    let names =
        ["send_flow_rem", "check_overlap", "reset_counts", "no_packet_counts", "no_byte_counts"];
    // Switches carry instructions out in this order, whatever order they were written in (specification 1.3.5, section
    // 5.9).
    let mut instructions: Vec<_> = flow.instructions.iter().collect();
    instructions.sort_by_key(rank);
    let instructions = instructions.into_iter().map(InstructionV13);
    let written = instructions.map(|it| it.to_string()).filter(|text| !text.is_empty());
    Some(FlowText {
        cookie: flow.cookie,
        table: flow.table_id,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: flags(flow.flags.0, &names),
        // Weir never accepts a FLOW_MOD that cannot be decoded.
        match_: Match::from_v13(&flow.match_).ok()?.to_string(),
        actions: or_drop(comma_separated(written)),
    })
}

fn flags(bits: u16, names: &[&'static str]) -> Vec<&'static str> {
    let set = names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 != 0);
    set.map(|(_, name)| *name).collect()
}

fn comma_separated(items: impl Iterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() {
            text.push(',');
        }
        // Writing to memory cannot fail.
        let _ = write!(text, "{item}");
    }
    text
}

fn or_drop(text: String) -> String {
    if text.is_empty() { "drop".to_string() } else { text }
}

fn rank(instruction: &Instruction<'_>) -> u8 {
    match instruction {
        Instruction::Meter(_) => 0,
        Instruction::ApplyActions(_) => 1,
        Instruction::ClearActions => 2,
        Instruction::WriteActions(_) => 3,
        Instruction::WriteMetadata { .. } => 4,
        Instruction::Experimenter { .. } | Instruction::Unknown { .. } => 5,
        Instruction::GotoTable(_) => 6,
    }
}

struct InstructionV13<'a>(Instruction<'a>);

impl Display for InstructionV13<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let list = |actions: List<'_, v13::Action<'_>>| {
            comma_separated(actions.iter().map(ActionV13).map(|action| action.to_string()))
        };
        match self.0 {
            Instruction::Meter(meter) => write!(f, "meter:{meter}"),
            Instruction::ApplyActions(actions) => f.write_str(&list(actions)),
            Instruction::ClearActions => f.write_str("clear_actions"),
            Instruction::WriteActions(actions) => {
                write!(f, "write_actions({})", or_drop(list(actions)))
            }
            Instruction::WriteMetadata { metadata, mask: u64::MAX } => {
                write!(f, "write_metadata:{metadata:#x}")
            }
            Instruction::WriteMetadata { metadata, mask } => {
                write!(f, "write_metadata:{metadata:#x}/{mask:#x}")
            }
            Instruction::GotoTable(table) => write!(f, "goto_table:{table}"),
            Instruction::Experimenter { experimenter, body } => foreign(f, experimenter, body),
            Instruction::Unknown { type_, body } => unknown(f, "instruction", type_, body),
        }
    }
}

struct ActionV10<'a>(v10::Action<'a>);

impl Display for ActionV10<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use v10::Action;
        match self.0 {
            Action::Output { port, max_len } => output(f, port_from_v10(port.0), max_len),
            Action::SetVlanVid(vid) => write!(f, "mod_vlan_vid:{vid}"),
            Action::SetVlanPcp(priority) => write!(f, "mod_vlan_pcp:{priority}"),
            Action::StripVlan => f.write_str("strip_vlan"),
            Action::SetDlSrc(address) => write!(f, "mod_dl_src:{}", mac(address)),
            Action::SetDlDst(address) => write!(f, "mod_dl_dst:{}", mac(address)),
            Action::SetNwSrc(address) => write!(f, "mod_nw_src:{}", Ipv4Addr::from_bits(address)),
            Action::SetNwDst(address) => write!(f, "mod_nw_dst:{}", Ipv4Addr::from_bits(address)),
            Action::SetNwTos(tos) => write!(f, "mod_nw_tos:{tos}"),
            Action::SetTpSrc(port) => write!(f, "mod_tp_src:{port}"),
            Action::SetTpDst(port) => write!(f, "mod_tp_dst:{port}"),
            Action::Enqueue { port, queue_id } => {
                write!(f, "enqueue:{}:{queue_id}", Port(port_from_v10(port.0)))
            }
            Action::Vendor { vendor, body } => match Resubmit::of_v10(&self.0) {
                Some(resubmit) => resubmits(f, resubmit),
                None => foreign(f, vendor, body),
            },
            Action::Unknown { type_, body } => unknown(f, "action", type_, body),
        }
    }
}

struct ActionV13<'a>(v13::Action<'a>);

impl Display for ActionV13<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        use v13::Action;
        match self.0 {
            Action::Output { port, max_len } => output(f, port.0, max_len),
            Action::CopyTtlOut => f.write_str("copy_ttl_out"),
            Action::CopyTtlIn => f.write_str("copy_ttl_in"),
            Action::SetMplsTtl(ttl) => write!(f, "set_mpls_ttl({ttl})"),
            Action::DecMplsTtl => f.write_str("dec_mpls_ttl"),
            Action::PushVlan(type_) => write!(f, "push_vlan:0x{type_:04x}"),
            Action::PopVlan => f.write_str("pop_vlan"),
            Action::PushMpls(type_) => write!(f, "push_mpls:0x{type_:04x}"),
            Action::PopMpls(type_) => write!(f, "pop_mpls:0x{type_:04x}"),
            Action::SetQueue(queue) => write!(f, "set_queue:{queue}"),
            Action::Group(group) => write!(f, "group:{group}"),
            Action::SetNwTtl(ttl) => write!(f, "mod_nw_ttl:{ttl}"),
            Action::DecNwTtl => f.write_str("dec_ttl"),
            Action::SetField(oxm) => set_field(f, &oxm),
            Action::PushPbb(type_) => write!(f, "push_pbb:0x{type_:04x}"),
            Action::PopPbb => f.write_str("pop_pbb"),
            Action::Experimenter { experimenter, body } => match Resubmit::of_v13(&self.0) {
                Some(resubmit) => resubmits(f, resubmit),
                None => foreign(f, experimenter, body),
            },
            Action::Unknown { type_, body } => unknown(f, "action", type_, body),
        }
    }
}

/// A port by its number in 1.3; reserved ports by name.
struct Port(u32);

impl Port {
    fn is_reserved(&self) -> bool {
        PORTS.iter().any(|(_, number)| *number == self.0)
    }
}

impl Display for Port {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match PORTS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", port_to_v10(self.0).map_or(self.0, u32::from)),
        }
    }
}

fn output(f: &mut Formatter<'_>, port: u32, max_len: u16) -> fmt::Result {
    let port = Port(port);
    match port.0 {
        CONTROLLER => write!(f, "{port}:{max_len}"),
        _ if port.is_reserved() => write!(f, "{port}"),
        _ => write!(f, "output:{port}"),
    }
}

const CONTROLLER: u32 = v13::PortNo::CONTROLLER.0;

fn resubmits(f: &mut Formatter<'_>, Resubmit { in_port, table }: Resubmit) -> fmt::Result {
    match port_from_v10(in_port) {
        IN_PORT => write!(f, "resubmit(,{table})"),
        port => write!(f, "resubmit({},{table})", Port(port)),
    }
}

const IN_PORT: u32 = v13::PortNo::IN_PORT.0;

fn mac(octets: [u8; 6]) -> EthernetAddress {
    let [a, b, c, d, e, g] = octets;
    EthernetAddress(u64::from_be_bytes([0, 0, a, b, c, d, e, g]))
}

fn set_field(f: &mut Formatter<'_>, oxm: &Oxm<'_>) -> fmt::Result {
    let field = oxm.basic().and_then(|field| FIELDS.iter().find(|row| row.0 == field));
    let (Some((_, name, form)), Some(value)) = (field, oxm.number()) else {
        return write!(f, "set_field:{oxm:?}");
    };
    write!(f, "set_field:")?;
    form.write(f, value)?;
    if let Some(mask) = oxm.mask.and(oxm.mask_number()) {
        f.write_char('/')?;
        let form = if matches!(form, Form::Decimal) { Form::Hex } else { *form };
        form.write(f, mask)?;
    }
    write!(f, "->{name}")
}

/// The text form of a value.
#[derive(Clone, Copy)]
enum Form {
    Decimal,
    Hex,
    Ethernet,
    Ipv4,
    Ipv6,
}

impl Form {
    fn write(self, f: &mut Formatter<'_>, value: u128) -> fmt::Result {
        match self {
            Form::Decimal => write!(f, "{value}"),
            Form::Hex if value == 0 => f.write_char('0'),
            Form::Hex => write!(f, "{value:#x}"),
            Form::Ethernet => write!(f, "{}", EthernetAddress(value as u64)),
            Form::Ipv4 => write!(f, "{}", Ipv4Addr::from_bits(value as u32)),
            Form::Ipv6 => write!(f, "{}", Ipv6Addr::from_bits(value)),
        }
    }
}

/// The names in `ovs-ofctl` of the fields that a SET_FIELD writes, and the text form of their values.
const FIELDS: &[(OxmField, &str, Form)] = &[
    (OxmField::METADATA, "metadata", Form::Hex),
    (OxmField::TUNNEL_ID, "tun_id", Form::Hex),
    (OxmField::ETH_SRC, "eth_src", Form::Ethernet),
    (OxmField::ETH_DST, "eth_dst", Form::Ethernet),
    (OxmField::ETH_TYPE, "eth_type", Form::Hex),
    (OxmField::VLAN_VID, "vlan_vid", Form::Decimal),
    (OxmField::VLAN_PCP, "vlan_pcp", Form::Decimal),
    (OxmField::IP_PROTO, "nw_proto", Form::Decimal),
    (OxmField::IP_DSCP, "ip_dscp", Form::Decimal),
    (OxmField::IP_ECN, "nw_ecn", Form::Decimal),
    (OxmField::IPV4_SRC, "ip_src", Form::Ipv4),
    (OxmField::IPV4_DST, "ip_dst", Form::Ipv4),
    (OxmField::TCP_SRC, "tcp_src", Form::Decimal),
    (OxmField::TCP_DST, "tcp_dst", Form::Decimal),
    (OxmField::UDP_SRC, "udp_src", Form::Decimal),
    (OxmField::UDP_DST, "udp_dst", Form::Decimal),
    (OxmField::SCTP_SRC, "sctp_src", Form::Decimal),
    (OxmField::SCTP_DST, "sctp_dst", Form::Decimal),
    (OxmField::ICMPV4_TYPE, "icmp_type", Form::Decimal),
    (OxmField::ICMPV4_CODE, "icmp_code", Form::Decimal),
    (OxmField::ICMPV6_TYPE, "icmpv6_type", Form::Decimal),
    (OxmField::ICMPV6_CODE, "icmpv6_code", Form::Decimal),
    (OxmField::ARP_OP, "arp_op", Form::Decimal),
    (OxmField::ARP_SPA, "arp_spa", Form::Ipv4),
    (OxmField::ARP_TPA, "arp_tpa", Form::Ipv4),
    (OxmField::ARP_SHA, "arp_sha", Form::Ethernet),
    (OxmField::ARP_THA, "arp_tha", Form::Ethernet),
    (OxmField::IPV6_SRC, "ipv6_src", Form::Ipv6),
    (OxmField::IPV6_DST, "ipv6_dst", Form::Ipv6),
    (OxmField::IPV6_FLABEL, "ipv6_label", Form::Hex),
    (OxmField::IPV6_ND_TARGET, "nd_target", Form::Ipv6),
    (OxmField::IPV6_ND_SLL, "nd_sll", Form::Ethernet),
    (OxmField::IPV6_ND_TLL, "nd_tll", Form::Ethernet),
    (OxmField::MPLS_LABEL, "mpls_label", Form::Decimal),
    (OxmField::MPLS_TC, "mpls_tc", Form::Decimal),
    (OxmField::MPLS_BOS, "mpls_bos", Form::Decimal),
    (OxmField::PBB_ISID, "pbb_isid", Form::Hex),
];

/// An experimenter's action, in a form that `ovs-ofctl` does not read.
fn foreign(f: &mut Formatter<'_>, experimenter: u32, body: &[u8]) -> fmt::Result {
    write!(f, "experimenter({experimenter:#x},")?;
    hex(f, body)
}

fn unknown(f: &mut Formatter<'_>, what: &str, type_: u16, body: &[u8]) -> fmt::Result {
    write!(f, "{what}({type_},")?;
    hex(f, body)
}

fn hex(f: &mut Formatter<'_>, body: &[u8]) -> fmt::Result {
    body.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
    f.write_char(')')
}
