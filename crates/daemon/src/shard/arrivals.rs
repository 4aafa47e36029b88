//! Connections of switches that have not identified themselves: their number is bounded, and the oldest ones are
//! closed.
//!
//! Everybody who reaches the port can open such connections, so they use few resources, and many connections cannot
//! keep others out: if a bound is reached, the connection that has waited longest is closed. Connections from addresses
//! from which a switch has connected before are counted separately; strangers cannot displace them.
//!
//! The module is pure: connections are tokens, and time is an argument.

use channel::Token;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// The most connections of strangers, and the same number from known addresses; at most half of it from one address.
const MOST: usize = 2048;
/// The most known addresses; the oldest are forgotten.
const KNOWN: usize = 4096;
/// The most new connections of one listener in a turn of the event loop.
pub(super) const TURN: u32 = 64;
/// The most new connections of one listener per second, without TLS and with TLS: a TLS handshake needs a signature.
const PLAIN_RATE: u32 = 2000;
const TLS_RATE: u32 = 300;

/// A connection in the handshake.
#[derive(Clone, Copy, Debug)]
struct One {
    number: u64,
    listener: Token,
    source: IpAddr,
    known: bool,
}

/// All connections in the handshake.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    most: usize,
    next: u64,
    by_token: HashMap<Token, One>,
    /// The connections by age; those of known addresses are separate.
    by_age: [BTreeMap<u64, Token>; 2],
    by_source: HashMap<(Token, IpAddr), VecDeque<Token>>,
    known: HashMap<IpAddr, u64>,
    known_by_age: BTreeMap<u64, IpAddr>,
    paces: HashMap<Token, Pace>,
}

impl Arrivals {
    /// At most `most` connections of known and of unknown addresses each.
    pub(super) fn new(most: usize) -> Arrivals {
        Arrivals { most: most.clamp(2, MOST), ..Arrivals::default() }
    }

    /// Adds a connection. Returns the connection that has to be closed and removed for it, if any.
    pub(super) fn add(&mut self, token: Token, listener: Token, source: IpAddr) -> Option<Token> {
        let known = self.known.contains_key(&source);
        let number = self.next;
        self.next += 1;
        let of_source = self.by_source.entry((listener, source)).or_default();
        let gives_way = if of_source.len() >= self.most / 2 {
            of_source.front().copied()
        } else if self.by_age[usize::from(known)].len() >= self.most {
            self.by_age[usize::from(known)].first_key_value().map(|(_, token)| *token)
        } else {
            None
        };
        of_source.push_back(token);
        self.by_age[usize::from(known)].insert(number, token);
        self.by_token.insert(token, One { number, listener, source, known });
        gives_way
    }

    /// Removes a connection that has identified itself or has ended.
    pub(super) fn remove(&mut self, token: Token) {
        let Some(one) = self.by_token.remove(&token) else { return };
        self.by_age[usize::from(one.known)].remove(&one.number);
        let key = (one.listener, one.source);
        if let Some(of_source) = self.by_source.get_mut(&key) {
            // Most removed connections are the oldest, so the search is short.
            if let Some(at) = of_source.iter().position(|other| *other == token) {
                of_source.remove(at);
            }
            if of_source.is_empty() {
                self.by_source.remove(&key);
            }
        }
    }

    /// Notes that a switch has identified itself from this address.
    pub(super) fn recognise(&mut self, source: IpAddr) {
        let number = self.next;
        self.next += 1;
        if let Some(before) = self.known.insert(source, number) {
            self.known_by_age.remove(&before);
        }
        self.known_by_age.insert(number, source);
        if self.known_by_age.len() > KNOWN
            && let Some((_, oldest)) = self.known_by_age.pop_first()
        {
            self.known.remove(&oldest);
        }
    }

    /// The connection to close for a new one from this address if there is no room at all: a stranger's, or, for a
    /// known address, another connection from a known address.
    pub(super) fn oldest(&self, source: IpAddr) -> Option<Token> {
        let first = |at: usize| self.by_age[at].first_key_value().map(|(_, token)| *token);
        first(0).or_else(|| self.known.contains_key(&source).then(|| first(1)).flatten())
    }

    /// The address of a connection.
    pub(super) fn source(&self, token: Token) -> Option<IpAddr> {
        self.by_token.get(&token).map(|one| one.source)
    }

    /// Whether the listener may accept another connection now; otherwise the error has the time when it may.
    pub(super) fn pace(&mut self, listener: Token, tls: bool, now: Instant) -> Result<(), Instant> {
        let rate = if tls { TLS_RATE } else { PLAIN_RATE };
        self.paces.entry(listener).or_insert_with(|| Pace::new(rate, now)).take(now)
    }
}

/// A bound on connections per second: the connections of one second may arrive at once.
#[derive(Debug)]
struct Pace {
    gap: Duration,
    /// The time by which all accepted connections would have arrived at the bounded rate.
    full: Instant,
}

impl Pace {
    fn new(per_second: u32, now: Instant) -> Pace {
        Pace { gap: Duration::from_secs(1) / per_second.max(1), full: now }
    }

    fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let full = self.full.max(now);
        let ahead = full - now;
        if ahead + self.gap > Duration::from_secs(1) {
            // After a tenth of a second there is room for many connections; waking up for each one would be unnecessary
            // work.
            return Err(now + Duration::from_millis(100));
        }
        self.full = full + self.gap;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use channel::{Connection, EventLoop, Options};

    /// This number of tokens of connections.
    fn tokens(count: usize) -> Vec<Token> {
        let mut events = EventLoop::new().unwrap();
        let (mut one, _other) = Connection::local_pair(&Options::default()).unwrap();
        let mut next = || {
            let token = events.register(&mut one).unwrap();
            events.deregister(token, &mut one).unwrap();
            token
        };
        (0..count).map(|_| next()).collect()
    }

    fn address(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[test]
    fn beyond_the_maximum_the_oldest_handshake_of_an_address_is_removed() {
        let tokens = tokens(1102);
        let (listener, all) = tokens.split_first().unwrap();
        let mut arrivals = Arrivals::new(1000);
        let mut gone = Vec::new();
        for token in &all[..1100] {
            if let Some(gives_way) = arrivals.add(*token, *listener, address(1)) {
                arrivals.remove(gives_way);
                gone.push(gives_way);
            }
        }
        assert_eq!(gone, all[..600], "half of all from one address, the oldest first");
        assert_eq!(arrivals.add(all[1100], *listener, address(2)), None, "others find room");
    }

    #[test]
    fn handshakes_from_unknown_addresses_do_not_displace_known_addresses() {
        let tokens = tokens(2001);
        let (listener, all) = tokens.split_first().unwrap();
        let mut arrivals = Arrivals::new(10);
        arrivals.recognise(address(200));
        assert_eq!(arrivals.add(all[0], *listener, address(200)), None);
        for (number, token) in all.iter().enumerate().skip(1) {
            if let Some(gives_way) = arrivals.add(*token, *listener, address((number % 100) as u8))
            {
                assert_ne!(gives_way, all[0]);
                arrivals.remove(gives_way);
            }
        }
        assert_eq!(arrivals.by_token.len(), 11);
        assert_eq!(arrivals.source(all[0]), Some(address(200)));
    }

    /// At most 2,048 connections from unknown addresses and 2,048 from known addresses wait for the handshake, and at
    /// most 1,024 from one address.
    #[test]
    fn the_maxima_of_waiting_handshakes_are_as_the_security_page_says() {
        let tokens = tokens(3 * 2_048 + 3);
        let (listener, all) = tokens.split_first().unwrap();
        let source =
            |first: u8, number: usize| IpAddr::from([first, 0, (number >> 8) as u8, number as u8]);
        let mut arrivals = Arrivals::new(MOST);
        (0..2_049).for_each(|number| arrivals.recognise(source(11, number)));
        let (strangers, all) = all.split_at(2_049);
        let (known, of_one) = all.split_at(2_049);
        for (first, tokens) in [(10, strangers), (11, known)] {
            let mut add = |number| arrivals.add(tokens[number], *listener, source(first, number));
            assert!((0..2_048).all(|number| add(number).is_none()));
            assert_eq!(add(2_048), Some(tokens[0]));
        }
        let mut arrivals = Arrivals::new(MOST);
        let mut add = |number: usize| arrivals.add(of_one[number], *listener, address(1));
        assert!((0..1_024).all(|number| add(number).is_none()));
        assert_eq!(add(1_024), Some(of_one[0]));
    }

    #[test]
    fn removed_handshakes_leave_no_state_and_known_addresses_are_bounded() {
        let tokens = tokens(50);
        let (listener, all) = tokens.split_first().unwrap();
        let mut arrivals = Arrivals::new(MOST);
        all.iter().for_each(|token| assert_eq!(arrivals.add(*token, *listener, address(1)), None));
        all.iter().for_each(|token| arrivals.remove(*token));
        assert!(arrivals.by_token.is_empty() && arrivals.by_source.is_empty());
        assert!(arrivals.by_age.iter().all(BTreeMap::is_empty));
        for number in 0..KNOWN as u32 * 2 {
            arrivals.recognise(IpAddr::from(number.to_be_bytes()));
        }
        assert_eq!((arrivals.known.len(), arrivals.known_by_age.len()), (KNOWN, KNOWN));
    }

    #[test]
    fn new_connections_are_limited_per_second_at_each_listener() {
        let listeners = tokens(2);
        let (mut arrivals, began) = (Arrivals::new(MOST), Instant::now());
        // Each listener has a rate of its own.
        for (listener, tls, rate) in [(listeners[0], true, 300), (listeners[1], false, 2_000)] {
            let flood = |arrivals: &mut Arrivals, now| {
                (0..10_000).take_while(|_| arrivals.pace(listener, tls, now).is_ok()).count() as u32
            };
            assert_eq!(flood(&mut arrivals, began), rate, "all switches of a network at once");
            let mut later = 0;
            for tenth in 1..=100 {
                later += flood(&mut arrivals, began + Duration::from_millis(tenth * 100));
            }
            assert!((rate * 9..=rate * 11).contains(&later), "{later} of {rate}");
        }
    }
}
