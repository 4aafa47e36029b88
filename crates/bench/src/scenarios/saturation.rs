//! As many PACKET_INs per second as the hypervisor reads from one switch.

use super::points::{figure_of, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::Setup;

pub(super) fn scene(options: &Options) -> Comparison {
    let case = |tenants: usize| Case {
        system: options.subject.clone(),
        parameters: vec![("tenants", tenants.into())],
        setup: Setup { tenants, ..options.setup.clone() },
        load: timed(Load::saturating(Kind::PacketIn, tenants, 1), options),
        afterwards: None,
        beside: None,
    };
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[report::Point]| {
        let rate = figure_of(points, &subject, &[("tenants", 1_usize.into())], "rate_per_s");
        vec![Criterion::at_least("PACKET_IN/s, 1 tenant", rate, 1_200_000.0)]
    };
    Comparison {
        tool: String::new(),
        cases: vec![case(1), case(20)],
        criteria: Box::new(criteria),
        kind: Kind::PacketIn,
    }
}
