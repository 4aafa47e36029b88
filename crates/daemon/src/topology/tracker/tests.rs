use super::*;
use fabric::embedding::{
    Embedding, LinkSpec, PortSpec, Route, Spec, SwitchSpec, Tag, VirtualPortId,
};
use fabric::{Bandwidth, Duration, End};
use hypervisor::FlowEntry;
use openflow::{ListBuf, v10, v13};
use proptest::prelude::*;
use std::net::IpAddr;

mod kinds;

const RED: TenantId = TenantId(1);
const BLUE: TenantId = TenantId(2);

fn port(text: &str) -> PortId {
    text.parse().unwrap()
}

fn mbit(number: u64) -> Bandwidth {
    Bandwidth::from_megabits_per_second(number)
}

/// The network in figure 1 of the paper: leaves 3 and 4, spines 1 and 2. Each leaf has hosts at ports 1 to 3, spine 1
/// at port 4, and spine 2 at port 5. Each spine has leaf 3 at port 1, and leaf 4 at port 2. All links have 10 Mbit/s.
fn isolation() -> Network {
    let mut network = Network::default();
    for dpid in 1..=4 {
        network.add_switch(Dpid(dpid)).unwrap();
        for number in 1..=5 {
            network.add_port(port(&format!("{dpid} port {number}"))).unwrap();
        }
    }
    for (leaf, at_spine) in [(3, 1), (4, 2)] {
        for (spine, at_leaf) in [(1, 4), (2, 5)] {
            let ends = [format!("{leaf} port {at_leaf}"), format!("{spine} port {at_spine}")];
            let [a, b] = ends.map(|end| port(&end));
            network.connect(a, b, mbit(10), Duration::ZERO).unwrap();
        }
    }
    network
}

fn vnic(at: &str, last: u8, bandwidth: u64) -> config::Vnic {
    config::Vnic {
        at: config::Position::default(),
        port: port(at),
        mac: MacAddress::new([2, 0, 0, 0, 0, last]).unwrap(),
        ip: vec![IpAddr::V4((0x0a00_0000 + u32::from(last)).into())],
        vlan: None,
        bandwidth: mbit(bandwidth),
        agent: None,
    }
}

/// Red has A (1) and B (2) with 8 Mbit/s each. Blue has C (3) and D (4) with 2 Mbit/s each, and E (5) and F (6) with 10
/// Mbit/s each.
fn vnics() -> [(TenantId, Vec<config::Vnic>); 2] {
    [
        (RED, vec![vnic("3 port 1", 1, 8), vnic("4 port 1", 2, 8)]),
        (
            BLUE,
            vec![
                vnic("3 port 2", 3, 2),
                vnic("4 port 2", 4, 2),
                vnic("3 port 3", 5, 10),
                vnic("4 port 3", 6, 10),
            ],
        ),
    ]
}

fn tracker() -> Tracker {
    let mut tracker = Tracker::default();
    configure(&mut tracker);
    tracker
}

fn configure(tracker: &mut Tracker) {
    let vnics = vnics();
    tracker.configure(vnics.iter().map(|(tenant, own)| (*tenant, own.as_slice())));
}

fn everywhere(_: TenantId, _: PortId) -> bool {
    true
}

/// Traces the flows in steps, as the topology thread does.
fn settle(tracker: &mut Tracker, network: &Network) {
    while tracker.settle(network, &everywhere, 2) {}
}

fn send_to(number: u16) -> Box<[u8]> {
    let mut actions = ListBuf::<v10::Action<'_>>::new();
    actions.push(v10::Action::Output { port: v10::PortNo(number), max_len: 0 });
    actions.as_list().as_bytes().into()
}

/// The actions of [`send_to`], after an action that sets the Ethernet destination to the host.
fn send_as_to(host: Option<u8>, number: u16) -> Box<[u8]> {
    let Some(host) = host else { return send_to(number) };
    let mut actions = ListBuf::<v10::Action<'_>>::new();
    actions.push(v10::Action::SetDlDst([2, 0, 0, 0, 0, host]));
    actions.push(v10::Action::Output { port: v10::PortNo(number), max_len: 0 });
    actions.as_list().as_bytes().into()
}

fn entry(priority: u16, match_: &str, actions: Box<[u8]>) -> Option<FlowEntry> {
    let match_ = match_.parse().unwrap();
    Some(FlowEntry { table: 0, priority, match_, actions, groups: Vec::new() })
}

fn change(
    tracker: &mut Tracker,
    dpid: u64,
    tenant: TenantId,
    number: u32,
    entry: Option<FlowEntry>,
) {
    let changes = vec![FlowChange { tenant, number, entry }];
    tracker.handle_changes(Dpid(dpid), Version::V1_0, changes);
}

/// Adds entries on three switches: the path from a host at leaf 3 through a spine to a host at leaf 4.
fn lead(tracker: &mut Tracker, tenant: TenantId, ends: (u8, u8), spine: u16, out: u16) {
    let match_ = format!("ip,nw_src=10.0.0.{},nw_dst=10.0.0.{}", ends.0, ends.1);
    let number = u32::from(ends.0) * 100 + u32::from(ends.1);
    for (dpid, port) in [(3, 3 + spine), (u64::from(spine), 2), (4, out)] {
        change(tracker, dpid, tenant, number, entry(10, &match_, send_to(port)));
    }
}

fn label(tracker: &Tracker, network: &Network, from: &str, tenant: TenantId) -> u64 {
    let link = network.link_from(port(from)).unwrap();
    tracker.usage().label(network, link, tenant).bits_per_second() / 1_000_000
}

#[test]
fn labels_match_the_example_in_figure_2_of_the_paper() {
    let (mut tracker, mut network) = (tracker(), isolation());
    lead(&mut tracker, RED, (1, 2), 1, 1);
    settle(&mut tracker, &network);
    // A sends to B through spine 1. Blue's label is 2 Mbit/s through spine 1 and 10 Mbit/s through spine 2; red's label
    // is 10 Mbit/s on both paths.
    for (from, blue, red) in [("3 port 4", 2, 10), ("1 port 2", 2, 10), ("3 port 5", 10, 10)] {
        assert_eq!(label(&tracker, &network, from, BLUE), blue, "{from}");
        assert_eq!(label(&tracker, &network, from, RED), red, "{from}");
    }
    lead(&mut tracker, BLUE, (5, 6), 2, 3);
    lead(&mut tracker, BLUE, (3, 4), 1, 2);
    settle(&mut tracker, &network);
    for (from, blue, red) in [("3 port 4", 2, 8), ("3 port 5", 10, 0)] {
        assert_eq!(label(&tracker, &network, from, BLUE), blue, "{from}");
        assert_eq!(label(&tracker, &network, from, RED), red, "{from}");
    }
    assert_eq!(tracker.counts(), (3, 0));

    // The label of a failed link is 0, and the flows over the failed link do not reach the receivers.
    let links = network.set_port_up(port("1 port 2"), false).unwrap();
    tracker.handle_links(&network, &links);
    settle(&mut tracker, &network);
    assert_eq!(label(&tracker, &network, "1 port 2", BLUE), 0);
    assert_eq!(tracker.counts(), (3, 2));
    let links = network.unplug(port("1 port 2")).unwrap();
    tracker.handle_links(&network, &links);
    settle(&mut tracker, &network);

    // A flow ends when the entries of the flow are removed.
    for dpid in [3, 1, 4] {
        change(&mut tracker, dpid, RED, 102, None);
    }
    settle(&mut tracker, &network);
    assert_eq!(label(&tracker, &network, "3 port 4", BLUE), 10);
    assert_eq!(tracker.counts(), (2, 1));
    tracker.handle_switch_gone(Dpid(3));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (0, 0));
}

#[test]
fn flows_share_the_receiver_and_entries_of_a_pair_share_the_sender() {
    let (mut tracker, network) = (tracker(), isolation());
    // C with 2 Mbit/s and E with 10 Mbit/s send to F, which receives 10 Mbit/s. The flows get 2/12 and 10/12 of
    // the 10 Mbit/s.
    lead(&mut tracker, BLUE, (3, 6), 1, 3);
    lead(&mut tracker, BLUE, (5, 6), 2, 3);
    settle(&mut tracker, &network);
    let used = |tracker: &Tracker, from: &str| {
        tracker.usage().total(network.link_from(port(from)).unwrap()).bits_per_second()
    };
    assert_eq!(used(&tracker, "3 port 4"), 1_666_666);
    assert_eq!(used(&tracker, "3 port 5"), 8_333_333);
    // A more specific entry on leaf 3 makes a second flow from E to F, through spine 1.
    let match_ = "tcp,nw_src=10.0.0.5,nw_dst=10.0.0.6,tp_dst=80";
    change(&mut tracker, 3, BLUE, 7, entry(20, match_, send_to(4)));
    for (dpid, out) in [(1, 2), (4, 3)] {
        change(&mut tracker, dpid, BLUE, 8, entry(20, match_, send_to(out)));
    }
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (3, 0));
    assert_eq!(used(&tracker, "3 port 4") / 10, (1_666_666 + 4_166_666) / 10);
}

#[test]
fn flows_are_tracked_through_floods_loops_groups_and_tables() {
    let network = isolation();
    let flood = send_to(0xfffb);
    let mut tracker = tracker();
    for dpid in 1..=4 {
        change(&mut tracker, dpid, RED, 1, entry(1, "", flood.clone()));
    }
    settle(&mut tracker, &network);
    // Each of the two flows uses each link once in each direction, so a link has 16 Mbit/s of traffic and a capacity of
    // 10 Mbit/s.
    assert_eq!(tracker.counts(), (2, 0));
    for from in ["3 port 4", "3 port 5", "4 port 4"] {
        assert_eq!(label(&tracker, &network, from, BLUE), 0, "{from}");
    }

    // On OpenFlow 1.3, table 0 sends packets to table 2, and table 2 uses a group with a bucket for each spine.
    let mut tracker = Tracker::default();
    configure(&mut tracker);
    let instructions = |all: &[v13::Instruction<'_>]| -> Box<[u8]> {
        let mut bytes = Vec::new();
        all.iter().for_each(|instruction| instruction.write(&mut bytes));
        bytes.into()
    };
    let mut by_group = ListBuf::<v13::Action<'_>>::new();
    by_group.push(v13::Action::Group(9));
    let outputs: Vec<ListBuf<v13::Action<'_>>> = [4, 5]
        .map(|number| {
            let mut output = ListBuf::new();
            output.push(v13::Action::Output { port: v13::PortNo(number), max_len: 0 });
            output
        })
        .into();
    let mut buckets = ListBuf::<v13::Bucket<'_>>::new();
    for actions in &outputs {
        buckets.push(v13::Bucket { actions: actions.as_list(), ..v13::Bucket::default() });
    }
    let group = v13::GroupMod {
        command: v13::GroupModCommand::ADD,
        type_: v13::GroupType::ALL,
        group_id: 9,
        buckets: buckets.as_list(),
    };
    let mut message = Vec::new();
    group.write_message(0, &mut message).unwrap();
    let body: Box<[u8]> = message[openflow::Header::LEN..].into();
    let changes = [
        (1, 0, vec![], vec![v13::Instruction::GotoTable(2)]),
        (2, 2, vec![(9, body.clone())], vec![v13::Instruction::WriteActions(by_group.as_list())]),
    ];
    let change = |(number, table, groups, all): (u32, u8, Vec<_>, Vec<v13::Instruction<'_>>)| {
        let entry =
            entry(1, "ip", instructions(&all)).map(|entry| FlowEntry { table, groups, ..entry });
        FlowChange { tenant: RED, number, entry }
    };
    tracker.handle_changes(Dpid(3), Version::V1_3, changes.into_iter().map(change));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (0, 0), "nobody says that it is for B, and it gets lost");
    for (dpid, out) in [(1, 2), (2, 2), (4, 1)] {
        let actions = &{
            let mut output = ListBuf::<v13::Action<'_>>::new();
            output.push(v13::Action::Output { port: v13::PortNo(out), max_len: 0 });
            output
        };
        let all = [v13::Instruction::ApplyActions(actions.as_list())];
        let entry = entry(1, "ip,nw_dst=10.0.0.2", instructions(&all));
        let changes = vec![FlowChange { tenant: RED, number: 1, entry }];
        tracker.handle_changes(Dpid(dpid), Version::V1_3, changes);
    }
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (1, 0));
    assert_eq!(label(&tracker, &network, "3 port 4", BLUE), 2);
    assert_eq!(label(&tracker, &network, "3 port 5", BLUE), 2);

    // The action set has a group from table 0 and an output from table 2. The group takes precedence over the output.
    let begun = v13::Instruction::WriteActions(by_group.as_list());
    let output = v13::Instruction::WriteActions(outputs[1].as_list());
    let changes = [
        (1, 0, vec![(9, body)], vec![begun, v13::Instruction::GotoTable(2)]),
        (2, 2, vec![], vec![output]),
    ];
    tracker.handle_changes(Dpid(3), Version::V1_3, changes.into_iter().map(change));
    settle(&mut tracker, &network);
    assert_eq!(tracker.counts(), (1, 0));
    assert_eq!(label(&tracker, &network, "3 port 4", BLUE), 2);
    assert_eq!(label(&tracker, &network, "3 port 5", BLUE), 2);
}

fn mac(last: u8) -> MacAddress {
    MacAddress::new([2, 0, 0, 0, 0, last]).unwrap()
}

/// The measured rates to these hosts, given in kbit/s.
fn sends(to: &[(u8, u64)]) -> BTreeMap<MacAddress, Bandwidth> {
    to.iter().map(|(to, rate)| (mac(*to), Bandwidth::from_kilobits_per_second(*rate))).collect()
}

#[test]
fn measured_rates_replace_the_bought_bandwidth_in_labels() {
    let (mut tracker, network) = (tracker(), isolation());
    lead(&mut tracker, RED, (1, 2), 1, 1);
    lead(&mut tracker, BLUE, (5, 6), 1, 3);
    let kilobits = |tracker: &Tracker, tenant| {
        let link = network.link_from(port("3 port 4")).unwrap();
        tracker.usage().label(&network, link, tenant).kilobits_per_second()
    };
    settle(&mut tracker, &network);
    assert_eq!((kilobits(&tracker, RED), kilobits(&tracker, BLUE)), (0, 2_000));
    // The sender sends less than the bought bandwidth. Then two flows with different paths share the measured rate.
    tracker.handle_sent(RED, mac(1), Some(sends(&[(2, 3_000)])));
    settle(&mut tracker, &network);
    assert_eq!((kilobits(&tracker, RED), kilobits(&tracker, BLUE)), (0, 7_000));
    let match_ = "tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80";
    change(&mut tracker, 3, RED, 7, entry(20, match_, send_to(5)));
    settle(&mut tracker, &network);
    assert_eq!(kilobits(&tracker, BLUE), 8_500);
    change(&mut tracker, 3, RED, 7, None);
    // The sender sends nothing, and a new configuration does not change the measured rate. Then no agent measures the
    // sender any more, and the bought bandwidth counts again.
    tracker.handle_sent(RED, mac(1), Some(sends(&[])));
    settle(&mut tracker, &network);
    assert_eq!(kilobits(&tracker, BLUE), 10_000);
    let mut vnics = vnics();
    vnics[1].1.pop();
    tracker.configure(vnics.iter().map(|(tenant, own)| (*tenant, own.as_slice())));
    settle(&mut tracker, &network);
    assert_eq!((kilobits(&tracker, RED), kilobits(&tracker, BLUE)), (10_000, 10_000));
    tracker.handle_sent(RED, mac(1), None);
    settle(&mut tracker, &network);
    assert_eq!(kilobits(&tracker, BLUE), 2_000);
}

fn virtual_port(switch: u64, number: u32) -> VirtualPortId {
    VirtualPortId { switch: Dpid(switch), number }
}

fn edge(switch: u64, number: u32, at: &str) -> PortSpec {
    let (port, at) = (virtual_port(switch, number), port(at));
    PortSpec { port, name: String::new(), at, shared: false, started: true }
}

fn switch(dpid: u64, members: &[u64]) -> SwitchSpec {
    let members = members.iter().map(|dpid| Dpid(*dpid)).collect();
    SwitchSpec { dpid: Dpid(dpid), name: String::new(), members, routes: Vec::new(), started: true }
}

/// Red's network: a switch on each leaf with a host at port 1, and a link between the ports 2 of the two switches.
fn two_switches() -> Spec {
    let link = LinkSpec {
        ends: [virtual_port(0xa1, 2), virtual_port(0xa2, 2)],
        bandwidth: Bandwidth::ZERO,
        route: Route::Shortest,
        protection: None,
        reverts: false,
        started: true,
    };
    Spec {
        switches: vec![switch(0xa1, &[3]), switch(0xa2, &[4])],
        ports: vec![edge(0xa1, 1, "3 port 1"), edge(0xa2, 1, "4 port 1")],
        links: vec![link],
        ..Spec::default()
    }
}

/// Red's network: one switch on both leaves, with a host at port 1 and a host at port 2.
fn big_switch() -> Spec {
    Spec {
        switches: vec![switch(0xb1, &[3, 4])],
        ports: vec![edge(0xb1, 1, "3 port 1"), edge(0xb1, 2, "4 port 1")],
        ..Spec::default()
    }
}

fn embedding() -> Embedding {
    Embedding::new(Tag::new(100).unwrap(), Tag::new(200).unwrap())
}

fn place(embedding: &mut Embedding, network: &Network, spec: Option<Spec>) {
    embedding.apply(network, &spec.into_iter().map(|spec| (RED, spec)).collect()).unwrap();
}

fn maps(embedding: &Embedding) -> Maps {
    embedding.switch_maps().iter().map(|(dpid, map)| (dpid.0, Arc::clone(map))).collect()
}

/// Blue's labels, in Mbit/s, of the links from leaf 3 to the two spines.
fn left_for_blue(tracker: &Tracker, network: &Network) -> [u64; 2] {
    ["3 port 4", "3 port 5"].map(|from| label(tracker, network, from, BLUE))
}

#[test]
fn flows_in_a_virtual_network_use_the_physical_links_of_the_path() {
    // Red has entries to B on both leaves, with the port numbers of red's network.
    for (spec, outputs) in [(two_switches(), [2, 1]), (big_switch(), [2, 2])] {
        let (mut tracker, mut network, mut embedding) = (tracker(), isolation(), embedding());
        for (dpid, out) in [3, 4].into_iter().zip(outputs) {
            change(&mut tracker, dpid, RED, 1, entry(10, "dl_dst=02:00:00:00:00:02", send_to(out)));
        }
        place(&mut embedding, &network, Some(spec));
        tracker.handle_maps(maps(&embedding));
        settle(&mut tracker, &network);
        assert_eq!(tracker.counts(), (1, 0), "it arrives");
        let (_, trunk) = embedding.trunks(RED).next().unwrap();
        let first = trunk.active.unwrap().wires[0].from;
        let by_first = if first == port("3 port 4") { [2, 10] } else { [10, 2] };
        assert_eq!(left_for_blue(&tracker, &network), by_first);

        // The active path fails, and the link uses the path through the other spine. Then this path fails, and no path
        // is left.
        let mut fail = |at: PortId, tracker: &mut Tracker| {
            let links = network.set_port_up(at, false).unwrap();
            embedding.handle_changes(&network);
            tracker.handle_links(&network, &links);
            tracker.handle_maps(maps(&embedding));
            settle(tracker, &network);
            left_for_blue(tracker, &network)
        };
        let by_other = if by_first == [2, 10] { [0, 2] } else { [2, 0] };
        assert_eq!(fail(first, &mut tracker), by_other);
        assert_eq!(tracker.counts(), (1, 0));
        let other = port(if by_first == [2, 10] { "3 port 5" } else { "3 port 4" });
        assert_eq!(fail(other, &mut tracker), [0, 0]);
        assert_eq!(tracker.counts(), (0, 0));
    }
}

#[test]
fn vlan_frames_do_not_cross_virtual_links_of_openflow_1_0_switches() {
    for (vlan, arrives) in [(Some(7), false), (None, true)] {
        let (mut tracker, network, mut embedding) = (Tracker::default(), isolation(), embedding());
        let [(red, mut vnics), _] = vnics();
        vnics.iter_mut().for_each(|vnic| vnic.vlan = vlan);
        tracker.configure([(red, vnics.as_slice())].into_iter());
        for (dpid, out) in [(3, 2), (4, 1)] {
            change(&mut tracker, dpid, RED, 1, entry(10, "dl_dst=02:00:00:00:00:02", send_to(out)));
        }
        place(&mut embedding, &network, Some(two_switches()));
        tracker.handle_maps(maps(&embedding));
        settle(&mut tracker, &network);
        assert_eq!(tracker.counts(), (usize::from(arrives), 0));
    }
}

/// The events of the property test.
#[derive(Clone, Debug)]
enum Happening {
    Entry {
        dpid: u64,
        blue: bool,
        number: u32,
        priority: u16,
        match_: String,
        out: u16,
        /// The entry sets the Ethernet destination to this host before the output.
        as_to: Option<u8>,
    },
    Gone {
        dpid: u64,
        blue: bool,
        number: u32,
    },
    Port {
        dpid: u64,
        number: u32,
        up: bool,
    },
    Switch {
        dpid: u64,
    },
    /// Red gets another network, or none.
    Network {
        which: u8,
    },
    Sent {
        blue: bool,
        from: u8,
        to: u8,
        kilobits: Option<u64>,
    },
    Settle,
}

/// The interfaces of [`vnics`]: some have IPv4 and IPv6 addresses, some only IPv4 or only IPv6, and one has no known
/// address.
fn vnics_of_all_kinds() -> [(TenantId, Vec<config::Vnic>); 2] {
    let mut all = vnics();
    for (at, vnic) in all.iter_mut().flat_map(|(_, own)| own).enumerate() {
        let v6 = IpAddr::V6(((0xfd00 << 112) + at as u128 + 1).into());
        match at {
            0 | 1 | 4 => vnic.ip.push(v6),
            3 => vnic.ip.clear(),
            5 => vnic.ip = vec![v6],
            _ => {}
        }
    }
    all
}

fn happening() -> impl Strategy<Value = Happening> {
    let match_ = prop_oneof![
        (1..7, 1..7).prop_map(|(a, b)| format!("ip,nw_src=10.0.0.{a},nw_dst=10.0.0.{b}")),
        (1..7, 1..7).prop_map(|(a, b)| format!("ipv6,ipv6_src=fd00::{a},ipv6_dst=fd00::{b}")),
        (1..7).prop_map(|b| format!("ipv6,ipv6_dst=fd00::{b}")),
        Just("ipv6".to_owned()),
        (1..7, 1..7)
            .prop_map(|(a, b)| format!("dl_src=02:00:00:00:00:0{a},dl_dst=02:00:00:00:00:0{b}")),
        (1..7).prop_map(|b| format!("ip,nw_dst=10.0.0.{b}")),
        (1..7).prop_map(|b| format!("dl_dst=02:00:00:00:00:0{b}")),
        (1..7).prop_map(|b| format!("in_port={b}")),
        Just("tcp,tp_dst=80".to_owned()),
        Just(String::new()),
    ];
    let out = prop_oneof![8 => 1_u16..6, 1 => Just(0xfffb_u16), 1 => Just(0xfff8_u16)];
    let as_to = prop_oneof![6 => Just(None), 1 => (1_u8..7).prop_map(Some)];
    prop_oneof![
        8 => (1_u64..5, any::<bool>(), 0_u32..6, 0_u16..4, match_, out, as_to).prop_map(
            |(dpid, blue, number, priority, match_, out, as_to)| Happening::Entry { dpid, blue, number, priority, match_, out, as_to }
        ),
        2 => (1_u64..5, any::<bool>(), 0_u32..6)
            .prop_map(|(dpid, blue, number)| Happening::Gone { dpid, blue, number }),
        1 => (1_u64..5, 1_u32..6, any::<bool>())
            .prop_map(|(dpid, number, up)| Happening::Port { dpid, number, up }),
        1 => (1_u64..5).prop_map(|dpid| Happening::Switch { dpid }),
        1 => (0_u8..3).prop_map(|which| Happening::Network { which }),
        2 => (any::<bool>(), 1_u8..7, 1_u8..7, proptest::option::of(0_u64..20_000)).prop_map(
            |(blue, from, to, kilobits)| Happening::Sent { blue, from, to, kilobits }
        ),
        2 => Just(Happening::Settle),
    ]
}

proptest! {
    /// After any events in any order, the incremental result equals a new computation. For every tenant and every link
    /// that is up, the label plus the use by the other tenant is the capacity.
    #[test]
    fn label_and_use_of_other_tenants_add_up_to_the_link_capacity(happenings in proptest::collection::vec(happening(), 1..60)) {
        let configure = |tracker: &mut Tracker| {
            let vnics = vnics_of_all_kinds();
            tracker.configure(vnics.iter().map(|(tenant, own)| (*tenant, own.as_slice())));
        };
        let (mut tracker, mut network, mut embedding) = (Tracker::default(), isolation(), embedding());
        configure(&mut tracker);
        let mut tables: HashMap<(u64, TenantId, u32), FlowEntry> = HashMap::new();
        let mut measured: HashMap<(TenantId, u8), Sent> = HashMap::new();
        for happening in happenings.into_iter().chain([Happening::Settle]) {
            let of = |blue| if blue { BLUE } else { RED };
            match happening {
                Happening::Entry { dpid, blue, number, priority, match_, out, as_to } => {
                    let entry = entry(priority, &match_, send_as_to(as_to, out));
                    tables.insert((dpid, of(blue), number), entry.clone().unwrap());
                    change(&mut tracker, dpid, of(blue), number, entry);
                }
                Happening::Gone { dpid, blue, number } => {
                    tables.remove(&(dpid, of(blue), number));
                    change(&mut tracker, dpid, of(blue), number, None);
                }
                Happening::Port { dpid, number, up } => {
                    let at = port(&format!("{dpid} port {number}"));
                    let links = network.set_port_up(at, up).unwrap();
                    embedding.handle_changes(&network);
                    tracker.handle_links(&network, &links);
                    tracker.handle_maps(maps(&embedding));
                }
                Happening::Network { which } => {
                    let wanted = [None, Some(two_switches()), Some(big_switch())][usize::from(which)].take();
                    // The embedding refuses a network without a path.
                    let wanted = wanted.into_iter().map(|spec| (RED, spec)).collect();
                    let _ = embedding.apply(&network, &wanted);
                    tracker.handle_maps(maps(&embedding));
                }
                Happening::Switch { dpid } => {
                    tables.retain(|(at, ..), _| *at != dpid);
                    tracker.handle_switch_gone(Dpid(dpid));
                }
                Happening::Sent { blue, from, to, kilobits } => {
                    let sent = kilobits.map(|rate| sends(&[(to, rate)]));
                    measured.insert((of(blue), from), sent.clone());
                    tracker.handle_sent(of(blue), mac(from), sent);
                }
                Happening::Settle => {
                    settle(&mut tracker, &network);
                    let mut anew = Tracker::default();
                    configure(&mut anew);
                    anew.handle_maps(maps(&embedding));
                    for ((dpid, tenant, number), entry) in &tables {
                        change(&mut anew, *dpid, *tenant, *number, Some(entry.clone()));
                    }
                    for ((tenant, from), sent) in &measured {
                        anew.handle_sent(*tenant, mac(*from), sent.clone());
                    }
                    settle(&mut anew, &network);
                    prop_assert_eq!(tracker.counts(), anew.counts());
                    for (id, link) in network.links() {
                        let is_wire = matches!(link.to, End::Switch { .. });
                        prop_assert!(is_wire);
                        for tenant in [RED, BLUE] {
                            let used = |all: &Tracker| all.usage().of(id, tenant);
                            prop_assert_eq!(used(&tracker), used(&anew), "on {} of {:?}", id, tenant);
                            // Each pair counts once per link, on any paths. Without measured rates, red has at most 16
                            // Mbit/s and blue 24 Mbit/s.
                            let bought = if tenant == RED { mbit(16) } else { mbit(24) };
                            prop_assert!(measured.values().any(Option::is_some) || used(&tracker) <= bought);
                            let other = if tenant == RED { BLUE } else { RED };
                            let others = tracker.usage().of(id, other);
                            let left = tracker.usage().label(&network, id, tenant);
                            let together = left.checked_add(others.min(link.capacity));
                            prop_assert!(!link.is_up() || together == Some(link.capacity));
                            prop_assert!(link.is_up() || left == Bandwidth::ZERO);
                        }
                    }
                }
            }
        }
    }
}
