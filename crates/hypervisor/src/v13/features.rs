//! TABLE_FEATURES: the tables that are not the hypervisor's, with the metadata that is left.

use alloc::vec::Vec;
use core::ops::Range;
use openflow::v13::{TableFeatures, TableFeaturesProperty};
use openflow::{List, ListBuf};

/// The switch's tables that are `own` to tenants, as a tenant sees them, each on the wire; `kept` are the bits of the metadata
/// that are not its own.
pub(crate) fn of_tenant(answers: &[u8], kept: u64, own: &Range<u8>) -> Vec<Vec<u8>> {
    let tables = List::<TableFeatures<'_>>::parse(answers).unwrap_or_default();
    tables.iter().filter_map(|table| seen(&table, kept, own)).collect()
}

fn seen(table: &TableFeatures<'_>, kept: u64, own: &Range<u8>) -> Option<Vec<u8>> {
    let table_id = number_in(own, table.table_id)?;
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
            // What is not understood may say anything, so it says nothing to a tenant.
            TableFeaturesProperty::Unknown { .. } => continue,
            other => other,
        };
        properties.push(property);
    }
    let mut out = Vec::new();
    TableFeatures {
        table_id,
        metadata_match: table.metadata_match & !kept,
        metadata_write: table.metadata_write & !kept,
        properties: properties.as_list(),
        ..*table
    }
    .write(&mut out);
    Some(out)
}

/// What a tenant calls a table of the switch.
fn number_in(own: &Range<u8>, table: u8) -> Option<u8> {
    own.contains(&table).then(|| table - own.start)
}
