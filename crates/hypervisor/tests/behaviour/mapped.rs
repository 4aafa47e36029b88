//! Networks with physical addresses: between switches of 1.0 packets bear these, and nobody but an onlooker there sees it.

use crate::courses::{agrees, config, strange_cases};
use crate::deliveries::accept;
use crate::networks::{big, both_say, local, same, two};
use crate::support::*;
use fabric::embedding::{Mapped, PortKind};
use proptest::prelude::*;

/// The plans with physical addresses for both tenants.
pub(crate) fn mapped(plans: Vec<Plan>) -> Vec<Plan> {
    let blocks = ["172.16.5.0/30", "172.16.6.0/30"].map(Some);
    plans.into_iter().zip(blocks).map(|(plan, physical)| Plan { physical, ..plan }).collect()
}

/// Both tenants send from their first switch to their third, by entries that name both addresses there and only there.
fn stage() -> Stage {
    let mut stage = Stage::new(Version::V1_0, mapped(two()));
    for tenant in [0, 1] {
        let pair = "match=in_port=1,ip,nw_src=10.0.0.1,nw_dst=10.0.0.2";
        both_say(&mut stage, tenant, 1, &format!("flow add {pair} prio=5 actions=output:10"));
        let prefix = "match=in_port=10,ip,nw_dst=10.0.0.2/31";
        both_say(&mut stage, tenant, 2, &format!("flow add {prefix} prio=5 actions=output:11"));
        both_say(&mut stage, tenant, 3, "flow add match=in_port=10 prio=5 actions=output:1");
    }
    stage
}

#[test]
fn packets_bear_physical_addresses_between_switches_and_their_own_at_the_edge() {
    let mut stage = stage();
    let frame = packet("10.0.0.1>10.0.0.2");
    for (tenant, block) in [(0, "172.16.5."), (1, "172.16.6.")] {
        let seen = same(&mut stage, tenant, 1, 1, &frame);
        assert_eq!(seen.delivered, [(tenant, 3, 1, frame.clone())]);
        // The second switch has met the prefix in its physical form, the third the pair.
        let (second, third) = (stage.met(2), stage.met(3));
        let prefix = format!("nw_dst={block}2/31");
        assert!(second.iter().any(|it| it.contains(&prefix)), "{second:?}");
        let pair = format!("nw_src={block}1,nw_dst={block}2");
        assert!(third.iter().any(|it| it.contains(&pair)), "{third:?}");
    }
    // What no entry names is not mapped, and arrives all the same.
    both_say(&mut stage, 0, 1, "flow add match=in_port=2 prio=5 actions=output:10");
    let before = stage.met(3);
    let seen = same(&mut stage, 0, 1, 2, &frame);
    assert_eq!(seen.delivered, [(0, 3, 1, frame)]);
    let new: Vec<_> = stage.met(3).into_iter().filter(|it| !before.contains(it)).collect();
    assert!(new.len() == 1 && !new[0].contains("nw_src"), "{new:?}");
}

/// Red's first switch sends on what the first match says, and its second what the second does; its third delivers all, and
/// tells of it.
fn course(first: &str, second: &str) -> Stage {
    let mut stage = Stage::new(Version::V1_0, mapped(two()));
    both_say(&mut stage, 0, 1, &format!("flow add match=in_port=1,{first} actions=output:10"));
    both_say(&mut stage, 0, 2, &format!("flow add match=in_port=10,{second} actions=output:11"));
    both_say(&mut stage, 0, 3, "flow add match=in_port=10 actions=output:1,controller");
    stage
}

/// What a frame bears on the last link in the place of its addresses, by the entry that it meets behind it.
fn borne(stage: &mut Stage, frame: &[u8]) -> Vec<String> {
    let before = stage.met(3);
    let seen = same(stage, 0, 1, 1, frame);
    assert_eq!(seen.delivered, [(0, 3, 1, frame.to_vec())]);
    assert_eq!(seen.told.len(), 1, "{seen:?}");
    let met: Vec<_> = stage.met(3).into_iter().filter(|it| !before.contains(it)).collect();
    assert_eq!(met.len(), 1, "{met:?}");
    met[0].split(',').filter(|word| word.starts_with("nw_")).map(str::to_owned).collect()
}

#[test]
fn an_address_that_is_named_alone_is_mapped_alone() {
    const SOURCE: &str = "nw_src=172.16.5.1";
    const DESTINATION: &str = "nw_dst=172.16.5.2";
    for (first, second, expected) in [
        ("ip,nw_dst=10.0.0.2", "ip", &[DESTINATION][..]),
        ("ip,nw_src=10.0.0.1", "ip", &[SOURCE]),
        // On the way the other is named, and mapped too; or the same again, or by a prefix, which changes nothing.
        ("ip,nw_dst=10.0.0.2", "ip,nw_src=10.0.0.1", &[SOURCE, DESTINATION]),
        ("ip,nw_src=10.0.0.1", "ip,nw_dst=10.0.0.2", &[SOURCE, DESTINATION]),
        ("ip,nw_dst=10.0.0.2", "ip,nw_dst=10.0.0.2", &[DESTINATION]),
        ("ip,nw_dst=10.0.0.2", "ip,nw_dst=10.0.0.2/31", &[DESTINATION]),
        ("ip,nw_dst=10.0.0.2", "ip,nw_src=10.0.0.0/24", &[DESTINATION]),
        // It is named on the way only, or never.
        ("ip", "ip,nw_src=10.0.0.1", &[SOURCE]),
        ("ip,nw_src=10.0.0.0/24", "ip,nw_dst=10.0.0.2", &[DESTINATION]),
        ("ip,nw_dst=10.0.0.0/30", "ip", &[]),
        ("dl_vlan=0xffff", "dl_vlan=0xffff", &[]),
    ] {
        let mut stage = course(first, second);
        assert_eq!(borne(&mut stage, &packet("10.0.0.1>10.0.0.2")), expected, "{first} {second}");
    }
}

/// Whose the other address is does not matter, and it stays what it is: also one of the tenant's that is no host's, and one
/// that looks like a physical one, of its own block or of another's.
#[test]
fn a_strangers_address_is_left_alone_beside_a_hosts() {
    for stranger in ["10.0.0.3", "172.16.5.1", "172.16.5.3", "172.16.6.1", "192.0.2.1"] {
        for (first, frame, expected) in [
            ("nw_dst=10.0.0.2", format!("{stranger}>10.0.0.2"), "nw_dst=172.16.5.2"),
            ("nw_src=10.0.0.1", format!("10.0.0.1>{stranger}"), "nw_src=172.16.5.1"),
        ] {
            let mut stage = course(&format!("ip,{first}"), "ip");
            assert_eq!(borne(&mut stage, &packet(&frame)), [expected], "{frame}");
            // Naming it, too, does not map it.
            let (from, to) = frame.split_once('>').unwrap();
            let both = format!("ip,nw_src={from},nw_dst={to}");
            let mut stage = course(&both, &both);
            assert_eq!(borne(&mut stage, &packet(&frame)), [expected], "{frame}");
        }
        let mut stage = course(&format!("ip,nw_src={stranger}"), &format!("ip,nw_src={stranger}"));
        assert!(borne(&mut stage, &packet(&format!("{stranger}>10.0.0.2"))).is_empty());
    }
    // A host may write to itself.
    let mut stage = course("ip,nw_dst=10.0.0.1", "ip,nw_src=10.0.0.1");
    let expected = ["nw_src=172.16.5.1", "nw_dst=172.16.5.1"];
    assert_eq!(borne(&mut stage, &packet("10.0.0.1>10.0.0.1")), expected);
}

/// With three hosts, and two VLANs: one for untagged frames, one for each VLAN, and those for packets with a physical
/// source, destination, or both.
#[test]
fn an_entry_takes_one_for_each_host_where_it_delivers_what_it_does_not_name() {
    for (switch, rule, taken) in [
        (2, "in_port=10 actions=output:11", 3 + (1 + 1 + 1)),
        (2, "in_port=10,ip,nw_dst=10.0.0.0/31 actions=output:11", 3 + (1 + 1 + 1)),
        (3, "in_port=10 actions=output:1", 3 + (3 + 3 + 9)),
        (3, "in_port=10,ip,nw_dst=10.0.0.2 actions=output:1", 3 + (3 + 1 + 3)),
        (3, "in_port=10,ip,nw_dst=10.0.0.2/31 actions=output:1", 3 + (3 + 1 + 3)),
        (3, "in_port=10,ip,nw_src=10.0.0.1,nw_dst=10.0.0.2 actions=output:1", 3 + (1 + 1 + 1)),
        // No host has this one.
        (3, "in_port=10,ip,nw_dst=10.0.0.3 actions=output:1", 3 + 3),
        // What is written over has not to be known.
        (3, "in_port=10,ip actions=mod_nw_dst:10.0.0.1,output:1", 3 + (3 + 1 + 3)),
        (3, "in_port=10,arp actions=output:1", 3),
        // By a port of the edge nothing comes that is mapped.
        (3, "in_port=1,ip actions=output:10", 3),
    ] {
        let mut stage = Stage::new(Version::V1_0, mapped(two()));
        let before = stage.entries(switch).len();
        let (match_, actions) = rule.split_once(' ').unwrap();
        both_say(&mut stage, 0, switch, &format!("flow add match={match_} {actions}"));
        assert_eq!(stage.entries(switch).len() - before, taken, "{rule}");
    }
}

#[test]
fn a_controller_is_told_its_own_addresses() {
    let mut stage = stage();
    let frame = packet("10.0.0.1>10.0.0.2");
    // By an action, by none, and after one that rewrites.
    both_say(&mut stage, 0, 2, "flow add match=in_port=10,ip prio=9 actions=controller,output:11");
    let by_action = same(&mut stage, 0, 1, 1, &frame);
    assert_eq!((by_action.told.len(), by_action.delivered.len()), (1, 1));
    both_say(&mut stage, 0, 2, "flow delete");
    let by_none = same(&mut stage, 0, 1, 1, &frame);
    assert_eq!((by_none.told.len(), by_none.delivered.len()), (1, 0));
    for rewrites in ["mod_nw_dst:10.0.0.0", "mod_nw_src:10.0.0.0", "mod_nw_dst:10.0.0.3"] {
        let actions = format!("{rewrites},controller,output:11");
        both_say(&mut stage, 0, 2, &format!("flow add match=in_port=10 prio=9 actions={actions}"));
        let rewritten = same(&mut stage, 0, 1, 1, &frame);
        assert_eq!((rewritten.told.len(), rewritten.delivered.len()), (1, 1), "{rewrites}");
    }
}

#[test]
fn a_packet_out_is_mapped_as_an_entry_would() {
    let mut stage = stage();
    for (words, told) in [
        ("out in_port=1 actions=output:10 data=10.0.0.1>10.0.0.2", 0),
        ("out in_port=controller actions=output:10,output:1 data=10.0.0.1>10.0.0.2", 0),
        ("out in_port=1 actions=table data=10.0.0.1>10.0.0.2", 0),
        ("out in_port=10 actions=table data=10.0.0.1>10.0.0.2", 1),
        ("out in_port=controller actions=output:10 data=arp:10.0.0.1>10.0.0.2", 1),
        ("out in_port=1 actions=output:10 data=172.16.5.1>10.0.0.2", 0),
        ("out in_port=1 actions=mod_nw_src:10.0.0.1,output:10 data=172.16.5.1>10.0.0.2", 0),
        ("out in_port=1 actions=output:10 data=10.0.0.1>172.16.5.2", 1),
    ] {
        let seen = stage.out(0, 1, words);
        assert_eq!(seen, stage.out_beside(0, 1, words), "{words}");
        assert_eq!(
            (seen.told.len(), seen.delivered.is_empty()),
            (told, told > 0),
            "{words}: {seen:?}"
        );
    }
}

#[test]
fn a_packet_that_a_switch_keeps_is_sent_on_as_it_is_and_delivered_with_its_own_addresses() {
    let frame = packet("10.0.0.1>10.0.0.2");
    for (what, delivered) in [
        ("out buffer=# actions=output:11", Some((3, frame.clone()))),
        ("out buffer=# actions=output:1", Some((2, frame.clone()))),
        (
            "out buffer=# actions=mod_nw_src:10.0.0.0,output:1",
            Some((2, packet("10.0.0.0>10.0.0.2"))),
        ),
        ("out buffer=# actions=table", None),
        (
            "flow add match=in_port=10,ip,nw_dst=10.0.0.2 prio=9 actions=output:1 buffer=#",
            Some((2, frame.clone())),
        ),
    ] {
        let mut stage = Stage::with_buffers(Version::V1_0, mapped(two()), 8);
        stage.say(
            0,
            1,
            "flow add match=in_port=1,ip,nw_src=10.0.0.1,nw_dst=10.0.0.2 prio=5 actions=output:10",
        );
        stage.say(0, 3, "flow add match=in_port=10 prio=5 actions=output:1");
        let seen = stage.send(0, 1, 1, &frame);
        assert_eq!(seen.told.len(), 1, "{what}: {seen:?}");
        let told = &seen.told[0].2;
        assert!(told.contains("10.0.0.1>10.0.0.2"), "{what}: {told}");
        let buffer = told.split("buffer=").nth(1).and_then(|it| it.split(' ').next());
        let seen = stage.out(0, 2, &what.replace('#', buffer.expect("a number")));
        let mut arrived = seen.delivered.clone();
        if let Some((_, _, _, frame)) = arrived.first_mut() {
            // The hardware addresses are those of the frame that was sent.
            frame[..12].copy_from_slice(&delivered.as_ref().unwrap().1[..12]);
        }
        let expected = delivered.map(|(switch, frame)| (0, switch, 1, frame));
        assert_eq!(arrived, Vec::from_iter(expected), "{what}: {seen:?}");
        assert_eq!(seen.told.len(), usize::from(what.ends_with("table")), "{what}: {seen:?}");
    }
}

/// Inside a big switch packets bear physical addresses as on any link: the tenant's are back where they leave at the edge, and
/// where they leave by a link they keep the physical ones.
#[test]
fn packets_bear_physical_addresses_inside_big_switches() {
    let frame = packet("10.0.0.1>10.0.0.2");
    for (named, expected) in [
        ("nw_dst=10.0.0.2", &["nw_dst=$.2"][..]),
        ("nw_src=10.0.0.1", &["nw_src=$.1"]),
        ("nw_src=10.0.0.1,nw_dst=10.0.0.2", &["nw_src=$.1", "nw_dst=$.2"]),
        ("nw_dst=10.0.0.0/30", &[]),
    ] {
        let mut stage = Stage::new(Version::V1_0, mapped(big()));
        let borne = |stage: &Stage, switch, block: &str| {
            let expected: Vec<_> = expected.iter().map(|it| it.replace('$', block)).collect();
            let met = stage.met(switch);
            let is_meant = |met: &&String| {
                let words = met.split(',').filter(|word| word.starts_with("nw_"));
                words.eq(expected.iter().map(String::as_str))
            };
            assert!(met.iter().any(|it| is_meant(&it)), "{named}: {met:?}");
        };
        // Red's is one switch of three: the second passes on what the third lets out.
        let words = format!("flow add match=in_port=1,ip,{named} actions=output:11");
        both_say(&mut stage, 0, 1, &words);
        let seen = same(&mut stage, 0, 1, 1, &frame);
        assert_eq!(seen.delivered, [(0, 3, 11, frame.clone())], "{named}");
        borne(&stage, 3, "172.16.5");
        // Of blue's, one of the first two, the second lets it out by a link to the third; and so it goes back, to the first.
        both_say(
            &mut stage,
            1,
            1,
            &format!("flow add match=in_port=1,ip,{named} actions=output:10"),
        );
        both_say(&mut stage, 1, 3, "flow add match=in_port=10 actions=in_port");
        both_say(&mut stage, 1, 1, "flow add match=in_port=10 actions=output:1");
        let seen = same(&mut stage, 1, 1, 1, &frame);
        assert_eq!(seen.delivered, [(1, 1, 1, frame.clone())], "{named}");
        borne(&stage, 1, "172.16.6");
        // A packet out of a controller's hands as well.
        let words =
            "out in_port=controller actions=output:11,output:10,output:1 data=10.0.0.1>10.0.0.2";
        let seen = stage.out(0, 1, words);
        assert_eq!(seen, stage.out_beside(0, 1, words));
        assert_eq!(seen.delivered.len(), 3, "{seen:?}");
    }
}

/// A switch of 1.3 at the far end of a link knows what one of 1.0 sends.
#[test]
fn a_switch_of_1_3_gives_packets_their_addresses_back() {
    let plans = mapped(two());
    let mut stage = Stage::new(Version::V1_3, plans.clone());
    let (maps, _) = Stage::maps_from(2000, &plans);
    for tenant in [0, 1] {
        stage.say(
            tenant,
            3,
            "flow add match=ip,nw_dst=10.0.0.2 prio=5 actions=output:1,controller",
        );
        let member = &maps[&3].members[&hypervisor::TenantId(tenant as u16 + 1)];
        let PortKind::Link { mapped, .. } = &member.ports[&10].kind else { panic!("no link") };
        let hop = |borne| mapped[&borne].receives[0];
        let (tag, port) = (hop(Mapped::Both).tag.get(), hop(Mapped::Both).port.get());
        let block = ["172.16.5", "172.16.6"][tenant];
        // The hosts' hardware addresses are by what `packet` makes them; a mapped packet keeps them.
        let own = packet("10.0.0.1>10.0.0.2");
        let mut frame = packet(&format!("vlan{tag}:{block}.1>{block}.2"));
        frame[..12].copy_from_slice(&own[..12]);
        let seen = stage.send_at(3, port, &frame);
        assert_eq!(seen.delivered, [(tenant, 3, 1, own)]);
        assert!(seen.told.len() == 1 && seen.told[0].2.contains("10.0.0.1>10.0.0.2"), "{seen:?}");
        // Not from, and not to, others than its hosts.
        let mut stranger = packet(&format!("vlan{tag}:{block}.3>{block}.2"));
        stranger[..12].copy_from_slice(&frame[..12]);
        assert_eq!(stage.send_at(3, port, &stranger), Seen::default());
        // With one of the two, the other may be anybody's.
        for (borne, words, expected) in [
            (Mapped::Destination, format!("{block}.3>{block}.2"), format!("{block}.3>10.0.0.2")),
            (Mapped::Destination, format!("10.0.0.1>{block}.2"), "10.0.0.1>10.0.0.2".to_owned()),
            (Mapped::Source, format!("{block}.1>10.0.0.2"), "10.0.0.1>10.0.0.2".to_owned()),
        ] {
            let tag = hop(borne).tag.get();
            let (mut frame, mut expected) =
                (packet(&format!("vlan{tag}:{words}")), packet(&expected));
            frame[..12].fill(2);
            expected[..12].fill(2);
            let seen = stage.send_at(3, port, &frame);
            assert_eq!(seen.delivered, [(tenant, 3, 1, expected)], "{words}");
        }
    }
}

/// The plans with physical addresses of so many hosts that there is no entry for each two of them.
fn wide(plans: Vec<Plan>) -> Vec<Plan> {
    let blocks = ["172.16.5.0/24", "172.16.6.0/24"].map(Some);
    plans.into_iter().zip(blocks).map(|(plan, physical)| Plan { physical, ..plan }).collect()
}

/// With seventeen hosts: where both addresses are physical and neither is named, the hypervisor gives packets their own back.
#[test]
fn of_many_hosts_an_entry_asks_where_both_addresses_are_physical() {
    for (rule, taken) in [
        ("in_port=10 actions=output:11", 3 + 3),
        ("in_port=10 actions=output:1", 3 + (17 + 17 + 1)),
        ("in_port=10,ip,nw_dst=10.0.0.2 actions=output:1", 3 + (17 + 1 + 17)),
        // Of these there are eight, so two are 17 times 8.
        ("in_port=10,ip,nw_dst=10.0.0.0/29 actions=output:1", 3 + (17 + 8 + 17 * 8)),
        ("in_port=10,ip,nw_dst=10.0.0.0/28 actions=output:1", 3 + (17 + 16 + 1)),
        ("in_port=10,ip,nw_src=10.0.0.1,nw_dst=10.0.0.2 actions=output:1", 3 + 3),
        ("in_port=10,ip actions=mod_nw_dst:10.0.0.1,output:1", 3 + (17 + 1 + 17)),
        ("in_port=10,ip actions=mod_nw_tos:8,output:1,controller", 3 + (17 + 17 + 1)),
    ] {
        let switch = if rule.ends_with("11") { 2 } else { 3 };
        let mut stage = Stage::new(Version::V1_0, wide(two()));
        let before = stage.entries(switch).len();
        let (match_, actions) = rule.split_once(' ').unwrap();
        both_say(&mut stage, 0, switch, &format!("flow add match={match_} {actions}"));
        assert_eq!(stage.entries(switch).len() - before, taken, "{rule}");
    }
    let pair = "in_port=1,ip,nw_src=10.0.0.1,nw_dst=10.0.0.2";
    let frame = packet("10.0.0.1>10.0.0.2");
    for (actions, arrives, tells) in [
        ("output:1", true, 0),
        ("output:1,controller", true, 1),
        ("controller,mod_nw_tos:8,controller,output:1", true, 2),
        ("mod_nw_src:10.0.0.9,controller", false, 1),
        // The switch before has no rule for what comes back.
        ("in_port", false, 1),
    ] {
        let mut stage = Stage::new(Version::V1_0, wide(two()));
        both_say(&mut stage, 0, 1, &format!("flow add match={pair} actions=output:10"));
        both_say(&mut stage, 0, 2, "flow add match=in_port=10 actions=output:11");
        both_say(&mut stage, 0, 3, &format!("flow add match=in_port=10 actions={actions}"));
        let seen = same(&mut stage, 0, 1, 1, &frame);
        assert_eq!((seen.delivered.len() == 1, seen.told.len()), (arrives, tells), "{actions}");
        // To the tenant it is one rule, that has had one packet.
        let met: Vec<_> = stage.met(3);
        assert!(met.iter().any(|it| !it.contains("nw_src")), "{met:?}");
        let flows = stage.say(0, 3, "stats flow");
        assert_eq!(flows, stage.say_beside(0, 3, "stats flow"), "{actions}");
    }
}

/// What leaves a big switch by an edge port of another member, and what a switch of 1.3 takes from one of 1.0.
#[test]
fn of_many_hosts_the_hypervisor_restores_what_no_rule_is_asked_of() {
    let frame = packet("10.0.0.1>10.0.0.2");
    for named in ["nw_dst=10.0.0.2", "nw_src=10.0.0.1", "nw_src=10.0.0.1,nw_dst=10.0.0.2"] {
        let mut stage = Stage::new(Version::V1_0, wide(big()));
        let words = format!("flow add match=in_port=1,ip,{named} actions=output:11");
        both_say(&mut stage, 0, 1, &words);
        let seen = same(&mut stage, 0, 1, 1, &frame);
        assert_eq!(seen.delivered, [(0, 3, 11, frame.clone())], "{named}");
        assert_eq!(seen.told, []);
    }
    let plans = wide(two());
    let mut stage = Stage::new(Version::V1_3, plans.clone());
    let (maps, _) = Stage::maps_from(2000, &plans);
    for (tenant, block) in [(0, "172.16.5"), (1, "172.16.6")] {
        let words = "flow add match=ip,nw_dst=10.0.0.2 prio=5 actions=output:1,controller";
        accept(&mut stage, tenant, 3, words);
        let member = &maps[&3].members[&hypervisor::TenantId(tenant as u16 + 1)];
        let PortKind::Link { mapped, .. } = &member.ports[&10].kind else { panic!("no link") };
        for (borne, words) in [
            (Mapped::Both, format!("{block}.1>{block}.2")),
            (Mapped::Source, format!("{block}.1>10.0.0.2")),
            (Mapped::Destination, format!("10.0.0.1>{block}.2")),
        ] {
            let hop = mapped[&borne].receives[0];
            let mut sent = packet(&format!("vlan{}:{words}", hop.tag.get()));
            sent[..12].copy_from_slice(&frame[..12]);
            let seen = stage.send_at(3, hop.port.get(), &sent);
            assert_eq!(seen.delivered, [(tenant, 3, 1, frame.clone())], "{words}");
            let is_own = seen.told.len() == 1 && seen.told[0].2.contains("10.0.0.1>10.0.0.2");
            assert!(is_own, "{seen:?}");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// As for networks without: what is forwarded and told is what the tenant's own rules say, whichever addresses they and
    /// the packets name.
    #[test]
    fn mapped_networks_forward_as_the_tenants_own_would(case in strange_cases(Version::V1_0)) {
        agrees(Version::V1_0, &mapped(local(two())), &case)?;
    }

    #[test]
    fn mapped_big_switches_forward_as_the_tenants_own_would(case in strange_cases(Version::V1_0)) {
        agrees(Version::V1_0, &mapped(local(big())), &case)?;
    }

    #[test]
    fn networks_of_many_hosts_forward_as_the_tenants_own_would(
        case in strange_cases(Version::V1_0)
    ) {
        agrees(Version::V1_0, &wide(local(two())), &case)?;
    }

    #[test]
    fn big_switches_of_many_hosts_forward_as_the_tenants_own_would(
        case in strange_cases(Version::V1_0)
    ) {
        agrees(Version::V1_0, &wide(local(big())), &case)?;
    }

    /// On 1.3 nothing is mapped, whatever is wanted.
    #[test]
    fn mapped_networks_of_1_3_forward_as_the_tenants_own_would(
        case in strange_cases(Version::V1_3)
    ) {
        agrees(Version::V1_3, &mapped(local(two())), &case)?;
    }
}
