//! The journal of a shard: a file with the changes that the database may not have yet.
//!
//! A FLOW_MOD waits until its change survives the end of the process. One write into the page cache is enough for this,
//! and the shard makes this write itself. The store thread puts the change into the database later. So the file
//! contains the changes in between: records of batches with consecutive numbers, from the beginning of the file.
//!
//! ```text
//! length u32 │ CRC-32 u32 │ generation u64 │ batch u64 │ dpid u64 │ changes         all in network byte order
//!            │            └─────────── length bytes, which the CRC is of ─┤
//!   a change: kind u8 (1 put, 2 delete) │ tenant u16 │ item u64 │ for a put: length u32, value
//! ```
//!
//! * When the database has all changes of the file, the next record is written at the beginning again: the file stays
//!   small, and is never truncated. Records behind the newest record are old, which their numbers show.
//! * Each start of Weir begins a generation, a random number in the database. Records of other generations are ignored.
//! * The transaction that stores a batch also stores the number of the newest batch of the shard. At the start the
//!   later records are put into the database ([`read`]), up to the first record that is incomplete, damaged or not the
//!   next one. So the replayed records are the acknowledged ones, and possibly some more.
//! * A batch that cannot be written to the journal (no room on the disk, [`BOUND`]) waits for the database. Later
//!   batches wait, too, until the database has all of them: an acknowledgement means that all earlier batches are safe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hypervisor::policy::TenantId;
use hypervisor::store::{StoreKey, StoreOp};

use super::batch::Batch;
use super::error::StoreError;

/// The most bytes of a file: more than the changes during a commit. Further changes wait for the database.
const BOUND: u64 = 8 << 20;
/// Bytes of a record before the part with the CRC.
const HEAD: usize = 8;
/// Larger buffers are released after use.
const KEPT: usize = 64 << 10;

/// A shard's file.
pub(super) struct Journal {
    file: File,
    generation: u64,
    /// The place of the next record.
    end: u64,
    /// The newest batch that was written to the file.
    newest: u64,
    /// The newest batch that was not written to the file, as long as the database may lack it.
    missed: Option<u64>,
    record: Vec<u8>,
}

impl Journal {
    /// Creates a shard's file, or overwrites an old one, whose contents must be in the database.
    pub(super) fn create(dir: &Path, shard: u32, generation: u64) -> io::Result<Journal> {
        let options =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
        let file = options.open(path(dir, shard))?;
        Ok(Journal { file, generation, end: 0, newest: 0, missed: None, record: Vec::new() })
    }

    /// Prepares the record of a batch for [`write`](Self::write).
    pub(super) fn prepare(&mut self, batch: &Batch) {
        self.record.clear();
        if self.missed.is_none() && batch.seq > self.newest {
            encode(self.generation, batch, &mut self.record);
        }
    }

    /// Writes the prepared record of the batch with this number. Returns whether the batch is in the file, and all
    /// earlier batches are in the file or in the database.
    pub(super) fn write(&mut self, seq: u64) -> bool {
        if seq <= self.newest {
            // The shard pushes the batch again, because the database could not store it.
            return true;
        }
        let end = self.end.saturating_add(self.record.len() as u64);
        let is_written = !self.record.is_empty()
            && end <= BOUND
            // A failed write leaves an incomplete record. No record is written behind it until the file starts again.
            && self.file.write_all_at(&self.record, self.end).is_ok();
        if is_written {
            (self.end, self.newest) = (end, seq);
        } else {
            self.missed = Some(seq);
        }
        if self.record.capacity() > KEPT {
            self.record = Vec::new();
        }
        is_written
    }

    /// Notes that the database has all batches up to this one.
    pub(super) fn committed(&mut self, seq: u64) {
        self.missed = self.missed.filter(|missed| *missed > seq);
        if self.newest <= seq {
            self.end = 0;
        }
    }
}

fn path(dir: &Path, shard: u32) -> PathBuf {
    dir.join(format!("journal-{shard}"))
}

fn encode(generation: u64, Batch { seq, dpid, ops }: &Batch, into: &mut Vec<u8>) {
    into.extend([0; HEAD]);
    [generation, *seq, *dpid].iter().for_each(|number| into.extend(number.to_be_bytes()));
    for op in ops {
        let (kind, key, value) = match op {
            StoreOp::Put(key, value) => (1, key, Some(value)),
            StoreOp::Delete(key) => (2, key, None),
        };
        into.push(kind);
        into.extend(key.tenant.0.to_be_bytes());
        into.extend(key.item.to_be_bytes());
        if let Some(value) = value {
            into.extend((value.len() as u32).to_be_bytes());
            into.extend(value);
        }
    }
    let (length, crc) = ((into.len() - HEAD) as u32, crc32fast::hash(&into[HEAD..]));
    into[..4].copy_from_slice(&length.to_be_bytes());
    into[4..HEAD].copy_from_slice(&crc.to_be_bytes());
}

/// The batches in the files of a generation that the database lacks. `committed`: the last batch of each shard in the
/// database.
pub(super) fn read(
    dir: &Path,
    generation: u64,
    committed: impl Fn(u32) -> u64,
) -> Result<Vec<(u32, Batch)>, StoreError> {
    let mut batches = Vec::new();
    for (shard, path) in files(dir)? {
        let mut bytes = Vec::new();
        let file = File::open(&path).and_then(|file| file.take(BOUND).read_to_end(&mut bytes));
        file.map_err(|error| StoreError::io(format!("reading {}", path.display()), &error))?;
        let found = missing(&bytes, generation, committed(shard));
        batches.extend(found.into_iter().map(|batch| (shard, batch)));
    }
    Ok(batches)
}

/// Removes the files of earlier generations.
pub(super) fn remove(dir: &Path) -> Result<(), StoreError> {
    for (_, path) in files(dir)? {
        let doing = || format!("removing {}", path.display());
        fs::remove_file(&path).map_err(|error| StoreError::io(doing(), &error))?;
    }
    Ok(())
}

fn files(dir: &Path) -> Result<Vec<(u32, PathBuf)>, StoreError> {
    let shard = |path: &Path| path.file_name()?.to_str()?.strip_prefix("journal-")?.parse().ok();
    let list = || -> io::Result<Vec<(u32, PathBuf)>> {
        let paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
        let paths = paths.collect::<io::Result<Vec<PathBuf>>>()?;
        Ok(paths.into_iter().filter_map(|path| Some((shard(&path)?, path))).collect())
    };
    list().map_err(|error| StoreError::io(format!("reading {}", dir.display()), &error))
}

/// The batches of a file after the batch `committed`.
fn missing(bytes: &[u8], generation: u64, committed: u64) -> Vec<Batch> {
    let (mut rest, mut batches) = (Reader(bytes), Vec::new());
    let mut newest: Option<u64> = None;
    while let Some((of, batch)) = record(&mut rest) {
        let is_next = newest.map_or(batch.seq <= committed + 1, |newest| batch.seq == newest + 1);
        if of != generation || !is_next {
            break;
        }
        newest = Some(batch.seq);
        if batch.seq > committed {
            batches.push(batch);
        }
    }
    batches
}

/// The generation and the batch of the next record, if the record is complete.
fn record(bytes: &mut Reader<'_>) -> Option<(u64, Batch)> {
    let (length, crc) = (bytes.u32()?, bytes.u32()?);
    let body = bytes.take(length as usize)?;
    if crc32fast::hash(body) != crc {
        return None;
    }
    let mut body = Reader(body);
    let (generation, seq, dpid) = (body.u64()?, body.u64()?, body.u64()?);
    let mut ops = Vec::new();
    while !body.0.is_empty() {
        let kind = body.array::<1>()?;
        let tenant = TenantId(u16::from_be_bytes(body.array()?));
        let key = StoreKey { tenant, item: body.u64()? };
        ops.push(match kind {
            [1] => {
                let length = body.u32()?;
                StoreOp::Put(key, body.take(length as usize)?.to_vec())
            }
            [2] => StoreOp::Delete(key),
            _ => return None,
        });
    }
    Some((generation, Batch { seq, dpid, ops }))
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;

    fn batch(seq: u64) -> Batch {
        let key = |item| StoreKey { tenant: TenantId(seq as u16), item };
        let put = StoreOp::Put(key(seq << 56 | 7), vec![seq as u8; seq as usize * 5]);
        Batch { seq, dpid: !seq, ops: vec![put, StoreOp::Delete(key(1))] }
    }

    fn push(journal: &mut Journal, batch: &Batch) -> bool {
        journal.prepare(batch);
        journal.write(batch.seq)
    }

    fn journal(name: &str) -> (Folder, Journal) {
        let folder = Folder::new(name);
        fs::create_dir_all(&folder.0).unwrap();
        let journal = Journal::create(&folder.0, 3, 99).unwrap();
        (folder, journal)
    }

    fn found(folder: &Folder, generation: u64, committed: u64) -> Vec<u64> {
        let all = read(&folder.0, generation, |shard| if shard == 3 { committed } else { 0 });
        let all = all.unwrap();
        assert!(all.iter().all(|(shard, found)| *shard == 3 && *found == batch(found.seq)));
        all.into_iter().map(|(_, batch)| batch.seq).collect()
    }

    #[test]
    fn batches_missing_in_the_database_are_found_in_the_journal() {
        let (folder, mut journal) = journal("journal-found");
        assert!((1..=5).all(|seq| push(&mut journal, &batch(seq))));
        assert_eq!(found(&folder, 99, 0), [1, 2, 3, 4, 5]);
        assert_eq!(found(&folder, 99, 3), [4, 5]);
        assert_eq!(found(&folder, 99, 5), [0u64; 0]);
        assert_eq!(found(&folder, 98, 0), [0u64; 0], "another generation's");
        // The database has all batches. The next batch is written at the start of the file, and the records after this
        // batch are old.
        journal.committed(5);
        assert!(push(&mut journal, &batch(6)));
        assert_eq!(found(&folder, 99, 5), [6]);
        // After a power cut the database may be older than the journal. Batch 5 is then in neither, so batch 6 of the
        // journal is ignored.
        assert_eq!(found(&folder, 99, 4), [0u64; 0]);
        remove(&folder.0).unwrap();
        assert_eq!(found(&folder, 99, 5), [0u64; 0]);
    }

    #[test]
    fn the_journal_refuses_batches_after_a_gap_until_the_database_has_the_gap() {
        let (folder, mut journal) = journal("journal-missed");
        let mut large = batch(2);
        let StoreOp::Put(_, value) = &mut large.ops[0] else { panic!() };
        value.resize(BOUND as usize, 0);
        assert!(push(&mut journal, &batch(1)));
        assert!(!push(&mut journal, &large) && !push(&mut journal, &batch(3)));
        // The database could not store the batches, so the shard pushes the batches again.
        assert!(push(&mut journal, &batch(1)));
        assert!(!push(&mut journal, &large) && !push(&mut journal, &batch(3)));
        journal.committed(2);
        assert!(!push(&mut journal, &batch(4)));
        assert_eq!(found(&folder, 99, 0), [1]);
        journal.committed(4);
        assert!(push(&mut journal, &batch(5)));
        assert_eq!(found(&folder, 99, 4), [5]);
    }

    #[test]
    fn the_size_of_a_journal_file_is_bounded() {
        let (folder, mut journal) = journal("journal-bound");
        let value = vec![7; 1 << 20];
        let big = |seq| {
            let key = StoreKey { tenant: TenantId(1), item: seq };
            Batch { seq, dpid: 1, ops: vec![StoreOp::Put(key, value.clone())] }
        };
        let written = (1..).take_while(|seq| push(&mut journal, &big(*seq))).count() as u64;
        // Eight batches with 1 MiB each do not fit into 8 MiB, because each record has a header.
        assert_eq!(written, 7);
        journal.committed(written + 1);
        assert!(push(&mut journal, &big(written + 2)), "there is room again");
        assert!(fs::metadata(path(&folder.0, 3)).unwrap().len() <= 8 << 20);
    }

    /// After a truncation at any place and after a change of any bit, the batches before the damaged record are read.
    #[test]
    fn a_damaged_journal_is_read_up_to_the_first_damaged_record() {
        let (folder, mut journal) = journal("journal-damaged");
        assert!((1..=6).all(|seq| push(&mut journal, &batch(seq))));
        let good = fs::read(path(&folder.0, 3)).unwrap();
        let count = |bytes: &[u8]| {
            let read = missing(bytes, 99, 0);
            assert!(read.iter().zip(1..).all(|(found, seq)| *found == batch(seq)));
            read.len()
        };
        assert_eq!(count(&good), 6);
        let mut ends = vec![0];
        for _ in 0..6 {
            let start = *ends.last().unwrap();
            let length = u32::from_be_bytes(good[start..start + 4].try_into().unwrap());
            ends.push(start + HEAD + length as usize);
        }
        for at in 0..good.len() {
            let whole = ends.partition_point(|end| *end <= at) - 1;
            assert_eq!(count(&good[..at]), whole, "cut off at {at}");
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                assert_eq!(count(&bytes), whole, "byte {at}, bit {bit}");
            }
        }
        // The third record is missing, so the correct records after the gap are not read.
        assert_eq!(count(&[&good[..ends[2]], &good[ends[3]..]].concat()), 2);
        assert_eq!(missing(&good, 99, 8).len(), 0);
    }
}
