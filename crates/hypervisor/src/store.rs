//! What has to outlive a restart.
//!
//! The core does not store anything itself. It says what changed, numbered; the driver makes it safe and reports how
//! far it got. A message that changes the switch waits in its queue until the change is safe, so that after a crash
//! the stored tables and the switch can be reconciled: a stored flow that is missing is installed, a flow of ours that
//! is not stored is removed.

use crate::policy::TenantId;
use alloc::vec::Vec;

/// The name of a stored value: unique per switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey {
    /// Whose it is.
    pub tenant: TenantId,
    /// The kind of thing in the highest byte, its number in the rest.
    pub item: u64,
}

/// Kinds of stored things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A virtual flow entry.
    Flow,
    /// A group.
    Group,
    /// A meter.
    Meter,
    /// What is configured of a port of a tenant's own network.
    Port,
    /// A group on the switch that is to be deleted, by its number there.
    GroupToDelete,
    /// A meter, likewise.
    MeterToDelete,
    /// Of the hypervisor itself: cookies of rules on the switch that `--adopt` could make no entry of.
    Left,
}

impl StoreKey {
    /// The key of a thing.
    pub fn new(tenant: TenantId, kind: Kind, number: u32) -> Self {
        let kind: u64 = match kind {
            Kind::Flow => 1,
            Kind::Group => 2,
            Kind::Meter => 3,
            Kind::Port => 4,
            Kind::GroupToDelete => 5,
            Kind::MeterToDelete => 9,
            Kind::Left => 10,
        };
        StoreKey { tenant, item: kind << 56 | u64::from(number) }
    }

    /// The kind and number; `None` for a key that a later version may have written.
    pub fn parts(&self) -> Option<(Kind, u32)> {
        let kind = match self.item >> 56 {
            1 => Kind::Flow,
            2 => Kind::Group,
            3 => Kind::Meter,
            4 => Kind::Port,
            5 => Kind::GroupToDelete,
            9 => Kind::MeterToDelete,
            10 => Kind::Left,
            _ => return None,
        };
        Some((kind, (self.item & 0xffff_ffff) as u32))
    }
}

/// A change to the stored state of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// Set or replace.
    Put(StoreKey, Vec<u8>),
    /// Remove; no harm if absent.
    Delete(StoreKey),
}

/// Changes in order, how far they are safe, and what was stored before.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    ops: Vec<StoreOp>,
    written: u64,
    safe: u64,
    /// Without a store, everything is as safe as it will be.
    is_volatile: bool,
    /// What the store holds of the time before, until the tables are restored.
    restored: Vec<(StoreKey, Vec<u8>)>,
}

impl Journal {
    /// What the store holds, or nothing and no store to wait for.
    pub(crate) fn new(restored: Vec<(StoreKey, Vec<u8>)>, is_volatile: bool) -> Journal {
        Journal { restored, is_volatile, ..Journal::default() }
    }

    /// What the store holds of the time before.
    pub(crate) fn restored(&self) -> &[(StoreKey, Vec<u8>)] {
        &self.restored
    }

    /// The same, to make tables of it.
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

    /// The number of the last change, which messages that depend on it wait for.
    pub(crate) fn gate(&self) -> u64 {
        self.written
    }

    /// Whether everything up to `gate` is safe.
    pub(crate) fn is_safe(&self, gate: u64) -> bool {
        gate <= self.safe
    }

    /// Changes that the driver has not taken yet, with the number of the last.
    pub(crate) fn take(&mut self) -> Option<(u64, Vec<StoreOp>)> {
        (!self.ops.is_empty()).then(|| (self.written, core::mem::take(&mut self.ops)))
    }

    /// The driver reports that everything up to `number` is safe.
    pub(crate) fn confirm(&mut self, number: u64) {
        self.safe = self.safe.max(number.min(self.written));
    }
}
