//! Tests of packet traces in slices. The emulated switch forwards each packet as the trace predicts.
//! [`Testbed::send_as_traced`] tests traces in networks, for `courses`.

use crate::support::*;
use flowspace::FlowText;
use hypervisor::trace::{Claim, Doubt, Output, Owner, Packet, Step, To};
use hypervisor::{Side, TenantId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const SLICES: &str = "
    red: ip,nw_src=10.1.0.0/16
    red: ip,nw_dst=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16 @50
";

fn at(in_port: u32, name: &str) -> Packet {
    Packet { in_port, frame: packet(name) }
}

/// The ports and frames by which a packet leaves, and the number of its PACKET_INs.
fn leaves(outputs: &[Output]) -> (Vec<(u32, Vec<u8>)>, usize) {
    let ports = outputs.iter().filter_map(|output| match output.to {
        To::Port { number, is_up: true, .. } => Some((number, output.frame.clone())),
        _ => None,
    });
    let packet_ins = outputs.iter().filter(|output| matches!(output.to, To::Controllers { .. }));
    let mut ports: Vec<_> = ports.collect();
    ports.sort();
    (ports, packet_ins.count())
}

/// Sends the packet, and checks that the switch forwards the packet as the trace predicts.
fn agrees(world: &mut World, seats: [Seat; 2], packet: &Packet) -> Result<(), TestCaseError> {
    let passage = world.core.passage(packet);
    let is_ambiguous = |step: &Step| matches!(step, Step::Rule { is_ambiguous: true, .. });
    if passage.steps.iter().any(is_ambiguous) {
        return Ok(());
    }
    seats.iter().for_each(|seat| drop(world.heard(*seat)));
    let before = world.left.len();
    world.packet(packet.in_port, &packet.frame);
    let left = world.left[before..].iter().map(|left| (left.port, left.frame.clone()));
    let mut left: Vec<_> = left.collect();
    left.sort();
    let heard = seats.map(|seat| world.heard(seat)).concat();
    let packet_ins = heard.iter().filter(|it| it.contains("PACKET_IN")).count();
    let (ports, traced) = leaves(&passage.outputs);
    if passage.outputs.iter().all(|output| output.if_.is_none()) {
        prop_assert_eq!((&ports, traced), (&left, packet_ins), "{:?}", passage);
    }
    prop_assert!(left.iter().all(|it| ports.contains(it)), "{left:?}: {passage:?}");
    prop_assert!(!passage.outputs.is_empty());
    Ok(())
}

fn command() -> impl Strategy<Value = (bool, String, String)> {
    let match_ = select(vec![
        "ip",
        "ip,nw_src=10.1.0.1",
        "ip,nw_dst=10.1.0.0/24",
        "udp,tp_dst=2000",
        "in_port=1,ip",
        "ip,nw_src=10.2.0.0/24",
        "ip,nw_src=10.1.0.1,nw_dst=10.1.0.2",
    ]);
    let actions = select(vec![
        "output:1",
        "output:2,output:3",
        "flood",
        "all",
        "in_port",
        "controller",
        "drop",
        "mod_dl_dst:02.00.00.00.00.77,output:2",
        "output:3,mod_tp_dst:99,output:4",
    ]);
    let more = select(vec![
        "",
        ";goto=1",
        ";write=output:4",
        ";write=output:4;goto=1",
        ";clear",
        ";write=group:1",
    ]);
    let place = (1..60u16, 0..2u8);
    (any::<bool>(), match_, actions, more, place).prop_map(
        |(red, match_, actions, more, (prio, table))| {
            let old = format!("flow add match={match_} prio={prio} actions={actions}");
            let more = if table == 1 { more.replace(";goto=1", "") } else { more.to_owned() };
            let new = format!(
                "flow add table={table} match={match_} prio={prio} actions={actions}{more}"
            );
            (red, old, new)
        },
    )
}

proptest! {
    #[test]
    fn the_switch_forwards_a_packet_as_its_trace_predicts(
        commands in vec(command(), 0..14),
        kind in select(vec!["all", "indirect", "select", "ff"]),
        packets in vec((1..5u32, 1..4u8, 1..4u8), 1..8),
    ) {
        for version in VERSIONS {
            let mut world = World::new(Setup::new(version, SLICES));
            let seats = ["red", "blue"].map(|name| world.connect(name));
            for seat in seats.into_iter().filter(|_| version == Version::V1_3) {
                let buckets = match kind {
                    "indirect" => "output:2",
                    "ff" => "2@output:2|3@output:3",
                    _ => "1*output:2|1*output:3",
                };
                let buckets = if kind == "all" { "output:2|output:3" } else { buckets };
                world.say(seat, 1, &format!("group add id=1 type={kind} buckets={buckets}"));
            }
            for (red, old, new) in &commands {
                let words = if version == Version::V1_0 { old } else { new };
                world.say(seats[usize::from(!*red)], 2, words);
            }
            world.advance(1_000_000_000);
            for &(port, from, to) in &packets {
                let name = format!("10.{from}.0.1>10.{to}.0.2");
                agrees(&mut world, seats, &at(port, &name))?;
            }
        }
    }
}

#[test]
fn a_trace_shows_the_owner_the_entry_and_the_rule_of_a_packet() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SLICES));
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip,nw_src=10.1.0.1 prio=9 cookie=5 actions=output:2");
        world.advance(100_000_000);
        let passage = world.core.passage(&at(1, "10.1.0.1>10.9.0.1"));
        let claim = Claim::Flowspace {
            match_: Box::new("ip,nw_src=10.1.0.0/16".parse().unwrap()),
            priority: 100,
        };
        assert_eq!(passage.owner, Owner::Tenant(TenantId(1), claim), "{version:?}");
        let shown = |side| world.core.flow_page(TenantId(1), side, None).unwrap().flow_mods;
        let last = passage.steps.last().unwrap();
        let Step::Rule { rule, entry: Some(entry), is_ambiguous: false } = last else {
            panic!("{last:?}");
        };
        assert_eq!(vec![entry.clone()], shown(Side::Tenant));
        assert!(shown(Side::Switch).contains(rule), "{:?}", FlowText::of_flow_mod(rule));
        let port = To::Port { number: 2, is_up: true, seen_as: None };
        assert_eq!(passage.outputs.iter().map(|it| it.to).collect::<Vec<_>>(), [port]);
        // A packet without a matching entry is sent to the controllers on 1.0, and is dropped on 1.3.
        let missed = world.core.passage(&at(1, "10.1.0.9>10.9.0.1"));
        assert!(matches!(missed.steps.last(), Some(Step::Missed { tenants: Some(0), .. })));
        let expected = match version {
            Version::V1_0 => To::Controllers { connected: 1, is_miss: true, is_unwanted: false },
            _ => To::Dropped,
        };
        assert_eq!(missed.outputs[0].to, expected);
        let strange = world.core.passage(&at(1, "10.9.0.9>10.9.0.1"));
        assert_eq!((&strange.owner, strange.outputs[0].to), (&Owner::Nobody, To::Dropped));
    }
}

#[test]
fn a_trace_marks_outputs_that_only_the_switch_can_decide() {
    let mut world = World::new(Setup::new(Version::V1_3, SLICES));
    let red = world.connect("red");
    world.say(red, 1, "group add id=7 type=select buckets=1*output:2|1*output:3");
    world.say(red, 2, "flow add match=ip prio=9 actions=group:7");
    world.advance(100_000_000);
    let outputs = world.core.passage(&at(1, "10.1.0.1>10.9.0.1")).outputs;
    let doubts: Vec<_> = outputs.iter().map(|it| it.if_).collect();
    assert_eq!(doubts, [Some(Doubt::Group(7)); 2]);
    world.say(red, 3, "group modify id=7 type=select buckets=0*output:2|1*output:3");
    world.advance(100_000_000);
    let outputs = world.core.passage(&at(1, "10.1.0.1>10.9.0.1")).outputs;
    let ports = outputs.iter().map(|it| (it.to, it.if_));
    let third = To::Port { number: 3, is_up: true, seen_as: None };
    assert_eq!(ports.collect::<Vec<_>>(), [(third, None)], "a bucket without a weight is not used");
    world.say(red, 4, "flow add match=ip prio=10 actions=;write=output:2;goto=1");
    world.advance(100_000_000);
    let outputs = world.core.passage(&at(1, "10.1.0.1>10.9.0.1")).outputs;
    assert!(outputs.iter().all(|it| it.if_ == Some(Doubt::SetOnMiss)), "{outputs:?}");
}

/// The test also prints the time of a trace. The test asserts no bound, since machines differ.
#[test]
fn a_trace_finds_the_output_port_among_20_tenants() {
    const TENANTS: usize = 20;
    let spaces: Vec<String> =
        (0..TENANTS).map(|n| format!("t{n}: ip,nw_src=10.{n}.0.0/16")).collect();
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, &spaces.join("\n")));
        for n in 0..TENANTS {
            let seat = world.connect(&format!("t{n}"));
            for entry in 0..100 {
                let words = format!(
                    "flow add match=ip,nw_src=10.{n}.0.1,nw_dst=10.9.0.{entry} actions=output:2"
                );
                world.say(seat, 1, &words);
            }
        }
        world.advance(1_000_000_000);
        let begun = std::time::Instant::now();
        let rounds = 200;
        for round in 0..rounds {
            let name = format!("10.{}.0.1>10.9.0.{}", round % TENANTS, round % 100);
            let outputs = world.core.passage(&at(1, &name)).outputs;
            assert!(matches!(outputs[0].to, To::Port { number: 2, .. }), "{outputs:?}");
        }
        println!("OpenFlow {version}: {:?} for a switch", begun.elapsed() / rounds as u32);
    }
}
