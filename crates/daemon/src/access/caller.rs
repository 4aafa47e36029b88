//! The identified caller of a request.

use std::fmt;
use std::sync::Arc;

use super::Reach;
use super::tokens::Token;

/// The caller of a request, and the caller's reach.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The reach of the caller.
    pub reach: Reach,
    /// How the caller is identified.
    pub known: Known,
}

/// How a caller is identified.
#[derive(Clone, Debug)]
pub enum Known {
    /// The caller is on this machine, where no account is needed.
    Here,
    /// The caller has shown a token.
    Token(Arc<Token>),
    /// The caller has shown a certificate: its name or fingerprint as in the configuration.
    Certificate(String),
}

/// The account whose requests are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Account {
    /// All accounts of this tenant.
    Tenant(String),
    /// The token with this number.
    Token(u64),
    /// The certificate of this name.
    Certificate(String),
}

impl Caller {
    /// The caller's account; callers on this machine without an account have none.
    pub fn account(&self) -> Option<Account> {
        match (&self.reach, &self.known) {
            (_, Known::Here) => None,
            (Reach::Tenant(tenant), _) => Some(Account::Tenant(tenant.clone())),
            (_, Known::Token(token)) => Some(Account::Token(token.record().id)),
            (_, Known::Certificate(name)) => Some(Account::Certificate(name.clone())),
        }
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Known::Here => f.write_str("no account"),
            Known::Token(token) if token.record().name.is_empty() => {
                write!(f, "token {}", token.record().id)
            }
            Known::Token(token) => {
                write!(f, "token {} ({})", token.record().id, token.record().name)
            }
            Known::Certificate(name) => write!(f, "certificate {name}"),
        }
    }
}
