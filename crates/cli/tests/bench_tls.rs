//! Tests of `weir bench` over TLS through Weir, with certificates of `ovs-pki`: TLS to switches, to controllers, and on
//! both sides.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

#[path = "../../channel/tests/common/mod.rs"]
mod pki;

use channel::TlsFiles;
use pki::Pki;
use report::Results;
use std::fs;
use std::process::{Command, Stdio};

/// Returns `KEY,CERT,CA`. The CA file has both authorities, because Weir is a controller to switches and a switch to
/// controllers.
fn identity(pki: &Pki, files: &TlsFiles) -> String {
    let [key, certificate] =
        [&files.private_key, &files.certificate].map(|path| path.display().to_string());
    format!("{key},{certificate},{}", pki.path("both.pem").display())
}

fn check(test: &str, to_switches: bool, to_controllers: bool) {
    let Some(pki) = Pki::new(test) else { return };
    let authorities = [pki.switch(), pki.controller()]
        .map(|files| fs::read(files.ca_certificate).expect("an authority"));
    fs::write(pki.path("both.pem"), authorities.concat()).expect("a bundle");
    let switch = ["--switch-tls".to_owned(), identity(&pki, &pki.switch())];
    let controller = ["--controller-tls".to_owned(), identity(&pki, &pki.controller())];
    let either = |is_wanted: bool, side: Vec<String>| if is_wanted { side } else { Vec::new() };
    let sides = [either(to_switches, switch.into()), either(to_controllers, controller.into())];
    let out = pki.path("out");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["bench", "run", "--system", "weir", "--tenants", "3", "--rate", "1000"])
        .args(["--message", "packet-in,packet-out,echo", "--runs", "1", "--duration", "0.4"])
        .args(sides.concat())
        .arg("--out")
        .arg(&out)
        .stdin(Stdio::null())
        .output()
        .expect("start weir bench");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // A busy machine is reported as a finding, so exit codes 1 and 4 are allowed.
    assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{stderr}");
    let results = Results::read(&out).expect("result.json");
    assert_eq!(results.points.len(), 3);
    for point in &results.points {
        assert_eq!(point.mean("unanswered_percent"), Some(0.0), "{}: {stderr}", point.label());
        assert!(point.mean("sent_per_segment").is_some_and(|count| count > 0.0));
    }
    assert!(results.findings.iter().all(|finding| finding.code != "tls"), "{results:?}");
}

#[test]
fn weir_is_measured_over_tls_to_switches() {
    check("weir_is_measured_over_tls_to_switches", true, false);
}

#[test]
fn weir_is_measured_over_tls_to_controllers() {
    check("weir_is_measured_over_tls_to_controllers", false, true);
}

#[test]
fn weir_is_measured_over_tls_on_both_sides() {
    check("weir_is_measured_over_tls_on_both_sides", true, true);
}
