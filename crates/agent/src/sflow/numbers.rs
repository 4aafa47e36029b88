//! The numbers of sFlow version 5.

pub(super) const VERSION: u32 = 5;
/// Address types.
pub(super) const IPV4: u32 = 1;
pub(super) const IPV6: u32 = 2;
/// Sample types of enterprise 0: flow sample, expanded flow sample.
pub(super) const FLOW: u32 = 1;
pub(super) const EXPANDED_FLOW: u32 = 3;
/// Flow records of enterprise 0: a raw packet header, and the records of an agent without headers (`sampled_ethernet`,
/// `sampled_ipv4`, `sampled_ipv6`).
pub(super) const RAW_HEADER: u32 = 1;
pub(super) const SAMPLED_ETHERNET: u32 = 2;
pub(super) const SAMPLED_IPV4: u32 = 3;
pub(super) const SAMPLED_IPV6: u32 = 4;
/// Header protocols: Ethernet, and IP without Ethernet.
pub(super) const ETHERNET: u32 = 1;
pub(super) const HEADER_IPV4: u32 = 11;
pub(super) const HEADER_IPV6: u32 = 12;
