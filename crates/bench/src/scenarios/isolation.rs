//! A quiet tenant beside a neighbour that sends far more than the switch, or the hypervisor itself, can process.

use super::points::{figure_of, find, ratio, timed};
use crate::arrivals::Arrivals;
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load, Stream};
use crate::plan::{Setup, SwitchModel};
use report::Scalar;

const SUBJECT_RATE: f64 = 1_000.0;
/// The service time of a switch that handles 8,000 messages per second, in ns.
pub(super) const SERVICE_NS: u64 = 125_000;
/// A switch that works in batches takes this number of the waiting messages every 2 ms. A switch with a bucket of
/// tokens does this number of messages at once after an idle time.
const BATCH: u32 = 17;
pub(super) const NEIGHBOUR_RATE: f64 = 16_000.0;
const FLOOD_RATE: f64 = 400_000.0;

pub(super) fn parameters(kind: Kind, beside: bool) -> Vec<(&'static str, Scalar)> {
    let neighbour = if beside { "flooding" } else { "silent" };
    vec![("message", kind.name().into()), ("neighbour", neighbour.into())]
}

/// The method by which a slow switch works on messages. Each method has the same number of messages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Singly,
    InBatches,
    FromABucket,
}

impl Served {
    fn name(self) -> &'static str {
        match self {
            Self::Singly => "singly",
            Self::InBatches => "in-batches",
            Self::FromABucket => "from-a-bucket",
        }
    }

    fn parameters(self, kind: Kind, beside: bool) -> Vec<(&'static str, Scalar)> {
        [vec![("served", self.name().into())], parameters(kind, beside)].concat()
    }
}

pub(super) fn case(
    options: &Options,
    kind: Kind,
    neighbour_rate: Option<f64>,
    service_ns: u64,
) -> Case {
    let mut streams = vec![Stream::new(0, kind, Arrivals::Constant { rate: SUBJECT_RATE })];
    streams.extend(
        neighbour_rate
            .map(|rate| Stream::new(1, kind, Arrivals::Constant { rate }).as_background()),
    );
    // The messages in the sockets at the end of a flood take the slow switch some twenty seconds.
    let load = Load { drain_ms: 60_000, ..Load::new(streams, 1) };
    // There are many ports, and each request is for one port. A hypervisor may share one answer among equal requests,
    // but must still request most ports from the switch.
    let (ports, ports_in_turn) = (500, true);
    let switch = SwitchModel { service_ns, ports, ports_in_turn, ..options.setup.switch.clone() };
    let setup = Setup { tenants: 2, switch, ..options.setup.clone() };
    let parameters = parameters(kind, neighbour_rate.is_some());
    Case::new(&options.subject, parameters, setup, timed(load, options))
}

/// The switch is the bottleneck: a switch that works on one message at a time, a switch that works in batches, and a
/// switch that has a bucket of tokens.
pub(super) fn switch(options: &Options) -> Comparison {
    let kinds = [Served::Singly, Served::InBatches, Served::FromABucket]
        .into_iter()
        .flat_map(|served| [Kind::PortStats, Kind::PacketOut].map(|kind| (served, kind)));
    let kinds: Vec<(Served, Kind)> = kinds.collect();
    let mut cases = Vec::new();
    for &(served, kind) in &kinds {
        for rate in [None, Some(NEIGHBOUR_RATE)] {
            let mut case = case(options, kind, rate, SERVICE_NS);
            case.parameters = served.parameters(kind, rate.is_some());
            match served {
                Served::Singly => {}
                Served::InBatches => case.setup.switch.batch = BATCH,
                Served::FromABucket => case.setup.switch.bucket = BATCH,
            }
            cases.push(case);
        }
    }
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[report::Point]| {
        let each =
            kinds.iter().flat_map(|&(served, kind)| criteria_of(points, &subject, served, kind));
        each.collect()
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketOut }
}

fn criteria_of(
    points: &[report::Point],
    subject: &str,
    served: Served,
    kind: Kind,
) -> Vec<Criterion> {
    let name = match served {
        Served::Singly => kind.name().to_owned(),
        Served::InBatches => format!("{} in batches", kind.name()),
        Served::FromABucket => format!("{} from a bucket", kind.name()),
    };
    let of = |beside, metric| figure_of(points, subject, &served.parameters(kind, beside), metric);
    let added = |metric| Some(of(true, metric)? - of(false, metric)?);
    let lost = neighbour_loss(points, subject, &served.parameters(kind, true));
    let service_us = SERVICE_NS as f64 / 1e3;
    let unanswered = of(true, "unanswered_percent");
    let p50_limit = match served {
        Served::Singly => 3.0 * service_us,
        // A message that arrives during a batch, or finds no token, is processed within the time of one batch.
        Served::InBatches | Served::FromABucket => f64::from(BATCH) * service_us,
    };
    let mut criteria =
        vec![Criterion::at_most(format!("{name}: the tenant's unanswered, %"), unanswered, 0.0)];
    let latencies = [("p50", "p50_us", p50_limit), ("p99", "p99_us", 8.0 * service_us)];
    for (of_latency, metric, limit) in latencies {
        let name = format!("{name}: {of_latency} beside − alone, µs");
        criteria.push(Criterion::at_most(name, added(metric), limit));
    }
    let busy = of(true, "switch_busy_percent");
    criteria.extend([
        Criterion::at_least(format!("{name}: the switch is busy, %"), busy, 90.0),
        Criterion::at_most(format!("{name}: the neighbour's messages lost, %"), lost, 0.0),
    ]);
    criteria
}

/// The share of the neighbour's sent messages that never arrived. Messages that back-pressure delayed at the sender are
/// no loss.
pub(super) fn neighbour_loss(
    points: &[report::Point],
    subject: &str,
    parameters: &[(&str, Scalar)],
) -> Option<f64> {
    let point = find(points, subject, parameters)?;
    let neighbour = point.tenants.get(1)?;
    let lost = neighbour.sent.saturating_sub(neighbour.received);
    Some(lost as f64 / neighbour.sent.max(1) as f64 * 100.0)
}

/// The neighbour's rate with a real switch, which is more than the switch can process.
const REAL_FLOOD_RATE: f64 = 200_000.0;

/// The hypervisor is the bottleneck. With a real switch, the switch is the bottleneck.
pub(super) fn flood(options: &Options) -> Comparison {
    if options.switches.is_some() {
        return flood_on_a_real_switch(options);
    }
    let kind = Kind::PacketOut;
    let cases = [None, Some(FLOOD_RATE)].map(|rate| case(options, kind, rate, 0)).into();
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[report::Point]| {
        let of = |beside| find(points, &subject, &parameters(kind, beside));
        let over = |metric| ratio(of(true), of(false), metric);
        vec![
            Criterion::at_most("p50 beside the flood over alone", over("p50_us"), 1.5),
            Criterion::at_most("p90 beside the flood over alone", over("p90_us"), 2.0),
        ]
    };
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind }
}

/// The messages of the tenant; the neighbour always floods with PACKET_OUTs.
const REAL_KINDS: [Kind; 3] = [Kind::PacketOut, Kind::PortStats, Kind::FlowMod];

fn flood_on_a_real_switch(options: &Options) -> Comparison {
    let subjects = [options.subject.clone(), options.subject.clone().with_networks()];
    let mut cases = Vec::new();
    for kind in REAL_KINDS {
        for beside in [false, true] {
            let mut streams = vec![Stream::new(0, kind, Arrivals::Constant { rate: SUBJECT_RATE })];
            let flood = Arrivals::Constant { rate: REAL_FLOOD_RATE };
            let flood = Stream::new(1, Kind::PacketOut, flood).as_background();
            streams.extend(beside.then_some(flood));
            let load = timed(Load::new(streams, 1), options);
            let setup = Setup { tenants: 2, ..options.setup.clone() };
            cases.extend(options.on_a_real_switch(&parameters(kind, beside), &setup, &load));
        }
    }
    let criteria = move |points: &[report::Point]| {
        let mut criteria = Vec::new();
        for (kind, subject) in
            REAL_KINDS.iter().flat_map(|&kind| subjects.iter().map(move |it| (kind, it)))
        {
            let (name, message) = (subject.name(), kind.name());
            let of = |beside, metric| figure_of(points, name, &parameters(kind, beside), metric);
            criteria.push(Criterion::at_most(
                format!("{name} {message}: the tenant's unanswered, %"),
                of(true, "unanswered_percent"),
                0.0,
            ));
            for (metric, times) in [("p50_us", 2.0), ("p99_us", 3.0)] {
                let more = of(true, metric).zip(of(false, metric));
                criteria.push(Criterion::at_most(
                    format!("{name} {message}: {metric} beside − {times} × alone, µs"),
                    more.map(|(beside, alone)| beside - times * alone),
                    2_000.0,
                ));
            }
        }
        criteria
    };
    let kind = Kind::PacketOut;
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind }
}
