//! Networks that were changed through REST, and what the file said of them then.

use std::collections::BTreeMap;

use fabric::TenantId;
use fabric::embedding::{Refusal, Spec};
use serde::{Deserialize, Serialize};

use super::{Document, say};
use crate::store::{Documents, StoreError};

/// Where they are stored.
const EDITS: &str = "networks/edits";

/// By the tenants' names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Edits(BTreeMap<String, Edit>);

#[derive(Clone, Debug, PartialEq)]
struct Edit {
    /// What the file said.
    file: Option<Spec>,
    /// What was made of it; `None` is no network.
    made: Option<Spec>,
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    file: Option<Document>,
    made: Option<Document>,
}

impl Edits {
    /// What was changed before a restart. What cannot be read counts as never changed, and is said.
    pub(super) fn load(documents: &Documents) -> Result<Edits, StoreError> {
        let Some(stored) = documents.get(EDITS)? else { return Ok(Edits::default()) };
        let stored: BTreeMap<String, Stored> = match serde_json::from_slice(&stored) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::error!(%error, "changes of networks through REST cannot be read, and are lost");
                return Ok(Edits::default());
            }
        };
        let mut edits = Edits::default();
        for (name, Stored { file, made }) in stored {
            let spec = |document: Option<Document>| document.map(|it| it.spec()).transpose();
            match (spec(file), spec(made)) {
                (Ok(file), Ok(made)) => {
                    edits.0.insert(name, Edit { file, made });
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::error!(tenant = name, %error, "its network's changes are lost");
                }
            }
        }
        Ok(edits)
    }

    pub(super) fn save(&self, documents: &Documents) -> Result<(), StoreError> {
        let document = |spec: &Option<Spec>| spec.as_ref().map(Document::new);
        let stored = self.0.iter().map(|(name, Edit { file, made })| {
            (name, Stored { file: document(file), made: document(made) })
        });
        let stored: BTreeMap<&String, Stored> = stored.collect();
        let bytes =
            serde_json::to_vec(&stored).map_err(|error| StoreError::Database(error.to_string()))?;
        documents.put(EDITS, bytes)
    }

    /// Forgets changes of networks of which the file says something else now, or whose tenant cannot have one any more.
    pub(super) fn follow_file(
        &mut self,
        file: &BTreeMap<String, Spec>,
        may_have: impl Fn(&str) -> bool,
    ) {
        self.0.retain(|name, edit| {
            let stays = edit.file.as_ref() == file.get(name) && may_have(name);
            if !stays {
                tracing::warn!(
                    tenant = name,
                    "the file's network replaces what was made of it through REST"
                );
            }
            stays
        });
    }

    /// Forgets the changes of those tenants whose networks the refusals name; of all, if none of these was changed.
    /// Whether any were.
    pub(super) fn set_aside(
        &mut self,
        names: &BTreeMap<TenantId, String>,
        refusals: &[Refusal],
    ) -> bool {
        let before = self.0.len();
        for refusal in refusals {
            let named = [Some(refusal.tenant), refusal.why.by()].into_iter().flatten();
            for name in named.filter_map(|id| names.get(&id)) {
                if self.0.remove(name).is_some() {
                    warn_of(name, &say(names, refusal));
                }
            }
        }
        if self.0.len() == before
            && let Some(refusal) = refusals.first()
        {
            for name in std::mem::take(&mut self.0).keys() {
                warn_of(name, &say(names, refusal));
            }
        }
        self.0.len() < before
    }

    /// What was made of a tenant's network, if it was changed; `Some(None)` is none.
    pub(super) fn get(&self, name: &str) -> Option<Option<&Spec>> {
        self.0.get(name).map(|edit| edit.made.as_ref())
    }

    pub(super) fn set(&mut self, name: &str, file: Option<&Spec>, made: Option<Spec>) {
        if made.as_ref() == file {
            self.0.remove(name);
        } else {
            self.0.insert(name.to_owned(), Edit { file: file.cloned(), made });
        }
    }
}

fn warn_of(tenant: &str, reason: &str) {
    tracing::warn!(
        tenant,
        reason,
        "the file contradicts what was made of the network through REST, and replaces it"
    );
}
