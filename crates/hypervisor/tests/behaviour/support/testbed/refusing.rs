//! Requests that are refused on the testbed, and the refusals that Weir records.

use super::Testbed;
use hypervisor::refusals::Refusal;
use hypervisor::{Account, Instant, Switch, TenantId};
use openflow::error::Error;
use openflow::{ErrorCode, Header};
use std::sync::Arc;

impl Testbed {
    /// The last refusal of a tenant on one of the tenant's switches.
    pub fn last_refusal(&self, tenant: usize, switch: u64) -> Option<Refusal> {
        self.seen_by(tenant, switch).refusals(TenantId(tenant as u16 + 1)).last().copied()
    }

    /// The numbers of refusals that are counted for a tenant: on one of the tenant's switches, and on all physical
    /// switches.
    pub fn errors_counted(&self, tenant: usize, switch: u64) -> (u64, u64) {
        let id = TenantId(tenant as u16 + 1);
        let of = |core: &Switch| {
            let state = core.tenants().find(|state| state.id == id);
            state.map_or(0, |state| state.counters.refusals.iter().map(|(_, count)| count).sum())
        };
        (of(self.seen_by(tenant, switch)), self.cores.iter().map(of).sum())
    }

    /// The tenant's part of the store is full. Only the core of this physical switch knows this.
    pub fn fill_store(&mut self, tenant: usize, switch: u64) {
        let account = Arc::<Account>::default();
        account.set_store_full(true);
        self.cores[switch as usize - 1].share_account(TenantId(tenant as u16 + 1), account);
    }

    /// A physical switch refuses the next message of this type.
    pub fn refuse_next(&mut self, switch: u64, type_: u8, code: ErrorCode) {
        self.refuses = Some((switch, type_, code));
    }

    pub(super) fn refuse_at_switch(&mut self, at: usize, message: &[u8]) -> bool {
        let header = Header::parse(message).unwrap();
        let is_meant =
            |it: &mut (u64, u8, ErrorCode)| (it.0, it.1) == (at as u64 + 1, header.type_);
        let Some((.., code)) = self.refuses.take_if(is_meant) else { return false };
        let (mut answer, data) = (Vec::new(), &message[..message.len().min(64)]);
        Error { code, data }.write_message(header.version, header.xid, &mut answer).unwrap();
        self.cores[at].handle_switch_message(&answer, Instant(self.now));
        true
    }

    /// The core that serves the tenant's switch: the front of a big switch, or the core of the physical switch.
    fn seen_by(&self, tenant: usize, switch: u64) -> &Switch {
        let big = self.bigs.iter().find(|big| (big.tenant, big.head) == (tenant, switch));
        match big {
            Some(big) => big.front.as_ref().expect("no front"),
            None => &self.cores[switch as usize - 1],
        }
    }
}
