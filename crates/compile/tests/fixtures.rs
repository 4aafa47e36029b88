//! Tests of one entry of a tenant and the rules that the entry becomes, for OpenFlow 1.0 and 1.3 side by side.
//!
//! The tenant is number 1. Its network has these ports on the switch:
//!
//! ```text
//!   1    whole edge, physical port 3
//!   7    shared edge, physical port 4: hosts 00:00:00:00:00:71 and …:72
//!   8    shared edge, physical port 8: host  00:00:00:00:00:81
//!   10   link, sends at 5 with label 2001, receives there with label 2002
//!   11   link, sends at 6 with label 2107, receives there with label 2108
//!   12   link, on the same physical port 6: sends with label 2207, receives with label 2208
//! ```

#![allow(clippy::unwrap_used, clippy::panic)]

use compile::network::Network;
use compile::ownership::{Claims, FlowspaceEntry, Ownership, Permission, Switches};
use compile::packet::Sent;
use compile::wire::Wire;
use compile::{
    Context, EntrySpec, GroupTable, Instances, PhysicalPort, Refused, Rule, Slice, Space, Target,
    TenantId, TenantIndex, Variant, entry, group, packet,
};
use fabric::embedding::{FarEnd, Hop, Member, PortKind, Tag, VirtualPort};
use fabric::{Dpid, MacAddress, PortNumber};
use flowspace::{FlowText, Key, Match};
use openflow::v13::{Instruction, PortNo};
use openflow::{ErrorCode, List, error, v10, v13};
use std::collections::BTreeMap;

/// Actions of a tenant that both versions can express.
#[derive(Clone, Copy)]
enum Do {
    Output(u32),
    InPort,
    Flood,
    Controller,
    SetDestination(u8),
    SetSource(u32),
    PopVlan,
    SetVlan(u16),
    Group(u32),
}

const BOTH: [Wire; 2] = [Wire::V10, Wire::V13];

#[test]
fn an_output_to_a_whole_edge_port_names_the_physical_port() {
    network("dl_dst=00:00:00:00:00:01", &[Do::Output(1)])
        .becomes(Wire::V13, "dl_dst=…01 metadata=1 -> output:3")
        .becomes(
            Wire::V10,
            "in_port=3,dl_dst=…01 -> drop
             in_port=4,dl_src=…71,dl_dst=…01 -> output:3
             in_port=4,dl_src=…72,dl_dst=…01 -> output:3
             in_port=8,dl_src=…81,dl_dst=…01 -> output:3
             in_port=5,dl_vlan=2002,dl_dst=…01 -> strip_vlan,output:3
             in_port=6,dl_vlan=2108,dl_dst=…01 -> strip_vlan,output:3
             in_port=6,dl_vlan=2208,dl_dst=…01 -> strip_vlan,output:3",
        );
}

#[test]
fn an_output_to_a_link_adds_the_vlan_label_of_the_link() {
    network("in_port=1", &[Do::Output(10)])
        .becomes(Wire::V13, "metadata=1@1 -> push_vlan,set_vlan:2001,output:5,pop_vlan")
        // In OpenFlow 1.0 a frame has room for one tag only, so tagged frames do not match the rule.
        .becomes(Wire::V10, "in_port=3,vlan_tci=0x0000 -> mod_vlan_vid:2001,output:5");
}

#[test]
fn an_output_to_a_hairpin_port_has_a_rule_for_each_ingress_port() {
    network("", &[Do::Output(11)]).becomes(
        Wire::V13,
        "metadata=1@1 -> push_vlan,set_vlan:2107,output:6,pop_vlan
         metadata=1@7 -> push_vlan,set_vlan:2107,output:6,pop_vlan
         metadata=1@8 -> push_vlan,set_vlan:2107,output:6,pop_vlan
         metadata=1@10 -> push_vlan,set_vlan:2107,output:6,pop_vlan
         metadata=1@11 -> drop
         in_port=6 metadata=1@12 -> push_vlan,set_vlan:2107,IN_PORT,pop_vlan
         metadata=1@0 -> push_vlan,set_vlan:2107,output:6,pop_vlan",
    );
    network("in_port=12", &[Do::Output(11)])
        .becomes(Wire::V10, "in_port=6,dl_vlan=2208 -> mod_vlan_vid:2107,IN_PORT");
}

#[test]
fn output_to_in_port_sends_a_packet_back_with_the_label_of_the_link() {
    network("in_port=10", &[Do::InPort])
        .becomes(Wire::V13, "in_port=5 metadata=1@10 -> push_vlan,set_vlan:2001,IN_PORT,pop_vlan")
        .becomes(Wire::V10, "in_port=5,dl_vlan=2002 -> mod_vlan_vid:2001,IN_PORT");
}

#[test]
fn a_shared_edge_port_gets_only_frames_for_hosts_of_the_tenant() {
    let known = "in_port=1,dl_dst=00:00:00:00:00:71";
    network(known, &[Do::Output(7)])
        .becomes(Wire::V13, "dl_dst=…71 metadata=1@1 -> output:4")
        .becomes(Wire::V10, "in_port=3,dl_dst=…71 -> output:4");
    network("in_port=1,dl_dst=00:00:00:00:00:99", &[Do::Output(7)])
        .becomes(Wire::V13, "dl_dst=…99 metadata=1@1 -> drop")
        .becomes(Wire::V10, "in_port=3,dl_dst=…99 -> drop");
    // Without a destination in the match, the last table sends the frames out. OpenFlow 1.0 has no last table.
    network("in_port=1", &[Do::Output(7)])
        .becomes(Wire::V13, "metadata=1@1 -> write_metadata:0x7/0xffffffff,goto_table:9")
        .refuses(Wire::V10, error::v10::BAD_ACTION_BAD_OUT_PORT);
}

#[test]
fn a_flood_outputs_to_all_links_and_edge_ports_except_the_ingress_port() {
    network("in_port=1,dl_dst=ff:ff:ff:ff:ff:ff", &[Do::Flood]).becomes(
        Wire::V10,
        "in_port=3,vlan_tci=0x0000,dl_dst=ff:ff:ff:ff:ff:ff -> \
         mod_dl_dst:…71,output:4,mod_dl_dst:…72,output:4,mod_dl_dst:ff:ff:ff:ff:ff:ff,\
         mod_dl_dst:…81,output:8,mod_dl_dst:ff:ff:ff:ff:ff:ff,\
         mod_vlan_vid:2001,output:5,mod_vlan_vid:2107,output:6,mod_vlan_vid:2207,output:6",
    );
    network("in_port=1", &[Do::Flood]).becomes(
        Wire::V13,
        "metadata=1@1 -> push_vlan,set_vlan:2001,output:5,pop_vlan,\
         push_vlan,set_vlan:2107,output:6,pop_vlan,push_vlan,set_vlan:2207,output:6,pop_vlan,\
         write_metadata:0x10000/0xffffffff,goto_table:9",
    );
}

#[test]
fn a_packet_to_the_controller_keeps_the_vlan_label_of_the_link_on_1_0() {
    network("in_port=10,ip", &[Do::SetDestination(1), Do::Controller])
        .becomes(Wire::V13, "ip metadata=1@10 -> set_field:…01->eth_dst,CONTROLLER:110")
        .becomes(Wire::V10, "ip,in_port=5,dl_vlan=2002 -> mod_dl_dst:…01,CONTROLLER:110");
    network("in_port=10", &[Do::SetVlan(7), Do::Controller])
        .refuses(Wire::V10, error::v10::BAD_ACTION_BAD_ARGUMENT);
}

#[test]
fn ports_outside_the_network_are_refused() {
    for wire in BOTH {
        network("", &[Do::Output(99)]).refuses(wire, error::v13::BAD_ACTION_BAD_OUT_PORT);
        network("in_port=1", &[Do::PopVlan, Do::Output(3)])
            .refuses(wire, error::v13::BAD_ACTION_BAD_OUT_PORT);
    }
    network("in_port=99", &[]).refuses(Wire::V13, error::v13::BAD_MATCH_BAD_VALUE);
    network("in_port=99", &[]).refuses(Wire::V10, error::v10::FLOW_MOD_FAILED_EPERM);
}

#[test]
fn an_entry_of_a_slice_on_1_0_has_a_rule_for_each_flowspace_entry() {
    slice("tcp", &[Do::Output(2)]).becomes(Wire::V13, "tcp metadata=1 -> output:2").becomes(
        Wire::V10,
        "tcp,nw_src=10.1.0.0/16 -> output:2
             tcp,nw_dst=10.1.0.0/16 -> output:2",
    );
}

#[test]
fn entries_with_packets_outside_the_slice_are_refused() {
    for wire in BOTH {
        slice("ip,nw_src=10.1.0.0/16", &[Do::SetSource(0x0a01_0005), Do::Output(2)]).accepts(wire);
        slice("ip,nw_src=10.1.0.0/16", &[Do::SetSource(0x0a02_0005), Do::Output(2)])
            .refuses(wire, error::v13::BAD_ACTION_EPERM);
    }
    slice("ip,nw_src=10.2.0.1,nw_dst=10.2.0.2", &[Do::Output(2)])
        .refuses(Wire::V10, error::v10::FLOW_MOD_FAILED_EPERM);
}

#[test]
fn a_group_action_names_the_group_instance_of_the_ingress_port() {
    network("", &[Do::Group(1)]).becomes(
        Wire::V13,
        "metadata=1@1 -> group:20
         metadata=1@7 -> group:20
         metadata=1@8 -> group:20
         metadata=1@10 -> group:20
         in_port=6 metadata=1@11 -> group:21
         metadata=1@12 -> group:20
         metadata=1@0 -> group:20",
    );
    network("", &[Do::Group(2)]).refuses(Wire::V13, error::v13::BAD_ACTION_BAD_OUT_GROUP);
}

#[test]
fn a_group_has_an_instance_for_each_port_on_the_physical_output_port() {
    let (tenant, network) = (Groups::default(), Network::new(&member(), BTreeMap::new()));
    let cx = context(Wire::V13, Space::Network(&network), &tenant);
    let mut actions = Vec::new();
    v13::Action::Output { port: PortNo(11), max_len: 0 }.write(&mut actions);
    let mut buckets = openflow::ListBuf::<v13::Bucket<'static>>::new();
    let actions = List::parse(&actions).unwrap();
    buckets.push(v13::Bucket { actions, ..v13::Bucket::default() });
    let mod_ = v13::GroupMod {
        command: v13::GroupModCommand::ADD,
        type_: v13::GroupType::INDIRECT,
        group_id: 5,
        buckets: buckets.as_list(),
    };
    let at = |port| Some(compile::network::IngressPort { port, at: 6 });
    let wanted = [11, 12].map(|port| Variant { ingress: at(port), ..Variant::default() });
    assert_eq!(group::variants(&cx, &mod_), wanted.into());
    let written = |variant| {
        let buckets = group::buckets(&cx, &mod_, variant).unwrap();
        let bucket = buckets.as_list().iter().next().unwrap();
        let mut apply = Vec::new();
        Instruction::ApplyActions(bucket.actions).write(&mut apply);
        printed(Wire::V13, &Match::ANY, &apply)
    };
    assert_eq!(written(Variant::default()), "-> push_vlan,set_vlan:2107,output:6");
    assert_eq!(written(wanted[0]), "-> drop");
    assert_eq!(written(wanted[1]), "-> push_vlan,set_vlan:2107,IN_PORT");
}

#[test]
fn a_packet_out_to_the_tables_gets_the_vlan_label_of_the_in_port() {
    let (tenant, network) = (Groups::default(), Network::new(&member(), BTreeMap::new()));
    for (wire, wanted) in [
        (Wire::V10, "-> mod_vlan_vid:2002,TABLE"),
        (Wire::V13, "-> push_vlan,set_vlan:2002,TABLE,pop_vlan"),
    ] {
        let cx = context(wire, Space::Network(&network), &tenant);
        let sent = Sent { key: &Key::default(), in_port: Some(10), is_buffered: false };
        let mut list = Vec::new();
        wire.output(PortNo::TABLE, 0, &mut list).unwrap();
        let mut out = Vec::new();
        let actions = wire.actions(&list).unwrap();
        let at = packet::compile(&cx, &network, &sent, actions, &mut out).unwrap();
        assert_eq!(at, PortNo(5));
        if wire == Wire::V13 {
            let mut apply = Vec::new();
            Instruction::ApplyActions(List::parse(&out).unwrap()).write(&mut apply);
            out = apply;
        }
        assert_eq!(printed(wire, &Match::ANY, &out), wanted);
    }
}

/// An entry of a tenant.
struct Case {
    match_: Match,
    actions: Vec<Do>,
    in_network: bool,
}

fn network(match_: &str, actions: &[Do]) -> Case {
    Case { match_: match_.parse().unwrap(), actions: actions.into(), in_network: true }
}

/// An entry in a slice of `nw_src=10.1.0.0/16` and `nw_dst=10.1.0.0/16`.
fn slice(match_: &str, actions: &[Do]) -> Case {
    Case { match_: match_.parse().unwrap(), actions: actions.into(), in_network: false }
}

impl Case {
    #[track_caller]
    fn becomes(self, wire: Wire, wanted: &str) -> Case {
        let rules = self.compiled(wire).unwrap();
        let found: Vec<String> = rules.iter().map(|rule| printed_rule(wire, rule)).collect();
        let wanted: Vec<&str> = wanted.lines().map(str::trim).collect();
        assert_eq!(found, wanted, "{wire:?}");
        self
    }

    #[track_caller]
    fn accepts(&self, wire: Wire) {
        assert!(self.compiled(wire).is_ok_and(|rules| !rules.is_empty()), "{wire:?}");
    }

    #[track_caller]
    fn refuses(self, wire: Wire, code: ErrorCode) -> Case {
        assert_eq!(self.compiled(wire).map_err(Refused::code), Err(code), "{wire:?}");
        self
    }

    fn compiled(&self, wire: Wire) -> Result<Vec<Rule>, Refused> {
        let mut groups = Groups::default();
        let by_11 = Variant {
            ingress: Some(compile::network::IngressPort { port: 11, at: 6 }),
            ..Variant::default()
        };
        groups.0.insert(1, Instances::new(20, BTreeMap::from([(by_11, 21)])));
        let network = Network::new(&member(), BTreeMap::new());
        let flowspace = ["ip,nw_src=10.1.0.0/16", "ip,nw_dst=10.1.0.0/16"].map(|text| {
            let (priority, switches) = (100, Switches::Any);
            let match_ = text.parse().unwrap();
            FlowspaceEntry { match_, priority, switches, permission: Permission::Write }
        });
        let ownership = Ownership::new(&Claims {
            tenants: 1,
            flowspaces: vec![(TenantIndex(0), &flowspace)],
            ..Claims::default()
        });
        let port = || PhysicalPort { description: Vec::new(), no_flood: false };
        let ports: BTreeMap<u32, PhysicalPort> = (1..=4).map(|it| (it, port())).collect();
        let space = match self.in_network {
            true => Space::Network(&network),
            false => Space::Slice(Slice { ownership: &ownership, ports: &ports }),
        };
        let actions = self.written(wire);
        let (match_, actions) = (&self.match_, actions.as_slice());
        let spec = EntrySpec { table: 0, priority: 7, match_, actions };
        entry::compile(&context(wire, space, &groups), &spec)
    }

    /// The actions of the entry (1.0) or its instructions (1.3).
    fn written(&self, wire: Wire) -> Vec<u8> {
        let mut list = Vec::new();
        for action in &self.actions {
            let output = |port, list: &mut Vec<u8>| wire.output(port, 0, list).unwrap();
            match (*action, wire) {
                (Do::Output(port), _) => output(PortNo(port), &mut list),
                (Do::InPort, _) => output(PortNo::IN_PORT, &mut list),
                (Do::Flood, _) => output(PortNo::FLOOD, &mut list),
                (Do::Controller, _) => output(PortNo::CONTROLLER, &mut list),
                (Do::SetDestination(host), _) => wire.set_destination(host.into(), &mut list),
                (Do::PopVlan, _) => wire.pop_vlan(&mut list),
                (Do::SetVlan(vid), _) => wire.set_vlan(vid, &mut list),
                (Do::Group(group), _) => v13::Action::Group(group).write(&mut list),
                (Do::SetSource(address), Wire::V10) => {
                    v10::Action::SetNwSrc(address).write(&mut list);
                }
                (Do::SetSource(address), Wire::V13) => {
                    let value = address.to_be_bytes();
                    let oxm = v13::Oxm::exact(v13::OxmField::IPV4_SRC, &value);
                    v13::Action::SetField(oxm).write(&mut list);
                }
            }
        }
        if wire == Wire::V10 {
            return list;
        }
        let mut instructions = Vec::new();
        Instruction::ApplyActions(List::parse(&list).unwrap()).write(&mut instructions);
        instructions
    }
}

/// The tenant's groups.
#[derive(Default)]
struct Groups(BTreeMap<u32, Instances>);

impl GroupTable for Groups {
    fn instances(&self, group: u32) -> Option<&Instances> {
        self.0.get(&group)
    }

    fn egress(&self, _output: PortNo) -> Option<&Instances> {
        None
    }

    fn meter(&self, _meter: u32) -> Option<u32> {
        None
    }
}

fn context<'a>(wire: Wire, space: Space<'a>, groups: &'a Groups) -> Context<'a> {
    Context {
        target: Target { wire, tables: 10, is_joined: false },
        tenant: TenantIndex(0),
        id: TenantId(1),
        space,
        experimenters: &[],
        queues: &[],
        groups,
        labels: None,
    }
}

fn member() -> Member {
    let host = |last| MacAddress::new([0, 0, 0, 0, 0, last]).unwrap();
    let port = |number: u32| PortNumber::new(number).unwrap();
    let hop = |at, tag| Hop { port: port(at), tag: Tag::new(tag).unwrap() };
    let edge = |at, hosts: &[u8]| {
        let hosts = hosts.iter().map(|last| host(*last)).collect();
        PortKind::Edge { port: port(at), hosts }
    };
    let link = |at, sends, receives| PortKind::Link {
        sends: Some(hop(at, sends)),
        receives: vec![hop(at, receives)],
        far: FarEnd::default(),
    };
    let kinds = [
        (1, edge(3, &[])),
        (7, edge(4, &[0x71, 0x72])),
        (8, edge(8, &[0x81])),
        (10, link(5, 2001, 2002)),
        (11, link(6, 2107, 2108)),
        (12, link(6, 2207, 2208)),
    ];
    let ports = kinds.into_iter().map(|(number, kind)| {
        let port = VirtualPort {
            mac: [2, 0, 0, 0, 0, 1],
            name: String::new(),
            up: true,
            speed: None,
            kind,
        };
        (number, port)
    });
    let (name, ports) = (String::new(), ports.collect());
    Member { datapath: Dpid(1), name, ports, shared_with: false }
}

/// `match -> actions`, with the tenant and the ingress port from the metadata, and short addresses.
fn printed_rule(wire: Wire, rule: &Rule) -> String {
    let match_ = match wire {
        Wire::V10 => Match::from_v10(&v10::Match::parse(&rule.match_wire).unwrap()),
        Wire::V13 => Match::from_v13(&v13::Match::parse(&rule.match_wire).unwrap()).unwrap(),
    };
    assert_eq!(rule.priority, 7);
    printed(wire, &match_, &rule.actions)
}

fn printed(wire: Wire, match_: &Match, actions: &[u8]) -> String {
    use flowspace::Field;
    let (metadata, mask) = match_.get(Field::Metadata);
    let (tenant, port) = (metadata as u64 >> 48, metadata as u64 >> 32 & 0xffff);
    let headers = match_.with_masked(Field::Metadata, 0, 0).to_string();
    let mut words = vec![headers];
    match mask as u64 {
        0 => {}
        compile::metadata::TENANT => words.push(format!("metadata={tenant}")),
        compile::metadata::PORT => words.push(format!("metadata={tenant}@{port}")),
        other => panic!("metadata with the mask {other:#x}"),
    }
    words.push(format!("-> {}", printed_actions(wire, actions)));
    words.retain(|word| !word.is_empty());
    words.join(" ").replace("00:00:00:00:00:", "…")
}

fn printed_actions(wire: Wire, actions: &[u8]) -> String {
    let mut frame = Vec::new();
    match wire {
        Wire::V10 => {
            let actions = List::parse(actions).unwrap();
            v10::FlowMod { actions, ..v10::FlowMod::default() }.write_message(0, &mut frame)
        }
        Wire::V13 => {
            let instructions = List::parse(actions).unwrap();
            v13::FlowMod { instructions, ..v13::FlowMod::default() }.write_message(0, &mut frame)
        }
    }
    .unwrap();
    let text = FlowText::of_flow_mod(&frame).unwrap().actions;
    let words = text.split(',').map(|word| {
        let vid = word.strip_prefix("set_field:").and_then(|it| it.strip_suffix("->vlan_vid"));
        match vid.and_then(|vid| vid.parse::<u16>().ok()) {
            Some(vid) => format!("set_vlan:{}", vid & 0xfff),
            None => word.replace("push_vlan:0x8100", "push_vlan"),
        }
    });
    words.collect::<Vec<_>>().join(",")
}
