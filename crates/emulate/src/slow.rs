//! A switch with a service time, in virtual time, for tests of the peers of a slow switch.

use std::collections::VecDeque;

use crate::effects::Outcome;
use crate::service::{Cpu, ServiceTime};
use crate::switch::Switch;

/// A [`Switch`] with a queue. Messages wait in the queue for the CPU.
///
/// [`Runner::service`](crate::Runner::service) does the same over real sockets, with the queue in
/// the socket.
pub struct SlowSwitch {
    switch: Switch,
    cpu: Cpu,
    /// The messages with their arrival times, ns.
    queue: VecDeque<(u64, Vec<u8>)>,
    serving: Option<Vec<u8>>,
}

impl SlowSwitch {
    /// Makes a switch with this service time.
    pub fn new(switch: Switch, service: ServiceTime) -> SlowSwitch {
        SlowSwitch::with_bucket(switch, service, 0)
    }

    /// Makes a switch with a bucket of this number of tokens; see [`Cpu::with_bucket`]. The value 0 means no bucket.
    pub fn with_bucket(switch: Switch, service: ServiceTime, tokens: u32) -> SlowSwitch {
        let cpu = Cpu::with_bucket(service, tokens);
        SlowSwitch { switch, cpu, queue: VecDeque::new(), serving: None }
    }

    /// The switch behind the queue.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// The switch behind the queue, for packets and port changes, which do not wait.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    /// Adds a message of the controller to the queue.
    pub fn offer(&mut self, now: u64, frame: &[u8]) {
        self.queue.push_back((now, frame.to_vec()));
    }

    /// The number of messages that wait or are in service.
    pub fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.serving.is_some())
    }

    /// The time that the CPU was busy until `now`, in nanoseconds.
    pub fn busy(&self, now: u64) -> u64 {
        self.cpu.busy(now)
    }

    /// Serves the messages that can be served until `now`. Appends replies and asynchronous
    /// messages in order.
    ///
    /// Each message takes effect at the end of its service. Entries expire between messages.
    pub fn advance(&mut self, now: u64, out: &mut Vec<u8>) -> Outcome {
        let mut sum = Outcome::default();
        loop {
            if let Some(end) = self.cpu.finish(now) {
                let frame = self.serving.take().unwrap_or_default();
                add(&mut sum, self.switch.tick(end, out));
                add(&mut sum, self.switch.handle_message(end, &frame, out));
            } else if self.cpu.is_serving() {
                break;
            }
            if self.queue.front().is_none_or(|(arrival, _)| *arrival > now) {
                break;
            }
            let Some((arrival, frame)) = self.queue.pop_front() else { break };
            self.cpu.begin(arrival, openflow::frame::type_(&frame).unwrap_or_default());
            self.serving = Some(frame);
        }
        add(&mut sum, self.switch.tick(now, out));
        sum
    }

    /// The earliest time at which [`SlowSwitch::advance`] has work, ns.
    pub fn next_deadline(&self) -> Option<u64> {
        let serving = self.cpu.done_at();
        let waiting = self.queue.front().map(|(arrival, _)| *arrival);
        let next = serving.or(waiting);
        next.into_iter().chain(self.switch.next_deadline()).min()
    }
}

fn add(sum: &mut Outcome, step: Outcome) {
    sum.sent.extend(step.sent);
    sum.packet_ins += step.packet_ins;
    sum.disconnect |= step.disconnect;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use openflow::v10::Message;
    use openflow::{Version, VersionSet};

    #[test]
    fn a_slow_switch_replies_after_the_service_time_of_each_message() {
        let mut out = Vec::new();
        let mut switch = Switch::new(Config::new(1, 1));
        switch.connect(&mut out);
        let mut hello = Vec::new();
        openflow::Hello::write_message(VersionSet::only(Version::V1_0), 0, &mut hello).unwrap();
        switch.handle_message(0, &hello, &mut out);
        let mut slow = SlowSwitch::new(switch, ServiceTime::per_second(8_000));
        for xid in 0..16 {
            let mut echo = Vec::new();
            Message::EchoRequest(b"").write(xid, &mut echo).unwrap();
            slow.offer(1_000, &echo);
        }
        out.clear();
        assert_eq!(slow.next_deadline(), Some(1_000));
        slow.advance(1_000, &mut out);
        assert_eq!((slow.next_deadline(), slow.queued(), out.len()), (Some(126_000), 16, 0));
        slow.advance(126_000, &mut out);
        assert_eq!((slow.queued(), out.len()), (15, 8));
        slow.advance(10_000_000, &mut out);
        assert_eq!((slow.queued(), out.len(), slow.busy(10_000_000)), (0, 128, 2_000_000));
        let xids: Vec<u32> = out.chunks(8).filter_map(openflow::frame::xid).collect();
        assert_eq!(xids, (0..16).collect::<Vec<u32>>());
    }
}
