//! Tests of the reasons of refusals. Each check that refuses a request has its own reason and its own text.

use crate::support::networks::two_networks;
use crate::support::*;
use crate::support::{big_switches, shared_ports};
use Version as V;
use emulate::Fault;
use hypervisor::policy::Limits;
use hypervisor::refusals::{Reason, Refusal};
use hypervisor::{Account, Settings};
use openflow::error::{Error, v13};
use openflow::v13::{Message, MessageType};
use openflow::{Header, frame};
use std::collections::BTreeSet;
use std::sync::Arc;

const BY_PORT: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";
const BY_ADDRESS: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";
/// The first two switches speak OpenFlow 1.3, and the third switch speaks OpenFlow 1.0.
const MIXED: [V; 3] = [V::V1_3, V::V1_3, V::V1_0];
const RED: usize = 0;
const BLUE: usize = 1;
const PACKET: &str = "data=10.0.0.1>10.0.0.2";

/// The check that refused, and its text.
type CheckAndText = (Reason, String);

/// Red sends all these requests. Gives the last refusal, and fails if a request before the last one is refused.
fn red_says(mut world: World, requests: &[&str]) -> CheckAndText {
    let red = world.connect("red");
    for (at, words) in requests.iter().enumerate() {
        let refused = world.core.refusals(world.tenant("red")).count();
        assert!(refused == 0, "too early, by {:?}", requests.get(at.wrapping_sub(1)));
        world.say(red, 7, words);
    }
    last(&world)
}

/// The last refusal of red's requests.
fn last(world: &World) -> CheckAndText {
    let all = world.core.refusals(world.tenant("red"));
    let none = (Reason::ByCode, "nothing is refused".to_owned());
    all.last().map_or(none, |refusal| check_and_text(refusal, world.version))
}

fn check_and_text(refusal: &Refusal, version: Version) -> CheckAndText {
    (refusal.check(), refusal.reason(version))
}

/// Red sends these requests to a switch with this policy. Gives the last refusal.
fn slice(version: Version, policy: &str, requests: &[&str]) -> CheckAndText {
    red_says(World::new(Setup::new(version, policy)), requests)
}

/// A tenant sends these requests to the first switch of its network. Gives the refusal of the last request.
fn network(mut testbed: Testbed, tenant: usize, requests: &[&str]) -> CheckAndText {
    let Some((refused, before)) = requests.split_last() else { panic!("no request") };
    for words in before {
        assert_eq!(testbed.say(tenant, 1, words), [""; 0], "{words}");
    }
    testbed.say(tenant, 1, refused);
    let none = (Reason::ByCode, "nothing is refused".to_owned());
    testbed
        .last_refusal(tenant, 1)
        .map_or(none, |refusal| check_and_text(&refusal, testbed.version(1)))
}

fn of_two(version: Version, requests: &[&str]) -> CheckAndText {
    network(Testbed::new(version, two_networks()), RED, requests)
}

/// Red sends these requests in a network with edge ports that another tenant shares. Gives the refusal of the last
/// request.
fn of_shared(version: Version, requests: &[&str]) -> CheckAndText {
    let plans = vec![shared_ports::plan(RED), shared_ports::plan(BLUE)];
    network(Testbed::new(version, plans), RED, requests)
}

fn list(action: &str, count: usize) -> String {
    vec![action; count].join(",")
}

/// The refusal of a request by this check.
fn refused_for(reason: Reason) -> CheckAndText {
    let add = |what: &str| format!("flow add prio=5 {what}");
    match reason {
        Reason::ByCode => slice(V::V1_0, BY_PORT, &["flow add match=in_port=3 actions=output:1"]),
        Reason::ReadOnly => {
            slice(V::V1_3, "red: in_port=1 read", &["flow add match=in_port=1 actions=drop"])
        }
        Reason::Backlog => backlog(),
        Reason::AnswerTooLarge => {
            let setup = Setup { ports: 1364, ..Setup::new(V::V1_0, "red: any") };
            let mut world = World::new(setup);
            happen(&mut world, "add 1365");
            red_says(world, &["features"])
        }
        Reason::NoMember => no_member(),
        Reason::StoreFull => {
            let mut world = World::new(Setup::new(V::V1_3, BY_PORT));
            let account = Arc::<Account>::default();
            world.core.share_account(world.tenant("red"), account.clone());
            account.set_store_full(true);
            red_says(world, &["meter add id=1"])
        }
        Reason::OutPort => slice(V::V1_0, BY_PORT, &[&add("match=in_port=1 actions=output:3")]),
        Reason::Normal => slice(V::V1_3, BY_PORT, &[&add("match=in_port=1 actions=normal")]),
        Reason::TableInEntry => slice(V::V1_0, BY_PORT, &[&add("match=in_port=1 actions=table")]),
        Reason::FloodInSet => {
            slice(V::V1_3, BY_PORT, &[&add("match=in_port=1 actions=write=flood")])
        }
        Reason::NoInPort => {
            of_two(V::V1_3, &[&format!("out in_port=controller actions=in_port {PACKET}")])
        }
        Reason::SharedEdge => of_shared(V::V1_3, &[&add("table=1 match= actions=flood")]),
        Reason::SourceToController => {
            let actions = "mod_dl_src:02.00.00.00.00.77,controller";
            of_shared(V::V1_0, &[&add(&format!("match=in_port=7 actions={actions}"))])
        }
        Reason::InPort => of_two(V::V1_3, &[&add("match=in_port=99 actions=drop")]),
        Reason::BufferReused => buffer_reused(),
        Reason::ForeignPacket => {
            slice(V::V1_3, BY_ADDRESS, &["out actions=output:2 data=10.2.0.1>10.1.0.1"])
        }
        Reason::WeirsProbe => weirs_probe(),
        Reason::NoProbe => {
            let no_lldp = "hex:0180c200000e02000000000188cc02ff";
            slice(V::V1_0, BY_ADDRESS, &[&format!("out actions=output:2 data={no_lldp}")])
        }
        Reason::ProbeChanged => {
            let actions = "mod_dl_dst:02.00.00.00.00.77,output:2";
            slice(V::V1_3, BY_ADDRESS, &[&format!("out actions={actions} data=lldp")])
        }
        Reason::ShortPacket => slice(V::V1_0, BY_PORT, &["out actions=output:2 data=hex:0102"]),
        Reason::PacketTooLong => {
            let long = "00".repeat(65_505);
            slice(V::V1_0, BY_PORT, &[&format!("out actions=all data=hex:{long}")])
        }
        Reason::LongTable => {
            let add = |number| {
                let source = format!("10.1.{}.{}", number >> 8, number & 255);
                format!("flow add match=in_port=1,ip,nw_src={source} actions=drop")
            };
            let mut requests: Vec<String> = (0..4097).map(add).collect();
            requests.push(format!("out in_port=controller actions=table {PACKET}"));
            let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
            slice(V::V1_0, "red flows=5000 own=3+4: -", &requests)
        }
        Reason::ForeignInTables => {
            slice(V::V1_0, BY_PORT, &[&format!("out actions=table {PACKET}")])
        }
        Reason::ChangedFromNowhere => {
            let actions = "mod_nw_dst:10.1.0.3,table";
            let words = format!("out actions={actions} data=10.1.0.1>10.2.0.1");
            slice(V::V1_3, BY_ADDRESS, &[&words])
        }
        Reason::ForeignSource => {
            of_shared(V::V1_3, &[&format!("out in_port=7 actions=table {PACKET}")])
        }
        Reason::NoEntrance => {
            let mut plans = two_networks();
            plans[RED].cut = vec![plans[RED].links[0]];
            let words = format!("out in_port=10 actions=table {PACKET}");
            network(Testbed::new(V::V1_3, plans), RED, &[&words])
        }
        Reason::NoControllerLabel => {
            let words = format!("out in_port=controller actions=table {PACKET}");
            slice(V::V1_3, "red own=3+4: -", &[&words])
        }
        Reason::TableNotAlone => {
            of_two(V::V1_0, &[&format!("out in_port=1 actions=output:2,table {PACKET}")])
        }
        Reason::UnlikeItsPort => {
            of_shared(V::V1_0, &[&format!("out in_port=7 actions=table {PACKET}")])
        }
        Reason::PushType => {
            slice(V::V1_3, "red: any", &[&add("match=in_port=1 actions=push_vlan:0800,output:2")])
        }
        Reason::VlanUnderMpls => {
            of_two(V::V1_3, &[&add("match=dl_type=0x8847 actions=pop_mpls:8100,output:2")])
        }
        Reason::TagOnLink => {
            let words = add("match=in_port=1,dl_vlan=9 actions=output:11");
            network(Testbed::mixed(MIXED, two_networks()), BLUE, &[&words])
        }
        Reason::TagToController => {
            of_two(V::V1_0, &[&add("match=in_port=10 actions=mod_vlan_vid:9,controller")])
        }
        Reason::PbbInNetwork => {
            of_two(V::V1_3, &[&add("match=in_port=1 actions=push_pbb:88e7,output:2")])
        }
        Reason::EnqueueInNetwork => of_two(V::V1_0, &[&add("match=in_port=1 actions=enqueue:2:1")]),
        Reason::TooManyRules => {
            let mut red = Plan { edges: vec![(1, 1, 1)], ..Plan::default() };
            red.shared.extend((0..80).map(|n| (1, 4, 7, [2, 0, 0, 0, 1, n])));
            let words = add(&format!("match= actions={}", list("output:1", 7_800)));
            network(Testbed::new(V::V1_0, vec![red]), RED, &[&words])
        }
        Reason::GroupTwice => {
            let group = "group add id=1 buckets=output:1";
            slice(V::V1_3, BY_PORT, &[group, &add("match=in_port=1 actions=group:1,group:1")])
        }
        Reason::Recirculates => {
            let words = add("table=1 match=in_port=1 actions=pop_mpls:0800");
            slice(V::V1_3, BY_PORT, &[&words])
        }
        Reason::GotoBack => {
            slice(V::V1_3, BY_PORT, &[&add("table=1 match=in_port=1 actions=goto=1")])
        }
        Reason::GotoNowhere => slice(V::V1_3, BY_PORT, &[&add("match=in_port=1 actions=goto=253")]),
        Reason::SetToGroupByTag => {
            let group = "group add id=1 type=indirect buckets=output:11";
            let words = add("match= actions=write=group:1;goto=1");
            network(Testbed::mixed(MIXED, two_networks()), BLUE, &[group, &words])
        }
        Reason::WeirsMetadata => {
            let match_ = "metadata=0x1000000000005";
            slice(V::V1_3, BY_PORT, &[&add(&format!("table=1 match={match_} actions=drop"))])
        }
        Reason::Contested => {
            let policy = "red: ip\nblue: ip,nw_src=10.2.0.0/16 @200";
            slice(V::V1_0, policy, &[&add("match=ip,nw_src=10.2.0.0/24 actions=drop")])
        }
        Reason::SameRule => {
            let all = but_for_the_port();
            let first = format!("flow add prio=5 match={all} actions=output:2");
            let second = format!("flow add prio=9 match={all} actions=output:1");
            slice(V::V1_0, BY_PORT, &[&first, &second])
        }
        Reason::EntryLimit => {
            let requests = [1, 2].map(|port| format!("flow add match=in_port={port} actions=drop"));
            slice(V::V1_3, "red flows=1: any", &[&requests[0], &requests[1]])
        }
        Reason::RuleLimit => {
            let words = "flow add match=dl_type=0x0806 actions=drop";
            slice(V::V1_0, "red entries=1: in_port=1\nred: in_port=2", &[words])
        }
        Reason::RuleShare => {
            let mut setup = Setup::new(V::V1_0, "red: any\nblue: any");
            setup.configure = |config| config.max_flows = 2;
            let requests = [1, 2].map(|port| format!("flow add match=in_port={port} actions=drop"));
            red_says(World::new(setup), &[&requests[0], &requests[1]])
        }
        Reason::RulesAtOnce => {
            let mut requests: Vec<String> = (1..=320)
                .map(|prio| format!("flow add match=in_port=1 prio={prio} actions=drop"))
                .collect();
            requests.push(format!("flow modify actions={}", list("output:2", 7_500)));
            let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
            slice(V::V1_0, "red: any", &requests)
        }
        Reason::GroupShare => numbers(|n| format!("group add id={n} type=select buckets=output:1")),
        Reason::MeterShare => numbers(|n| format!("meter add id={n} rate=1000")),
        Reason::GroupPasses => {
            let chained = |id| match id {
                1 => "group add id=1 buckets=output:1|output:2".to_owned(),
                _ => format!("group add id={id} buckets=group:{0}|group:{0}", id - 1),
            };
            let requests: Vec<String> = (1..=12).map(chained).collect();
            let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
            slice(V::V1_3, BY_PORT, &requests)
        }
        Reason::GroupInstances => group_instances(),
        Reason::NoEgressGroup => no_egress_group(),
        Reason::WatchedPort => {
            slice(V::V1_3, BY_PORT, &["group add id=1 type=ff buckets=3@output:1"])
        }
        Reason::PortShared => slice(V::V1_0, BY_ADDRESS, &["port_mod port=1 config=1 mask=1"]),
        Reason::PortConfig => of_two(V::V1_0, &["port_mod port=1 config=0x100 mask=0x100"]),
        Reason::PortAdvertises => of_two(V::V1_0, &["port_mod port=1 advertise=1"]),
        Reason::PortInUse => {
            let all = but_for_the_port();
            let requests = [
                "port_mod port=1 config=4 mask=4 mac=02:00:00:00:00:01".to_owned(),
                format!("flow add prio=5 match={all} actions=output:2"),
                format!("flow add prio=9 match=in_port=1,{all} actions=output:2"),
                "port_mod port=1 config=0 mask=4 mac=02:00:00:00:00:01".to_owned(),
            ];
            slice(V::V1_0, "red own=3+4: -", &requests.each_ref().map(String::as_str))
        }
    }
}

/// A driver that asks the core before it reads hands over only requests that have room in the backlog. This driver does
/// not ask.
fn backlog() -> CheckAndText {
    let settings = Settings { tenant_backlog: 2, ..Settings::default() };
    let mut world = World::new(Setup { settings, ..Setup::new(V::V1_3, BY_PORT) });
    let red = world.connect("red");
    world.lose_south(true);
    let index = world.controllers[red.0].index;
    for words in ["barrier", "features", "features", "features"] {
        let message = request(world.version, 7, words);
        world.core.handle_controller_message(index, &message, hypervisor::Instant(world.now));
    }
    last(&world)
}

/// One member of a big switch has connected again and reports its state. The other members are disconnected.
fn no_member() -> CheckAndText {
    let mut testbed = big_switches::testbed(V::V1_3);
    testbed.lose(RED, 1, 2);
    testbed.plant(1, vec![Fault::NeverAnswers { message_type: MessageType::MULTIPART_REQUEST.0 }]);
    testbed.lose(RED, 1, 1);
    testbed.find(RED, 1, 1);
    testbed.lose(RED, 1, 3);
    network(testbed, RED, &[&format!("out in_port=controller actions=output:1 {PACKET}")])
}

/// A packet of blue replaces red's packet in the switch's buffer while red's PACKET_OUT waits for its turn.
fn buffer_reused() -> CheckAndText {
    let policy = BY_ADDRESS.replace("red:", "red packet_out=1/1:");
    let mut world = World::new(Setup { configure: |_| {}, ..Setup::new(V::V1_0, &policy) });
    let red = world.connect("red");
    world.lose_south(true);
    world.say(red, 1, "out data=10.1.0.1>10.2.0.1 actions=output:3");
    let kept = |name| announcement(V::V1_0, 7, &packet(name));
    world.switch_says(&kept("10.1.0.1>10.2.0.1"));
    world.say(red, 3, "out buffer=0 actions=output:3");
    world.switch_says(&kept("10.2.0.1>10.1.0.1"));
    world.advance(2_000_000_000);
    last(&world)
}

/// Red sends a recorded link probe of Weir with a VLAN tag.
fn weirs_probe() -> CheckAndText {
    let hex: String = probe().iter().map(|byte| format!("{byte:02x}")).collect();
    let tagged = format!("hex:{}81000005{}", &hex[..24], &hex[24..]);
    slice(V::V1_0, "red: any", &[&format!("out actions=strip_vlan,output:2 data={tagged}")])
}

/// The switch refuses the egress group. The switch accepts the tenant's group, because the switch does not check the
/// groups that a group names.
fn no_egress_group() -> CheckAndText {
    let (mut world, red) =
        shared_ports::world_on(shared_ports::map(), |config| config.n_buffers = 0);
    world.lose_south(true);
    world.south.clear();
    world.say(red, 7, "group add id=1 buckets=strip_vlan,output:10");
    let (code, xid) = (v13::GROUP_MOD_FAILED_OUT_OF_GROUPS, xid(&world.south[0]));
    let mut answer = Vec::new();
    Error { code, data: &[] }.write_message(V::V1_3, xid, &mut answer).unwrap();
    world.switch_says(&answer);
    for _ in 0..5 {
        world.advance(100_000_000);
        for message in std::mem::take(&mut world.south) {
            if frame::type_(&message) == Some(MessageType::BARRIER_REQUEST.0) {
                answer.clear();
                Message::BarrierReply.write(self::xid(&message), &mut answer).unwrap();
                world.switch_says(&answer);
            }
        }
    }
    last(&world)
}

fn xid(message: &[u8]) -> u32 {
    Header::parse(message).unwrap().xid
}

/// Red has one hundredth of the switch, and adds 42 groups or meters.
fn numbers(add: fn(u32) -> String) -> CheckAndText {
    let mut setup = Setup::new(V::V1_3, BY_ADDRESS);
    let blue = &mut setup.policy.tenants[1];
    (blue.weight, blue.limits) = (99, Limits { groups: 5_000, meters: 5_000, ..blue.limits });
    let requests: Vec<String> = (1..=42).map(add).collect();
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    red_says(World::new(setup), &requests)
}

/// Each group has one instance for each of many links at one port, and one instance for all other ports.
fn group_instances() -> CheckAndText {
    let links = 10..60;
    let plan = Plan {
        edges: vec![(1, 1, 1), (2, 1, 1)],
        links: links.clone().map(|port| [(1, port), (2, port)]).collect(),
        ..Plan::default()
    };
    let buckets: Vec<String> = links.map(|port| format!("output:{port}")).collect();
    let buckets = buckets.join("|");
    // The switch has the same room for groups of each type, so half of the groups are of each type.
    let add = |n| {
        let type_ = if n % 2 == 0 { "all" } else { "select" };
        format!("group add id={n} type={type_} buckets={buckets}")
    };
    let requests: Vec<String> = (1..=81).map(add).collect();
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    network(Testbed::new(V::V1_3, vec![plan]), RED, &requests)
}

#[test]
fn each_refusal_reason_occurs_and_has_its_own_text() {
    let refused: Vec<(Reason, CheckAndText)> =
        Reason::ALL.iter().map(|it| (*it, refused_for(*it))).collect();
    let wrong: Vec<_> = refused.iter().filter(|(reason, found)| *reason != found.0).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let words: BTreeSet<&String> = refused.iter().map(|(_, (_, words))| words).collect();
    assert_eq!(words.len(), Reason::ALL.len(), "two say the same: {refused:#?}");
    assert!(!words.iter().any(|words| words.contains('{')), "{words:#?}");
}

#[test]
fn refusal_texts_name_the_port_table_or_ethernet_type() {
    for (reason, words) in [
        (Reason::OutPort, "an action sends to port 3, which is not the tenant's"),
        (Reason::InPort, "the packets are to come by port 99, which is not the tenant's"),
        (Reason::GotoNowhere, "the entry goes to table 253, which the tenant does not have"),
        (
            Reason::PushType,
            "an action pushes a header with the Ethernet type 0x0800, which headers of this kind do not have",
        ),
    ] {
        assert_eq!(refused_for(reason), (reason, words.to_owned()));
    }
    let local = slice(V::V1_0, BY_PORT, &["flow add match=in_port=1 actions=local"]);
    let words = "an action sends to port LOCAL, which is not the tenant's";
    assert_eq!(local, (Reason::OutPort, words.to_owned()));
}
