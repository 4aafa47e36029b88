//! A check that the virtual tables, the switch and the store agree.

use super::World;
use hypervisor::Event;
use proptest::prelude::*;

/// After a reconnect Weir installs and removes no rule, and each tenant has the same number of entries.
pub fn tables_agree(world: &mut World) -> Result<(), TestCaseError> {
    let flows: Vec<usize> = world.core.tenants().map(|tenant| tenant.flows).collect();
    let entries = world.tenant_flows();
    world.reconnect();
    let mended: Vec<&Event> = world
        .events
        .iter()
        .filter(|event| match event {
            Event::Reconciled { installed, removed, foreign, .. } => {
                installed + removed + foreign > 0
            }
            _ => false,
        })
        .collect();
    prop_assert!(mended.is_empty(), "{:?}", mended);
    prop_assert_eq!(world.tenant_flows(), entries);
    prop_assert_eq!(world.core.tenants().map(|tenant| tenant.flows).collect::<Vec<_>>(), flows);
    Ok(())
}
