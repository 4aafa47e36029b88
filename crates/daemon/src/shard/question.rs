//! Questions to one shard of those who look on, and the answers.

use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

use hypervisor::trace::{Packet, Passage};
use hypervisor::{FlowPage, FlowPlace, Known, RefusedBy, Side};

/// Refusals that are shown at most.
pub const REFUSALS: usize = 128;

/// Which page of which table is asked for.
#[derive(Clone, Debug)]
pub struct FlowsAsked {
    /// The tenant's name.
    pub tenant: String,
    /// The switch, as the tenant or as the network knows it.
    pub dpid: u64,
    /// The tenant's entries, or what stands for them.
    pub side: Side,
    /// Where the page before ended.
    pub after: Option<FlowPlace>,
}

/// A request that was refused.
#[derive(Clone, Debug)]
pub struct RefusalShown {
    /// When.
    pub at: SystemTime,
    /// The switch, as people know it.
    pub dpid: u64,
    /// The request's transaction id.
    pub xid: u32,
    /// What was asked, in words.
    pub request: String,
    /// The request's first bytes.
    pub excerpt: Vec<u8>,
    /// The error, by its name.
    pub error: String,
    /// Who refused.
    pub by: RefusedBy,
    /// Why, in words.
    pub reason: String,
}

/// Where an answer goes, together with its processor time.
pub(super) type Reply<T> = Sender<(T, Duration)>;

/// A question to one shard.
pub enum Question {
    /// A page of a flow table.
    Flows {
        /// Which page.
        flows: FlowsAsked,
        /// Which datapath id is meant.
        known: Known,
        /// Where the answer goes.
        reply: Reply<Option<FlowPage>>,
    },
    /// What becomes of a packet.
    Passage {
        /// Where it begins.
        start: Start,
        /// Where the answer goes.
        reply: Reply<Result<Passed, NotPassed>>,
    },
    /// The last refused requests of the tenant of this name.
    Refusals {
        /// The tenant's name.
        tenant: String,
        /// Where the answer goes.
        reply: Reply<Vec<RefusalShown>>,
    },
}

/// Where a packet begins that is followed.
#[derive(Clone, Debug)]
pub enum Start {
    /// At a port as a tenant sees the switch.
    Tenant {
        /// The tenant's name.
        tenant: String,
        /// The datapath id that the tenant sees.
        dpid: u64,
        /// The port that the tenant sees.
        port: u32,
        /// The packet.
        frame: Vec<u8>,
    },
    /// At a port of a physical switch.
    Switch {
        /// The datapath id.
        dpid: u64,
        /// The port.
        port: u32,
        /// The packet.
        frame: Vec<u8>,
    },
}

/// What became of a packet on a switch.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The physical switch.
    pub dpid: u64,
    /// The packet, as it came in there.
    pub packet: Packet,
    /// What became of it.
    pub passage: Passage,
    /// The name of the tenant whose it is.
    pub tenant: Option<String>,
}

/// Why nothing can be said of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPassed {
    /// The switch is not connected, or the tenant has no part of it.
    Nowhere,
    /// There is no such port.
    NoPort,
    /// The port has no path.
    NoPath,
    /// A shard did not answer in time.
    Silence,
    /// Questions take as much of the shards' time as they may.
    Busy,
}
