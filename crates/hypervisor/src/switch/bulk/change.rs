//! A change of many entries, as far as it has not been applied.

use crate::buffers::Buffered;
use crate::flows::{Alike, Flow, Wanted};
use crate::switch::cause::Cause;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

/// What a request does to many entries.
pub(crate) enum BulkAction {
    Modify {
        actions: Arc<[u8]>,
        /// The entries' new cookie (1.0).
        cookie: Option<u64>,
        /// How many more rules the entries of the next batches may lead to.
        at_once: usize,
    },
    Delete,
    /// The request is refused if it means an entry that overlaps the new entry (CHECK_OVERLAP).
    Refuse,
}

/// The entries that a request means.
pub(crate) struct Meant {
    pub wanted: Wanted,
    /// The priority of a strict request, or of the entry that a request adds.
    pub strictly: Option<u16>,
    /// The entry that the request adds if it means none.
    pub adds: Option<Flow>,
}

/// A change of many entries, as far as it has not been applied.
pub(crate) struct BulkChange {
    pub(super) cause: Cause,
    pub(super) action: BulkAction,
    pub(super) meant: Box<Meant>,
    /// Entries that the request may mean. Each is compared with the request in its batch.
    pub(super) candidates: vec::IntoIter<u32>,
    pub(super) alike: Alike,
    /// The packet that the request releases.
    pub(super) buffered: Option<Buffered>,
}

impl BulkChange {
    pub(crate) fn is_done(&self) -> bool {
        self.candidates.len() == 0
    }

    /// The switch announces another packet by this buffer id: the packet that the request releases is gone.
    pub(crate) fn announces(&mut self, physical: u32) {
        self.buffered = self.buffered.filter(|it| it.physical != physical);
    }
}
