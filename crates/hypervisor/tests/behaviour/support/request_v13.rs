//! The messages of OpenFlow 1.3 from text; see [`request`](super::request).

use super::actions::{actions_v13, instructions_v13, port_v13};
use super::request::Words;
use openflow::v13::{
    AsyncConfig, Bucket, ConfigFlags, Experimenter, FlowMod, FlowModCommand, FlowModFlags,
    FlowStatsRequest, GROUP_ALL, GROUP_ANY, GroupMod, GroupModCommand, GroupType, METER_ALL,
    MatchBuf, Message, MeterBand, MeterFlags, MeterMod, MeterModCommand, MultipartRequest,
    MultipartRequestBody, PacketOut, PortConfig, PortFeatures, PortMod, PortNo, QUEUE_ALL,
    QueueGetConfigRequest, Role, RoleBody, SwitchConfig, TABLE_ALL, TableMod,
};
use openflow::{List, ListBuf};

pub fn request_v13(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let port = |default| words.get("port").map_or(default, |p| port_v13(p).unwrap());
    let message = match words.word(0) {
        "hello" => Message::parse(&[4, 0, 0, 8, 0, 0, 0, 0]).unwrap().1,
        "echo" => Message::EchoRequest(words.get("data").unwrap_or("").as_bytes()),
        "echo_reply" => Message::EchoReply(b""),
        "error" => Message::Error(openflow::error::Error {
            code: openflow::error::v13::BAD_REQUEST_EPERM,
            data: &[],
        }),
        "features" => Message::FeaturesRequest,
        "get_config" => Message::GetConfigRequest,
        "barrier" => Message::BarrierRequest,
        "get_async" => Message::GetAsyncRequest,
        "set_async" => Message::SetAsync(AsyncConfig {
            packet_in_mask: masks(words, "in", [7, 0]),
            port_status_mask: masks(words, "port", [7, 7]),
            flow_removed_mask: masks(words, "removed", [15, 0]),
        }),
        "role" => Message::RoleRequest(RoleBody {
            role: Role(
                Words::named(words.word(1), &["nochange", "equal", "master", "slave"]).into(),
            ),
            generation_id: words.number("generation", 0),
        }),
        "set_config" => Message::SetConfig(SwitchConfig {
            flags: ConfigFlags(words.number("flags", 0) as u16),
            miss_send_len: words.number("len", 128) as u16,
        }),
        "port_mod" => Message::PortMod(port_mod(words)),
        "table_mod" => Message::TableMod(TableMod {
            table_id: words.number("table", 0) as u8,
            config: words.number("config", 0) as u32,
        }),
        "queues" => Message::QueueGetConfigRequest(QueueGetConfigRequest { port: port(PortNo(1)) }),
        "vendor" => Message::Experimenter(Experimenter {
            experimenter: words.number("id", 0) as u32,
            exp_type: 1,
            body: &[0; 8],
        }),
        "stats" => return multipart(xid, words, out),
        "flow" => return flow_mod(xid, words, out),
        "out" => return packet_out(xid, words, out),
        "group" => return group_mod(xid, words, out),
        "meter" => return meter_mod(xid, words, out),
        "type" => Message::Unknown { type_: words.word(1).parse().unwrap(), body: &[] },
        other => panic!("no 1.3 message: {other}"),
    };
    message.write(xid, out).unwrap();
}

/// `key=7/0`: the mask for the roles master and equal, and the mask for the role slave.
fn masks(words: &Words<'_>, key: &str, default: [u32; 2]) -> [u32; 2] {
    words.get(key).map_or(default, |value| {
        let (master, slave) = value.split_once('/').unwrap();
        [master.parse().unwrap(), slave.parse().unwrap()]
    })
}

fn wire_match(words: &Words<'_>) -> MatchBuf {
    let match_: flowspace::Match = words.get("match").unwrap_or("").parse().unwrap();
    let mut fields = MatchBuf::new();
    match_.to_v13(&mut fields).unwrap();
    fields
}

fn flow_mod(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let instructions = instructions_v13(words.get("actions").unwrap_or(""));
    let fields = wire_match(words);
    FlowMod {
        cookie: words.number("cookie", 0),
        cookie_mask: words.number("cookie_mask", 0),
        table_id: words.number("table", 0) as u8,
        command: FlowModCommand(words.flow_command() as u8),
        idle_timeout: words.number("idle", 0) as u16,
        hard_timeout: words.number("hard", 0) as u16,
        priority: words.number("prio", 0x8000) as u16,
        buffer_id: words.buffer(),
        out_port: words.get("out_port").map_or(PortNo::ANY, |p| port_v13(p).unwrap()),
        out_group: words.number("out_group", GROUP_ANY.into()) as u32,
        flags: FlowModFlags(words.flags()),
        match_: fields.as_match(),
        instructions: instructions.as_list(),
    }
    .write_message(xid, out)
    .unwrap();
}

fn packet_out(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let actions = actions_v13(words.get("actions").unwrap_or(""));
    let in_port = match words.get("in_port") {
        None | Some("none") => PortNo::CONTROLLER,
        Some(port) => port_v13(port).unwrap(),
    };
    let data = words.data();
    PacketOut { buffer_id: words.buffer(), in_port, actions: actions.as_list(), data: &data }
        .write_message(xid, out)
        .unwrap();
}

/// `group add id=1 type=all buckets=output:1|output:2`; `3@output:3` watches port 3, `g3@output:3` group 3, and
/// `5*output:1` has the weight 5.
fn group_mod(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let mut buckets = ListBuf::<Bucket<'static>>::new();
    for text in words.get("buckets").unwrap_or("").split('|').filter(|text| !text.is_empty()) {
        let (weight, text) = text.split_once('*').unwrap_or(("0", text));
        let (watched, text) = text.split_once('@').unwrap_or(("", text));
        let actions = actions_v13(text);
        let mut bucket = Bucket { weight: weight.parse().unwrap(), ..Bucket::default() };
        match watched.strip_prefix('g') {
            Some(group) => bucket.watch_group = group.parse().unwrap(),
            None if watched.is_empty() => {}
            None => bucket.watch_port = port_v13(watched).unwrap(),
        }
        buckets.push(Bucket { actions: actions.as_list(), ..bucket });
    }
    let type_ = words.get("type").unwrap_or("all");
    GroupMod {
        command: GroupModCommand(Words::named(words.word(1), &COMMANDS)),
        type_: GroupType(Words::named(type_, &["all", "select", "indirect", "ff"]) as u8),
        group_id: id(words, GROUP_ALL),
        buckets: buckets.as_list(),
    }
    .write_message(xid, out)
    .unwrap();
}

/// The commands of GROUP_MOD and METER_MOD.
const COMMANDS: [&str; 3] = ["add", "modify", "delete"];

/// The number of a group or meter, or of all.
fn id(words: &Words<'_>, all: u32) -> u32 {
    if words.get("id") == Some("all") { all } else { words.number("id", 1) as u32 }
}

fn meter_mod(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let mut bands = ListBuf::<MeterBand<'static>>::new();
    bands.push(MeterBand::Drop { rate: words.number("rate", 1000) as u32, burst_size: 100 });
    let command = MeterModCommand(Words::named(words.word(1), &COMMANDS));
    MeterMod {
        command,
        flags: MeterFlags::KBPS,
        meter_id: id(words, METER_ALL),
        bands: if command == MeterModCommand::DELETE { List::EMPTY } else { bands.as_list() },
    }
    .write_message(xid, out)
    .unwrap();
}

fn port_mod(words: &Words<'_>) -> PortMod {
    let port_no = port_v13(words.get("port").unwrap_or("1")).unwrap();
    PortMod {
        port_no,
        hw_addr: words.hw_addr(port_no.0),
        config: PortConfig(words.number("config", 0) as u32),
        mask: PortConfig(words.number("mask", 0) as u32),
        advertise: PortFeatures(words.number("advertise", 0) as u32),
    }
}

fn multipart(xid: u32, words: &Words<'_>, out: &mut Vec<u8>) {
    let port_no = words.get("port").map_or(PortNo::ANY, |p| port_v13(p).unwrap());
    let fields = wire_match(words);
    let flows = FlowStatsRequest {
        table_id: words.number("table", TABLE_ALL.into()) as u8,
        out_port: words.get("out_port").map_or(PortNo::ANY, |p| port_v13(p).unwrap()),
        out_group: words.number("out_group", GROUP_ANY.into()) as u32,
        cookie: words.number("cookie", 0),
        cookie_mask: words.number("cookie_mask", 0),
        match_: fields.as_match(),
    };
    let group_id = words.number("id", GROUP_ALL.into()) as u32;
    let meter_id = words.number("id", METER_ALL.into()) as u32;
    let body = match words.word(1) {
        "desc" => MultipartRequestBody::Desc,
        "flow" => MultipartRequestBody::Flow(flows),
        "aggregate" => MultipartRequestBody::Aggregate(flows),
        "table" => MultipartRequestBody::Table,
        "port" => MultipartRequestBody::PortStats { port_no },
        "queue" => MultipartRequestBody::Queue {
            port_no,
            queue_id: words.number("queue", QUEUE_ALL.into()) as u32,
        },
        "group" => MultipartRequestBody::Group { group_id },
        "group_desc" => MultipartRequestBody::GroupDesc,
        "group_features" => MultipartRequestBody::GroupFeatures,
        "meter" => MultipartRequestBody::Meter { meter_id },
        "meter_config" => MultipartRequestBody::MeterConfig { meter_id },
        "meter_features" => MultipartRequestBody::MeterFeatures,
        "table_features" => MultipartRequestBody::TableFeatures(List::EMPTY),
        "port_desc" => MultipartRequestBody::PortDesc,
        "vendor" => MultipartRequestBody::Experimenter {
            experimenter: words.number("id", 0) as u32,
            exp_type: 1,
            body: &[0; 8],
        },
        other => MultipartRequestBody::Unknown { type_: other.parse().unwrap(), body: &[] },
    };
    MultipartRequest::from(body).write_message(xid, out).unwrap();
}
