//! Handles the datagrams of agents: checks them, bounds their number, and reads their reports.
//!
//! A check of a datagram (a hash over at most 1,232 bytes) costs a few microseconds. So at most [`LOOKS`] datagrams are
//! checked in a [`SLOT`]; then the thread rests. At most [`PER_SECOND`] datagrams of one agent are accepted in a
//! second; the rest is dropped and counted. An agent with 512 interfaces that each send to eight others needs 1,100.
//!
//! The module deliberately has no sockets and clocks. Start reading at [`Receiver::handle_datagram`].

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use fabric::edge::{AgentId, Measured, Refused, Sent, Sessions};
use fabric::{Duration, Instant, MacAddress, TenantId};

use super::setup::Setup;
use crate::metrics::Registry;

/// The most datagrams that are checked in a slot, from all senders.
const LOOKS: u32 = 200;
/// The length of a slot.
const SLOT: Duration = Duration::from_millis(10);
/// The most datagrams of one agent that are accepted in a second.
const PER_SECOND: u32 = 2_000;
const SECOND: Duration = Duration::from_secs(1);

/// All sessions with agents, and the measured rates.
pub(super) struct Receiver {
    sessions: Sessions,
    /// The last address of each agent; unknown agents have no entry.
    addresses: BTreeMap<AgentId, SocketAddr>,
    measured: Measured,
    /// The measured interfaces, as of the last call of `poll_change`.
    passed_on: BTreeMap<MacAddress, TenantId>,
    slot: Count,
    taken: BTreeMap<AgentId, Count>,
    metrics: Arc<Registry>,
    /// The counts of misplaced and impossible entries that are in the metrics.
    counted: (u64, u64),
}

/// A count since a point in time.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    since: Instant,
    number: u32,
}

/// Whether the thread may check datagrams now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Not for this time: the bound of the slot is reached.
    For(Duration),
    /// Yes, and a time-out is due at this time.
    Until(Instant),
    /// Yes.
    None,
}

impl Receiver {
    /// `life`: a number that no earlier process has used.
    pub(super) fn new(setup: &Setup, life: u64, metrics: Arc<Registry>) -> Receiver {
        let agents = &setup.agents;
        let peers = agents.servers.iter().map(|name| AgentId::of(name));
        Receiver {
            sessions: Sessions::new(setup.key, AgentId::of(&agents.name), life, peers),
            addresses: BTreeMap::new(),
            measured: Measured::new(setup.vnics.iter().copied(), agents.lifetime),
            passed_on: BTreeMap::new(),
            slot: Count::default(),
            taken: BTreeMap::new(),
            metrics,
            counted: (0, 0),
        }
    }

    /// Whether the thread has to rest before the next datagram.
    pub(super) fn rest(&self, now: Instant) -> Rest {
        let passed = now - self.slot.since;
        if self.slot.number >= LOOKS && passed < SLOT {
            return Rest::For(SLOT.saturating_sub(passed));
        }
        self.measured.next_due().map_or(Rest::None, Rest::Until)
    }

    /// Handles a received datagram.
    pub(super) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) {
        self.slot.add(now, SLOT);
        let opened = self.sessions.open(datagram);
        if matches!(opened, Ok(_) | Err(Refused::Unplaced))
            && let Some(agent) = Sessions::sender(datagram)
        {
            self.addresses.insert(agent, from);
        }
        let metrics = &self.metrics.process.agents;
        let counter = match opened {
            Ok(Some(opened)) => {
                if self.taken.entry(opened.from).or_default().add(now, SECOND) > PER_SECOND {
                    &metrics.excess
                } else {
                    self.measured.handle_message(now, opened.from, &opened.message);
                    &metrics.taken
                }
            }
            Ok(None) => &metrics.taken,
            Err(Refused::Garbage) => &metrics.garbage,
            Err(Refused::Stranger) => &metrics.strangers,
            Err(Refused::Unplaced) => &metrics.unplaced,
            Err(Refused::Repeated) => &metrics.repeated,
        };
        counter.increment();
    }

    /// Handles time-outs.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.measured.next_due().is_some_and(|due| due <= now) {
            self.measured.handle_timeout(now);
        }
    }

    /// A hello that is to be sent, and its address.
    pub(super) fn poll_hello(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        let (to, hello) = self.sessions.poll_hello(now)?;
        // The receiver of a hello has sent a datagram before, so its address is known.
        Some((*self.addresses.get(&to)?, hello))
    }

    /// The next interface whose rates have changed since the last report; `None`: the interface is not measured.
    pub(super) fn poll_change(&mut self) -> Option<(TenantId, MacAddress, Sent)> {
        let (tenant, vnic, sent) = self.measured.poll_change()?;
        match sent {
            Some(_) => self.passed_on.insert(vnic, tenant),
            None => self.passed_on.remove(&vnic),
        };
        Some((tenant, vnic, sent))
    }

    /// The measured interfaces, as of the last call of `poll_change`.
    pub(super) fn measured(&self) -> impl Iterator<Item = (TenantId, MacAddress)> {
        self.passed_on.iter().map(|(vnic, tenant)| (*tenant, *vnic))
    }

    /// Updates the metrics of entries and interfaces.
    pub(super) fn count(&mut self) {
        let metrics = &self.metrics.process.agents;
        let (misplaced, impossible) = (self.measured.misplaced(), self.measured.impossible());
        metrics.misplaced.add(misplaced - self.counted.0);
        metrics.impossible.add(impossible - self.counted.1);
        metrics.measured.set(self.passed_on.len() as u64);
        self.counted = (misplaced, impossible);
    }
}

impl Count {
    /// Counts one more, and returns the count of this period.
    fn add(&mut self, now: Instant, stretch: Duration) -> u32 {
        // If the clock was set back, a new period begins.
        if now < self.since || now - self.since >= stretch {
            *self = Count { since: now, number: 0 };
        }
        self.number = self.number.saturating_add(1);
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::tests::{agent, setup};
    use fabric::Bandwidth;
    use fabric::edge::{Message, Rates, Report};

    const FROM: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

    fn millis(number: u64) -> Instant {
        Instant(number * 1_000_000)
    }

    fn mac(last: u8) -> MacAddress {
        MacAddress::new([2, 0, 0, 0, 0, last]).unwrap()
    }

    fn report(bytes: u64) -> Message {
        let wish = Report::EVERYTHING;
        Message::Reports(vec![Report { from: mac(1), to: mac(2), bytes, wish }])
    }

    fn rates() -> Message {
        let none = Bandwidth::ZERO;
        Message::Rates(vec![Rates { vnic: mac(1), received: none, sent: none }])
    }

    /// Passes a datagram of the agent to the receiver, and the hellos of the receiver to the agent. Returns the
    /// datagram.
    fn say(
        receiver: &mut Receiver,
        agent: &mut Sessions,
        now: Instant,
        message: &Message,
    ) -> Vec<u8> {
        let datagram = agent.seal(AgentId::of("weir"), message).unwrap();
        receiver.handle_datagram(now, FROM, &datagram);
        while let Some((to, hello)) = receiver.poll_hello(now) {
            assert_eq!(to, FROM);
            assert_eq!(agent.open(&hello), Ok(None));
        }
        datagram
    }

    /// The values of the counters taken, garbage, strangers, unplaced, repeated, excess, misplaced, impossible.
    fn counts(receiver: &mut Receiver) -> [u64; 8] {
        receiver.count();
        let metrics = &receiver.metrics.process.agents;
        let datagrams = metrics.datagrams().map(|(_, counter)| counter);
        let [taken, garbage, strangers, unplaced, repeated, excess] = datagrams;
        let (misplaced, impossible) = (&metrics.misplaced, &metrics.impossible);
        [taken, garbage, strangers, unplaced, repeated, excess, misplaced, impossible]
            .map(|counter| counter.get())
    }

    fn receiver() -> Receiver {
        Receiver::new(&setup(), 7, Registry::new())
    }

    #[test]
    fn an_agent_gets_a_hello_is_measured_and_is_removed_after_silence() {
        let (mut receiver, mut agent) = (receiver(), agent("one", 3));
        assert_eq!(receiver.rest(millis(0)), Rest::None);
        for ms in (0..1_000).step_by(100) {
            say(&mut receiver, &mut agent, millis(ms), &report(ms * 500));
        }
        let Some((TenantId(1), vnic, Some(sent))) = receiver.poll_change() else {
            panic!("nothing")
        };
        assert_eq!((vnic, sent[&mac(2)]), (mac(1), Bandwidth::from_megabits_per_second(4)));
        // The first datagram had no valid token, so the agent got a hello.
        assert_eq!(counts(&mut receiver), [9, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(
            (receiver.metrics.process.agents.measured.get(), receiver.measured().count()),
            (1, 1)
        );
        // The agent sends no more datagrams, and is not measured after the lifetime of one second.
        let Rest::Until(due) = receiver.rest(millis(1_000)) else { panic!("nothing is due") };
        receiver.handle_timeout(due);
        receiver.handle_timeout(millis(2_000));
        assert_eq!(receiver.poll_change(), Some((TenantId(1), mac(1), None)));
        assert_eq!(counts(&mut receiver)[0], 9);
        assert_eq!(
            (receiver.metrics.process.agents.measured.get(), receiver.rest(millis(2_000))),
            (0, Rest::None)
        );
    }

    #[test]
    fn invalid_agent_datagrams_and_reports_are_ignored_and_counted() {
        let (mut receiver, mut one) = (receiver(), agent("one", 3));
        say(&mut receiver, &mut one, millis(0), &rates());
        let good = say(&mut receiver, &mut one, millis(1), &rates());
        assert_eq!(counts(&mut receiver), [1, 0, 0, 1, 0, 0, 0, 0]);
        // The receiver counts truncated datagrams (one of them empty), datagrams with one wrong bit, a datagram that is
        // too long, a repeated datagram, and a datagram of an unknown sender. None of these datagrams gets a hello.
        for length in 0..good.len() {
            receiver.handle_datagram(millis(2), FROM, &good[..length]);
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            receiver.handle_datagram(millis(2), FROM, &bad);
        }
        receiver.handle_datagram(millis(2), FROM, &[0; 2_000]);
        receiver.handle_datagram(millis(2), FROM, &good);
        let mut nobody = agent("nobody", 4);
        let strange = nobody.seal(AgentId::of("weir"), &rates()).unwrap();
        receiver.handle_datagram(millis(2), FROM, &strange);
        assert!(receiver.poll_hello(millis(2)).is_none());
        let garbage = 2 * good.len() as u64 + 1;
        assert_eq!(counts(&mut receiver), [1, garbage, 1, 1, 1, 0, 0, 0]);
        // Agent "two" reports about an interface of agent "one", and agent "one" reports an impossible rate.
        let mut two = agent("two", 5);
        say(&mut receiver, &mut two, millis(3), &rates());
        say(&mut receiver, &mut two, millis(4), &rates());
        assert_eq!(counts(&mut receiver)[6..], [1, 0]);
        say(&mut receiver, &mut one, millis(5), &report(0));
        say(&mut receiver, &mut one, millis(6), &report(u64::MAX));
        assert_eq!(counts(&mut receiver)[6..], [1, 1]);
    }

    #[test]
    fn datagram_rates_per_agent_and_in_total_are_bounded() {
        let (mut receiver, mut one) = (receiver(), agent("one", 3));
        for number in 0..u64::from(2 * PER_SECOND) {
            say(&mut receiver, &mut one, Instant(number * 100_000), &rates());
        }
        // The first datagram had no valid token, and was answered with a hello only.
        assert_eq!(counts(&mut receiver)[..6], [2_000, 0, 0, 1, 0, 1_999]);
        say(&mut receiver, &mut one, millis(1_400), &rates());
        assert_eq!(counts(&mut receiver)[0], 2_001);
        for _ in 0..LOOKS {
            assert!(!matches!(receiver.rest(millis(5_000)), Rest::For(_)));
            receiver.handle_datagram(millis(5_000), FROM, &[1]);
        }
        assert_eq!(receiver.rest(millis(5_004)), Rest::For(Duration::from_millis(6)));
        assert!(!matches!(receiver.rest(millis(5_010)), Rest::For(_)));
    }
}
