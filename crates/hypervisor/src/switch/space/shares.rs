//! How many rules, groups and meters a switch holds, and each tenant's share.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use openflow::v13;

/// The source of a table's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    /// The switch, when it connected.
    Switch,
    /// The switch refused a rule because the table was full; it had this many rules.
    Full,
    /// The switch's data sheet. It counts if its figure is lower than the switch's figure.
    Sheet,
}

/// The size of a table, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Rules of all tenants and other software together.
    pub rules: u32,
    /// The source of the size.
    pub by: SaidBy,
}

/// A tenant's share of some consecutive tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShare {
    /// The switch's first and last table. OpenFlow 1.0 does not name tables: the largest that takes wildcards is table
    /// 0.
    pub tables: (u8, u8),
    /// The size of each table.
    pub holds: Holds,
    /// The most rules of the tenant in each table.
    pub may: u32,
}

/// A tenant's share of the groups of one type, or of the meters, on the switch (1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberShare {
    /// The type of the groups; `None` for meters.
    pub type_: Option<v13::GroupType>,
    /// The most groups or meters of all tenants, if the switch reports it.
    pub holds: Option<u32>,
    /// The most groups or meters of the tenant.
    pub may: u32,
}

/// The sizes of the switch's tables, and the tenants' shares.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// The most groups of each type, and the most meters, by the switch; 0 if the switch reports nothing useful.
    pub(super) groups: [u32; 4],
    pub(super) meters: u32,
    /// Each tenant's share, by the most groups.
    pub(super) group_shares: BTreeMap<u32, Vec<u32>>,
    pub(super) meter_shares: Vec<u32>,
    /// The sizes by the switch, or by a full table.
    pub(super) said: BTreeMap<u8, Holds>,
    /// The sizes that count: the lower one of `said` and of the data sheet.
    pub(super) holds: BTreeMap<u8, Holds>,
    /// Each tenant's share, by the size of a table.
    pub(super) shares: BTreeMap<u32, Vec<u32>>,
    /// Whether the switch has been asked how many rules a full table has.
    pub(super) asks: bool,
    /// The weights of all tenants that have a part of the switch.
    weights: u64,
    /// How often the shares have changed.
    pub(super) changes: u64,
}

impl Space {
    /// The weights of all tenants that have a part of the switch.
    pub(crate) fn weights(&self) -> u64 {
        self.weights
    }

    /// See [`weights`](Self::weights).
    pub(crate) fn set_weights(&mut self, weights: u64) {
        self.weights = weights;
    }
}

/// Divides a table among tenants by weight. `claims`: each tenant's weight, and the most rules by its own limit. If a
/// tenant cannot use its share, the rest goes to the other tenants. The sum never exceeds `rules`.
pub fn divide_table(rules: u32, claims: &[(u32, u32)]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..claims.len()).filter(|&at| claims[at].0 > 0).collect();
    // First the tenants with the lowest limit for their weight.
    order.sort_by_key(|&at| {
        let (weight, most) = claims[at];
        u64::from(most) * u64::from(u32::MAX) / u64::from(weight)
    });
    let mut shares = alloc::vec![0; claims.len()];
    let mut left = u64::from(rules);
    let mut weights: u64 = order.iter().map(|&at| u64::from(claims[at].0)).sum();
    for at in order {
        let (weight, most) = claims[at];
        let share = left * u64::from(weight) / weights.max(1);
        let share = share.min(u64::from(most));
        shares[at] = share as u32;
        left -= share;
        weights -= u64::from(weight);
    }
    shares
}
