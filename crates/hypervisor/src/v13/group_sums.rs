//! What groups have counted, added up by their numbers.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use openflow::v13::{BucketCounter, GroupStats};
use openflow::{Encode, ListBuf};

/// What groups have counted, added up by their numbers.
#[derive(Default)]
pub(crate) struct GroupSums<'a>(BTreeMap<u32, (GroupStats<'a>, Vec<BucketCounter>)>);

impl<'a> GroupSums<'a> {
    /// Adds what one has counted, to what is known of the same number; of two durations the longer counts.
    pub(crate) fn add(
        &mut self,
        it: GroupStats<'a>,
        counters: impl IntoIterator<Item = BucketCounter>,
    ) {
        let Some((sum, buckets)) = self.0.get_mut(&it.group_id) else {
            self.0.insert(it.group_id, (it, counters.into_iter().collect()));
            return;
        };
        sum.ref_count = sum.ref_count.max(it.ref_count);
        sum.packet_count = sum.packet_count.saturating_add(it.packet_count);
        sum.byte_count = sum.byte_count.saturating_add(it.byte_count);
        let (mine, its) =
            ((sum.duration_sec, sum.duration_nsec), (it.duration_sec, it.duration_nsec));
        (sum.duration_sec, sum.duration_nsec) = mine.max(its);
        for (bucket, more) in buckets.iter_mut().zip(counters) {
            bucket.packet_count = bucket.packet_count.saturating_add(more.packet_count);
            bucket.byte_count = bucket.byte_count.saturating_add(more.byte_count);
        }
    }

    /// Each as it stands in an answer.
    pub(crate) fn written(self) -> Vec<Vec<u8>> {
        let written = self.0.into_values().map(|(sum, buckets)| {
            let mut list = ListBuf::<BucketCounter>::new();
            buckets.into_iter().for_each(|bucket| list.push(bucket));
            let mut out = Vec::new();
            Encode::write(&GroupStats { bucket_stats: list.as_list(), ..sum }, &mut out);
            out
        });
        written.collect()
    }
}
