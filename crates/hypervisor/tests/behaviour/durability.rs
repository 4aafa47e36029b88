//! Tests of the store, of reconnected switches and of policy changes. Weir stores a change before it sends the change
//! to the switch. After a lost connection or a restart, Weir installs only missing rules and removes only surplus
//! rules.

use crate::support::*;
use hypervisor::Event;

const TWO: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

/// The first bits of red's cookies on the switch.
const RED: u64 = 0x5745_0001_0000_0000;

const FLOW_MOD: u8 = 14;

#[test]
fn a_barrier_waits_only_for_earlier_requests_of_the_same_tenant() {
    for version in VERSIONS {
        let mut world = World::new(Setup { per_second: Some(1_000), ..Setup::new(version, TWO) });
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        // Blue sends a barrier first, so that two tenants are active and red does not get the large window of a single
        // active tenant.
        world.say(blue, 97, "barrier");
        for n in 0..20 {
            world.say(red, n, &format!("flow add match=ip,nw_src=10.1.0.{n} actions=output:1"));
        }
        world.say(red, 99, "barrier");
        world.say(blue, 98, "barrier");
        let mut answered = 0;
        while world.tenant_flows().len() < 20 {
            answered += world.heard(red).len();
            world.advance(100_000);
        }
        assert_eq!(answered, 0);
        let heard = world.heard(blue);
        assert_eq!(
            heard,
            ["97 BARRIER_REPLY", "98 BARRIER_REPLY"],
            "a neighbour's work is not waited for"
        );
        world.advance(100_000_000);
        assert_eq!(world.heard(red), ["99 BARRIER_REPLY"]);
    }
}

#[test]
fn an_error_is_sent_before_the_barrier_reply() {
    for version in VERSIONS {
        let mut world = World::new(Setup { per_second: Some(1_000), ..Setup::new(version, TWO) });
        let red = world.connect("red");
        world.switch.switch_mut().plant(vec![emulate::Fault::RefuseFlowMods { every: 1 }]);
        world.say(red, 5, "flow add match=ip,nw_src=10.1.0.1 actions=output:1");
        world.say(red, 6, "barrier");
        world.advance(100_000_000);
        let heard = world.heard(red);
        assert_eq!(heard.len(), 2, "{heard:?}");
        assert!(heard[0].starts_with("5 ERROR") && heard[1] == "6 BARRIER_REPLY", "{heard:?}");
    }
}

#[test]
fn an_error_contains_the_original_bytes_of_the_request() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        world.switch.switch_mut().plant(vec![emulate::Fault::RefuseFlowMods { every: 1 }]);
        let sent =
            request(version, 77, "flow add match=ip,nw_src=10.0.0.0/8 cookie=5 actions=output:1");
        world.send(red, &sent);
        let [error] = &world.received(red)[..] else { panic!("one error") };
        assert_eq!(&error[12..], &sent[..64]);
    }
}

#[test]
fn requests_are_sent_in_order_and_only_after_the_change_is_stored() {
    for version in VERSIONS {
        let mut world = World::new(Setup { store_at_once: false, ..Setup::new(version, TWO) });
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        world.south.clear();
        world.say(red, 1, "flow add match=ip,nw_src=10.1.0.1 actions=output:1");
        world.say(red, 2, "out actions=output:3 data=10.1.0.1>10.2.0.1");
        world.say(red, 3, "barrier");
        world.say(blue, 4, "barrier");
        world.advance(1_000_000_000);
        assert!(!world.south_types().contains(&FLOW_MOD));
        assert_eq!((world.heard(red).len(), world.left.len()), (0, 0));
        assert_eq!(world.heard(blue), ["4 BARRIER_REPLY"], "who waits for nothing is served");
        world.stored();
        let sent = world.south_types();
        assert_eq!(sent[..2], [FLOW_MOD, 13]);
        assert_eq!(world.heard(red), ["3 BARRIER_REPLY"]);
    }
}

#[test]
fn a_policy_change_sends_no_rule_before_the_entry_is_stored() {
    for version in VERSIONS {
        let mut world = World::new(Setup { store_at_once: false, ..Setup::new(version, TWO) });
        let red = world.connect("red");
        world.south.clear();
        world.say(red, 1, "flow add match=ip,nw_src=10.1.0.1 actions=output:1");
        world.say(red, 2, "barrier");
        world.set_policy(policy("red id=1: ip,nw_src=10.1.0.0/24"));
        world.say(red, 3, "flow add match=ip,nw_src=10.1.0.2 actions=output:1");
        world.advance(1_000_000_000);
        assert!(!world.south_types().contains(&FLOW_MOD));
        assert_eq!(world.heard(red), [""; 0]);
        // Weir reads no more requests from the tenant until the first change is stored, so Weir handles the second
        // addition under the new policy.
        world.stored();
        assert_eq!(world.heard(red), ["2 BARRIER_REPLY"]);
        world.stored();
        world.say(red, 4, "barrier");
        world.advance(1_000_000_000);
        assert_eq!(world.heard(red), ["4 BARRIER_REPLY"]);
        let entries = world.tenant_flows();
        assert_eq!(entries.len(), 2, "{entries:?}");
        assert_eq!(world.store.len(), 2);
    }
}

#[test]
fn an_entry_that_cannot_follow_a_policy_change_is_reported_as_removed() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip actions=output:1 flags=rem cookie=6");
        world.switch.switch_mut().plant(vec![emulate::Fault::RefuseFlowMods { every: 1 }]);
        // On 1.3, the entry stays unchanged. The switch refuses Weir's own rules twice, and Weir counts both refusals.
        world.set_policy(policy("red id=1: ip,nw_src=10.1.0.0/24"));
        world.advance(1_000_000_000);
        let (heard, flows, refused) = match version {
            Version::V1_0 => (1, 0, 1),
            _ => (0, 1, 2),
        };
        assert_eq!(world.core.counters().own_refused, refused);
        assert_eq!(world.core.tenants().next().unwrap().flows, flows);
        let received = world.heard(red);
        assert_eq!(received.len(), heard, "{received:?}");
        assert!(received.iter().all(|message| message.contains("FLOW_REMOVED")), "{received:?}");
    }
}

#[test]
fn reconciliation_changes_only_missing_and_surplus_rules_after_a_reconnection() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        for (n, words) in [
            "flow add match=ip,nw_src=10.1.0.1 prio=1 actions=output:1",
            "flow add match=ip,nw_src=10.1.0.2 prio=2 actions=output:2",
            "flow add match=ip,nw_src=10.1.0.3 prio=3 actions=output:3 hard=100",
            "flow add match=ip,nw_src=10.1.0.4 prio=4 actions=output:4 idle=100",
        ]
        .into_iter()
        .enumerate()
        {
            world.say(red, n as u32, words);
        }
        world.packet(1, &packet("10.1.0.1>10.2.0.1"));
        // Another program deletes one permanent rule and one rule with a timeout, and adds a foreign rule. It also adds
        // a rule with a cookie of red that Weir does not have in its store.
        let table = if version == Version::V1_0 { 0 } else { 1 };
        if version == Version::V1_0 {
            world.behind("flow delete match=ip,nw_src=10.1.0.2");
            world.behind("flow delete match=ip,nw_src=10.1.0.3");
        } else {
            for number in [2, 3] {
                let cookie = RED | number;
                world.behind(&format!(
                    "flow delete table=1 cookie={cookie:#x} cookie_mask=0xffffffffffffffff"
                ));
            }
        }
        world.behind(&format!(
            "flow add table={table} match=arp prio=7 cookie=0x77 actions=output:1"
        ));
        let orphan = RED | 999;
        world.behind(&format!(
            "flow add table={table} match=arp prio=8 cookie={orphan:#x} actions=output:1"
        ));
        world.reconnect();
        let own = if version == Version::V1_0 { 0 } else { 4 };
        assert!(
            world.events.contains(&Event::Reconciled {
                kept: 2 + own,
                installed: 1,
                removed: 1,
                foreign: 1
            }),
            "{version:?} {:?}",
            world.events
        );
        play(&mut world, "
            red> 1 stats flow
            red< 1 STATS flow prio=1 ip,nw_src=10.1.0.1 n=1 output:1; prio=2 ip,nw_src=10.1.0.2 n=0 output:2; prio=4 ip,nw_src=10.1.0.4 n=0 output:4
            count= 4
        ");
    }
}

#[test]
fn a_deletion_by_reconciliation_does_not_affect_a_rule_installed_later() {
    for version in VERSIONS {
        let mut world = World::new(Setup { delay: 5_000_000, ..Setup::new(version, TWO) });
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip actions=output:1 flags=rem");
        world.advance(1_000_000_000);
        let whole = world.tenant_flows();
        world.restart_with(policy("red id=1: ip,nw_src=10.1.128.0/17"));
        // The old policy is in effect again before the switch reports that the rule is deleted.
        world.set_policy(policy(TWO));
        world.advance(1_000_000_000);
        assert_eq!(world.tenant_flows(), whole, "{version:?}");
        // The entry still belongs to the tenant, so the tenant can delete it.
        let red = world.connect("red");
        world.say(red, 1, "flow delete match=ip");
        world.advance(1_000_000_000);
        assert_eq!(world.tenant_flows(), [""; 0], "{version:?}");
        assert_eq!(world.heard(red).len(), 1, "{version:?}: FLOW_REMOVED, once");
    }
}

#[test]
fn an_unchanged_switch_gets_no_flow_mod_after_a_reconnection() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip actions=output:1,controller");
        world.say(
            red,
            2,
            "flow add match=ip,nw_dst=10.9.0.0/16 prio=7 actions=mod_nw_dst:10.9.0.1,flood",
        );
        world.say(red, 3, "flow add match=ip,nw_dst=10.8.0.0/16 prio=7 actions=drop");
        world.south.clear();
        world.reconnect();
        assert!(!world.south_types().contains(&FLOW_MOD));
    }
}

#[test]
fn entry_numbers_are_not_reused_after_a_reconnection() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip,nw_src=10.1.0.1 actions=output:1");
        world.reconnect();
        play(
            &mut world,
            "
            red> 2 flow add match=ip,nw_src=10.1.0.2 actions=output:2
            red> 3 flow delete match=ip,nw_src=10.1.0.1
            red> 4 stats flow
            red< 4 STATS flow prio=32768 ip,nw_src=10.1.0.2 n=0 output:2
            count= 1
        ",
        );
    }
}

#[test]
fn entries_of_a_removed_tenant_are_deleted() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, TWO));
        let (red, blue) = (world.tenant("red"), world.tenant("blue"));
        play(
            &mut world,
            "
            red> 1 flow add match=ip,nw_src=10.1.0.1 actions=output:1
            blue> 1 flow add match=ip,nw_src=10.2.0.1 actions=output:1
        ",
        );
        world.events.clear();
        world.set_policy(policy(
            "
            red id=1: ip,nw_src=10.1.0.0/16
            green id=3: ip,nw_src=10.3.0.0/16
        ",
        ));
        let green = world.tenant("green");
        assert_eq!(world.events, [Event::Withdraw(blue), Event::Serve(green)]);
        assert_eq!(world.tenant_flows().len(), 1);
        world.connect("green");
        assert!(world.core.controller_connected(blue).is_none());
        assert!(world.store.keys().all(|key| key.tenant == red));
        world.set_policy(policy(TWO));
        assert_eq!(world.tenant_flows().len(), 1, "what was removed stays removed");
    }
}

#[test]
fn entries_are_adapted_when_the_flowspace_changes() {
    both(
        TWO,
        "
        red> 1 flow add match=ip actions=output:1 flags=rem cookie=6
        red> 2 flow add match=ip,nw_src=10.1.0.1 actions=output:2 flags=rem cookie=7 prio=40000
        policy
            red: ip,nw_src=10.1.128.0/17
            blue: ip,nw_src=10.1.0.0/17
        end
        [1.0] red< FLOW_REMOVED prio=40000 ip,nw_src=10.1.0.1 cookie=0x7 DELETE n=0
        wire> 3 10.1.200.1>10.2.0.1
        wire< 1
        [1.0] blue>
        wire> 3 10.1.0.1>10.2.0.1
        [1.0] blue< PACKET_IN 3 NO_MATCH 10.1.0.1>10.2.0.1
        wire<
        [1.0] switch= prio=32768 ip,nw_src=10.1.128.0/17
    ",
    );
}
