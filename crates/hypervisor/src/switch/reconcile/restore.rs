//! The first steps of a reconciliation: the tables are filled from the store.

use crate::cookie::Cookie;
use crate::flows::Flow;
use crate::messages;
use crate::south::reports::ReportedRule;
use crate::store::{Kind, StoreKey, StoreOp};
use crate::switch::Switch;
use crate::time::Instant;
use alloc::vec;
use alloc::vec::Vec;

impl Switch {
    /// Fills the tables of ports, groups and meters from the store. Gives the items of the store.
    pub(super) fn begin_to_restore(
        &mut self,
        groups: &[u8],
        meters: &[u8],
    ) -> vec::IntoIter<(StoreKey, Vec<u8>)> {
        let held = self.learn_numbers(groups, meters);
        let restored = self.journal.take_restored();
        // Ports first, then groups and meters: entries refer to them.
        self.restore_ports(&restored);
        for (key, bytes) in &restored {
            match key.parts() {
                Some((kind @ (Kind::Group | Kind::Meter), number)) => {
                    self.restore_number(kind, key.tenant, number, bytes);
                }
                Some((Kind::GroupToDelete, number)) => {
                    self.restore_deletion(key.tenant, Kind::Group, number);
                }
                Some((Kind::MeterToDelete, number)) => {
                    self.restore_deletion(key.tenant, Kind::Meter, number);
                }
                _ => {}
            }
        }
        self.learn_owned(&held);
        restored.into_iter()
    }

    /// Fills the tables with an item of the store, if it is an entry.
    pub(super) fn restore_entry_of_store(&mut self, key: StoreKey, bytes: &[u8], now: Instant) {
        let Some((Kind::Flow, number)) = key.parts() else { return };
        let (wire, stored_as) = (self.wire, self.semantics().stored_as);
        let read_match = |bytes: &[u8]| messages::read_match(wire, bytes);
        let flow = Flow::from_bytes(bytes, stored_as, read_match);
        let kept = self.tenant_of(key.tenant).zip(flow).and_then(|(tenant, flow)| {
            let mut flow = messages::restored(wire, flow, self.metadata_kept(tenant))?;
            flow.installed = now;
            flow.rules = self.plan(tenant, &flow).ok()?;
            let flows = &mut self.tenants[tenant].flows;
            let same = flows.find_same(&flow);
            if same.is_some() || flows.collides(number, &flow) {
                return None;
            }
            flows.put(number, flow);
            self.tenants.keep_time(tenant, number, now);
            Some(())
        });
        if kept.is_none() {
            // The tenant is gone, or its entry is not allowed any more. A later step deletes the rules.
            self.journal.push(StoreOp::Delete(StoreKey::new(key.tenant, Kind::Flow, number)));
        }
    }

    /// If several entries lead to a rule that the switch holds, the entry of the rule's cookie owns the rule.
    pub(super) fn keep_owner(&mut self, entry: &ReportedRule, now: Instant) {
        let Some(cookie) = Cookie::from_wire(entry.cookie, self.settings.installation) else {
            return;
        };
        let Some(tenant) = self.tenant_of(cookie.tenant) else { return };
        let flows = &self.tenants[tenant].flows;
        let shadowed = flows.get(cookie.number).and_then(|flow| {
            let shadowed = flow.shadowed.iter().find(|rule| self.is_held(flow, rule, entry));
            Some((flow.table, shadowed?.clone()))
        });
        let Some((table, rule)) = shadowed else { return };
        let flows = &mut self.tenants[tenant].flows;
        let before = flows.own(cookie.number, table, &rule);
        for number in before.into_iter().chain([cookie.number]) {
            self.tenants.keep_time(tenant, number, now);
        }
    }
}
