//! Orders of the topology to a shard: frames and labels to send.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fabric::TenantId;
use hypervisor::Label;

/// The frames and labels that a shard has to send.
pub struct Orders {
    /// Weir's own frames: datapath id, port, frame.
    pub frames: Vec<(u64, u32, Vec<u8>)>,
    /// Labels: datapath id, tenant, port, label.
    pub labels: Vec<(u64, TenantId, u32, Label)>,
    _under_way: UnderWay,
}

impl Orders {
    /// Increments `under_way`, which is decremented when the shard is done.
    pub(super) fn new(
        frames: Vec<(u64, u32, Vec<u8>)>,
        labels: Vec<(u64, TenantId, u32, Label)>,
        under_way: &Arc<AtomicUsize>,
    ) -> Orders {
        under_way.fetch_add(1, Ordering::Relaxed);
        Orders { frames, labels, _under_way: UnderWay(Arc::clone(under_way)) }
    }
}

/// Decrements the counter when the shard is done.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
