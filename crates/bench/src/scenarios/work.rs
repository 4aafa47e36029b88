//! The cost of a message for the hypervisor: CPU time per message at several rates, compared with a TCP relay, and the
//! number of the hypervisor's own messages to the switch.

use super::points::{figure_of, timed};
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::measure::{CPU_PER_MESSAGE, OWN_MESSAGES};
use crate::plan::Setup;
use crate::system::System;
use report::Scalar;

/// Messages per second of all tenants together; `None` is as many as the system reads.
const RATES: [Option<f64>; 4] = [Some(10_000.0), Some(30_000.0), Some(60_000.0), None];
/// A tenant alone, and several that share the switch.
const TENANTS: [usize; 3] = [1, 2, 10];
/// The largest number of own messages of a hypervisor per hundred messages of tenants, at 60,000/s.
const OWN_LIMIT: f64 = 2.0;
/// The same limit while only one tenant uses the switch. One barrier for each 128 messages is 0.8; without any barrier
/// the hypervisor would not notice that the switch has stopped working.
const OWN_LIMIT_ALONE: f64 = 1.0;

fn parameters(rate: Option<f64>, tenants: usize) -> Vec<(&'static str, Scalar)> {
    let rate = rate.map_or("saturated".into(), Scalar::from);
    vec![("message", Kind::PacketOut.name().into()), ("rate", rate), ("tenants", tenants.into())]
}

pub(super) fn scene(options: &Options) -> Comparison {
    let subjects = [options.subject.clone(), options.subject.clone().with_networks()];
    let mut cases = Vec::new();
    for tenants in TENANTS {
        // With a relay each tenant needs its own switch, which would cost the machine more than the one switch of a
        // hypervisor.
        let relay = [&options.relay].into_iter().filter(|_| tenants == 1);
        let systems: Vec<&System> = relay.chain(&subjects).chain(&options.others).collect();
        // The full sockets of several tenants would hold more messages than a run can drain.
        for rate in RATES.into_iter().filter(|rate| rate.is_some() || tenants == 1) {
            let load = match rate {
                Some(rate) => Load::constant(Kind::PacketOut, tenants, rate, 1),
                None => Load::saturating(Kind::PacketOut, tenants, 1),
            };
            let load = timed(load, options);
            let setup = Setup { tenants, ..options.setup.clone() };
            cases.extend(systems.iter().map(|system| {
                Case::new(system, parameters(rate, tenants), setup.clone(), load.clone())
            }));
        }
    }
    let names = subjects.map(|system| system.name().to_owned());
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        for (name, tenants) in names.iter().flat_map(|name| TENANTS.map(|tenants| (name, tenants)))
        {
            let of = |rate, metric| figure_of(points, name, &parameters(rate, tenants), metric);
            let [slow, _, fast, _] = RATES;
            let limit = if tenants == 1 { OWN_LIMIT_ALONE } else { OWN_LIMIT };
            criteria.push(Criterion::at_most(
                format!("{name}: own messages at 60,000/s, {tenants} tenants, %"),
                of(fast, OWN_MESSAGES),
                limit,
            ));
            let cost = |rate| of(rate, CPU_PER_MESSAGE);
            criteria.push(Criterion::at_most(
                format!("{name}: CPU per message, 60,000/s over 10,000/s, {tenants} tenants"),
                cost(fast).zip(cost(slow)).map(|(fast, slow)| fast / slow),
                1.0,
            ));
        }
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketOut }
}
