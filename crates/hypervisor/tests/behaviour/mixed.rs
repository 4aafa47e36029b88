//! Tests of networks on switches of OpenFlow 1.0 and 1.3 together. On a link between the two versions a frame has one
//! VLAN tag, the tag of the link. Frames with a VLAN tag of the tenant's do not cross such a link.

use crate::support::courses::{agree, config};
use crate::support::mixed::{ALL, cases};
use crate::support::networks::{big_networks, both_say, local, same, two_networks};
use crate::support::*;
use proptest::prelude::*;

const V1_0: Version = Version::V1_0;
const V1_3: Version = Version::V1_3;

/// Versions with which the first two switches may be members of one big switch.
const BIG: [Versions; 2] = [[V1_3, V1_3, V1_0], [V1_0, V1_0, V1_3]];

/// Red's switches are as in [`two_networks`], and blue's as in [`big_networks`]: the first two physical switches are
/// one big switch of blue's.
fn one_big() -> Vec<Plan> {
    vec![two_networks().remove(0), big_networks().remove(1)]
}

/// Whether the two ends of blue's link from the first switch to the third have different versions.
fn is_mixed(versions: &Versions) -> bool {
    versions[0] != versions[2]
}

fn frame(tag: &str) -> Vec<u8> {
    packet(&format!("{tag}10.0.0.1>10.0.0.2"))
}

/// On OpenFlow 1.0 a frame has one tag, the tag of the link. Only frames without a VLAN tag of the tenant's cross the
/// link.
#[test]
fn only_frames_without_a_vlan_tag_cross_links_between_versions() {
    for versions in ALL.into_iter().filter(is_mixed) {
        // A frame with a VLAN tag matches no entry that outputs to the link.
        for (near, far) in [(1, 3), (3, 1)] {
            let mut testbed = Testbed::mixed(versions, two_networks());
            testbed.play(&format!(
                "
                blue@1,3> flow add match=in_port=1 prio=5 actions=output:11
                blue@1,3> flow add match=in_port=11 prio=5 actions=output:1
                blue@{near}:1> 10.0.0.1>10.0.0.2 -> blue@{far}:1
            "
            ));
            for tag in ["vlan5:", "vlan8197:"] {
                let seen = testbed.send(1, near, 1, &frame(tag));
                assert_eq!(seen.delivered, [], "{versions:?}: {tag}");
            }
        }
    }
}

#[test]
fn frames_that_are_untagged_at_the_output_cross_links_between_versions() {
    for versions in ALL.into_iter().filter(|it| it[0] == V1_3 && is_mixed(it)) {
        let mut testbed = Testbed::mixed(versions, two_networks());
        both_say(&mut testbed, 1, 3, "flow add match=in_port=11 prio=5 actions=output:1");
        for (match_, actions, tags) in [
            ("dl_vlan=0xffff", "push_vlan:8100,mod_vlan_vid:9,strip_vlan,output:11", &[""][..]),
            ("vlan_tci=0x1000/0x1000", "strip_vlan,output:11", &["vlan5:", "vlan6:"]),
            // After the OUTPUT, the frame is the same as before the OUTPUT.
            ("dl_vlan=0xffff", "output:11,push_vlan:8100,mod_vlan_vid:6,output:2", &[""]),
            ("", "output:11,output:2", &[""]),
            ("", "output:2;write=output:11", &[""]),
        ] {
            let at = if actions.contains("output:2") { 3 } else { 1 };
            let words = actions.replace("output:2", "controller");
            let match_ = [match_, "in_port=1"].join(",");
            let words =
                format!("flow add match={} prio=7 actions={words}", match_.trim_matches(','));
            assert_eq!((at, testbed.say(1, 1, &words)), (at, vec![]), "{words}");
            assert_eq!(testbed.say_beside(1, 1, &words), [""; 0], "{words}");
            for tag in tags {
                let seen = same(&mut testbed, 1, 1, 1, &frame(tag));
                assert_eq!(seen.delivered.len(), 1, "{versions:?}: {words}: {tag}: {seen:?}");
            }
            both_say(&mut testbed, 1, 1, "flow delete");
        }
    }
}

/// An entry for tagged frames is refused if the entry outputs only to a link between versions. FLOOD outputs tagged
/// frames to all other ports.
#[test]
fn an_output_of_tagged_frames_only_to_a_link_between_versions_is_refused() {
    Testbed::mixed([V1_3, V1_3, V1_0], two_networks()).play(
        "
        only blue@1> flow add match=in_port=1,dl_vlan=9 prio=7 actions=output:11 -> ERROR OFPBAC_BAD_ARGUMENT
        only blue@1> flow add match=in_port=1,dl_vlan=5 prio=7 actions=mod_vlan_vid:9,output:11 -> ERROR OFPBAC_BAD_ARGUMENT
        only blue@1> flow add match=vlan_tci=0x1000/0x1000 prio=7 actions=output:11 -> ERROR OFPBAC_BAD_ARGUMENT
        only blue@1> flow add match=dl_vlan=0xffff prio=7 actions=push_vlan:8100,output:11 -> ERROR OFPBAC_BAD_ARGUMENT
        only blue@1> out in_port=controller actions=output:11 data=vlan9:10.0.0.1>10.0.0.2 -> ERROR OFPBAC_BAD_ARGUMENT
        blue@2> flow add match=in_port=10 actions=controller
        only blue@1> out in_port=1 actions=flood data=vlan9:10.0.0.1>10.0.0.2
        blue@2< PACKET_IN 10 ACTION vlan9:10.0.0.1>10.0.0.2
        only blue@1> out in_port=1 actions=output:10 data=vlan9:10.0.0.1>10.0.0.2
        blue@2< PACKET_IN 10 ACTION vlan9:10.0.0.1>10.0.0.2
        only blue@1> flow add match=in_port=1,dl_vlan=9 actions=flood
        only blue@1:1> vlan9:10.0.0.1>10.0.0.2
        blue@2< PACKET_IN 10 ACTION vlan9:10.0.0.1>10.0.0.2
    ",
    );
}

#[test]
fn a_packet_out_may_use_a_link_between_versions_as_output_or_in_port() {
    for versions in ALL.into_iter().filter(is_mixed) {
        let mut testbed = Testbed::mixed(versions, two_networks());
        for (near, far) in [(1, 3), (3, 1)] {
            testbed.play(&format!(
                "
                blue@{far}> flow add match=in_port=11 prio=5 actions=output:1
                blue@{near}> out in_port=1 actions=output:11 data=10.0.0.1>10.0.0.2 -> same
                blue@{near}> out in_port=1 actions=flood data=10.0.0.1>10.0.0.2 -> same
                blue@{near}> out in_port=1 actions=mod_dl_src:02.00.00.00.00.77,output:11 data=10.0.0.1>10.0.0.2 -> same
                blue@{far}> out in_port=11 actions=table data=10.0.0.1>10.0.0.2 -> blue@{far}:1
            "
            ));
        }
    }
}

#[test]
fn ports_on_1_3_count_received_bytes_without_the_tag_of_the_link() {
    for versions in [[V1_0, V1_0, V1_3], [V1_3, V1_3, V1_0], [V1_0; 3]] {
        let mut testbed = Testbed::mixed(versions, two_networks());
        both_say(&mut testbed, 1, 1, "flow add match=in_port=1 actions=output:11");
        let frames = ["10.0.0.1>10.0.0.2", "10.0.0.1>10.0.0.0"].map(packet);
        for frame in &frames {
            testbed.send(1, 1, 1, frame);
        }
        let bytes: usize = frames.iter().map(Vec::len).sum();
        let came = (2, bytes as u64);
        // Only an end on 1.3 counts received packets. The number of sent packets is not known, because only the other
        // end counts these packets.
        let received = |at: u64, count| (versions[at as usize - 1] == V1_3).then_some(count);
        assert_eq!(testbed.counted(1, 3, 11), (received(3, came), None), "{versions:?}");
        assert_eq!(testbed.counted(1, 1, 11), (received(1, (0, 0)), None), "{versions:?}");
    }
}

/// The new map gives blue's link one VLAN tag, as if the far end reconnected with OpenFlow 1.0.
#[test]
fn entries_are_updated_when_the_far_end_of_a_link_changes_the_version() {
    use fabric::Tagging;
    use fabric::embedding::PortKind;
    let mut testbed = Testbed::new(V1_3, two_networks());
    both_say(&mut testbed, 1, 1, "flow add match=in_port=1 prio=5 actions=output:11");
    both_say(
        &mut testbed,
        1,
        1,
        "flow add match=in_port=1,dl_vlan=9 prio=9 flags=rem actions=output:11",
    );
    both_say(&mut testbed, 1, 3, "flow add match=in_port=11 actions=output:1");
    let before = [testbed.entries(1), testbed.entries(3)];
    let (maps, tags) = Testbed::maps_from(2000, &two_networks());
    let mut other = maps.clone();
    for member in other.values_mut().flat_map(|map| map.members.values_mut()) {
        if let Some(PortKind::Link { far, .. }) = member.ports.get_mut(&11).map(|it| &mut it.kind) {
            far.tagging = Tagging::Single;
        }
    }
    testbed.put_maps(other, 2000..=tags);
    // The entry for tagged frames cannot stay, and the tenant's controller gets FLOW_REMOVED.
    let received = testbed.take_received();
    assert_eq!(received.len(), 1, "{received:?}");
    assert!(
        received[0].2.starts_with("FLOW_REMOVED") && received[0].2.contains("prio=9"),
        "{received:?}"
    );
    for (tag, crosses) in [("", true), ("vlan5:", false), ("vlan9:", false)] {
        let seen = testbed.send(1, 1, 1, &frame(tag));
        assert_eq!(seen.delivered.len(), usize::from(crosses), "{tag}: {seen:?}");
    }
    testbed.put_maps(maps, 2000..=tags);
    assert_eq!(testbed.send(1, 1, 1, &frame("vlan9:")).delivered.len(), 1);
    assert_eq!(testbed.entries(3), before[1]);
    assert_eq!(testbed.entries(1).len(), before[0].len() - 1);
}

/// A group that outputs to such a link has a second instance for tagged frames. Weir considers tags that the buckets
/// remove.
#[test]
fn groups_send_only_untagged_frames_over_links_between_versions() {
    let mut testbed = Testbed::mixed([V1_3, V1_3, V1_0], two_networks());
    both_say(&mut testbed, 1, 3, "flow add match=in_port=11 prio=5 actions=output:1");
    both_say(&mut testbed, 1, 2, "flow add match=in_port=10 prio=5 actions=output:1");
    both_say(&mut testbed, 1, 1, "group add id=1 type=indirect buckets=output:11");
    for (buckets, tag) in [
        ("output:11", ""),
        ("output:10|output:11", ""),
        ("group:1", ""),
        ("strip_vlan,output:11", "vlan5:"),
        ("strip_vlan,output:11|output:10", "vlan8197:"),
        ("flood", ""),
    ] {
        both_say(&mut testbed, 1, 1, &format!("group add id=2 type=all buckets={buckets}"));
        let match_ = if tag.is_empty() { "" } else { ",vlan_tci=0x1000/0x1000" };
        let words = format!("flow add match=in_port=1,ip{match_} prio=5 actions=group:2");
        both_say(&mut testbed, 1, 1, &words);
        let seen = same(&mut testbed, 1, 1, 1, &frame(tag));
        assert!(!seen.delivered.is_empty(), "{buckets}: {tag}");
        let words = format!("out in_port=1 actions=group:2 data={tag}10.0.0.1>10.0.0.2");
        assert_eq!(testbed.out(1, 1, &words), testbed.out_beside(1, 1, &words), "{buckets}: {tag}");
        both_say(&mut testbed, 1, 1, "group delete id=2");
    }
    // A tagged frame uses only the buckets that do not output to the link between versions.
    both_say(&mut testbed, 1, 1, "group add id=2 type=all buckets=output:10|output:11");
    let words = "out in_port=1 actions=group:2 data=vlan9:10.0.0.1>10.0.0.2";
    assert_eq!(testbed.out(1, 1, words).delivered, [(1, 2, 1, frame("vlan9:"))]);
    let groups = testbed.groups(1);
    // After a restart of Weir, the switch still has all instances of the groups.
    testbed.reconnect(1);
    assert_eq!(testbed.groups(1), groups);
    assert_eq!(testbed.out(1, 1, words).delivered, [(1, 2, 1, frame("vlan9:"))]);
}

/// If a later table can change the action set, the set may change the VLAN tag. So such a set cannot use a group that
/// outputs to a link between versions.
#[test]
fn an_action_set_with_a_group_to_a_link_between_versions_is_refused() {
    Testbed::mixed([V1_3, V1_3, V1_0], two_networks()).play(
        "
        blue@1> group add id=1 type=indirect buckets=output:11
        blue@1> group add id=2 type=indirect buckets=output:10
        only blue@1> flow add match=dl_vlan=0xffff prio=5 actions=write=group:1;goto=1 -> ERROR OFPBIC_UNSUP_INST
        only blue@1> flow add match=vlan_tci=0x1000/0x1000 prio=5 actions=write=group:1;goto=1 -> ERROR OFPBIC_UNSUP_INST
        only blue@1> flow add match= prio=5 actions=write=group:1;goto=1 -> ERROR OFPBIC_UNSUP_INST
        blue@1> flow add match= prio=5 actions=write=group:2;goto=1
        only blue@1> group modify id=2 type=indirect buckets=group:1 -> ERROR OFPGMFC_EPERM
    ",
    );
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn networks_of_two_versions_forward_like_switches_of_the_tenant((versions, case) in cases(&ALL)) {
        agree(versions, &local(two_networks()), &case)?;
    }

    #[test]
    fn big_switches_beside_another_version_forward_like_switches_of_the_tenant((versions, case) in cases(&BIG)) {
        agree(versions, &one_big(), &case)?;
    }
}
