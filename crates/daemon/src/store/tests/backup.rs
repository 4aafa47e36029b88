//! Tests of backups of a running store, and of the restoration of backups.

use super::*;

/// A store with items of all kinds, and its backup.
fn stored_and_backed_up(folder: &Folder) -> (Store, Vec<u8>) {
    let store = open(&folder.0);
    store.tenant_ids(&["red", "blue"]).unwrap();
    store.documents().put("networks", b"a document".to_vec()).unwrap();
    let many = (0..5_000).map(|item| put(2, item, "value")).collect();
    store_all(&store, vec![(1, vec![put(1, u64::MAX, "last")]), (7, many)]);
    let bytes = backup(&store);
    (store, bytes)
}

fn backup(store: &Store) -> Vec<u8> {
    let snapshot = store.documents().snapshot().unwrap().unwrap();
    written(&snapshot)
}

fn written(snapshot: &Snapshot) -> Vec<u8> {
    let mut bytes = Vec::new();
    snapshot
        .write(&mut |piece| {
            bytes.extend(piece);
            true
        })
        .unwrap();
    bytes
}

fn restore(folder: &Folder, bytes: &[u8]) -> Result<(), StoreError> {
    let file = folder.0.with_extension("backup");
    fs::write(&file, bytes).unwrap();
    let restored = Store::restore(&folder.0, &file);
    fs::remove_file(file).unwrap();
    restored
}

#[test]
fn a_restored_backup_has_the_state_at_the_time_of_the_backup() {
    let (folder, other) = (Folder::new("backup"), Folder::new("restored"));
    let (store, _) = stored_and_backed_up(&folder);
    let snapshot = store.documents().snapshot().unwrap().unwrap();
    let (secret, red, many) = (store.secret(), stored(&store, 1), stored(&store, 7));
    // Changes after the snapshot are not in the backup.
    store_all(&store, vec![(1, vec![put(1, 5, "later")]), (7, vec![StoreOp::Delete(key(2, 9))])]);
    restore(&other, &written(&snapshot)).unwrap();
    let restored = open(&other.0);
    assert_eq!((stored(&restored, 1), stored(&restored, 7)), (red, many));
    assert_eq!(restored.secret(), secret);
    assert_eq!(restored.tenant_ids(&["blue", "red"]).unwrap(), [TenantId(2), TenantId(1)]);
    assert_eq!(restored.documents().get("networks"), Ok(Some(b"a document".to_vec())));
    // The restored store accepts further batches.
    store_all(&restored, vec![(1, vec![put(1, 6, "new")])]);
    assert_eq!(stored(&restored, 1)[0], (1, 6, "new".to_owned()));
    assert_eq!(Store::memory().unwrap().documents().snapshot().map(|it| it.is_some()), Ok(false));
}

#[test]
fn an_invalid_backup_is_refused_and_the_state_folder_is_unchanged() {
    let folder = Folder::new("backup-broken");
    let (store, good) = stored_and_backed_up(&folder);
    drop(store);
    let check = |bytes: &[u8], expected: BackupError| {
        let other = Folder::new("backup-refused");
        let error = restore(&other, bytes).unwrap_err();
        let StoreError::Backup { why, .. } = error else { panic!("{error}") };
        assert_eq!(why, expected);
        assert_eq!(check_backup(bytes), Err(expected));
        let left = fs::read_dir(&other.0).unwrap().map(|it| it.unwrap().file_name());
        assert!(left.eq(["lock"]), "nothing is left of it");
    };
    check(b"", BackupError::NoBackup);
    check(b"something else", BackupError::NoBackup);
    check(b"weir-backup without an end of the line", BackupError::NoBackup);
    check(b"weir-backup 2\nwhatever", BackupError::Format("2".to_owned()));
    check(b"weir-backup 1\n", BackupError::Damaged);
    for at in (15..good.len()).step_by(good.len() / 40) {
        check(&good[..at], BackupError::Damaged);
        let mut flipped = good.clone();
        flipped[at] ^= 0x20;
        check(&flipped, BackupError::Damaged);
    }
    check(&[&good[..], b"more"].concat(), BackupError::Damaged);
    // A complete backup with a newer schema is refused.
    let mut newer = good.clone();
    let at = newer.windows(10).position(|it| it == b"schema\0\0\0\x02").unwrap();
    newer[at + 9] = 3;
    let end = newer.len() - 4;
    let crc = crc32fast::hash(&newer[..end]).to_be_bytes();
    newer[end..].copy_from_slice(&crc);
    check(&newer, BackupError::Schema(3));

    let before = fs::read(folder.0.join("weir.redb")).unwrap();
    let refused = restore(&folder, &good);
    assert_eq!(refused, Err(StoreError::Exists { file: folder.0.join("weir.redb") }));
    assert_eq!(fs::read(folder.0.join("weir.redb")).unwrap(), before);
    let missing = Store::restore(&Folder::new("backup-none").0, Path::new("/no/such/backup"));
    assert!(missing.unwrap_err().to_string().contains("/no/such/backup"));
}

#[test]
fn a_new_store_adopts_the_installation_of_a_lost_store() {
    let folder = Folder::new("adoption");
    let installation = Installation::new(0x5a3).unwrap();
    assert_eq!(Store::memory().unwrap().adopts(), Ok(false));
    Store::adopt(&folder.0, installation).unwrap();
    let again = Store::adopt(&folder.0, installation);
    assert!(matches!(again, Err(StoreError::Exists { .. })), "{again:?}");
    for _ in 0..2 {
        let store = open(&folder.0);
        assert_eq!(Installation::of_secret(&store.secret()), installation);
        assert_eq!(store.adopts(), Ok(true), "also after a restart");
        store_all(&store, vec![(1, vec![put(1, 5, "new")])]);
    }
    let other = Folder::new("adoption-other");
    assert_eq!(open(&other.0).adopts(), Ok(false));
}
