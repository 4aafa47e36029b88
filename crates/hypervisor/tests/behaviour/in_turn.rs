//! Whatever a switch refuses, and whenever it says so: what a controller has said comes to what it would on a switch that does one
//! after the other and refuses the same.

use crate::support::*;
use emulate::Fault::RefuseOnce;
use proptest::prelude::*;
use std::collections::BTreeMap;

const ALL: &[&str] = &[
    "flow add prio=7 actions=output:1",
    "flow add prio=7 actions=output:2",
    "flow add prio=7 actions=group:1",
    "flow add prio=7 actions=group:2",
    "flow modify_strict prio=7 actions=output:1",
    "flow modify_strict prio=7 actions=output:3",
    "flow modify_strict prio=7 actions=group:1",
    "flow add prio=8 actions=output:1",
    "flow add prio=8 actions=group:1",
    "flow modify actions=output:2",
    "flow modify actions=group:2",
    "flow delete_strict prio=7",
    "flow delete",
    "group add id=1 buckets=output:1",
    "group add id=2 buckets=output:2",
    "group modify id=1 buckets=output:3",
    "group modify id=2 buckets=output:1",
    "group delete id=1",
    "group delete id=all",
    "barrier",
];

/// What a tenant has: its entries' actions, by their priorities, and its groups' buckets.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tables {
    entries: BTreeMap<u32, String>,
    groups: BTreeMap<u32, String>,
}

/// Whether that can be said in OpenFlow 1.0, and is exact: there a modification adds what it does not find, and what a refused
/// one was to add is what the next one modifies.
fn is_old(words: &str) -> bool {
    !words.contains("group") && !words.starts_with("flow modify ")
}

impl Tables {
    /// Does what a switch would; whether it would refuse it.
    fn refuse(&mut self, version: Version, words: &str) -> bool {
        let value = |key: &str| {
            words.split_whitespace().find_map(|word| word.strip_prefix(key)).map(str::to_owned)
        };
        let number = |key: &str| value(key).and_then(|number| number.parse::<u32>().ok());
        let (actions, id, priority) = (value("actions="), number("id="), number("prio="));
        let lacks = actions.as_ref().and_then(|it| it.strip_prefix("group:")?.parse::<u32>().ok());
        let lacks = lacks.is_some_and(|group| !self.groups.contains_key(&group));
        let mut said = words.split_whitespace();
        match (said.next().unwrap_or_default(), said.next().unwrap_or_default(), actions) {
            ("flow", "add", Some(actions)) => {
                if !lacks {
                    // One without a priority has the default.
                    self.entries.insert(priority.unwrap_or(0x8000), actions);
                }
                return lacks;
            }
            ("flow", modify, Some(actions)) => {
                let is_meant = |entry: &u32| modify == "modify" || Some(*entry) == priority;
                let is_any = self.entries.keys().any(is_meant);
                if lacks && is_any {
                    return true;
                }
                let meant = self.entries.iter_mut().filter(|(entry, _)| is_meant(entry));
                meant.for_each(|(_, it)| it.clone_from(&actions));
                if !is_any && version == Version::V1_0 {
                    return self.refuse(version, &words.replace(modify, "add"));
                }
            }
            ("flow", delete, None) => {
                let is_meant = |entry: &u32| delete == "delete" || Some(*entry) == priority;
                self.entries.retain(|entry, _| !is_meant(entry));
            }
            ("group", "delete", _) => {
                self.groups.retain(|group, _| {
                    let goes = id.is_none_or(|id| id == *group);
                    let user = format!("group:{group}");
                    self.entries.retain(|_, actions| !goes || *actions != user);
                    !goes
                });
            }
            ("group", command, _) => {
                let id = id.unwrap_or_default();
                // One that is added though it could not be deleted before is what is said last.
                if command == "modify" && !self.groups.contains_key(&id) {
                    return true;
                }
                self.groups.insert(id, value("buckets=").unwrap_or_default());
            }
            _ => {}
        }
        false
    }

    /// What the tenant is told that it has.
    fn told(version: Version, world: &mut World, seat: Seat) -> Tables {
        let mut ask = |words| {
            world.say(seat, 1, words);
            world.advance(100_000_000);
            world.heard(seat).concat()
        };
        let flows = ask("stats flow");
        let groups = if version == Version::V1_0 { String::new() } else { ask("stats group_desc") };
        let entries = flows.split("; ").filter_map(|entry| {
            let (_, after) = entry.split_once("prio=")?;
            let (priority, actions) = (after.split(' ').next()?, after.split(' ').next_back()?);
            Some((priority.parse().ok()?, actions.to_owned()))
        });
        let groups = groups.split_whitespace().filter_map(|word| word.split_once(':'));
        let groups = groups.filter_map(|(id, it)| Some((id.parse().ok()?, it.to_owned())));
        Tables { entries: entries.collect(), groups: groups.collect() }
    }
}

/// What is about to send elsewhere is not deleted for that if it does not come to.
#[test]
fn an_entry_is_deleted_for_where_it_sends() {
    for (delete, left) in [("out_port=1", 0), ("out_port=2", 1)] {
        for version in VERSIONS {
            let mut world =
                World::new(Setup { per_second: Some(1_000), ..Setup::new(version, "blue: any") });
            let blue = world.connect("blue");
            world.say(blue, 10, "flow add prio=7 actions=output:1");
            world.advance(100_000_000);
            world.switch.switch_mut().plant(vec![RefuseOnce { nth: 1 }]);
            world.say(blue, 11, "flow add prio=7 actions=output:2");
            world.say(blue, 12, &format!("flow delete {delete}"));
            world.say(blue, 13, "barrier");
            world.advance(1_000_000_000);
            let heard = world.heard(blue);
            assert!(heard[0].starts_with("11 ERROR"), "{version:?} {delete}: {heard:?}");
            assert_eq!(heard[1..], ["13 BARRIER_REPLY"], "{version:?} {delete}");
            assert_eq!(Tables::told(version, &mut world, blue).entries.len(), left, "{delete}");
            assert_eq!(world.tenant_flows().len(), left, "{version:?} {delete}");
        }
    }
}

proptest! {
    /// In slices, where a request is a message. In networks one may be several, and what comes later decides what is left of it.
    #[test]
    fn what_is_said_comes_to_what_it_would_in_turn(
        bursts in prop::collection::vec(
            (
                prop::collection::vec(prop::sample::select(ALL), 1..7),
                prop::option::of(1_u32..9),
            ),
            1..4,
        ),
    ) {
        for version in VERSIONS {
            let mut world =
                World::new(Setup { per_second: Some(1_000), ..Setup::new(version, "blue: any") });
            let blue = world.connect("blue");
            let mut tables = Tables::default();
            for (steps, refused) in &bursts {
                let can = |words: &&&str| version != Version::V1_0 || is_old(words);
                let steps: Vec<(u32, &&str)> = (10..).zip(steps.iter().filter(can)).collect();
                let faults = refused.iter().map(|&nth| RefuseOnce { nth }).collect();
                world.switch.switch_mut().plant(faults);
                for (xid, words) in &steps {
                    world.say(blue, *xid, words);
                }
                world.advance(1_000_000_000);
                world.switch.switch_mut().plant(Vec::new());
                let heard = world.heard(blue);
                for (xid, words) in steps {
                    let refused = format!("{xid} ERROR");
                    if !heard.iter().any(|it| it.starts_with(&refused)) {
                        prop_assert!(!tables.refuse(version, words), "{words}: {heard:?}");
                    }
                }
                let told = Tables::told(version, &mut world, blue);
                prop_assert_eq!(&told, &tables, "{:?} {:?}", version, heard);
                prop_assert_eq!(world.tenant_flows().len(), told.entries.len());
                prop_assert_eq!(world.switch.switch().group_count(), told.groups.len());
            }
        }
    }
}
