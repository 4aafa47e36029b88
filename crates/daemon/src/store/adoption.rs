//! A store in the place of a lost one: with its installation number, so that the cookies of its rules are this store's
//! own, and with a document that says so.

use std::path::Path;

use super::backup::make_whole;
use super::error::StoreError;
use super::schema::SCHEMA;

/// The document: entries are to be made of the rules of switches of which the store has nothing.
pub(super) const ADOPTS: &str = "adopts";

/// Makes the database of a folder that has none, with a secret that has the installation number.
pub(super) fn adopt(database: &Path, secret: &[u8; 16]) -> Result<(), StoreError> {
    if database.exists() {
        return Err(StoreError::Exists { file: database.to_owned() });
    }
    let schema = SCHEMA.to_be_bytes();
    let records: [(u8, &[u8], &[u8]); 3] =
        [(1, b"schema", &schema), (1, b"secret", secret), (4, ADOPTS.as_bytes(), b"")];
    make_whole(database, &records)
        .map_err(|error| StoreError::Database(format!("it cannot be made: {error}")))
}
