//! One thread's part of one run: the senders, the tracks, and the counts of the thread.

use crate::fault::Faults;
use crate::load::{Kind, Load, MAX_STREAMS, Stream};
use crate::pacing::Pacing;
use crate::plan::Setup;
use crate::probing::{Forwarded, Prober};
use crate::progress::Progress;
use crate::sender::{Next, Sender};
use crate::track::{Counts, Pending, Second, Track, Waiting, Window, stream_of};
use report::{Histogram, Precision};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The sides of the measurement that a thread plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) switches: bool,
    pub(crate) controllers: bool,
    /// Whether the thread sends, and does not only receive.
    pub(crate) sends: bool,
}

/// An action that is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A message of this sender.
    Send(usize),
    /// The service of this peer's first waiting frame is done.
    Service(usize),
    /// Rules that wait for their first packet are probed.
    Probe,
}

/// One thread's part of one run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: u16,
    pub(crate) load: Arc<Load>,
    pub(crate) pacing: Pacing,
    pub(crate) window: Window,
    pub(crate) senders: Vec<Sender>,
    /// The probers by which this thread sends probes into the data plane.
    pub(crate) probers: Vec<Prober>,
    pub(crate) forwarded: Arc<Forwarded>,
    /// The tracks by stream. Only streams that this thread receives have a track.
    pub(crate) tracks: Vec<Option<Track>>,
    pub(crate) pending: Vec<Option<Pending>>,
    /// The sender of each stream in this thread, for closed loops.
    pub(crate) sender_of: Vec<Option<usize>>,
    pub(crate) due: BinaryHeap<Reverse<(u64, Due)>>,
    pub(crate) total_arrived: u64,
    /// The counts so far, without the counts of streams and the faults.
    pub(crate) part: Part,
}

impl Run {
    /// Allocates all memory of the run. `start` is the schedule's beginning on the session's clock.
    pub(crate) fn new(
        id: u16,
        setup: &Setup,
        load: Arc<Load>,
        sides: Sides,
        start: u64,
        forwarded: Arc<Forwarded>,
    ) -> Self {
        let ns = |ms: u64| ms * 1_000_000;
        let (from, to) = load.window_ns();
        let window = Window {
            start,
            from: start + from,
            to: start + to,
            end: start + ns(load.duration_ms),
            late: ns(load.late_ms),
        };
        let precision = if load.streams.len() > 64 { Precision::Coarse } else { Precision::Fine };
        let mut run = Self {
            id,
            pacing: Pacing::of(setup, &load),
            window,
            senders: Vec::new(),
            probers: Vec::new(),
            forwarded,
            tracks: Vec::new(),
            pending: Vec::new(),
            sender_of: vec![None; load.streams.len()],
            due: BinaryHeap::with_capacity(2 * MAX_STREAMS + setup.switches()),
            total_arrived: 0,
            part: Part {
                streams: Vec::new(),
                by_kind: vec![None; Kind::ALL.len()],
                lag: Histogram::new(Precision::Fine),
                faults: Faults::default(),
                busy_ns: 0,
                notices: vec![0; setup.tenants],
                writes: 0,
                total_sent: 0,
            },
            load,
        };
        for number in 0..run.load.streams.len() {
            run.add_stream(setup, number, sides, precision);
            if sides.switches && sides.sends {
                let prober = Prober::new(id, setup, &run.load, number, window);
                run.probers.extend(prober);
            }
        }
        if !run.probers.is_empty() {
            run.due.push(Reverse((start, Due::Probe)));
        }
        run
    }

    /// Continues with a changed load. The load has further streams, or streams end earlier.
    pub(crate) fn change(&mut self, setup: &Setup, load: Arc<Load>, sides: Sides) {
        self.pacing = Pacing::of(setup, &load);
        self.load = load;
        for number in self.sender_of.len()..self.load.streams.len() {
            self.sender_of.push(None);
            self.add_stream(setup, number, sides, Precision::Coarse);
        }
        for sender in &mut self.senders {
            if let Some(stream) = self.load.streams.get(sender.stream) {
                sender.end_at(stream.stop_ms);
            }
        }
    }

    fn add_stream(&mut self, setup: &Setup, number: usize, sides: Sides, precision: Precision) {
        let Some(stream) = self.load.streams.get(number) else { return };
        let has = |test: fn(Kind) -> bool| stream.mix.iter().any(|&(kind, w)| w > 0 && test(kind));
        let at_switch = sides.switches
            && has(|kind| matches!(kind, Kind::PacketOut | Kind::Response | Kind::FlowModPacket));
        // Controllers receive all replies, and the ERRORs to messages without a reply.
        let at_controller = sides.controllers;
        let seconds = self.load.duration_ms as f64 / 1e3;
        let rate = stream.arrivals.mean_rate(seconds);
        let expected = rate.map_or(1 << 20, |rate| (rate * seconds) as usize + 1);
        let in_flight = stream.arrivals.highest_rate(seconds).map_or(1 << 17, |rate| {
            (rate * (self.load.late_ms + self.load.drain_ms) as f64 / 1e3) as usize
        });
        let received = at_switch || at_controller;
        self.tracks.push(received.then(|| Track::new(self.window, expected, precision)));
        let asks = sides.controllers && has(|kind| kind.has_reply() && !kind.from_switch())
            || sides.switches && has(|kind| kind == Kind::Response);
        self.pending.push(asks.then(|| Pending::new(in_flight)));
        let several = self.load.streams.iter().flat_map(|s| &s.mix).any(|m| m.0 != stream.mix[0].0);
        if several && received {
            for &(kind, _) in &stream.mix {
                if let Some(place) = self.part.by_kind.get_mut(kind as usize) {
                    place.get_or_insert_with(|| Histogram::new(Precision::Fine));
                }
            }
        }
        for from_switch in [true, false].into_iter().filter(|_| sides.sends) {
            let ours = if from_switch { sides.switches } else { sides.controllers };
            let Some(sender) = ours
                .then(|| Sender::new(setup, &self.load, number, from_switch, self.window))
                .flatten()
            else {
                continue;
            };
            let first = match sender.next(0) {
                Next::At(at) => Some(at),
                _ => None,
            };
            let place = self.senders.len();
            self.senders.push(sender);
            if let Some(slot) = self.sender_of.get_mut(number) {
                *slot = Some(place);
            }
            if let Some(at) = first {
                self.due.push(Reverse((at, Due::Send(place))));
            }
        }
    }

    /// Counts a message of `stream` that arrived or was answered, for the first time or again.
    #[inline]
    pub(crate) fn arrive(
        &mut self,
        stream: usize,
        kind: Kind,
        sequence: u32,
        intended: u64,
        now: u64,
    ) {
        let Some(Some(track)) = self.tracks.get_mut(stream) else { return };
        if !track.arrive(kind, sequence, intended, now) {
            return;
        }
        self.total_arrived += 1;
        if let Some(Some(latency)) = self.part.by_kind.get_mut(kind as usize)
            && self.window.contains(intended)
        {
            latency.record(now.saturating_sub(intended));
        }
    }

    /// Counts a request that was answered by an ERROR.
    pub(crate) fn refuse(&mut self, stream: usize, sequence: u32, intended: u64) {
        if let Some(Some(track)) = self.tracks.get_mut(stream)
            && track.refuse(sequence, intended)
        {
            self.total_arrived += 1;
        }
    }

    /// Counts a message without a reply that was answered by an ERROR.
    pub(crate) fn refuse_unmatched(&mut self, stream: usize, now: u64) {
        if let Some(Some(track)) = self.tracks.get_mut(stream) {
            track.refuse_unmatched(now);
            self.total_arrived += 1;
        }
    }

    /// Allows the next message of a closed loop, because a message was answered.
    pub(crate) fn release(&mut self, stream: usize, now: u64) {
        let Some(Some(place)) = self.sender_of.get(stream).copied() else { return };
        let Some(sender) = self.senders.get_mut(place).filter(|sender| sender.is_closed_loop())
        else {
            return;
        };
        sender.credit += 1;
        if sender.credit == 1 {
            self.due.push(Reverse((now, Due::Send(place))));
        }
    }

    /// Counts a sent message.
    #[inline]
    pub(crate) fn left(&mut self, stream: usize, waiting: Waiting, has_reply: bool) {
        self.part.total_sent += 1;
        if has_reply && let Some(Some(pending)) = self.pending.get_mut(stream) {
            pending.insert(waiting);
        }
    }

    /// Whether the place of the request with this xid belongs to a later request.
    pub(crate) fn has_forgotten(&self, xid: u32) -> bool {
        let pending = stream_of(xid).and_then(|stream| self.pending.get(stream)?.as_ref());
        pending.is_some_and(|pending| pending.has_forgotten(xid))
    }

    /// The request that a reply's xid belongs to.
    pub(crate) fn request(&mut self, xid: u32) -> Option<(usize, &mut Waiting)> {
        let stream = stream_of(xid)?;
        let waiting = self.pending.get_mut(stream)?.as_mut()?.find(xid)?;
        Some((stream, waiting))
    }

    /// Publishes the progress for the session.
    pub(crate) fn publish(&self, progress: &Progress, now: u64) {
        progress.sent.store(self.part.total_sent, Ordering::Relaxed);
        progress.arrived.store(self.total_arrived, Ordering::Relaxed);
        progress.unfinished.store(self.unfinished(now), Ordering::Relaxed);
    }

    /// The number of senders that still have messages to send. The number is exact only after the schedule's end.
    pub(crate) fn unfinished(&self, now: u64) -> usize {
        if now < self.window.end {
            return self.senders.len();
        }
        self.senders.iter().filter(|sender| sender.next(now) != Next::Over).count()
    }

    /// Adds the time in which a slow switch worked, from one moment to another.
    pub(crate) fn busy(&mut self, (from, to): (u64, u64)) {
        let (from, to) = (from.max(self.window.from), to.min(self.window.to));
        self.part.busy_ns += to.saturating_sub(from);
    }

    /// Counts a PORT_STATUS that a tenant's controller received.
    pub(crate) fn notice(&mut self, tenant: usize, now: u64) {
        let count = self.part.notices.get_mut(tenant);
        if let Some(count) = count.filter(|_| self.window.contains(now)) {
            *count += 1;
        }
    }

    /// Whether a stream's packets are probes of its rules; a miss of such a packet is expected.
    pub(crate) fn is_probed(&self, stream: usize) -> bool {
        self.load.streams.get(stream).is_some_and(Stream::is_probed)
    }

    /// The tenant of the stream.
    pub(crate) fn tenant_of(&self, stream: usize) -> Option<usize> {
        self.load.streams.get(stream).map(|stream| stream.tenant)
    }

    pub(crate) fn into_part(mut self, faults: Faults) -> Part {
        self.senders.iter_mut().for_each(Sender::count_blocked);
        let stream = |track: Option<Track>| {
            let Some(Track { counts, latency, seconds, .. }) = track else {
                return StreamPart::default();
            };
            StreamPart { counts, latency: Some(latency), seconds }
        };
        let mut streams: Vec<StreamPart> = self.tracks.into_iter().map(stream).collect();
        for sender in &self.senders {
            if let Some(stream) = streams.get_mut(sender.stream) {
                stream.counts.add(&sender.counts);
            }
        }
        Part { streams, faults, ..self.part }
    }
}

/// The counts of one thread for one stream.
#[derive(Debug, Default)]
pub(crate) struct StreamPart {
    pub(crate) counts: Counts,
    pub(crate) latency: Option<Histogram>,
    pub(crate) seconds: Vec<Second>,
}

/// The counts of one thread in one run.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) streams: Vec<StreamPart>,
    pub(crate) by_kind: Vec<Option<Histogram>>,
    pub(crate) lag: Histogram,
    pub(crate) faults: Faults,
    /// The time in ns that slow switches worked inside the window.
    pub(crate) busy_ns: u64,
    /// The number of PORT_STATUS messages that arrived inside the window, by tenant.
    pub(crate) notices: Vec<u64>,
    /// The number of writes that contained messages of the load.
    pub(crate) writes: u64,
    pub(crate) total_sent: u64,
}
