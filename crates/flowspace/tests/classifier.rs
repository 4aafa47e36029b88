//! Tests that compare the classifier with a linear scan.

mod common;

use common::small::{points, spec};
use flowspace::{Classifier, EntryId, Key, Match};
use proptest::prelude::*;
use proptest::sample::Index;

/// The reference: a list that is scanned from the front.
#[derive(Default)]
struct Scan {
    /// In the order of insertion.
    entries: Vec<(EntryId, Match, u32, usize)>,
}

impl Scan {
    fn best(&self, key: &Key) -> Option<EntryId> {
        // `max_by_key` would return the last of equal entries.
        let matching = self.entries.iter().filter(|(_, match_, ..)| match_.matches(key));
        matching.rev().max_by_key(|(_, _, priority, _)| *priority).map(|(id, ..)| *id)
    }

    fn ids(&self, wanted: impl Fn(&Match) -> bool) -> Vec<EntryId> {
        sorted(self.entries.iter().filter(|(_, m, ..)| wanted(m)).map(|(id, ..)| *id))
    }
}

fn sorted(ids: impl Iterator<Item = EntryId>) -> Vec<EntryId> {
    let mut ids: Vec<EntryId> = ids.collect();
    ids.sort();
    ids
}

#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "few of them, for a moment")]
enum Step {
    Insert(Match, u32),
    /// The same match as an existing entry.
    InsertAgain(Index, u32),
    Remove(Index),
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let match_ = prop_oneof![
        3 => spec().prop_map(|spec| spec.to_match()),
        1 => common::any_match(),
    ];
    prop_oneof![
        60 => (match_, 0..4u32).prop_map(|(match_, priority)| Step::Insert(match_, priority)),
        30 => (any::<Index>(), 0..4u32).prop_map(|(at, priority)| Step::InsertAgain(at, priority)),
        40 => any::<Index>().prop_map(Step::Remove),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn equals_a_linear_scan(
        steps in prop::collection::vec(step(), 1..60),
        probes in prop::collection::vec(any::<Index>(), 20),
        regions in prop::collection::vec(spec(), 3),
    ) {
        let points = points();
        let mut classifier = Classifier::new();
        let mut scan = Scan::default();
        let mut gone = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(match_, priority) => {
                    let id = classifier.insert(match_, priority, number);
                    scan.entries.push((id, match_, priority, number));
                }
                Step::InsertAgain(at, priority) if !scan.entries.is_empty() => {
                    let match_ = scan.entries[at.index(scan.entries.len())].1;
                    let id = classifier.insert(match_, priority, number);
                    scan.entries.push((id, match_, priority, number));
                }
                Step::Remove(at) if !scan.entries.is_empty() => {
                    let (id, _, _, value) = scan.entries.remove(at.index(scan.entries.len()));
                    prop_assert_eq!(classifier.remove(id), Some(value));
                    gone.push(id);
                }
                Step::Clear => {
                    classifier.clear();
                    gone.extend(scan.entries.drain(..).map(|(id, ..)| id));
                }
                _ => {}
            }
            prop_assert_eq!(classifier.len(), scan.entries.len());
            prop_assert_eq!(classifier.is_empty(), scan.entries.is_empty());
            // The check is frequent enough to see intermediate states, and rare enough to be quick.
            if number % 8 == 7 {
                for probe in &probes {
                    let key = points[probe.index(points.len())].key();
                    prop_assert_eq!(classifier.lookup(&key).map(|entry| entry.id), scan.best(&key));
                }
            }
        }
        for probe in &probes {
            let key = points[probe.index(points.len())].key();
            prop_assert_eq!(classifier.lookup(&key).map(|entry| entry.id), scan.best(&key));
            let mut all = Vec::new();
            classifier.for_each_match(&key, |entry| all.push(entry.id));
            prop_assert_eq!(sorted(all.into_iter()), scan.ids(|m| m.matches(&key)));
        }
        for (id, match_, priority, value) in &scan.entries {
            let entry = classifier.get(*id).expect("still there");
            prop_assert_eq!((entry.id, entry.match_, entry.priority), (*id, match_, *priority));
            prop_assert_eq!(entry.value, value);
            let first = scan.entries.iter().find(|(_, m, p, _)| (m, p) == (match_, priority));
            prop_assert_eq!(classifier.find_strict(match_, *priority), first.map(|(id, ..)| *id));
            let absent = classifier.find_strict(match_, 77);
            prop_assert_eq!(absent, None);
        }
        for region in regions.into_iter().map(|spec| spec.to_match()) {
            prop_assert_eq!(
                sorted(classifier.overlapping(&region).map(|entry| entry.id)),
                scan.ids(|m| m.overlaps(&region))
            );
            prop_assert_eq!(
                sorted(classifier.contained_in(&region).map(|entry| entry.id)),
                scan.ids(|m| region.contains(m))
            );
        }
        prop_assert_eq!(sorted(classifier.iter().map(|entry| entry.id)), scan.ids(|_| true));
        let mut masks: Vec<_> = scan.entries.iter().map(|(_, m, ..)| mask_of(m)).collect();
        masks.sort();
        masks.dedup();
        prop_assert_eq!(classifier.tuple_count(), masks.len());
        for id in gone {
            prop_assert!(classifier.get(id).is_none());
            prop_assert!(classifier.get_mut(id).is_none());
            prop_assert_eq!(classifier.remove(id), None);
        }
    }
}

fn mask_of(match_: &Match) -> Vec<u128> {
    flowspace::Field::ALL.iter().map(|field| match_.get(*field).1).collect()
}

#[test]
fn the_first_entry_of_equal_priority_is_found_until_removed() {
    let ip: Match = "ip".parse().unwrap();
    let tcp: Match = "tcp".parse().unwrap();
    let key =
        Key::default().with(flowspace::Field::DlType, 0x800).with(flowspace::Field::NwProto, 6);
    let mut classifier = Classifier::new();
    let first = classifier.insert(ip, 5, 'a');
    let second = classifier.insert(tcp, 5, 'b');
    let third = classifier.insert(ip, 5, 'c');
    let best = |classifier: &Classifier<char>| classifier.lookup(&key).map(|entry| *entry.value);
    assert_eq!(best(&classifier), Some('a'));
    classifier.remove(first);
    assert_eq!(best(&classifier), Some('b'));
    classifier.remove(second);
    assert_eq!(best(&classifier), Some('c'));
    *classifier.get_mut(third).unwrap() = 'd';
    assert_eq!(best(&classifier), Some('d'));
    classifier.remove(third);
    assert_eq!(best(&classifier), None);
}
