//! The operator's intent, as one immutable snapshot.
//!
//! A [`Policy`] is parsed elsewhere (the daemon's configuration), shared by reference between shards, and replaced as a
//! whole. This module knows no switch: [`compile::Ownership`] ranks the flowspaces for one switch.

pub(crate) mod big_switches;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use fabric::embedding::SwitchMap;

use crate::ids::TenantIndex;
use crate::sheet::Sheet;
use compile::ownership::Claims;
pub use compile::ownership::{FlowspaceEntry, Ownership, Permission, Switches};
pub use fabric::TenantId;

/// Everything that the operator has configured for tenants and switches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Tenants in the order of the configuration, which decides between entries of equal priority.
    pub tenants: Vec<Tenant>,
    /// What the tenants' virtual networks need on each switch, by datapath id. A tenant that a map names on a switch
    /// has a network there and no slice.
    pub maps: BTreeMap<u64, Arc<SwitchMap>>,
    /// VLAN ids that mark packets of virtual links between switches. Elsewhere tenants' packets must not have these
    /// VLAN ids.
    pub tags: Option<RangeInclusive<u16>>,
    /// Data sheets of switches, by datapath id.
    pub sheets: BTreeMap<u64, Arc<Sheet>>,
    /// The data sheet of all other switches.
    pub any_sheet: Option<Arc<Sheet>>,
}

impl Policy {
    /// The data sheet that the operator names for a switch.
    pub fn sheet(&self, dpid: u64) -> Option<&Arc<Sheet>> {
        self.sheets.get(&dpid).or(self.any_sheet.as_ref())
    }

    /// The owners of packets on one switch. `index` gives the places of `tenants` tenants; a tenant without a place
    /// owns nothing.
    pub fn ownership(
        &self,
        dpid: u64,
        tenants: usize,
        index: impl Fn(TenantId) -> Option<TenantIndex>,
    ) -> Ownership {
        let flowspaces = self.tenants.iter();
        let flowspaces = flowspaces.filter_map(|it| Some((index(it.id)?, &*it.flowspace)));
        let map = self.maps.get(&dpid);
        let members = map.into_iter().flat_map(|map| &map.members);
        Ownership::new(&Claims {
            dpid,
            tenants,
            flowspaces: flowspaces.collect(),
            networks: members.filter_map(|(id, member)| Some((index(*id)?, member))).collect(),
            transit: map.map_or(&[], |map| &map.transit),
            labels: self.tags.as_ref(),
        })
    }
}

/// One tenant: its space, its share and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// Stable number.
    pub id: TenantId,
    /// The name from the configuration. The tenant sees this name in its switch description.
    pub name: String,
    /// Share of control-plane service relative to other tenants; at least 1.
    pub weight: u32,
    /// What the tenant may see and touch.
    pub flowspace: Vec<FlowspaceEntry>,
    /// Bounds on what the tenant may use.
    pub limits: Limits,
    /// Queue ids that the tenant may enqueue to; empty means none.
    pub queues: Vec<u32>,
    /// Vendor / experimenter ids whose messages and actions may pass.
    pub experimenters: Vec<u32>,
    /// Where the answers to statistics requests come from.
    pub statistics: Statistics,
    /// The form of link labels on the tenant's OpenFlow connections, if the tenant gets labels.
    pub labels: Option<LabelForm>,
}

/// How a tenant's controllers get the free bandwidth of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelForm {
    /// A 32-bit number of kilobits per second behind each port description of OpenFlow 1.0 (Riggio et al., 2013,
    /// section IV.C). The description is longer by these four bytes.
    OpenFlow10,
    /// `curr_speed` of OpenFlow 1.3's port descriptions, with the capacity as `max_speed`.
    OpenFlow13,
    /// A message of Weir's own, on both versions.
    Experimenter,
}

/// Bounds on what one tenant may use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Virtual flow entries per switch.
    pub flows: u32,
    /// Rules on a switch for these entries.
    pub entries: u32,
    /// Groups per switch (1.3).
    pub groups: u32,
    /// Meters per switch (1.3).
    pub meters: u32,
    /// Token bucket for PACKET_OUT, if any.
    pub packet_out: Option<Rate>,
    /// Token bucket for FLOW_MOD, GROUP_MOD and METER_MOD, if any.
    pub flow_mod: Option<Rate>,
    /// Token bucket for statistics requests, if any.
    pub statistics: Option<Rate>,
    /// Token bucket for PACKET_INs to the tenant, if any. PACKET_INs beyond the rate are dropped and counted.
    pub packet_in: Option<Rate>,
    /// Rate of changes in the store, for all switches together.
    pub state_changes: Rate,
    /// What the tenant's slice sees of the counters of ports that other tenants use, too.
    pub shared_port_counters: PortCounters,
}

/// What a slice sees of a port's counters, where the switch counts the packets of several tenants together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortCounters {
    /// The switch's counters: the tenant sees how much others send.
    #[default]
    Switch,
    /// All ones, which means that nothing counts (1.0, section 5.3.5; 1.3, section 7.3.5).
    Unsupported,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            flows: 10_000,
            entries: 100_000,
            groups: 1024,
            meters: 256,
            packet_out: None,
            flow_mod: None,
            statistics: None,
            packet_in: None,
            state_changes: Rate { per_second: 50_000, burst: 100_000 },
            shared_port_counters: PortCounters::Switch,
        }
    }
}

/// A token bucket, of messages or changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Messages or changes per second.
    pub per_second: u32,
    /// Messages or changes that may come at once after a silence.
    pub burst: u32,
}

/// Where the answers to statistics requests come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// From the switch, each time (identical requests in flight share one).
    #[default]
    Passthrough,
    /// From an earlier answer that is not older than this many nanoseconds.
    Cached {
        /// Greatest age of an answer, in nanoseconds.
        max_age: u64,
    },
}
