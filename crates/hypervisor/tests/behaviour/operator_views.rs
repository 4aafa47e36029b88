//! Tests of the tables that an operator sees for a tenant. Bounded pages show the whole table, each entry once.

use crate::support::*;
use flowspace::FlowText;
use hypervisor::{FlowPage, Known, Side, TenantId};

const SPACES: &str = "
    red: in_port=1
    red: in_port=2
    blue: in_port=3
";

/// The largest number of entries in a page.
const PAGE: usize = 256;

/// All pages of a table.
fn pages(world: &World, tenant: &str, side: Side) -> Vec<FlowPage> {
    let (tenant, mut after, mut pages) = (world.tenant(tenant), None, Vec::new());
    loop {
        let page = world.core.flow_page(tenant, side, after).unwrap();
        assert!(page.flow_mods.len() <= PAGE, "{}", page.flow_mods.len());
        let bytes: usize = page.flow_mods.iter().map(Vec::len).sum();
        assert!(bytes <= 2 * 65_536, "{bytes}");
        let next = page.next;
        pages.push(page);
        match next {
            Some(place) => assert!(after < Some(place), "pages go on"),
            None => return pages,
        }
        after = next;
    }
}

fn lines(pages: &[FlowPage]) -> Vec<String> {
    let frames = pages.iter().flat_map(|page| &page.flow_mods);
    frames.map(|frame| FlowText::of_flow_mod(frame).unwrap().to_string()).collect()
}

#[test]
fn an_operator_can_view_the_tenants_entries_and_the_rules_on_the_switch() {
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let red = world.connect("red");
        world.say(red, 1, "flow add match=ip,nw_src=10.0.0.1 prio=9 cookie=5 actions=output:2");
        world.stored();
        world.advance(100_000_000);
        let tenants = pages(&world, "red", Side::Tenant);
        let expected = "cookie=0x5, priority=9,ip,nw_src=10.0.0.1 actions=output:2";
        assert_eq!(lines(&tenants), [expected], "{version:?}");
        assert_eq!((tenants[0].version, tenants[0].seen_as), (version, world.core.dpid()));
        let mut on_switch: Vec<String> = lines(&pages(&world, "red", Side::Switch));
        on_switch.sort();
        // On 1.0 the entry has one rule for each port of the slice. On 1.3 the entry has one rule, which matches on the
        // tenant's number.
        let count = if version == Version::V1_0 { 2 } else { 1 };
        assert_eq!(on_switch.len(), count, "{on_switch:#?}");
        assert!(on_switch.iter().all(|line| line.contains("send_flow_rem priority=9,")));
        assert!(on_switch.iter().all(|line| line.contains("cookie=0x5745")), "{on_switch:#?}");
        assert_eq!(lines(&pages(&world, "blue", Side::Tenant)), [""; 0]);
    }
}

#[test]
fn a_large_table_is_shown_in_bounded_pages_with_each_entry_once() {
    const ENTRIES: usize = 1_000;
    for version in VERSIONS {
        let mut world = World::new(Setup::new(version, SPACES));
        let red = world.connect("red");
        for n in 0..ENTRIES {
            let (high, low, cookie) = (n / 256, n % 256, n % 3);
            let words = format!(
                "flow add match=ip,nw_src=10.9.{high}.{low} cookie={cookie} actions=output:2"
            );
            world.controllers[red.0].outgoing.push_back(request(version, 1, &words));
        }
        world.pump();
        world.stored();
        world.advance(100_000_000);
        for (side, each) in
            [(Side::Tenant, 1), (Side::Switch, 1 + usize::from(version == Version::V1_0))]
        {
            let before: Vec<u64> = world.core.tenants().map(|it| it.counters.examined).collect();
            let pages = pages(&world, "red", side);
            assert!(pages.len() >= ENTRIES * each / PAGE, "{}", pages.len());
            let mut all = lines(&pages);
            all.sort();
            all.dedup();
            assert_eq!(all.len(), ENTRIES * each, "{version:?} {side:?}");
            let after: Vec<u64> = world.core.tenants().map(|it| it.counters.examined).collect();
            assert_eq!(before, after, "the tenant is not charged");
        }
    }
}

#[test]
fn tables_of_unknown_tenants_and_switches_are_not_shown() {
    let world = World::new(Setup::new(Version::V1_3, SPACES));
    let (red, dpid) = (world.tenant("red"), world.core.dpid());
    for known in [Known::ByTenant, Known::BySwitch] {
        assert!(world.core.is_known(red, dpid, known));
        assert!(!world.core.is_known(red, dpid + 1, known));
        assert!(!world.core.is_known(TenantId(77), dpid, known));
    }
    assert_eq!(world.core.flow_page(TenantId(77), Side::Tenant, None), None);
}
