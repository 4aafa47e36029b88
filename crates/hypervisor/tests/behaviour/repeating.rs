//! The ports that are no wire's, in networks of the tenants' own: LOCAL, which there is if one is mapped, and NORMAL, by which a
//! virtual switch repeats what it gets, without loops.

use crate::networks::{big, both_say, local, same, two};
use crate::support::*;

const RED: usize = 0;
const BLUE: usize = 1;

/// Every switch of blue's, of which the links are a ring, does nothing but NORMAL.
fn repeating(version: Version, plans: Vec<Plan>) -> Stage {
    let mut stage = Stage::new(version, plans);
    for switch in stage.switches_of(BLUE) {
        both_say(&mut stage, BLUE, switch, "flow add prio=0 actions=normal");
    }
    stage
}

/// A frame from each host of blue's comes to all others, once. Gives the ports at which it came.
#[track_caller]
fn all_reach_all(stage: &mut Stage, plans: &[Plan]) {
    let hosts = &plans[BLUE].edges;
    for &(switch, _, port) in hosts {
        let seen = same(stage, BLUE, switch, port, &packet("10.0.0.1>10.0.0.2"));
        let reached: Vec<_> = seen.delivered.iter().map(|it| (it.1, it.2)).collect();
        let mut others: Vec<_> = hosts.iter().map(|it| (it.0, it.2)).collect();
        others.retain(|it| *it != (switch, port));
        others.sort_unstable();
        assert_eq!((reached, seen.endless), (others, false));
    }
}

#[test]
fn normal_repeats_and_nothing_goes_round() {
    for (version, plans) in
        VERSIONS.into_iter().flat_map(|it| [(it, local(two())), (it, local(big()))])
    {
        let mut stage = repeating(version, plans.clone());
        all_reach_all(&mut stage, &plans);
        // To the tenant its rules are what it wrote, and counted as that.
        for switch in stage.switches_of(BLUE) {
            let told = stage.say(BLUE, switch, "stats flow");
            assert!(told.concat().ends_with(" normal"), "{version:?}: {told:?}");
            assert_eq!(told, stage.say_beside(BLUE, switch, "stats flow"), "{version:?}");
            for filter in ["normal", "flood", "local"] {
                let words = format!("stats aggregate out_port={filter}");
                let told = stage.say(BLUE, switch, &words);
                assert_eq!(told, stage.say_beside(BLUE, switch, &words), "{version:?} {filter}");
            }
        }
        // Blue has a ring, so FLOOD would be endless: that this is seen here is what makes the above mean something.
        for switch in stage.switches_of(BLUE) {
            both_say(&mut stage, BLUE, switch, "flow modify actions=flood");
        }
        assert!(stage.send_beside(BLUE, 1, 1, &packet("10.0.0.1>10.0.0.2")).endless);
    }
}

#[test]
fn normal_by_the_port_of_entry_and_beside_other_outputs() {
    for (version, plans) in
        VERSIONS.into_iter().flat_map(|it| [(it, local(two())), (it, local(big()))])
    {
        let mut stage = repeating(version, plans);
        let head = stage.head(BLUE, 1);
        for words in [
            "flow add match=in_port=1 prio=7 actions=output:11,normal",
            "flow add match=in_port=LOCAL prio=7 actions=normal,local,in_port",
            "flow add match=ip,nw_src=10.0.0.2 prio=8 actions=mod_nw_src:10.0.0.7,normal",
        ] {
            both_say(&mut stage, BLUE, head, words);
        }
        for (switch, port, frame) in [
            (1, 1, "10.0.0.1>10.0.0.2"),
            (1, LOCAL, "10.0.0.1>10.0.0.2"),
            (3, 1, "10.0.0.1>10.0.0.2"),
            (3, 2, "10.0.0.2>10.0.0.1"),
            (1, 1, "arp:10.0.0.2>10.0.0.1"),
        ] {
            let seen = same(&mut stage, BLUE, switch, port, &packet(frame));
            assert!(!seen.delivered.is_empty(), "{version:?} {switch} {port} {frame}: {seen:?}");
        }
    }
}

#[test]
fn a_packet_out_to_normal() {
    for (version, plans) in
        VERSIONS.into_iter().flat_map(|it| [(it, local(two())), (it, local(big()))])
    {
        let mut stage = repeating(version, plans);
        // Port 10 of the third switch is the end of a link outside the tree, or of one in it.
        for (switch, in_port) in
            [(1, "controller"), (1, "1"), (1, "local"), (1, "11"), (3, "10"), (3, "11"), (3, "1")]
        {
            let head = stage.head(BLUE, switch);
            let words = format!("out in_port={in_port} actions=normal data=10.0.0.1>10.0.0.2");
            let seen = stage.out(BLUE, head, &words);
            assert_eq!(seen, stage.out_beside(BLUE, head, &words), "{version:?} {words}");
            assert!(seen.delivered.len() >= 2 && seen.told.is_empty(), "{version:?}: {seen:?}");
        }
    }
}

#[test]
fn the_tree_follows_the_links() {
    for (version, plans) in
        VERSIONS.into_iter().flat_map(|it| [(it, local(two())), (it, local(big()))])
    {
        let mut stage = repeating(version, plans.clone());
        let links = plans[BLUE].links.clone();
        for (link, first) in links.iter().zip([2500, 3000, 3500]) {
            // All go by the others.
            stage.cut(BLUE, vec![*link], first);
            all_reach_all(&mut stage, &plans);
            stage.cut(BLUE, Vec::new(), 2000);
            all_reach_all(&mut stage, &plans);
        }
        // Without any link each switch's own hosts reach each other.
        stage.cut(BLUE, links, 2500);
        let seen = same(&mut stage, BLUE, 3, 1, &packet("10.0.0.1>10.0.0.2"));
        let reached: Vec<_> = seen.delivered.iter().map(|it| (it.1, it.2)).collect();
        assert_eq!(reached, [(3, 2)], "{version:?}");
    }
}

#[test]
fn what_is_configured_of_ports_bears_on_normal_but_no_flood_does_not() {
    for (version, plans) in
        VERSIONS.into_iter().flat_map(|it| [(it, local(two())), (it, local(big()))])
    {
        let mut stage = repeating(version, plans);
        let head = stage.head(BLUE, 3);
        // NO_FLOOD is of 1.0.
        let bits = [("0x10", 4), ("0x20", 3), ("0x1", 3), ("0", 4)];
        for (config, reached) in bits.into_iter().skip(usize::from(version != Version::V1_0)) {
            let mask = if version == Version::V1_0 { "0x31" } else { "0x21" };
            let words = format!("port_mod port=2 config={config} mask={mask}");
            stage.say(BLUE, head, &words);
            assert_eq!(stage.say_beside(BLUE, head, &words), Vec::<String>::new());
            let seen = same(&mut stage, BLUE, 1, 1, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!(seen.delivered.len(), reached, "{version:?} {config}: {seen:?}");
        }
    }
}

#[test]
fn normal_in_buckets_and_in_sets_that_are_merged() {
    for plans in [local(two()), local(big())] {
        let mut stage = repeating(Version::V1_3, plans.clone());
        let switches = stage.switches_of(BLUE);
        for &switch in &switches {
            both_say(&mut stage, BLUE, switch, "group add id=1 type=indirect buckets=normal");
            both_say(&mut stage, BLUE, switch, "flow add prio=1 actions=group:1");
        }
        all_reach_all(&mut stage, &plans);
        for &switch in &switches {
            let buckets = "mod_nw_src:10.0.0.9,normal|mod_nw_src:10.0.0.8,local|in_port";
            let words = format!("group modify id=1 type=all buckets={buckets}");
            let told = stage.say(BLUE, switch, &words);
            // There may be no LOCAL.
            if told.is_empty() {
                stage.say_beside(BLUE, switch, &words);
            }
        }
        let seen = same(&mut stage, BLUE, 3, 1, &packet("10.0.0.1>10.0.0.2"));
        assert!(seen.delivered.len() >= 4, "{seen:?}");
        for &switch in &switches {
            both_say(&mut stage, BLUE, switch, "flow add prio=2 actions=write=normal;goto=1");
            let rewritten = "flow add prio=2 match=ip table=1 actions=write=mod_nw_dst:10.0.0.3";
            both_say(&mut stage, BLUE, switch, rewritten);
        }
        stage.cut(BLUE, Vec::new(), 2500);
        for (switch, port) in [(1, 1), (3, 1), (1, LOCAL)] {
            let seen = same(&mut stage, BLUE, switch, port, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!(seen.delivered.len(), 4, "{seen:?}");
        }
        // The exits follow the tree.
        let cut = plans[BLUE].links.last().copied();
        stage.cut(BLUE, cut.into_iter().collect(), 3000);
        for (switch, port) in [(1, 1), (3, 1), (1, LOCAL)] {
            let seen = same(&mut stage, BLUE, switch, port, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!(seen.delivered.len(), 4, "{seen:?}");
        }
        for &switch in &switches {
            let described = stage.say(BLUE, switch, "stats group_desc");
            assert_eq!(described, stage.say_beside(BLUE, switch, "stats group_desc"));
        }
    }
}

#[test]
fn normal_at_a_shared_edge_reaches_those_for_whom_packets_are() {
    let host = [2, 0, 0, 0, 0x10, 1];
    for version in VERSIONS {
        let plan = Plan {
            edges: vec![(1, 1, 1)],
            shared: vec![(1, 4, 7, host)],
            links: vec![[(1, 10), (2, 10)]],
            ..Plan::default()
        };
        let mut stage = Stage::new(version, vec![plan, Plan::default()]);
        let mut frame = packet("10.0.0.1>10.0.0.2");
        frame[..6].copy_from_slice(&host);
        for rule in [
            "flow add prio=4 actions=normal",
            "flow add match=dl_dst=02:00:00:00:10:01 prio=5 actions=normal",
        ] {
            assert_eq!(stage.say(RED, 1, rule), [""; 0]);
            let seen = stage.send(RED, 1, 1, &frame);
            assert_eq!(seen.delivered, [(RED, 1, 7, frame.clone())], "{version:?} {rule}");
        }
    }
}

/// On 1.0 frames of a VLAN that the network has not declared stay off links. A rule that makes frames such ones is refused also
/// where NORMAL means no link at the moment, but would when another fails.
#[test]
fn what_cannot_leave_by_a_link_cannot_be_repeated() {
    let mut stage = Stage::new(Version::V1_0, local(two()));
    let words = "flow add match=in_port=10,ip prio=1 actions=mod_vlan_vid:9,normal";
    let refused = stage.say(BLUE, 2, words);
    assert!(matches!(&refused[..], [it] if it.contains("BAD_ARGUMENT")), "{refused:?}");
}

#[test]
fn rules_with_normal_and_local_are_found_again() {
    for version in VERSIONS {
        let plans = local(two());
        let mut stage = repeating(version, plans.clone());
        both_say(&mut stage, BLUE, 1, "flow add match=in_port=LOCAL prio=5 actions=output:1,local");
        both_say(&mut stage, BLUE, 1, "flow add match=in_port=11 prio=5 actions=local,normal");
        stage.say(BLUE, 1, "port_mod port=local config=0x20 mask=0x20");
        stage.say_beside(BLUE, 1, "port_mod port=local config=0x20 mask=0x20");
        let entries = [1, 2, 3].map(|switch| (stage.entries(switch), stage.groups(switch)));
        for switch in [1, 2, 3] {
            stage.reconnect(switch);
        }
        let after = [1, 2, 3].map(|switch| (stage.entries(switch), stage.groups(switch)));
        assert_eq!(entries, after, "{version:?}");
        for (switch, port) in [(1, LOCAL), (1, 1), (3, 1)] {
            same(&mut stage, BLUE, switch, port, &packet("10.0.0.1>10.0.0.2"));
        }
    }
}

/// Red's second switch has its LOCAL port at that of the switch beneath, blue's first at an ordinary one.
#[test]
fn local_is_a_port_like_any() {
    for (version, plans) in
        VERSIONS.into_iter().flat_map(|it| [(it, local(two())), (it, local(big()))])
    {
        let number = if version == Version::V1_0 { 0xfffe } else { LOCAL };
        for (tenant, at) in [(RED, 2), (BLUE, 1)] {
            let mut stage = Stage::new(version, plans.clone());
            let head = stage.head(tenant, at);
            let described = match version {
                Version::V1_0 => stage.say(tenant, head, "features").concat(),
                _ => stage.say(tenant, head, "stats port_desc").concat(),
            };
            assert!(described.contains(&number.to_string()), "{version:?}: {described}");
            for words in [
                "flow add match=in_port=1 prio=5 actions=local",
                "flow add match=in_port=LOCAL prio=5 actions=controller,output:1",
                "flow add match=in_port=LOCAL,ip,nw_dst=10.0.0.1 prio=6 actions=flood,in_port",
                "flow add match=in_port=1,ip,nw_dst=10.0.0.1 prio=6 actions=all",
            ] {
                both_say(&mut stage, tenant, head, words);
            }
            // From an ordinary port to it, from it, with a PACKET_IN, and from it back to itself.
            let first =
                plans[tenant].edges.iter().find(|it| stage.head(tenant, it.0) == head && it.2 == 1);
            let first = first.unwrap().0;
            for frame in ["10.0.0.1>10.0.0.2", "10.0.0.2>10.0.0.1"] {
                let to = same(&mut stage, tenant, first, 1, &packet(frame));
                let is_local = |it: &(usize, u64, u32, Vec<u8>)| (it.1, it.2) == (at, LOCAL);
                assert!(to.delivered.iter().any(is_local), "{version:?} {frame}: {to:?}");
            }
            let from = same(&mut stage, tenant, at, LOCAL, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!((from.delivered.len(), from.told.len()), (1, 1), "{version:?}: {from:?}");
            assert!(from.told[0].2.contains(&format!("PACKET_IN {number} ")), "{from:?}");
            let back = same(&mut stage, tenant, at, LOCAL, &packet("10.0.0.2>10.0.0.1"));
            assert!(back.delivered.len() >= 2, "{version:?}: {back:?}");

            for words in [
                "out in_port=controller actions=local data=10.0.0.1>10.0.0.2",
                "out in_port=local actions=local,output:1 data=10.0.0.1>10.0.0.2",
                "out in_port=local actions=in_port data=10.0.0.1>10.0.0.2",
                "out in_port=local actions=table data=10.0.0.1>10.0.0.2",
                "out in_port=1 actions=table data=10.0.0.1>10.0.0.2",
            ] {
                let seen = stage.out(tenant, head, words);
                assert_eq!(seen, stage.out_beside(tenant, head, words), "{version:?} {words}");
                assert_eq!(seen.delivered.len(), 1, "{version:?} {words}: {seen:?}");
            }
            let told = stage.say(tenant, head, "stats port port=local");
            assert_eq!(told, [format!("7 STATS port {number}")], "{version:?}");
            let told = stage.say(tenant, head, "stats aggregate out_port=local");
            let beside = stage.say_beside(tenant, head, "stats aggregate out_port=local");
            assert_eq!(told, beside, "{version:?}");
            assert_eq!(told, beside);

            // What is configured of it is held.
            let words = "port_mod port=local config=0x1 mask=0x1";
            stage.say(tenant, head, words);
            stage.say_beside(tenant, head, words);
            let to = same(&mut stage, tenant, first, 1, &packet("10.0.0.1>10.0.0.2"));
            let from = same(&mut stage, tenant, at, LOCAL, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!((to.delivered.len(), from.delivered.len()), (0, 0), "{version:?}");
        }
    }
}

#[test]
fn local_comes_and_goes() {
    for version in VERSIONS {
        let number = if version == Version::V1_0 { 0xfffe } else { LOCAL };
        let mut stage = Stage::new(version, local(two()));
        both_say(&mut stage, BLUE, 1, "flow add match=in_port=1 prio=5 actions=local,output:10");
        both_say(
            &mut stage,
            BLUE,
            1,
            "flow add match=in_port=LOCAL prio=5 flags=rem actions=output:1",
        );
        let mut plans = local(two());
        plans[BLUE].edges.retain(|edge| edge.2 != LOCAL);
        let (maps, tags) = Stage::maps_from(2000, &plans);
        stage.set_maps(&maps, 2000..=tags);
        let told = stage.take_told();
        let status = format!("PORT_STATUS DELETE {number}");
        assert!(
            told.iter().any(|(_, _, words)| words.starts_with(&status)),
            "{version:?}: {told:?}"
        );
        assert!(told.iter().any(|(_, _, words)| words.starts_with("FLOW_REMOVED")), "{told:?}");
        let refused = stage.say(BLUE, 1, "flow add match=in_port=1 prio=9 actions=local");
        assert!(matches!(&refused[..], [it] if it.contains("BAD_OUT_PORT")), "{refused:?}");
        let (maps, tags) = Stage::maps_from(2000, &local(two()));
        stage.set_maps(&maps, 2000..=tags);
        let told = stage.take_told();
        let status = format!("PORT_STATUS ADD {number}");
        assert!(
            told.iter().any(|(_, _, words)| words.starts_with(&status)),
            "{version:?}: {told:?}"
        );
        assert_eq!(
            stage.say(BLUE, 1, "flow add match=in_port=1 prio=9 actions=local"),
            Vec::<String>::new()
        );
    }
}

/// A link may end there, too.
#[test]
fn a_link_between_local_ports() {
    for version in VERSIONS {
        let red = Plan {
            edges: vec![(1, 1, 1), (3, 1, 1)],
            links: vec![[(1, LOCAL), (3, LOCAL)]],
            ..Plan::default()
        };
        let mut stage = Stage::new(version, vec![red, Plan::default()]);
        for switch in [1, 3] {
            both_say(&mut stage, RED, switch, "flow add match=in_port=1 prio=5 actions=local");
            both_say(
                &mut stage,
                RED,
                switch,
                "flow add match=in_port=LOCAL prio=5 actions=normal,controller",
            );
        }
        for _ in 0..2 {
            let seen = same(&mut stage, RED, 1, 1, &packet("10.0.0.1>10.0.0.2"));
            assert_eq!((seen.delivered.len(), seen.told.len()), (1, 1), "{version:?}: {seen:?}");
        }
        if version == Version::V1_3 {
            assert_eq!(stage.counted(RED, 3, LOCAL).0.map(|it| it.0), Some(2));
            stage.reconnect(3);
            assert_eq!(stage.counted(RED, 3, LOCAL).0.map(|it| it.0), Some(2));
        }
    }
}

/// A switch on which none is mapped has no such port.
#[test]
fn without_one_local_is_refused() {
    for version in VERSIONS {
        let mut stage = Stage::new(version, local(two()));
        for words in [
            "flow add match=in_port=1 prio=5 actions=local",
            "flow add match= prio=5 actions=output:2,local",
            "flow add match=in_port=LOCAL prio=5 actions=output:1",
            "out in_port=1 actions=local data=10.0.0.1>10.0.0.2",
            "out in_port=local actions=output:1 data=10.0.0.1>10.0.0.2",
        ] {
            let refused = stage.say(RED, 1, words);
            assert_eq!(refused.len(), 1, "{version:?} {words}: {refused:?}");
            let is_out = words.contains("actions=local") || words.contains(",local");
            assert_eq!(
                refused[0].contains("BAD_OUT_PORT"),
                is_out,
                "{version:?} {words}: {refused:?}"
            );
        }
        assert_eq!(stage.say(RED, 1, "stats flow").concat().matches("prio=5").count(), 0);
    }
    for version in VERSIONS {
        let mut stage = Stage::new(version, big());
        let refused = stage.say(RED, 1, "flow add match=in_port=1 prio=5 actions=local");
        assert!(matches!(&refused[..], [it] if it.contains("BAD_OUT_PORT")), "{refused:?}");
    }
}
