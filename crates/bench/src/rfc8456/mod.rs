//! The benchmarks of RFC 8456 for a controller as seen from its switches, each in its own file. The
//! table [`Test::ALL`] lists all benchmarks.
//!
//! Most benchmarks use a `fabric`: an emulated network with links, so that the controller's
//! discovery finds a topology, and with hosts at its two ends. Measurements at the southbound
//! interface come from one thread's `event` log, so that all times are of one clock. The traits of
//! [`helpers`] control the controller without OpenFlow.
//!
//! The module deliberately has no measurement of a message's own latency (`messages` uses the load
//! generator for this), and no knowledge of a particular controller.

mod change_detection;
mod context;
mod discovery_size;
mod discovery_time;
mod event;
mod fabric;
mod failover;
mod gaps;
pub mod helpers;
mod messages;
mod path_rate;
mod path_time;
mod reprovisioning;
mod security;
mod sessions;
mod table_capacity;
mod test;
mod traffic;
mod trouble;

pub(crate) use context::Context;
pub use helpers::Helpers;
pub use test::{Need, Test};
pub use traffic::FRAME_BYTES;

use report::table::number;
use report::{Results, Table};
use std::str::FromStr;

impl Test {
    /// All benchmarks in the order of the RFC, with cbench's benchmarks first.
    pub const ALL: [Self; 16] = [
        messages::LATENCY,
        messages::THROUGHPUT,
        discovery_time::TEST,
        messages::RATE,
        path_time::REACTIVE,
        path_time::PROACTIVE,
        path_rate::REACTIVE,
        path_rate::PROACTIVE,
        change_detection::TEST,
        sessions::TEST,
        discovery_size::TEST,
        table_capacity::TEST,
        security::EXCEPTIONS,
        security::DENIAL_OF_SERVICE,
        failover::TEST,
        reprovisioning::TEST,
    ];
}

impl FromStr for Test {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|test| test.name == text).ok_or_else(|| {
            let names = Self::ALL.map(|test| test.name).join(", ");
            format!("{text} is no controller benchmark: must be all or one of {names}")
        })
    }
}

/// The results, one row for each headline figure: mean and sample variance over the trials, as
/// section 4.8 of the RFC requires.
#[must_use]
pub fn table(results: &Results) -> Table {
    let header = ["test", "case", "figure", "unit", "trials", "mean", "variance", "least", "most"];
    let mut table = Table::new(header);
    for point in &results.points {
        let name = point.parameters.get("test").map(ToString::to_string).unwrap_or_default();
        let test = name.parse::<Test>();
        let figures = test.as_ref().map(|test| test.headline).unwrap_or_default();
        let mut case = point.clone();
        case.parameters.remove("test");
        for figure in figures {
            let Some(metric) = point.metrics.get(*figure) else { continue };
            let optional = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), number);
            table.row([
                name.clone(),
                case.label(),
                (*figure).to_owned(),
                metric.unit.clone(),
                metric.samples.len().to_string(),
                optional(metric.mean),
                optional(metric.variance),
                optional(metric.samples.iter().copied().reduce(f64::min)),
                optional(metric.samples.iter().copied().reduce(f64::max)),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_names_are_parsed_and_the_error_for_an_unknown_name_lists_all_names() {
        for test in Test::ALL {
            assert_eq!(test.name.parse::<Test>(), Ok(test));
            assert!(!test.about.is_empty() && !test.headline.is_empty(), "{test:?}");
        }
        let error = "discovery".parse::<Test>().unwrap_err();
        assert!(error.contains("discovery-time") && error.contains("all"), "{error}");
    }
}
