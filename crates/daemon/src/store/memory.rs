//! The store without `--state`: gives the same answers from memory.

use std::collections::{BTreeMap, HashMap};

use hypervisor::policy::TenantId;
use hypervisor::store::{StoreKey, StoreOp};

use super::batch::{Batch, Stored};
use super::database::allocate;
use super::error::StoreError;

#[derive(Debug, Default)]
pub(super) struct Memory {
    tenants: HashMap<String, u16>,
    items: BTreeMap<(u64, StoreKey), Vec<u8>>,
    pub(super) documents: HashMap<String, Vec<u8>>,
}

impl Memory {
    pub(super) fn apply(&mut self, batch: Batch) {
        for op in batch.ops {
            match op {
                StoreOp::Put(key, value) => self.items.insert((batch.dpid, key), value),
                StoreOp::Delete(key) => self.items.remove(&(batch.dpid, key)),
            };
        }
    }

    pub(super) fn load(&self, dpid: u64) -> Vec<Stored> {
        let first = StoreKey { tenant: TenantId(0), item: 0 };
        let last = StoreKey { tenant: TenantId(u16::MAX), item: u64::MAX };
        let range = self.items.range((dpid, first)..=(dpid, last));
        range.map(|(&(_, key), value)| (key, value.clone())).collect()
    }

    pub(super) fn tenant_ids(&mut self, names: &[&str]) -> Result<Vec<TenantId>, StoreError> {
        let used = || self.items.keys().map(|(_, key)| key.tenant.0).collect();
        let (ids, changes) = allocate(&self.tenants, names, used)?;
        for name in &changes.forget {
            self.tenants.remove(name);
        }
        self.tenants.extend(changes.assign);
        Ok(ids)
    }
}
