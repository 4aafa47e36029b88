//! Sends pings between hosts, as ICMP echo requests from raw sockets inside their namespaces.
//!
//! The program `ping` is not used: this module pings many pairs at once from one process, and needs no package.
//!
//! ```text
//!   for each host, a thread in its namespace:  send to all, few at a time ─ wait ─ send to the silent ─ ...
//! ```

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::command::{program, run};
use crate::error::{Error, Result};
use crate::namespace;

/// The options of pings.
#[derive(Clone, Copy, Debug)]
pub struct PingOptions {
    /// The time that a host waits for replies to its last echo requests.
    pub timeout: Duration,
    /// The maximum number of requests for a pair. A pair is reached when one request is answered.
    pub attempts: u16,
}

impl Default for PingOptions {
    /// Two attempts of one second each. The first request may be lost while the network learns
    /// addresses.
    fn default() -> Self {
        PingOptions { timeout: Duration::from_secs(1), attempts: 2 }
    }
}

/// The result of one pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ping {
    /// The host that sent the requests.
    pub from: String,
    /// The host that should answer.
    pub to: String,
    /// The round-trip time of the first answered request; `None` if no request was answered.
    pub round_trip: Option<Duration>,
}

/// The results of all pairs, by sender and then receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingReport {
    /// One entry per ordered pair of hosts.
    pub pairs: Vec<Ping>,
}

impl PingReport {
    /// Number of pairs that were reached.
    pub fn reached(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.round_trip.is_some()).count()
    }

    /// Whether every pair was reached.
    pub fn is_complete(&self) -> bool {
        self.reached() == self.pairs.len()
    }

    /// Whether `from` reached `to`; `None` if that pair was not pinged.
    pub fn reaches(&self, from: &str, to: &str) -> Option<bool> {
        let pair = self.pairs.iter().find(|pair| pair.from == from && pair.to == to)?;
        Some(pair.round_trip.is_some())
    }
}

/// The data of a host for this module.
pub(crate) struct Station {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) address: Ipv4Addr,
}

/// The number of simultaneous senders. Requests of more senders would only wait in the switch and
/// time out.
const SENDERS: usize = 8;

/// The maximum number of neighbour entries of simultaneous pings. The kernel stores 1024 entries
/// for all namespaces of the machine together (`gc_thresh3`) and then refuses to send to new
/// neighbours.
const NEIGHBOURS: usize = 512;

pub(crate) fn all(stations: &[Station], options: &PingOptions) -> Result<PingReport> {
    // Each request adds an entry at both ends.
    let entries_per_sender = 2 * stations.len().max(1);
    let senders_at_once = (NEIGHBOURS / entries_per_sender).clamp(1, SENDERS);
    let mut entries = 0;
    let mut pairs = Vec::new();
    for senders in stations.chunks(senders_at_once) {
        if entries + senders.len() * entries_per_sender > NEIGHBOURS {
            stations.iter().try_for_each(forget_neighbours)?;
            entries = 0;
        }
        entries += senders.len() * entries_per_sender;
        let results: Vec<Result<Vec<Ping>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = senders
                .iter()
                .map(|sender| scope.spawn(move || ping_from(sender, stations, options)))
                .collect();
            threads
                .into_iter()
                .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        for result in results {
            pairs.extend(result?);
        }
    }
    Ok(PingReport { pairs })
}

/// Empties the host's neighbour table, except for permanent entries.
fn forget_neighbours(station: &Station) -> Result<()> {
    namespace::inside(&station.namespace, || {
        run(program("ip").args(["neigh", "flush", "all"])).map(drop)
    })
}

fn ping_from(sender: &Station, stations: &[Station], options: &PingOptions) -> Result<Vec<Ping>> {
    let targets: Vec<&Station> =
        stations.iter().filter(|other| other.name != sender.name).collect();
    let round_trips = namespace::inside(&sender.namespace, || {
        let mut round = Round::new(&targets)?;
        for attempt in 0..options.attempts.max(1) {
            round.send(attempt)?;
            round.collect(Instant::now() + options.timeout, |round| round.unanswered() == 0)?;
        }
        Ok(round.round_trips)
    })?;
    let pair = |(target, round_trip): (&Station, _)| Ping {
        from: sender.name.clone(),
        to: target.name.clone(),
        round_trip,
    };
    Ok(targets.into_iter().zip(round_trips).map(pair).collect())
}

/// The requests of one sender to all its targets.
struct Round<'a> {
    socket: OwnedFd,
    targets: &'a [&'a Station],
    /// The time of each request, by attempt and target.
    sent: Vec<Vec<Option<Instant>>>,
    round_trips: Vec<Option<Duration>>,
}

/// The maximum number of unanswered requests of one sender at a time.
const WINDOW: usize = 4;

/// After this time an unanswered request no longer blocks other requests. A later reply still
/// counts.
const GIVE_WAY: Duration = Duration::from_millis(50);

/// The mark in every request, which distinguishes these pings from the pings of other programs.
const MARK: &[u8; 8] = b"weir-lab";
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST: u8 = 8;

impl<'a> Round<'a> {
    fn new(targets: &'a [&'a Station]) -> Result<Self> {
        let socket =
            socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Icmp)
                .map_err(failed("open a raw socket"))?;
        Ok(Round { socket, targets, sent: Vec::new(), round_trips: vec![None; targets.len()] })
    }

    /// Sends a request to every target that has not answered yet. The number of unanswered requests
    /// is limited, because a request to a new neighbour starts with an ARP broadcast, and a burst
    /// of broadcasts overloads the network.
    fn send(&mut self, attempt: u16) -> Result<()> {
        self.sent.push(vec![None; self.targets.len()]);
        for (index, target) in self.targets.iter().enumerate() {
            if self.round_trips.get(index).is_some_and(Option::is_some) {
                continue;
            }
            let Ok(number) = u16::try_from(index) else { break };
            self.collect(Instant::now() + GIVE_WAY, |round| round.under_way() < WINDOW)?;
            let request = echo_request(attempt, number);
            let address = SockaddrIn::from(SocketAddrV4::new(target.address, 0));
            if let Some(time) = self.sent.last_mut().and_then(|times| times.get_mut(index)) {
                *time = Some(Instant::now());
            }
            match sendto(self.socket.as_raw_fd(), &request, &address, MsgFlags::empty()) {
                // An unreachable target is a result, not an error. The kernel may report an earlier
                // target late.
                Ok(_)
                | Err(Errno::EHOSTUNREACH | Errno::ENETUNREACH | Errno::ENOBUFS | Errno::EAGAIN) => {
                }
                Err(errno) => return Err(failed("send an echo request")(errno)),
            }
        }
        Ok(())
    }

    /// Receives replies until `enough` holds or the deadline is reached.
    fn collect(&mut self, deadline: Instant, enough: impl Fn(&Self) -> bool) -> Result<()> {
        let mut buffer = [0_u8; 256];
        while !enough(self) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let micros = i64::try_from(left.as_micros()).unwrap_or(i64::MAX).max(1);
            setsockopt(&self.socket, sockopt::ReceiveTimeout, &TimeVal::microseconds(micros))
                .map_err(failed("set a receive timeout"))?;
            match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
                Ok(length) => self.take(buffer.get(..length).unwrap_or_default()),
                Err(Errno::EAGAIN | Errno::EINTR | Errno::EHOSTUNREACH) => {}
                Err(errno) => return Err(failed("receive an echo reply")(errno)),
            }
        }
        Ok(())
    }

    fn unanswered(&self) -> usize {
        self.round_trips.iter().filter(|round_trip| round_trip.is_none()).count()
    }

    /// The number of recent requests of this attempt that are not answered yet.
    fn under_way(&self) -> usize {
        let sent = self.sent.last().into_iter().flatten();
        let recent = |sent: &Option<Instant>| sent.is_some_and(|sent| sent.elapsed() < GIVE_WAY);
        sent.zip(&self.round_trips).filter(|(sent, reply)| recent(sent) && reply.is_none()).count()
    }

    fn take(&mut self, packet: &[u8]) {
        let now = Instant::now();
        let Some((source, attempt, number)) = echo_reply(packet) else { return };
        let index = usize::from(number);
        let expected = self.targets.get(index).is_some_and(|target| target.address == source);
        let sent = self.sent.get(usize::from(attempt)).and_then(|times| *times.get(index)?);
        if let (true, Some(sent), Some(slot)) = (expected, sent, self.round_trips.get_mut(index)) {
            slot.get_or_insert(now.duration_since(sent));
        }
    }
}

/// An ICMP echo request (RFC 792). Its identifier is the attempt, and its sequence number is the
/// number of the target.
fn echo_request(attempt: u16, number: u16) -> [u8; 16] {
    let mut message = [0; 16];
    message[0] = ECHO_REQUEST;
    message[4..6].copy_from_slice(&attempt.to_be_bytes());
    message[6..8].copy_from_slice(&number.to_be_bytes());
    message[8..].copy_from_slice(MARK);
    let checksum = internet_checksum(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    message
}

/// Decodes an IPv4 packet with a reply to a request of this module. Returns the source, attempt and
/// target number.
fn echo_reply(packet: &[u8]) -> Option<(Ipv4Addr, u16, u16)> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
    let message = packet.get(header..)?;
    let ours = *message.first()? == ECHO_REPLY && message.get(8..16)? == MARK;
    let word = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    Some((source.into(), word(4)?, word(6)?)).filter(|_| ours)
}

/// The internet checksum of RFC 1071.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)))
        .sum();
    let folded = (sum >> 16) + (sum & 0xffff);
    !((folded + (folded >> 16)) as u16)
}

fn failed(action: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::Io { action: action.to_owned(), source: errno.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(kind: u8, mark: &[u8], options: usize) -> Vec<u8> {
        let mut packet = vec![0; 20 + options];
        packet[0] = 0x40 | u8::try_from(5 + options / 4).unwrap();
        packet[12..16].copy_from_slice(&[10, 0, 0, 7]);
        packet.extend([kind, 0, 0, 0, 0, 1, 0, 42]);
        packet.extend(mark);
        packet
    }

    #[test]
    fn only_own_echo_replies_are_counted() {
        let ours = Some((Ipv4Addr::new(10, 0, 0, 7), 1, 42));
        let whole = reply(ECHO_REPLY, MARK, 0);
        let cases = [
            (whole.clone(), ours),
            (reply(ECHO_REPLY, MARK, 8), ours),
            (reply(ECHO_REQUEST, MARK, 0), None),
            (reply(ECHO_REPLY, b"somebody", 0), None),
            (whole[..35].to_vec(), None),
            (Vec::new(), None),
        ];
        for (packet, expected) in cases {
            assert_eq!(echo_reply(&packet), expected, "{packet:02x?}");
        }
    }

    #[test]
    fn internet_checksums_match_rfc_1071() {
        // This is the example of RFC 1071, section 3.
        assert_eq!(internet_checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(internet_checksum(&[0xff]), !0xff00);
        // The checksum of a message that contains its checksum is zero.
        assert_eq!(internet_checksum(&echo_request(1, 0xfffe)), 0);
    }
}
