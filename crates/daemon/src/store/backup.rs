//! A copy of the whole store at one moment, as one file, made while Weir runs.
//!
//! ```text
//! "weir-backup 1\n", then records: table u8 (1 meta, 2 tenants, 3 items, 4 documents) │ length of the key u32
//!                                  │ length of the value u32 │ key │ value
//! then the end: 0 u8 │ number of records u64 │ CRC-32 of all before it u32                  in network byte order
//! ```
//!
//! Start reading at [`Snapshot::write`] and [`restore`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::error::{BackupError, StoreError};
use super::schema::{BACKUP_FORMAT, DOCUMENTS, GENERATION, ITEMS, META, SCHEMA, TENANTS};

const MAGIC: &str = "weir-backup ";
const END: u8 = 0;
const PIECE: usize = 64 << 10;

/// The store at one moment.
pub struct Snapshot(ReadTransaction);

impl Snapshot {
    pub(super) fn new(transaction: ReadTransaction) -> Snapshot {
        Snapshot(transaction)
    }

    /// Writes the backup in parts, as long as `take` accepts more.
    pub fn write(&self, take: &mut dyn FnMut(Vec<u8>) -> bool) -> Result<(), StoreError> {
        let mut out =
            Out { piece: format!("{MAGIC}{BACKUP_FORMAT}\n").into_bytes(), ..Out::new(take) };
        self.write_tables(&mut out)
            .map_err(|error| StoreError::Database(format!("it cannot be read: {error}")))?;
        out.end();
        Ok(())
    }

    fn write_tables(&self, out: &mut Out<'_>) -> Result<(), redb::Error> {
        for row in self.0.open_table(META)?.iter()? {
            let (name, value) = row?;
            // The generation belongs to the journals, which are not in the backup.
            if name.value() != GENERATION {
                out.record(1, name.value().as_bytes(), value.value());
            }
        }
        for row in self.0.open_table(TENANTS)?.iter()? {
            let (name, id) = row?;
            out.record(2, name.value().as_bytes(), &id.value().to_be_bytes());
        }
        for row in self.0.open_table(ITEMS)?.iter()? {
            let (key, value) = row?;
            let (dpid, tenant, item) = key.value();
            let parts: [&[u8]; 3] =
                [&dpid.to_be_bytes(), &tenant.to_be_bytes(), &item.to_be_bytes()];
            out.record(3, &parts.concat(), value.value());
        }
        for row in self.0.open_table(DOCUMENTS)?.iter()? {
            let (name, document) = row?;
            out.record(4, name.value().as_bytes(), document.value());
        }
        Ok(())
    }
}

struct Out<'a> {
    take: &'a mut dyn FnMut(Vec<u8>) -> bool,
    piece: Vec<u8>,
    crc: crc32fast::Hasher,
    records: u64,
    is_wanted: bool,
}

impl<'a> Out<'a> {
    fn new(take: &'a mut dyn FnMut(Vec<u8>) -> bool) -> Out<'a> {
        let (piece, crc) = (Vec::new(), crc32fast::Hasher::new());
        Out { take, piece, crc, records: 0, is_wanted: true }
    }

    fn record(&mut self, table: u8, key: &[u8], value: &[u8]) {
        self.records += 1;
        self.piece.push(table);
        self.piece.extend((key.len() as u32).to_be_bytes());
        self.piece.extend((value.len() as u32).to_be_bytes());
        self.piece.extend(key);
        self.piece.extend(value);
        if self.piece.len() >= PIECE {
            self.flush();
        }
    }

    fn end(mut self) {
        self.piece.push(END);
        self.piece.extend(self.records.to_be_bytes());
        self.crc.update(&self.piece);
        let crc = self.crc.clone().finalize();
        self.piece.extend(crc.to_be_bytes());
        self.flush();
    }

    fn flush(&mut self) {
        self.crc.update(&self.piece);
        let piece = std::mem::take(&mut self.piece);
        self.is_wanted = self.is_wanted && (self.take)(piece);
    }
}

/// A record of a backup: table, key, value.
type Record<'a> = (u8, &'a [u8], &'a [u8]);

/// All records of a complete backup.
fn read(bytes: &[u8]) -> Result<Vec<Record<'_>>, BackupError> {
    let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(BackupError::NoBackup)?;
    let line = rest.iter().take(16).position(|byte| *byte == b'\n');
    let (format, rest) = rest.split_at(line.ok_or(BackupError::NoBackup)?);
    if format != BACKUP_FORMAT.as_bytes() {
        return Err(BackupError::Format(String::from_utf8_lossy(format).into_owned()));
    }
    let (checked, crc) = bytes.split_last_chunk::<4>().ok_or(BackupError::Damaged)?;
    if crc32fast::hash(checked) != u32::from_be_bytes(*crc) {
        return Err(BackupError::Damaged);
    }
    records(&rest[1..]).ok_or(BackupError::Damaged)
}

/// The records between the first line and the CRC.
fn records(bytes: &[u8]) -> Option<Vec<Record<'_>>> {
    let (mut rest, mut records) = (bytes, Vec::new());
    loop {
        let (&table, after) = rest.split_first()?;
        if table == END {
            let (count, crc) = after.split_first_chunk()?;
            let is_whole = crc.len() == 4 && u64::from_be_bytes(*count) == records.len() as u64;
            return is_whole.then_some(records);
        }
        let (key, after) = after.split_first_chunk()?;
        let (value, after) = after.split_first_chunk()?;
        let (key, after) = after.split_at_checked(u32::from_be_bytes(*key) as usize)?;
        let (value, after) = after.split_at_checked(u32::from_be_bytes(*value) as usize)?;
        records.push((table, key, value));
        rest = after;
    }
}

/// Whether these bytes are a backup that this Weir can restore.
pub fn check(bytes: &[u8]) -> Result<(), BackupError> {
    let records = read(bytes)?;
    let schema = records.iter().find(|(table, key, _)| (*table, *key) == (1, &b"schema"[..]));
    let schema = schema.and_then(|(.., value)| Some(u32::from_be_bytes((*value).try_into().ok()?)));
    match schema {
        Some(SCHEMA) => Ok(()),
        Some(other) => Err(BackupError::Schema(other)),
        None => Err(BackupError::Damaged),
    }
}

/// Creates the database of an empty folder from a backup.
pub(super) fn restore(database: &Path, backup: &Path) -> Result<(), StoreError> {
    if database.exists() {
        return Err(StoreError::Exists { file: database.to_owned() });
    }
    let doing = || format!("reading {}", backup.display());
    let bytes = fs::read(backup).map_err(|error| StoreError::io(doing(), &error))?;
    let wrong = |why| StoreError::Backup { file: backup.to_owned(), why };
    check(&bytes).map_err(wrong)?;
    let records = read(&bytes).map_err(wrong)?;
    make_whole(database, &records).map_err(|error| match error {
        redb::Error::Corrupted(_) => wrong(BackupError::Damaged),
        error => StoreError::Database(format!("it cannot be restored: {error}")),
    })
}

/// Makes a database of records; it has its name only when it is whole.
pub(super) fn make_whole(database: &Path, records: &[Record<'_>]) -> Result<(), redb::Error> {
    let unfinished = PathBuf::from(format!("{}.restoring", database.display()));
    let made = make(&unfinished, records).and_then(|()| Ok(fs::rename(&unfinished, database)?));
    if made.is_err() {
        // It may not have been made.
        let _ = fs::remove_file(&unfinished);
    }
    made
}

fn make(file: &Path, records: &[Record<'_>]) -> Result<(), redb::Error> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    let database = redb::Database::create(file)?;
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o600))?;
    let transaction = database.begin_write()?;
    for record in records {
        insert(&transaction, record)?
            .ok_or_else(|| redb::Error::Corrupted("a record that nobody writes".to_owned()))?;
    }
    transaction.commit()?;
    Ok(())
}

fn insert(
    transaction: &WriteTransaction,
    (table, key, value): &Record<'_>,
) -> Result<Option<()>, redb::Error> {
    let name = std::str::from_utf8(key).ok();
    match (table, name) {
        (1, Some(name)) => drop(transaction.open_table(META)?.insert(name, value)?),
        (2, Some(name)) => {
            let Ok(id) = (*value).try_into() else { return Ok(None) };
            drop(transaction.open_table(TENANTS)?.insert(name, u16::from_be_bytes(id))?);
        }
        (3, _) => {
            let Some(key) = item(key) else { return Ok(None) };
            drop(transaction.open_table(ITEMS)?.insert(key, value)?);
        }
        (4, Some(name)) => drop(transaction.open_table(DOCUMENTS)?.insert(name, value)?),
        _ => return Ok(None),
    }
    Ok(Some(()))
}

fn item(key: &[u8]) -> Option<(u64, u16, u64)> {
    let (dpid, rest) = key.split_first_chunk()?;
    let (tenant, item) = rest.split_first_chunk()?;
    let item = item.try_into().ok()?;
    Some((u64::from_be_bytes(*dpid), u16::from_be_bytes(*tenant), u64::from_be_bytes(item)))
}
