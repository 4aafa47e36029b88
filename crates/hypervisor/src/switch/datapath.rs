//! The reports of the switch: its identity, its capabilities, its ports, and, until the reconciliation is done, its
//! rules.
//!
//! The number of ports and the bytes of the reports are bounded. If a switch reports more, Weir closes its session with
//! a reason.

use super::asynchronous::asked::Asked;
use super::reconcile::state::Reconciliation;
use super::settings::StartError;
use super::traffic::port_traffic::Traffic;
use crate::cookie::Installation;
use crate::messages;
use crate::pool::Taken;
use crate::sheet::Described;
use crate::south::features::{Connected, Features};
use crate::store::Kind;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::{PhysicalPort, Target, Wire};

/// The most ports of one switch.
const PORTS: usize = 4096;
/// The most bytes of the switch's reports of entries, groups and meters when it connects: some 200,000 entries.
const LEARNED: usize = 32 << 20;
/// Bytes of memory for a rule, group or meter, in addition to its bytes on the wire, while Weir compares the rules,
/// groups and meters on the switch with the desired ones.
const EACH: usize = 1 << 10;
/// Bytes for the id of a group or meter that is in use, which no tenant gets.
const NUMBER: usize = 64;
/// Bytes that a port takes, with its description.
const PORT: usize = 512;

/// One connected switch.
pub(crate) struct Datapath {
    id: u64,
    /// The datapath id that the tenant sees, if this is the front of a big switch: see [`crate::big_switch`].
    joins: Option<u64>,
    features: Features,
    ports: BTreeMap<u32, PhysicalPort>,
    phase: Phase,
    learned: Learned,
    /// Bytes of the reports that stay in use.
    kept: usize,
    /// The part of these bytes for the ids of groups and meters.
    numbers_kept: usize,
    /// The memory for the ports and reports, if other switches share it, and the bytes of the switch's own memory.
    taken: Taken,
    own: usize,
    /// The counters of the ports.
    traffic: Traffic,
    /// Which asynchronous messages the switch was asked to send.
    asked: Asked,
    /// The description of the switch, and its data sheet.
    described: Described,
}

/// How much Weir knows of the switch.
enum Phase {
    /// This many questions about the switch's state are open.
    Learning(u32),
    /// Weir compares the rules on the switch with the tables. `None` while Weir does a batch of the reconciliation.
    Reconciling(Option<Box<Reconciliation>>),
    /// Tenants are served.
    Ready,
    /// The driver has to close the session.
    Closed,
}

/// The switch's reports of its tables: entries on the wire, without those that Weir leaves alone.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// Rules with the mark of this installation, or of the installation that it takes over: those of each message. One
    /// vector for all messages would be copied with each doubling of its size: this takes tens of milliseconds for tens
    /// of megabytes, in which no other switch is served.
    pub flows: Vec<Vec<u8>>,
    pub groups: Vec<u8>,
    pub meters: Vec<u8>,
    /// The number of rules in `flows`.
    pub rules: usize,
    /// The number of groups and meters.
    numbers: usize,
    /// The bytes of `flows`, `groups` and `meters`.
    bytes: usize,
    /// The number of rules without Weir's mark.
    pub foreign: usize,
    /// The numbers of rules of other installations.
    pub left: BTreeMap<Installation, usize>,
    /// The bytes of all reports.
    reported: usize,
}

impl Learned {
    /// Bytes of memory, until all reports are compared with the tables.
    fn size(&self) -> usize {
        self.bytes + (self.rules + self.numbers) * EACH
    }
}

impl Datapath {
    /// A switch that has connected; `reply` is the body of its FEATURES_REPLY.
    pub(super) fn new(wire: Wire, reply: &[u8]) -> Result<Datapath, StartError> {
        let Connected { datapath_id: id, features, ports } =
            messages::connected(wire, reply).map_err(StartError::Features)?;
        let is_joined = crate::policy::big_switches::is_key(id);
        let target = Target { wire, tables: features.n_tables, is_joined };
        if target.tables <= target.first_table() && !is_joined {
            return Err(StartError::TooFewTables);
        }
        Ok(Datapath {
            id,
            joins: is_joined.then_some(id),
            features,
            ports,
            phase: Phase::Learning(0),
            learned: Learned::default(),
            kept: 0,
            numbers_kept: 0,
            taken: Taken::default(),
            own: 0,
            traffic: Traffic::default(),
            asked: Asked::default(),
            described: Described::default(),
        })
    }

    /// The switch's datapath id.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether this is the front of a big switch.
    #[inline]
    pub(crate) fn is_joined(&self) -> bool {
        self.joins.is_some()
    }

    /// The datapath id that the tenant of a big switch sees.
    pub(crate) fn joined(&self) -> Option<u64> {
        self.joins
    }

    /// The tenant of the big switch sees this datapath id.
    pub(super) fn set_joined(&mut self, id: u64) {
        self.joins = Some(id);
    }

    /// The datapath id for people.
    pub(crate) fn known_as(&self) -> u64 {
        self.joins.unwrap_or(self.id)
    }

    /// What the switch can do.
    #[inline]
    pub(crate) fn features(&self) -> &Features {
        &self.features
    }

    // ---- Ports

    /// All ports, by their numbers.
    #[inline]
    pub(crate) fn ports(&self) -> &BTreeMap<u32, PhysicalPort> {
        &self.ports
    }

    /// A port was added, changed or removed. Returns the port as it was before.
    pub(crate) fn set_port(
        &mut self,
        number: u32,
        port: Option<PhysicalPort>,
    ) -> Option<PhysicalPort> {
        match port {
            Some(port) => self.ports.insert(number, port),
            None => self.ports.remove(&number),
        }
    }

    /// The counters of the ports.
    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// See [`traffic`](Self::traffic).
    pub(super) fn traffic_mut(&mut self) -> &mut Traffic {
        &mut self.traffic
    }

    /// Which asynchronous messages the switch was asked to send.
    pub(super) fn asked(&mut self) -> &mut Asked {
        &mut self.asked
    }

    /// The description of the switch, and its data sheet.
    pub(super) fn described(&self) -> &Described {
        &self.described
    }

    /// See [`described`](Self::described).
    pub(super) fn described_mut(&mut self) -> &mut Described {
        &mut self.described
    }

    // ---- How much Weir knows of the switch

    /// Whether tenants are served.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Whether messages of the switch are ignored.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Weir has asked this many questions about the switch's state.
    pub(super) fn begin(&mut self, questions: u32) {
        self.phase = Phase::Learning(questions);
    }

    /// One of the questions is answered in full. Returns whether it was the last question.
    pub(super) fn question_answered(&mut self) -> bool {
        match self.phase {
            Phase::Learning(open) if open > 1 => {
                self.phase = Phase::Learning(open - 1);
                false
            }
            Phase::Learning(_) => {
                self.phase = Phase::Reconciling(None);
                true
            }
            Phase::Reconciling(_) | Phase::Ready | Phase::Closed => false,
        }
    }

    /// Whether Weir compares the rules on the switch with the tables.
    pub(super) fn is_reconciling(&self) -> bool {
        matches!(self.phase, Phase::Reconciling(_))
    }

    /// See [`is_reconciling`](Self::is_reconciling).
    pub(super) fn reconciling_mut(&mut self) -> Option<&mut Reconciliation> {
        match &mut self.phase {
            Phase::Reconciling(it) => it.as_deref_mut(),
            _ => None,
        }
    }

    /// Takes the reconciliation, to do a batch of it.
    pub(super) fn take_reconciling(&mut self) -> Option<Box<Reconciliation>> {
        match &mut self.phase {
            Phase::Reconciling(it) => it.take(),
            _ => None,
        }
    }

    /// Keeps a reconciliation that has further batches.
    pub(super) fn set_reconciling(&mut self, it: Box<Reconciliation>) {
        if let Phase::Reconciling(place) = &mut self.phase {
            *place = Some(it);
        }
    }

    /// Weir has compared all rules on the switch with the tables, and deletes `deleted` of the rules. The memory for
    /// deleted rules counts until the session ends: the switch may never confirm a deletion.
    pub(super) fn reconciled(&mut self, deleted: usize) {
        if self.is_reconciling() {
            self.phase = Phase::Ready;
        }
        self.kept = self.numbers_kept + deleted * EACH;
    }

    /// Counts bytes of an answer about the switch's entries, groups or meters.
    pub(crate) fn count_reported(&mut self, bytes: usize) {
        self.learned.reported += bytes;
    }

    /// The switch has reported these rules, by their cookies. Weir keeps rules whose cookies `is_kept` accepts, and
    /// counts the other rules.
    pub(super) fn learn_rules<'a>(
        &mut self,
        rules: impl Iterator<Item = (u64, &'a [u8])>,
        is_kept: impl Fn(Installation) -> bool,
    ) {
        let mut kept = Vec::new();
        for (cookie, rule) in rules {
            match Installation::of(cookie) {
                Some(it) if is_kept(it) => {
                    kept.extend_from_slice(rule);
                    self.learned.rules += 1;
                }
                Some(it) => *self.learned.left.entry(it).or_default() += 1,
                None => self.learned.foreign += 1,
            }
        }
        if !kept.is_empty() {
            kept.shrink_to_fit();
            self.learned.bytes += kept.len();
            self.learned.flows.push(kept);
        }
    }

    /// The switch has reported this many groups, or meters.
    pub(crate) fn learn_numbers(&mut self, kind: Kind, entries: &[u8], count: usize) {
        let Learned { groups, meters, numbers, bytes, .. } = &mut self.learned;
        let learned = if kind == Kind::Group { groups } else { meters };
        learned.extend_from_slice(entries);
        *numbers += count;
        *bytes += entries.len();
    }

    /// Reports of the switch take memory that other switches share, beyond `own` bytes.
    pub(super) fn share(&mut self, taken: Taken, own: usize) {
        (self.taken, self.own) = (taken, own);
    }

    /// Takes the entries, groups and meters that the switch has reported. Their memory counts until they are
    /// [reconciled](Self::reconciled).
    pub(super) fn take_learned(&mut self) -> Learned {
        self.kept = self.learned.size();
        self.numbers_kept = self.learned.numbers * NUMBER;
        core::mem::take(&mut self.learned)
    }

    /// Why the session has to be closed, if the switch has reported more than it may.
    pub(super) fn bound_exceeded(&mut self) -> Option<&'static str> {
        let memory = self.ports.len() * PORT + self.learned.size() + self.kept;
        if self.ports.len() > PORTS {
            Some("the switch has more than 4096 ports")
        } else if self.learned.reported > LEARNED {
            Some("the switch reports more than 32 MiB of its entries, groups and meters")
        } else if !self.taken.set(memory.saturating_sub(self.own)) {
            Some(
                "no memory is left for what unlisted switches report; list the switch in [[switches]]",
            )
        } else {
            None
        }
    }

    /// Forgets the reports of the switch. From now on its messages are ignored. Returns whether the session was open
    /// before.
    pub(super) fn close(&mut self) -> bool {
        let was_open = !self.is_closed();
        self.phase = Phase::Closed;
        self.learned = Learned::default();
        self.ports.clear();
        self.taken = Taken::default();
        was_open
    }
}
