//! Action sets of tenants' own networks in which a group meets an output of another table: the group counts, whichever was
//! written first.

use crate::groups::{BLUE, all_same, stage};
use crate::groups_kept::{crowded, on, say};
use crate::networks::{big, both_say, same};
use crate::support::*;
use emulate::Fault;
use openflow::v13::{MultipartReply, MultipartReplyBody};

/// Three tables of which each does one of these: what a switch of the tenant's own does with it is done, and told.
#[test]
fn a_group_counts_before_an_output_whichever_is_written_first() {
    let sets = [
        "drop",
        "write=group:1",
        "write=output:10",
        "clear",
        "clear;write=output:11",
        "clear;write=group:2",
        "write=mod_dl_src:02.00.00.00.00.55,output:1",
    ];
    for (first, second, third) in each_of(&sets) {
        let context = format!("{first} {second} {third}");
        let mut words = [
            "group add id=1 type=all buckets=output:11|output:1".to_owned(),
            "group add id=2 buckets=mod_dl_src:02.00.00.00.00.66,output:1".to_owned(),
            format!("flow add prio=5 match=ip actions={first};goto=1"),
            format!("flow add prio=5 match=ip table=1 actions={second};goto=2"),
            format!("flow add prio=5 match=ip table=2 actions={third}"),
        ];
        // In whichever order they come.
        let last = (first.len() + second.len()) % 3;
        words[2..].rotate_left(last);
        let mut stage = stage();
        words.iter().for_each(|words| both_say(&mut stage, BLUE, 1, words));
        all_same(&mut stage);
        let out = "out in_port=1 actions=table data=10.0.0.1>10.0.0.9";
        assert_eq!(stage.out(BLUE, 1, out), stage.out_beside(BLUE, 1, out), "{context}");
        for question in ["stats flow", "stats aggregate", "stats group"] {
            let told = stage.say(BLUE, 1, question);
            assert_eq!(told, stage.say_beside(BLUE, 1, question), "{context} {question}");
        }
    }
}

fn each_of<'a>(sets: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> {
    let pairs = sets.iter().flat_map(|&first| sets.iter().map(move |&second| (first, second)));
    pairs.flat_map(|(first, second)| sets.iter().map(move |&third| (first, second, third)))
}

/// What the tenant writes into its metadata and what says that there is a group do not touch each other, also where the
/// tenant names more bits than its mask has.
#[test]
fn the_tenants_metadata_is_as_it_was_written() {
    for first in ["write=group:1", "write=output:10", "clear", "clear;write=group:1"] {
        for metadata in ["", ";meta=5/ff", ";meta=ffffffff00000005/7fffffff", ";meta=ffffffff/4"] {
            let mut stage = stage();
            for words in [
                "group add id=1 type=all buckets=output:11|output:1",
                &format!("flow add prio=5 match=ip actions={first}{metadata};goto=1"),
                // Without a mask it is the same: all else is 0 to the tenant.
                "flow add prio=5 match=metadata=0x5 table=1 \
                 actions=controller;write=output:1,mod_dl_src:02.00.00.00.00.55;goto=2",
                "flow add prio=4 match=metadata=0x4/0x4 table=1 actions=write=output:11;goto=2",
                "flow add prio=3 table=1 actions=meta=70000000/70000000;goto=2",
                "flow add prio=5 match=metadata=0x70000000/0x70000000 table=2 \
                 actions=controller;write=output:10",
                "flow add prio=4 table=2 actions=controller",
            ] {
                both_say(&mut stage, BLUE, 1, words);
            }
            let seen = same(&mut stage, BLUE, 1, 1, &packet("10.0.0.1>10.0.0.9"));
            assert!(!seen.told.is_empty(), "{first}{metadata}: {seen:?}");
            all_same(&mut stage);
        }
    }
}

/// Also where one is on another member of a big switch.
#[test]
fn a_group_counts_before_an_output_on_big_switches() {
    for (one, other) in [("output:11", "output:10"), ("output:2", "output:11")] {
        for second in ["drop", "clear", "write=group:1"] {
            let mut stage = Stage::new(Version::V1_3, big());
            for words in [
                &format!("group add id=1 buckets={one}"),
                "flow add prio=5 match=ip,nw_src=10.0.0.1 actions=write=group:1;goto=1",
                "flow add prio=4 actions=goto=1",
                &format!("flow add prio=5 table=1 actions={second};goto=2"),
                &format!("flow add prio=5 table=2 actions=write={other} cookie=7"),
            ] {
                both_say(&mut stage, 0, 1, words);
            }
            for last in [1, 2] {
                for (switch, port) in [(1, 1), (1, 2), (2, 10), (3, 11)] {
                    let frame = packet(&format!("10.0.0.{last}>10.0.0.9"));
                    same(&mut stage, 0, switch, port, &frame);
                }
            }
            for question in ["stats flow", "stats aggregate", "stats group"] {
                assert_eq!(stage.say(0, 1, question), stage.say_beside(0, 1, question));
            }
        }
    }
}

#[test]
fn the_bit_is_not_the_tenants_to_see_or_to_change() {
    let mut stage = stage();
    for (words, code) in [
        ("flow add match=metadata=0x80000000/0x80000000 prio=5", "OFPBMC_BAD_MASK"),
        ("flow add match=metadata=0x80000005 prio=5", "OFPBMC_BAD_MASK"),
        ("flow delete match=metadata=0x80000000/0x80000000", "OFPBMC_BAD_MASK"),
        ("stats flow match=metadata=0x80000000/0x80000000", "OFPBMC_BAD_MASK"),
        ("flow add prio=5 actions=meta=80000000/80000000;goto=1", "OFPBIC_UNSUP_METADATA_MASK"),
        ("flow add prio=5 actions=meta=0/ffffffff;goto=1", "OFPBIC_UNSUP_METADATA_MASK"),
    ] {
        let told = stage.say(BLUE, 1, words).join("");
        assert!(told.contains(code), "{words}: {told}");
    }
    for (policy, bits) in [(on(crowded()), 0x7fff_ffff), (policy("blue: ip"), 0xffff_ffff_ffff)] {
        let setup = Setup { policy, ..Setup::new(Version::V1_3, "") };
        let mut world = World::new(setup);
        let blue = world.connect("blue");
        world.say(blue, 1, "stats table_features");
        let told = world.received(blue);
        let reply = MultipartReply::parse(&told[0][8..]).unwrap();
        let MultipartReplyBody::TableFeatures(tables) = reply.body else { panic!("{reply:?}") };
        assert!(!tables.is_empty());
        for table in tables {
            assert_eq!((table.metadata_match, table.metadata_write), (bits, bits));
        }
    }
}

const GROUP: &str = "flow add prio=5 match=ip,nw_src=10.0.0.1 actions=write=group:1;goto=1";
const GOES_ON: &str = "flow add prio=4 actions=goto=1";

/// Blue's first switch with an entry of these terms, which is two there; whatever 10.0.0.1 sends comes to it with a group.
fn with_timeouts(terms: &str) -> Stage {
    let mut stage = stage();
    for words in
        ["group add id=1 buckets=output:1", GROUP, GOES_ON, &format!("{TIMED_OUT} {terms}")]
    {
        assert_eq!(stage.say(BLUE, 1, words), [""; 0], "{words}");
    }
    assert_eq!(pieces(&stage), 2);
    stage
}

const TIMED_OUT: &str = "flow add prio=6 match=in_port=1 table=1 actions=write=output:10 flags=rem";

fn pieces(stage: &Stage) -> usize {
    stage.entries(1).iter().filter(|it| it.contains("prio=6 ")).count()
}

/// Waits until it has ended, and gives how many seconds that took, and what was told.
fn ends(stage: &mut Stage) -> (usize, String) {
    for waited in 0..60 {
        if let [(_, _, told)] = &stage.take_told()[..] {
            assert_eq!(pieces(stage), 0);
            return (waited, told.clone());
        }
        assert_eq!(pieces(stage), 2);
        stage.wait(1);
    }
    panic!("it does not end");
}

/// An entry that is two on the switch ends when it is idle as both, no sooner and no later, with all that they have counted.
#[test]
fn an_entry_is_idle_with_and_without_a_group() {
    // Also if the switch says in parts, with time between them, what the pieces have counted.
    let slow = Fault::PaceStatistics { entries: 1, interval: 100_000_000 };
    let courses = [&[1][..], &[2], &[1, 2], &[1, 1, 1, 1, 2, 2], &[2, 1, 1, 1, 1]];
    let courses = courses.into_iter().flat_map(|hosts| [(hosts, None), (hosts, Some(&slow))]);
    for (hosts, fault) in courses {
        for packets in 0..14 {
            let mut stage = with_timeouts("idle=4");
            stage.plant(1, fault.into_iter().cloned().collect());
            for host in hosts.iter().cycle().take(packets) {
                stage.wait(3);
                assert_eq!((stage.take_told(), pieces(&stage)), (Vec::new(), 2));
                stage.send(BLUE, 1, 1, &packet(&format!("10.0.0.{host}>10.0.0.9")));
            }
            let (waited, told) = ends(&mut stage);
            assert!((3..=5).contains(&waited), "{hosts:?} {packets} {fault:?}: {waited}");
            assert!(told.contains(&format!("IDLE_TIMEOUT n={packets}")), "{told:?}");
        }
    }
}

/// However often a part of it was idle meanwhile.
#[test]
fn an_entrys_time_is_over_with_and_without_a_group() {
    for hosts in [&[1][..], &[2], &[1, 2], &[1, 1, 1, 2, 2]] {
        let mut stage = with_timeouts("idle=4 hard=20");
        let frame = |host: &i32| packet(&format!("10.0.0.{host}>10.0.0.9"));
        for _ in 0..3 {
            stage.wait(3);
            stage.send(BLUE, 1, 1, &frame(&1));
        }
        // From here on its time begins anew.
        assert_eq!(stage.say(BLUE, 1, &format!("{TIMED_OUT} idle=4 hard=20")), [""; 0]);
        for host in hosts.iter().cycle().take(5) {
            stage.wait(3);
            assert_eq!((stage.take_told(), pieces(&stage)), (Vec::new(), 2));
            stage.send(BLUE, 1, 1, &frame(host));
        }
        stage.wait(5);
        assert_eq!(pieces(&stage), 0, "{hosts:?}");
        let told = stage.take_told();
        let [(_, _, told)] = &told[..] else { panic!("{told:?}") };
        assert!(told.contains("HARD_TIMEOUT n=8"), "{hosts:?}: {told:?}");
    }
}

/// A switch that does not say for a while what the pieces have counted is asked again.
#[test]
fn an_entry_ends_when_the_switch_has_said_that_it_is_idle() {
    /// MULTIPART_REQUEST.
    const ASKS: u8 = 18;
    for host in [1, 2] {
        let mut stage = with_timeouts("idle=4");
        stage.wait(3);
        stage.plant(1, vec![Fault::NeverAnswers { message_type: ASKS }]);
        stage.send(BLUE, 1, 1, &packet(&format!("10.0.0.{host}>10.0.0.9")));
        for _ in 0..9 {
            stage.wait(1);
            assert_eq!((stage.take_told(), pieces(&stage)), (Vec::new(), 2));
        }
        stage.plant(1, Vec::new());
        let (_, told) = ends(&mut stage);
        assert!(told.contains("IDLE_TIMEOUT n=1"), "{told:?}");
    }
}

/// Whatever an entry becomes, it is on the switch what it is then, and counts on.
#[test]
fn an_entry_is_one_or_two_as_it_is_modified() {
    let mut stage = stage();
    let modify = |actions: &str| format!("flow modify prio=6 table=1 actions={actions}");
    for words in ["group add id=1 buckets=output:1", GROUP, GOES_ON] {
        both_say(&mut stage, BLUE, 1, words);
    }
    both_say(&mut stage, BLUE, 1, "flow add prio=6 match=ip table=1 actions=drop flags=rem");
    for (actions, pieces) in [
        ("write=output:1", 2),
        ("write=group:1", 1),
        ("clear;write=output:1;goto=2", 1),
        // By each port of entry and by none without a group, and once with one.
        ("write=output:10", 5),
        ("write=output:10,mod_dl_src:02.00.00.00.00.55;goto=2", 5),
        ("drop", 1),
        ("write=in_port", 5),
    ] {
        both_say(&mut stage, BLUE, 1, &modify(actions));
        let entries = stage.entries(1);
        let found = entries.iter().filter(|it| it.contains("prio=6 ")).count();
        assert_eq!(found, pieces, "{actions}: {entries:?}");
        all_same(&mut stage);
        for question in ["stats flow", "stats aggregate"] {
            assert_eq!(stage.say(BLUE, 1, question), stage.say_beside(BLUE, 1, question));
        }
    }
    let gone = stage.say(BLUE, 1, "flow delete match= table=1");
    assert_eq!(gone, stage.say_beside(BLUE, 1, "flow delete match= table=1"));
    assert_eq!(gone.len(), 1, "{gone:?}");
}

/// The switch holds them as they are meant after a restart, also if it held something else: what an earlier version wrote.
#[test]
fn they_are_found_again_after_a_restart() {
    let setup = Setup { policy: on(crowded()), ports: 6, ..Setup::new(Version::V1_3, "") };
    let mut world = World::new(setup);
    let blue = world.connect("blue");
    for words in [
        "group add id=1 buckets=output:1",
        GROUP,
        GOES_ON,
        "flow add prio=5 table=1 match=in_port=1 actions=write=output:10 cookie=9",
    ] {
        say(&mut world, blue, words);
    }
    let entries = world.switch_entries();
    let pieces = |world: &World| {
        let flows = world.switch_flows();
        flows.iter().filter(|it| it.starts_with("2 prio=5 ")).cloned().collect::<Vec<_>>()
    };
    let [without, with] = &pieces(&world)[..] else { panic!("{entries:?}") };
    assert!(without.contains("metadata=0x2000100000000/0xffffffff80000000"), "{without}");
    assert!(with.contains("metadata=0x2000180000000/0xffffffff80000000"), "{with}");
    for _ in 0..2 {
        world.reconnect();
        assert_eq!(world.switch_entries(), entries);
    }
    // One for both, under the same cookie, and no bit written.
    let entry = entries.iter().find(|entry| entry.starts_with(without)).unwrap();
    let cookie = entry.split(' ').nth(3).unwrap();
    world.behind("flow delete match= table=2");
    world.behind(&format!(
        "flow add prio=5 table=2 match=metadata=0x2000100000000/0xffffffff00000000 \
         actions=write=output:1 cookie={cookie}"
    ));
    world.behind("flow modify match=ip,nw_src=10.0.0.1 table=1 actions=output:1");
    assert_ne!(world.switch_entries(), entries);
    world.reconnect();
    assert_eq!(world.switch_entries(), entries);
}
