//! A tenant's part of the store: its changes are charged, and the error when the store has no more room.
//!
//! The driver counts the tenant's bytes in the store, also for switches that are not connected. When a tenant has no
//! more room, the driver notes this in the tenant's [`Account`](crate::Account). This module counts the changes that
//! requests make.

use super::{Request, Switch};
use crate::ids::TenantIndex;
use crate::messages;
use crate::time::Instant;
use compile::{Reason, Refused};
use openflow::error::v13 as code;
use openflow::v13::MessageType;

impl Switch {
    /// The error for a request that adds or changes something in the store, if the store takes no more from the tenant.
    /// Deletions are still allowed.
    pub(super) fn store_full(&self, request: &Request<'_>) -> Option<Refused> {
        let is_full = || self.tenants[request.tenant].backlog.held().account().is_store_full();
        if !self.changes_tables(request.header) || self.journal.is_volatile() || !is_full() {
            return None;
        }
        let body = request.body();
        let numbered = || body.first_chunk().map(|command| u16::from_be_bytes(*command));
        let (code, is_deletion) = match MessageType(request.header.type_) {
            MessageType::GROUP_MOD => {
                (code::GROUP_MOD_FAILED_OUT_OF_GROUPS, numbered()? == DELETES_NUMBER)
            }
            MessageType::METER_MOD => {
                (code::METER_MOD_FAILED_OUT_OF_METERS, numbered()? == DELETES_NUMBER)
            }
            _ => {
                let command = messages::command(self.wire, body)?;
                (self.codes().table_full, DELETES_ENTRIES.contains(&command))
            }
        };
        (!is_deletion).then_some(Reason::StoreFull.with(code))
    }

    /// Charges the tenant for this many changes of a request.
    pub(super) fn charge_store(&mut self, tenant: TenantIndex, changes: u64, now: Instant) {
        if changes > 0 {
            let state = &self.tenants[tenant];
            let account = state.backlog.held().account();
            let until = account.charge_changes(changes, state.terms.limits.state_changes, now);
            self.rest(tenant, until);
        }
    }
}

/// OFPFC_DELETE and OFPFC_DELETE_STRICT, in both versions.
const DELETES_ENTRIES: [u16; 2] = [3, 4];
/// OFPGC_DELETE and OFPMC_DELETE.
const DELETES_NUMBER: u16 = 2;
