//! Measures FLOW_MODs by the first packet that the rule forwards ([`Kind::FlowModPacket`]).
//!
//! The data plane follows the same schedule as the controllers. From the intended send time of a
//! FLOW_MOD the data plane sends packets that only this rule matches, again and again, until a
//! packet comes out of the rule's output port. The FLOW_MOD's latency is the time from its intended
//! send time until this packet. So the latency is at most [`PROBE_EVERY_NS`] too long for each rule
//! that waits before this rule, and no barrier is needed.
//!
//! Over real interfaces one thread sends the probes and another thread captures the packets that
//! come out. Both threads share [`Forwarded`], one bit per rule. With emulated switches, the table
//! of crate `emulate` decides whether a packet comes out.

use crate::arrivals::Schedule;
use crate::kind::MOST_RULES;
use crate::load::Load;
use crate::plan::Setup;
use crate::tag::{TAG_LEN, Tag};
use crate::template::{probe, write_ipv4_checksum};
use crate::track::Window;
use crate::wire::put32;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time between two probes of a waiting rule.
pub(crate) const PROBE_EVERY_NS: u64 = 200_000;
/// The number of a stream's waiting rules that are probed at once over real interfaces; further
/// rules wait for their turn.
pub(crate) const AT_ONCE: usize = 4;
/// The IPv4 destination of this rule. No other rule of the session matches this address.
pub(crate) fn rule_address(run: u16, sequence: u32) -> u32 {
    0x0b00_0000 | u32::from(run & 0xff) << 16 | sequence & 0xffff
}

/// The rules of a run that have forwarded a packet.
#[derive(Debug)]
pub(crate) struct Forwarded(Vec<Vec<AtomicU64>>);

impl Forwarded {
    /// Makes a record with space for every stream that has such rules.
    pub(crate) fn new(load: &Load) -> Self {
        let words = |probed| if probed { MOST_RULES.div_ceil(64) } else { 0 };
        let stream = |stream: &crate::Stream| {
            (0..words(stream.is_probed())).map(|_| AtomicU64::new(0)).collect()
        };
        Self(load.streams.iter().map(stream).collect())
    }

    fn has(&self, stream: usize, sequence: u32) -> bool {
        let bit = 1 << (sequence % 64);
        self.word(stream, sequence).is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    /// Records that the rule has forwarded a packet. Returns false if the record had this rule
    /// already.
    pub(crate) fn mark(&self, stream: usize, sequence: u32) -> bool {
        let bit = 1 << (sequence % 64);
        self.word(stream, sequence)
            .is_some_and(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0)
    }

    fn word(&self, stream: usize, sequence: u32) -> Option<&AtomicU64> {
        self.0.get(stream)?.get(sequence as usize / 64)
    }
}

/// The data plane's side of one stream.
#[derive(Debug)]
pub(crate) struct Prober {
    pub(crate) stream: usize,
    pub(crate) tenant: usize,
    schedule: Schedule,
    start: u64,
    stop: u64,
    /// The next rule and its FLOW_MOD's intended time.
    next: Option<(u32, u64)>,
    /// Rules that are due and have not forwarded a packet yet.
    waiting: VecDeque<(u32, u64)>,
    packet: Vec<u8>,
    run: u16,
}

impl Prober {
    /// `None` for a stream whose rules are not probed.
    pub(crate) fn new(
        run: u16,
        setup: &Setup,
        load: &Load,
        number: usize,
        window: Window,
    ) -> Option<Self> {
        let stream = load.streams.get(number).filter(|stream| stream.is_probed())?;
        let stop = stream.stop_ms.map_or(window.end, |ms| window.start + ms * 1_000_000);
        let mut prober = Self {
            stream: number,
            tenant: stream.tenant,
            schedule: load.schedule(number)?,
            start: window.start + stream.start_ms * 1_000_000,
            stop: stop.min(window.end),
            next: None,
            waiting: VecDeque::new(),
            packet: probe(setup, stream.tenant),
            run,
        };
        prober.step(0);
        Some(prober)
    }

    fn step(&mut self, sequence: u32) {
        let at = self.schedule.next().map(|since| self.start + since);
        self.next = at.filter(|&at| at < self.stop).map(|at| (sequence, at));
    }

    /// The time of the next probe: at once while a rule waits, else the next rule's time.
    pub(crate) fn due(&self, now: u64) -> Option<u64> {
        if self.waiting.is_empty() {
            return self.next.map(|(_, at)| at);
        }
        Some(now + PROBE_EVERY_NS)
    }

    /// Probes rules that are due, until `limit` rules have not forwarded the probe. `forwards`
    /// sends a packet and returns whether the packet is known to have come out. Returns the rules
    /// that have forwarded, with their FLOW_MODs' intended times.
    pub(crate) fn probe(
        &mut self,
        now: u64,
        limit: usize,
        mut forwards: impl FnMut(u32, &[u8]) -> bool,
    ) -> Vec<(u32, u64)> {
        while let Some((sequence, at)) = self.next.filter(|&(_, at)| at <= now) {
            self.waiting.push_back((sequence, at));
            self.step(sequence.wrapping_add(1));
        }
        let mut done = Vec::new();
        let mut misses = 0;
        for _ in 0..self.waiting.len() {
            let Some((sequence, intended)) = self.waiting.pop_front() else { break };
            self.address(sequence, intended);
            if forwards(sequence, &self.packet) {
                done.push((sequence, intended));
                continue;
            }
            // The rule goes to the end of the queue: a rule that never forwards must not stop the
            // probes of other rules.
            self.waiting.push_back((sequence, intended));
            misses += 1;
            if misses == limit {
                break;
            }
        }
        done
    }

    /// Removes the rules that have forwarded a packet, according to the record of the capturing
    /// thread.
    pub(crate) fn forget(&mut self, forwarded: &Forwarded) {
        let stream = self.stream;
        self.waiting.retain(|&(sequence, _)| !forwarded.has(stream, sequence));
    }

    /// Writes a rule's address and tag into the packet.
    fn address(&mut self, sequence: u32, intended: u64) {
        let ip = if self.packet.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
        put32(&mut self.packet, ip + 16, rule_address(self.run, sequence));
        if let Some(header) = self.packet.get_mut(ip..ip + 20) {
            write_ipv4_checksum(header);
        }
        let tag = Tag { run: self.run, stream: self.stream as u16, sequence, intended };
        let end = self.packet.len();
        if let Some(room) = self.packet.get_mut(end - TAG_LEN..) {
            tag.write(room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use crate::kind::PROBED;
    use crate::plan::Topology;
    use crate::wire::be32;

    const WINDOW: Window = Window { start: 0, from: 0, to: 10_000_000, end: 10_000_000, late: 1 };

    fn prober() -> (Prober, Forwarded) {
        let setup = Setup::new(Topology::Direct, 2);
        let arrivals = Arrivals::Constant { rate: 1000.0 };
        let load = Load::new(vec![crate::Stream::new(1, PROBED, arrivals)], 10);
        let prober = Prober::new(3, &setup, &load, 0, WINDOW).unwrap();
        (prober, Forwarded::new(&load))
    }

    #[test]
    fn a_rule_is_probed_from_the_time_of_its_flow_mod_until_the_rule_forwards() {
        let (mut prober, _) = prober();
        assert_eq!(prober.due(0), Some(0));
        let mut seen = Vec::new();
        let done = prober.probe(2_500_000, AT_ONCE, |sequence, packet| {
            let address = be32(packet, 14 + 16);
            seen.push((sequence, address == Some(rule_address(3, sequence))));
            sequence == 1
        });
        assert_eq!(seen, [(0, true), (1, true), (2, true)]);
        assert_eq!(done, [(1, 1_000_000)]);
        assert_eq!(prober.due(2_500_000), Some(2_500_000 + PROBE_EVERY_NS));
        let rest = prober.probe(2_600_000, AT_ONCE, |_, _| true);
        assert_eq!(rest, [(0, 0), (2, 2_000_000)]);
        assert_eq!(prober.due(2_600_000), Some(3_000_000), "the next FLOW_MOD's time");
    }

    #[test]
    fn a_rule_that_never_forwards_does_not_stop_the_probes_of_other_rules() {
        let (mut prober, _) = prober();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..3 {
            prober.probe(9_900_000, AT_ONCE, |sequence, _| {
                seen.insert(sequence);
                false
            });
        }
        assert_eq!(seen.len(), 10, "all of them had their turn");
    }

    #[test]
    fn a_rule_marked_as_forwarding_counts_once_and_is_not_probed_again() {
        let (mut prober, forwarded) = prober();
        prober.probe(1_500_000, AT_ONCE, |_, _| false);
        assert!(forwarded.mark(0, 0) && !forwarded.mark(0, 0));
        prober.forget(&forwarded);
        let mut left = Vec::new();
        prober.probe(1_500_000, AT_ONCE, |sequence, _| {
            left.push(sequence);
            false
        });
        assert_eq!(left, [1]);
        assert!(!forwarded.mark(0, u32::MAX), "a made-up number is no rule");
    }
}
