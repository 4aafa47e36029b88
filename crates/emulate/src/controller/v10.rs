//! Reads and writes the messages of the emulated controllers in 1.0.

use flowspace::{port_from_v10, port_to_v10};
use openflow::v10::{Action, FlowMod, Match, Message, PacketOut, PortNo, Wildcards};
use openflow::{ListBuf, NO_BUFFER};

use super::heard::{Heard, PacketIn};

pub(super) fn hear(frame: &[u8]) -> Heard<'_> {
    match Message::parse(frame) {
        Ok((_, Message::FeaturesReply(body))) => Heard::Features { dpid: body.datapath_id },
        Ok((_, Message::EchoRequest(data))) => Heard::EchoRequest(data),
        Ok((_, Message::PacketIn(body))) => Heard::PacketIn(PacketIn {
            buffer_id: body.buffer_id,
            in_port: port_from_v10(body.in_port.0),
            data: body.data,
        }),
        _ => Heard::Other,
    }
}

fn output(port: u32) -> Option<ListBuf<Action<'static>>> {
    Some(ListBuf::from([Action::Output { port: PortNo(port_to_v10(port)?), max_len: 0 }]))
}

pub(super) fn packet_out(xid: u32, packet: &PacketIn<'_>, port: u32, out: &mut Vec<u8>) {
    let (Some(actions), Some(in_port)) = (output(port), port_to_v10(packet.in_port)) else {
        return;
    };
    let is_buffered = packet.buffer_id != NO_BUFFER;
    let body = PacketOut {
        buffer_id: packet.buffer_id,
        in_port: PortNo(in_port),
        actions: actions.as_list(),
        data: if is_buffered { &[] } else { packet.data },
    };
    // A packet that does not fit in a PACKET_OUT is lost.
    let _ = Message::PacketOut(body).write(xid, out);
}

pub(super) fn flow_mod(
    xid: u32,
    packet: &PacketIn<'_>,
    destination: [u8; 6],
    port: u32,
    idle_timeout: u16,
    out: &mut Vec<u8>,
) {
    let (Some(actions), Some(in_port)) = (output(port), port_to_v10(packet.in_port)) else {
        return;
    };
    let looked_at = Wildcards::IN_PORT | Wildcards::DL_DST;
    let match_ = Match {
        wildcards: Wildcards::ALL.without(looked_at),
        in_port: PortNo(in_port),
        dl_dst: destination,
        ..Match::ANY
    };
    let body = FlowMod {
        match_,
        idle_timeout,
        buffer_id: packet.buffer_id,
        actions: actions.as_list(),
        ..FlowMod::default()
    };
    // One action always fits.
    let _ = Message::FlowMod(body).write(xid, out);
}
