//! The controller connections of a switch: roles, wanted messages, and messages that wait.

use crate::account::{Account, MUCH, Part};
use crate::counters::{Counters, count};
use crate::ids::{ControllerIndex, TenantIndex};
use crate::outbox::Outbox;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use openflow::{TooLong, frame};

/// All connections. An index that is older than its connection finds nothing, and not the next connection in the same
/// slot.
pub(crate) struct Controllers {
    /// Slots with generations.
    slots: Vec<(u32, Option<Controller>)>,
    free: Vec<u32>,
    limits: NorthLimits,
    /// Connections with something to write, in turn.
    dirty: VecDeque<ControllerIndex>,
    /// Connections from which the driver may read again.
    resumed: Vec<ControllerIndex>,
}

/// Limits in bytes for messages that wait for controllers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NorthLimits {
    /// Beyond this limit for one controller, asynchronous messages for the controller are dropped.
    pub dropped_beyond: usize,
    /// Beyond this limit for one controller, the controller is disconnected: replies cannot be dropped.
    pub closed_beyond: usize,
    /// Beyond this limit for all controllers of one tenant on all switches together, a controller that would get more
    /// is disconnected. Beyond half of the limit, Weir does not read from controllers of the tenant for which messages
    /// wait.
    pub of_tenant: usize,
}

/// One controller connection of a tenant.
pub(crate) struct Controller {
    tenant: TenantIndex,
    outbox: Outbox,
    /// The bytes of the outbox in the tenant's account.
    part: Part,
    /// Whether the controller is in the list of connections with something to write.
    is_dirty: bool,
    /// Whether the controller is a [big switch](crate::big_switch) of which this switch is a member.
    is_joint: bool,
    /// Whether the driver has to close the connection.
    is_closing: bool,
    /// Barriers of the controller that the switch has not answered.
    pub barriers: usize,
    /// Statistics requests of the controller that are not answered.
    pub statistics: usize,
    pub role: Role,
    pub wanted: Wanted,
}

/// Roles of OpenFlow 1.3, section 6.3.4. On 1.0 all controllers are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Equal,
    Master,
    Slave,
}

/// Which asynchronous messages a controller wants: `[0]` as master or equal, `[1]` as slave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub packet_in: [u32; 2],
    pub port_status: [u32; 2],
    pub flow_removed: [u32; 2],
}

/// Asynchronous messages, which a controller can decline (OpenFlow 1.3 section 6.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asynchronous {
    PacketIn(u8),
    PortStatus(u8),
    FlowRemoved(u8),
    /// A link's label, in a message of Weir's own.
    Label,
}

/// The result of giving messages to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The messages wait.
    Waiting,
    /// The controller is gone, or about to be closed.
    Gone,
    /// The controller does not read its replies: its connection has to be closed.
    TooMuch,
}

const SLOT_BITS: u32 = 16;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

impl Controllers {
    /// The table without a connection.
    pub(crate) fn new(limits: NorthLimits) -> Controllers {
        let (slots, free) = (Vec::new(), Vec::new());
        Controllers { slots, free, limits, dirty: VecDeque::new(), resumed: Vec::new() }
    }

    /// Adds a connection of a tenant; `None` when 65,536 are connected.
    pub(crate) fn connect(
        &mut self,
        tenant: TenantIndex,
        account: Arc<Account>,
        is_joint: bool,
    ) -> Option<ControllerIndex> {
        let controller = Controller {
            tenant,
            outbox: Outbox::default(),
            part: Part::new(account),
            is_dirty: false,
            is_joint,
            is_closing: false,
            barriers: 0,
            statistics: 0,
            role: Role::Equal,
            wanted: Wanted::default(),
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot =
                    u32::try_from(self.slots.len()).ok().filter(|&slot| slot <= SLOT_MASK)?;
                self.slots.push((0, None));
                slot
            }
        };
        let (generation, state) = self.slots.get_mut(slot as usize)?;
        *state = Some(controller);
        Some(ControllerIndex(*generation << SLOT_BITS | slot))
    }

    /// Removes a connection. Returns its tenant.
    pub(crate) fn remove(&mut self, index: ControllerIndex) -> Option<TenantIndex> {
        let slot = index.0 & SLOT_MASK;
        let (generation, state) = self.slots.get_mut(slot as usize)?;
        if *generation != index.0 >> SLOT_BITS {
            return None;
        }
        let controller = state.take()?;
        *generation = (*generation + 1) & (u32::MAX >> SLOT_BITS);
        self.free.push(slot);
        self.dirty.retain(|other| *other != index);
        self.resumed.retain(|other| *other != index);
        Some(controller.tenant)
    }

    /// A connection.
    #[inline]
    pub(crate) fn get(&self, index: ControllerIndex) -> Option<&Controller> {
        match self.slots.get((index.0 & SLOT_MASK) as usize) {
            Some((generation, Some(controller))) if *generation == index.0 >> SLOT_BITS => {
                Some(controller)
            }
            _ => None,
        }
    }

    /// A connection.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: ControllerIndex) -> Option<&mut Controller> {
        match self.slots.get_mut((index.0 & SLOT_MASK) as usize) {
            Some((generation, Some(controller))) if *generation == index.0 >> SLOT_BITS => {
                Some(controller)
            }
            _ => None,
        }
    }

    /// Gives a controller messages that it asked for.
    pub(crate) fn give(&mut self, index: ControllerIndex, messages: &[u8]) -> Given {
        let limits = self.limits;
        let Some(controller) = self.get_mut(index).filter(|it| !it.is_closing) else {
            return Given::Gone;
        };
        let waits = controller.outbox.len() + messages.len();
        if waits >= MUCH {
            controller.part.set(waits);
        }
        if waits > limits.closed_beyond || waits >= MUCH && controller.part.all() > limits.of_tenant
        {
            controller.is_closing = true;
            controller.outbox.clear();
            controller.part.set(0);
            return Given::TooMuch;
        }
        controller.outbox.end().extend_from_slice(messages);
        if !core::mem::replace(&mut controller.is_dirty, true) {
            self.dirty.push_back(index);
        }
        Given::Waiting
    }

    /// Gives one asynchronous message to the controllers that want the message, except for `doer`, which has caused it.
    /// Counts messages for controllers that do not read.
    #[inline]
    pub(crate) fn notify(
        &mut self,
        indices: &[ControllerIndex],
        doer: Option<ControllerIndex>,
        kind: Asynchronous,
        counters: &mut Counters,
        mut write: impl FnMut(&mut Vec<u8>) -> Result<(), TooLong>,
    ) {
        let limits = self.limits;
        for &index in indices {
            let Some(controller) = self.get_mut(index) else { continue };
            if controller.is_closing || doer == Some(index) || !kind.is_wanted(controller) {
                continue;
            }
            let waits = controller.outbox.len();
            if waits >= limits.dropped_beyond
                || waits >= MUCH && controller.part.all() > limits.of_tenant / 2
            {
                counters.overflowed += 1;
                continue;
            }
            let out = controller.outbox.end();
            let start = out.len();
            if write(out).is_err() {
                out.truncate(start);
                continue;
            }
            if let Some(type_) = out.get(start + 1) {
                count(&mut counters.to_controller, *type_);
            }
            if !core::mem::replace(&mut controller.is_dirty, true) {
                self.dirty.push_back(index);
            }
        }
    }

    /// The next controller for which bytes wait, in turn.
    #[inline]
    pub(crate) fn next_dirty(&mut self) -> Option<ControllerIndex> {
        self.dirty.pop_front()
    }

    /// Bytes for a controller.
    pub(crate) fn outbox(&mut self, index: ControllerIndex) -> Option<&mut Outbox> {
        self.get_mut(index).map(|controller| &mut controller.outbox)
    }

    /// The driver has written bytes; `is_blocked`: the connection takes no more for now. Returns the tenant.
    #[inline]
    pub(crate) fn written(
        &mut self,
        index: ControllerIndex,
        is_blocked: bool,
    ) -> Option<TenantIndex> {
        let controller = self.get_mut(index)?;
        controller.part.set(controller.outbox.len());
        controller.is_dirty = is_blocked || !controller.outbox.is_empty();
        let (is_dirty, tenant) = (controller.is_dirty, controller.tenant);
        if is_dirty && !is_blocked {
            self.dirty.push_back(index);
        }
        Some(tenant)
    }

    /// Whether so many bytes wait for a controller that Weir reads nothing more from it.
    #[inline]
    pub(crate) fn is_behind(&self, index: ControllerIndex) -> bool {
        let limits = self.limits;
        self.get(index).is_some_and(|controller| {
            let waits = controller.outbox.len();
            waits >= limits.dropped_beyond
                || waits > 0 && controller.part.all() > limits.of_tenant / 2
        })
    }

    /// The driver may read from these controllers again.
    pub(crate) fn resume(&mut self, indices: &[ControllerIndex]) {
        self.resumed.extend_from_slice(indices);
    }

    /// A controller from which the driver may read again.
    #[inline]
    pub(crate) fn next_resumed(&mut self) -> Option<ControllerIndex> {
        self.resumed.pop()
    }
}

impl Controller {
    /// The controller's tenant.
    #[inline]
    pub(crate) fn tenant(&self) -> TenantIndex {
        self.tenant
    }

    /// Whether the controller is a big switch of which this switch is a member.
    pub(crate) fn is_joint(&self) -> bool {
        self.is_joint
    }

    /// Whether the driver has to close the connection.
    #[inline]
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// The number of messages that wait for the controller.
    pub(crate) fn waiting(&self) -> usize {
        self.outbox.messages()
    }
}

impl Default for Wanted {
    /// The defaults of OpenFlow 1.3, sections 6.1.1 and 6.3.4: no controller gets packets with an invalid TTL, and a
    /// slave gets port messages only.
    fn default() -> Self {
        Wanted { packet_in: [0x3, 0], port_status: [0x7, 0x7], flow_removed: [0xf, 0] }
    }
}

impl Wanted {
    /// Whether a reason is among those of these masks.
    pub(crate) fn has(masks: [u32; 2], role: Role, reason: u8) -> bool {
        let mask = if role == Role::Slave { masks[1] } else { masks[0] };
        reason < 32 && mask & 1 << reason != 0
    }
}

impl Asynchronous {
    /// The message type, which is the same in both versions.
    pub(crate) fn type_(self) -> u8 {
        match self {
            Asynchronous::PacketIn(_) => 10,
            Asynchronous::FlowRemoved(_) => 11,
            Asynchronous::PortStatus(_) => 12,
            Asynchronous::Label => 4,
        }
    }

    fn is_wanted(self, controller: &Controller) -> bool {
        let Wanted { packet_in, port_status, flow_removed } = controller.wanted;
        let (masks, reason) = match self {
            Asynchronous::PacketIn(reason) => (packet_in, reason),
            Asynchronous::PortStatus(reason) => (port_status, reason),
            Asynchronous::FlowRemoved(reason) => (flow_removed, reason),
            // Controllers that want PORT_STATUS for modified ports get labels.
            Asynchronous::Label => (port_status, 2),
        };
        Wanted::has(masks, controller.role, reason)
    }
}

/// The message types in a run of messages.
pub(crate) fn types(mut messages: &[u8]) -> impl Iterator<Item = u8> {
    core::iter::from_fn(move || {
        let length = frame::next(messages).ok()??;
        let type_ = frame::type_(messages)?;
        messages = messages.get(length..)?;
        Some(type_)
    })
}
