//! Tests of the reserved ports LOCAL and NORMAL in tenants' networks. LOCAL exists if a port is mapped to LOCAL. NORMAL
//! is refused.

use crate::support::networks::{big_networks, both_say, local, same, two_networks};
use crate::support::*;

const RED: usize = 0;
const BLUE: usize = 1;

/// Weir refuses NORMAL, because the switch's own forwarding does not separate tenants.
#[test]
fn output_to_normal_is_refused() {
    for plans in [local(two_networks()), local(big_networks())] {
        both_versions(plans.clone()).play(
            "
            only blue@1> flow add prio=5 actions=normal -> ERROR OFPBAC_BAD_OUT_PORT
            only blue@1> flow add match=in_port=1 prio=5 actions=output:1,normal -> ERROR OFPBAC_BAD_OUT_PORT
            only blue@1> out in_port=controller actions=normal data=10.0.0.1>10.0.0.2 -> ERROR OFPBAC_BAD_OUT_PORT
            only blue@1> out in_port=1 actions=normal data=10.0.0.1>10.0.0.2 -> ERROR OFPBAC_BAD_OUT_PORT
            [1.3] only blue@1> group add id=1 type=indirect buckets=normal -> ERROR OFPBAC_BAD_OUT_PORT
            [1.3] only blue@1> flow add prio=5 actions=write=normal -> ERROR OFPBAC_BAD_OUT_PORT
            blue@1> stats flow -> STATS flow
        ",
        );
    }
}

/// The LOCAL port of red's second switch is the LOCAL port of the physical switch. The LOCAL port of blue's first
/// switch is an ordinary port.
#[test]
fn the_local_port_works_like_an_ordinary_port() {
    for (version, plans) in VERSIONS
        .into_iter()
        .flat_map(|it| [(it, local(two_networks())), (it, local(big_networks()))])
    {
        let number = if version == Version::V1_0 { 0xfffe } else { LOCAL };
        for (tenant, at) in [(RED, 2), (BLUE, 1)] {
            let mut testbed = Testbed::new(version, plans.clone());
            let head = testbed.head(tenant, at);
            let described = match version {
                Version::V1_0 => testbed.say(tenant, head, "features").concat(),
                _ => testbed.say(tenant, head, "stats port_desc").concat(),
            };
            assert!(described.contains(&number.to_string()), "{version:?}: {described}");
            for words in [
                "flow add match=in_port=1 prio=5 actions=local",
                "flow add match=in_port=LOCAL prio=5 actions=controller,output:1",
                "flow add match=in_port=LOCAL,ip,nw_dst=10.0.0.1 prio=6 actions=flood,in_port",
                "flow add match=in_port=1,ip,nw_dst=10.0.0.1 prio=6 actions=all",
            ] {
                both_say(&mut testbed, tenant, head, words);
            }
            // A packet from an ordinary port leaves by LOCAL. A packet from LOCAL leaves by port 1 and causes a
            // PACKET_IN. Another packet from LOCAL also leaves by LOCAL again.
            let first = plans[tenant]
                .edges
                .iter()
                .find(|it| testbed.head(tenant, it.0) == head && it.2 == 1);
            let first = first.unwrap().0;
            for frame in ["10.0.0.1>10.0.0.2", "10.0.0.2>10.0.0.1"] {
                let to = same(&mut testbed, tenant, first, 1, &packet(frame));
                let is_local = |it: &(usize, u64, u32, Vec<u8>)| (it.1, it.2) == (at, LOCAL);
                assert!(to.delivered.iter().any(is_local), "{version:?} {frame}: {to:?}");
            }
            let from = same(&mut testbed, tenant, at, LOCAL, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!(
                (from.delivered.len(), from.received.len()),
                (1, 1),
                "{version:?}: {from:?}"
            );
            assert!(from.received[0].2.contains(&format!("PACKET_IN {number} ")), "{from:?}");
            let back = same(&mut testbed, tenant, at, LOCAL, &packet("10.0.0.2>10.0.0.1"));
            assert!(back.delivered.len() >= 2, "{version:?}: {back:?}");

            for words in [
                "out in_port=controller actions=local data=10.0.0.1>10.0.0.2",
                "out in_port=local actions=local,output:1 data=10.0.0.1>10.0.0.2",
                "out in_port=local actions=in_port data=10.0.0.1>10.0.0.2",
                "out in_port=local actions=table data=10.0.0.1>10.0.0.2",
                "out in_port=1 actions=table data=10.0.0.1>10.0.0.2",
            ] {
                let seen = testbed.out(tenant, head, words);
                assert_eq!(seen, testbed.out_beside(tenant, head, words), "{version:?} {words}");
                assert_eq!(seen.delivered.len(), 1, "{version:?} {words}: {seen:?}");
            }
            let received = testbed.say(tenant, head, "stats port port=local");
            assert_eq!(received, [format!("7 STATS port {number}")], "{version:?}");
            let received = testbed.say(tenant, head, "stats aggregate out_port=local");
            let beside = testbed.say_beside(tenant, head, "stats aggregate out_port=local");
            assert_eq!(received, beside, "{version:?}");
            assert_eq!(received, beside);

            // With OFPPC_PORT_DOWN no packet leaves or enters by LOCAL.
            let words = "port_mod port=local config=0x1 mask=0x1";
            testbed.say(tenant, head, words);
            testbed.say_beside(tenant, head, words);
            let to = same(&mut testbed, tenant, first, 1, &packet("10.0.0.1>10.0.0.2"));
            let from = same(&mut testbed, tenant, at, LOCAL, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!((to.delivered.len(), from.delivered.len()), (0, 0), "{version:?}");
        }
    }
}

#[test]
fn the_tenant_is_notified_when_its_local_port_is_removed_and_added() {
    let mut without = local(two_networks());
    without[BLUE].edges.retain(|edge| edge.2 != LOCAL);
    for version in VERSIONS {
        let mut testbed = Testbed::new(version, local(two_networks()));
        testbed.play(
            "
            blue@1> flow add match=in_port=1 prio=5 actions=local,output:10
            blue@1> flow add match=in_port=LOCAL prio=5 flags=rem actions=output:1
        ",
        );
        let (maps, tags) = Testbed::maps_from(2000, &without);
        testbed.set_maps(&maps, 2000..=tags);
        testbed.play(
            "
            [1.0] blue@1< PORT_STATUS DELETE 65534
            [1.3] blue@1< PORT_STATUS DELETE 4294967294
            blue@1< FLOW_REMOVED prio=5 in_port=LOCAL cookie=0x0 DELETE n=0
            only blue@1> flow add match=in_port=1 prio=9 actions=local -> ERROR OFPBAC_BAD_OUT_PORT
        ",
        );
        let (maps, tags) = Testbed::maps_from(2000, &local(two_networks()));
        testbed.set_maps(&maps, 2000..=tags);
        testbed.play(
            "
            [1.0] blue@1< PORT_STATUS ADD 65534
            [1.3] blue@1< PORT_STATUS ADD 4294967294
            blue@1> flow add match=in_port=1 prio=9 actions=local
        ",
        );
    }
}

#[test]
fn a_link_between_local_ports_forwards_packets() {
    for version in VERSIONS {
        let red = Plan {
            edges: vec![(1, 1, 1), (3, 1, 1)],
            links: vec![[(1, LOCAL), (3, LOCAL)]],
            ..Plan::default()
        };
        let mut testbed = Testbed::new(version, vec![red, Plan::default()]);
        testbed.play(
            "
            red@1,3> flow add match=in_port=1 prio=5 actions=local
            red@1,3> flow add match=in_port=LOCAL prio=5 actions=flood,controller
            red@1:1> 10.0.0.1>10.0.0.2 -> red@3:1
            [1.0] red@3< PACKET_IN 65534 ACTION 10.0.0.1>10.0.0.2
            [1.3] red@3< PACKET_IN 4294967294 ACTION 10.0.0.1>10.0.0.2
            red@1:1> 10.0.0.1>10.0.0.2 -> red@3:1
            [1.0] red@3< PACKET_IN 65534 ACTION 10.0.0.1>10.0.0.2
            [1.3] red@3< PACKET_IN 4294967294 ACTION 10.0.0.1>10.0.0.2
        ",
        );
        if version == Version::V1_3 {
            assert_eq!(testbed.counted(RED, 3, LOCAL).0.map(|it| it.0), Some(2));
            testbed.reconnect(3);
            assert_eq!(testbed.counted(RED, 3, LOCAL).0.map(|it| it.0), Some(2));
        }
    }
}

/// In the first plans no port of red's first switch is mapped to LOCAL. In the second plans no port is.
#[test]
fn local_is_refused_on_a_switch_without_a_local_port() {
    both_versions(local(two_networks())).play(
        "
        only red@1> flow add match=in_port=1 prio=5 actions=local -> ERROR OFPBAC_BAD_OUT_PORT
        only red@1> flow add match= prio=5 actions=output:2,local -> ERROR OFPBAC_BAD_OUT_PORT
        only red@1> flow add match=in_port=LOCAL prio=5 actions=output:1
        [1.0] red@1< 7 ERROR OFPFMFC_EPERM of type 14 xid 7
        [1.3] red@1< 7 ERROR OFPBMC_BAD_VALUE of type 14 xid 7
        only red@1> out in_port=1 actions=local data=10.0.0.1>10.0.0.2 -> ERROR OFPBAC_BAD_OUT_PORT
        only red@1> out in_port=local actions=output:1 data=10.0.0.1>10.0.0.2
        [1.0] red@1< 7 ERROR OFPBRC_EPERM of type 13 xid 7
        [1.3] red@1< 7 ERROR OFPBRC_BAD_PORT of type 13 xid 7
        red@1> stats flow -> STATS flow
    ",
    );
    both_versions(big_networks()).play(
        "
        only red@1> flow add match=in_port=1 prio=5 actions=local -> ERROR OFPBAC_BAD_OUT_PORT
    ",
    );
}
