//! Entries that were compiled for an earlier policy or for other ports.

use crate::ids::TenantIndex;
use alloc::vec;
use alloc::vec::Vec;

/// Entries that are to be compiled again, in two passes.
///
/// An entry that needs more rules than it has, or a rule that another entry has, comes in the second pass. So no table has to hold
/// more than before and after the change, and an entry finds a rule free that another entry gives up.
pub(crate) struct Stale {
    entries: vec::IntoIter<(TenantIndex, u32)>,
    second: Vec<(TenantIndex, u32)>,
    is_second: bool,
}

impl Stale {
    pub(crate) fn new(entries: Vec<(TenantIndex, u32)>) -> Stale {
        Stale { entries: entries.into_iter(), second: Vec::new(), is_second: false }
    }

    /// The next entry, if there is one.
    pub(crate) fn next(&mut self) -> Option<(TenantIndex, u32)> {
        if self.entries.len() == 0 {
            self.is_second = true;
            self.entries = core::mem::take(&mut self.second).into_iter();
        }
        self.entries.next()
    }

    /// Puts an entry off to the second pass. Says false in the second pass.
    pub(crate) fn put_off(&mut self, entry: (TenantIndex, u32)) -> bool {
        if !self.is_second {
            self.second.push(entry);
        }
        !self.is_second
    }
}
