//! What viewers of the page cost: the same load with 50 viewers and without.

use super::points::{find, mean_of, ratio, timed};
use crate::beside::Beside;
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::{Setup, Topology};
use report::Point;
use std::net::{Ipv4Addr, SocketAddr};

const SWITCHES: usize = 100;
const TENANTS: usize = 20;
const VIEWERS: usize = 50;
const TOTAL_RATE: f64 = 10_000.0;
/// 2,000 controllers are to be connected.
const HANDSHAKE_MS: u64 = 60_000;

pub(super) fn scene(options: &Options) -> Comparison {
    let topology = Topology::Shared {
        // The system says where its switches connect.
        switch_address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        switches: SWITCHES,
    };
    let case = |viewers: usize| Case {
        system: options.subject.clone(),
        parameters: vec![
            ("viewers", viewers.into()),
            ("switches", SWITCHES.into()),
            ("tenants", TENANTS.into()),
        ],
        setup: Setup {
            tenants: TENANTS,
            topology: topology.clone(),
            handshake_ms: HANDSHAKE_MS,
            ..options.setup.clone()
        },
        load: timed(Load::constant(Kind::PacketIn, TENANTS, TOTAL_RATE, 1), options),
        afterwards: None,
        beside: Some(Beside::Viewers(viewers)),
    };
    let subject = options.subject.name().to_owned();
    let criteria = move |points: &[Point]| {
        let viewers = |count: usize| [("viewers", count.into())];
        let [with, without] = [VIEWERS, 0].map(|count| find(points, &subject, &viewers(count)));
        let of = |count, metric| mean_of(points, &subject, &viewers(count), metric);
        let cpu = |count| of(count, "cpu_percent");
        let more = cpu(VIEWERS).zip(cpu(0)).map(|(with, without)| with - without);
        vec![
            Criterion::at_most(
                "p50 with viewers over without",
                ratio(with, without, "p50_us"),
                1.05,
            ),
            Criterion::at_most(
                "p99 with viewers over without",
                ratio(with, without, "p99_us"),
                1.05,
            ),
            Criterion::at_most("CPU with viewers − without, % of a core", more, 5.0),
            Criterion::at_most(
                "bytes/s to a viewer",
                of(VIEWERS, "bytes_per_viewer_per_s"),
                50_000.0,
            ),
            Criterion::at_least("viewers served", of(VIEWERS, "viewers_served"), VIEWERS as f64),
        ]
    };
    let cases = [0, VIEWERS].map(case).to_vec();
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}
