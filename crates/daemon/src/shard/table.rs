//! The meaning of an event loop's tokens and timers.

use channel::{Connection, Handshake, Listener, TimerKey, Token};
use std::time::Duration;

/// The longest time of a handshake.
pub(super) const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The meaning of a token.
pub(super) enum Entry {
    /// A listener for switches.
    Listener(Listener),
    /// A switch that has not identified itself.
    Arriving(Box<Arriving>),
    /// The switch of a session.
    Switch(usize),
    /// A controller connection of a session: session, link.
    Controller(usize, u32),
}

/// A switch in the handshake.
pub(super) struct Arriving {
    pub token: Token,
    pub connection: Connection,
    pub handshake: Handshake,
}

/// Entries by token.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Option<(Token, Entry)>>,
}

impl Table {
    pub(super) fn put(&mut self, token: Token, entry: Entry) {
        let at = token.index();
        if self.entries.len() <= at {
            self.entries.resize_with(at + 1, || None);
        }
        self.entries[at] = Some((token, entry));
    }

    pub(super) fn get(&mut self, token: Token) -> Option<&mut Entry> {
        match self.entries.get_mut(token.index()) {
            Some(Some((known, entry))) if *known == token => Some(entry),
            _ => None,
        }
    }

    pub(super) fn take(&mut self, token: Token) -> Option<Entry> {
        self.get(token)?;
        self.entries.get_mut(token.index())?.take().map(|(_, entry)| entry)
    }

    pub(super) fn tokens(&self) -> Vec<Token> {
        self.entries.iter().flatten().map(|(token, _)| *token).collect()
    }

    pub(super) fn at(&self, index: usize) -> Option<Token> {
        self.entries.get(index)?.as_ref().map(|(token, _)| *token)
    }
}

/// The purpose of a timer; the number is a token's index, a session or a link.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// The handshake of a switch takes too long.
    Arrival(usize),
    /// The core of a session has a time-out.
    Core(usize),
    /// Check whether the switch of the session is alive.
    Alive(usize),
    /// A link of a session: dial again, end a handshake, or check whether the controller is alive.
    Link(usize, u32),
    /// Publish metrics.
    Publish,
    /// A listener accepts new connections again.
    Accept(usize),
}

impl Timer {
    pub(super) fn key(self) -> TimerKey {
        let (kind, a, b) = match self {
            Timer::Arrival(at) => (1, at as u64, 0),
            Timer::Core(at) => (2, at as u64, 0),
            Timer::Alive(at) => (3, at as u64, 0),
            Timer::Link(at, link) => (4, at as u64, u64::from(link)),
            Timer::Publish => (5, 0, 0),
            Timer::Accept(at) => (6, at as u64, 0),
        };
        TimerKey(kind << 60 | (a & 0xfff_ffff) << 32 | b)
    }

    pub(super) fn from_key(key: TimerKey) -> Option<Timer> {
        let (a, b) = ((key.0 >> 32 & 0xfff_ffff) as usize, key.0 as u32);
        Some(match key.0 >> 60 {
            1 => Timer::Arrival(a),
            2 => Timer::Core(a),
            3 => Timer::Alive(a),
            4 => Timer::Link(a, b),
            5 => Timer::Publish,
            6 => Timer::Accept(a),
            _ => return None,
        })
    }
}
