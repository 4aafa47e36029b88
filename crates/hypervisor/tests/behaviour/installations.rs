//! Tests of a switch with rules of another Weir, or of a Weir that has lost its store. Weir does not change these rules
//! unless the operator orders a takeover.

use crate::support::*;
use hypervisor::{Event, Installation, Settings};
use std::collections::BTreeMap;

const PORTS: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";

fn settings(installation: u16) -> Settings {
    let installation = Installation::new(installation).unwrap();
    Settings { installation, ..Settings::default() }
}

fn taking_over(installation: u16, from: u16) -> Settings {
    Settings { takes_over: Installation::new(from), ..settings(installation) }
}

fn world(version: Version) -> World {
    World::new(Setup { settings: settings(1), ..Setup::new(version, PORTS) })
}

/// Red adds an entry. On 1.3 red also adds a group, a meter, and an entry that uses both.
fn fill(world: &mut World) {
    let red = world.connect("red");
    if world.version == Version::V1_3 {
        world.say(red, 1, "group add id=1 buckets=output:2");
        world.say(red, 2, "meter add id=1 rate=100");
        world.say(red, 3, "flow add match=in_port=1,dl_type=0x0806 actions=meter=1;group:1");
    }
    world.say(red, 4, "flow add match=in_port=1 prio=5 actions=output:2");
    assert_eq!(world.heard(red), [""; 0]);
}

/// The installations whose rules the switch holds, and the number of these rules, from the core's reports.
fn left(world: &World) -> Vec<(String, usize)> {
    let reported = world.events.iter().filter_map(|event| match event {
        Event::LeftOthers(left) => Some(left),
        _ => None,
    });
    reported.flatten().map(|(it, rules)| (it.to_string(), *rules)).collect()
}

#[test]
fn a_weir_with_a_lost_store_leaves_the_rules_of_tenants_on_the_switch() {
    for version in VERSIONS {
        let mut world = world(version);
        fill(&mut world);
        let before = world.switch_entries();
        let groups = world.switch.switch().group_count();
        world.another_weir(settings(2), BTreeMap::new());
        let after = world.switch_entries();
        let tenants = |entries: &[String]| -> Vec<String> {
            entries.iter().filter(|it| it.contains("0x50010001")).cloned().collect()
        };
        assert_eq!(tenants(&after), tenants(&before), "{version:?}");
        assert!(!tenants(&after).is_empty(), "{before:?}");
        assert_eq!(world.switch.switch().group_count(), groups);
        let left = left(&world);
        assert!(left.len() == 1 && left[0].0 == "001" && left[0].1 > 0, "{version:?}: {left:?}");
        assert_eq!(world.core.counters().others_entries, left[0].1 as u64);
        // Red's entries still forward packets.
        assert_eq!(world.packet(1, &packet("10.1.0.1>10.1.0.2")), [2], "{version:?}");
    }
}

/// Two installations of Weir connect to the switch in turn, each with its own store.
#[test]
fn a_second_weir_leaves_the_rules_of_the_first() {
    for version in VERSIONS {
        let mut world = world(version);
        fill(&mut world);
        let first = world.another_weir(settings(2), BTreeMap::new());
        let blue = world.connect("blue");
        world.say(blue, 1, "flow add match=in_port=3 prio=5 actions=controller");
        assert_eq!(world.heard(blue), [""; 0]);
        let tenants = |world: &World| {
            let mut entries = world.tenant_flows();
            entries.sort();
            entries
        };
        let both = tenants(&world);
        let second = world.another_weir(settings(1), first);
        assert_eq!(tenants(&world), both, "{version:?}");
        world.another_weir(settings(2), second);
        assert_eq!(tenants(&world), both, "{version:?}");
        let mended = world
            .events
            .iter()
            .filter(|event| matches!(event, Event::Reconciled { removed, .. } if *removed > 0));
        assert_eq!(mended.count(), 0, "{version:?}");
    }
}

/// The tenant's controller adds the same entry through another installation. The new rule replaces the old rule on the
/// switch.
#[test]
fn a_new_equal_rule_replaces_the_rule_of_another_installation() {
    for version in VERSIONS {
        let mut world = world(version);
        fill(&mut world);
        let count = world.tenant_flows().len();
        world.another_weir(settings(2), BTreeMap::new());
        let red = world.connect("red");
        world.say(red, 1, "flow add match=in_port=1 prio=5 actions=output:2 cookie=9");
        assert_eq!(world.tenant_flows().len(), count, "{version:?}");
        world.reconnect();
        let kept = world.events.iter().any(|event| {
            matches!(event, Event::Reconciled { installed: 0, removed: 0, kept, .. } if *kept > 0)
        });
        assert!(kept, "{version:?}: {:?}", world.events);
    }
}

#[test]
fn a_takeover_removes_only_rules_of_the_configured_installation() {
    for version in VERSIONS {
        let mut world = world(version);
        fill(&mut world);
        // A takeover from an installation without rules changes nothing.
        let before = world.tenant_flows();
        world.another_weir(taking_over(2, 3), BTreeMap::new());
        assert_eq!(world.tenant_flows(), before, "{version:?}");
        world.another_weir(taking_over(2, 1), BTreeMap::new());
        assert_eq!(world.tenant_flows(), [""; 0], "{version:?}");
        assert_eq!(left(&world), [], "{version:?}");
        assert_eq!(world.core.counters().others_entries, 0);
        // Rules of the new installation stay after a reconnect.
        fill(&mut world);
        let own = world.switch_entries();
        world.reconnect();
        assert_eq!(world.switch_entries(), own, "{version:?}");
    }
}

#[test]
fn the_installation_number_is_derived_from_the_secret() {
    let of = |secret: [u8; 16]| Installation::of_secret(&secret).to_string();
    assert_eq!(of([0; 16]), of([0; 16]));
    assert_ne!(of([0; 16]), of([1; 16]));
    assert_eq!(Installation::new(0x1000), None);
    assert_eq!(Installation::new(0xa5).unwrap().to_string(), "0a5");
}
