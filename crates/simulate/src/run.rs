//! The simulation itself, step by step.
//!
//! In each step some tenants' jobs end and others begin, and choose paths; when labels are due, all tenants get them at
//! the same moment and do with their flows what they do; then every flow gets its fair rate. In the first part of a run
//! tenants arrive, one after the other in random order; what is measured is the rest.

use crate::choose::{Choice, Moves, View, blind};
use crate::error::Error;
use crate::optimum::{Optimum, optimum};
use crate::random::{Random, mix};
use crate::traffic::{Flow, Tenancy, Traffic};
use crate::world::World;
use fabric::labels::Privacy;
use fabric::share::{Demand, max_min};
use fabric::usage::{self, FlowId, Usage};
use fabric::{Bandwidth, LinkId, Path};

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setting {
    /// How the network is divided.
    pub tenancy: Tenancy,
    /// Steps in which tenants arrive and settle; not measured.
    pub warm_up: u32,
    /// Steps that are measured.
    pub steps: u32,
    /// Every how many steps rates are worked out.
    pub stride: u32,
    /// What random choices are drawn from.
    pub seed: u64,
}

/// One measured step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// Counted from the first measured step.
    pub step: u32,
    /// What all flows are entitled to, in bits per second.
    pub offered: f64,
    /// What they get.
    pub carried: f64,
    /// Jain's index over what each gets of what it is entitled to.
    pub fairness: f64,
    /// The least that a flow gets of what it is entitled to.
    pub least: f64,
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The measured steps.
    pub moments: Vec<Moment>,
    /// How many flows there are.
    pub flows: usize,
    /// How often a flow that was on its way was put on another path, in all measured steps.
    pub moved: u64,
}

impl Outcome {
    /// What was carried at each moment, of the most that could have been.
    pub fn shares<'a>(&'a self, yardstick: &'a [Optimum]) -> impl Iterator<Item = f64> + 'a {
        self.moments.iter().zip(yardstick).map(|(moment, most)| moment.carried / most.bits)
    }
}

/// Simulates one way to choose.
pub fn run(world: &World, setting: &Setting, choice: &Choice) -> Result<Outcome, Error> {
    Simulation::new(world, setting, choice)?.run()
}

/// What could be carried at each measured step of the same setting, whatever the choices; the linear program is solved
/// where it has no more variables than that.
pub fn yardstick(
    world: &World,
    setting: &Setting,
    most_variables: usize,
) -> Result<Vec<Optimum>, Error> {
    let mut traffic = Traffic::new(world, &setting.tenancy, setting.seed)?;
    let mut found: Vec<Optimum> = Vec::new();
    let mut known = false;
    for step in 0..setting.warm_up + setting.steps {
        if step >= setting.warm_up {
            known &= traffic.step()?.is_empty();
        }
        if setting.is_measured(step) {
            match found.last().copied().filter(|_| known) {
                Some(before) => found.push(before),
                None => found.push(optimum(world, traffic.flows(), most_variables)?),
            }
            known = true;
        }
    }
    Ok(found)
}

impl Setting {
    fn is_measured(&self, step: u32) -> bool {
        step >= self.warm_up && (step - self.warm_up).is_multiple_of(self.stride.max(1))
    }
}

struct Simulation<'a> {
    world: &'a World,
    setting: &'a Setting,
    choice: &'a Choice,
    traffic: Traffic,
    /// Draws tenants' choices; apart from what the traffic is drawn from, which is the same for all.
    random: Random,
    /// By flow: its path between switches, and all its links as rows of the capacities' table. Empty before it began.
    paths: Vec<Option<Path>>,
    rows: Vec<Vec<usize>>,
    capacities: Vec<f64>,
    usage: Usage,
    /// The usage that the last labels were made of.
    labelled: Usage,
    privacy: Privacy,
    outcome: Outcome,
}

impl<'a> Simulation<'a> {
    fn new(world: &'a World, setting: &'a Setting, choice: &'a Choice) -> Result<Self, Error> {
        if setting.steps == 0 || setting.stride == 0 {
            return Err(Error::Setting("at least one step is measured"));
        }
        let privacy = match choice {
            Choice::Labels { interval: 0, .. } => {
                return Err(Error::Setting("labels are updated at most once in a step"));
            }
            Choice::Labels { privacy, .. } => privacy.clone(),
            Choice::Random | Choice::EqualCost => Privacy::default(),
        };
        let traffic = Traffic::new(world, &setting.tenancy, setting.seed)?;
        let flows = traffic.flows().len();
        let capacity = |(_, link): (LinkId, &fabric::Link)| link.capacity.bits_per_second() as f64;
        Ok(Simulation {
            random: Random::new(mix(!setting.seed)),
            paths: vec![None; flows],
            rows: vec![Vec::new(); flows],
            // Nothing was ever unplugged, so that links are rows.
            capacities: world.network().links().map(capacity).collect(),
            usage: Usage::default(),
            labelled: Usage::default(),
            outcome: Outcome { flows, ..Outcome::default() },
            world,
            setting,
            choice,
            traffic,
            privacy,
        })
    }

    fn run(mut self) -> Result<Outcome, Error> {
        let warm_up = self.setting.warm_up;
        let mut arriving: Vec<usize> = (0..self.traffic.tenants()).collect();
        self.random.shuffle(&mut arriving);
        // All have arrived after half of the warm-up.
        let per_step = arriving.len().div_ceil((warm_up as usize / 2).max(1));
        for step in 0..warm_up + self.setting.steps {
            let begun = match step < warm_up {
                true => arriving.split_off(arriving.len().saturating_sub(per_step)),
                false => self.traffic.step()?.into_iter().chain(arriving.drain(..)).collect(),
            };
            for tenant in begun {
                self.begin(tenant)?;
            }
            self.update(step)?;
            if self.setting.is_measured(step) {
                self.measure(step - warm_up)?;
            }
        }
        Ok(self.outcome)
    }

    /// A tenant's new flows choose their first paths.
    fn begin(&mut self, tenant: usize) -> Result<(), Error> {
        for place in self.traffic.of(tenant) {
            if self.paths[place].take().is_some() {
                self.usage.remove(FlowId(place as u64))?;
            }
        }
        for place in self.traffic.of(tenant) {
            let flow = self.traffic.flows()[place];
            let path = match self.choice {
                Choice::Random => {
                    let [from, to] =
                        [flow.from, flow.to].map(|server| self.world.servers()[server].switch);
                    let pair = (from.index() as u64) << 32 | to.index() as u64;
                    blind(self.world, &flow, mix(self.setting.seed ^ mix(tenant as u64) ^ pair))
                }
                Choice::EqualCost => blind(self.world, &flow, self.random.bits()),
                Choice::Labels { moves, .. } => self.look(&flow, None, *moves).map(|found| found.0),
            };
            self.put(place, flow, path.ok_or(Error::Unconnected)?)?;
        }
        Ok(())
    }

    /// Labels are sent if they are due, and tenants move their flows.
    fn update(&mut self, step: u32) -> Result<(), Error> {
        let Choice::Labels { interval, moves, .. } = *self.choice else { return Ok(()) };
        if !step.is_multiple_of(interval) {
            return Ok(());
        }
        self.labelled = self.usage.clone();
        let mut order: Vec<usize> = (0..self.paths.len()).collect();
        self.random.shuffle(&mut order);
        for place in order {
            let Some(path) = self.paths[place].clone() else { continue };
            let flow = self.traffic.flows()[place];
            let Some((room, link)) = self.view().narrowest(&flow, &path) else { continue };
            let goes = match moves {
                Moves::Never => false,
                Moves::All => true,
                Moves::Damped { eagerness } => {
                    let excess = flow.nominal.saturating_sub(room) as f64;
                    let chance = excess / (self.capacities[link.index()] + excess);
                    self.random.fraction() < chance * eagerness
                }
            };
            if !goes {
                continue;
            }
            if let Some((better, wider)) = self.look(&flow, Some(&path), moves)
                && wider > room
                && better != path
            {
                self.usage.remove(FlowId(place as u64))?;
                self.put(place, flow, better)?;
                self.outcome.moved += u64::from(step >= self.setting.warm_up);
            }
        }
        Ok(())
    }

    fn look(&mut self, flow: &Flow, current: Option<&Path>, moves: Moves) -> Option<(Path, u64)> {
        let mut random = self.random.clone();
        let draws = (moves != Moves::All).then_some(&mut random);
        let found = self.view().widest(flow, current, draws);
        self.random = random;
        found
    }

    fn view(&self) -> View<'_> {
        View {
            world: self.world,
            labelled: &self.labelled,
            now: &self.usage,
            privacy: &self.privacy,
        }
    }

    fn put(&mut self, place: usize, flow: Flow, path: Path) -> Result<(), Error> {
        let links = self.world.route(flow.from, flow.to, &path);
        self.rows[place] = links.iter().map(|link| link.index()).collect();
        let (tenant, rate) = (flow.tenant_id(), Bandwidth::from_bits_per_second(flow.nominal));
        let tracked = usage::Flow { tenant, rate, links: links.into() };
        self.usage.add(self.world.network(), FlowId(place as u64), tracked)?;
        self.paths[place] = Some(path);
        Ok(())
    }

    /// Every flow gets its fair rate: equal shares of what is short, as TCP's flows take them, and none above what the
    /// shaper at the edge lets through.
    fn measure(&mut self, step: u32) -> Result<(), Error> {
        let flows = self.traffic.flows();
        let wanted: Vec<f64> = flows.iter().map(|flow| flow.nominal as f64).collect();
        let demands: Vec<Demand<'_>> = self
            .rows
            .iter()
            .zip(&wanted)
            .map(|(links, &most)| Demand { links, weight: 1, most })
            .collect();
        let rates = max_min(&self.capacities, &demands)?;
        let met: Vec<f64> = rates
            .iter()
            .zip(&wanted)
            .filter(|(_, wanted)| **wanted > 0.0)
            .map(|(rate, wanted)| rate / wanted)
            .collect();
        self.outcome.moments.push(Moment {
            step,
            offered: wanted.iter().sum(),
            carried: rates.iter().sum(),
            fairness: report::stats::jain(&met).unwrap_or(1.0),
            least: met.iter().copied().fold(1.0, f64::min),
        });
        Ok(())
    }
}
