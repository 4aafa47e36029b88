//! Requests of a module to a switch, written in OpenFlow 1.0 or 1.3.

use openflow::v13::GROUP_ANY;
use openflow::{ListBuf, TooLong, Version, v10, v13};

use crate::probe::{OWN_COOKIE, own_match};
use crate::rule::{Action, Rule, actions_v10, actions_v13, port_v10};

/// A request to the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Add an entry.
    Add(Rule),
    /// Change the actions of the entry with exactly this match and priority.
    Modify(Rule),
    /// Delete the entry with exactly this match and priority.
    Delete(Rule),
    /// Delete all of the experiment's own entries, and no other entries.
    DeleteOwn,
    /// Request a reply after all messages before this request are done.
    Barrier,
    /// Request a reply with the same bytes.
    Echo(Vec<u8>),
    /// Send this frame out of a port.
    PacketOut {
        /// The port.
        port: u32,
        /// The frame, Ethernet header first.
        frame: Vec<u8>,
    },
    /// Flow statistics of the experiment's own entries, or of all.
    FlowStatistics {
        /// Whether to request the experiment's own entries only.
        own: bool,
    },
    /// Aggregate statistics of the experiment's own entries.
    AggregateStatistics,
    /// The description of the switch.
    Description,
    /// The ports of the switch (1.3; in 1.0 the FEATURES_REPLY has the ports).
    Ports,
    /// The queues of a port.
    Queues {
        /// The port.
        port: u32,
    },
    /// The statistics of a queue.
    QueueStatistics {
        /// The port.
        port: u32,
        /// The queue.
        queue: u32,
    },
}

impl Request {
    /// Appends the complete message.
    ///
    /// # Errors
    /// The message would be longer than 65,535 bytes; only a frame of such a length makes such a
    /// message.
    pub fn write(&self, version: Version, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match version {
            Version::V1_0 => self.write_v10(xid, out),
            _ => self.write_v13(xid, out),
        }
    }

    fn write_v10(&self, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        use v10::{FlowModCommand as Command, Message, StatsRequestBody as Body};
        let stats =
            |body: Body<'_>, out: &mut Vec<u8>| Message::StatsRequest(body.into()).write(xid, out);
        let own = v10::FlowStatsRequest {
            match_: own_match().to_v10(),
            ..v10::FlowStatsRequest::default()
        };
        let flow_mod = |command, rule: &Rule, out: &mut Vec<u8>| {
            let actions = actions_v10(&rule.actions);
            v10::FlowMod {
                match_: rule.match_.to_v10(),
                cookie: OWN_COOKIE,
                command,
                priority: rule.priority,
                actions: actions.as_list(),
                ..v10::FlowMod::default()
            }
            .write_message(xid, out)
        };
        match self {
            Request::Add(rule) => flow_mod(Command::ADD, rule, out),
            Request::Modify(rule) => flow_mod(Command::MODIFY_STRICT, rule, out),
            Request::Delete(rule) => flow_mod(Command::DELETE_STRICT, rule, out),
            Request::DeleteOwn => v10::FlowMod {
                match_: own_match().to_v10(),
                command: Command::DELETE,
                ..v10::FlowMod::default()
            }
            .write_message(xid, out),
            Request::Barrier => Message::BarrierRequest.write(xid, out),
            Request::Echo(bytes) => Message::EchoRequest(bytes).write(xid, out),
            Request::PacketOut { port, frame } => {
                let actions = actions_v10(&[Action::Output(*port)]);
                let body = v10::PacketOut {
                    actions: actions.as_list(),
                    data: frame,
                    ..v10::PacketOut::default()
                };
                body.write_message(xid, out)
            }
            Request::FlowStatistics { own: true } => stats(Body::Flow(own), out),
            Request::FlowStatistics { own: false } => {
                stats(Body::Flow(v10::FlowStatsRequest::default()), out)
            }
            Request::AggregateStatistics => stats(Body::Aggregate(own), out),
            Request::Description => stats(Body::Desc, out),
            Request::Ports => Message::FeaturesRequest.write(xid, out),
            Request::QueueStatistics { port, queue } => {
                let port_no = v10::PortNo(port_v10(*port));
                stats(Body::Queue { port_no, queue_id: *queue }, out)
            }
            Request::Queues { port } => {
                v10::QueueGetConfigRequest { port: v10::PortNo(port_v10(*port)) }
                    .write_message(xid, out)
            }
        }
    }

    fn write_v13(&self, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
        use v13::{FlowModCommand as Command, Message, MultipartRequestBody as Body};
        let multipart = |body: Body<'_>, out: &mut Vec<u8>| {
            Message::MultipartRequest(body.into()).write(xid, out)
        };
        let own_match = own_match().to_v13();
        let own = v13::FlowStatsRequest {
            match_: own_match.as_match(),
            ..v13::FlowStatsRequest::default()
        };
        let flow_mod = |command, rule: &Rule, out: &mut Vec<u8>| {
            let (match_, actions) = (rule.match_.to_v13(), actions_v13(&rule.actions));
            let mut instructions: ListBuf<v13::Instruction<'static>> = ListBuf::new();
            // An entry without instructions drops; an empty list of actions would also drop, but
            // would take more bytes.
            if !rule.actions.is_empty() {
                instructions.push(v13::Instruction::ApplyActions(actions.as_list()));
            }
            v13::FlowMod {
                cookie: OWN_COOKIE,
                command,
                priority: rule.priority,
                match_: match_.as_match(),
                instructions: instructions.as_list(),
                ..v13::FlowMod::default()
            }
            .write_message(xid, out)
        };
        match self {
            Request::Add(rule) => flow_mod(Command::ADD, rule, out),
            Request::Modify(rule) => flow_mod(Command::MODIFY_STRICT, rule, out),
            Request::Delete(rule) => flow_mod(Command::DELETE_STRICT, rule, out),
            Request::DeleteOwn => v13::FlowMod {
                command: Command::DELETE,
                table_id: v13::TABLE_ALL,
                cookie: OWN_COOKIE,
                cookie_mask: u64::MAX,
                out_group: GROUP_ANY,
                match_: own_match.as_match(),
                ..v13::FlowMod::default()
            }
            .write_message(xid, out),
            Request::Barrier => Message::BarrierRequest.write(xid, out),
            Request::Echo(bytes) => Message::EchoRequest(bytes).write(xid, out),
            Request::PacketOut { port, frame } => {
                let actions = actions_v13(&[Action::Output(*port)]);
                let body = v13::PacketOut {
                    actions: actions.as_list(),
                    data: frame,
                    ..v13::PacketOut::default()
                };
                body.write_message(xid, out)
            }
            Request::FlowStatistics { own: true } => multipart(Body::Flow(own), out),
            Request::FlowStatistics { own: false } => {
                multipart(Body::Flow(v13::FlowStatsRequest::default()), out)
            }
            Request::AggregateStatistics => multipart(Body::Aggregate(own), out),
            Request::Description => multipart(Body::Desc, out),
            Request::Ports => multipart(Body::PortDesc, out),
            Request::QueueStatistics { port, queue } => {
                multipart(Body::Queue { port_no: v13::PortNo(*port), queue_id: *queue }, out)
            }
            Request::Queues { port } => {
                v13::QueueGetConfigRequest { port: v13::PortNo(*port) }.write_message(xid, out)
            }
        }
    }
}
