//! Tests of the rate control at the edge, in a fluid model with virtual time: senders with wanted rates, classes with
//! ceilings, receivers' links with queues, and agents that receive each other's messages a millisecond later.

use super::*;
use proptest::prelude::*;

const STEP_MS: u64 = 10;
const MBIT: u64 = 1_000_000;
/// The flow wants all available bandwidth.
const ALL: f64 = 1e12;

struct World {
    ms: u64,
    agents: Vec<Agent>,
    vnics: Vec<Vnic>,
    flows: Vec<Flow>,
    received: Vec<f64>,
    waiting: Vec<(usize, AgentId, Message)>,
}

struct Agent {
    id: AgentId,
    control: Control,
    alive: bool,
    /// The agent's clock minus the model's clock, in milliseconds.
    clock: i64,
}

/// A flow from one VNIC to another VNIC; `from` and `to` are indexes in the list.
struct Flow {
    from: usize,
    to: usize,
    wants: f64,
    sent: f64,
    queued: f64,
    arrived: f64,
    throttled: u32,
}

impl World {
    /// VNICs with these bandwidths (Mbit/s); each VNIC has its own agent, and all VNICs belong to one tenant.
    fn new(bandwidths: &[u64], flows: &[(usize, usize, f64)]) -> World {
        let mac = |place: usize| MacAddress::new([2, 0, 0, 0, 0, place as u8]).unwrap();
        let vnic = |(place, mbit): (usize, &u64)| Vnic {
            mac: mac(place),
            bandwidth: Bandwidth::from_megabits_per_second(*mbit),
            tenant: 1,
            agent: AgentId(place as u64),
        };
        let vnics: Vec<Vnic> = bandwidths.iter().enumerate().map(vnic).collect();
        let agent = |place: usize| {
            let id = AgentId(place as u64);
            Agent { id, control: Control::new(id, &vnics, None), alive: true, clock: 0 }
        };
        let flow = |&(from, to, wants): &(usize, usize, f64)| Flow {
            from,
            to,
            wants,
            sent: 0.0,
            queued: 0.0,
            arrived: 0.0,
            throttled: 0,
        };
        World {
            ms: 1_000_000,
            agents: (0..vnics.len()).map(agent).collect(),
            flows: flows.iter().map(flow).collect(),
            received: vec![0.0; vnics.len()],
            waiting: Vec::new(),
            vnics,
        }
    }

    fn now(&self, agent: usize) -> Instant {
        let ms = self.ms.checked_add_signed(self.agents[agent].clock).unwrap();
        Instant(0) + Duration::from_millis(ms)
    }

    fn ceiling(&self, flow: &Flow) -> f64 {
        let sender = self.agents[flow.from].control.senders().next().unwrap();
        let to = self.vnics[flow.to].mac;
        let pair = sender.pairs().find(|pair| pair.0 == to).unwrap();
        pair.2.bits_per_second() as f64
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.ms += 1;
            self.move_bits();
            let now: Vec<Instant> = (0..self.agents.len()).map(|agent| self.now(agent)).collect();
            for (to, from, message) in std::mem::take(&mut self.waiting) {
                if self.agents[to].alive {
                    self.agents[to].control.handle_message(now[to], from, &message);
                }
            }
            for (agent, now) in now.into_iter().enumerate() {
                // The agents step at different times.
                if self.ms % STEP_MS == agent as u64 % STEP_MS && self.agents[agent].alive {
                    self.step(agent, now);
                }
                while self.agents[agent].alive
                    && self.agents[agent].control.poll_ceiling(now).is_some()
                {}
            }
        }
    }

    fn step(&mut self, agent: usize, now: Instant) {
        let mac = self.vnics[agent].mac;
        let counters = |to: &MacAddress| {
            let mut counters = Counters::default();
            let is_it = |flow: &&Flow| flow.from == agent && self.vnics[flow.to].mac == *to;
            if let Some(flow) = self.flows.iter().find(is_it) {
                counters.bytes = (flow.sent / 8.0) as u64;
                counters.throttled = flow.throttled;
            }
            counters
        };
        let destinations = self.agents[agent].control.destinations(mac);
        let classes: Vec<Counters> = destinations.iter().map(counters).collect();
        let received = (self.received[agent] / 8.0) as u64;
        let control = &mut self.agents[agent].control;
        control.handle_counters(now, mac, &classes, received);
        control.handle_step(now);
        let from = self.agents[agent].id;
        while let Some((to, message)) = self.agents[agent].control.poll_message() {
            self.waiting.push((to.0 as usize, from, message));
        }
    }

    /// Moves the bits of one millisecond.
    fn move_bits(&mut self) {
        let rates: Vec<(f64, bool)> = self
            .flows
            .iter()
            .map(|flow| {
                let ceiling = self.ceiling(flow);
                (flow.wants.min(ceiling), flow.wants > ceiling)
            })
            .collect();
        for from in 0..self.vnics.len() {
            let of_it = |flow: &Flow| flow.from == from;
            let all: f64 =
                self.flows.iter().zip(&rates).filter(|it| of_it(it.0)).map(|it| it.1.0).sum();
            let most = self.vnics[from].bandwidth.bits_per_second() as f64;
            for (flow, (rate, waits)) in self.flows.iter_mut().zip(&rates).filter(|it| of_it(it.0))
            {
                let bits = rate * (most / all.max(most)) / 1000.0;
                flow.sent += bits;
                flow.queued += bits;
                flow.throttled += u32::from(*waits);
            }
        }
        for to in 0..self.vnics.len() {
            let queued: f64 =
                self.flows.iter().filter(|flow| flow.to == to).map(|flow| flow.queued).sum();
            let most = self.vnics[to].bandwidth.bits_per_second() as f64 / 1000.0;
            let share = (most / queued.max(1.0)).min(1.0);
            for flow in self.flows.iter_mut().filter(|flow| flow.to == to) {
                let bits = flow.queued * share;
                flow.queued -= bits;
                flow.arrived += bits;
                self.received[to] += bits;
            }
        }
    }

    /// Runs the model for `ms` milliseconds, and returns the arrived rate of each flow in Mbit/s.
    fn measure(&mut self, ms: u64) -> Vec<f64> {
        let before: Vec<f64> = self.flows.iter().map(|flow| flow.arrived).collect();
        self.run(ms);
        let rate = |(flow, before): (&Flow, f64)| (flow.arrived - before) / ms as f64 / 1000.0;
        self.flows.iter().zip(before).map(rate).collect()
    }

    #[track_caller]
    fn expect(&mut self, ms: u64, expected: &[f64]) {
        let found = self.measure(ms);
        let is_near =
            |(found, expected): (&f64, &f64)| (found - expected).abs() <= 0.05 * expected + 0.05;
        assert!(found.iter().zip(expected).all(is_near), "{found:?}, not {expected:?}");
    }
}

/// Two flows to VNIC 0.
fn two(bandwidths: &[u64; 3], first: f64, second: f64) -> World {
    World::new(bandwidths, &[(1, 0, first), (2, 0, second)])
}

#[test]
fn receiver_shares_are_proportional_to_sender_bandwidths_after_100_ms() {
    for (bandwidths, expected) in [
        ([10, 10, 10], [5.0, 5.0]),
        ([10, 8, 10], [4.444, 5.556]),
        ([10, 8, 2], [8.0, 2.0]),
        ([2, 10, 10], [1.0, 1.0]),
        ([100, 10, 90], [10.0, 90.0]),
        ([10, 100, 1], [9.9, 0.099]),
    ] {
        let mut world = two(&bandwidths, ALL, ALL);
        world.run(100);
        world.expect(1_000, &expected);
    }
}

#[test]
fn a_single_sender_gets_the_whole_bandwidth_of_the_receiver() {
    let mut world = two(&[2, 10, 10], ALL, 0.0);
    world.run(100);
    world.expect(500, &[2.0, 0.0]);
    let mut world = two(&[10, 10, 10], ALL, 0.0);
    world.expect(500, &[10.0, 0.0]);
    assert_eq!(world.ceiling(&world.flows[0]), 10e6, "nobody is throttled for nothing");
    assert!(!world.agents[0].control.receiver(world.vnics[0].mac).unwrap().is_congested());
}

#[test]
fn bandwidth_unused_by_a_sender_is_given_to_another_sender() {
    let mut world = two(&[10, 10, 10], ALL, 1.0 * MBIT as f64);
    world.run(200);
    let rates = world.measure(500);
    assert!(rates[0] > 8.4 && (rates[1] - 1.0).abs() < 0.05, "{rates:?}");
    world.flows[1].wants = 0.0;
    // The VNIC repeats its last report for 200 ms, and congestion lasts as long.
    world.run(300);
    world.expect(500, &[10.0, 0.0]);
    world.flows[1].wants = ALL;
    world.run(100);
    world.expect(500, &[5.0, 5.0]);
}

#[test]
fn a_burst_leaves_another_sender_its_share_after_100_ms() {
    let mut world = two(&[10, 10, 10], ALL, 0.0);
    world.run(1_000);
    world.flows[1].wants = 50e6;
    world.run(100);
    for _ in 0..10 {
        let rates = world.measure(100);
        assert!(rates[0] >= 4.75, "{rates:?}");
    }
}

#[test]
fn a_sender_has_its_rate_after_repeated_bursts_of_another_sender() {
    let mut world = two(&[10, 8, 2], ALL, 0.0);
    for _ in 0..20 {
        world.flows[1].wants = ALL;
        world.run(70);
        world.flows[1].wants = 0.0;
        world.run(130);
    }
    let rates = world.measure(1_000);
    assert!(rates[0] > 7.6, "{rates:?}");
}

#[test]
fn a_sender_with_a_slow_second_receiver_leaves_bandwidth_to_another_sender() {
    // VNIC 1 sends to VNICs 0 and 3; VNIC 3 receives little.
    let mut world = World::new(&[10, 10, 10, 2], &[(1, 0, 3e6), (2, 0, ALL), (1, 3, ALL)]);
    world.run(300);
    let rates = world.measure(1_000);
    assert!(
        (rates[0] - 3.0).abs() < 0.1 && rates[1] > 6.2 && (rates[2] - 2.0).abs() < 0.1,
        "{rates:?}"
    );
}

/// Found by `steady_rates_match_the_hose_model`: the room to grow was a share of the sender's bandwidth, without an
/// upper bound.
#[test]
fn a_fast_sender_with_little_traffic_leaves_the_rest_to_another_sender() {
    let mut world = two(&[5, 28, 4], 1.378e6, ALL);
    world.run(500);
    let rates = world.measure(1_000);
    assert!((rates[0] - 1.378).abs() < 0.05 && rates[1] > 3.4, "{rates:?}");
}

#[test]
fn no_sender_stays_throttled_after_an_agent_disappears() {
    // The receiver's agent disappears.
    let mut world = two(&[10, 10, 10], ALL, ALL);
    world.run(500);
    assert!(world.ceiling(&world.flows[0]) < 6e6);
    world.agents[0].alive = false;
    world.run(120);
    assert_eq!(world.ceiling(&world.flows[0]), 10e6);
    // The agent returns without any state.
    world.agents[0].control = Control::new(AgentId(0), &world.vnics, None);
    world.agents[0].alive = true;
    world.run(150);
    world.expect(500, &[5.0, 5.0]);
    // A sender's agent disappears, with the VNIC that the agent shapes.
    world.agents[2].alive = false;
    world.flows[1].wants = 0.0;
    world.run(300);
    world.expect(500, &[10.0, 0.0]);
}

#[test]
fn shares_recover_within_300_ms_after_a_clock_jump() {
    const DAY: i64 = 86_400_000;
    for (agent, jump) in [(0, DAY), (0, -900_000), (1, DAY), (1, -900_000), (1, -5), (0, -50)] {
        let mut world = two(&[10, 10, 10], ALL, ALL);
        world.run(500);
        world.agents[agent].clock += jump;
        world.run(300);
        world.expect(500, &[5.0, 5.0]);
        // After the traffic ends, no sender stays limited.
        world.agents[0].alive = false;
        world.run(150);
        assert_eq!(world.ceiling(&world.flows[0]), 10e6, "{agent} {jump}");
    }
}

/// VNIC 2's agent sends the result of `report` every millisecond, for two seconds. Returns the flows' mean rates in the
/// last second.
fn with_liar(report: impl Fn(u64) -> (u64, Bandwidth)) -> (World, Vec<f64>) {
    let mut world = two(&[10, 10, 10], ALL, 0.0);
    world.agents[2].alive = false;
    let mut rates = vec![0.0; 2];
    for ms in 0..2_000 {
        let (bytes, wish) = report(ms);
        let report = Report { from: world.vnics[2].mac, to: world.vnics[0].mac, bytes, wish };
        world.waiting.push((0, AgentId(2), Message::Reports(vec![report])));
        let now = world.measure(1);
        if ms >= 1_000 {
            rates.iter_mut().zip(now).for_each(|(sum, rate)| *sum += rate / 1000.0);
        }
    }
    (world, rates)
}

#[test]
fn false_reports_do_not_reduce_the_share_of_another_sender() {
    let rate = Bandwidth::from_bits_per_second;
    let lies: [&dyn Fn(u64) -> (u64, Bandwidth); 5] = [
        &|_| (0, Report::EVERYTHING),
        &|_| (0, rate(u64::MAX - 1)),
        &|ms| (ms * 1_000_000_000, rate(0)),
        &|ms| (if ms % 2 == 0 { u64::MAX } else { 0 }, rate(1 << 60)),
        &|ms| (u64::MAX - ms, Report::EVERYTHING),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let (world, rates) = with_liar(lie);
        assert!(rates[0] >= 4.75, "lie {number}: {rates:?}");
        if [1, 2, 3].contains(&number) {
            assert!(world.agents[0].control.oddities().impossible > 100, "lie {number}");
        }
    }
}

#[test]
fn grants_with_extreme_rates_do_not_stop_a_sender() {
    let mut world = two(&[10, 10, 10], ALL, 0.0);
    world.agents[0].alive = false;
    for bits in [0, 1, u64::MAX] {
        for _ in 0..100 {
            let rate = Bandwidth::from_bits_per_second(bits);
            let grant = Grant { from: world.vnics[1].mac, to: world.vnics[0].mac, rate };
            world.waiting.push((1, AgentId(0), Message::Grants(vec![grant])));
            world.run(1);
            // The bound is about half of the share in the hose model when all VNICs send: 10 * 10/20 / 2.
            assert!(world.ceiling(&world.flows[0]) >= 2.4e6);
        }
    }
    assert_eq!(world.agents[1].control.oddities().impossible, 100);
}

#[test]
fn misplaced_messages_are_counted_and_ignored() {
    let mut world = two(&[10, 10, 10], ALL, 0.0);
    let [a, b, c] = [0, 1, 2].map(|place: usize| world.vnics[place].mac);
    let stranger = MacAddress::new([2, 9, 9, 9, 9, 9]).unwrap();
    let rate = Bandwidth::from_bits_per_second(9);
    let now = world.now(0);
    let control = &mut world.agents[0].control;
    let report = |from, to| Message::Reports(vec![Report { from, to, bytes: 1, wish: rate }]);
    let grant = |from, to| Message::Grants(vec![Grant { from, to, rate }]);
    let misplaced = [
        (1, report(c, a)), // the VNIC of another agent
        (1, report(b, c)), // no VNIC of this agent
        (1, report(stranger, a)),
        (1, report(a, a)),
        (1, grant(b, a)), // the sender is no VNIC of this agent
        (1, grant(a, c)), // the receiver is no VNIC of the peer
        (1, grant(a, stranger)),
        (1, Message::Rates(Vec::new())),
        (1, Message::Hello { life: 1 }),
    ];
    for (number, (from, message)) in misplaced.iter().enumerate() {
        control.handle_message(now, AgentId(*from), message);
        assert_eq!(control.oddities().misplaced, number as u64 + 1, "{message:?}");
    }
    assert_eq!(control.poll_ceiling(now), None);
}

#[test]
fn vnics_of_another_tenant_are_not_destinations() {
    let world = two(&[10, 10, 10], 0.0, 0.0);
    let mut vnics = world.vnics;
    vnics[2].tenant = 2;
    let control = Control::new(AgentId(0), &vnics, Some(AgentId(77)));
    assert_eq!(control.destinations(vnics[0].mac), [vnics[1].mac]);
    assert_eq!(control.destinations(vnics[1].mac), [], "not ours");
}

#[test]
fn a_single_agent_sends_datagrams_only_to_the_hypervisor() {
    let mut world = two(&[10, 10, 10], 0.0, 0.0);
    world.vnics.iter_mut().for_each(|vnic| vnic.agent = AgentId(5));
    let mut control = Control::new(AgentId(5), &world.vnics, Some(AgentId(77)));
    let (mut rate_messages, mut pairs) = (0, 0);
    for step in 0..100_u64 {
        let now = Instant(0) + Duration::from_millis(step * STEP_MS);
        for vnic in &world.vnics {
            let counters =
                Counters { bytes: step * 12_500, throttled: step as u32, ..Counters::default() };
            control.handle_counters(now, vnic.mac, &[counters; 2], step * 12_500);
        }
        control.handle_step(now);
        while let Some((to, message)) = control.poll_message() {
            assert_eq!(to, AgentId(77));
            let rates = match message {
                Message::Rates(rates) => rates,
                // All six pairs are in use.
                Message::Reports(reports) => {
                    pairs = reports.len();
                    continue;
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(rates.len(), 3);
            if step > 10 {
                assert_eq!(rates[0].received.bits_per_second(), 10_000_000);
                assert_eq!(rates[0].sent.bits_per_second(), 20_000_000);
            }
            rate_messages += 1;
        }
        while control.poll_ceiling(now).is_some() {}
    }
    assert_eq!((rate_messages, pairs), (10, 6));
    assert!(control.receiver(world.vnics[0].mac).unwrap().is_congested());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// For any number of senders and any wanted rates, the rates to one receiver converge to the allocation of the hose
    /// model.
    #[test]
    fn steady_rates_match_the_hose_model(
        receiver in 5_u64..50,
        senders in proptest::collection::vec((1_u64..50, 0.0_f64..60.0), 1..6),
    ) {
        let bandwidths: Vec<u64> =
            std::iter::once(receiver).chain(senders.iter().map(|sender| sender.0)).collect();
        let flows: Vec<(usize, usize, f64)> =
            senders.iter().enumerate().map(|(at, sender)| (at + 1, 0, sender.1 * 1e6)).collect();
        let wishes: Vec<fabric::hose::Wish> = flows
            .iter()
            .map(|&(from, to, most)| fabric::hose::Wish { from, to, most })
            .collect();
        let table: Vec<Bandwidth> =
            bandwidths.iter().map(|mbit| Bandwidth::from_megabits_per_second(*mbit)).collect();
        let ideal = fabric::hose::shares(&table, &wishes).unwrap();
        let mut world = World::new(&bandwidths, &flows);
        world.run(1_500);
        let found = world.measure(1_000);
        for (found, ideal) in found.iter().zip(&ideal) {
            // The small room to grow of the other senders is not available to a sender that could use more.
            let slack = 0.05 * receiver as f64 + 0.03 * ideal / 1e6;
            prop_assert!((found - ideal / 1e6).abs() <= 2.0 * slack, "{found}, not {}", ideal / 1e6);
        }
    }
}
