use super::*;
use crate::units::PortNumber;
use std::string::String;
use std::vec;

/// `s.p` is port p of switch s.
fn port(text: &str) -> PortId {
    let (dpid, number) = text.split_once('.').unwrap();
    PortId::new(Dpid(dpid.parse().unwrap()), PortNumber::new(number.parse().unwrap()).unwrap())
}

fn mbit(megabits: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(megabits)
}

/// Three switches in a row, a host at each end.
fn chain() -> Network {
    let mut network = Network::default();
    for (dpid, ports) in [(1, 2), (2, 2), (3, 2)] {
        network.add_switch(Dpid(dpid)).unwrap();
        for number in 1..=ports {
            let number = PortNumber::new(number).unwrap();
            network.add_port(PortId::new(Dpid(dpid), number)).unwrap();
        }
    }
    for (a, b) in [("1.2", "2.1"), ("2.2", "3.1")] {
        network.connect(port(a), port(b), mbit(10), Duration::from_nanos(5)).unwrap();
    }
    for (at, octet) in [("1.1", 1), ("3.2", 3)] {
        network.add_edge(port(at), mbit(10), Duration::ZERO).unwrap();
        network.add_host(host(octet), port(at)).unwrap();
    }
    network
}

fn host(octet: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, octet]).unwrap()
}

/// The links that are up, as `1.2>2.1`.
fn up(network: &Network) -> String {
    let end = |end: End| match end {
        End::Switch { port, .. } => std::format!("{}.{}", port.dpid.0, port.port),
        End::Hosts(_) => "hosts".into(),
    };
    let up = network.links().filter(|(_, link)| link.is_up());
    let texts = up.map(|(_, link)| std::format!("{}>{}", end(link.from), end(link.to)));
    texts.collect::<Vec<_>>().join(" ")
}

const WHOLE: &str = "1.2>2.1 2.1>1.2 2.2>3.1 3.1>2.2 1.1>hosts hosts>1.1 3.2>hosts hosts>3.2";

#[test]
fn changes_are_reported_and_links_keep_their_ids() {
    let mut network = chain();
    assert_eq!(up(&network), WHOLE);
    let forth = network.link_from(port("1.2")).unwrap();
    assert_eq!(network.link_from(port("2.1")), Ok(forth.reverse()));

    // First one port is down, then both ports, then one port again. The wire is up only when both ports are up.
    assert_eq!(network.set_port_up(port("1.2"), false), Ok(vec![forth, forth.reverse()]));
    assert_eq!(network.set_port_up(port("2.1"), false), Ok(vec![]));
    assert_eq!(network.set_port_up(port("1.2"), true), Ok(vec![]));
    assert_eq!(up(&network), &WHOLE["1.2>2.1 2.1>1.2 ".len()..]);
    assert_eq!(network.set_port_up(port("2.1"), true), Ok(vec![forth, forth.reverse()]));
    assert_eq!(up(&network), WHOLE);

    // The wire is removed, and connected again with its ends swapped.
    assert_eq!(network.unplug(port("2.1")), Ok(vec![forth, forth.reverse()]));
    assert_eq!(network.find_link(forth), Err(Error::UnknownLink(forth)));
    let (back, changed) =
        network.connect(port("2.1"), port("1.2"), mbit(7), Duration::from_nanos(1)).unwrap();
    assert_eq!((back, changed.len()), (forth.reverse(), 2));
    assert_eq!(network.link(forth).capacity, mbit(7));
    assert_eq!((up(&network).as_str(), network.link_slots()), (WHOLE, 8));
}

#[test]
fn a_removed_switch_loses_its_hosts_and_has_no_links_when_added_again() {
    let mut network = chain();
    let middle = network.switch_index(Dpid(2)).unwrap();
    assert_eq!(network.remove_switch(Dpid(2)).map(|changed| changed.len()), Ok(4));
    assert_eq!(up(&network), "1.1>hosts hosts>1.1 3.2>hosts hosts>3.2");
    assert_eq!(network.switch_index(Dpid(2)), Err(Error::UnknownSwitch(Dpid(2))));
    assert_eq!(network.add_switch(Dpid(2)), Ok(middle));
    assert_eq!(network.leaving(middle).count(), 0);

    assert_eq!(network.hosts().count(), 2);
    network.remove_switch(Dpid(3)).unwrap();
    assert_eq!(network.host(host(3)), Err(Error::UnknownHost(host(3))));
    assert_eq!(network.host(host(1)), Ok(port("1.1")));
}

#[test]
fn invalid_changes_are_refused_and_leave_the_network_unchanged() {
    type Change = fn(&mut Network) -> Result<(), Error>;
    let cases: &[(Change, Error)] = &[
        (|n| n.add_switch(Dpid(1)).map(drop), Error::DuplicateSwitch(Dpid(1))),
        (|n| n.remove_switch(Dpid(9)).map(drop), Error::UnknownSwitch(Dpid(9))),
        (|n| n.add_port(port("1.1")), Error::DuplicatePort(port("1.1"))),
        (|n| n.add_port(port("9.1")), Error::UnknownSwitch(Dpid(9))),
        (|n| n.remove_port(port("1.9")).map(drop), Error::UnknownPort(port("1.9"))),
        (|n| n.set_port_up(port("1.9"), true).map(drop), Error::UnknownPort(port("1.9"))),
        (
            |n| n.connect(port("1.2"), port("1.2"), mbit(1), Duration::ZERO).map(drop),
            Error::SelfLink(port("1.2")),
        ),
        (
            |n| n.connect(port("1.2"), port("3.1"), mbit(1), Duration::ZERO).map(drop),
            Error::PortInUse(port("1.2")),
        ),
        (
            |n| n.connect(port("1.9"), port("3.1"), mbit(1), Duration::ZERO).map(drop),
            Error::UnknownPort(port("1.9")),
        ),
        (
            |n| {
                n.add_port(port("1.3"))?;
                n.add_port(port("2.3"))?;
                let refused =
                    n.connect(port("1.3"), port("2.3"), mbit(0), Duration::ZERO).map(drop);
                n.remove_port(port("1.3"))?;
                n.remove_port(port("2.3"))?;
                refused
            },
            Error::NoCapacity,
        ),
        (
            |n| n.add_edge(port("1.1"), mbit(1), Duration::ZERO).map(drop),
            Error::PortInUse(port("1.1")),
        ),
        (|n| n.add_host(host(1), port("3.2")), Error::DuplicateHost(host(1), port("1.1"))),
        (|n| n.add_host(host(9), port("1.2")), Error::NotAnEdgePort(port("1.2"))),
        (|n| n.add_host(host(9), port("1.9")), Error::UnknownPort(port("1.9"))),
        (|n| n.set_capacity(port("1.2"), mbit(0)).map(drop), Error::NoCapacity),
        (
            |n| {
                n.add_port(port("1.3"))?;
                let refused = n.unplug(port("1.3")).map(drop);
                n.remove_port(port("1.3"))?;
                refused
            },
            Error::NothingAttached(port("1.3")),
        ),
    ];
    for (change, error) in cases {
        let mut network = chain();
        assert_eq!(change(&mut network), Err(*error));
        assert_eq!((up(&network).as_str(), network.hosts().count()), (WHOLE, 2), "{error}");
    }
}

#[test]
fn a_flapping_link_uses_no_additional_link_slots() {
    let mut network = chain();
    for _ in 0..1_000 {
        network.unplug(port("1.2")).unwrap();
        network.connect(port("1.2"), port("2.1"), mbit(10), Duration::from_nanos(5)).unwrap();
    }
    assert_eq!((network.link_slots(), up(&network).as_str()), (8, WHOLE));
}
