//! Tests of virtual networks on physical networks: refusals of requests, and moves of links after failures.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::spec::*;
use common::walk::{Arrived, Walker, port, ports};
use common::{builtin, megabits};
use fabric::embedding::{
    Block, Carries, Changes, Embedding, Exit, LinkSpec, Part, PortChange, PortKind, Reason,
    Refusal, Route, Spec, Step, Trouble,
};
use fabric::paths::Disjoint;
use fabric::{Dpid, Error, Network};
use std::collections::BTreeMap;

#[test]
fn a_virtual_link_carries_packets_in_both_directions_with_one_tag() {
    let (network, mut embedding) = (ring(), embedding());
    let changes = embedding.apply(&network, &wanted(&[(RED, &two())])).unwrap();
    assert_eq!(changes.switches, [1, 2, 3].map(Dpid).into());
    assert_eq!(changes.ports.len(), 4);
    assert!(changes.ports.iter().all(|change| change.is == Some(true)), "{changes:?}");
    for (from, to) in [((0xa1, 2), (0xa3, 2)), ((0xa3, 2), (0xa1, 2))] {
        let to = virtual_port(to.0, to.1);
        let reached = reach(&network, &embedding, RED, virtual_port(from.0, from.1));
        assert_eq!(reached, [Arrived::In(RED, to)]);
    }
    // The whole path has one tag.
    let (_, status) = embedding.trunks(RED).next().unwrap();
    let lanes = &status.active.unwrap().tags;
    assert!(lanes.values().flatten().all(|tag| tag.get() == 2000), "{lanes:?}");
}

#[test]
fn ports_have_names_speeds_and_addresses() {
    let (network, mut embedding) = (ring(), embedding());
    let mut spec = two();
    spec.links[0].bandwidth = megabits(4);
    spec.ports[0].name = "uplink".into();
    embedding.apply(&network, &wanted(&[(RED, &spec), (BLUE, &Spec::default())])).unwrap();
    let member = &embedding.switch_map(Dpid(1)).unwrap().members[&RED];
    assert_eq!((member.datapath, member.shared_with), (Dpid(0xa1), false));
    let [one, two] = [1, 2].map(|number| &member.ports[&number]);
    assert_eq!((one.name.as_str(), two.name.as_str()), ("uplink", "p2"));
    assert_eq!((one.speed, two.speed), (Some(megabits(10)), Some(megabits(4))));
    assert_eq!(one.mac[0] & 3, 2, "locally administered, of one host");
    assert_eq!((one.mac[..4].to_vec(), &one.mac[4..]), (two.mac[..4].to_vec(), &[0, 1][..]));
    let macs: std::collections::BTreeSet<_> =
        ports(&embedding).map(|(_, _, _, id, port)| (port.mac, id)).collect();
    assert_eq!(macs.len(), 4);
    // The tenant's hosts have the first addresses of the block.
    let assigned: Vec<_> =
        embedding.assigned(RED).map(|(_, address)| address.to_string()).collect();
    assert_eq!(assigned, ["10.0.0.1", "10.0.0.2"]);
}

#[test]
fn a_failed_link_moves_to_a_backup_with_rules_already_installed() {
    let (mut network, mut embedding) = (ring(), embedding());
    let mut spec = two();
    spec.links[0].protection = Some(Disjoint::Switches);
    spec.links[0].reverts = true;
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let before = embedding.clone();
    let via =
        |embedding: &Embedding| embedding.trunks(RED).next().unwrap().1.active.unwrap().wires[0];
    let first = via(&embedding);
    let transit =
        |embedding: &Embedding, dpid| embedding.switch_map(Dpid(dpid)).unwrap().transit.clone();

    network.set_port_up(port(2, 2), false).unwrap();
    let changes = embedding.handle_changes(&network);
    // The tenant sees no change; only the two ends send by another path, and the failed path is released.
    assert_eq!(changes.ports, []);
    assert!(
        changes.switches.is_superset(&[1, 3].map(Dpid).into())
            && !changes.switches.contains(&Dpid(4))
    );
    assert_eq!(transit(&embedding, 4), transit(&before, 4));
    assert_ne!(via(&embedding), first);
    assert_eq!(
        reach(&network, &embedding, RED, virtual_port(0xa1, 2)),
        [Arrived::In(RED, virtual_port(0xa3, 2))]
    );
    // The rules that are already on the switches lead the packets of the moved end to the remote end.
    let PortKind::Link { sends: Some(hop), .. } =
        embedding.switch_map(Dpid(1)).unwrap().members[&RED].ports[&2].kind.clone()
    else {
        panic!("no way")
    };
    let walker = Walker { network: &network, maps: before.switch_maps() };
    assert_eq!(walker.follow(Dpid(1), hop), Arrived::In(RED, virtual_port(0xa3, 2)));

    network.set_port_up(port(4, 2), false).unwrap();
    let changes = embedding.handle_changes(&network);
    let down = |switch| PortChange {
        tenant: RED,
        port: virtual_port(switch, 2),
        was: Some(true),
        is: Some(false),
    };
    assert_eq!(changes.ports, [down(0xa1), down(0xa3)]);
    assert_eq!(reach(&network, &embedding, RED, virtual_port(0xa1, 2)), [Arrived::Lost]);

    network.set_port_up(port(2, 2), true).unwrap();
    assert_eq!(embedding.handle_changes(&network).ports.len(), 2);
    assert_eq!(via(&embedding), first, "it reverts");
    network.set_port_up(port(4, 2), true).unwrap();
    assert_eq!(embedding.handle_changes(&network).ports, []);
    assert_eq!(via(&embedding), first);
    assert!(embedding.trunks(RED).next().unwrap().1.backup.is_some());
}

#[test]
fn a_big_switch_forwards_between_its_members_also_after_link_failures() {
    let (mut network, mut embedding) = (ring(), embedding());
    let mut spec = Spec {
        switches: vec![switch(0xb0, &[1, 2, 3]), switch(0xb4, &[4])],
        ports: vec![
            edge(0xb0, 1, port(1, 1)),
            edge(0xb0, 2, port(2, 1)),
            edge(0xb4, 1, port(4, 1)),
        ],
        links: vec![link((0xb0, 9), (0xb4, 9))],
        ..Spec::default()
    };
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let check = |network: &Network, embedding: &Embedding| {
        for (number, at) in [(1, port(1, 1)), (2, port(2, 1))] {
            // A packet from any member leaves by the port `at`.
            assert_eq!(
                reach(network, embedding, RED, virtual_port(0xb0, number)),
                [Arrived::Edge(at); 3]
            );
        }
        let far = Arrived::In(RED, virtual_port(0xb4, 9));
        assert_eq!(reach(network, embedding, RED, virtual_port(0xb0, 9)), [far; 3]);
        let near = Arrived::In(RED, virtual_port(0xb0, 9));
        assert_eq!(reach(network, embedding, RED, virtual_port(0xb4, 9)), [near]);
    };
    check(&network, &embedding);
    assert!(embedding.switch_map(Dpid(2)).unwrap().members[&RED].shared_with);
    // The big switch's end of the link is on switch 1 or 3, next to switch 4. All ports can be reached whichever wire
    // fails.
    for dpid in 1..=4 {
        network.set_port_up(port(dpid, 2), false).unwrap();
        embedding.handle_changes(&network);
        check(&network, &embedding);
        network.set_port_up(port(dpid, 2), true).unwrap();
        embedding.handle_changes(&network);
        check(&network, &embedding);
    }
    // A given route leads from switch 1 to switch 2 by the switches 4 and 3.
    spec.switches[0].routes = vec![[1, 4, 3, 2].map(|dpid| Step::Switch(Dpid(dpid))).to_vec()];
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    check(&network, &embedding);
    let members = [Dpid(1), Dpid(2)];
    let inside = embedding
        .trunks(RED)
        .find(|(id, _)| id.carries == Carries::Inside { switch: Dpid(0xb0), members });
    assert_eq!(inside.unwrap().1.active.unwrap().wires.len(), 3);
}

#[test]
fn a_link_of_a_big_switch_moves_when_its_member_switch_is_removed() {
    // Switch 4 is connected only to switch 3. The big switch reaches switch 4 from switch 3 and, after rewiring, from
    // switch 1.
    let (mut network, mut embedding) = (ring(), embedding());
    network.set_port_up(port(4, 2), false).unwrap();
    let spec = Spec {
        switches: vec![switch(0xb0, &[1, 3]), switch(0xb4, &[4])],
        links: vec![link((0xb0, 9), (0xb4, 9))],
        ..Spec::default()
    };
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let end = |embedding: &Embedding| {
        let find = ports(embedding).find(|(_, _, _, id, port)| {
            *id == virtual_port(0xb0, 9) && matches!(port.kind, PortKind::Link { .. })
        });
        find.unwrap().0
    };
    assert_eq!(end(&embedding), Dpid(3));
    network.remove_switch(Dpid(3)).unwrap();
    network.set_port_up(port(4, 2), true).unwrap();
    let changes = embedding.handle_changes(&network);
    assert_eq!((end(&embedding), changes.ports), (Dpid(1), vec![]));
}

#[test]
fn tenants_on_the_same_link_are_separated_by_tags() {
    let (network, mut embedding) = (ring(), embedding());
    embedding.apply(&network, &wanted(&[(RED, &two())])).unwrap();
    let mut blue = two();
    blue.ports.clear();
    blue.hosts.clear();
    let red_before = embedding.trunks(RED).next().unwrap().1.active.unwrap().clone();
    embedding.apply(&network, &wanted(&[(RED, &two()), (BLUE, &blue)])).unwrap();
    // Unchanged trunks keep their path and tags.
    assert_eq!(embedding.trunks(RED).next().unwrap().1.active.unwrap(), &red_before);
    for tenant in [RED, BLUE] {
        let reached = reach(&network, &embedding, tenant, virtual_port(0xa1, 2));
        assert_eq!(reached, [Arrived::In(tenant, virtual_port(0xa3, 2))]);
    }
    // A tag that a tenant releases is not soon given to another tenant.
    embedding.apply(&network, &wanted(&[(BLUE, &blue)])).unwrap();
    embedding.apply(&network, &wanted(&[(RED, &two()), (BLUE, &blue)])).unwrap();
    let red = embedding.trunks(RED).next().unwrap().1.active.unwrap().clone();
    assert!(red.tags.values().flatten().all(|tag| tag.get() > 2001), "{red:?}");
    embedding.apply(&network, &BTreeMap::new()).unwrap();
    assert_eq!((embedding.tags_in_use(), embedding.switch_maps().len()), (0, 0));
}

#[test]
fn a_shared_edge_port_separates_tenants_by_their_hosts() {
    let (network, mut embedding) = (ring(), embedding());
    let (mut red, mut blue) = (two(), two());
    red.ports[0].shared = true;
    blue.ports = vec![edge(0xa1, 1, port(1, 1))];
    blue.ports[0].shared = true;
    blue.hosts = vec![host(7, (0xa1, 1))];
    embedding.apply(&network, &wanted(&[(RED, &red), (BLUE, &blue)])).unwrap();
    let hosts =
        |tenant| match &embedding.switch_map(Dpid(1)).unwrap().members[&tenant].ports[&1].kind {
            PortKind::Edge { hosts, .. } => hosts.clone(),
            other => panic!("{other:?}"),
        };
    assert_eq!((hosts(RED), hosts(BLUE)), (vec![mac(1)], vec![mac(7)]));
}

/// The remote member sends packets out by the label alone, so the sender has to know the tenant's hosts at the remote
/// port.
#[test]
fn big_switch_members_know_the_hosts_at_shared_ports_of_each_other() {
    let (network, mut embedding) = (ring(), embedding());
    let mut ports = vec![edge(0xb0, 1, port(1, 1)), edge(0xb0, 2, port(2, 1))];
    ports[0].shared = true;
    let switches = vec![switch(0xb0, &[1, 2])];
    let hosts = vec![host(7, (0xb0, 1)), host(8, (0xb0, 2))];
    let spec = Spec { switches, ports, hosts, ..Spec::default() };
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let behind = |at, number| match &embedding.switch_map(Dpid(at)).unwrap().members[&RED].ports
        [&number]
        .kind
    {
        PortKind::Edge { hosts, .. } | PortKind::Remote { hosts, .. } => hosts.clone(),
        other => panic!("{other:?}"),
    };
    for at in [1, 2] {
        assert_eq!((behind(at, 1), behind(at, 2)), (vec![mac(7)], vec![]));
    }
}

#[test]
fn stopped_parts_of_a_network_are_down_and_keep_their_paths_and_tags() {
    let (network, mut embedding) = (ring(), embedding());
    let spec = two();
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let (tags, placed) = (embedding.tags_in_use(), embedding.export());
    type Case = (&'static str, fn(&mut Spec), usize);
    let cases: [Case; 4] = [
        ("the network", |spec| spec.started = false, 0),
        ("a switch", |spec| spec.switches[0].started = false, 1),
        ("a link", |spec| spec.links[0].started = false, 2),
        ("a port", |spec| spec.ports[0].started = false, 3),
    ];
    for (what, stop, up) in cases {
        let mut stopped = spec.clone();
        stop(&mut stopped);
        embedding.apply(&network, &wanted(&[(RED, &stopped)])).unwrap();
        let up_now = ports(&embedding).filter(|(.., port)| port.up).count();
        assert_eq!((up_now, embedding.tags_in_use()), (up, tags), "{what}");
        embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
        all_follow(&network, &mut embedding, true);
        assert_eq!(embedding.export(), placed, "{what}");
    }
}

#[test]
fn networks_may_be_requested_before_their_switches_connect() {
    let (whole, mut network, mut embedding) = (ring(), Network::default(), embedding());
    let changes = embedding.apply(&network, &wanted(&[(RED, &two())])).unwrap();
    assert!(changes.ports.iter().all(|port| port.is == Some(false)), "{changes:?}");
    let trouble = |embedding: &Embedding| embedding.trunks(RED).next().unwrap().1.trouble;
    assert_eq!(trouble(&embedding), Some(Trouble::Waiting(Dpid(1))));
    network.add_switch(Dpid(1)).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(trouble(&embedding), Some(Trouble::Waiting(Dpid(3))));
    network.add_switch(Dpid(3)).unwrap();
    embedding.handle_changes(&network);
    assert_eq!(trouble(&embedding), Some(Trouble::Route(Error::NoPath)));
    // A waiting network does not prevent other networks, although a new request for the waiting network would be
    // refused.
    embedding.apply(&network, &wanted(&[(RED, &two()), (BLUE, &Spec::default())])).unwrap();
    let changes = embedding.handle_changes(&whole);
    assert_eq!(changes.ports.len(), 4);
    assert!(changes.ports.iter().all(|port| port.is == Some(true)), "{changes:?}");
}

/// Checks one reason for a refusal.
#[track_caller]
fn refused(change: impl Fn(&mut Spec), part: Part, why: Reason) {
    let (network, mut embedding) = (ring(), embedding());
    embedding.apply(&network, &wanted(&[(RED, &two())])).unwrap();
    let (before, maps) = (embedding.export(), embedding.switch_maps().clone());
    let mut spec = two();
    change(&mut spec);
    let result = embedding.apply(&network, &wanted(&[(RED, &spec)]));
    let refusals = result.unwrap_err();
    assert!(refusals.contains(&Refusal { tenant: RED, part, why }), "{refusals:?}");
    // A refused request changes nothing.
    assert_eq!((embedding.export(), embedding.switch_maps()), (before, &maps));
}

#[test]
fn contradictory_network_requests_are_refused_with_the_reason() {
    let at = |number| Part::Port(virtual_port(0xa1, number));
    let between = |a: (u64, u32), b: (u64, u32)| Part::Link(link(a, b).ends);
    let block = Block::new("10.0.0.0".parse().unwrap(), 24).unwrap();
    let switches = |spec: &mut Spec, more| spec.switches.push(more);
    refused(
        |it| switches(it, switch(0xa1, &[2])),
        Part::Switch(Dpid(0xa1)),
        Reason::DuplicateSwitch,
    );
    refused(|it| switches(it, switch(0xa2, &[])), Part::Switch(Dpid(0xa2)), Reason::NoMembers);
    refused(
        |it| switches(it, switch(0xa2, &[2, 3])),
        Part::Switch(Dpid(0xa2)),
        Reason::MemberTaken(Dpid(3)),
    );
    refused(
        |it| it.switches[0].routes = vec![vec![Step::Switch(Dpid(1)), Step::Switch(Dpid(2))]],
        Part::Switch(Dpid(0xa1)),
        Reason::RouteElsewhere,
    );
    for number in [0, 0xff01, u32::MAX] {
        refused(move |it| it.ports[0].port.number = number, at(number), Reason::PortNumber);
    }
    refused(|it| it.ports[0].port.number = 2, between((0xa1, 2), (0xa3, 2)), Reason::DuplicatePort);
    refused(|it| it.ports[0].name = "sixteen-bytes-it".into(), at(1), Reason::LongName);
    refused(|it| it.ports[0].at = port(2, 1), at(1), Reason::NotAMember(port(2, 1)));
    refused(|it| it.ports[0].at = port(1, 9), at(1), Reason::NoSuchPhysicalPort(port(1, 9)));
    refused(|it| it.ports[0].at = port(1, 2), at(1), Reason::NotAnEdge(port(1, 2)));
    refused(
        |it| it.ports.push(edge(0xa1, 7, port(1, 1))),
        at(7),
        Reason::PortTaken(port(1, 1), RED),
    );
    let unshared = |it: &mut Spec| (it.ports[0].shared, it.hosts) = (true, Vec::new());
    refused(unshared, at(1), Reason::SharedByNobody);
    refused(
        |it| it.links.push(link((0xa1, 5), (0xa9, 5))),
        between((0xa1, 5), (0xa9, 5)),
        Reason::NoSuchSwitch(Dpid(0xa9)),
    );
    refused(
        |it| it.links.push(link((0xa1, 5), (0xa3, 2))),
        between((0xa1, 5), (0xa3, 2)),
        Reason::DuplicatePort,
    );
    refused(
        |it| it.links.push(link((0xa1, 5), (0xa1, 6))),
        between((0xa1, 5), (0xa1, 6)),
        Reason::SelfLink,
    );
    let hosts = |spec: &mut Spec, more| spec.hosts.push(more);
    refused(|it| hosts(it, host(1, (0xa3, 1))), Part::Host(mac(1)), Reason::DuplicateHost);
    for at in [(0xa1, 2), (0xa1, 3), (0xa9, 1)] {
        // A host cannot be at the end of a link either.
        let why = Reason::NoSuchPort(virtual_port(at.0, at.1));
        refused(|it| hosts(it, host(9, at)), Part::Host(mac(9)), why);
    }
    let outside = "10.0.1.1".parse().unwrap();
    refused(
        |it| it.hosts[0].addresses = vec![outside],
        Part::Host(mac(1)),
        Reason::OutsideBlock(outside, block),
    );
    let twice = "10.0.0.9".parse().unwrap();
    refused(
        |it| it.hosts.iter_mut().for_each(|host| host.addresses = vec![twice]),
        Part::Host(mac(3)),
        Reason::AddressTaken(twice, mac(1)),
    );
    let small = Block::new("10.0.0.0".parse().unwrap(), 30);
    refused(
        |it| {
            it.block = small;
            hosts(it, host(9, (0xa3, 1)));
        },
        Part::Host(mac(9)),
        Reason::BlockExhausted(small.unwrap()),
    );
}

#[test]
fn links_without_a_usable_path_are_refused() {
    let part = Part::Link(link((0xa1, 2), (0xa3, 2)).ends);
    let unroutable = |error| Reason::Unroutable(Trouble::Route(error));
    refused(
        |it| it.links[0].bandwidth = megabits(11),
        part,
        unroutable(Error::NoBandwidth(megabits(10))),
    );
    let through =
        |dpids: &[u64]| Route::Given(dpids.iter().map(|&dpid| Step::Switch(Dpid(dpid))).collect());
    refused(move |it| it.links[0].route = through(&[1, 3]), part, unroutable(Error::NoPath));
    refused(move |it| it.links[0].route = through(&[1, 2]), part, Reason::RouteBeside);
    refused(
        |it| it.links[0].route = Route::Given(vec![Step::Port(port(1, 1))]),
        part,
        unroutable(Error::BrokenPath(ring().edge(port(1, 1)).unwrap().1)),
    );
    refused(
        |it| it.links[0].route = Route::Given(vec![Step::Port(port(1, 9))]),
        part,
        unroutable(Error::UnknownPort(port(1, 9))),
    );

    // The path fails between the check and the commit.
    let (mut network, mut embedding) = (ring(), embedding());
    assert!(embedding.dry_run(&network, &wanted(&[(RED, &two())])).is_ok());
    network.set_port_up(port(1, 2), false).unwrap();
    network.set_port_up(port(1, 3), false).unwrap();
    let refusals = embedding.apply(&network, &wanted(&[(RED, &two())])).unwrap_err();
    assert_eq!(refusals, [Refusal { tenant: RED, part, why: unroutable(Error::NoPath) }]);
    let mut protected = two();
    protected.links[0].protection = Some(Disjoint::Links);
    network.set_port_up(port(1, 2), true).unwrap();
    let refusals = embedding.apply(&network, &wanted(&[(RED, &protected)])).unwrap_err();
    assert_eq!(refusals, [Refusal { tenant: RED, part, why: unroutable(Error::NoBackup) }]);
}

#[test]
fn a_link_is_refused_when_no_tag_is_free() {
    let (network, mut embedding) = (ring(), tags(5, 6));
    // Each of the two paths has two tags.
    let five: Vec<LinkSpec> = (1..=5).map(|number| link((0xa1, number), (0xa3, number))).collect();
    let spec = Spec { ports: Vec::new(), hosts: Vec::new(), links: five, ..two() };
    let refusals = embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap_err();
    let why = Reason::Unroutable(Trouble::Tags(port(1, 2)));
    assert_eq!(refusals, [Refusal { tenant: RED, part: Part::Link(spec.links[4].ends), why }]);
    assert_eq!(embedding.tags_in_use(), 0);
}

#[test]
fn a_port_or_host_of_another_tenant_is_refused() {
    let (network, mut embedding) = (ring(), embedding());
    let refusals =
        embedding.apply(&network, &wanted(&[(RED, &two()), (BLUE, &two())])).unwrap_err();
    let taken = |switch, dpid| Refusal {
        tenant: BLUE,
        part: Part::Port(virtual_port(switch, 1)),
        why: Reason::PortTaken(port(dpid, 1), RED),
    };
    assert_eq!(refusals, [taken(0xa1, 1), taken(0xa3, 3)]);
    let mut shared = two();
    shared.ports.iter_mut().for_each(|port| port.shared = true);
    let both = wanted(&[(RED, &shared), (BLUE, &shared)]);
    let refusals = embedding.apply(&network, &both).unwrap_err();
    let same =
        |last| Refusal { tenant: BLUE, part: Part::Host(mac(last)), why: Reason::HostTaken(RED) };
    assert_eq!(refusals, [same(1), same(3)]);
    // At another port, any tenant may have the same hardware address.
    let mut apart = two();
    apart.switches = vec![switch(0xa1, &[2]), switch(0xa3, &[4])];
    apart.ports = vec![edge(0xa1, 1, port(2, 1)), edge(0xa3, 1, port(4, 1))];
    embedding.apply(&network, &wanted(&[(RED, &two()), (BLUE, &apart)])).unwrap();
}

#[test]
fn paths_and_tags_are_restored_after_a_restart() {
    let (mut network, mut before) = (ring(), embedding());
    let mut spec = two();
    spec.links[0].protection = Some(Disjoint::Links);
    spec.links[0].reverts = true;
    before.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    // At the restart the link is on its backup, which is not the shortest path that a new search would find.
    network.set_port_up(port(1, 2), false).unwrap();
    before.handle_changes(&network);
    let saved = before.export();

    let restored = |network: &Network, spec: &Spec| {
        let mut after = embedding();
        after.restore(&saved).unwrap();
        after.apply(network, &wanted(&[(RED, spec)])).unwrap();
        after
    };
    // No switch is connected yet, and all trunks hold their saved paths. The trunks hold the paths while wires are
    // discovered one by one.
    let mut after = restored(&Network::default(), &spec);
    let edges_down = |embedding: &Embedding| ports(embedding).filter(|(.., port)| !port.up).count();
    assert_eq!((after.export(), edges_down(&after)), (saved.clone(), 0));
    assert!(after.trunks(RED).all(|(_, status)| status.is_held));
    let mut growing = Network::default();
    for dpid in [3, 1, 2, 4] {
        growing.add_switch(Dpid(dpid)).unwrap();
        (1..=3).for_each(|number| growing.add_port(port(dpid, number)).unwrap());
        growing.add_edge(port(dpid, 1), megabits(10), fabric::Duration::ZERO).unwrap();
        after.handle_changes(&growing);
    }
    growing.set_port_up(port(1, 2), false).unwrap();
    for dpid in 1..=4 {
        let (a, b) = (port(dpid, 2), port(dpid % 4 + 1, 3));
        growing.connect(a, b, megabits(10), fabric::Duration::ZERO).unwrap();
        assert_eq!(after.handle_changes(&growing).moves, []);
    }
    after.stop_waiting(&growing);
    assert_eq!(after.switch_maps(), before.switch_maps());
    assert!(after.trunks(RED).all(|(_, status)| !status.is_held));
    // The link remembers the path to which it reverts.
    for network in [&mut network, &mut growing] {
        network.set_port_up(port(1, 2), true).unwrap();
    }
    let home = |embedding: &mut Embedding, network: &Network| {
        embedding.handle_changes(network);
        embedding.trunks(RED).next().unwrap().1.active.unwrap().wires.clone()
    };
    assert_eq!(home(&mut after, &growing), home(&mut before, &network));

    // A changed request is placed again, and a path that the network contradicts is not held.
    let mut other = spec.clone();
    other.links[0].bandwidth = megabits(1);
    assert!(restored(&network, &other).trunks(RED).all(|(_, status)| !status.is_held));
    network.set_port_up(port(1, 3), false).unwrap();
    let mut cut = embedding();
    cut.restore(&saved).unwrap();
    cut.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
    cut.handle_changes(&network);
    assert_eq!(
        reach(&network, &cut, RED, virtual_port(0xa1, 2)),
        [Arrived::In(RED, virtual_port(0xa3, 2))]
    );
}

/// Each end of a link knows the tagging of the other end. Each member of a big switch knows the tagging at the ports of
/// the other members.
#[test]
fn switches_know_the_tagging_of_the_remote_end_of_a_link() {
    use fabric::Tagging::{self, Single, Stacked};
    let (mut network, mut embedding) = (ring(), embedding());
    let spec = Spec {
        switches: vec![switch(0xb0, &[1, 2]), switch(0xb4, &[4])],
        ports: vec![edge(0xb0, 1, port(2, 1))],
        links: vec![link((0xb0, 9), (0xb4, 9))],
        ..Spec::default()
    };
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    // The tagging as known by member 1, by member 2, by the other end, and for the edge port of member 2.
    let known = |embedding: &Embedding| -> [Tagging; 4] {
        [(1, 9), (2, 9), (4, 9), (1, 1)].map(|(dpid, number)| {
            let map = embedding.switch_map(Dpid(dpid)).unwrap();
            match &map.members[&RED].ports[&number].kind {
                PortKind::Link { far, .. } => far.tagging,
                PortKind::Remote { tagging, .. } => *tagging,
                PortKind::Edge { .. } => unreachable!(),
            }
        })
    };
    assert_eq!(known(&embedding), [Stacked; 4]);
    network.set_tagging(Dpid(4), Single).unwrap();
    let changes = embedding.handle_changes(&network);
    assert_eq!(known(&embedding), [Single, Single, Stacked, Stacked]);
    // The maps of other switches do not change.
    assert_eq!(changes.switches, [Dpid(1), Dpid(2)].into());
    assert_eq!((changes.ports, changes.moves), (vec![], vec![]));
    // A disconnected switch keeps its tagging, also when the hypervisor restarts before the switch connects again.
    let mut after = self::embedding();
    after.restore(&embedding.export()).unwrap();
    after.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
    assert_eq!(known(&after), [Single, Single, Stacked, Stacked]);
    assert_eq!(after.export(), embedding.export());
    // The tagging changes when the switch connects with another version.
    network.set_tagging(Dpid(4), Stacked).unwrap();
    network.set_tagging(Dpid(1), Single).unwrap();
    after.handle_changes(&network);
    assert_eq!(known(&after), [Stacked, Stacked, Single, Stacked]);
}

#[test]
fn corrupt_stored_state_is_refused_or_corrected() {
    let (network, mut before) = (ring(), embedding());
    let mut spec = two();
    spec.links[0].protection = Some(Disjoint::Links);
    before.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    let saved = before.export();
    for length in 0..saved.len() {
        assert!(embedding().restore(&saved[..length]).is_err(), "{length}");
    }
    for at in 0..saved.len() {
        for bit in 0..8 {
            let mut broken = saved.clone();
            broken[at] ^= 1 << bit;
            let mut after = embedding();
            if after.restore(&broken).is_ok() {
                // If the changed state is accepted, the networks are correct as soon as the physical network is known.
                after.apply(&Network::default(), &wanted(&[(RED, &spec)])).unwrap();
                after.handle_changes(&network);
                after.stop_waiting(&network);
                let reached = reach(&network, &after, RED, virtual_port(0xa1, 2));
                assert_eq!(reached, [Arrived::In(RED, virtual_port(0xa3, 2))], "{at} {bit}");
            }
        }
    }
}

#[test]
fn an_identical_request_makes_no_changes() {
    let (network, mut embedding) = (builtin("leafspine,2,4,1"), embedding());
    let spec = Spec {
        switches: vec![switch(0xa1, &[1]), switch(0xa3, &[3, 4])],
        links: vec![link((0xa1, 2), (0xa3, 2))],
        ..Spec::default()
    };
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    assert_eq!(embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap(), Changes::default());
    assert_eq!(embedding.handle_changes(&network), Changes::default());
    let exits = ports(&embedding).count();
    assert_eq!(exits, 3);
    let edge = |it: &fabric::embedding::Transit| matches!(it.to, Exit::Edge(_));
    assert!(!embedding.switch_maps().values().any(|map| map.transit.iter().any(edge)));
}
