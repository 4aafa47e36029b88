//! Which entries of a table [give packets another destination, and which presume that none does](crate::v13::network::presumed)
//! (1.3).

use super::{Flow, Presumes};
use crate::v13::network::presumed::{Gives, next_table};
use alloc::collections::BTreeSet;

/// Entries, each by the table that counts and its number.
type Entries = BTreeSet<(u8, u32)>;

#[derive(Debug, Default)]
pub(crate) struct Destinations {
    /// Those that leave one in the action set, by the first table that they leave it to.
    leaving: Entries,
    /// Those that change it, by their tables.
    changing: Entries,
    /// Those that presume that none is left, by their tables.
    presuming_none: Entries,
    /// Those that presume that it stays, by the table from which on.
    presuming_unchanged: Entries,
}

impl Destinations {
    pub(super) fn insert(&mut self, id: u32, flow: &Flow) {
        let Gives { left_from, changes } = Gives::by(&flow.actions);
        let Presumes { none_left, unchanged_from } = flow.presumes();
        self.leaving.extend(left_from.map(|from| (from, id)));
        self.changing.extend(changes.then_some((flow.table, id)));
        self.presuming_none.extend(none_left.then_some((flow.table, id)));
        self.presuming_unchanged.extend(unchanged_from.map(|from| (from, id)));
    }

    /// An entry goes, of which there may be fewer pieces than when it came.
    pub(super) fn remove(&mut self, id: u32, flow: &Flow) {
        self.changing.remove(&(flow.table, id));
        self.presuming_none.remove(&(flow.table, id));
        if let Some(next) = next_table(&flow.actions) {
            self.leaving.remove(&(next, id));
            self.presuming_unchanged.remove(&(next, id));
        }
    }

    /// Whether an entry leaves one in the action set that may still be there in this table.
    pub(crate) fn are_left_to(&self, table: u8) -> bool {
        self.leaving.first().is_some_and(|(from, _)| *from <= table)
    }

    /// Whether an entry of this table or a later one changes it.
    pub(crate) fn change_from(&self, table: u8) -> bool {
        self.changing.last().is_some_and(|(changing, _)| *changing >= table)
    }

    /// Whether none presumes that an entry of this table does not do this.
    pub(crate) fn let_stand(&self, table: u8, gives: Gives) -> bool {
        let last_without = self.presuming_none.last().map(|(table, _)| *table);
        let contradicts_none = gives.left_from.is_some_and(|from| last_without >= Some(from));
        let first_unchanged = self.presuming_unchanged.first().map(|(from, _)| *from);
        let contradicts_unchanged =
            gives.changes && first_unchanged.is_some_and(|from| from <= table);
        !contradicts_none && !contradicts_unchanged
    }
}
