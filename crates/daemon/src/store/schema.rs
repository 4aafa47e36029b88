//! The tables of the database, and the versions of the formats of the tables and of backups.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | `"schema"`, `"secret"`, `"generation"` | u32 in network byte order; 16 bytes; 8 bytes, of the journals |
//! | `tenants` | name | number, 1 to 32767 |
//! | `items` | (dpid, tenant, item) | the core's encoding of a flow, group or meter |
//! | `documents` | name | what the control side keeps under it |
//! | `committed` | shard | its newest batch that is in `items`, in this generation of journals |

use redb::TableDefinition;

/// The version of the tables and of their records. The version is raised with every change of a record that another
/// version of Weir could not read. At the start Weir refuses another version.
pub(super) const SCHEMA: u32 = 2;

pub(super) const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
pub(super) const TENANTS: TableDefinition<'_, &str, u16> = TableDefinition::new("tenants");
pub(super) const ITEMS: TableDefinition<'_, (u64, u16, u64), &[u8]> = TableDefinition::new("items");
pub(super) const DOCUMENTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("documents");
pub(super) const COMMITTED: TableDefinition<'_, u32, u64> = TableDefinition::new("committed");
pub(super) const GENERATION: &str = "generation";

/// The version of the format of backups.
pub(super) const BACKUP_FORMAT: &str = "1";
