//! Reads and writes the messages of the emulated controllers in 1.3.

use openflow::v13::{Action, FlowMod, Instruction, MatchBuf, Message, OxmField, PacketOut, PortNo};
use openflow::{ListBuf, NO_BUFFER};

use super::heard::{Heard, PacketIn};

pub(super) fn hear(frame: &[u8]) -> Heard<'_> {
    match Message::parse(frame) {
        Ok((_, Message::FeaturesReply(body))) => Heard::Features { dpid: body.datapath_id },
        Ok((_, Message::EchoRequest(data))) => Heard::EchoRequest(data),
        Ok((_, Message::PacketIn(body))) => match body.match_.in_port() {
            Some(PortNo(in_port)) => {
                Heard::PacketIn(PacketIn { buffer_id: body.buffer_id, in_port, data: body.data })
            }
            None => Heard::Other,
        },
        _ => Heard::Other,
    }
}

/// The table-miss entry that sends packets to the controller.
pub(super) fn table_miss(xid: u32, out: &mut Vec<u8>) {
    /// The default of 1.0.
    const MAX_LEN: u16 = 128;
    let action = Action::Output { port: PortNo::CONTROLLER, max_len: MAX_LEN };
    add(xid, FlowMod { priority: 0, ..FlowMod::default() }, action, out);
}

pub(super) fn packet_out(xid: u32, packet: &PacketIn<'_>, port: u32, out: &mut Vec<u8>) {
    let actions = ListBuf::from([Action::Output { port: PortNo(port), max_len: 0 }]);
    let is_buffered = packet.buffer_id != NO_BUFFER;
    let body = PacketOut {
        buffer_id: packet.buffer_id,
        in_port: PortNo(packet.in_port),
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
    let destination = destination.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
    let mut match_ = MatchBuf::new();
    match_.exact(OxmField::IN_PORT, packet.in_port.into());
    match_.exact(OxmField::ETH_DST, destination);
    let base = FlowMod {
        match_: match_.as_match(),
        idle_timeout,
        buffer_id: packet.buffer_id,
        ..FlowMod::default()
    };
    add(xid, base, Action::Output { port: PortNo(port), max_len: 0 }, out);
}

fn add(xid: u32, base: FlowMod<'_>, action: Action<'_>, out: &mut Vec<u8>) {
    let actions = ListBuf::from([action]);
    let instructions = ListBuf::from([Instruction::ApplyActions(actions.as_list())]);
    let body = FlowMod { instructions: instructions.as_list(), ..base };
    // One action always fits.
    let _ = Message::FlowMod(body).write(xid, out);
}
