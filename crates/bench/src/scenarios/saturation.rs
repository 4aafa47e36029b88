//! As many PACKET_INs per second as the hypervisor reads from one switch.

use super::points::{figure_of, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::Setup;

pub(super) fn scene(options: &Options) -> Comparison {
    let case = |tenants: usize| {
        let setup = Setup { tenants, ..options.setup.clone() };
        let load = timed(Load::saturating(Kind::PacketIn, tenants, 1), options);
        Case::new(&options.subject, vec![("tenants", tenants.into())], setup, load)
    };
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[report::Point]| {
        let rate = figure_of(points, &subject, &[("tenants", 1_usize.into())], "rate_per_s");
        vec![Criterion::at_least("PACKET_IN/s, 1 tenant", rate, 1_200_000.0)]
    };
    let cases = vec![case(1), case(20)];
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
