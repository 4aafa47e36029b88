//! Groups: GROUP_MOD, and their statistics, descriptions and features (specification 1.3.5, sections 7.3.4.4 and
//! 7.3.5.6 to 7.3.5.8).

use super::action::Action;
use super::port::PortNo;
use crate::fault::{DecodeError, Part};
use crate::list::List;
use crate::wire::{Decode, Encode, Reader, pad, set_length};
use alloc::vec::Vec;

/// The highest group number.
pub const GROUP_MAX: u32 = 0xffff_ff00;
/// All groups, in deletions and statistics requests.
pub const GROUP_ALL: u32 = 0xffff_fffc;
/// As a filter of flow entries: any group or none.
pub const GROUP_ANY: u32 = 0xffff_ffff;

open_enum! {
    /// What to do to the group table.
    pub struct GroupModCommand(u16) {
        /// Add a group.
        ADD = 0,
        /// Replace a group.
        MODIFY = 1,
        /// Delete a group, and the flow entries that use it.
        DELETE = 2,
    }
}

open_enum! {
    /// How a group uses its buckets.
    pub struct GroupType(u8) {
        /// All of them.
        ALL = 0,
        /// One, by a hash.
        SELECT = 1,
        /// The only one.
        INDIRECT = 2,
        /// The first that is live.
        FF = 3,
    }
}

/// `struct ofp_group_mod`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupMod<'a> {
    /// What to do.
    pub command: GroupModCommand,
    /// How the group uses its buckets.
    pub type_: GroupType,
    /// The group.
    pub group_id: u32,
    /// Its buckets.
    pub buckets: List<'a, Bucket<'a>>,
}

layout!(GroupMod<'a>: Body { command, type_, [1], group_id, buckets });

/// `struct ofp_bucket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket<'a> {
    /// Its share; only for `SELECT`.
    pub weight: u16,
    /// The port whose state says whether it is live; only for `FF`.
    pub watch_port: PortNo,
    /// The group whose state says whether it is live; only for `FF`.
    pub watch_group: u32,
    /// What it does, as an action set.
    pub actions: List<'a, Action<'a>>,
}

impl Default for Bucket<'_> {
    fn default() -> Self {
        Self { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions: List::EMPTY }
    }
}

impl<'a> Decode<'a> for Bucket<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Bucket, 0, 16, 8)?;
        r.skip(2)?;
        let weight = Decode::read(&mut r)?;
        let watch_port = Decode::read(&mut r)?;
        let watch_group = Decode::read(&mut r)?;
        r.skip(4)?;
        Ok(Self { weight, watch_port, watch_group, actions: Decode::read(&mut r)? })
    }
}

impl Encode for Bucket<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 2);
        self.weight.write(out);
        self.watch_port.write(out);
        self.watch_group.write(out);
        pad(out, 4);
        self.actions.write(out);
        set_length(out, start, 0);
    }
}

standalone!(Bucket<'a>: Bucket);

/// `struct ofp_group_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupStats<'a> {
    /// The group.
    pub group_id: u32,
    /// How many flow entries and groups forward to it.
    pub ref_count: u32,
    /// Packets that it processed.
    pub packet_count: u64,
    /// Bytes in them.
    pub byte_count: u64,
    /// How long it has been there, in seconds.
    pub duration_sec: u32,
    /// And nanoseconds beyond.
    pub duration_nsec: u32,
    /// The same for each bucket.
    pub bucket_stats: List<'a, BucketCounter>,
}

impl<'a> Decode<'a> for GroupStats<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Statistics, 0, 40, 8)?;
        r.skip(4)?;
        let group_id = Decode::read(&mut r)?;
        let ref_count = Decode::read(&mut r)?;
        r.skip(4)?;
        Ok(Self {
            group_id,
            ref_count,
            packet_count: Decode::read(&mut r)?,
            byte_count: Decode::read(&mut r)?,
            duration_sec: Decode::read(&mut r)?,
            duration_nsec: Decode::read(&mut r)?,
            bucket_stats: Decode::read(&mut r)?,
        })
    }
}

impl Encode for GroupStats<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 4);
        self.group_id.write(out);
        self.ref_count.write(out);
        pad(out, 4);
        self.packet_count.write(out);
        self.byte_count.write(out);
        self.duration_sec.write(out);
        self.duration_nsec.write(out);
        self.bucket_stats.write(out);
        set_length(out, start, 0);
    }
}

standalone!(GroupStats<'a>: Statistics);

/// `struct ofp_bucket_counter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BucketCounter {
    /// Packets that the bucket processed.
    pub packet_count: u64,
    /// Bytes in them.
    pub byte_count: u64,
}

layout!(BucketCounter: Statistics { packet_count, byte_count });

/// `struct ofp_group_desc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupDesc<'a> {
    /// How the group uses its buckets.
    pub type_: GroupType,
    /// The group.
    pub group_id: u32,
    /// Its buckets.
    pub buckets: List<'a, Bucket<'a>>,
}

impl<'a> Decode<'a> for GroupDesc<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut r = r.element(Part::Statistics, 0, 8, 8)?;
        r.skip(2)?;
        let type_ = Decode::read(&mut r)?;
        r.skip(1)?;
        Ok(Self { type_, group_id: Decode::read(&mut r)?, buckets: Decode::read(&mut r)? })
    }
}

impl Encode for GroupDesc<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        pad(out, 2);
        self.type_.write(out);
        pad(out, 1);
        self.group_id.write(out);
        self.buckets.write(out);
        set_length(out, start, 0);
    }
}

standalone!(GroupDesc<'a>: Statistics);

flags! {
    /// `enum ofp_group_capabilities`.
    pub struct GroupCapabilities(u32) {
        /// Weights of `SELECT` groups.
        SELECT_WEIGHT = 1 << 0,
        /// Liveness of `SELECT` groups.
        SELECT_LIVENESS = 1 << 1,
        /// Groups that forward to groups.
        CHAINING = 1 << 2,
        /// Refuses groups that would loop.
        CHAINING_CHECKS = 1 << 3,
    }
}

/// `struct ofp_group_features`. The arrays are indexed by group type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupFeatures {
    /// The group types that are supported: bit *n* is type *n*.
    pub types: u32,
    /// What the switch can do.
    pub capabilities: GroupCapabilities,
    /// How many groups of each type there can be.
    pub max_groups: [u32; 4],
    /// Which actions each type supports: bit *n* is the action of type *n*.
    pub actions: [u32; 4],
}

layout!(GroupFeatures: Statistics { types, capabilities, max_groups, actions });
