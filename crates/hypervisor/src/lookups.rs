//! How many packets a tenant's tables have looked up, and how many of these packets matched an entry. This is for table
//! statistics.
//!
//! A switch counts the packets of all tenants together. Weir computes a tenant's counts from the tenant's entries:
//! present entries and ended entries (FLOW_REMOVED). On 1.3 the rules of table 0 that send packets to the tenant's
//! tables count the packets of the first table; on 1.0 each PACKET_IN with reason NO_MATCH is a packet that matched no
//! entry. A later table has looked up the packets that entries of earlier tables sent there. The counts begin when the
//! switch connects, and never fall.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The counts of one tenant.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    /// By the tenant's table.
    tables: BTreeMap<u8, Past>,
    missed: u64,
}

/// The counts of one table, without the counts of present entries.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    /// Packets of ended entries: `matched` of entries in this table, `looked_up` of entries that sent packets to this
    /// table.
    gone: Counts,
    reported: Counts,
}

/// Packets that were looked up in a table, and those of them that matched an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub looked_up: u64,
    pub matched: u64,
}

/// The counts of present and of removed entries, by table.
#[derive(Default)]
pub(crate) struct Standing(Vec<Counts>);

impl Standing {
    /// Counts packets that were looked up in the first table.
    pub(crate) fn looked_up(&mut self, packets: u64) {
        self.add(0, |counts| &mut counts.looked_up, packets);
    }

    /// Adds the packets of an entry in a table. `next` is the table to which the entry sends packets, if any.
    pub(crate) fn matched(&mut self, table: u8, next: Option<u8>, packets: u64) {
        self.add(table, |counts| &mut counts.matched, packets);
        if let Some(next) = next {
            self.add(next, |counts| &mut counts.looked_up, packets);
        }
    }

    fn add(&mut self, table: u8, which: impl Fn(&mut Counts) -> &mut u64, packets: u64) {
        if let Some(counts) = self.0.get_mut(usize::from(table)) {
            let which = which(counts);
            *which = which.saturating_add(packets);
        }
    }
}

impl Lookups {
    /// An entry that has counted so many packets has ended.
    pub(crate) fn ended(&mut self, table: u8, next: Option<u8>, packets: u64) {
        let matched = &mut self.tables.entry(table).or_default().gone.matched;
        *matched = matched.saturating_add(packets);
        if let Some(next) = next {
            let looked_up = &mut self.tables.entry(next).or_default().gone.looked_up;
            *looked_up = looked_up.saturating_add(packets);
        }
    }

    /// A packet has matched no entry (1.0).
    pub(crate) fn missed(&mut self) {
        self.missed = self.missed.saturating_add(1);
    }

    /// The counts of removed entries, as they are now. The caller adds the counts of present entries. If the caller
    /// adds these in several turns, an entry that is removed meanwhile is not counted twice.
    pub(crate) fn gone(&self, tables: u8) -> Standing {
        let gone = |table| self.tables.get(&table).map(|it| it.gone).unwrap_or_default();
        Standing((0..tables).map(gone).collect())
    }

    /// Table statistics: the counts of each table.
    pub(crate) fn reported(&mut self, standing: Standing) -> Vec<Counts> {
        let missed = self.missed;
        let reported = standing.0.into_iter().zip(0..).map(|(counts, table)| {
            let past = self.tables.entry(table).or_default();
            let missed = if table == 0 { missed } else { 0 };
            let matched = counts.matched.max(past.reported.matched);
            let looked_up =
                counts.looked_up.max(matched.saturating_add(missed)).max(past.reported.looked_up);
            past.reported = Counts { looked_up, matched };
            past.reported
        });
        reported.collect()
    }
}
