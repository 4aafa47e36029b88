//! sFlow version 5 (sflow.org, July 2004): flow samples with raw packet headers, written and read.

mod read;
mod write;

pub use read::{Datagram, FlowSample, FlowSamples};
pub use write::{DatagramBuilder, Origin};

/// The registered port of collectors.
pub const PORT: u16 = 6343;

const VERSION: u32 = 5;
/// Address types.
const IPV4: u32 = 1;
const IPV6: u32 = 2;
/// Sample types of enterprise 0: flow sample, expanded flow sample.
const FLOW: u32 = 1;
const EXPANDED_FLOW: u32 = 3;
/// The flow record of enterprise 0 that is a raw packet header.
const RAW_HEADER: u32 = 1;
/// Header protocol: Ethernet.
const ETHERNET: u32 = 1;
