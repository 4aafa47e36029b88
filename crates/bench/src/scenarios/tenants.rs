//! The cost of the number of tenants: the same total rate, spread over more and more tenants.

use super::points::{figure_of, find, ratio, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::Setup;
use crate::system::System;

const TOTAL_RATE: f64 = 20_000.0;
const TENANTS: [usize; 7] = [1, 5, 20, 100, 200, 500, 1000];

pub(super) fn scene(options: &Options) -> Comparison {
    if options.switches.is_some() {
        return on_a_real_switch(options);
    }
    let case = |&tenants: &usize| {
        let setup = Setup { tenants, handshake_ms: 30_000, ..options.setup.clone() };
        let load = timed(Load::constant(Kind::PacketIn, tenants, TOTAL_RATE, 1), options);
        Case::new(&options.subject, vec![("tenants", tenants.into())], setup, load)
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

/// The numbers of tenants on a real switch. Each tenant has a port at the switch.
const REAL_TENANTS: [usize; 4] = [1, 5, 20, 100];

fn on_a_real_switch(options: &Options) -> Comparison {
    let subjects = [options.subject.clone(), options.subject.clone().with_networks()];
    let parameters = |tenants: usize| [("tenants", tenants.into())];
    let mut cases = Vec::new();
    for tenants in REAL_TENANTS {
        let setup = Setup { tenants, handshake_ms: 30_000, ..options.setup.clone() };
        let load = timed(Load::constant(Kind::PacketIn, tenants, TOTAL_RATE, 1), options);
        cases.extend(options.on_a_real_switch(&parameters(tenants), &setup, &load));
    }
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        for (system, tenants) in
            subjects.iter().flat_map(|system| REAL_TENANTS.map(|tenants| (system.name(), tenants)))
        {
            let over = |metric| {
                let of = |system| figure_of(points, system, &parameters(tenants), metric);
                Some(of(system)? - of(System::Direct.name())?)
            };
            let name = format!("{system}: p50 over switch-only's, {tenants} tenants, µs");
            criteria.push(Criterion::at_most(name, over("p50_us"), 100.0));
            let name = format!("{system}: unanswered beyond switch-only's, {tenants} tenants, %");
            criteria.push(Criterion::at_most(name, over("unanswered_percent"), 0.0));
        }
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
