//! A change of one object, as the front asks for it.

use alloc::sync::Arc;
use alloc::vec::Vec;

/// What the front can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// By its cookie.
    Entry(u64),
    Group(u32),
    Meter(u32),
    /// The configuration of a port.
    Port(u32),
}

/// The contents of an entry.
pub(super) struct Spec {
    /// The message that adds the entry, without a buffered packet.
    pub(super) add: Vec<u8>,
    pub(super) in_port: Option<u32>,
    pub(super) idle: u16,
    pub(super) hard: u16,
    /// The groups and meters that the entry uses: without them the entry goes.
    pub(super) uses: Vec<Object>,
}

/// A change of one object.
pub(super) struct Request {
    pub(super) object: Object,
    pub(super) to: To,
}

pub(super) enum To {
    Add { spec: Arc<Spec>, resets_counts: bool, is_again: bool },
    Modify { by: Vec<u8>, resets_counts: bool },
    Number(Arc<[u8]>),
    Config { config: u32, mask: u32 },
    Nothing,
}

impl Request {
    pub(super) fn adds(&self) -> bool {
        matches!(self.to, To::Add { .. })
    }

    pub(super) fn deletes(&self) -> bool {
        matches!(self.to, To::Nothing)
    }
}
