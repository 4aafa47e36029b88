//! State that has to survive a restart.
//!
//! The core itself stores nothing. The core numbers its changes; the driver stores the changes, and reports the number
//! up to which they are safe. A message that changes the switch waits in its queue until the change is safe. So after a
//! crash the stored tables and the switch can be reconciled: a stored entry whose rules are missing is installed, and a
//! rule of Weir without a stored entry is removed.

use crate::policy::TenantId;
use alloc::vec::Vec;

/// The name of a stored value: unique per switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The kind of thing in the highest byte, its number in the rest.
    pub item: u64,
}

/// Kinds of stored things, with their numbers in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A virtual flow entry.
    Flow = 1,
    /// A group.
    Group = 2,
    /// A meter.
    Meter = 3,
    /// The configuration of a port of a tenant's network.
    Port = 4,
    /// A group on the switch that is to be deleted, by its id there.
    GroupToDelete = 5,
    /// A meter on the switch that is to be deleted, by its id there.
    MeterToDelete = 9,
    /// Weir's own: cookies of rules on the switch of which `--adopt` could make no entry.
    Left = 10,
}

const KINDS: [Kind; 7] = [
    Kind::Flow,
    Kind::Group,
    Kind::Meter,
    Kind::Port,
    Kind::GroupToDelete,
    Kind::MeterToDelete,
    Kind::Left,
];

impl StoreKey {
    /// The key of a thing.
    pub fn new(tenant: TenantId, kind: Kind, number: u32) -> Self {
        StoreKey { tenant, item: (kind as u64) << 56 | u64::from(number) }
    }

    /// The kind and number; `None` for a key that a later version may have written.
    pub fn parts(&self) -> Option<(Kind, u32)> {
        let kind = KINDS.into_iter().find(|kind| *kind as u64 == self.item >> 56)?;
        Some((kind, (self.item & 0xffff_ffff) as u32))
    }
}

/// A change to the stored state of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// Sets or replaces a value.
    Put(StoreKey, Vec<u8>),
    /// Removes a value; no effect if there is none.
    Delete(StoreKey),
}

/// Changes in order, the number up to which they are safe, and what the store held at the beginning.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    ops: Vec<StoreOp>,
    written: u64,
    safe: u64,
    /// Without a store, all changes count as safe.
    is_volatile: bool,
    /// What the store held at the beginning, until the tables are filled from it.
    restored: Vec<(StoreKey, Vec<u8>)>,
}

impl Journal {
    /// A journal. `restored` is what the store holds; `is_volatile` says that there is no store to wait for.
    pub(crate) fn new(restored: Vec<(StoreKey, Vec<u8>)>, is_volatile: bool) -> Journal {
        Journal { restored, is_volatile, ..Journal::default() }
    }

    /// What the store held at the beginning.
    pub(crate) fn restored(&self) -> &[(StoreKey, Vec<u8>)] {
        &self.restored
    }

    /// Takes what the store held at the beginning, to fill the tables from it.
    pub(crate) fn take_restored(&mut self) -> Vec<(StoreKey, Vec<u8>)> {
        core::mem::take(&mut self.restored)
    }

    /// Whether there is no store.
    pub(crate) fn is_volatile(&self) -> bool {
        self.is_volatile
    }

    /// Adds a change.
    pub(crate) fn push(&mut self, op: StoreOp) {
        if !self.is_volatile {
            self.ops.push(op);
            self.written += 1;
        }
    }

    /// The number of the last change. Messages that depend on the change wait until it is safe.
    pub(crate) fn gate(&self) -> u64 {
        self.written
    }

    /// Whether all changes up to `gate` are safe.
    pub(crate) fn is_safe(&self, gate: u64) -> bool {
        gate <= self.safe
    }

    /// Changes that the driver has not taken yet, with the number of the last change.
    pub(crate) fn take(&mut self) -> Option<(u64, Vec<StoreOp>)> {
        (!self.ops.is_empty()).then(|| (self.written, core::mem::take(&mut self.ops)))
    }

    /// The driver reports that all changes up to `number` are safe.
    pub(crate) fn confirm(&mut self, number: u64) {
        self.safe = self.safe.max(number.min(self.written));
    }
}
