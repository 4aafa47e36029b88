//! The cost of viewers of the page, and the cost of token checks: the same load with 50 viewers, with 250 requests per
//! second that show tokens, and without viewers and requests.

use super::points::{figure_of, find, ratio, timed};
use crate::accounts::Requests;
use crate::beside::Beside;
use crate::comparison::{Case, Comparison, Criterion, Options};
use crate::load::{Kind, Load};
use crate::plan::{Setup, Topology};
use report::{Point, Scalar};
use std::net::{Ipv4Addr, SocketAddr};

const SWITCHES: usize = 100;
const TENANTS: usize = 20;
const VIEWERS: usize = 50;
const TOTAL_RATE: f64 = 10_000.0;
/// Rates that Weir allows to an account, and to an address that shows wrong tokens.
const REQUESTS: Requests = Requests { valid: 200, wrong: 50 };
/// The least number of tokens that are checked per second. Clients send late requests at once, so few requests are
/// missing.
const CHECKED: f64 = 0.98 * (REQUESTS.valid + REQUESTS.wrong) as f64;
/// The limit for a latency with viewers or tokens, over the latency without.
const RATIO: f64 = 1.05;
/// The time for the handshakes of 2,000 controllers.
const HANDSHAKE_MS: u64 = 60_000;

pub(super) fn scene(options: &Options) -> Comparison {
    let topology = Topology::Shared {
        // The system determines the address for its switches.
        switch_address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        switches: SWITCHES,
    };
    let (tenants, handshake_ms) = (TENANTS, HANDSHAKE_MS);
    let setup = Setup { tenants, topology, handshake_ms, ..options.setup.clone() };
    let load = timed(Load::constant(Kind::PacketIn, TENANTS, TOTAL_RATE, 1), options);
    let case = |beside: Beside| {
        let sizes = vec![("switches", SWITCHES.into()), ("tenants", TENANTS.into())];
        let parameters = [parameters(beside), sizes].concat();
        let case = Case::new(&options.subject, parameters, setup.clone(), load.clone());
        Case { beside: Some(beside), ..case }
    };
    let subject = options.subject.name().to_owned();
    let [neither, viewers, tokens] =
        [Beside::Viewers(0), Beside::Viewers(VIEWERS), Beside::Accounts(REQUESTS)];
    let criteria = move |points: &[Point]| {
        let of = |beside, metric| figure_of(points, &subject, &parameters(beside), metric);
        let over = |beside, metric| {
            let [with, without] =
                [beside, neither].map(|beside| find(points, &subject, &parameters(beside)));
            ratio(with, without, metric)
        };
        let cpu = |beside| of(beside, "cpu_percent");
        let more = cpu(viewers).zip(cpu(neither)).map(|(with, without)| with - without);
        vec![
            Criterion::at_most("p50 with viewers over without", over(viewers, "p50_us"), RATIO),
            Criterion::at_most("p99 with viewers over without", over(viewers, "p99_us"), RATIO),
            Criterion::at_most("CPU with viewers − without, % of a core", more, 5.0),
            Criterion::at_most(
                "bytes/s to a viewer",
                of(viewers, "bytes_per_viewer_per_s"),
                50_000.0,
            ),
            Criterion::at_least("viewers served", of(viewers, "viewers_served"), VIEWERS as f64),
            Criterion::at_most("p50 with tokens over without", over(tokens, "p50_us"), RATIO),
            Criterion::at_most("p99 with tokens over without", over(tokens, "p99_us"), RATIO),
            Criterion::at_least("tokens checked/s", of(tokens, "tokens_checked_per_s"), CHECKED),
            Criterion::at_most(
                "requests with tokens answered otherwise",
                of(tokens, "requests_answered_otherwise"),
                0.0,
            ),
        ]
    };
    let cases = [neither, viewers, tokens].map(case).to_vec();
    Comparison { tool: String::new(), cases, criteria: Box::new(criteria), kind: Kind::PacketIn }
}

/// The parameters that distinguish the cases.
fn parameters(beside: Beside) -> Vec<(&'static str, Scalar)> {
    let (viewers, tokens) = match beside {
        Beside::Viewers(count) => (count, 0),
        Beside::Accounts(requests) => (0, requests.valid + requests.wrong),
        Beside::Attack { .. } => (0, 0),
    };
    vec![("viewers", viewers.into()), ("tokens_per_s", f64::from(tokens).into())]
}
