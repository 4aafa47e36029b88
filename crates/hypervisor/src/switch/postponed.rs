//! Requests that wait until it is known what became of others before them.
//!
//! A change is accepted before the switch has carried it out, and undone if the switch refuses it. Requests that follow
//! meanwhile must have the same result as on a switch of the tenant's own, which handles one request after the other. A request that
//! only says what is to be stands whatever becomes of those before it. A request whose outcome depends on their results waits, and
//! with it what its controller sends after it:
//!
//! ```text
//!   MODIFY of entries                  others are about to come, to go, or to begin again: what it modifies keeps their times
//!   DELETE by out_port, cookie ...     they are about to become others than the filter means, or to be such
//!   ADD, DELETE of entries             a group or meter is deleted with them: they are restored if that is refused,
//!                                      or there is no room if they do
//!   deletion of a group or meter       entries are about to use it, or to cease to; groups, to name it or to cease to
//!   whatever a group or meter becomes  it is about to come, or to go; or a group that it names is
//!   a description of ports             in a slice, ports are about to be configured
//!   in a network, MODIFY of a group    it is about to become another; entries are about to use it, or to cease to
//!   and what sends to a group          that is about to become another
//!   what is refused as tables stand    whatever else: there may be room then, or the group
//! ```
//!
//! On each connection all requests but ECHO wait behind a waiting request; of a tenant's others, what changes tables or roles; and all of a
//! tenant's, behind what waits of a connection that has gone.
//!
//! To a switch, a [barrier](super::barriers) and what comes behind it go in order; to a big one, all waits for the reply. What
//! Weir does or answers by itself, a refusal too, is ordered behind the connection's open barriers, so that it comes after their
//! replies and is what they have shown; and a barrier behind statistics, whose answers are about the tables as they are when
//! they come.

use super::{Request, Switch};
use crate::ids::{ControllerIndex, TenantIndex};
use crate::refusals::Verdict;
use crate::south::session::barrier_request;
use crate::time::Instant;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use compile::{Reason, Refused};
use openflow::v13::MessageType as It;
use openflow::{ErrorCode, Header, Version};

/// What is put off of one tenant, in the order in which it came.
#[derive(Default)]
pub(crate) struct Line {
    requests: Vec<Postponed>,
    /// The controllers that sent them.
    controllers: BTreeSet<ControllerIndex>,
    /// Since when the first waits that does so for a change.
    oldest: Option<Instant>,
}

/// A message of a controller, put off.
struct Postponed {
    controller: ControllerIndex,
    frame: Vec<u8>,
    /// Since when it waits, and what is said if it does so for too long; `None` if it only waits behind another.
    waits: Option<(Instant, ErrorCode)>,
}

impl Switch {
    /// Puts a request off. What it waits for is asked about.
    pub(crate) fn postpone(&mut self, request: &Request<'_>) {
        self.postpone_or(request, self.codes().unanswered);
    }

    fn postpone_or(&mut self, request: &Request<'_>, code: ErrorCode) {
        let Request { tenant, controller, frame, now, .. } = *request;
        let waits = Some((now, code));
        self.put_off(tenant, Postponed { controller, frame: frame.into(), waits });
        self.ask_for_postponed(now);
    }

    /// Puts a request off until its tenant's turn.
    pub(super) fn postpone_for_turn(&mut self, request: &Request<'_>) {
        self.postpone_behind(request);
        self.turns.wait(request.tenant.0);
        self.tenants[request.tenant.0 as usize].is_decided = true;
    }

    fn put_off(&mut self, tenant: TenantIndex, it: Postponed) {
        self.tenants[tenant.0 as usize].held.add(it.size());
        self.postponed.entry(tenant).or_default().push(it);
    }

    /// Whether a request is put off that could not be granted as things stand: it is ordered behind a barrier, or changes are on
    /// their way by which they may.
    pub(super) fn is_put_off(&mut self, request: &Request<'_>, refused: Refused) -> bool {
        use openflow::error::{v10, v13};
        let code = refused.code();
        if self.has_barrier(request.controller) {
            self.put_behind(request);
            return true;
        }
        let hangs = match self.version {
            Version::V1_0 => code.type_ == v10::FLOW_MOD_FAILED_ALL_TABLES_FULL.type_,
            _ => {
                let by_tables = [
                    v13::FLOW_MOD_FAILED_TABLE_FULL,
                    v13::GROUP_MOD_FAILED_OUT_OF_GROUPS,
                    v13::METER_MOD_FAILED_OUT_OF_METERS,
                ];
                code == v13::BAD_ACTION_BAD_OUT_GROUP
                    || by_tables.iter().any(|of_type| code.type_ == of_type.type_)
            }
        };
        let is_put_off = hangs
            && self.changes_tables(request.header)
            && self.changes_of(request.tenant).any(|change| !change.own);
        if is_put_off {
            self.postpone_or(request, code);
        }
        is_put_off
    }

    /// Once what requests wait for has been sent, asks what became of it.
    pub(super) fn ask_for_postponed(&mut self, now: Instant) {
        let is_asked = self.asks || !self.session.is_unbarriered() || self.session.has_direct();
        if !is_asked && self.postponed.values().any(|line| line.oldest.is_some()) {
            self.asks = true;
            self.session.send_barrier(now);
        }
    }

    /// Whether messages wait behind which this one has to stand: of its own connection, or of one of the tenant's that has
    /// gone, since it said them before; and changes of tables, which keep one order, behind any of the tenant's.
    pub(super) fn stands_behind(&self, request: &Request<'_>) -> bool {
        let Request { tenant, controller, header, .. } = *request;
        !is_unordered(header) && self.is_held_up(tenant, controller, header)
    }

    fn is_held_up(&self, tenant: TenantIndex, controller: ControllerIndex, header: Header) -> bool {
        let is_ordered = || self.changes_tables(header) || self.asks_for_role(header);
        let is_gone = |of: &ControllerIndex| self.controllers.get(*of).is_none();
        let is_behind = |line: &Line| {
            line.controllers.contains(&controller)
                || line.controllers.iter().any(is_gone)
                || is_ordered()
        };
        let asks = || self.controllers.get(controller).is_some_and(|it| it.statistics > 0);
        self.postponed.get(&tenant).is_some_and(is_behind)
            || self.has_barrier(controller) && !self.goes_in_order(header)
            || self.is_barrier(header) && asks()
    }

    fn has_barrier(&self, controller: ControllerIndex) -> bool {
        self.controllers.get(controller).is_some_and(|it| it.barriers > 0)
    }

    /// Whether so many messages of a controller wait that no more are read.
    pub(super) fn is_full(&self, tenant: TenantIndex, controller: ControllerIndex) -> bool {
        let limit = self.settings.tenant_backlog;
        self.postponed.get(&tenant).is_some_and(|line| {
            let of_controller = line.requests.iter().filter(|it| it.controller == controller);
            line.requests.len() >= limit && of_controller.count() >= limit
        })
    }

    /// Puts a message behind those that wait. A driver that asks whether to read brings none too many.
    pub(super) fn postpone_behind(&mut self, request: &Request<'_>) {
        if self.is_full(request.tenant, request.controller) {
            self.refuse(&request.origin(), Reason::Backlog.with(self.codes().unanswered));
        } else {
            self.put_behind(request);
        }
    }

    fn put_behind(&mut self, request: &Request<'_>) {
        let Request { tenant, controller, frame, .. } = *request;
        self.put_off(tenant, Postponed { controller, frame: frame.into(), waits: None });
    }

    /// When the first that waits is given up.
    pub(super) fn next_postponed(&self) -> Option<Instant> {
        let since = self.postponed.values().filter_map(|line| line.oldest).min();
        since.map(|since| since + self.settings.reply_timeout)
    }

    /// Looks again at waiting requests, of tenants whose changes were confirmed or refused.
    pub(super) fn take_up_postponed(&mut self, now: Instant) {
        let patience = self.settings.reply_timeout;
        let is_over = |line: &Line| line.oldest.is_some_and(|since| now - since >= patience);
        let is_due = |(tenant, line): &(&TenantIndex, &Line)| {
            (self.tenants[tenant.0 as usize].is_decided || is_over(line))
                && self.turns.may(tenant.0)
        };
        let due: Vec<TenantIndex> = self.postponed.iter().filter(is_due).map(|it| *it.0).collect();
        for tenant in due {
            self.take_up_line(tenant, now);
            self.resume(tenant);
        }
    }

    /// Looks again at the waiting requests of a tenant, as far as it has credit.
    pub(super) fn take_up_line(&mut self, tenant: TenantIndex, now: Instant) {
        self.tenants[tenant.0 as usize].is_decided = false;
        let line = self.postponed.remove(&tenant).unwrap_or_default();
        for it in line.requests {
            let state = &mut self.tenants[tenant.0 as usize];
            state.held.remove(it.size());
            if self.turns.may(tenant.0) {
                self.take_up(tenant, it, now);
                self.charge_work(tenant);
            } else {
                state.is_decided = true;
                self.put_off(tenant, it);
            }
        }
    }

    fn take_up(&mut self, tenant: TenantIndex, mut it: Postponed, now: Instant) {
        let Ok(header) = Header::parse(&it.frame) else { return };
        // What one has asked for that is gone is still done; there is nobody to be answered.
        let is_gone = match self.controllers.get(it.controller) {
            Some(known) if known.is_closing() => {
                // Requests behind it have to be looked at.
                self.tenants[tenant.0 as usize].is_decided = true;
                return;
            }
            Some(_) => false,
            None => true,
        };
        if is_gone && !self.changes_something(header) {
            return;
        }
        // What is sent before it, and at which rate, is the tenant's own affair.
        if let Some((since, _)) = &mut it.waits
            && !self.session.queue(tenant).is_empty()
        {
            *since = now;
        }
        if self.is_held_up(tenant, it.controller, header) {
            self.put_off(tenant, it);
            return;
        }
        let at = self.postponed.get(&tenant).map_or(0, |line| line.requests.len());
        let Postponed { controller, ref frame, waits, .. } = it;
        let request = Request { tenant, controller, header, frame, now };
        if self.waits_for_turn(&request) {
            self.turns.wait(tenant.0);
            self.tenants[tenant.0 as usize].is_decided = true;
            self.put_off(tenant, it);
            return;
        }
        match waits {
            // The switch does not say what became of the others.
            Some((since, code)) if now - since >= self.settings.reply_timeout => {
                self.refuse(&request.origin(), Verdict::by_silence(code));
            }
            _ => self.handle_request(request),
        }
        if let (Some(line), Some((since, _))) = (self.postponed.get_mut(&tenant), it.waits) {
            line.has_waited(at, since);
        }
    }

    /// Whether a message is one of those that do something.
    fn changes_something(&self, header: Header) -> bool {
        let port_mod = match self.version {
            Version::V1_0 => openflow::v10::MessageType::PORT_MOD.0,
            _ => It::PORT_MOD.0,
        };
        self.changes_tables(header) || [It::PACKET_OUT.0, port_mod].contains(&header.type_)
    }

    fn changes_tables(&self, header: Header) -> bool {
        let newer = [It::GROUP_MOD.0, It::METER_MOD.0];
        header.type_ == It::FLOW_MOD.0
            || self.version != Version::V1_0 && newer.contains(&header.type_)
    }

    /// Whether it goes to the switch, and there after what went before it. Members of a big switch do not wait for each other.
    fn goes_in_order(&self, header: Header) -> bool {
        let is_passed_on = self.changes_tables(header)
            || header.type_ == It::PACKET_OUT.0
            || self.is_barrier(header);
        is_passed_on && self.joins.is_none()
    }

    fn is_barrier(&self, header: Header) -> bool {
        header.type_ == barrier_request(self.version)
    }

    /// Whether it asks for a role, by which others lose theirs.
    fn asks_for_role(&self, header: Header) -> bool {
        // Before 1.3 that is an extension.
        header.type_
            == match self.version {
                Version::V1_0 => openflow::v10::MessageType::VENDOR.0,
                _ => It::ROLE_REQUEST.0,
            }
    }
}

impl Postponed {
    fn size(&self) -> usize {
        size_of::<Postponed>() + self.frame.len()
    }
}

impl Line {
    fn push(&mut self, it: Postponed) {
        self.controllers.insert(it.controller);
        self.note(it.waits);
        self.requests.push(it);
    }

    /// What is at this place waits since then.
    fn has_waited(&mut self, at: usize, since: Instant) {
        if let Some(waits) = self.requests.get_mut(at).and_then(|it| it.waits.as_mut()) {
            waits.0 = since;
            let waits = *waits;
            self.note(Some(waits));
        }
    }

    fn note(&mut self, waits: Option<(Instant, ErrorCode)>) {
        let since = waits.map(|(since, _)| since);
        self.oldest = self.oldest.into_iter().chain(since).min();
    }
}

/// Whether it does nothing, or asks if somebody is there, which is not to wait for a switch. These have the numbers that they
/// have on 1.0.
fn is_unordered(header: Header) -> bool {
    [It::HELLO, It::ERROR, It::ECHO_REQUEST, It::ECHO_REPLY].contains(&It(header.type_))
}
