//! A quiet tenant beside a busy neighbour, on a slow switch whose work or whose answers are delayed.

use super::isolation::{self, NEIGHBOUR_RATE, SERVICE_NS};
use super::points::figure_of;
use crate::comparison::{Comparison, Criterion, Options};
use crate::load::Kind;
use crate::plan::Delay;
use crate::service::FAR_NS;
use report::{Point, Scalar};

const DELAYS: [Delay; 5] =
    [Delay::Stalls, Delay::Late, Delay::Far, Delay::ChangesSpeed, Delay::EarlyBarriers];
const KINDS: [Kind; 2] = [Kind::PortStats, Kind::PacketOut];

fn name(delay: Delay) -> &'static str {
    match delay {
        Delay::None => "none",
        Delay::Stalls => "stalls",
        Delay::Late => "late",
        Delay::Far => "far",
        Delay::ChangesSpeed => "changes-speed",
        Delay::EarlyBarriers => "early-barriers",
    }
}

fn parameters(delay: Delay, kind: Kind, beside: bool) -> Vec<(&'static str, Scalar)> {
    [vec![("delay", name(delay).into())], isolation::parameters(kind, beside)].concat()
}

/// Each case is one of [`DELAYS`], one of [`KINDS`], and alone or beside the neighbour.
fn all() -> impl Iterator<Item = (Delay, Kind)> {
    DELAYS.into_iter().flat_map(|delay| KINDS.map(|kind| (delay, kind)))
}

pub(super) fn scene(options: &Options) -> Comparison {
    let mut cases = Vec::new();
    for (delay, kind) in all() {
        for rate in [None, Some(NEIGHBOUR_RATE)] {
            let mut case = isolation::case(options, kind, rate, SERVICE_NS);
            case.parameters = parameters(delay, kind, rate.is_some());
            case.setup.switch.delay = delay;
            cases.push(case);
        }
    }
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[Point]| {
        all().flat_map(|(delay, kind)| criteria_of(points, &subject, delay, kind)).collect()
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketOut }
}

fn criteria_of(points: &[Point], subject: &str, delay: Delay, kind: Kind) -> Vec<Criterion> {
    let name = format!("{}, {}", name(delay), kind.name());
    let of = |beside, metric| figure_of(points, subject, &parameters(delay, kind, beside), metric);
    let lost = isolation::neighbour_loss(points, subject, &parameters(delay, kind, true));
    let unanswered = of(true, "unanswered_percent");
    let mut criteria = vec![
        Criterion::at_most(format!("{name}: the tenant's unanswered, %"), unanswered, 0.0),
        Criterion::at_most(format!("{name}: the neighbour's messages lost, %"), lost, 0.0),
    ];
    // If a switch answers barriers early, the number of messages without a reply that wait at the switch is unknown.
    if (delay, kind) != (Delay::EarlyBarriers, Kind::PacketOut) {
        let added = of(true, "p50_us").zip(of(false, "p50_us")).map(|(more, alone)| more - alone);
        // A distant switch may have twice as many messages in flight as its rate needs: one more round trip.
        let limit_ns = if delay == Delay::Far { FAR_NS } else { 3 * SERVICE_NS };
        let limit = limit_ns as f64 / 1e3;
        criteria.push(Criterion::at_most(format!("{name}: p50 beside − alone, µs"), added, limit));
    }
    // While a switch is ten times as fast, the neighbour does not keep the switch busy.
    if delay != Delay::ChangesSpeed {
        let busy = of(true, "switch_busy_percent");
        criteria.push(Criterion::at_least(format!("{name}: the switch is busy, %"), busy, 90.0));
    }
    criteria
}
