//! The messages that wait for one switch, by tenant, and the order in which they leave.

use super::queue::{Item, Queue};
use super::rates::{Rates, SheetShare};
use super::scheduler::RoundRobin;
use crate::ids::TenantIndex;
use crate::outbox::Outbox;
use crate::policy::Limits;
use crate::sheet::MessageClass;
use crate::store::Journal;
use crate::time::{Instant, earlier};
use alloc::vec::Vec;
use hashbrown::HashMap;

/// The queues of all tenants.
pub(crate) struct Queues {
    lanes: Vec<Lane>,
    scheduler: RoundRobin,
    /// The scheduler's cost of one message, by the place of its class in [`MessageClass::ALL`].
    prices: Prices,
    /// The tenant and the place of the waiting message that releases a buffered packet, by the switch's buffer id.
    releases: HashMap<u32, (TenantIndex, u64)>,
    /// When a tenant without tokens may send again.
    resting: Vec<(Instant, TenantIndex)>,
}

/// The scheduler's cost of one message of each class.
pub(crate) type Prices = [u32; MessageClass::ALL.len()];

/// The messages that wait for one tenant.
#[derive(Default)]
struct Lane {
    queue: Queue,
    /// Messages that leave before the messages of the queue, also while the queue is paused.
    repairs: Queue,
    is_paused: bool,
    rates: Rates,
    /// The last message with rules that has left the queue.
    left: u32,
}

/// A message that has left its queue.
pub(super) struct Taken {
    pub(super) item: Item,
    /// Where the message begins in the outbox.
    pub(super) start: usize,
    /// The place in the tenant's queue where the message has waited. A repair has none.
    place: Option<u64>,
}

impl Lane {
    /// The next message that may leave.
    fn front(&self) -> Option<&Item> {
        match self.repairs.front() {
            Some(repair) => Some(repair),
            None if self.is_paused => None,
            None => self.queue.front(),
        }
    }
}

impl Queues {
    /// Queues without tenants. Each message costs the same in the scheduler.
    pub(super) fn new() -> Queues {
        Queues {
            lanes: Vec::new(),
            scheduler: RoundRobin::default(),
            prices: [1; MessageClass::ALL.len()],
            releases: HashMap::new(),
            resting: Vec::new(),
        }
    }

    /// Sets the weight and the rates of a tenant.
    pub(crate) fn configure(&mut self, tenant: TenantIndex, weight: u32, limits: Limits) {
        let at = tenant.0 as usize;
        if self.lanes.len() <= at {
            self.lanes.resize_with(at + 1, Lane::default);
        }
        self.lanes[at].rates.set(limits);
        self.scheduler.set_weight(tenant.0, weight);
    }

    /// Sets the cost of each class of messages in the scheduler.
    pub(crate) fn set_prices(&mut self, prices: Prices) {
        self.prices = prices;
    }

    /// Sets a tenant's shares by the switch's data sheet.
    pub(crate) fn set_shares(
        &mut self,
        tenant: TenantIndex,
        shares: [Option<SheetShare>; MessageClass::ALL.len()],
    ) {
        if let Some(lane) = self.lanes.get_mut(tenant.0 as usize) {
            lane.rates.set_shares(shares);
        }
    }

    // ---- Into the queues

    /// Whether a new message of a tenant may pass all queues, because no message waits in them. If so, the message is
    /// charged.
    #[inline]
    pub(super) fn pass(&mut self, tenant: TenantIndex, item: &Item, now: Instant) -> bool {
        let lane = &mut self.lanes[tenant.0 as usize];
        let passes = lane.queue.is_empty()
            && lane.repairs.is_empty()
            && !lane.is_paused
            && self.scheduler.is_empty()
            && lane.rates.admit(item, now).is_ok();
        if passes {
            self.scheduler.charge(tenant.0, item.share - item.cost);
        }
        passes
    }

    /// Puts a message at the end of its tenant's queue. `releases` is the buffer id of the packet that the message
    /// releases.
    pub(super) fn push(
        &mut self,
        tenant: TenantIndex,
        item: &Item,
        message: &[u8],
        releases: Option<u32>,
    ) {
        let place = self.lanes[tenant.0 as usize].queue.push(*item, message);
        if let Some(buffer_id) = releases {
            self.releases.insert(buffer_id, (tenant, place));
        }
        self.scheduler.activate(tenant.0);
    }

    /// Adds a message that leaves before all other waiting messages of the tenant.
    pub(super) fn push_repair(&mut self, tenant: TenantIndex, item: &Item, message: &[u8]) {
        self.lanes[tenant.0 as usize].repairs.push(*item, message);
        self.scheduler.activate(tenant.0);
    }

    /// From now on only repairs of the tenant leave. Removes the waiting messages for which `is_cut` says yes.
    pub(super) fn pause(
        &mut self,
        tenant: TenantIndex,
        mut is_cut: impl FnMut(&mut Item, &[u8]) -> bool,
    ) {
        let lane = &mut self.lanes[tenant.0 as usize];
        lane.repairs.cut(&mut is_cut);
        if !lane.is_paused {
            lane.queue.cut(&mut is_cut);
        }
        lane.is_paused = true;
    }

    /// All messages of the tenant leave again.
    pub(crate) fn unpause(&mut self, tenant: TenantIndex) {
        self.lanes[tenant.0 as usize].is_paused = false;
        self.scheduler.activate(tenant.0);
    }

    /// The switch announces a packet with this buffer id. A waiting message can no longer release the earlier packet of
    /// this id.
    pub(crate) fn announces(&mut self, buffer_id: u32) {
        self.releases.remove(&buffer_id);
    }

    // ---- Out of the queues

    /// The tenant whose turn it is. The same tenant stays first until its turn is [skipped](Self::skip) or
    /// [served](Self::served).
    pub(super) fn turn(&mut self) -> Option<TenantIndex> {
        self.scheduler.turn().map(TenantIndex)
    }

    /// The next message of a tenant.
    pub(super) fn front(&self, tenant: TenantIndex) -> Option<Item> {
        self.lanes[tenant.0 as usize].front().copied()
    }

    /// Whether a tenant's rates admit this message now. If not, returns when they will.
    pub(super) fn admit(
        &mut self,
        tenant: TenantIndex,
        item: &Item,
        now: Instant,
    ) -> Result<(), Instant> {
        self.lanes[tenant.0 as usize].rates.admit(item, now)
    }

    /// A tenant gives up its turn, until the tenant is activated again.
    pub(super) fn skip(&mut self, tenant: TenantIndex) {
        self.scheduler.skip(tenant.0);
    }

    /// A tenant gives up its turn until this time.
    pub(super) fn rest(&mut self, tenant: TenantIndex, until: Instant) {
        self.resting.push((until, tenant));
        self.scheduler.skip(tenant.0);
    }

    /// Moves the next message of a tenant to the end of the outbox.
    pub(super) fn take(&mut self, tenant: TenantIndex, out: &mut Outbox) -> Option<Taken> {
        let start = out.len();
        let lane = &mut self.lanes[tenant.0 as usize];
        if let Some(item) = lane.repairs.pop_into(out.end()) {
            return Some(Taken { item, start, place: None });
        }
        if lane.is_paused {
            return None;
        }
        let place = Some(lane.queue.place());
        let item = lane.queue.pop_into(out.end())?;
        Some(Taken { item, start, place })
    }

    /// A tenant had its turn, and has sent this message.
    pub(super) fn served(&mut self, tenant: TenantIndex, item: &Item) {
        let more = self.lanes[tenant.0 as usize].front().is_some();
        let price = self.prices[item.class.measured() as usize];
        self.scheduler.served(tenant.0, item.share.saturating_mul(price), more);
    }

    /// Whether a message that has waited may still release the packet with this buffer id. May be called once per
    /// message.
    pub(super) fn releases(&mut self, tenant: TenantIndex, taken: &Taken, buffer_id: u32) -> bool {
        let Some(place) = taken.place else { return true };
        let is_kept = self.releases.get(&buffer_id) == Some(&(tenant, place));
        if is_kept {
            self.releases.remove(&buffer_id);
        }
        is_kept
    }

    // ---- Tenants that go on

    /// The tenant is in the scheduler's line again, if any message of the tenant waits.
    pub(crate) fn activate(&mut self, tenant: TenantIndex) {
        self.scheduler.activate(tenant.0);
    }

    /// All tenants with waiting messages are in the scheduler's line again.
    pub(crate) fn activate_all(&mut self) {
        for (at, lane) in self.lanes.iter().enumerate() {
            if lane.front().is_some() {
                self.scheduler.activate(at as u32);
            }
        }
    }

    /// Adds a tenant to the resting tenants, unless the tenant rests until an earlier time.
    pub(crate) fn rest_until(&mut self, tenant: TenantIndex, until: Instant) {
        if !self.resting.iter().any(|(at, of)| *of == tenant && *at <= until) {
            self.resting.push((until, tenant));
        }
    }

    /// Takes the tenants whose rest is over.
    pub(crate) fn take_rested(&mut self, now: Instant) -> Vec<TenantIndex> {
        let rested = self.resting.extract_if(.., |(at, _)| *at <= now);
        rested.map(|(_, tenant)| tenant).collect()
    }

    /// When the first rest is over, or `first` if that is earlier.
    #[inline]
    pub(super) fn next_rested(&self, first: Option<Instant>) -> Option<Instant> {
        self.resting.iter().fold(first, |first, (at, _)| earlier(first, Some(*at)))
    }

    // ---- Queries

    /// All tenants.
    pub(super) fn tenants(&self) -> impl Iterator<Item = TenantIndex> + use<> {
        (0..self.lanes.len() as u32).map(TenantIndex)
    }

    /// The waiting messages of a tenant.
    #[inline]
    pub(crate) fn of(&self, tenant: TenantIndex) -> &Queue {
        &self.lanes[tenant.0 as usize].queue
    }

    /// The waiting repairs of a tenant.
    pub(crate) fn repairs(&self, tenant: TenantIndex) -> &Queue {
        &self.lanes[tenant.0 as usize].repairs
    }

    /// Whether the tenant is paused, and no repair waits.
    pub(super) fn is_at_rest(&self, tenant: TenantIndex) -> bool {
        let lane = &self.lanes[tenant.0 as usize];
        lane.is_paused && lane.repairs.is_empty()
    }

    /// Whether the store has all changes that messages in the queues wait for.
    pub(super) fn is_safe(&self, journal: &Journal) -> bool {
        let gates = |lane: &Lane| [lane.queue.gate(), lane.repairs.gate()];
        self.lanes.iter().flat_map(gates).flatten().all(|gate| journal.is_safe(gate))
    }

    /// Notes that a message with effects on rules has left a tenant's queue.
    pub(super) fn note_left(&mut self, tenant: TenantIndex, message: u32) {
        self.lanes[tenant.0 as usize].left = message;
    }

    /// The last message with effects on rules that has left a tenant's queue.
    pub(super) fn left(&self, tenant: TenantIndex) -> u32 {
        self.lanes.get(tenant.0 as usize).map_or(0, |lane| lane.left)
    }
}
