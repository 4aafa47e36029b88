//! Tests of the generator over TLS, with certificates of the real `ovs-pki`: every message is accounted for as over
//! plain TCP, and a peer with a certificate of another authority is reported.

#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

#[path = "../../channel/tests/common/mod.rs"]
mod pki;

use bench::arrivals::Arrivals;
use bench::{
    Controllers, Error, Identity, Kind, Load, Outcome, Session, Setup, Stream, TlsSides, Topology,
    Version,
};
use channel::TlsFiles;
use pki::Pki;

fn identity(files: TlsFiles) -> Option<Identity> {
    let TlsFiles { private_key, certificate, ca_certificate } = files;
    Some(Identity { private_key, certificate, ca: ca_certificate })
}

fn sides(pki: &Pki) -> TlsSides {
    TlsSides {
        switches: identity(pki.switch()),
        controllers: identity(pki.controller()),
        system: None,
    }
}

fn open(tls: TlsSides, change: impl FnOnce(&mut Setup)) -> Result<Session, Error> {
    let controllers = Controllers::bind(2, "127.0.0.1:0".parse().unwrap()).unwrap();
    let mut setup = Setup { tls, handshake_ms: 3000, ..Setup::new(Topology::Direct, 2) };
    change(&mut setup);
    Session::open(setup, &controllers)
}

#[track_caller]
fn check_whole(outcome: &Outcome, sent: u64) {
    let counts = outcome.counts();
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults.sentences());
    assert_eq!((counts.sent, counts.received, counts.blocked), (sent, sent, 0), "{counts:?}");
}

#[test]
fn no_message_is_lost_over_tls() {
    let Some(pki) = Pki::new("no_message_is_lost_over_tls") else { return };
    for version in [Version::V1_0, Version::V1_3] {
        for threads in [1, 2] {
            let change = |setup: &mut Setup| (setup.version, setup.threads) = (version, threads);
            let mut session = open(sides(&pki), change).unwrap();
            for kind in [Kind::PacketIn, Kind::PacketOut, Kind::Echo, Kind::FlowMod] {
                let outcome = session.run(&Load::constant(kind, 2, 4000.0, 100), &[]).unwrap();
                check_whole(&outcome, 400);
            }
        }
    }
}

#[test]
fn saturating_loads_over_tls_lose_no_message() {
    let Some(pki) = Pki::new("saturating_loads_over_tls_lose_no_message") else { return };
    let mut session = open(sides(&pki), |setup| setup.threads = 2).unwrap();
    for kind in [Kind::PacketIn, Kind::PacketOut] {
        let load = Load { drain_ms: 20_000, ..Load::saturating(kind, 2, 100) };
        let counts = session.run(&load, &[]).unwrap().counts();
        assert!(counts.sent > 100 && counts.unanswered() == 0, "{counts:?}");
    }
}

#[test]
fn a_slow_switch_over_tls_answers_each_message_of_a_burst() {
    let Some(pki) = Pki::new("a_slow_switch_over_tls_answers_each_message_of_a_burst") else {
        return;
    };
    let slow = |setup: &mut Setup| {
        setup.switch.service_ns = 100_000;
        setup.switch.queue = 4;
    };
    let mut session = open(sides(&pki), slow).unwrap();
    let arrivals = Arrivals::Burst { count: 100, every_us: 50_000.0 };
    let stream = Stream::new(0, Kind::Barrier, arrivals);
    let load = Load { drain_ms: 20_000, ..Load::new(vec![stream], 100) };
    check_whole(&session.run(&load, &[]).unwrap(), 200);
}

#[test]
fn a_certificate_of_another_authority_is_reported() {
    let Some(pki) = Pki::new("a_certificate_of_another_authority_is_reported") else { return };
    let stranger = Pki::new("a_certificate_of_another_authority_is_reported").unwrap();
    let tls = TlsSides { switches: identity(stranger.switch()), ..sides(&pki) };
    let error = open(tls, |setup| setup.handshake_ms = 500).unwrap_err();
    assert!(matches!(error, Error::Handshake { ready: 0, .. }), "{error}");
    assert!(error.to_string().contains("not signed by"), "{error}");
}

#[test]
fn missing_tls_files_and_tls_on_a_single_side_are_errors_before_the_start() {
    let files = Identity {
        private_key: "/no/key".into(),
        certificate: "/no/cert".into(),
        ca: "/no/ca".into(),
    };
    let both = TlsSides { switches: Some(files.clone()), controllers: Some(files), system: None };
    let error = open(both.clone(), |_| {}).unwrap_err().to_string();
    assert!(error.contains("/no/key"), "{error}");
    let one = TlsSides { switches: None, ..both };
    let error = open(one, |_| {}).unwrap_err().to_string();
    assert!(error.contains("both sides or none"), "{error}");
}
