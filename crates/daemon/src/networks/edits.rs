//! Networks that were changed through REST, and what the file said of them then.

use std::collections::BTreeMap;

use fabric::TenantId;
use fabric::embedding::{Refusal, Spec};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::Document;
use super::error::say;
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
    /// Why the file's network took its place at a start; then it is only kept to be seen.
    set_aside: Option<String>,
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    file: Option<Document>,
    made: Option<Document>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set_aside: Option<String>,
}

/// What was made of a tenant's network through REST and did not fit any more at a start. It is shown until the network is
/// changed again, or the file says something else of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SetAside {
    /// Whose.
    pub tenant: String,
    /// Why it did not fit.
    pub reason: String,
    /// What had been made of it; absent if it had been removed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub network: Option<Document>,
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
        for (name, Stored { file, made, set_aside }) in stored {
            let spec = |document: Option<Document>| document.map(|it| it.spec()).transpose();
            match (spec(file), spec(made)) {
                (Ok(file), Ok(made)) => {
                    edits.0.insert(name, Edit { file, made, set_aside });
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
        let stored = self.0.iter().map(|(name, Edit { file, made, set_aside })| {
            let (file, made) = (document(file), document(made));
            (name, Stored { file, made, set_aside: set_aside.clone() })
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
            if !stays && edit.set_aside.is_none() {
                tracing::warn!(
                    tenant = name,
                    "the file's network replaces what was made of it through REST"
                );
            }
            stays
        });
    }

    /// Sets the changes of those tenants aside whose networks the refusals name; of all, if none of these was changed.
    /// Whether there were any.
    pub(super) fn set_aside(
        &mut self,
        names: &BTreeMap<TenantId, String>,
        refusals: &[Refusal],
    ) -> bool {
        let mut are_any = false;
        for refusal in refusals {
            let named = [Some(refusal.tenant), refusal.why.by()].into_iter().flatten();
            for name in named.filter_map(|id| names.get(&id)) {
                if let Some(edit) = self.0.get_mut(name) {
                    are_any |= edit.put_aside(name, &say(names, refusal));
                }
            }
        }
        if !are_any && let Some(refusal) = refusals.first() {
            for (name, edit) in &mut self.0 {
                are_any |= edit.put_aside(name, &say(names, refusal));
            }
        }
        are_any
    }

    /// What was set aside.
    pub(super) fn aside(&self) -> Vec<SetAside> {
        let aside = |(tenant, edit): (&String, &Edit)| {
            let (tenant, reason) = (tenant.clone(), edit.set_aside.clone()?);
            Some(SetAside { tenant, reason, network: edit.made.as_ref().map(Document::new) })
        };
        self.0.iter().filter_map(aside).collect()
    }

    /// What was made of a tenant's network, if it was changed; `Some(None)` is none.
    pub(super) fn get(&self, name: &str) -> Option<Option<&Spec>> {
        let edit = self.0.get(name).filter(|edit| edit.set_aside.is_none())?;
        Some(edit.made.as_ref())
    }

    pub(super) fn set(&mut self, name: &str, file: Option<&Spec>, made: Option<Spec>) {
        if made.as_ref() == file {
            self.0.remove(name);
        } else {
            let edit = Edit { file: file.cloned(), made, set_aside: None };
            self.0.insert(name.to_owned(), edit);
        }
    }
}

impl Edit {
    /// Whether it was not aside already.
    fn put_aside(&mut self, tenant: &str, reason: &str) -> bool {
        if self.set_aside.is_some() {
            return false;
        }
        tracing::warn!(
            tenant,
            reason,
            "the file contradicts what was made of the network through REST, and replaces it"
        );
        self.set_aside = Some(reason.to_owned());
        true
    }
}
