//! One switch and the controllers of all tenants that see it.
//!
//! The types of which a [`Switch`] consists stand in modules that do not name `Switch`. All other modules here are methods of
//! `Switch`, by subject; they use these types, and no module uses a module that uses it.

mod adopted;
mod asynchronous;
mod bounds;
mod buffered;
mod bulk;
mod cause;
mod collect;
mod configuration;
mod context;
mod counts;
mod datapath;
mod dispatch;
mod entry_statistics;
pub(crate) mod event;
mod flow_mod;
mod follow;
mod forward;
mod labels;
mod log;
mod logged;
mod map;
mod mend;
mod north;
mod operations;
mod own;
mod packet_out;
mod port_mod;
mod postponed;
mod reconcile;
mod refused;
mod removed;
mod replay;
mod reports;
mod request;
mod scratch;
pub(crate) mod settings;
mod sheet;
pub(crate) mod shown;
mod slice_ports;
pub(crate) mod space;
mod start;
mod state_quota;
mod statistics;
mod tables;
mod tenant;
mod tenants;
mod timeouts;
mod topology;
pub mod trace;
pub(crate) mod tracking;
pub(crate) mod traffic;
mod turns;
mod v10;
mod v13;

use crate::counters::{Counters, SwitchCounters, count};
use crate::ids::ControllerIndex;
use crate::north::{Controller, Controllers};
use crate::outbox::Outbox;
use crate::policy::TenantId;
use crate::semantics::{Codes, Semantics};
use crate::south::Session;
use crate::store::{Journal, StoreOp};
use crate::time::{Instant, earlier};
use crate::v13::ids::Ids;
use alloc::vec::Vec;
pub(crate) use cause::{Cause, in_turn};
use collect::collections::Collections;
pub(crate) use collect::collections::Share;
pub(crate) use collect::waiter::Waiter;
use compile::Wire;
use datapath::Datapath;
pub(crate) use event::Event;
pub(crate) use logged::{Logged, LoggedChange, NumberBefore};
use map::Map;
use openflow::{Header, Version};
pub(crate) use operations::{Operation, Operations, Tried, What};
use postponed::inbox::Inbox;
pub(crate) use replay::findings::{Gone, Object};
use reports::Reports;
pub(crate) use request::Request;
use scratch::Scratch;
pub(crate) use settings::Settings;
use space::shares::Space;
pub(crate) use tenant::Tenant;
use tenants::Tenants;

/// A connected switch as its tenants see it. See the crate's documentation.
pub struct Switch {
    /// The version that is spoken with the switch, and so with the controllers.
    wire: Wire,
    datapath: Datapath,
    map: Map,
    tenants: Tenants,
    controllers: Controllers,
    /// The connection to the switch, and what waits for it.
    session: Session,
    /// What is in flight, by what it is for.
    operations: Operations,
    /// Statistics that the switch is asked for, and those that are kept.
    statistics: Collections,
    journal: Journal,
    /// Requests that wait, and whose turn it is.
    inbox: Inbox,
    settings: Settings,
    reports: Reports,
    scratch: Scratch,
    /// How much its tables hold, and who gets how much of them.
    space: Space,
    /// Groups and meters in use on the switch (1.3).
    ids: Ids,
}

/// A tenant on the switch, as an observer may see it.
#[derive(Clone, Copy, Debug)]
pub struct TenantState<'a> {
    /// The tenant.
    pub id: TenantId,
    /// What has been counted.
    pub counters: &'a Counters,
    /// Messages that wait for the switch.
    pub waiting_south: usize,
    /// Messages that wait for the tenant's controllers.
    pub waiting_north: usize,
    /// Controllers connected.
    pub controllers: usize,
    /// Entries in the virtual flow table.
    pub flows: usize,
    /// Entries on the switch that stand for them.
    pub entries: usize,
    /// Groups and meters (1.3).
    pub groups: usize,
    /// See `groups`.
    pub meters: usize,
    /// Bytes held for requests that are not finished.
    pub held: usize,
    /// Whether the tenant has a part of the switch.
    pub served: bool,
    /// Its weight.
    pub weight: u32,
    /// The rules that its own limit lets it have.
    pub most_rules: u32,
}

impl Switch {
    /// The switch's datapath id.
    pub fn dpid(&self) -> u64 {
        self.datapath.id()
    }

    /// The datapath id by which people know it: of a big switch, the one that its tenant sees.
    pub fn known_as(&self) -> u64 {
        self.datapath.known_as()
    }

    /// The version spoken with the switch, and so with the controllers.
    #[inline]
    pub fn version(&self) -> Version {
        self.semantics().version
    }

    /// What the version means.
    #[inline]
    fn semantics(&self) -> &'static Semantics {
        Semantics::of(self.wire)
    }

    /// Error codes of the version.
    fn codes(&self) -> &'static Codes {
        &self.semantics().codes
    }

    /// Whether tenants are served.
    pub fn is_ready(&self) -> bool {
        self.datapath.is_ready()
    }

    /// Takes one whole message of the switch.
    pub fn handle_switch_message(&mut self, frame: &[u8], now: Instant) {
        self.reports.set_clock(now);
        if self.datapath.is_closed() {
            return;
        }
        let Ok(header) = Header::parse(frame) else {
            self.reports.counters_mut().unexpected += 1;
            return;
        };
        count(&mut self.reports.counters_mut().from_switch, header.type_);
        if header.version != self.version() {
            self.reports.counters_mut().unexpected += 1;
            return;
        }
        if self.waits_for_reconciliation(header, frame) {
            return;
        }
        if self.switch_message(header, frame, now).is_err() {
            self.reports.counters_mut().unexpected += 1;
        }
        // Of a change on its way a PACKET_IN says nothing, and there may be millions in a second. Its number is that of 1.0, too.
        if header.type_ != openflow::v13::MessageType::PACKET_IN.0 {
            self.settle_refused(now);
            self.take_up_postponed(now);
            self.settle_unused(now);
            self.settle_asynchronous(now);
        }
        self.take_over(now);
        self.run(now);
        self.drain(now);
    }

    /// Takes one whole message of a controller. Whatever cannot be granted is answered with an error.
    pub fn handle_controller_message(
        &mut self,
        controller: ControllerIndex,
        frame: &[u8],
        now: Instant,
    ) {
        self.reports.set_clock(now);
        let known = self.controllers.get(controller).filter(|it| !it.is_closing());
        let Some(tenant) = known.map(Controller::tenant) else { return };
        let Ok(header) = Header::parse(frame) else { return };
        let state = &mut self.tenants[tenant];
        count(&mut state.counters.from_controller, header.type_);
        // Long lists are long to read.
        state.flows.meter().add(1 + (frame.len() as u64 >> 6));
        let request = Request { tenant, controller, header, frame, now };
        if self.stands_behind(&request) {
            self.postpone_behind(&request);
            if self.datapath.is_joined() {
                self.inbox.wait_for_outcome(tenant);
                self.ask_for_waiting(now);
            }
        } else if self.waits_for_turn(&request) {
            self.postpone_for_turn(&request);
        } else {
            self.handle_request(request);
        }
        self.charge_work(tenant);
    }

    fn handle_request(&mut self, request: Request<'_>) {
        let header = request.header;
        let examined = self.tenants[request.tenant].flows.meter().total();
        let written = self.journal.gate();
        self.operations.set_current(None);
        let handled = if header.version != self.version() {
            Err(openflow::error::v13::BAD_REQUEST_BAD_VERSION.into())
        } else if let Some(full) = self.store_full(&request) {
            Err(full)
        } else {
            self.controller_message(request)
        };
        if let Some(change) = self.operations.current() {
            let total = self.tenants[request.tenant].flows.meter().total();
            self.count_ahead(request.tenant, change, total.wrapping_sub(examined));
        }
        self.log_request(&request, handled);
        self.take_over(request.now);
        self.charge_store(request.tenant, self.journal.gate() - written, request.now);
    }

    /// Whether a change is being applied again.
    pub(crate) fn is_replay(&self) -> bool {
        self.operations.is_replay()
    }

    /// Whether the controller should be read from now. After a "no" it is named by
    /// [`poll_resumed`](Self::poll_resumed) once that changes.
    pub fn wants_read(&mut self, controller: ControllerIndex) -> bool {
        let known = self.controllers.get(controller).filter(|it| !it.is_closing());
        let Some(at) = known.map(Controller::tenant) else { return false };
        let is_unwanted = self.controllers.is_behind(controller)
            || self.is_full(at, controller)
            || !self.inbox.turns().may(at.0)
            || self.has_too_much(at);
        let tenant = &mut self.tenants[at];
        if is_unwanted || tenant.backlog.rests().is_some() {
            tenant.backlog.pause();
            return false;
        }
        true
    }

    /// A controller that may be read from again.
    pub fn poll_resumed(&mut self) -> Option<ControllerIndex> {
        self.controllers.next_resumed()
    }

    /// What the driver has to do or to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.reports.next()
    }

    /// Changes to be made safe, and their number for [`handle_stored`](Self::handle_stored).
    pub fn poll_store(&mut self) -> Option<(u64, Vec<StoreOp>)> {
        self.journal.take()
    }

    /// Everything up to this number is safe; messages that waited for it may go.
    pub fn handle_stored(&mut self, number: u64, now: Instant) {
        self.journal.confirm(number);
        self.session.send_safe(&self.journal, now);
        self.follow(now);
        self.take_up_postponed(now);
        self.session.queues_mut().activate_all();
        self.run(now);
        self.drain(now);
    }

    /// Bytes for the switch.
    pub fn switch_outbox(&mut self) -> &mut Outbox {
        self.session.outbox()
    }

    /// The next controller for which bytes wait, in turn. The driver takes at most
    /// [`share`](Self::share) bytes from its outbox and then calls [`written`](Self::written).
    pub fn poll_controller(&mut self) -> Option<ControllerIndex> {
        self.controllers.next_dirty()
    }

    /// Bytes that a controller may be given before the next one's turn.
    pub fn share(&self, controller: ControllerIndex) -> usize {
        const QUANTUM: usize = 32 << 10;
        match self.controllers.get(controller) {
            Some(state) => QUANTUM * self.tenants[state.tenant()].terms.weight as usize,
            _ => 0,
        }
    }

    /// Bytes for a controller.
    pub fn controller_outbox(&mut self, controller: ControllerIndex) -> Option<&mut Outbox> {
        self.controllers.outbox(controller)
    }

    /// The driver has taken what it could; `blocked` when the connection takes no more for now. When it does again,
    /// this is called once more with `blocked` false.
    pub fn written(&mut self, controller: ControllerIndex, blocked: bool) {
        if let Some(tenant) = self.controllers.written(controller, blocked) {
            self.resume(tenant);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let mut first = self.session.poll_timeout();
        if !self.statistics.is_empty() {
            first = earlier(first, self.next_due());
        }
        earlier(earlier(first, self.next_unused()), self.tenants.next_end())
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.reports.set_clock(now);
        self.settle_silence(now);
        for tenant in self.session.queues_mut().take_rested(now) {
            self.session.queues_mut().activate(tenant);
            self.end_rest(tenant, now);
        }
        self.session.handle_timeout(now);
        self.finish_due(now);
        let is_reconciling = self.datapath.is_reconciling();
        if !is_reconciling && self.tenants.next_end().is_some_and(|at| at <= now) {
            self.end_late(now);
        }
        self.take_up_postponed(now);
        self.settle_unused(now);
        self.settle_asynchronous(now);
        self.take_over(now);
        self.run(now);
        self.drain(now);
    }

    /// Counts of the switch.
    pub fn counters(&self) -> SwitchCounters {
        SwitchCounters {
            to_switch: self.session.sent_by_type(),
            own_messages: self.session.own_messages(),
            ..self.reports.counters().clone()
        }
    }

    /// Each tenant in the policy, as it stands.
    pub fn tenants(&self) -> impl Iterator<Item = TenantState<'_>> {
        let tenants = self.tenants.indices().zip(self.tenants.iter());
        let present = tenants.filter(|(_, tenant)| tenant.terms.is_present());
        present.map(|(at, tenant)| TenantState {
            id: tenant.id,
            served: self.is_served(at),
            weight: tenant.terms.weight,
            most_rules: tenant.terms.limits.entries,
            counters: &tenant.counters,
            waiting_south: self.session.queues().of(at).len(),
            waiting_north: tenant
                .controllers
                .iter()
                .filter_map(|controller| self.controllers.get(*controller))
                .map(Controller::waiting)
                .sum(),
            controllers: tenant.controllers.len(),
            flows: tenant.flows.len(),
            entries: tenant.flows.entries(),
            groups: tenant.numbers.groups().len(),
            meters: tenant.numbers.meters().len(),
            held: self.bytes_held(at),
        })
    }

    /// Units of work that may stand and do stand at the switch.
    pub fn window(&self) -> (u32, u32) {
        self.session.window()
    }
}
