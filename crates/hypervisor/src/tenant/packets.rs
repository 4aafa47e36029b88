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
    /// PACKET_INs that its controllers may get.
    bucket: Bucket,
    /// How many it may get by the switch's data sheet.
    share: Option<Pace>,
    /// What its tables have looked up.
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

    /// How many it may get by the switch's data sheet.
    pub(crate) fn set_share(&mut self, share: Option<Pace>) {
        self.share = share;
    }

    /// How many bytes of a packet that met no entry it wants, if the switch keeps the packet.
    #[inline]
    pub(crate) fn miss_send_len(&self) -> u16 {
        self.miss_send_len
    }

    /// See [`miss_send_len`](Self::miss_send_len).
    pub(crate) fn set_miss_send_len(&mut self, length: u16) {
        self.miss_send_len = length;
    }

    // ---- Packets that the switch keeps

    /// The packet that the switch keeps under a number of the tenant's.
    #[inline]
    pub(crate) fn buffered(&self, number: u32) -> Option<&Buffered> {
        self.buffers.peek(number)
    }

    /// Gives the tenant a number for a packet. The oldest number is forgotten, with this packet.
    #[inline]
    pub(crate) fn give_buffered(&mut self, buffered: Buffered) -> (u32, Option<Buffered>) {
        self.buffers.give(buffered)
    }

    /// Uses a number up.
    #[inline]
    pub(crate) fn take_buffered(&mut self, number: u32) -> Option<Buffered> {
        self.buffers.take(number)
    }

    // ---- What the tables have looked up

    /// A packet has met no entry (1.0).
    #[inline]
    pub(crate) fn missed(&mut self) {
        self.lookups.missed();
    }

    /// An entry is gone that has counted so many packets and sent them on to that table.
    pub(crate) fn entry_ended(&mut self, table: u8, next: Option<u8>, packets: u64) {
        self.lookups.ended(table, next, packets);
    }

    /// What the tables have looked up, if entries that stand have counted this.
    pub(crate) fn looked_up(&mut self, standing: Standing) -> Vec<Counts> {
        self.lookups.told(standing)
    }
}
