//! Tests of link labels in each form, of reports about changes of the flow tables, and of Weir's own link probes.

use crate::support::*;
use hypervisor::policy::LabelForm;
use hypervisor::{EXPERIMENTER, Event, Label, UNKNOWN};
use openflow::{v10, v13};

const TWO: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
    blue: in_port=4
";
const LABEL: Label = Label { left: 2_500_999, capacity: 10_000_000 };
const PORT_STATUS: u8 = 12;
const VENDOR: u8 = 4;

/// Red has this form of link labels, and blue has none. Both tenants have a controller.
fn world(version: Version, form: Option<LabelForm>) -> (World, Seat, Seat) {
    let mut setup = Setup::new(version, TWO);
    setup.policy.tenants[0].labels = form;
    let mut world = World::new(setup);
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    let _ = (world.received(red), world.received(blue));
    (world, red, blue)
}

/// Reports labels of ports 1 and 3 to both tenants. Returns the messages that red and blue receive.
fn report_labels(world: &mut World, red: Seat, blue: Seat) -> [Vec<Vec<u8>>; 2] {
    for name in ["red", "blue"] {
        let tenant = world.tenant(name);
        for port in [1, 3] {
            world.core.report_label(tenant, port, LABEL);
        }
    }
    world.pump();
    [world.received(red), world.received(blue)]
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn features(world: &mut World, seat: Seat) -> Vec<u8> {
    const REQUEST: [u8; 8] = [1, 5, 0, 8, 0, 0, 0, 9];
    world.send(seat, &REQUEST);
    world.pump();
    world.received(seat).pop().unwrap()
}

#[test]
fn link_labels_on_1_0_are_an_added_port_field_only_if_configured() {
    let (mut world, red, blue) = world(Version::V1_0, Some(LabelForm::OpenFlow10));
    let reply = features(&mut world, red);
    assert_eq!(reply.len(), 32 + 2 * (v10::PhyPort::LEN + 4));
    assert_eq!(u32_at(&reply, 32 + v10::PhyPort::LEN), UNKNOWN, "nothing is known yet");

    let [red_hears, blue_hears] = report_labels(&mut world, red, blue);
    assert_eq!(blue_hears, [] as [Vec<u8>; 0]);
    let [status] = red_hears.as_slice() else { panic!("port 1 and no other: {red_hears:?}") };
    assert_eq!((status[1], status[8]), (PORT_STATUS, 2));
    assert_eq!(status.len(), 64 + 4);
    assert_eq!(u32_at(status, 64), 2_500, "kilobits, rounded down");

    let reply = features(&mut world, red);
    assert_eq!(u32_at(&reply, 32 + v10::PhyPort::LEN), 2_500);
    assert_eq!(features(&mut world, blue).len(), 32 + 2 * v10::PhyPort::LEN);

    // A PORT_STATUS that the switch sends also has the label.
    happen(&mut world, "down 1");
    let status = world.received(red).pop().unwrap();
    assert_eq!((status.len(), u32_at(&status, 64)), (68, 2_500));
}

#[test]
fn link_labels_on_1_3_are_the_port_speed_only_if_configured() {
    let (mut world, red, blue) = world(Version::V1_3, Some(LabelForm::OpenFlow13));
    let [red_hears, blue_hears] = report_labels(&mut world, red, blue);
    assert_eq!(blue_hears, [] as [Vec<u8>; 0]);
    let [status] = red_hears.as_slice() else { panic!("port 1 and no other: {red_hears:?}") };
    let status = v13::PortStatus::parse(&status[8..]).unwrap();
    assert_eq!((status.desc.curr_speed, status.desc.max_speed), (2_500, 10_000));

    // The reply to PORT_DESC (multipart request of type 13) also has the label.
    let request = [4, 18, 0, 16, 0, 0, 0, 9, 0, 13, 0, 0, 0, 0, 0, 0];
    let speeds = |world: &mut World, seat| {
        world.send(seat, &request);
        world.pump();
        let reply = world.received(seat).pop().unwrap();
        let port = v13::Port::parse(&reply[16..16 + v13::Port::LEN]).unwrap();
        (port.curr_speed, port.max_speed)
    };
    assert_eq!(speeds(&mut world, red), (2_500, 10_000));
    assert_ne!(speeds(&mut world, blue), (2_500, 10_000));
}

#[test]
fn experimenter_messages_carry_labels_also_to_a_controller_that_connects_later() {
    for version in [Version::V1_0, Version::V1_3] {
        let (mut world, red, blue) = world(version, Some(LabelForm::Experimenter));
        let [red_hears, blue_hears] = report_labels(&mut world, red, blue);
        assert_eq!(blue_hears, [] as [Vec<u8>; 0]);
        let expected = |message: &[u8]| {
            assert_eq!((message[0], message[1], message.len()), (version.0, VENDOR, 40));
            let words: Vec<u32> = (8..40).step_by(4).map(|at| u32_at(message, at)).collect();
            assert_eq!(words, [EXPERIMENTER, 1, 1, 0, 0, 2_500_999, 0, 10_000_000]);
        };
        let [message] = red_hears.as_slice() else { panic!("{red_hears:?}") };
        expected(message);
        let late = world.connect("red");
        world.pump();
        let greeting = world.received(late);
        expected(greeting.iter().find(|message| message[1] == VENDOR).unwrap());
    }
}

#[test]
fn a_label_form_of_another_openflow_version_sends_no_message() {
    for (version, form) in [
        (Version::V1_0, Some(LabelForm::OpenFlow13)),
        (Version::V1_3, Some(LabelForm::OpenFlow10)),
        (Version::V1_0, None),
    ] {
        let (mut world, red, blue) = world(version, form);
        assert_eq!(
            report_labels(&mut world, red, blue),
            [Vec::<Vec<u8>>::new(), Vec::new()],
            "{form:?}"
        );
    }
}

#[test]
fn flow_changes_report_entries_that_are_added_replaced_and_deleted() {
    let (mut world, red, _) = world(Version::V1_0, None);
    world.say(red, 1, "flow add match=in_port=1 prio=7 actions=output:2");
    assert_eq!(world.core.take_flow_changes(), [], "nobody asked");
    world.core.track_flows(true);
    let changes = world.core.take_flow_changes();
    let [change] = changes.as_slice() else { panic!("{changes:?}") };
    let entry = change.entry.as_ref().unwrap();
    assert_eq!((change.tenant, entry.priority, entry.table), (world.tenant("red"), 7, 0));
    assert_eq!(entry.match_, "in_port=1".parse().unwrap());

    // A hundred changes of one entry are reported as one change.
    for _ in 0..100 {
        world.say(red, 2, "flow add match=in_port=1 prio=7 actions=output:2");
    }
    assert_eq!(world.core.take_flow_changes().len(), 1);
    world.say(red, 3, "flow delete");
    let changes = world.core.take_flow_changes();
    assert_eq!(changes.iter().map(|change| &change.entry).collect::<Vec<_>>(), [&None]);
    assert_eq!(world.core.take_flow_changes(), []);
}

#[test]
fn link_probes_of_weir_return_to_weir_despite_drop_entries_of_tenants() {
    use fabric::discovery::{Discovery, Settings};
    use fabric::{Dpid, PortId, PortNumber};
    for version in [Version::V1_0, Version::V1_3] {
        let (mut world, red, blue) = world(version, None);
        for (seat, port) in [(red, 1), (red, 2), (blue, 3)] {
            world.say(seat, 1, &format!("flow add match=in_port={port} prio=65534 actions="));
        }
        let mut discovery = Discovery::new(LLDP_KEY, Settings::default());
        let port = PortId::new(Dpid(world.core.dpid()), PortNumber::new(1).unwrap());
        let now = hypervisor::Instant(world.now);
        discovery.set_port(port, true, now);
        let probe = discovery.poll_probe(now).unwrap();
        assert!(world.core.send_own_packet_out(1, &probe.frame, now));
        assert!(!world.core.send_own_packet_out(77, &probe.frame, now), "there is no such port");
        world.pump();
        world.advance(50_000_000);
        assert!(world.left.iter().any(|left| left.port == 1 && left.frame == probe.frame));
        let _ = (world.received(red), world.received(blue));
        world.packet(3, &probe.frame);
        world.advance(50_000_000);
        let expected = Event::Probe(3, probe.frame.clone());
        assert_eq!(world.events.iter().filter(|event| **event == expected).count(), 1);
        assert_eq!(world.received(blue), [] as [Vec<u8>; 0], "no tenant sees it");
    }
}
