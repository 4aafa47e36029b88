//! Tests of groups that output to shared edge ports. A bucket is accepted if its actions write the address of one of
//! the tenant's hosts. `sharing` tests random groups.

use crate::support::networks::both_say;
use crate::support::shared_ports::{
    BIG_FROM, BLUE, RED, all_same, big_plan, destinations, plan, plan_before_sharing, refuse, same,
    testbed,
};
use crate::support::*;

/// Buckets that output to a shared edge port and that Weir refuses. Most of these buckets do not write the address of
/// one host. `SERVED` has buckets that write such an address.
const REFUSED: [&str; 9] = [
    "output:7",
    "flood",
    "all",
    "in_port",
    "output:1|mod_dl_src:02.00.00.00.00.77,output:8",
    "mod_dl_dst:ff.ff.ff.ff.ff.ff,output:7",
    "mod_dl_dst:02.00.00.00.10.03,flood",
    "push_vlan:8100,mod_vlan_vid:7,output:7",
    "drop|output:1,output:7",
];
const SERVED: [&str; 5] = [
    "mod_dl_dst:02.00.00.00.10.03,output:8|output:1|output:10",
    "mod_dl_dst:02.00.00.00.10.03,output:8|mod_dl_dst:02.00.00.00.10.01,output:7",
    // The address of another tenant's host, and the address of a host at another port.
    "mod_dl_dst:02.00.00.00.11.01,output:7|mod_dl_dst:02.00.00.00.10.03,output:7|output:1",
    "push_vlan:8100,mod_vlan_vid:7,mod_dl_dst:02.00.00.00.10.01,output:7|output:10",
    "mod_dl_dst:02.00.00.00.10.02,in_port|output:10",
];

#[test]
fn only_buckets_with_a_host_address_may_output_to_a_shared_edge_port() {
    for buckets in SERVED {
        let mut testbed = testbed();
        for tenant in [RED, BLUE] {
            for words in [
                &format!("group add id=1 type=all buckets={buckets}"),
                "group add id=2 type=all buckets=group:1",
                "flow add prio=5 match=ip actions=group:1",
                "flow add prio=6 match=in_port=1 actions=write=group:2;goto=1",
                "flow add prio=4 match= actions=group:2;goto=1",
                "flow add prio=5 table=1 actions=meta=5/ff",
            ] {
                both_say(&mut testbed, tenant, 1, words);
            }
        }
        let groups = testbed.groups(1);
        for refused in REFUSED {
            for words in ["add id=3", "modify id=1"] {
                let words = format!("group {words} type=all buckets={refused}");
                refuse(&mut testbed, &words, "OFPBAC_BAD_OUT_PORT");
            }
        }
        assert_eq!(testbed.groups(1), groups);
        for tenant in [RED, BLUE] {
            all_same(&mut testbed, &plan(tenant), tenant, buckets);
            for question in ["stats group", "stats group_desc", "stats flow"] {
                let received = testbed.say(tenant, 1, question);
                assert_eq!(
                    received,
                    testbed.say_beside(tenant, 1, question),
                    "{buckets} {question}"
                );
            }
        }
    }
}

#[test]
fn groups_of_a_big_switch_send_to_hosts_at_ports_of_another_member() {
    let mut testbed = Testbed::new(Version::V1_3, vec![big_plan(RED), big_plan(BLUE)]);
    // Weir also refuses a bucket that adds a VLAN tag, because the frame has no room for the tag of another member's
    // port beside this tag.
    let tagged = "push_vlan:8100,mod_dl_dst:02.00.00.00.10.02,output:8";
    for buckets in ["output:8", tagged] {
        refuse(&mut testbed, &format!("group add id=1 buckets={buckets}"), "OFPBAC_BAD_OUT_PORT");
    }
    for words in [
        "group add id=1 type=all buckets=mod_dl_dst:02.00.00.00.10.02,output:8|\
         mod_nw_dst:10.0.0.9,mod_dl_dst:02.00.00.00.10.01,output:7",
        "flow add prio=6 match= actions=group:1",
    ] {
        both_say(&mut testbed, RED, 1, words);
    }
    for (switch, port) in BIG_FROM {
        for to in destinations(RED) {
            same(&mut testbed, &big_plan(RED), (RED, switch, port), to, "group");
        }
    }
}

/// A port of existing groups becomes shared. Weir removes the groups without a host's address, removes their entries,
/// and sends FLOW_REMOVED to the tenant.
#[test]
fn groups_without_a_host_address_are_removed_when_a_port_becomes_shared() {
    let mut testbed = Testbed::new(Version::V1_3, vec![plan_before_sharing(RED)]);
    testbed.play(
        "
        red@1> group add id=1 type=all buckets=output:8
        red@1> group add id=2 type=all buckets=mod_dl_dst:02.00.00.00.10.03,output:8
        red@1> flow add prio=4 match=in_port=1 flags=rem actions=group:2
        red@1> flow add prio=5 match=in_port=1 flags=rem actions=group:1
    ",
    );
    let (maps, tags) = Testbed::maps_from(2000, &[plan(RED)]);
    testbed.set_maps(&maps, 2000..=tags);
    testbed.play(
        "
        red@1< FLOW_REMOVED prio=5 in_port=1 cookie=0x0 DELETE n=0
        only red@1> stats group_desc -> STATS group_desc 2:SetField(ETH_DST=020000001003),output:8
        only red@1:1> 10.0.0.1>10.0.0.2 dl_src=02:00:00:00:66:06 dl_dst=ff:ff:ff:ff:ff:ff
        wire< red@1:8[dl_dst=02:00:00:00:10:03]
        only wait 20
        groups 1 0 0
    ",
    );
}
