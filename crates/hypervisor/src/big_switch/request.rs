//! A change of one object, as the front asks for it.

use crate::flows::{Flow, FlowMod};
use crate::messages;
use crate::named::named_of;
use crate::semantics::{FlowMods, Semantics};
use crate::south::installed::change_of;
use crate::store::Kind;
use crate::time::Instant;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::Wire;
use compile::wire::in_port_of;
use openflow::Header;
use openflow::v13::{FlowModCommand, MessageType};

/// What the front can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// By its cookie.
    Entry(u64),
    /// A group or meter.
    Number(Kind, u32),
    /// The configuration of a port.
    Port(u32),
}

/// The contents of an entry.
pub(super) struct Spec {
    /// The entry, without its time and its counts.
    pub(super) flow: Flow,
    pub(super) in_port: Option<u32>,
    /// The groups and meters that the entry uses: without them the entry goes.
    pub(super) uses: Vec<Object>,
}

/// A change of one object.
pub(super) struct Request {
    pub(super) object: Object,
    pub(super) to: To,
}

pub(super) enum To {
    Add {
        spec: Arc<Spec>,
        resets_counts: bool,
        is_again: bool,
    },
    /// The entry gets the actions of `by`.
    Modify {
        by: Arc<Spec>,
        resets_counts: bool,
    },
    /// The content of a group or meter: see [`content_of`](crate::south::installed::content_of).
    Number(Arc<[u8]>),
    Config {
        config: u32,
        mask: u32,
    },
    Nothing,
}

impl Spec {
    pub(super) fn new(wire: Wire, flow: Flow) -> Arc<Spec> {
        let in_port = in_port_of(&flow.match_.to_match());
        let mut uses = Vec::new();
        if Semantics::of(wire).has_groups {
            for kind in [Kind::Group, Kind::Meter] {
                let named = named_of(kind, &flow.actions).into_iter();
                uses.extend(named.map(|number| Object::Number(kind, number)));
            }
        }
        Arc::new(Spec { flow, in_port, uses })
    }
}

impl Request {
    /// The change that a message of the front asks for.
    pub(super) fn read(wire: Wire, type_: MessageType, message: &[u8]) -> Option<Request> {
        let body = message.get(Header::LEN..)?;
        match type_ {
            MessageType::GROUP_MOD | MessageType::METER_MOD => {
                let ((kind, number), content) = change_of(message)?;
                let to = content.map_or(To::Nothing, To::Number);
                Some(Request { object: Object::Number(kind, number), to })
            }
            MessageType::PORT_MOD => {
                let it = messages::port_mod(wire, body).ok()?;
                let to = To::Config { config: it.config.0, mask: it.mask.0 };
                Some(Request { object: Object::Port(it.number), to })
            }
            _ => Request::of(wire, &messages::read_flow_mod(wire, body, 0).ok()?),
        }
    }

    /// A FLOW_MOD of one entry; the cookie names the entry.
    fn of(wire: Wire, it: &FlowMod<'_>) -> Option<Request> {
        let &FlowMods { add_resets_counts, reset_counts_flag, .. } = &Semantics::of(wire).flow_mod;
        let is_add = it.command == FlowModCommand::ADD;
        let resets_counts = it.has(reset_counts_flag) || is_add && add_resets_counts;
        let mut flow = it.to_flow(it.wanted.table?, Instant::default());
        flow.flags &= !reset_counts_flag;
        let spec = Spec::new(wire, flow);
        let to = match it.command {
            FlowModCommand::ADD => To::Add { spec, resets_counts, is_again: false },
            FlowModCommand::MODIFY_STRICT => To::Modify { by: spec, resets_counts },
            FlowModCommand::DELETE_STRICT => To::Nothing,
            _ => return None,
        };
        Some(Request { object: Object::Entry(it.cookie), to })
    }

    pub(super) fn adds(&self) -> bool {
        matches!(self.to, To::Add { .. })
    }

    pub(super) fn deletes(&self) -> bool {
        matches!(self.to, To::Nothing)
    }
}
