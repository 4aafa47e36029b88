//! Makes, accepts, reads, flushes, watches and closes a worker's connections.

use super::{End, Peer, READ_AT_ONCE, READ_SLOWLY, Worker};
use crate::conn::{Conn, Flushed};
use crate::endpoint::{Context, ControllerEnd, Effect, SwitchEnd};
use crate::fault::Fault;
use crate::run::Due;
use crate::wire::be16;
use channel::{CloseReason, TlsStream};
use rustix::event::epoll;
use std::cmp::Reverse;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The wait before a switch dials again, in ns.
const REDIAL_NS: u64 = 200_000_000;

impl Worker {
    /// Connects every switch that is not connected, with a bounded number of attempts per second.
    pub(super) fn dial_missing(&mut self) {
        if self.redial_at == u64::MAX || self.clock.now() < self.redial_at {
            return;
        }
        self.redial_at = u64::MAX;
        for index in 0..self.dials.len() {
            if self.switches.get(index).copied().flatten().is_some() {
                continue;
            }
            let Some(&address) = self.dials.get(index) else { continue };
            let nodelay = self.setup.switch_nodelay.unwrap_or(self.setup.nodelay);
            let tls = self.switch_tls.as_ref();
            let connected = TcpStream::connect_timeout(&address, Duration::from_millis(200))
                .and_then(|stream| {
                    let tls = tls.map(|tls| TlsStream::connect(tls, address)).transpose();
                    Conn::new(stream, nodelay, tls.map_err(std::io::Error::other)?)
                });
            match connected {
                Ok(mut conn) => {
                    let end = SwitchEnd::new(&self.setup, index, &mut conn.out);
                    let token = self.add(conn, End::Switch(Box::new(end)));
                    if let Some(place) = self.switches.get_mut(index) {
                        *place = token;
                    }
                }
                Err(_) => {
                    self.faults.count(Fault::SwitchClosed { switch: index });
                    self.redial_at = self.clock.now() + REDIAL_NS;
                    return;
                }
            }
        }
    }

    /// Accepts one connection. If there are more connections, epoll reports the socket again.
    pub(super) fn accept(&mut self, tenant: usize) {
        let accepted = self.listeners.get(tenant).map(TcpListener::accept);
        let Some(Ok((stream, _))) = accepted else { return };
        let Ok(tls) = self.controller_tls.as_ref().map(TlsStream::accept).transpose() else {
            return;
        };
        if let Ok(mut conn) = Conn::new(stream, self.setup.nodelay, tls) {
            let end = ControllerEnd::new(&self.setup, tenant, &mut conn.out);
            self.add(conn, End::Controller(end));
        }
    }

    fn add(&mut self, conn: Conn, end: End) -> Option<usize> {
        let free = self.peers.iter().position(Option::is_none).unwrap_or(self.peers.len());
        let data = epoll::EventData::new_u64(free as u64);
        epoll::add(&self.epoll, &conn, data, epoll::EventFlags::IN).ok()?;
        let peer = Peer {
            conn,
            end,
            reads: true,
            parked: Vec::new(),
            dirty: false,
            batched: 0,
            watches_room: false,
        };
        if free == self.peers.len() {
            self.peers.push(Some(peer));
        } else if let Some(place) = self.peers.get_mut(free) {
            *place = Some(peer);
        }
        self.mark_dirty(free);
        self.flush_dirty();
        // While the HELLO was written, the other end may have closed the connection.
        self.peers.get(free)?.as_ref().map(|_| free)
    }

    pub(super) fn mark_dirty(&mut self, token: usize) {
        if let Some(Some(peer)) = self.peers.get_mut(token)
            && !peer.dirty
        {
            peer.dirty = true;
            self.dirty.push(token);
        }
    }

    pub(super) fn flush_dirty(&mut self) {
        while let Some(token) = self.dirty.pop() {
            if let Some(Some(peer)) = self.peers.get_mut(token) {
                peer.dirty = false;
                if peer.conn.blocked {
                    continue;
                }
                if std::mem::take(&mut peer.batched) > 0
                    && let Some(run) = &mut self.run
                {
                    run.part.writes += 1;
                }
                if peer.conn.flush() == Flushed::Closed {
                    self.close(token);
                } else {
                    self.watch(token);
                }
            }
        }
    }

    /// Registers the events for this peer with epoll, if the events have changed.
    pub(super) fn watch(&mut self, token: usize) {
        let Some(Some(peer)) = self.peers.get_mut(token) else { return };
        let full = matches!(&peer.end, End::Switch(end) if end.is_full());
        let reads = peer.conn.may_read() && !full;
        let room = peer.conn.blocked;
        if (reads, room) == (peer.reads, peer.watches_room) {
            return;
        }
        (peer.reads, peer.watches_room) = (reads, room);
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, reads);
        flags.set(epoll::EventFlags::OUT, room);
        let data = epoll::EventData::new_u64(token as u64);
        let _ = epoll::modify(&self.epoll, &peer.conn, data, flags);
    }

    fn close(&mut self, token: usize) {
        let Some(peer) = self.peers.get_mut(token).and_then(Option::take) else { return };
        let _ = epoll::delete(&self.epoll, &peer.conn);
        if let Some(reason) =
            peer.conn.failure().filter(|reason| **reason != CloseReason::TlsTruncated)
        {
            self.faults.count(Fault::Tls { reason: reason.to_string() });
        }
        self.homeless.extend(&peer.parked);
        match &peer.end {
            End::Switch(end) => {
                self.faults.count(Fault::SwitchClosed { switch: end.index() });
                self.switches
                    .iter_mut()
                    .filter(|place| **place == Some(token))
                    .for_each(|p| *p = None);
                self.redial_at = self.clock.now() + REDIAL_NS;
                if end.is_introduced() {
                    self.progress.introduced.fetch_sub(1, Ordering::Relaxed);
                }
            }
            End::Controller(end) => {
                self.faults.count(Fault::ControllerClosed { tenant: end.tenant() });
                if let Some(ready) = self.controllers.get_mut(end.tenant()) {
                    ready.retain(|&other| other != token);
                }
                self.count_ready();
            }
        }
    }

    fn count_ready(&self) {
        let ready = self.controllers.iter().map(Vec::len).sum();
        self.progress.ready.store(ready, Ordering::Relaxed);
    }

    /// Handles a socket that has data, or space for writes.
    pub(super) fn ready(&mut self, token: usize, flags: epoll::EventFlags, now: u64) {
        if flags.contains(epoll::EventFlags::OUT) {
            self.room(token, now);
        }
        let end = epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        if flags.intersects(end) {
            self.read(token);
        }
    }

    /// Continues the senders of a socket that was full and has space again.
    fn room(&mut self, token: usize, now: u64) {
        let Some(Some(peer)) = self.peers.get_mut(token) else { return };
        if peer.conn.flush() == Flushed::Closed {
            self.close(token);
            return;
        }
        if !peer.conn.blocked {
            peer.batched = 0;
            let parked = std::mem::take(&mut peer.parked);
            self.resume(&parked, now);
        }
        self.watch(token);
    }

    pub(super) fn resume(&mut self, senders: &[usize], now: u64) {
        let Some(run) = &mut self.run else { return };
        for &place in senders {
            if let Some(sender) = run.senders.get_mut(place) {
                sender.excused_until = now;
                // The sender's intended times do not change, because the peer caused the stall.
                run.due.push(Reverse((now, Due::Send(place))));
            }
        }
    }

    fn read(&mut self, token: usize) {
        let Some(Some(peer)) = self.peers.get_mut(token) else { return };
        let slow = matches!(&peer.end, End::Switch(end) if end.is_slow());
        let small = slow && !peer.conn.reads_records();
        let limit = if small { READ_SLOWLY } else { READ_AT_ONCE };
        let Some(filled) = peer.conn.read(&mut self.scratch, limit) else {
            self.close(token);
            return;
        };
        let now = self.clock.now();
        let mut at = 0;
        let mut effect = Effect::None;
        while let Some(frame) = next_frame(self.scratch.get(at..filled).unwrap_or_default()) {
            let Ok(frame) = frame else {
                self.faults.count(Fault::BadLength);
                self.close(token);
                return;
            };
            at += frame.len();
            let mut context = Context { run: self.run.as_mut(), faults: &mut self.faults, now };
            let one = match &mut peer.end {
                End::Switch(end) => end.frame(frame, &mut peer.conn.out, &mut context),
                End::Controller(end) => end.frame(frame, &mut peer.conn.out, &mut context),
            };
            effect = effect.max(one);
            if let Effect::ServiceDoneAt(done) = one
                && let Some(run) = &mut self.run
            {
                run.due.push(Reverse((done, Due::Service(token))));
            }
        }
        peer.conn.keep(self.scratch.get(at..filled).unwrap_or_default());
        let answers = peer.conn.unsent() > 0 && !peer.conn.blocked;
        if matches!(peer.end, End::Switch(_)) {
            self.probe(false);
        }
        match effect {
            Effect::Ready => self.now_ready(token),
            Effect::Close => return self.close(token),
            Effect::None | Effect::ServiceDoneAt(_) => {}
        }
        if answers {
            self.mark_dirty(token);
            self.flush_dirty();
        } else {
            self.watch(token);
        }
    }

    fn now_ready(&mut self, token: usize) {
        if let Some(Some(Peer { end: End::Controller(end), .. })) = self.peers.get(token)
            && let Some(ready) = self.controllers.get_mut(end.tenant())
        {
            ready.push(token);
            self.count_ready();
        } else {
            self.progress.introduced.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The first whole frame; an error if its length field is below 8.
fn next_frame(bytes: &[u8]) -> Option<Result<&[u8], ()>> {
    let length = usize::from(be16(bytes, 2)?);
    if length < 8 {
        return Some(Err(()));
    }
    bytes.get(..length).map(Ok)
}
