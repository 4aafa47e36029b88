//! Tests of a Weir that has lost its store and adopts the rules on the switch. Weir makes tenants' entries from these
//! rules and changes no rule.

use crate::support::*;
use hypervisor::{Event, Installation, Settings};
use std::collections::{BTreeMap, BTreeSet};

const PORTS: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";

const FLOW_MOD: u8 = 14;

fn settings(adopts: bool) -> Settings {
    let installation = Installation::new(0x5a3).unwrap();
    Settings { installation, adopts, ..Settings::default() }
}

fn world(version: Version) -> World {
    World::new(Setup { settings: settings(false), ..Setup::new(version, PORTS) })
}

/// Starts another Weir with an empty store, which adopts the rules. Asserts that Weir sends requests to the switch, but
/// no FLOW_MOD.
fn lose_store(world: &mut World) {
    world.south.clear();
    world.another_weir(settings(true), BTreeMap::new());
    let sent = world.south_types();
    assert!(!sent.contains(&FLOW_MOD) && !sent.is_empty(), "{:?}: {sent:?}", world.version);
}

fn adopted(world: &World) -> Vec<(usize, usize)> {
    let adopted = world.events.iter().filter_map(|event| match event {
        Event::Adopted { entries, left } => Some((*entries, *left)),
        _ => None,
    });
    adopted.collect()
}

#[test]
fn adopted_rules_become_entries_and_stay_unchanged() {
    for version in VERSIONS {
        let mut world = world(version);
        let red = world.connect("red");
        for (xid, words) in [
            (1, "flow add match=in_port=1 prio=5 idle=30 hard=60 cookie=7 actions=output:2"),
            (2, "flow add match=ip,nw_dst=10.1.0.0/16 prio=9 actions=output:1,output:2"),
            (3, "flow add match=in_port=2,arp prio=4 actions=controller"),
        ] {
            world.say(red, xid, words);
        }
        let blue = world.connect("blue");
        world.say(blue, 4, "flow add match=in_port=3 actions=");
        assert_eq!((world.heard(red), world.heard(blue)), (Vec::new(), Vec::new()));
        assert_eq!(world.packet(1, &packet("10.1.0.1>10.2.0.2")), [2]);
        let rules = world.switch_entries();
        lose_store(&mut world);
        assert_eq!(adopted(&world), [(4, 0)], "{version:?}");
        assert_eq!(world.switch_entries(), rules, "{version:?}: with their cookies");
        assert_eq!(world.packet(1, &packet("10.1.0.1>10.2.0.2")), [2], "{version:?}");
        // Later sessions keep the rules from the new store, with and without the setting `adopts`.
        for adopts in [true, false] {
            let store = world.store.clone();
            world.another_weir(settings(adopts), store);
            let is_kept = world.events.iter().any(|event| {
                matches!(event, Event::Reconciled { installed: 0, removed: 0, kept: 4.., .. })
            });
            assert!(is_kept, "{version:?}: {:?}", world.events);
            assert_eq!(world.switch_entries(), rules, "{version:?}");
            assert_eq!(adopted(&world), [], "{version:?}: once");
        }
    }
}

#[test]
fn a_tenant_can_read_and_delete_its_adopted_entries() {
    let script = "
        red> 1 flow add match=in_port=1 prio=5 hard=60 cookie=7 actions=output:2
        red> 2 flow add match=ip,nw_dst=10.1.0.0/16 prio=9 actions=output:1,output:2
        wire> 1 10.1.0.1>10.2.0.2
        wire< 2
        wait 10s
    ";
    for version in VERSIONS {
        let mut world = world(version);
        play(&mut world, script);
        lose_store(&mut world);
        assert_eq!(adopted(&world), [(2, 0)], "{version:?}");
        // On 1.0, the second entry is two rules on the switch. The first entry has counted one packet.
        play(
            &mut world,
            "
            red> 3 stats aggregate
            red< 3 STATS aggregate flows=2 n=1
            red> 4 stats aggregate match=ip,nw_dst=10.1.0.0/16
            red< 4 STATS aggregate flows=1 n=0
            wait 51s
            red< FLOW_REMOVED prio=5 in_port=1 cookie=0x0 HARD_TIMEOUT n=1
            red> 5 flow delete match=ip,nw_dst=10.1.0.0/16
            red< FLOW_REMOVED prio=9 ip,nw_dst=10.1.0.0/16 cookie=0x0 DELETE n=0
            count= 0
        ",
        );
    }
}

#[test]
fn rules_that_cannot_be_adopted_stay_on_the_switch() {
    for version in VERSIONS {
        let mut world = world(version);
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.say(red, 1, "flow add match=in_port=1 prio=5 actions=");
        world.say(red, 2, "flow add match=in_port=1,arp prio=6 actions=output:2");
        world.say(blue, 3, "flow add match=in_port=3 actions=controller");
        let mut count = 2;
        if version == Version::V1_3 {
            world.say(red, 4, "group add id=1 buckets=output:1");
            world.say(red, 5, "flow add match=in_port=1,ip actions=group:1");
            count += 1;
        }
        let rules = world.tenant_flows();
        // The new policy removes port 2 from red, and removes blue.
        world.expect_policy(policy("red: in_port=1"));
        world.another_weir(settings(true), BTreeMap::new());
        assert_eq!(adopted(&world), [(1, count)], "{version:?}");
        assert_eq!(world.tenant_flows(), rules, "{version:?}");
        let left = Event::LeftOthers(BTreeMap::from([(settings(true).installation, count)]));
        assert!(world.events.contains(&left), "{version:?}: {:?}", world.events);
        assert_eq!(world.core.counters().others_entries, count as u64);

        // In later sessions too, new entries do not get the numbers of rules that were not adopted.
        for adopts in [true, false] {
            let store = world.store.clone();
            world.another_weir(settings(adopts), store);
            let red = world.connect("red");
            let prio = 20 + u8::from(adopts);
            world.say(red, 7, &format!("flow add match=in_port=1 prio={prio} actions="));
        }
        let mut cookies = world.switch_entries();
        cookies.retain(|entry| entry.contains("0x55a30001"));
        let numbers: BTreeSet<&str> =
            cookies.iter().filter_map(|it| it.split("0x55a30001").nth(1)?.get(..8)).collect();
        assert_eq!(numbers.len(), cookies.len(), "{version:?}: {cookies:?}");
        assert_eq!(world.tenant_flows().len(), rules.len() + 2, "{version:?}");

        // Rules that were not adopted are deleted when the operator has Weir take them over.
        let taking = Settings { takes_over: Some(settings(false).installation), ..settings(false) };
        let store = world.store.clone();
        world.another_weir(taking, store);
        assert_eq!(world.tenant_flows().len(), 3, "{version:?}: {:?}", world.tenant_flows());
    }
}
