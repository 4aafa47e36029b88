//! The loop: observes servers, plans, enacts plans, and stops sampling on servers without headroom.

use super::capacity::ActiveSearch;
use super::enact::{Enactment, Epoch, Outcome, Step};
use super::learn::{CostModel, Estimate, Work};
use super::words::{
    Assignment, Estimator, Event, Import, Member, Observation, Order, Sampled, Settings, Share,
    Traffic,
};
use crate::cost::Costs;
use crate::error::Error;
use crate::plan::{Flow, Plan};
use crate::problem::{Entry, Problem, Server, Tenant};
use crate::solve::{Solver, solve};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

struct State {
    member: Member,
    learnt: CostModel,
    is_there: bool,
    traffic: Option<Vec<Traffic>>,
    held_until: Option<Duration>,
    /// Whether a plan was being enacted since the server's last report. Enacting also takes CPU time, which is not a
    /// cost of samples.
    is_disturbed: bool,
}

impl State {
    /// The costs that plans use.
    fn costs(&self) -> Costs {
        if self.member.is_learning { self.learnt.in_use() } else { self.member.costs }
    }
}

struct Force {
    epoch: Epoch,
    generation: u8,
    flows: Vec<Flow>,
    own: Vec<f64>,
    load: Vec<f64>,
}

/// The loop.
pub struct Conduct {
    settings: Settings,
    states: Vec<State>,
    tenants: Vec<Tenant>,
    enactment: Option<(Enactment, Force)>,
    force: Option<Force>,
    /// A part of the plan in force has been removed since.
    is_damaged: bool,
    epoch: Epoch,
    last: Option<Duration>,
    wanted: bool,
    reported: Option<String>,
    orders: VecDeque<(usize, Order)>,
    events: VecDeque<Event>,
}

/// Rates with a smaller difference count as equal.
const SAME: f64 = 0.005;
/// Rates below this are rounding.
const LEAST: f64 = 1e-6;

impl Conduct {
    /// A loop over these servers; no server samples yet.
    #[must_use]
    pub fn new(settings: Settings, members: Vec<Member>, tenants: Vec<Tenant>) -> Conduct {
        let state = |member: Member| {
            let learnt = CostModel::new(member.costs);
            let (traffic, held_until) = (None, None);
            State { member, learnt, is_there: true, traffic, held_until, is_disturbed: false }
        };
        Conduct {
            settings,
            states: members.into_iter().map(state).collect(),
            tenants,
            enactment: None,
            force: None,
            is_damaged: false,
            epoch: 0,
            last: None,
            wanted: false,
            reported: None,
            orders: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The next order, to be sent at once.
    pub fn poll_order(&mut self) -> Option<(usize, Order)> {
        self.orders.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The flows that are in force, and their plan's number.
    #[must_use]
    pub fn in_force(&self) -> Option<(Epoch, &[Flow])> {
        self.force.as_ref().map(|force| (force.epoch, force.flows.as_slice()))
    }

    /// Whether a plan is being enacted.
    #[must_use]
    pub fn is_enacting(&self) -> bool {
        self.enactment.is_some()
    }

    /// The estimated capacity of a server, in the model's unit.
    #[must_use]
    pub fn capacity(&self, server: usize) -> Option<f64> {
        let state = self.states.get(server)?;
        match state.member.estimator {
            Estimator::Fixed(capacity) => Some(capacity),
            Estimator::Cpu(model) => {
                // If the costs are learnt, the capacity is learnt together with the costs.
                let fill = self.settings.fill;
                let learnt = state.learnt.capacity(fill).filter(|_| state.member.is_learning);
                learnt.or_else(|| model.capacity(fill))
            }
            Estimator::Active { found, .. } => found,
            Estimator::Passive(search) => search.capacity(),
        }
    }

    /// A server's α and β that plans use.
    #[must_use]
    pub fn costs(&self, server: usize) -> Option<Costs> {
        self.states.get(server).map(State::costs)
    }

    /// The estimates of a server's α and β, if they are learnt and there is data.
    #[must_use]
    pub fn estimated_costs(&self, server: usize) -> Option<[Estimate; 2]> {
        let state = self.states.get(server).filter(|state| state.member.is_learning)?;
        state.learnt.estimates()
    }

    /// The current load of a server: forwarding, and the costs of the plan in force.
    #[must_use]
    pub fn load(&self, server: usize) -> f64 {
        let (own, load) = self.volumes();
        let forwarded = load.get(server).copied().unwrap_or(0.0);
        let Some(costs) = self.costs(server) else { return forwarded };
        let flows = self.force.as_ref().map_or(&[][..], |force| &force.flows);
        let cost = |flow: &Flow| {
            let volume = flow.rate * self.volume_of(flow, &own);
            match (flow.origin == server, flow.processor == server) {
                (true, true) => costs.alpha * volume,
                (true, false) => costs.beta * volume,
                (false, true) => (costs.alpha + costs.beta) * volume,
                (false, false) => 0.0,
            }
        };
        forwarded + flows.iter().map(cost).sum::<f64>()
    }

    /// A server reported.
    pub fn handle_observation(&mut self, now: Duration, server: usize, observed: Observation) {
        let Observation { traffic, busy, sampled, latency } = observed;
        match self.states.get_mut(server) {
            Some(state) if state.is_there => state.traffic = Some(traffic),
            _ => return,
        }
        let load = self.load(server);
        if let Some(state) = self.states.get_mut(server) {
            match (&mut state.member.estimator, busy, latency) {
                (Estimator::Cpu(model), Some(busy), _) => model.handle(load, busy),
                (Estimator::Passive(search), _, Some(latency)) => search.handle(load, latency),
                _ => {}
            }
        }
        if let (Some(busy), Some(sampled)) = (busy, sampled) {
            self.learn(server, sampled, busy);
        }
        self.test(now);
        self.plan_if_due(now);
    }

    fn learn(&mut self, server: usize, sampled: Sampled, busy: f64) {
        if self.states.iter().any(|state| state.is_there && state.traffic.is_none()) {
            // The traffic that other servers send to this server is not known yet.
            return;
        }
        let forwarded = self.volumes().1.get(server).copied().unwrap_or(0.0);
        let Some(state) = self.states.get_mut(server).filter(|one| one.member.is_learning) else {
            return;
        };
        let is_disturbed = std::mem::replace(&mut state.is_disturbed, self.enactment.is_some());
        let Sampled { local, mirrored, imported } = sampled;
        let before = state.costs();
        let work = Work { forwarded, local, mirrored, imported, is_disturbed };
        if !state.learnt.handle(work, busy) {
            return;
        }
        let now = state.costs();
        self.events.push_back(Event::Costs { server, before, now });
        // Lower costs can wait for the next plan; higher costs cannot wait.
        self.wanted |= now.alpha > before.alpha || now.beta > before.beta;
    }

    /// The result of an [`Order::Test`]: the share that arrived.
    pub fn handle_tested(&mut self, now: Duration, server: usize, delivered: f64) {
        let load = self.load(server);
        let most = 1e7;
        let Some(state) = self.states.get_mut(server) else { return };
        if let Estimator::Active { last, found, search } = &mut state.member.estimator
            && let Some(under_way) = search
        {
            under_way.handle(delivered, most);
            match under_way.poll_rate() {
                Some(rate) => self.orders.push_back((server, Order::Test(rate))),
                None => {
                    (*last, *found) = (Some(now), Some(load + under_way.carried()));
                    *search = None;
                }
            }
        }
        self.test(now);
        self.plan_if_due(now);
    }

    /// A server has done a step, or has failed to.
    pub fn handle_answer(
        &mut self,
        now: Duration,
        server: usize,
        step: Step,
        result: Result<(), String>,
    ) {
        if let Some((enactment, _)) = &mut self.enactment {
            enactment.handle_answer(now, server, step, result);
        }
        self.go_on(now);
    }

    /// A server has vanished. The other servers stop mirroring to it at once.
    pub fn handle_gone(&mut self, now: Duration, server: usize, why: &str) {
        match self.states.get_mut(server) {
            Some(state) if state.is_there => (state.is_there, state.traffic) = (false, None),
            _ => return,
        }
        self.events.push_back(Event::Gone { server, why: why.to_owned() });
        self.cut_off(server);
        if let Some((enactment, _)) = &mut self.enactment {
            enactment.handle_gone(now, server);
        }
        self.wanted = true;
        self.go_on(now);
    }

    /// A server has no headroom left and has stopped sampling. The other servers stop mirroring to it at once.
    pub fn handle_headroom_gone(&mut self, now: Duration, server: usize) {
        let hold = now + self.settings.hold;
        match self.states.get_mut(server) {
            Some(state) if state.is_there => state.held_until = Some(hold),
            _ => return,
        }
        self.events.push_back(Event::Cut(server));
        self.cut_off(server);
        if let Some((enactment, _)) = &mut self.enactment {
            enactment.handle_fault(now, server, "its headroom vanished".to_owned());
        }
        self.wanted = true;
        self.go_on(now);
    }

    /// When [`Conduct::handle_timeout`] is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Duration> {
        let step = self.enactment.as_ref().and_then(|(enactment, _)| enactment.deadline());
        let plan = self.last.map(|last| last + self.settings.interval);
        step.into_iter().chain(plan).min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Duration) {
        let late = self.enactment.as_mut().map(|(enactment, _)| enactment.handle_timeout(now));
        for server in late.into_iter().flatten() {
            self.handle_gone(now, server, "it did not answer in time");
        }
        self.test(now);
        self.plan_if_due(now);
    }

    fn cut_off(&mut self, server: usize) {
        self.is_damaged = true;
        let others = self.states.iter().enumerate();
        let others = others.filter(|(index, state)| *index != server && state.is_there);
        self.orders.extend(others.map(|(index, _)| (index, Order::CutOff(server))));
    }

    /// Collects the transaction's orders and its outcome.
    fn go_on(&mut self, now: Duration) {
        let Some((enactment, force)) = &mut self.enactment else {
            self.plan_if_due(now);
            return;
        };
        while let Some((server, step)) = enactment.poll_order() {
            let order = match step {
                Step::Prepare(_) => Order::Prepare(assignment(force, server)),
                other => Order::Step(other),
            };
            self.orders.push_back((server, order));
        }
        let Some(outcome) = enactment.outcome() else { return };
        let epoch = enactment.epoch();
        if let Some((_, force)) = self.enactment.take()
            && outcome == Outcome::Enacted
        {
            // If a server was cut off while the last servers retired the previous plan, a part of this plan is missing.
            let all_there =
                self.states.iter().all(|state| state.is_there && state.held_until.is_none());
            self.is_damaged &= !all_there;
            self.force = Some(force);
        }
        self.events.push_back(match outcome {
            Outcome::Enacted => Event::Enacted(epoch),
            Outcome::RolledBack { server, why } => {
                self.wanted = true;
                Event::RolledBack { epoch, server, why }
            }
        });
        self.plan_if_due(now);
    }

    /// Only one series of tests at a time, because two series would disturb each other.
    fn test(&mut self, now: Duration) {
        let is_testing = |state: &State| {
            state.is_there
                && matches!(state.member.estimator, Estimator::Active { search: Some(_), .. })
        };
        if self.enactment.is_some() || self.states.iter().any(is_testing) {
            return;
        }
        let interval = self.settings.test_interval;
        for (index, state) in self.states.iter_mut().enumerate().filter(|(_, one)| one.is_there) {
            let is_known = state.traffic.is_some();
            if let Estimator::Active { last, search, .. } = &mut state.member.estimator
                && is_known
                && last.is_none_or(|last| now >= last + interval)
            {
                let first = ActiveSearch::new(1000.0);
                self.orders.extend(first.poll_rate().map(|rate| (index, Order::Test(rate))));
                *search = Some(first);
                return;
            }
        }
    }

    fn plan_if_due(&mut self, now: Duration) {
        let since = self.last.map(|last| now.saturating_sub(last));
        let is_soon = since.is_some_and(|since| since < self.settings.least);
        if self.enactment.is_some() || is_soon {
            return;
        }
        let is_time = since.is_none_or(|since| since >= self.settings.interval);
        if is_time || self.wanted || self.has_changed() {
            self.plan(now);
        }
    }

    fn has_changed(&self) -> bool {
        let Some(force) = &self.force else { return false };
        let (own, load) = self.volumes();
        let differs = |(new, old): (&f64, &f64)| {
            // A difference of a few packets per second is no change.
            (new - old).abs() > self.settings.change * old.max(*new) + 10.0
        };
        own.iter().zip(&force.own).chain(load.iter().zip(&force.load)).any(differs)
    }

    /// For each server: its guests' traffic, and the packets that it forwards.
    fn volumes(&self) -> (Vec<f64>, Vec<f64>) {
        let mut own = vec![0.0; self.states.len()];
        let mut load = own.clone();
        for (from, state) in self.states.iter().enumerate() {
            for one in state.traffic.iter().flatten() {
                if let (Some(own), Some(load)) = (own.get_mut(from), load.get_mut(from)) {
                    (*own, *load) = (*own + one.volume, *load + one.volume);
                }
                if let Some(load) = one.to.filter(|to| *to != from).and_then(|to| load.get_mut(to))
                {
                    *load += one.volume;
                }
            }
        }
        (own, load)
    }

    fn volume_of(&self, flow: &Flow, own: &[f64]) -> f64 {
        if flow.tenant.is_none() {
            return own.get(flow.origin).copied().unwrap_or(0.0);
        }
        let traffic = self.states.get(flow.origin).and_then(|state| state.traffic.as_ref());
        let its = traffic.into_iter().flatten().filter(|one| one.tenant == flow.tenant);
        its.map(|one| one.volume).sum()
    }

    fn plan(&mut self, now: Duration) {
        // The loop waits for servers that have not reported yet.
        let there: Vec<usize> = (0..self.states.len())
            .filter(|at| self.states.get(*at).is_some_and(|one| one.is_there))
            .collect();
        let is_known = |at: &usize| {
            self.states.get(*at).is_some_and(|one| one.traffic.is_some())
                && self.capacity(*at).is_some()
        };
        if there.is_empty() || !there.iter().all(is_known) {
            return;
        }
        for state in &mut self.states {
            if state.held_until.is_some_and(|until| now >= until) {
                state.held_until = None;
            }
        }
        (self.last, self.wanted) = (Some(now), false);
        let (own, load) = self.volumes();
        match self.best(&there, &load) {
            Ok((plan, problem)) => {
                let flows = plan.flows.iter().filter_map(|flow| {
                    let at = |index: usize| there.get(index).copied();
                    Some(Flow { origin: at(flow.origin)?, processor: at(flow.processor)?, ..*flow })
                });
                let flows: Vec<Flow> = flows.filter(|flow| flow.rate > LEAST).collect();
                if !self.is_damaged
                    && self.force.as_ref().is_some_and(|old| same(&old.flows, &flows))
                {
                    if let Some(old) = &mut self.force {
                        (old.own, old.load) = (own, load);
                    }
                    return;
                }
                self.enact(now, &there, flows, (own, load), &plan, &problem);
            }
            Err(error) => self.report(&error),
        }
    }

    fn report(&mut self, error: &Error) {
        let text = error.to_string();
        if self.reported.as_ref() != Some(&text) {
            self.reported = Some(text.clone());
            self.events.push_back(Event::NoPlan(text));
        }
    }

    fn enact(
        &mut self,
        now: Duration,
        there: &[usize],
        flows: Vec<Flow>,
        (own, load): (Vec<f64>, Vec<f64>),
        plan: &Plan,
        problem: &Problem,
    ) {
        self.epoch += 1;
        let generation = self.force.as_ref().map_or(0, |old| 1 - old.generation.min(1));
        let force = Force { epoch: self.epoch, generation, flows, own, load };
        let patience = self.settings.patience;
        let enactment = Enactment::start(now, self.epoch, there.iter().copied(), patience);
        let headroom = problem.headroom().zip(problem.servers()).zip(problem.own());
        let alone = headroom.map(|((left, server), own)| own.min(left / server.costs.alpha)).sum();
        self.events.push_back(Event::Planned {
            epoch: self.epoch,
            sampled: plan.sampled(),
            total: problem.total(),
            alone,
        });
        self.enactment = Some((enactment, force));
        self.states.iter_mut().for_each(|state| state.is_disturbed = true);
        self.go_on(now);
    }

    /// The best plan for the present servers, which get new numbers for it.
    fn best(&mut self, there: &[usize], load: &[f64]) -> Result<(Plan, Problem), Error> {
        let place = |server: usize| there.iter().position(|one| *one == server);
        let mut servers = Vec::new();
        let mut traffic = Vec::new();
        for (from, &index) in there.iter().enumerate() {
            let Some(state) = self.states.get(index) else { continue };
            // A server must carry the packets that it forwards, whatever its estimated capacity is. Such a server then
            // samples nothing.
            let forwards = load.get(index).copied().unwrap_or(0.0) * (1.0 + 1e-9);
            let capacity = self.capacity(index).filter(|_| state.held_until.is_none());
            let Member { name, minimum, .. } = &state.member;
            let capacity = capacity.unwrap_or(0.0).max(forwards);
            let mut server = Server::new(name, capacity, state.costs());
            server.minimum = *minimum;
            servers.push(server);
            for one in state.traffic.iter().flatten() {
                let to = one.to.and_then(place).unwrap_or(from);
                traffic.push(Entry { from, to, tenant: one.tenant, volume: one.volume });
            }
        }
        let problem = Problem::new(servers.clone(), self.tenants.clone(), &traffic, Vec::new())?;
        let links =
            if self.settings.is_collaborative { Vec::new() } else { no_links(servers.len()) };
        let problem_for =
            |servers, tenants| Problem::new(servers, tenants, &traffic, links.clone());
        let bound = problem_for(servers.clone(), self.tenants.clone())?;
        match solve(&bound, Solver::best_for(&bound)) {
            Ok(plan) => {
                self.reported = None;
                Ok((plan, problem))
            }
            Err(error @ Error::Unreachable(_)) => {
                // If the minimum rates cannot be met, a plan without minimum rates is better than no plan.
                self.report(&error);
                let free = |server: Server| Server { minimum: 0.0, ..server };
                let servers = servers.into_iter().map(free).collect();
                let tenants = self.tenants.iter().cloned();
                let tenants = tenants.map(|one| Tenant { minimum: 0.0, ..one }).collect();
                let bound = problem_for(servers, tenants)?;
                Ok((solve(&bound, Solver::best_for(&bound))?, problem))
            }
            Err(error) => Err(error),
        }
    }
}

fn no_links(servers: usize) -> Vec<crate::problem::LinkLimit> {
    let pairs = (0..servers).flat_map(|from| (0..servers).map(move |to| (from, to)));
    let apart = pairs.filter(|(from, to)| from != to);
    apart.map(|(from, to)| crate::problem::LinkLimit { from, to, capacity: 0.0 }).collect()
}

fn same(old: &[Flow], new: &[Flow]) -> bool {
    let rates = |flows: &[Flow]| -> BTreeMap<(usize, usize, Option<usize>), f64> {
        flows.iter().map(|one| ((one.origin, one.processor, one.tenant), one.rate)).collect()
    };
    let (old, new) = (rates(old), rates(new));
    let near = |key: &(usize, usize, Option<usize>)| {
        let rate = |of: &BTreeMap<_, f64>| of.get(key).copied().unwrap_or(0.0);
        (rate(&old) - rate(&new)).abs() < SAME
    };
    old.keys().chain(new.keys()).all(near)
}

/// The part of the plan that one server needs.
fn assignment(force: &Force, server: usize) -> Assignment {
    let mut all: BTreeMap<(usize, Option<usize>), f64> = BTreeMap::new();
    for flow in &force.flows {
        *all.entry((flow.origin, flow.tenant)).or_default() += flow.rate;
    }
    let one_in = |flow: &Flow| {
        let rate = all.get(&(flow.origin, flow.tenant)).copied().unwrap_or(0.0);
        1.0 / rate.clamp(1e-9, 1.0)
    };
    let sends = force.flows.iter().filter(|flow| flow.origin == server);
    let share = |flow: &Flow| Share {
        to: flow.processor,
        tenant: flow.tenant,
        rate: flow.rate,
        one_in: one_in(flow),
    };
    let mut receives: Vec<Import> = Vec::new();
    for flow in force.flows.iter().filter(|flow| flow.processor == server) {
        let stands = (flow.tenant, one_in(flow));
        match receives.iter_mut().find(|import| import.from == flow.origin) {
            Some(import) => import.one_in.push(stands),
            None => receives.push(Import { from: flow.origin, one_in: vec![stands] }),
        }
    }
    Assignment {
        epoch: force.epoch,
        generation: force.generation,
        sends: sends.map(share).collect(),
        receives,
    }
}

#[cfg(test)]
#[path = "conduct_tests.rs"]
mod tests;
