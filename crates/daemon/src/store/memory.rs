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
    /// By switch. There can be hundreds of thousands.
    items: HashMap<u64, BTreeMap<StoreKey, Box<[u8]>>>,
    pub(super) documents: HashMap<String, Vec<u8>>,
}

impl Memory {
    pub(super) fn apply(&mut self, batch: Batch) {
        let items = self.items.entry(batch.dpid).or_default();
        for op in batch.ops {
            match op {
                StoreOp::Put(key, value) => items.insert(key, value.into()),
                StoreOp::Delete(key) => items.remove(&key),
            };
        }
        if items.is_empty() {
            self.items.remove(&batch.dpid);
        }
    }

    pub(super) fn load(&self, dpid: u64) -> Vec<Stored> {
        let items = self.items.get(&dpid).into_iter().flatten();
        items.map(|(&key, value)| (key, value.to_vec())).collect()
    }

    pub(super) fn tenant_ids(&mut self, names: &[&str]) -> Result<Vec<TenantId>, StoreError> {
        let used =
            || self.items.values().flat_map(BTreeMap::keys).map(|key| key.tenant.0).collect();
        let (ids, changes) = allocate(&self.tenants, names, used)?;
        for name in &changes.forget {
            self.tenants.remove(name);
        }
        self.tenants.extend(changes.assign);
        Ok(ids)
    }
}
