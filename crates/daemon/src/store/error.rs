//! The reasons why the store cannot be opened or used.

use std::path::PathBuf;
use std::{fmt, io};

use super::schema::{BACKUP_FORMAT, SCHEMA};

/// The store cannot be opened or used.
#[derive(Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Another process has locked the state directory.
    Locked {
        /// The directory.
        dir: PathBuf,
        /// The process id of the other process, from the lock file.
        holder: String,
    },
    /// Another version of Weir has written the file.
    Schema {
        /// The file.
        file: PathBuf,
        /// The schema of the file.
        found: u32,
    },
    /// A folder in which a store is to be made from a backup, or in the place of a lost one, has state.
    Exists {
        /// The file with it.
        file: PathBuf,
    },
    /// The backup cannot be restored.
    Backup {
        /// The file.
        file: PathBuf,
        /// The error of the backup.
        why: BackupError,
    },
    /// The file system reports an error.
    Io {
        /// The operation.
        doing: String,
        /// The error of the operating system.
        error: String,
    },
    /// The database reports a failure while in use.
    Database(String),
    /// All 32,767 tenant numbers belong to configured tenants, or to tenants with rules on switches.
    NoTenantIds,
    /// The store has been closed.
    Closed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Locked { dir, holder } => {
                write!(
                    f,
                    "the state directory {} is in use by another weir (process {holder})",
                    dir.display()
                )
            }
            StoreError::Schema { file, found } => {
                let file = file.display();
                write!(f, "{file} has schema {found}; this weir reads schema {}", SCHEMA)
            }
            StoreError::Exists { file } => {
                let file = file.display();
                write!(
                    f,
                    "{file} is there already: --restore and --adopt need a folder without state"
                )
            }
            StoreError::Backup { file, why } => {
                write!(f, "{} cannot be restored: {why}", file.display())
            }
            StoreError::Io { doing, error } => write!(f, "{doing}: {error}"),
            StoreError::Database(error) => write!(f, "the state database fails: {error}"),
            StoreError::NoTenantIds => {
                f.write_str("no tenant number is free: all 32767 have rules on switches")
            }
            StoreError::Closed => f.write_str("the store is closed"),
        }
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    pub(super) fn io(doing: impl Into<String>, error: &io::Error) -> Self {
        StoreError::Io { doing: doing.into(), error: error.to_string() }
    }
}

/// The reason why a file is no usable backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupError {
    /// The file is no backup.
    NoBackup,
    /// Another version of Weir has written the backup.
    Format(String),
    /// The contents have another schema.
    Schema(u32),
    /// The backup is truncated or modified.
    Damaged,
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::NoBackup => f.write_str("it is no backup of Weir's"),
            BackupError::Format(found) => {
                write!(
                    f,
                    "it is a backup of format {found}; this weir reads format {BACKUP_FORMAT}"
                )
            }
            BackupError::Schema(found) => {
                write!(f, "it holds schema {found}; this weir reads schema {SCHEMA}")
            }
            BackupError::Damaged => f.write_str("it is damaged, or cut off"),
        }
    }
}
