//! What a switch has its driver do, or know.

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
    /// The tenant has no part of it any more: close its controllers' connections.
    Withdraw(TenantId),
    /// Close this controller's connection: it does not read what it asked for.
    CloseController(ControllerIndex),
    /// Ports as they are now; `None` is gone. All together when the switch is ready, so that no port of a switch that is
    /// known is unknown; then each that changes.
    Ports(Vec<(u32, Option<PortState>)>),
    /// A link probe of the hypervisor's own came in at this port. It may be old, or passed on by a host.
    Probe(u32, Vec<u8>),
    /// Ask the switch `of` what has come in by the tenant's ports there: [`crate::Switch::handle_counts_asked`].
    AskCounts {
        /// Which switch.
        of: u64,
        /// Whose ports.
        tenant: TenantId,
    },
    /// Tell the switch `to`, which has asked: [`crate::Switch::handle_counts_told`].
    TellCounts {
        /// Which switch.
        to: u64,
        /// What has come in here.
        counts: Counts,
    },
    /// The switch has refused this entry of the hypervisor's own, also when it was tried once more. Of each map the first
    /// sixteen are told; all are counted.
    OwnRefused {
        /// The packets.
        match_: Box<Match>,
        /// Its priority on the switch.
        priority: u16,
    },
    /// The tenants' ports that are down because the switch has refused what would bring packets in by them: all of them, each
    /// time that they are others.
    RefusedPorts(Vec<(TenantId, u32)>),
    /// The switch has refused, twice, the entries by which these would pass through to other switches: the part that drew the map
    /// has to lead them around.
    RefusedTransits(BTreeSet<Transit>),
    /// The switch said something that makes it unusable; the connection is to be closed.
    CloseSwitch(&'static str),
    /// A table of the switch is full, and had so many rules: they are divided among the tenants from now on.
    TableFull {
        /// The switch's table; on OpenFlow 1.0 all tables are one.
        table: u8,
        /// How many rules.
        rules: u32,
    },
    /// The data sheet that the operator names for the switch is of another one, and is not used: see [`crate::Switch::sheet`].
    SheetOfAnother,
    /// The switch's tables are as they should be.
    Reconciled {
        /// Entries that were in place.
        kept: usize,
        /// Entries that were missing and have been installed.
        installed: usize,
        /// Entries that had no owner any more and have been removed.
        removed: usize,
        /// Entries that somebody else made; they are left alone.
        foreign: usize,
    },
    /// Entries that other installations of Weir have made, and how many; they are left alone. Under the own installation those of
    /// which no tenant's entry could be made.
    LeftOthers(BTreeMap<Installation, usize>),
    /// Tenants' entries were made of the rules that a lost store had on the switch.
    Adopted {
        /// Entries.
        entries: usize,
        /// Rules of which none could be made.
        left: usize,
    },
}

/// What one switch tells another of a tenant's ports there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Whose.
    pub tenant: TenantId,
    /// By port, what has come in; `None` if the switch cannot tell.
    pub received: Option<Vec<(u32, Count)>>,
}
