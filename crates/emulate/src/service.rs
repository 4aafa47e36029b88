//! Models the CPU of a switch as a queue. The CPU handles one message at a time, first in, first
//! out, for a configured time.
//!
//! A real switch handles a few thousand messages per second. With this model an emulated switch is
//! as slow: a message that arrives during the service of another message waits. The reply and the
//! table change appear at the end of the message's own service. The module has no clock. The caller
//! gives the time, so the same model runs in virtual time and over real sockets.

/// The CPU time of the switch for one message, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceTime {
    /// The time for every message type that `by_type` does not name.
    pub default: u64,
    /// The times for messages of these types (the type field of the header).
    pub by_type: Vec<(u8, u64)>,
}

impl ServiceTime {
    /// The service time of a switch that handles this number of messages per second, for all types.
    ///
    /// HELLO and ECHO wait in the same queue and need the same time.
    pub fn per_second(messages: u32) -> ServiceTime {
        ServiceTime { default: 1_000_000_000 / u64::from(messages.max(1)), by_type: Vec::new() }
    }

    /// The time for a message of this type.
    pub fn of(&self, message_type: u8) -> u64 {
        let own = self.by_type.iter().find(|(type_, _)| *type_ == message_type);
        own.map_or(self.default, |(_, time)| *time)
    }

    /// The service time of a switch that never finishes its first message, so that the switch reads
    /// no other message.
    pub fn never() -> ServiceTime {
        ServiceTime { default: u64::MAX, by_type: Vec::new() }
    }

    /// Whether all messages take no time.
    pub fn is_zero(&self) -> bool {
        self.default == 0 && self.by_type.iter().all(|(_, time)| *time == 0)
    }
}

/// The CPU that serves the queue.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    service: ServiceTime,
    /// The number of tokens of a full bucket. The value 0 means no bucket.
    bucket: u64,
    /// The time when the bucket is full again.
    full_at: u64,
    current: Option<Job>,
    /// The end of the last service.
    free_at: u64,
    busy: u64,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    start: u64,
    end: u64,
    /// The time that counts as busy at the end of the service.
    work: u64,
}

impl Cpu {
    /// Makes a CPU with this service time.
    pub fn new(service: ServiceTime) -> Cpu {
        Cpu::with_bucket(service, 0)
    }

    /// Makes a CPU with a token bucket. Each message takes one token, and each service time adds one token. So after an
    /// idle time the CPU handles this number of messages at once. With 0 tokens the CPU has no bucket and handles one
    /// message at a time.
    pub fn with_bucket(service: ServiceTime, tokens: u32) -> Cpu {
        Cpu { service, bucket: tokens.into(), ..Cpu::default() }
    }

    /// Changes the service time from the next message on.
    pub fn set_service(&mut self, service: ServiceTime) {
        self.service = service;
    }

    /// Begins to serve a message that arrived at `arrival`. No other message may be in service.
    ///
    /// Service begins when the message has arrived and the message before is finished, even if the
    /// caller calls later. A late wake-up must not make the switch slower. `arrival` may not be in
    /// the future.
    pub fn begin(&mut self, arrival: u64, message_type: u8) {
        let start = arrival.max(self.free_at);
        let work = self.service.of(message_type);
        let mut end = start.saturating_add(work);
        if self.bucket > 0 {
            self.full_at = self.full_at.max(start).saturating_add(work);
            end = start.max(self.full_at.saturating_sub(self.bucket.saturating_mul(work)));
        }
        self.current = Some(Job { start, end, work });
    }

    /// Whether a message is in service.
    pub fn is_serving(&self) -> bool {
        self.current.is_some()
    }

    /// The end of the current service.
    pub fn done_at(&self) -> Option<u64> {
        self.current.map(|job| job.end)
    }

    /// Ends the service if its time is over at `now`. Returns the time of its end.
    pub fn finish(&mut self, now: u64) -> Option<u64> {
        let job = self.current.filter(|job| job.end <= now)?;
        self.current = None;
        self.free_at = job.end;
        self.busy += job.work;
        Some(job.end)
    }

    /// Drops the message in service, because its connection is closed. The time spent counts as
    /// busy.
    pub fn abandon(&mut self, now: u64) {
        if let Some(job) = self.current.take() {
            let end = job.end.min(now).max(job.start);
            self.free_at = end;
            self.busy += end - job.start;
        }
    }

    /// The time spent in service until `now`, in nanoseconds.
    pub fn busy(&self, now: u64) -> u64 {
        let current = self.current.map_or(0, |job| now.clamp(job.start, job.end) - job.start);
        self.busy + current
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves messages that arrive at given times, and reads the clock only at `wake_ups`.
    fn done_times(arrivals: &[u64], wake_ups: impl Iterator<Item = u64>) -> (Vec<u64>, u64) {
        let mut cpu = Cpu::new(ServiceTime { default: 125, by_type: vec![(7, 1000)] });
        let mut waiting = arrivals.iter().peekable();
        let mut done = Vec::new();
        let mut last = 0;
        for now in wake_ups {
            loop {
                done.extend(cpu.finish(now));
                match waiting.peek() {
                    Some(&&arrival) if arrival <= now && !cpu.is_serving() => {
                        cpu.begin(arrival, 0);
                        waiting.next();
                    }
                    _ => break,
                }
            }
            last = now;
        }
        (done, cpu.busy(last))
    }

    #[test]
    fn messages_are_served_in_sequence_also_when_the_caller_wakes_late() {
        let arrivals = [0, 0, 10, 1000];
        let expected = vec![125, 250, 375, 1125];
        assert_eq!(done_times(&arrivals, 0..=2000), (expected.clone(), 500));
        assert_eq!(done_times(&arrivals, (0..=2000).step_by(400)), (expected, 500));
    }

    #[test]
    fn a_token_bucket_serves_messages_at_once_until_empty() {
        let mut cpu = Cpu::with_bucket(ServiceTime { default: 100, by_type: vec![] }, 3);
        let mut served = |arrival| {
            cpu.begin(arrival, 0);
            cpu.finish(u64::MAX).unwrap()
        };
        let done = [1_000; 6].map(&mut served);
        assert_eq!(done, [1_000, 1_000, 1_000, 1_100, 1_200, 1_300]);
        // After two service times the bucket has two tokens.
        assert_eq!([1_500; 3].map(&mut served), [1_500, 1_500, 1_600]);
        assert_eq!(cpu.busy(1_600), 900);
    }

    #[test]
    fn a_message_type_can_have_a_separate_service_time() {
        let mut cpu = Cpu::new(ServiceTime { default: 125, by_type: vec![(7, 1000)] });
        cpu.begin(50, 7);
        assert_eq!((cpu.done_at(), cpu.finish(1049)), (Some(1050), None));
        assert_eq!(cpu.busy(1049), 999);
        cpu.abandon(1049);
        assert_eq!((cpu.busy(9999), cpu.is_serving()), (999, false));
    }
}
