//! The paper's figures, from points: measured ones as lines and boxes, published ones dashed.

use super::table::Figure;
use crate::published::{is_published, side_by_side};
use bench::Kind;
use report::figure::{BoxPlot, Drawing, Line, Lines, Scale, Spread, draw_boxes, draw_spreads};
use report::{Extras, LatencySummary, Point, Scalar};
use std::collections::BTreeMap;

const MS: &str = "control latency, ms (mean)";
/// From the results' µs.
const US_TO_MS: f64 = 1e-3;

/// These figures, each with `note` on it, and the table of all values.
pub(super) fn extras(points: &[Point], wanted: &[Figure], note: &str) -> Extras {
    let mut extras = Extras::default();
    for &figure in Figure::ALL.iter().filter(|figure| wanted.contains(figure)) {
        let shown: Vec<&Point> = points.iter().filter(|point| belongs(figure, point)).collect();
        extras.figures.push(report::Figure {
            name: figure.name().to_owned(),
            drawing: draw(figure, &shown).with_note(note),
            caption: caption(figure).to_owned(),
        });
        let columns: &[(&str, &str, f64)] = &[
            ("mean ms", "mean_us", US_TO_MS),
            ("p50 ms", "p50_us", US_TO_MS),
            ("p99 ms", "p99_us", US_TO_MS),
            ("unanswered %", "unanswered_percent", 1.0),
            ("CPU %", "cpu_percent", 1.0),
            ("worst/best tenant", "worst_to_best_tenant", 1.0),
            ("sent/segment", "sent_per_segment", 1.0),
            ("lag p99 µs", "lag_p99_us", 1.0),
        ];
        let table = side_by_side(&shown, columns, name);
        let heading = format!("{}, published and measured", title(figure));
        extras.tables.push((heading, table));
    }
    extras
}

/// Whether a point is drawn in a figure.
fn belongs(figure: Figure, point: &Point) -> bool {
    let is = |name: &str, value: Scalar| point.parameters.get(name) == Some(&value);
    let message = |kind: Kind| is("message", kind.name().into());
    let single = is("tenants", 1_usize.into());
    let has = |metric: &str| point.metrics.contains_key(metric);
    match figure {
        Figure::OneRate => message(Kind::PacketIn) && single && is("rate", 40_000.0.into()),
        Figure::Rates => {
            message(Kind::PacketIn) && single && !point.system.starts_with("switch-only")
        }
        Figure::PortStats => message(Kind::PortStats),
        Figure::TenantsPacketIn => message(Kind::PacketIn) && !single,
        Figure::Tenants => message(Kind::PacketOut) && has("mean_us"),
        Figure::Cpu => message(Kind::PacketOut) && has("cpu_percent"),
        Figure::Fairness => message(Kind::PacketOut) && point.tenants.len() == 20,
    }
}

fn title(figure: Figure) -> String {
    let what = match figure {
        Figure::OneRate => "PACKET_IN at 40,000/s, one tenant",
        Figure::Rates => "PACKET_IN against rate, one tenant",
        Figure::PortStats => "PORT_STATS against rate, one tenant",
        Figure::Tenants => "PACKET_OUT at 60,000/s in total against tenants",
        Figure::Cpu => "CPU at 60,000 PACKET_OUT/s in total",
        Figure::Fairness => "each of 20 tenants, PACKET_OUT at 60,000/s in total",
        Figure::TenantsPacketIn => "PACKET_IN at 40,000/s in total against tenants",
    };
    match figure {
        Figure::TenantsPacketIn => format!("Table 1, row 3: {what}"),
        _ => format!("Figure {figure}: {what}"),
    }
}

fn caption(figure: Figure) -> &'static str {
    match figure {
        Figure::OneRate => {
            "Boxes: quartiles, median, and whiskers from the least to the 99th percentile; dots: means. \
             Dashed: the averages that the paper prints; it gives switch-only twice, once beside each \
             hypervisor."
        }
        Figure::Rates | Figure::PortStats => {
            "Means over runs, with 95 % confidence intervals from three runs on. Dashed: the averages that the paper prints; \
             where it prints only the ends, the line between them is straight."
        }
        Figure::Tenants => {
            "Means over runs, with 95 % confidence intervals from three runs on; AGG and ND are Nagle's algorithm on and off \
             at the controllers. Dashed: the averages that the paper prints; 'FV below' is its 'less than \
             1 ms'."
        }
        Figure::Cpu => {
            "CPU of the hypervisor alone, in percent of one core. Dashed: the paper's '50 % of 1 CPU core \
             with aggregation', for which it names no number of tenants; its other statement, that OVX \
             uses 50 % more with ND, has no absolute value to draw."
        }
        Figure::Fairness => {
            "One dot per tenant: its mean; bars from its lower quartile to its 99th percentile. Published: \
             the two averages that the paper prints, for 3 and 17 tenants; which three is not said."
        }
        Figure::TenantsPacketIn => {
            "The row that Table 1 lists (with switch-only) and no figure of the paper shows. Switch-only, \
             every tenant has a switch of its own."
        }
    }
}

fn draw(figure: Figure, points: &[&Point]) -> Drawing {
    match figure {
        Figure::OneRate => one_rate(figure, points),
        Figure::Rates | Figure::PortStats => {
            lines(figure, points, "rate", "messages per second", ("mean_us", US_TO_MS))
        }
        Figure::Tenants | Figure::TenantsPacketIn => {
            lines(figure, points, "tenants", "tenants", ("mean_us", US_TO_MS))
        }
        Figure::Cpu => lines(figure, points, "tenants", "tenants", ("cpu_percent", 1.0)),
        Figure::Fairness => fairness(figure, points),
    }
}

/// What a legend calls a point's system, without what tells its line from others.
fn name(point: &Point) -> String {
    if point.system == "direct" { "switch-only".to_owned() } else { point.system.clone() }
}

/// The same with AGG or ND: `weir ND`, `OVX AGG, published`.
fn name_with_tcp(point: &Point) -> String {
    let tcp = point.parameters.get("tcp").map(ToString::to_string).unwrap_or_default();
    let name = name(point);
    match name.split_once(", ") {
        Some((system, published)) => format!("{system} {tcp}, {published}"),
        None => format!("{name} {tcp}"),
    }
}

fn one_rate(figure: Figure, points: &[&Point]) -> Drawing {
    let plots: Vec<BoxPlot> = points
        .iter()
        .filter_map(|point| match point.latency.get("latency") {
            Some(latency) if latency.count > 0 => Some(box_of(&name(point), latency)),
            _ => Some(BoxPlot::of_mean(&name(point), point.mean("mean_us")? * US_TO_MS)),
        })
        .collect();
    draw_boxes(&title(figure), "control latency, ms", Scale::Logarithmic, &plots)
}

fn box_of(name: &str, latency: &LatencySummary) -> BoxPlot {
    BoxPlot {
        name: name.to_owned(),
        low: latency.min_us * US_TO_MS,
        q1: latency.p25_us * US_TO_MS,
        median: latency.p50_us * US_TO_MS,
        q3: latency.p75_us * US_TO_MS,
        high: latency.p99_us * US_TO_MS,
        mean: Some(latency.mean_us * US_TO_MS),
    }
}

fn lines(
    figure: Figure,
    points: &[&Point],
    parameter: &str,
    x_label: &str,
    (metric, factor): (&str, f64),
) -> Drawing {
    let several = points.iter().any(|point| point.parameters.get("tcp") == Some(&"ND".into()));
    let mut lines: BTreeMap<(bool, String), Line> = BTreeMap::new();
    for point in points {
        let Some(&Scalar::Number(x)) = point.parameters.get(parameter) else { continue };
        let Some(found) = point.metrics.get(metric) else { continue };
        let Some(mean) = found.mean else { continue };
        let name = if several { name_with_tcp(point) } else { name(point) };
        let dashed = is_published(point);
        let line = lines.entry((dashed, name.clone())).or_insert_with(|| Line {
            name,
            dashed,
            ..Line::default()
        });
        let at = line.points.partition_point(|point| point.0 < x);
        line.points.insert(at, (x, mean * factor));
        // Two runs have an interval that says nothing: Student's t is 12.7 there.
        let half = found.ci95.filter(|_| found.samples.len() > 2).unwrap_or(0.0);
        line.errors.insert(at, half * factor);
    }
    let latency = metric == "mean_us";
    Lines {
        title: title(figure),
        x_label: x_label.to_owned(),
        y_label: if latency { MS } else { "CPU, % of one core" }.to_owned(),
        y_scale: if latency { Scale::Logarithmic } else { Scale::Linear },
        lines: lines.into_values().collect(),
        ..Lines::default()
    }
    .draw()
}

fn fairness(figure: Figure, points: &[&Point]) -> Drawing {
    let group = |point: &&Point| {
        let spread = |latency: &LatencySummary| {
            let middle = latency.mean_us * US_TO_MS;
            let bar = [latency.p25_us, latency.p99_us].map(|us| us * US_TO_MS);
            let [low, high] = if latency.count == 0 { [middle, middle] } else { bar };
            Spread { low, middle, high }
        };
        let values = point.tenants.iter().map(|tenant| spread(&tenant.latency)).collect();
        (name_with_tcp(point), values)
    };
    let groups: Vec<_> = points.iter().map(group).collect();
    draw_spreads(&title(figure), "control latency, ms", Scale::Logarithmic, &groups)
}

#[cfg(test)]
mod tests {
    use super::super::published;
    use super::*;
    use report::{Better, Histogram, Metric, Precision, TenantRow};

    /// A measured point wherever Table 1 has a run.
    fn measured() -> Vec<Point> {
        let mut histogram = Histogram::new(Precision::Fine);
        (1..100).for_each(|us| histogram.record(us * 1000));
        let mut points = Vec::new();
        for row in &super::super::TABLE_1 {
            for &tenants in row.tenants {
                for &rate in row.rates {
                    for &nodelay in row.nodelay {
                        let place: [(&str, Scalar); 4] = [
                            ("message", row.message.name().into()),
                            ("rate", rate.into()),
                            ("tenants", tenants.into()),
                            ("tcp", if nodelay { "ND" } else { "AGG" }.into()),
                        ];
                        let mut point = Point::new("direct", place);
                        for metric in ["mean_us", "cpu_percent"] {
                            let metric_of = Metric::new("", Better::Lower, vec![40.0, 60.0]);
                            point.metrics.insert(metric.into(), metric_of);
                        }
                        point.latency.insert("latency".into(), histogram.summary());
                        let row =
                            TenantRow { latency: histogram.summary(), ..TenantRow::default() };
                        point.tenants = vec![row; tenants];
                        points.push(point);
                    }
                }
            }
        }
        points
    }

    #[test]
    fn every_figure_shows_what_is_measured_and_what_is_published() {
        let mut points = measured();
        points.extend(published::points());
        let extras = extras(&points, &Figure::ALL, "QUICK LOOK");
        assert_eq!(extras.figures.len(), 7);
        for (figure, (heading, table)) in extras.figures.iter().zip(&extras.tables) {
            let svg = figure.drawing.svg();
            assert!(svg.contains("switch-only") && svg.contains("QUICK LOOK"), "{}", figure.name);
            assert!(heading.contains("published"));
            // The paper prints nothing for the row that it does not draw.
            let published = figure.name != "table1";
            assert_eq!(svg.contains("published</text>"), published, "{}", figure.name);
            assert_eq!(table.to_string().contains("published"), published, "{}", figure.name);
        }
        let dots = |name: &str| {
            let figure = extras.figures.iter().find(|figure| figure.name == name).unwrap();
            figure.drawing.svg().matches("<circle").count()
        };
        // 20 tenants AGG and ND, and the paper's 20.
        assert_eq!(dots("6"), 60);
        // One box and four published means.
        assert_eq!(dots("3a"), 5);
        assert_eq!(dots("3b"), 4 + 4 + 2);
    }

    #[test]
    fn nothing_measured_is_no_panic() {
        let extras = extras(&[], &[Figure::Cpu, Figure::Fairness, Figure::OneRate], "");
        assert_eq!(extras.figures.len(), 3);
    }
}
