//! Emulates the processor of a slow switch. The processor works on messages in the order of arrival: one at a time, in
//! batches, or by a bucket of tokens. A [`Delay`] stands between the processor and the controller.

use crate::plan::{Delay, Setup};
use crate::wire::be16;
use std::collections::VecDeque;

/// The default for [`crate::plan::SwitchModel::queue`].
const DEFAULT_QUEUE: usize = 64;
/// The times of [`Delay::Stalls`] in ns: the length of a stall of the switch's host, and the period of the stalls.
const STALL_NS: u64 = 5_000_000;
const BETWEEN_STALLS_NS: u64 = 200_000_000;
/// The least and the largest delay of answers with [`Delay::Late`], in ns.
const LATE_NS: [u64; 2] = [50_000, 150_000];
/// The round trip to a switch with [`Delay::Far`], in ns.
pub(crate) const FAR_NS: u64 = 10_000_000;
/// The time in ns for which a switch with [`Delay::ChangesSpeed`] has the same speed. In every other of these times the
/// switch is ten times as fast.
const SAME_SPEED_NS: u64 = 500_000_000;
const FASTER: u64 = 10;

/// The processor.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    service_ns: u64,
    batch: u32,
    /// The number of frames that are done at `done_at`.
    taken: u32,
    bucket: u32,
    delay: Delay,
    /// The time when the bucket is full again.
    full_at: u64,
    limit: usize,
    /// The waiting frames, one after the other; the first `head` bytes are answered.
    frames: Vec<u8>,
    head: usize,
    /// The waiting frames.
    waiting: VecDeque<Work>,
    /// The time when the last frame is done.
    done_at: u64,
    /// The time when the last frame is answered.
    answered_at: u64,
    /// The number of frames so far.
    count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Work {
    began: u64,
    done: u64,
    answered: u64,
}

/// A frame that a slow switch has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The times when the work on the frame began and ended.
    pub(crate) work: (u64, u64),
    /// The time when the next frame will be answered, if a frame waits.
    pub(crate) next: Option<u64>,
}

impl Service {
    pub(crate) fn new(setup: &Setup) -> Option<Self> {
        let model = &setup.switch;
        let queue = if model.queue == 0 { DEFAULT_QUEUE } else { model.queue };
        (model.service_ns > 0).then(|| Self {
            service_ns: model.service_ns,
            batch: model.batch,
            taken: 0,
            bucket: model.bucket,
            delay: model.delay,
            full_at: 0,
            // Messages on the way to a switch far away do not wait at the switch.
            limit: queue
                + if model.delay == Delay::Far { (FAR_NS / model.service_ns) as usize } else { 0 },
            frames: Vec::new(),
            head: 0,
            waiting: VecDeque::new(),
            done_at: 0,
            answered_at: 0,
            count: 0,
        })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }

    /// Whether barriers are answered at once, independent of waiting frames.
    pub(crate) fn answers_barriers_early(&self) -> bool {
        self.delay == Delay::EarlyBarriers
    }

    /// Adds an arrived frame. Returns the time when the frame will be answered, if no other frame waits.
    pub(crate) fn push(&mut self, frame: &[u8], now: u64) -> Option<u64> {
        self.frames.extend_from_slice(frame);
        self.count += 1;
        // An idle processor starts now, or at the earlier time when the processor became free: a late wake-up must not
        // slow the switch down.
        let from = now.max(self.done_at);
        let service = self.service_at(from);
        let done = after_stall(self.delay, self.next(from, service));
        self.done_at = done;
        self.answered_at = self.answered_at.max(done + self.late());
        let answered = self.answered_at;
        self.waiting.push_back(Work { began: done.saturating_sub(service), done, answered });
        (self.waiting.len() == 1).then_some(answered)
    }

    fn service_at(&self, at: u64) -> u64 {
        let is_fast = self.delay == Delay::ChangesSpeed && (at / SAME_SPEED_NS).is_multiple_of(2);
        if is_fast { self.service_ns / FASTER } else { self.service_ns }
    }

    /// The time from the end of the work to the answer.
    fn late(&self) -> u64 {
        let [least, most] = LATE_NS;
        match self.delay {
            // A multiple of the golden section: evenly spread, and the same in each run.
            Delay::Late => least + self.count.wrapping_mul(0x9e37_79b9) % (most - least),
            Delay::Far => FAR_NS,
            _ => 0,
        }
    }

    /// The time when the next frame is done, if the processor is free from `from` on.
    fn next(&mut self, from: u64, service: u64) -> u64 {
        if self.bucket > 0 {
            self.full_at = self.full_at.max(from) + service;
            return from.max(self.full_at.saturating_sub(u64::from(self.bucket) * service));
        }
        if self.batch < 2 {
            return from + service;
        }
        let period = u64::from(self.batch) * service;
        let at = from.div_ceil(period) * period;
        let is_of_this_batch = at == self.done_at;
        if is_of_this_batch && self.taken >= self.batch {
            self.taken = 1;
            return at + period;
        }
        self.taken = if is_of_this_batch { self.taken + 1 } else { 1 };
        at
    }

    /// Takes the frame that is to be answered by `now`, if any, into `frame`.
    pub(crate) fn pop(&mut self, now: u64, frame: &mut Vec<u8>) -> Option<Served> {
        let work = *self.waiting.front().filter(|work| work.answered <= now)?;
        let waiting = self.frames.get(self.head..)?;
        let length = usize::from(be16(waiting, 2)?);
        frame.clear();
        frame.extend_from_slice(waiting.get(..length)?);
        self.head += length;
        self.waiting.pop_front();
        if self.waiting.is_empty() {
            self.frames.clear();
            self.head = 0;
        } else if self.head > 64 * 1024 {
            self.frames.drain(..self.head);
            self.head = 0;
        }
        let next = self.waiting.front().map(|work| work.answered);
        Some(Served { work: (work.began, work.done), next })
    }
}

/// The end of work with stalls, if the work would end at the time `at` without stalls.
fn after_stall(delay: Delay, at: u64) -> u64 {
    let into = at % BETWEEN_STALLS_NS;
    if delay == Delay::Stalls && into < STALL_NS { at + STALL_NS - into } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{SwitchModel, Topology, Version};
    use crate::wire::{be32, kind, message};

    const FRAME: [u8; 8] = [1, 2, 0, 8, 0, 0, 0, 0];

    fn service(change: impl FnOnce(&mut SwitchModel)) -> Service {
        let mut setup = Setup::new(Topology::Direct, 2);
        change(&mut setup.switch);
        Service::new(&setup).unwrap()
    }

    #[test]
    fn messages_of_a_batch_finish_together_at_the_service_rate() {
        let mut service = service(|switch| (switch.service_ns, switch.batch) = (100, 3));
        assert_eq!(service.push(&FRAME, 10), Some(300));
        (0..6).for_each(|_| assert_eq!(service.push(&FRAME, 20), None));
        let mut taken = Vec::new();
        let done = std::iter::from_fn(|| service.pop(10_000, &mut taken)).map(|it| it.work.1);
        assert_eq!(done.collect::<Vec<_>>(), [300, 300, 300, 600, 600, 600, 900]);
        // Two more frames have room in the last batch, the next frames do not.
        let more = [900, 900, 900].map(|now| {
            let at = service.push(&FRAME, now);
            assert!(service.pop(10_000, &mut taken).is_some());
            at
        });
        assert_eq!(more, [Some(900), Some(900), Some(1_200)]);
        assert_eq!(service.push(&FRAME, 1_201), Some(1_500));
    }

    #[test]
    fn a_full_token_bucket_serves_at_once_and_an_empty_bucket_at_service_rate() {
        let mut service = service(|switch| (switch.service_ns, switch.bucket) = (100, 3));
        assert_eq!(service.push(&FRAME, 1_000), Some(1_000));
        (0..5).for_each(|_| assert_eq!(service.push(&FRAME, 1_000), None));
        let mut taken = Vec::new();
        let done = std::iter::from_fn(|| service.pop(10_000, &mut taken)).map(|it| it.work.1);
        assert_eq!(done.collect::<Vec<_>>(), [1_000, 1_000, 1_000, 1_100, 1_200, 1_300]);
        // After two service times the bucket has two tokens.
        let more = [1_500, 1_500, 1_500].map(|now| {
            let at = service.push(&FRAME, now);
            assert!(service.pop(10_000, &mut taken).is_some());
            at
        });
        assert_eq!(more, [Some(1_500), Some(1_500), Some(1_600)]);
    }

    #[test]
    fn messages_are_served_in_order_of_arrival_without_overlap() {
        let mut service = service(|switch| (switch.service_ns, switch.queue) = (100, 2));
        let frame = |xid| {
            let mut bytes = Vec::new();
            message(&mut bytes, Version::V1_0, kind::ECHO_REQUEST, xid, &[]);
            bytes
        };
        let mut done = Vec::new();
        assert_eq!(service.push(&frame(1), 1000), Some(1100));
        assert_eq!(service.push(&frame(2), 1010), None);
        assert!(service.is_full());
        assert_eq!(service.pop(1099, &mut done), None);
        // The first frame is taken late, but the second frame is done on time.
        let first = service.pop(1150, &mut done);
        assert_eq!(first, Some(Served { work: (1000, 1100), next: Some(1200) }));
        assert_eq!(be32(&done, 4), Some(1));
        let second = service.pop(1200, &mut done);
        assert_eq!(second, Some(Served { work: (1100, 1200), next: None }));
        assert_eq!(be32(&done, 4), Some(2));
        assert_eq!(service.push(&frame(3), 1500), Some(1600));
    }

    /// The times of the answers to `count` frames that arrive at once, and whether the work was done at these times.
    fn answers(delay: Delay, count: usize, now: u64) -> Vec<(u64, bool)> {
        let mut service = service(|switch| (switch.service_ns, switch.delay) = (1_000_000, delay));
        let mut next = None;
        for _ in 0..count {
            next = next.or(service.push(&FRAME, now));
        }
        let (mut frame, mut all) = (Vec::new(), Vec::new());
        while let Some(at) = next {
            assert_eq!(service.pop(at - 1, &mut frame), None, "{delay:?}");
            let served = service.pop(at, &mut frame).unwrap();
            all.push((at, served.work.1 == at));
            next = served.next;
        }
        assert_eq!(all.len(), count, "{delay:?}");
        all
    }

    #[test]
    fn each_delay_type_gives_the_expected_reply_times() {
        const MS: u64 = 1_000_000;
        let at_once =
            |times: &[u64]| times.iter().map(|time| (time * MS, true)).collect::<Vec<_>>();
        assert_eq!(answers(Delay::None, 3, 300 * MS), at_once(&[301, 302, 303]));
        assert_eq!(answers(Delay::EarlyBarriers, 2, 300 * MS), at_once(&[301, 302]));
        // The work that a stall interrupts is done at the end of the stall.
        assert_eq!(answers(Delay::Stalls, 4, 398 * MS), at_once(&[399, 405, 406, 407]));
        let far: Vec<_> = answers(Delay::Far, 3, 300 * MS);
        assert_eq!(far, [(311 * MS, false), (312 * MS, false), (313 * MS, false)]);
        for (number, (at, _)) in (1..).zip(answers(Delay::Late, 200, 300 * MS)) {
            let late = at - (300 + number) * MS;
            assert!((50_000..150_000).contains(&late), "{late} ns");
        }
        // At first the switch is ten times as fast. After half a second the switch is slow.
        let changing = answers(Delay::ChangesSpeed, 12, 499 * MS);
        let [first, tenth, last] = [0, 9, 11].map(|at: usize| changing[at].0);
        assert_eq!([first, tenth, last], [499_100_000, 500 * MS, 502 * MS]);
    }
}
