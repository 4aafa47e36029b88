//! Writes TABLE_FEATURES (1.3, section 7.3.5.5). All tables have the same features, but goto-table
//! can name later tables only.

use openflow::ListBuf;
use openflow::text::Name;
use openflow::v13::{
    ActionId, InstructionId, OxmClass, OxmField, OxmId, TableFeatures,
    TableFeaturesProperty as Property,
};

use crate::state::State;

/// The types of the supported instructions.
const INSTRUCTIONS: [u16; 6] = [1, 2, 3, 4, 5, 6];
/// The types of the supported actions: all actions of 1.3 except those of PBB.
pub(super) const ACTIONS: [u16; 14] = [0, 11, 12, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25];
/// OXM fields that an entry can match but not set.
const READ_ONLY: [OxmField; 7] = [
    OxmField::IN_PORT,
    OxmField::IN_PHY_PORT,
    OxmField::ETH_TYPE,
    OxmField::IP_PROTO,
    OxmField::MPLS_BOS,
    OxmField::PBB_ISID,
    OxmField::IPV6_EXTHDR,
];
const N_FIELDS: u8 = 40;

/// Writes one entry per table through `entry`.
pub(super) fn write(switch: &State, mut entry: impl FnMut(&TableFeatures<'_>)) {
    let instructions: ListBuf<InstructionId<'_>> =
        INSTRUCTIONS.iter().map(|type_| InstructionId { type_: *type_, body: &[] }).collect();
    let actions: ListBuf<ActionId<'_>> =
        ACTIONS.iter().map(|type_| ActionId { type_: *type_, body: &[] }).collect();
    let fields = || (0..N_FIELDS).map(OxmField);
    let all: ListBuf<OxmId> = fields().map(|field| oxm_id(field, field.is_maskable())).collect();
    // Match fields have masks. Wildcards and set-field apply to whole fields.
    let optional: ListBuf<OxmId> = fields().map(|field| oxm_id(field, false)).collect();
    let settable: ListBuf<OxmId> = fields()
        .filter(|field| !READ_ONLY.contains(field))
        .map(|field| oxm_id(field, false))
        .collect();
    let n_tables = switch.config.n_tables;
    for (table_id, table) in (0..n_tables).zip(&switch.datapath.tables) {
        let next: Vec<u8> = (table_id + 1..n_tables).collect();
        let properties: ListBuf<Property<'_>> = [
            Property::Instructions(instructions.as_list()),
            Property::NextTables(&next),
            Property::WriteActions(actions.as_list()),
            Property::ApplyActions(actions.as_list()),
            Property::Match(all.as_list()),
            Property::Wildcards(optional.as_list()),
            Property::WriteSetField(settable.as_list()),
            Property::ApplySetField(settable.as_list()),
        ]
        .into();
        entry(&TableFeatures {
            table_id,
            name: Name::new(&format!("table{table_id}")),
            metadata_match: u64::MAX,
            metadata_write: u64::MAX,
            config: 0,
            max_entries: switch.faults.reported_size(table.max_flows()),
            properties: properties.as_list(),
        });
    }
}

fn oxm_id(field: OxmField, has_mask: bool) -> OxmId {
    let bytes = field.value_len().unwrap_or_default() as u8;
    let length = if has_mask { 2 * bytes } else { bytes };
    OxmId { class: OxmClass::OPENFLOW_BASIC, field, has_mask, length, experimenter: None }
}
