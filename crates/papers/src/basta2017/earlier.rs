//! Compares figure 4 with an earlier measurement: FlowVisor 1.4 and Weir at an earlier commit, on a machine of this
//! kind (two cores, Open vSwitch 3.1 with its userspace datapath), two runs of 3 s each. The table shows the changes
//! since then. The criteria for Weir use FlowVisor's column of the earlier measurement, unless this run measures
//! FlowVisor.

use bench::Criterion;
use bench::Kind;
use bench::System;
use report::stats::median;
use report::table::number;
use report::{Point, Scalar, Table};

/// A cell: p50 in ms, and the share of unanswered messages in %.
type Cell = (f64, f64);

/// One line of the earlier measurement.
struct Earlier {
    tcp: &'static str,
    tenants: usize,
    flowvisor: Cell,
    slices: Cell,
    networks: Cell,
}

const EARLIER: [Earlier; 8] = [
    of("AGG", 2, (325.0, 0.0), (481.0, 0.0), (455.0, 0.0)),
    of("AGG", 5, (2.7, 0.0), (1_328.0, 26.0), (1_382.0, 22.0)),
    of("AGG", 10, (3.7, 0.0), (726.0, 0.0), (1_103.0, 18.0)),
    of("AGG", 20, (5.7, 0.0), (793.0, 0.0), (1_818.0, 48.0)),
    of("ND", 2, (210.0, 23.0), (600.0, 0.0), (796.0, 0.0)),
    of("ND", 5, (1.0, 0.0), (1_040.0, 3.0), (732.0, 0.0)),
    of("ND", 10, (15.0, 0.0), (1_305.0, 16.0), (1_510.0, 49.0)),
    of("ND", 20, (2.0, 0.0), (769.0, 0.0), (1_940.0, 47.0)),
];
/// The commit of Weir in the earlier measurement.
const COMMIT: &str = "ca33974";

const fn of(
    tcp: &'static str,
    tenants: usize,
    flowvisor: Cell,
    slices: Cell,
    networks: Cell,
) -> Earlier {
    Earlier { tcp, tenants, flowvisor, slices, networks }
}

const SLICES: &str = "weir";
const NETWORKS: &str = "weir-networks";
const UNANSWERED: &str = "unanswered_percent";
/// For slices, the limit of p50 minus the p50 of switch-only in ms, and the limit of p99 minus three times the p99 of
/// switch-only in ms.
const P50_MS: f64 = 2.0;
const P99_MS: f64 = 10.0;
/// For networks, the limit of p50 minus the p50 of switch-only in ms.
const NETWORKS_P50_MS: f64 = 3.0;
/// For networks, the limit of p50 as a multiple of slices' p50, in every case of a message.
const NETWORKS_TIMES: f64 = 1.5;
/// Where FlowVisor's p50 is above this limit in ms, slices' p50 has to be at most half of FlowVisor's p50.
const SLOW_FLOWVISOR_MS: f64 = 4.0;

/// The table with its heading. `other` is a hypervisor of this run that replaces FlowVisor in its column.
pub(super) fn table(points: &[Point], other: Option<&str>) -> (String, Table) {
    let flowvisor = other.map_or("FlowVisor 1.4, earlier".to_owned(), str::to_owned);
    let titles = [
        "case".to_owned(),
        "switch-only".to_owned(),
        flowvisor,
        "slices".to_owned(),
        "networks".to_owned(),
        format!("slices at {COMMIT}"),
        format!("networks at {COMMIT}"),
        "slices, times less".to_owned(),
        "networks, times less".to_owned(),
    ];
    let mut table = Table::new(titles);
    for line in &EARLIER {
        let measured = |system: &str| cell(points, system, line);
        let shown = |cell: Option<Cell>| cell.map_or_else(|| "–".to_owned(), show);
        let less = |before: Cell, system: &str| {
            let now = measured(system).filter(|now| now.0 > 0.0);
            now.map_or_else(|| "–".to_owned(), |now| number(before.0 / now.0))
        };
        let flowvisor = other.map_or(Some(line.flowvisor), measured);
        table.row([
            format!("{}, {} tenants", line.tcp, line.tenants),
            shown(measured(System::Direct.name())),
            shown(flowvisor),
            shown(measured(SLICES)),
            shown(measured(NETWORKS)),
            show(line.slices),
            show(line.networks),
            less(line.slices, SLICES),
            less(line.networks, NETWORKS),
        ]);
    }
    let heading =
        "Figure 4 beside earlier measurements: p50 in ms (median of the runs) / unanswered in %";
    (heading.to_owned(), table)
}

/// The criteria for Weir, for each measured number of tenants.
pub(super) fn criteria(points: &[Point], other: Option<&str>) -> Vec<Criterion> {
    let mut criteria = Vec::new();
    let ms = |system: &str, line: &(String, Scalar), metric: &str| {
        figure(points, system, &line.0, &line.1, metric).map(|us| us / 1e3)
    };
    for line in places(points) {
        let (tcp, tenants) = &line;
        let case = format!("{tcp}, {tenants} tenants");
        let of = |system: &str, metric: &str| ms(system, &line, metric);
        let direct = |metric: &str| of(System::Direct.name(), metric);
        let over = |system: &str, metric: &str, times: f64| {
            of(system, metric).zip(direct(metric)).map(|(of, to)| of - times * to)
        };
        let mut most = |what: &str, measured: Option<f64>, limit: f64| {
            criteria.push(Criterion::at_most(format!("{case}: {what}"), measured, limit));
        };
        most("slices' p50 over switch-only's, ms", over(SLICES, "p50_us", 1.0), P50_MS);
        let unanswered = figure(points, SLICES, tcp, tenants, UNANSWERED);
        most("slices' unanswered, %", unanswered, 0.0);
        most("slices' p99 − 3 × switch-only's, ms", over(SLICES, "p99_us", 3.0), P99_MS);
        let p50 = over(NETWORKS, "p50_us", 1.0);
        most("networks' p50 over switch-only's, ms", p50, NETWORKS_P50_MS);
        let earlier = EARLIER
            .iter()
            .find(|it| it.tcp == tcp && *tenants == it.tenants.into())
            .map(|it| it.flowvisor.0);
        let flowvisor = other.map_or(earlier, |other| of(other, "p50_us"));
        if let Some(slow) = flowvisor.filter(|ms| *ms > SLOW_FLOWVISOR_MS) {
            let whose = other.unwrap_or("FlowVisor");
            let half = of(SLICES, "p50_us").map(|ms| ms / slow);
            most(&format!("slices' p50 over {whose}'s"), half, 0.5);
        }
    }
    criteria
}

/// The criteria for networks against slices: of all cases of a message, the worst case counts.
pub(super) fn networks_beside_slices(points: &[Point]) -> Vec<Criterion> {
    let mut criteria = Vec::new();
    for message in [Kind::PacketIn.name(), Kind::PacketOut.name()] {
        let networks = points.iter().filter(|point| {
            point.system == NETWORKS && point.parameters.get("message") == Some(&message.into())
        });
        let (mut times, mut lost) = (None::<(f64, String)>, None::<f64>);
        for of_networks in networks {
            let beside = |system: &str| {
                let is_it = |point: &&Point| {
                    point.system == system && point.parameters == of_networks.parameters
                };
                points.iter().find(is_it)
            };
            let p50 = |point: &Point| figure_of(point, "p50_us");
            if let Some((networks, slices)) = p50(of_networks).zip(beside(SLICES).and_then(p50))
                && times.as_ref().is_none_or(|(worst, _)| networks / slices > *worst)
            {
                times = Some((networks / slices, case(of_networks)));
            }
            let unanswered = |point: &Point| figure_of(point, UNANSWERED);
            let of_switch = beside(System::Direct.name()).and_then(unanswered);
            let more = unanswered(of_networks).zip(of_switch).map(|(of, to)| of - to);
            lost = lost.into_iter().chain(more).reduce(f64::max);
        }
        if let Some((worst, case)) = times {
            let name = format!("{message}: networks' p50 over slices', worst case ({case})");
            criteria.push(Criterion::at_most(name, Some(worst), NETWORKS_TIMES));
        }
        if lost.is_some() {
            let name = format!("{message}: networks' unanswered over switch-only's, worst case, %");
            criteria.push(Criterion::at_most(name, lost, 0.0));
        }
    }
    criteria
}

/// The short name of a case: `30,000/s, AGG, 1 tenants`.
fn case(point: &Point) -> String {
    let of = |name: &str| point.parameters.get(name).map(ToString::to_string).unwrap_or_default();
    format!("{}/s, {}, {} tenants", of("rate"), of("tcp"), of("tenants"))
}

/// The median over runs. For unanswered messages the mean over runs, so that the loss of one run counts.
fn figure_of(point: &Point, metric: &str) -> Option<f64> {
    match metric {
        UNANSWERED => point.mean(metric),
        _ => median(&point.metrics.get(metric)?.samples),
    }
}

/// The measured combinations of AGG or ND with a number of tenants, in order.
fn places(points: &[Point]) -> Vec<(String, Scalar)> {
    let mut places = Vec::new();
    for point in points.iter().filter(|point| is_of_figure(point)) {
        let tcp = point.parameters.get("tcp").map(ToString::to_string);
        let place = tcp.zip(point.parameters.get("tenants").cloned());
        places.extend(place.filter(|place| !places.contains(place)));
    }
    places
}

fn is_of_figure(point: &Point) -> bool {
    point.parameters.get("message") == Some(&Kind::PacketOut.name().into())
        && !crate::published::is_published(point)
}

fn cell(points: &[Point], system: &str, line: &Earlier) -> Option<Cell> {
    let figure = |metric| figure(points, system, line.tcp, &line.tenants.into(), metric);
    Some((figure("p50_us")? / 1e3, figure(UNANSWERED)?))
}

/// The value of a metric in one case; see [`figure_of`].
fn figure(
    points: &[Point],
    system: &str,
    tcp: &str,
    tenants: &Scalar,
    metric: &str,
) -> Option<f64> {
    let is_it = |point: &&Point| {
        let is = |name: &str, value: &Scalar| point.parameters.get(name) == Some(value);
        point.system == system && is("tcp", &tcp.into()) && is("tenants", tenants)
    };
    let mut found = points.iter().filter(|point| is_of_figure(point));
    figure_of(found.find(is_it)?, metric)
}

fn show((ms, unanswered): Cell) -> String {
    match unanswered {
        0.0 => number(ms),
        _ => format!("{} / {} %", number(ms), number(unanswered)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::{Better, Metric};

    fn point(system: &str, p50_us: f64) -> Point {
        let place: [(&str, Scalar); 3] =
            [("message", "PACKET_OUT".into()), ("tenants", 2_usize.into()), ("tcp", "ND".into())];
        let mut point = Point::new(system, place);
        for (metric, samples) in [
            ("p50_us", vec![p50_us, 9e9, p50_us]),
            ("p99_us", vec![5.0 * p50_us, 9e9, 5.0 * p50_us]),
            (UNANSWERED, vec![0.0; 3]),
        ] {
            let metric_of = Metric::new("", Better::Lower, samples);
            point.metrics.insert(metric.to_owned(), metric_of);
        }
        point
    }

    #[test]
    fn measured_latency_is_compared_with_the_earlier_measurement() {
        let points = [point("direct", 60.0), point("weir", 600.0), point("weir-networks", 400.0)];
        let (_, table) = table(&points, None);
        let text = table.to_string();
        let line = text.lines().find(|line| line.contains("ND, 2 tenants")).unwrap();
        assert!(line.contains("210 / 23 %") && line.contains("1,000"), "{line}");
        let judged = criteria(&points, None);
        let names: Vec<&str> = judged.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names.len(), 5, "{names:?}");
        assert!(judged.iter().all(|it| it.ruling() == bench::Ruling::Met), "{judged:?}");
        // A FlowVisor of this run that is as fast as Weir does not require half of its p50.
        let beside = [&points[..], &[point("fv", 600.0)]].concat();
        assert_eq!(criteria(&beside, Some("fv")).len(), 4);
        let slow = [point("direct", 60.0), point("weir", 3_000.0), point("weir-networks", 400.0)];
        assert_eq!(criteria(&slow, None)[0].ruling(), bench::Ruling::NotMet);
        assert!(criteria(&[], None).is_empty());
    }

    #[test]
    fn loss_in_a_single_run_fails_the_unanswered_criterion() {
        let mut lossy = point("weir", 600.0);
        let samples = Metric::new("%", Better::Lower, vec![0.0, 0.3, 0.0]);
        lossy.metrics.insert(UNANSWERED.to_owned(), samples);
        let points = [point("direct", 60.0), lossy, point("weir-networks", 400.0)];
        let judged = criteria(&points, None);
        let unanswered = judged.iter().find(|it| it.name.contains("unanswered")).unwrap();
        assert_eq!(unanswered.ruling(), bench::Ruling::NotMet, "{judged:?}");
    }

    #[test]
    fn networks_are_judged_against_slices_by_the_worst_case() {
        let with = |tenants: usize, points: [Point; 3]| {
            points.map(|mut point| {
                point.parameters.insert("tenants".to_owned(), tenants.into());
                point
            })
        };
        let good = [point("direct", 60.0), point("weir", 200.0), point("weir-networks", 250.0)];
        let bad = [point("direct", 60.0), point("weir", 200.0), point("weir-networks", 320.0)];
        let judged = networks_beside_slices(&[with(2, good.clone()), with(5, bad)].concat());
        assert_eq!(judged.len(), 2, "{judged:?}");
        assert_eq!(judged[0].ruling(), bench::Ruling::NotMet);
        assert!(judged[0].name.contains("5 tenants"), "{judged:?}");
        assert_eq!(judged[1].ruling(), bench::Ruling::Met);
        assert_eq!(networks_beside_slices(&good)[0].ruling(), bench::Ruling::Met);
        assert!(networks_beside_slices(&[]).is_empty());
    }
}
