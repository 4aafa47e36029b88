//! Action sets that send by shared edge ports and are left to later tables. A rule may write one as long as none of the tables that
//! it leaves it to gives packets another destination. That random ones forward as they would on a switch of the tenant's own is in
//! `sharing`, that all agree whatever is refused in `groups_agree`.

use crate::deliveries::{
    BIG_FROM, BLUE, BROADCAST, EVERYWHERE, LINK, RED, WHOLE, accept, big_plan, big_stage, host,
    leaves_big, leaves_by, plan, stage,
};
use crate::groups_shared::{all_same, same};
use crate::later_tables::{
    denied, goes_when_ports_become_shared, is_found_again, refuse, waits_for_what_may_come_back,
};
use crate::networks::both_say;
use crate::support::*;

/// A rule that counts on it that the destination stays, a later one that gives packets another, and one that gives none.
const COUNTS: &str = "flow add prio=5 actions=write=flood;goto=1";
const CHANGES: &str = "flow add table=1 prio=9 match=arp actions=mod_dl_dst:02.00.00.00.10.03";
const PASSES: &str = "flow add table=1 prio=5 actions=meta=7/ff";

#[test]
fn later_tables_leave_it_or_take_its_place() {
    for (first, later, by) in [
        ("write=output:7;goto=1", "meta=5/ff", &[7][..]),
        ("write=flood;goto=1", "meta=5/7fffffff", EVERYWHERE),
        ("output:1;write=output:8;goto=1", "output:10", &[WHOLE, 8, LINK]),
        ("output:7;write=output:8;goto=1", "output:1", &[WHOLE, 7, 8]),
        ("write=output:7;meta=1/1;goto=1", "output:8", &[7, 8]),
        ("write=output:7;goto=1", "write=output:8", &[8]),
        ("write=output:7;goto=1", "write=output:1", &[WHOLE]),
        ("write=output:1;goto=1", "write=output:7;goto=2", &[7]),
        ("write=flood;goto=1", "write=output:8;goto=2", &[8]),
        ("write=flood;goto=1", "clear;write=output:8;goto=2", &[8]),
        ("write=flood;goto=1", "clear;output:7", &[7]),
        ("write=flood;goto=1", "drop", EVERYWHERE),
        ("write=flood;goto=1", "clear", &[]),
        // A group counts before an output.
        ("write=flood;goto=1", "write=group:1", &[LINK]),
        ("write=group:1;goto=1", "write=output:8;goto=2", &[LINK]),
        ("write=group:2;goto=1", "meta=5/ff", &[8]),
        ("write=group:2,output:7;goto=1", "output:1", &[WHOLE, 8]),
        ("write=group:2;goto=1", "write=group:1", &[LINK]),
        // By these nothing is given another destination behind.
        ("write=flood;goto=1", "clear;mod_dl_dst:02.00.00.00.00.99", &[]),
    ] {
        let mut stage = stage();
        for tenant in [RED, BLUE] {
            accept(&mut stage, tenant, 1, "group add id=1 buckets=output:10");
            accept(&mut stage, tenant, 1, "group add id=2 buckets=output:8");
            accept(&mut stage, tenant, 1, &format!("flow add prio=5 actions={first}"));
            accept(&mut stage, tenant, 1, &format!("flow add table=1 prio=5 actions={later}"));
            accept(&mut stage, tenant, 1, "flow add table=2 prio=5 actions=meta=9/ff");
        }
        for tenant in [RED, BLUE] {
            leaves_by(&mut stage, tenant, by, &format!("{first} {later}"));
        }
    }
}

/// What the rule itself, or one before it, has made of packets is known.
#[test]
fn what_is_changed_before_is_for_whom_it_says() {
    for (first, later) in [
        ("mod_dl_dst:02.00.00.00.10.03;write=flood;goto=1", "meta=5/ff"),
        ("write=mod_dl_dst:02.00.00.00.10.03,flood;goto=1", "meta=5/ff"),
        ("mod_dl_dst:ff.ff.ff.ff.ff.ff;write=output:8;goto=1", "output:7"),
        ("write=mod_dl_src:02.00.00.00.00.77,output:8;goto=1", "output:7,output:1"),
        ("write=push_vlan:8100,output:8;goto=1", "flood"),
        ("mod_dl_dst:02.00.00.00.10.01;goto=1", "write=flood;goto=2"),
        ("goto=1", "mod_dl_dst:02.00.00.00.10.01;write=output:7,output:8;goto=2"),
        ("write=flood;goto=1", "clear;mod_dl_dst:02.00.00.00.10.03,flood"),
    ] {
        let mut stage = Stage::new(Version::V1_3, vec![plan(RED), plan(BLUE)]);
        for tenant in [RED, BLUE] {
            both_say(&mut stage, tenant, 1, &format!("flow add prio=5 actions={first}"));
            let words = format!("flow add table=1 prio=5 actions={later}");
            both_say(&mut stage, tenant, 1, &words);
            both_say(&mut stage, tenant, 1, "flow add table=2 prio=5 actions=output:10");
        }
        for tenant in [RED, BLUE] {
            all_same(&mut stage, &plan(tenant), tenant, &format!("{first} {later}"));
        }
    }
}

/// Whichever comes first stays, and the other may come when that is gone.
#[test]
fn both_kinds_do_not_meet() {
    let mut stage = stage();
    accept(&mut stage, RED, 1, PASSES);
    accept(&mut stage, RED, 1, CHANGES);
    let named = "match=dl_dst=02:00:00:00:10:01 actions=write=output:7;goto=1";
    for words in ["actions=write=flood;goto=1", "actions=write=output:7;goto=1", named] {
        refuse(&mut stage, &format!("flow add prio=5 {words}"));
    }
    for actions in ["write=output:1;goto=1", "write=flood;goto=2", "write=flood"] {
        accept(&mut stage, RED, 1, &format!("flow add prio=4 actions={actions}"));
    }
    refuse(&mut stage, "flow modify match= actions=write=flood;goto=1");
    // What it does is no matter of the other tenant's.
    accept(&mut stage, BLUE, 1, COUNTS);
    accept(&mut stage, RED, 1, "flow delete table=1 match=arp");
    accept(&mut stage, RED, 1, COUNTS);
    leaves_by(&mut stage, RED, EVERYWHERE, "alone");

    denied(&mut stage, RED, CHANGES);
    denied(&mut stage, BLUE, CHANGES);
    denied(&mut stage, RED, "flow modify table=1 actions=mod_dl_dst:02.00.00.00.10.03,output:1");
    for actions in ["write=mod_dl_dst:2.0.0.0.0.9", "mod_dl_dst:2.0.0.0.0.9;write=output:1;goto=3"]
    {
        denied(&mut stage, RED, &format!("flow add table=2 prio=5 actions={actions}"));
    }
    // Not on its packets' way, or such that nothing is left of the set.
    for words in ["actions=mod_dl_dst:2.0.0.0.0.9", "table=1 actions=clear;mod_dl_dst:2.0.0.0.0.9"]
    {
        accept(&mut stage, RED, 1, &format!("flow add match=arp prio=9 {words}"));
    }
    accept(&mut stage, RED, 1, "flow modify match= actions=write=flood;goto=2");
    accept(&mut stage, RED, 1, CHANGES);
    denied(&mut stage, RED, &CHANGES.replace("table=1", "table=2"));
    accept(&mut stage, RED, 1, "flow delete match=");
    accept(&mut stage, RED, 1, &CHANGES.replace("table=1", "table=2"));
    refuse(&mut stage, COUNTS);
}

/// A table in the middle counts on both: that none was left for it, and that none comes behind.
#[test]
fn a_table_in_the_middle_counts_on_both_sides() {
    let both = "flow add table=1 prio=5 actions=write=output:7;goto=2";
    let leaves = "flow add match=arp prio=9 actions=write=mod_dl_dst:02.00.00.00.10.03;goto=1";
    let changes = CHANGES.replace("table=1", "table=2");
    let mut stage = stage();
    accept(&mut stage, RED, 1, both);
    denied(&mut stage, RED, leaves);
    denied(&mut stage, RED, &changes);
    accept(&mut stage, RED, 1, "flow add table=1 prio=5 actions=write=output:1;goto=2");
    for other in [leaves, &changes] {
        accept(&mut stage, RED, 1, other);
        refuse(&mut stage, both);
        accept(&mut stage, RED, 1, "flow delete match=arp table=255");
    }
    accept(&mut stage, RED, 1, both);
}

#[test]
fn ports_become_shared() {
    let floods = "flow add prio=5 actions=write=flood;goto=1 flags=rem";
    let lists = "flow add prio=6 match=arp actions=flood;goto=1 flags=rem";
    let rules = [floods, lists, PASSES, CHANGES];
    goes_when_ports_become_shared(rules, ["flow delete table=1 match=arp", COUNTS, CHANGES]);
}

#[test]
fn what_could_not_stand_beside_what_comes_back_waits() {
    let other = "flow add table=1 prio=9 match=arp actions=output:1";
    for beside in [
        (CHANGES, other, COUNTS, "OFPBAC_BAD_OUT_PORT"),
        (COUNTS, "flow add prio=5 actions=write=output:1;goto=1", CHANGES, "OFPFMFC_EPERM"),
    ] {
        waits_for_what_may_come_back(beside);
    }
}

#[test]
fn on_a_big_switch_as_well() {
    let mut stage = big_stage(Version::V1_3);
    for tenant in [RED, BLUE] {
        accept(&mut stage, tenant, 1, COUNTS);
        accept(&mut stage, tenant, 1, PASSES);
    }
    for (from, to) in BIG_FROM.into_iter().flat_map(|from| {
        [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST].map(|to| (from, to))
    }) {
        leaves_big(&mut stage, from, &[1, 2, 7, 8, LINK], to, "left");
    }
    denied(&mut stage, RED, CHANGES);
    accept(&mut stage, RED, 1, "flow delete match=");
    accept(&mut stage, RED, 1, CHANGES);
    refuse(&mut stage, COUNTS);

    let mut stage = Stage::new(Version::V1_3, vec![big_plan(RED), big_plan(BLUE)]);
    both_say(&mut stage, RED, 1, "flow add prio=5 actions=write=output:8;goto=1");
    both_say(&mut stage, RED, 1, "flow add table=1 prio=5 actions=output:1,output:7");
    for at in BIG_FROM {
        for to in [host(RED, 1), host(RED, 3), host(BLUE, 1), BROADCAST] {
            same(&mut stage, &big_plan(RED), (RED, at.0, at.1), to, "beside lists");
        }
    }
}

#[test]
fn all_of_it_is_found_again() {
    let goes_on = "flow add table=1 prio=6 match=arp actions=write=output:8;goto=2";
    is_found_again([COUNTS, PASSES, goes_on], CHANGES);
}
