//! Tests of interfaces in VLANs. The tests need root, and are skipped by name without root.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests, too.

mod common;

use agent::Tagging;
use common::Network;
use lab::{Requirements, Topology};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Two hosts on one wire need neither Open vSwitch nor rates.
const HOSTS: Requirements = Requirements { switches: false, rates: false };

struct Pair(Network);

impl Pair {
    fn up(name: &str) -> Pair {
        let mut topology = Topology::builder();
        topology.host("h1").unwrap().host("h2").unwrap().link("h1", "h2", None).unwrap();
        Pair(Network::new(name, &topology.build().unwrap()))
    }

    fn address(&self, host: &str) -> SocketAddr {
        (self.0.lab.topology().host(host).unwrap().ip, 5001).into()
    }

    fn tag(&self, host: &str, vlan: Option<u16>) -> Option<Tagging> {
        vlan.map(|vlan| self.0.at(host, || Tagging::start("eth0", vlan).unwrap()))
    }

    /// Whether a datagram from h1 arrives at h2.
    fn is_connected(&self) -> bool {
        let (from, to) = (self.address("h1"), self.address("h2"));
        let sender = self.0.at("h1", || UdpSocket::bind(from).unwrap());
        let receiver = self.0.at("h2", || UdpSocket::bind(to).unwrap());
        receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        sender.send_to(b"weir", to).unwrap();
        receiver.recv_from(&mut [0; 16]).is_ok()
    }

    /// Whether a TCP stream of 1 MiB arrives. The stream is longer than the data that the kernel cuts into frames at
    /// once, so the test checks that every frame gets a tag.
    fn carries_a_stream(&self) -> bool {
        let to = self.address("h2");
        let listener = self.0.at("h2", || TcpListener::bind(to).unwrap());
        let mut sender = self.0.at("h1", || TcpStream::connect(to).unwrap());
        let (mut receiver, _) = listener.accept().unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sent = std::thread::spawn(move || sender.write_all(&[7; 1 << 20]).unwrap());
        let mut read = Vec::new();
        let length = receiver.read_to_end(&mut read).unwrap_or(0);
        sent.join().unwrap();
        length == 1 << 20 && read.iter().all(|byte| *byte == 7)
    }

    fn filters(&self, host: &str) -> String {
        self.0.run(host, "tc qdisc show dev eth0")
    }
}

#[test]
fn root_hosts_reach_each_other_only_in_the_same_vlan() {
    if lab::testing::skip("root_hosts_reach_each_other_only_in_the_same_vlan", HOSTS) {
        return;
    }
    let pair = Pair::up("hears");
    for (first, second, hears) in [
        (None, None, true),
        (Some(10), Some(10), true),
        (Some(4094), Some(4094), true),
        (Some(10), Some(20), false),
        (Some(10), None, false),
        (None, Some(10), false),
    ] {
        let held = (pair.tag("h1", first), pair.tag("h2", second));
        assert_eq!(pair.is_connected(), hears, "{first:?} to {second:?}");
        if hears {
            assert!(pair.carries_a_stream(), "{first:?} to {second:?}");
        }
        drop(held);
        assert!(!pair.filters("h1").contains("clsact"), "{}", pair.filters("h1"));
    }
}

#[test]
fn root_existing_filters_stay_and_vlan_tagging_is_refused() {
    if lab::testing::skip("root_existing_filters_stay_and_vlan_tagging_is_refused", HOSTS) {
        return;
    }
    let pair = Pair::up("filters");
    let start = || pair.0.at("h1", || Tagging::start("eth0", 10).map(drop));
    let first = pair.tag("h1", Some(10));
    let refused = start().unwrap_err().to_string();
    assert!(refused.contains("somebody has filters there"), "{refused}");
    assert!(pair.filters("h1").contains("clsact"), "{}", pair.filters("h1"));
    drop(first);
    start().unwrap();
    for (interface, vlan, reason) in [("eth0", 4095, "1 to 4094"), ("eth9", 10, "eth9")] {
        let tagged = pair.0.at("h1", || Tagging::start(interface, vlan).map(drop));
        let refused = tagged.unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
    assert!(!pair.filters("h1").contains("clsact"), "{}", pair.filters("h1"));
}
