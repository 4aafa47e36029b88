//! [`Switch`] calls the function for a message by the version of OpenFlow that the switch speaks.

use super::{Cause, Request, Switch, Waiter};
use crate::buffers::Buffered;
use crate::time::Instant;
use compile::{Refused, Wire};
use openflow::v13::MessageType;
use openflow::{ErrorCode, Header};

impl Switch {
    /// From the switch.
    #[inline]
    pub(super) fn switch_message(
        &mut self,
        header: Header,
        frame: &[u8],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        match self.wire {
            Wire::V10 => self.switch_message_v10(header, frame, now),
            Wire::V13 => self.switch_message_v13(header, frame, now),
        }
    }

    /// From a controller.
    #[inline]
    pub(super) fn controller_message(&mut self, request: Request<'_>) -> Result<(), Refused> {
        match self.wire {
            Wire::V10 => self.controller_message_v10(request),
            Wire::V13 => self.controller_message_v13(request),
        }
    }

    /// Applies a change again, of which all was checked that tables do not decide.
    pub(super) fn apply(&mut self, request: &Request<'_>) -> Result<(), Refused> {
        match (self.wire, MessageType(request.header.type_)) {
            // The number is that of 1.0, too.
            (_, MessageType::FLOW_MOD) => self.flow_mod(request),
            (Wire::V13, MessageType::GROUP_MOD) => self.group_mod_v13(request),
            (Wire::V13, MessageType::METER_MOD) => self.meter_mod_v13(request),
            (Wire::V10 | Wire::V13, _) => Ok(()),
        }
    }

    /// The answer to a statistics request, for one who waited.
    pub(super) fn write_statistics(&mut self, type_: u16, waiter: &Waiter, answers: &[u8]) {
        match self.wire {
            Wire::V10 => self.answer_statistics_v10(type_, waiter, answers),
            Wire::V13 => self.answer_statistics_v13(type_, waiter, answers),
        }
    }

    /// Sends a buffered packet through the tables that went with none of the changed entries.
    pub(super) fn release_through_table(&mut self, cause: &Cause, buffered: &Buffered) {
        match self.wire {
            Wire::V10 => self.release_through_table_v10(cause, buffered),
            Wire::V13 => self.release_through_table_v13(cause, buffered),
        }
    }
}
