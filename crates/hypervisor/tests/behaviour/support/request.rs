//! Controllers' messages from text, the same text for both versions where both versions have the message.
//!
//! `flow add match=in_port=1 prio=10 actions=output:2 cookie=7 flags=rem,overlap idle=5 hard=6 buffer=3 table=1`,
//! `out in_port=1 actions=output:2 data=10.1.0.1>10.1.0.2`, `stats port port=1`, `barrier`, `echo`, …: see [`request`].

use super::actions::{actions_v10, port_v10};
use super::packets::packet;
use super::request_v13::request_v13;
use openflow::v10::{
    ConfigFlags, FlowMod, FlowModCommand, FlowModFlags, FlowStatsRequest, Match, Message,
    PacketOut, PortConfig, PortFeatures, PortMod, QUEUE_ALL, QueueGetConfigRequest, StatsRequest,
    StatsRequestBody, SwitchConfig, TABLE_ALL, Vendor, Wildcards,
};
use openflow::{NO_BUFFER, Version};

/// The words of a message.
pub struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    /// The value of `key=value`.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// The word at this place.
    pub fn word(&self, at: usize) -> &'a str {
        self.0.get(at).unwrap_or_else(|| panic!("a word is missing: {:?}", self.0))
    }

    /// A number, decimal or with 0x. Gives `default` if the key is missing.
    pub fn number(&self, key: &str, default: u64) -> u64 {
        self.get(key).map_or(default, |value| match value.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => value.parse().unwrap_or_else(|_| panic!("{key}={value}")),
        })
    }

    /// The place of a word among the names of commands, types or roles, or the number that the word is.
    pub fn named(word: &str, names: &[&str]) -> u16 {
        let named = names.iter().position(|name| *name == word);
        named.map_or_else(|| word.parse().unwrap(), |at| at as u16)
    }

    /// The command of a FLOW_MOD. The numbers are the same in both versions.
    pub fn flow_command(&self) -> u16 {
        let names = ["add", "modify", "modify_strict", "delete", "delete_strict"];
        Words::named(self.word(1), &names)
    }

    /// The buffer id, or `NO_BUFFER`.
    pub fn buffer(&self) -> u32 {
        self.number("buffer", NO_BUFFER.into()) as u32
    }

    /// FLOW_MOD flags. A flag that is in both versions has the same number in both.
    pub fn flags(&self) -> u16 {
        self.get("flags").map_or(0, |flags| {
            let bit = |name: &str| match name {
                "rem" => 1,
                "overlap" => 2,
                // This bit is OFPFF_EMERG in 1.0 and OFPFF_RESET_COUNTS in 1.3.
                "emerg" | "reset" => 4,
                other => panic!("no flag: {other}"),
            };
            flags.split(',').map(bit).sum()
        })
    }

    /// The address of the port of a PORT_MOD: `mac=…`, or the address that an emulated switch gives the port.
    pub fn hw_addr(&self, port: u32) -> [u8; 6] {
        if let Some(text) = self.get("mac") {
            let octets: Vec<u8> =
                text.split(':').map(|octet| u8::from_str_radix(octet, 16).unwrap()).collect();
            return octets.try_into().unwrap();
        }
        let is_there = (1..=64).contains(&port) || port == emulate::port::LOCAL;
        if is_there { emulate::PortConfig::new(port).hw_addr } else { [0; 6] }
    }

    pub fn data(&self) -> Vec<u8> {
        self.get("data").map(packet).unwrap_or_default()
    }
}

/// One whole message of a controller.
pub fn request(version: Version, xid: u32, text: &str) -> Vec<u8> {
    let words = Words(text.split_whitespace().collect());
    if let Some(hex) = text.strip_prefix("hex ") {
        let mut frame = packet(&format!("hex:{hex}"));
        openflow::frame::set_xid(&mut frame, xid);
        return frame;
    }
    let mut out = Vec::new();
    match version {
        Version::V1_0 => request_v10(xid, &words, &mut out),
        _ => request_v13(xid, &words, &mut out),
    }
    assert!(!out.is_empty(), "not written: {text}");
    out
}

fn request_v10(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let port = |key: &str, default| words.get(key).map_or(default, |p| port_v10(p).unwrap());
    let message = match words.word(0) {
        "hello" => Message::parse(&[1, 0, 0, 8, 0, 0, 0, 0]).unwrap().1,
        "echo" => Message::EchoRequest(words.get("data").unwrap_or("").as_bytes()),
        "echo_reply" => Message::EchoReply(b""),
        "error" => Message::Error(openflow::error::Error {
            code: openflow::error::v10::BAD_REQUEST_EPERM,
            data: &[],
        }),
        "features" => Message::FeaturesRequest,
        "get_config" => Message::GetConfigRequest,
        "barrier" => Message::BarrierRequest,
        "set_config" => Message::SetConfig(SwitchConfig {
            flags: ConfigFlags(words.number("flags", 0) as u16),
            miss_send_len: words.number("len", 128) as u16,
        }),
        "port_mod" => Message::PortMod(port_mod(words)),
        "queues" => Message::QueueGetConfigRequest(QueueGetConfigRequest {
            port: port("port", openflow::v10::PortNo(1)),
        }),
        "vendor" => Message::Vendor(Vendor { vendor: words.number("id", 0) as u32, body: &[0; 8] }),
        "stats" => return statistics(xid, words, out),
        "flow" => return flow_mod(xid, words, out),
        "out" => return packet_out(xid, words, out),
        "type" => Message::Unknown { type_: words.word(1).parse().unwrap(), body: &[] },
        other => panic!("no 1.0 message: {other}"),
    };
    message.write(xid, out).unwrap();
}

fn wire_match(words: &Words<'_>) -> Match {
    let match_: flowspace::Match = words.get("match").unwrap_or("").parse().unwrap();
    let wire = match_.to_v10().unwrap();
    // With `full` no field is a wildcard, as in a match that a controller fills from a packet.
    let is_full = words.get("full").is_some();
    if is_full { Match { wildcards: Wildcards(0), ..wire } } else { wire }
}

fn flow_mod(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let actions = actions_v10(words.get("actions").unwrap_or(""));
    FlowMod {
        match_: wire_match(words),
        cookie: words.number("cookie", 0),
        command: FlowModCommand(words.flow_command()),
        idle_timeout: words.number("idle", 0) as u16,
        hard_timeout: words.number("hard", 0) as u16,
        priority: words.number("prio", 0x8000) as u16,
        buffer_id: words.buffer(),
        out_port: words
            .get("out_port")
            .map_or(openflow::v10::PortNo::NONE, |p| port_v10(p).unwrap()),
        flags: FlowModFlags(words.flags()),
        actions: actions.as_list(),
    }
    .write_message(xid, out)
    .unwrap();
}

fn packet_out(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let actions = actions_v10(words.get("actions").unwrap_or(""));
    PacketOut {
        buffer_id: words.buffer(),
        in_port: port_v10(words.get("in_port").unwrap_or("none")).unwrap(),
        actions: actions.as_list(),
        data: &words.data(),
    }
    .write_message(xid, out)
    .unwrap();
}

fn port_mod(words: &Words<'_>) -> PortMod {
    let port_no = port_v10(words.get("port").unwrap_or("1")).unwrap();
    PortMod {
        port_no,
        hw_addr: words.hw_addr(flowspace::port_from_v10(port_no.0)),
        config: PortConfig(words.number("config", 0) as u32),
        mask: PortConfig(words.number("mask", 0) as u32),
        advertise: PortFeatures(words.number("advertise", 0) as u32),
    }
}

fn statistics(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    use openflow::v10::PortNo;
    let port = |default| words.get("port").map_or(default, |p| port_v10(p).unwrap());
    let flows = FlowStatsRequest {
        match_: wire_match(words),
        table_id: words.number("table", TABLE_ALL.into()) as u8,
        out_port: words.get("out_port").map_or(PortNo::NONE, |p| port_v10(p).unwrap()),
    };
    let body = match words.word(1) {
        "desc" => StatsRequestBody::Desc,
        "flow" => StatsRequestBody::Flow(flows),
        "aggregate" => StatsRequestBody::Aggregate(flows),
        "table" => StatsRequestBody::Table,
        "port" => StatsRequestBody::Port { port_no: port(PortNo::NONE) },
        "queue" => StatsRequestBody::Queue {
            port_no: port(PortNo::ALL),
            queue_id: words.number("queue", QUEUE_ALL.into()) as u32,
        },
        "vendor" => {
            StatsRequestBody::Vendor { vendor: words.number("id", 0) as u32, body: &[0; 4] }
        }
        other => StatsRequestBody::Unknown { type_: other.parse().unwrap(), body: &[] },
    };
    StatsRequest::from(body).write_message(xid, out).unwrap();
}
