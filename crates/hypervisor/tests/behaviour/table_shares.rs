//! Tests of the division of the switch's tables among tenants by weight. A tenant that asks for more than its share
//! gets TABLE_FULL. The shares of the other tenants stay free for them.

use crate::support::*;
use hypervisor::{Event, SaidBy};
use openflow::v10::{StatsReply, StatsReplyBody};
use openflow::v13::{MultipartReply, MultipartReplyBody};

const SPACES: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

/// A world with two tenants and a switch with this configuration.
fn world(version: Version, configure: fn(&mut emulate::Config)) -> World {
    let mut setup = Setup::new(version, SPACES);
    setup.configure = configure;
    World::new(setup)
}

/// A tenant adds this number of entries. Gives the number of the tenant's entries, and the errors of refused requests.
fn ask(world: &mut World, tenant: &str, net: u8, count: usize) -> (usize, Vec<String>) {
    let seat = world.connect(tenant);
    for n in 0..count {
        let words =
            format!("flow add match=ip,nw_src=10.{net}.{}.{} actions=output:1", n / 256, n % 256);
        world.controllers[seat.0].outgoing.push_back(request(world.version, n as u32, &words));
    }
    world.pump();
    world.stored();
    world.advance(100_000_000);
    let id = world.tenant(tenant);
    let flows = world.core.tenants().find(|state| state.id == id).map(|state| state.flows).unwrap();
    let mut errors = world.heard(seat);
    for line in &mut errors {
        // Only the name of the error, without the xid and the request.
        *line =
            line.split_whitespace().find(|word| word.contains("FULL")).unwrap_or("?").to_owned();
    }
    errors.dedup();
    (flows, errors)
}

fn full(version: Version) -> Vec<String> {
    let name = if version == Version::V1_0 { "ALL_TABLES_FULL" } else { "TABLE_FULL" };
    vec![name.to_owned()]
}

fn check_errors(errors: &[String], version: Version) {
    let [expected] = &full(version)[..] else { panic!() };
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains(expected.as_str()), "{errors:?}");
}

#[test]
fn a_tenant_gets_its_share_when_another_tenant_asks_for_the_whole_table() {
    for version in VERSIONS {
        let mut world = world(version, |config| {
            config.n_buffers = 0;
            config.n_tables = 3;
            config.max_flows = 1_000;
        });
        let room = 1_000;
        let shares = world.core.shares_of(world.tenant("red"));
        let [share] = shares[..] else { panic!("{shares:?}") };
        assert_eq!((share.holds.rules, share.may), (room, room / 2));
        assert_eq!(share.holds.by, SaidBy::Switch);
        let (red, errors) = ask(&mut world, "red", 1, 1_000);
        assert_eq!(red, 500, "{version:?}");
        check_errors(&errors, version);
        let (blue, errors) = ask(&mut world, "blue", 2, 500);
        assert_eq!((blue, errors), (500, Vec::new()), "{version:?}");
        // After red deletes rules, red may add other rules.
        let seat = world.connect("red");
        world.say(seat, 1, "flow delete match=ip,nw_src=10.1.0.0/24");
        world.say(seat, 2, "flow add match=ip,nw_src=10.1.200.1 actions=output:1");
        assert_eq!(world.heard(seat), [""; 0]);
    }
}

#[test]
fn a_table_of_unknown_size_is_divided_after_a_table_full_error() {
    for version in VERSIONS {
        let mut world = world(version, |config| {
            config.n_buffers = 0;
            config.faults = vec![emulate::Fault::RefuseFlowMods { every: 150 }];
        });
        assert_eq!(world.core.shares_of(world.tenant("red")), [], "a million is no figure");
        let (red, errors) = ask(&mut world, "red", 1, 400);
        check_errors(&errors, version);
        let found = world.events.iter().find_map(|event| match event {
            Event::TableFull { rules, .. } => Some(*rules),
            _ => None,
        });
        let found = found.expect("the table was found full");
        assert!(found as usize <= red && red < 400, "{version:?}: {found} {red}");
        let [share] = world.core.shares_of(world.tenant("blue"))[..] else { panic!() };
        assert_eq!(share.holds.by, SaidBy::Full);
        assert_eq!(share.may, found.div_ceil(2), "what cannot be halved is the last tenant's");
        // The switch refuses each 150th FLOW_MOD, and none of these 40.
        let (blue, errors) = ask(&mut world, "blue", 2, 40);
        assert_eq!((blue, errors), (40, Vec::new()), "{version:?}");
        // After a reload Weir knows no full tables.
        world.core.forget_full_tables();
        assert_eq!(world.core.shares_of(world.tenant("red")), []);
    }
}

/// A tenant may fill a table of unknown size. From then on Weir divides the table and removes no rule, so the other
/// tenant gets the room of rules that the first tenant deletes.
#[test]
fn a_tenant_that_fills_a_table_of_unknown_size_keeps_its_rules() {
    for version in VERSIONS {
        let mut world = world(version, small_and_silent);
        let (red, errors) = ask(&mut world, "red", 1, 1_100);
        assert_eq!(red, 1_000, "{version:?}");
        check_errors(&errors, version);
        let [share] = world.core.shares_of(world.tenant("blue"))[..] else { panic!() };
        assert_eq!((share.holds.rules, share.holds.by, share.may), (1_000, SaidBy::Full, 500));
        let (blue, errors) = ask(&mut world, "blue", 2, 300);
        assert_eq!(blue, 0, "{version:?}: nothing is left");
        check_errors(&errors, version);
        // Red still has more rules than its share, so blue gets the room of the rules that red deletes.
        let seat = world.connect("red");
        world.say(seat, 1, "flow delete match=ip,nw_src=10.1.0.0/24");
        world.say(seat, 2, "flow add match=ip,nw_src=10.1.200.1 actions=output:1");
        let received = world.heard(seat);
        assert!(received.len() == 1 && received[0].contains("FULL"), "{version:?}: {received:?}");
        let (blue, errors) = ask(&mut world, "blue", 2, 300);
        assert_eq!(blue, 256, "{version:?}");
        check_errors(&errors, version);
        world.say(seat, 3, "flow delete");
        let (blue, errors) = ask(&mut world, "blue", 2, 500);
        assert_eq!((blue, errors), (500, Vec::new()), "{version:?}");
        let (red, errors) = ask(&mut world, "red", 1, 600);
        assert_eq!(red, 500, "{version:?}");
        check_errors(&errors, version);
    }
}

#[test]
fn rule_limits_leave_room_in_a_table_of_unknown_size() {
    for version in VERSIONS {
        let mut setup = Setup { configure: small_and_silent, ..Setup::new(version, SPACES) };
        setup.policy.tenants.iter_mut().for_each(|tenant| tenant.limits.entries = 500);
        let mut world = World::new(setup);
        let (red, errors) = ask(&mut world, "red", 1, 1_100);
        assert_eq!(red, 500, "{version:?}");
        check_errors(&errors, version);
        let (blue, errors) = ask(&mut world, "blue", 2, 500);
        assert_eq!((blue, errors), (500, Vec::new()), "{version:?}");
    }
}

/// Weir divides no table with a reported size of a million rules or more, because this is not a real size. Weir takes
/// no table of fewer than 64 rules as full, whatever error the switch sends.
#[test]
fn tables_of_64_to_999999_rules_are_divided() {
    type Case = (fn(&mut emulate::Config), usize, &'static [u32]);
    let cases: [Case; 4] = [
        (|config| config.max_flows = 999_999, 0, &[999_999]),
        (|config| config.max_flows = 1_000_000, 0, &[]),
        (|config| silent(config, 64), 64, &[64]),
        (|config| silent(config, 63), 63, &[]),
    ];
    for version in VERSIONS {
        for (configure, filled, sizes) in cases {
            let mut world = world(version, configure);
            if filled > 0 {
                let (red, errors) = ask(&mut world, "red", 1, filled + 1);
                assert_eq!(red, filled, "{version:?}");
                check_errors(&errors, version);
            }
            let shares = world.core.shares_of(world.tenant("red"));
            let found: Vec<u32> = shares.iter().map(|share| share.holds.rules).collect();
            assert_eq!(found, sizes, "{version:?} {filled}");
        }
    }
}

/// Tables for 1,000 rules, whose size the switch does not report.
fn small_and_silent(config: &mut emulate::Config) {
    silent(config, 1_000);
}

/// Tables for this number of rules, whose size the switch does not report.
fn silent(config: &mut emulate::Config, max_flows: usize) {
    config.n_buffers = 0;
    config.n_tables = 3;
    config.max_flows = max_flows;
    config.faults = vec![emulate::Fault::HideTableSizes];
}

#[test]
fn a_refusal_in_an_almost_empty_table_does_not_mark_the_table_as_full() {
    for version in VERSIONS {
        let mut world = world(version, |config| {
            config.n_buffers = 0;
            config.faults = vec![emulate::Fault::RefuseFlowMods { every: 20 }];
        });
        let (red, errors) = ask(&mut world, "red", 1, 30);
        assert!(red >= 28, "{red}");
        check_errors(&errors, version);
        assert_eq!(world.core.shares_of(world.tenant("red")), []);
    }
}

/// A world of OpenFlow 1.3 in which red has one hundredth of the switch: 41 of 4,096 groups of each type, and the same
/// number of meters.
fn small_share(setup: impl FnOnce(&mut Setup)) -> World {
    let mut made = Setup::new(Version::V1_3, SPACES);
    let blue = &mut made.policy.tenants[1];
    // Blue's limits are larger than its share. With smaller limits red would get the rest.
    (blue.weight, blue.limits.groups, blue.limits.meters) = (99, 5_000, 5_000);
    setup(&mut made);
    World::new(made)
}

#[test]
fn groups_and_meters_are_divided_by_weight() {
    let mut world = small_share(|_| {});
    let shares = world.core.number_shares_of(world.tenant("red"));
    assert_eq!(shares.len(), 5, "groups of four types, and meters: {shares:?}");
    assert!(shares.iter().all(|it| (it.holds, it.may) == (Some(4096), 41)), "{shares:?}");
    let red = world.connect("red");
    for n in 1..=42 {
        world.say(red, n, &format!("group add id={n} type=select buckets=output:1"));
        world.say(red, 100 + n, &format!("meter add id={n} rate=1000"));
    }
    let received = world.heard(red);
    assert_eq!(received.len(), 2, "{received:?}");
    assert!(
        received[0].contains("OUT_OF_GROUPS") && received[1].contains("OUT_OF_METERS"),
        "{received:?}"
    );
    // Each type of groups has a share of its own. Weir refuses to change a group to a type whose share is used up.
    world.say(red, 200, "group add id=50 type=all buckets=output:1");
    world.say(red, 201, "group modify id=1 type=select buckets=output:2");
    assert_eq!(world.heard(red), [""; 0]);
    world.say(red, 202, "group modify id=50 type=select buckets=output:1");
    let received = world.heard(red);
    assert!(received.len() == 1 && received[0].contains("OUT_OF_GROUPS"), "{received:?}");
    // After red deletes a group and a meter, red may add others. Blue still has its own share.
    world.say(red, 203, "group delete id=1");
    world.say(red, 204, "group modify id=50 type=select buckets=output:1");
    world.say(red, 205, "meter delete id=1");
    world.say(red, 206, "meter add id=50 rate=1000");
    assert_eq!(world.heard(red), [""; 0]);
    let blue = world.connect("blue");
    for n in 1..=100 {
        world.say(blue, n, &format!("group add id={n} type=select buckets=output:1"));
    }
    assert_eq!(world.heard(blue), [""; 0]);
}

#[test]
fn group_and_meter_limits_apply_when_shares_are_larger() {
    let mut world = small_share(|setup| {
        let limits = &mut setup.policy.tenants[0].limits;
        (limits.groups, limits.meters) = (3, 2);
    });
    let red = world.connect("red");
    for n in 1..=4 {
        world.say(red, n, &format!("group add id={n} type=all buckets=output:1"));
        world.say(red, 100 + n, &format!("meter add id={n} rate=1000"));
    }
    let received = world.heard(red);
    assert_eq!(
        received.iter().filter(|it| it.contains("OUT_OF_GROUPS")).count(),
        1,
        "{received:?}"
    );
    assert_eq!(
        received.iter().filter(|it| it.contains("OUT_OF_METERS")).count(),
        2,
        "{received:?}"
    );
}

/// The maximum numbers in the only reply to a request of OpenFlow 1.3.
fn features(world: &mut World, seat: Seat, question: &str) -> Vec<u32> {
    world.say(seat, 1, question);
    let received = world.received(seat);
    assert_eq!(received.len(), 1, "{question}");
    let reply = MultipartReply::parse(&received[0][8..]).unwrap();
    match reply.body {
        MultipartReplyBody::TableFeatures(it) => it.iter().map(|it| it.max_entries).collect(),
        MultipartReplyBody::GroupFeatures(it) => it.max_groups.into(),
        MultipartReplyBody::MeterFeatures(it) => vec![it.max_meter],
        other => panic!("{question}: {other:?}"),
    }
}

#[test]
fn group_meter_and_table_features_show_the_tenants_share_as_maximum() {
    const QUESTIONS: [&str; 3] =
        ["stats group_features", "stats meter_features", "stats table_features"];
    let figures = |world: &mut World, tenant: &str| {
        let seat = world.connect(tenant);
        QUESTIONS.map(|question| features(world, seat, question))
    };
    let mut world = small_share(|setup| setup.configure = |config| config.max_flows = 1_000);
    assert_eq!(figures(&mut world, "red"), [vec![41; 4], vec![41], vec![10; 15]]);
    let blue = [vec![4_055; 4], vec![4_055], vec![990; 15]];
    assert_eq!(figures(&mut world, "blue"), blue);
    // The reply shows a limit that is lower than the share. The reply also shows the limit if the switch reports no
    // real table size.
    let mut world = small_share(|setup| {
        let limits = &mut setup.policy.tenants[0].limits;
        (limits.groups, limits.meters, limits.flows) = (3, 2, 7);
    });
    assert_eq!(figures(&mut world, "red"), [vec![3; 4], vec![2], vec![7; 15]]);
    assert_eq!(figures(&mut world, "blue")[2], vec![10_000; 15]);
}

#[test]
fn table_statistics_show_the_tenants_share_as_table_size_on_1_0() {
    let mut world = world(Version::V1_0, |config| config.max_flows = 1_000);
    let red = world.connect("red");
    world.say(red, 1, "stats table");
    let received = world.received(red);
    let reply = StatsReply::parse(&received[0][8..]).unwrap();
    let StatsReplyBody::Table(tables) = reply.body else { panic!("{reply:?}") };
    assert_eq!(tables.iter().map(|table| table.max_entries).collect::<Vec<_>>(), [500]);
}
