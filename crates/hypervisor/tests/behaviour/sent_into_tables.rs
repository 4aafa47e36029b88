//! Tests of PACKET_OUT from port CONTROLLER to TABLE in a network. The packet enters the tenant's tables without an
//! ingress port.

use crate::support::networks::{both_say, two_networks};
use crate::support::*;

/// Blue's links to the other two switches leave the first switch by one physical port.
const BLUE: usize = 1;

#[track_caller]
fn same_out(testbed: &mut Testbed, tenant: usize, words: &str) -> Seen {
    let seen = testbed.out(tenant, 1, words);
    assert_eq!(seen, testbed.out_beside(tenant, 1, words), "{words}");
    seen
}

fn out(name: &str) -> String {
    format!("out in_port=controller actions=table data={name}")
}

#[test]
fn a_packet_out_to_table_is_matched_with_the_tenants_entries() {
    for version in VERSIONS {
        for tenant in [0, BLUE] {
            let mut testbed = Testbed::new(version, two_networks());
            for words in [
                "flow add match=in_port=1 prio=9 actions=drop",
                "flow add match=ip,nw_src=10.0.0.1 prio=5 actions=output:1,output:10",
                "flow add match=ip,nw_src=10.0.0.2 prio=5 actions=controller",
                "flow add match=ip,nw_src=10.0.0.3 prio=5 actions=flood",
                "flow add match=ip,nw_src=10.0.0.4 prio=5 actions=drop",
                "flow add match=arp prio=5 actions=mod_dl_src:02.00.00.00.00.55,output:1",
            ] {
                both_say(&mut testbed, tenant, 1, words);
            }
            for switch in [2, 3] {
                both_say(&mut testbed, tenant, switch, "flow add prio=1 actions=output:1");
            }
            for (name, is_sent, is_received) in [
                ("10.0.0.1>10.0.0.9", true, false),
                ("vlan5:10.0.0.1>10.0.0.9", true, false),
                ("10.0.0.2>10.0.0.9", false, true),
                ("10.0.0.3>10.0.0.9", true, false),
                ("10.0.0.4>10.0.0.9", false, false),
                ("arp:10.0.0.5>10.0.0.9", true, false),
                // On 1.3 a packet that matches no entry causes no PACKET_IN.
                ("10.0.0.6>10.0.0.9", false, version == Version::V1_0),
            ] {
                // On 1.0 frames with a VLAN tag do not cross links, so a tagged frame does not match the entry that
                // outputs to a link.
                if version == Version::V1_0 && name.starts_with("vlan") {
                    continue;
                }
                let seen = same_out(&mut testbed, tenant, &out(name));
                let is = (!seen.delivered.is_empty(), !seen.received.is_empty());
                assert_eq!(is, (is_sent, is_received), "{version:?} {tenant} {name}: {seen:?}");
            }
            for question in ["stats flow", "stats aggregate"] {
                let received = testbed.say(tenant, 1, question);
                assert_eq!(received, testbed.say_beside(tenant, 1, question), "{version:?}");
            }
        }
    }
}

/// On OpenFlow 1.0 Weir searches the tenant's entries for the packet. A long search delays all tenants.
#[test]
fn a_packet_out_to_table_is_refused_above_4096_entries_on_1_0() {
    let mut world = World::new(Setup::new(Version::V1_0, "blue flows=5000 own=3+4: -"));
    let blue = world.connect("blue");
    for number in 0..4096 {
        let source = format!("10.1.{}.{}", number >> 8, number & 255);
        world.say(blue, 1, &format!("flow add match=in_port=1,ip,nw_src={source} actions=drop"));
    }
    world.say(blue, 2, &out("10.0.0.1>10.0.0.2"));
    assert_eq!(world.heard(blue), ["PACKET_IN 65533 NO_MATCH 10.0.0.1>10.0.0.2"]);
    world.say(blue, 3, "flow add match=in_port=1 actions=drop");
    world.say(blue, 4, &out("10.0.0.1>10.0.0.2"));
    assert_eq!(world.heard(blue), ["4 ERROR OFPBRC_EPERM of type 13 xid 4"]);
}

/// The packet matches an entry in each of three tables, causes a PACKET_IN, and leaves by the group in its action set.
#[test]
fn a_packet_out_to_table_continues_in_later_tables() {
    Testbed::new(Version::V1_3, two_networks()).play(
        "
        blue@1> group add id=1 type=all buckets=output:11|output:10|output:1
        blue@1> flow add match=ip prio=5 actions=meta=5/ff;goto=1
        blue@1> flow add table=1 match=ip,metadata=0x5 prio=5 actions=write=group:1;goto=2
        blue@1> flow add table=2 prio=0 cookie=7 actions=controller
        blue@1> out in_port=controller actions=table data=10.0.0.1>10.0.0.9 -> PACKET_IN 4294967293 NO_MATCH 10.0.0.1>10.0.0.9 metadata=0x5
        wire< blue@1:1
    ",
    );
}

/// Red has a slice and sends packets with VLAN ids of links and with other VLAN ids to TABLE. Blue's network receives
/// none of these packets. A PACKET_OUT of blue enters blue's network.
#[test]
fn a_packet_out_from_a_slice_does_not_enter_a_network() {
    let mut policy = policy("red: any\nblue own=3+4: -");
    policy.tags = Some(2000..=2100);
    let mut world = World::new(Setup { policy, ..Setup::new(Version::V1_3, "") });
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    world.say(blue, 1, "flow add prio=5 actions=controller");
    for vid in [1, 2, 3, 2000, 2001, 2002] {
        let data = format!("vlan{vid}:10.0.0.1>10.0.0.2");
        world.say(red, 7, &format!("out in_port=controller actions=table data={data}"));
    }
    assert_eq!(world.heard(blue), [""; 0]);
    world.say(blue, 8, "out in_port=controller actions=table data=10.0.0.1>10.0.0.2");
    assert_eq!(world.heard(blue), ["PACKET_IN 4294967293 ACTION 10.0.0.1>10.0.0.2"]);
}
