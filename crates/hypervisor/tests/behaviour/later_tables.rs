//! Rules of later tables that send by shared edge ports, whatever is in the action set when they get their packets. That random
//! ones forward as they would on a switch of the tenant's own is in `sharing`, that all agree whatever is refused in
//! `groups_agree`.

use crate::deliveries::{
    BIG_FROM, BLUE, BROADCAST, EVERYWHERE, LINK, RED, WHOLE, accept, big_plan, big_stage, host,
    leaves_big, leaves_by, map, plan, stage, world_on,
};
use crate::groups_kept::{on, say};
use crate::groups_shared::{all_same, same};
use crate::networks::{self, both_say, two};
use crate::support::*;

const PASSES: &str = "flow add prio=5 actions=meta=7/ff;goto=1";

#[test]
fn a_later_table_floods() {
    for (first, later, by) in [
        ("goto=1", "flood", EVERYWHERE),
        ("meta=5/7fffffff;goto=1", "flood", EVERYWHERE),
        ("goto=1", "output:7", &[7][..]),
        ("goto=1", "output:8,output:1,output:7,output:10", EVERYWHERE),
        ("goto=1", "output:10,output:8", &[8, LINK]),
        ("output:1;goto=1", "output:7,output:8", &[WHOLE, 7, 8]),
        ("write=drop;goto=1", "flood", EVERYWHERE),
        // What is left in the set is carried out after it, or gives way.
        ("write=group:2;goto=1", "output:7,output:8", &[WHOLE, 7, 8]),
        ("write=group:2;goto=1", "output:7;clear", &[7]),
        ("write=group:2;goto=1", "output:10;clear;write=output:7", &[7, LINK]),
        ("write=group:1;goto=1", "output:8", &[8, LINK]),
        // What is left is for tables to come.
        ("goto=1", "flood;meta=5/ff", EVERYWHERE),
    ] {
        let mut stage = stage();
        for tenant in [RED, BLUE] {
            accept(&mut stage, tenant, 1, "group add id=1 buckets=output:10");
            accept(&mut stage, tenant, 1, "group add id=2 buckets=output:1");
            accept(&mut stage, tenant, 1, &format!("flow add prio=5 actions={first}"));
            accept(&mut stage, tenant, 1, &format!("flow add table=1 prio=5 actions={later}"));
        }
        for tenant in [RED, BLUE] {
            leaves_by(&mut stage, tenant, by, &format!("{first} {later}"));
        }
    }
}

/// What is done to packets behind it is seen where it is done, and nowhere else.
#[test]
fn sets_that_are_left_are_carried_out_as_they_would_be() {
    for (first, later) in [
        ("write=mod_dl_src:02.00.00.00.00.77,group:2;goto=1", "flood"),
        ("write=mod_dl_src:02.00.00.00.00.77;goto=1", "flood;write=group:1"),
        ("write=mod_dl_dst:02.00.00.00.10.03,group:2;goto=1", "flood"),
        (
            "write=mod_dl_dst:02.00.00.00.10.03;goto=1",
            "flood;write=mod_dl_dst:ff.ff.ff.ff.ff.ff,group:1",
        ),
        ("write=mod_dl_dst:02.00.00.00.10.03;goto=1", "clear;write=flood"),
        ("write=push_vlan:8100,group:2;goto=1", "output:7,output:8"),
        ("write=push_vlan:8100;goto=1", "output:8;write=controller"),
        ("write=group:1;goto=1", "in_port,flood;write=controller"),
        ("write=controller;goto=1", "flood;write=mod_dl_src:02.00.00.00.00.66"),
        ("mod_dl_dst:ff.ff.ff.ff.ff.ff;write=group:2;goto=1", "flood;write=group:1"),
    ] {
        let mut stage = Stage::new(Version::V1_3, vec![plan(RED), plan(BLUE)]);
        for tenant in [RED, BLUE] {
            both_say(&mut stage, tenant, 1, "group add id=1 buckets=output:10");
            both_say(&mut stage, tenant, 1, "group add id=2 buckets=output:1");
            both_say(&mut stage, tenant, 1, &format!("flow add prio=5 actions={first}"));
            let words = format!("flow add table=1 prio=5 actions={later}");
            both_say(&mut stage, tenant, 1, &words);
        }
        for tenant in [RED, BLUE] {
            all_same(&mut stage, &plan(tenant), tenant, &format!("{first} {later}"));
        }
    }
}

#[test]
fn on_a_big_switch_as_well() {
    let mut stage = big_stage(Version::V1_3);
    for tenant in [RED, BLUE] {
        accept(&mut stage, tenant, 1, PASSES);
        accept(&mut stage, tenant, 1, "flow add table=1 prio=5 actions=flood");
    }
    for (from, to) in BIG_FROM.into_iter().flat_map(|from| {
        [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST].map(|to| (from, to))
    }) {
        leaves_big(&mut stage, from, &[1, 2, 7, 8, LINK], to, "later");
    }
    // What is left there leaves there as well.
    let mut stage = Stage::new(Version::V1_3, vec![big_plan(RED), big_plan(BLUE)]);
    both_say(&mut stage, RED, 1, "group add id=1 buckets=output:1");
    both_say(&mut stage, RED, 1, "flow add prio=5 actions=write=group:1;goto=1");
    both_say(&mut stage, RED, 1, "flow add table=1 prio=5 actions=output:8,output:7");
    for at in BIG_FROM {
        for to in [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST] {
            same(&mut stage, &big_plan(RED), (RED, at.0, at.1), to, "left");
        }
    }
}

/// Rules and what Weir has made for them are the same after a restart.
#[test]
fn all_of_it_is_found_again() {
    let (mut world, red) = world_on(map(), |config| config.n_buffers = 0);
    for words in [
        "group add id=1 buckets=output:10",
        "flow add prio=5 actions=write=group:1;goto=1",
        "flow add table=1 prio=5 actions=flood",
        "flow add table=2 prio=5 actions=flood;clear;write=output:8",
    ] {
        say(&mut world, red, words);
    }
    let there = (world.switch_groups(), world.switch_entries());
    world.reconnect();
    assert_eq!((world.switch_groups(), world.switch_entries()), there);
    world.restart_with(on(map()));
    world.advance(1_000_000_000);
    assert_eq!((world.switch_groups(), world.switch_entries()), there);
}

/// Open vSwitch does what is in the set, and says of no entry that it did.
#[test]
fn a_set_that_is_done_on_a_miss_tells_the_controller() {
    let mut stage =
        Stage::made([Version::V1_3; 3], two(), Make { runs_sets: true, ..Make::default() });
    for tenant in 0..2 {
        let words = "flow add match=in_port=1 prio=5 actions=write=controller;goto=1";
        both_say(&mut stage, tenant, 1, words);
        let seen = networks::same(&mut stage, tenant, 1, 1, &packet("10.0.0.1>10.0.0.2"));
        assert_eq!((seen.delivered.len(), seen.told.len()), (0, 1), "{seen:?}");
    }
}
