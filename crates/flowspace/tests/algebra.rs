//! Tests that compare every operation of the algebra, packet by packet, with a brute-force oracle over the enumerated
//! space of `common/small.rs`.

mod common;

use common::small::{Kind, Point, Spec, points, spec};
use flowspace::{Field, Match, MiniMatch, MiniWords, covered_by, wins_everywhere};
use openflow::v10::Action;
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_match_matches_exactly_the_specified_packets(spec in spec()) {
        let match_ = spec.to_match();
        for point in points() {
            prop_assert_eq!(match_.matches(&point.key()), spec.admits(&point), "{:?}", point);
        }
    }

    #[test]
    fn a_mini_match_is_the_same_match(a in spec(), b in spec()) {
        let (a, b) = (a.to_match(), b.to_match());
        let mini = MiniMatch::new(&a);
        prop_assert_eq!(mini.to_match(), a);
        prop_assert!(mini.is(&a));
        prop_assert_eq!(mini.is(&b), a == b);
        prop_assert_eq!(mini == MiniMatch::new(&b), a == b);
        prop_assert_eq!(mini.is_within(&MiniWords::of(&b)), b.contains(&a));
        for point in points() {
            prop_assert_eq!(mini.matches(&point.key()), a.matches(&point.key()));
        }
    }

    #[test]
    fn intersect_and_overlap(a in spec(), b in spec()) {
        let both = a.to_match().intersect(&b.to_match());
        let mut shared = false;
        for point in points() {
            let expected = a.admits(&point) && b.admits(&point);
            shared |= expected;
            prop_assert_eq!(
                both.is_some_and(|both| both.matches(&point.key())),
                expected,
                "{:?}",
                point
            );
        }
        prop_assert_eq!(both.is_some(), shared);
        prop_assert_eq!(a.to_match().overlaps(&b.to_match()), shared);
        prop_assert_eq!(b.to_match().intersect(&a.to_match()), both);
    }

    #[test]
    fn contains(a in spec(), b in spec()) {
        let expected = points().iter().all(|point| a.admits(point) || !b.admits(point));
        prop_assert_eq!(a.to_match().contains(&b.to_match()), expected);
    }

    /// Equal sets are equal values: this is the purpose of the canonical form.
    #[test]
    fn equal_sets_are_equal(a in spec(), b in spec()) {
        let same = points().iter().all(|point| a.admits(point) == b.admits(point));
        prop_assert_eq!(a.to_match() == b.to_match(), same);
    }

    /// The pieces are disjoint, and together they are the difference.
    #[test]
    fn subtract(a in spec(), b in spec()) {
        let pieces: Vec<Match> = a.to_match().subtract(&b.to_match()).collect();
        for point in points() {
            let key = point.key();
            let holding = pieces.iter().filter(|piece| piece.matches(&key)).count();
            let expected = a.admits(&point) && !b.admits(&point);
            prop_assert_eq!(holding, usize::from(expected), "{:?} in {:?}", point, pieces);
        }
        for (index, piece) in pieces.iter().enumerate() {
            prop_assert!(a.to_match().contains(piece));
            prop_assert!(!b.to_match().overlaps(piece));
            for other in &pieces[index + 1..] {
                prop_assert!(!piece.overlaps(other), "{:?} and {:?}", piece, other);
            }
        }
    }

    /// A second subtraction works on pieces, which have masks that no message can have.
    #[test]
    fn subtract_twice(a in spec(), b in spec(), c in spec()) {
        let pieces: Vec<Match> = a
            .to_match()
            .subtract(&b.to_match())
            .flat_map(|piece| piece.subtract(&c.to_match()))
            .collect();
        for point in points() {
            let key = point.key();
            let holding = pieces.iter().filter(|piece| piece.matches(&key)).count();
            let expected = a.admits(&point) && !b.admits(&point) && !c.admits(&point);
            prop_assert_eq!(holding, usize::from(expected), "{:?} in {:?}", point, pieces);
        }
    }

    #[test]
    fn union_covers(region in spec(), parts in prop::collection::vec(spec(), 0..6)) {
        let expected = points()
            .iter()
            .filter(|point| region.admits(point))
            .all(|point| parts.iter().any(|part| part.admits(point)));
        let parts: Vec<Match> = parts.into_iter().map(Spec::to_match).collect();
        prop_assert_eq!(covered_by(&region.to_match(), &parts, usize::MAX), expected);
        // A limit may only change the answer from yes to no.
        prop_assert!(expected || !covered_by(&region.to_match(), &parts, 3));
    }

    #[test]
    fn winning_everywhere(
        region in spec(),
        entries in prop::collection::vec((spec(), 0..2u8), 0..7),
    ) {
        let expected = points().iter().filter(|point| region.admits(point)).all(|point| {
            let first = entries.iter().find(|(spec, _)| spec.admits(point));
            first.is_some_and(|(_, owner)| *owner == 0)
        });
        let entries: Vec<(Match, u8)> =
            entries.into_iter().map(|(spec, owner)| (spec.to_match(), owner)).collect();
        let ranked = || entries.iter().map(|(match_, owner)| (match_, owner));
        let region = region.to_match();
        prop_assert_eq!(wins_everywhere(&region, ranked(), &0, usize::MAX), expected);
        prop_assert!(expected || !wins_everywhere(&region, ranked(), &0, 2));
    }

    /// For each field, the image is exactly the set of rewritten packets if all packets have the
    /// field, and never a smaller set.
    #[test]
    fn rewrite(set in spec(), value in 0..2u16, action in 0..4usize) {
        let match_ = set.to_match();
        let (field, image) = [
            (Field::InPort, match_.rewrite(Field::InPort, value.into())),
            (Field::NwSrc, match_.rewrite(Field::NwSrc, value.into())),
            (Field::TpSrc, match_.rewrite(Field::TpSrc, value.into())),
            (Field::VlanVid, match_.rewrite(Field::VlanVid, value.into())),
        ][action];
        let mut images = Vec::new();
        for point in points().iter().filter(|point| set.admits(point)) {
            let mut after = *point;
            match (field, &mut after.kind) {
                (Field::InPort, _) => after.in_port = value.into(),
                (Field::VlanVid, _) => after.tag = after.tag.map(|(_, pcp)| (value, pcp)),
                (Field::NwSrc, Kind::Ipv4 { src, .. } | Kind::Arp { spa: src, .. }) => {
                    *src = value.into();
                }
                (
                    Field::TpSrc,
                    Kind::Ipv4 { ports: Some(port), .. } | Kind::Ipv6 { port: Some(port), .. },
                ) => *port = value,
                _ => {}
            }
            prop_assert!(image.matches(&after.key()), "{:?} became {:?}", point, after);
            images.push(after);
        }
        let all_have_it = match_.permits(field) && (field != Field::VlanVid || match_.is_tagged());
        if all_have_it {
            for point in points() {
                prop_assert_eq!(image.matches(&point.key()), images.contains(&point));
            }
        }
    }

    /// The image under a VLAN action of OpenFlow 1.0 is exact for every set.
    #[test]
    fn vlan_actions_of_v10(set in spec(), value in 0..2u8, which in 0..3usize) {
        let match_ = set.to_match();
        let action =
            [Action::SetVlanVid(value.into()), Action::SetVlanPcp(value), Action::StripVlan][which];
        let image = match_.image_v10(&action);
        for point in points().iter().filter(|point| set.admits(point)) {
            let (vid, pcp) = point.tag.unwrap_or((0, 0));
            let tag = match action {
                Action::SetVlanVid(vid) => Some((vid, pcp)),
                Action::SetVlanPcp(pcp) => Some((vid, pcp)),
                _ => None,
            };
            let after = Point { tag, ..*point };
            prop_assert!(image.matches(&after.key()), "{:?} became {:?}", point, after);
        }
        // After a set-action the image has only the new value.
        match action {
            Action::SetVlanVid(vid) => {
                prop_assert_eq!(image.exact_value(Field::VlanVid), Some(0x1000 | u128::from(vid)));
            }
            Action::SetVlanPcp(pcp) => {
                prop_assert!(image.is_tagged());
                prop_assert_eq!(image.exact_value(Field::VlanPcp), Some(pcp.into()));
            }
            _ => {}
        }
    }

    /// The image covers both kinds of new tags (copied from the old tag, or zero), and any tag
    /// under a popped tag.
    #[test]
    fn push_and_pop_vlan(set in spec(), under in prop::option::of((0..4u16, 0..3u8))) {
        let match_ = set.to_match();
        let (pushed, popped) = (match_.push_vlan(), match_.pop_vlan());
        for point in points().iter().filter(|point| set.admits(point)) {
            let copied = Point { tag: Some(point.tag.unwrap_or((0, 0))), ..*point };
            let zero = Point { tag: Some((0, 0)), ..*point };
            prop_assert!(pushed.matches(&copied.key()) && pushed.matches(&zero.key()));
            let below = Point { tag: point.tag.and(under), ..*point };
            prop_assert!(popped.matches(&below.key()));
        }
        prop_assert!(pushed.is_tagged());
    }

    /// These laws need no oracle, and hold for all fields.
    #[test]
    fn laws_over_all_fields(a in common::any_match(), b in common::any_match()) {
        prop_assert!(Match::ANY.contains(&a) && a.contains(&a));
        prop_assert_eq!(a.intersect(&a), Some(a));
        prop_assert_eq!(a.subtract(&a).next(), None);
        prop_assert_eq!(a.intersect(&b).is_some(), a.overlaps(&b));
        if let Some(both) = a.intersect(&b) {
            prop_assert!(a.contains(&both) && b.contains(&both));
            prop_assert_eq!(a.contains(&b), both == b);
        }
        let pieces: Vec<Match> = a.subtract(&b).collect();
        prop_assert!(pieces.iter().all(|piece| a.contains(piece) && !b.overlaps(piece)));
        prop_assert!(covered_by(&a, pieces.iter().chain([&b]), usize::MAX));
        for piece in &pieces {
            for field in Field::ALL {
                prop_assert!(
                    piece.is_wild(field) || shares_bits(field) || piece.permits(field),
                    "{:?} without its prerequisite in {:?}",
                    field,
                    piece
                );
            }
        }
    }

    #[test]
    fn with_and_without(match_ in common::any_match(), field in prop::sample::select(&Field::ALL[..]), value: u128) {
        let with = match_.with(field, value);
        if field == Field::VlanVid {
            let vid = value & 0x1fff;
            let expected = if vid & 0x1fff == 0 { 0 } else { vid | 0x1000 };
            prop_assert_eq!(with.exact_value(field), Some(expected & 0x1fff));
        } else {
            prop_assert_eq!(with.exact_value(field), Some(value & field.full_mask()));
        }
        prop_assert!(with.permits(field) || field == Field::InPhyPort);
        let without = with.without(field);
        prop_assert!(without.contains(&with));
        prop_assert!(without.is_wild(field) || field == Field::VlanVid || with.is_untagged());
    }
}

/// Fields whose bits may be set because another field has them.
fn shares_bits(field: Field) -> bool {
    matches!(
        field,
        Field::ArpOp
            | Field::NwProto
            | Field::MplsLabel
            | Field::MplsTc
            | Field::MplsBos
            | Field::PbbIsid
            // An untagged frame's priority is matched as zero.
            | Field::VlanPcp
    )
}
