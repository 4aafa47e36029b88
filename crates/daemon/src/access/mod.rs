//! Who may do what by REST: roles here, accounts in `tokens`, how often each may ask in `rates`, and
//! who has changed what in `audit`.
//!
//! Deliberately without HTTP: which role may ask for which path is a table in [`crate::api`].

pub mod audit;
pub mod caller;
pub mod rates;
pub mod tokens;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What an account may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Admin,
    /// To see everything, and to change nothing.
    Operator,
    /// To see one tenant, and to change its network.
    Tenant,
    /// To read metrics and health.
    Metrics,
}

impl Role {
    /// All of them, from the one that may do most.
    pub const ALL: [Role; 4] = [Role::Admin, Role::Operator, Role::Tenant, Role::Metrics];

    /// As it is written.
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

/// What a caller may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// A role that concerns all tenants.
    All(Role),
    /// The role [`Role::Tenant`], of this tenant.
    Tenant(String),
}

impl Reach {
    /// Of a role and a tenant that belong together: a tenant is named for the role that needs one, and for no other.
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

    /// Whether the caller may see what concerns this tenant.
    pub fn sees(&self, tenant: &str) -> bool {
        self.tenant().is_none_or(|own| own == tenant)
    }

    /// The one tenant that is reached, if it is not all.
    pub fn tenant(&self) -> Option<&str> {
        match self {
            Reach::All(_) => None,
            Reach::Tenant(tenant) => Some(tenant),
        }
    }
}
