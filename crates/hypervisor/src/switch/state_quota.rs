//! A tenant's part of the store: how much it changes there in a second, and what it is told when there is no more room.
//!
//! The driver counts bytes, since it knows what is stored of switches that are not here; it says in the tenant's
//! [`Account`](crate::Account) when there is no room. Changes are counted here, as requests make them.

use super::{Request, Switch};
use crate::ids::TenantIndex;
use crate::time::Instant;
use compile::{Reason, Refused};
use openflow::error::{v10 as code_v10, v13 as code_v13};
use openflow::{Version, v13};

impl Switch {
    /// The error for a request that adds to the store or changes what is there, if the store takes nothing more of its tenant's.
    /// What takes away is done.
    pub(super) fn store_full(&self, request: &Request<'_>) -> Option<Refused> {
        /// Where the command begins, and what deletes.
        const FLOW_V10: (usize, &[u8]) = (48, &[3, 4]);
        const FLOW_V13: (usize, &[u8]) = (17, &[3, 4]);
        const NUMBERED: (usize, &[u8]) = (0, &[2]);
        let (code, (at, deletes)) = match (self.version, request.header.type_) {
            (Version::V1_0, FLOW_MOD) => (code_v10::FLOW_MOD_FAILED_ALL_TABLES_FULL, FLOW_V10),
            (Version::V1_0, _) => return None,
            (_, FLOW_MOD) => (code_v13::FLOW_MOD_FAILED_TABLE_FULL, FLOW_V13),
            (_, GROUP_MOD) => (code_v13::GROUP_MOD_FAILED_OUT_OF_GROUPS, NUMBERED),
            (_, METER_MOD) => (code_v13::METER_MOD_FAILED_OUT_OF_METERS, NUMBERED),
            _ => return None,
        };
        let state = &self.tenants[request.tenant.0 as usize];
        if self.journal.is_volatile() || !state.backlog.account().is_store_full() {
            return None;
        }
        // The command's last byte: its first one, where it has two, is 0, or the command is unknown.
        let wide = usize::from(request.header.type_ != FLOW_MOD || self.version == Version::V1_0);
        let command = request.body().get(at + wide)?;
        (!deletes.contains(command)).then_some(Reason::StoreFull.with(code))
    }

    /// A request has made so many changes.
    pub(super) fn charge_store(&mut self, tenant: TenantIndex, changes: u64, now: Instant) {
        if changes > 0 {
            let state = &mut self.tenants[tenant.0 as usize];
            let rate = state.terms.limits().state_changes;
            if let Some(until) = state.backlog.charge_changes(changes, rate, now) {
                self.wait_out(tenant, until);
            }
        }
    }

    /// Lets a tenant be read again if its changes are paid for.
    pub(super) fn end_rest(&mut self, tenant: TenantIndex, now: Instant) {
        match self.tenants[tenant.0 as usize].backlog.rests() {
            Some(until) if until > now => self.wait_out(tenant, until),
            Some(_) => {
                self.tenants[tenant.0 as usize].backlog.end_rest();
                self.resume(tenant);
            }
            None => {}
        }
    }

    fn wait_out(&mut self, tenant: TenantIndex, until: Instant) {
        // One at a time: a rest that becomes longer is seen when the shorter one is over.
        self.session.rest_until(tenant, until);
    }
}

const FLOW_MOD: u8 = v13::MessageType::FLOW_MOD.0;
const GROUP_MOD: u8 = v13::MessageType::GROUP_MOD.0;
const METER_MOD: u8 = v13::MessageType::METER_MOD.0;
