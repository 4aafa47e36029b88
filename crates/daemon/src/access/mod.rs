//! Accounts of the REST interface: roles here, tokens in `tokens`, limits of requests in `rates`, and the log of
//! changes in `audit`.
//!
//! This module deliberately has no HTTP: a table in [`crate::api`] says which role may use which path.

pub mod audit;
pub mod caller;
pub mod rates;
pub mod tokens;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The role of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The role may do everything.
    Admin,
    /// The role may read everything and change nothing.
    Operator,
    /// The role may read one tenant, and change this tenant's network.
    Tenant,
    /// The role may read metrics and health.
    Metrics,
}

impl Role {
    /// All roles, in the order of decreasing rights.
    pub const ALL: [Role; 4] = [Role::Admin, Role::Operator, Role::Tenant, Role::Metrics];

    /// The name of the role in text.
    pub fn name(self) -> &'static str {
        match self {
            Role::Admin => "admin",
            Role::Operator => "operator",
            Role::Tenant => "tenant",
            Role::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Role, &'static str> {
        let role = Role::ALL.into_iter().find(|role| role.name() == text);
        role.ok_or("expected admin, operator, tenant or metrics")
    }
}

/// The reach of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A role that concerns all tenants.
    All(Role),
    /// The role [`Role::Tenant`], of this tenant.
    Tenant(String),
}

impl Reach {
    /// The reach of a role and a tenant. Only the role `tenant` has a tenant; other combinations are errors.
    pub fn new(role: Role, tenant: Option<&str>) -> Result<Reach, &'static str> {
        match (role, tenant) {
            (Role::Tenant, Some(tenant)) => Ok(Reach::Tenant(tenant.to_owned())),
            (Role::Tenant, None) => Err("the role tenant needs the name of a tenant"),
            (role, None) => Ok(Reach::All(role)),
            (_, Some(_)) => Err("only the role tenant takes the name of a tenant"),
        }
    }

    /// The role.
    pub fn role(&self) -> Role {
        match self {
            Reach::All(role) => *role,
            Reach::Tenant(_) => Role::Tenant,
        }
    }

    /// Whether the caller may read the data of this tenant.
    pub fn sees(&self, tenant: &str) -> bool {
        self.tenant().is_none_or(|own| own == tenant)
    }

    /// The tenant of the reach, if the reach is one tenant.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Reach::All(_) => None,
            Reach::Tenant(tenant) => Some(tenant),
        }
    }
}
