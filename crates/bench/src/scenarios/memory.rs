//! The memory of the hypervisor with 20 tenants and 10,000 rules.

use super::points::{figure_of, peak_memory};
use crate::arrivals::Arrivals;
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::Setup;

const TENANTS: usize = 20;
const RULES: u32 = 10_000;
const LIMIT_BYTES: f64 = 64e6;

pub(super) fn scene(options: &Options) -> Comparison {
    // Each tenant sends its rules in the first two seconds, and all rules differ. Then no tenant
    // sends.
    let each = RULES / TENANTS as u32;
    let arrivals = Arrivals::Steps { steps: vec![(0.0, f64::from(each) / 2.0), (2.0, 0.0)] };
    let load = Load::each(Kind::FlowMod, TENANTS, &arrivals, options.duration_ms.max(3_000));
    let parameters = vec![("tenants", TENANTS.into()), ("rules", RULES.into())];
    let setup = Setup { tenants: TENANTS, ..options.setup.clone() };
    let case = Case::new(&options.subject, parameters, setup, load);
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[report::Point]| {
        let of = |metric| figure_of(points, &subject, &[], metric);
        let answered = points.first().map(|point| {
            point.tenants.iter().map(|tenant| tenant.received).sum::<u64>() as f64
                / point.metrics.get("p50_us").map_or(1, |metric| metric.samples.len()) as f64
        });
        vec![
            Criterion::at_most(
                "most memory resident, bytes",
                of("resident_peak_bytes"),
                LIMIT_BYTES,
            ),
            Criterion::at_least("rules acknowledged", answered, f64::from(RULES)),
        ]
    };
    let cases = vec![Case { afterwards: Some(peak_memory), ..case }];
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::FlowMod }
}
