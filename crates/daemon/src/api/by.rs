//! Who asks for a change, and how that is written down: before the change is stored, and in the order of the store.

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

/// Who asks, from where, and what is written of that.
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
        // The guard has let nobody pass of whom that is not known.
        known().ok_or_else(|| error(StatusCode::INTERNAL_SERVER_ERROR, "the request failed"))
    }
}

/// Writes the line of a change: which tenant it is about, and what becomes other.
pub(super) type Before<'a> = dyn Fn(Option<&str>, Vec<Value>) -> Result<(), StoreError> + 'a;

impl By {
    /// Makes a change, which calls what it is given before it stores anything.
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
