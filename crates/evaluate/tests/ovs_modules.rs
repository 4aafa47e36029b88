//! Experiments on a real Open vSwitch in a lab, over real interfaces. Needs root.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod common;

use std::time::Duration;

use channel::{Address, Listener};
use common::{VERSIONS, codes, never};
use evaluate::modules::{Change, Delete, Insert};
use evaluate::{
    Case, Common, DataPort, Experiment, Gauges, Outcome, Real, RealOptions, RunOptions,
    SwitchAddress, run,
};
use lab::{FailMode, Lab, LabGuard, Options, Protocol, Requirements, StateDirectory, Topology};
use openflow::{Version, VersionSet};

/// A switch with three hosts whose interfaces are ours.
fn open(name: &str, version: Version) -> (LabGuard, Real) {
    let name = format!("e{}-{name}", std::process::id());
    let protocol = match version {
        Version::V1_0 => Protocol::OPENFLOW10,
        _ => Protocol::OPENFLOW13,
    };
    let options = Options {
        state: StateDirectory::at(std::env::temp_dir().join(format!("weir-{name}"))),
        name: Some(name),
        fail_mode: Some(FailMode::Secure),
        protocols: vec![protocol],
        ephemeral: true,
        ..Options::default()
    };
    let mut lab = Lab::up(&Topology::builtin("single,3").unwrap(), &options).unwrap();
    let here = Address::tcp((lab.controller_address().unwrap(), 0).into());
    let listener = Listener::bind(&here, None, channel::Options::default()).unwrap();
    lab.set_controllers(&[listener.address().to_string().parse().unwrap()]).unwrap();
    let lab = LabGuard::new(lab);
    let data = |host: &str, switch_port| DataPort {
        interface: "eth0".to_owned(),
        namespace: Some(lab.namespace(host).unwrap()),
        switch_port,
    };
    let process = lab.open_vswitch().unwrap().switch_process().unwrap().pid;
    let real = Real::open(RealOptions {
        name: "ovs".to_owned(),
        address: SwitchAddress::Listening(listener),
        tls: None,
        versions: VersionSet::only(version),
        ports: vec![data("h1", 1), data("h2", 2), data("h3", 3)],
        patience: Duration::from_secs(10),
        gauges: Gauges { process: Some(process.cast_unsigned()) },
        trace: None,
    })
    .unwrap();
    (lab, real)
}

fn common(repetitions: u32) -> Common {
    Common { repetitions, ..Common::default() }
}

fn measure(real: &mut Real, experiment: &dyn Experiment) -> Outcome {
    let outcome = run(real, experiment.module().as_mut(), &RunOptions::new(never())).unwrap();
    let name = experiment.name();
    assert_eq!(outcome.partial, None, "{name}: {:?}", outcome.record.findings());
    assert!(!codes(&outcome).contains(&"tables-changed"), "{name}");
    outcome
}

#[test]
fn ovs_updates() {
    if lab::testing::skip("ovs_updates", Requirements::ALL) {
        return;
    }
    for (name, version) in ["u10", "u13"].into_iter().zip(VERSIONS) {
        let (lab, mut real) = open(name, version);
        let insert = Insert { rules: vec![10, 100], ..Insert::new(common(2)) };
        let experiments: [Box<dyn Experiment>; 3] =
            [Box::new(insert.clone()), Box::new(Change(insert.clone())), Box::new(Delete(insert))];
        for experiment in experiments {
            let outcome = measure(&mut real, &*experiment);
            for rules in [10u32, 100] {
                let case = Case::new().with("rules", rules);
                let case = case.with("match", "exact").with("priority", "equal");
                for metric in ["sent_us", "barrier_us", "last_rule_us", "lie_at_most_us"] {
                    let samples = outcome.record.samples(&case, metric);
                    assert_eq!(samples.len(), 2, "{} {metric}", experiment.name());
                }
                assert_eq!(outcome.record.samples(&case, "rules_never_real"), [0.0; 2]);
            }
        }
        drop(real);
        lab.down().unwrap();
    }
}
