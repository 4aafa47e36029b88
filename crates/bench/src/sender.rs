//! The sending side of one stream: its schedule, its templates and its progress.

use crate::arrivals::{Arrivals, Schedule};
use crate::kind::PROBED;
use crate::load::{Kind, Load, Stream};
use crate::plan::Setup;
use crate::probing::rule_address;
use crate::tag::{TAG_LEN, Tag};
use crate::template::Template;
use crate::track::{self, Counts, Waiting, Window};
use crate::wire::put32;
use fastrand::Rng;

/// The number of different rules of one FLOW_MOD stream. After this number the messages replace
/// earlier rules, so that a long run does not fill the table.
const RULES: u32 = 10_000;

/// One side's part of one stream.
///
/// If a mix has messages of both sides, both sides follow the same schedule and draw the same
/// kinds, and each side sends only its own messages. So the two sides need no communication.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) stream: usize,
    pub(crate) tenant: usize,
    pub(crate) from_switch: bool,
    schedule: Schedule,
    arrivals: Arrivals,
    /// Kinds with the running sum of their weights.
    mix: Vec<(Kind, u32, Template)>,
    chooser: Rng,
    /// The number of the next message, and its intended time and kind.
    sequence: u32,
    next: Option<u64>,
    chosen: usize,
    start: u64,
    stop: u64,
    window: Window,
    /// Closed loop: the number of messages that may be sent before a reply arrives.
    pub(crate) credit: u32,
    /// Messages with an intended time before this were delayed by the system under test, not by the
    /// generator.
    pub(crate) excused_until: u64,
    pub(crate) counts: Counts,
    pub(crate) sent: u64,
}

/// The condition for the next message of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The intended time.
    At(u64),
    /// No condition: the message is sent as soon as there is room.
    Now,
    /// A reply.
    Reply,
    /// There is no next message.
    Over,
}

impl Sender {
    /// `None` if this side has no messages of the stream to send.
    pub(crate) fn new(
        setup: &Setup,
        load: &Load,
        number: usize,
        from_switch: bool,
        window: Window,
    ) -> Option<Self> {
        let stream: &Stream = load.streams.get(number)?;
        if !stream.mix.iter().any(|&(kind, weight)| weight > 0 && kind.from_switch() == from_switch)
        {
            return None;
        }
        let mut sum = 0;
        let mix = stream.mix.iter().map(|&(kind, weight)| {
            sum += weight;
            (kind, sum, Template::new(kind, setup, stream.tenant))
        });
        let mix = mix.collect();
        let seed = load.seed_of(number);
        let start = window.start + stream.start_ms * 1_000_000;
        let credit = match stream.arrivals {
            Arrivals::Closed { outstanding } => outstanding,
            _ => 0,
        };
        let mut sender = Self {
            stream: number,
            tenant: stream.tenant,
            from_switch,
            schedule: load.schedule(number)?,
            arrivals: stream.arrivals.clone(),
            mix,
            chooser: Rng::with_seed(!seed),
            sequence: 0,
            next: None,
            chosen: 0,
            start,
            stop: window.end,
            window,
            credit,
            excused_until: 0,
            counts: Counts::default(),
            sent: 0,
        };
        sender.end_at(stream.stop_ms);
        sender.sequence = u32::MAX;
        sender.advance();
        Some(sender)
    }

    /// Sets the end of the stream; absent: the run's end.
    pub(crate) fn end_at(&mut self, stop_ms: Option<u64>) {
        let ms = |ms: u64| self.window.start.saturating_add(ms.saturating_mul(1_000_000));
        self.stop = stop_ms.map_or(self.window.end, ms).min(self.window.end);
    }

    /// Goes to this side's next message.
    fn advance(&mut self) {
        loop {
            self.sequence = self.sequence.wrapping_add(1);
            self.next = self.schedule.next().map(|since| self.start + since);
            self.chosen = self.choose();
            let ours = self.kind().from_switch() == self.from_switch;
            if ours || self.next.is_none_or(|at| at >= self.stop) {
                return;
            }
        }
    }

    fn choose(&mut self) -> usize {
        if self.mix.len() == 1 {
            return 0;
        }
        let total = self.mix.last().map_or(1, |&(_, sum, _)| sum);
        let drawn = (self.chooser.f64() * f64::from(total)) as u32;
        self.mix.iter().position(|&(_, sum, _)| drawn < sum).unwrap_or(0)
    }

    /// The next message's kind.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.mix.get(self.chosen).map_or(Kind::Echo, |&(kind, ..)| kind)
    }

    #[inline]
    pub(crate) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// The condition for the next message, at `now`.
    #[inline]
    pub(crate) fn next(&self, now: u64) -> Next {
        match (self.next, &self.arrivals) {
            (Some(at), _) if at < self.stop => Next::At(at),
            (None, Arrivals::Saturate | Arrivals::Closed { .. }) if now < self.start => {
                Next::At(self.start)
            }
            (None, Arrivals::Saturate) if now < self.stop => Next::Now,
            (None, Arrivals::Closed { .. }) if now < self.stop => {
                if self.credit > 0 {
                    Next::Now
                } else {
                    Next::Reply
                }
            }
            _ => Next::Over,
        }
    }

    /// Whether there is no schedule, so that the intended time is the actual time.
    pub(crate) fn is_unscheduled(&self) -> bool {
        matches!(self.arrivals, Arrivals::Saturate | Arrivals::Closed { .. })
    }

    pub(crate) fn is_closed_loop(&self) -> bool {
        matches!(self.arrivals, Arrivals::Closed { .. })
    }

    /// Appends the next message to `out` and goes on to the message after the appended message.
    /// `intended` is the message's scheduled time, or now.
    #[inline]
    pub(crate) fn build(&mut self, run: u16, intended: u64, out: &mut Vec<u8>) -> Waiting {
        let sequence = self.sequence;
        let kind = self.kind();
        let number = self.stream;
        if let Some((_, _, template)) = self.mix.get(self.chosen) {
            let start = out.len();
            out.extend_from_slice(&template.bytes);
            if let Some(bytes) = out.get_mut(start..) {
                let first = track::xid(number, sequence, template.second_at.is_some());
                if template.has_xid {
                    put32(bytes, 4, first);
                }
                if let Some(second) = template.second_at {
                    put32(bytes, second + 4, track::xid(number, sequence, false));
                }
                if let Some(hosts) = &template.hosts {
                    hosts.patch(bytes, track::xid(number, sequence, false), sequence);
                }
                if let Some((at, ports)) = template.port_in_turn {
                    let port = (sequence % u32::from(ports.max(1)) + 1) as u16;
                    if let Some(place) = bytes.get_mut(at..at + 2) {
                        place.copy_from_slice(&port.to_be_bytes());
                    }
                }
                if let Some(place) = &template.change {
                    place.patch(bytes, sequence);
                }
                if let Some(at) = template.rule_at {
                    let address = if kind == PROBED {
                        rule_address(run, sequence)
                    } else {
                        0x0b00_0000 | (sequence % RULES)
                    };
                    put32(bytes, at, address);
                }
                if let Some(room) = template.tag_at.and_then(|at| bytes.get_mut(at..at + TAG_LEN)) {
                    Tag { run, stream: number as u16, sequence, intended }.write(room);
                }
            }
        }
        self.sent += 1;
        self.counts.sent += u64::from(self.window.contains(intended));
        self.credit = self.credit.saturating_sub(1);
        self.advance();
        let kind = kind as u8;
        Waiting { sequence, kind, intended, ..Waiting::default() }
    }

    /// Counts messages that were due but were never sent.
    pub(crate) fn count_blocked(&mut self) {
        while let Next::At(at) = self.next(u64::MAX) {
            self.counts.blocked += u64::from(self.window.contains(at));
            self.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Topology;

    const WINDOW: Window =
        Window { start: 0, from: 0, to: 1_000_000_000, end: 1_000_000_000, late: 1_000_000 };

    fn walk(mix: &[(Kind, u32)], arrivals: Arrivals, from_switch: bool) -> Vec<(u64, u32, Kind)> {
        let setup = Setup::new(Topology::Direct, 1);
        let stream = Stream { mix: mix.to_vec(), ..Stream::new(0, Kind::Echo, arrivals) };
        let load = Load::new(vec![stream], 1000);
        let Some(mut sender) = Sender::new(&setup, &load, 0, from_switch, WINDOW) else {
            return vec![];
        };
        let mut sent = Vec::new();
        let mut out = Vec::new();
        while let Next::At(at) = sender.next(0) {
            sent.push((at, sender.sequence(), sender.kind()));
            sender.build(1, at, &mut out);
        }
        sent
    }

    #[test]
    fn messages_of_both_sides_of_a_mix_add_up_to_the_schedule() {
        let mix = [(Kind::PacketIn, 3), (Kind::PacketOut, 2), (Kind::Echo, 1)];
        let arrivals = Arrivals::Poisson { rate: 6000.0 };
        let (mut all, other) =
            (walk(&mix, arrivals.clone(), true), walk(&mix, arrivals.clone(), false));
        let ins = all.len() as f64;
        all.extend(other);
        all.sort_unstable();
        let sequences: Vec<u32> = all.iter().map(|&(_, sequence, _)| sequence).collect();
        assert_eq!(sequences, (0..all.len() as u32).collect::<Vec<_>>());
        assert!((ins / all.len() as f64 - 0.5).abs() < 0.03, "{ins} of {}", all.len());
        // All sides together send the plain schedule, with any mix.
        let plain = walk(&[(Kind::Echo, 1)], arrivals, false);
        assert!(plain.iter().map(|s| s.0).eq(all.iter().map(|s| s.0)));
    }

    #[test]
    fn a_controller_without_messages_in_the_mix_has_no_sender() {
        assert_eq!(walk(&[(Kind::PacketIn, 1)], Arrivals::Constant { rate: 10.0 }, false), []);
    }

    #[test]
    fn scheduled_messages_that_were_never_sent_count_as_blocked() {
        let setup = Setup::new(Topology::Direct, 1);
        let load = Load::constant(Kind::Echo, 1, 100.0, 1000);
        let mut sender = Sender::new(&setup, &load, 0, false, WINDOW).unwrap();
        let mut out = Vec::new();
        for _ in 0..30 {
            let Next::At(at) = sender.next(0) else { panic!("over early") };
            sender.build(1, at, &mut out);
        }
        sender.count_blocked();
        assert_eq!((sender.counts.sent, sender.counts.blocked), (30, 70));
    }
}
