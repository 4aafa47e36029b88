//! The store thread: takes waiting batches, commits them together, and informs the shards.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use super::batch::{Batch, Event};
use super::command::{Command, LoadTo, Notify};
use super::database::Database;
use super::queue::{Next, Queue};
use super::room::Room;
use crate::metrics::Registry;

/// The most changes in one commit; further changes wait for the next commit, so that the first need not wait long.
const GROUP: usize = 4096;

/// How long the thread waits for more batches before it commits batches that are in journals, because nobody waits for
/// these: so a burst of FLOW_MODs is one commit, after the burst, and does not share its core with commits.
pub(super) const GATHER: Duration = Duration::from_millis(25);

/// How long the thread rests after a failed commit: failed batches are pushed again at once, and may fail for hours.
pub(super) const REST: Duration = Duration::from_millis(500);

pub(super) fn run(database: Database, queue: Queue, rest: Duration, metrics: &Registry) {
    let (shards, missing) = (BTreeMap::new(), Missing::default());
    let (group, rests) = (Vec::new(), None);
    let gather = database.journals().map(|_| GATHER);
    let room = Room::new(database.dir(), metrics);
    let mut writer = Writer { database, room, queue, rest, rests, metrics, shards, group, missing };
    let mut is_full = false;
    while let Some(command) = writer.next() {
        if let (Some(gather), Command::Store { .. }, false) = (gather, &command, is_full) {
            thread::sleep(gather);
        }
        is_full = false;
        let mut next = Some(command);
        // A command that needs the earlier changes, or does not belong to a group, ends the group.
        while let Some(Command::Store { shard, batch }) = next {
            writer.take(shard, batch);
            let ops: usize = writer.group.iter().map(|(_, batch)| batch.ops.len()).sum();
            is_full = ops >= GROUP;
            next = if is_full { None } else { writer.queue.try_next() };
        }
        writer.commit();
        match next {
            Some(Command::Stop) => return,
            Some(command) => writer.serve(command),
            None => {}
        }
    }
}

struct Writer<'a> {
    database: Database,
    room: Room,
    queue: Queue,
    rest: Duration,
    /// The end of the rest.
    rests: Option<Instant>,
    metrics: &'a Registry,
    shards: BTreeMap<u32, Notify>,
    group: Vec<(u32, Batch)>,
    missing: Missing,
}

/// Each shard's batches that were not stored and were not pushed again yet.
#[derive(Default)]
struct Missing(BTreeMap<u32, BTreeSet<u64>>);

impl Missing {
    fn add(&mut self, shard: u32, seq: u64) {
        self.0.entry(shard).or_default().insert(seq);
    }

    /// Whether a batch may be stored: an older batch may change the same entries, and would later overwrite this batch.
    fn is_next(&mut self, shard: u32, seq: u64) -> bool {
        let Some(missing) = self.0.get_mut(&shard) else { return true };
        let is_next = missing.first().is_none_or(|first| seq <= *first);
        if is_next {
            missing.remove(&seq);
        }
        is_next
    }
}

impl Writer<'_> {
    /// The next command. While the thread rests, it stores no changes and reads no switches; other commands are
    /// handled.
    fn next(&mut self) -> Option<Command> {
        if let Some(until) = self.rests.take() {
            while let Some(command) = self.queue.next_in_rest(until) {
                self.serve(command);
            }
        }
        self.look();
        while let Some(until) = self.room.wants_look() {
            match self.queue.next_until(until) {
                Next::Command(command) => return Some(command),
                Next::Nothing => self.look(),
                Next::Ended => return None,
            }
        }
        self.queue.next()
    }

    fn look(&mut self) {
        self.room.look(self.database.usage(), self.metrics);
    }

    /// Puts a batch into the group, if it is its turn.
    fn take(&mut self, shard: u32, batch: Batch) {
        match self.missing.is_next(shard, batch.seq) {
            true => self.group.push((shard, batch)),
            false => self.refuse(shard, batch),
        }
    }

    fn refuse(&mut self, shard: u32, batch: Batch) {
        self.missing.add(shard, batch.seq);
        self.notify(shard, Event::Failed(batch));
    }

    fn commit(&mut self) {
        if self.group.is_empty() {
            return;
        }
        let started = Instant::now();
        let result = self.database.apply(&self.group);
        let process = &self.metrics.process;
        let group = std::mem::take(&mut self.group);
        match result {
            Ok(()) => {
                self.room.stored();
                process.store_commit.observe(started.elapsed().as_nanos() as u64);
                process
                    .store_changes
                    .add(group.iter().map(|(_, batch)| batch.ops.len() as u64).sum());
                let newest: BTreeMap<u32, u64> =
                    group.iter().map(|(shard, batch)| (*shard, batch.seq)).collect();
                newest.into_iter().for_each(|(shard, seq)| self.notify(shard, Event::Stored(seq)));
            }
            Err(error) => {
                process.store_failed.increment();
                // `failed` logs the error once.
                let has_more_room = self.room.failed(&error, self.metrics);
                group.into_iter().for_each(|(shard, batch)| self.refuse(shard, batch));
                let recovered = self.database.recover();
                if let Err(error) = &recovered {
                    tracing::error!(%error, "the state database could not be opened again");
                }
                if !has_more_room || recovered.is_err() {
                    self.rests = Some(Instant::now() + self.rest);
                }
            }
        }
    }

    fn serve(&mut self, command: Command) {
        match command {
            Command::Register { shard, notify } => {
                self.shards.insert(shard, notify);
            }
            Command::Load { dpid, to } => {
                let stored = self.database.load(dpid);
                match to {
                    LoadTo::Shard(shard) => self.notify(shard, Event::Loaded { dpid, stored }),
                    LoadTo::Caller(reply) => drop(reply.send(stored)),
                }
            }
            Command::TenantIds { names, reply } => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                // The caller may have stopped waiting for the answer.
                drop(reply.send(self.database.tenant_ids(&names)));
            }
            Command::Quotas(quotas) => self.room.set_quotas(quotas),
            Command::Snapshot { reply } => drop(reply.send(self.database.snapshot())),
            Command::Document { name, reply } => drop(reply.send(self.database.document(&name))),
            Command::PutDocument { name, document, reply } => {
                let result = self.database.put_document(&name, &document);
                if let Err(error) = &result {
                    tracing::error!(%error, name, "a document could not be stored");
                    if let Err(error) = self.database.recover() {
                        tracing::error!(%error, "the state database could not be opened again");
                    }
                }
                drop(reply.send(result));
            }
            // `run` handles both commands.
            Command::Store { .. } | Command::Stop => {}
        }
    }

    fn notify(&mut self, shard: u32, event: Event) {
        if let Some(notify) = self.shards.get_mut(&shard) {
            notify(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_batches_of_a_shard_wait_for_a_failed_batch() {
        let mut missing = Missing::default();
        assert!([1, 2, 3].into_iter().all(|seq| missing.is_next(7, seq)));
        [2, 3].into_iter().for_each(|seq| missing.add(7, seq));
        // Batch 4 was pushed before the shard received the failures of batches 2 and 3.
        assert!(!missing.is_next(7, 4));
        missing.add(7, 4);
        assert!(missing.is_next(8, 4), "another shard's");
        assert!(!missing.is_next(7, 3));
        assert!([2, 3, 4, 5].into_iter().all(|seq| missing.is_next(7, seq)));
    }
}
