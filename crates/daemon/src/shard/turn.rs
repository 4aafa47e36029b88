//! One turn of the event loop: handles events, reads, and writes.

use super::Shard;
use super::command::Command;
use super::connected::{Peer, shake_hands};
use super::table::{Arriving, Entry, Timer};
use crate::dpid::Dpid;
use crate::metrics::{Kind, Rejection};
use channel::{Connection, ReadState, Readiness, TimerKey, Token};

/// The most bytes read from a switch in one turn; some hundred messages.
const SWITCH_BUDGET: usize = 32 << 10;
/// The same for a switch that serves no tenant yet: the switch may be a stranger whose statistics never end.
const NEWCOMER_BUDGET: usize = 4 << 10;
/// The most bytes read from a controller in one turn: few, so that a flood delays other tenants only a little. With 4
/// KiB, system calls take about as much time of a turn as messages.
pub(super) const CONTROLLER_BUDGET: usize = 4 << 10;
impl Shard {
    pub(super) fn ready(&mut self, readiness: Readiness) {
        match self.table.get(readiness.token) {
            Some(Entry::Listener(_)) => self.accept(readiness.token),
            Some(Entry::Arriving(_)) => self.arriving(readiness),
            Some(&mut Entry::Switch(at)) => self.switch_ready(at, readiness),
            Some(&mut Entry::Controller(at, link)) => self.link_ready(at, link, readiness),
            None => {}
        }
    }

    pub(super) fn timer(&mut self, key: TimerKey) {
        match Timer::from_key(key) {
            Some(Timer::Arrival(index)) => {
                if let Some(token) = self.table.at(index)
                    && matches!(self.table.get(token), Some(Entry::Arriving(_)))
                {
                    self.metrics.process.rejected(Kind::Switch, Rejection::Timeout).increment();
                    tracing::warn!(
                        peer = self.arrivals.source(token).map(display),
                        "a switch connected and did not complete the handshake"
                    );
                    self.forget_arriving(token);
                }
            }
            Some(Timer::Core(at)) => {
                let now = self.now();
                if let Some(Some(session)) = self.sessions.get_mut(at) {
                    session.core.handle_timeout(now);
                    self.touch(at);
                }
            }
            Some(Timer::Alive(at)) => self.check_switch(at),
            Some(Timer::Link(at, link)) => self.link_timer(at, link),
            Some(Timer::Publish) => self.publish(),
            Some(Timer::Accept(index)) => {
                if let Some(token) = self.table.at(index) {
                    self.events.again(token);
                }
            }
            None => {}
        }
    }

    fn arriving(&mut self, readiness: Readiness) {
        let Some(Entry::Arriving(arriving)) = self.table.get(readiness.token) else { return };
        let connection = &mut arriving.connection;
        let state = connection.receive(SWITCH_BUDGET).state;
        let mut out = Vec::new();
        let verdict = shake_hands(connection, &mut arriving.handshake, &mut out);
        let pushed =
            connection.push(&out).map_err(|_| "it does not read Weir's answers".to_owned());
        let written = connection.flush().map_err(|reason| reason.to_string());
        // If the switch has closed the connection, the arm for `Closed` below logs the reason.
        let is_closed = matches!(state, ReadState::Closed(_));
        let failed = pushed.and(written.map(drop)).err().filter(|_| !is_closed);
        match verdict.or(failed.map(Err)) {
            Some(Ok(established)) => {
                if let Some(Entry::Arriving(arriving)) = self.table.take(readiness.token) {
                    self.arrivals.remove(readiness.token);
                    self.events.cancel_timer(Timer::Arrival(readiness.token.index()).key());
                    let Arriving { token, mut connection, .. } = *arriving;
                    if self.events.deregister(token, &mut connection).is_ok()
                        && let Some((connection, established)) =
                            self.admitted(connection, established)
                    {
                        self.route(connection, established);
                    }
                }
            }
            Some(Err(reason)) => {
                self.metrics.process.rejected(Kind::Switch, Rejection::Handshake).increment();
                let source = self.arrivals.source(readiness.token);
                tracing::warn!(peer = source.map(display), reason, "a switch failed the handshake");
                self.forget_arriving(readiness.token);
            }
            None => match state {
                ReadState::Closed(reason) => {
                    let why = if reason.is_tls() { Rejection::Tls } else { Rejection::Handshake };
                    self.metrics.process.rejected(Kind::Switch, why).increment();
                    let source = self.arrivals.source(readiness.token);
                    if why == Rejection::Tls {
                        tracing::warn!(peer = source.map(display), %reason, "the TLS of a switch failed");
                    } else {
                        tracing::debug!(
                            peer = source.map(display), %reason,
                            "a switch left before the handshake was complete"
                        );
                    }
                    self.forget_arriving(readiness.token);
                }
                ReadState::More => self.events.again(readiness.token),
                ReadState::Drained => {}
            },
        }
    }

    pub(super) fn forget_arriving(&mut self, token: Token) {
        if let Some(Entry::Arriving(mut arriving)) = self.table.take(token) {
            self.arrivals.remove(token);
            self.events.cancel_timer(Timer::Arrival(token.index()).key());
            arriving.connection.finish();
            let _ = self.events.deregister(token, &mut arriving.connection);
        }
    }

    /// Gives a switch to the shard that its datapath id selects.
    fn route(&mut self, connection: Connection, established: channel::Established) {
        let Some(features) = &established.switch else { return };
        if features.auxiliary_id != 0 {
            tracing::warn!(
                dpid = %Dpid(features.dpid),
                "an auxiliary connection of a switch was closed: Weir uses main connections only"
            );
            self.metrics.process.rejected(Kind::Switch, Rejection::Auxiliary).increment();
            return;
        }
        if hypervisor::big_switch::is_key(features.dpid) {
            tracing::warn!(
                dpid = %Dpid(features.dpid),
                "a switch was turned away: Weir reserves datapath ids from ffff:... on for big switches"
            );
            self.metrics.process.rejected(Kind::Switch, Rejection::ReservedDpid).increment();
            return;
        }
        let shard = self.shard_of(features.dpid);
        let switch = Box::new((connection, established));
        if shard == self.number {
            self.load(switch);
        } else if let Some(peer) = self.peers.get(shard) {
            peer.send(Command::Adopt(switch));
        }
    }

    /// The shard that a datapath id selects.
    pub(super) fn shard_of(&self, dpid: u64) -> usize {
        // Consecutive datapath ids are common, so the remainder spreads switches well.
        (dpid % self.peers.len().max(1) as u64) as usize
    }

    fn switch_ready(&mut self, at: usize, readiness: Readiness) {
        let now = self.now();
        let instant = self.events.now();
        let Some(Some(session)) = self.sessions.get_mut(at) else { return };
        let Peer { connection, keepalive, token, .. } = &mut session.switch;
        connection.note(&readiness);
        let mut left = if session.core.is_ready() { SWITCH_BUDGET } else { NEWCOMER_BUDGET };
        let over = loop {
            let received = connection.receive(left);
            left = left.saturating_sub(received.bytes);
            if received.bytes > 0 {
                keepalive.heard(instant);
            }
            loop {
                match connection.next_frame() {
                    Ok(Some(frame)) => {
                        self.coalescing.count();
                        session.core.handle_switch_message(frame, now);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        let dpid = session.core.dpid();
                        self.close_session(at, &format!("{error}"), dpid);
                        return;
                    }
                }
            }
            match received.state {
                ReadState::More if left > 0 => {}
                ReadState::More => {
                    self.events.again(*token);
                    break None;
                }
                ReadState::Drained => break None,
                ReadState::Closed(reason) => break Some(reason),
            }
        };
        match over {
            Some(reason) => {
                let dpid = session.core.dpid();
                self.close_session(at, &reason.to_string(), dpid);
            }
            None => self.touch(at),
        }
    }

    pub(super) fn touch(&mut self, at: usize) {
        if let Some(Some(session)) = self.sessions.get_mut(at)
            && !session.touched
        {
            session.touched = true;
            self.touched.push(at);
        }
    }

    /// Lets one session serve a tenant that waits for its turn. Returns whether a session had such a tenant.
    pub(super) fn give_turn(&mut self) -> bool {
        let now = self.now();
        let Some(at) = self.in_line.pop_front() else { return false };
        if let Some(Some(session)) = self.sessions.get_mut(at) {
            session.core.next_turn(now);
            // The next write to the session shows whether a tenant still waits.
            self.touch(at);
        }
        true
    }

    /// Writes the messages of this turn.
    pub(super) fn finish_turn(&mut self) {
        self.push_unstored();
        // Closing a session or a link may touch others.
        while let Some(at) = self.touched.pop() {
            if let Some(Some(session)) = self.sessions.get_mut(at) {
                session.touched = false;
                self.pump(at);
            }
        }
    }
}
