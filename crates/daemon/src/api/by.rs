//! The caller of a change, and its line in the audit log: written before the change is stored, in the order of the
//! store.

use std::cell::Cell;
use std::fmt::Display;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::Value;

use super::answers::error;
use super::clients::{Client, Peer};
use crate::access::audit::{Audit, Change};
use crate::access::caller::Caller;
use crate::store::StoreError;

/// The caller of a change, the address, and the text for the logs.
pub(super) struct By {
    pub(super) caller: Caller,
    pub(super) peer: Peer,
    audit: Arc<Audit>,
}

impl<S: Send + Sync> FromRequestParts<S> for By {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<By, Response> {
        let known = || {
            Some(By {
                caller: parts.extensions.get::<Caller>()?.clone(),
                peer: parts.extensions.get::<Arc<Client>>()?.peer(),
                audit: parts.extensions.get::<Arc<Audit>>()?.clone(),
            })
        };
        // The guard lets only identified callers pass.
        known().ok_or_else(|| error(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"))
    }
}

/// Writes the line of a change: the tenant and the differences.
pub(super) type Before<'a> = dyn Fn(Option<&str>, Vec<Value>) -> Result<(), StoreError> + 'a;

impl By {
    /// Makes a change. The change calls the given function before it stores anything.
    pub(super) fn change<T, E: Display>(
        &self,
        what: &str,
        make: impl FnOnce(&Before<'_>) -> Result<T, E>,
    ) -> Result<T, E> {
        let _turn = self.audit.turn();
        let written = Cell::new(None);
        let before = |tenant: Option<&str>, difference| {
            let (who, from) = (self.caller.known.to_string(), self.peer.to_string());
            let role = self.caller.reach.role().name();
            let mut line = Change { who: &who, role, from: &from, what, tenant, difference };
            written.set(Some(self.audit.write(&mut line)?));
            Ok(())
        };
        let done = make(&before);
        if let (Some(line), Err(why)) = (written.get(), &done) {
            self.audit.undo(line, &why.to_string());
        }
        done
    }
}
