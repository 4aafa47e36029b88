//! Weir against a TCP relay in the same place: what looking at messages costs beyond carrying them.

use super::{Case, Comparison, Criterion, Options, find, ratio, timed};
use crate::load::{Kind, Load};
use crate::plan::Setup;

const RATE: f64 = 40_000.0;

pub(super) fn scene(options: &Options) -> Comparison {
    let mut cases = Vec::new();
    for tenants in [1, 20] {
        for system in [&options.relay, &options.subject] {
            cases.push(Case {
                system: system.clone(),
                parameters: vec![("tenants", tenants.into())],
                setup: Setup { tenants, ..options.setup.clone() },
                load: timed(Load::constant(Kind::PacketIn, tenants, RATE, 1), options),
                afterwards: None,
            });
        }
    }
    let (relay, subject) = (options.relay.name().to_owned(), options.subject.name().to_owned());
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        for tenants in [1_usize, 20] {
            let parameters = [("tenants", tenants.into())];
            let of = find(points, &subject, &parameters);
            let to = find(points, &relay, &parameters);
            for (metric, limit) in [("p50_us", 1.15), ("p99_us", 1.5)] {
                let name = format!("{metric} over the relay's, {tenants} tenants");
                criteria.push(Criterion::at_most(name, ratio(of, to, metric), limit));
            }
        }
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
