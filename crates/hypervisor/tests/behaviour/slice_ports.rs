//! Tests of PORT_MOD on ports of slices. The switch applies PORT_MOD and sends no PORT_STATUS to Weir, as Open vSwitch
//! does.

use crate::support::*;

const PORTS: &str = "
    red: in_port=1
    red: in_port=2
    red: in_port=4
    blue: in_port=3
";

#[test]
fn flood_skips_ports_with_no_flood_on_1_0() {
    play_on(
        Version::V1_0,
        PORTS,
        "
        red> 1 flow add match=in_port=1 actions=flood
        red> 2 port_mod port=2 config=0x10 mask=0x10
        red> 3 barrier
        red< 3 BARRIER_REPLY
        wait 100ms
        wire> 1 10.0.0.1>10.0.0.2
        wire< 4
        red> 4 port_mod port=2 config=0 mask=0x10
        wait 100ms
        wire> 1 10.0.0.1>10.0.0.2
        wire< 2 4
    ",
    );
}

#[test]
fn port_mod_in_a_slice_notifies_the_other_controllers_of_the_tenant() {
    both(
        PORTS,
        "
        blue>
        red2>
        red> 1 port_mod port=2 config=0x20 mask=0x21
        wait 100ms
        red2< PORT_STATUS MODIFY 2:0x20
        [1.0] red> 2 features
        [1.0] red< 2 FEATURES 2a tables=1 ports=1 2:0x20 4
        [1.3] red> 2 stats port_desc
        [1.3] red< 2 STATS port_desc 1 2:0x20 4
        red> 3 port_mod port=2 config=0x20 mask=0x20
        wait 100ms
        red2> 4 port_mod port=2 config=0 mask=0x20
        wait 100ms
        red< PORT_STATUS MODIFY 2
    ",
    );
}

/// The reply shows the result of the earlier PORT_MOD, though the controller sends no BARRIER_REQUEST.
#[test]
fn port_descriptions_wait_for_the_result_of_an_earlier_port_mod() {
    both(
        PORTS,
        "
        red> 1 port_mod port=2 config=0x20 mask=0x20
        [1.0] red> 2 features
        [1.0] red< 2 FEATURES 2a tables=1 ports=1 2:0x20 4
        [1.3] red> 2 stats port_desc
        [1.3] red< 2 STATS port_desc 1 2:0x20 4
        red> 3 port_mod port=2 config=1 mask=1 mac=02:00:00:00:00:99
        [1.0] red> 4 features
        [1.3] red> 4 stats port_desc
        [1.0] red< 3 ERROR OFPPMFC_BAD_HW_ADDR of type 15 xid 3
        [1.3] red< 3 ERROR OFPPMFC_BAD_HW_ADDR of type 16 xid 3
        [1.0] red< 4 FEATURES 2a tables=1 ports=1 2:0x20 4
        [1.3] red< 4 STATS port_desc 1 2:0x20 4
    ",
    );
}

#[test]
fn a_port_mod_that_the_switch_refuses_leaves_the_port_unchanged() {
    both(
        PORTS,
        "
        red2>
        red> 1 port_mod port=2 config=1 mask=1 mac=02:00:00:00:00:99
        [1.0] red< 1 ERROR OFPPMFC_BAD_HW_ADDR of type 15 xid 1
        [1.3] red< 1 ERROR OFPPMFC_BAD_HW_ADDR of type 16 xid 1
        wait 100ms
        [1.0] red> 2 features
        [1.0] red< 2 FEATURES 2a tables=1 ports=1 2 4
        [1.3] red> 2 stats port_desc
        [1.3] red< 2 STATS port_desc 1 2 4
    ",
    );
}

/// The connection breaks before the switch confirms the PORT_MOD.
#[test]
fn an_unconfirmed_port_mod_is_not_shown_after_a_reconnect() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, PORTS));
        let red = world.connect("red");
        world.lose_south(true);
        world.say(red, 1, "port_mod port=2 config=0x20 mask=0x20");
        world.lose_south(false);
        world.reconnect();
        let red = world.connect("red");
        world.say(red, 2, if version == Version::V1_0 { "features" } else { "stats port_desc" });
        let heard = world.heard(red);
        assert!(heard.len() == 1 && heard[0].ends_with("1 2 4"), "{heard:?}");
    }
}

#[test]
fn the_operator_sees_traffic_of_ports_that_belong_to_a_single_tenant() {
    for version in VERSIONS {
        let spaces = "red: in_port=1\nred: in_port=3\nblue: in_port=2\nblue: in_port=4,ip\ngreen: in_port=4,arp";
        let mut world = World::new(Setup::new(version, spaces));
        let red = world.connect("red");
        world.say(red, 1, "flow add match=in_port=1 actions=output:3");
        let frame = packet("10.1.0.1>10.1.0.2");
        assert_eq!(world.packet(1, &frame), [3]);
        assert_eq!(world.packet(1, &frame), [3]);
        world.core.ask_traffic(hypervisor::Instant(world.now));
        world.pump();
        let counted = |world: &World, tenant| {
            let count = |it: Option<hypervisor::Count>| it.map(|it| (it.packets, it.bytes));
            let ports = world.core.traffic_of(world.tenant(tenant)).into_iter();
            ports.map(|it| (it.port, count(it.received), count(it.sent))).collect::<Vec<_>>()
        };
        let (none, two) = (Some((0, 0)), Some((2, 2 * frame.len() as u64)));
        assert_eq!(counted(&world, "red"), [(1, two, none), (3, none, two)], "{version:?}");
        assert_eq!(counted(&world, "blue"), [(2, none, none)], "{version:?}");
        assert_eq!(counted(&world, "green"), [], "{version:?}");

        // Weir knows the load of a port after the second reply of the switch. Weir knows the load of each port,
        // whatever the number of its tenants.
        let loads = |world: &World| world.core.port_loads().collect::<Vec<_>>();
        assert_eq!(loads(&world), [], "{version:?}");
        assert_eq!(world.packet(1, &frame), [3]);
        world.now += 2_000_000_000;
        world.core.ask_traffic(hypervisor::Instant(world.now));
        world.pump();
        let expected = [(1, 0), (2, 0), (3, 8 * frame.len() as u64 / 2), (4, 0)];
        assert_eq!(loads(&world), expected, "{version:?}");
    }
}
