//! The networks under their locks, and their storage.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::edits::Edits;
use super::inner::{Inner, PLACES};
use crate::lock::lock;
use crate::store::{Documents, StoreError};

/// The networks, shared by several threads.
pub(super) struct Shared {
    inner: Mutex<Inner>,
    /// The lock for trying a change, so that there is at most one trial copy of all networks, and for other changes of
    /// the edits. This lock is taken before the others.
    trying: Mutex<()>,
    /// The lock for storing, so that no older state replaces a newer one. This lock is taken before `inner`.
    saving: Mutex<()>,
    /// The lock for showing all networks, so that there is at most one copy for this. This lock is taken before
    /// `inner`.
    viewing: Mutex<()>,
    documents: Documents,
    stop: AtomicBool,
}

impl Shared {
    pub(super) fn new(inner: Inner, documents: Documents) -> Shared {
        Shared {
            inner: Mutex::new(inner),
            trying: Mutex::new(()),
            saving: Mutex::new(()),
            viewing: Mutex::new(()),
            documents,
            stop: AtomicBool::new(false),
        }
    }

    /// Ends the threads.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Takes the lock for showing all networks.
    pub(super) fn viewing(&self) -> MutexGuard<'_, ()> {
        lock(&self.viewing)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.trying)
    }

    /// Stores the placement. If this fails, the next tick tries again.
    pub(super) fn save(&self) {
        let _saving = self.saving();
        let (places, edits) = self.lock().take_unsaved();
        let places = places.map(|places| self.documents.put(PLACES, places));
        let edits = edits.map(|edits| edits.save(&self.documents));
        let failed = |it: Option<Result<(), StoreError>>| it.and_then(Result::err);
        let (places, edits) = (failed(places), failed(edits));
        if let Some(error) = places.as_ref().or(edits.as_ref()) {
            // The store itself logs its failure.
            tracing::debug!(%error, "virtual networks are not stored yet");
            let mut inner = self.lock();
            inner.is_unsaved |= places.is_some();
            inner.are_edits_unsaved |= edits.is_some();
        }
    }

    /// Stores changes through REST before they are made. The caller holds the lock `trying`.
    pub(super) fn save_edits(&self, edits: &Edits) -> Result<(), StoreError> {
        let _saving = self.saving();
        edits.save(&self.documents)?;
        self.lock().are_edits_unsaved = false;
        Ok(())
    }

    pub(super) fn saving(&self) -> MutexGuard<'_, ()> {
        lock(&self.saving)
    }
}
