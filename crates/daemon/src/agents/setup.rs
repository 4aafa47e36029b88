//! The configured agents, and the interfaces that they measure.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fabric::TenantId;
use fabric::edge::{AgentId, EdgeKey, Vnic};

use crate::config::{self, Config};

/// The configured agents and interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    pub(super) agents: config::Agents,
    pub(super) key: EdgeKey,
    pub(super) vnics: Vec<Vnic>,
}

impl Setup {
    /// The setup of a configuration, with the tenants' numbers in the order of the file; `None`
    /// without `[agents]`.
    ///
    /// # Errors
    /// The error in words, if the key cannot be loaded.
    pub fn new(config: &Config, ids: &[TenantId]) -> Result<Option<Setup>, String> {
        let Some(agents) = config.agents.clone() else { return Ok(None) };
        let key = load_key(&agents.key)?;
        let all = config.tenants.iter().zip(ids);
        let vnics = all.flat_map(|(tenant, id)| {
            tenant.vnics.iter().map(|vnic| Vnic {
                mac: vnic.mac,
                tenant: *id,
                bandwidth: vnic.bandwidth,
                agent: vnic.agent.as_deref().map(AgentId::of),
            })
        });
        let vnics = vnics.collect();
        Ok(Some(Setup { agents, key, vnics }))
    }
}

/// Reads the key that agents share.
///
/// # Errors
/// The error in words: the file cannot be read, other users may read the file, or the file contains
/// no key.
pub fn load_key(path: &Path) -> Result<EdgeKey, String> {
    let shown = path.display();
    let read = |error: io::Error| format!("cannot read [agents] key {shown}: {error}");
    let mut file = File::open(path).map_err(read)?;
    let mode = file.metadata().map_err(read)?.mode();
    if mode & 0o077 != 0 {
        return Err(format!("[agents] key {shown}: others may read it; chmod 600 it"));
    }
    let mut text = String::new();
    file.by_ref().take(4096).read_to_string(&mut text).map_err(read)?;
    text.parse().map_err(|error| format!("[agents] key {shown}: {error}"))
}
