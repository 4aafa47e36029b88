//! Tests of FLOW_MOD. Each tenant has one virtual table of entries. The tests compare this table with the rules on the
//! switch: matches, priorities, limits, timeouts, cookies and refusals.

use crate::support::*;

const TWO: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

/// red's space has two flowspace entries: on OpenFlow 1.0 a wide entry becomes two rules.
const RULES: &str = "
    red: ip,nw_src=10.1.0.0/16
    red: ip,nw_dst=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16 @50
";

#[test]
fn a_wildcard_entry_matches_only_packets_of_the_tenants_flowspace() {
    both(
        TWO,
        "
        red> 1 flow add actions=output:2 prio=5
        [1.0] switch= prio=5 ip,nw_src=10.1.0.0/16
        wire> 1 10.1.0.1>10.2.0.1
        wire< 2
        wire> 1 10.2.0.1>10.1.0.1
        wire<
        blue>
        wire> 1 arp:10.1.0.1>10.2.0.1
        wire<
    ",
    );
}

#[test]
fn an_entry_for_packets_of_another_tenant_is_refused_or_matches_no_packet() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.2.0.1 actions=output:2
        [1.0] red< 1 ERROR OFPFMFC_EPERM of type 14 xid 1
        [1.0] blue>
        wire> 1 10.2.0.1>10.1.0.1
        [1.0] blue< PACKET_IN 1 NO_MATCH 10.2.0.1>10.1.0.1
        wire<
        [1.0] count= 0
    ",
    );
}

#[test]
fn the_longer_prefix_of_entry_and_flowspace_is_installed() {
    play_on(Version::V1_0, TWO, "
        red> 1 flow add match=ip,nw_src=10.0.0.0/8 prio=1 actions=output:2
        red> 2 flow add match=ip,nw_src=10.1.5.0/24 prio=2 actions=output:3
        red> 3 flow add match=ip,nw_src=10.1.5.0/24,nw_dst=10.2.0.0/16 prio=3 actions=output:4
        switch= prio=1 ip,nw_src=10.1.0.0/16; prio=2 ip,nw_src=10.1.5.0/24; prio=3 ip,nw_src=10.1.5.0/24,nw_dst=10.2.0.0/16
        red> 4 stats flow
        red< 4 STATS flow prio=1 ip,nw_src=10.0.0.0/8 n=0 output:2; prio=2 ip,nw_src=10.1.5.0/24 n=0 output:3; prio=3 ip,nw_src=10.1.5.0/24,nw_dst=10.2.0.0/16 n=0 output:4
    ");
}

#[test]
fn an_entry_with_several_rules_is_reported_as_one_entry_to_the_tenant() {
    both(
        RULES,
        "
        red> 1 flow add actions=output:3 cookie=7 prio=5 flags=rem
        [1.0] count= 2
        [1.3] count= 1
        wire> 1 10.1.0.1>10.9.0.1
        wire< 3
        wire> 1 10.9.0.1>10.1.0.1
        wire< 3
        red> 2 stats flow
        red< 2 STATS flow prio=5 any cookie=0x7 n=2 output:3
        red> 3 stats aggregate
        red< 3 STATS aggregate flows=1 n=2
        red> 4 flow delete
        red< FLOW_REMOVED prio=5 any cookie=0x7 DELETE n=2
        count= 0
    ",
    );
}

#[test]
fn an_entry_with_several_rules_expires_with_one_flow_removed() {
    both(
        RULES,
        "
        red> 1 flow add actions=output:3 cookie=7 prio=5 flags=rem idle=2
        red> 2 flow add match=ip,nw_dst=10.1.0.1 actions=output:3 cookie=8 prio=6 flags=rem hard=2
        wait 1s
        wire> 1 10.1.0.1>10.9.0.1
        wait 1500ms
        red< FLOW_REMOVED prio=6 ip,nw_dst=10.1.0.1 cookie=0x8 HARD_TIMEOUT n=0
        wait 1s
        red< FLOW_REMOVED prio=5 any cookie=0x7 IDLE_TIMEOUT n=1
        red> 3 stats flow
        red< 3 STATS flow
        count= 0
    ",
    );
}

#[test]
fn wildcard_entries_of_many_tenants_need_one_rule_each() {
    let policy: String = (1..=20).map(|n| format!("t{n}x: ip,nw_src=10.{n}.0.0/16\n")).collect();
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, &policy));
        let seats: Vec<Seat> = (1..=20).map(|n| world.connect(&format!("t{n}x"))).collect();
        world.south.clear();
        for seat in seats {
            world.say(seat, 1, "flow add actions=output:2 prio=1");
            world.say(seat, 2, "flow add match=ip actions=output:3 prio=2");
            assert_eq!(world.heard(seat), [""; 0]);
        }
        // FlowVisor installs 800 rules for these entries.
        assert_eq!(world.tenant_flows().len(), 40);
        assert_eq!(world.south_types().iter().filter(|type_| **type_ == 14).count(), 40);
    }
}

#[test]
fn modify_and_delete_reach_the_tenants_own_entries_only() {
    both(TWO, "
        red> 1 flow add match=ip,nw_src=10.1.0.1 prio=1 cookie=1 actions=output:1
        red> 2 flow add match=ip,nw_src=10.1.0.2 prio=2 cookie=2 actions=output:2
        blue> 1 flow add match=ip,nw_src=10.2.0.1 prio=1 cookie=1 actions=output:1
        red> 3 flow modify actions=output:4 cookie=3
        red> 4 stats flow
        [1.0] red< 4 STATS flow prio=1 ip,nw_src=10.1.0.1 cookie=0x3 n=0 output:4; prio=2 ip,nw_src=10.1.0.2 cookie=0x3 n=0 output:4
        [1.3] red< 4 STATS flow prio=1 ip,nw_src=10.1.0.1 cookie=0x1 n=0 output:4; prio=2 ip,nw_src=10.1.0.2 cookie=0x2 n=0 output:4
        wire> 3 10.2.0.1>10.1.0.1
        wire< 1
        red> 5 flow delete
        count= 1
        wire> 3 10.2.0.1>10.1.0.1
        wire< 1
        blue> 6 stats flow
        blue< 6 STATS flow prio=1 ip,nw_src=10.2.0.1 cookie=0x1 n=2 output:1
    ");
}

#[test]
fn strict_commands_change_only_the_entry_with_equal_match_and_priority() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.1 prio=1 actions=output:1
        red> 2 flow add match=ip,nw_src=10.1.0.1 prio=2 actions=output:2
        red> 3 flow modify_strict match=ip,nw_src=10.1.0.1 prio=1 actions=output:3
        red> 4 flow delete_strict match=ip,nw_src=10.1.0.0/16 prio=1
        red> 5 flow delete_strict match=ip,nw_src=10.1.0.1 prio=2
        red> 6 stats flow
        red< 6 STATS flow prio=1 ip,nw_src=10.1.0.1 n=0 output:3
    ",
    );
}

#[test]
fn delete_and_flow_statistics_can_select_by_output_port() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.1 prio=1 actions=output:1
        red> 2 flow add match=ip,nw_src=10.1.0.1 prio=2 actions=output:2
        red> 3 flow delete out_port=2
        red> 4 stats flow out_port=1
        red< 4 STATS flow prio=1 ip,nw_src=10.1.0.1 n=0 output:1
        red> 5 stats flow out_port=2
        red< 5 STATS flow
    ",
    );
}

#[test]
fn modify_without_a_matching_entry_adds_an_entry_only_on_1_0() {
    both(
        TWO,
        "
        red> 1 flow modify match=ip,nw_src=10.1.0.1 prio=1 actions=output:1
        [1.0] count= 1
        [1.3] count= 0
    ",
    );
}

#[test]
fn an_add_with_equal_match_and_priority_replaces_the_entry() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.1 prio=1 cookie=1 flags=rem actions=output:1
        red> 2 flow add match=ip,nw_src=10.1.0.1 prio=1 cookie=2 flags=rem actions=output:2
        red> 3 stats flow
        red< 3 STATS flow prio=1 ip,nw_src=10.1.0.1 cookie=0x2 n=0 output:2
        count= 1
        red> 4 flow delete
        red< FLOW_REMOVED prio=1 ip,nw_src=10.1.0.1 cookie=0x2 DELETE n=0
    ",
    );
}

#[test]
fn overlap_is_checked_against_the_tenants_own_entries() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.0/16 prio=5 actions=output:1
        red> 2 flow add match=ip,nw_src=10.1.0.1 prio=5 flags=overlap actions=output:2
        red< 2 ERROR OFPFMFC_OVERLAP of type 14 xid 2
        red> 3 flow add match=ip,nw_src=10.1.0.1 prio=6 flags=overlap actions=output:2
        blue> 4 flow add match=ip prio=5 flags=overlap actions=output:2
        count= 3
    ",
    );
}

/// One entry of the tenant may be several rules on the switch. The entries of other tenants do not count.
#[test]
fn the_number_of_rules_of_a_tenant_on_the_switch_is_limited() {
    play_on(
        Version::V1_0,
        "
        red entries=5: ip,nw_src=10.1.0.0/16
        red: ip,nw_dst=10.1.0.0/16
        blue entries=1: ip,nw_src=10.2.0.0/16 @50
    ",
        "
        red> 1 flow add match= prio=1 actions=output:1
        red> 2 flow add match= prio=2 actions=output:1
        count= 4
        red> 3 flow add match= prio=3 actions=output:1
        red< 3 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 3
        red> 4 flow modify match=tcp prio=3 actions=output:1
        red< 4 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 4
        red> 5 flow add match=ip,nw_src=10.1.0.1,nw_dst=10.9.0.1 prio=3 actions=output:1
        count= 5
        red> 6 flow add match= prio=2 actions=output:2
        red> 7 flow modify match= actions=output:3
        red> 8 flow add match=ip,nw_src=10.1.0.2,nw_dst=10.9.0.1 prio=3 actions=output:1
        red< 8 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 8
        blue> 9 flow add match=ip,nw_src=10.2.0.1,nw_dst=10.9.0.1 prio=3 actions=output:1
        count= 6
        red> 10 flow delete match=ip,nw_src=10.1.0.1,nw_dst=10.9.0.1
        red> 11 flow add match=ip,nw_src=10.1.0.2,nw_dst=10.9.0.1 prio=3 actions=output:1
        count= 6
    ",
    );
}

#[test]
fn refused_replaced_and_removed_entries_do_not_count_toward_the_limit() {
    both(
        "
        red flows=2: ip,nw_src=10.1.0.0/16
        blue: ip,nw_src=10.2.0.0/16
    ",
        "
        red> 1 flow delete match=ip,nw_src=10.1.0.9
        [1.0] red> 2 flow add match=ip,nw_src=10.2.0.9 actions=output:1
        [1.0] red< 2 ERROR OFPFMFC_EPERM of type 14 xid 2
        red> 3 flow add match=ip,nw_src=10.1.0.9 actions=normal
        red< 3 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 3
        red> 4 flow add match=ip,nw_src=10.1.0.1 actions=output:1
        red> 5 flow add match=ip,nw_src=10.1.0.1 actions=output:1
        [1.0] red> 6 flow modify match=ip,nw_src=10.1.0.2 actions=output:1
        [1.3] red> 6 flow add match=ip,nw_src=10.1.0.2 actions=output:1
        red> 7 flow add match=ip,nw_src=10.1.0.3 actions=output:1
        [1.0] red< 7 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 7
        [1.3] red< 7 ERROR OFPFMFC_TABLE_FULL of type 14 xid 7
        [1.0] red> 8 flow modify match=ip,nw_src=10.1.0.3 actions=output:1
        [1.0] red< 8 ERROR OFPFMFC_ALL_TABLES_FULL of type 14 xid 8
        red> 9 flow delete match=ip,nw_src=10.1.0.1
        red> 10 flow add match=ip,nw_src=10.1.0.4 actions=output:1 idle=1
        wait 3s
        red> 11 flow add match=ip,nw_src=10.1.0.5 actions=output:1
        count= 2
        blue> 12 flow add match=ip,nw_src=10.2.0.5 actions=output:1
        count= 3
    ",
    );
}

#[test]
fn an_entry_with_a_refused_rule_is_removed_with_one_error() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, RULES));
        let red = world.connect("red");
        // On 1.0 the switch refuses the second rule of the entry. On 1.3 the entry has one rule, which the switch
        // refuses.
        let refusal = match version {
            Version::V1_0 => 2,
            _ => 1,
        };
        world.switch.switch_mut().plant(vec![emulate::Fault::RefuseFlowMods { every: refusal }]);
        world.say(red, 5, "flow add actions=output:3 prio=5 flags=rem");
        world.advance(100_000_000);
        let heard = world.heard(red);
        let code =
            if version == Version::V1_0 { "OFPFMFC_ALL_TABLES_FULL" } else { "OFPFMFC_TABLE_FULL" };
        assert_eq!(heard, [format!("5 ERROR {code} of type 14 xid 5")]);
        assert_eq!(world.tenant_flows(), [""; 0]);
        assert_eq!(world.core.tenants().next().unwrap().flows, 0);
        assert!(world.store.is_empty());
        world.switch.switch_mut().plant(Vec::new());
        world.say(red, 6, "flow add actions=output:3 prio=5");
        world.advance(100_000_000);
        assert_eq!(world.heard(red), [""; 0]);
        assert_eq!(world.core.tenants().next().unwrap().flows, 1);
    }
}

#[test]
fn the_old_entry_stays_when_the_switch_refuses_the_replacement() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        world.say(red, 5, "flow add match=ip,nw_src=10.1.0.1 prio=5 actions=output:3 cookie=1");
        world.switch.switch_mut().plant(vec![emulate::Fault::RefuseFlowMods { every: 1 }]);
        world.say(red, 6, "flow add match=ip,nw_src=10.1.0.1 prio=5 actions=output:4 cookie=2");
        assert_eq!(world.heard(red).len(), 1);
        world.say(red, 7, "stats flow");
        assert_eq!(
            world.heard(red),
            ["7 STATS flow prio=5 ip,nw_src=10.1.0.1 cookie=0x1 n=0 output:3"]
        );
        assert_eq!(world.packet(1, &packet("10.1.0.1>10.9.0.1")), [3]);
    }
}

#[test]
fn cookies_of_tenants_do_not_collide() {
    both(TWO, "
        red> 1 flow add match=ip,nw_src=10.1.0.1 cookie=0x5745000200000001 flags=rem actions=output:1
        blue> 1 flow add match=ip,nw_src=10.2.0.1 cookie=0x5745000200000001 flags=rem actions=output:1
        red> 2 flow delete
        red< FLOW_REMOVED prio=32768 ip,nw_src=10.1.0.1 cookie=0x5745000200000001 DELETE n=0
        count= 1
    ");
}

#[test]
fn unknown_commands_and_emergency_flags_are_refused() {
    both(
        TWO,
        "
        red> 1 flow 9 match=ip,nw_src=10.1.0.1 actions=output:1
        red< 1 ERROR OFPFMFC_BAD_COMMAND of type 14 xid 1
        [1.0] red> 2 flow add match=ip,nw_src=10.1.0.1 flags=emerg actions=output:1
        [1.0] red< 2 ERROR OFPFMFC_UNSUPPORTED of type 14 xid 2
        [1.0] red> 3 flow add match=ip,nw_src=10.1.0.1 flags=emerg idle=5 actions=output:1
        [1.0] red< 3 ERROR OFPFMFC_BAD_EMERG_TIMEOUT of type 14 xid 3
        [1.0] red> 4 flow add match=ip,nw_src=10.1.0.1 flags=emerg hard=5 actions=output:1
        [1.0] red< 4 ERROR OFPFMFC_BAD_EMERG_TIMEOUT of type 14 xid 4
        count= 0
    ",
    );
}

#[test]
fn the_buffer_id_of_a_delete_is_ignored() {
    both(
        TWO,
        "
        red> 1 flow add match=ip,nw_src=10.1.0.1 actions=output:1
        red> 2 flow delete buffer=0
        red> 3 barrier
        red< 3 BARRIER_REPLY
        count= 0
    ",
    );
}
