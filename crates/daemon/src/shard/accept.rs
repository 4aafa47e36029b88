//! Accepts switches: bounds their number, closes old connections for new ones, and admits identified switches.

use super::Shard;
use super::arrivals::TURN;
use super::table::{Arriving, Entry, HANDSHAKE_TIME, Timer};
use crate::admission::{Refused, Standing};
use crate::dpid::Dpid;
use crate::metrics::{Kind, Rejection};
use channel::{Connection, Established, Handshake, PeerCertificate, Scheme, Token};
use hypervisor::big_switch::is_key;
use openflow::VersionSet;
use std::net::IpAddr;
use std::time::Duration;

/// The wait after an error of the operating system, which is not the switch's fault.
const LATER: Duration = Duration::from_secs(1);

impl Shard {
    pub(super) fn accept(&mut self, token: Token) {
        let now = self.events.now();
        for _ in 0..TURN {
            let Some(Entry::Listener(listener)) = self.table.get(token) else { return };
            let tls = listener.address().scheme == Scheme::Ssl;
            if let Err(when) = self.arrivals.pace(token, tls, now) {
                self.events.set_timer(Timer::Accept(token.index()).key(), when);
                return;
            }
            match listener.accept() {
                Ok(Some((connection, peer))) => {
                    tracing::debug!(%peer, "a switch connects");
                    self.welcome(connection, token, peer.ip());
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%error, "cannot accept");
                    self.events.set_timer(Timer::Accept(token.index()).key(), now + LATER);
                    return;
                }
            }
        }
        // Other work gets its turn before further connections are accepted.
        self.events.again(token);
    }

    pub(super) fn welcome(&mut self, mut connection: Connection, listener: Token, source: IpAddr) {
        let mut permit = self.descriptors.switch();
        if permit.is_none() {
            // A silent connection is closed for a new connection, which may be a switch.
            if let Some(oldest) = self.arrivals.oldest(source) {
                self.give_way(oldest);
                permit = self.descriptors.switch();
            }
        }
        let Some(permit) = permit else {
            self.metrics.process.rejected(Kind::Switch, Rejection::Descriptors).increment();
            tracing::warn!(
                peer = %source,
                limit = self.descriptors.limit(),
                "no file descriptor is left for another switch; turned away: raise the limit (ulimit -n)"
            );
            return;
        };
        connection.hold(permit);
        let handshake = Handshake::towards_switch(VersionSet::SUPPORTED, 0);
        let mut hello = Vec::new();
        handshake.start(&mut hello);
        let pushed = connection.push(&hello).map_err(|_| "the HELLO has no room".to_owned());
        let registered = pushed.and_then(|()| {
            self.events.register(&mut connection).map_err(|error| error.to_string())
        });
        let token = match registered {
            Ok(token) => token,
            Err(reason) => {
                self.metrics.process.rejected(Kind::Switch, Rejection::Handshake).increment();
                tracing::warn!(peer = %source, reason, "cannot begin the handshake with a switch");
                return;
            }
        };
        let until = self.events.now() + HANDSHAKE_TIME;
        self.events.set_timer(Timer::Arrival(token.index()).key(), until);
        let arriving = Arriving { token, connection, handshake };
        self.table.put(token, Entry::Arriving(Box::new(arriving)));
        if let Some(gives_way) = self.arrivals.add(token, listener, source) {
            self.give_way(gives_way);
        }
        self.events.again(token);
    }

    fn give_way(&mut self, token: Token) {
        let source = self.arrivals.source(token);
        self.metrics.process.rejected(Kind::Switch, Rejection::TooMany).increment();
        tracing::warn!(
            peer = source.map(display),
            "too many switches are shaking hands; the one that has waited longest is turned away"
        );
        self.forget_arriving(token);
    }

    /// Whether a switch with this datapath id is admitted; a refusal is logged and counted.
    pub(super) fn admit(&mut self, connection: &mut Connection, dpid: u64) -> bool {
        let source = connection.peer_address().map(|peer| peer.ip());
        let shown = connection.peer_certificate();
        let admitted =
            self.judge(dpid, source, shown.as_ref()).and_then(|standing| match standing {
                Standing::Listed | Standing::Pinned => Ok(()),
                Standing::Unlisted => {
                    connection.hold(self.unlisted.take(&self.snapshot.admission)?);
                    Ok(())
                }
            });
        match admitted {
            Ok(()) => {
                source.into_iter().for_each(|source| self.arrivals.recognise(source));
                true
            }
            Err(refused) => {
                self.refuse(dpid, source, &refused);
                false
            }
        }
    }

    fn judge(
        &self,
        dpid: u64,
        source: Option<IpAddr>,
        shown: Option<&PeerCertificate>,
    ) -> Result<Standing, Refused> {
        let standing = self.snapshot.admission.judge(dpid, source, shown)?;
        if let (Standing::Pinned, Some(shown)) = (standing, shown) {
            self.pins.check(dpid, shown)?;
        }
        Ok(standing)
    }

    /// Pins the first certificate of a switch whose session begins, if the configuration says so. Whether the session
    /// may begin.
    pub(super) fn pin(&self, dpid: u64, connection: &Connection) -> bool {
        let source = connection.peer_address().map(|peer| peer.ip());
        let Some(shown) = connection.peer_certificate() else { return true };
        let standing = self.snapshot.admission.judge(dpid, source, Some(&shown));
        if standing != Ok(Standing::Pinned) {
            return true;
        }
        let pinned = self.pins.pin(dpid, &shown);
        if let Err(refused) = &pinned {
            self.refuse(dpid, source, refused);
        }
        pinned.is_ok()
    }

    fn refuse(&self, dpid: u64, source: Option<IpAddr>, refused: &Refused) {
        self.metrics.process.rejected(Kind::Switch, refused.rejection()).increment();
        tracing::warn!(
            dpid = %Dpid(dpid), peer = source.map(display), reason = %refused, "a switch is turned away"
        );
    }

    /// After a reload, closes switches that are not admitted any more.
    pub(super) fn judge_again(&mut self) {
        for at in 0..self.sessions.len() {
            let Some(Some(session)) = self.sessions.get(at) else { continue };
            let dpid = session.core.dpid();
            let connection = &session.switch.connection;
            let source = connection.peer_address().map(|peer| peer.ip());
            let shown = connection.peer_certificate();
            // A big switch is Weir's own.
            if is_key(dpid) {
                continue;
            }
            if let Err(refused) = self.judge(dpid, source, shown.as_ref()) {
                self.refuse(dpid, source, &refused);
                self.close_session(at, "the configuration does not list it any more", dpid);
            }
        }
    }

    /// Each gauge has one writer: here the first shard.
    pub(super) fn publish_descriptors(&self) {
        if self.number == 0 {
            let (switches, controllers) = self.descriptors.used();
            let values = [self.descriptors.limit(), switches, controllers];
            let gauges = &self.metrics.process.descriptors;
            gauges.iter().zip(values).for_each(|(gauge, value)| gauge.set(value));
        }
    }

    /// Refuses or admits a switch with a complete handshake.
    pub(super) fn admitted(
        &mut self,
        mut connection: Connection,
        established: Established,
    ) -> Option<(Connection, Established)> {
        let dpid = established.switch.as_ref()?.dpid;
        if self.admit(&mut connection, dpid) {
            return Some((connection, established));
        }
        connection.finish();
        None
    }
}
