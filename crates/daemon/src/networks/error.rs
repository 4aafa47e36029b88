//! The reasons why networks are not changed, in words.

use std::collections::BTreeMap;
use std::fmt;

use fabric::TenantId;
use fabric::embedding::Refusal;

use crate::config::why;
use crate::store::StoreError;

/// The reason why networks are not changed. A refused change changes nothing.
#[derive(Debug, PartialEq)]
pub enum ChangeError {
    /// The tenant, or the part of its network, does not exist.
    Missing(String),
    /// The request contradicts itself or has no place; each reason names its part.
    Refused(Vec<String>),
    /// The store.
    Store(StoreError),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::Missing(what) => f.write_str(what),
            ChangeError::Refused(reasons) => f.write_str(&reasons.join("; ")),
            ChangeError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChangeError {}

/// The error of a document that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError(pub(super) String);

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DocumentError {}

pub(super) fn refused(names: &BTreeMap<TenantId, String>, all: &[Refusal]) -> ChangeError {
    ChangeError::Refused(all.iter().map(|refusal| say(names, refusal)).collect())
}

pub(super) fn say(names: &BTreeMap<TenantId, String>, refusal: &Refusal) -> String {
    let name = |id: TenantId| names.get(&id).cloned().unwrap_or_default();
    format!("{}: {}: {}", name(refusal.tenant), refusal.part, why(&refusal.why, name))
}
