//! Tests of agents with a real Open vSwitch: how TCP and UDP share the bandwidth of one receiver. The tests need root
//! and Open vSwitch.
//!
//! The tests measure shares over seconds, with wide limits. `weir reproduce
//! riggio2013-edge` prints how soon the flows have their shares.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)] // Helpers of tests, too.

mod common;

use agent::edge::{Edge, Settings};
use common::{Flow, Network, rates, with_agents};
use fabric::edge::{AgentId, EdgeKey, Message, Sessions};
use fabric::{Bandwidth, Instant};
use lab::Requirements;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Of the 1,514 bytes of a full frame, 1,448 bytes are TCP payload. With UDP's 1,400 bytes the ratio is nearly the
/// same.
const PAYLOAD: f64 = 1448.0 / 1514.0;

/// Whether a flow has its share. A shaper never passes more than the share, so 20 % more is an error of the measurement.
/// A machine that stops for some milliseconds sends nothing meanwhile, and TCP loses packets and sends less for a
/// while. So two thirds of the share are enough. Each test chooses its shares so that the other ways to divide the link
/// are outside of these limits.
fn has_share(found: f64, share: f64) -> bool {
    found >= share / 1.5 && found <= share * 1.2
}

#[track_caller]
fn expect_share(found: f64, share: f64) {
    assert!(has_share(found, share), "{found:.2} Mbit/s, the share is {share:.2}");
}

/// The rates of flows over two seconds. The function measures again, at most four times, until each flow has the share.
fn rates_of(flows: &[&Flow], share: f64) -> Vec<f64> {
    let measure = || rates(flows, Duration::from_secs(2));
    let mut found = measure();
    for _ in 0..4 {
        if found.iter().all(|rate| has_share(*rate, share)) {
            break;
        }
        found = measure();
    }
    found
}

#[test]
fn ovs_a_udp_burst_leaves_a_tcp_flow_its_guaranteed_rate() {
    if lab::testing::skip(
        "ovs_a_udp_burst_leaves_a_tcp_flow_its_guaranteed_rate",
        Requirements::ALL,
    ) {
        return;
    }
    let network = Network::single("burst", 3, "20Mbit");
    let settings = network.settings(&[("h1", "20Mbit"), ("h2", "20Mbit"), ("h3", "20Mbit")]);
    let tcp = network.tcp("h1", "h3", 5001);
    let (alone, beside) = with_agents(&[settings], || {
        std::thread::sleep(Duration::from_secs(1));
        let alone = rates_of(&[&tcp], 20.0 * PAYLOAD)[0];
        let udp = network.udp("h2", "h3", 5002, 100_000_000);
        std::thread::sleep(Duration::from_millis(500));
        let beside = rates_of(&[&tcp, &udp], 10.0 * PAYLOAD);
        (alone, beside)
    });
    // TCP alone has the whole link. Then UDP wants ten times its share, and gets half of the link.
    expect_share(alone, 20.0 * PAYLOAD);
    expect_share(beside[0], 10.0 * PAYLOAD);
    expect_share(beside[1], 10.0 * PAYLOAD);
    // The agents remove every shaper when they stop. Then UDP leaves less than a quarter of the link to TCP.
    let udp = network.udp("h2", "h3", 5003, 100_000_000);
    std::thread::sleep(Duration::from_secs(1));
    let without = rates(&[&tcp], Duration::from_secs(2))[0];
    assert!(without < 5.0 * PAYLOAD, "there would be nothing to show: {without}");
    drop(udp);
}

/// Two agents send UDP messages to each other. The test takes the place of the hypervisor and receives the rates.
#[test]
fn ovs_agents_of_two_servers_share_the_bandwidth_of_a_receiver() {
    if lab::testing::skip(
        "ovs_agents_of_two_servers_share_the_bandwidth_of_a_receiver",
        Requirements::ALL,
    ) {
        return;
    }
    const KEY: EdgeKey = EdgeKey([3; 16]);
    let network = Network::single("two", 3, "20Mbit");
    let sockets = [0; 2].map(|_| SocketAddr::from(([127, 0, 0, 1], packet::free_port().unwrap())));
    let hypervisor = UdpSocket::bind("127.0.0.1:0").unwrap();
    hypervisor.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let vnics = vec![
        network.site("h1", "15Mbit", "one"),
        network.site("h2", "5Mbit", "two"),
        network.site("h3", "10Mbit", "one"),
    ];
    let settings = |own: &str, listen: usize| Settings {
        own: own.to_owned(),
        vnics: vnics.clone(),
        listen: Some(sockets[listen]),
        peers: vec![(["two", "one"][listen].to_owned(), sockets[1 - listen])],
        hypervisor: Some(("weir".to_owned(), hypervisor.local_addr().unwrap())),
        key: Some(KEY),
    };
    let both = [settings("one", 0), settings("two", 1)];
    let mut sessions = Sessions::new(KEY, AgentId::of("weir"), 7, ["one", "two"].map(AgentId::of));
    let (shares, reported) = with_agents(&both, || {
        let first = network.udp("h1", "h3", 5001, 100_000_000);
        let second = network.udp("h2", "h3", 5002, 50_000_000);
        std::thread::sleep(Duration::from_secs(1));
        let shares = rates(&[&first, &second], Duration::from_secs(3));
        let mut reported = Vec::new();
        for number in 0..200_u64 {
            let mut buffer = [0; 2048];
            let Ok((length, _)) = hypervisor.recv_from(&mut buffer) else { continue };
            if let Ok(Some(opened)) = sessions.open(&buffer[..length])
                && let Message::Rates(rates) = opened.message
            {
                reported.extend(rates);
            }
            while let Some((to, hello)) = sessions.poll_hello(Instant(number * 1_000_000_000)) {
                let to = usize::from(to == AgentId::of("two"));
                hypervisor.send_to(&hello, sockets[to]).unwrap();
            }
            if reported.len() > 20 {
                break;
            }
        }
        (shares, reported)
    });
    expect_share(shares[0], 7.5 * PAYLOAD);
    expect_share(shares[1], 2.5 * PAYLOAD);
    let receiver = vnics[2].mac;
    let received: Vec<Bandwidth> = reported
        .iter()
        .filter(|rates| rates.vnic == receiver)
        .map(|rates| rates.received)
        .collect();
    assert!(!received.is_empty(), "{reported:?}");
    // The last report counts, because the first report may be from before the burst.
    expect_share(received.last().unwrap().bits_per_second() as f64 / 1e6, 10.0);
    assert!(reported.iter().any(|rates| rates.vnic == vnics[1].mac), "of both agents");
}

#[test]
fn ovs_invalid_settings_are_refused_and_leave_the_qdiscs_unchanged() {
    if lab::testing::skip(
        "ovs_invalid_settings_are_refused_and_leave_the_qdiscs_unchanged",
        Requirements::ALL,
    ) {
        return;
    }
    let network = Network::single("wrong", 2, "20Mbit");
    let good = network.settings(&[("h1", "20Mbit"), ("h2", "20Mbit")]);
    let before = network.run("h1", "tc qdisc show");
    type Change = dyn Fn(&mut Settings);
    let cases: [(&str, &Change); 7] = [
        ("no agent \"other\"", &|it| it.vnics[1].agent = "other".to_owned()),
        ("have the same address", &|it| it.vnics[1].mac = it.vnics[0].mac),
        ("two VNICs \"h1\"", &|it| it.vnics[1].name = "h1".to_owned()),
        ("is another VNIC's", &|it| it.vnics[1].namespace = it.vnics[0].namespace.clone()),
        ("no VNIC is served", &|it| it.vnics.clear()),
        ("need an address to listen on", &|it| {
            it.hypervisor = Some(("x".to_owned(), ([127, 0, 0, 1], 9).into()))
        }),
        // The agent shapes h1 before the interface of h2 is found to be wrong, and has to remove the shaper of h1.
        ("VNIC h2", &|it| it.vnics[1].interface = "eth9".to_owned()),
    ];
    for (expected, change) in cases {
        let mut settings = good.clone();
        change(&mut settings);
        let error = Edge::open(&settings).err().unwrap().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
        assert_eq!(network.run("h1", "tc qdisc show"), before);
    }
}

/// Another program removes the shaper; the agent reports this, and adds the shaper again.
#[test]
fn ovs_a_removed_shaper_is_installed_again() {
    if lab::testing::skip("ovs_a_removed_shaper_is_installed_again", Requirements::ALL) {
        return;
    }
    let network = Network::single("gone", 2, "20Mbit");
    let settings = network.settings(&[("h1", "5Mbit"), ("h2", "20Mbit")]);
    let mut edge = Edge::open(&settings).unwrap();
    let stop = AtomicBool::new(false);
    let mut events = Vec::new();
    let mut steps = 0;
    edge.run(&stop, |edge| {
        steps += 1;
        if steps == 10 {
            network.run("h1", "tc qdisc del dev eth0 parent 1:1");
        }
        events.extend(edge.take_events());
        stop.store(events.len() >= 2 || steps > 4_000, Ordering::SeqCst);
        Ok::<(), agent::Error>(())
    })
    .unwrap();
    assert!(events[0].starts_with("VNIC h1: somebody removed the shaper of eth0"), "{events:?}");
    assert_eq!(events[1], "h1 is shaped again");
    assert!(network.run("h1", "tc qdisc show dev eth0").contains("5745:"));
    edge.close().unwrap();
    assert!(!network.run("h1", "tc qdisc show dev eth0").contains("5745:"));
}
