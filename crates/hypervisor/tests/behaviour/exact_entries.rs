//! Tests of entries without wildcards on OpenFlow 1.0. Such an entry has the highest priority, whatever priority the
//! tenant wrote (specification section 3.4).

use crate::support::networks::two_networks;
use crate::support::*;
use hypervisor::StoreKey;
use hypervisor::store::Kind;

/// The VLAN tags of the packet: the prefix of the packet's name in the test, and the match fields for the tag.
const TAGS: [(&str, &str); 2] = [("", "dl_vlan=0xffff"), ("vlan5:", "dl_vlan=5,dl_vlan_pcp=0")];

const ONE_FRAME: &str = "10.1.0.1>10.0.0.2 dl_src=02:00:00:00:00:01 dl_dst=02:00:00:00:00:02";

fn wire(tag: &str) -> Vec<u8> {
    packet(&format!("{tag}{ONE_FRAME}"))
}

/// The tenant's virtual switch and a switch of the tenant's own have the same results.
#[test]
fn an_entry_without_wildcards_has_the_highest_priority_in_a_network() {
    for (name, tag) in TAGS {
        let exact = format!("full=1 match=in_port=1,{tag},{ONE_PACKET}");
        let packet = format!("red@1:1> {name}{ONE_FRAME}");
        // Each ADD of the exact match replaces the same entry, because the entry has the highest priority, whatever the
        // request says. The entry overlaps only with other entries of the highest priority.
        Testbed::new(Version::V1_0, two_networks()).play(&format!(
            "
            red@1> flow add prio=1 flags=rem cookie=1 {exact} actions=output:2
            red@1> flow add prio=10 match=in_port=1 actions=drop
            {packet} -> red@1:2
            red@1> flow add prio=9 flags=rem cookie=9 {exact} actions=output:2
            {packet} -> red@1:2
            red@1> stats flow -> same
            red@1> flow add prio=7 flags=overlap {exact} actions=output:2
            red@1> flow add prio=65535 flags=overlap match=in_port=1 actions=drop -> ERROR OFPFMFC_OVERLAP
            red@1> flow modify_strict prio=3 {exact} actions=output:1
            red@1> stats flow -> same
            red@1> flow delete_strict prio=5 match=in_port=1
            red@1> flow delete_strict prio=5 {exact}
            red@1> stats flow -> STATS flow prio=10 in_port=1 n=0 drop
            {packet}
        "
        ));
    }
}

const BY_ADDRESS: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

#[test]
fn an_entry_without_wildcards_stays_when_the_switch_reconnects() {
    for (name, tag) in TAGS {
        for timeouts in ["", "hard=1000", "idle=1000"] {
            let mut world = World::new(Setup::new(Version::V1_0, BY_ADDRESS));
            let red = world.connect("red");
            let exact = format!("full=1 match=in_port=1,{tag},{ONE_PACKET}");
            let words = format!("flow add prio=5 {timeouts} flags=rem {exact} actions=output:2");
            world.say(red, 1, &words);
            assert_eq!(world.packet(1, &wire(name)), [2]);
            let before = world.switch_entries();
            assert!(before[0].contains("prio=65535"), "{before:?}");
            world.reconnect();
            assert_eq!(world.switch_entries(), before, "{timeouts}");
            let red = world.connect("red");
            world.say(red, 2, "stats aggregate");
            world.advance(1_000_000_000);
            assert_eq!(world.heard(red), ["2 STATS aggregate flows=1 n=1"], "{timeouts}");
            world.say(red, 3, &format!("flow delete_strict prio=7 {exact}"));
            let received = world.heard(red);
            assert!(
                matches!(&received[..], [it] if it.starts_with("FLOW_REMOVED prio=65535 ")),
                "{received:?}"
            );
        }
    }
}

/// Earlier versions of Weir stored the priority of the request.
#[test]
fn stored_entries_without_wildcards_get_the_highest_priority() {
    for (_, tag) in TAGS {
        let mut world = World::new(Setup::new(Version::V1_0, BY_ADDRESS));
        let red = world.connect("red");
        let exact = format!("full=1 match=in_port=1,{tag},{ONE_PACKET}");
        world.say(red, 1, &format!("flow add prio=5 {exact} actions=output:2"));
        world.advance(1_000_000_000);
        let before = world.switch_entries();
        let key = *world.store.keys().next().unwrap();
        world.store.get_mut(&key).unwrap()[2..4].copy_from_slice(&5u16.to_be_bytes());
        // A second stored entry has the same match, and the switch holds one rule for both entries. Weir keeps one
        // entry.
        let (tenant, second) = (world.tenant("red"), world.store[&key].clone());
        world.store.insert(StoreKey::new(tenant, Kind::Flow, 77), second);
        world.reconnect();
        assert_eq!(world.switch_entries(), before);
        assert_eq!(world.store.len(), 1);
        let red = world.connect("red");
        world.say(red, 2, &format!("flow delete_strict prio=7 {exact}"));
        assert_eq!(world.switch_entries(), [""; 0]);
    }
}

/// On a big switch each member holds the entry. A frame with a VLAN tag does not cross to the other member.
#[test]
fn an_entry_without_wildcards_has_the_highest_priority_on_a_big_switch() {
    let plan = Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 3), (1, 3, 4)],
        big: vec![1, 2],
        ..Plan::default()
    };
    for ((name, tag), [to, at]) in TAGS.into_iter().zip([["output:3", "2:3"], ["output:4", "1:4"]])
    {
        let exact = format!("full=1 match=in_port=1,{tag},{ONE_PACKET}");
        Testbed::new(Version::V1_0, vec![plan.clone()]).play(&format!(
            "
            red@1> flow add prio=1 flags=rem cookie=1 {exact} actions={to},output:2
            red@1> flow add prio=10 match=in_port=1 actions=drop
            red@1:1> {name}{ONE_FRAME} -> red@1:2 red@{at}
            red@1> stats flow -> same
            red@1> flow delete_strict prio=5 {exact} -> same
        "
        ));
    }
}

const BY_PORT: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";

/// In a slice, Weir adds the ingress port to the match. Then the rule has no wildcards and the highest priority. So
/// packets match this rule before the rule of an entry with a higher priority of the tenant's.
#[test]
fn a_slice_entry_with_a_rule_without_wildcards_has_the_highest_priority() {
    let mut world = World::new(Setup::new(Version::V1_0, BY_PORT));
    let red = world.connect("red");
    world.say(red, 1, &format!("flow add prio=1 match={} actions=output:2", but_for_the_port()));
    world.say(red, 2, "flow add prio=10 match=in_port=1 actions=drop");
    assert_eq!(world.packet(1, &wire("vlan5:")), [2]);
    world.say(red, 3, "stats flow match=dl_vlan=5");
    world.advance(1_000_000_000);
    let received = world.heard(red);
    assert!(received[0].starts_with("3 STATS flow prio=1 "), "{received:?}");
}

#[test]
fn a_slice_entry_with_a_rule_without_wildcards_stays_after_a_reconnect() {
    for timeouts in ["", "hard=1000", "idle=1000"] {
        let mut world = World::new(Setup::new(Version::V1_0, BY_PORT));
        let red = world.connect("red");
        let match_ = but_for_the_port();
        let words = format!("flow add prio=5 {timeouts} flags=rem match={match_} actions=output:2");
        world.say(red, 1, &words);
        assert_eq!(world.packet(1, &wire("vlan5:")), [2]);
        let before = world.switch_entries();
        assert_eq!(before.len(), 2);
        world.reconnect();
        assert_eq!(world.switch_entries(), before, "{timeouts}");
        let red = world.connect("red");
        world.say(red, 2, "stats aggregate");
        world.advance(1_000_000_000);
        assert_eq!(world.heard(red), ["2 STATS aggregate flows=1 n=1"], "{timeouts}");
    }
}

/// The switch can hold only one of the two rules, whatever their priorities.
#[test]
fn a_second_entry_with_the_same_rule_without_wildcards_is_refused() {
    let all = but_for_the_port();
    let exact = format!("in_port=1,{all}");
    for (first, second) in [(&all, &all), (&all, &exact), (&exact, &all)] {
        let mut world = World::new(Setup::new(Version::V1_0, BY_PORT));
        let red = world.connect("red");
        world.say(red, 1, &format!("flow add prio=5 match={first} actions=output:2"));
        let before = world.switch_entries();
        world.say(red, 2, &format!("flow add prio=9 match={second} actions=output:1"));
        assert_eq!(world.heard(red), ["2 ERROR OFPFMFC_OVERLAP of type 14 xid 2"]);
        assert_eq!(world.switch_entries(), before);
        world.say(red, 3, &format!("flow delete match={first}"));
        world.say(red, 4, &format!("flow add prio=9 match={second} actions=output:1"));
        assert_eq!(world.heard(red), [""; 0]);
    }
}
