//! Features of a switch for a tenant: the tenant's tables, with the free bits of the metadata, and the tenant's share
//! of entries, groups and meters as the maximum. A controller plans with these figures, and they say nothing about
//! other tenants.

use crate::ids::TenantIndex;
use crate::parts::written;
use crate::switch::Switch;
use alloc::vec::Vec;
use core::ops::Range;
use openflow::v13::{
    GroupFeatures, GroupType, MeterFeatures, TableFeatures, TableFeaturesProperty,
};
use openflow::{List, ListBuf};

impl Switch {
    /// The features of a tenant's tables, each on the wire, out of the switch's answers.
    pub(super) fn own_table_features(&self, tenant: TenantIndex, answers: &[u8]) -> Vec<Vec<u8>> {
        let first = self.target().first_table();
        let own = first..first + self.tenant_tables(tenant);
        let kept = self.metadata_kept(tenant);
        let tables = List::<TableFeatures<'_>>::parse(answers).unwrap_or_default();
        let seen = tables.iter().filter_map(|table| {
            let table_id = number_in(&own, table.table_id)?;
            let max_entries = table.max_entries.min(self.advertised_entries(tenant, table_id));
            Some(seen(&TableFeatures { table_id, max_entries, ..table }, kept, &own))
        });
        seen.collect()
    }

    /// The switch's group features, with the tenant's share.
    pub(super) fn own_group_features(&self, tenant: TenantIndex, answers: &[u8]) -> Vec<Vec<u8>> {
        let said = List::<GroupFeatures>::parse(answers).unwrap_or_default();
        let own = said.iter().map(|mut own| {
            for (most, type_) in own.max_groups.iter_mut().zip(0..) {
                *most = self.advertised_groups(tenant, GroupType(type_)).min(*most);
            }
            written(&own)
        });
        own.collect()
    }

    /// The switch's meter features, with the tenant's share.
    pub(super) fn own_meter_features(&self, tenant: TenantIndex, answers: &[u8]) -> Vec<Vec<u8>> {
        let said = List::<MeterFeatures>::parse(answers).unwrap_or_default();
        let most = self.most_meters(tenant);
        let own = said.iter().map(|it| MeterFeatures { max_meter: most.min(it.max_meter), ..it });
        own.map(|own| written(&own)).collect()
    }
}

/// The features of a tenant's table; `kept` are the bits of the metadata that the tenant does not own, `own` are its
/// tables.
fn seen(table: &TableFeatures<'_>, kept: u64, own: &Range<u8>) -> Vec<u8> {
    let mut properties = ListBuf::<TableFeaturesProperty<'static>>::new();
    for property in table.properties {
        let shifted: Vec<u8>;
        let property = match property {
            TableFeaturesProperty::NextTables(next) => {
                shifted = next.iter().filter_map(|table| number_in(own, *table)).collect();
                TableFeaturesProperty::NextTables(&shifted)
            }
            TableFeaturesProperty::NextTablesMiss(next) => {
                shifted = next.iter().filter_map(|table| number_in(own, *table)).collect();
                TableFeaturesProperty::NextTablesMiss(&shifted)
            }
            // Weir does not know what an unknown property says, so the tenant does not get it.
            TableFeaturesProperty::Unknown { .. } => continue,
            other => other,
        };
        properties.push(property);
    }
    written(&TableFeatures {
        metadata_match: table.metadata_match & !kept,
        metadata_write: table.metadata_write & !kept,
        properties: properties.as_list(),
        ..*table
    })
}

/// The tenant's number of a table of the switch.
fn number_in(own: &Range<u8>, table: u8) -> Option<u8> {
    own.contains(&table).then(|| table - own.start)
}
