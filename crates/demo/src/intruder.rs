//! Emulates a controller that sends requests outside of its tenant's slice.

use anyhow::Context;
use channel::Address;
use emulate::scripted::{Connected, Controller, Message};
use openflow::error::Error;
use openflow::{ListBuf, Version, VersionSet, frame, v10, v13};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The longest wait for a connection or an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A controller that listens. Weir dials this controller like the tenant's other controller.
pub(crate) struct Intruder {
    listener: Controller,
    version: Version,
}

impl Intruder {
    pub(crate) fn listen(version: Version) -> anyhow::Result<Intruder> {
        let here = Address::tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = Controller::listen(&here, None, PATIENCE)?;
        Ok(Intruder { listener, version })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address().addr
    }

    /// Waits until Weir connects the switch to this controller.
    pub(crate) fn accept(mut self) -> anyhow::Result<Session> {
        let peer = self.listener.accept(VersionSet::only(self.version));
        let peer = peer.context("weir serve does not reach red's second controller")?;
        Ok(Session { peer, version: self.version, next_xid: 100 })
    }
}

/// The connection from Weir to this controller.
pub(crate) struct Session {
    peer: Connected,
    version: Version,
    next_xid: u32,
}

/// The fields of a FLOW_MOD that the demo needs.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) delete: bool,
    /// The ingress port of the match. `None` matches every packet.
    pub(crate) in_port: Option<u16>,
    /// The output port. `None` drops the packet.
    pub(crate) output: Option<u16>,
}

/// The answer of the switch, as the tenant sees the switch.
pub(crate) struct Answer {
    /// The name of the error, if the answer is an error.
    pub(crate) error: Option<String>,
    /// The transaction id of the request.
    pub(crate) xid: u32,
    /// Whether the error carries this id and the request's own bytes.
    pub(crate) is_faithful: bool,
}

impl Session {
    /// Sends a request, and waits until the result is certain: an ERROR, or the reply to a barrier after the request.
    pub(crate) fn ask(&mut self, rule: Rule) -> anyhow::Result<Answer> {
        self.next_xid += 2;
        let (xid, barrier) = (self.next_xid - 1, self.next_xid);
        let (request, behind) = match self.version {
            Version::V1_0 => {
                (flow_mod_10(rule, xid)?, v10::Message::BarrierRequest.to_frame(barrier)?)
            }
            _ => (flow_mod_13(rule, xid)?, v13::Message::BarrierRequest.to_frame(barrier)?),
        };
        self.peer.send(&request)?;
        self.peer.send(&behind)?;
        self.peer.expect_answer(barrier).context("no reply to a barrier behind red's request")?;
        let reply = self.peer.take_aside().into_iter().find(|reply| {
            frame::type_(reply) == Some(Error::TYPE) && frame::xid(reply) == Some(xid)
        });
        let Some(reply) = reply else { return Ok(Answer { error: None, xid, is_faithful: true }) };
        let error = read_error(self.version, &reply).context("an ERROR that cannot be read")?;
        let least = request.len().min(64);
        let is_faithful = request.starts_with(error.data) && error.data.len() >= least;
        let name = error.code.display(self.version).to_string();
        Ok(Answer { error: Some(name), xid, is_faithful })
    }
}

fn read_error(version: Version, message: &[u8]) -> Option<Error<'_>> {
    match version {
        Version::V1_0 => match v10::Message::parse(message).ok()?.1 {
            v10::Message::Error(error) => Some(error),
            _ => None,
        },
        _ => match v13::Message::parse(message).ok()?.1 {
            v13::Message::Error(error) => Some(error),
            _ => None,
        },
    }
}

/// A priority above the priorities of the rules that learning switches install.
const PRIORITY: u16 = 40_000;

fn flow_mod_10(rule: Rule, xid: u32) -> anyhow::Result<Vec<u8>> {
    use v10::{Action, FlowMod, FlowModCommand, Match, PortNo, Wildcards};
    let match_ = match rule.in_port {
        Some(port) => Match {
            wildcards: Wildcards::ALL.without(Wildcards::IN_PORT),
            in_port: PortNo(port),
            ..Match::ANY
        },
        None => Match::ANY,
    };
    let actions: ListBuf<Action<'_>> = rule
        .output
        .map(|port| Action::Output { port: PortNo(port), max_len: 0 })
        .into_iter()
        .collect();
    let command = if rule.delete { FlowModCommand::DELETE } else { FlowModCommand::ADD };
    let body = FlowMod {
        match_,
        command,
        priority: PRIORITY,
        actions: actions.as_list(),
        ..FlowMod::default()
    };
    Ok(v10::Message::FlowMod(body).to_frame(xid)?)
}

fn flow_mod_13(rule: Rule, xid: u32) -> anyhow::Result<Vec<u8>> {
    use v13::{Action, FlowMod, FlowModCommand, Instruction, MatchBuf, OxmField, PortNo};
    let mut match_ = MatchBuf::new();
    if let Some(port) = rule.in_port {
        match_.exact(OxmField::IN_PORT, port.into());
    }
    let actions: ListBuf<Action<'_>> = rule
        .output
        .map(|port| Action::Output { port: PortNo(port.into()), max_len: 0 })
        .into_iter()
        .collect();
    let instructions: ListBuf<Instruction<'_>> =
        rule.output.map(|_| Instruction::ApplyActions(actions.as_list())).into_iter().collect();
    let command = if rule.delete { FlowModCommand::DELETE } else { FlowModCommand::ADD };
    let body = FlowMod {
        match_: match_.as_match(),
        command,
        table_id: if rule.delete { v13::TABLE_ALL } else { 0 },
        priority: PRIORITY,
        instructions: instructions.as_list(),
        ..FlowMod::default()
    };
    Ok(v13::Message::FlowMod(body).to_frame(xid)?)
}
