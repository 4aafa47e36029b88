//! Random networks on switches of OpenFlow 1.0 and 1.3 together, with random requests and packets.

use super::courses::{Case, Names, command, group_mod, merging, port_mod};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const V1_0: Version = Version::V1_0;
const V1_3: Version = Version::V1_3;

/// Blue's link from the first switch to the third passes through the second.
pub const ALL: [Versions; 4] =
    [[V1_3, V1_0, V1_3], [V1_3, V1_3, V1_0], [V1_0, V1_3, V1_3], [V1_0, V1_0, V1_3]];

/// Random cases with one of these sets of versions. Each command is in the words of the version that its switch speaks.
pub fn cases(versions: &[Versions]) -> impl Strategy<Value = (Versions, Case)> + use<> {
    // Frames with tags do not cross links to switches of 1.0.
    let has_none = |words: &Vec<String>| words.iter().all(|it| !it.contains("_vlan"));
    let without = move |words| if has_none(&words) { words } else { Vec::new() };
    let v13 = prop_oneof![
        9 => command(V1_3, Names::of_hosts(0.3)).prop_map(|words| vec![words]),
        2 => port_mod(V1_3).prop_map(|words| vec![words]),
        5 => group_mod().prop_map(|words| vec![words]),
        3 => merging(),
    ]
    .prop_map(without);
    let v10 = prop_oneof![9 => command(V1_0, Names::of_hosts(0.3)), 2 => port_mod(V1_0)]
        .prop_map(|it| vec![it])
        .prop_map(without);
    let said = (0..2usize, 1..=3u64, v13, v10);
    let packet = (0..2usize, 0..5usize, Just(None), 0..3u8, 0..3u8);
    let cut = [prop::bool::weighted(0.15), prop::bool::weighted(0.15)];
    let switches = (select(versions.to_vec()), any::<bool>(), any::<bool>());
    (switches, vec(said, 1..14), cut, vec(packet, 1..8)).prop_map(
        |((versions, runs_sets, spreads), said, cut, packets)| {
            let words = |(tenant, switch, v13, v10): (usize, u64, Vec<String>, Vec<String>)| {
                let words = if versions[switch as usize - 1] == V1_3 { v13 } else { v10 };
                words.into_iter().map(move |words| (tenant, switch, words))
            };
            let commands = said.into_iter().flat_map(words).collect();
            (versions, Case { runs_sets, spreads, commands, cut, packets })
        },
    )
}
