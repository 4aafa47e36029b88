//! Tenants with networks of their own: what each sees is what it would see on switches of its own, and nothing else.

use crate::sharing::{at_hosts, comes, is_shared};
use crate::support::*;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;

/// Two tenants on three switches, with the same addresses and port numbers. The second's link from the first switch to
/// the third passes through the second, and stands on the same port as its link to the second; so its links are a ring.
pub(crate) fn two() -> Vec<Plan> {
    let red = Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 1), (3, 1, 1)],
        links: vec![[(1, 10), (2, 10)], [(2, 11), (3, 10)]],
        vlans: vec![5, 6],
        ..Plan::default()
    };
    let blue = Plan {
        edges: vec![(1, 3, 1), (2, 3, 1), (3, 3, 1), (3, 4, 2)],
        links: vec![[(1, 10), (2, 10)], [(2, 11), (3, 10)], [(1, 11), (3, 11)]],
        vlans: vec![5, 6],
        ..Plan::default()
    };
    vec![red, blue]
}

/// Red has one switch on all three; blue one on the first two, and one on the third that is linked to it twice.
pub(crate) fn big() -> Vec<Plan> {
    let red = Plan {
        edges: vec![(1, 1, 1), (1, 2, 2), (2, 1, 10), (3, 1, 11)],
        big: vec![1, 2, 3],
        vlans: vec![5, 6],
        ..Plan::default()
    };
    let blue = Plan {
        edges: vec![(1, 3, 1), (2, 3, 2), (3, 3, 1), (3, 4, 2)],
        links: vec![[(2, 10), (3, 10)], [(1, 11), (3, 11)]],
        big: vec![1, 2],
        vlans: vec![5, 6],
        ..Plan::default()
    };
    vec![red, blue]
}

/// The same with a LOCAL port each: of the first's at that of the second physical switch, of the second's at a port of the
/// first.
pub(crate) fn local(mut plans: Vec<Plan>) -> Vec<Plan> {
    plans[0].edges.push((2, LOCAL, LOCAL));
    plans[1].edges.push((1, 4, LOCAL));
    plans
}

pub(crate) fn both_say(stage: &mut Stage, tenant: usize, switch: u64, words: &str) {
    assert_eq!(stage.say(tenant, switch, words), Vec::<String>::new(), "{words}");
    assert_eq!(stage.say_beside(tenant, switch, words), Vec::<String>::new(), "{words}");
}

#[track_caller]
pub(crate) fn same(stage: &mut Stage, tenant: usize, switch: u64, port: u32, frame: &[u8]) -> Seen {
    let seen = stage.send(tenant, switch, port, frame);
    let beside = stage.send_beside(tenant, switch, port, frame);
    assert_eq!(seen, beside);
    seen
}

#[test]
fn a_packet_crosses_virtual_links_as_it_would_real_ones() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        for tenant in [0, 1] {
            let out = if tenant == 0 { "output:10" } else { "output:11" };
            both_say(
                &mut stage,
                tenant,
                1,
                &format!("flow add match=in_port=1 prio=5 actions={out}"),
            );
            both_say(&mut stage, tenant, 2, "flow add match=in_port=10 prio=5 actions=output:11");
            both_say(
                &mut stage,
                tenant,
                3,
                "flow add match=dl_dst=00:00:00:00:00:00/00:00:00:00:00:00 prio=5 actions=output:1",
            );
        }
        let frame = packet("10.0.0.1>10.0.0.2");
        let red = same(&mut stage, 0, 1, 1, &frame);
        assert_eq!(red.delivered, [(0, 3, 1, frame.clone())], "{version:?}");
        let blue = same(&mut stage, 1, 1, 1, &frame);
        assert_eq!(blue.delivered, [(1, 3, 1, frame.clone())], "{version:?}");
    }
}

#[test]
fn a_miss_is_told_with_the_tenants_own_port_and_the_packet_as_it_was_sent() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        if version == Version::V1_3 {
            for switch in [1, 2, 3] {
                both_say(&mut stage, 1, switch, "flow add prio=0 actions=controller");
            }
        }
        both_say(&mut stage, 1, 1, "flow add match=in_port=1 prio=5 actions=output:11,output:10");
        let seen = same(&mut stage, 1, 1, 1, &packet("10.0.0.1>10.0.0.2"));
        assert_eq!(seen.told.len(), 2, "{version:?}: {seen:?}");
    }
}

#[test]
fn a_packet_out_into_a_virtual_link_is_a_packet_in_at_its_other_end() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        if version == Version::V1_3 {
            both_say(&mut stage, 1, 3, "flow add prio=0 actions=controller");
        }
        let words = "out in_port=controller actions=output:11 data=lldp";
        let seen = stage.out(1, 1, words);
        assert_eq!(seen.told.len(), 1, "{version:?}: {seen:?}");
        assert_eq!(seen, stage.out_beside(1, 1, words), "{version:?}");
    }
}

/// On 1.0 a frame has one tag, and on a link that is the link's.
#[test]
fn frames_of_the_tenants_vlans_cross_links_by_tags_of_their_own() {
    let version = Version::V1_0;
    for plans in [two(), big()] {
        let mut stage = Stage::new(version, plans);
        let head = stage.head(1, 1);
        // Blue's port 11 leads to its third switch; whatever comes by it there leaves by port 1.
        both_say(&mut stage, 1, head, "flow add match=in_port=1 prio=5 actions=output:11");
        both_say(&mut stage, 1, 3, "flow add match=in_port=11,dl_vlan=6 prio=9 actions=controller");
        both_say(
            &mut stage,
            1,
            3,
            "flow add match=in_port=11,dl_vlan_pcp=1 prio=8 actions=output:2",
        );
        both_say(&mut stage, 1, 3, "flow add match=in_port=11 prio=5 actions=output:1");
        for (tag, port) in
            [("", Some(1)), ("vlan5:", Some(1)), ("vlan8197:", Some(2)), ("vlan6:", None)]
        {
            let frame = packet(&format!("{tag}10.0.0.1>10.0.0.2"));
            let seen = same(&mut stage, 1, 1, 1, &frame);
            let arrived = port.map(|port| (1, 3, port, frame));
            assert_eq!(seen.delivered, Vec::from_iter(arrived), "{tag}");
            assert_eq!(seen.told.len(), usize::from(port.is_none()), "{tag}: {seen:?}");
        }
        // Of another VLAN it stays where it came in: there it meets no entry.
        let other = stage.send(1, 1, 1, &packet("vlan9:10.0.0.1>10.0.0.2"));
        assert_eq!(other.delivered, []);
        assert_eq!(other.told.len(), 1, "{other:?}");
        assert!(other.told[0].2.contains("vlan9:10.0.0.1"), "{other:?}");

        // What a controller sends is as well told apart, tagged by itself or by an action.
        for words in [
            "actions=output:11 data=vlan5:10.0.0.1>10.0.0.2",
            "actions=mod_vlan_vid:6,output:11 data=10.0.0.1>10.0.0.2",
            "actions=strip_vlan,output:11 data=vlan9:10.0.0.1>10.0.0.2",
        ] {
            let words = format!("out in_port=controller {words}");
            let seen = stage.out(1, head, &words);
            assert_eq!(seen, stage.out_beside(1, head, &words), "{words}");
            assert_eq!(seen.delivered.len() + seen.told.len(), 1, "{words}: {seen:?}");
        }
        let again = "out in_port=11 actions=table data=vlan5:10.0.0.1>10.0.0.2";
        let seen = stage.out(1, 3, again);
        assert_eq!(seen, stage.out_beside(1, 3, again));
        assert_eq!(seen.delivered.len(), 1, "{seen:?}");

        // What no tag stands for is refused, before a link and as come by one.
        for words in [
            "out in_port=controller actions=output:11 data=vlan9:10.0.0.1>10.0.0.2",
            "flow add match=in_port=1 prio=7 actions=mod_vlan_vid:9,output:11",
            "flow add match=in_port=1,dl_vlan=9 prio=7 actions=output:11",
            "flow add match=in_port=11 prio=7 actions=mod_vlan_vid:9,controller",
        ] {
            let at = if words.contains("in_port=11") { 3 } else { head };
            let refused = stage.say(1, at, words);
            assert_eq!(refused.len(), 1, "{words}: {refused:?}");
            assert!(refused[0].contains("OFPBAC_BAD_ARGUMENT"), "{words}: {refused:?}");
        }
    }
}

#[test]
fn entries_follow_when_a_network_gets_other_vlans() {
    let mut stage = Stage::new(Version::V1_0, two());
    both_say(&mut stage, 1, 1, "flow add match=in_port=1 prio=5 actions=output:11");
    both_say(
        &mut stage,
        1,
        1,
        "flow add match=in_port=1,dl_vlan=5 prio=9 flags=rem actions=output:11",
    );
    both_say(&mut stage, 1, 3, "flow add match=in_port=11 prio=5 actions=output:1");
    let frame = |tag: &str| packet(&format!("{tag}10.0.0.1>10.0.0.2"));
    let mut plans = two();
    plans[1].vlans = vec![6, 7];
    let (maps, tags) = Stage::maps_from(3000, &plans);
    stage.set_maps(&maps, 2000..=tags);
    // What only VLAN 5 met cannot stand any longer, and the tenant is told.
    let told = stage.take_told();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].2.starts_with("FLOW_REMOVED") && told[0].2.contains("prio=9"), "{told:?}");
    for (tag, crosses) in [("", true), ("vlan5:", false), ("vlan6:", true), ("vlan7:", true)] {
        assert_eq!(stage.send(1, 1, 1, &frame(tag)).delivered.len(), usize::from(crosses), "{tag}");
    }
    let (maps, tags) = Stage::maps_from(2000, &two());
    stage.set_maps(&maps, 2000..=tags);
    assert_eq!(stage.take_told(), []);
    assert_eq!(stage.send(1, 1, 1, &frame("vlan5:")).delivered.len(), 1);
}

#[test]
fn ports_of_one_tenant_are_not_anothers() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        // Port 3 of the first switch is blue's, by which red knows no port.
        let refused = stage.say(0, 1, "flow add match=in_port=1 prio=5 actions=output:3");
        assert_eq!(refused.len(), 1, "{version:?}: {refused:?}");
        let refused = stage.say(0, 1, "out in_port=1 actions=output:3 data=10.0.0.1>10.0.0.2");
        assert_eq!(refused.len(), 1, "{version:?}: {refused:?}");
    }
}

#[test]
fn the_switch_is_described_as_the_tenants_own() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        let features = stage.say(1, 1, "features").join("\n");
        assert!(features.contains("b1"), "{version:?}: {features}");
        both_say(&mut stage, 1, 1, "flow add match=in_port=10 prio=5 actions=flood");
        stage.say(1, 1, "flow add match= prio=6 actions=output:10,output:11");
        let flows = stage.say(1, 1, "stats flow");
        assert_eq!(flows.len(), 1, "{version:?}: {flows:?}");
        let ports = stage.say(1, 1, "stats port").join("\n");
        for port in ["1", "10", "11"] {
            assert!(ports.contains(port), "{version:?}: {ports}");
        }
        let barrier = stage.say(1, 1, "barrier");
        assert_eq!(barrier.len(), 1, "{version:?}");
    }
}

#[test]
fn a_shared_edge_port_tells_tenants_apart_by_their_hosts() {
    let host = |n: u8| [0x02, 0, 0, 0, 0x10, n];
    for version in VERSIONS {
        let plan = |n| Plan {
            edges: vec![(2, u32::from(n) + 1, 1)],
            shared: vec![(1, 4, 7, host(n))],
            links: vec![[(1, 10), (2, 10)]],
            ..Plan::default()
        };
        let mut stage = Stage::new(version, vec![plan(0), plan(1)]);
        for tenant in [0, 1] {
            for rule in [
                "match=in_port=7 prio=5 actions=output:10",
                "match=in_port=10 prio=5 actions=output:10",
            ] {
                assert_eq!(stage.say(tenant, 1, &format!("flow add {rule}")), Vec::<String>::new());
            }
            let to = format!("02:00:00:00:10:{tenant:02x}");
            let rule = format!("flow add match=in_port=10,dl_dst={to} prio=9 actions=output:7");
            assert_eq!(stage.say(tenant, 1, &rule), Vec::<String>::new());
            let rule = "flow add match=in_port=10,dl_dst=ff:ff:ff:ff:ff:ff prio=9 actions=output:7";
            assert_eq!(stage.say(tenant, 1, rule), Vec::<String>::new());
            for rule in [
                "match=in_port=1 prio=5 actions=output:10",
                "match=in_port=10 prio=5 actions=output:1",
            ] {
                assert_eq!(stage.say(tenant, 2, &format!("flow add {rule}")), Vec::<String>::new());
            }
        }
        let frame = |from: [u8; 6], to: [u8; 6]| {
            let mut frame = packet("10.0.0.1>10.0.0.2");
            frame[..6].copy_from_slice(&to);
            frame[6..12].copy_from_slice(&from);
            frame
        };
        for tenant in [0u8, 1] {
            let there = stage.send(tenant.into(), 1, 7, &frame(host(tenant), host(9)));
            let to: Vec<_> = there.delivered.iter().map(|(t, s, p, _)| (*t, *s, *p)).collect();
            assert_eq!(to, [(tenant.into(), 2, 1)], "{version:?}");
            // What is for everybody goes to the tenant's own host, by its address.
            let back = stage.send(tenant.into(), 2, 1, &frame(host(9), [0xff; 6]));
            assert!(!back.delivered.is_empty());
            for (_, _, _, bytes) in &back.delivered {
                assert_eq!(bytes[..6], host(tenant), "{version:?}");
            }
            // And nothing reaches the other's.
            let across = stage.send(tenant.into(), 2, 1, &frame(host(9), host(1 - tenant)));
            assert_eq!(across.delivered, [], "{version:?}");
        }
        // A stranger on the shared wire belongs to nobody.
        let stranger = stage.send(0, 1, 7, &frame(host(5), host(9)));
        assert_eq!(stranger.delivered, [], "{version:?}");
        assert_eq!(stranger.told, [], "{version:?}");
    }
}

#[test]
fn a_host_cannot_forge_a_tag() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        for tenant in [0, 1] {
            for switch in [1, 2, 3] {
                stage.say(tenant, switch, "flow add prio=5 actions=flood,controller");
            }
        }
        for tag in 2000..2020u16 {
            let frame = packet(&format!("vlan{tag}:10.0.0.1>10.0.0.2"));
            let seen = stage.send(0, 1, 1, &frame);
            assert!(
                seen.delivered.iter().all(|(tenant, ..)| *tenant == 0),
                "{version:?}: {seen:?}"
            );
            assert!(seen.told.iter().all(|(tenant, ..)| *tenant == 0), "{version:?}: {seen:?}");
        }
    }
}

#[test]
fn a_link_that_moves_takes_its_entries_along_and_one_without_a_path_is_a_port_that_is_down() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        both_say(&mut stage, 1, 1, "flow add match=in_port=1 prio=5 actions=output:11");
        both_say(&mut stage, 1, 3, "flow add match=in_port=11 prio=5 actions=output:1");
        let frame = packet("10.0.0.1>10.0.0.2");
        let before = same(&mut stage, 1, 1, 1, &frame);
        assert_eq!(before.delivered.len(), 1);
        // Other tags: what the switches hold has changed, and nothing of what the tenant sees.
        let (mut maps, tags) = Stage::maps_from(3000, &two());
        stage.set_maps(&maps, 2000..=tags);
        assert_eq!(stage.take_told(), [], "{version:?}");
        assert_eq!(same(&mut stage, 1, 1, 1, &frame), before, "{version:?}");
        // No path: the port is down, and its entries stay the tenant's.
        for map in maps.values_mut() {
            for port in map.members.values_mut().flat_map(|member| member.ports.values_mut()) {
                if let fabric::embedding::PortKind::Link {
                    sends, receives, vlans, mapped, ..
                } = &mut port.kind
                {
                    (*sends, port.up) = (None, false);
                    *mapped = Default::default();
                    receives.clear();
                    vlans.clear();
                }
            }
            map.transit.clear();
        }
        stage.set_maps(&maps, 2000..=tags);
        let told = stage.take_told();
        assert_eq!(told.len(), 10, "{version:?}: {told:?}");
        assert!(told.iter().all(|(_, _, words)| words.starts_with("PORT_STATUS")), "{told:?}");
        assert_eq!(stage.send(1, 1, 1, &frame).delivered, [], "{version:?}");
        let flows = stage.say(1, 3, "stats flow").join("");
        assert!(flows.contains("in_port=11"), "{version:?}: {flows}");
        // And back.
        let (maps, tags) = Stage::maps_from(2000, &two());
        stage.set_maps(&maps, 2000..=tags);
        assert_eq!(stage.take_told().len(), 10, "{version:?}");
        assert_eq!(same(&mut stage, 1, 1, 1, &frame), before, "{version:?}");
    }
}

#[test]
fn a_tenant_that_loses_its_network_leaves_nothing_behind() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, two());
        let empty = stage.entries(1);
        stage.say(0, 1, "flow add match=in_port=1 prio=5 actions=output:10");
        assert_ne!(stage.entries(1), empty);
        let (mut maps, tags) = Stage::maps_from(2000, &two());
        for map in maps.values_mut() {
            map.members.remove(&hypervisor::TenantId(1));
        }
        stage.set_maps(&maps, 2000..=tags);
        let left = stage.entries(1);
        assert!(left.len() < empty.len() || version == Version::V1_0, "{version:?}: {left:?}");
        assert!(left.iter().all(|entry| empty.contains(entry)), "{version:?}: {left:?}");
    }
}

/// A virtual switch's ports, by tenant and physical switch, in the plans of `two`.
fn a_match(version: Version, named: f64) -> impl Strategy<Value = String> {
    let port = weighted(0.5, prop::sample::select(vec!["1", "2", "10", "11", "LOCAL"]));
    // Of one host, or of those with a prefix: 10.0.0.0/31 are the first two, 10.0.0.2/31 is the third.
    let hosts = || prop::sample::select(vec!["0", "1", "2", "0", "1", "2", "0/31", "2/31", "0/24"]);
    let (source, destination) = (weighted(named, hosts()), weighted(named.max(0.5), hosts()));
    let tags = match version {
        // That no link lets it through is all that is seen of VLAN 9.
        Version::V1_0 => vec![
            "dl_vlan=5",
            "dl_vlan=6",
            "dl_vlan=9",
            "dl_vlan=0xffff",
            "dl_vlan_pcp=1",
            "dl_vlan=5,dl_vlan_pcp=1",
        ],
        _ => vec!["dl_vlan=5", "dl_vlan=0xffff"],
    };
    let vlan = weighted(0.2, prop::sample::select(tags));
    (port, source, destination, vlan).prop_map(|(port, source, destination, vlan)| {
        let mut parts = Vec::new();
        parts.extend(port.map(|port| format!("in_port={port}")));
        // Else a switch of 1.3 refuses to rewrite addresses.
        parts.push("ip".to_owned());
        parts.extend(source.map(|host| format!("nw_src=10.0.0.{host}")));
        parts.extend(destination.map(|host| format!("nw_dst=10.0.0.{host}")));
        parts.extend(vlan.map(str::to_owned));
        parts.join(",")
    })
}

fn actions(version: Version) -> impl Strategy<Value = String> {
    let action = prop_oneof![
        6 => prop::sample::select(vec![1u8, 2, 10, 11]).prop_map(|port| format!("output:{port}")),
        1 => Just("local".to_owned()),
        2 => Just("normal".to_owned()),
        1 => Just("flood".to_owned()),
        1 => Just("all".to_owned()),
        1 => Just("in_port".to_owned()),
        2 => Just("controller".to_owned()),
        1 => (0..3u8).prop_map(|host| format!("mod_nw_dst:10.0.0.{host}")),
        1 => Just("mod_dl_src:02.00.00.00.00.77".to_owned()),
    ];
    // Also between the outputs; 1.3 has prerequisites for these.
    let tagging = prop::sample::select(vec![
        "strip_vlan",
        "mod_vlan_vid:5",
        "mod_vlan_vid:6",
        "mod_vlan_vid:9",
        "mod_vlan_pcp:1",
    ]);
    let tagging = weighted(0.3, (any::<prop::sample::Index>(), tagging));
    (vec(action, 1..4), tagging).prop_map(move |(mut actions, tagging)| {
        if let Some((at, tagging)) = tagging.filter(|_| version == Version::V1_0) {
            actions.insert(at.index(actions.len() + 1), tagging.to_owned());
        }
        actions.join(",")
    })
}

/// On 1.3 also more tables, action sets, the tenant's own metadata, and groups that every switch has.
fn instructions(version: Version) -> BoxedStrategy<String> {
    if version == Version::V1_0 {
        return actions(version).boxed();
    }
    // In the order in which instructions are carried out, in which statistics name them.
    let group = (1..6u32).prop_map(|group| format!("group:{group}"));
    let more =
        (1..6u32, actions(version)).prop_map(|(group, more)| format!("{more},group:{group}"));
    let applied = prop_oneof![7 => actions(version), 2 => group, 1 => more];
    let set = prop::sample::select(vec![
        "",
        "",
        "",
        ";clear",
        ";write=output:1",
        ";write=output:10",
        ";write=group:1",
        ";write=group:3",
        ";write=group:4,output:1",
        ";write=output:11",
        ";clear;write=output:11",
        ";write=output:2,mod_dl_src:02.00.00.00.00.55,output:10",
        ";write=mod_nw_dst:10.0.0.2,output:1,mod_nw_dst:10.0.0.1",
        ";write=output:10,group:1",
        ";write=flood",
        ";write=in_port",
        ";write=normal",
        ";write=local",
        ";write=all",
        ";write=controller",
        ";write=mod_nw_dst:10.0.0.1",
    ]);
    let meta = prop_oneof![8 => Just(""), 1 => Just(";meta=5/ff")];
    let goto = prop_oneof![5 => Just(""), 3 => Just(";goto=1")];
    (applied, set, meta, goto)
        .prop_map(|(applied, set, meta, goto)| format!("{applied}{set}{meta}{goto}"))
        .boxed()
}

/// Some of the bits of a port's configuration, which are alike on both versions.
fn port_mod(version: Version) -> impl Strategy<Value = String> {
    let mut bits = vec![0u8, 1, 4, 0x20, 0x21, 0x24];
    let mask = if version == Version::V1_0 { 0x35 } else { 0x25 };
    if version == Version::V1_0 {
        bits.extend([0x10, 0x30]);
    }
    (prop::sample::select(vec!["1", "2", "10", "11", "local"]), prop::sample::select(bits))
        .prop_map(move |(port, bits)| format!("port_mod port={port} config={bits} mask={mask}"))
}

/// Groups of all kinds, also such that name others.
fn group_mod() -> impl Strategy<Value = String> {
    let output = prop::sample::select(vec!["1", "2", "10", "11"]);
    let output = prop_oneof![
        10 => output.prop_map(|port| format!("output:{port}")),
        2 => Just("in_port".to_owned()),
        1 => Just("controller".to_owned()),
        3 => (1..6u32).prop_map(|group| format!("group:{group}")),
        1 => Just("flood".to_owned()),
        2 => Just("normal".to_owned()),
        1 => Just("local".to_owned()),
        1 => Just("all".to_owned()),
        1 => Just("output:1,output:10".to_owned()),
        1 => Just("output:10,output:1".to_owned()),
        1 => Just("flood,output:11".to_owned()),
        1 => Just("output:11,flood".to_owned()),
        1 => Just(String::new()),
    ];
    // A frame has one tag of its own at most: switches look through two, and one is the link's.
    let change = prop::sample::select(vec![
        "",
        "",
        "mod_nw_dst:10.0.0.2,",
        "strip_vlan,",
        "strip_vlan,push_vlan:8100,mod_vlan_vid:7,",
        "strip_vlan,mod_nw_dst:10.0.0.1,push_vlan:88a8,mod_vlan_pcp:3,mod_vlan_vid:5,",
        "mod_vlan_vid:6,",
        "mod_vlan_pcp:2,",
    ]);
    let bucket = (change, output);
    let bucket = bucket.prop_map(|(change, output)| format!("{change}{output}"));
    let bucket = bucket.prop_map(|it| if it.is_empty() { "drop".to_owned() } else { it });
    let watched = prop::sample::select(vec!["1", "2", "10", "11", "local", "g1", "g3"]);
    let several = || vec(bucket.clone(), 0..4);
    let buckets = prop_oneof![
        3 => several().prop_map(|buckets| ("all", buckets.join("|"))),
        3 => vec((0..4u32, bucket.clone()), 1..4).prop_map(|buckets| {
            let weighed: Vec<_> = buckets.iter().map(|(w, it)| format!("{w}*{it}")).collect();
            ("select", weighed.join("|"))
        }),
        1 => bucket.clone().prop_map(|bucket| ("indirect", bucket)),
        2 => vec((watched, bucket.clone()), 1..4).prop_map(|buckets| {
            let watching: Vec<_> = buckets.iter().map(|(at, it)| format!("{at}@{it}")).collect();
            ("ff", watching.join("|"))
        }),
    ];
    let what = prop_oneof![4 => Just("add"), 3 => Just("modify"), 1 => Just("delete")];
    (what, 1..6u32, buckets).prop_map(|(what, id, (kind, buckets))| {
        let id = if what == "delete" && id == 5 { "all".to_owned() } else { id.to_string() };
        match what {
            "delete" => format!("group delete id={id}"),
            _ => format!("group {what} id={id} type={kind} buckets={buckets}"),
        }
    })
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Whether what meets nothing else goes to a port that is chosen by a group (1.3).
    spreads: bool,
    /// Tenant, switch, and what the controller says.
    commands: Vec<(usize, u64, String)>,
    /// Which of the links that may lose their ways have none when packets come: blue's, the first and the last.
    cut: [bool; 2],
    /// Tenant, edge, the frame's tag if it has one, and whose address is its source and its destination.
    packets: Vec<(usize, usize, Option<u16>, u8, u8)>,
}

fn command(version: Version, named: f64) -> impl Strategy<Value = String> {
    let what = prop_oneof![
        12 => Just("add"),
        2 => Just("modify"),
        1 => Just("modify_strict"),
        1 => Just("delete"),
        1 => Just("delete_strict"),
    ];
    let later = if version == Version::V1_3 { 0.4 } else { 0.0 };
    let table = (prop::bool::weighted(later), prop::sample::select(vec![1u8, 1, 2]));
    let table = table.prop_map(|(is_later, table)| is_later.then_some(table));
    // Two entries of equal priority are the same entry or, so that it is said which counts, as good as never overlap.
    (what, a_match(version, named), instructions(version), table, 1..60_000u16).prop_map(
        move |(what, match_, actions, table, priority)| {
            let strict = what.ends_with("strict");
            let priority = if strict { 77 } else { priority };
            let actions = match table {
                None => actions,
                Some(1) => actions.replace(";goto=1", ";goto=2"),
                Some(_) => actions.replace(";goto=1", ""),
            };
            let table = table.map(|table| format!(" table={table}")).unwrap_or_default();
            format!("flow {what} match={match_} prio={priority} actions={actions}{table}")
        },
    )
}

/// Entries whose sets are merged, for all packets, in whichever order they come.
fn merging() -> impl Strategy<Value = Vec<String>> {
    let set = || {
        prop::sample::select(vec![
            "write=output:1",
            "write=output:10",
            "write=output:11",
            "write=group:1",
            "write=group:2",
            "write=in_port",
            "write=flood",
            "write=normal",
            "write=local",
            "drop",
            "clear",
            "clear;write=output:10",
            "clear;write=group:2",
            "write=group:1;meta=5/ff",
            "write=output:10;meta=ffffffff/7",
            "write=mod_nw_dst:10.0.0.1",
            "write=output:10,mod_dl_src:02.00.00.00.00.55",
            "write=strip_vlan,push_vlan:8100,mod_vlan_vid:6,output:10",
            "write=strip_vlan",
        ])
    };
    let last = prop_oneof![4 => Just("ip"), 1 => Just("ip,metadata=0x5/0x7")];
    let entries = ([set(), set(), set()], last, 60_000..65_000u16, any::<bool>());
    entries.prop_map(|(sets, match_, priority, last)| {
        let mut words = Vec::new();
        for (table, set) in sets.iter().enumerate() {
            let goto = [";goto=1", ";goto=2", ""][table];
            let match_ = if table == 2 { match_ } else { "ip" };
            words.push(format!(
                "flow add match={match_} prio={priority} actions={set}{goto} table={table}"
            ));
        }
        if last {
            words.reverse();
        }
        words
    })
}

/// `named` says how often matches name addresses.
pub(crate) fn cases(version: Version, named: f64) -> impl Strategy<Value = Case> {
    let groups = if version == Version::V1_3 { 5 } else { 0 };
    let sets = if version == Version::V1_3 { 3 } else { 0 };
    let words = prop_oneof![
        9 => command(version, named).prop_map(|words| vec![words]),
        2 => port_mod(version).prop_map(|words| vec![words]),
        groups => group_mod().prop_map(|words| vec![words]),
        sets => merging(),
    ];
    let command = (0..2usize, 1..=3u64, words);
    // VLAN 5 also with priority 1.
    let tag = weighted(0.3, prop::sample::select(vec![5u16, 6, 0x2005]));
    let packet = (0..2usize, 0..5usize, tag, 0..3u8, 0..3u8);
    let cut = [prop::bool::weighted(0.15), prop::bool::weighted(0.15)];
    (any::<bool>(), vec(command, 1..14), cut, vec(packet, 1..8)).prop_map(
        |(spreads, commands, cut, packets)| {
            let each = |(tenant, switch, words): (usize, u64, Vec<String>)| {
                words.into_iter().map(move |words| (tenant, switch, words))
            };
            Case { spreads, commands: commands.into_iter().flat_map(each).collect(), cut, packets }
        },
    )
}

/// The ports of a tenant's switch.
fn ports_of(stage: &Stage, plans: &[Plan], tenant: usize, switch: u64) -> Vec<u32> {
    let plan = &plans[tenant];
    let edges = plan.edges.iter().map(|edge| (edge.0, edge.2));
    let ends = edges.chain(plan.links.iter().flatten().copied());
    ends.filter(|end| stage.head(tenant, end.0) == switch).map(|end| end.1).collect()
}

pub(crate) fn agrees(version: Version, plans: &[Plan], case: &Case) -> Result<(), TestCaseError> {
    let mut stage = Stage::new(version, plans.to_vec());
    let seats = |tenant: usize| stage.switches_of(tenant).into_iter().map(move |it| (tenant, it));
    let seats: Vec<(usize, u64)> = seats(0).chain(seats(1)).collect();
    if version == Version::V1_3 {
        for &(tenant, switch) in &seats {
            // Ports that every switch has, and on which no other stands.
            both_say(
                &mut stage,
                tenant,
                switch,
                "group add id=1 type=all buckets=output:1|mod_nw_dst:10.0.0.2,output:1",
            );
            let far = if tenant == 0 { 10 } else { 1 };
            let words =
                format!("group add id=2 type=indirect buckets=mod_nw_dst:10.0.0.1,output:{far}");
            both_say(&mut stage, tenant, switch, &words);
            if case.spreads {
                let ports = ports_of(&stage, plans, tenant, switch);
                let buckets = ports.iter().map(|port| format!("1*output:{port}"));
                let buckets = buckets.collect::<Vec<_>>().join("|");
                let words = format!("group add id=3 type=select buckets={buckets}");
                both_say(&mut stage, tenant, switch, &words);
                both_say(&mut stage, tenant, switch, "flow add prio=0 actions=group:3");
            }
        }
    }
    // Entries of this one may overlap and be of equal priority: then the first to come counts, and a cut brings some anew.
    let is_left_out =
        |words: &str| case.cut.contains(&true) && words.starts_with("flow modify_strict");
    for (tenant, switch, words) in case.commands.iter().filter(|it| !is_left_out(&it.2)) {
        let head = stage.head(*tenant, *switch);
        let switch = &head;
        let mut told = stage.say(*tenant, *switch, words);
        // A big switch tells of it also who did it.
        told.retain(|words| !words.starts_with("PORT_STATUS"));
        if told.is_empty() {
            let beside = stage.say_beside(*tenant, *switch, words);
            prop_assert!(beside.is_empty(), "{words}: {beside:?}");
        } else {
            prop_assert_eq!(told.len(), 1);
            // That is what 1.0 says of ports that there are not.
            let is_denied = version == Version::V1_3 && told[0].contains("OFPFMFC_EPERM");
            prop_assert!(!is_denied, "{}: {:?}", words, told);
            // Of groups nothing is refused but what a switch refuses as well, and ports and groups that there are not.
            let ports = ports_of(&stage, plans, *tenant, head);
            let names = |port: &u32| match *port {
                LOCAL => words.contains("local"),
                port => words.contains(&format!("output:{port}")),
            };
            let all = [1, 2, 10, 11, LOCAL];
            let is_there = all.iter().all(|port| ports.contains(port) || !names(port));
            let mut shared = plans[*tenant].shared.iter();
            let is_there = is_there && !shared.any(|it| stage.head(*tenant, it.0) == head);
            if words.starts_with("group") && is_there && !told[0].contains("BAD_WATCH") {
                let beside = stage.say_beside(*tenant, *switch, words);
                prop_assert_eq!(beside.len(), 1, "{}: {:?}", words, told);
            }
        }
    }
    let [first, last] = [plans[1].links.first(), plans[1].links.last()];
    let cut = [first, last].into_iter().zip(case.cut).filter(|(_, is_cut)| *is_cut);
    let cut: Vec<_> = cut.filter_map(|(link, _)| link.copied()).collect();
    if !cut.is_empty() {
        stage.cut(1, cut, 3000);
    }
    let mut endless = false;
    for &packet in &case.packets {
        let (tenant, switch, port, frame) = comes(plans, packet);
        let beside = stage.send_beside(tenant, switch, port, &frame);
        if beside.endless {
            endless = true;
            break;
        }
        let beside = at_hosts(&plans[tenant], beside);
        let mut seen = stage.send(tenant, switch, port, &frame);
        // At a wire that both share there are the other's hosts, too: by its address it is seen for whom a frame is.
        seen.delivered.retain(|it| it.0 == tenant || !is_shared(&plans[it.0], it.1, it.2));
        prop_assert_eq!(&seen, &beside, "{} from {} at {}", tenant, port, switch);
        prop_assert!(seen.delivered.iter().all(|(to, ..)| *to == tenant));
        prop_assert!(seen.told.iter().all(|(to, ..)| *to == tenant));
    }
    for (tenant, switch) in seats {
        if endless {
            break;
        }
        // Each entry and group with its counts.
        let questions = ["stats flow", "stats aggregate", "stats group", "stats group_desc"];
        let questions = questions.iter().take(if version == Version::V1_3 { 4 } else { 2 });
        for &question in questions {
            let told = stage.say(tenant, switch, question);
            prop_assert_eq!(told, stage.say_beside(tenant, switch, question));
        }
    }
    Ok(())
}

/// A few cases, or as many as are asked for: `PROPTEST_CASES=20000`.
pub(crate) fn config() -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig { cases: if asked { default.cases } else { 300 }, ..default }
}

proptest! {
    #![proptest_config(config())]

    /// For random rules and packets the network forwards exactly what the tenant's own rules would on a network of its
    /// own, and nothing of one tenant's reaches another.
    #[test]
    fn networks_forward_as_the_tenants_own_would_v13(case in cases(Version::V1_3, 0.3)) {
        agrees(Version::V1_3, &local(two()), &case)?;
    }

    #[test]
    fn networks_forward_as_the_tenants_own_would_v10(case in cases(Version::V1_0, 0.3)) {
        agrees(Version::V1_0, &local(two()), &case)?;
    }

    /// The same of big switches: what stands on several physical ones is, to the tenant, one.
    #[test]
    fn big_switches_forward_as_the_tenants_own_would_v13(case in cases(Version::V1_3, 0.3)) {
        agrees(Version::V1_3, &local(big()), &case)?;
    }

    #[test]
    fn big_switches_forward_as_the_tenants_own_would_v10(case in cases(Version::V1_0, 0.3)) {
        agrees(Version::V1_0, &local(big()), &case)?;
    }
}
