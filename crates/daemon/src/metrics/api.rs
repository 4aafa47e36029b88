//! What the REST interface refuses, by reason.

use super::instruments::SharedCounter;

/// Why a client was not served, or cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ApiRefusal {
    /// All connections are in use: one that waited for a request gave way, or the new one was closed.
    Connections,
    /// A request, or the taking of its answer, took too long.
    Slow,
    /// Too many listen to events.
    Listeners,
    /// Bodies of others take all the memory that there is for them.
    Bodies,
    /// Answers to others take all the memory that there is for them.
    Answers,
    /// Asked for by a name that is not Weir's, or from a page of somebody else's.
    Elsewhere,
    /// A change, where none are taken.
    ReadOnly,
    /// Without an account, or with a token that is not in force.
    Stranger,
    /// Something that the account's role may not do.
    Role,
    /// Too many requests in a second.
    Rate,
}

impl ApiRefusal {
    /// In the order of the discriminants.
    pub const ALL: [ApiRefusal; 10] = [
        ApiRefusal::Connections,
        ApiRefusal::Slow,
        ApiRefusal::Listeners,
        ApiRefusal::Bodies,
        ApiRefusal::Answers,
        ApiRefusal::Elsewhere,
        ApiRefusal::ReadOnly,
        ApiRefusal::Stranger,
        ApiRefusal::Role,
        ApiRefusal::Rate,
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            ApiRefusal::Connections => "connections",
            ApiRefusal::Slow => "slow",
            ApiRefusal::Listeners => "listeners",
            ApiRefusal::Bodies => "bodies",
            ApiRefusal::Answers => "answers",
            ApiRefusal::Elsewhere => "elsewhere",
            ApiRefusal::ReadOnly => "read_only",
            ApiRefusal::Stranger => "stranger",
            ApiRefusal::Role => "role",
            ApiRefusal::Rate => "rate",
        }
    }
}

/// Counts of the REST interface.
#[derive(Debug, Default)]
pub struct ApiMetrics([SharedCounter; ApiRefusal::ALL.len()]);

impl ApiMetrics {
    /// Clients that were refused, or cut off.
    pub fn refused(&self, why: ApiRefusal) -> &SharedCounter {
        &self.0[why as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_the_order_of_their_discriminants() {
        assert!(ApiRefusal::ALL.iter().enumerate().all(|(i, &why)| why as usize == i));
    }
}
