//! Networks of two tenants. Requests and packets must have the same result on the testbed and on switches of the
//! tenant's own.

use super::*;

/// Two tenants on three switches, with the same addresses and port numbers. The second tenant's link from the first
/// switch to the third passes through the second switch, and leaves by the same port as its link to the second switch.
/// The second tenant's links are a ring.
pub fn two_networks() -> Vec<Plan> {
    let red = Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 1), (3, 1, 1)],
        links: vec![[(1, 10), (2, 10)], [(2, 11), (3, 10)]],
        ..Plan::default()
    };
    let blue = Plan {
        edges: vec![(1, 3, 1), (2, 3, 1), (3, 3, 1), (3, 4, 2)],
        links: vec![[(1, 10), (2, 10)], [(2, 11), (3, 10)], [(1, 11), (3, 11)]],
        ..Plan::default()
    };
    vec![red, blue]
}

/// Red has one big switch on all three switches. Blue has a big switch on the first two, and a switch on the third with
/// two links to the big switch.
pub fn big_networks() -> Vec<Plan> {
    let red = Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 10), (3, 1, 11)],
        big: vec![1, 2, 3],
        ..Plan::default()
    };
    let blue = Plan {
        edges: vec![(1, 3, 1), (2, 3, 2), (3, 3, 1), (3, 4, 2)],
        links: vec![[(2, 10), (3, 10)], [(1, 11), (3, 11)]],
        big: vec![1, 2],
        ..Plan::default()
    };
    vec![red, blue]
}

/// Adds a LOCAL port to both networks: the first tenant's at the LOCAL port of the second physical switch, the second
/// tenant's at a port of the first.
pub fn local(mut plans: Vec<Plan>) -> Vec<Plan> {
    plans[0].edges.push((2, LOCAL, LOCAL));
    plans[1].edges.push((1, 4, LOCAL));
    plans
}

/// A tenant sends a message in the testbed and on its reference network, and both accept the message.
pub fn both_say(testbed: &mut Testbed, tenant: usize, switch: u64, words: &str) {
    assert_eq!(testbed.say(tenant, switch, words), Vec::<String>::new(), "{words}");
    assert_eq!(testbed.say_beside(tenant, switch, words), Vec::<String>::new(), "{words}");
}

/// Sends a frame in the testbed and on the tenant's reference network. Both have the same result, which is returned.
#[track_caller]
pub fn same(testbed: &mut Testbed, tenant: usize, switch: u64, port: u32, frame: &[u8]) -> Seen {
    let seen = testbed.send(tenant, switch, port, frame);
    let beside = testbed.send_beside(tenant, switch, port, frame);
    assert_eq!(seen, beside);
    seen
}
