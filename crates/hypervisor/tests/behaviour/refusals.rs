//! Tests of the record of refused requests. Weir keeps the last refusals of each tenant, with the refusing side and the
//! reason.

use crate::support::*;
use emulate::Fault;
use hypervisor::RefusedBy;
use hypervisor::refusals::KEPT;

const SPACES: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";

/// A tenant's refusals: the xid, the refusing side, the request and the reason.
fn refusals(world: &World, tenant: &str) -> Vec<(u32, RefusedBy, String, String)> {
    let all = world.core.refusals(world.tenant(tenant));
    let version = world.version;
    all.map(|it| (it.xid(), it.by(), it.request(version), it.reason(version))).collect()
}

#[test]
fn refusals_by_weir_are_distinguished_from_refusals_by_the_switch() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let red = world.connect("red");
        world.say(red, 5, "flow add match=in_port=1 prio=9 actions=output:3");
        world.switch.switch_mut().plant(vec![Fault::RefuseFlowMods { every: 1 }]);
        world.say(red, 6, "flow add match=in_port=2 prio=9 actions=output:1");
        world.advance(100_000_000);
        let found = refusals(&world, "red");
        let request = |port| format!("FLOW_MOD ADD priority=9,in_port={port}");
        let (xid, by, asked, why) = &found[0];
        assert_eq!((*xid, *by, asked), (5, RefusedBy::Weir, &request(1)), "{version:?}");
        assert!(why.starts_with("an action sends to port 3, which is not the tenant's"), "{why}");
        let (xid, by, asked, why) = &found[1];
        assert_eq!((*xid, *by, asked), (6, RefusedBy::Switch, &request(2)), "{version:?}");
        assert!(why.starts_with("the switch refused: OFPFMFC_"), "{why}");
        assert_eq!(found.len(), 2);
        assert!(refusals(&world, "blue").is_empty(), "others' refusals are not a tenant's");
    }
}

#[test]
fn a_request_without_a_switch_reply_is_recorded_as_a_timeout() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let red = world.connect("red");
        world.switch.switch_mut().plant(vec![Fault::NeverAnswers {
            message_type: if version == Version::V1_0 { 16 } else { 18 },
        }]);
        world.say(red, 7, "stats flow");
        world.advance(60_000_000_000);
        let found = refusals(&world, "red");
        let said = found.iter().map(|(xid, by, _, why)| (*xid, *by, why.as_str()));
        let expected = (7, RefusedBy::Silence, "the switch did not answer in time");
        assert_eq!(said.collect::<Vec<_>>(), [expected], "{version:?}");
    }
}

#[test]
fn only_the_last_refusals_of_a_tenant_are_kept() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let red = world.connect("red");
        for xid in 0..3 * KEPT as u32 {
            world.say(red, xid, "flow add match=in_port=1 actions=output:3");
        }
        let kept: Vec<u32> = refusals(&world, "red").iter().map(|it| it.0).collect();
        let last: Vec<u32> = (2 * KEPT as u32..3 * KEPT as u32).collect();
        assert_eq!(kept, last, "{version:?}");
        let times: Vec<_> = world.core.refusals(world.tenant("red")).map(|it| it.at()).collect();
        assert!(times.is_sorted() && times[0] > hypervisor::Instant(0));
    }
}
