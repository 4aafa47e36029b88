//! Packets on their way to a tenant's controllers: their rate, their length, and the buffered packets.

use crate::buffers::Buffers;
use crate::lookups::Lookups;
use crate::policy::Rate;
use crate::south::rates::{Bucket, Pace};
use crate::time::Instant;

/// OFP_DEFAULT_MISS_SEND_LEN, in both versions.
const DEFAULT_MISS_SEND_LEN: u16 = 128;

/// See the module.
pub(crate) struct Packets {
    buffers: Buffers,
    miss_send_len: u16,
    /// How many PACKET_INs the tenant may get now.
    bucket: Bucket,
    /// The rate of PACKET_INs by the switch's data sheet.
    share: Option<Pace>,
    /// How many packets the tenant's tables have looked up.
    lookups: Lookups,
}

impl Default for Packets {
    fn default() -> Self {
        Packets {
            buffers: Buffers::default(),
            miss_send_len: DEFAULT_MISS_SEND_LEN,
            bucket: Bucket::default(),
            share: None,
            lookups: Lookups::default(),
        }
    }
}

impl Packets {
    /// Whether the rates allow one more PACKET_IN to the tenant now; `limit` is the operator's rate.
    #[inline]
    pub(super) fn admit(&mut self, limit: Option<Rate>, now: Instant) -> bool {
        let pace = limit.map(Pace::from).or(self.share);
        self.bucket.take(pace, now).is_ok()
    }

    /// The rate of PACKET_INs by the switch's data sheet.
    pub(crate) fn set_share(&mut self, share: Option<Pace>) {
        self.share = share;
    }

    /// How many bytes of a packet without an entry the tenant wants in a PACKET_IN, if the switch buffers the packet.
    #[inline]
    pub(crate) fn miss_send_len(&self) -> u16 {
        self.miss_send_len
    }

    /// See [`miss_send_len`](Self::miss_send_len).
    pub(crate) fn set_miss_send_len(&mut self, length: u16) {
        self.miss_send_len = length;
    }

    /// Packets that the switch buffers.
    #[inline]
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// See [`buffers`](Self::buffers).
    #[inline]
    pub(crate) fn buffers_mut(&mut self) -> &mut Buffers {
        &mut self.buffers
    }

    /// How many packets the tables have looked up.
    #[inline]
    pub(crate) fn lookups(&self) -> &Lookups {
        &self.lookups
    }

    /// See [`lookups`](Self::lookups).
    #[inline]
    pub(crate) fn lookups_mut(&mut self) -> &mut Lookups {
        &mut self.lookups
    }
}
