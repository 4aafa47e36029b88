//! What a shard is to send and to tell for the topology.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fabric::TenantId;
use hypervisor::Label;

/// What a shard is to send or to tell.
pub struct Orders {
    /// Frames of the hypervisor's own: datapath id, port, frame.
    pub frames: Vec<(u64, u32, Vec<u8>)>,
    /// Labels: datapath id, tenant, port, and what is left.
    pub labels: Vec<(u64, TenantId, u32, Label)>,
    _under_way: UnderWay,
}

impl Orders {
    /// Counts up in `under_way`, and down again when the shard is done.
    pub(super) fn new(
        frames: Vec<(u64, u32, Vec<u8>)>,
        labels: Vec<(u64, TenantId, u32, Label)>,
        under_way: &Arc<AtomicUsize>,
    ) -> Orders {
        under_way.fetch_add(1, Ordering::Relaxed);
        Orders { frames, labels, _under_way: UnderWay(Arc::clone(under_way)) }
    }
}

/// Counts down when the shard is done.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
