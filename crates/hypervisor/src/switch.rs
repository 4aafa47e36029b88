//! One switch and the controllers of all tenants that see the switch.
//!
//! [`Switch`] consists of types that have modules of their own; these modules do not use `Switch`. All other modules
//! here are methods of `Switch`, by subject. They use the types, and no module names (`use`) a module that names it.
//! The methods themselves call one another through `self`, whatever file they are in.
//!
//! Start reading at `dispatch`. All modules, by subject:
//!
//! | subject | modules | |
//! |---|---|---|
//! | messages | `dispatch` | chooses the function for each message type, in each direction |
//! | | `v10`, `v13` | code for one version only; groups and meters are in `v13` |
//! | | `request`, `scratch` | one message of a controller while it is handled; memory that is used again for each message |
//! | | `configuration` | GET_CONFIG and SET_CONFIG, PORT_STATUS, QUEUE_GET_CONFIG, experimenters |
//! | | `asynchronous` | which asynchronous messages Weir asks the switch for (SET_ASYNC) |
//! | packets | `packet_out`, `buffered` | PACKET_OUT of slices; the owner of each buffer id |
//! | ports | `port_mod`, `slice_ports` | PORT_MOD in a network, which Weir carries out; PORT_MOD in a slice, which the switch carries out |
//! | | `labels` | shows the free bandwidth of a link in the description of its port |
//! | | `topology` | shows the ports to the driver, and sends Weir's link probes |
//! | tables | `flow_mod` | FLOW_MOD of one entry |
//! | | `bulk` | MODIFY, DELETE and the overlap check, in batches of entries |
//! | | `context` | the input of the compiler |
//! | | `tables` | changes a tenant's tables, and queues the messages for the switch |
//! | | `space` | how many rules, groups and meters a tenant may have |
//! | | `sheet` | limits from a data sheet, and each tenant's share |
//! | ends of entries | `removed` | FLOW_REMOVED of the switch, and of the tenant's entry |
//! | | `timeouts` | idle and hard time-outs, and the wait for last counters |
//! | requests in flight | `operations`, `cause` | messages in flight by their purpose; the tenant and the request of a message |
//! | | `log`, `logged` | a tenant's changes and barriers in their order; the items of this log |
//! | | `replay` | applies changes again when the switch refuses one |
//! | | `postponed` | requests that wait before Weir looks at them |
//! | | `forward` | gives messages to the session, and handles their results |
//! | rules on the switch | `mend` | compares the tables with the switch, and sends the difference |
//! | | `own`, `refused` | Weir's own rules; what happens if the switch refuses one |
//! | statistics | `statistics` | checks each statistics request, and answers for the tenant |
//! | | `collect` | one question to the switch answers equal requests |
//! | | `entry_statistics` | answers about a tenant's entries, in batches |
//! | | `counts`, `traffic` | port counters for tenants' networks; port counters for the operator |
//! | connection | `datapath`, `bounds` | what the switch reports about itself; bounds of these reports and of its silence |
//! | | `start`, `reconcile` | asks a new switch for its rules; compares them with the tables |
//! | | `adopted` | makes entries of rules whose store is lost |
//! | policy | `map` | the map of the network for this switch: owners of packets, and Weir's own rules |
//! | | `follow` | changes of the policy and the ports: entries are compiled again in batches |
//! | tenants | `tenant`, `tenants` | the state of one tenant; all tenants of the switch |
//! | | `turns` | charges work inside Weir to tenants, and bounds the work of a turn |
//! | | `state_quota` | a tenant's part of the store |
//! | | `rest` | Weir does not read from a tenant for a while |
//! | | `north` | messages to controllers |
//! | driver, operator | `settings` | bounds of queues, and why a switch cannot be served |
//! | | `event`, `reports` | events for the driver; the queue of events, and counters |
//! | | `shown`, `tracking` | a tenant's flow table in pages; its changes |
//! | | `trace` | the path of a packet through the rules of the switch |

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
mod rest;
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

/// A connected switch as its tenants see it.
///
/// `Switch` does no I/O and knows no clock. The *driver*, an event loop, calls it:
///
/// 1. **Create.** [`new`](Self::new) takes the switch's FEATURES_REPLY and what the store holds of the switch. From
///    then on the driver reads the switch's connection, and sends what step 5 gives.
/// 2. **Controllers.** After [`Event::Serve`] the driver connects the tenant's controllers. When a controller has sent
///    HELLO, the driver calls [`controller_connected`](Self::controller_connected); when the connection is gone,
///    [`controller_disconnected`](Self::controller_disconnected).
/// 3. **Input.** The driver calls
///    - [`handle_switch_message`](Self::handle_switch_message) for each message of the switch;
///    - [`wants_read`](Self::wants_read) before each message of a controller, and if it says yes,
///      [`handle_controller_message`](Self::handle_controller_message). After a no the messages stay unread in the connection
///      until [`poll_resumed`](Self::poll_resumed) names the controller;
///    - [`written`](Self::written) with `blocked` false when a controller's connection that was full takes bytes again;
///    - [`handle_timeout`](Self::handle_timeout) at the time that [`poll_timeout`](Self::poll_timeout) has given, or later;
///    - [`handle_stored`](Self::handle_stored) when changes from [`poll_store`](Self::poll_store) survive a crash;
///    - [`handle_policy`](Self::handle_policy) when the policy or the map has changed;
///    - [`handle_counters_request`](Self::handle_counters_request) for [`Event::CountersRequest`] of another `Switch`, and
///      [`handle_counters_reply`](Self::handle_counters_reply) for its [`Event::CountersReply`].
/// 4. **Turn.** As long as [`is_turn_awaited`](Self::is_turn_awaited) says yes, the driver calls
///    [`next_turn`](Self::next_turn), for one switch in each turn of the event loop. Long work goes on there, in
///    batches.
/// 5. **Output.** After one or more calls of steps 2 to 4 the driver takes, in this order: 1.
///    [`poll_store`](Self::poll_store), for the store. Messages that depend on these changes wait for `handle_stored`;
///    2. [`poll_event`](Self::poll_event), until there is no event; 3. [`take_flow_changes`](Self::take_flow_changes),
///    if [`track_flows`](Self::track_flows) is on; 4. the bytes of [`switch_outbox`](Self::switch_outbox); 5.
///    [`poll_controller`](Self::poll_controller), until it names no controller. For each: at most
///    [`share`](Self::share) bytes of
///    [`controller_outbox`](Self::controller_outbox), and then [`written`](Self::written);
///    6. [`poll_resumed`](Self::poll_resumed), until it names no controller: `written` may have made room for requests;
///    7. [`is_turn_awaited`](Self::is_turn_awaited): if yes, the event loop must not sleep before its next turn;
///    8. [`poll_timeout`](Self::poll_timeout), last: all calls before can change the time.
/// 6. **End.** When the switch's connection is gone, or after [`Event::CloseSwitch`], the driver reads
///    [`lost`](Self::lost), and drops the `Switch`. The store has what the next connection needs.
///
/// `now` is the driver's time. It never goes back.
pub struct Switch {
    /// The version of OpenFlow of the switch, and so of the controllers.
    wire: Wire,
    datapath: Datapath,
    map: Map,
    tenants: Tenants,
    controllers: Controllers,
    /// The connection to the switch, and the messages that wait for the switch.
    session: Session,
    /// Messages in flight, by their purpose.
    operations: Operations,
    /// Statistics that Weir asks the switch for, and answers that are kept.
    statistics: Collections,
    journal: Journal,
    /// Requests that wait, and the tenant whose turn it is.
    inbox: Inbox,
    settings: Settings,
    reports: Reports,
    scratch: Scratch,
    /// How much the switch's tables hold, and each tenant's share.
    space: Space,
    /// Groups and meters in use on the switch (1.3).
    ids: Ids,
}

/// A tenant on the switch, as an observer may see it.
#[derive(Clone, Copy, Debug)]
pub struct TenantState<'a> {
    /// The tenant.
    pub id: TenantId,
    /// The tenant's counters.
    pub counters: &'a Counters,
    /// Messages that wait for the switch.
    pub waiting_south: usize,
    /// Messages that wait for the tenant's controllers.
    pub waiting_north: usize,
    /// Controllers connected.
    pub controllers: usize,
    /// Entries in the virtual flow table.
    pub flows: usize,
    /// Rules on the switch for these entries.
    pub entries: usize,
    /// Groups (1.3).
    pub groups: usize,
    /// Meters (1.3).
    pub meters: usize,
    /// Bytes held for requests that are not finished.
    pub held: usize,
    /// Whether the tenant has a part of the switch.
    pub served: bool,
    /// The tenant's weight.
    pub weight: u32,
    /// The most rules that the tenant's own limit allows.
    pub most_rules: u32,
}

impl Switch {
    /// The switch's datapath id.
    pub fn dpid(&self) -> u64 {
        self.datapath.id()
    }

    /// The datapath id for people. For the front of a big switch this is the datapath id that the tenant sees.
    pub fn known_as(&self) -> u64 {
        self.datapath.known_as()
    }

    /// The version of OpenFlow of the switch, and so of the controllers.
    #[inline]
    pub fn version(&self) -> Version {
        self.semantics().version
    }

    /// The facts of this version.
    #[inline]
    fn semantics(&self) -> &'static Semantics {
        Semantics::of(self.wire)
    }

    /// The error codes of this version.
    fn codes(&self) -> &'static Codes {
        &self.semantics().codes
    }

    /// Whether tenants are served.
    pub fn is_ready(&self) -> bool {
        self.datapath.is_ready()
    }

    /// Step 3: takes one whole message of the switch.
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
        // A PACKET_IN says nothing of changes in flight, and there may be millions of PACKET_INs in a second. The type
        // has the same number in both versions.
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

    /// Step 3: takes one whole message of a controller. A request that is not allowed is answered with an error.
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
        // It takes long to read a long list.
        state.flows.meter().add(1 + (frame.len() as u64 >> 6));
        let request = Request { tenant, controller, header, frame, now };
        if self.is_ordered_behind(&request) {
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
            self.count_ahead(request.tenant, change, total.wrapping_sub(examined), true);
        }
        self.log_request(&request, handled);
        self.take_over(request.now);
        self.charge_store(request.tenant, self.journal.gate() - written, request.now);
    }

    /// Whether a replay applies the request of a change again.
    pub(crate) fn is_replay(&self) -> bool {
        self.operations.is_replay()
    }

    /// Step 3: whether the driver may read the controller's next message.
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

    /// Step 5: a controller that [`wants_read`](Self::wants_read) has refused, and from which the driver may read
    /// again.
    pub fn poll_resumed(&mut self) -> Option<ControllerIndex> {
        self.controllers.next_resumed()
    }

    /// Step 5: the next event for the driver.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.reports.next()
    }

    /// Step 5: changes for the store, and their number for [`handle_stored`](Self::handle_stored). `None` without
    /// changes or without a store.
    pub fn poll_store(&mut self) -> Option<(u64, Vec<StoreOp>)> {
        self.journal.take()
    }

    /// Step 3: the store has all changes up to this number. Messages that waited for these changes are sent.
    pub fn handle_stored(&mut self, number: u64, now: Instant) {
        self.journal.confirm(number);
        self.session.send_safe(&self.journal, now);
        self.follow(now);
        self.take_up_postponed(now);
        self.session.queues_mut().activate_all();
        self.run(now);
        self.drain(now);
    }

    /// Step 5: bytes for the switch.
    pub fn switch_outbox(&mut self) -> &mut Outbox {
        self.session.outbox()
    }

    /// Step 5: the next controller with bytes to write. Controllers take turns.
    pub fn poll_controller(&mut self) -> Option<ControllerIndex> {
        self.controllers.next_dirty()
    }

    /// The most bytes that a controller gets before the next controller's turn.
    pub fn share(&self, controller: ControllerIndex) -> usize {
        const QUANTUM: usize = 32 << 10;
        match self.controllers.get(controller) {
            Some(state) => QUANTUM * self.tenants[state.tenant()].terms.weight as usize,
            _ => 0,
        }
    }

    /// Step 5: bytes for a controller.
    pub fn controller_outbox(&mut self, controller: ControllerIndex) -> Option<&mut Outbox> {
        self.controllers.outbox(controller)
    }

    /// Steps 3 and 5: the driver has written bytes to a controller. `blocked`: the connection takes no more for now.
    pub fn written(&mut self, controller: ControllerIndex, blocked: bool) {
        if let Some(tenant) = self.controllers.written(controller, blocked) {
            self.resume(tenant);
        }
    }

    /// Step 5: when the driver has to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        let first = earlier(self.session.poll_timeout(), self.next_due());
        earlier(earlier(first, self.next_unused()), self.tenants.next_end())
    }

    /// Step 3: time has passed.
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

    /// The counters of the switch.
    pub fn counters(&self) -> SwitchCounters {
        SwitchCounters {
            to_switch: self.session.sent_by_type(),
            own_messages: self.session.own_messages(),
            ..self.reports.counters().clone()
        }
    }

    /// The state of each tenant in the policy.
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

    /// The window's limit, and the work in flight at the switch, in units of work.
    pub fn window(&self) -> (u32, u32) {
        self.session.window()
    }
}
