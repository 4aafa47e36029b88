//! Operations in flight to the switch, by their purpose, and the request that is being applied to the tables.

use super::bulk::change::BulkChange;
use super::logged::LoggedChange;
use super::replay::findings::Object;
use crate::ids::TenantIndex;
use crate::south::installed::Effect;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use compile::InfraRule;
use flowspace::Match;
use hashbrown::HashMap;

/// See the module.
#[derive(Default)]
pub(crate) struct Operations {
    all: HashMap<u32, Operation>,
    last: u32,
    /// Changes of many entries that are applied in part.
    bulk: BTreeMap<TenantIndex, BulkChange>,
    /// The change of the request that is being applied, once the request has begun one.
    current: Option<u32>,
    /// Whether the request is applied again. Then Weir sends nothing.
    is_replay: bool,
}

/// Messages in flight that belong together.
pub(crate) struct Operation {
    pub(super) tenant: TenantIndex,
    /// The number of its messages.
    pub(super) messages: usize,
    /// The number of its messages that are not confirmed.
    pub(super) remaining: usize,
    pub(super) what: What,
    /// Its cost in examined entries, and the bytes that it holds, as far as these count for its tenant.
    pub(super) work: u64,
    pub(super) held: usize,
}

impl Operation {
    /// Bytes that the operation holds until it is done, without its messages.
    pub(super) fn size(&self) -> usize {
        let change = match &self.what {
            What::Request(change) => change.size(),
            _ => 0,
        };
        size_of::<Operation>() + change + size_of::<Effect>() * self.messages
    }
}

/// The purpose of messages.
pub(crate) enum What {
    /// A tenant's request.
    Request(Box<LoggedChange>),
    /// The switch has to hold this object of the tables. If the switch refuses the object, the request `cause` is
    /// refused; without such a request, Weir gives up the object.
    Repair { object: Object, cause: Option<u32> },
    /// A rule of Weir's own.
    Infra(Box<Tried>),
    /// Groups or meters that nothing needs any more are deleted.
    Free,
}

impl Operations {
    /// Begins an operation, and gives its number.
    pub(super) fn begin(&mut self, tenant: TenantIndex, what: What) -> u32 {
        self.last = self.last.wrapping_add(1);
        let operation = Operation { tenant, messages: 0, remaining: 0, what, work: 0, held: 0 };
        self.all.insert(self.last, operation);
        self.last
    }

    /// An operation in flight.
    pub(super) fn get(&self, at: &u32) -> Option<&Operation> {
        self.all.get(at)
    }

    /// See [`get`](Self::get).
    pub(super) fn get_mut(&mut self, at: &u32) -> Option<&mut Operation> {
        self.all.get_mut(at)
    }

    /// Ends an operation.
    pub(super) fn remove(&mut self, at: &u32) -> Option<Operation> {
        self.all.remove(at)
    }

    /// The change of a request in flight.
    pub(super) fn change(&self, at: u32) -> Option<&LoggedChange> {
        match &self.all.get(&at)?.what {
            What::Request(change) => Some(change),
            _ => None,
        }
    }

    /// See [`change`](Self::change).
    pub(super) fn change_mut(&mut self, at: u32) -> Option<&mut LoggedChange> {
        match &mut self.all.get_mut(&at)?.what {
            What::Request(change) => Some(change),
            _ => None,
        }
    }

    /// Whether a rule of Weir's own is in flight.
    pub(super) fn has_infra(&self) -> bool {
        self.all.values().any(|it| matches!(it.what, What::Infra(_)))
    }

    // ---- Changes of many entries

    /// Whether a change of the tenant is applied in part.
    #[inline]
    pub(super) fn has_bulk(&self, tenant: TenantIndex) -> bool {
        self.bulk.contains_key(&tenant)
    }

    /// Whether a change of any tenant is applied in part.
    pub(super) fn has_any_bulk(&self) -> bool {
        !self.bulk.is_empty()
    }

    /// A change of the tenant is applied in part.
    pub(super) fn set_bulk(&mut self, tenant: TenantIndex, bulk: BulkChange) {
        self.bulk.insert(tenant, bulk);
    }

    /// Takes the change of the tenant that is applied in part.
    pub(super) fn take_bulk(&mut self, tenant: TenantIndex) -> Option<BulkChange> {
        self.bulk.remove(&tenant)
    }

    /// The switch announces another packet by this buffer id.
    pub(super) fn announces(&mut self, physical: u32) {
        self.bulk.values_mut().for_each(|bulk| bulk.announces(physical));
    }

    // ---- The request that is being applied

    /// The change of the request that is being applied, once the request has begun one.
    pub(super) fn current(&self) -> Option<u32> {
        self.current
    }

    /// Sets the change of the request that is being applied.
    pub(super) fn set_current(&mut self, change: Option<u32>) {
        self.current = change;
    }

    /// Whether the request is applied again. Then Weir sends nothing.
    #[inline]
    pub(super) fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Weir begins to apply the request of this change again.
    pub(super) fn begin_replay(&mut self, change: u32) {
        (self.current, self.is_replay) = (Some(change), true);
    }

    /// Weir has applied the request again.
    pub(super) fn end_replay(&mut self) {
        (self.current, self.is_replay) = (None, false);
    }
}

/// An added rule of Weir's own that is in flight to the switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tried {
    pub(super) table: u8,
    pub(super) match_: Match,
    pub(super) priority: u16,
    /// Whether the switch has refused the rule before.
    pub(super) again: bool,
}

impl Tried {
    pub(super) fn new(own: &InfraRule) -> Tried {
        let InfraRule { table, match_, priority, .. } = *own;
        Tried { table, match_, priority, again: false }
    }
}
