//! Table numbers and TABLE_MOD (specification 1.3.5, section 7.3.3).

/// The highest table number.
pub const TABLE_MAX: u8 = 0xfe;
/// All tables, in deletions and requests.
pub const TABLE_ALL: u8 = 0xff;

/// `struct ofp_table_mod`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableMod {
    /// The table, or [`TABLE_ALL`].
    pub table_id: u8,
    /// Deprecated bits; nothing is defined.
    pub config: u32,
}

layout!(TableMod: Body { table_id, [3], config });
