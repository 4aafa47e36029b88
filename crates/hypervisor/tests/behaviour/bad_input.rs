//! Tests of malformed messages and of peers that do not read. Weir answers each malformed message with an error, and
//! other tenants get their service as before.

use crate::support::*;

const PORTS: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
    blue: in_port=4
";

#[test]
fn a_controller_that_does_not_read_loses_packet_ins_and_is_not_read() {
    for version in VERSIONS {
        let mut setup = Setup::new(version, PORTS);
        setup.settings.controller_bytes = 4_000;
        setup.settings.controller_bytes_limit = 40_000;
        let mut world = World::new(setup);
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        for seat in [red, blue] {
            world.say(seat, 1, "flow add prio=0 actions=controller");
        }
        world.controllers[red.0].reads = false;
        for _ in 0..1_000 {
            world.packet(1, &packet("10.0.0.1>10.0.0.2"));
            world.packet(3, &packet("10.0.0.1>10.0.0.2"));
        }
        let own_entries = |world: &World| world.core.tenants().next().unwrap().counters.overflowed;
        // Blue reads and gets all its PACKET_INs. Weir drops most PACKET_INs of red.
        assert_eq!(world.heard(blue).len(), 1_000);
        assert!(own_entries(&world) > 900);
        let index = world.controllers[red.0].index;
        let waiting = world.core.controller_outbox(index).unwrap().len();
        assert!(waiting < 5_000, "{waiting}");
        // Weir does not read from red while red does not read.
        for xid in 1..=50 {
            world.say(red, xid, "echo data=12345678");
        }
        assert_eq!(world.controllers[red.0].outgoing.len(), 50);
        // When red reads again, red gets all its replies.
        world.controllers[red.0].reads = true;
        world.core.written(index, false);
        world.pump();
        let heard = world.heard(red);
        assert_eq!(heard.iter().filter(|text| text.contains("ECHO_REPLY")).count(), 50);
    }
}

#[test]
fn malformed_messages_get_errors_and_the_session_continues() {
    let version = |v: Version| if v == Version::V1_0 { "01" } else { "04" };
    for v in VERSIONS {
        let byte = version(v);
        let bodies = [
            // A FLOW_MOD without a body, a PACKET_OUT whose length of actions is too large, and a short STATS_REQUEST.
            format!("{byte}0e000800000000"),
            format!("{byte}0d001800000000ffffffff0001fff000000000ffffffff00000000"),
            if v == Version::V1_0 { "0110000900000000ff" } else { "0412000900000000ff" }.to_owned(),
            // An unknown message type, and another version.
            format!("{byte}c8000800000000"),
            "0600000800000000".to_owned(),
        ];
        let mut world = World::new(Setup::new(v, PORTS));
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        for (n, body) in bodies.iter().enumerate() {
            let mut message = packet(&format!("hex:{body}"));
            let length = message.len() as u16;
            message.resize(message.len().max(8), 0);
            message[2..4].copy_from_slice(&length.max(8).to_be_bytes());
            message[4..8].copy_from_slice(&(100 + n as u32).to_be_bytes());
            world.send(red, &message);
            let heard = world.heard(red);
            assert_eq!(heard.len(), 1, "{body}: {heard:?}");
            assert!(heard[0].starts_with(&format!("{} ERROR", 100 + n)), "{heard:?}");
        }
        world.say(red, 1, "barrier");
        world.say(blue, 1, "barrier");
        assert_eq!(
            (world.heard(red), world.heard(blue)),
            (vec!["1 BARRIER_REPLY".into()], vec!["1 BARRIER_REPLY".into()])
        );
    }
}

#[test]
fn a_truncated_flow_mod_gets_an_error_or_installs_one_entry() {
    let whole =
        request(Version::V1_3, 9, "flow add match=in_port=1,ip,nw_src=10.0.0.1 actions=output:2");
    for cut in 8..whole.len() {
        let mut world = World::new(Setup::new(Version::V1_3, PORTS));
        let red = world.connect("red");
        let mut message = whole[..cut].to_vec();
        message[2..4].copy_from_slice(&(cut as u16).to_be_bytes());
        world.send(red, &message);
        world.say(red, 10, "barrier");
        let heard = world.heard(red);
        let accepted = heard.len() == 1;
        // If the cut removes exactly the instructions, the rest is a valid FLOW_MOD.
        assert!(accepted || heard[0].starts_with("9 ERROR"), "{cut}: {heard:?}");
        assert_eq!(world.tenant_flows().len(), usize::from(accepted), "{cut}: {heard:?}");
    }
}

#[test]
fn a_controller_with_too_many_unread_replies_is_disconnected() {
    for version in VERSIONS {
        let mut setup = Setup::new(version, PORTS);
        setup.settings.controller_bytes_limit = 40_000;
        let mut world = World::new(setup);
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        for n in 0..600 {
            let words = format!("flow add match=in_port=1,udp,tp_src={n} actions=output:2");
            world.say(red, n, &words);
        }
        world.controllers[red.0].reads = false;
        world.say(red, 1, "stats flow");
        let index = world.controllers[red.0].index;
        assert!(world.events.contains(&hypervisor::Event::CloseController(index)));
        assert_eq!(world.core.controller_outbox(index).unwrap().len(), 0);
        world.core.controller_disconnected(index);
        world.say(blue, 2, "barrier");
        assert_eq!(world.heard(blue), ["2 BARRIER_REPLY"]);
        assert_eq!(world.core.tenants().next().unwrap().flows, 600);
    }
}

#[test]
fn a_switch_that_reports_neither_ports_nor_flows_is_disconnected() {
    for version in VERSIONS {
        let mut world = World::new(Setup { by_hand: true, ..Setup::new(version, PORTS) });
        world.advance(30_000_000_000);
        assert!(!world.core.is_ready());
        assert!(world.core.controller_connected(world.tenant("red")).is_none());
        let closes = |event: &hypervisor::Event| matches!(event, hypervisor::Event::CloseSwitch(_));
        assert!(world.events.iter().any(closes), "{:?}", world.events);
    }
}
