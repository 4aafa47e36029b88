//! Networks that were changed through REST, with the file's definitions at that time.

use std::collections::BTreeMap;

use fabric::TenantId;
use fabric::embedding::{Refusal, Spec};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::document::Document;
use super::error::say;
use crate::store::{Documents, StoreError};

/// The place in the store.
const EDITS: &str = "networks/edits";

/// The changed networks, by tenant name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Edits(BTreeMap<String, Edit>);

#[derive(Clone, Debug, PartialEq)]
struct Edit {
    /// The definition in the file at that time.
    file: Option<Spec>,
    /// The changed network; `None`: the network was removed.
    made: Option<Spec>,
    /// The reason why the file's network replaced this change at a start; the change is then kept only to be shown.
    set_aside: Option<String>,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Stored {
    file: Option<Document>,
    made: Option<Document>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    set_aside: Option<String>,
}

/// A change of a tenant's network through REST that was set aside at a start. The change is shown until the network is
/// changed again, or its definition in the file changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SetAside {
    /// The tenant.
    pub tenant: String,
    /// The reason.
    pub reason: String,
    /// The changed network; absent if the network had been removed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub network: Option<Document>,
}

impl Edits {
    /// Loads the changes from before a restart. A change that cannot be read is logged and ignored.
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

    /// Forgets changes of networks whose definition in the file has changed, or whose tenant cannot have a network any
    /// more.
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

    /// Sets aside the changes of tenants whose networks the refusals name; of all tenants, if none of the named
    /// networks was changed. Returns whether there were any.
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

    /// The changes that were set aside.
    pub(super) fn aside(&self) -> Vec<SetAside> {
        let aside = |(tenant, edit): (&String, &Edit)| {
            let (tenant, reason) = (tenant.clone(), edit.set_aside.clone()?);
            Some(SetAside { tenant, reason, network: edit.made.as_ref().map(Document::new) })
        };
        self.0.iter().filter_map(aside).collect()
    }

    /// The changed network of a tenant, if it was changed; `Some(None)`: the network was removed.
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
    /// Sets a change aside; returns whether it was not aside already.
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
