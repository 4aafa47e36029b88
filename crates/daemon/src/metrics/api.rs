//! The refusals of the REST interface, by reason.

use super::instruments::SharedCounter;

/// The reason why a client was refused or disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ApiRefusal {
    /// All connections are in use: a waiting connection was closed for a new one, or the new one
    /// was closed.
    Connections,
    /// A request, or the reading of its answer, took too long.
    Slow,
    /// Too many clients listen to events.
    Listeners,
    /// The bodies of other requests use all memory for bodies.
    Bodies,
    /// Answers to other clients use all memory for answers.
    Answers,
    /// The request used a host name that is not Weir's, or came from a page of another site.
    Elsewhere,
    /// A change where changes are not accepted.
    ReadOnly,
    /// A request without an account, or with an invalid token.
    Stranger,
    /// A request that the account's role may not make.
    Role,
    /// Too many requests in a second.
    Rate,
}

impl ApiRefusal {
    /// In the order of the discriminants, with the values of labels.
    pub const ALL: [(ApiRefusal, &str); 10] = [
        (ApiRefusal::Connections, "connections"),
        (ApiRefusal::Slow, "slow"),
        (ApiRefusal::Listeners, "listeners"),
        (ApiRefusal::Bodies, "bodies"),
        (ApiRefusal::Answers, "answers"),
        (ApiRefusal::Elsewhere, "elsewhere"),
        (ApiRefusal::ReadOnly, "read_only"),
        (ApiRefusal::Stranger, "stranger"),
        (ApiRefusal::Role, "role"),
        (ApiRefusal::Rate, "rate"),
    ];
}

/// Counts of the REST interface.
#[derive(Debug, Default)]
pub struct ApiMetrics([SharedCounter; ApiRefusal::ALL.len()]);

impl ApiMetrics {
    /// Clients that were refused or disconnected.
    pub fn refused(&self, why: ApiRefusal) -> &SharedCounter {
        &self.0[why as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_refusal_reasons_are_listed_in_discriminant_order() {
        assert!(ApiRefusal::ALL.iter().enumerate().all(|(i, &(why, _))| why as usize == i));
    }
}
