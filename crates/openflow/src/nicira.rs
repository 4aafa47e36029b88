//! Open vSwitch's own actions, as far as they are used here (ovs-actions(7), `nicira-ext.h`).

use crate::v10;
use crate::v13;

/// The experimenter, or vendor, whose actions these are.
pub const NICIRA: u32 = 0x2320;

/// NXAST_RESUBMIT_TABLE.
const RESUBMIT_TABLE: u16 = 14;

/// The body of NXT_FLOW_MOD_TABLE_ID (1.0) after the vendor's number. After this message the higher byte of the command
/// of each FLOW_MOD on the connection is the number of the table.
pub const FLOW_MOD_TABLE_ID: [u8; 12] = [0, 0, 0, 15, 1, 0, 0, 0, 0, 0, 0, 0];

/// `resubmit(in_port,table)`: the switch looks up the packet in this table with this ingress port, executes the actions of
/// the matching entry, and then continues with the rest of the list. The port has 16 bits, as on OpenFlow 1.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resubmit {
    /// The ingress port for the lookup.
    pub in_port: u16,
    /// The number of the table.
    pub table: u8,
}

impl Resubmit {
    /// The body of the action after the experimenter's number.
    pub fn body(self) -> [u8; 8] {
        let [kind, in_port] = [RESUBMIT_TABLE, self.in_port].map(u16::to_be_bytes);
        [kind[0], kind[1], in_port[0], in_port[1], self.table, 0, 0, 0]
    }

    /// By what is behind the experimenter's number, if it is this action.
    pub fn parse(body: &[u8]) -> Option<Resubmit> {
        let (kind, rest) = body.split_first_chunk()?;
        let (in_port, rest) = rest.split_first_chunk()?;
        let &[table, _, _, _] = rest else { return None };
        let is_meant = u16::from_be_bytes(*kind) == RESUBMIT_TABLE;
        is_meant.then_some(Resubmit { in_port: u16::from_be_bytes(*in_port), table })
    }

    /// By an action of 1.0.
    pub fn of_v10(action: &v10::Action<'_>) -> Option<Resubmit> {
        match action {
            v10::Action::Vendor { vendor: NICIRA, body } => Resubmit::parse(body),
            _ => None,
        }
    }

    /// By an action of 1.3.
    pub fn of_v13(action: &v13::Action<'_>) -> Option<Resubmit> {
        match action {
            v13::Action::Experimenter { experimenter: NICIRA, body } => Resubmit::parse(body),
            _ => None,
        }
    }
}
