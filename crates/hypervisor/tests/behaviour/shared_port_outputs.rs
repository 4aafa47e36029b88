//! Tests of rules that output to a shared edge port and have more actions after this output. Weir accepts rules that
//! match on a destination address and refuses other rules. `sharing` tests random rules.

use crate::support::networks::both_say;
use crate::support::shared_ports::{
    BIG_FROM, BLUE, RED, address, all_same, big_plan, destinations, plan, plan_before_sharing,
    refuse, same, testbed,
};
use crate::support::*;

/// Actions that do more than the last table can do.
const LISTS: [&str; 17] = [
    // The packet continues in another table.
    "flood;goto=1",
    "output:7;goto=1",
    "flood;meta=5/ff;goto=1",
    "output:7;write=controller;goto=1",
    "output:8;write=group:1;goto=1",
    // An action changes the packet or its addresses.
    "flood,mod_dl_src:02.00.00.00.00.77,output:1",
    "output:7,mod_dl_dst:02.00.00.00.10.03,output:8,output:1",
    "output:7,mod_dl_dst:ff.ff.ff.ff.ff.ff,flood",
    "output:7,push_vlan:8100,mod_vlan_vid:5,output:8,output:1",
    "all,group:1,mod_dl_src:02.00.00.00.00.77,flood",
    "flood;write=mod_dl_src:02.00.00.00.00.77,output:8",
    // The entry writes metadata, which a PACKET_IN shows.
    "output:7;write=group:1;meta=5/ff",
    // The packet leaves twice by one port, or by its ingress port.
    "output:7,output:7",
    "flood,output:8",
    "output:8;write=output:8",
    "in_port",
    "flood,in_port",
];

#[test]
fn actions_after_a_shared_port_output_need_a_destination_match() {
    for actions in LISTS {
        let mut testbed = testbed();
        for tenant in [RED, BLUE] {
            let words = "group add id=1 type=all buckets=output:1|mod_dl_src:2.0.0.0.0.9,output:10";
            both_say(&mut testbed, tenant, 1, words);
            let later = "flow add table=1 prio=5 actions=mod_dl_src:02.00.00.00.00.66,output:1";
            both_say(&mut testbed, tenant, 1, later);
        }
        let before = (testbed.entries(1), testbed.groups(1));
        for match_ in [
            "",
            "in_port=7",
            "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
            "dl_dst=00:00:00:00:00:00/01:00:00:00:00:00",
            "dl_dst=02:00:00:00:10:00/ff:ff:ff:ff:ff:fd",
        ] {
            let words = format!("flow add prio=5 match={match_} actions={actions}");
            // No packet leaves by its ingress port, so Weir may accept some entries that match on port 7.
            if match_ == "in_port=7" && !actions.contains("in_port") {
                continue;
            }
            refuse(&mut testbed, &words, "OFPBAC_BAD_OUT_PORT");
        }
        assert_eq!((testbed.entries(1), testbed.groups(1)), before);
        for tenant in [RED, BLUE] {
            for to in destinations(tenant) {
                let words =
                    format!("flow add prio=5 match=dl_dst={} actions={actions}", address(to));
                both_say(&mut testbed, tenant, 1, &words);
            }
        }
        for tenant in [RED, BLUE] {
            all_same(&mut testbed, &plan(tenant), tenant, actions);
            for question in ["stats flow", "stats aggregate", "stats group"] {
                let received = testbed.say(tenant, 1, question);
                assert_eq!(
                    received,
                    testbed.say_beside(tenant, 1, question),
                    "{actions} {question}"
                );
            }
        }
    }
}

/// A host may be at a port of another member of the big switch.
#[test]
fn actions_after_a_shared_port_output_need_a_destination_on_big_switches() {
    for actions in ["flood;goto=1", "output:8,mod_dl_src:02.00.00.00.00.77,output:7,output:8"] {
        let mut testbed = Testbed::new(Version::V1_3, vec![big_plan(RED), big_plan(BLUE)]);
        refuse(&mut testbed, &format!("flow add prio=5 actions={actions}"), "OFPBAC_BAD_OUT_PORT");
        for to in destinations(RED) {
            let words = format!("flow add prio=5 match=dl_dst={} actions={actions}", address(to));
            both_say(&mut testbed, RED, 1, &words);
        }
        for (switch, port) in BIG_FROM {
            for to in destinations(RED) {
                same(&mut testbed, &big_plan(RED), (RED, switch, port), to, actions);
            }
        }
    }
}

/// Port 8 becomes shared while three entries output to it. Weir removes the entry that has more actions and names no
/// destination, and sends FLOW_REMOVED.
#[test]
fn unsupported_entries_are_removed_when_their_port_becomes_shared() {
    let mut testbed = Testbed::new(Version::V1_3, vec![plan_before_sharing(RED)]);
    testbed.play(
        "
        red@1> flow add prio=5 flags=rem actions=output:8;goto=1
        red@1> flow add prio=7 match=dl_vlan=5 flags=rem actions=output:8
        red@1> flow add prio=8 match=dl_dst=ff:ff:ff:ff:ff:ff flags=rem actions=output:8;goto=1
    ",
    );
    let (maps, tags) = Testbed::maps_from(2000, &[plan(RED)]);
    testbed.set_maps(&maps, 2000..=tags);
    testbed.play(
        "
        red@1< FLOW_REMOVED prio=5 any cookie=0x0 DELETE n=0
        only red@1:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:66:06 dl_dst=ff:ff:ff:ff:ff:ff
        wire< red@1:8[dl_dst=02:00:00:00:10:03]
    ",
    );
}
