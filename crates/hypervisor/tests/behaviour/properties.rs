//! Tests with random tenants, rules, packets and bytes. Packets match only rules of their owner, and malformed messages
//! do no harm to other tenants.

use crate::support::*;
use flowspace::{Field, Key};
use hypervisor::policy::Permission;
use hypervisor::{Policy, TenantId};
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

/// The text has few addresses and ports, so that flowspace, rules and packets overlap.
fn match_text() -> impl Strategy<Value = String> {
    let port = weighted(0.4, 1..4u8);
    let source = weighted(0.7, (0..4u8, 30..33u8));
    let destination = weighted(0.3, 0..4u8);
    (port, source, destination).prop_map(|(port, source, destination)| {
        let mut text = "ip".to_owned();
        if let Some(port) = port {
            text += &format!(",in_port={port}");
        }
        if let Some((host, bits)) = source {
            let host = u32::from(host) & (u32::MAX << (32 - bits));
            text += &format!(",nw_src=10.0.0.{host}/{bits}");
        }
        if let Some(host) = destination {
            text += &format!(",nw_dst=10.0.0.{host}");
        }
        text
    })
}

fn action_text() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..5u8).prop_map(|port| format!("output:{port}")),
        (0..4u8).prop_map(|host| format!("mod_nw_src:10.0.0.{host},output:2")),
        (0..4u8).prop_map(|host| format!("mod_nw_dst:10.0.0.{host},output:3")),
        Just("flood".to_owned()),
        Just("all".to_owned()),
        Just("in_port".to_owned()),
        Just("controller".to_owned()),
        Just("drop".to_owned()),
    ]
}

fn policy_text() -> impl Strategy<Value = String> {
    let entry = (match_text(), prop::sample::select(vec![100, 200]));
    vec(vec(entry, 1..3), 2..4).prop_map(|tenants| {
        let mut text = String::new();
        for (name, entries) in ["red", "blue", "green"].into_iter().zip(tenants) {
            for (match_, priority) in entries {
                text += &format!("{name}: {match_} @{priority}\n");
            }
        }
        text
    })
}

/// `(tenant, rule)`. The tests take the tenant's number modulo the number of tenants.
fn rules() -> impl Strategy<Value = Vec<(usize, String)>> {
    let rule = (
        match_text(),
        1..4u16,
        action_text(),
        prop::sample::select(vec!["add", "modify", "delete"]),
    );
    vec(
        (
            0..3usize,
            rule.prop_map(|(match_, priority, actions, command)| {
                format!("flow {command} match={match_} prio={priority} actions={actions}")
            }),
        ),
        0..12,
    )
}

/// The owner of a packet by definition: the tenant whose matching writable flowspace entry has the highest priority.
fn owner(policy: &Policy, key: &Key) -> Option<TenantId> {
    let entries = policy.tenants.iter().flat_map(|t| t.flowspace.iter().map(move |e| (t.id, e)));
    let mut entries: Vec<_> = entries.filter(|(_, e)| e.permission == Permission::Write).collect();
    entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.priority));
    entries.into_iter().find(|(_, entry)| entry.match_.matches(key)).map(|(id, _)| id)
}

/// Whether the packet belongs to the tenant at some port of the switch.
fn inside(policy: &Policy, tenant: TenantId, frame: &[u8]) -> bool {
    (1..5).any(|port| owner(policy, &Key::extract(port, frame)) == Some(tenant))
}

/// The number of packets that the tenant's entries have counted.
fn counted(world: &mut World, seat: Seat) -> String {
    world.say(seat, 1, "stats aggregate");
    let heard = world.heard(seat).pop().unwrap();
    heard.rsplit_once("n=").unwrap().1.to_owned()
}

fn packets_stay_with_their_owner(
    version: Version,
    text: &str,
    rules: &[(usize, String)],
    packets: &[(u32, u8, u8)],
) -> Result<(), TestCaseError> {
    let policy = policy(text);
    let mut world = World::new(Setup::new(version, text));
    let seats: Vec<Seat> = policy.tenants.iter().map(|t| world.connect(&t.name)).collect();
    if version == Version::V1_3 {
        for seat in &seats {
            world.say(*seat, 1, "flow add prio=0 actions=controller");
        }
    }
    for (tenant, rule) in rules {
        world.say(seats[tenant % seats.len()], 1, rule);
    }
    for (in_port, source, destination) in packets {
        let bytes = packet(&format!("10.0.0.{source}>10.0.0.{destination}"));
        let key = Key::extract(*in_port, &bytes);
        prop_assert_eq!(key.get(Field::InPort), u128::from(*in_port));
        let owner = owner(&policy, &key);
        let before: Vec<String> = seats.iter().map(|seat| counted(&mut world, *seat)).collect();
        world.left.clear();
        world.packet(*in_port, &bytes);
        let left = std::mem::take(&mut world.left);
        for (at, seat) in seats.iter().enumerate() {
            let received = world.heard(*seat);
            if Some(policy.tenants[at].id) == owner {
                prop_assert!(received.len() <= 1 + left.len(), "{:?}", received);
            } else {
                prop_assert_eq!(received, [""; 0], "received by {}", policy.tenants[at].name);
                prop_assert_eq!(&counted(&mut world, *seat), &before[at]);
            }
        }
        let Some(owner) = owner else {
            prop_assert!(left.is_empty(), "nobody's packet left: {:?}", left);
            continue;
        };
        let tenant = policy.tenants.iter().find(|tenant| tenant.id == owner).unwrap();
        for left in left {
            prop_assert!(inside(&policy, owner, &left.frame), "left as another's: {:?}", left);
            let may_leave = tenant.flowspace.iter().any(|entry| {
                entry
                    .match_
                    .without(Field::InPort)
                    .with(Field::InPort, left.port.into())
                    .overlaps(&entry.match_)
            });
            prop_assert!(may_leave || left.port == *in_port, "left by another's port: {:?}", left);
        }
    }
    Ok(())
}

fn packets() -> impl Strategy<Value = Vec<(u32, u8, u8)>> {
    vec((1..5u32, 0..4u8, 0..4u8), 1..8)
}

proptest! {
    #[test]
    fn packets_match_only_rules_of_their_owner_on_1_0(
        text in policy_text(), rules in rules(), packets in packets()
    ) {
        packets_stay_with_their_owner(Version::V1_0, &text, &rules, &packets)?;
    }

    #[test]
    fn packets_match_only_rules_of_their_owner_on_1_3(
        text in policy_text(), rules in rules(), packets in packets()
    ) {
        packets_stay_with_their_owner(Version::V1_3, &text, &rules, &packets)?;
    }
}

/// Valid requests. The tests change the bytes of these requests.
const REQUESTS: &[&str] = &[
    "hello",
    "echo data=abc",
    "features",
    "get_config",
    "set_config len=50",
    "barrier",
    "port_mod port=1 config=4 mask=4",
    "queues port=1",
    "vendor id=0x2320",
    "out in_port=1 actions=output:2 data=10.1.0.1>10.2.0.1",
    "out buffer=0 actions=flood",
    "flow add match=ip,nw_src=10.1.0.0/24 actions=mod_nw_src:10.1.0.7,output:1 flags=rem",
    "flow modify match=ip actions=output:2",
    "flow delete",
    "flow delete_strict match=ip",
    "stats desc",
    "stats flow",
    "stats aggregate",
    "stats table",
    "stats port",
    "stats queue",
];

const REQUESTS_V13: &[&str] = &[
    "role master generation=1",
    "set_async",
    "get_async",
    "table_mod",
    "group add id=1 buckets=output:1|output:2",
    "group modify id=1 buckets=output:2",
    "group delete id=all",
    "meter add id=1",
    "meter delete id=all",
    "flow add match=ip actions=meta=1/ff;write=output:1;goto=2",
    "flow delete table=255",
    "stats group",
    "stats group_desc",
    "stats meter",
    "stats meter_config",
    "stats port_desc",
    "stats table_features",
];

/// The index of a valid message, the places and the new values of its changed bytes, and the change of its length.
/// Places and indices are modulo the length.
type Spoil = (prop::sample::Index, Vec<(prop::sample::Index, u8)>, i8);

fn spoils() -> impl Strategy<Value = Vec<Spoil>> {
    vec(
        (
            any::<prop::sample::Index>(),
            vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            -9..9i8,
        ),
        1..12,
    )
}

fn spoil(mut message: Vec<u8>, changes: &[(prop::sample::Index, u8)], growth: i8) -> Vec<u8> {
    let length = (message.len() as i64 + i64::from(growth.clamp(-8, 8)) * 8).max(8) as usize;
    if growth.abs() > 4 {
        message.resize(length, 0x11);
    }
    for (at, byte) in changes {
        let at = at.index(message.len());
        message[at] = *byte;
    }
    // The header has the real length of the message, because a driver hands over only whole messages.
    let length = (message.len() as u16).to_be_bytes();
    message[2..4].copy_from_slice(&length);
    message
}

const TWO: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

fn no_request_touches_a_neighbour(version: Version, spoils: &[Spoil]) -> Result<(), TestCaseError> {
    let mut world = World::new(Setup::new(version, TWO));
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    world.say(blue, 1, "flow add match=ip,nw_src=10.2.0.1 actions=output:2 flags=rem");
    if version == Version::V1_3 {
        world.say(blue, 2, "group add id=1 buckets=output:3");
        world.say(blue, 3, "meter add id=1");
    }
    let ports: Vec<u32> = world.switch.switch().ports().map(|port| port.config).collect();
    let requests: Vec<&&str> = if version == Version::V1_0 {
        REQUESTS.iter().collect()
    } else {
        REQUESTS.iter().chain(REQUESTS_V13).collect()
    };
    for (which, changes, growth) in spoils {
        let message = request(version, 9, requests[which.index(requests.len())]);
        world.send(red, &spoil(message, changes, *growth));
    }
    world.advance(100_000_000);
    world.say(blue, 4, "stats flow");
    prop_assert_eq!(world.heard(blue), ["4 STATS flow prio=32768 ip,nw_src=10.2.0.1 n=0 output:2"]);
    if version == Version::V1_3 {
        world.say(blue, 5, "stats group_desc");
        world.say(blue, 6, "stats meter_config");
        prop_assert_eq!(
            world.heard(blue),
            ["5 STATS group_desc 1:output:3", "6 STATS meter_config 1"]
        );
    }
    prop_assert_eq!(world.packet(1, &packet("10.2.0.1>10.1.0.1")), [2]);
    prop_assert_eq!(
        world.switch.switch().ports().map(|port| port.config).collect::<Vec<_>>(),
        ports
    );
    Ok(())
}

/// The messages that the emulated switch sends.
fn answers(version: Version) -> Vec<Vec<u8>> {
    let mut world = World::new(Setup { configure: |_| {}, ..Setup::new(version, TWO) });
    let red = world.connect("red");
    let mut answers = Vec::new();
    for words in [
        "features",
        "barrier",
        "queues port=1",
        "stats port",
        "stats flow",
        "flow add flags=rem match=ip,nw_src=10.1.0.9",
        "stats flow",
        "stats table",
        "stats aggregate",
        "flow delete",
        "echo data=1",
        "vendor id=5",
    ] {
        world.say(red, 1, words);
        let message = request(version, 1, words);
        let now = world.now;
        world.switch.switch_mut().handle_message(now, &message, &mut answers);
    }
    world.switch.switch_mut().receive_packet(
        world.now,
        1,
        &packet("10.1.0.1>10.2.0.1"),
        &mut answers,
    );
    world.switch.switch_mut().set_port_up(1, false, &mut answers);
    frames(&answers).collect()
}

fn no_answer_is_a_panic(version: Version, spoils: &[Spoil]) -> Result<(), TestCaseError> {
    let answers = answers(version);
    let mut world = World::new(Setup::new(version, TWO));
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    for (which, changes, growth) in spoils {
        world.say(red, 3, "stats flow");
        world.switch_says(&spoil(answers[which.index(answers.len())].clone(), changes, *growth));
    }
    world.received(red);
    world.received(blue);
    world.say(blue, 7, "echo data=here");
    prop_assert_eq!(world.heard(blue), ["7 ECHO_REPLY here"]);
    Ok(())
}

proptest! {
    #[test]
    fn malformed_requests_change_no_state_of_another_tenant(spoils in spoils()) {
        for version in VERSIONS {
            no_request_touches_a_neighbour(version, &spoils)?;
        }
    }

    #[test]
    fn weir_answers_echo_after_malformed_switch_messages(spoils in spoils()) {
        for version in VERSIONS {
            no_answer_is_a_panic(version, &spoils)?;
        }
    }

    #[test]
    fn messages_with_arbitrary_bytes_cause_no_panic(messages in vec((any::<bool>(), any::<bool>(), vec(any::<u8>(), 0..200)), 1..20)) {
        for version in VERSIONS {
            let mut world = World::new(Setup::new(version, TWO));
            let red = world.connect("red");
            for (right_version, from_switch, body) in &messages {
                let mut message = vec![if *right_version { version.0 } else { 7 }, 0, 0, 0, 0, 0, 0, 0];
                message.extend_from_slice(body);
                message[1] = body.first().map_or(0, |byte| byte % 32);
                let length = (message.len() as u16).to_be_bytes();
                message[2..4].copy_from_slice(&length);
                if *from_switch { world.switch_says(&message) } else { world.send(red, &message) }
            }
        }
    }
}
