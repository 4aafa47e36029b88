//! Tests of emulated switches and controllers over mutual TLS, with certificates of the real `ovs-pki`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod common;
#[path = "../../channel/tests/common/mod.rs"]
mod pki;

use std::time::Duration;

use common::path;
use emulate::controller::{Behaviour, ControllerRunner};
use emulate::{HostIndex, Network, Runner};

const SECONDS: Duration = Duration::from_secs(20);

#[test]
fn a_ping_over_tls() {
    let Some(pki) = pki::Pki::new("a_ping_over_tls") else { return };
    let controller = ControllerRunner::new(Behaviour::LearningSwitch { idle_timeout: 0 })
        .tls(pki::load(&pki.controller()))
        .start("ssl:127.0.0.1:0".parse().unwrap())
        .unwrap();
    let running = Runner::new(Network::linear(2, |config| config.n_buffers = 0))
        .tls(pki::load(&pki.switch()))
        .dial_all(controller.address())
        .start()
        .unwrap();
    controller.wait_for("both switches", SECONDS, |c| c.switches == 2).unwrap();
    let misses = |n: &mut Network| n.switches().all(|(_, switch)| switch.flow_count() == 1);
    running.wait_for("the table-miss entries", SECONDS, misses).unwrap();
    let ping = path(1, 2).icmp_echo(false, 1, 1, &[7; 1000]);
    let reply = path(2, 1).icmp_echo(true, 1, 1, &[7; 1000]);
    running.call(move |n, now| n.inject(now, HostIndex(0), &ping)).unwrap();
    let has_reply = move |n: &mut Network| {
        n.host(HostIndex(0)).is_some_and(|host| host.received().any(|frame| frame == reply))
    };
    running.wait_for("the reply", SECONDS, has_reply).unwrap();
}
