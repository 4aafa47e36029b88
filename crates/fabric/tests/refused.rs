//! Tests of physical switches that refuse transit rules, and of paths around these switches.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod common;

use common::spec::*;
use common::walk::{Arrived, port};
use fabric::embedding::{Changes, Embedding, PortChange, Spec, Transit, Trouble};
use fabric::paths::Disjoint;
use fabric::{Dpid, Network};
use std::collections::BTreeSet;

/// The transits of a switch.
fn passing(embedding: &Embedding, dpid: u64) -> BTreeSet<Transit> {
    let map = embedding.switch_map(Dpid(dpid));
    map.into_iter().flat_map(|map| map.transit.iter().copied()).collect()
}

/// A switch refuses all its transits.
fn refuse(network: &Network, embedding: &mut Embedding, dpid: u64) -> Changes {
    let refused = passing(embedding, dpid);
    assert!(!refused.is_empty());
    embedding.handle_refused(network, Dpid(dpid), &refused)
}

/// The second switch on the path of red's link, and the second switch on its backup.
fn ways(embedding: &Embedding) -> [Option<u64>; 2] {
    let (_, status) = embedding.trunks(RED).next().unwrap();
    [status.active, status.backup].map(|route| Some(route?.wires[0].to.dpid.0))
}

fn is_joined(network: &Network, embedding: &Embedding) -> bool {
    reach(network, embedding, RED, virtual_port(0xa1, 2))
        == [Arrived::In(RED, virtual_port(0xa3, 2))]
}

fn placed(change: impl FnOnce(&mut Spec)) -> (Network, Embedding) {
    let (network, mut embedding, mut spec) = (ring(), embedding(), two());
    change(&mut spec);
    embedding.apply(&network, &wanted(&[(RED, &spec)])).unwrap();
    (network, embedding)
}

#[test]
fn a_link_moves_to_a_path_around_a_switch_that_refuses_its_rules() {
    let (network, mut embedding) = placed(|_| {});
    assert_eq!(ways(&embedding), [Some(2), None]);
    let changes = refuse(&network, &mut embedding, 2);
    // The tenant sees no change.
    assert_eq!(changes.ports, []);
    assert_eq!(ways(&embedding), [Some(4), None]);
    assert!(is_joined(&network, &embedding));
    assert_eq!(passing(&embedding, 2), BTreeSet::new());
    // The link stays on this path while the network does not change.
    assert!(embedding.handle_changes(&network).is_empty());
}

#[test]
fn a_backup_replaces_a_refused_path_and_exists_again_after_recovery() {
    let (mut network, mut embedding) = placed(|spec| {
        spec.links[0].protection = Some(Disjoint::Switches);
        spec.links[0].reverts = true;
    });
    assert_eq!(ways(&embedding), [Some(2), Some(4)]);
    refuse(&network, &mut embedding, 2);
    assert_eq!(ways(&embedding), [Some(4), None]);
    assert!(is_joined(&network, &embedding));
    // A physical link of other switches that goes down and up again does not change the refusal.
    for up in [false, true] {
        network.set_port_up(port(3, 2), up).unwrap();
        embedding.handle_changes(&network);
        assert_eq!(ways(&embedding)[0], up.then_some(4));
    }
    for up in [false, true] {
        network.set_port_up(port(2, 2), up).unwrap();
        embedding.handle_changes(&network);
    }
    assert_eq!(ways(&embedding), [Some(2), Some(4)]);
    // The same holds for a switch that only the backup uses.
    assert_eq!(refuse(&network, &mut embedding, 4).ports, []);
    assert_eq!(ways(&embedding), [Some(2), None]);
}

#[test]
fn a_refused_link_without_another_path_is_down_with_the_reason() {
    let (mut network, mut embedding) = placed(|_| {});
    refuse(&network, &mut embedding, 2);
    let changes = refuse(&network, &mut embedding, 4);
    let change = |switch, was| PortChange {
        tenant: RED,
        port: virtual_port(switch, 2),
        was: Some(was),
        is: Some(!was),
    };
    assert_eq!(changes.ports, [change(0xa1, true), change(0xa3, true)]);
    assert_eq!((ways(&embedding), is_joined(&network, &embedding)), ([None, None], false));
    let (_, status) = embedding.trunks(RED).next().unwrap();
    let trouble = status.trouble.unwrap();
    assert_eq!(trouble, Trouble::Refused(Dpid(2)));
    let said =
        "physical switch 00:00:00:00:00:00:00:02 refuses its entries, and no other way is left";
    assert_eq!(trouble.to_string(), said);

    network.set_port_up(port(4, 2), false).unwrap();
    assert_eq!(embedding.handle_changes(&network).ports, []);
    network.set_port_up(port(4, 2), true).unwrap();
    let changes = embedding.handle_changes(&network);
    assert_eq!(changes.ports, [change(0xa1, false), change(0xa3, false)]);
    assert_eq!(ways(&embedding), [Some(4), None]);
}

#[test]
fn links_of_another_tenant_stay_on_a_switch_that_refuses_a_link() {
    let (network, mut embedding, mut other) = (ring(), embedding(), two());
    other.ports.clear();
    other.hosts.clear();
    embedding.apply(&network, &wanted(&[(RED, &two()), (BLUE, &other)])).unwrap();
    let both = passing(&embedding, 2);
    let (_, reds) = embedding.trunks(RED).next().unwrap();
    let reds: BTreeSet<u16> =
        reds.active.unwrap().tags.values().flatten().map(|tag| tag.get()).collect();
    let refused: BTreeSet<Transit> =
        both.iter().filter(|it| reds.contains(&it.from.tag.get())).copied().collect();
    assert_eq!((both.len(), refused.len()), (4, 2));
    embedding.handle_refused(&network, Dpid(2), &refused);
    assert_eq!(ways(&embedding), [Some(4), None]);
    let (_, blues) = embedding.trunks(BLUE).next().unwrap();
    assert_eq!(blues.active.unwrap().wires[0].to.dpid, Dpid(2));
    // A transit that no trunk uses changes nothing.
    let maps = embedding.switch_maps().clone();
    assert!(embedding.handle_refused(&network, Dpid(2), &refused).is_empty());
    assert!(embedding.handle_refused(&network, Dpid(9), &both).is_empty());
    assert_eq!(embedding.switch_maps(), &maps);
}

#[test]
fn a_link_held_over_a_restart_moves_around_a_refusing_switch() {
    let (network, before) = placed(|_| {});
    let mut after = embedding();
    after.restore(&before.export()).unwrap();
    after.apply(&Network::default(), &wanted(&[(RED, &two())])).unwrap();
    assert!(after.trunks(RED).all(|(_, status)| status.is_held));
    // The topology has not been discovered yet, so no trunk has a path.
    refuse(&Network::default(), &mut after, 2);
    assert_eq!(ways(&after), [None, None]);
    after.handle_changes(&network);
    refuse(&network, &mut after, 2);
    assert_eq!(ways(&after), [Some(4), None]);
    assert!(is_joined(&network, &after));
}
