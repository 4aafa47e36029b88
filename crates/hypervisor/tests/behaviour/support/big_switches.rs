//! A big switch on three physical switches. The helpers show the entries of these switches and the ports that packets
//! reach.

use super::*;

/// Red has one big switch on all three physical switches: ports 1 and 2 are on the first, port 3 on the second, port 4
/// on the third.
pub fn plans() -> Vec<Plan> {
    let red = Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 3), (3, 1, 4)],
        big: vec![1, 2, 3],
        ..Plan::default()
    };
    vec![red]
}

pub fn testbed(version: Version) -> Testbed {
    Testbed::new(version, plans())
}

pub fn say(testbed: &mut Testbed, words: &str) {
    assert_eq!(testbed.say(0, 1, words), Vec::<String>::new(), "{words}");
}

pub fn everything(testbed: &Testbed) -> Vec<Vec<String>> {
    (1..=3).map(|switch| testbed.entries(switch)).collect()
}

/// The host at each port sends a packet. Gives the ports that receive each packet.
pub fn reached(testbed: &mut Testbed) -> Vec<Vec<u32>> {
    let frame = packet("10.0.0.1>10.0.0.2");
    let from = [(1, 1), (1, 2), (2, 3), (3, 4)];
    let seen = from.map(|(switch, port)| testbed.send(0, switch, port, &frame));
    seen.map(|seen| seen.delivered.iter().map(|it| it.2).collect()).to_vec()
}
