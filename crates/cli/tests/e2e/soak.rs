//! Tests of Weir under a long load in a short form: changes of rules, packets, statistics, reloads, connections that
//! end and begin again, and REST requests. Memory and descriptors do not grow, each barrier is answered, and the log
//! has no fault.
//!
//! `scripts/soak` runs the load for 25 minutes. The test runs the load for some seconds.

use std::env;
use std::time::{Duration, Instant};

use crate::slices::by_port;
use crate::support::network::{Network, V10};
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{
    BARRIER_REPLY, BARRIER_REQUEST, Controller, FEATURES_REPLY, FEATURES_REQUEST, FLOW_MOD,
    Message, PACKET_OUT, Peer, STATS_REPLY, STATS_REQUEST, add_flow, frame, packet_out,
};
use crate::support::weir::Weir;
use fastrand::Rng;

/// Rules of each tenant, at most.
const RULES: u64 = 2_000;
/// Bytes that Weir may use more than at the first measurement.
const GROWTH: u64 = 48 << 20;

struct Tenant {
    controller: Controller,
    ports: [u16; 2],
    peer: Peer,
    connections: usize,
}

impl Tenant {
    /// Sends a hundred FLOW_MODs and PACKET_OUTs, a STATS_REQUEST and a BARRIER_REQUEST.
    fn step(&mut self, dice: &mut Rng, xid: u32) {
        for _ in 0..100 {
            let priority = 1 + dice.u64(..RULES) as u16;
            let mut body = add_flow(self.ports[0], self.ports[1], priority, u64::from(xid));
            body[49] = [0, 0, 2, 4][dice.u64(..4) as usize]; // ADD, MODIFY_STRICT, DELETE_STRICT
            self.peer.send(&Message::new(FLOW_MOD, xid, &body));
            let packet = frame([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
            let body = packet_out(self.ports[0], self.ports[1], &packet);
            self.peer.send(&Message::new(PACKET_OUT, xid, &body));
        }
        // The request is for the aggregate counters of all rules (OpenFlow 1.0 section 5.3.5).
        let mut body = vec![0, 2, 0, 0, 0, 0x3f, 0xff, 0xff];
        body.resize(4 + 40, 0);
        body.extend([0xff, 0, 0xff, 0xff]);
        self.peer.send(&Message::new(STATS_REQUEST, xid, &body));
        self.peer.expect_reply(STATS_REPLY, xid);
        self.peer.send(&Message::new(BARRIER_REQUEST, xid, &[]));
        self.peer.expect_reply(BARRIER_REPLY, xid);
    }

    /// Waits for the next connection that works.
    fn come_back(&mut self) {
        loop {
            self.peer = self.controller.connection(self.connections);
            self.connections += 1;
            self.peer.send(&Message::new(FEATURES_REQUEST, 0xfea, &[]));
            if self.peer.hears_reply(FEATURES_REPLY, 0xfea) {
                return;
            }
        }
    }
}

#[test]
fn ovs_memory_and_descriptors_do_not_grow_under_long_load() {
    needs!(ovs_memory_and_descriptors_do_not_grow_under_long_load: Needs::OpenVSwitch);
    let minutes = env::var("WEIR_SOAK_MINUTES").ok().and_then(|it| it.parse().ok()).unwrap_or(0.15);
    let (began, lasts) = (Instant::now(), Duration::from_secs_f64(minutes * 60.0));
    let network = Network::single(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], V10);
    let controllers = [Controller::listen(), Controller::listen()];
    let ports = [[1, 2], [3, 4]];
    let config = |weight: u64| {
        let [red, blue] =
            [0, 1].map(|at| by_port(["red", "blue"][at], &controllers[at].name(), ports[at]));
        format!("{red}{}", blue.replacen("name =", &format!("weight = {weight}\nname ="), 1))
    };
    let configs = [config(1), config(2)];
    let weir = network.serve(&configs[0]);
    let mut tenants: Vec<Tenant> = controllers
        .into_iter()
        .zip(ports)
        .map(|(controller, ports)| {
            let peer = controller.switch(0);
            Tenant { controller, ports, peer, connections: 1 }
        })
        .collect();
    let mut dice = Rng::with_seed(0x5eed);
    let (mut first, mut printed) = (None, began);
    for step in 0.. {
        for tenant in &mut tenants {
            tenant.step(&mut dice, 10 + step as u32);
        }
        if step % 5 == 1 {
            weir.write_config(&configs[step / 5 % 2]);
            weir.hang_up();
        }
        if step % 5 == 2 {
            for path in ["/metrics", "/metrics?detail=product", "/api/v1/tenants", "/healthz"] {
                assert_eq!(weir.get(path).0, 200, "{path}");
            }
        }
        if step % 5 == 3 {
            network.disconnect();
            assert!(tenants.iter().all(|tenant| tenant.peer.is_closed()));
            network.connect_to(weir.openflow);
            tenants.iter_mut().for_each(Tenant::come_back);
        }
        if step % 5 == 4 {
            tenants[step / 5 % 2].peer.close();
            tenants[step / 5 % 2].come_back();
        }
        let ends = began.elapsed() >= lasts && step >= 20;
        // After ten steps each action has run twice, and the memory is stable.
        if step == 10 || ends || printed.elapsed() >= Duration::from_secs(60) {
            let now = (weir.memory(), weir.descriptors());
            printed = Instant::now();
            println!(
                "{:>5} s, step {step}: {} MB resident, {} descriptors, {} lines of faults in the log",
                began.elapsed().as_secs(),
                now.0 >> 20,
                now.1,
                faults(&weir).len(),
            );
            let first = first.get_or_insert(now);
            assert!(now.0 <= first.0 + GROWTH, "memory grows: {first:?}, now {now:?}");
            assert!(now.1 <= first.1 + 8, "descriptors grow: {first:?}, now {now:?}");
        }
        if ends {
            break;
        }
    }
    assert!(faults(&weir).is_empty(), "{:#?}", faults(&weir));
}

fn faults(weir: &Weir) -> Vec<String> {
    [weir.logged(&["ERROR"]), weir.logged(&["panicked"])].concat()
}
