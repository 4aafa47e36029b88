//! Who an agent is.

use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// An agent's number: its name's hash, so that nobody has to hand out numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u64);

impl AgentId {
    /// The number of the agent of that name.
    pub fn of(name: &str) -> AgentId {
        let mut hasher = SipHasher24::new();
        hasher.write(name.as_bytes());
        AgentId(hasher.finish())
    }
}
