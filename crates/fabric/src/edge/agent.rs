//! The identity of an agent.

use core::hash::Hasher;
use siphasher::sip::SipHasher24;

/// The number of an agent: the hash of its name, so that nobody has to assign numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub u64);

impl AgentId {
    /// The number of the agent with this name.
    pub fn of(name: &str) -> AgentId {
        let mut hasher = SipHasher24::new();
        hasher.write(name.as_bytes());
        AgentId(hasher.finish())
    }
}
