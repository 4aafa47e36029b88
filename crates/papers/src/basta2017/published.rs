//! The published values of the paper. The paper gives numbers only in its text, as averages; its figures have no
//! readable numbers.

use crate::published::published;
use bench::Kind;
use report::{LatencySummary, Point, Scalar, TenantRow};

/// An average of section 3 of the paper.
struct Value {
    system: &'static str,
    message: Kind,
    rate: f64,
    tenants: usize,
    tcp: &'static str,
    ms: f64,
}

const fn one(system: &'static str, message: Kind, rate: f64, ms: f64) -> Value {
    Value { system, message, rate, tenants: 1, tcp: "AGG", ms }
}

const fn many(system: &'static str, tenants: usize, tcp: &'static str, ms: f64) -> Value {
    Value { system, message: Kind::PacketOut, rate: 60_000.0, tenants, tcp, ms }
}

const LATENCY: [Value; 17] = [
    // Section 3.1: "FV shows an average of 1 ms compared to 0.1 ms with the switch-only. OVX adds even more latency
    // overhead with 3 ms compared to an 0.3 with switch-only."
    one("switch-only beside FV", Kind::PacketIn, 40_000.0, 0.1),
    one("switch-only beside OVX", Kind::PacketIn, 40_000.0, 0.3),
    // "an average of 1 ms control latency for all evaluated rates"
    one("FV", Kind::PacketIn, 10_000.0, 1.0),
    one("FV", Kind::PacketIn, 20_000.0, 1.0),
    one("FV", Kind::PacketIn, 30_000.0, 1.0),
    one("FV", Kind::PacketIn, 40_000.0, 1.0),
    // "an average of 1 ms for 10K up to an average of 3 ms for 40k"
    one("OVX", Kind::PacketIn, 10_000.0, 1.0),
    one("OVX", Kind::PacketIn, 40_000.0, 3.0),
    // "from an average of 1 ms with 5k up to an average of 7 ms at 8k"
    one("FV", Kind::PortStats, 5_000.0, 1.0),
    one("FV", Kind::PortStats, 8_000.0, 7.0),
    // Section 3.2: "an average 6 ms compared to 3 ms only at 2 tenants, with OVX-AGG"
    many("OVX", 2, "AGG", 3.0),
    many("OVX", 20, "AGG", 6.0),
    // "on average, less than 1 ms, independent of the number of tenants": the figure shows the upper bound.
    many("FV, below", 2, "ND", 1.0),
    many("FV, below", 20, "ND", 1.0),
    // "while OVX results in 3 ms for all tenants"
    many("OVX", 2, "ND", 3.0),
    many("OVX", 10, "ND", 3.0),
    many("OVX", 20, "ND", 3.0),
];

/// "50% of 1 CPU core with aggregation, in this setting": the paper states no number of tenants.
const FV_AGG_CPU_PERCENT: f64 = 50.0;

/// Figure 6c: "There are 3 out of 20 tenants which experience a control latency with an average of 0.5 ms, while all
/// other tenants experience an average control latency of 6 ms." The paper does not name the three tenants.
const OVX_AGG_TENANTS_MS: [(usize, f64); 2] = [(3, 0.5), (17, 6.0)];

/// All published values of the paper.
pub(super) fn points() -> Vec<Point> {
    let mut points: Vec<Point> = LATENCY
        .iter()
        .map(|value| {
            let place = place(value.message, value.rate, value.tenants, value.tcp);
            published(value.system, place, "mean_us", "µs", value.ms * 1e3)
        })
        .collect();
    for tenants in [2, 20] {
        let place = place(Kind::PacketOut, 60_000.0, tenants, "AGG");
        points.push(published("FV", place, "cpu_percent", "%", FV_AGG_CPU_PERCENT));
    }
    let ovx = points.iter_mut().find(|point| {
        point.system.starts_with("OVX,")
            && point.parameters.get("tenants") == Some(&20_usize.into())
            && point.parameters.get("tcp") == Some(&"AGG".into())
    });
    if let Some(point) = ovx {
        let means = OVX_AGG_TENANTS_MS.iter().flat_map(|&(count, ms)| vec![ms * 1e3; count]);
        point.tenants = means.enumerate().map(|(index, mean_us)| tenant(index, mean_us)).collect();
    }
    points
}

fn tenant(index: usize, mean_us: f64) -> TenantRow {
    let latency = LatencySummary { mean_us, ..LatencySummary::default() };
    TenantRow { tenant: format!("tenant {index}"), latency, ..TenantRow::default() }
}

fn place(
    message: Kind,
    rate: f64,
    tenants: usize,
    tcp: &'static str,
) -> [(&'static str, Scalar); 4] {
    [
        ("message", message.name().into()),
        ("rate", rate.into()),
        ("tenants", tenants.into()),
        ("tcp", tcp.into()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::is_published;

    #[test]
    fn published_points_are_marked_as_published() {
        let points = points();
        assert_eq!(points.len(), LATENCY.len() + 2);
        assert!(points.iter().all(is_published));
        let per_tenant: Vec<usize> = points.iter().map(|point| point.tenants.len()).collect();
        assert_eq!(per_tenant.iter().filter(|&&count| count == 20).count(), 1);
    }
}
