//! The file with the tables (`schema`): opens, reads and writes it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use hypervisor::Installation;
use hypervisor::policy::TenantId;
use hypervisor::store::{StoreKey, StoreOp};
use redb::{
    DatabaseError, Durability, ReadableDatabase, ReadableTable, StorageError, WriteTransaction,
};

use super::adoption::adopt;
use super::backend::{Backend, SyncerThread};
use super::backup::{Snapshot, restore};
use super::batch::{Batch, Stored};
use super::error::StoreError;
use super::journal;
use super::schema::{COMMITTED, DOCUMENTS, GENERATION, ITEMS, META, SCHEMA, TENANTS};
use super::sync::Sync;
use crate::system::{open_private, random};

/// The database, in the state folder.
const FILE: &str = "weir.redb";

/// Bytes that an item counts in addition to its value: its key, and the overhead of both.
const ITEM: u64 = 64;

/// The memory for redb's pages. The working set is the path to the changed entries.
const CACHE_BYTES: usize = 8 << 20;

/// An open database. Owned by the store thread.
pub(super) struct Database {
    dir: PathBuf,
    sync: Sync,
    secret: [u8; 16],
    generation: u64,
    /// Bytes of each tenant's items.
    usage: BTreeMap<TenantId, u64>,
    // These fields must be dropped in this order: database, then its fsync thread, then the lock.
    redb: Option<redb::Database>,
    syncer: Option<SyncerThread>,
    _lock: File,
}

impl Database {
    pub(super) fn open(dir: &Path, sync: Sync) -> Result<Database, StoreError> {
        let lock = take_folder(dir)?;
        let mut database = Database {
            dir: dir.to_owned(),
            sync,
            secret: [0; 16],
            generation: 0,
            usage: BTreeMap::new(),
            redb: None,
            syncer: None,
            _lock: lock,
        };
        match database.reopen() {
            Err(Failure::Damaged(why)) => {
                let aside = set_aside(dir)?;
                tracing::error!(
                    why,
                    set_aside = %aside.display(),
                    "the state database is damaged; it was set aside and a new one begun: Weir leaves the rules \
                     that are on the switches now; --restore brings a backup back, and --adopt makes entries of the \
                     rules, each in a new --state folder"
                );
                database.reopen().map_err(|failure| failure.into_error(&database.file()))?;
            }
            Err(failure) => return Err(failure.into_error(&database.file())),
            Ok(()) => {}
        }
        database.usage = database.count_usage().map_err(database_error)?;
        database.begin_generation()?;
        Ok(database)
    }

    /// Fills a folder that has no database from a backup.
    pub(super) fn restore(dir: &Path, backup: &Path) -> Result<(), StoreError> {
        let _lock = take_folder(dir)?;
        restore(&dir.join(FILE), backup)
    }

    /// Makes the database of a folder that has none, in the place of a lost one.
    pub(super) fn adopt(dir: &Path, installation: Installation) -> Result<(), StoreError> {
        let _lock = take_folder(dir)?;
        // One of some 4,096 secrets has this number.
        let secret = loop {
            let secret = new_secret()?;
            if Installation::of_secret(&secret) == installation {
                break secret;
            }
        };
        adopt(&dir.join(FILE), &secret)
    }

    /// Takes in what journals hold that were left by a process that was killed, and lets new ones begin.
    fn begin_generation(&mut self) -> Result<(), StoreError> {
        let (generation, committed) = self.committed().map_err(database_error)?;
        if let Some(generation) = generation {
            let newest = |shard| committed.get(&shard).copied().unwrap_or(0);
            let missing = journal::read(&self.dir, generation, newest)?;
            if !missing.is_empty() {
                self.apply(&missing)?;
                tracing::info!(batches = missing.len(), "changes were taken in from the journals");
            }
        }
        let new = new_secret()?;
        let generation = u64::from_be_bytes(new[..8].try_into().unwrap_or_default());
        self.write(|transaction| {
            transaction
                .open_table(META)?
                .insert(GENERATION, generation.to_be_bytes().as_slice())?;
            transaction.open_table(COMMITTED)?.retain(|_, _| false)?;
            Ok(())
        })?;
        // The database is synced before the journals change.
        self.sync_now()?;
        journal::remove(&self.dir)?;
        self.generation = generation;
        Ok(())
    }

    /// The generation of the journals, and the newest stored batch of each shard.
    fn committed(&self) -> Result<(Option<u64>, BTreeMap<u32, u64>), redb::Error> {
        let transaction = self.redb()?.begin_read()?;
        let generation = transaction.open_table(META)?.get(GENERATION)?;
        let generation = generation.and_then(|bytes| bytes.value().try_into().ok());
        let committed = transaction.open_table(COMMITTED)?;
        let rows =
            committed.iter()?.map(|row| row.map(|(shard, seq)| (shard.value(), seq.value())));
        Ok((generation.map(u64::from_be_bytes), rows.collect::<Result<_, _>>()?))
    }

    /// The folder and generation of journals, if journals are used.
    pub(super) fn journals(&self) -> Option<(PathBuf, u64)> {
        // With `Sync::Always` changes wait for the disk, so journals have no use.
        (self.sync != Sync::Always).then(|| (self.dir.clone(), self.generation))
    }

    pub(super) fn secret(&self) -> [u8; 16] {
        self.secret
    }

    /// Opens the file again, which is necessary after a failed commit: redb refuses further commits.
    pub(super) fn recover(&mut self) -> Result<(), StoreError> {
        self.reopen().map_err(|failure| failure.into_error(&self.file()))
    }

    /// Simulates a failed commit, after which the file has to be opened again.
    #[cfg(test)]
    pub(super) fn close(&mut self) {
        (self.redb, self.syncer) = (None, None);
    }

    fn file(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The stored bytes of each tenant.
    pub(super) fn usage(&self) -> &BTreeMap<TenantId, u64> {
        &self.usage
    }

    /// A snapshot of the store, which is not changed by later commits.
    pub(super) fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let read = || Ok(self.redb()?.begin_read()?);
        read().map(Snapshot::new).map_err(database_error)
    }

    fn reopen(&mut self) -> Result<(), Failure> {
        self.redb = None;
        self.syncer = None;
        let file = open_private(&self.file()).map_err(|error| Failure::Io("opening", error))?;
        let (backend, syncer) =
            Backend::new(file, self.sync).map_err(|error| Failure::Io("opening", error))?;
        // A damaged file can violate assertions in redb; this is an error of the file, and no reason to end.
        let opened = panic::catch_unwind(AssertUnwindSafe(|| open_checked(backend)));
        let (redb, secret) =
            opened.unwrap_or_else(|_| Err(Failure::Damaged("it cannot be read".to_owned())))?;
        (self.redb, self.syncer, self.secret) = (Some(redb), syncer, secret);
        Ok(())
    }

    fn redb(&self) -> Result<&redb::Database, StoreError> {
        self.redb
            .as_ref()
            .ok_or_else(|| StoreError::Database("it could not be opened again".to_owned()))
    }

    /// Stores changes of shards, all or none.
    pub(super) fn apply(&mut self, batches: &[(u32, Batch)]) -> Result<(), StoreError> {
        let mut grown: BTreeMap<TenantId, i64> = BTreeMap::new();
        let mut count = |tenant, before: Option<usize>, now: Option<usize>| {
            let bytes = |length: Option<usize>| length.map_or(0, |it| (it as u64 + ITEM) as i64);
            *grown.entry(tenant).or_default() += bytes(now) - bytes(before);
        };
        self.write(|transaction| {
            let mut items = transaction.open_table(ITEMS)?;
            let mut newest = BTreeMap::new();
            for (shard, Batch { seq, dpid, ops }) in batches {
                newest.insert(*shard, *seq);
                for op in ops {
                    let (key, now) = match op {
                        StoreOp::Put(key, value) => (key, Some(value)),
                        StoreOp::Delete(key) => (key, None),
                    };
                    let place = (*dpid, key.tenant.0, key.item);
                    let before = match now {
                        Some(value) => items.insert(place, value.as_slice())?,
                        None => items.remove(place)?,
                    };
                    let before = before.map(|value| value.value().len());
                    count(key.tenant, before, now.map(Vec::len));
                }
            }
            let mut committed = transaction.open_table(COMMITTED)?;
            for (shard, seq) in newest {
                committed.insert(shard, seq)?;
            }
            Ok(())
        })?;
        for (tenant, grown) in grown {
            let bytes = self.usage.entry(tenant).or_default();
            *bytes = bytes.saturating_add_signed(grown);
        }
        Ok(())
    }

    fn count_usage(&self) -> Result<BTreeMap<TenantId, u64>, redb::Error> {
        let items = self.redb()?.begin_read()?.open_table(ITEMS)?;
        let mut usage = BTreeMap::new();
        for row in items.iter()? {
            let (key, value) = row?;
            let bytes: &mut u64 = usage.entry(TenantId(key.value().1)).or_default();
            *bytes += value.value().len() as u64 + ITEM;
        }
        Ok(usage)
    }

    pub(super) fn load(&self, dpid: u64) -> Result<Vec<Stored>, StoreError> {
        let read = || -> Result<Vec<Stored>, redb::Error> {
            let items = self.redb()?.begin_read()?.open_table(ITEMS)?;
            let mut stored = Vec::new();
            for row in items.range((dpid, 0, 0)..=(dpid, u16::MAX, u64::MAX))? {
                let (key, value) = row?;
                let (_, tenant, item) = key.value();
                stored.push((StoreKey { tenant: TenantId(tenant), item }, value.value().to_vec()));
            }
            Ok(stored)
        };
        read().map_err(database_error)
    }

    pub(super) fn document(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            let documents = self.redb()?.begin_read()?.open_table(DOCUMENTS)?;
            Ok(documents.get(name)?.map(|document| document.value().to_vec()))
        };
        read().map_err(database_error)
    }

    pub(super) fn put_document(&self, name: &str, document: &[u8]) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.open_table(DOCUMENTS)?.insert(name, document)?;
            Ok(())
        })
    }

    pub(super) fn tenant_ids(&self, names: &[&str]) -> Result<Vec<TenantId>, StoreError> {
        let known = self.known_tenants().map_err(database_error)?;
        // If this cannot be found out, all numbers count as in use, so no tenant loses its number.
        let used = || self.tenants_in_use().unwrap_or_else(|_| (0..=u16::MAX).collect());
        let (ids, changes) = allocate(&known, names, used)?;
        if !changes.assign.is_empty() {
            self.write(|transaction| {
                let mut tenants = transaction.open_table(TENANTS)?;
                for name in &changes.forget {
                    tenants.remove(name.as_str())?;
                }
                for (name, id) in &changes.assign {
                    tenants.insert(name.as_str(), id)?;
                }
                Ok(())
            })?;
            self.sync_now()?;
        }
        Ok(ids)
    }

    fn sync_now(&self) -> Result<(), StoreError> {
        let file = File::open(self.file()).and_then(|file| file.sync_data());
        file.map_err(|error| StoreError::io("fsync of the state database", &error))
    }

    fn known_tenants(&self) -> Result<HashMap<String, u16>, redb::Error> {
        let tenants = self.redb()?.begin_read()?.open_table(TENANTS)?;
        let rows = tenants.iter()?;
        rows.map(|row| {
            row.map(|(name, id)| (name.value().to_owned(), id.value())).map_err(redb::Error::from)
        })
        .collect()
    }

    fn tenants_in_use(&self) -> Result<HashSet<u16>, redb::Error> {
        let items = self.redb()?.begin_read()?.open_table(ITEMS)?;
        let rows = items.iter()?;
        rows.map(|row| row.map(|(key, _)| key.value().1).map_err(redb::Error::from)).collect()
    }

    fn write(
        &self,
        change: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        let commit = || -> Result<(), redb::Error> {
            let mut transaction = self.redb()?.begin_write()?;
            transaction.set_durability(Durability::Immediate)?;
            change(&transaction)?;
            transaction.commit()?;
            Ok(())
        };
        commit().map_err(database_error)
    }
}

fn database_error(error: redb::Error) -> StoreError {
    StoreError::Database(error.to_string())
}

impl From<StoreError> for redb::Error {
    fn from(error: StoreError) -> Self {
        redb::Error::Io(io::Error::other(error))
    }
}

/// The reason why a file could not be opened.
enum Failure {
    /// The contents are damaged.
    Damaged(String),
    /// Another version of Weir has written the file.
    Schema(u32),
    /// The file system refuses the access; the contents may be correct.
    Io(&'static str, io::Error),
}

impl Failure {
    fn into_error(self, file: &Path) -> StoreError {
        match self {
            Failure::Damaged(why) => StoreError::Database(why),
            Failure::Schema(found) => StoreError::Schema { file: file.to_owned(), found },
            Failure::Io(doing, error) => {
                StoreError::io(format!("{doing} {}", file.display()), &error)
            }
        }
    }
}

impl From<redb::Error> for Failure {
    fn from(error: redb::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        match error {
            // The error kinds of redb for invalid contents.
            redb::Error::Io(error)
                if ![InvalidData, InvalidInput, UnexpectedEof, Other].contains(&error.kind()) =>
            {
                Failure::Io("reading", error)
            }
            other => Failure::Damaged(other.to_string()),
        }
    }
}

/// Opens a database, verifies every page, and creates the tables of a new database.
fn open_checked(backend: Backend) -> Result<(redb::Database, [u8; 16]), Failure> {
    let mut builder = redb::Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    let mut database = builder.create_with_backend(backend).map_err(redb::Error::from)?;
    match database.check_integrity() {
        Ok(true) => {}
        Ok(false) => {
            tracing::warn!("the state database was not closed properly and has been repaired")
        }
        Err(DatabaseError::Storage(StorageError::Io(error))) => {
            return Err(Failure::Io("checking", error));
        }
        Err(error) => return Err(Failure::Damaged(error.to_string())),
    }
    let secret = initialize(&database)?;
    Ok((database, secret))
}

fn initialize(database: &redb::Database) -> Result<[u8; 16], Failure> {
    let transaction = database.begin_write().map_err(redb::Error::from)?;
    let secret = {
        let mut meta = transaction.open_table(META).map_err(redb::Error::from)?;
        transaction.open_table(TENANTS).map_err(redb::Error::from)?;
        transaction.open_table(ITEMS).map_err(redb::Error::from)?;
        transaction.open_table(DOCUMENTS).map_err(redb::Error::from)?;
        transaction.open_table(COMMITTED).map_err(redb::Error::from)?;
        let get = |key| -> Result<Option<Vec<u8>>, redb::Error> {
            Ok(meta.get(key)?.map(|v| v.value().to_vec()))
        };
        match (get("schema")?, get("secret")?) {
            (None, None) => {
                let secret = new_secret()
                    .map_err(|error| Failure::Io("seeding", io::Error::other(error)))?;
                meta.insert("schema", SCHEMA.to_be_bytes().as_slice())
                    .map_err(redb::Error::from)?;
                meta.insert("secret", secret.as_slice()).map_err(redb::Error::from)?;
                secret
            }
            (Some(schema), secret) => {
                let bytes = schema
                    .try_into()
                    .map_err(|_| Failure::Damaged("its schema is no number".to_owned()))?;
                match u32::from_be_bytes(bytes) {
                    SCHEMA => {}
                    other => return Err(Failure::Schema(other)),
                }
                let secret = secret.and_then(|bytes| bytes.try_into().ok());
                secret.ok_or_else(|| Failure::Damaged("its secret is missing".to_owned()))?
            }
            (None, Some(_)) => return Err(Failure::Damaged("its schema is missing".to_owned())),
        }
    };
    transaction.commit().map_err(redb::Error::from)?;
    Ok(secret)
}

/// Creates the directory if necessary, and locks it for this process.
fn take_folder(dir: &Path) -> Result<File, StoreError> {
    let doing = || format!("making the state directory {}", dir.display());
    // The directory is for Weir's user only, because it contains the secret.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| StoreError::io(doing(), &error))?;
    lock(dir)
}

/// Locks the directory for this process, as long as the returned file is open.
fn lock(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let doing = || format!("locking {}", path.display());
    let mut file = open_private(&path).map_err(|error| StoreError::io(doing(), &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The process id of the holder only improves the message.
            let _ = file.take(32).read_to_string(&mut holder);
            return Err(StoreError::Locked {
                dir: dir.to_owned(),
                holder: holder.trim().to_owned(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::io(doing(), &error)),
    }
    let write = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    write.map_err(|error| StoreError::io(doing(), &error))?;
    Ok(file)
}

/// Renames the database to the first free `weir.redb.damaged-N`.
fn set_aside(dir: &Path) -> Result<PathBuf, StoreError> {
    let free =
        (1..).map(|n| dir.join(format!("weir.redb.damaged-{n}"))).find(|path| !path.exists());
    let aside = free.unwrap_or_else(|| dir.join("weir.redb.damaged"));
    let renamed = fs::rename(dir.join(FILE), &aside);
    renamed.map_err(|error| StoreError::io("setting the damaged state database aside", &error))?;
    Ok(aside)
}

/// Sixteen bytes from the kernel's generator.
pub(super) fn new_secret() -> Result<[u8; 16], StoreError> {
    random().map_err(|error| StoreError::io("reading /dev/urandom", &error))
}

/// The changes of [`allocate`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) forget: Vec<String>,
    pub(super) assign: Vec<(String, u16)>,
}

/// Numbers for names: the known number, otherwise a number above all earlier numbers, otherwise a number that no stored
/// item has `used` and whose name is not requested.
pub(super) fn allocate(
    known: &HashMap<String, u16>,
    names: &[&str],
    used: impl FnOnce() -> HashSet<u16>,
) -> Result<(Vec<TenantId>, Changes), StoreError> {
    let mut changes = Changes::default();
    let mut next = known.values().copied().max().unwrap_or(0);
    let mut used = Some(used);
    let mut spare: Vec<(&String, u16)> = Vec::new();
    let mut given: HashMap<&str, u16> = HashMap::new();
    let mut ids = Vec::with_capacity(names.len());
    for &name in names {
        let id = if let Some(&id) = known.get(name).or_else(|| given.get(name)) {
            id
        } else if let Some(above) = next.checked_add(1).filter(|it| *it <= TenantId::LAST.0) {
            next = above;
            changes.assign.push((name.to_owned(), above));
            above
        } else {
            if let Some(used) = used.take() {
                let used = used();
                let asked: HashSet<&str> = names.iter().copied().collect();
                let free = known
                    .iter()
                    .filter(|(name, id)| !asked.contains(name.as_str()) && !used.contains(id));
                spare = free.map(|(name, &id)| (name, id)).collect();
                spare.sort_by_key(|&(_, id)| std::cmp::Reverse(id));
            }
            let (old, id) = spare.pop().ok_or(StoreError::NoTenantIds)?;
            changes.forget.push(old.clone());
            changes.assign.push((name.to_owned(), id));
            id
        };
        given.insert(name, id);
        ids.push(TenantId(id));
    }
    Ok((ids, changes))
}
