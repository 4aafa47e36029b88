//! The cost of following tenants' flows and of sending labels: Weir with labels is compared with Weir without labels,
//! both with the same rules. First the rules stay the same, then the rules change.

use super::points::{figure_of, find, ratio, timed};
use crate::arrivals::Arrivals;
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::flow_change::RULES;
use crate::load::{Kind, Load, Stream};
use crate::measure::Collector;
use crate::outcome::Outcome;
use crate::plan::{Setup, SwitchModel};
use crate::rest;
use crate::system::Target;
use report::Better;
use std::time::Duration;

const RATE: f64 = 40_000.0;
/// The rate on a real switch, which also has to forward the packets and to make the changes.
const REAL_RATE: f64 = 20_000.0;
const TENANTS: usize = 20;
/// The time before the first figure: all rules are sent, and the system has half a second to settle.
const PRELOAD_MS: u64 = 4_000;
const PRELOAD_S: f64 = 3.5;
/// Changes of all tenants together, per second.
const CHANGES: f64 = 10_000.0;
/// The number of labels that a tenant may get per second, and at once after a second without labels: the default of the
/// configuration.
const NOTICES: f64 = 100.0;
/// The packets of every rule cross a link between the tenant's two ports. With emulated switches all tenants have the
/// same ports.
const TOPOLOGY: &str = "[topology]\nbandwidth = \"10Gbit\"\n{links}";

pub(super) fn scene(options: &Options) -> Comparison {
    let plain = options.subject.clone().with_extra(TOPOLOGY);
    let followed = plain.clone().with_labels();
    let setup = Setup {
        tenants: TENANTS,
        switch: SwitchModel { ports: 2, pairs: true, ..options.setup.switch.clone() },
        ..options.setup.clone()
    };
    let packets = if options.switches.is_some() { REAL_RATE } else { RATE };
    let mut cases = Vec::new();
    for (name, changes) in [("standing", 0.0), ("changing", CHANGES / TENANTS as f64)] {
        for system in [&plain, &followed] {
            let mut load = timed(load(packets, changes), options);
            load.duration_ms += 2 * PRELOAD_MS;
            load.cut_ms += PRELOAD_MS;
            let parameters = vec![
                ("rules", name.into()),
                ("flows", (TENANTS as u32 * RULES).into()),
                ("tenants", TENANTS.into()),
            ];
            let case = Case::new(system, parameters, setup.clone(), load);
            cases.push(Case { afterwards: Some(look), ..case });
        }
    }
    let (plain, followed) = (plain.name().to_owned(), followed.name().to_owned());
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        let rules = |name: &str| [("rules", name.into())];
        let of = find(points, &followed, &rules("standing"));
        let to = find(points, &plain, &rules("standing"));
        for metric in ["p50_us", "p99_us"] {
            let name = format!("{metric} with labels over without");
            criteria.push(Criterion::at_most(name, ratio(of, to, metric), 1.05));
        }
        let flows = f64::from(TENANTS as u32 * RULES);
        for name in ["standing", "changing"] {
            let of = |metric| figure_of(points, &followed, &rules(name), metric);
            // While rules change, one rule of each tenant may be missing.
            criteria.push(Criterion::at_least(
                format!("flows followed at the end, rules {name}"),
                of("flows_followed"),
                flows - TENANTS as f64,
            ));
            criteria.push(Criterion::at_most(
                format!("labels of a tenant beyond the first {NOTICES}, per second, rules {name}"),
                of("notices_beyond_burst_per_s"),
                NOTICES,
            ));
        }
        let changes = figure_of(points, &followed, &rules("changing"), "changes_per_s");
        criteria.push(Criterion::at_least("flow changes per second", changes, CHANGES * 0.99));
        criteria
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}

/// PACKET_INs are sent all the time, and their latency counts. At first each tenant sends its rules; then each tenant
/// sends this number of changes per second.
fn load(packets: f64, changes: f64) -> Load {
    let mut load = Load::constant(Kind::PacketIn, TENANTS, packets, 1);
    let start = PRELOAD_MS as f64 / 1e3;
    let steps = vec![(0.0, f64::from(RULES) / PRELOAD_S), (PRELOAD_S, 0.0), (start, changes)];
    let change = |tenant| {
        let arrivals = Arrivals::Steps { steps: steps.clone() };
        Stream::new(tenant, Kind::FlowChange, arrivals).as_background()
    };
    load.streams.extend((0..TENANTS).map(change));
    load
}

/// Samples the number of acknowledged changes, and the number of followed flows that the system reports.
fn look(collector: &mut Collector, outcome: &Outcome, target: &Target) {
    let changes = outcome.streams.iter().filter(|stream| !stream.subject);
    let done: u64 = changes.map(|stream| stream.counts.received).sum();
    let rate = done as f64 / outcome.window_s;
    collector.sample("changes_per_s", "1/s", Better::Higher, rate);
    let most = outcome.notices.iter().max().copied().unwrap_or(0) as f64;
    collector.sample("notices_per_tenant_per_s", "1/s", Better::Neither, most / outcome.window_s);
    let beyond = (most - NOTICES).max(0.0) / outcome.window_s;
    collector.sample("notices_beyond_burst_per_s", "1/s", Better::Neither, beyond);
    let ask = |api| rest::ask(api, "GET", "/api/v1/labels", None, Duration::from_secs(5)).ok();
    let labels = target.api.and_then(ask).map(|(_, labels)| labels);
    let count = |key: &str| labels.as_ref()?.get(key)?.as_f64();
    for (name, key) in [("flows_followed", "flows"), ("labels_replaced", "labels_replaced")] {
        if let Some(count) = count(key) {
            collector.sample(name, "", Better::Neither, count);
        }
    }
}
