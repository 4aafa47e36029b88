//! Events for the driver.

use crate::cookie::Installation;
use crate::ids::ControllerIndex;
use crate::policy::TenantId;
use crate::port_desc::PortState;
use crate::tally::Count;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::embedding::Transit;
use flowspace::Match;

/// What the driver has to do or to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The tenant has a part of this switch: connect its controllers.
    Serve(TenantId),
    /// The tenant has no part of this switch any more: close the connections of its controllers.
    Withdraw(TenantId),
    /// Close this controller's connection: the controller does not read its replies.
    CloseController(ControllerIndex),
    /// The present ports; `None` for a removed port. When the switch is ready, one event has all ports, so that all
    /// ports of a known switch are known; then each change follows.
    Ports(Vec<(u32, Option<PortState>)>),
    /// A link probe of Weir came in at this port. The probe may be old, or a host may have sent it on.
    Probe(u32, Vec<u8>),
    /// Ask the switch `of` for the received counters of the tenant's ports there:
    /// [`crate::Switch::handle_counters_request`].
    CountersRequest {
        /// The other switch.
        of: u64,
        /// The tenant.
        tenant: TenantId,
    },
    /// Send the counters to the switch `to`, which has asked: [`crate::Switch::handle_counters_reply`].
    CountersReply {
        /// The other switch.
        to: u64,
        /// The received counters of the ports here.
        counts: Counts,
    },
    /// The switch has refused this rule of Weir's own twice. For each map the first sixteen such rules are reported;
    /// all are counted.
    OwnRefused {
        /// The packets.
        match_: Box<Match>,
        /// The rule's priority on the switch.
        priority: u16,
    },
    /// All tenants' ports that are down because the switch has refused the rules that bring packets in by them. The
    /// event comes again when the list changes.
    RefusedPorts(Vec<(TenantId, u32)>),
    /// The switch has refused, twice, the rules by which packets in transit to other switches pass. The component that
    /// computes the maps has to find another path.
    RefusedTransits(BTreeSet<Transit>),
    /// The switch said something that makes it unusable; the connection is to be closed.
    CloseSwitch(&'static str),
    /// A table of the switch is full, with this many rules. From now on these rules are divided among the tenants.
    TableFull {
        /// The switch's table; on OpenFlow 1.0 all tables are one.
        table: u8,
        /// The number of rules in the table.
        rules: u32,
    },
    /// The operator's data sheet for the switch is of another switch, and is not used: see [`crate::Switch::sheet`].
    SheetOfAnother,
    /// The switch's tables are reconciled.
    Reconciled {
        /// Rules that were in place.
        kept: usize,
        /// Rules that were missing and have been installed.
        installed: usize,
        /// Rules without an entry that have been removed.
        removed: usize,
        /// Rules of other software, which are left alone.
        foreign: usize,
    },
    /// The number of rules by the installations of Weir that have made them; these rules are left alone. For this
    /// installation: rules that did not become entries of tenants.
    LeftOthers(BTreeMap<Installation, usize>),
    /// Tenants' entries were made of the rules that a lost store had on the switch.
    Adopted {
        /// Entries.
        entries: usize,
        /// Rules that did not become entries.
        left: usize,
    },
}

/// The counters of a tenant's ports on one switch, for another switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The tenant.
    pub tenant: TenantId,
    /// The received counters by port; `None` if the switch has no such counters.
    pub received: Option<Vec<(u32, Count)>>,
}
