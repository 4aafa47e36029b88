//! Tests of emulated switches with `ovs-testcontroller`, an independent controller: two hosts ping each other.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stderr, reason = "what is skipped is said loudly")]

mod common;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::path;
use emulate::{HostIndex, Network, Runner, SwitchIndex};
use openflow::{Version, VersionSet};

const SECONDS: Duration = Duration::from_secs(20);

/// The process and the folder of the controller. Both are removed when this value is dropped.
struct TestController {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl TestController {
    /// Returns `None` with a message if the program is missing. In CI a missing program is a failure.
    fn start(version: &str) -> Option<TestController> {
        let folder = std::env::temp_dir()
            .join(format!("weir-testcontroller-{}-{version}", std::process::id()));
        let port = packet::free_port().unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        let process = Command::new("ovs-testcontroller")
            .args(["-O", version, &format!("ptcp:{port}:127.0.0.1"), "--unixctl"])
            .arg(folder.join("ctl"))
            .env("OVS_RUNDIR", &folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match process {
            Ok(process) => Some(TestController { process, folder, port }),
            Err(_) => {
                std::fs::remove_dir_all(&folder).unwrap();
                assert!(std::env::var_os("CI").is_none(), "ovs-testcontroller is missing");
                eprintln!(
                    "SKIPPED ping through ovs-testcontroller: it is not installed \
                     (Debian package openvswitch-testcontroller)"
                );
                None
            }
        }
    }
}

impl Drop for TestController {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Hosts at both ends of a row of three switches ping each other. The switches dial until the controller listens.
fn ping(name: &str, version: Version) {
    let Some(controller) = TestController::start(name) else { return };
    let address = format!("tcp:127.0.0.1:{}", controller.port).parse().unwrap();
    let network = Network::linear(3, |config| config.versions = VersionSet::only(version));
    let running = Runner::new(network).dial_all(address).start().unwrap();
    running.wait_connected(SECONDS).unwrap();
    let (arp, echo) = (path(1, 3).arp_request(), path(1, 3).icmp_echo(false, 1, 1, b"weir"));
    let arp_reply = path(3, 1).arp_reply();
    let echo_reply = path(3, 1).icmp_echo(true, 1, 1, b"weir");
    for (what, request, reply) in [("ARP", arp, arp_reply), ("ping", echo, echo_reply)] {
        // A controller that still configures the switches may lose a packet, so the host repeats the request.
        let has_answer = move |network: &mut Network| {
            network.host(HostIndex(0)).unwrap().received().any(|frame| frame == reply)
        };
        let answered = (0..100).any(|_| {
            let request = request.clone();
            running.call(move |n, now| n.inject(now, HostIndex(0), &request)).unwrap();
            running.wait_for(what, Duration::from_millis(200), has_answer.clone()).is_ok()
        });
        assert!(answered, "{name}: no answer to {what}");
    }
    let network = running.stop().unwrap();
    let middle = network.switch(SwitchIndex(1)).unwrap();
    assert_eq!(middle.version(), Some(version));
    assert!(middle.flow_count() >= 2, "{name}: it learned both directions");
}

#[test]
fn ping_over_openflow_10() {
    ping("OpenFlow10", Version::V1_0);
}

#[test]
fn ping_over_openflow_13() {
    ping("OpenFlow13", Version::V1_3);
}
