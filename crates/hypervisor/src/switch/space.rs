//! How many rules each tenant may have in the switch's tables, and how many groups and meters. Only this module decides
//! whether a tenant may have another one.
//!
//! The room of a table is divided among the tenants that have a part of the switch, by their weights. A tenant never
//! gets more than its share, even if other tenants use little of theirs: so each share is always available, and a
//! tenant learns nothing about other tenants from its own room. Room that a tenant cannot use because of its own limit
//! goes to the other tenants. If the switch has a data sheet ([`super::sheet`]), the lower figure counts.
//!
//! ```text
//!   the switch says at the start how much its tables hold (table statistics of 1.0, table features of 1.3)
//!        │  nothing useful                      a million or more, or no answer: the tenants' own limits alone hold
//!        ▼                                                   │ TABLE_FULL
//!   shares ◀── how many rules the full table has by then ◀───┘   until the switch connects again, or a reload
//! ```
//! Groups of each type and meters are divided in the same way, by the switch's figures at the start (group features and
//! meter features of 1.3). A tenant that asks for these figures gets its own share: a controller plans with them.

pub(crate) mod shares;

use super::{Event, Switch, Tenant};
use crate::flows::room::Room;
use crate::ids::TenantIndex;
use crate::messages;
use crate::policy::TenantId;
use crate::south::pending::{Awaits, Purpose};
use crate::time::Instant;
use crate::v13::ids::MAX_NUMBERS;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::{Reason, Refused};
use openflow::{List, v10, v13};
use shares::{Holds, NumberShare, SaidBy, Space, TableShare, divide_table};

/// A figure from this size on says nothing: Open vSwitch reports it for each table, and has no such bound.
const UNBOUNDED: u32 = 1_000_000;

/// A table with fewer rules than this is not full: the switch refuses a rule for another reason, whatever its error
/// says.
const FEWEST: u32 = 64;

impl Switch {
    /// How many rules a tenant may have in one of its tables; `None` if the table's size is not known.
    pub(crate) fn share_of(&self, tenant: TenantIndex, table: u8) -> Option<u32> {
        let holds = self.space.holds.get(&self.physical(table))?;
        self.space.shares.get(&holds.rules)?.get(tenant.0 as usize).copied()
    }

    /// How many rules a tenant may have in all, if a change adds rules to these of its tables: at most its limit.
    pub(crate) fn rules_left(
        &self,
        tenant: TenantIndex,
        tables: impl IntoIterator<Item = u8>,
    ) -> u32 {
        let state = &self.tenants[tenant];
        let mut left = state.terms.limits.entries;
        // A replay applies a change again that the shares allowed before.
        if self.space.holds.is_empty() || self.is_replay() {
            return left;
        }
        for table in tables {
            if let Some(share) = self.share_of(tenant, table) {
                let elsewhere = state.flows.entries() - state.flows.entries_of(table);
                left = left.min(share.saturating_add(elsewhere as u32));
            }
        }
        left
    }

    /// The refusal of an entry whose rules have no room in a table.
    pub(crate) fn no_room(&self, tenant: TenantIndex, table: u8, room: &Room) -> Refused {
        let limit = self.tenants[tenant].terms.limits.entries;
        let reason = match self.rules_left(tenant, [table]) < limit {
            _ if room.is_at_once() => Reason::RulesAtOnce,
            true => Reason::RuleShare,
            false => Reason::RuleLimit,
        };
        reason.with(self.codes().table_full)
    }

    /// The operator has reloaded the configuration: tables that were full may hold more rules now.
    pub fn forget_full_tables(&mut self) {
        self.space.said.retain(|_, holds| holds.by == SaidBy::Switch);
        self.divide_space();
    }

    /// Divides the switch again, because tenants, weights, limits or figures have changed.
    pub(super) fn divide_space(&mut self) {
        self.judge_sheet();
        self.divide_rates();
        self.space.holds = self.lower_of_both();
        let divided = |all: &[u32], most: fn(&Tenant) -> u32| -> BTreeMap<u32, Vec<u32>> {
            let claim = |at| (self.weight(at), most(&self.tenants[at]));
            let claims: Vec<(u32, u32)> = self.tenants.indices().map(claim).collect();
            all.iter().map(|&all| (all, divide_table(all, &claims))).collect()
        };
        let Space { holds, groups, meters, .. } = &self.space;
        let rules: Vec<u32> = holds.values().map(|holds| holds.rules).collect();
        let shares = divided(&rules, |tenant| tenant.terms.limits.entries);
        let groups: Vec<u32> = groups.iter().copied().filter(|all| *all > 0).collect();
        let group_shares = divided(&groups, |tenant| match tenant.network {
            // In a network, one group can have several instances on the switch.
            Some(_) => MAX_NUMBERS as u32,
            None => tenant.terms.limits.groups,
        });
        let meters: Vec<u32> = [*meters].into_iter().filter(|all| *all > 0).collect();
        let mut meter_shares = divided(&meters, |tenant| tenant.terms.limits.meters);
        let meter_shares = meter_shares.pop_first().map(|(_, shares)| shares).unwrap_or_default();
        let space = &mut self.space;
        (space.shares, space.group_shares, space.meter_shares) =
            (shares, group_shares, meter_shares);
        space.changes += 1;
    }

    /// The size of each table: the lower figure of the switch and of its data sheet.
    fn lower_of_both(&self) -> BTreeMap<u8, Holds> {
        let mut holds = self.space.said.clone();
        let Some(table) =
            self.datapath.described().in_force().and_then(|sheet| sheet.table.as_ref())
        else {
            return holds;
        };
        let measured = Holds { rules: table.rules, by: SaidBy::Sheet };
        for at in 0..self.datapath.features().n_tables.max(1) {
            let holds = holds.entry(at).or_insert(measured);
            if measured.rules < holds.rules {
                *holds = measured;
            }
        }
        holds
    }

    /// How many groups of a type a tenant may have on the switch; `None` if the most groups of the switch are not
    /// known.
    pub(crate) fn most_groups(&self, tenant: TenantIndex, type_: v13::GroupType) -> Option<u32> {
        let all = self.space.groups.get(usize::from(type_.0))?;
        self.space.group_shares.get(all)?.get(tenant.0 as usize).copied()
    }

    /// The most groups of a type in a tenant's features: its share, and at most its limit.
    pub(crate) fn advertised_groups(&self, tenant: TenantIndex, type_: v13::GroupType) -> u32 {
        let limit = self.tenants[tenant].terms.limits.groups;
        self.most_groups(tenant, type_).map_or(limit, |share| limit.min(share))
    }

    /// The most entries of a tenant's table in the tenant's features.
    pub(crate) fn advertised_entries(&self, tenant: TenantIndex, table: u8) -> u32 {
        let limits = &self.tenants[tenant].terms.limits;
        let limit = limits.flows.min(limits.entries);
        self.share_of(tenant, table).map_or(limit, |share| limit.min(share))
    }

    /// How many meters a tenant may have.
    pub(crate) fn most_meters(&self, tenant: TenantIndex) -> u32 {
        let limit = self.tenants[tenant].terms.limits.meters;
        self.space.meter_shares.get(tenant.0 as usize).map_or(limit, |share| limit.min(*share))
    }

    /// How many groups and meters a tenant may have; nothing on 1.0.
    pub fn number_shares_of(&self, tenant: TenantId) -> Vec<NumberShare> {
        let Some(at) = self.tenant_of(tenant).filter(|_| self.semantics().has_groups) else {
            return Vec::new();
        };
        let said = |holds: u32| Some(holds).filter(|holds| *holds > 0);
        let groups = (0..).zip(&self.space.groups).map(|(type_, &holds)| {
            let type_ = v13::GroupType(type_);
            let may = self.advertised_groups(at, type_);
            NumberShare { type_: Some(type_), holds: said(holds), may }
        });
        let (holds, may) = (said(self.space.meters), self.most_meters(at));
        groups.chain([NumberShare { type_: None, holds, may }]).collect()
    }

    /// Takes group features (1.3): the most groups of each type.
    pub(crate) fn groups_said(&mut self, said: &v13::GroupFeatures) {
        for (type_, holds) in said.max_groups.iter().enumerate() {
            let is_known = said.types & 1 << type_ != 0 && *holds < UNBOUNDED;
            self.space.groups[type_] = if is_known { *holds } else { 0 };
        }
    }

    /// Takes meter features (1.3): the most meters.
    pub(crate) fn meters_said(&mut self, said: &v13::MeterFeatures) {
        self.space.meters = if said.max_meter < UNBOUNDED { said.max_meter } else { 0 };
    }

    /// How often the shares have changed.
    pub fn space_changes(&self) -> u64 {
        self.space.changes
    }

    /// A tenant's share of each of the switch's tables whose size is known.
    pub fn shares_of(&self, tenant: TenantId) -> Vec<TableShare> {
        let Some(at) = self.tenant_of(tenant) else { return Vec::new() };
        let mut shares: Vec<TableShare> = Vec::new();
        for (&table, &holds) in &self.space.holds {
            let Some(all) = self.space.shares.get(&holds.rules) else { continue };
            let may = all.get(at.0 as usize).copied().unwrap_or(0);
            match shares.last_mut() {
                Some(last)
                    if last.holds == holds && last.tables.1.checked_add(1) == Some(table) =>
                {
                    last.tables.1 = table;
                }
                _ => shares.push(TableShare { tables: (table, table), holds, may }),
            }
        }
        shares
    }

    /// Asks the switch for the sizes of its tables. Nothing waits for the answer.
    pub(super) fn ask_space(&mut self, now: Instant) {
        if !self.datapath.is_joined() {
            for question in messages::room(self.wire) {
                self.send_own(Awaits::Own(Purpose::Space), &question, now);
            }
        }
    }

    /// The switch has refused a rule because a tenant's table is full: asks how many rules the table has.
    pub(super) fn table_was_full(&mut self, table: u8, now: Instant) {
        let table = self.physical(table);
        if self.datapath.is_joined() || self.space.asks || self.space.said.contains_key(&table) {
            return;
        }
        self.space.asks = true;
        let question = messages::rules_in_tables(self.wire);
        self.send_own(Awaits::Own(Purpose::Full(table)), &question, now);
    }

    /// The switch does not report its sizes.
    pub(super) fn space_failed(&mut self, purpose: Purpose) {
        self.space.asks &= !matches!(purpose, Purpose::Full(_));
    }

    /// Takes table statistics of 1.0, which have both the sizes and the numbers of rules. Only tables with wildcards
    /// count.
    pub(crate) fn space_said_v10(&mut self, full: bool, tables: List<'_, v10::TableStats>) {
        let with_wildcards = tables.iter().filter(|table| table.wildcards.0 != 0);
        let rules = with_wildcards.map(|it| if full { it.active_count } else { it.max_entries });
        let by = if full { SaidBy::Full } else { SaidBy::Switch };
        self.space_is(0, Holds { rules: rules.max().unwrap_or(0), by });
        self.space.asks &= !full;
    }

    /// Takes table features of 1.3: the sizes of the tables.
    pub(crate) fn space_said_v13(&mut self, tables: List<'_, v13::TableFeatures<'_>>) {
        for table in tables {
            self.space_is(table.table_id, Holds { rules: table.max_entries, by: SaidBy::Switch });
        }
    }

    /// Takes table statistics of 1.3: the numbers of rules in the tables.
    pub(crate) fn space_found_v13(&mut self, full: u8, tables: List<'_, v13::TableStats>) {
        for table in tables.iter().filter(|table| table.table_id == full) {
            self.space_is(full, Holds { rules: table.active_count, by: SaidBy::Full });
            self.space.asks = false;
        }
    }

    fn space_is(&mut self, table: u8, holds: Holds) {
        let least = if holds.by == SaidBy::Full { FEWEST } else { 1 };
        if (least..UNBOUNDED).contains(&holds.rules) {
            self.space.said.insert(table, holds);
            if holds.by == SaidBy::Full {
                self.reports.push(Event::TableFull { table, rules: holds.rules });
            }
        }
    }

    /// The switch's number of a tenant's table.
    fn physical(&self, table: u8) -> u8 {
        table.saturating_add(self.target().first_table())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rules: u32, claims: &[(u32, u32)], expected: &[u32]) {
        let shares = divide_table(rules, claims);
        assert_eq!(shares, expected, "{rules} {claims:?}");
        assert!(shares.iter().map(|share| u64::from(*share)).sum::<u64>() <= u64::from(rules));
    }

    #[test]
    fn tables_are_divided_by_weight_and_unusable_shares_go_to_other_tenants() {
        const MOST: u32 = 100_000;
        check(1_000, &[], &[]);
        check(1_000, &[(1, MOST)], &[1_000]);
        check(1_000, &[(1, MOST), (1, MOST)], &[500, 500]);
        check(1_000, &[(3, MOST), (1, MOST)], &[750, 250]);
        // Weight 0 means that the tenant has no part of the switch. The tenant gets no share.
        check(1_000, &[(0, MOST), (1, MOST)], &[0, 1_000]);
        check(1_000, &[(1, 100), (1, MOST), (1, MOST)], &[100, 450, 450]);
        check(1_000, &[(1, MOST), (2, 0), (1, MOST)], &[500, 0, 500]);
        check(10, &[(1, MOST), (1, MOST), (1, MOST)], &[3, 3, 4]);
        check(1, &[(1, MOST), (1, MOST)], &[0, 1]);
        check(u32::MAX, &[(1000, u32::MAX), (1000, u32::MAX)], &[u32::MAX / 2, u32::MAX / 2 + 1]);
    }
}
