//! Tests of the web page and of traces in a large network: 100 switches, 20 tenants with a controller each, 2,000
//! connections, and entries. The first view in a real browser loads few bytes. Traces of a full table run while Weir
//! forwards PACKET_INs.
//!
//! The test prints times, and does not judge times: `cargo test -p weir-cli --test e2e first_view -- --nocapture`. With
//! `WEIR_TEST_PROGRAM=target/release/weir` the times are those of a release build.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use bench::arrivals::Arrivals;
use bench::{Controllers, Kind, Load, Session, Setup, Stream, Topology};

use crate::support::browser::Browser;
use crate::support::eventually;
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, ERROR, FEATURES_REPLY, FEATURES_REQUEST, FLOW_MOD,
    Message, Peer,
};
use crate::support::weir::{Weir, program};

const SWITCHES: u32 = 100;
const TENANTS: usize = 20;
/// The number of the last tenant, whose controller fills its table on the first switch. The load generator has the
/// controllers of all other tenants.
const FULL: usize = TENANTS;
const OTHERS: usize = TENANTS - 1;
const PORTS: usize = 5;
/// Entries of the full table.
const ENTRIES: u16 = 10_000;
/// Tenants with entries on all switches, and the number of entries of each of these tenants on each switch.
const FILLED: usize = 5;
const EACH: u64 = 100;
/// PACKET_INs per second of all other tenants together, and the duration of this load.
const PACKET_INS: f64 = 10_000.0;
const LOAD_MS: u64 = 10_000;
/// The flow of the traces. All entries of the full table match this flow.
const FLOW: &str = "in_port=1,ip,nw_src=10.20.0.1,nw_dst=10.99.0.1";
/// Bytes that a browser may receive until the first view is complete.
const BYTES: u64 = 300_000;
/// Bytes for each further second: an event has the new values of all switches, about 26 kB.
const BYTES_PER_SECOND: u64 = 30_000;
const VIEWS: usize = 3;

#[test]
fn the_first_view_of_the_web_page_with_100_switches_loads_few_bytes() {
    needs!(the_first_view_of_the_web_page_with_100_switches_loads_few_bytes: Needs::Program("chromium"),
        Needs::Program("chromedriver"));
    let controllers = Controllers::bind(OTHERS, (Ipv4Addr::LOCALHOST, 0).into()).expect("ports");
    let full = Controller::listen();
    let weir = Weir::serve(&(topology() + &tenants(&controllers, &full)));
    let mut session = connect(&weir, &controllers);
    weir.wait_for_switches(SWITCHES);
    let first = fill_table(&full);
    let others = fill(&mut session);
    eventually("all entries are counted", || entries(&weir) == u64::from(ENTRIES) + others);

    let browser = Browser::start();
    browser.resize(1440, 900);
    let first_views = |what: &str| {
        let views: Vec<(u128, u64)> = (0..VIEWS).map(|_| first_view(&browser, &weir)).collect();
        let words: Vec<String> =
            views.iter().map(|(ms, bytes)| format!("{ms} ms, {bytes} bytes")).collect();
        println!("first view, {what}: {}", words.join("; "));
    };
    let connections = TENANTS * SWITCHES as usize;
    println!(
        "{SWITCHES} switches, {TENANTS} tenants, {connections} connections to controllers, {} entries",
        entries(&weir)
    );
    first_views("idle");
    let load = Load::constant(Kind::PacketIn, OTHERS, PACKET_INS, LOAD_MS);
    let working = thread::spawn(move || (session.run(&load, &[]), session));
    first_views("with 10,000 PACKET_IN/s");
    let mut asked = Times::default();
    let mut whole = Times::default();
    while !working.is_finished() {
        asked.take(|| trace_by_rest(&weir));
        whole.take(|| trace_by_program(&weir));
    }
    let (outcome, _session) = working.join().expect("a load");
    println!("{}", outcome.map(|it| passed(&it)).expect("a load"));
    println!("trace of one of {ENTRIES} entries by REST: {asked}");
    println!("the same by `weir ctl trace`, the whole process: {whole}");
    assert_eq!(first.count(ERROR), 0);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Opens the page with an empty browser cache. Returns the time in ms and the received bytes.
fn first_view(browser: &Browser, weir: &Weir) -> (u128, u64) {
    browser.go("about:blank");
    browser.forget();
    browser.asked();
    let since = Instant::now();
    browser.go(&format!("http://{}/", weir.api));
    // The canvas of the map has a size after the map is drawn.
    let stands = "return [...document.querySelectorAll('.tile')].map((it) => it.innerText.replace(/\\s+/g, ' ')).join('|') \
                  + ((document.querySelector('.canvas canvas')?.width ?? 0) > 0 ? '|drawn' : '')";
    eventually("the first view stands", || {
        let seen = browser.run(stands);
        let seen = seen.as_str().unwrap_or_default();
        ["Switches 100|", "Tenants 20|", "Controllers 2000 of 2000|", "|drawn"]
            .iter()
            .all(|it| seen.contains(it))
    });
    let took = since.elapsed();
    let bytes: u64 = browser.asked().iter().map(|it| it.bytes).sum();
    let most = BYTES + BYTES_PER_SECOND * since.elapsed().as_secs();
    assert!(bytes > 50_000 && bytes <= most, "{bytes} bytes in {took:?}");
    (took.as_millis(), bytes)
}

fn trace_by_rest(weir: &Weir) {
    let path = format!("/api/v1/tenants/tenant{FULL}/switches/1/trace/{FLOW}");
    let (status, trace) = weir.get(&path);
    assert!(status == 200 && trace.contains("output:2"), "{status} {trace}");
}

fn trace_by_program(weir: &Weir) {
    let (api, tenant) = (weir.api.to_string(), format!("tenant{FULL}"));
    let mut command = Command::new(program());
    command.args(["ctl", "--api", &api, "trace", &tenant, "1", FLOW]);
    let ended = command.output().expect("weir ctl");
    let trace = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && trace.contains("output:2"), "{ended:?}");
}

/// The durations of a repeated action.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn take(&mut self, work: impl FnOnce()) {
        let since = Instant::now();
        work();
        self.0.push(since.elapsed());
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut times = self.0.clone();
        times.sort_unstable();
        let of = |percent: usize| {
            let at = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        let [p50, p99, max] = [50, 99, 100].map(of);
        write!(f, "p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.1} ms of {}", times.len())
    }
}

/// Describes how many PACKET_INs passed, and with which latency.
fn passed(outcome: &bench::Outcome) -> String {
    let (counts, latency) = (outcome.counts(), outcome.latency());
    let [p50, p99] = [50.0, 99.0].map(|it| latency.percentile(it).unwrap_or(0) / 1_000);
    format!("{} of {} PACKET_INs passed, p50 {p50} µs, p99 {p99} µs", counts.received, counts.sent)
}

/// Connects all switches, and all controllers except the controller that fills its table.
fn connect(weir: &Weir, controllers: &Controllers) -> Session {
    let topology = Topology::Shared { switch_address: weir.openflow, switches: SWITCHES as usize };
    let mut setup = Setup::new(topology, OTHERS);
    setup.switch.ports = PORTS;
    setup.handshake_ms = 60_000;
    Session::open(setup, controllers).expect("all switches and controllers are connected")
}

/// Fills the last tenant's table on the first switch. All entries overlap, and each priority has two entries.
fn fill_table(controller: &Controller) -> Peer {
    let has_dpid_1 = |peer: &Peer| {
        peer.send(&Message::new(FEATURES_REQUEST, 0xfea, &[]));
        peer.expect_reply(FEATURES_REPLY, 0xfea).body[..8] == 1u64.to_be_bytes()
    };
    let mut peers = (0..SWITCHES as usize).map(|nth| controller.connection(nth));
    let peer = peers.find(has_dpid_1).expect("the first switch");
    for number in 0..ENTRIES {
        peer.send(&Message::new(FLOW_MOD, u32::from(number) + 1, &entry(number)));
    }
    peer.send(&Message::new(BARRIER_REQUEST, 0xba, &[]));
    peer.expect_reply(BARRIER_REPLY, 0xba);
    assert_eq!(peer.count(ERROR), 0);
    peer
}

/// Returns the body of a FLOW_MOD (OpenFlow 1.0 section 5.3.3) whose entry matches [`FLOW`], with one of 25 masks of
/// the destination, and with or without the ingress port.
fn entry(number: u16) -> Vec<u8> {
    let wild_bits = u32::from(number % 25);
    let destination = u32::from(Ipv4Addr::new(10, 99, 0, 1)) & (u32::MAX << wild_bits);
    // All fields are wildcards except the Ethernet type, the source network (16 bits) and the destination network.
    let mut wildcards: u32 = 0x003f_ffff & !(1 << 4) & !(0x3f << 8) & !(0x3f << 14);
    wildcards |= 16 << 8 | wild_bits << 14;
    // The two entries of a priority differ by the ingress port.
    let has_port = number % 2 == 1;
    wildcards &= !u32::from(has_port);
    let mut body = wildcards.to_be_bytes().to_vec();
    body.extend(u16::from(has_port).to_be_bytes());
    body.resize(22, 0);
    body.extend([0x08, 0x00, 0, 0, 0, 0, 10, 20, 0, 0]);
    body.extend(destination.to_be_bytes());
    body.resize(40, 0);
    body.extend(u64::from(number).to_be_bytes());
    // ADD, no time-outs, a priority from 1 on, no buffer, no flags; OUTPUT to port 2.
    body.extend([0; 6]);
    body.extend((1 + number / 2).to_be_bytes());
    body.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
    body.extend([0, 0, 0, 8, 0, 2, 0, 0]);
    body
}

/// Adds the entries of the first tenants, in turn on all switches. Returns the number of entries.
fn fill(session: &mut Session) -> u64 {
    const SECONDS: u64 = 5;
    let rate = (EACH * u64::from(SWITCHES) / SECONDS) as f64;
    let stream = |tenant| Stream::new(tenant, Kind::FlowMod, Arrivals::Constant { rate });
    let load =
        Load { drain_ms: 60_000, ..Load::new((0..FILLED).map(stream).collect(), SECONDS * 1_000) };
    let counts = session.run(&load, &[]).expect("a load").counts();
    assert_eq!((counts.received, counts.refused), (counts.sent, 0), "{counts:?}");
    counts.sent
}

/// Returns the number of entries of all tenants.
fn entries(weir: &Weir) -> u64 {
    weir.metric("weir_flows", &[]) as u64
}

/// A ring, and chords across it: 200 links.
fn topology() -> String {
    let mut text = "[topology]\nbandwidth = \"1Gbit\"\n".to_owned();
    for dpid in 1..=SWITCHES {
        for (steps, port, other) in [(1, 1, 2), (10, 3, 4)] {
            let to = (dpid + steps - 1) % SWITCHES + 1;
            let link = format!("between = [\"{dpid} port {port}\", \"{to} port {other}\"]");
            writeln!(text, "[[topology.links]]\n{link}").expect("a String takes all");
        }
    }
    text
}

fn tenants(controllers: &Controllers, full: &Controller) -> String {
    let addresses = controllers.addresses().iter().chain([&full.address]);
    let mut text = String::new();
    for (number, address) in (1..=TENANTS).zip(addresses) {
        let flowspace = format!("match = \"ip,nw_src=10.{number}.0.0/16\"");
        writeln!(
            text,
            "[[tenants]]\nname = \"tenant{number}\"\ncontrollers = [\"tcp:{address}\"]\n\
             [[tenants.flowspace]]\n{flowspace}"
        )
        .expect("a String takes all");
    }
    text
}
