//! Tests of flows with IPv4 and IPv6, of packets whose addresses are rewritten, and of the data that the tracker keeps.

use super::*;
use crate::topology::trace::Traced;

/// A tracker with red's interfaces A and B, which have these addresses.
fn red(a: &[&str], b: &[&str]) -> Tracker {
    let both = [("3 port 1", 1, a), ("4 port 1", 2, b)].map(|(at, last, addresses)| {
        let ip = addresses.iter().map(|address| address.parse().unwrap()).collect();
        config::Vnic { ip, ..vnic(at, last, 8) }
    });
    let mut tracker = Tracker::default();
    tracker.configure([(RED, both.as_slice())].into_iter());
    tracker
}

/// Adds red's entries from leaf 3 to B. Each entry is given as a match and the spine of the path.
fn by(tracker: &mut Tracker, entries: &[(&str, u16)]) {
    for (number, (match_, spine)) in (1..).zip(entries) {
        for (dpid, port) in [(3, 3 + spine), (u64::from(*spine), 2), (4, 1)] {
            change(tracker, dpid, RED, number, entry(10, match_, send_to(port)));
        }
    }
}

#[test]
fn a_pair_of_interfaces_counts_once_per_link_for_ipv4_and_ipv6() {
    const BOTH: &[&str] = &["10.0.0.1", "fd00::1"];
    const PEER: &[&str] = &["10.0.0.2", "fd00::2"];
    let network = isolation();
    // Checks blue's labels through the two spines, and the number of tracked flows.
    let check = |ends: [&[&str]; 2], entries: &[(&str, u16)], left: [u64; 2], flows: usize| {
        let mut tracker = red(ends[0], ends[1]);
        by(&mut tracker, entries);
        settle(&mut tracker, &network);
        assert_eq!(left_for_blue(&tracker, &network), left, "{ends:?}, {entries:?}");
        assert_eq!(tracker.counts(), (flows, 0), "{ends:?}, {entries:?}");
    };
    let v4 = "ip,nw_src=10.0.0.1,nw_dst=10.0.0.2";
    let v6 = "ipv6,ipv6_src=fd00::1,ipv6_dst=fd00::2";
    // OpenFlow 1.0 matches no IPv6 addresses, only the Ethernet type.
    let stations = "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02";
    let v6_of_1_0 = format!("dl_type=0x86dd,{stations}");
    check([BOTH, PEER], &[(v6, 1)], [2, 10], 1);
    check([BOTH, PEER], &[(&v6_of_1_0, 1)], [2, 10], 1);
    // A pair with two flows counts once on a common path, and once on each of two different paths.
    check([BOTH, PEER], &[(stations, 1)], [2, 10], 1);
    check([BOTH, PEER], &[(v4, 1), (v6, 1)], [2, 10], 2);
    check([BOTH, PEER], &[(v4, 1), (v6, 2)], [2, 2], 2);
    check([BOTH, PEER], &[(v4, 1), (&v6_of_1_0, 2)], [2, 2], 2);
    // Several entries for IPv4 share the rate, with and without entries for IPv6.
    let web = "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80";
    let rest = "udp,nw_src=10.0.0.1,nw_dst=10.0.0.2";
    check([BOTH, PEER], &[(web, 1), (rest, 2)], [6, 6], 2);
    check([BOTH, PEER], &[(web, 1), (rest, 2), (v6, 1)], [2, 6], 3);
    // A flow is tracked if both interfaces have addresses of its IP version. If the addresses of an interface are
    // unknown, flows of both versions are tracked.
    check([&["10.0.0.1"], PEER], &[(v4, 1), (v6, 2)], [2, 10], 1);
    check([&["10.0.0.1"], &["fd00::2"]], &[(v4, 1), (v6, 2), (stations, 2)], [10, 10], 0);
    check([&[], PEER], &[(v4, 1), (v6, 2)], [2, 2], 2);
    check([&[], &[]], &[(stations, 1)], [2, 10], 1);
    check([&[], &[]], &[(&v6_of_1_0, 2)], [10, 2], 1);
    // With several addresses of one version, the flows of each address are tracked.
    let local = "ipv6,ipv6_src=fe80::1,ipv6_dst=fe80::2";
    let ends: [&[&str]; 2] = [&["fd00::1", "fe80::1"], &["fd00::2", "fe80::2"]];
    check(ends, &[(v6, 1), (local, 2)], [2, 2], 2);
}

#[test]
fn a_measured_rate_counts_once_per_link_for_ipv4_and_ipv6() {
    let network = isolation();
    let mut tracker = red(&["10.0.0.1", "fd00::1"], &["10.0.0.2", "fd00::2"]);
    by(&mut tracker, &[("ip,nw_dst=10.0.0.2", 1), ("ipv6,ipv6_dst=fd00::2", 2)]);
    tracker.handle_sent(RED, mac(1), Some(sends(&[(2, 3_000)])));
    settle(&mut tracker, &network);
    assert_eq!(left_for_blue(&tracker, &network), [7, 7]);
    // The entries for IPv6 are removed.
    for dpid in [3, 2, 4] {
        change(&mut tracker, dpid, RED, 2, None);
    }
    settle(&mut tracker, &network);
    assert_eq!(left_for_blue(&tracker, &network), [7, 10]);
}

#[test]
fn ipv6_flows_in_a_virtual_network_use_the_physical_links_of_the_path() {
    let (network, mut embedding) = (isolation(), embedding());
    let mut tracker = red(&["fd00::1"], &["fd00::2"]);
    for (dpid, out) in [(3, 2), (4, 1)] {
        change(&mut tracker, dpid, RED, 1, entry(10, "ipv6,ipv6_dst=fd00::2", send_to(out)));
    }
    place(&mut embedding, &network, Some(two_switches()));
    tracker.handle_maps(maps(&embedding));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (1, 0));
    let mut left = left_for_blue(&tracker, &network);
    left.sort_unstable();
    assert_eq!(left, [2, 10]);
}

#[test]
fn a_link_counts_the_largest_share_of_the_packet_kinds() {
    let network = isolation();
    let link = |from: &str| network.link_from(port(from)).unwrap();
    let (a, b, c) = (link("3 port 4"), link("3 port 5"), link("1 port 2"));
    let flow = |entry: u32, links: &[LinkId], is_whole: bool| Traced {
        entry,
        links: links.iter().copied().collect(),
        arrives: is_whole,
        is_meant: true,
    };
    // Checks the part of 12 Mbit/s that each link counts.
    let check = |traces: &[Vec<Traced>], counts: (usize, usize), links: &[(LinkId, u64)]| {
        let spread = Spread::new(traces);
        let mut found = BTreeMap::new();
        for (share, links) in &spread.parts {
            found.extend(links.iter().map(|link| (*link, share.of(mbit(12)))));
        }
        let expected = links.iter().map(|(link, rate)| (*link, mbit(*rate)));
        assert_eq!(found, expected.collect(), "{traces:?}");
        assert_eq!((spread.flows, spread.lost), counts, "{traces:?}");
    };
    check(&[], (0, 0), &[]);
    check(&[vec![flow(1, &[a, c], true)]], (1, 0), &[(a, 12), (c, 12)]);
    let halves = vec![flow(1, &[a, c], true), flow(2, &[b, c], true)];
    check(std::slice::from_ref(&halves), (2, 0), &[(a, 6), (b, 6), (c, 12)]);
    let thirds = [(1, a), (2, b), (3, b)].map(|(entry, link)| flow(entry, &[link], true));
    check(&[thirds.to_vec()], (3, 0), &[(a, 4), (b, 8)]);
    check(&[thirds.to_vec(), halves], (3, 0), &[(a, 6), (b, 8), (c, 12)]);
    // An entry counts as reaching the receiver if any of its packets reach the receiver.
    check(&[vec![flow(1, &[a, c], true)], vec![flow(1, &[a], false)]], (1, 0), &[(a, 12), (c, 12)]);
    check(&[vec![flow(1, &[a], false)], vec![]], (1, 1), &[(a, 12)]);
}

#[test]
fn pairs_without_flows_are_not_kept() {
    let network = isolation();
    let vnics: Vec<config::Vnic> = (0_u8..120)
        .map(|last| vnic(if last < 60 { "3 port 1" } else { "4 port 1" }, last, 1))
        .collect();
    let mut tracker = Tracker::default();
    tracker.configure([(RED, vnics.as_slice())].into_iter());
    for dpid in 1..=4 {
        // Packets that match no other entry are sent to the controller, as with most controllers at the start.
        change(&mut tracker, dpid, RED, 1, entry(0, "", send_to(0xfffd)));
    }
    lead(&mut tracker, RED, (1, 61), 1, 1);
    lead(&mut tracker, RED, (2, 62), 2, 1);
    // This flow reaches no receiver, and no entry names the receiver, so the flow is not counted. The entries added
    // below name a receiver, and the flow is counted then.
    change(&mut tracker, 3, RED, 5, entry(5, "dl_src=02:00:00:00:00:03", send_to(4)));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (2, 0));
    assert_eq!(tracker.pairs.len(), 2 + 119);
    change(&mut tracker, 1, RED, 5, entry(5, "ip,nw_dst=10.0.0.70", send_to(2)));
    change(&mut tracker, 4, RED, 5, entry(5, "ip,nw_dst=10.0.0.70", send_to(1)));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (3, 0));
    // After all switches have disconnected, no flows are left.
    for dpid in 1..=4 {
        tracker.handle_switch_gone(Dpid(dpid));
    }
    settle(&mut tracker, &network);
    assert_eq!((tracker.counts(), tracker.pairs.len()), ((0, 0), 0));
    assert!(tracker.visitors.is_empty() && tracker.usage().is_empty());
}

#[test]
fn packets_with_rewritten_addresses_are_tracked_by_the_new_addresses() {
    let (mut tracker, network) = (tracker(), isolation());
    // Leaf 3 rewrites the destination of the packets from C to D to the address of F. On leaf 4 the packets match the
    // entry for F, which is added last.
    let mut actions = ListBuf::<v10::Action<'_>>::new();
    actions.push(v10::Action::SetNwDst(0x0a00_0006));
    actions.push(v10::Action::Output { port: v10::PortNo(4), max_len: 0 });
    let actions = actions.as_list().as_bytes().into();
    change(&mut tracker, 3, BLUE, 1, entry(9, "ip,nw_src=10.0.0.3,nw_dst=10.0.0.4", actions));
    change(&mut tracker, 1, BLUE, 1, entry(9, "ip,nw_src=10.0.0.3", send_to(2)));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (1, 1));
    let match_ = "ip,nw_src=10.0.0.3,nw_dst=10.0.0.6";
    change(&mut tracker, 4, BLUE, 1, entry(9, match_, send_to(2)));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (1, 0), "D is at that port");
}
