//! Packets that the hypervisor itself sends on for a tenant, where the switch cannot: each is a PACKET_IN of the tenant's and a
//! PACKET_OUT, by its rates and in its turn.

use super::Switch;
use crate::ids::TenantIndex;
use crate::pending::Awaits;
use crate::queue::{Class, Item};
use crate::time::Instant;
use alloc::vec::Vec;
use openflow::TooLong;

impl Switch {
    /// Whether a packet may be sent on that has come in, or is there as a whole; if not, it is counted why.
    pub(crate) fn may_send_on(&mut self, tenant: TenantIndex, is_whole: bool) -> bool {
        let state = &mut self.tenants[tenant.0 as usize];
        let may = is_whole && state.backlog() < self.settings.tenant_backlog;
        state.counters.unsent += u64::from(!may);
        may
    }

    /// Sends what `write` writes, a PACKET_OUT.
    pub(crate) fn send_on(
        &mut self,
        tenant: TenantIndex,
        now: Instant,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), TooLong>,
    ) {
        let mut message = core::mem::take(&mut self.scratch);
        message.clear();
        if write(&mut message).is_ok() {
            let item = Item {
                origin: None,
                awaits: Awaits::Nothing,
                operation: None,
                class: Class::PacketOut,
                cost: 1,
                share: 1,
                gate: 0,
                arrived: now,
            };
            self.submit(tenant, item, &message);
        }
        self.scratch = message;
    }
}
