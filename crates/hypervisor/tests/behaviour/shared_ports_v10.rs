//! Tests of shared edge ports on OpenFlow 1.0. A rule that outputs to such a port must name the destination address.

use crate::support::shared_ports::{
    BLUE, RED, WHOLE, accept, big_plan, frame, host, plan, testbed_of,
};
use crate::support::*;

/// The ports at which packets reach a tenant, sorted.
fn ports(seen: &Seen, tenant: usize) -> Vec<u32> {
    let own = seen.delivered.iter().filter(|it| it.0 == tenant);
    let mut ports: Vec<u32> = own.map(|it| it.2).collect();
    ports.sort_unstable();
    ports
}

/// OpenFlow 1.0 has one table and no metadata, so rules cannot match "none of these destinations". An entry that
/// outputs to a shared port must name the destination.
#[test]
fn an_output_to_a_shared_port_without_a_destination_is_refused() {
    let (mut testbed, mut big) = (
        testbed_of(Version::V1_0),
        Testbed::new(Version::V1_0, vec![big_plan(RED), big_plan(BLUE)]),
    );
    for actions in ["output:7", "flood", "all", "output:1,output:8", "output:10,in_port"] {
        for (testbed, head) in [(&mut testbed, 1), (&mut big, 1)] {
            for command in ["add", "modify"] {
                let port = if actions.ends_with("in_port") { "in_port=7" } else { "" };
                let words = format!("flow {command} prio=5 match={port} actions={actions}");
                let received = testbed.say(RED, head, &words);
                let is_said = |it: &String| it.contains("OFPBAC_BAD_OUT_PORT");
                assert!(matches!(&received[..], [it] if is_said(it)), "{words}: {received:?}");
            }
            assert!(!testbed.say(RED, head, "stats flow").concat().contains("prio=5"), "{actions}");
        }
    }
    // Weir accepts an entry that names the destination by its match or by an action. Weir also accepts PACKET_OUTs.
    // Blue's port is at the same wire.
    testbed.play("
        only red@1> flow add prio=5 match=dl_dst=02:00:00:00:10:03 actions=output:8
        only red@1:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:09 dl_dst=02:00:00:00:10:03 -> red@1:8 blue@1:8
        only red@1> flow add prio=4 actions=mod_dl_dst:02.00.00.00.10.03,output:8
        only red@1:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:09 dl_dst=ff:ff:ff:ff:ff:ff
        wire< red@1:8[dl_dst=02:00:00:00:10:03] blue@1:8[dl_dst=02:00:00:00:10:03]
        only red@1> out in_port=1 actions=mod_dl_dst:ff.ff.ff.ff.ff.ff,flood data=10.0.0.1>10.0.0.2
        wire< red@1:7[dl_dst=02:00:00:00:10:01] red@1:7[dl_dst=02:00:00:00:10:02] red@1:8[dl_dst=02:00:00:00:10:03]
        wire< red@2:1[dl_dst=ff:ff:ff:ff:ff:ff]
        wire< blue@1:7[dl_dst=02:00:00:00:10:01] blue@1:7[dl_dst=02:00:00:00:10:02] blue@1:8[dl_dst=02:00:00:00:10:03]
    ");
}

/// At a shared port the source address identifies the owner of a packet. With a changed source address a controller
/// could get a PACKET_IN for another tenant's address.
#[test]
fn controller_output_after_a_source_change_is_refused_at_a_shared_port() {
    // Red shares port 1 with no other tenant, so all packets from port 1 are red's.
    testbed_of(Version::V1_0).play(
        "
        only red@1> flow add prio=5 match=in_port=7 actions=mod_dl_src:02.00.00.00.11.01,controller -> ERROR OFPBAC_BAD_OUT_PORT
        only red@1> flow add prio=5 match=in_port=7 actions=vendor:2320,controller -> ERROR OFPBAC_BAD_OUT_PORT
        red@1> flow add prio=5 match=in_port=7 actions=controller,mod_dl_src:02.00.00.00.11.01
        red@1> flow add prio=5 match=in_port=1 actions=mod_dl_src:02.00.00.00.11.01,controller
        red@1:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:10:09 dl_dst=ff:ff:ff:ff:ff:ff
        red@1< PACKET_IN 1 ACTION 10.0.0.1>10.0.0.2
    ",
    );
}

/// The entry sends no bytes of the packet to the controller. Weir finds the tenant of a packet from a link by the VLAN
/// tag of the link. The tenant then sends the buffered packet with a PACKET_OUT.
#[test]
fn a_packet_in_without_data_reaches_its_tenant_with_a_usable_buffer_id() {
    let mut testbed = Testbed::with_buffers(Version::V1_0, vec![plan(RED), plan(BLUE)], 16);
    for tenant in [RED, BLUE] {
        accept(&mut testbed, tenant, 1, "flow add prio=5 match=in_port=10 actions=controller:0");
        accept(&mut testbed, tenant, 2, "flow add prio=5 match=in_port=1 actions=output:10");
    }
    for tenant in [RED, BLUE] {
        let packet = frame(host(tenant, 9), host(tenant, 3));
        let seen = testbed.send(tenant, 2, WHOLE, &packet);
        let [(whose, 1, words)] = &seen.received[..] else { panic!("{seen:?}") };
        assert_eq!(*whose, tenant);
        let buffer = words.split_once("buffer=").unwrap_or_else(|| panic!("{words}")).1;
        let buffer = buffer.split(' ').next().unwrap_or_default();
        let sent = testbed.out(tenant, 1, &format!("out buffer={buffer} actions=output:8"));
        assert_eq!(ports(&sent, tenant), [8], "{sent:?}");
        assert!(sent.delivered.iter().all(|it| it.3 == packet), "{sent:?}");
    }
}

/// The controller receives each packet as the action list of the PACKET_OUT sends it. The entry that matches all
/// packets changes nothing.
#[test]
fn a_packet_out_to_the_controller_matches_no_rule() {
    let mut testbed = testbed_of(Version::V1_0);
    testbed.play("red@1> flow add prio=5 actions=output:10");
    for (port, in_port) in [("1", "1"), ("7", "7"), ("10", "10"), ("none", "65535")] {
        let actions = "controller,mod_nw_src:10.0.0.9,controller";
        testbed.play(&format!(
            "
            red@1> out in_port={port} actions={actions} data=10.0.0.1>10.0.0.2 -> PACKET_IN {in_port} ACTION 10.0.0.1>10.0.0.2
            red@1< PACKET_IN {in_port} ACTION 10.0.0.9>10.0.0.2
        "
        ));
    }
}

/// Port 8 becomes shared while an entry outputs to it without a destination. Weir removes this entry and sends
/// FLOW_REMOVED. The entry that outputs to port 10 stays.
#[test]
fn a_rule_without_a_destination_is_removed_when_its_port_becomes_shared() {
    let plans = |of: fn(usize) -> Plan| vec![of(RED), of(BLUE)];
    let before = |tenant| {
        let mut plan = shared_ports::plan_before_sharing(tenant);
        // Blue does not have port 8 yet.
        plan.edges.retain(|edge| tenant == RED || edge.2 != 8);
        plan
    };
    let mut testbed = Testbed::new(Version::V1_0, plans(before));
    accept(&mut testbed, RED, 1, "flow add prio=5 flags=rem actions=output:8");
    accept(&mut testbed, RED, 1, "flow add prio=6 match=in_port=1 flags=rem actions=output:10");
    let (maps, last) = Testbed::maps_from(100, &plans(plan));
    testbed.set_maps(&maps, 100..=last);
    let received = testbed.take_received();
    let removed: Vec<_> = received.iter().filter(|it| it.2.contains("FLOW_REMOVED")).collect();
    assert!(matches!(&removed[..], [(RED, 1, it)] if it.contains("prio=5")), "{received:?}");
}
