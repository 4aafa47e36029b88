//! The common workload of the store's tests and `examples/store_writer.rs`.

use std::collections::BTreeMap;

use daemon::store::Batch;
use hypervisor::policy::TenantId;
use hypervisor::store::{StoreKey, StoreOp};

/// The switch of the workload.
pub(crate) const DPID: u64 = 7;

/// Batch number `seq` of an endless workload: sets an entry, replaces an older one, removes one of another tenant.
pub(crate) fn batch(seq: u64) -> Batch {
    let key = |tenant, item| StoreKey { tenant: TenantId(tenant), item };
    let value = |byte: u64| vec![byte as u8; 120];
    let ops = vec![
        StoreOp::Put(key(1, seq), value(seq)),
        StoreOp::Put(key(1, seq / 2), value(seq + 1)),
        StoreOp::Put(key(2, seq % 100), value(seq)),
        StoreOp::Delete(key(2, (seq + 50) % 100)),
    ];
    Batch { seq, dpid: DPID, ops }
}

/// The stored items after the batches 1 to `last`.
#[allow(dead_code, reason = "only the tests need it")]
pub(crate) fn replay(last: u64) -> BTreeMap<StoreKey, Vec<u8>> {
    let mut stored = BTreeMap::new();
    for op in (1..=last).flat_map(|seq| batch(seq).ops) {
        match op {
            StoreOp::Put(key, value) => stored.insert(key, value),
            StoreOp::Delete(key) => stored.remove(&key),
        };
    }
    stored
}
