//! Buckets that watch a group: a bucket is live while the watched group is live.
//!
//! A tenant may delete a group that other groups watch. The watching buckets stay. A bucket that watches nothing else
//! is not live until the tenant adds a group with that number again. Meanwhile the id on the switch may belong to
//! another group, perhaps of another tenant. So Weir writes watching groups again when a watched group is added or
//! deleted, and leaves out buckets that watch only missing groups.

use super::instances::Change;
use crate::ids::TenantIndex;
use crate::store::Kind;
use crate::switch::Switch;
use crate::v13::numbers::GroupOrMeter;
use alloc::vec::Vec;
use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::{GROUP_ANY, GroupMod};

impl Switch {
    /// An error if a bucket of a new or changed group watches a missing group.
    pub(super) fn check_watched(
        &self,
        tenant: TenantIndex,
        group: &GroupMod<'_>,
    ) -> Result<(), ErrorCode> {
        let groups = self.numbers(tenant, Kind::Group);
        let mut watched = group.buckets.iter().map(|bucket| bucket.watch_group);
        match watched.all(|it| it == GROUP_ANY || groups.get(it).is_some()) {
            true => Ok(()),
            false => Err(code::GROUP_MOD_FAILED_BAD_WATCH),
        }
    }

    /// Groups were added or deleted in the tables: compiles the groups that watch them again. Returns the messages.
    pub(super) fn rewatch(
        &mut self,
        tenant: TenantIndex,
        is_meant: impl Fn(u32) -> bool,
        change: &mut Change,
    ) -> Vec<Vec<u8>> {
        let groups = self.numbers(tenant, Kind::Group);
        let watches = |number: &u32| {
            let group = groups.get(*number).and_then(GroupOrMeter::group);
            group.is_some_and(|it| it.buckets.iter().any(|bucket| is_meant(bucket.watch_group)))
        };
        let watching: Vec<u32> = groups.all().into_iter().filter(watches).collect();
        let mut messages = Vec::new();
        for number in watching {
            let known = self.numbers(tenant, Kind::Group).get(number).cloned();
            let formed = known.map(|it| self.form_group(tenant, number, it));
            if let Some(Ok(mut formed)) = formed {
                messages.append(&mut formed.messages);
                self.adopt_formed(tenant, number, formed, change);
            }
        }
        messages
    }
}
