//! Is the peer still there? An ECHO_REQUEST after silence, and a verdict if silence goes on.

use std::time::{Duration, Instant};

use openflow::{Version, frame};

use crate::message_type::{ECHO_REPLY, ECHO_REQUEST};

/// Pure state of one connection's keepalive; the caller brings the clock and a timer.
///
/// Anything that is heard proves life, not only the echo's reply: a busy switch may have a long
/// queue before it. Frames that wait unread because of back-pressure prove it too, so while any
/// are [pending](crate::Connection::pending_bytes), call [`heard`](Self::heard) instead of
/// declaring the peer dead for our own slowness.
#[derive(Debug, Clone)]
pub struct Keepalive {
    interval: Duration,
    timeout: Duration,
    heard: Instant,
    probed: Option<Instant>,
    xid: u32,
}

/// What [`Keepalive::poll`] asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// Nothing to do before [`Keepalive::deadline`].
    Idle,
    /// Send an ECHO_REQUEST (see [`Keepalive::write_probe`]), then poll again at [`Keepalive::deadline`].
    SendEcho,
    /// Nothing was heard for the whole time-out after the probe: close the connection.
    Dead,
}

impl Keepalive {
    /// A connection that was last heard `now`. It is probed after `interval` of silence, and dead
    /// after `timeout` more. All probes have the number `xid`, by which their replies are known.
    pub fn new(interval: Duration, timeout: Duration, xid: u32, now: Instant) -> Self {
        Keepalive { interval, timeout, heard: now, probed: None, xid }
    }

    /// Bytes have arrived. Cheap: call it once per read.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
        self.probed = None;
    }

    /// What to do now. Calling early or often does no harm.
    pub fn poll(&mut self, now: Instant) -> Liveness {
        if now < self.deadline() {
            return Liveness::Idle;
        }
        match self.probed {
            Some(_) => Liveness::Dead,
            None => {
                self.probed = Some(now);
                Liveness::SendEcho
            }
        }
    }

    /// When to poll next.
    pub fn deadline(&self) -> Instant {
        match self.probed {
            Some(probed) => probed + self.timeout,
            None => self.heard + self.interval,
        }
    }

    /// Appends the ECHO_REQUEST.
    pub fn write_probe(&self, version: Version, out: &mut Vec<u8>) {
        // The frame has 8 bytes.
        let _ = frame::write(version, ECHO_REQUEST, self.xid, out, |_| {});
    }

    /// True if `frame` is the reply to a probe, which is then for nobody else.
    pub fn is_reply(&self, frame: &[u8]) -> bool {
        frame::type_(frame) == Some(ECHO_REPLY) && frame::xid(frame) == Some(self.xid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const XID: u32 = 0xfeed;

    /// Each step: (second, did we hear something just before, expected).
    fn check(steps: &[(u64, bool, &str)]) {
        let start = Instant::now();
        let seconds = Duration::from_secs;
        let mut keepalive = Keepalive::new(seconds(5), seconds(3), XID, start);
        for &(second, heard, expected) in steps {
            let now = start + seconds(second);
            if heard {
                keepalive.heard(now);
            }
            let got = match keepalive.poll(now) {
                Liveness::Idle => {
                    format!("idle until {}", (keepalive.deadline() - start).as_secs())
                }
                Liveness::SendEcho => "echo".to_owned(),
                Liveness::Dead => "dead".to_owned(),
            };
            assert_eq!(got, expected, "at second {second}");
        }
    }

    #[test]
    fn a_silent_peer_gets_an_echo_request_and_then_times_out() {
        check(&[
            (0, false, "idle until 5"),
            (4, false, "idle until 5"),
            (5, false, "echo"),
            (6, false, "idle until 8"),
            (8, false, "dead"),
            (9, false, "dead"),
        ]);
    }

    #[test]
    fn any_received_traffic_restarts_the_idle_timer() {
        check(&[
            (4, true, "idle until 9"),
            (9, false, "echo"),
            (11, true, "idle until 16"),
            (16, false, "echo"),
            (19, true, "idle until 24"),
        ]);
    }

    #[test]
    fn an_echo_request_sent_late_still_has_the_whole_timeout() {
        check(&[(60, false, "echo"), (62, false, "idle until 63"), (63, false, "dead")]);
    }

    #[test]
    fn only_an_echo_reply_with_the_xid_of_the_probe_is_a_probe_reply() {
        let keepalive = Keepalive::new(Duration::ZERO, Duration::ZERO, XID, Instant::now());
        let mut out = Vec::new();
        keepalive.write_probe(Version::V1_3, &mut out);
        assert_eq!(out, [4, 2, 0, 8, 0, 0, 0xfe, 0xed]);
        assert!(!keepalive.is_reply(&out));
        assert!(keepalive.is_reply(&[4, 3, 0, 8, 0, 0, 0xfe, 0xed]));
        assert!(!keepalive.is_reply(&[4, 3, 0, 8, 0, 0, 0xfe, 0xee]), "a tenant's own echo");
        assert!(!keepalive.is_reply(&[]));
    }
}
