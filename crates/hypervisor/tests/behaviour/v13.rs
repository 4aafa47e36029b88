//! Tests of the parts that only OpenFlow 1.3 has: roles, asynchronous configuration, several tables, groups and meters.

use crate::support::*;

const TWO: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
    blue: in_port=4
";

fn check(script: &str) {
    play_on(Version::V1_3, TWO, script);
}

#[test]
fn a_tenant_has_one_master_and_slaves_may_not_write() {
    check(
        "
        red1> 1 role nochange
        red1< 1 ROLE EQUAL generation=0xffffffffffffffff
        red1> 2 role master generation=5
        red1< 2 ROLE MASTER generation=0x5
        red2> 3 role master generation=6
        red2< 3 ROLE MASTER generation=0x6
        red1> 4 role nochange
        red1< 4 ROLE SLAVE generation=0x6
        red1> 5 flow add match=in_port=1 actions=output:2
        red1< 5 ERROR OFPBRC_IS_SLAVE of type 14 xid 5
        red1> 6 out in_port=1 actions=output:2 data=10.0.0.1>10.0.0.2
        red1< 6 ERROR OFPBRC_IS_SLAVE of type 13 xid 6
        red1> 7 stats port port=1
        red1< 7 STATS port 1
        red1> 8 role master generation=4
        red1< 8 ERROR OFPRRFC_STALE of type 24 xid 8
        red1> 9 role 7
        red1< 9 ERROR OFPRRFC_BAD_ROLE of type 24 xid 9
        red2> 10 flow add match=in_port=1 actions=output:2
        count= 1
        blue> 11 role master generation=1
        blue< 11 ROLE MASTER generation=0x1
        red2> 12 role nochange
        red2< 12 ROLE MASTER generation=0x6
    ",
    );
}

#[test]
fn a_slave_gets_only_port_status_without_set_async() {
    check(
        "
        red1> 1 role master generation=1
        red1< 1 ROLE MASTER generation=0x1
        red2> 2 role slave generation=1
        red2< 2 ROLE SLAVE generation=0x1
        red1> 3 flow add prio=0 actions=controller
        wire> 1 10.0.0.1>10.0.0.2
        red1< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2
        port down 1
        red1< PORT_STATUS MODIFY 1
        red2< PORT_STATUS MODIFY 1
        port up 1
        red1< PORT_STATUS MODIFY 1
        red2< PORT_STATUS MODIFY 1
        red2> 4 set_async in=7/7 port=7/0 removed=15/0
        red2> 5 get_async
        red2< 5 ASYNC [7, 7] [7, 0] [15, 0]
        wire> 1 10.0.0.1>10.0.0.2
        red1< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2
        red2< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2
        port down 1
        red1< PORT_STATUS MODIFY 1
    ",
    );
}

/// Weir requests from the switch all events that any controller wants. Each controller gets the events that it wants.
#[test]
fn invalid_ttl_packet_ins_reach_only_controllers_with_set_async() {
    check(
        "
        red1> 1 group add id=1 buckets=dec_ttl,controller
        red1> 2 flow add match=in_port=1,ip cookie=7 actions=dec_ttl,output:2
        red1> 2 flow add prio=0 cookie=8 actions=group:1
        blue> 3 flow add match=in_port=3,ip actions=dec_ttl,output:4
        wire> 1 ttl1:10.0.0.1>10.0.0.2
        wire<
        red1> 4 set_async in=4/4
        red1> 5 barrier
        red1< 5 BARRIER_REPLY
        wire> 1 ttl1:10.0.0.1>10.0.0.2
        wire<
        red1< PACKET_IN 1 INVALID_TTL 10.0.0.1>10.0.0.2
        wire> 2 ttl1:10.0.0.1>10.0.0.2
        red1< PACKET_IN 2 INVALID_TTL 10.0.0.1>10.0.0.2
        wire> 3 ttl1:10.0.0.1>10.0.0.2
        wire<
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2
        red2> 6 set_async in=0/4
        red2> 7 barrier
        red2< 7 BARRIER_REPLY
        red1> 8 set_async in=3/0
        wait 100ms
        wire> 1 ttl1:10.0.0.1>10.0.0.2
        red2> 9 role slave
        red2< 9 ROLE SLAVE generation=0x0
        wait 100ms
        wire> 1 ttl1:10.0.0.1>10.0.0.2
        red2< PACKET_IN 1 INVALID_TTL 10.0.0.1>10.0.0.2
    ",
    );
}

/// A controller sends 1,001 SET_ASYNC messages. Weir sends the switch at most three, and the last configuration
/// applies.
#[test]
fn frequent_set_async_changes_send_few_messages_to_the_switch() {
    let mut world = World::new(Setup {
        per_second: Some(1000),
        delay: 1_000_000,
        ..Setup::new(Version::V1_3, TWO)
    });
    let red = world.connect("red");
    world.south.clear();
    for _ in 0..500 {
        world.say(red, 1, "set_async in=7/0");
        world.say(red, 2, "set_async in=3/0");
    }
    world.say(red, 3, "set_async in=7/0");
    world.advance(1_000_000_000);
    let asked = world.south.iter().filter(|message| message[1] == 28).count();
    assert!((1..=3).contains(&asked), "{asked}");
    world.say(red, 4, "flow add match=in_port=1,ip actions=dec_ttl,output:2");
    world.advance(1_000_000_000);
    world.packet(1, &packet("ttl1:10.0.0.1>10.0.0.2"));
    assert_eq!(world.heard(red), ["PACKET_IN 1 INVALID_TTL 10.0.0.1>10.0.0.2"]);
}

#[test]
fn flow_tables_of_tenants_are_separate() {
    check(
        "
        red> 1 flow add table=0 match=in_port=1 actions=meta=5/ff;goto=3
        red> 2 flow add table=3 match=metadata=0x5/0xff actions=output:2
        blue> 3 flow add table=3 match= actions=output:4
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2
        wire> 3 10.0.0.1>10.0.0.2
        wire<
        red> 4 stats flow table=3
        red< 4 STATS flow table=3 prio=32768 metadata=0x5/0xff n=1 output:2
        red> 5 stats table_features
        red< 5 STATS table_features 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14
        red> 6 flow add table=15 actions=output:1
        red< 6 ERROR OFPFMFC_BAD_TABLE_ID of type 14 xid 6
        red> 7 table_mod table=0 config=0
        red> 8 table_mod table=0 config=1
        red< 8 ERROR OFPTMFC_EPERM of type 17 xid 8
        red> 9 table_mod table=15
        red< 9 ERROR OFPTMFC_BAD_TABLE of type 17 xid 9
    ",
    );
}

/// Statistics of an entry show the flags of the request (specification section 6.4).
#[test]
fn flow_statistics_show_each_flag_of_an_entry() {
    let mut world = World::new(Setup::new(Version::V1_3, TWO));
    let red = world.connect("red");
    world.say(red, 1, "flow add match=in_port=1 flags=rem,overlap,reset actions=output:2");
    world.say(red, 2, "stats flow");
    let received = world.received(red);
    let (_, reply) = openflow::v13::Message::parse(&received[0]).unwrap();
    let openflow::v13::Message::MultipartReply(reply) = reply else { panic!("{reply:?}") };
    let openflow::v13::MultipartReplyBody::Flow(flows) = reply.body else { panic!("{reply:?}") };
    assert_eq!(flows.iter().map(|flow| flow.flags.0).collect::<Vec<_>>(), [0b111]);
}

/// The tenant reads 0 in metadata bits that the tenant cannot write.
#[test]
fn an_exact_metadata_match_covers_only_bits_that_the_tenant_can_write() {
    check(
        "
        red> 1 flow add match=in_port=1 actions=meta=5/ff;goto=1
        red> 2 flow add table=1 match=metadata=0x5 cookie=7 actions=output:2
        red> 3 flow add table=1 match=metadata=0x1000000000005
        red< 3 ERROR OFPBMC_BAD_MASK of type 14 xid 3
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2
        red> 4 stats flow table=1 match=metadata=0x5
        red< 4 STATS flow table=1 prio=32768 metadata=0x5 cookie=0x7 n=1 output:2
        red> 5 flow modify_strict table=1 match=metadata=0x5/0xffffffffffff actions=
        red> 6 stats aggregate match=metadata=0x5
        red< 6 STATS aggregate flows=1 n=1
        wire> 1 10.0.0.1>10.0.0.2
        wire<
        red> 7 flow delete table=1 match=metadata=0x5
        count= 1
    ",
    );
}

/// Open vSwitch 3.1 crashes when a group is deleted that a rule names twice.
#[test]
fn an_entry_that_names_a_group_twice_is_refused() {
    check(
        "
        red> 1 group add id=1 buckets=output:1
        red> 1 group add id=2 buckets=output:2
        red> 2 flow add match=in_port=1 actions=group:1,group:1
        red< 2 ERROR OFPBAC_TOO_MANY of type 14 xid 2
        red> 3 flow add match=in_port=1 actions=group:1,output:2,group:2,group:1
        red< 3 ERROR OFPBAC_TOO_MANY of type 14 xid 3
        red> 4 flow add match=in_port=1 actions=group:1;write=group:1
        red< 4 ERROR OFPBAC_TOO_MANY of type 14 xid 4
        red> 5 flow add match=in_port=1 actions=write=group:1,group:1
        red< 5 ERROR OFPBAC_TOO_MANY of type 14 xid 5
        red> 6 flow add match=in_port=1 actions=group:1;write=group:2
        count= 1
        red> 7 flow modify actions=group:1;write=group:1
        red< 7 ERROR OFPBAC_TOO_MANY of type 14 xid 7
        red> 8 flow modify_strict match=in_port=1 actions=group:2,group:2
        red< 8 ERROR OFPBAC_TOO_MANY of type 14 xid 8
        red> 9 flow modify match=in_port=2 actions=group:2,group:2
        red< 9 ERROR OFPBAC_TOO_MANY of type 14 xid 9
        red> 10 stats group id=1
        red< 10 STATS group 1:0(0)
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2
        red> 11 out in_port=1 actions=group:2,group:2 data=10.0.0.1>10.0.0.2
        wire< 2
        wire< 2
    ",
    );
}

/// Open vSwitch 3.1 crashes when a packet is recirculated after the first table and its action set is longer than the
/// list of actions that are left.
#[test]
fn apply_actions_that_recirculate_are_refused_in_later_tables() {
    check(
        "
        red> 1 group add id=1 type=select buckets=1*output:1|1*output:2
        red> 1 group add id=2 buckets=group:1
        red> 1 group add id=3 buckets=output:1
        red> 1 group add id=4 buckets=group:3
        red> 1 group add id=5 buckets=pop_mpls:800,output:1
        red> 2 flow add match=in_port=1 actions=group:1,group:2,group:5
        red> 3 flow add match=in_port=2,mpls actions=pop_mpls:800,output:1
        red> 4 flow add table=1 actions=group:1
        red< 4 ERROR OFPBIC_UNSUP_INST of type 14 xid 4
        red> 5 flow add table=1 actions=output:1,group:2;write=output:1
        red< 5 ERROR OFPBIC_UNSUP_INST of type 14 xid 5
        red> 6 flow add table=2 actions=group:5
        red< 6 ERROR OFPBIC_UNSUP_INST of type 14 xid 6
        red> 7 flow add table=2 match=mpls actions=pop_mpls:800,output:1
        red< 7 ERROR OFPBIC_UNSUP_INST of type 14 xid 7
        red> 8 flow add table=1 actions=write=pop_mpls:800,group:1
        red> 8 flow add table=2 actions=group:4
        count= 4
        red> 9 flow modify table=2 actions=group:2
        red< 9 ERROR OFPBIC_UNSUP_INST of type 14 xid 9
        red> 10 group modify id=3 type=select buckets=1*output:1
        red< 10 ERROR OFPGMFC_EPERM of type 15 xid 10
        red> 11 group modify id=4 buckets=group:1
        red< 11 ERROR OFPGMFC_EPERM of type 15 xid 11
        red> 12 group modify id=3 buckets=output:2
        red> 13 flow delete table=2
        red> 14 group modify id=3 type=select buckets=1*output:1
        red> 15 flow add table=2 actions=group:4
        red< 15 ERROR OFPBIC_UNSUP_INST of type 14 xid 15
        red> 16 group modify id=3 buckets=output:1
        red> 17 flow add table=2 actions=group:4
        count= 4
    ",
    );
}

/// With two buckets that send to the previous group, each group doubles the number of packets.
#[test]
fn group_chains_with_more_than_4096_buckets_are_refused() {
    let mut world = World::new(Setup::new(Version::V1_3, TWO));
    let red = world.connect("red");
    world.say(red, 1, "group add id=1 buckets=output:1|output:2");
    for id in 2..12 {
        let before = id - 1;
        world.say(red, 1, &format!("group add id={id} buckets=group:{before}|group:{before}"));
    }
    assert_eq!(world.heard(red), [""; 0], "the last passes 4,094 buckets");
    world.say(red, 1, "group add id=20 buckets=group:11|output:1");
    assert_eq!(world.heard(red), [""; 0], "4,096 buckets");
    for words in [
        "group modify id=20 buckets=group:11|output:1|output:2", // 4,097 buckets
        "group add id=21 buckets=group:11|output:1|output:2",
        "group add id=12 buckets=group:11|group:11",
        "group modify id=1 buckets=output:1|output:2|output:1",
        "group modify id=5 buckets=group:4|group:4|group:4",
    ] {
        world.say(red, 2, words);
        assert_eq!(
            world.heard(red),
            ["2 ERROR OFPGMFC_OUT_OF_BUCKETS of type 15 xid 2"],
            "{words}"
        );
    }
    world.say(red, 3, "group modify id=1 buckets=output:1");
    world.say(red, 4, "group add id=12 buckets=group:11|output:1");
    assert_eq!(world.heard(red), [""; 0]);
}

#[test]
fn each_tenant_has_its_own_groups() {
    check(
        "
        red> 1 group add id=1 buckets=output:1|output:2
        blue> 1 group add id=1 buckets=output:4
        red> 2 flow add match=in_port=1 actions=group:1
        blue> 2 flow add match=in_port=3 actions=group:1
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2
        wire> 3 10.0.0.1>10.0.0.2
        wire< 4
        red> 3 stats group_desc
        red< 3 STATS group_desc 1:output:1 output:2
        blue> 3 stats group
        blue< 3 STATS group 1:1(1)
        red> 4 group add id=2 buckets=output:3
        red< 4 ERROR OFPBAC_BAD_OUT_PORT of type 15 xid 4
        red> 5 group add id=1 buckets=output:1
        red< 5 ERROR OFPGMFC_GROUP_EXISTS of type 15 xid 5
        red> 6 flow add match=in_port=2 actions=group:9
        red< 6 ERROR OFPBAC_BAD_OUT_GROUP of type 14 xid 6
        red> 7 group modify id=1 buckets=output:1
        red> 8 group delete id=all
        red> 9 stats group_desc
        red< 9 STATS group_desc
        red> 10 stats flow
        red< 10 STATS flow
        wire> 3 10.0.0.1>10.0.0.2
        wire< 4
    ",
    );
}

/// A meter is deleted, and the switch deletes the entry with the meter. The switch reports the deletion after red has
/// added a new entry with the same match and priority.
#[test]
fn a_new_entry_stays_after_the_old_entry_was_deleted_with_its_meter() {
    for again in ["actions=output:2", "actions=meter=1;output:2"] {
        let mut world =
            World::new(Setup { per_second: Some(1_000), ..Setup::new(Version::V1_3, TWO) });
        let red = world.connect("red");
        world.say(red, 1, "meter add id=1");
        world.say(red, 2, "flow add match=in_port=1 prio=7 actions=meter=1;output:2 flags=rem");
        world.advance(1_000_000_000);
        world.say(red, 3, "meter delete id=1");
        world.say(red, 4, "meter add id=1");
        world.say(red, 5, &format!("flow add match=in_port=1 prio=7 {again}"));
        world.advance(1_000_000_000);
        let expected = ["FLOW_REMOVED prio=7 in_port=1 cookie=0x0 DELETE n=0"];
        assert_eq!(world.heard(red), expected, "{again}");
        world.say(red, 6, "stats flow");
        world.advance(1_000_000_000);
        let words = format!("6 STATS flow prio=7 in_port=1 n=0 {}", &again["actions=".len()..]);
        assert_eq!(world.heard(red), [words]);
        let flows = world.tenant_flows();
        assert_eq!((flows.len(), world.core.tenants().next().unwrap().flows), (1, 1));
        world.reconnect();
        assert_eq!(world.tenant_flows(), flows);
    }
}

/// Another program has a meter with the same number on the switch, so the switch refuses red's meter.
#[test]
fn an_entry_is_refused_when_its_meter_is_refused() {
    let mut world = World::new(Setup { per_second: Some(1_000), ..Setup::new(Version::V1_3, TWO) });
    world.behind("meter add id=1");
    let red = world.connect("red");
    world.say(red, 1, "meter add id=1");
    world.say(red, 2, "flow add match=in_port=1 prio=7 actions=meter=1;output:2 flags=rem");
    world.advance(1_000_000_000);
    let heard = world.heard(red);
    assert!(heard[0].starts_with("1 ERROR OFPMMFC_METER_EXISTS"), "{heard:?}");
    assert_eq!(heard[1..], ["2 ERROR OFPMMFC_UNKNOWN_METER of type 14 xid 2"]);
    assert_eq!(world.tenant_flows(), [""; 0]);
    assert_eq!(world.core.tenants().next().unwrap().flows, 0);
}

#[test]
fn each_tenant_has_its_own_meters() {
    check(
        "
        red> 1 meter add id=1
        blue> 1 meter add id=1
        red> 2 flow add match=in_port=1 actions=meter=1;output:2
        red> 3 stats meter
        red< 3 STATS meter 1:0(0)
        red> 4 meter delete id=all
        red> 5 stats meter
        red< 5 STATS meter
        blue> 6 stats meter_config
        blue< 6 STATS meter_config 1
        red> 7 flow add match=in_port=1 actions=meter=1;output:2
        red< 7 ERROR OFPMMFC_UNKNOWN_METER of type 14 xid 7
    ",
    );
}

#[test]
fn flowspaces_with_vlan_tci_and_udp_port_select_their_packets() {
    play_on(
        Version::V1_3,
        "
        red: vlan_tci=0x1005/0x1fff
        blue: udp,tp_dst=53
    ",
        "
        red> 1 flow add actions=output:2
        blue> 1 flow add actions=output:3
        wire> 1 vlan5:10.0.0.1>10.0.0.2
        wire< 2
        wire> 1 tp53:10.0.0.1>10.0.0.2
        wire< 3
        wire> 1 10.0.0.1>10.0.0.2
        wire<
    ",
    );
}

#[test]
fn refused_group_changes_are_undone_with_more_changes_in_flight() {
    // The switch refuses each GROUP_MOD whose number is a multiple of `every`. Then the number of groups is `left`.
    for (every, left) in [(1, 0), (2, 0), (3, 1), (4, 0), (5, 1)] {
        let setup = Setup { per_second: Some(1_000), ..Setup::new(Version::V1_3, TWO) };
        let mut world = World::new(setup);
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.switch.switch_mut().plant(vec![emulate::Fault::RefuseGroupMods { every }]);
        world.say(red, 1, "group add id=1 buckets=output:1");
        world.say(red, 2, "group modify id=1 buckets=output:2");
        world.say(red, 3, "group delete id=1");
        world.say(red, 4, "group add id=1 buckets=output:1");
        world.advance(1_000_000_000);
        let _ = world.heard(red);
        world.switch.switch_mut().plant(Vec::new());
        world.say(red, 5, "stats group_desc");
        world.advance(1_000_000_000);
        let received = world.heard(red);
        let groups = received[0].matches("output").count();
        assert_eq!(groups, left, "every {every}: {received:?}");
        assert_eq!(world.switch.switch().group_count(), left, "every {every}");
        // The groups of each tenant are on the switch: each tenant can use its group, and no other.
        world.say(blue, 1, "group add id=9 buckets=output:4");
        world.say(blue, 2, "flow add match=in_port=3 actions=group:9");
        if left > 0 {
            world.say(red, 6, "flow add match=in_port=1 actions=group:1");
        }
        world.advance(1_000_000_000);
        assert_eq!((world.heard(blue), world.heard(red)), (vec![], vec![]), "every {every}");
        assert_eq!(world.packet(3, &packet("10.2.0.1>10.9.0.1")), [4], "every {every}");
    }
}
