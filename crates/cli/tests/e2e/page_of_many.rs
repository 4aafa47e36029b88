//! The page of a large network in a real browser: the first view is small, and says how soon it stands. A trace there says how
//! long it takes.
//!
//! Times are printed, and no criterion of the test: `cargo test -p weir-cli --test e2e first_view -- --nocapture`.

use std::fmt::Write as _;
use std::time::Instant;

use serde_json::Value;

use crate::support::browser::Browser;
use crate::support::eventually;
use crate::support::puppet::Switch;
use crate::support::requirements::{Needs, needs};
use crate::support::weir::Weir;

const SWITCHES: u64 = 100;
const TENANTS: u32 = 20;
const PORTS: &[u16] = &[1, 2, 3, 4, 5];
/// What a browser may be sent until the first view stands.
const BYTES: u64 = 300_000;

#[test]
fn the_first_view_of_a_hundred_switches_is_small() {
    needs!(the_first_view_of_a_hundred_switches_is_small: Needs::Program("chromium"),
        Needs::Program("chromedriver"));
    let weir = Weir::serve(&(topology() + &tenants()));
    let switches: Vec<Switch> =
        (1..=SWITCHES).map(|dpid| Switch::connect(weir.openflow, dpid, PORTS)).collect();
    weir.wait_for_switches(SWITCHES as u32);
    let browser = Browser::start();
    browser.resize(1440, 900);
    browser.go("about:blank");
    browser.asked();

    let since = Instant::now();
    browser.go(&format!("http://{}/", weir.api));
    // The map is on a canvas that has a size once it is drawn.
    let stands = "return [...document.querySelectorAll('.tile')].some((it) => it.innerText.includes('100')) \
                  && (document.querySelector('.canvas canvas')?.width ?? 0) > 0";
    eventually("the first view stands", || browser.run(stands) == Value::Bool(true));
    let took = since.elapsed();
    let bytes: u64 = browser.asked().iter().map(|it| it.bytes).sum();
    println!(
        "{SWITCHES} switches, {TENANTS} tenants: the first view after {} ms, with {bytes} bytes",
        took.as_millis()
    );
    assert!(bytes > 50_000 && bytes <= BYTES, "{bytes} bytes");

    let since = Instant::now();
    let flow = "in_port=1,ip,nw_src=10.7.0.1,nw_dst=10.8.0.1";
    let (status, trace) = weir.get(&format!("/api/v1/switches/{SWITCHES:x}/trace/{flow}"));
    let took = since.elapsed();
    assert!(status == 200 && trace.contains("tenant7"), "{status} {trace}");
    println!("a trace takes {} µs", took.as_micros());
    assert_eq!(browser.complaints(), [""; 0]);
    drop(switches);
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

fn tenants() -> String {
    let mut text = String::new();
    for number in 1..=TENANTS {
        let flowspace = format!("match = \"ip,nw_src=10.{number}.0.0/16\"");
        writeln!(
            text,
            "[[tenants]]\nname = \"tenant{number}\"\n[[tenants.flowspace]]\n{flowspace}"
        )
        .expect("a String takes all");
    }
    text
}
