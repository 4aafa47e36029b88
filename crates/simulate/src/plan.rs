//! What a study compares: every way to choose paths by itself, with labels at several intervals, in several runs.

use crate::choose::{Choice, Moves};
use crate::error::Error;
use crate::run::{Setting, run, yardstick};
use crate::study::{Case, STEP_SECONDS, Study, Way};
use crate::traffic::Tenancy;
use crate::world::World;
use fabric::Bandwidth;
use fabric::labels::Privacy;

/// Steps in which tenants arrive and settle.
const WARM_UP: u32 = 100;
/// Steps between two looks at the rates.
const STRIDE: u32 = 5;

/// What is simulated. All times are in seconds.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How many tenants share the servers.
    pub tenants: u32,
    /// Into how many virtual interfaces a server is divided: each server draws one of these.
    pub divisions: Vec<u64>,
    /// How long a tenant's job lasts on average.
    pub lifetime: f64,
    /// The time that is measured, after the tenants have arrived.
    pub duration: f64,
    /// The times between two updates of all labels.
    pub intervals: Vec<f64>,
    /// Labels are multiples of this.
    pub step: Bandwidth,
    /// Labels are off by up to this much.
    pub noise: Bandwidth,
    /// How many runs there are, each with a seed of its own.
    pub runs: u16,
    /// What random choices are drawn from.
    pub seed: u64,
    /// The linear program for the optimum is solved up to so many variables.
    pub variables: u32,
}

impl Plan {
    /// Simulates all, and adds the outcomes to the study. Before each part, `begins` gets the number of parts that are
    /// done, the number of all parts, and the name of the next part.
    pub fn run(
        &self,
        world: &World,
        study: &mut Study,
        mut begins: impl FnMut(usize, usize, &str),
    ) -> Result<(), Error> {
        let cases = self.cases();
        let (mut done, all) = (0, usize::from(self.runs) * (cases.len() + 1));
        for number in 0..self.runs {
            let mut begin = |what: &str| {
                begins(done, all, &format!("run {} of {}: {what}", number + 1, self.runs));
                done += 1;
            };
            let setting = self.setting(number);
            begin("the optimum");
            study.begin_run(yardstick(world, &setting, self.variables as usize)?);
            for &case in &cases {
                begin(&case.to_string());
                study.add(case, run(world, &setting, &self.choice(case))?);
            }
        }
        study.conclude();
        Ok(())
    }

    fn setting(&self, run: u16) -> Setting {
        Setting {
            tenancy: Tenancy {
                tenants: self.tenants as usize,
                divisions: self.divisions.clone(),
                lifetime: self.lifetime / STEP_SECONDS,
            },
            warm_up: WARM_UP,
            steps: steps(self.duration),
            stride: STRIDE,
            seed: self.seed.wrapping_add(run.into()),
        }
    }

    fn cases(&self) -> Vec<Case> {
        let blind = [Way::Random, Way::EqualCost].map(|way| Case { way, interval: None });
        let ways = [Way::NewFlows, Way::Herding, Way::Damped];
        let guided = ways.into_iter().flat_map(|way| {
            self.intervals.iter().map(move |&interval| Case { way, interval: Some(interval) })
        });
        blind.into_iter().chain(guided).collect()
    }

    fn choice(&self, case: Case) -> Choice {
        let moves = match case.way {
            Way::Random => return Choice::Random,
            Way::EqualCost => return Choice::EqualCost,
            Way::NewFlows => Moves::Never,
            Way::Herding => Moves::All,
            Way::Damped => Moves::DAMPED,
        };
        let interval = steps(case.interval.unwrap_or(STEP_SECONDS));
        Choice::Labels { interval, moves, privacy: self.privacy() }
    }

    fn privacy(&self) -> Privacy {
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.seed.to_be_bytes());
        Privacy { step: self.step, noise: self.noise, seed, ..Privacy::default() }
    }
}

fn steps(seconds: f64) -> u32 {
    // `as` saturates at the highest number.
    ((seconds / STEP_SECONDS).round() as u32).max(1)
}
