//! The receiving side's account of one stream: the messages that arrived, their times, and their
//! faults. The module is pure, and allocates nothing per message.

use crate::kind::Kind;
use crate::kind::PROBED;
use report::{Histogram, Precision};

/// Counts of messages by result. Unless noted otherwise, the counts have only messages of the
/// measured window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were written to a socket.
    pub sent: u64,
    /// Messages that were due, but never written: the system under test stopped reading, or had
    /// closed the connection.
    pub blocked: u64,
    /// Messages that arrived, or were answered, for the first time.
    pub received: u64,
    /// Received messages that were later than the load's limit.
    pub late: u64,
    /// Received messages that arrived after a message that was sent later.
    pub reordered: u64,
    /// Messages that arrived or were answered again, over the whole run.
    pub duplicates: u64,
    /// Messages that were answered by an OpenFlow ERROR; their latency does not count.
    pub refused: u64,
}

impl Counts {
    /// Messages that were sent, but neither arrived nor were answered nor refused.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.sent.saturating_sub(self.received + self.refused)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.blocked += other.blocked;
        self.received += other.received;
        self.late += other.late;
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.refused += other.refused;
    }
}

/// The window of intended times that counts, with its limits, in ns of the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) end: u64,
    pub(crate) late: u64,
}

impl Window {
    #[inline]
    pub(crate) fn contains(&self, intended: u64) -> bool {
        (self.from..self.to).contains(&intended)
    }
}

/// One second of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Second {
    /// Messages that arrived or were answered.
    pub received: u64,
    /// The sum of the latencies of these messages, in ns.
    pub sum_ns: u64,
    /// The largest latency of these messages, in ns.
    pub max_ns: u64,
}

/// The most messages that may be lost in a row beyond the expected number, in words of 64 messages.
const JUMP: usize = 1 << 17;

/// The receiving side's account of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Track {
    window: Window,
    /// One bit per message that arrived.
    seen: Vec<u64>,
    /// One more than the highest number that arrived, by kind, because messages of different kinds
    /// in a mix overtake each other.
    next: [u32; Kind::ALL.len()],
    pub(crate) counts: Counts,
    /// Unique arrivals over the whole run, inside and outside the window.
    pub(crate) arrived: u64,
    pub(crate) latency: Histogram,
    pub(crate) seconds: Vec<Second>,
}

impl Track {
    /// `expected` is the number of messages for which space is allocated in advance; more messages
    /// are possible.
    pub(crate) fn new(window: Window, expected: usize, precision: Precision) -> Self {
        let seconds = (window.end - window.start).div_ceil(1_000_000_000) as usize;
        Self {
            window,
            seen: vec![0; expected.div_ceil(64).max(16)],
            next: [0; Kind::ALL.len()],
            counts: Counts::default(),
            arrived: 0,
            latency: Histogram::new(precision),
            seconds: vec![Second::default(); seconds],
        }
    }

    /// Counts message `sequence` with the intended time `intended`, which arrived at `now`. Returns
    /// false if the message had arrived already.
    #[inline]
    pub(crate) fn arrive(&mut self, kind: Kind, sequence: u32, intended: u64, now: u64) -> bool {
        let in_window = self.window.contains(intended);
        if !self.mark(sequence) {
            self.counts.duplicates += 1;
            return false;
        }
        self.arrived += 1;
        let mut reordered = false;
        if let Some(next) = self.next.get_mut(kind as usize) {
            // Rules are probed in turn, so the order of arrivals is the generator's order, not the
            // system's.
            reordered = sequence < *next && kind != PROBED;
            *next = sequence.saturating_add(1).max(*next);
        }
        let latency = now.saturating_sub(intended);
        if let Some(second) = intended
            .checked_sub(self.window.start)
            .and_then(|since| self.seconds.get_mut((since / 1_000_000_000) as usize))
        {
            second.received += 1;
            second.sum_ns += latency;
            second.max_ns = second.max_ns.max(latency);
        }
        if in_window {
            self.counts.received += 1;
            self.counts.reordered += u64::from(reordered);
            self.counts.late += u64::from(latency > self.window.late);
            self.latency.record(latency);
        }
        true
    }

    /// Counts message `sequence`, which was answered by an ERROR. Returns false if the message had
    /// been answered already.
    pub(crate) fn refuse(&mut self, sequence: u32, intended: u64) -> bool {
        if !self.mark(sequence) {
            self.counts.duplicates += 1;
            return false;
        }
        self.arrived += 1;
        self.counts.refused += u64::from(self.window.contains(intended));
        true
    }

    /// Counts a message without a reply that was answered by an ERROR. The ERROR does not carry the
    /// message's tag.
    pub(crate) fn refuse_unmatched(&mut self, now: u64) {
        self.counts.refused += u64::from(self.window.contains(now));
    }

    /// Sets the message's bit. Returns false if the bit was set already.
    #[inline]
    fn mark(&mut self, sequence: u32) -> bool {
        let (word, bit) = (sequence as usize / 64, 1u64 << (sequence % 64));
        if word >= self.seen.len() {
            // Allocation happens only without a schedule, and then once per doubling. The generator
            // numbers its messages itself. A number far beyond the arrived numbers is a fault of
            // the system under test, and must not cause an allocation.
            if word >= self.seen.len() * 2 + JUMP {
                return false;
            }
            self.seen.resize((self.seen.len() * 2).max(word + 1), 0);
        }
        let Some(place) = self.seen.get_mut(word) else { return false };
        let fresh = *place & bit == 0;
        *place |= bit;
        fresh
    }
}

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) sequence: u32,
    pub(crate) kind: u8,
    pub(crate) used: bool,
    pub(crate) answered: bool,
    pub(crate) refused: bool,
    pub(crate) intended: u64,
}

/// The requests of one stream, found by the low 20 bits of their xid.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    ring: Vec<Waiting>,
}

/// The number of bits of an xid that number a stream's messages.
pub(crate) const SEQUENCE_BITS: u32 = 20;
const COMPANION: u32 = 1 << 31;

/// The xid of message `sequence` of `stream`. `companion` marks the FLOW_MOD before its
/// BARRIER_REQUEST.
#[inline]
pub(crate) fn xid(stream: usize, sequence: u32, companion: bool) -> u32 {
    let low = sequence & ((1 << SEQUENCE_BITS) - 1);
    let xid = (stream as u32 + 1) << SEQUENCE_BITS | low;
    if companion { xid | COMPANION } else { xid }
}

/// The stream that an xid belongs to; `None` for the xids of handshakes.
#[inline]
pub(crate) fn stream_of(xid: u32) -> Option<usize> {
    ((xid & !COMPANION) >> SEQUENCE_BITS).checked_sub(1).map(|stream| stream as usize)
}

impl Pending {
    /// Space for `expected` requests at once, at most 2^20.
    pub(crate) fn new(expected: usize) -> Self {
        let size = expected.clamp(1024, 1 << SEQUENCE_BITS).next_power_of_two();
        Self { ring: vec![Waiting::default(); size] }
    }

    #[inline]
    pub(crate) fn insert(&mut self, waiting: Waiting) {
        let mask = self.ring.len() - 1;
        if let Some(slot) = self.ring.get_mut(waiting.sequence as usize & mask) {
            *slot = Waiting { used: true, ..waiting };
        }
    }

    /// The request with this xid, if the request is still known.
    #[inline]
    pub(crate) fn find(&mut self, xid: u32) -> Option<&mut Waiting> {
        let low = xid & ((1 << SEQUENCE_BITS) - 1);
        let mask = self.ring.len() - 1;
        self.ring
            .get_mut(low as usize & mask)
            .filter(|slot| slot.used && slot.sequence & ((1 << SEQUENCE_BITS) - 1) == low)
    }

    /// Whether the place of the request with this xid belongs to a later request.
    pub(crate) fn has_forgotten(&self, xid: u32) -> bool {
        let slot = self.ring.get(xid as usize & (self.ring.len() - 1));
        slot.is_some_and(|slot| {
            let later = slot.sequence.wrapping_sub(xid) & ((1 << SEQUENCE_BITS) - 1);
            slot.used && (1..1 << (SEQUENCE_BITS - 1)).contains(&later) && slot.sequence >= later
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { start: 1000, from: 2000, to: 8000, end: 9000, late: 500 };

    fn track() -> Track {
        Track::new(WINDOW, 100, Precision::Fine)
    }

    #[test]
    fn late_reordered_and_duplicate_messages_are_counted() {
        let mut track = track();
        for (sequence, intended, now, fresh) in [
            (0, 1500, 1600, true),  // before the window
            (1, 2500, 2600, true),  // in time
            (3, 3500, 3600, true),  // in time
            (2, 3000, 3700, true),  // reordered and late
            (3, 3500, 3800, false), // again
            (4, 8500, 8600, true),  // behind the window
        ] {
            assert_eq!(track.arrive(Kind::PacketIn, sequence, intended, now), fresh, "{sequence}");
        }
        let want =
            Counts { received: 3, late: 1, reordered: 1, duplicates: 1, ..Counts::default() };
        assert_eq!(track.counts, want);
        assert_eq!(track.arrived, 5);
        assert_eq!(track.latency.count(), 3);
        assert_eq!(track.seconds[0].received, 5);
        assert_eq!(track.seconds[0].max_ns, 700);
    }

    #[test]
    fn an_error_reply_counts_as_refused_and_adds_no_latency() {
        let mut track = track();
        assert!(track.refuse(1, 2500));
        assert!(!track.arrive(Kind::Echo, 1, 2500, 2600));
        assert_eq!((track.counts.refused, track.counts.duplicates), (1, 1));
        assert_eq!(track.latency.count(), 0);
    }

    #[test]
    fn a_much_too_high_sequence_number_is_refused_without_allocation() {
        let mut track = track();
        assert!(!track.arrive(Kind::Echo, u32::MAX, 2500, 2600));
        assert!(track.seen.len() <= 2048);
        assert!(track.arrive(Kind::Echo, 5000, 2500, 2600), "a growing number is followed");
    }

    #[test]
    fn the_stream_number_is_read_back_from_an_xid() {
        for (stream, sequence) in [(0, 0), (2045, u32::MAX), (7, 1 << 20)] {
            for companion in [false, true] {
                assert_eq!(stream_of(xid(stream, sequence, companion)), Some(stream));
            }
        }
        assert_eq!(stream_of(5), None);
        assert_ne!(xid(0, 1, true), xid(0, 1, false));
    }

    #[test]
    fn pending_requests_are_found_by_xid() {
        let mut pending = Pending::new(1);
        let waiting = Waiting { sequence: 1_048_577, intended: 9, ..Waiting::default() };
        pending.insert(waiting);
        assert_eq!(pending.find(xid(3, 1_048_577, false)).map(|w| w.intended), Some(9));
        assert_eq!(pending.find(xid(3, 2, false)), None);
        assert!(!pending.has_forgotten(xid(3, 2, false)), "no request has had this place");
        // A request whose place was taken by a later request is not found any more.
        pending.insert(Waiting { sequence: 1_048_577 + 1024, ..waiting });
        assert_eq!(pending.find(xid(3, 1_048_577, false)), None);
        assert!(pending.has_forgotten(xid(3, 1_048_577, false)));
        assert!(!pending.has_forgotten(xid(3, 1_048_577 + 1024, false)));
        assert!(!pending.has_forgotten(xid(3, 1_048_577 + 2048, false)), "no request has this xid");
    }
}
