//! Authentic datagrams, each accepted once.
//!
//! A process draws a *life*, a number that no earlier process had. The process answers an unexpected datagram with a
//! hello: a *token*, and the life in that datagram. A datagram is accepted if it carries the token that this process
//! gave to the peer, in the life in which the token was first used, with a new number. So a replay is refused:
//!
//! * a datagram recorded in an earlier life of ours carries a token that we never gave;
//! * a datagram recorded in an earlier life of the peer carries a used token: each new life of a peer needs a token
//!   that was drawn after the life before had begun;
//! * a datagram recorded in the present lives repeats a number.
//!
//! A peer that restarts is accepted after one datagram, a hello in reply, and the next datagram. Clocks need not agree.

use super::agent::AgentId;
use super::datagram::{HASH, HEADER, LONGEST_DATAGRAM};
use super::message::Message;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::hash::Hasher;
use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as SipHasher128};

const MAGIC: [u8; 4] = *b"WEIR";
const VERSION: u8 = 1;
/// The shortest time between two hellos to one peer: invalid datagrams must not make this process a source of many
/// hellos.
const BETWEEN_HELLOS: Duration = Duration::from_millis(50);
/// A datagram may be overtaken by this number of other datagrams.
const WINDOW: u64 = 64;

/// The key that all agents of a fabric share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct EdgeKey(pub [u8; 16]);

impl core::fmt::Debug for EdgeKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("EdgeKey(..)")
    }
}

impl core::str::FromStr for EdgeKey {
    type Err = NoKey;

    /// The text is 32 hexadecimal digits, with white space around them.
    fn from_str(text: &str) -> Result<EdgeKey, NoKey> {
        let digits = text.trim();
        let is_digit = |digit: u8| digit.is_ascii_hexdigit();
        if digits.len() != 32 || !digits.bytes().all(is_digit) {
            return Err(NoKey);
        }
        u128::from_str_radix(digits, 16).map(|key| EdgeKey(key.to_be_bytes())).map_err(|_| NoKey)
    }
}

/// The text is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoKey;

impl core::fmt::Display for NoKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a key is 32 hexadecimal digits: openssl rand -hex 16")
    }
}

impl core::error::Error for NoKey {}

/// The reason why a datagram was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The datagram has another format, is truncated, or was not made with the key.
    Garbage,
    /// The datagram was made with the key, but sender or receiver is not configured.
    Stranger,
    /// The datagram has no valid token; the peer gets a hello.
    Unplaced,
    /// The datagram was accepted before, or its number is far below the highest number.
    Repeated,
}

/// An accepted datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The sender.
    pub from: AgentId,
    /// The message; never a hello.
    pub message: Message,
}

/// One process's sessions with all its peers.
pub struct Sessions {
    key: EdgeKey,
    own: AgentId,
    life: u64,
    tokens: u64,
    peers: BTreeMap<AgentId, Peer>,
}

struct Peer {
    /// The life of the peer whose datagrams are accepted.
    current: Option<Current>,
    /// The token that another life of the peer has to show.
    offered: u64,
    /// The life of the peer that gets the next hello, and the time of the last hello.
    greet: Option<u64>,
    greeted: Option<Instant>,
    /// The token that the peer gave to this process, and the number of the hello with this token.
    token: u64,
    hello: Option<(u64, u64)>,
    /// The number of the next datagram to the peer.
    number: u64,
}

struct Current {
    life: u64,
    token: u64,
    /// The highest number, and a bit for each of the next lower numbers that was received.
    highest: u64,
    seen: u64,
}

struct Header {
    kind: u8,
    count: usize,
    from: AgentId,
    to: AgentId,
    life: u64,
    token: u64,
    number: u64,
}

impl Sessions {
    /// The sessions of the agent `own` with these peers; `life` is random.
    pub fn new(
        key: EdgeKey,
        own: AgentId,
        life: u64,
        peers: impl IntoIterator<Item = AgentId>,
    ) -> Sessions {
        let mut sessions = Sessions { key, own, life, tokens: 0, peers: BTreeMap::new() };
        for peer in peers {
            let offered = sessions.draw();
            let (current, greet, greeted, hello) = (None, None, None, None);
            sessions.peers.insert(
                peer,
                Peer { current, offered, greet, greeted, token: 0, hello, number: 0 },
            );
        }
        sessions
    }

    /// A datagram to this peer; `None` if the peer is unknown or the message does not fit.
    pub fn seal(&mut self, to: AgentId, message: &Message) -> Option<Vec<u8>> {
        let token = self.peers.get(&to)?.token;
        self.write(to, token, message)
    }

    /// The content of a datagram, if the datagram is accepted; `None` for a hello. A hello has one effect: later
    /// datagrams carry its token.
    pub fn open(&mut self, datagram: &[u8]) -> Result<Option<Opened>, Refused> {
        let (header, entries) = self.verify(datagram).ok_or(Refused::Garbage)?;
        let message = Message::read(header.kind, header.count, entries).ok_or(Refused::Garbage)?;
        if header.to != self.own {
            return Err(Refused::Stranger);
        }
        let peer = self.peers.get_mut(&header.from).ok_or(Refused::Stranger)?;
        if let Message::Hello { life } = message {
            let is_newer = match peer.hello {
                Some((life, number)) => life != header.life || number < header.number,
                None => true,
            };
            if life != self.life || !is_newer {
                return Err(Refused::Repeated);
            }
            peer.hello = Some((header.life, header.number));
            peer.token = header.token;
            return Ok(None);
        }
        match &mut peer.current {
            Some(current) if (current.life, current.token) == (header.life, header.token) => {
                current.take(header.number)?;
            }
            _ if header.token == peer.offered => {
                let (life, token, highest) = (header.life, header.token, header.number);
                peer.current = Some(Current { life, token, highest, seen: 1 });
                let offered = self.draw();
                if let Some(peer) = self.peers.get_mut(&header.from) {
                    peer.offered = offered;
                }
            }
            _ => {
                peer.greet = Some(header.life);
                return Err(Refused::Unplaced);
            }
        }
        Ok(Some(Opened { from: header.from, message }))
    }

    /// The sender that a datagram names. The name is authentic if the datagram was opened, or was refused as
    /// [`Refused::Unplaced`]: in both cases the hash was right.
    pub fn sender(datagram: &[u8]) -> Option<AgentId> {
        let from = datagram.get(8..16)?.try_into().ok()?;
        Some(AgentId(u64::from_be_bytes(from)))
    }

    /// A hello that is due, and its receiver.
    pub fn poll_hello(&mut self, now: Instant) -> Option<(AgentId, Vec<u8>)> {
        let is_due = |peer: &Peer| {
            // A clock that was set back must not suppress hellos.
            let rests = |last: Instant| last <= now && now - last < BETWEEN_HELLOS;
            peer.greet.is_some() && !peer.greeted.is_some_and(rests)
        };
        let (&to, peer) = self.peers.iter_mut().find(|(_, peer)| is_due(peer))?;
        peer.greeted = Some(now);
        let life = peer.greet.take()?;
        // If the peer has lost the token of its present life, this token stays valid.
        let known = peer.current.as_ref().filter(|current| current.life == life);
        let token = known.map_or(peer.offered, |current| current.token);
        Some((to, self.write(to, token, &Message::Hello { life })?))
    }

    fn write(&mut self, to: AgentId, token: u64, message: &Message) -> Option<Vec<u8>> {
        let peer = self.peers.get_mut(&to)?;
        peer.number += 1;
        let mut out = Vec::with_capacity(LONGEST_DATAGRAM);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, message.kind()]);
        out.extend_from_slice(&u16::try_from(message.count()).ok()?.to_be_bytes());
        for number in [self.own.0, to.0, self.life, token, peer.number] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        message.write(&mut out);
        out.extend_from_slice(&self.hash(&out));
        (out.len() <= LONGEST_DATAGRAM).then_some(out)
    }

    fn verify<'a>(&self, datagram: &'a [u8]) -> Option<(Header, &'a [u8])> {
        if datagram.len() > LONGEST_DATAGRAM {
            return None;
        }
        let (signed, hash) = datagram.split_at_checked(datagram.len().checked_sub(HASH)?)?;
        let (header, entries) = signed.split_at_checked(HEADER)?;
        // The comparison reads all bytes, so the time does not reveal how many bytes were right.
        let wrong = hash.iter().zip(self.hash(signed)).fold(0, |sum, (a, b)| sum | (a ^ b));
        if wrong != 0 || header[..4] != MAGIC || header[4] != VERSION {
            return None;
        }
        let word = |at: usize| Some(u64::from_be_bytes(header.get(at..at + 8)?.try_into().ok()?));
        let header = Header {
            kind: header[5],
            count: usize::from(u16::from_be_bytes([header[6], header[7]])),
            from: AgentId(word(8)?),
            to: AgentId(word(16)?),
            life: word(24)?,
            token: word(32)?,
            number: word(40)?,
        };
        Some((header, entries))
    }

    fn hash(&self, bytes: &[u8]) -> [u8; HASH] {
        let mut hasher = SipHasher128::new_with_key(&self.key.0);
        hasher.write(bytes);
        hasher.finish128().as_bytes()
    }

    /// A number that nobody without the key can guess. It is never 0, because 0 means "no token".
    fn draw(&mut self) -> u64 {
        self.tokens += 1;
        let mut hasher = SipHasher24::new_with_key(&self.key.0);
        hasher.write(b"token");
        hasher.write(&self.life.to_be_bytes());
        hasher.write(&self.tokens.to_be_bytes());
        hasher.finish().max(1)
    }
}

impl Current {
    fn take(&mut self, number: u64) -> Result<(), Refused> {
        if number > self.highest {
            let ahead = number - self.highest;
            self.seen = if ahead < WINDOW { self.seen << ahead } else { 0 } | 1;
            self.highest = number;
            return Ok(());
        }
        let behind = self.highest - number;
        if behind >= WINDOW || self.seen & (1 << behind) != 0 {
            return Err(Refused::Repeated);
        }
        self.seen |= 1 << behind;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
