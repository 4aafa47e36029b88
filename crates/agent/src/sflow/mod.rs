//! sFlow version 5 (sflow.org, July 2004): flow samples. Weir writes raw packet headers; it reads these, and the records
//! of switches that send lengths and addresses in place of a header.

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
/// Flow records of enterprise 0: a raw packet header, and what an agent without headers says of a packet
/// (`sampled_ethernet`, `sampled_ipv4`, `sampled_ipv6`).
const RAW_HEADER: u32 = 1;
const SAMPLED_ETHERNET: u32 = 2;
const SAMPLED_IPV4: u32 = 3;
const SAMPLED_IPV6: u32 = 4;
/// Header protocols: Ethernet, and IP without Ethernet.
const ETHERNET: u32 = 1;
const HEADER_IPV4: u32 = 11;
const HEADER_IPV6: u32 = 12;
