//! Reproduces *Collaborative Traffic Measurement in Virtualized Data Center Networks* (2019): the costs of sampling
//! (figures 2a and 2b), the gain of collaboration ([`gain`], figure 3), and the paper's future work, real servers that
//! collaborate.

mod collaboration;
pub mod gain;

use crate::reproduction::Reproduction;
use gain::{SERVERS, simulate};
use lab::{Interrupt, Interrupted};
use report::results::Extras;
use report::{Environment, Results};
use sampling::Costs;
use sampling_loop::calibrate::Settings;
use std::str::FromStr;

/// The bytes of each sample: the maximum. In the paper, the switch sends complete samples to the program.
pub const HEADER: u32 = agent::ovsdb::LARGEST_HEADER;

/// The experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Elbouanani2019 {
    /// The parts to measure or simulate; an empty list means all parts.
    pub figures: Vec<Figure>,
    /// The settings of the cost measurement.
    pub calibration: Settings,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Part 2: figures 2a and 2b with the table of costs.
    Costs,
    /// Part 3: figure 3, the gain of collaboration.
    Gain,
    /// The paper's future work: real servers.
    Servers,
}

impl FromStr for Figure {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Figure, &'static str> {
        match text {
            "2" => Ok(Figure::Costs),
            "3" => Ok(Figure::Gain),
            "servers" => Ok(Figure::Servers),
            _ => Err("no figure of this paper: must be one of 2, 3, servers"),
        }
    }
}

impl Elbouanani2019 {
    /// Measures and simulates the wanted parts.
    ///
    /// # Errors
    /// The missing features of the labs or mechanisms; [`Interrupted`] if there are no measurements yet.
    pub fn run(&self, interrupt: &Interrupt) -> anyhow::Result<Reproduction> {
        let wants = |figure| self.figures.is_empty() || self.figures.contains(&figure);
        let mut results = Results::new("reproduce elbouanani2019", 0, Environment::capture(&[]));
        let mut extras = Extras::default();
        let mut remarks = String::new();
        let (costs, gain) = (wants(Figure::Costs), wants(Figure::Gain));
        // The servers come first, because a calibration later restricts this process to one CPU.
        let measured = if wants(Figure::Servers) {
            let (repetitions, seconds) = if self.calibration.quick { (1, 8) } else { (5, 15) };
            Some(collaboration::measure(repetitions, seconds, interrupt)?)
        } else {
            None
        };
        let mut partial = measured.as_ref().and_then(collaboration::Collaboration::partial);
        if costs && partial.is_none() {
            match self.calibration.calibrate(interrupt) {
                // The measurement of the servers is complete.
                Err(error) if error.is::<Interrupted>() && measured.is_some() => {
                    partial = Some("interrupted before costs were measured".to_owned());
                }
                calibration => {
                    let calibration = calibration?;
                    let Extras { figures, tables } = calibration.extras();
                    extras.figures.extend(figures);
                    extras.tables.extend(tables);
                    remarks = calibration.remarks();
                    results = Results { tool: results.tool, ..calibration.results };
                }
            }
        }
        partial.inspect(|text| results.mark_partial(text));
        if let Some(measured) = measured {
            results.points.extend(measured.points());
            let heading = "Servers on their own and together".to_owned();
            extras.tables.push((heading, measured.table()));
            remarks += &measured.remarks();
        }
        if gain {
            let simulated = simulate(&SERVERS, 50, Costs::PUBLISHED)?;
            results.points.extend(simulated.results.points);
            let Extras { figures, tables } = simulated.extras;
            extras.figures.extend(figures);
            extras.tables.extend(tables);
        }
        Ok(Reproduction { results, extras, remarks, samples: None })
    }
}
