//! The additional cost of a tenant's own network compared with a slice: the same packets, with translated ports.

use super::points::{figure_of, find, ratio, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::{Setup, SwitchModel};
use crate::system::System;

const RATE: f64 = 40_000.0;
/// The ports of the switch: with networks each tenant has its own port.
const PORTS: usize = 20;

pub(super) fn scene(options: &Options) -> Comparison {
    if options.switches.is_some() {
        return on_a_real_switch(options);
    }
    let translated = options.subject.clone().with_networks();
    let case = |system: &System, name: &str, tenants: usize, load: Load| {
        let parameters = vec![("load", name.into()), ("tenants", tenants.into())];
        let switch = SwitchModel { ports: PORTS, ..options.setup.switch.clone() };
        let setup = Setup { tenants, switch, ..options.setup.clone() };
        Case::new(system, parameters, setup, timed(load, options))
    };
    let mut cases = Vec::new();
    for tenants in [1, 20] {
        for system in [&options.subject, &translated] {
            let load = Load::constant(Kind::PacketIn, tenants, RATE, 1);
            cases.push(case(system, "PACKET_IN 40,000/s", tenants, load));
        }
    }
    for (name, kind) in [("PACKET_IN all", Kind::PacketIn), ("PACKET_OUT all", Kind::PacketOut)] {
        cases.push(case(&translated, name, 1, Load::saturating(kind, 1, 1)));
    }
    let (slices, networks) = (options.subject.name().to_owned(), translated.name().to_owned());
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        for tenants in [1_usize, 20] {
            let parameters = [("load", "PACKET_IN 40,000/s".into()), ("tenants", tenants.into())];
            let of = find(points, &networks, &parameters);
            let to = find(points, &slices, &parameters);
            for (metric, limit) in [("p50_us", 1.2), ("p99_us", 1.5)] {
                let name = format!("{metric} over the slices', {tenants} tenants");
                criteria.push(Criterion::at_most(name, ratio(of, to, metric), limit));
            }
            if tenants > 1 {
                let fair = of.and_then(|point| point.mean("jain_index"));
                criteria.push(Criterion::at_least("Jain's index, 20 tenants", fair, 0.99));
            }
        }
        for (name, limit) in [("PACKET_IN all", 700_000.0), ("PACKET_OUT all", 500_000.0)] {
            let rate = figure_of(points, &networks, &[("load", name.into())], "rate_per_s");
            criteria.push(Criterion::at_least(format!("{name}, per second"), rate, limit));
        }
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}

/// Rates at which a real switch still answers. The maximum of a real switch is no property of the hypervisor.
const REAL_LOADS: [(Kind, f64, usize); 4] = [
    (Kind::PacketIn, RATE, 1),
    (Kind::PacketIn, RATE, PORTS),
    (Kind::PacketOut, 60_000.0, 2),
    (Kind::PacketOut, 60_000.0, PORTS),
];

fn on_a_real_switch(options: &Options) -> Comparison {
    let translated = options.subject.clone().with_networks();
    let parameters =
        |kind: Kind, tenants: usize| [("message", kind.name().into()), ("tenants", tenants.into())];
    let mut cases = Vec::new();
    for (kind, rate, tenants) in REAL_LOADS {
        let setup = Setup { tenants, ..options.setup.clone() };
        let load = timed(Load::constant(kind, tenants, rate, 1), options);
        cases.extend(options.on_a_real_switch(&parameters(kind, tenants), &setup, &load));
    }
    let (slices, networks) = (options.subject.name().to_owned(), translated.name().to_owned());
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        for (kind, _, tenants) in REAL_LOADS {
            let of = |system: &str| find(points, system, &parameters(kind, tenants));
            let (message, over) = (kind.name(), ratio(of(&networks), of(&slices), "p50_us"));
            let name = format!("{message}: p50 over the slices', {tenants} tenants");
            criteria.push(Criterion::at_most(name, over, 1.5));
            let lost = |system: &str| of(system)?.mean("unanswered_percent");
            let more = lost(&networks).zip(lost(System::Direct.name()));
            let name = format!("{message}: unanswered beyond switch-only's, {tenants} tenants, %");
            criteria.push(Criterion::at_most(name, more.map(|(of, to)| of - to), 0.0));
        }
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
