//! What the switch has said of itself: who it is, what it can do, its ports, and, until that is reconciled, what it holds.
//!
//! Beyond these bounds the session with the switch is closed with a reason.

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
use alloc::vec;
use alloc::vec::Vec;
use compile::{PhysicalPort, Target, Wire};
use openflow::Encode;

/// Ports of one switch.
const PORTS: usize = 4096;
/// Bytes that a switch may tell of its entries, groups and meters when it connects: some 200,000 entries.
const LEARNED: usize = 32 << 20;
/// Bytes that a rule, group or meter takes beside its bytes on the wire while Weir compares what the switch holds with what it
/// should hold.
const EACH: usize = 1 << 10;
/// Bytes for the number of a group or meter that is in use, which no tenant gets.
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
    /// Bytes that stay in use of what was learned.
    kept: usize,
    /// Of these, bytes for the numbers of groups and meters.
    numbers_kept: usize,
    /// The memory for the ports and for what is learned, if other switches share it, and the bytes of the switch's own.
    taken: Taken,
    own: usize,
    /// What the ports have counted.
    traffic: Traffic,
    /// Which asynchronous messages the switch was asked to send.
    asked: Asked,
    /// What kind of switch it is, and its data sheet.
    described: Described,
}

/// How far the switch is known.
enum Phase {
    /// This many questions about its state are open.
    Learning(u32),
    /// Weir compares the rules on the switch with the tables. `None` while Weir does a batch of the reconciliation.
    Reconciling(Option<Box<Reconciliation>>),
    /// Tenants are served.
    Ready,
    /// The driver was told to close the session.
    Closed,
}

/// What the switch said of its tables: entries as they came, but for those that Weir leaves alone.
#[derive(Debug, Default)]
pub(super) struct Learned {
    /// Rules with the mark of this installation, or of the one that it takes over from.
    pub flows: Parts,
    pub groups: Vec<u8>,
    pub meters: Vec<u8>,
    /// The number of rules without Weir's mark.
    pub foreign: usize,
    /// The numbers of rules of other installations.
    pub left: BTreeMap<Installation, usize>,
    /// Bytes of all that the switch said.
    told: usize,
    /// The number of groups and meters.
    numbers: usize,
}

/// Entries of a statistics reply in rules, each of whole entries. One rule for all would be copied with each doubling of its
/// room: tens of milliseconds for tens of megabytes, in which no other switch is served.
#[derive(Debug, Default)]
pub(super) struct Parts {
    rules: Vec<Vec<u8>>,
    bytes: usize,
    count: usize,
}

impl Parts {
    /// Room of one rule, if one message does not need more.
    const RULE: usize = 64 << 10;

    /// Appends these entries of one message.
    pub(super) fn push(&mut self, entries: &[u8], count: usize) {
        self.count += count;
        match self.rules.last_mut() {
            Some(last) if last.capacity() - last.len() >= entries.len() => {
                last.extend_from_slice(entries);
            }
            _ => {
                // Most switches have few entries.
                let room = entries.len().max(self.bytes.min(Self::RULE));
                let mut rule = Vec::with_capacity(room);
                rule.extend_from_slice(entries);
                self.rules.push(rule);
            }
        }
        self.bytes += entries.len();
    }

    /// The entries, in the order in which the switch reported them.
    pub(super) fn into_parts(self) -> vec::IntoIter<Vec<u8>> {
        self.rules.into_iter()
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.count
    }
}

impl Learned {
    /// Bytes of memory, until all of it is compared with what the switch should hold.
    fn size(&self) -> usize {
        let bytes = self.flows.bytes + self.groups.len() + self.meters.len();
        bytes + (self.flows.count + self.numbers) * EACH
    }
}

impl Datapath {
    /// A switch that has connected; `reply` is the body of its FEATURES_REPLY.
    pub(super) fn new(wire: Wire, reply: &[u8]) -> Result<Datapath, StartError> {
        let Connected { datapath_id: id, features, ports } =
            messages::connected(wire, reply).map_err(StartError::Features)?;
        let is_joined = crate::big_switch::is_key(id);
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

    /// The datapath id by which people know it.
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

    /// A port has come, changed or gone. Gives the port as it was before.
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

    /// What the ports have counted.
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

    /// What kind of switch it is, and its data sheet.
    pub(super) fn described(&self) -> &Described {
        &self.described
    }

    /// See [`described`](Self::described).
    pub(super) fn described_mut(&mut self) -> &mut Described {
        &mut self.described
    }

    // ---- How far it is known

    /// Whether tenants are served.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Whether nothing of the switch is listened to any more.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// So many questions about the switch's state are asked.
    pub(super) fn begin(&mut self, questions: u32) {
        self.phase = Phase::Learning(questions);
    }

    /// One of the questions is answered in full. Says whether it was the last.
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

    /// Weir has compared all rules on the switch with the tables, and deletes `deleted` of the rules. The memory for deleted rules counts
    /// as long as the session lasts: the switch may never confirm a deletion.
    pub(super) fn reconciled(&mut self, deleted: usize) {
        if self.is_reconciling() {
            self.phase = Phase::Ready;
        }
        self.kept = self.numbers_kept + deleted * EACH;
    }

    /// The switch has sent so many bytes of an answer about its entries, groups or meters.
    pub(crate) fn count_told(&mut self, bytes: usize) {
        self.learned.told += bytes;
    }

    /// The switch has reported these rules, by their cookies. Those whose cookie `is_kept` accepts are kept, the others are
    /// counted: nothing is done about them.
    pub(crate) fn learn_rules<T: Encode>(
        &mut self,
        rules: impl Iterator<Item = (u64, T)>,
        is_kept: impl Fn(Installation) -> bool,
    ) {
        let (mut kept, mut count) = (Vec::new(), 0);
        for (cookie, rule) in rules {
            match Installation::of(cookie) {
                Some(it) if is_kept(it) => {
                    rule.write(&mut kept);
                    count += 1;
                }
                Some(it) => *self.learned.left.entry(it).or_default() += 1,
                None => self.learned.foreign += 1,
            }
        }
        if count > 0 {
            self.learned.flows.push(&kept, count);
        }
    }

    /// The switch has reported this many groups, or meters.
    pub(crate) fn learn_numbers(&mut self, kind: Kind, entries: &[u8], count: usize) {
        let Learned { groups, meters, numbers, .. } = &mut self.learned;
        let learned = if kind == Kind::Group { groups } else { meters };
        learned.extend_from_slice(entries);
        *numbers += count;
    }

    /// What the switch reports takes memory that other switches share, beyond so many bytes of its own.
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

    /// Why the session is to be closed if the switch has told more of itself than it may.
    pub(super) fn told_too_much(&mut self) -> Option<&'static str> {
        let memory = self.ports.len() * PORT + self.learned.size() + self.kept;
        if self.ports.len() > PORTS {
            Some("the switch has more than 4096 ports")
        } else if self.learned.told > LEARNED {
            Some("the switch tells more than 32 MiB of its entries, groups and meters")
        } else if !self.taken.set(memory.saturating_sub(self.own)) {
            Some(
                "no memory is left for what unlisted switches tell; list the switch in [[switches]]",
            )
        } else {
            None
        }
    }

    /// Forgets what the switch has told. Weir listens to it no longer. Says whether Weir did before.
    pub(super) fn close(&mut self) -> bool {
        let was_open = !self.is_closed();
        self.phase = Phase::Closed;
        self.learned = Learned::default();
        self.ports.clear();
        self.taken = Taken::default();
        was_open
    }
}
