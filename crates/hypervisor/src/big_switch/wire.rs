//! Messages that the big switch itself sends to the front and to members.

use crate::flows::{Flow, SentFlowMod};
use crate::messages;
use crate::refusals::Verdict;
use crate::semantics::Semantics;
use crate::south::diff::Change;
use crate::south::features::Features;
use crate::south::pending::{Awaits, Purpose};
use crate::{v10, v13};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::Wire;
use flowspace::port_from_v10;
use openflow::error::Error;
use openflow::v10::Match;
use openflow::v13::{Capabilities, FeaturesReply, FlowStatsRequest, MessageType, Port};
use openflow::{Header, frame};

/// The purpose of a message to a member, other than a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// A message without an answer. If the member refuses the message, Weir refuses the front's request with this xid.
    Plain(Option<u32>),
    /// A part of a question of the front.
    Part(u64),
    /// A question for the entries, groups or meters that the member holds.
    Own(Purpose),
    /// A question for the counters of an entry.
    IdleCheck(u64),
}

/// The body of a message.
pub(super) fn body(message: &[u8]) -> &[u8] {
    message.get(Header::LEN..).unwrap_or_default()
}

/// A message with this body; empty if the body is too long for a message.
pub(super) fn bare(wire: Wire, type_: u8, xid: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let version = Semantics::of(wire).version;
    let _ = frame::write(version, type_, xid, &mut out, |out| out.extend_from_slice(body));
    out
}

/// A BARRIER_REQUEST.
pub(super) fn barrier(wire: Wire) -> Vec<u8> {
    bare(wire, Semantics::of(wire).types.barrier_request, 0, &[])
}

/// A BARRIER_REPLY.
pub(super) fn barrier_reply(wire: Wire, xid: u32) -> Vec<u8> {
    bare(wire, Semantics::of(wire).types.barrier_request + 1, xid, &[])
}

/// An ERROR for the front, which carries the verdict.
pub(super) fn error(wire: Wire, xid: u32, verdict: Verdict) -> Vec<u8> {
    let mut out = Vec::new();
    let error = Error { code: verdict.refused.code(), data: &verdict.to_data() };
    // An ERROR is short, so there is room.
    let _ = error.write_message(Semantics::of(wire).version, xid, &mut out);
    out
}

/// The FEATURES_REPLY of the big switch; `None` if it has no room for all ports (1.0).
pub(super) fn features_reply(
    wire: Wire,
    xid: u32,
    datapath_id: u64,
    features: &Features,
    ports: &BTreeMap<u32, Port>,
) -> Option<Vec<u8>> {
    let &Features { n_buffers, n_tables, capabilities, actions } = features;
    let capabilities = Capabilities(capabilities);
    let mut body = Vec::new();
    // Where 1.0 has the actions, 1.3 has a field that is always 0.
    FeaturesReply {
        datapath_id,
        n_buffers,
        n_tables,
        auxiliary_id: 0,
        capabilities,
        reserved: actions,
    }
    .write(&mut body);
    if wire == Wire::V10 {
        ports.values().for_each(|port| body.extend_from_slice(&messages::write_port(wire, port)));
    }
    let reply = bare(wire, MessageType::FEATURES_REPLY.0, xid, &body);
    (!reply.is_empty()).then_some(reply)
}

/// The questions to a new member.
pub(super) fn questions(wire: Wire) -> impl Iterator<Item = (Sent, Vec<u8>)> {
    messages::questions(wire, 0).into_iter().filter_map(|(awaits, message)| match awaits {
        Awaits::Own(purpose) => Some((Sent::Own(purpose), message)),
        _ => None,
    })
}

/// The question for the counters of an entry. On 1.0 the answer may have other entries as well.
pub(super) fn question_of(wire: Wire, flow: &Flow) -> Vec<u8> {
    match wire {
        Wire::V10 => {
            v10::statistics::flow_question(Match::parse(&flow.match_wire).unwrap_or_default())
        }
        Wire::V13 => {
            let (cookie, cookie_mask) = (flow.cookie, u64::MAX);
            let filter = FlowStatsRequest { cookie, cookie_mask, ..Default::default() };
            v13::statistics::question(filter).message
        }
    }
}

/// The FLOW_MOD that makes this change to an entry.
pub(super) fn flow_mod(wire: Wire, change: Change, flow: &Flow, hard_timeout: u16) -> Vec<u8> {
    let cookie_mask = if change == Change::Delete { u64::MAX } else { 0 };
    let message = SentFlowMod { cookie_mask, hard_timeout, ..SentFlowMod::of_flow(change, flow) };
    let mut out = Vec::new();
    // The entry came in a message, so there is room.
    let _ = messages::write_flow_mod(wire, &message, &mut out);
    out
}

/// The PORT_MOD that gives a port this configuration.
pub(super) fn port_mod(wire: Wire, port: &Port, config: u32) -> Vec<u8> {
    let description = messages::write_port(wire, port);
    let Semantics { types, layout, .. } = Semantics::of(wire);
    // Number and address are where the description has them. The mask has all bits, and the port advertises no
    // features.
    let port = description.get(..layout.port_name).unwrap_or_default();
    let body = [port, &config.to_be_bytes(), &[0xff; 4], &[0; 8]].concat();
    bare(wire, types.port_mod, 0, &body)
}

/// The ingress port that a PACKET_OUT names.
pub(super) fn in_port(wire: Wire, message: &[u8]) -> u32 {
    let port = frame::in_port(message).unwrap_or(u32::MAX);
    match (wire, u16::try_from(port)) {
        (Wire::V10, Ok(port)) => port_from_v10(port),
        _ => port,
    }
}
