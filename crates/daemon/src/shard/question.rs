//! Questions to one shard, from REST, and their answers.

use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

use hypervisor::trace::{Packet, Passage};
use hypervisor::{FlowPage, FlowPlace, Known, RefusedBy, Side};

/// The most refusals in an answer.
pub const REFUSALS: usize = 128;

/// The requested page of a flow table.
#[derive(Clone, Debug)]
pub struct FlowsAsked {
    /// The tenant's name.
    pub tenant: String,
    /// The datapath id, as the tenant or as the physical network knows it.
    pub dpid: u64,
    /// The tenant's entries, or the rules for them.
    pub side: Side,
    /// The end of the page before.
    pub after: Option<FlowPlace>,
}

/// A refused request.
#[derive(Clone, Debug)]
pub struct RefusalShown {
    /// The time.
    pub at: SystemTime,
    /// The switch's datapath id for people.
    pub dpid: u64,
    /// The request's transaction id.
    pub xid: u32,
    /// The request in words.
    pub request: String,
    /// The request's first bytes.
    pub excerpt: Vec<u8>,
    /// The name of the error.
    pub error: String,
    /// The refusing side.
    pub by: RefusedBy,
    /// The reason in words.
    pub reason: String,
}

/// The receiver of an answer and its processor time.
pub(super) type Reply<T> = Sender<(T, Duration)>;

/// A question to one shard.
pub enum Question {
    /// A page of a flow table.
    Flows {
        /// The requested page.
        flows: FlowsAsked,
        /// The kind of the datapath id.
        known: Known,
        /// The receiver of the answer.
        reply: Reply<Option<FlowPage>>,
    },
    /// The passage of a packet through a switch.
    Passage {
        /// The start of the packet.
        start: Start,
        /// The receiver of the answer.
        reply: Reply<Result<Passed, NotPassed>>,
    },
    /// The last refused requests of the tenant with this name.
    Refusals {
        /// The tenant's name.
        tenant: String,
        /// The receiver of the answer.
        reply: Reply<Vec<RefusalShown>>,
    },
}

/// The start of a traced packet.
#[derive(Clone, Debug)]
pub enum Start {
    /// A port of a switch as the tenant sees it.
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
    /// A port of a physical switch.
    Switch {
        /// The datapath id.
        dpid: u64,
        /// The port.
        port: u32,
        /// The packet.
        frame: Vec<u8>,
    },
}

/// The result of a packet on a switch.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The physical switch.
    pub dpid: u64,
    /// The packet at the ingress.
    pub packet: Packet,
    /// The passage of the packet.
    pub passage: Passage,
    /// The name of the tenant that owns the packet.
    pub tenant: Option<String>,
}

/// The reason why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPassed {
    /// The switch is not connected, or the tenant has no part of it.
    Nowhere,
    /// The port does not exist.
    NoPort,
    /// The port has no path.
    NoPath,
    /// There is no answer.
    NoAnswer(NoAnswer),
}

/// The reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// A shard has not answered in time.
    Silence,
    /// Questions have used their part of the shards' time, and the caller would have to wait too long.
    Busy,
}
