//! What the core keeps for one tenant on one switch, and for one of its controllers.

use crate::account::{Account, Held};
use crate::buffers::Buffers;
use crate::counters::Counters;
use crate::flows::{Flow, FlowTable};
use crate::ids::ControllerIndex;
use crate::lookups::Lookups;
use crate::policy::{self, LabelForm, Limits, Statistics, TenantId};
use crate::refusals::Refusals;
use crate::south::rates::{Bucket, Pace};
use crate::switch::{Asking, Elsewhere, Idle, Label, Logged, Recovery};
use crate::time::Instant;
use crate::v13::numbers::Numbers;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::Network;
use hashbrown::HashMap;
use openflow::v10::PortConfig;

/// One tenant on one switch.
pub(crate) struct Tenant {
    pub id: TenantId,
    pub name: String,
    /// Whether the policy still knows it. Its place is kept, so that indices stay valid.
    pub present: bool,
    pub limits: Limits,
    pub queues: Vec<u32>,
    pub experimenters: Vec<u32>,
    pub statistics: Statistics,
    /// The form in which it is told what is left of links.
    pub labels: Option<LabelForm>,
    /// What it was told last, by port.
    pub port_labels: BTreeMap<u32, Label>,
    pub weight: u32,
    /// Its own network on this switch, if it has one and no slice.
    pub network: Option<Arc<Network>>,
    /// What it has configured of its network's ports, where that is anything.
    pub port_config: BTreeMap<u32, PortConfig>,
    /// Its network's ports that are down because the switch refuses what brings packets in by them (1.3).
    pub refused_ports: BTreeSet<u32>,
    /// What has come in by its network's ports, and questions for that to the switch (1.3).
    pub asking: Asking,
    /// What other switches have reported of the other ends of its network's links, by datapath id.
    pub elsewhere: BTreeMap<u64, Elsewhere>,
    pub controllers: Vec<ControllerIndex>,
    /// Its requests in flight.
    pub log: VecDeque<Logged>,
    /// While its tables and the switch are brought together.
    pub recovery: Option<Box<Recovery>>,
    /// Requests that were accepted and have not been answered.
    pub unanswered: usize,
    /// Work done for its changes that are on their way, in examined entries.
    pub ahead: u64,
    /// Bytes held for its requests that are not finished, but for what waits for the switch.
    pub held: Held,
    /// What waits for its controllers, and its part of the store, also on other switches.
    pub account: Arc<Account>,
    /// Until when none of its requests is read, since it has changed more than its rate allows.
    pub rests: Option<Instant>,
    /// Whether a controller was told to stop reading.
    pub paused: bool,
    /// Whether anything for which requests wait has come to its end since those were last looked at.
    pub is_decided: bool,
    pub flows: FlowTable,
    /// Entries that are being removed, until the switch has told their last counts.
    pub leaving: HashMap<u32, Leaving>,
    /// Entries with several rules, of which some have been idle.
    pub idle: HashMap<u32, Idle>,
    /// Counts changes of the tenant's tables, so that an answer that was asked for earlier is not taken for current.
    pub changes: u64,
    pub buffers: Buffers,
    /// Whether ids of groups or meters may be needed no more.
    pub has_loose_numbers: bool,
    pub groups: Numbers,
    pub meters: Numbers,
    pub miss_send_len: u16,
    /// The generation id of the last accepted mastership claim (1.3).
    pub generation: Option<u64>,
    /// PACKET_INs that its controllers may get.
    pub packet_ins: Bucket,
    /// How many it may get by the switch's data sheet.
    pub packet_in_share: Option<Pace>,
    /// What its tables have looked up.
    pub lookups: Lookups,
    pub counters: Counters,
    /// Its last requests that were refused.
    pub refused: Refusals,
}

/// A removed entry whose FLOW_REMOVED the tenant is waiting for.
pub(crate) struct Leaving {
    pub flow: Flow,
    pub rules: usize,
    pub since: Instant,
    /// How long it had stood when its hard timeout was over, if that is why it ends: seconds and nanoseconds.
    pub over: Option<(u32, u32)>,
}

impl Tenant {
    /// A tenant that is new on the switch.
    pub(crate) fn new(tenant: &policy::Tenant) -> Tenant {
        /// OFP_DEFAULT_MISS_SEND_LEN, in both versions.
        const DEFAULT_MISS_SEND_LEN: u16 = 128;
        let mut state = Tenant {
            id: tenant.id,
            name: Default::default(),
            present: true,
            limits: tenant.limits,
            queues: Vec::new(),
            experimenters: Vec::new(),
            statistics: tenant.statistics,
            labels: tenant.labels,
            port_labels: Default::default(),
            weight: tenant.weight,
            network: None,
            port_config: BTreeMap::new(),
            refused_ports: Default::default(),
            asking: Default::default(),
            elsewhere: BTreeMap::new(),
            controllers: Vec::new(),
            log: Default::default(),
            recovery: None,
            unanswered: 0,
            ahead: 0,
            held: Default::default(),
            account: Default::default(),
            rests: None,
            paused: false,
            is_decided: false,
            flows: Default::default(),
            leaving: Default::default(),
            idle: Default::default(),
            changes: 0,
            buffers: Default::default(),
            has_loose_numbers: false,
            groups: Default::default(),
            meters: Default::default(),
            miss_send_len: DEFAULT_MISS_SEND_LEN,
            generation: None,
            packet_ins: Default::default(),
            packet_in_share: None,
            lookups: Default::default(),
            counters: Default::default(),
            refused: Default::default(),
        };
        state.configure(tenant);
        state
    }

    /// What the policy says of it now.
    pub(crate) fn configure(&mut self, tenant: &policy::Tenant) {
        self.present = true;
        self.name.clone_from(&tenant.name);
        self.limits = tenant.limits;
        self.queues.clone_from(&tenant.queues);
        self.experimenters.clone_from(&tenant.experimenters);
        self.statistics = tenant.statistics;
        self.labels = tenant.labels;
        self.weight = tenant.weight;
    }

    /// Whether the tenant may be given one more PACKET_IN now.
    pub(crate) fn admit_packet_in(&mut self, now: Instant) -> bool {
        let pace = self.limits.packet_in.map(Pace::from).or(self.packet_in_share);
        self.packet_ins.take(pace, now).is_ok()
    }
}
