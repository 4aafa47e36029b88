//! Tests of pinned certificates: Weir pins the first certificate of a switch.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Child;

use crate::support::eventually;
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::Switch;
use crate::support::weir::{Weir, run};
use crate::tls::{Site, tls_switch};

const DPID: &str = "00:00:00:00:00:00:00:01";

fn hang_up(mut client: Child) {
    drop(client.stdin.take());
    let _ = client.kill();
    let _ = client.wait();
}

fn impostors(weir: &Weir) -> f64 {
    let labels = ["peer=\"switch\"", "reason=\"impostor\""];
    weir.metric("weir_connections_rejected_total", &labels)
}

#[test]
fn the_first_switch_certificate_is_pinned_and_another_certificate_is_refused() {
    needs!(the_first_switch_certificate_is_pinned_and_another_certificate_is_refused:
        Needs::Program("ovs-pki"), Needs::Program("openssl"));
    let site = Site::new(Ipv4Addr::LOCALHOST.into());
    site.pki.sign("one", "switch");
    site.pki.sign("two", "switch");
    let switches = "[[switches]]\ndpid = \"1\"\ncertificate = \"pin\"\n";
    let (mut weir, pki, encrypted) = site.serve(switches);
    let api = format!("unix:{}", weir.folder.join("api.sock"));
    let ctl = |arguments: &[&str]| run(&[&["ctl", "--api", &api, "pin"], arguments].concat());
    let connect = |holder| tls_switch(encrypted, &pki, holder, 1);

    // A connection without TLS is refused, and no certificate is pinned.
    let plain = Switch::connect(weir.openflow, 1, &[1]);
    assert!(plain.peer.is_closed());
    eventually("a plain connection is refused", || impostors(&weir) >= 1.0);
    assert_eq!(ctl(&["list"]).1.trim(), "there are no pins");

    let first = connect("one");
    weir.wait_for_switches(1);
    let (code, list, said) = ctl(&["list"]);
    assert!(code == Some(0) && list.contains(DPID), "{list}{said}");
    let pinned = list.split_whitespace().last().expect("a fingerprint").to_owned();
    assert!(pinned.starts_with("sha256:"), "{list}");
    hang_up(first);
    weir.wait_for_switches(0);

    // A pin is kept after a restart. Another certificate of the same authority is refused.
    weir.crash();
    weir.restart();
    let other = connect("two");
    eventually("another certificate is refused", || impostors(&weir) >= 1.0);
    let line = weir.expect_log(0, &["WARN", "a switch is turned away", DPID, &pinned, "two"]);
    assert_eq!(line.matches("sha256:").count(), 2, "both fingerprints: {line}");
    hang_up(other);
    let own = connect("one");
    weir.wait_for_switches(1);
    hang_up(own);
    weir.wait_for_switches(0);

    // The operator removes the pin, as for a renewed certificate.
    let (code, said, stderr) = ctl(&["remove", DPID]);
    assert!(code == Some(0) && said.contains(DPID), "{said}{stderr}");
    assert_eq!(ctl(&["remove", "1"]).0, Some(1), "there is none any more");
    let renewed = connect("two");
    weir.wait_for_switches(1);
    let list = ctl(&["list"]).1;
    assert!(list.contains("sha256:") && !list.contains(&pinned), "{list}");
    hang_up(renewed);
    let audit = fs::read_to_string(weir.folder.join("state/audit.jsonl")).expect("the audit log");
    let line = audit.lines().find(|line| line.contains("remove pin")).expect("a line");
    assert!(line.contains(&pinned) && line.contains("\"admin\""), "{line}");
}
