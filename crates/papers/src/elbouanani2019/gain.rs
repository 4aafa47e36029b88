//! Simulates the gain of collaboration, after section IV-C of the 2019 paper.

use report::figure::{Figure, HeatMap};
use report::results::Extras;
use report::{Better, Environment, Metric, Point, Results, Table};
use sampling::Solver;
use sampling::simulate::{Outcome, Setting};

/// The default numbers of servers in the simulation: the paper does not state its number.
pub const SERVERS: [usize; 5] = [5, 10, 20, 50, 100];

/// The values that the paper states for its figure 3 (section IV-C), in percent.
const PUBLISHED_MEAN: f64 = 13.0;
const PUBLISHED_LARGEST: f64 = 200.0;

/// The results of the simulation, ready for display.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// One point for each number of servers.
    pub results: Results,
    /// The table of published and simulated values.
    pub table: Table,
    /// The same table, and one heat map per number of servers.
    pub extras: Extras,
}

/// Simulates each number of servers on a grid of `steps` by `steps`.
///
/// # Errors
/// As [`sampling::simulate::simulate`].
pub fn simulate(
    numbers: &[usize],
    steps: usize,
    costs: sampling::Costs,
) -> Result<Simulated, sampling::Error> {
    let mut results = Results::new("sampling simulate", 0, Environment::capture(&[]));
    results.settings.insert("alpha".to_owned(), costs.alpha.into());
    results.settings.insert("beta".to_owned(), costs.beta.into());
    results.settings.insert("steps".to_owned(), steps.into());
    let mut table = Table::new(["servers", "mean gain %", "largest gain %", "feasible cells"]);
    let [mean, largest] = [PUBLISHED_MEAN, PUBLISHED_LARGEST].map(report::table::number);
    table.row(["published (number not stated)".to_owned(), mean, largest, "–".to_owned()]);
    let mut outcomes = Vec::new();
    for &servers in numbers {
        let setting = Setting { costs, ..Setting::published(servers, steps) };
        let outcome = sampling::simulate::simulate(&setting, Solver::Combinatorial)?;
        let percent = |gain: f64| report::table::number(gain * 100.0);
        table.row([
            servers.to_string(),
            percent(outcome.mean_gain),
            percent(outcome.largest_gain),
            format!("{} of {}", outcome.feasible, outcome.cells.len()),
        ]);
        results.points.push(point(servers, &outcome));
        outcomes.push((servers, setting, outcome));
    }
    // All heat maps have the same scale of colours, because the reader compares the maps.
    let most = outcomes.iter().map(|(.., outcome)| outcome.largest_gain).fold(0.0, f64::max);
    let map = |(servers, setting, outcome): &(usize, Setting, Outcome)| {
        figure(*servers, setting, outcome, most)
    };
    let figures = outcomes.iter().map(map).collect();
    let tables = vec![("Gain of collaboration".to_owned(), table.clone())];
    Ok(Simulated { results, table, extras: Extras { figures, tables } })
}

fn point(servers: usize, outcome: &Outcome) -> Point {
    let mut point = Point::new("simulation", [("servers", servers)]);
    for (name, gain) in
        [("mean_gain_percent", outcome.mean_gain), ("largest_gain_percent", outcome.largest_gain)]
    {
        let metric = Metric::new("%", Better::Higher, vec![gain * 100.0]);
        point.metrics.insert(name.to_owned(), metric);
    }
    point
}

fn figure(servers: usize, setting: &Setting, outcome: &Outcome, most: f64) -> Figure {
    let map = HeatMap {
        title: format!("Gain over local sampling, {servers} servers"),
        x_label: "p: dispersion of the load (1: even)".to_owned(),
        y_label: "𝒱 / (nC): mean load of a server".replace('𝒱', "V"),
        value_label: "gain, %".to_owned(),
        columns: setting.dispersions.clone(),
        rows: setting.loads.clone(),
        cells: outcome.cells.iter().map(|cell| cell.gain().map(|gain| gain * 100.0)).collect(),
        range: Some((0.0, most * 100.0)),
    };
    let caption = format!(
        "Blank: some server gets more than it can forward. Mean {:.1} %, largest {:.1} %; the paper states about \
         {PUBLISHED_MEAN} % and {PUBLISHED_LARGEST} % for a number of servers that it does not state.",
        outcome.mean_gain * 100.0,
        outcome.largest_gain * 100.0
    );
    Figure { name: format!("3-{servers}-servers"), drawing: map.draw(), caption }
}
