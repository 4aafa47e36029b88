//! Tests of the switch that a controller sees: FEATURES, configuration, ports, descriptions, queues, vendor messages
//! and ECHO. Several controllers of one tenant see the same switch.

use crate::support::*;

/// Red has ports 1 and 2, blue has port 3, and port 4 has no owner.
const TWO: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";

#[test]
fn features_reply_shows_only_the_ports_of_the_slice() {
    both(
        TWO,
        "
        red> 1 features
        [1.0] red< 1 FEATURES 2a tables=1 ports=1 2
        [1.3] red< 1 FEATURES 2a tables=15
        blue> 1 features
        [1.0] blue< 1 FEATURES 2a tables=1 ports=3
        [1.3] blue< 1 FEATURES 2a tables=15
        [1.3] red> 2 stats port_desc
        [1.3] red< 2 STATS port_desc 1 2
    ",
    );
}

#[test]
fn an_echo_is_answered_with_its_payload() {
    both(
        TWO,
        "
        red> 3 echo data=hello
        red< 3 ECHO_REPLY hello
    ",
    );
}

#[test]
fn equal_xids_of_tenants_do_not_collide() {
    both(
        TWO,
        "
        red> 7 barrier
        blue> 7 barrier
        red> 7 stats port port=1
        blue> 7 stats port port=3
        blue> 7 echo data=b
        red< 7 BARRIER_REPLY
        blue< 7 BARRIER_REPLY
        red< 7 STATS port 1
        blue< 7 STATS port 3
        blue< 7 ECHO_REPLY b
    ",
    );
}

#[test]
fn each_tenant_has_its_own_switch_configuration() {
    both(
        TWO,
        "
        red> 1 set_config len=40
        red> 2 get_config
        red< 2 CONFIG len=40
        blue> 2 get_config
        blue< 2 CONFIG len=128
        red> 3 set_config len=40 flags=1
        [1.0] red< 3 ERROR OFPBRC_EPERM of type 9 xid 3
        [1.3] red< 3 ERROR OFPSCFC_EPERM of type 9 xid 3
    ",
    );
}

#[test]
fn port_status_reaches_only_tenants_with_the_port() {
    both(
        TWO,
        "
        red>
        blue>
        port down 1
        red< PORT_STATUS MODIFY 1
        port down 3
        blue< PORT_STATUS MODIFY 3
        port down 4
        port remove 2
        red< PORT_STATUS DELETE 2
        port add 2
        red< PORT_STATUS ADD 2
    ",
    );
}

#[test]
fn a_policy_change_is_reported_as_added_and_deleted_ports() {
    both(
        TWO,
        "
        red>
        blue>
        policy
            red: in_port=1
            blue: in_port=3
            blue: in_port=2
        end
        red< PORT_STATUS DELETE 2
        blue< PORT_STATUS ADD 2
        red> 1 stats port
        red< 1 STATS port 1
        blue> 1 stats port
        blue< 1 STATS port 2 3
    ",
    );
}

#[test]
fn port_mod_is_refused_without_ownership_of_the_whole_port() {
    let policy = "
        red: in_port=1
        blue: in_port=2,ip
        blue: in_port=3
        green: in_port=3,arp @50
    ";
    both(
        policy,
        "
        red> 1 port_mod port=1 config=1 mask=1
        blue> 2 port_mod port=2 config=1 mask=1
        [1.0] blue< 2 ERROR OFPBRC_EPERM of type 15 xid 2
        [1.3] blue< 2 ERROR OFPPMFC_EPERM of type 16 xid 2
        blue> 3 port_mod port=3 config=1 mask=1
        [1.0] blue< 3 ERROR OFPBRC_EPERM of type 15 xid 3
        [1.3] blue< 3 ERROR OFPPMFC_EPERM of type 16 xid 3
        blue> 4 port_mod port=1 config=1 mask=1
        [1.0] blue< 4 ERROR OFPPMFC_BAD_PORT of type 15 xid 4
        [1.3] blue< 4 ERROR OFPPMFC_BAD_PORT of type 16 xid 4
        red> 5 barrier
        red< 5 BARRIER_REPLY
    ",
    );
}

#[test]
fn port_mod_in_a_slice_changes_the_port_of_the_switch() {
    for version in VERSIONS {
        let world = play_with(
            Setup::new(version, "red: in_port=1"),
            "
            red> 1 port_mod port=1 config=1 mask=1
        ",
        );
        assert_eq!(world.switch.switch().port(1).unwrap().config, 1);
        assert_eq!(world.switch.switch().port(2).unwrap().config, 0);
    }
}

#[test]
fn description_and_table_statistics_show_only_the_slice() {
    both(
        TWO,
        "
        blue> 5 stats desc
        blue< 5 STATS desc \"blue\"
        blue> 6 flow add match=in_port=3 actions=drop
        blue> 7 stats table
        [1.0] blue< 7 STATS table 0:1
        red> 7 stats table
        [1.0] red< 7 STATS table 0:0
        [1.3] blue< 7 STATS table 0:1 1:0 2:0 3:0 4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:0 12:0 13:0 14:0
        [1.3] red< 7 STATS table 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 8:0 9:0 10:0 11:0 12:0 13:0 14:0
    ",
    );
}

#[test]
fn a_tenant_sees_and_uses_only_granted_queues() {
    let setup = |version| {
        let mut setup = Setup::new(
            version,
            "
            red queues=1+2: in_port=1
            blue: in_port=2
        ",
        );
        setup.configure = |config| {
            for port in &mut config.ports {
                port.queues = vec![0, 1, 2, 3];
            }
        };
        setup
    };
    for version in VERSIONS {
        play_with(
            setup(version),
            "
            red> 1 queues port=1
            red< 1 QUEUES 1 1 2
            red> 2 queues port=2
            [1.0] red< 2 ERROR OFPQOFC_BAD_PORT of type 20 xid 2
            [1.3] red< 2 ERROR OFPQOFC_BAD_PORT of type 22 xid 2
            blue> 3 queues port=2
            blue< 3 QUEUES 2
            red> 4 stats queue
            red< 4 STATS queue 1:1 1:2
            red> 5 stats queue port=1 queue=1
            red< 5 STATS queue 1:1
            red> 6 stats queue port=1 queue=3
            [1.0] red< 6 ERROR OFPQOFC_BAD_QUEUE of type 16 xid 6
            [1.3] red< 6 ERROR OFPQOFC_BAD_QUEUE of type 18 xid 6
            red> 7 flow add match=in_port=1 actions=enqueue:1:2
            red> 8 flow add match=in_port=1 actions=enqueue:1:3
            red< 8 ERROR OFPBAC_BAD_QUEUE of type 14 xid 8
            blue> 9 flow add match=in_port=2 actions=enqueue:2:1
            blue< 9 ERROR OFPBAC_BAD_QUEUE of type 14 xid 9
            red> 10 flow add match=in_port=1 actions=enqueue:2:1
            red< 10 ERROR OFPBAC_BAD_OUT_PORT of type 14 xid 10
            count= 1
        ",
        );
    }
}

#[test]
fn vendor_messages_and_actions_without_permission_are_refused() {
    both(
        "
        red: in_port=1
        blue vendor=0x2320: in_port=2
    ",
        "
        red> 1 vendor id=0x2320
        [1.0] red< 1 ERROR OFPBRC_BAD_VENDOR of type 4 xid 1
        [1.3] red< 1 ERROR OFPBRC_BAD_EXPERIMENTER of type 4 xid 1
        blue> 2 vendor id=0x2320
        [1.0] blue< 2 ERROR OFPBRC_BAD_VENDOR of type 4 xid 2
        [1.3] blue< 2 ERROR OFPBRC_BAD_EXPERIMENTER of type 4 xid 2
        red> 3 stats vendor id=0x2320
        [1.0] red< 3 ERROR OFPBRC_BAD_VENDOR of type 16 xid 3
        [1.3] red< 3 ERROR OFPBRC_BAD_EXPERIMENTER of type 18 xid 3
        red> 4 flow add match=in_port=1 actions=vendor:2320
        [1.0] red< 4 ERROR OFPBAC_BAD_VENDOR of type 14 xid 4
        [1.3] red< 4 ERROR OFPBAC_BAD_EXPERIMENTER of type 14 xid 4
        count= 0
    ",
    );
}

#[test]
fn controllers_of_a_tenant_share_events_but_not_replies() {
    both(
        TWO,
        "
        red1>
        red2>
        port down 1
        red1< PORT_STATUS MODIFY 1
        red2< PORT_STATUS MODIFY 1
        [1.3] red1> 1 flow add prio=0 actions=controller
        wire> 1 10.0.0.1>10.0.0.2
        port up 1
        red1< PORT_STATUS MODIFY 1
        red2< PORT_STATUS MODIFY 1
        wire> 1 10.0.0.1>10.0.0.2
        red1< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2
        red2< PACKET_IN 1 NO_MATCH 10.0.0.1>10.0.0.2
        red2> 9 barrier
        red2< 9 BARRIER_REPLY
    ",
    );
}
