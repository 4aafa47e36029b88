//! The order of entries: by priority, then by age.

/// The rank of an entry: a smaller rank is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Complement of the priority.
    pub(super) inverse_priority: u32,
    /// Number of entries inserted before.
    pub(super) sequence: u64,
}
