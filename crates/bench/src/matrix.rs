//! Makes one [`Comparison`] of every requested system × message × rate × number of tenants, for `weir bench run`.
//! Latency against rate, and latency against tenants, are matrices.

use crate::Error;
use crate::arrivals::Arrivals;
use crate::comparison::{Case, Comparison, Options};
use crate::load::{Kind, Load, Stream};
use crate::plan::Setup;
use crate::system::System;
use report::Scalar;
use serde::{Deserialize, Serialize};

/// The spacing of the messages of a given rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// The messages are evenly spaced.
    #[default]
    Constant,
    /// The gaps are distributed exponentially.
    Poisson,
    /// Bursts of this many messages are evenly spaced.
    Burst(u32),
}

impl Shape {
    /// The arrival process with a mean of `rate` messages per second.
    #[must_use]
    pub fn at(self, rate: f64) -> Arrivals {
        match self {
            Self::Constant => Arrivals::Constant { rate },
            Self::Poisson => Arrivals::Poisson { rate },
            Self::Burst(count) => {
                Arrivals::Burst { count, every_us: f64::from(count) * 1e6 / rate }
            }
        }
    }
}

/// The varied parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The systems.
    pub systems: Vec<System>,
    /// The mixes; a mix with a single kind is this message alone.
    pub mixes: Vec<Vec<(Kind, u32)>>,
    /// Messages per second over all tenants; 0 is as many messages as the system reads.
    pub rates: Vec<f64>,
    /// The numbers of tenants. All tenants share the rate.
    pub tenants: Vec<usize>,
    /// The spacing of the messages.
    pub shape: Shape,
    /// The most messages per write; 0: all messages that are due.
    pub batch: usize,
}

impl Matrix {
    /// The comparison, which has no criteria.
    ///
    /// # Errors
    /// [`Error::Setting`] with the name of the missing setting, or of the setting out of range.
    pub fn comparison(&self, options: &Options) -> Result<Comparison, Error> {
        let mut cases = Vec::new();
        for &tenants in &self.tenants {
            for mix in &self.mixes {
                for &rate in &self.rates {
                    for system in &self.systems {
                        cases.push(self.case(system, mix, rate, tenants, options));
                    }
                }
            }
        }
        let first = self.mixes.first().and_then(|mix| mix.first());
        let Some(&(kind, _)) = first.filter(|_| !cases.is_empty()) else {
            return Err(Error::Setting {
                name: "systems, messages, rates or tenants".to_owned(),
                value: "an empty list".to_owned(),
                range: "at least one of each".to_owned(),
            });
        };
        // Errors are reported before the first run, not during the runs.
        cases.iter().try_for_each(Case::check)?;
        Ok(Comparison { tool: "bench".to_owned(), cases, criteria: Box::new(|_| Vec::new()), kind })
    }

    fn case(
        &self,
        system: &System,
        mix: &[(Kind, u32)],
        rate: f64,
        tenants: usize,
        options: &Options,
    ) -> Case {
        let arrivals = if rate == 0.0 {
            Arrivals::Saturate
        } else {
            self.shape.at(rate / tenants.max(1) as f64)
        };
        let stream = |tenant| Stream {
            mix: mix.to_vec(),
            ..Stream::new(tenant, Kind::Echo, arrivals.clone())
        };
        let load = Load {
            cut_ms: options.cut_ms,
            batch: self.batch,
            ..Load::new((0..tenants).map(stream).collect(), options.duration_ms)
        };
        let names: Vec<String> = match mix {
            [(kind, _)] => vec![kind.name().to_owned()],
            several => several.iter().map(|(kind, w)| format!("{}:{w}", kind.name())).collect(),
        };
        let rate: Scalar = if rate == 0.0 { "saturated".into() } else { rate.into() };
        let message = names.join("+");
        let parameters =
            vec![("message", message.into()), ("rate", rate), ("tenants", tenants.into())];
        let switch = options.setup.switch.for_kinds(mix.iter().map(|&(kind, _)| kind));
        Case::new(system, parameters, Setup { tenants, switch, ..options.setup.clone() }, load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn each_combination_of_mix_rate_and_tenants_is_a_case_of_the_matrix() {
        let options = Options::new(System::Direct, PathBuf::new());
        let matrix = Matrix {
            systems: vec![System::Direct],
            mixes: vec![vec![(Kind::PacketIn, 1)], vec![(Kind::Echo, 3), (Kind::Barrier, 1)]],
            rates: vec![0.0, 10_000.0, 40_000.0],
            tenants: vec![1, 20],
            shape: Shape::Burst(10),
            batch: 1,
        };
        let comparison = matrix.comparison(&options).unwrap();
        assert_eq!(comparison.cases.len(), 12);
        let last = &comparison.cases[11];
        assert_eq!(last.load.streams.len(), 20);
        let arrivals = &last.load.streams[0].arrivals;
        assert_eq!(arrivals.mean_rate(1.0), Some(2000.0));
        assert_eq!(last.parameters[0].1, "ECHO:3+BARRIER:1".into());
        assert!(Matrix { rates: vec![], ..matrix.clone() }.comparison(&options).is_err());
        assert!(Matrix { tenants: vec![0], ..matrix.clone() }.comparison(&options).is_err());
        assert!(Matrix { rates: vec![-1.0], ..matrix }.comparison(&options).is_err());
    }
}
