//! A big switch on three physical switches, and what the switches hold and forward.

use super::*;

/// Red has a switch on all three physical ones, with ports 1 and 2 on the first, 3 on the second, 4 on the third.
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

/// Who gets what hosts at all ports send.
pub fn reached(testbed: &mut Testbed) -> Vec<Vec<u32>> {
    let frame = packet("10.0.0.1>10.0.0.2");
    let from = [(1, 1), (1, 2), (2, 3), (3, 4)];
    let seen = from.map(|(switch, port)| testbed.send(0, switch, port, &frame));
    seen.map(|seen| seen.delivered.iter().map(|it| it.2).collect()).to_vec()
}
