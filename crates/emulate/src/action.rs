//! The actions and instructions that the datapath executes, in one form for OpenFlow 1.0 and 1.3.
//!
//! Port numbers have the 32 bits of 1.3. The modules `v10` and `v13` translate actions from and to
//! the wire.

use openflow::v13::OxmField;

/// Reserved port numbers (1.3, section 7.2.1).
pub mod port {
    /// The packet goes out of its ingress port.
    pub const IN_PORT: u32 = 0xffff_fff8;
    /// The packet goes through the flow tables. Only a PACKET_OUT may use this port.
    pub const TABLE: u32 = 0xffff_fff9;
    /// The switch forwards the packet as a learning switch does.
    pub const NORMAL: u32 = 0xffff_fffa;
    /// The packet goes to all ports except the ingress port and the ports with flooding disabled.
    pub const FLOOD: u32 = 0xffff_fffb;
    /// The packet goes to all ports except the ingress port.
    pub const ALL: u32 = 0xffff_fffc;
    /// The packet goes to the controllers.
    pub const CONTROLLER: u32 = 0xffff_fffd;
    /// The network stack of the switch itself.
    pub const LOCAL: u32 = 0xffff_fffe;
    /// No port, or any port, depending on the field.
    pub const ANY: u32 = 0xffff_ffff;
    /// The highest port number of a switch. The lowest port number is 1.
    pub const MAX: u32 = 0xffff_ff00;
}

/// Group id that means "any group".
pub const ANY_GROUP: u32 = 0xffff_ffff;

/// One action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends the packet to a port. The controller gets at most `max_len` bytes of the packet.
    Output {
        /// The port number, which can be a reserved port.
        port: u32,
        /// The value 0xffff (`OFPCML_NO_BUFFER`) means the whole packet, without a buffer.
        max_len: u16,
    },
    /// 1.0: sends the packet to a port through a queue.
    Enqueue {
        /// The port number.
        port: u32,
        /// The queue of that port.
        queue: u32,
    },
    /// Sets the queue for the output actions that follow.
    SetQueue(u32),
    /// Open vSwitch's `resubmit(in_port,table)`.
    Resubmit {
        /// The ingress port that the table sees.
        in_port: u32,
        /// The number of the table.
        table: u8,
    },
    /// Processes the packet through a group.
    Group(u32),
    /// Sets a header field.
    SetField {
        /// The field, by its name in 1.3.
        field: OxmField,
        /// The value of the field, right-aligned.
        value: u128,
    },
    /// 1.0: sets the VLAN id, and pushes a tag if the packet has none.
    SetVlanVid(u16),
    /// 1.0: sets the VLAN priority, and pushes a tag if the packet has none.
    SetVlanPcp(u8),
    /// 1.0: sets the six DSCP bits of the given type-of-service byte.
    SetNwTos(u8),
    /// 1.0: sets the source port of TCP, UDP or SCTP.
    SetTpSrc(u16),
    /// 1.0: sets the destination port of TCP, UDP or SCTP.
    SetTpDst(u16),
    /// Pushes a VLAN tag of this EtherType.
    PushVlan(u16),
    /// Pops the outermost VLAN tag.
    PopVlan,
    /// Pushes an MPLS entry of this EtherType.
    PushMpls(u16),
    /// Pops the outermost MPLS entry. The payload then has this EtherType.
    PopMpls(u16),
    /// Sets the IP TTL.
    SetNwTtl(u8),
    /// Decrements the IP TTL.
    DecNwTtl,
    /// Sets the MPLS TTL.
    SetMplsTtl(u8),
    /// Decrements the MPLS TTL.
    DecMplsTtl,
    /// Copies the TTL from the inner header to the outer header.
    CopyTtlOut,
    /// Copies the TTL from the outer header to the inner header.
    CopyTtlIn,
}

impl Action {
    /// Whether the action sends packets to a port, a queue or a group.
    pub fn is_output(&self) -> bool {
        matches!(self, Action::Output { .. } | Action::Enqueue { .. } | Action::Group(_))
    }

    /// The port of an output action; `None` for other actions.
    pub fn output_port(&self) -> Option<u32> {
        match *self {
            Action::Output { port, .. } | Action::Enqueue { port, .. } => Some(port),
            _ => None,
        }
    }
}

/// The instructions of a flow entry, one of each type at most (1.3, section 5.9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The meter that the packet passes first.
    pub meter: Option<u32>,
    /// Actions to apply at once.
    pub apply: Vec<Action>,
    /// Whether the switch empties the action set.
    pub clear: bool,
    /// Actions to merge into the action set.
    pub write: Vec<Action>,
    /// Metadata value and mask.
    pub metadata: Option<(u64, u64)>,
    /// The table to continue in.
    pub goto: Option<u8>,
}

impl Instructions {
    /// The instructions of a 1.0 flow entry, which applies its actions at once.
    pub fn apply(actions: Vec<Action>) -> Instructions {
        Instructions { apply: actions, ..Instructions::default() }
    }

    /// All actions, applied and written.
    pub fn actions(&self) -> impl Iterator<Item = &Action> {
        self.apply.iter().chain(&self.write)
    }

    /// Whether an action outputs to the port (the `out_port` filter of requests).
    pub fn outputs_to(&self, port: u32) -> bool {
        self.actions().any(|action| action.output_port() == Some(port))
    }

    /// Whether an action uses the group (the `out_group` filter of requests).
    pub fn uses_group(&self, group: u32) -> bool {
        self.actions().any(|action| *action == Action::Group(group))
    }
}

/// The action set that travels with a packet through the tables (1.3, section 5.10).
///
/// The set has at most one action of each kind. The switch executes the actions in the order of the
/// specification.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActionSet {
    actions: Vec<Action>,
}

impl ActionSet {
    /// Adds an action. The action replaces an action of the same kind.
    pub(crate) fn write(&mut self, action: &Action) {
        match self.actions.iter_mut().find(|old| same_kind(old, action)) {
            Some(old) => old.clone_from(action),
            None => self.actions.push(action.clone()),
        }
    }

    /// Empties the set.
    pub(crate) fn clear(&mut self) {
        self.actions.clear();
    }

    /// Returns the actions in the order of execution. A group action makes the switch ignore an
    /// output action.
    pub(crate) fn into_ordered(mut self) -> Vec<Action> {
        if self.actions.iter().any(|action| matches!(action, Action::Group(_))) {
            self.actions.retain(|action| !matches!(action, Action::Output { .. }));
        }
        self.actions.sort_by_key(rank);
        self.actions
    }
}

fn same_kind(a: &Action, b: &Action) -> bool {
    match (a, b) {
        (Action::SetField { field: a, .. }, Action::SetField { field: b, .. }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// The place of an action in the order of execution of an action set (1.3, section 5.10).
fn rank(action: &Action) -> u8 {
    match action {
        Action::CopyTtlIn => 0,
        Action::PopVlan | Action::PopMpls(_) => 1,
        Action::PushMpls(_) => 2,
        Action::PushVlan(_) => 3,
        Action::CopyTtlOut => 4,
        Action::DecNwTtl | Action::DecMplsTtl => 5,
        Action::SetField { .. }
        | Action::SetNwTtl(_)
        | Action::SetMplsTtl(_)
        | Action::SetVlanVid(_)
        | Action::SetVlanPcp(_)
        | Action::SetNwTos(_)
        | Action::SetTpSrc(_)
        | Action::SetTpDst(_) => 6,
        Action::SetQueue(_) => 7,
        Action::Group(_) => 8,
        Action::Output { .. } | Action::Enqueue { .. } | Action::Resubmit { .. } => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_set_keeps_the_last_action_of_each_type_in_spec_order() {
        let mut set = ActionSet::default();
        let output = |port| Action::Output { port, max_len: 0 };
        for action in [
            output(1),
            Action::SetQueue(3),
            Action::SetField { field: OxmField::ETH_DST, value: 1 },
            Action::PushVlan(0x8100),
            Action::SetField { field: OxmField::ETH_SRC, value: 2 },
            Action::SetField { field: OxmField::ETH_DST, value: 9 },
            output(2),
            Action::PopVlan,
        ] {
            set.write(&action);
        }
        let expected = vec![
            Action::PopVlan,
            Action::PushVlan(0x8100),
            Action::SetField { field: OxmField::ETH_DST, value: 9 },
            Action::SetField { field: OxmField::ETH_SRC, value: 2 },
            Action::SetQueue(3),
            output(2),
        ];
        assert_eq!(set.clone().into_ordered(), expected);
        set.write(&Action::Group(7));
        assert!(!set.into_ordered().contains(&output(2)), "a group takes the output's place");
    }
}
