//! *Collaborative Traffic Measurement in Virtualized Data Center Networks* (2019): what sampling costs (figures 2a and 2b),
//! what collaboration gains ([`gain`], figure 3), and what the paper left as future work, real servers that collaborate.

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

/// Bytes of each sample: as many as there can be. In the paper's switch samples go to the program whole.
pub const HEADER: u32 = agent::ovsdb::LARGEST_HEADER;

/// The experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Elbouanani2019 {
    /// What is measured, simulated or both; all if none is named.
    pub figures: Vec<Figure>,
    /// How costs are measured.
    pub calibration: Settings,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// 2: figures 2a and 2b with the table of costs.
    Costs,
    /// 3: the gain.
    Gain,
    /// What the paper left as future work.
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
    /// Measures and simulates.
    ///
    /// # Errors
    /// What the labs or the mechanisms lack; [`Interrupted`] if nothing was measured by then.
    pub fn run(&self, interrupt: &Interrupt) -> anyhow::Result<Reproduction> {
        let wants = |figure| self.figures.is_empty() || self.figures.contains(&figure);
        let mut results = Results::new("reproduce elbouanani2019", 0, Environment::capture(&[]));
        let mut extras = Extras::default();
        let mut remarks = String::new();
        let (costs, gain) = (wants(Figure::Costs), wants(Figure::Gain));
        // First, since a calibration keeps this process to one CPU from then on.
        let measured = if wants(Figure::Servers) {
            let (repetitions, seconds) = if self.calibration.quick { (1, 8) } else { (5, 15) };
            Some(collaboration::measure(repetitions, seconds, interrupt)?)
        } else {
            None
        };
        let mut partial = measured.as_ref().and_then(collaboration::Collaboration::partial);
        if costs && partial.is_none() {
            match self.calibration.calibrate(interrupt) {
                // What servers were measured to do is there.
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
            results.points.extend(simulated.results.points.iter().cloned());
            let Extras { figures, tables } = simulated.extras();
            extras.figures.extend(figures);
            extras.tables.extend(tables);
        }
        Ok(Reproduction { results, extras, remarks, samples: None })
    }
}
