//! Tests of the control loop in virtual time, with simulated servers.

use super::*;
use crate::control::capacity::{CpuModel, PassiveSearch};

/// Three servers with a capacity of 1000 each. No server sends traffic to another server.
struct World {
    conduct: Conduct,
    now: Duration,
    orders: Vec<(usize, Order)>,
    events: Vec<Event>,
    silent: Vec<usize>,
}

const ALPHA: f64 = 1.5;
const BETA: f64 = 0.5;

fn member(name: usize, estimator: Estimator) -> Member {
    let costs = Costs { alpha: ALPHA, beta: BETA };
    Member { name: format!("s{name}"), costs, is_learning: false, minimum: 0.0, estimator }
}

fn sends(volume: f64) -> Observation {
    let traffic = vec![Traffic { to: None, tenant: None, volume }];
    Observation { traffic, ..Observation::default() }
}

impl World {
    fn new(settings: Settings) -> World {
        let members = (0..3).map(|at| member(at, Estimator::Fixed(1000.0))).collect();
        World {
            conduct: Conduct::new(settings, members, Vec::new()),
            now: Duration::ZERO,
            orders: Vec::new(),
            events: Vec::new(),
            silent: Vec::new(),
        }
    }

    /// All servers report these volumes. Then all orders are carried out until no order is left.
    fn report(&mut self, volumes: [f64; 3]) {
        for (server, volume) in volumes.into_iter().enumerate() {
            self.conduct.handle_observation(self.now, server, sends(volume));
        }
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((server, order)) = self.conduct.poll_order() {
            let step = match &order {
                Order::Prepare(assignment) => Some(Step::Prepare(assignment.epoch)),
                Order::Step(step) => Some(*step),
                _ => None,
            };
            self.orders.push((server, order));
            if let Some(step) = step.filter(|_| !self.silent.contains(&server)) {
                self.conduct.handle_answer(self.now, server, step, Ok(()));
            }
        }
        while let Some(event) = self.conduct.poll_event() {
            self.events.push(event);
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.conduct.handle_timeout(self.now);
        self.settle();
    }

    fn epoch(&self) -> Epoch {
        self.conduct.in_force().map_or(0, |(epoch, _)| epoch)
    }

    fn flows(&self) -> Vec<(usize, usize)> {
        let flows = self.conduct.in_force().map_or(&[][..], |(_, flows)| flows);
        flows.iter().map(|flow| (flow.origin, flow.processor)).collect()
    }
}

#[test]
fn a_plan_is_enacted_after_reports_of_every_server_and_again_on_change() {
    let mut world = World::new(Settings::default());
    world.conduct.handle_observation(world.now, 0, sends(800.0));
    world.settle();
    assert!(world.orders.is_empty());
    world.report([800.0, 100.0, 100.0]);
    assert_eq!(world.epoch(), 1);
    assert!(world.flows().contains(&(0, 1)), "{:?}", world.flows());
    let Some(Event::Planned { sampled, alone, total, .. }) = world.events.first() else { panic!() };
    // Server 0 has room for 133.3 local samples, or for 200 / 0.5 = 400 mirrored samples.
    assert!((sampled - 600.0).abs() < 1e-6 && (alone - 200.0 - 400.0 / 3.0).abs() < 1e-6);
    assert_eq!(*total, 1000.0);
    // A small change is no reason for a plan. A larger change is a reason, but not sooner than `least`. The end of the
    // interval is a reason if the new plan differs.
    world.report([805.0, 100.0, 100.0]);
    assert_eq!(world.epoch(), 1);
    world.pass(1);
    world.report([500.0, 100.0, 100.0]);
    assert_eq!(world.epoch(), 1);
    world.pass(1);
    assert_eq!(world.epoch(), 2);
    world.pass(20);
    assert_eq!(world.epoch(), 2);
    assert_eq!(world.events.iter().filter(|event| matches!(event, Event::Enacted(_))).count(), 2);
}

#[test]
fn the_scaling_factor_of_samples_is_the_inverse_of_the_total_rate() {
    let mut world = World::new(Settings::default());
    world.report([800.0, 300.0, 300.0]);
    let prepared: Vec<&Assignment> = world
        .orders
        .iter()
        .filter_map(|(_, order)| if let Order::Prepare(one) = order { Some(one) } else { None })
        .collect();
    let rate: f64 = prepared[0].sends.iter().map(|share| share.rate).sum();
    assert!(prepared[0].sends.len() >= 2, "{:?}", prepared[0]);
    for share in &prepared[0].sends {
        assert!((share.one_in * rate - 1.0).abs() < 1e-9);
        let import = prepared[share.to].receives.iter().find(|import| import.from == 0).unwrap();
        assert_eq!(import.one_in, [(None, share.one_in)]);
    }
}

#[test]
fn a_disappeared_server_is_cut_off_before_a_plan_without_the_server() {
    let mut world = World::new(Settings::default());
    world.report([800.0, 100.0, 100.0]);
    world.orders.clear();
    world.pass(3);
    world.conduct.handle_gone(world.now, 1, "killed");
    world.settle();
    assert_eq!(world.orders[0], (0, Order::CutOff(1)));
    assert_eq!(world.orders[1], (2, Order::CutOff(1)));
    assert_eq!(world.epoch(), 2);
    assert!(world.flows().iter().all(|(from, to)| *from != 1 && *to != 1), "{:?}", world.flows());
    assert!(world.flows().contains(&(0, 2)));
    // The late report of the disappeared server is ignored.
    world.report([800.0, 100.0, 100.0]);
    assert_eq!(world.epoch(), 2);
}

#[test]
fn a_server_silent_during_enactment_is_cut_off_and_left_out() {
    let mut world = World::new(Settings::default());
    world.silent = vec![2];
    world.report([800.0, 100.0, 100.0]);
    assert_eq!(world.epoch(), 0);
    world.pass(5);
    assert!(world.orders.contains(&(0, Order::CutOff(2))));
    assert!(world.events.iter().any(|event| matches!(event, Event::Gone { server: 2, .. })));
    assert!(world.events.iter().any(|event| matches!(event, Event::RolledBack { server: 2, .. })));
    assert_eq!(world.flows().into_iter().filter(|(_, to)| *to == 2).count(), 0);
    assert_eq!(world.epoch(), 2, "planned without it");
    assert!(world.flows().contains(&(0, 1)));
}

#[test]
fn a_server_without_headroom_is_cut_off_and_takes_part_again_later() {
    let mut world = World::new(Settings::default());
    world.report([800.0, 100.0, 100.0]);
    world.orders.clear();
    world.pass(3);
    world.conduct.handle_headroom_gone(world.now, 1);
    world.settle();
    assert_eq!(world.orders[..2], [(0, Order::CutOff(1)), (2, Order::CutOff(1))]);
    assert!(world.flows().iter().all(|(from, to)| *from != 1 && *to != 1), "{:?}", world.flows());
    // After a while the server takes part again.
    world.pass(10);
    world.report([800.0, 100.0, 100.0]);
    assert!(world.flows().contains(&(1, 1)), "{:?}", world.flows());
}

#[test]
fn servers_without_collaboration_mirror_no_packets() {
    let mut world = World::new(Settings { is_collaborative: false, ..Settings::default() });
    world.report([800.0, 100.0, 100.0]);
    assert_eq!(world.flows(), [(0, 0), (1, 1), (2, 2)]);
}

#[test]
fn unreachable_minimums_are_reported_once() {
    let members = (0..2).map(|at| Member { minimum: 0.9, ..member(at, Estimator::Fixed(1000.0)) });
    let mut conduct = Conduct::new(Settings::default(), members.collect(), Vec::new());
    for second in [0, 11, 22] {
        for server in 0..2 {
            conduct.handle_observation(Duration::from_secs(second), server, sends(900.0));
        }
    }
    let events: Vec<Event> = std::iter::from_fn(|| conduct.poll_event()).collect();
    let reported = events.iter().filter(|event| matches!(event, Event::NoPlan(_))).count();
    assert_eq!(reported, 1, "{events:?}");
    assert!(events.iter().any(|event| matches!(event, Event::Planned { .. })), "{events:?}");
}

#[test]
fn each_capacity_estimator_receives_its_observations() {
    let active = Estimator::Active { last: None, found: None, search: None };
    let kinds =
        [Estimator::Cpu(CpuModel::default()), active, Estimator::Passive(PassiveSearch::default())];
    let members = kinds.into_iter().enumerate().map(|(at, kind)| member(at, kind)).collect();
    let mut conduct = Conduct::new(Settings::default(), members, Vec::new());
    for server in 0..3 {
        let observed = Observation { busy: Some(0.2), latency: Some(1e-4), ..sends(1000.0) };
        conduct.handle_observation(Duration::ZERO, server, observed);
    }
    // Tests of the second server show that this server can carry 3000 more.
    let mut tests = 0;
    while let Some((server, order)) = conduct.poll_order() {
        if let Order::Test(rate) = order {
            assert_eq!(server, 1);
            conduct.handle_tested(Duration::ZERO, server, if rate <= 3000.0 { 1.0 } else { 0.5 });
            tests += 1;
        }
    }
    assert!(tests > 3);
    let capacity = |server| conduct.capacity(server).unwrap();
    assert!((capacity(0) - 4000.0).abs() < 1e-6, "{}", capacity(0));
    assert!((3800.0..=4000.0).contains(&capacity(1)), "{}", capacity(1));
    assert!((1000.0..1300.0).contains(&capacity(2)), "{}", capacity(2));
}

/// The true values of the servers: idle share, share of the CPU per packet per second, α, β.
const TRUTH: (f64, f64, f64, f64) = (0.2, 5e-5, 1.2, 0.3);

/// A control loop starts with the costs `believed`. The CPU use of its three servers follows [`TRUTH`], and the servers
/// report every second. Returns the CPU use of each server in each second, the number of changes of costs, and the
/// sampled rate at the end.
fn learn(believed: Costs, seconds: u64) -> (Vec<[f64; 3]>, usize, f64) {
    let own = [9000.0, 5000.0, 5000.0];
    let (idle, forward, alpha, beta) = TRUTH;
    let member = |at| Member {
        costs: believed,
        is_learning: true,
        ..member(at, Estimator::Cpu(CpuModel::default()))
    };
    let mut conduct = Conduct::new(Settings::default(), (0..3).map(member).collect(), Vec::new());
    let (mut course, mut changes, mut noise) = (Vec::new(), 0, 1_u64);
    for second in 0..seconds {
        let flows = conduct.in_force().map_or(Vec::new(), |(_, flows)| flows.to_vec());
        let mut busy = [0.0; 3];
        for (server, busy) in busy.iter_mut().enumerate() {
            let sum = |which: &dyn Fn(&Flow) -> bool| -> f64 {
                let its = flows.iter().filter(|flow| which(flow));
                its.map(|flow| flow.rate * own[flow.origin]).sum()
            };
            let sampled = Sampled {
                local: sum(&|one| one.origin == server && one.processor == server),
                mirrored: sum(&|one| one.origin == server && one.processor != server),
                imported: sum(&|one| one.origin != server && one.processor == server),
            };
            let Sampled { local, mirrored, imported } = sampled;
            let cost = alpha * (local + imported) + beta * (mirrored + imported);
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let scatter = ((noise >> 33) as f64 / (1_u64 << 31) as f64 - 0.5) * 0.04;
            *busy = idle + forward * (own[server] + cost);
            let observed = Observation {
                busy: Some((*busy + scatter).min(1.0)),
                sampled: Some(sampled),
                ..sends(own[server])
            };
            conduct.handle_observation(Duration::from_secs(second), server, observed);
        }
        course.push(busy);
        while let Some((server, order)) = conduct.poll_order() {
            let step = match order {
                Order::Prepare(assignment) => Step::Prepare(assignment.epoch),
                Order::Step(step) => step,
                _ => continue,
            };
            conduct.handle_answer(Duration::from_secs(second), server, step, Ok(()));
        }
        changes += std::iter::from_fn(|| conduct.poll_event())
            .filter(|event| matches!(event, Event::Costs { .. }))
            .count();
    }
    let flows = conduct.in_force().map_or(&[][..], |(_, flows)| flows);
    (course, changes, flows.iter().map(|flow| flow.rate * own[flow.origin]).sum())
}

#[test]
fn plans_converge_from_wrong_initial_costs() {
    for (believed, is_wrong) in [
        (Costs { alpha: 6.0, beta: 1.5 }, true),
        (Costs { alpha: 0.24, beta: 0.06 }, true),
        (Costs { alpha: 1.2, beta: 0.3 }, false),
    ] {
        let (course, changes, sampled) = learn(believed, 240);
        let fullest = |of: &[f64; 3]| of.iter().copied().fold(0.0, f64::max);
        let last = fullest(course.last().unwrap());
        // Plans fill servers to 80 %.
        assert!((0.7..0.85).contains(&last), "{believed:?}: {last}");
        let late = course.iter().skip(20).map(fullest).fold(0.0, f64::max);
        assert!(late < 0.87, "{believed:?}: as busy as {late}");
        assert!(!is_wrong || changes > 0, "{believed:?}: {changes} changes");
        // With the true costs 13,500 could be sampled.
        assert!(sampled > 10_000.0, "{believed:?}: {sampled}");
    }
}
