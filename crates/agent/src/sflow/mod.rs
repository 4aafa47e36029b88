//! Flow samples of sFlow version 5 (sflow.org, July 2004). Weir writes raw packet headers. Weir reads raw packet
//! headers, and the records of switches that send lengths and addresses in place of a header.

mod numbers;
mod read;
mod write;

pub use read::{Datagram, FlowSample, FlowSamples};
pub use write::{DatagramBuilder, Origin};

/// The registered UDP port of collectors.
pub const PORT: u16 = 6343;
