//! Buckets that watch a group: they are live while that is.
//!
//! A group may be deleted while others watch it; those stay, and what watches nothing else is not live till a group comes
//! again under that number. On the switch the number is another's by then, perhaps another tenant's. So groups that watch one
//! are written anew when it goes or comes, and what watches nothing that there is, is not written.

use super::copies::Change;
use crate::ids::TenantIndex;
use crate::network::Network;
use crate::store::Kind;
use crate::switch::Switch;
use alloc::vec::Vec;
use openflow::ErrorCode;
use openflow::error::v13 as code;
use openflow::v13::{Bucket, GROUP_ANY, GroupMod, GroupModCommand, GroupType, PortNo};

impl Switch {
    /// What a tenant's buckets watch has to be there when it asks for them.
    pub(super) fn check_watched(
        &self,
        tenant: TenantIndex,
        group: &GroupMod<'_>,
    ) -> Result<(), ErrorCode> {
        let mut watched = group.buckets.iter().map(|bucket| bucket.watch_group);
        match watched.all(|it| it == GROUP_ANY || self.watched(tenant, it).is_some()) {
            true => Ok(()),
            false => Err(code::GROUP_MOD_FAILED_BAD_WATCH),
        }
    }

    /// The group on the switch that a bucket watches, if it is there. All forms watch the same.
    pub(super) fn watched(&self, tenant: TenantIndex, number: u32) -> Option<u32> {
        self.numbers(tenant, Kind::Group).get(number).map(|known| known.physical)
    }

    /// Whether a bucket is not written: its group is for failing over, and it watches nothing but a port that is not live,
    /// though what that stands on may be, or a group that is gone.
    pub(super) fn is_left_out(
        &self,
        tenant: TenantIndex,
        network: Option<&Network>,
        type_: GroupType,
        bucket: &Bucket<'_>,
    ) -> bool {
        let Bucket { watch_port: port, watch_group: group, .. } = *bucket;
        let may_live = port != PortNo::ANY && network.is_none_or(|it| it.is_live(port.0))
            || self.watched(tenant, group).is_some();
        type_ == GroupType::FF && !may_live && (port != PortNo::ANY || group != GROUP_ANY)
    }

    /// Groups have come or gone in the tables: those that watch one of them follow, and their messages are given.
    pub(super) fn rewatch(
        &mut self,
        tenant: TenantIndex,
        is_meant: impl Fn(u32) -> bool,
        change: &mut Change,
    ) -> Vec<(u32, Vec<u8>)> {
        let mut messages = Vec::new();
        for number in self.watchers_of(tenant, is_meant) {
            let known = self.numbers(tenant, Kind::Group).get(number).cloned();
            let formed = known.map(|it| self.form_group(tenant, it, &|_| GroupModCommand::MODIFY));
            if let Some(Ok(mut formed)) = formed {
                let written = core::mem::take(&mut formed.messages);
                messages.extend(written.into_iter().map(|message| (number, message)));
                self.adopt_formed(tenant, number, formed, change);
            }
        }
        messages
    }

    /// Whether one of the tenant's groups watches others.
    pub(super) fn watches_groups(&self, tenant: TenantIndex, number: u32) -> bool {
        let known = self.numbers(tenant, Kind::Group).get(number);
        let group = known.and_then(|known| GroupMod::parse(&known.body).ok());
        group.is_some_and(|it| it.buckets.iter().any(|bucket| bucket.watch_group != GROUP_ANY))
    }

    /// The tenant's groups that watch some.
    pub(super) fn watchers_of(
        &self,
        tenant: TenantIndex,
        is_meant: impl Fn(u32) -> bool,
    ) -> Vec<u32> {
        let groups = self.numbers(tenant, Kind::Group);
        let watches = |number: &u32| {
            let group = groups.get(*number).and_then(|known| GroupMod::parse(&known.body).ok());
            group.is_some_and(|it| it.buckets.iter().any(|bucket| is_meant(bucket.watch_group)))
        };
        groups.all().into_iter().filter(watches).collect()
    }
}
