//! Tests with a real switch: Open vSwitch in a lab, with data ports on real interfaces. The tests need root.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

use bench::{Controllers, DataPort, Kind, Load, Session, Setup, Topology, Version};
use lab::{Controller, FailMode, Lab, LabGuard, Options, Protocol, Requirements, StateDirectory};
use std::net::SocketAddr;

/// A switch with one controller and two hosts, whose interfaces the test uses.
fn open(name: &str, version: Version) -> (LabGuard, Session, u32) {
    let name = format!("b{}-{name}", std::process::id());
    let protocol = match version {
        Version::V1_0 => Protocol::OPENFLOW10,
        Version::V1_3 => Protocol::OPENFLOW13,
    };
    let options = Options {
        state: StateDirectory::at(std::env::temp_dir().join(format!("weir-{name}"))),
        name: Some(name),
        fail_mode: Some(FailMode::Secure),
        protocols: vec![protocol],
        ephemeral: true,
        ..Options::default()
    };
    let topology = lab::Topology::builtin("single,2").unwrap();
    let mut lab = Lab::up(&topology, &options).unwrap();
    let here = SocketAddr::from((lab.controller_address().unwrap(), 0));
    let controllers = Controllers::bind(1, here).unwrap();
    let address: Controller = format!("tcp:{}", controllers.addresses()[0]).parse().unwrap();
    lab.set_controllers(&[address]).unwrap();
    let lab = LabGuard::new(lab);
    let port = |host: &str, switch_port| DataPort {
        interface: "eth0".to_owned(),
        namespace: Some(lab.namespace(host).unwrap()),
        switch_port,
    };
    let topology =
        Topology::Interfaces { ports: vec![port("h1", 1), port("h2", 2)], switches: 1, dpid: 1 };
    let setup = Setup { version, ..Setup::new(topology, 1) };
    let session = Session::open(setup, &controllers).unwrap();
    let switch = lab.open_vswitch().unwrap().switch_process().unwrap().pid;
    (lab, session, switch.cast_unsigned())
}

#[test]
fn root_open_vswitch_is_measured_over_interfaces_without_loss() {
    if lab::testing::skip(
        "root_open_vswitch_is_measured_over_interfaces_without_loss",
        Requirements::ALL,
    ) {
        return;
    }
    for (name, version) in [("v10", Version::V1_0), ("v13", Version::V1_3)] {
        let (lab, mut session, switch) = open(name, version);
        for kind in [
            Kind::PacketIn,
            Kind::PacketOut,
            Kind::PortStats,
            Kind::Barrier,
            Kind::FlowMod,
            Kind::FlowModPacket,
        ] {
            let outcome = session.run(&Load::constant(kind, 1, 500.0, 400), &[switch]).unwrap();
            let counts = outcome.counts();
            assert_eq!(
                (counts.sent, counts.received),
                (200, 200),
                "{kind:?} {version:?} {counts:?}"
            );
            assert!(outcome.faults.is_empty(), "{kind:?}: {:?}", outcome.faults.sentences());
            // The kernel's times of arrival and the generator's times have one scale: no packet arrives before it is
            // sent, or half a minute later.
            let (least, most) =
                (outcome.latency().percentile(0.0), outcome.latency().percentile(100.0));
            assert!(least > Some(1_000) && most < Some(30_000_000_000), "{least:?} {most:?}");
            assert_eq!(outcome.usage.len(), 1);
        }
        drop(session);
        lab.down().unwrap();
    }
}

#[test]
fn the_error_for_a_missing_interface_names_the_interface() {
    let port = DataPort { interface: "no-such".into(), namespace: None, switch_port: 1 };
    let topology = Topology::Interfaces { ports: vec![port], switches: 1, dpid: 1 };
    let controllers = Controllers::bind(1, SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let error = Session::open(Setup::new(topology, 1), &controllers).unwrap_err();
    assert!(error.to_string().contains("no-such"), "{error}");
}
