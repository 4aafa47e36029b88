//! Who asks, once that is known.

use std::fmt;
use std::sync::Arc;

use super::Reach;
use super::tokens::Token;

/// Who asks, and what that one may reach.
#[derive(Clone, Debug)]
pub struct Caller {
    /// What the caller may reach.
    pub reach: Reach,
    /// By what the caller is known.
    pub known: Known,
}

/// By what a caller is known.
#[derive(Clone, Debug)]
pub enum Known {
    /// By being on this machine, where that is enough.
    Here,
    /// By a token.
    Token(Arc<Token>),
    /// By the name or the fingerprint of a certificate, as the configuration has it.
    Certificate(String),
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
