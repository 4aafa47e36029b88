//! Packets on their way to a tenant's controllers: how many, how long, and which of them the switch keeps.

use crate::buffers::{Buffered, Buffers};
use crate::lookups::{Counts, Lookups, Standing};
use crate::policy::Rate;
use crate::south::rates::{Bucket, Pace};
use crate::time::Instant;
use alloc::vec::Vec;

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
    /// What the tenant's tables have looked up.
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
    /// Whether the tenant may be given one more PACKET_IN now; `limit` is what the operator says.
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

    // ---- Packets that the switch keeps

    /// The buffered packet of a buffer id of the tenant.
    #[inline]
    pub(crate) fn buffered(&self, number: u32) -> Option<&Buffered> {
        self.buffers.peek(number)
    }

    /// Gives the tenant a buffer id for a packet. Also gives the packet whose buffer id is forgotten for that.
    #[inline]
    pub(crate) fn give_buffered(&mut self, buffered: Buffered) -> (u32, Option<Buffered>) {
        self.buffers.give(buffered)
    }

    /// Uses a buffer id up.
    #[inline]
    pub(crate) fn take_buffered(&mut self, number: u32) -> Option<Buffered> {
        self.buffers.take(number)
    }

    // ---- What the tables have looked up

    /// A packet has matched no entry (1.0).
    #[inline]
    pub(crate) fn missed(&mut self) {
        self.lookups.missed();
    }

    /// An entry of `table` has ended. The entry has counted so many packets and sent them on to the table `next`.
    pub(crate) fn entry_ended(&mut self, table: u8, next: Option<u8>, packets: u64) {
        self.lookups.ended(table, next, packets);
    }

    /// What the tables have looked up. `standing` has the counts of the present entries.
    pub(crate) fn looked_up(&mut self, standing: Standing) -> Vec<Counts> {
        self.lookups.told(standing)
    }
}
