//! Compares Weir with a TCP relay in the same place. The difference is the cost of reading messages in addition to the
//! cost of forwarding messages. On a real switch Weir is also compared with switch-only.

use super::points::{figure_of, find, ratio, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::Setup;
use crate::system::System;
use report::Scalar;

const RATE: f64 = 40_000.0;

pub(super) fn scene(options: &Options) -> Comparison {
    if options.switches.is_some() {
        return on_a_real_switch(options);
    }
    let mut cases = Vec::new();
    for tenants in [1, 20] {
        for system in [&options.relay, &options.subject] {
            let setup = Setup { tenants, ..options.setup.clone() };
            let load = timed(Load::constant(Kind::PacketIn, tenants, RATE, 1), options);
            cases.push(Case::new(system, vec![("tenants", tenants.into())], setup, load));
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

/// The messages, the rates, which leave the machine idle time, and the largest difference in µs between a hypervisor's
/// p50 and the p50 of switch-only.
const PACED: [(Kind, f64, Option<f64>); 7] = [
    (Kind::PacketIn, 10_000.0, Some(100.0)),
    (Kind::PacketIn, 20_000.0, Some(100.0)),
    (Kind::PacketOut, 20_000.0, Some(100.0)),
    (Kind::PortStats, 20_000.0, Some(100.0)),
    (Kind::Echo, 20_000.0, None),
    (Kind::FlowMod, 200.0, None),
    // Until a rule is installed, each probe misses the table. More rules per second would load Open vSwitch with
    // misses.
    (Kind::FlowModPacket, 20.0, Some(300.0)),
];
/// The largest ratio of a slice's p50 to a relay's p50 for PACKET_IN.
const RELAY: f64 = 1.15;
/// The largest ratio of a network's p50 to a slice's p50 at [`RATE`].
const NETWORKS_OVER_SLICES: f64 = 1.2;

fn parameters(kind: Kind, rate: f64) -> Vec<(&'static str, Scalar)> {
    vec![("message", kind.name().into()), ("rate", rate.into())]
}

/// There is one tenant, because without a hypervisor several tenants need several switches.
fn on_a_real_switch(options: &Options) -> Comparison {
    let subjects = [options.subject.clone(), options.subject.clone().with_networks()];
    let mut cases = Vec::new();
    let full = [(Kind::PacketIn, RATE)];
    for (kind, rate) in PACED.iter().map(|&(kind, rate, _)| (kind, rate)).chain(full) {
        let switch = options.setup.switch.for_kinds([kind]);
        let setup = Setup { tenants: 1, switch, ..options.setup.clone() };
        let load = timed(Load::constant(kind, 1, rate, 1), options);
        cases.extend(options.on_a_real_switch(&parameters(kind, rate), &setup, &load));
    }
    let relay = options.relay.name().to_owned();
    let [slices, networks] = subjects.map(|system| system.name().to_owned());
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        for name in [&slices, &networks] {
            for (kind, rate, limit) in PACED {
                let of = |system: &str, metric| {
                    figure_of(points, system, &parameters(kind, rate), metric)
                };
                let more = |metric| Some(of(name, metric)? - of(System::Direct.name(), metric)?);
                let message = format!("{} at {rate}/s", kind.name());
                if let Some(limit) = limit {
                    let p50 = format!("{name} {message}: p50 over switch-only's, µs");
                    criteria.push(Criterion::at_most(p50, more("p50_us"), limit));
                }
                let unanswered = format!("{name} {message}: unanswered beyond switch-only's, %");
                criteria.push(Criterion::at_most(unanswered, more("unanswered_percent"), 0.0));
            }
        }
        let packet_in =
            |name: &str, rate: f64| find(points, name, &parameters(Kind::PacketIn, rate));
        for (name, to, rate, limit) in [
            (&slices, &relay, 10_000.0, RELAY),
            (&slices, &relay, 20_000.0, RELAY),
            (&slices, &relay, RATE, RELAY),
            (&networks, &slices, RATE, NETWORKS_OVER_SLICES),
        ] {
            let of = |name| packet_in(name, rate);
            let p50 = format!("{name} PACKET_IN at {rate}/s: p50 over {to}'s");
            criteria.push(Criterion::at_most(p50, ratio(of(name), of(to), "p50_us"), limit));
        }
        let of = |name: &str| packet_in(name, RATE);
        let lost = |name: &str| of(name)?.mean("unanswered_percent");
        let more = lost(&slices).zip(lost(&relay)).map(|(of, to)| of - to);
        let name = format!("{slices} PACKET_IN at {RATE}/s: unanswered beyond {relay}'s, %");
        criteria.push(Criterion::at_most(name, more, 0.0));
        let more = lost(&networks).zip(lost(&slices));
        criteria.push(Criterion::at_most(
            format!("{networks} PACKET_IN at {RATE}/s: unanswered − {NETWORKS_OVER_SLICES} × {slices}'s, %"),
            more.map(|(of, to)| of - NETWORKS_OVER_SLICES * to),
            0.0,
        ));
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
