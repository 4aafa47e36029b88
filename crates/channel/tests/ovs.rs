//! Tests with the TLS of Open vSwitch (OpenSSL): its client connects to our listener, and its controller accepts our
//! connection. The tests start both programs on loopback.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

mod common;

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use channel::blocking::Client;
use channel::{Address, CloseReason, Error, Handshake, Listener, Options};
use common::{Pki, has_tool, load};
use openflow::{Version, VersionSet};

const WAIT: Duration = Duration::from_secs(10);

/// The options with the private key, the certificate and the CA for every program of Open vSwitch.
fn identity(pki: &Pki, holder: &str, ca: &str) -> [String; 3] {
    let files = pki.files(holder, ca);
    [
        format!("--private-key={}", files.private_key.display()),
        format!("--certificate={}", files.certificate.display()),
        format!("--ca-cert={}", files.ca_certificate.display()),
    ]
}

/// `ovs-ofctl probe` completes the TLS handshake and the OpenFlow handshake, sends an ECHO_REQUEST, and waits for the
/// reply.
#[test]
fn ovs_ofctl_as_the_tls_client() {
    let test = "ovs::ovs_ofctl_as_the_tls_client";
    if !has_tool(test, "ovs-ofctl") {
        return;
    }
    let Some(pki) = Pki::new(test) else { return };
    let address: Address = "ssl:127.0.0.1:0".parse().unwrap();
    let tls = load(&pki.switch());
    let mut listener = Listener::bind(&address, Some(&tls), Options::default()).unwrap();
    let ofctl = Command::new("ovs-ofctl")
        .args(["-O", "OpenFlow13", "--timeout=10", "probe", &listener.address().to_string()])
        .args(identity(&pki, "ctl", "switchca"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();

    let mut switch = Client::accept(&mut listener, WAIT).unwrap();
    let hello = Handshake::towards_controller(VersionSet::SUPPORTED, 1);
    assert_eq!(switch.shake_hands(hello).unwrap().version, Version::V1_3);
    let mut echo = switch.receive().unwrap();
    assert_eq!(openflow::frame::type_(&echo), Some(2), "an ECHO_REQUEST");
    echo[1] = 3;
    switch.send(&echo).unwrap();
    let output = ofctl.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let end = switch.wait_closed().unwrap();
    assert!(
        matches!(end, CloseReason::PeerClosed | CloseReason::TlsTruncated | CloseReason::Reset(_)),
        "{end}"
    );
}

/// The test acts as a switch: `ovs-testcontroller` on `pssl:` sends a FEATURES_REQUEST.
#[test]
fn ovs_testcontroller_as_the_tls_server() {
    let test = "ovs::ovs_testcontroller_as_the_tls_server";
    if !has_tool(test, "ovs-testcontroller") {
        return;
    }
    let Some(pki) = Pki::new(test) else { return };
    let addr = SocketAddr::from(([127, 0, 0, 1], packet::free_port().unwrap()));
    let controller = Command::new("ovs-testcontroller")
        .current_dir(&pki.dir.0)
        .env("OVS_RUNDIR", &pki.dir.0)
        .arg(format!("pssl:{}:127.0.0.1", addr.port()))
        .args(["--unixctl=none", "--verbose=off"])
        .args(identity(&pki, "ctl", "switchca"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _stopped_at_the_end = Stop(controller);

    let tls = load(&pki.switch());
    let mut switch = connect_when_it_listens(&Address::ssl(addr), &tls);
    let hello = Handshake::towards_controller(VersionSet::SUPPORTED, 1);
    let version = switch.shake_hands(hello).unwrap().version;
    assert_eq!(version, Version::V1_3);
    let request = switch.receive().unwrap();
    assert_eq!(openflow::frame::type_(&request), Some(5), "a FEATURES_REQUEST");

    // OpenSSL refuses a certificate of the wrong CA, as our side does.
    let wrong = load(&pki.files("ctl", "controllerca"));
    let refused = Client::connect(&Address::ssl(addr), Some(&wrong), WAIT)
        .and_then(|mut client| client.wait_closed().map_err(|_| Error::TimedOut { what: "end" }));
    match refused {
        Ok(reason) | Err(Error::Closed(reason)) => {
            assert!(
                matches!(reason, CloseReason::Tls(rustls::Error::AlertReceived(_))),
                "{reason}"
            );
        }
        Err(error) => panic!("{error}"),
    }
}

fn connect_when_it_listens(address: &Address, tls: &channel::Tls) -> Client {
    let deadline = Instant::now() + WAIT;
    loop {
        match Client::connect(address, Some(tls), WAIT) {
            Ok(client) => return client,
            Err(Error::Closed(CloseReason::ConnectFailed(_))) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Ends the process that the test has started, also when the test fails.
struct Stop(Child);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
