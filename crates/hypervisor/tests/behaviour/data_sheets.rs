//! Tests of limits from a data sheet of the switch. Each tenant gets at most its share of the measured rates and tables
//! of the switch.

use crate::support::*;
use hypervisor::policy::Rate;
use hypervisor::sheet::{Figure, Measured, MessageClass, Sheet, TableSize};
use hypervisor::{Event, RateBy, SaidBy, Standing};
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
/// The rate of the switch: this number of messages per second, of any type.
const ABLE: u32 = 1_000;
const SPACES: &str = "
    red weight=3: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

fn measured(value: f64) -> Measured {
    let rate = Figure { name: "safe_rates.x".into(), experiment: "x".into(), value };
    Measured { rate, cost: (1e9 / value) as u64 }
}

/// The data sheet of the world's switch. Its description is that of the emulated switch.
fn sheet() -> Sheet {
    let classes = MessageClass::ALL.map(|class| (class, measured(f64::from(ABLE))));
    let software = emulate::Config::new(1, 1).software;
    Sheet {
        file: "sheet.json".into(),
        dpid: Some(DPID),
        description: Some(["Weir".into(), "emulated switch".into(), software]),
        classes: classes.into(),
        ..Sheet::default()
    }
}

fn with_sheet(version: Version, sheet: Option<Sheet>) -> World {
    let mut setup = Setup::new(version, SPACES);
    setup.policy.any_sheet = sheet.map(Arc::new);
    setup.per_second = Some(ABLE);
    World::new(setup)
}

/// Request `n` of the hostile tenant. The requests alternate between the message classes.
fn words(n: usize) -> String {
    match n % 4 {
        0 => format!("flow add match=ip,nw_src=10.2.{}.{} actions=output:2", n / 256, n % 256),
        1 => "out actions=output:2 data=10.2.0.1>10.9.0.1".to_owned(),
        2 => format!("stats port port={}", n % 3 + 1),
        _ => "barrier".to_owned(),
    }
}

/// All requests are PACKET_OUTs. No request has to wait for a PACKET_OUT.
fn packet_outs(_: usize) -> String {
    words(1)
}

/// A hostile tenant always has messages to send, for two seconds. Returns the number of messages that Weir sent to the
/// switch in the last second, and the length of the longest queue at the switch.
fn flood(version: Version, sheet: Option<Sheet>, words: fn(usize) -> String) -> (usize, usize) {
    let mut world = with_sheet(version, sheet);
    let blue = world.connect("blue");
    let (mut sent, mut longest, mut before) = (0, 0, 0);
    let begin = world.now;
    while world.now < begin + 2 * SECOND {
        while world.controllers[blue.0].outgoing.len() < 64 {
            let message = request(world.version, sent as u32 + 1, &words(sent));
            world.controllers[blue.0].outgoing.push_back(message);
            sent += 1;
        }
        world.advance(SECOND / 500);
        longest = longest.max(world.switch.queued());
        if world.now <= begin + SECOND {
            before = world.south.len();
        }
    }
    (world.south.len() - before, longest)
}

#[test]
fn a_hostile_tenant_gets_only_its_share_for_any_mixture_of_messages() {
    for version in VERSIONS {
        for words in [words, packet_outs] {
            let (done, longest) = flood(version, Some(sheet()), words);
            // Blue's share is a quarter of 1,000 messages. In addition, Weir sends some barriers of its own.
            assert!((200..=300).contains(&done), "{version:?}: {done}");
            // The queue has at most blue's messages for a tenth of a second and Weir's own requests at the start. The
            // queue does not grow over time.
            assert!(longest <= 40, "{version:?}: {longest}");
            let (done, _) = flood(version, None, words);
            assert!(done > 900, "{version:?} without a sheet: {done}");
        }
        let (_, longest) = flood(version, None, packet_outs);
        assert!(longest > 100, "{version:?} without a sheet: {longest}");
    }
}

#[test]
fn a_tenant_gets_its_share_of_the_safe_rate_of_one_message_class() {
    for version in VERSIONS {
        let mut sheet = sheet();
        sheet.classes.insert(MessageClass::PacketOut, Measured { cost: 1, ..measured(40.0) });
        let mut world = with_sheet(version, Some(sheet));
        let blue = world.connect("blue");
        for n in 0..50 {
            let message = request(world.version, n, &words(1));
            world.controllers[blue.0].outgoing.push_back(message);
        }
        let before = count(&world, PACKET_OUT);
        world.advance(2 * SECOND);
        // Blue's share is a quarter of 40 PACKET_OUTs per second. In addition, blue may send one PACKET_OUT at once.
        let sent = count(&world, PACKET_OUT) - before;
        assert!((20..=21).contains(&sent), "{version:?}: {sent}");
    }
}

#[test]
fn the_rate_limit_of_the_operator_overrides_the_data_sheet() {
    for version in VERSIONS {
        let mut setup = Setup::new(version, SPACES);
        setup.policy.any_sheet = Some(Arc::new(sheet()));
        let own = Rate { per_second: 600, burst: 7 };
        setup.policy.tenants[1].limits.flow_mod = Some(own);
        let world = World::new(setup);
        let rates = world.core.rates_of(world.tenant("blue"));
        let limits: Vec<_> = rates
            .iter()
            .map(|it| (it.class, it.per_second.round() as u32, it.burst, it.by == RateBy::Operator))
            .collect();
        assert_eq!(
            limits,
            [
                (MessageClass::PacketOut, 250, 25, false),
                (MessageClass::FlowMod, 600, 7, true),
                (MessageClass::Statistics, 250, 25, false),
                (MessageClass::Other, 250, 25, false),
                (MessageClass::PacketIn, 250, 25, false),
            ]
        );
        let red = world.core.rates_of(world.tenant("red"));
        assert!(red.iter().all(|it| it.per_second.round() == 750.0), "{red:?}");
    }
}

#[test]
fn the_smaller_table_size_of_data_sheet_and_switch_is_used() {
    for version in VERSIONS {
        for (says, sheet_says, rules, by) in [
            (1_000, 400, 400, SaidBy::Sheet),
            (300, 400, 300, SaidBy::Switch),
            // Weir ignores a table size of a million from the switch: Open vSwitch reports this size for tables without
            // a bound.
            (1_000_000, 400, 400, SaidBy::Sheet),
        ] {
            let mut setup = Setup::new(version, SPACES);
            let figure = measured(400.0).rate;
            let table = Some(TableSize { rules: sheet_says, figure });
            setup.policy.any_sheet = Some(Arc::new(Sheet { table, ..sheet() }));
            setup.configure = match says {
                1_000 => |config| (config.max_flows, config.n_buffers) = (1_000, 0),
                300 => |config| (config.max_flows, config.n_buffers) = (300, 0),
                _ => |config| config.n_buffers = 0,
            };
            let world = World::new(setup);
            let shares = world.core.shares_of(world.tenant("blue"));
            let figures: Vec<_> =
                shares.iter().map(|it| (it.holds.rules, it.holds.by, it.may)).collect();
            assert_eq!(figures, [(rules, by, rules / 4)], "{version:?} {says}");
        }
    }
}

#[test]
fn a_data_sheet_of_another_switch_is_reported_and_not_used() {
    for version in VERSIONS {
        let other = || Sheet {
            description: Some(["Weir".into(), "emulated switch".into(), "of old".into()]),
            ..sheet()
        };
        let mut world = with_sheet(version, Some(other()));
        assert_eq!(*world.core.sheet(), Standing::OfAnother(Arc::new(other())));
        assert_eq!(world.core.rates_of(world.tenant("red")), []);
        let reports = |world: &World| {
            let about = world.events.iter().filter(|it| matches!(it, Event::SheetOfAnother));
            about.count()
        };
        assert_eq!(reports(&world), 1);
        // The new policy has the right sheet for this switch, and the wrong sheet for any other switch.
        let mut policy = policy(SPACES);
        policy.any_sheet = Some(Arc::new(other()));
        policy.sheets.insert(DPID, Arc::new(sheet()));
        world.set_policy(policy.clone());
        assert_eq!(*world.core.sheet(), Standing::Holds(Arc::new(sheet())));
        assert_eq!(world.core.rates_of(world.tenant("red")).len(), 5);
        policy.sheets.clear();
        policy.any_sheet = None;
        world.set_policy(policy);
        assert_eq!(*world.core.sheet(), Standing::None);
        assert_eq!(world.core.rates_of(world.tenant("red")), []);
        assert_eq!(reports(&world), 1);
    }
}

#[test]
fn a_connected_switch_is_asked_for_its_description_when_a_sheet_is_added() {
    for version in VERSIONS {
        let mut world = with_sheet(version, None);
        assert_eq!(world.core.description(), None, "nobody had to know");
        let mut policy = policy(SPACES);
        policy.any_sheet = Some(Arc::new(sheet()));
        world.set_policy(policy);
        world.advance(SECOND);
        assert!(world.core.description().is_some());
        assert_eq!(*world.core.sheet(), Standing::Holds(Arc::new(sheet())));
    }
}

#[test]
fn a_sheet_without_a_description_is_used_only_for_its_datapath_id() {
    for version in VERSIONS {
        for (dpid, holds) in [(DPID, true), (DPID + 1, false)] {
            let mut setup = Setup::new(version, SPACES);
            let sheet = Arc::new(Sheet { dpid: Some(dpid), description: None, ..sheet() });
            setup.policy.any_sheet = Some(sheet.clone());
            let world = World::new(setup);
            let expected = if holds { Standing::Holds(sheet) } else { Standing::OfAnother(sheet) };
            assert_eq!(*world.core.sheet(), expected);
        }
    }
}

/// Two tenants always have messages to send, for four seconds. Returns the number of PACKET_OUTs and the number of
/// barriers at the switch.
fn race(version: Version, sheet: Option<Sheet>) -> (usize, usize) {
    let mut setup = Setup::new(version, "red: ip,nw_src=10.1.0.0/16\nblue: ip,nw_src=10.2.0.0/16");
    setup.policy.any_sheet = sheet.map(Arc::new);
    setup.per_second = Some(ABLE);
    let mut world = World::new(setup);
    let begin = world.now;
    let both = [
        (world.connect("red"), "out actions=output:1 data=10.1.0.1>10.9.0.1"),
        (world.connect("blue"), "barrier"),
    ];
    while world.now < begin + 4 * SECOND {
        for (seat, words) in both {
            while world.controllers[seat.0].outgoing.len() < 64 {
                let message = request(world.version, 7, words);
                world.controllers[seat.0].outgoing.push_back(message);
            }
        }
        world.advance(SECOND / 500);
    }
    let barrier = if version == Version::V1_0 { 18 } else { 20 };
    (count(&world, PACKET_OUT), count(&world, barrier))
}

#[test]
fn messages_with_a_high_cost_in_the_data_sheet_are_served_less_often() {
    for version in VERSIONS {
        let mut sheet = sheet();
        // According to the sheet, a PACKET_OUT takes ten times as long as a barrier. Neither class reaches its rate
        // limit.
        sheet.classes.insert(MessageClass::PacketOut, measured(1e6));
        sheet.classes.insert(MessageClass::Other, measured(1e7));
        let (slow, quick) = race(version, Some(sheet));
        assert!(quick > 6 * slow, "{version:?}: {slow} and {quick}");
        let (slow, quick) = race(version, None);
        assert!(quick < 2 * slow, "{version:?} without a sheet: {slow} and {quick}");
    }
}

/// The type of a PACKET_OUT, in both versions.
const PACKET_OUT: u8 = 13;

/// The number of messages of a type at the switch.
fn count(world: &World, type_: u8) -> usize {
    world.south.iter().filter(|message| message[1] == type_).count()
}
