//! redb's file, with fsync outside the commit.
//!
//! redb makes a commit durable by `sync_data` on its storage. In this backend the call may only note that data has to
//! be synced; a thread of its own syncs within the interval, while commits go on. The page cache keeps the order of
//! writes as long as the machine runs, so a killed process loses nothing.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use super::sync::Sync;
use crate::threads::{Priority, Thread};

/// A [`FileBackend`] whose `sync_data` is delayed according to [`Sync`].
#[derive(Debug)]
pub(super) struct Backend {
    file: FileBackend,
    /// `None`: sync at once.
    syncer: Option<Arc<Syncer>>,
}

/// Fsyncs a file some time after it was marked.
#[derive(Debug)]
pub(super) struct Syncer {
    file: File,
    pending: AtomicBool,
}

/// The thread that runs a [`Syncer`]; dropping it fsyncs what is pending and ends the thread.
pub(super) struct SyncerThread {
    stop: Arc<AtomicBool>,
    thread: Option<Thread>,
}

impl Backend {
    /// The backend, and the thread to keep as long as the database is open.
    pub(super) fn new(file: File, sync: Sync) -> io::Result<(Backend, Option<SyncerThread>)> {
        let Sync::Every(interval) = sync else {
            let file = FileBackend::new(file).map_err(io::Error::other)?;
            return Ok((Backend { file, syncer: None }, None));
        };
        let syncer = Arc::new(Syncer { file: file.try_clone()?, pending: AtomicBool::new(false) });
        let thread = SyncerThread::start(Arc::clone(&syncer), interval)?;
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        Ok((Backend { file, syncer: Some(syncer) }, Some(thread)))
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        match &self.syncer {
            Some(syncer) => {
                syncer.pending.store(true, Ordering::Release);
                Ok(())
            }
            None => self.file.sync_data(),
        }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }
}

impl SyncerThread {
    fn start(syncer: Arc<Syncer>, interval: Duration) -> io::Result<SyncerThread> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Thread::start("store-sync", Priority::Low, move || {
            while !stopped.load(Ordering::Acquire) {
                thread::park_timeout(interval);
                syncer.sync();
            }
        })?;
        Ok(SyncerThread { stop, thread: Some(thread) })
    }
}

impl Syncer {
    fn sync(&self) {
        if !self.pending.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.file.sync_data() {
            // The kernel may have dropped the pages: another fsync would succeed without effect.
            tracing::error!(%error, "fsync of the state database failed; a power failure now may lose state");
        }
    }
}

impl Drop for SyncerThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.unpark();
            thread.join();
        }
    }
}
