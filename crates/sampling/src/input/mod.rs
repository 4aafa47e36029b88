//! Reads a problem from text, and reports where a value is wrong.
//!
//! Either one JSON document ([`problem_from_json`]), or CSV: a matrix, dense or sparse ([`traffic_from_csv`]), and a
//! list of servers ([`servers_from_csv`]). `docs/sampling.md` describes the formats.

mod json;
mod number;
mod tables;

pub use json::problem_from_json;
pub use tables::{NamedEntry, Traffic, servers_from_csv, traffic_from_csv};

use crate::error::{Error, Result};
use crate::problem::{Entry, Problem, Server, Tenant};
use std::collections::HashMap;

/// Makes a problem from servers and a matrix that names them.
///
/// # Errors
/// [`Error::Input`] for an unknown server name, with its line; and the errors of [`Problem::new`].
pub fn problem_from_tables(servers: Vec<Server>, traffic: &Traffic) -> Result<Problem> {
    let index: HashMap<&str, usize> =
        servers.iter().enumerate().map(|(index, server)| (server.name.as_str(), index)).collect();
    let mut tenants: Vec<Tenant> = Vec::new();
    let mut entries = Vec::with_capacity(traffic.entries.len());
    for entry in &traffic.entries {
        let place = || entry.place.clone();
        let find = |name: &str| {
            let found = index.get(name).copied();
            found.ok_or_else(|| Error::input(place(), format!("there is no server {name:?}")))
        };
        let tenant = entry.tenant.as_deref().map(|name| tenant_index(&mut tenants, name));
        let (from, to) = (find(&entry.from)?, find(&entry.to)?);
        entries.push(Entry { from, to, tenant, volume: entry.volume });
    }
    Problem::new(servers, tenants, &entries, Vec::new())
}

fn tenant_index(tenants: &mut Vec<Tenant>, name: &str) -> usize {
    tenants.iter().position(|tenant| tenant.name == name).unwrap_or_else(|| {
        tenants.push(Tenant::new(name));
        tenants.len() - 1
    })
}
