//! The networks under their locks, and how they are stored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::edits::Edits;
use super::inner::{Inner, PLACES};
use crate::store::{Documents, StoreError};

/// The networks as several threads have them.
pub(super) struct Shared {
    inner: Mutex<Inner>,
    /// Held by who tries a change, so that one copy of all networks is made for that at most, and by whoever else changes edits.
    /// Taken before the others.
    trying: Mutex<()>,
    /// Held by who stores anything, so that nothing older takes a newer one's place. Taken before `inner`.
    saving: Mutex<()>,
    /// Held by who shows all networks, so that there is one copy more of them at most. Taken before `inner`.
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

    /// The turn to show all networks.
    pub(super) fn viewing(&self) -> MutexGuard<'_, ()> {
        self.viewing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.trying.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores where everything is. What cannot be stored now is tried again with the next tick.
    pub(super) fn save(&self) {
        let _saving = self.saving();
        let (places, edits) = self.lock().take_unsaved();
        let places = places.map(|places| self.documents.put(PLACES, places));
        let edits = edits.map(|edits| edits.save(&self.documents));
        let failed = |it: Option<Result<(), StoreError>>| it.and_then(Result::err);
        let (places, edits) = (failed(places), failed(edits));
        if let Some(error) = places.as_ref().or(edits.as_ref()) {
            // The store says itself what is wrong with it.
            tracing::debug!(%error, "virtual networks are not stored yet");
            let mut inner = self.lock();
            inner.is_unsaved |= places.is_some();
            inner.are_edits_unsaved |= edits.is_some();
        }
    }

    /// Stores changes through REST before they are made. Who does has the turn.
    pub(super) fn save_edits(&self, edits: &Edits) -> Result<(), StoreError> {
        let _saving = self.saving();
        edits.save(&self.documents)?;
        self.lock().are_edits_unsaved = false;
        Ok(())
    }

    pub(super) fn saving(&self) -> MutexGuard<'_, ()> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
