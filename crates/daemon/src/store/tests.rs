//! Tests of the store without crashes. `tests/store_crash.rs` has the tests with crashes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};

use hypervisor::store::{StoreKey, StoreOp};

use super::database::{Changes, allocate};
use super::queue::QUEUE;
use super::schema::SCHEMA;
use super::*;
use crate::logging::Format;
use crate::logging::tests::logged_of;

mod backup;

/// A folder that is deleted when this value is dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("weir-store-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Opens a store, and waits while the folder is locked. A program that another test starts at the same time inherits
/// the files of this process, with the lock of an earlier store, until the program runs.
fn open(dir: &Path) -> Store {
    let mut tries = (0..100).map(|at| {
        std::thread::sleep(Duration::from_millis(20 * u64::from(at > 0)));
        Store::open(dir, Sync::default(), Registry::new())
    });
    let is_locked = |it: &Result<Store, StoreError>| matches!(it, Err(StoreError::Locked { .. }));
    tries.find(|it| !is_locked(it)).expect("no longer locked").unwrap()
}

fn key(tenant: u16, item: u64) -> StoreKey {
    StoreKey { tenant: TenantId(tenant), item }
}

fn put(tenant: u16, item: u64, value: &str) -> StoreOp {
    StoreOp::Put(key(tenant, item), value.as_bytes().to_vec())
}

/// The result of the work, which must end within a minute.
pub(crate) fn done<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, done) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(work())));
    done.recv_timeout(Duration::from_secs(60)).expect("is not kept waiting")
}

/// Documents of an empty store. `put` replaces the writes: `put` returns the result of each write under a name.
pub(crate) fn documents(
    mut put: impl FnMut(&str) -> Result<(), StoreError> + Send + 'static,
) -> Documents {
    let (asker, mut queue) = queue::queue();
    std::thread::spawn(move || {
        while let Some(command) = queue.next() {
            match command {
                Command::Document { reply, .. } => drop(reply.send(Ok(None))),
                Command::PutDocument { name, reply, .. } => drop(reply.send(put(&name))),
                _ => {}
            }
        }
    });
    Documents(Inner::Disk(asker))
}

/// Pushes batches numbered from 1, and waits until all are stored.
fn store_all(store: &Store, batches: Vec<(u64, Vec<StoreOp>)>) -> (ShardStore, Receiver<Event>) {
    let (sender, events) = mpsc::channel();
    let mut shard = store.register(move |event| drop(sender.send(event))).unwrap();
    let last = batches.len() as u64;
    let mut later = false;
    for (seq, (dpid, ops)) in (1..).zip(batches) {
        later = shard.push(Batch { seq, dpid, ops }).unwrap() == Pushed::Journaled;
    }
    while later && events.recv().unwrap() != Event::Stored(last) {}
    (shard, events)
}

fn stored(store: &Store, dpid: u64) -> Vec<(u16, u64, String)> {
    let rows = store.load(dpid).unwrap();
    rows.into_iter()
        .map(|(key, value)| (key.tenant.0, key.item, String::from_utf8(value).unwrap()))
        .collect()
}

#[test]
fn stores_on_disk_and_in_memory_give_the_same_results() {
    let folder = Folder::new("same");
    for store in [Store::memory().unwrap(), open(&folder.0)] {
        assert_eq!(
            store.tenant_ids(&["red", "blue", "red"]).unwrap(),
            [TenantId(1), TenantId(2), TenantId(1)]
        );
        assert_eq!(store.tenant_ids(&["green", "red"]).unwrap(), [TenantId(3), TenantId(1)]);
        let (shard, events) = store_all(
            &store,
            vec![
                (9, vec![put(2, 1, "b1"), put(1, u64::MAX, "a-last"), put(1, 5, "a5")]),
                (8, vec![put(1, 5, "other switch")]),
                (10, vec![put(1, 5, "another")]),
                (
                    9,
                    vec![
                        put(1, 5, "a5 again"),
                        StoreOp::Delete(key(2, 1)),
                        StoreOp::Delete(key(3, 3)),
                    ],
                ),
                (9, vec![put(2, 0, "b0"), put(2, 7, "gone"), StoreOp::Delete(key(2, 7))]),
            ],
        );
        let expected = [(1, 5, "a5 again"), (1, u64::MAX, "a-last"), (2, 0, "b0")];
        let expected: Vec<_> = expected.iter().map(|&(t, i, v)| (t, i, v.to_owned())).collect();
        assert_eq!(stored(&store, 9), expected);
        assert_eq!(stored(&store, 8), [(1, 5, "other switch".to_owned())]);
        assert_eq!(stored(&store, 1), []);
        let loaded = match shard.load(9).unwrap() {
            Done::Now(rows) => rows,
            Done::Later => match events.recv().unwrap() {
                Event::Loaded { dpid: 9, stored } => stored.unwrap(),
                other => panic!("{other:?}"),
            },
        };
        assert_eq!(loaded, store.load(9).unwrap());
    }
}

#[test]
fn a_load_returns_batches_pushed_earlier_by_another_shard() {
    let folder = Folder::new("order");
    let store = open(&folder.0);
    let mut first = store.register(|_| {}).unwrap();
    let (sender, events) = mpsc::channel();
    let second = store.register(move |event| drop(sender.send(event))).unwrap();
    for seq in 1..=50 {
        assert_eq!(
            first.push(Batch { seq, dpid: 1, ops: vec![put(1, seq, "x")] }),
            Ok(Pushed::Journaled)
        );
    }
    assert_eq!(second.load(1), Ok(Done::Later));
    let Event::Loaded { dpid: 1, stored: Ok(rows) } = events.recv().unwrap() else { panic!() };
    assert_eq!(rows.len(), 50);
}

#[test]
fn secret_tenant_ids_and_items_survive_a_restart() {
    let folder = Folder::new("restart");
    let (secret, ids) = {
        let store = open(&folder.0);
        store_all(&store, vec![(1, vec![put(1, 1, "kept")])]);
        (store.secret(), store.tenant_ids(&["a", "b", "c"]).unwrap())
    };
    let store = open(&folder.0);
    assert_eq!(store.secret(), secret);
    assert_ne!(secret, [0; 16]);
    assert_eq!(
        store.tenant_ids(&["c", "new", "a", "b"]).unwrap(),
        [ids[2], TenantId(4), ids[0], ids[1]]
    );
    assert_eq!(stored(&store, 1), [(1, 1, "kept".to_owned())]);
    assert!(!folder.0.join("weir.redb.damaged-1").exists());
}

#[test]
fn state_folder_and_database_are_accessible_only_to_the_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("mode");
    drop(open(&folder.0));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder.0), mode(&folder.0.join("weir.redb"))), (0o700, 0o600));
}

#[test]
fn waiting_batches_are_stored_in_a_single_commit() {
    let folder = Folder::new("group");
    let registry = Registry::new();
    let store = Store::open(&folder.0, Sync::default(), Arc::clone(&registry)).unwrap();
    let (sender, events) = mpsc::channel();
    let (gate, open_gate) = mpsc::channel::<()>();
    // The callback blocks the store thread after the first commit, so that further batches have to wait.
    let shard = store.register(move |event| {
        let _ = sender.send(event);
        let _ = open_gate.recv();
    });
    let mut shard = shard.unwrap();
    let mut push = |seq| shard.push(Batch { seq, dpid: 1, ops: vec![put(1, seq, "x")] });
    assert_eq!(push(1), Ok(Pushed::Journaled));
    assert_eq!(events.recv(), Ok(Event::Stored(1)));
    let mut seq = 1;
    while push(seq + 1).is_ok() {
        seq += 1;
    }
    assert_eq!(seq, 1 + QUEUE as u64, "the queue is bounded, and a full one hands the batch back");
    drop(gate);
    assert_eq!(events.recv(), Ok(Event::Stored(seq)), "one acknowledgement for all");
    assert_eq!(registry.process.store_commit.snapshot().count(), 2);
    assert_eq!(registry.process.store_changes.get(), seq);
}

/// A copy of the folder of a store, as if the process had been killed: the store thread is blocked after the first
/// commit, and ten more batches have been pushed.
fn killed(name: &str) -> Folder {
    let (folder, left) = (Folder::new(name), Folder::new(&format!("{name}-left")));
    let store = open(&folder.0);
    let (sender, events) = mpsc::channel();
    let (gate, open_gate) = mpsc::channel::<()>();
    let shard = store.register(move |event| {
        let _ = sender.send(event);
        let _ = open_gate.recv();
    });
    let mut shard = shard.unwrap();
    for seq in 1..=11 {
        let batch =
            Batch { seq, dpid: 1, ops: vec![put(1, seq, "x"), put(2, 0, &seq.to_string())] };
        assert_eq!(shard.push(batch), Ok(Pushed::Journaled));
        if seq == 1 {
            assert_eq!(events.recv(), Ok(Event::Stored(1)));
        }
    }
    copy(&folder.0, &left.0);
    drop(gate);
    left
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The stored items after the batches 1 to `last`.
fn until(last: u64) -> Vec<(u16, u64, String)> {
    let own = (1..=last).map(|seq| (1, seq, "x".to_owned()));
    own.chain([(2, 0, last.to_string())]).collect()
}

#[test]
fn batches_found_only_in_a_journal_are_applied_at_the_next_start() {
    let folder = killed("journaled");
    let journal = fs::read(folder.0.join("journal-0")).unwrap();
    let mut taken_in = Vec::new();
    let log = logged_of(Format::Text, None, || taken_in = stored(&open(&folder.0), 1));
    assert_eq!(taken_in, until(11));
    let line = log.lines().find(|line| line.contains("taken in from the journals"));
    assert!(
        line.is_some_and(|line| line.contains("INFO") && line.ends_with("batches=10")),
        "{log}"
    );
    assert!(!folder.0.join("journal-0").exists());
    // The journal of an earlier generation is ignored, so the newer items stay.
    store_all(&open(&folder.0), vec![(1, vec![put(2, 0, "newer"), StoreOp::Delete(key(1, 5))])]);
    fs::write(folder.0.join("journal-0"), journal).unwrap();
    let mut expected = until(11);
    expected.remove(4);
    expected[10].2 = "newer".to_owned();
    assert_eq!(stored(&open(&folder.0), 1), expected);
}

#[test]
fn the_valid_beginning_of_a_damaged_journal_is_applied() {
    let left = killed("torn");
    let good = fs::read(left.0.join("journal-0")).unwrap();
    let mut lasts = HashSet::new();
    for at in (0..good.len()).step_by(23) {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        for bytes in [&good[..at], &flipped] {
            let folder = Folder::new("torn-again");
            copy(&left.0, &folder.0);
            fs::write(folder.0.join("journal-0"), bytes).unwrap();
            let found = stored(&open(&folder.0), 1);
            let last = found.len() as u64 - 1;
            assert_eq!(found, until(last), "byte {at}");
            lasts.insert(last);
        }
    }
    assert!((1..=10).all(|last| lasts.contains(&last)), "{lasts:?}");
}

#[test]
fn with_sync_always_no_journal_is_written() {
    let folder = Folder::new("no-journal");
    let store = Store::open(&folder.0, Sync::Always, Registry::new()).unwrap();
    let (sender, events) = mpsc::channel();
    let mut shard = store.register(move |event| drop(sender.send(event))).unwrap();
    let batch = Batch { seq: 1, dpid: 1, ops: vec![put(1, 1, "x")] };
    assert_eq!(shard.push(batch), Ok(Pushed::Later));
    assert_eq!(events.recv(), Ok(Event::Stored(1)));
    assert!(!folder.0.join("journal-0").exists());
}

#[test]
fn a_full_store_queue_of_a_shard_does_not_delay_another_shard() {
    let folder = Folder::new("shards");
    let store = open(&folder.0);
    let (sender, events) = mpsc::channel();
    let (gate, open_gate) = mpsc::channel::<()>();
    let hostile = store.register(move |event| {
        let _ = sender.send(event);
        let _ = open_gate.recv();
    });
    let (mut hostile, mut quiet) = (hostile.unwrap(), store.register(|_| {}).unwrap());
    let large = |seq: u64| {
        let ops = (0..500).map(|item| put(1, item, &seq.to_string())).collect();
        Batch { seq, dpid: 1, ops }
    };
    assert_eq!(hostile.push(large(1)), Ok(Pushed::Journaled));
    assert_eq!(events.recv(), Ok(Event::Stored(1)));
    // The store thread is blocked now.
    let pushed: Vec<_> =
        (2..).map(|seq| hostile.push(large(seq))).take_while(Result::is_ok).collect();
    assert_eq!(pushed.len(), QUEUE);
    assert!(pushed.contains(&Ok(Pushed::Later)), "its journal is full, too");
    for seq in 1..=10 {
        let batch = Batch { seq, dpid: 2, ops: vec![put(2, seq, "x")] };
        assert_eq!(quiet.push(batch), Ok(Pushed::Journaled));
    }
    drop(gate);
    assert_eq!(stored(&store, 2).len(), 10);
}

#[test]
fn while_the_store_pauses_changes_wait_and_other_requests_are_answered() {
    let (folder, away) = (Folder::new("rests"), Folder::new("rests-away"));
    let mut database = Database::open(&folder.0, Sync::default()).unwrap();
    database.close();
    fs::rename(&folder.0, &away.0).unwrap();
    // The store thread pauses for longer than any test runs. If the test fails, the store is not dropped, so the test
    // does not wait for the thread.
    let store = Store::start(database, Duration::from_secs(36_000), Registry::new()).unwrap();
    let store = ManuallyDrop::new(store);
    let (sender, events) = mpsc::channel();
    let mut shard = store.register(move |event| drop(sender.send(event))).unwrap();
    let batch = |seq: usize| {
        let (newest, own) = (put(1, 0, &seq.to_string()), put(2, seq as u64, "x"));
        Batch { seq: seq as u64, dpid: 1, ops: vec![newest, own] }
    };
    assert_eq!(shard.push(batch(1)), Ok(Pushed::Later), "its folder was away when it began");
    assert_eq!(events.recv(), Ok(Event::Failed(batch(1))));
    // The test pushes the failed batch and further batches until the queue is full.
    let last = (1..).find(|seq| shard.push(batch(*seq)).is_err()).unwrap() - 1;
    assert_eq!((last, shard.load(1)), (QUEUE, Err(Full(1))));
    let documents = store.documents();
    let put_one = move || documents.put("name", b"one".to_vec());
    assert!(done(put_one.clone()).is_err(), "there is no file");
    fs::rename(&away.0, &folder.0).unwrap();
    // The folder is back. The next write still fails, and the write after that succeeds.
    assert!(done(put_one.clone()).is_err());
    assert_eq!(done(put_one), Ok(()));
    let documents = store.documents();
    assert_eq!(done(move || documents.get("name")), Ok(Some(b"one".to_vec())));
    assert!(events.try_recv().is_err(), "it rests still");
    // When the store is dropped, the store thread does not pause.
    done(move || drop(ManuallyDrop::into_inner(store)));
    assert_eq!(events.recv(), Ok(Event::Stored(last as u64)));
    let stored = stored(&open(&folder.0), 1);
    assert_eq!((&stored[0], stored.len()), (&(1, 0, last.to_string()), 1 + QUEUE));
}

#[test]
fn a_tenant_over_the_store_quota_is_full_until_stored_bytes_shrink() {
    let folder = Folder::new("quota");
    let registry = Registry::new();
    let [red, blue] = [1, 2].map(|id| registry.account(TenantId(id)));
    let quota = |bytes| Quota { name: "red".to_owned(), bytes };
    let quotas = || BTreeMap::from([(TenantId(1), quota(1_000)), (TenantId(2), quota(10_000))]);
    let store = Store::open(&folder.0, Sync::default(), Arc::clone(&registry)).unwrap();
    store.set_quotas(quotas());
    let large = "x".repeat(400);
    let (mut shard, events) =
        store_all(&store, vec![(1, vec![put(1, 1, &large), put(2, 1, &large)])]);
    let mut seq = 1;
    let mut push = |dpid, op| {
        seq += 1;
        assert_eq!(shard.push(Batch { seq, dpid, ops: vec![op] }), Ok(Pushed::Journaled));
        assert_eq!(events.recv(), Ok(Event::Stored(seq)));
        // After the answer to a later request, the flags show the result of the change.
        store.load(1).unwrap();
        (red.is_store_full(), blue.is_store_full())
    };
    assert_eq!(push(1, put(1, 2, &large)), (false, false));
    assert_eq!(push(2, put(1, 1, &large)), (true, false), "on another switch");
    assert_eq!(push(2, put(1, 1, "small")), (false, false), "replaced by less");
    assert_eq!(push(2, put(1, 1, &large)), (true, false));
    assert!(registry.account(TenantId(1)).is_store_full(), "also for who asks later");
    assert_eq!(push(1, StoreOp::Delete(key(1, 9))), (true, false), "there is no such thing");
    drop(store);
    // At the next start the store counts the bytes of the stored items.
    let registry = Registry::new();
    let red = registry.account(TenantId(1));
    let store = Store::open(&folder.0, Sync::default(), Arc::clone(&registry)).unwrap();
    store.set_quotas(quotas());
    let (_, _) = store_all(&store, vec![(1, vec![put(2, 2, "x")])]);
    store.load(1).unwrap();
    assert!(red.is_store_full());
    let (_, _) = store_all(&store, vec![(1, vec![StoreOp::Delete(key(1, 1))])]);
    store.load(1).unwrap();
    assert!(!red.is_store_full());
}

#[test]
fn a_damaged_database_is_renamed_and_an_empty_database_is_created() {
    type Damage = (&'static str, fn(&mut Vec<u8>));
    let damages: [Damage; 5] = [
        ("not a database", |bytes| *bytes = b"hello".repeat(1_000)),
        ("cut off", |bytes| bytes.truncate(bytes.len() / 2)),
        ("no header", |bytes| bytes[..512].fill(0)),
        ("noise", |bytes| {
            bytes.iter_mut().enumerate().for_each(|(i, b)| *b ^= (i * 31 % 251) as u8)
        }),
        ("pages lost", |bytes| bytes[4096..].fill(0)),
    ];
    for (what, damage) in damages {
        let folder = Folder::new("damaged");
        let store = open(&folder.0);
        let secret = store.secret();
        store_all(&store, vec![(1, (0..2_000).map(|i| put(1, i, "value")).collect())]);
        drop(store);
        let file = folder.0.join("weir.redb");
        let mut bytes = fs::read(&file).unwrap();
        damage(&mut bytes);
        fs::write(&file, &bytes).unwrap();
        let mut opened = None;
        let log = logged_of(Format::Text, None, || opened = Some(open(&folder.0)));
        let store = opened.unwrap();
        assert_eq!(stored(&store, 1), [], "{what}: a new one is empty");
        // With another secret, Weir is another installation. Weir leaves the rules of other installations on the
        // switches.
        assert_ne!(store.secret(), secret, "{what}");
        for says in ["damaged-1", "leaves the rules", "--restore", "--adopt"] {
            assert!(log.contains(says), "{what}: {log}");
        }
        assert_eq!(
            fs::read(folder.0.join("weir.redb.damaged-1")).unwrap().len(),
            bytes.len(),
            "{what}: kept aside"
        );
        store_all(&store, vec![(1, vec![put(1, 1, "works")])]);
    }
}

/// Each round changes one byte. Either all items can be read, or the file is renamed and the store is empty; the store
/// never returns wrong items.
#[test]
fn a_changed_byte_in_the_database_never_gives_wrong_items() {
    let folder = Folder::new("flipped");
    store_all(&open(&folder.0), vec![(1, (0..300).map(|i| put(1, i, "value")).collect())]);
    let file = folder.0.join("weir.redb");
    let good = fs::read(&file).unwrap();
    let expected = stored(&open(&folder.0), 1);
    let used: Vec<usize> = (0..good.len()).filter(|&at| good[at] != 0).collect();
    for &at in used.iter().step_by(used.len() / 60) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        fs::write(&file, &bytes).unwrap();
        let store = open(&folder.0);
        let aside = folder.0.join("weir.redb.damaged-1");
        let found = stored(&store, 1);
        drop(store);
        match fs::remove_file(&aside) {
            Ok(()) => assert_eq!(found, [], "byte {at}"),
            Err(_) => assert_eq!(found, expected, "byte {at}"),
        }
    }
}

#[test]
fn a_database_with_another_schema_is_refused_and_not_renamed() {
    for found in [SCHEMA - 1, SCHEMA + 1] {
        let folder = Folder::new(&format!("schema-{found}"));
        drop(open(&folder.0));
        {
            let database = redb::Database::open(folder.0.join("weir.redb")).unwrap();
            let transaction = database.begin_write().unwrap();
            let meta = redb::TableDefinition::<&str, &[u8]>::new("meta");
            transaction
                .open_table(meta)
                .unwrap()
                .insert("schema", found.to_be_bytes().as_slice())
                .unwrap();
            transaction.commit().unwrap();
        }
        let error = Store::open(&folder.0, Sync::default(), Registry::new()).err().unwrap();
        assert_eq!(error, StoreError::Schema { file: folder.0.join("weir.redb"), found });
        assert!(!folder.0.join("weir.redb.damaged-1").exists());
    }
}

#[test]
fn a_state_folder_that_cannot_be_created_is_an_error() {
    let error =
        Store::open(Path::new("/proc/weir"), Sync::default(), Registry::new()).err().unwrap();
    assert!(error.to_string().contains("/proc/weir"), "{error}");
}

#[test]
fn tenant_ids_are_reused_only_when_exhausted_and_without_stored_state() {
    let known = |ids: &[(&str, u16)]| -> HashMap<String, u16> {
        ids.iter().map(|&(name, id)| (name.to_owned(), id)).collect()
    };
    let changes = |forget: &[&str], assign: &[(&str, u16)]| Changes {
        forget: forget.iter().map(|&name| name.to_owned()).collect(),
        assign: assign.iter().map(|&(name, id)| (name.to_owned(), id)).collect(),
    };
    type Case<'a> =
        (&'a [(&'a str, u16)], &'a [&'a str], &'a [u16], Result<(Vec<u16>, Changes), StoreError>);
    let cases: [Case<'_>; 6] = [
        (&[], &["a", "b", "a"], &[], Ok((vec![1, 2, 1], changes(&[], &[("a", 1), ("b", 2)])))),
        (&[("a", 3)], &["b"], &[], Ok((vec![4], changes(&[], &[("b", 4)])))),
        (&[("old", 1), ("z", 32767)], &["z"], &[], Ok((vec![32767], changes(&[], &[])))),
        (
            &[("old", 1), ("z", 32767)],
            &["z", "new"],
            &[],
            Ok((vec![32767, 1], changes(&["old"], &[("new", 1)]))),
        ),
        (&[("old", 1), ("z", 32767)], &["z", "new"], &[1], Err(StoreError::NoTenantIds)),
        (
            &[("o1", 1), ("o2", 2), ("o3", 3), ("z", 32767)],
            &["n1", "o3", "n2"],
            &[2],
            Ok((vec![1, 3, 32767], changes(&["o1", "z"], &[("n1", 1), ("n2", 32767)]))),
        ),
    ];
    for (ids, names, used, expected) in cases {
        let used: HashSet<u16> = used.iter().copied().collect();
        let found = allocate(&known(ids), names, || used);
        let found = found
            .map(|(ids, changes)| (ids.into_iter().map(|id| id.0).collect::<Vec<_>>(), changes));
        assert_eq!(found, expected, "{ids:?} {names:?}");
    }
}
