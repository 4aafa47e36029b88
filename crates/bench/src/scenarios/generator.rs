//! The generator's own maximum, with no system between its two ends. No figure of a system can be better.

use super::points::{figure_of, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::Setup;
use crate::system::System;

const MANY: usize = 1000;
const MANY_RATE: f64 = 200_000.0;
const PACED_RATE: f64 = 100_000.0;

pub(super) fn scene(options: &Options) -> Comparison {
    // Each side has its own core if nothing else needs a core. Cases about pacing use the same threads as with a system
    // under test.
    let case = |name: &str, tenants: usize, threads: usize, load: Load| {
        let parameters = vec![("load", name.into()), ("tenants", tenants.into())];
        let setup = Setup { tenants, threads, handshake_ms: 30_000, ..options.setup.clone() };
        Case::new(&System::Direct, parameters, setup, timed(load, options))
    };
    let all = [("PACKET_IN all", Kind::PacketIn), ("PACKET_OUT all", Kind::PacketOut)];
    let mut cases: Vec<Case> = Vec::new();
    for (name, kind) in all {
        cases.push(case(name, 1, 2, Load::saturating(kind, 1, 1)));
    }
    let many = Load::constant(Kind::PacketIn, MANY, MANY_RATE, 1);
    cases.push(case("PACKET_IN 200,000/s", MANY, 2, many));
    let paced = Load::constant(Kind::PacketIn, 1, PACED_RATE, 1);
    cases.push(case("PACKET_IN 100,000/s", 1, 1, paced));
    let criteria = move |points: &[report::Point]| {
        let of = |load: &str, metric: &str| {
            figure_of(points, System::Direct.name(), &[("load", load.into())], metric)
        };
        let mut criteria: Vec<Criterion> = all
            .iter()
            .map(|(load, _)| {
                let rate = of(load, "rate_per_s");
                Criterion::at_least(format!("{load}, per second"), rate, 1_500_000.0)
            })
            .collect();
        let name = format!("per second over {MANY} connections");
        // The number of messages in the window gives the rate, except for the messages at the ends of the window.
        criteria.push(Criterion::at_least(
            name,
            of("PACKET_IN 200,000/s", "rate_per_s"),
            199_000.0,
        ));
        let lag = of("PACKET_IN 100,000/s", "lag_p99_us");
        criteria.push(Criterion::at_most("lag p99 µs at 100,000/s", lag, 100.0));
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
