//! Tests of statistics. A reply shows only data of the tenant, and an empty reply is sent too. Equal requests in flight
//! share one request to the switch.

use crate::support::networks::{both_say, same, two_networks};
use crate::support::*;
use fabric::PortNumber;
use fabric::embedding::{Exit, Hop, SwitchMap, Tag, Transit};
use hypervisor::policy::PortCounters;
use openflow::v10::{StatsReply, StatsReplyBody};
use openflow::v13::{MultipartReply, MultipartReplyBody};
use std::sync::Arc;

const TWO: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

#[test]
fn flow_and_aggregate_statistics_show_only_the_tenants_entries() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.1 actions=output:2
        blue> 1 flow add match=ip,nw_src=10.2.0.1 actions=output:3
        wire> 1 10.1.0.1>10.2.0.1
        wire> 1 10.1.0.1>10.2.0.1
        wire> 1 10.2.0.1>10.1.0.1
        red> 2 stats flow
        red< 2 STATS flow prio=32768 ip,nw_src=10.1.0.1 n=2 output:2
        blue> 2 stats flow
        blue< 2 STATS flow prio=32768 ip,nw_src=10.2.0.1 n=1 output:3
        red> 3 stats aggregate
        red< 3 STATS aggregate flows=1 n=2
    ",
    );
}

#[test]
fn statistics_requests_without_a_result_get_an_empty_reply() {
    both(
        TWO,
        "
        red> 1 stats flow
        red< 1 STATS flow
        red> 2 stats aggregate
        red< 2 STATS aggregate flows=0 n=0
        red> 3 stats flow match=ip,nw_src=10.2.0.0/16
        red< 3 STATS flow
        red> 4 stats queue
        red< 4 STATS queue
        red> 5 stats flow match=arp
        red< 5 STATS flow
    ",
    );
}

#[test]
fn statistics_select_entries_with_equal_or_narrower_matches() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.1 prio=1 actions=output:2
        red> 2 flow add match=ip,nw_src=10.1.0.0/24 prio=2 actions=output:3
        red> 3 stats flow match=ip,nw_src=10.1.0.1
        red< 3 STATS flow prio=1 ip,nw_src=10.1.0.1 n=0 output:2
        red> 4 stats aggregate match=ip,nw_src=10.1.0.0/16
        red< 4 STATS aggregate flows=2 n=0
    ",
    );
}

#[test]
fn port_statistics_show_only_ports_of_the_slice() {
    both(
        "
        red: in_port=1
        red: in_port=2
        blue: in_port=3
    ",
        "
        red> 1 stats port
        red< 1 STATS port 1 2
        red> 2 stats port port=2
        red< 2 STATS port 2
        red> 3 stats port port=3
        [1.0] red< 3 ERROR OFPBRC_EPERM of type 16 xid 3
        [1.3] red< 3 ERROR OFPBRC_BAD_PORT of type 18 xid 3
        red> 4 stats 77
        [1.0] red< 4 ERROR OFPBRC_BAD_STAT of type 16 xid 4
        [1.3] red< 4 ERROR OFPBRC_BAD_MULTIPART of type 18 xid 4
    ",
    );
}

/// All counters of a tenant's ports, as the tenant sees them.
fn counters(world: &mut World, seat: Seat) -> Vec<(u32, Vec<u64>)> {
    world.say(seat, 1, "stats port");
    let received = world.received(seat);
    assert_eq!(received.len(), 1);
    let body = &received[0][8..];
    macro_rules! all {
        ($it:ident) => {
            vec![
                $it.rx_packets,
                $it.tx_packets,
                $it.rx_bytes,
                $it.tx_bytes,
                $it.rx_dropped,
                $it.tx_dropped,
                $it.rx_errors,
                $it.tx_errors,
                $it.rx_frame_err,
                $it.rx_over_err,
                $it.rx_crc_err,
                $it.collisions,
            ]
        };
    }
    if world.version == Version::V1_0 {
        let reply = StatsReply::parse(body).unwrap();
        let StatsReplyBody::Port(ports) = reply.body else { panic!("{reply:?}") };
        ports.iter().map(|it| (u32::from(it.port_no.0), all!(it))).collect()
    } else {
        let reply = MultipartReply::parse(body).unwrap();
        let MultipartReplyBody::PortStats(ports) = reply.body else { panic!("{reply:?}") };
        ports.iter().map(|it| (it.port_no.0, all!(it))).collect()
    }
}

/// The ports with hidden counters, of all ports that the tenant sees. The other ports show the packet that has arrived.
#[track_caller]
fn hidden(world: &mut World, tenant: &str, sees: &[u32], in_port: u32) -> Vec<u32> {
    let seat = world.connect(tenant);
    let counters = counters(world, seat);
    assert_eq!(counters.iter().map(|it| it.0).collect::<Vec<_>>(), sees, "{tenant}");
    let (hidden, shown): (Vec<_>, Vec<_>) =
        counters.into_iter().partition(|(_, it)| it.iter().all(|it| *it == u64::MAX));
    for (port, counts) in shown {
        assert_eq!(counts[0], u64::from(port == in_port), "{tenant} {port}: {counts:?}");
        assert!(!counts.contains(&u64::MAX), "{tenant} {port}: {counts:?}");
    }
    hidden.into_iter().map(|(port, _)| port).collect()
}

/// The counters of a port include the packets of all tenants. An operator may hide the counters of shared ports from
/// slices.
#[test]
fn shared_port_counters_are_all_ones_when_configured_as_unsupported() {
    const SPACES: &str = "
        red: in_port=1
        red: in_port=2,ip
        blue: in_port=2,arp
        blue: in_port=3
        green: in_port=3 read
    ";
    for version in VERSIONS {
        for (counters, at) in
            [(PortCounters::Switch, [].as_slice()), (PortCounters::Unsupported, &[2])]
        {
            let mut setup = Setup::new(version, SPACES);
            for tenant in &mut setup.policy.tenants {
                tenant.limits.shared_port_counters = counters;
            }
            let mut world = World::new(setup);
            world.packet(1, &packet("10.1.0.1>10.1.0.2"));
            assert_eq!(hidden(&mut world, "red", &[1, 2], 1), at, "{version:?}");
            // Green has only read permission, so blue's port 3 is not shared. Blue's packets at port 3 are hidden from
            // green.
            assert_eq!(hidden(&mut world, "blue", &[2, 3], 1), at, "{version:?}");
            let of_green: &[u32] = if at.is_empty() { &[] } else { &[3] };
            assert_eq!(hidden(&mut world, "green", &[3], 1), of_green, "{version:?}");
        }
    }
}

/// Slices by address share every port. A slice that is the only owner of a port still shares the port with networks
/// whose links use the port.
#[test]
fn ports_of_address_slices_and_ports_with_network_links_count_as_shared() {
    for version in VERSIONS {
        let hop =
            |port, tag| Hop { port: PortNumber::new(port).unwrap(), tag: Tag::new(tag).unwrap() };
        let passing = Transit { from: hop(3, 2000), to: Exit::Next(hop(4, 2001)), leaves_by: None };
        let links = SwitchMap { transit: vec![passing], ..SwitchMap::default() };
        for (spaces, links, expected) in [
            (TWO, None, [1, 2, 3, 4].as_slice()),
            ("red: ip", None, &[]),
            ("red: ip", Some(links), &[3, 4]),
        ] {
            let mut setup = Setup::new(version, spaces);
            setup.policy.tenants[0].limits.shared_port_counters = PortCounters::Unsupported;
            setup.policy.maps.extend(links.map(|it| (DPID, Arc::new(it))));
            let mut world = World::new(setup);
            world.packet(2, &packet("10.1.0.1>10.1.0.2"));
            assert_eq!(
                hidden(&mut world, "red", &[1, 2, 3, 4], 2),
                expected,
                "{version:?} {spaces}"
            );
            if spaces == TWO {
                assert_eq!(hidden(&mut world, "blue", &[1, 2, 3, 4], 2), [0; 0], "{version:?}");
            }
        }
    }
}

#[test]
fn a_long_flow_statistics_reply_is_sent_in_several_parts() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        for n in 0..1_500 {
            world.say(
                red,
                n,
                &format!(
                    "flow add match=ip,nw_src=10.1.{}.{} prio=5 actions=output:1",
                    n / 250,
                    n % 250
                ),
            );
        }
        assert_eq!(world.heard(red), [""; 0]);
        world.say(red, 7, "stats flow");
        let parts = world.heard(red);
        assert!(parts.len() > 1);
        let (last, others) = parts.split_last().unwrap();
        assert!(others.iter().all(|part| part.ends_with('+')) && !last.ends_with('+'));
        let entries: usize = parts.iter().map(|part| part.matches("prio=5").count()).sum();
        assert_eq!(entries, 1_500);
        assert!(parts.iter().all(|part| part.starts_with("7 STATS flow")));
    }
}

/// The number of statistics requests to the switch.
fn asked(world: &mut World) -> usize {
    let request = if world.version == Version::V1_0 { 16 } else { 18 };
    world.south_types().iter().filter(|type_| **type_ == request).count()
}

#[test]
fn equal_statistics_requests_share_one_request_to_the_switch() {
    for version in VERSIONS {
        let mut setup = Setup::new(version, TWO);
        setup.per_second = Some(1_000);
        let mut world = World::new(setup);
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.south.clear();
        for xid in 1..=5 {
            world.say(red, xid, "stats port");
            world.say(blue, xid, "stats port");
        }
        world.advance(100_000_000);
        assert_eq!(asked(&mut world), 1);
        let answers: Vec<String> = (1..=5).map(|xid| format!("{xid} STATS port 1 2 3 4")).collect();
        assert_eq!(world.heard(red), answers);
        assert_eq!(world.heard(blue), answers);
        world.say(red, 6, "stats port");
        world.advance(100_000_000);
        assert_eq!(asked(&mut world), 1);
    }
}

#[test]
fn statistics_requested_after_a_change_show_the_change() {
    for version in VERSIONS {
        let mut setup = Setup::new(version, TWO);
        setup.per_second = Some(1_000);
        let mut world = World::new(setup);
        let red = world.connect("red");
        world.say(red, 1, "stats flow");
        world.say(red, 2, "flow add match=ip,nw_src=10.1.0.1 actions=output:1");
        world.say(red, 3, "stats flow");
        world.south.clear();
        world.advance(100_000_000);
        let heard = world.heard(red);
        assert_eq!(heard.len(), 2);
        assert!(
            heard.contains(&"3 STATS flow prio=32768 ip,nw_src=10.1.0.1 n=0 output:1".to_owned())
        );
    }
}

#[test]
fn cached_statistics_are_used_until_their_maximum_age() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(
            version,
            "
            red cached=1000: ip,nw_src=10.1.0.0/16
            blue: ip,nw_src=10.2.0.0/16
        ",
        ));
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.south.clear();
        world.say(red, 1, "stats port");
        assert_eq!(asked(&mut world), 1);
        world.advance(900_000_000);
        world.say(red, 2, "stats port");
        assert_eq!(asked(&mut world), 0);
        assert_eq!(world.heard(red), ["1 STATS port 1 2 3 4", "2 STATS port 1 2 3 4"]);
        // Blue's policy has no cached statistics, so blue gets a new reply of the switch.
        world.say(blue, 3, "stats port");
        assert_eq!(asked(&mut world), 1);
        assert_eq!(world.heard(blue), ["3 STATS port 1 2 3 4"]);
        world.advance(1_100_000_000);
        world.say(red, 4, "stats port");
        assert_eq!(asked(&mut world), 1);
        assert_eq!(world.heard(red), ["4 STATS port 1 2 3 4"]);
    }
}

#[test]
fn a_statistics_request_without_a_switch_reply_gets_an_error() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        let message_type = if version == Version::V1_0 { 16 } else { 18 };
        world.switch.switch_mut().plant(vec![emulate::Fault::NeverAnswers { message_type }]);
        world.say(red, 9, "stats port");
        world.advance(20_000_000_000);
        assert_eq!(
            world.heard(red),
            [format!("9 ERROR OFPBRC_EPERM of type {message_type} xid 9")]
        );
    }
}

#[test]
fn table_statistics_of_a_slice_count_only_the_tenants_lookups() {
    both(
        "
        red: in_port=1
        red: in_port=2
        blue: in_port=3
    ",
        "
        blue> 1 flow add match= actions=drop
        red> 1 flow add match=in_port=1 cookie=1 actions=output:2
        wire> 1 10.0.0.1>10.0.0.2
        wire> 3 10.0.0.1>10.0.0.2
        wire> 1 10.0.0.1>10.0.0.2
        wire> 2 10.0.0.2>10.0.0.1
        [1.0] red< PACKET_IN 2 NO_MATCH 10.0.0.2>10.0.0.1
        [1.0] red> 2 stats table
        [1.0] red< 2 STATS table 0:1(2/3)
        [1.3] red> 2 flow add match=in_port=2 actions=goto=3
        [1.3] wire> 2 10.0.0.2>10.0.0.1
        [1.3] red> 3 stats table
        [1.3] red< 3 STATS table 0:2(3/4) 1:0 2:0 3:0(0/1) 4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:0 12:0 13:0 14:0
        red> 4 flow delete
        red> 5 barrier
        red< 5 BARRIER_REPLY
        wire> 1 10.0.0.1>10.0.0.2
        [1.0] red< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2
        [1.0] red> 6 stats table
        [1.0] red< 6 STATS table 0:0(2/4)
        [1.3] red> 6 stats table
        [1.3] red< 6 STATS table 0:0(3/5) 1:0 2:0 3:0(0/1) 4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:0 12:0 13:0 14:0
        [1.0] blue> 7 stats table
        [1.0] blue< 7 STATS table 0:1(1/1)
    ",
    );
}

#[test]
fn table_statistics_of_a_network_count_only_the_tenants_lookups() {
    for version in VERSIONS {
        let mut testbed = Testbed::new(version, two_networks());
        for tenant in [0, 1] {
            both_say(&mut testbed, tenant, 1, "flow add match=ip prio=5 actions=flood");
            for (port, name) in [(1, "10.0.0.1>10.0.0.2"), (1, "arp:10.0.0.1>10.0.0.2")] {
                same(&mut testbed, tenant, 1, port, &packet(name));
            }
            // The reference switch has tables that a virtual switch of 1.0 does not have. So only the first table is
            // compared.
            let first = |parts: Vec<String>| parts[0].split(" 1:").next().unwrap().to_owned();
            let reply = first(testbed.say(tenant, 1, "stats table"));
            assert_eq!(reply, first(testbed.say_beside(tenant, 1, "stats table")), "{version:?}");
            assert!(reply.ends_with("(1/2)"), "{reply}");
        }
    }
}
