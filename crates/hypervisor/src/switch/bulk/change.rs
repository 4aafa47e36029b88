//! A change of many entries, as far as it has not been applied.

use crate::buffers::Buffered;
use crate::flows::room::Room;
use crate::flows::{Alike, Wanted};
use crate::switch::Cause;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

/// What a request does to many entries.
pub(crate) enum BulkAction {
    Modify {
        actions: Arc<[u8]>,
        /// The entries' new cookie (1.0).
        cookie: Option<u64>,
        /// The room for the rules of all entries.
        room: Room,
    },
    /// The entries are candidates. Each is compared with the request in its batch.
    Delete {
        wanted: Box<Wanted>,
        /// The priority of a strict request.
        strictly: Option<u16>,
    },
}

/// A change of many entries, as far as it has not been applied.
pub(crate) struct BulkChange {
    pub(super) cause: Cause,
    pub(super) action: BulkAction,
    pub(super) entries: vec::IntoIter<u32>,
    pub(super) alike: Alike,
    /// The packet that the request releases.
    pub(super) buffered: Option<Buffered>,
}

impl BulkChange {
    pub(crate) fn is_done(&self) -> bool {
        self.entries.len() == 0
    }
}
