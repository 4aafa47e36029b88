//! Action lists as text, with the names of `ovs-ofctl` for actions that `ovs-ofctl` has:
//! `output:2,mod_nw_src:10.0.0.1,flood`.

use flowspace::port_from_v10;
use openflow::v10::{self, PortNo as Port10};
use openflow::v13::{self, Instruction, MatchBuf, OxmField, PortNo as Port13};
use openflow::{List, ListBuf};
use std::net::Ipv4Addr;

/// An action in words, for both versions.
enum Word<'a> {
    Port(&'a str),
    With(&'a str, &'a str),
    Bare(&'a str),
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    text.split(',').filter(|word| !word.is_empty() && *word != "drop").map(|word| {
        match word.split_once(':') {
            Some(("output", port)) => Word::Port(port),
            Some((name, value)) => Word::With(name, value),
            None if port_v10(word).is_some() => Word::Port(word),
            None => Word::Bare(word),
        }
    })
}

/// A 1.0 port by number or name.
pub fn port_v10(text: &str) -> Option<Port10> {
    Some(match text {
        "in_port" => Port10::IN_PORT,
        "table" => Port10::TABLE,
        "normal" => Port10::NORMAL,
        "flood" => Port10::FLOOD,
        "all" => Port10::ALL,
        "controller" => Port10::CONTROLLER,
        "local" => Port10::LOCAL,
        "none" | "any" => Port10::NONE,
        number => Port10(number.parse().ok()?),
    })
}

/// A 1.3 port by number or name.
pub fn port_v13(text: &str) -> Option<Port13> {
    let number = text.parse().ok();
    Some(Port13(number.or_else(|| Some(port_from_v10(port_v10(text)?.0)))?))
}

fn mac(text: &str) -> [u8; 6] {
    let mut mac = [0; 6];
    for (byte, digits) in mac.iter_mut().zip(text.split('.')) {
        *byte = u8::from_str_radix(digits, 16).unwrap();
    }
    mac
}

fn ip(text: &str) -> u32 {
    text.parse::<Ipv4Addr>().unwrap().into()
}

/// The `max_len` of an output that sends the whole packet to the controller.
const MAX_LEN: u16 = 0xffff;

/// A 1.0 action list.
pub fn actions_v10(text: &str) -> ListBuf<v10::Action<'static>> {
    let mut list = ListBuf::<v10::Action<'static>>::new();
    for word in words(text) {
        let action = match word {
            Word::Port(port) => {
                let port = port_v10(port).unwrap();
                v10::Action::Output {
                    port,
                    max_len: if port == Port10::CONTROLLER { MAX_LEN } else { 0 },
                }
            }
            Word::With("controller", value) => {
                let max_len = value.parse().unwrap();
                v10::Action::Output { port: Port10::CONTROLLER, max_len }
            }
            Word::With("enqueue", value) => {
                let (port, queue) = value.split_once(':').unwrap();
                v10::Action::Enqueue {
                    port: port_v10(port).unwrap(),
                    queue_id: queue.parse().unwrap(),
                }
            }
            Word::With("mod_dl_src", value) => v10::Action::SetDlSrc(mac(value)),
            Word::With("mod_dl_dst", value) => v10::Action::SetDlDst(mac(value)),
            Word::With("mod_nw_src", value) => v10::Action::SetNwSrc(ip(value)),
            Word::With("mod_nw_dst", value) => v10::Action::SetNwDst(ip(value)),
            Word::With("mod_nw_tos", value) => v10::Action::SetNwTos(value.parse().unwrap()),
            Word::With("mod_tp_src", value) => v10::Action::SetTpSrc(value.parse().unwrap()),
            Word::With("mod_tp_dst", value) => v10::Action::SetTpDst(value.parse().unwrap()),
            Word::With("mod_vlan_vid", value) => v10::Action::SetVlanVid(value.parse().unwrap()),
            Word::With("mod_vlan_pcp", value) => v10::Action::SetVlanPcp(value.parse().unwrap()),
            Word::With("vendor", value) => v10::Action::Vendor {
                vendor: u32::from_str_radix(value, 16).unwrap(),
                body: &[0, 1, 0, 0, 0, 0, 0, 0],
            },
            Word::With("unknown", value) => {
                v10::Action::Unknown { type_: value.parse().unwrap(), body: &[0; 4] }
            }
            Word::Bare("strip_vlan") => v10::Action::StripVlan,
            Word::With(name, _) | Word::Bare(name) => panic!("no 1.0 action: {name}"),
        };
        list.push(action);
    }
    list
}

/// A 1.3 action list.
pub fn actions_v13(text: &str) -> ListBuf<v13::Action<'static>> {
    let mut list = ListBuf::<v13::Action<'static>>::new();
    for word in words(text) {
        let mut field = MatchBuf::new();
        let mut set = |oxm: OxmField, value: u128| {
            field.exact(oxm, value);
        };
        let number = |value: &str| value.parse::<u32>().unwrap();
        let type_ = |value: &str| u16::from_str_radix(value, 16).unwrap();
        let action = match word {
            Word::Port(port) => {
                let port = port_v13(port).unwrap();
                Some(v13::Action::Output { port, max_len: MAX_LEN })
            }
            Word::With("controller", value) => {
                let max_len = value.parse().unwrap();
                Some(v13::Action::Output { port: Port13::CONTROLLER, max_len })
            }
            Word::With("set_queue", value) => Some(v13::Action::SetQueue(number(value))),
            Word::With("group", value) => Some(v13::Action::Group(number(value))),
            Word::With("push_vlan", value) => Some(v13::Action::PushVlan(type_(value))),
            Word::With("push_mpls", value) => Some(v13::Action::PushMpls(type_(value))),
            Word::With("pop_mpls", value) => Some(v13::Action::PopMpls(type_(value))),
            Word::With("push_pbb", value) => Some(v13::Action::PushPbb(type_(value))),
            Word::With("vendor", value) => Some(v13::Action::Experimenter {
                experimenter: u32::from_str_radix(value, 16).unwrap(),
                body: &[0, 1, 0, 0, 0, 0, 0, 0],
            }),
            Word::With("unknown", value) => {
                Some(v13::Action::Unknown { type_: value.parse().unwrap(), body: &[0; 4] })
            }
            Word::Bare("strip_vlan") => Some(v13::Action::PopVlan),
            Word::Bare("dec_ttl") => Some(v13::Action::DecNwTtl),
            Word::With("enqueue", value) => {
                let (port, queue) = value.split_once(':').unwrap();
                list.push(v13::Action::SetQueue(number(queue)));
                Some(v13::Action::Output { port: port_v13(port).unwrap(), max_len: 0 })
            }
            Word::With(name, value) => {
                match name {
                    "mod_dl_src" => set(OxmField::ETH_SRC, address(value)),
                    "mod_dl_dst" => set(OxmField::ETH_DST, address(value)),
                    "mod_nw_src" => set(OxmField::IPV4_SRC, ip(value).into()),
                    "mod_nw_dst" => set(OxmField::IPV4_DST, ip(value).into()),
                    "mod_nw_tos" => set(OxmField::IP_DSCP, u128::from(number(value) >> 2)),
                    "mod_tp_src" => set(OxmField::UDP_SRC, number(value).into()),
                    "mod_tp_dst" => set(OxmField::UDP_DST, number(value).into()),
                    "mod_vlan_vid" => set(OxmField::VLAN_VID, u128::from(number(value) | 0x1000)),
                    "mod_vlan_pcp" => set(OxmField::VLAN_PCP, number(value).into()),
                    "metadata" => set(OxmField::METADATA, number(value).into()),
                    _ => panic!("no 1.3 action: {name}"),
                }
                None
            }
            Word::Bare(name) => panic!("no 1.3 action: {name}"),
        };
        match action {
            Some(action) => list.push(action),
            None => {
                for oxm in field.as_match().fields {
                    list.push(v13::Action::SetField(oxm));
                }
            }
        }
    }
    list
}

fn address(text: &str) -> u128 {
    mac(text).iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte))
}

/// 1.3 instructions, separated by `;`. Actions without a `name=` are applied:
/// `write=output:1;goto=2;meter=3;meta=5/ff;clear`.
pub fn instructions_v13(text: &str) -> ListBuf<Instruction<'static>> {
    let mut list = ListBuf::<Instruction<'static>>::new();
    for part in text.split(';').filter(|part| !part.is_empty() && *part != "drop") {
        match part.split_once('=') {
            Some(("goto", table)) => list.push(Instruction::GotoTable(table.parse().unwrap())),
            Some(("meter", meter)) => list.push(Instruction::Meter(meter.parse().unwrap())),
            Some(("meta", value)) => {
                let (value, mask) = value.split_once('/').unwrap();
                let [metadata, mask] = [value, mask].map(|t| u64::from_str_radix(t, 16).unwrap());
                list.push(Instruction::WriteMetadata { metadata, mask });
            }
            Some(("write", actions)) => {
                list.push(Instruction::WriteActions(actions_v13(actions).as_list()));
            }
            Some((name, _)) => panic!("no instruction: {name}"),
            None if part == "clear" => list.push(Instruction::ClearActions),
            None => list.push(Instruction::ApplyActions(actions_v13(part).as_list())),
        }
    }
    list
}

/// A 1.0 list in the words that [`actions_v10`] reads.
pub fn text_v10(actions: List<'_, v10::Action<'_>>) -> String {
    let words: Vec<String> = actions
        .iter()
        .map(|action| match action {
            v10::Action::Output { port: Port10::CONTROLLER, max_len } if max_len != MAX_LEN => {
                format!("controller:{max_len}")
            }
            v10::Action::Output { port, .. } => {
                port_text(u32::from(port.0), port.0 >= 0xff00, &format!("{port:?}"))
            }
            v10::Action::Enqueue { port, queue_id } => format!("enqueue:{}:{queue_id}", port.0),
            v10::Action::SetNwSrc(ip) => format!("mod_nw_src:{}", Ipv4Addr::from(ip)),
            v10::Action::SetNwDst(ip) => format!("mod_nw_dst:{}", Ipv4Addr::from(ip)),
            v10::Action::StripVlan => "strip_vlan".to_owned(),
            other => format!("{other:?}").replace(", ", " "),
        })
        .collect();
    if words.is_empty() { "drop".to_owned() } else { words.join(",") }
}

/// A 1.3 list in the words that [`instructions_v13`] reads.
pub fn text_v13(instructions: List<'_, Instruction<'_>>) -> String {
    let words: Vec<String> = instructions
        .iter()
        .map(|instruction| match instruction {
            Instruction::ApplyActions(actions) => actions_text_v13(actions),
            Instruction::WriteActions(actions) => format!("write={}", actions_text_v13(actions)),
            Instruction::GotoTable(table) => format!("goto={table}"),
            Instruction::Meter(meter) => format!("meter={meter}"),
            other => format!("{other:?}").replace(", ", " "),
        })
        .collect();
    if words.is_empty() { "drop".to_owned() } else { words.join(";") }
}

pub fn actions_text_v13(actions: List<'_, v13::Action<'_>>) -> String {
    let words: Vec<String> = actions
        .iter()
        .map(|action| match action {
            v13::Action::Output { port: Port13::CONTROLLER, max_len } if max_len != MAX_LEN => {
                format!("controller:{max_len}")
            }
            v13::Action::Output { port, .. } => {
                port_text(port.0, port.0 >= 0xffff_ff00, &format!("{port:?}"))
            }
            v13::Action::Group(group) => format!("group:{group}"),
            v13::Action::SetQueue(queue) => format!("set_queue:{queue}"),
            other => format!("{other:?}").replace(", ", " "),
        })
        .collect();
    words.join(",")
}

fn port_text(number: u32, reserved: bool, name: &str) -> String {
    if reserved { name.to_lowercase() } else { format!("output:{number}") }
}
