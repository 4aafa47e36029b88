//! Draws the paper's figures from points: measured points as lines and boxes, published points
//! dashed.

use super::table::Figure;
use crate::published::{is_published, side_by_side};
use bench::Kind;
use report::figure::{Drawing, Line, Lines, Mark, Marks, Scale, Shape};
use report::{Extras, LatencySummary, Point, Scalar};
use std::collections::BTreeMap;

const MS: &str = "mean control latency, ms";
/// The factor from the results' µs to ms.
const US_TO_MS: f64 = 1e-3;

/// The wanted figures, each figure with `note`, and the table of all values.
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

/// Whether a figure shows a point.
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
            "Boxes: quartiles, median, and whiskers from the least to the 99th percentile, over all runs; dots: means. \
             Dashed: the averages that the paper prints."
        }
        Figure::Tenants => {
            "Means over runs, with 95 % confidence intervals from three runs on; AGG and ND are Nagle's algorithm on and off \
             at the controllers. Dashed: the averages that the paper prints; 'FV, below' is its 'less than \
             1 ms'."
        }
        Figure::Cpu => {
            "CPU of the hypervisor alone, in percent of one core. Dashed: the paper's '50 % of 1 CPU core \
             with aggregation', for which it names no number of tenants; its other statement, that OVX \
             uses 50 % more with ND, has no absolute value to draw."
        }
        Figure::Fairness => {
            "One box per tenant: quartiles, median, and whiskers from the least to the 99th percentile; dots: means. Published: \
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
        Figure::OneRate => boxes(figure, points, None),
        Figure::Rates | Figure::PortStats => boxes(figure, points, Some("rate")),
        Figure::Tenants | Figure::TenantsPacketIn => lines(figure, points, "mean_us", US_TO_MS),
        Figure::Cpu => lines(figure, points, "cpu_percent", 1.0),
        Figure::Fairness => fairness(figure, points),
    }
}

/// The name of a point's system in a legend, without the parts that distinguish its line from other
/// lines.
fn name(point: &Point) -> String {
    if point.system == "direct" { "switch-only".to_owned() } else { point.system.clone() }
}

/// The TCP mode: AGG or ND.
fn tcp(point: &Point) -> String {
    point.parameters.get("tcp").map(ToString::to_string).unwrap_or_default()
}

/// Draws latency as in the paper: a box for each system, at each value of a parameter.
fn boxes(figure: Figure, points: &[&Point], parameter: Option<&str>) -> Drawing {
    let mark = |point: &&Point| {
        let shape = match point.latency.get("latency") {
            Some(latency) if latency.count > 0 => shape_of(latency),
            _ => Shape { dot: Some(point.mean("mean_us")? * US_TO_MS), ..Shape::default() },
        };
        let name = name(point);
        let category = match parameter {
            Some(parameter) => point.parameters.get(parameter)?.to_string(),
            None => name.clone(),
        };
        let (system, published) = name.split_once(", ").unwrap_or((&name, ""));
        let system = system.to_owned();
        let variant = if published.is_empty() { tcp(point) } else { published.to_owned() };
        Some(Mark { category, system, variant, panel: String::new(), shape })
    };
    let mut marks: Vec<Mark> = points.iter().filter_map(mark).collect();
    if parameter.is_some() {
        // The marks are in the order of the values, and measured marks come before published marks.
        let number = |mark: &Mark| mark.category.replace(',', "").parse::<f64>().unwrap_or(0.0);
        marks.sort_by(|a, b| {
            let published = |mark: &Mark| mark.variant.contains("published");
            number(a).total_cmp(&number(b)).then(published(a).cmp(&published(b)))
        });
    }
    draw_marks(figure, parameter.map_or("", |_| "messages per second"), marks)
}

fn draw_marks(figure: Figure, category_label: &str, marks: Vec<Mark>) -> Drawing {
    Marks {
        title: title(figure),
        value_label: "control latency, ms".to_owned(),
        category_label: category_label.to_owned(),
        scale: Scale::Logarithmic,
        marks,
    }
    .draw()
}

fn shape_of(latency: &LatencySummary) -> Shape {
    let ms = |us: f64| us * US_TO_MS;
    Shape {
        whiskers: Some((ms(latency.min_us), ms(latency.p99_us))),
        quartiles: Some((ms(latency.p25_us), ms(latency.p50_us), ms(latency.p75_us))),
        dot: Some(ms(latency.mean_us)),
        ..Shape::default()
    }
}

/// Draws a metric against the number of tenants.
fn lines(figure: Figure, points: &[&Point], metric: &str, factor: f64) -> Drawing {
    let several = points.iter().any(|point| point.parameters.get("tcp") == Some(&"ND".into()));
    let mut lines: BTreeMap<(bool, String), Line> = BTreeMap::new();
    for point in points {
        let Some(&Scalar::Number(x)) = point.parameters.get("tenants") else { continue };
        let Some(found) = point.metrics.get(metric) else { continue };
        let Some(mean) = found.mean else { continue };
        let (name, dashed) = (name(point), is_published(point));
        let variant = if several { tcp(point) } else { String::new() };
        let key = (dashed, format!("{name} {variant}"));
        let line = lines.entry(key).or_insert_with(|| Line {
            name,
            panel: variant.clone(),
            variant,
            dashed,
            ..Line::default()
        });
        let at = line.points.partition_point(|point| point.0 < x);
        line.points.insert(at, (x, mean * factor));
        // The interval of two runs has no meaning: Student's t is 12.7 there.
        let half = found.ci95.filter(|_| found.samples.len() > 2).unwrap_or(0.0);
        line.errors.insert(at, half * factor);
    }
    let latency = metric == "mean_us";
    Lines {
        title: title(figure),
        x_label: "tenants".to_owned(),
        y_label: if latency { MS } else { "CPU, % of one core" }.to_owned(),
        y_scale: if latency { Scale::Logarithmic } else { Scale::Linear },
        lines: lines.into_values().collect(),
        ..Lines::default()
    }
    .draw()
}

/// Draws fairness as in the paper: a box for each tenant. Here each system has its own panel.
fn fairness(figure: Figure, points: &[&Point]) -> Drawing {
    let mut marks = Vec::new();
    for point in points {
        let (name, tcp) = (name(point), tcp(point));
        let (system, published) = name.split_once(", ").unwrap_or((&name, ""));
        let parts = [system, &tcp, published].into_iter().filter(|part| !part.is_empty());
        let panel = parts.collect::<Vec<_>>().join(", ");
        let variant = if published.is_empty() { tcp } else { format!("{tcp}, {published}") };
        for (index, tenant) in point.tenants.iter().enumerate() {
            let shape = match tenant.latency.count {
                0 => Shape { dot: Some(tenant.latency.mean_us * US_TO_MS), ..Shape::default() },
                _ => shape_of(&tenant.latency),
            };
            let (system, variant) = (system.to_owned(), variant.clone());
            let (category, panel) = ((index + 1).to_string(), panel.clone());
            marks.push(Mark { category, system, variant, panel, shape });
        }
    }
    draw_marks(figure, "tenant", marks)
}

#[cfg(test)]
mod tests {
    use super::super::published;
    use super::*;
    use report::{Better, Histogram, Metric, Precision, TenantRow};

    /// One measured point for every run of Table 1.
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
    fn each_figure_shows_measured_and_published_values() {
        let mut points = measured();
        points.extend(published::points());
        let extras = extras(&points, &Figure::ALL, "QUICK LOOK");
        assert_eq!(extras.figures.len(), 7);
        for (figure, (heading, table)) in extras.figures.iter().zip(&extras.tables) {
            let svg = figure.drawing.svg();
            assert!(svg.contains("switch-only") && svg.contains("QUICK LOOK"), "{}", figure.name);
            assert!(heading.contains("published"));
            // The paper prints no values for the row without a figure.
            let published = figure.name != "table1";
            assert_eq!(figure.drawing.csv().contains("published"), published, "{}", figure.name);
            assert_eq!(table.to_string().contains("published"), published, "{}", figure.name);
        }
        let count = |name: &str, part: &str| {
            let figure = extras.figures.iter().find(|figure| figure.name == name).unwrap();
            figure.drawing.svg().matches(part).count()
        };
        // There are 20 tenants with AGG, 20 tenants with ND, and the paper's 20 tenants; measured
        // tenants are boxes.
        assert_eq!(count("6", "<circle"), 60);
        assert_eq!(count("6", "<rect"), 40 + 1);
        // There are one box and four published means.
        assert_eq!((count("3a", "<circle"), count("3a", "<rect")), (5, 1 + 1));
        // There are four rates with one box each, and published means at the first and the last
        // rate.
        assert_eq!((count("3b", "<circle"), count("3b", "<rect")), (4 + 4 + 2, 4 + 1));
    }

    #[test]
    fn figures_without_measured_values_do_not_panic() {
        let extras = extras(&[], &[Figure::Cpu, Figure::Fairness, Figure::OneRate], "");
        assert_eq!(extras.figures.len(), 3);
    }
}
