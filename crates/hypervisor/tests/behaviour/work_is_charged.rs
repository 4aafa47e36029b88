//! Tests of the cost of a tenant's requests inside Weir, counted in examined entries and charged to this tenant. Other
//! tenants do not wait for this work. Weir accepts only as many unfinished requests as it has room for.

use crate::support::*;
use emulate::Fault;
use hypervisor::Account;
use std::sync::Arc;

const SPACES: &str = "
    quiet: ip,nw_src=10.1.0.0/16
    one: ip,nw_src=10.2.0.0/16
    two: ip,nw_src=10.3.0.0/16
    three: ip,nw_src=10.4.0.0/16
";
const HOSTILE: [&str; 3] = ["one", "two", "three"];
/// The number of entries of each hostile tenant.
const ENTRIES: usize = 2_600;
/// The number of bytes that the daemon reads from a connection in one turn.
const READ: usize = 4096;
/// The largest cost of one turn of the event loop in examined entries, without the tenant with the highest cost.
const TURN: u64 = 24_576;

/// The largest cost of one tenant in one turn: two batches, and a look at each entry.
const LARGEST: u64 = 2 * 96 * 128 + 2 * ENTRIES as u64;

/// The largest cost of one tenant in one turn with requests that change nothing: two batches of entries that are
/// compared with the request.
const COMPARED: u64 = 2 * 8 * 128;

/// The largest cost of one tenant in one turn with requests that also add an entry, each after its last batch.
const ADDED: u64 = COMPARED + 256;

/// The largest cost of one tenant in one turn with statistics: a batch of reported entries.
const REPORTED: u64 = 12 * 8 * 128;

/// A world in which each hostile tenant has its entries.
fn world(version: Version, setup: impl Fn(&mut Setup)) -> (World, Vec<Seat>) {
    let mut made = Setup::new(version, SPACES);
    setup(&mut made);
    let mut world = World::new(made);
    let seats: Vec<Seat> = HOSTILE.map(|name| world.connect(name)).into();
    for (seat, net) in seats.iter().zip(2..) {
        for n in 0..ENTRIES {
            let (high, low) = (n / 256, n % 256);
            let words = format!(
                "flow add match=ip,nw_src=10.{net}.{high}.{low} cookie={n} actions=output:1"
            );
            world.controllers[seat.0].outgoing.push_back(request(version, 1, &words));
        }
    }
    world.pump();
    world.stored();
    world.advance(100_000_000);
    assert!(world.core.tenants().skip(1).all(|tenant| tenant.flows == ENTRIES));
    seats.iter().for_each(|seat| assert_eq!(world.heard(*seat), [""; 0]));
    (world, seats)
}

/// All hostile tenants send this request all the time. The quiet tenant is served in each turn of the event loop, and
/// the work for the hostile tenants in one turn is bounded.
fn check(version: Version, attack: impl Fn(usize, u8) -> String) {
    check_within(LARGEST, version, attack);
}

/// Does the same as `check`, with this bound for the cost of one tenant in one turn.
fn check_within(bound: u64, version: Version, attack: impl Fn(usize, u8) -> String) {
    let (most, largest) = costs(version, attack);
    // In each turn at most one tenant does work for a request that is large by itself, and only one batch.
    assert!(most <= TURN, "{version:?}: {most} and {largest}");
    assert!(largest <= bound, "{version:?}: {largest}");
}

/// The largest cost in one turn of all tenants without the most expensive one, and the largest cost of one tenant in
/// one turn.
fn costs(version: Version, attack: impl Fn(usize, u8) -> String) -> (u64, u64) {
    let (mut world, seats) = world(version, |_| {});
    let quiet = world.connect("quiet");
    let (mut most, mut largest) = (0, 0);
    for turn in 0..200 {
        for (seat, net) in seats.iter().zip(2..) {
            let at = turn * 40;
            let outgoing = &mut world.controllers[seat.0].outgoing;
            for n in (at..at + 40).skip(outgoing.len().min(40)) {
                outgoing.push_back(request(version, 1, &attack(n, net)));
            }
        }
        world.controllers[quiet.0].outgoing.push_back(request(version, turn as u32, "echo"));
        let before: Vec<u64> = world.core.tenants().map(|it| it.counters.examined).collect();
        world.turn(READ);
        world.now += 100_000;
        let after = world.core.tenants().zip(before).skip(1);
        let each: Vec<u64> = after.map(|(it, before)| it.counters.examined - before).collect();
        assert_eq!(world.heard(quiet).len(), 1, "{version:?} turn {turn}");
        most = most.max(each.iter().sum::<u64>() - each.iter().max().unwrap());
        largest = largest.max(*each.iter().max().unwrap());
    }
    (most, largest)
}

#[test]
fn a_modify_of_each_entry_does_not_delay_another_tenant() {
    for version in VERSIONS {
        check(version, |n, _| format!("flow modify actions=output:{}", n % 3 + 1));
    }
}

#[test]
fn overlap_checks_do_not_delay_another_tenant() {
    for version in VERSIONS {
        check_within(ADDED, version, |n, net| {
            let (high, low) = (n / 256 % 256, n % 256);
            // No entry of this tenant has equal fields, so Weir finds no overlapping entry by a single lookup.
            format!(
                "flow add flags=overlap match=ip,nw_src=10.{net}.128.0/17,nw_dst=10.9.{high}.{low} \
                 actions=output:1"
            )
        });
    }
}

/// A match that must be compared with all entries and covers none.
fn elsewhere(n: usize, net: u8) -> String {
    format!("match=ip,nw_src=10.{net}.{}.{}/31", 128 + n / 128 % 128, n % 128 * 2)
}

#[test]
fn a_delete_without_matching_entries_does_not_delay_another_tenant() {
    for version in VERSIONS {
        check_within(COMPARED, version, |_, net| {
            format!("flow delete match=ip,nw_src=10.{net}.128.0/17")
        });
    }
    check_within(COMPARED, Version::V1_3, |_, _| {
        "flow delete cookie=70000 cookie_mask=0xffffffffffffffff".into()
    });
    check_within(COMPARED, Version::V1_3, |_, _| {
        "flow delete cookie=0x8000 cookie_mask=0xffff".into()
    });
    check_within(COMPARED, Version::V1_3, |_, _| "flow delete out_group=4".into());
}

/// The cost of a deletion by cookie or by output port depends on the number of deleted entries, not on the number of
/// the tenant's entries.
#[test]
fn a_delete_by_cookie_or_out_port_is_charged_only_for_the_deleted_entries() {
    const MET: usize = 10;
    let by_cookie = |cookie| format!("cookie={cookie} cookie_mask=0xffffffffffffffff");
    // Ten entries have cookie 3, and no entry has cookie 70,000. Ten entries send to port 2, and no entry to port 4.
    let cookies = [by_cookie(3), by_cookie(70_000)];
    let ports = ["out_port=2", "out_port=4"].map(str::to_owned);
    for (version, filters) in
        [(Version::V1_3, &cookies), (Version::V1_3, &ports), (Version::V1_0, &ports)]
    {
        let charged = |entries: usize| {
            let mut world = World::new(Setup::new(version, SPACES));
            let one = world.connect("one");
            for n in 0..entries {
                let (high, low, cookie) = (n / 256, n % 256, n / MET);
                let port = if cookie == 3 { 2 } else { 1 };
                let words = format!(
                    "flow add match=ip,nw_src=10.2.{high}.{low} cookie={cookie} actions=output:{port}"
                );
                world.controllers[one.0].outgoing.push_back(request(version, 1, &words));
            }
            world.pump();
            world.advance(1_000_000_000);
            let state = |world: &World| {
                let one = world.core.tenants().nth(1).unwrap();
                (one.flows, one.counters.examined)
            };
            assert_eq!(state(&world).0, entries);
            let costs = filters.each_ref().map(|filter| {
                let (_, before) = state(&world);
                world.say(one, 1, &format!("flow delete {filter}"));
                world.advance(1_000_000_000);
                state(&world).1 - before
            });
            assert_eq!(state(&world).0, entries - MET);
            costs
        };
        let (few, many) = (charged(100), charged(9_900));
        assert_eq!(few, many, "{filters:?}");
        assert!(many[0] < 1_000 && many[1] < 20, "{many:?}");
    }
}

/// An entry is found by the ports to which its last actions send packets, each once.
#[test]
fn a_delete_by_out_port_finds_entries_by_their_last_actions() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let one = world.connect("one");
        let left = |world: &World| world.core.tenants().nth(1).unwrap().flows;
        for (words, expected) in [
            ("flow add match=ip,nw_src=10.2.0.1 actions=output:1,output:2,output:1", 1),
            ("flow add match=ip,nw_src=10.2.0.2 actions=output:2", 2),
            ("flow modify match=ip,nw_src=10.2.0.1 out_port=4 actions=output:3", 2),
            ("flow delete out_port=1", 2),
            ("flow delete match=ip,nw_src=10.2.0.1 out_port=2", 2),
            ("flow delete match=ip,nw_src=10.2.0.1 out_port=3", 1),
            ("flow add match=ip,nw_src=10.2.0.2 actions=output:1", 1),
            ("flow delete out_port=2", 1),
            ("flow delete out_port=1", 0),
        ] {
            world.say(one, 1, words);
            world.advance(1_000_000_000);
            assert_eq!(left(&world), expected, "{words} on {version:?}");
        }
    }
}

#[test]
fn a_modify_without_matching_entries_does_not_delay_another_tenant() {
    check_within(COMPARED, Version::V1_3, |n, net| {
        format!("flow modify {} actions=output:2", elsewhere(n, net))
    });
    // On 1.0 a MODIFY without a matching entry adds an entry.
    check_within(ADDED, Version::V1_0, |n, net| {
        format!("flow modify {} actions=output:2", elsewhere(n, net))
    });
}

/// The last entries are compared in a later turn. Requests that follow at once see the result of the comparison.
#[test]
fn requests_compared_in_several_turns_are_done_in_order() {
    for version in VERSIONS {
        let (mut world, seats) = world(version, |_| {});
        let one = seats[0];
        let last = format!("10.2.{}.{}/31", (ENTRIES - 1) / 256, ((ENTRIES - 1) % 256) & 0xfe);
        let requests = [
            format!("flow add flags=overlap match=ip,nw_src={last} actions=output:2"),
            format!("flow add flags=overlap prio=9 match=ip,nw_src={last} actions=output:2"),
            "flow add flags=overlap match=ip,nw_src=10.2.200.0/24 actions=output:2".to_owned(),
            "flow add flags=overlap match=ip,nw_src=10.2.200.0/25 actions=output:2".to_owned(),
            "flow modify match=ip,nw_src=10.2.201.0/24 actions=output:2".to_owned(),
            "barrier".to_owned(),
        ];
        // Weir refuses the first and the fourth request, for an overlap. If the switch refuses the third request, Weir
        // takes the switch's table as full.
        let added = if version == Version::V1_0 { 3 } else { 2 };
        for (by_switch, refused, added) in [(None, [10, 13], added), (Some(2), [10, 12], 1)] {
            let faults = by_switch.map(|nth| Fault::RefuseOnce { nth });
            world.switch.switch_mut().plant(faults.into_iter().collect());
            for (xid, words) in (10..).zip(&requests) {
                world.controllers[one.0].outgoing.push_back(request(version, xid, words));
            }
            world.pump();
            world.advance(1_000_000_000);
            let heard = world.heard(one);
            let errors = refused.map(|xid| format!("{xid} ERROR"));
            let refusals = heard.iter().zip(&errors).filter(|(it, error)| it.starts_with(*error));
            assert_eq!(refusals.count(), 2, "{version:?}: {heard:?}");
            let Some((barrier, others)) = heard[2..].split_last() else { panic!("{heard:?}") };
            assert_eq!(barrier, "15 BARRIER_REPLY", "{version:?}");
            assert!(others.iter().all(|it| it.contains("FULL")), "{version:?}: {heard:?}");
            assert_eq!(others.is_empty(), by_switch.is_none(), "{version:?}: {heard:?}");
            let flows = world.core.tenants().nth(1).unwrap().flows;
            assert_eq!(flows, ENTRIES + added, "{version:?} {by_switch:?}");
            world.say(one, 1, "flow delete out_port=2");
            world.advance(1_000_000_000);
        }
        world.check_agreement();
    }
}

/// Weir compares the last entry in a later turn, and refuses the request. Then the tenant can use the buffered packet
/// once in a PACKET_OUT.
#[test]
fn a_request_refused_in_a_later_turn_does_not_use_its_buffer_id() {
    for version in VERSIONS {
        let (mut world, seats) = world(version, |setup| setup.configure = |_| {});
        let one = seats[0];
        world.switch_says(&announcement(version, 7, &packet("10.2.200.1>10.9.0.1")));
        let _ = world.heard(one);
        let last = format!("10.2.{}.{}/31", (ENTRIES - 1) / 256, ((ENTRIES - 1) % 256) & 0xfe);
        let words =
            format!("flow add flags=overlap buffer=0 match=ip,nw_src={last} actions=output:2");
        world.say(one, 10, &words);
        world.advance(1_000_000_000);
        let heard = world.heard(one);
        assert!(heard.len() == 1 && heard[0].contains("OVERLAP"), "{version:?}: {heard:?}");
        world.south.clear();
        world.lose_south(true);
        for xid in [11, 12] {
            world.say(one, xid, "out buffer=0 actions=output:3");
        }
        assert_eq!(world.south.iter().filter(|it| it[1] == 13).count(), 1, "{version:?}");
        let used = "12 ERROR OFPBRC_BUFFER_UNKNOWN of type 13 xid 12";
        assert_eq!(world.heard(one), [used], "{version:?}");
    }
}

#[test]
fn statistics_of_many_entries_do_not_delay_another_tenant() {
    for version in VERSIONS {
        check_within(REPORTED, version, |_, _| "stats flow".to_owned());
        check_within(REPORTED, version, |n, net| {
            format!("stats aggregate match=ip,nw_src=10.{net}.{}.0/24", n % 8)
        });
    }
}

/// The switch reports no rule, and Weir examines all entries of the tenant. Weir does this for only one tenant in one
/// turn.
#[test]
fn statistics_without_matching_entries_do_not_delay_another_tenant() {
    for what in ["flow", "aggregate"] {
        let (most, _) =
            costs(Version::V1_0, |n, net| format!("stats {what} {}", elsewhere(n, net)));
        assert!(most < ENTRIES as u64, "{what}: {most}");
    }
}

/// The switch's reply arrives when a change of all entries is applied in part.
#[test]
fn statistics_show_only_completely_applied_changes() {
    for version in VERSIONS {
        let (mut world, seats) = world(version, |_| {});
        let one = seats[0];
        for words in ["stats flow", "flow modify actions=output:2", "stats flow"] {
            world.controllers[one.0].outgoing.push_back(request(version, 7, words));
        }
        (0..100).for_each(|_| world.turn(READ));
        world.advance(1_000_000_000);
        let replies = world.heard(one).concat();
        let of = |port: u8| replies.matches(&format!("output:{port}")).count();
        let (before, after) = (of(1), of(2));
        assert_eq!(before + after, 2 * ENTRIES, "{version:?}");
        assert_eq!(before % ENTRIES, 0, "{version:?}");
    }
}

#[test]
fn only_a_bounded_number_of_unfinished_requests_is_accepted() {
    const REQUESTS: u32 = 40;
    for version in VERSIONS {
        let (mut world, seats) = world(version, |_| {});
        // The store does not answer, so Weir sends no FLOW_MOD that the switch could confirm.
        world.store_at_once(false);
        let one = seats[0];
        for n in 0..REQUESTS {
            let words = format!("flow modify actions=output:{}", n % 3 + 1);
            world.controllers[one.0].outgoing.push_back(request(version, n, &words));
        }
        world.pump();
        world.advance(1_000_000_000);
        let taken = REQUESTS as usize - world.controllers[one.0].outgoing.len();
        let held = world.core.tenants().nth(1).unwrap().held;
        assert!((1..10).contains(&taken), "{version:?}: {taken}");
        assert!(held <= 16 << 20, "{version:?}: {held}");
        // The quiet tenant is served at the same time.
        let quiet = world.connect("quiet");
        world.say(quiet, 1, "stats table");
        assert_eq!(world.heard(quiet).len(), 1);
        // In the end all requests are done, and Weir holds no memory for them.
        for _ in 0..REQUESTS * 20 {
            world.stored();
            world.advance(10_000_000);
        }
        assert_eq!(world.controllers[one.0].outgoing.len(), 0);
        assert_eq!(world.heard(one), [""; 0]);
        assert!(world.core.tenants().all(|tenant| tenant.held == 0));
    }
}

#[test]
fn the_memory_of_waiting_requests_is_bounded() {
    let limit = 1 << 20;
    for version in VERSIONS {
        let (mut world, seats) = world(version, |setup| setup.settings.tenant_bytes = limit);
        world.store_at_once(false);
        let one = seats[0];
        let long = vec!["output:1"; 2_000].join(",");
        for n in 0..200 {
            let words = match n {
                0 => "flow add match=ip,nw_src=10.2.200.0/24 actions=output:2".to_owned(),
                _ => format!("flow modify match=ip,nw_src=10.2.200.0/24 actions={long}"),
            };
            world.controllers[one.0].outgoing.push_back(request(version, n, &words));
        }
        world.pump();
        world.advance(1_000_000_000);
        let longest = world.controllers[one.0].outgoing.iter().map(Vec::len).max().unwrap();
        let held = world.core.tenants().nth(1).unwrap().held;
        assert!(held <= limit + 2 * longest, "{version:?}: {held}");
        assert!(world.controllers[one.0].outgoing.len() > 100);
    }
}

/// The tenant has four switches. The bound for one switch is larger than the bound for all switches together.
#[test]
fn requests_held_on_all_switches_are_bounded() {
    const IN_ALL: usize = 1 << 20;
    const REQUESTS: u32 = 20;
    for version in VERSIONS {
        let account = Arc::<Account>::default();
        let mut worlds = [(); 4].map(|()| {
            let mut setup = Setup::new(version, SPACES);
            setup.settings.tenant_bytes = 64 << 20;
            setup.settings.tenant_bytes_in_all = IN_ALL;
            let mut world = World::new(setup);
            world.core.share_account(world.tenant("one"), account.clone());
            // The store does not answer, so no request is done.
            world.store_at_once(false);
            world
        });
        let long = vec!["output:1"; if version == Version::V1_0 { 7_000 } else { 3_500 }].join(",");
        let mut longest = 0;
        for world in &mut worlds {
            let one = world.connect("one");
            for n in 0..REQUESTS {
                let words = format!("flow add match=ip,nw_src=10.2.0.{n} actions={long}");
                let message = request(version, n, &words);
                longest = longest.max(message.len());
                world.controllers[one.0].outgoing.push_back(message);
            }
        }
        // The first switches accept requests until the memory for all switches is used. Then each other switch accepts
        // one request.
        for world in &mut worlds {
            world.pump();
            world.advance(1_000_000_000);
        }
        let left = worlds.each_ref().map(|world| world.controllers[0].outgoing.len());
        let taken = left.map(|left| REQUESTS as usize - left);
        assert!(taken.iter().all(|taken| *taken > 0), "{version:?}: {taken:?}");
        assert_eq!(taken[3], 1, "{version:?}: {taken:?}");
        assert!(taken.iter().sum::<usize>() > 10, "{version:?}: {taken:?}");
        assert!(account.held() >= IN_ALL, "{version:?}: {}", account.held());
        assert!(account.held() < IN_ALL + 4 * 2 * longest, "{version:?}: {}", account.held());
        for world in &mut worlds {
            let quiet = world.connect("quiet");
            for n in 0..REQUESTS {
                let words = format!("flow add match=ip,nw_src=10.1.0.{n} actions=output:1");
                world.say(quiet, n, &words);
            }
            assert_eq!(world.controllers[quiet.0].outgoing.len(), 0, "{version:?}");
        }
        // In the end all requests of the tenant are done, and Weir holds no memory for them.
        for _ in 0..REQUESTS * 4 {
            for world in &mut worlds {
                world.stored();
                world.advance(10_000_000);
            }
        }
        for world in &mut worlds {
            assert_eq!(world.controllers[0].outgoing.len(), 0, "{version:?}");
            assert_eq!(world.heard(Seat(0)), [""; 0], "{version:?}");
            assert_eq!(world.tenant_flows().len(), 2 * REQUESTS as usize, "{version:?}");
        }
        assert_eq!(account.held(), 0, "{version:?}");
    }
}

/// A group deletion is one message, and the switch deletes the entries of the group with it.
#[test]
fn a_group_delete_counts_in_the_window_with_its_entries() {
    const ENTRIES: u32 = 800;
    let version = Version::V1_3;
    let mut world = World::new(Setup::new(version, SPACES));
    let [one, two] = ["one", "two"].map(|name| world.connect(name));
    world.say(one, 1, "group add id=1 buckets=output:1");
    for n in 0..ENTRIES {
        let words = format!("flow add match=udp,nw_src=10.2.0.1,tp_src={n} actions=group:1");
        world.say(one, 1, &words);
    }
    world.advance(1_000_000_000);
    assert_eq!((world.heard(one), world.core.window().1), (Vec::new(), 0));
    // The switch works on the deletion until the test answers the barrier behind it.
    world.lose_south(true);
    world.south.clear();
    world.say(one, 2, "group delete id=1");
    let types: Vec<u8> = world.south.iter().map(|message| message[1]).collect();
    assert_eq!(types, [15, 20], "the deletion, and a barrier of Weir's own");
    let barrier = world.south[1].clone();
    let (limit, in_flight) = world.core.window();
    // The window counts one for the message, and one more for each eight entries.
    assert_eq!(in_flight, 1 + ENTRIES / 8);
    assert!(in_flight < limit, "{limit}: for small messages there would be room");
    for n in 0..5 {
        world.say(two, n, "out actions=output:2 data=10.3.0.1>10.9.0.1");
    }
    let packets = |world: &World| world.south.iter().filter(|it| it[1] == 13).count();
    assert_eq!(packets(&world), 0);
    world.advance(100_000_000);
    assert_eq!(packets(&world), 0);
    let mut reply = barrier;
    reply[1] = 21;
    world.switch_says(&reply);
    assert_eq!((packets(&world), world.heard(two)), (5, Vec::new()));
}

/// A change of many entries is one message per entry. The switch gets messages of the other tenant between these
/// messages.
#[test]
fn a_modify_of_many_entries_shares_the_switch_with_another_tenant() {
    for version in VERSIONS {
        let text = "one: ip,nw_src=10.2.0.0/16\ntwo: ip,nw_src=10.3.0.0/16";
        let setup = Setup { per_second: Some(8_000), ..Setup::new(version, text) };
        let mut world = World::new(setup);
        let seats = ["one", "two"].map(|name| world.connect(name));
        for n in 0..800 {
            let from = n % 256;
            let words =
                format!("flow add match=udp,nw_src=10.2.1.{from},tp_src={n} actions=output:1");
            world.say(seats[0], 1, &words);
        }
        world.advance(1_000_000_000);
        let says = |world: &mut World, seat: Seat, words: &str| {
            world.controllers[seat.0].outgoing.push_back(request(version, 1, words));
        };
        for port in [2, 3, 2, 3] {
            says(&mut world, seats[0], &format!("flow modify actions=output:{port}"));
        }
        for _ in 0..4_000 {
            says(&mut world, seats[1], "out actions=output:2 data=10.3.0.1>10.9.0.1");
        }
        world.south.clear();
        world.advance(250_000_000);
        let sent = |type_: u8| world.south.iter().filter(|it| it[1] == type_).count();
        let (changes, packets) = (sent(14), sent(13));
        assert!(changes > 500 && changes.abs_diff(packets) < 100, "{changes} and {packets}");
    }
}
