//! The connections to tenants' controllers: counters per tenant, and the last state of each connection per switch.
//!
//! Counters are for a tenant over all switches, and survive sessions. The state of one connection belongs to a session
//! and ends with the session; it is written when a connection begins or ends, never per message.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use super::instruments::SharedCounter;

use crate::lock::lock;
use crate::system::now_ms;

/// The reason why a connection to a controller failed or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Lost {
    /// The controller refused the connection, is unreachable, or did not answer.
    Unreachable,
    /// TLS failed: expired, another authority, another name, plain text.
    Tls,
    /// HELLO failed, or the connection ended before HELLO.
    Handshake,
    /// No HELLO in time.
    Timeout,
    /// The controller closed, or the connection broke.
    Closed,
    /// The controller stopped answering.
    Silent,
    /// The controller did not read its replies, or sent bytes that are no message.
    Fault,
    /// Weir has no file descriptors left for the connection.
    Descriptors,
}

impl Lost {
    /// In the order of the discriminants, with the values of labels.
    pub const ALL: [(Lost, &str); 8] = [
        (Lost::Unreachable, "unreachable"),
        (Lost::Tls, "tls"),
        (Lost::Handshake, "handshake"),
        (Lost::Timeout, "timeout"),
        (Lost::Closed, "closed"),
        (Lost::Silent, "silent"),
        (Lost::Fault, "fault"),
        (Lost::Descriptors, "descriptors"),
    ];

    /// The label's value.
    pub fn name(self) -> &'static str {
        Lost::ALL[self as usize].1
    }
}

/// The counters of a tenant's connections, over all switches.
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

/// The state of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// Whether the connection is established.
    pub connected: bool,
    /// The number of attempts to connect.
    pub dials: u64,
    /// The last failure or end: the reason in one word, in words, and the time in milliseconds of Unix time.
    pub last_error: Option<(&'static str, String, u64)>,
    /// The time from the last failure until the next attempt, in milliseconds.
    pub retry: Option<u64>,
}

/// The connections of a tenant for one switch, by the controllers' addresses.
#[derive(Debug, Default)]
pub struct Contacts(Mutex<BTreeMap<String, Contact>>);

impl Contacts {
    /// Counts another attempt.
    pub fn dialled(&self, address: &str) {
        self.change(address, |contact| contact.dials += 1);
    }

    /// Notes that the connection is established.
    pub fn connected(&self, address: &str) {
        self.change(address, |contact| (contact.connected, contact.retry) = (true, None));
    }

    /// Notes that the connection failed or ended; Weir connects again after `retry`.
    pub fn lost(&self, address: &str, why: Lost, words: &str, retry: Duration) {
        let at = now_ms();
        self.change(address, |contact| {
            contact.connected = false;
            contact.retry = Some(retry.as_millis() as u64);
            contact.last_error = Some((why.name(), words.to_owned(), at));
        });
    }

    /// Forgets a controller that is not configured any more.
    pub fn forget(&self, address: &str) {
        lock(&self.0).remove(address);
    }

    /// All connections.
    pub fn all(&self) -> BTreeMap<String, Contact> {
        lock(&self.0).clone()
    }

    fn change(&self, address: &str, change: impl FnOnce(&mut Contact)) {
        let mut contacts = lock(&self.0);
        change(contacts.entry(address.to_owned()).or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_reasons_are_in_discriminant_order_and_have_unique_names() {
        assert!(Lost::ALL.iter().enumerate().all(|(i, &(why, _))| why as usize == i));
        let names: std::collections::BTreeSet<_> = Lost::ALL.iter().map(|(_, name)| name).collect();
        assert_eq!(names.len(), Lost::ALL.len());
    }
}
