//! Tests of a tenant's quota of the store: the error when the store has no room for the tenant.

use crate::support::*;
use hypervisor::Account;
use std::sync::Arc;

const SPACES: &str = "
    red: ip,nw_src=10.1.0.0/16
    blue: ip,nw_src=10.2.0.0/16
";

#[test]
fn a_full_store_refuses_additions_and_changes_but_allows_deletions() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let account = Arc::<Account>::default();
        world.core.share_account(world.tenant("red"), account.clone());
        let (red, blue) = (world.connect("red"), world.connect("blue"));
        let add = |n| format!("flow add match=ip,nw_src=10.1.0.{n} actions=output:1");
        (1..4).for_each(|n| world.say(red, n, &add(n)));
        if version == Version::V1_3 {
            world.say(red, 4, "group add id=1 type=all buckets=output:1");
            world.say(red, 5, "meter add id=1");
        }
        assert_eq!(world.heard(red), [""; 0]);
        let flows = world.tenant_flows().len();

        account.set_store_full(true);
        world.say(red, 10, &add(9));
        world.say(red, 11, "flow modify actions=output:2");
        world.say(red, 12, "flow modify_strict match=ip,nw_src=10.1.0.1 actions=output:2");
        let full = match version {
            Version::V1_0 => "OFPFMFC_ALL_TABLES_FULL",
            _ => "OFPFMFC_TABLE_FULL",
        };
        let refused: Vec<String> =
            (10..13).map(|xid| format!("{xid} ERROR {full} of type 14 xid {xid}")).collect();
        assert_eq!(world.heard(red), refused);
        if version == Version::V1_3 {
            world.say(red, 13, "group add id=2 type=all buckets=output:1");
            world.say(red, 14, "group modify id=1 type=all buckets=output:2");
            world.say(red, 15, "meter add id=2");
            let expected = [
                "13 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 13",
                "14 ERROR OFPGMFC_OUT_OF_GROUPS of type 15 xid 14",
                "15 ERROR OFPMMFC_OUT_OF_METERS of type 29 xid 15",
            ];
            assert_eq!(world.heard(red), expected);
            world.say(red, 16, "group delete id=1");
            world.say(red, 17, "meter delete id=1");
        }
        world.say(red, 18, "flow delete_strict match=ip,nw_src=10.1.0.1");
        world.say(red, 19, "flow delete match=ip,nw_src=10.1.0.2");
        world.say(red, 20, "barrier");
        assert_eq!(world.heard(red), ["20 BARRIER_REPLY"]);
        assert_eq!(world.tenant_flows().len(), flows - 2);
        // The store has room for other tenants.
        world.say(blue, 21, "flow add match=ip,nw_src=10.2.0.1 actions=output:1");
        world.say(blue, 22, "barrier");
        assert_eq!(world.heard(blue), ["22 BARRIER_REPLY"]);

        account.set_store_full(false);
        world.say(red, 23, &add(9));
        world.say(red, 24, "barrier");
        assert_eq!(world.heard(red), ["24 BARRIER_REPLY"]);
        assert_eq!(world.tenant_flows().len(), flows);
    }
}
