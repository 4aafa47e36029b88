//! The paper's numerical evaluation (section IV-C, figure 3).
//!
//! A total volume 𝒱 is spread over n servers of equal capacity C in proportion to pⁱ⁻¹. A case is infeasible if a
//! server gets more traffic than the server can forward. The gain is the relative increase of the sampled volume over
//! the volume without collaboration. The paper does not say how many servers it simulated, nor its grid.

use crate::cost::Costs;
use crate::error::{Error, Result};
use crate::problem::{Entry, Problem, Server};
use crate::solve::{Solver, solve};
use serde::Serialize;

/// The parameters of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// n.
    pub servers: usize,
    /// α and β, the same everywhere.
    pub costs: Costs,
    /// The values of p: 0 to 1, 1 is an even load.
    pub dispersions: Vec<f64>,
    /// The values of 𝒱/(nC): 0 to 1.
    pub loads: Vec<f64>,
}

impl Setting {
    /// The paper's parameters, on a grid of `steps` by `steps`, for this number of servers.
    #[must_use]
    pub fn published(servers: usize, steps: usize) -> Setting {
        let grid: Vec<f64> = (1..=steps).map(|step| step as f64 / steps as f64).collect();
        Setting { servers, costs: Costs::PUBLISHED, dispersions: grid.clone(), loads: grid }
    }
}

/// One cell of the heat map.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// p.
    pub dispersion: f64,
    /// 𝒱/(nC).
    pub load: f64,
    /// The sampled share of all traffic without collaboration; `None` where the load is infeasible.
    pub local: Option<f64>,
    /// The sampled share of all traffic with collaboration.
    pub collaborative: Option<f64>,
}

impl Cell {
    /// The relative gain, 0 for none; `None` where the load is infeasible or nothing is sampled without collaboration.
    #[must_use]
    pub fn gain(&self) -> Option<f64> {
        match (self.local, self.collaborative) {
            (Some(local), Some(collaborative)) if local > 0.0 => Some(collaborative / local - 1.0),
            _ => None,
        }
    }
}

/// All cells, and their summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// By dispersion, then by load.
    pub cells: Vec<Cell>,
    /// The mean gain over feasible cells.
    pub mean_gain: f64,
    /// The largest gain.
    pub largest_gain: f64,
    /// How many cells are feasible.
    pub feasible: usize,
}

/// Runs the evaluation with the given solver.
///
/// # Errors
/// [`Error::Input`] for values outside their range; what [`solve`] returns.
pub fn simulate(setting: &Setting, solver: Solver) -> Result<Outcome> {
    if !(2..=1_000_000).contains(&setting.servers) {
        return Err(Error::input(
            "servers",
            format!("{} is not within 2 to 1000000", setting.servers),
        ));
    }
    for (name, values) in [("dispersions", &setting.dispersions), ("loads", &setting.loads)] {
        if let Some(wrong) = values.iter().find(|value| !(**value > 0.0 && **value <= 1.0)) {
            return Err(Error::input(name, format!("{wrong} is not within (0, 1]")));
        }
    }
    let mut cells = Vec::with_capacity(setting.dispersions.len() * setting.loads.len());
    for &dispersion in &setting.dispersions {
        for &load in &setting.loads {
            cells.push(cell(setting, dispersion, load, solver)?);
        }
    }
    let gains: Vec<f64> = cells.iter().filter_map(Cell::gain).collect();
    let feasible = gains.len();
    Ok(Outcome {
        mean_gain: gains.iter().sum::<f64>() / feasible.max(1) as f64,
        largest_gain: gains.iter().copied().fold(0.0, f64::max),
        feasible,
        cells,
    })
}

/// The load of each server, as a share of one server's capacity.
#[must_use]
pub fn geometric_load(servers: usize, dispersion: f64, load: f64) -> Vec<f64> {
    let shares: Vec<f64> =
        std::iter::successors(Some(1.0), |share| Some(share * dispersion)).take(servers).collect();
    let sum: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / sum * load * servers as f64).collect()
}

fn cell(setting: &Setting, dispersion: f64, load: f64, solver: Solver) -> Result<Cell> {
    const CAPACITY: f64 = 1e6;
    let volumes = geometric_load(setting.servers, dispersion, load);
    let empty = Cell { dispersion, load, local: None, collaborative: None };
    // Rounding makes the sum of shares differ slightly from 1; an exactly full server is still feasible.
    if volumes.iter().any(|volume| *volume > 1.0 + 1e-12) {
        return Ok(empty);
    }
    let server = |index: usize| Server::new(format!("s{}", index + 1), CAPACITY, setting.costs);
    let servers = (0..setting.servers).map(server).collect();
    let entry = |(server, volume): (usize, &f64)| Entry {
        from: server,
        to: server,
        tenant: None,
        volume: volume.min(1.0) * CAPACITY,
    };
    let traffic: Vec<Entry> = volumes.iter().enumerate().map(entry).collect();
    let problem = Problem::new(servers, Vec::new(), &traffic, Vec::new())?;
    let share = |solver| Ok(solve(&problem, solver)?.sampled() / problem.total());
    Ok(Cell { local: Some(share(Solver::Local)?), collaborative: Some(share(solver)?), ..empty })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulated_gain_has_the_shape_of_the_paper() {
        let outcome = simulate(&Setting::published(10, 20), Solver::Combinatorial).unwrap();
        // There is no gain if all traffic can be sampled locally, and no gain with an even load.
        for cell in &outcome.cells {
            let gain = cell.gain();
            if cell.load <= 0.1 && cell.dispersion > 0.9 || cell.dispersion == 1.0 {
                assert!(gain.is_none_or(|gain| gain.abs() < 1e-9), "{cell:?}");
            }
            // A server that only mirrors gets α/β times as many packets sampled as a server that only samples locally.
            assert!(gain.is_none_or(|gain| gain < 1.54 / 0.46 - 1.0), "{cell:?}");
        }
        assert!(outcome.feasible > 50 && outcome.feasible < 400);
        assert!(outcome.largest_gain > 0.5 && outcome.mean_gain > 0.03, "{outcome:?}");
    }

    #[test]
    fn loads_have_the_given_sum_and_decrease_geometrically() {
        let loads = geometric_load(4, 0.5, 0.3);
        assert!((loads.iter().sum::<f64>() - 4.0 * 0.3).abs() < 1e-12);
        assert!(loads.windows(2).all(|pair| (pair[1] / pair[0] - 0.5).abs() < 1e-12));
    }

    #[test]
    fn all_solvers_agree() {
        let setting = Setting::published(6, 6);
        let [a, b, c] = [Solver::Linear, Solver::Reduced, Solver::Combinatorial]
            .map(|solver| simulate(&setting, solver).unwrap());
        for (a, (b, c)) in a.cells.iter().zip(b.cells.iter().zip(&c.cells)) {
            let close = |x: Option<f64>, y: Option<f64>| match (x, y) {
                (Some(x), Some(y)) => (x - y).abs() <= 1e-9,
                (x, y) => x == y,
            };
            assert!(close(a.collaborative, c.collaborative), "{a:?} {c:?}");
            assert!(close(b.collaborative, c.collaborative), "{b:?} {c:?}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        let mut setting = Setting::published(6, 2);
        setting.loads.push(1.5);
        assert!(simulate(&setting, Solver::Combinatorial).is_err());
        assert!(simulate(&Setting::published(1, 2), Solver::Combinatorial).is_err());
    }
}
