//! Tests that Weir does not read for a while from a tenant with too many changes or too many refused requests, and that
//! other tenants do not notice this.

use crate::support::*;
use hypervisor::policy::Rate;

const SPACES: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

#[test]
fn a_tenant_above_its_change_rate_is_delayed_and_another_tenant_is_not() {
    for version in VERSIONS {
        let mut setup = Setup::new(version, SPACES);
        setup.policy.tenants[0].limits.state_changes = Rate { per_second: 1_000, burst: 300 };
        let mut world = World::new(setup);
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        for n in 0..200 {
            world.say(red, n, &format!("flow add match=ip,nw_src=10.1.0.{n} actions=output:1"));
        }
        world.say(red, 1_000, "barrier");
        assert_eq!(
            world.heard(red),
            ["1000 BARRIER_REPLY"],
            "an honest tenant is within the burst"
        );
        // Each of these requests is one message and 200 changes.
        (0..5)
            .for_each(|n| world.say(red, n, &format!("flow modify actions=output:{}", n % 3 + 1)));
        world.say(red, 1_001, "echo");
        world.say(blue, 1_002, "flow add match=ip,nw_src=10.2.0.1 actions=output:1");
        world.say(blue, 1_003, "barrier");
        assert_eq!(world.heard(blue), ["1003 BARRIER_REPLY"]);
        assert_eq!(world.heard(red), [""; 0]);
        // Red has made 1,200 changes. The burst covers 300 changes, so red's next request waits for the time of 900
        // changes.
        world.advance(880_000_000);
        assert_eq!(world.heard(red), [""; 0], "{version:?}");
        world.advance(40_000_000);
        assert_eq!(world.heard(red).len(), 1, "{version:?}");
    }
}

#[test]
fn a_tenant_with_many_refused_requests_is_delayed_and_another_tenant_is_not() {
    for version in VERSIONS {
        let mut setup = Setup::new(version, SPACES);
        setup.policy.tenants[0].limits.flows = 1;
        let mut world = World::new(setup);
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        let add = |n| request(version, n, "flow add match=ip,nw_src=10.1.0.2 actions=output:1");
        world.say(red, 0, "flow add match=ip,nw_src=10.1.0.1 actions=output:1");
        let refused = |world: &mut World| {
            let heard = world.heard(red);
            assert!(
                heard.iter().all(|it| it.contains("TABLE") && it.contains("FULL")),
                "{heard:?}"
            );
            heard.len()
        };
        (0..10_000).for_each(|n| world.send(red, &add(n)));
        assert_eq!(refused(&mut world), 10_000, "a full table once is no reason to wait");
        (0..100).for_each(|n| world.send(red, &add(n)));
        world.say(blue, 1, "flow add match=ip,nw_src=10.2.0.1 actions=output:1");
        world.say(blue, 2, "barrier");
        assert_eq!(world.heard(blue), ["2 BARRIER_REPLY"]);
        assert_eq!(refused(&mut world), 1);
        // From now on 2,000 refusals per second are allowed.
        world.advance(25_000_000);
        assert!((40..=60).contains(&refused(&mut world)), "{version:?}");
        world.advance(35_000_000);
        assert!((39..=59).contains(&refused(&mut world)), "{version:?}");
        world.say(red, 3, "barrier");
        assert_eq!(world.heard(red), ["3 BARRIER_REPLY"]);
    }
}
