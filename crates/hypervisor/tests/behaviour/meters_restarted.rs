//! Tests of meters over lost connections and restarts. The switch then has exactly the meters that the tenants have
//! configured.

use crate::support::*;
use openflow::v13::{MeterBand, MultipartReply, MultipartReplyBody};

const TWO: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

/// The rates of the meters on the switch.
fn rates(world: &mut World) -> Vec<u32> {
    let mut out = Vec::new();
    let asked = request(Version::V1_3, 1, "stats meter_config");
    world.switch.switch_mut().handle_message(0, &asked, &mut out);
    let mut rates = Vec::new();
    for message in frames(&out) {
        let reply = MultipartReply::parse(&message[8..]).unwrap();
        let MultipartReplyBody::MeterConfig(meters) = reply.body else { panic!("{message:?}") };
        rates.extend(meters.iter().flat_map(|meter| meter.bands).map(|band| match band {
            MeterBand::Drop { rate, .. } => rate,
            other => panic!("{other:?}"),
        }));
    }
    rates
}

/// The store has saved the change of a meter, but the switch has not received the change. When the switch reconnects,
/// Weir makes this change and no other change.
#[test]
fn a_stored_change_of_a_meter_is_made_after_a_lost_connection() {
    for (words, left) in [
        ("meter modify id=1 rate=7", vec![7, 5]),
        ("meter delete id=1", vec![5]),
        ("meter delete id=all", vec![]),
        ("meter add id=3 rate=9", vec![3, 5, 9]),
    ] {
        let mut world = World::new(Setup::new(Version::V1_3, TWO));
        let red = world.connect("red");
        world.say(red, 1, "meter add id=1 rate=3");
        world.say(red, 2, "meter add id=2 rate=5");
        world.say(red, 3, "barrier");
        world.lose_south(true);
        world.say(red, 4, words);
        world.lose_south(false);
        world.reconnect();
        assert_eq!(rates(&mut world), left, "{words}");
        assert_eq!(world.store.len(), left.len(), "{words}");
        world.south_types();
        // A reconnect without lost messages sends no METER_MOD.
        world.reconnect();
        const METER_MOD: u8 = 29;
        assert!(!world.south_types().contains(&METER_MOD), "{words}");
        assert_eq!(rates(&mut world), left, "{words}");
    }
}

#[test]
fn meters_of_a_tenant_that_was_removed_before_a_restart_are_deleted() {
    let mut world = World::new(Setup::new(Version::V1_3, TWO));
    let (red, blue) = (world.connect("red"), world.connect("blue"));
    world.say(red, 1, "meter add id=1 rate=3");
    world.say(blue, 1, "meter add id=1 rate=5");
    world.restart_with(policy("blue id=2: ip,nw_src=10.2.0.0/16"));
    world.advance(1_000_000_000);
    assert_eq!(rates(&mut world), [5]);
    assert_eq!(world.store.len(), 1);
}
