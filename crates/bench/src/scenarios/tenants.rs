//! The cost of the number of tenants: the same total rate, spread over more and more tenants.

use super::points::{find, ratio, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::Setup;

const TOTAL_RATE: f64 = 20_000.0;
const TENANTS: [usize; 7] = [1, 5, 20, 100, 200, 500, 1000];

pub(super) fn scene(options: &Options) -> Comparison {
    let case = |&tenants: &usize| Case {
        system: options.subject.clone(),
        parameters: vec![("tenants", tenants.into())],
        setup: Setup { tenants, handshake_ms: 30_000, ..options.setup.clone() },
        load: timed(Load::constant(Kind::PacketIn, tenants, TOTAL_RATE, 1), options),
        afterwards: None,
        beside: None,
    };
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[report::Point]| {
        let of = |tenants: usize| find(points, &subject, &[("tenants", tenants.into())]);
        let name = "p50 with 1,000 tenants over that with 1";
        vec![Criterion::at_most(name, ratio(of(1000), of(1), "p50_us"), 1.5)]
    };
    let cases = TENANTS.iter().map(case).collect();
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
