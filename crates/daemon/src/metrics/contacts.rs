//! How it fares with the connections to tenants' controllers: counted per tenant, and the last of each one per switch.
//!
//! Counters are the tenant's over all switches and outlive sessions. What is known of one connection belongs to a session and
//! goes with it; it is written when a connection comes or goes, never per message.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::instruments::SharedCounter;

/// Why there is no connection to a controller, or no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Lost {
    /// Refused, unreachable, no answer.
    Unreachable,
    /// TLS failed: expired, another authority, another name, plain text.
    Tls,
    /// HELLO went wrong, or the connection ended before it.
    Handshake,
    /// No HELLO in time.
    Timeout,
    /// The controller closed, or the connection broke.
    Closed,
    /// The controller stopped answering.
    Silent,
    /// The controller did not read its replies, or sent what cannot be read.
    Fault,
    /// Weir has no file descriptors left for it.
    Descriptors,
}

impl Lost {
    /// In the order of the discriminants.
    pub const ALL: [Lost; 8] = [
        Lost::Unreachable,
        Lost::Tls,
        Lost::Handshake,
        Lost::Timeout,
        Lost::Closed,
        Lost::Silent,
        Lost::Fault,
        Lost::Descriptors,
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        match self {
            Lost::Unreachable => "unreachable",
            Lost::Tls => "tls",
            Lost::Handshake => "handshake",
            Lost::Timeout => "timeout",
            Lost::Closed => "closed",
            Lost::Silent => "silent",
            Lost::Fault => "fault",
            Lost::Descriptors => "descriptors",
        }
    }
}

/// What a tenant's connections count, over all switches.
#[derive(Debug, Default)]
pub struct ContactCounts {
    /// Attempts to connect.
    pub dials: SharedCounter,
    lost: [SharedCounter; Lost::ALL.len()],
}

impl ContactCounts {
    /// Attempts that failed and connections that ended.
    pub fn lost(&self, why: Lost) -> &SharedCounter {
        &self.lost[why as usize]
    }
}

/// What is known of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// Whether it stands.
    pub connected: bool,
    /// How often it was dialled.
    pub dials: u64,
    /// Why it failed or ended last: in one word, in words, and when, in milliseconds of Unix time.
    pub last_error: Option<(&'static str, String, u64)>,
    /// How long Weir waits from then until it dials again, in milliseconds.
    pub retry: Option<u64>,
}

/// The connections of a tenant for one switch, by the controllers' addresses.
#[derive(Debug, Default)]
pub struct Contacts(Mutex<BTreeMap<String, Contact>>);

impl Contacts {
    /// One more attempt.
    pub fn dialled(&self, address: &str) {
        self.change(address, |contact| contact.dials += 1);
    }

    /// It stands.
    pub fn connected(&self, address: &str) {
        self.change(address, |contact| (contact.connected, contact.retry) = (true, None));
    }

    /// It failed or ended; it is dialled again after a while.
    pub fn lost(&self, address: &str, why: Lost, words: &str, retry: Duration) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = at.map_or(0, |since| since.as_millis() as u64);
        self.change(address, |contact| {
            contact.connected = false;
            contact.retry = Some(retry.as_millis() as u64);
            contact.last_error = Some((why.name(), words.to_owned(), at));
        });
    }

    /// The controller is configured no more.
    pub fn forget(&self, address: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(address);
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<String, Contact> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, address: &str, change: impl FnOnce(&mut Contact)) {
        let mut contacts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match contacts.get_mut(address) {
            Some(contact) => change(contact),
            None => change(contacts.entry(address.to_owned()).or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_in_the_order_of_their_discriminants_and_have_names_of_their_own() {
        assert!(Lost::ALL.iter().enumerate().all(|(i, &why)| why as usize == i));
        let names: std::collections::BTreeSet<_> = Lost::ALL.iter().map(|why| why.name()).collect();
        assert_eq!(names.len(), Lost::ALL.len());
    }
}
