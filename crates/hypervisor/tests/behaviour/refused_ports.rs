//! Tests of Weir's own rules that the switch refuses. A port is down if its packets need a refused rule, and refused
//! transits need another path.

use crate::support::hairpin::{hairpin_map, map_without_hairpin, policy_on, say};
use crate::support::shared_ports::big_plan;
use crate::support::*;
use emulate::Fault;
use fabric::PortNumber;
use fabric::embedding::{Exit, Hop, Tag, Transit};
use hypervisor::{Event, TenantId};
use openflow::v13::{MultipartReply, MultipartReplyBody, PortState};

fn empty() -> (World, [Seat; 2]) {
    let mut world = World::new(Setup {
        policy: policy_on(map_without_hairpin()),
        ports: 6,
        ..Setup::new(Version::V1_3, "")
    });
    let seats = [world.connect("red"), world.connect("blue")];
    (world, seats)
}

fn world() -> (World, Seat) {
    let (mut world, [_, blue]) = empty();
    say(&mut world, blue, "flow add prio=5 actions=flood");
    (world, blue)
}

/// The ports of a tenant that are up, as the tenant sees them.
fn up(world: &mut World, seat: Seat) -> Vec<u32> {
    world.heard(seat);
    world.say(seat, 9, "stats port_desc");
    world.advance(1_000_000);
    let received = world.received(seat).concat();
    let reply = MultipartReply::parse(&received[8..]).unwrap();
    let MultipartReplyBody::PortDesc(ports) = reply.body else { panic!("{received:?}") };
    let up = ports.iter().filter(|port| !port.state.contains(PortState::LINK_DOWN));
    up.map(|port| port.port_no.0).collect()
}

/// Sets another map. The switch has these faults while Weir applies the map.
fn set(world: &mut World, faults: Vec<Fault>, map: fabric::embedding::SwitchMap) {
    world.switch.switch_mut().plant(faults);
    world.set_policy(policy_on(map));
    world.advance(1_000_000_000);
    world.switch.switch_mut().plant(Vec::new());
}

/// The switch refuses one of the first four FLOW_MODs of the new map. Weir sends the rule again, and port 11 is up.
#[test]
fn a_rule_of_table_0_that_is_refused_once_is_installed_by_a_retry() {
    let (mut world, blue) = world();
    assert_eq!(up(&mut world, blue), [1, 10]);
    for nth in 1..5 {
        set(&mut world, vec![Fault::RefuseOnce { nth }], hairpin_map());
        assert_eq!(up(&mut world, blue), [1, 10, 11], "{nth}");
        let there = world.switch_entries();
        let own = |it: &&String| it.starts_with("0 ") && it.contains("dl_vlan=2002");
        assert_eq!(there.iter().filter(own).count(), 1, "{nth}: {there:?}");
        set(&mut world, Vec::new(), map_without_hairpin());
    }
}

/// The port is down until the map changes or the switch connects again.
#[test]
fn a_port_is_down_when_the_switch_refuses_its_ingress_rule() {
    let refuse = || vec![Fault::RefuseFlowMods { every: 1 }];
    let (mut world, [red, blue]) = empty();
    set(&mut world, refuse(), hairpin_map());
    // Port 11 becomes up with the map, and then becomes down like a port whose link has no path.
    assert_eq!(world.heard(blue), ["PORT_STATUS MODIFY 11", "PORT_STATUS MODIFY 11"]);
    assert_eq!(world.heard(red), [""; 0]);
    assert_eq!(up(&mut world, blue), [1, 10]);
    assert_eq!(up(&mut world, red), [1, 2, 10]);
    assert!(!world.switch_flows().iter().any(|it| it.contains("dl_vlan=2002")));
    assert_eq!(world.core.counters().own_refused, 2);
    // Weir accepts an entry that outputs to port 11. No packet leaves by port 11.
    say(&mut world, blue, "flow add prio=5 actions=output:11");
    world.packet(3, &packet("10.0.0.1>10.0.0.2"));
    assert!(world.left.is_empty(), "{:?}", world.left);

    // With an equal map Weir does not send the refused rule again.
    world.set_policy(policy_on(hairpin_map()));
    world.advance(1_000_000_000);
    assert_eq!(up(&mut world, blue), [1, 10]);
    assert_eq!(world.core.counters().own_refused, 2);
    // With another map Weir sends the rule again.
    set(&mut world, Vec::new(), map_without_hairpin());
    set(&mut world, Vec::new(), hairpin_map());
    assert_eq!(up(&mut world, blue), [1, 10, 11]);
    world.packet(3, &packet("10.0.0.1>10.0.0.2"));
    assert_eq!(world.left.len(), 1);
    // After a reconnect Weir sends the rule again.
    set(&mut world, Vec::new(), map_without_hairpin());
    set(&mut world, refuse(), hairpin_map());
    assert_eq!(up(&mut world, blue), [1, 10]);
    world.reconnect();
    let blue = world.connect("blue");
    assert_eq!(up(&mut world, blue), [1, 10, 11]);
    assert!(world.switch_flows().iter().any(|it| it.contains("dl_vlan=2002")));
}

/// The refusals of the hypervisor's own rules since the last call, and the ports that are down because of these
/// refusals.
fn refused(world: &mut World) -> (Vec<String>, Option<Vec<(TenantId, u32)>>) {
    let (mut entries, mut ports) = (Vec::new(), None);
    for event in std::mem::take(&mut world.events) {
        match event {
            Event::OwnRefused { match_, priority } => entries.push(format!("{priority} {match_}")),
            Event::RefusedPorts(all) => ports = Some(all),
            _ => {}
        }
    }
    (entries, ports)
}

/// The operator gets a report of the refused rules and ports, and of the end of each refusal.
#[test]
fn refused_rules_and_ports_are_reported() {
    let refuse = || vec![Fault::RefuseFlowMods { every: 1 }];
    let (mut world, _) = empty();
    let blue = TenantId(2);
    refused(&mut world);
    // Weir reports no rule that the switch refuses only once.
    set(&mut world, vec![Fault::RefuseOnce { nth: 1 }], hairpin_map());
    assert_eq!(refused(&mut world), (vec![], None));
    set(&mut world, Vec::new(), map_without_hairpin());
    set(&mut world, refuse(), hairpin_map());
    let (entries, ports) = refused(&mut world);
    assert!(matches!(&entries[..], [it] if it.contains("dl_vlan=2002")), "{entries:?}");
    assert_eq!(ports, Some(vec![(blue, 11)]));
    world.set_policy(policy_on(hairpin_map()));
    world.advance(1_000_000_000);
    assert_eq!(refused(&mut world), (vec![], None));
    set(&mut world, Vec::new(), map_without_hairpin());
    assert_eq!(refused(&mut world), (vec![], Some(vec![])));

    // The switch refuses all rules of 40 transits. Weir reports 16 of the 80 refusals. No port is down because of
    // refused transit rules.
    let mut full = map_without_hairpin();
    let hop = |port, tag| Hop { port: PortNumber::new(port).unwrap(), tag: Tag::new(tag).unwrap() };
    full.transit.extend((3000..3040).map(|tag| {
        let (from, to) = (hop(1, tag), Exit::Next(hop(2, tag)));
        Transit { from, to, leaves_by: None }
    }));
    let before = world.core.counters().own_refused;
    set(&mut world, refuse(), full);
    let (entries, ports) = refused(&mut world);
    assert_eq!((entries.len(), ports), (16, None));
    assert_eq!(world.core.counters().own_refused - before, 80);
}

/// Transit packets that the switch cannot forward are reported once, when the whole result is known.
#[test]
fn refused_transits_are_reported_once() {
    let hop = |port, tag| Hop { port: PortNumber::new(port).unwrap(), tag: Tag::new(tag).unwrap() };
    let pass = |tag| {
        let (from, to) = (hop(1, tag), Exit::Next(hop(2, tag)));
        Transit { from, to, leaves_by: None }
    };
    let [first, second, third] = [3000, 3001, 3002].map(pass);
    // This transit leaves a big switch by an edge port of this switch. Weir does not report this transit.
    let to = Exit::Edge(PortNumber::new(2).unwrap());
    let last = Transit { to, leaves_by: Some((TenantId(2), 1)), ..pass(3003) };
    for version in [Version::V1_0, Version::V1_3] {
        let policy = policy_on(map_without_hairpin());
        let mut world = World::new(Setup { policy, ports: 6, ..Setup::new(version, "") });
        let all = |world: &mut World| {
            let events = std::mem::take(&mut world.events).into_iter();
            let refused = events.filter_map(|event| match event {
                Event::RefusedTransits(transits) => Some(transits),
                _ => None,
            });
            refused.map(|it| it.into_iter().collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let set = |world: &mut World, faults, transits: &[Transit]| {
            let mut map = map_without_hairpin();
            map.transit.extend(transits);
            set(world, faults, map);
            all(world)
        };
        // Weir reports no transit whose rule the switch refuses only once.
        assert_eq!(set(&mut world, vec![Fault::RefuseOnce { nth: 1 }], &[first]), [[]; 0]);
        let refuse = || vec![Fault::RefuseFlowMods { every: 1 }];
        let reported = set(&mut world, refuse(), &[first, second, third, last]);
        assert_eq!(reported, [[second, third]], "{version:?}");
        // A transit that stays in the map is not reported again.
        assert_eq!(set(&mut world, refuse(), &[first, second]), [[]; 0]);
        // A transit that is removed from the map and added again is tried again.
        assert_eq!(set(&mut world, Vec::new(), &[first]), [[]; 0]);
        assert_eq!(set(&mut world, refuse(), &[first, second]), [[second]]);
        assert_eq!(set(&mut world, Vec::new(), &[first]), [[]; 0]);
        assert_eq!(set(&mut world, Vec::new(), &[first, second]), [[]; 0]);
        let there = world.switch_flows().join("\n");
        assert!(there.contains("3000") && there.contains("3001"), "{version:?}: {there}");
    }
}

/// The port LOCAL has another number in the metadata than ordinary ports.
#[test]
fn the_local_port_is_down_when_the_switch_refuses_its_rule() {
    let with_local = || {
        let mut map = hairpin_map();
        for member in map.members.values_mut() {
            if let Some(port) = member.ports.remove(&11) {
                member.ports.insert(0xffff_fffe, port);
            }
        }
        map
    };
    let (mut world, [_, blue]) = empty();
    set(&mut world, vec![Fault::RefuseFlowMods { every: 1 }], with_local());
    assert_eq!(up(&mut world, blue), [1, 10]);
    set(&mut world, Vec::new(), map_without_hairpin());
    set(&mut world, Vec::new(), with_local());
    assert_eq!(up(&mut world, blue), [1, 10, 0xffff_fffe]);
}

/// The tenants' networks are added while the switch refuses all rules. The tenants have ports, and all ports are down.
/// After a reconnect the switch accepts the rules, and the ports are up.
#[test]
fn each_port_is_down_when_the_switch_refuses_each_rule() {
    let mut world = World::new(Setup {
        policy: policy("red: -\nblue: -"),
        ports: 6,
        ..Setup::new(Version::V1_3, "")
    });
    set(&mut world, vec![Fault::RefuseFlowMods { every: 1 }], hairpin_map());
    for name in ["red", "blue"] {
        let seat = world.connect(name);
        assert_eq!(up(&mut world, seat), [0; 0], "{name}");
    }
    world.reconnect();
    let blue = world.connect("blue");
    assert_eq!(up(&mut world, blue), [1, 10, 11]);
}

fn broadcast() -> Vec<u8> {
    let mut frame = packet("10.0.0.1>10.0.0.2");
    frame[..6].copy_from_slice(&[0xff; 6]);
    frame
}

/// A port of a big switch is down if the member with the port refuses the rules of the port. A shared port is down also
/// if another member refuses rules that deliver packets to the port. No port is down if member 1 refuses rules while
/// the unshared port 2 of member 2 is added.
#[test]
fn a_big_switch_port_is_down_when_a_member_refuses_its_rules() {
    const ALL: [u32; 5] = [1, 2, 7, 8, 10];
    let red = TenantId(1);
    // Some of the rules that are added with one shared port deliver packets to all shared ports.
    for (port, member, down) in [
        (2, 2, &[2][..]),
        (2, 1, &[]),
        (10, 2, &[10]),
        (7, 1, &[7, 8]),
        (7, 2, &[7, 8]),
        (8, 1, &[7, 8]),
        (8, 2, &[7, 8]),
    ] {
        let note = format!("{port} on {member}");
        let plans = vec![big_plan(0), big_plan(1)];
        let mut testbed = Testbed::new(Version::V1_3, plans.clone());
        let (whole, tags) = Testbed::maps_from(2000, &plans);
        let mut less = whole.clone();
        for map in less.values_mut() {
            map.members.get_mut(&red).unwrap().ports.remove(&port);
        }
        // The third switch is no member of the big switch, so its map does not change.
        less.insert(3, whole[&3].clone());
        let set = |testbed: &mut Testbed, maps, faults| {
            testbed.plant(member, faults);
            testbed.set_maps(maps, 2000..=tags);
            testbed.plant(member, Vec::new());
        };
        assert_eq!(testbed.ports_up(0, 1), ALL, "{note}");
        assert_eq!(testbed.say(0, 1, "flow add prio=5 actions=flood"), [""; 0]);
        set(&mut testbed, &less, Vec::new());
        set(&mut testbed, &whole, vec![Fault::RefuseFlowMods { every: 1 }]);
        let is_down = |number: &u32| down.contains(number);
        let refused: Vec<_> = down.iter().map(|&number| (red, number)).collect();
        assert_eq!(testbed.refused(member), refused, "{note}");
        assert_eq!(testbed.refused(3 - member), [], "{note}");
        let up: Vec<u32> = ALL.into_iter().filter(|number| !is_down(number)).collect();
        assert_eq!(testbed.ports_up(0, 1), up, "{note}");
        assert_eq!(testbed.ports_up(1, 1), ALL, "{note}");
        // A member that does not refuse rules delivers packets to shared port 8.
        for at in [1, 2] {
            let seen = testbed.send(0, at, at as u32, &broadcast());
            let reached = seen.delivered.iter().any(|it| (it.0, it.1, it.2) == (0, 2, 8));
            // No packet enters by port 2 of member 2 if member 2 refuses the rules of port 2.
            let is_let_in = (at, at as u32) != (member, port);
            assert_eq!(reached, is_let_in && !(at == member && is_down(&8)), "{note} from {at}");
        }
        // With another map Weir sends the rules again, and the switch accepts the rules.
        set(&mut testbed, &less, Vec::new());
        assert_eq!(testbed.refused(member), [], "{note}");
        set(&mut testbed, &whole, Vec::new());
        assert_eq!(testbed.ports_up(0, 1), ALL, "{note}");
    }
}

/// The member with the port refuses the transit rule by which packets from the other member leave by the port. The port
/// is down.
#[test]
fn a_big_switch_port_is_down_when_its_egress_transit_rule_is_refused() {
    const ALL: [u32; 5] = [1, 2, 7, 8, 10];
    let red = TenantId(1);
    for (version, (port, owner)) in VERSIONS
        .into_iter()
        .flat_map(|it| [(1, 1), (2, 2), (7, 1), (8, 2), (10, 2)].map(|port| (it, port)))
    {
        let note = format!("{version:?}: {port} on {owner}");
        let plans = vec![big_plan(0), big_plan(1)];
        let mut testbed = Testbed::new(version, plans.clone());
        let (whole, tags) = Testbed::maps_from(2000, &plans);
        let mut less = whole.clone();
        let transits = &mut less.get_mut(&owner).unwrap().transit;
        let before = transits.len();
        transits.retain(|it| it.leaves_by != Some((red, port)));
        assert_ne!(transits.len(), before, "{note}");
        let set = |testbed: &mut Testbed, maps, faults| {
            testbed.plant(owner, faults);
            testbed.set_maps(maps, 2000..=tags);
            testbed.plant(owner, Vec::new());
        };
        assert_eq!(testbed.ports_up(0, 1), ALL, "{note}");
        set(&mut testbed, &less, Vec::new());
        assert_eq!(testbed.ports_up(0, 1), ALL, "{note}");
        set(&mut testbed, &whole, vec![Fault::RefuseFlowMods { every: 1 }]);
        assert_eq!(testbed.refused(owner), [(red, port)], "{note}");
        assert_eq!(testbed.refused(3 - owner), [], "{note}");
        let up: Vec<u32> = ALL.into_iter().filter(|number| *number != port).collect();
        assert_eq!(testbed.ports_up(0, 1), up, "{note}");
        assert_eq!(testbed.ports_up(1, 1), ALL, "{note}");
        // With another map Weir sends the rule again, and the switch accepts the rule.
        set(&mut testbed, &less, Vec::new());
        assert_eq!(testbed.refused(owner), [], "{note}");
        set(&mut testbed, &whole, Vec::new());
        assert_eq!(testbed.ports_up(0, 1), ALL, "{note}");
    }
}
