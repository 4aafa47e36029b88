//! The session between the front of a big switch and the members: when Weir starts the front, and which ports the front
//! knows.

use crate::outbox::Outbox;
use crate::time::{Duration, Instant};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use openflow::v13::Port;

/// How long Weir waits for members that have not connected. After this time the front starts without them.
const PATIENCE: Duration = Duration::from_secs(3);

/// See the module.
#[derive(Default)]
pub(super) struct Front {
    out: Outbox,
    /// Whether the front is connected.
    is_started: bool,
    /// Whether the front has been connected since the first member came. From then on the front's tables decide what
    /// members hold; before, the tables that members report become those of the big switch.
    is_settled: bool,
    /// When the first member connected.
    first_member: Option<Instant>,
    /// The ports that the front knows.
    shown: BTreeMap<u32, Port>,
    /// The front's last SET_CONFIG and SET_ASYNC, by their types. A new member gets them.
    configs: BTreeMap<u8, Vec<u8>>,
    /// Messages of the front that wait while members settle, and how many bytes they are.
    held_back: VecDeque<Vec<u8>>,
    bytes_held_back: usize,
    /// Whether Weir has logged that a controller cannot get all ports (1.0).
    has_too_many: bool,
}

impl Front {
    /// Bytes for the front.
    pub(super) fn outbox(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// How many bytes wait for the front.
    pub(super) fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Sends whole messages to the front.
    pub(super) fn send(&mut self, messages: &[u8]) {
        self.out.end().extend_from_slice(messages);
    }

    /// Sends a message to the front; `change` changes a field of the message.
    pub(super) fn send_changed(&mut self, message: &[u8], change: impl FnOnce(&mut [u8]) -> bool) {
        let start = self.out.len();
        self.out.end().extend_from_slice(message);
        change(self.out.tail(start));
    }

    /// Keeps a message of the front until the members have settled.
    pub(super) fn hold_back(&mut self, message: &[u8]) {
        self.bytes_held_back += message.len();
        self.held_back.push_back(message.to_vec());
    }

    /// The first message that waits.
    pub(super) fn take_held_back(&mut self) -> Option<Vec<u8>> {
        let message = self.held_back.pop_front()?;
        self.bytes_held_back -= message.len();
        Some(message)
    }

    /// How many bytes wait until the members have settled.
    pub(super) fn bytes_held_back(&self) -> usize {
        self.bytes_held_back
    }

    /// Drops the messages that wait: nobody waits for their results any more.
    pub(super) fn forget_held_back(&mut self) {
        self.held_back.clear();
        self.bytes_held_back = 0;
    }

    // ---- When it is started

    /// Whether the front is connected.
    pub(super) fn is_started(&self) -> bool {
        self.is_started
    }

    /// Whether the front has been connected since the first member came.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A member has connected.
    pub(super) fn member_connected(&mut self, now: Instant) {
        self.first_member.get_or_insert(now);
    }

    /// When Weir waits for members no longer; nothing if the front would not start then.
    pub(super) fn starts_at(&self) -> Option<Instant> {
        self.first_member.filter(|_| !self.has_too_many).map(|at| at + PATIENCE)
    }

    /// Whether Weir has waited for members long enough.
    pub(super) fn has_waited(&self, now: Instant) -> bool {
        self.first_member.is_some_and(|since| now - since >= PATIENCE)
    }

    /// The front is connected, and shown these ports.
    pub(super) fn start(&mut self, ports: BTreeMap<u32, Port>) {
        self.has_too_many = false;
        self.is_started = true;
        self.is_settled = true;
        self.shown = ports;
    }

    /// The big switch has more ports than a controller can get. Says whether that is new.
    pub(super) fn note_too_many(&mut self) -> bool {
        !core::mem::replace(&mut self.has_too_many, true)
    }

    /// The front has to stop. Says whether it was connected.
    pub(super) fn stop(&mut self) -> bool {
        core::mem::take(&mut self.is_started)
    }

    /// The front's connection is closed. Weir waits for members from `since` on.
    pub(super) fn closed(&mut self, since: Option<Instant>) {
        self.is_started = false;
        self.out.clear();
        self.first_member = since;
        self.shown.clear();
    }

    /// No member is left.
    pub(super) fn forget(&mut self) {
        self.shown.clear();
        self.out.clear();
        self.forget_held_back();
        self.is_settled = false;
        self.first_member = None;
    }

    // ---- Ports that the front knows, and settings that the front has sent

    /// The ports that the front knows.
    pub(super) fn shown(&self) -> &BTreeMap<u32, Port> {
        &self.shown
    }

    /// The front gets these ports. Returns the ports that the front knew before.
    pub(super) fn show(&mut self, ports: BTreeMap<u32, Port>) -> BTreeMap<u32, Port> {
        core::mem::replace(&mut self.shown, ports)
    }

    /// The front has sent a SET_CONFIG or SET_ASYNC.
    pub(super) fn set_config(&mut self, type_: u8, message: &[u8]) {
        self.configs.insert(type_, message.to_vec());
    }

    /// The front's last SET_CONFIG and SET_ASYNC.
    pub(super) fn configs(&self) -> Vec<Vec<u8>> {
        self.configs.values().cloned().collect()
    }
}
