//! How many rules, groups and meters a switch holds, and each tenant's share.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use openflow::v13;

/// Who says how much a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaidBy {
    /// The switch, when it connected.
    Switch,
    /// The switch refused a rule since the table was full; so many were there.
    Full,
    /// The switch's data sheet. It counts where it says less than the switch.
    Sheet,
}

/// How much a table holds, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holds {
    /// Rules, of all tenants and others together.
    pub rules: u32,
    /// Who says so.
    pub by: SaidBy,
}

/// What one tenant may have in some tables that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableShare {
    /// The switch's first and last table. OpenFlow 1.0 does not name tables: the largest that takes wildcards is table 0.
    pub tables: (u8, u8),
    /// What each of them holds.
    pub holds: Holds,
    /// How many rules the tenant may have in each of them.
    pub may: u32,
}

/// How many groups of one type, or meters, one tenant may have on the switch (1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberShare {
    /// The type of the groups; `None` for meters.
    pub type_: Option<v13::GroupType>,
    /// How many the switch says that there can be, of all tenants, if it says so.
    pub holds: Option<u32>,
    /// How many the tenant may have.
    pub may: u32,
}

/// What is known of the switch's tables, and who gets how much of them.
#[derive(Debug, Default)]
pub(crate) struct Space {
    /// How many groups of each type the switch says that there can be, and how many meters; 0 if it says nothing useful.
    pub(super) groups: [u32; 4],
    pub(super) meters: u32,
    /// By how many there can be: each tenant's share.
    pub(super) group_shares: BTreeMap<u32, Vec<u32>>,
    pub(super) meter_shares: Vec<u32>,
    /// What the switch says, or was found out.
    pub(super) said: BTreeMap<u8, Holds>,
    /// What counts: the lower of that and of the data sheet.
    pub(super) holds: BTreeMap<u8, Holds>,
    /// By how much a table holds: each tenant's share.
    pub(super) shares: BTreeMap<u32, Vec<u32>>,
    /// Whether the switch has been asked how many rules a full table has.
    pub(super) asks: bool,
    /// The weights of all tenants that have a part of the switch.
    weights: u64,
    /// Counts changes.
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

/// A tenant among those that divide a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) weight: u32,
    pub(super) most: u32,
}

/// Divides a table of so many rules among tenants: each with its weight and the rules that its own limit lets it have.
pub fn divide_table(rules: u32, claims: impl IntoIterator<Item = (u32, u32)>) -> Vec<u32> {
    let claims = claims.into_iter().map(|(weight, most)| Claim { weight, most });
    divide(rules, &claims.collect::<Vec<_>>())
}

/// Divides by weight. Who cannot use its share leaves the rest to those who can. The sum is never more than there is.
pub(super) fn divide(rules: u32, claims: &[Claim]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..claims.len()).filter(|&at| claims[at].weight > 0).collect();
    // First those that are content with least for their weight.
    order.sort_by_key(|&at| {
        u64::from(claims[at].most) * u64::from(u32::MAX) / u64::from(claims[at].weight)
    });
    let mut shares = alloc::vec![0; claims.len()];
    let mut left = u64::from(rules);
    let mut weights: u64 = order.iter().map(|&at| u64::from(claims[at].weight)).sum();
    for at in order {
        let Claim { weight, most } = claims[at];
        let share = left * u64::from(weight) / weights.max(1);
        let share = share.min(u64::from(most));
        shares[at] = share as u32;
        left -= share;
        weights -= u64::from(weight);
    }
    shares
}
