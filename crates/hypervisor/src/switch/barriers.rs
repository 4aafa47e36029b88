//! True barriers: one is answered once all that came before it is done, and what of that was refused is as it was.
//!
//! ```text
//!   controller ──► the tenant's queue ──► switch ──► is a change being undone? ── no ──► controller
//!                           ▲                              │ yes
//!                           └── another, behind the undo ◄─┘
//! ```
//!
//! Requests that wait behind a controller's barriers meanwhile are in [`super::postponed`].

use super::{Request, Switch};
use crate::ids::TenantIndex;
use crate::refusals::Verdict;
use crate::south::pending::{Awaits, Entry, Origin};
use crate::south::queue::{Class, Item};
use crate::south::session::barrier_request;
use crate::time::Instant;
use alloc::vec::Vec;
use openflow::{ErrorCode, Header};

/// A tenant's barriers that are on their way.
#[derive(Default)]
pub(crate) struct Barriers {
    /// In the queue or at the switch.
    pub open: usize,
    /// How many of them, the first, came before something by which Weir goes on with what they were to show.
    doubtful: usize,
    /// Those that the switch has answered and that wait for a later one.
    held: Vec<Origin>,
    /// How many have been sent for those.
    again: u8,
}

/// A message that undoes a change may be refused, and the next one too, but not for ever. With so many rounds all is over that came
/// from before a barrier; what is doubtful still is so for changes of others of the tenant's controllers.
const ROUNDS: u8 = 8;

impl Switch {
    /// Sends a controller's BARRIER_REQUEST to the switch.
    pub(crate) fn forward_barrier(&mut self, request: &Request<'_>) {
        if let Some(controller) = self.controllers.get_mut(request.controller) {
            controller.barriers += 1;
        }
        self.submit_barrier(request.tenant, Some(request.origin()), 0, request.now);
    }

    /// Sends one behind all that the tenant has sent, and not before the store has what it shows.
    pub(super) fn submit_barrier(
        &mut self,
        tenant: TenantIndex,
        origin: Option<Origin>,
        gate: u64,
        now: Instant,
    ) {
        let item = Item {
            origin,
            awaits: Awaits::Barrier(tenant),
            operation: None,
            written: None,
            class: Class::Barrier,
            cost: 1,
            share: 1,
            gate,
            arrived: now,
        };
        let message = self.barrier_message(barrier_request(self.version));
        self.submit(tenant, item, &message);
    }

    fn barrier_message(&self, type_: u8) -> [u8; Header::LEN] {
        [self.version.0, type_, 0, Header::LEN as u8, 0, 0, 0, 0]
    }

    /// Weir sends messages that undo or finish a tenant's changes: the barriers in flight do not cover these messages.
    pub(super) fn doubt_barriers(&mut self, tenant: TenantIndex) {
        let barriers = &mut self.tenants[tenant.0 as usize].barriers;
        barriers.doubtful = barriers.open;
    }

    /// A barrier is done, and with it everything before.
    pub(crate) fn barrier_reply(&mut self, xid: u32, now: Instant) -> Result<(), ErrorCode> {
        let Some(entry) = self.acknowledge(xid, now) else {
            return Err(openflow::error::v13::BAD_REQUEST_BAD_TYPE);
        };
        self.session.take(xid);
        self.confirm(xid, now);
        match entry.awaits {
            Awaits::OwnBarrier => {
                self.asks = false;
                self.asked_before();
            }
            Awaits::Barrier(tenant) => self.barrier_shows(tenant, entry.origin, now),
            _ => {}
        }
        Ok(())
    }

    fn barrier_shows(&mut self, tenant: TenantIndex, origin: Option<Origin>, now: Instant) {
        let barriers = &mut self.tenants[tenant.0 as usize].barriers;
        barriers.held.extend(origin);
        if barriers.end() && barriers.again < ROUNDS {
            // Another of the tenant's own may show it.
            if barriers.open == 0 && !barriers.held.is_empty() {
                barriers.again += 1;
                self.submit_barrier(tenant, None, 0, now);
            }
            return;
        }
        barriers.again = 0;
        let held = core::mem::take(&mut barriers.held);
        let reply = self.barrier_message(barrier_request(self.version) + 1);
        for origin in held {
            self.relay_reply(&origin, &reply);
            self.barrier_ended(&origin);
        }
    }

    /// A barrier has shown nothing: the switch has refused it, or not answered. Once it is quiet, another asks.
    pub(super) fn barrier_failed(&mut self, entry: &Entry, verdict: Verdict) {
        self.session.barrier_failed();
        self.asked_before();
        let Awaits::Barrier(tenant) = entry.awaits else { return };
        let barriers = &mut self.tenants[tenant.0 as usize].barriers;
        barriers.held.extend(entry.origin);
        barriers.end();
        barriers.again = 0;
        for origin in core::mem::take(&mut barriers.held) {
            self.refuse(&origin, verdict);
            self.answered(tenant);
            self.barrier_ended(&origin);
        }
    }

    /// A controller's barrier is answered: requests behind the barrier may go on.
    fn barrier_ended(&mut self, origin: &Origin) {
        if let Some(controller) = self.controllers.get_mut(origin.controller) {
            controller.barriers = controller.barriers.saturating_sub(1);
        }
        self.tenants[origin.tenant.0 as usize].is_decided = true;
    }
}

impl Barriers {
    /// The first of them has been answered. Says whether it was doubtful.
    fn end(&mut self) -> bool {
        self.open = self.open.saturating_sub(1);
        let is_doubtful = self.doubtful > 0;
        self.doubtful = self.doubtful.saturating_sub(1);
        is_doubtful
    }
}
