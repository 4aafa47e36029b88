//! Two tenants with hosts at shared ports of edge switches, and a check of the hosts that their packets reach.

use super::courses::at_hosts;
use super::hairpin::policy_on;
use super::networks::both_say;
use super::*;
use fabric::embedding::SwitchMap;

pub const RED: usize = 0;

pub const BLUE: usize = 1;

/// A tenant's port that no other tenant shares.
pub const WHOLE: u32 = 1;

/// Ports that both tenants share.
pub const SHARED: [u32; 2] = [7, 8];

/// The end of the tenant's link.
pub const LINK: u32 = 10;

pub const BROADCAST: [u8; 6] = [0xff; 6];

/// The address of no tenant's host.
pub const STRANGER: [u8; 6] = [2, 0, 0, 0, 0x66, 6];

pub const EVERY_NODE: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// The address of a tenant's host.
pub fn host(tenant: usize, n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0x10 + tenant as u8, n]
}

/// A tenant with two shared ports on the first switch. The first shared port has two hosts of the tenant, and the
/// second has one. A link connects the first switch to the second, which has one more host.
pub fn plan(tenant: usize) -> Plan {
    let whole = tenant as u32 + 1;
    Plan {
        edges: vec![(1, whole, WHOLE), (2, whole, WHOLE)],
        shared: vec![
            (1, 4, SHARED[0], host(tenant, 1)),
            (1, 4, SHARED[0], host(tenant, 2)),
            (1, 3, SHARED[1], host(tenant, 3)),
        ],
        links: vec![[(1, LINK), (2, LINK)]],
        ..Plan::default()
    }
}

/// The same network, but no other tenant shares the second shared port.
pub fn plan_before_sharing(tenant: usize) -> Plan {
    let mut plan = plan(tenant);
    plan.shared.retain(|it| it.2 != SHARED[1]);
    plan.edges.push((1, 3, SHARED[1]));
    plan
}

/// A testbed of 1.3 with both tenants.
pub fn testbed() -> Testbed {
    testbed_of(Version::V1_3)
}

/// A testbed with both tenants. Their second switches forward packets between the link and the host, also in the
/// reference networks.
pub fn testbed_of(version: Version) -> Testbed {
    let mut testbed = Testbed::new(version, vec![plan(RED), plan(BLUE)]);
    for tenant in [RED, BLUE] {
        both_say(&mut testbed, tenant, 2, "flow add prio=5 match=in_port=10 actions=output:1");
        both_say(&mut testbed, tenant, 2, "flow add prio=5 match=in_port=1 actions=output:10");
    }
    testbed
}

/// A tenant sends a message, and the message is accepted.
#[track_caller]
pub fn accept(testbed: &mut Testbed, tenant: usize, switch: u64, words: &str) {
    assert_eq!(testbed.say(tenant, switch, words), [""; 0], "{words}");
}

/// The source address of packets from this port: a host of the tenant's at a shared port, else any address.
fn source(plan: &Plan, at: (u64, u32)) -> [u8; 6] {
    let host = plan.shared.iter().find(|it| (it.0, it.2) == at);
    host.map_or([2, 0, 0, 0, 0x77, 1], |it| it.3)
}

pub fn frame(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let mut frame = packet("10.0.0.1>10.0.0.2");
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame
}

/// The switch, the port and the destination address of each packet that has reached the tenant.
pub type Reached = Vec<(u64, u32, [u8; 6])>;

/// Sends a frame of a tenant into a port of a switch. Gives the packets that reach the tenant. Fails if a packet
/// reaches a port that only the other tenant has.
#[track_caller]
pub fn reached(
    testbed: &mut Testbed,
    tenant: usize,
    (switch, port): (u64, u32),
    to: [u8; 6],
) -> Reached {
    let from = source(&plan(tenant), (switch, port));
    let seen = testbed.send(tenant, switch, port, &frame(from, to));
    assert_eq!(seen.received, [], "{port}");
    assert!(!seen.endless);
    let mut reached = Vec::new();
    for (whose, switch, port, bytes) in seen.delivered {
        if whose == tenant {
            assert_eq!(bytes[6..12], from, "{port}");
            assert_eq!(bytes[12..], frame(from, to)[12..], "{port}");
            reached.push((switch, port, bytes[..6].try_into().unwrap()));
        } else {
            assert!(SHARED.contains(&port), "{whose} {port}");
        }
    }
    reached.sort_unstable();
    reached
}

/// The packets that must reach the tenant if a frame leaves by these ports of the first switch.
pub fn meant(shared: &[(u64, u32, u32, [u8; 6])], from: u32, by: &[u32], to: [u8; 6]) -> Reached {
    let mut meant = Vec::new();
    for &port in by.iter().filter(|port| **port != from) {
        let is_many = to[0] & 1 == 1;
        let behind = shared.iter().filter(|it| it.2 == port).map(|it| it.3);
        match port {
            LINK => meant.push((2, WHOLE, to)),
            port if SHARED.contains(&port) => {
                let hosts = behind.filter(|host| is_many || *host == to);
                meant.extend(hosts.map(|host| (1, port, host)));
            }
            port => meant.push((1, port, to)),
        }
    }
    meant.sort_unstable();
    meant
}

/// Sends a frame from each port to each kind of destination. Fails unless each frame leaves by these ports and reaches
/// only the right hosts.
#[track_caller]
pub fn leaves_by(testbed: &mut Testbed, tenant: usize, by: &[u32], note: &str) {
    for (at, from) in [((1, WHOLE), WHOLE), ((1, 7), 7), ((1, 8), 8), ((2, WHOLE), LINK)] {
        for to in destinations(tenant) {
            let seen = reached(testbed, tenant, at, to);
            assert_eq!(seen, meant(&plan(tenant).shared, from, by, to), "{note}: {at:?} {to:x?}");
        }
    }
}

pub const EVERYWHERE: &[u32] = &[WHOLE, 7, 8, LINK];

/// Action lists that output to shared ports, and the ports by which packets leave.
pub const LISTS: [(&str, &[u32]); 6] = [
    ("flood", EVERYWHERE),
    ("all", EVERYWHERE),
    ("output:8,output:1,output:7,output:10", EVERYWHERE),
    ("output:7,output:8", &[7, 8]),
    ("output:7", &[7]),
    ("output:10,output:8,output:1", &[WHOLE, 8, LINK]),
];

/// A tenant's big switch on the first two switches, with a shared port on each, and a link to the third.
pub fn big_plan(tenant: usize) -> Plan {
    let whole = tenant as u32 + 1;
    Plan {
        edges: vec![(1, whole, 1), (2, whole, 2), (3, whole, 1)],
        shared: vec![
            (1, 4, 7, host(tenant, 1)),
            (2, 4, 8, host(tenant, 2)),
            (2, 4, 8, host(tenant, 3)),
        ],
        links: vec![[(2, LINK), (3, LINK)]],
        big: vec![1, 2],
        ..Plan::default()
    }
}

/// Sends a frame into red's big switch. Fails unless the frame leaves by these ports, and reaches of red only the right
/// hosts.
#[track_caller]
pub fn leaves_big(testbed: &mut Testbed, from: (u64, u32), by: &[u32], to: [u8; 6], note: &str) {
    let plan = big_plan(RED);
    let seen = testbed.send(RED, from.0, from.1, &frame(source(&plan, from), to));
    let mut reached: Reached = Vec::new();
    for (whose, switch, port, bytes) in seen.delivered {
        match whose {
            RED => reached.push((switch, port, bytes[..6].try_into().unwrap())),
            _ => assert!([7, 8].contains(&port), "{note} {from:?} {to:x?}: {whose} {port}"),
        }
    }
    let mut meant: Reached = Vec::new();
    let here = |port: u32| {
        if port == LINK { (3, 1) } else { (if [1, 7].contains(&port) { 1 } else { 2 }, port) }
    };
    for (switch, port) in by.iter().map(|port| here(*port)).filter(|at| *at != from) {
        let mut shared = plan.shared.iter().filter(|it| (it.0, it.2) == (switch, port)).peekable();
        if shared.peek().is_none() {
            meant.push((switch, port, to));
        }
        let for_it = shared.filter(|it| to[0] & 1 == 1 || it.3 == to);
        meant.extend(for_it.map(|it| (switch, port, it.3)));
    }
    reached.sort_unstable();
    meant.sort_unstable();
    assert_eq!(reached, meant, "{note}: {from:?} {to:x?}");
}

pub const BIG_FROM: [(u64, u32); 5] = [(1, 1), (1, 7), (2, 2), (2, 8), (3, 1)];

pub fn big_testbed(version: Version) -> Testbed {
    let mut testbed = Testbed::new(version, vec![big_plan(RED), big_plan(BLUE)]);
    for tenant in [RED, BLUE] {
        accept(&mut testbed, tenant, 3, "flow add prio=5 match=in_port=10 actions=output:1");
        accept(&mut testbed, tenant, 3, "flow add prio=5 match=in_port=1 actions=output:10");
    }
    testbed
}

/// The map of the first switch with both tenants.
pub fn map() -> SwitchMap {
    Testbed::maps_from(2000, &[plan(RED), plan(BLUE)]).0.remove(&1).unwrap()
}

/// One switch with this map, and a controller of red.
pub fn world_on(map: SwitchMap, configure: fn(&mut emulate::Config)) -> (World, Seat) {
    let setup = Setup::new(Version::V1_3, "");
    let mut world = World::new(Setup { policy: policy_on(map), ports: 6, configure, ..setup });
    let red = world.connect("red");
    (world, red)
}

pub fn address(address: [u8; 6]) -> String {
    address.map(|octet| format!("{octet:02x}")).join(":")
}

/// The destination addresses of a tenant's packets: the tenant's hosts at shared ports, hosts of the other tenant, an
/// unknown host, broadcast and multicast.
pub fn destinations(tenant: usize) -> Vec<[u8; 6]> {
    let own = [1, 2, 3].map(|n| host(tenant, n));
    let others = [host(1 - tenant, 1), host(1 - tenant, 3), STRANGER, BROADCAST, EVERY_NODE];
    own.into_iter().chain(others).collect()
}

/// Sends a frame. The result is the same as on the tenant's reference network, in which hosts at shared ports receive
/// only frames with their own address or a group address.
#[track_caller]
pub fn same(
    testbed: &mut Testbed,
    plan: &Plan,
    at: (usize, u64, u32),
    to: [u8; 6],
    note: &str,
) -> Seen {
    let (tenant, switch, port) = at;
    let frame = frame(source(plan, (switch, port)), to);
    let beside = at_hosts(plan, testbed.send_beside(tenant, switch, port, &frame));
    let mut seen = testbed.send(tenant, switch, port, &frame);
    // The other tenant has ports at the same wires.
    seen.delivered.retain(|it| it.0 == tenant || ![7, 8].contains(&it.2));
    assert_eq!(seen, beside, "{note}: {at:?} {to:x?}");
    seen
}

/// Sends a frame from each port to each destination, as [`same`] does. Gives the number of delivered frames.
#[track_caller]
pub fn all_same(testbed: &mut Testbed, plan: &Plan, tenant: usize, note: &str) -> usize {
    let mut left = 0;
    for (switch, port) in [(1, WHOLE), (1, 7), (1, 8), (2, WHOLE)] {
        for to in destinations(tenant) {
            left += same(testbed, plan, (tenant, switch, port), to, note).delivered.len();
        }
    }
    left
}

#[track_caller]
pub fn refuse(testbed: &mut Testbed, words: &str, error: &str) {
    let received = testbed.say(RED, 1, words);
    let type_ = if words.starts_with("group") { 15 } else { 14 };
    assert_eq!(received, [format!("7 ERROR {error} of type {type_} xid 7")], "{words}");
}
