//! The session with the switch in front: when that is started, and what it was shown.

use super::PATIENCE;
use crate::outbox::Outbox;
use crate::time::Instant;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// See the module.
#[derive(Default)]
pub(super) struct Front {
    out: Outbox,
    /// Whether the front is there.
    is_started: bool,
    /// Whether it ever was since members were there: from then on what it says is the truth, before that what they hold.
    is_settled: bool,
    /// When the first member connected.
    first_member: Option<Instant>,
    /// Ports as they were shown to the front.
    shown: BTreeMap<u32, Vec<u8>>,
    /// What a new member is told as well: the front's last SET_CONFIG and SET_ASYNC, by their types.
    configs: BTreeMap<u8, Vec<u8>>,
    /// Whether Weir has logged that a controller cannot get all ports (1.0).
    has_too_many: bool,
}

impl Front {
    /// Bytes for it.
    pub(super) fn outbox(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// How many bytes wait for it.
    pub(super) fn waiting(&self) -> usize {
        self.out.len()
    }

    /// Whole messages for it.
    pub(super) fn send(&mut self, messages: &[u8]) {
        self.out.end().extend_from_slice(messages);
    }

    /// A message for it, of which `change` changes a field.
    pub(super) fn send_changed(&mut self, message: &[u8], change: impl FnOnce(&mut [u8]) -> bool) {
        let start = self.out.len();
        self.out.end().extend_from_slice(message);
        change(self.out.tail(start));
    }

    // ---- When it is started

    /// Whether it is there.
    pub(super) fn is_started(&self) -> bool {
        self.is_started
    }

    /// See the field.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled
    }

    /// A member has connected.
    pub(super) fn member_connected(&mut self, now: Instant) {
        self.first_member.get_or_insert(now);
    }

    /// When members are not waited for any longer; nothing if it would still not start.
    pub(super) fn starts_at(&self) -> Option<Instant> {
        self.first_member.filter(|_| !self.has_too_many).map(|at| at + PATIENCE)
    }

    /// Whether members have been waited for.
    pub(super) fn has_waited(&self, now: Instant) -> bool {
        self.first_member.is_some_and(|since| now - since >= PATIENCE)
    }

    /// It is started, and shown these ports.
    pub(super) fn start(&mut self, ports: BTreeMap<u32, Vec<u8>>) {
        self.has_too_many = false;
        self.is_started = true;
        self.is_settled = true;
        self.shown = ports;
    }

    /// There are more ports than a controller can get. Says whether that is new.
    pub(super) fn note_too_many(&mut self) -> bool {
        !core::mem::replace(&mut self.has_too_many, true)
    }

    /// It has to stop. Says whether it was there.
    pub(super) fn stop(&mut self) -> bool {
        core::mem::take(&mut self.is_started)
    }

    /// Its connection is closed; `since` is from when on members are waited for.
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
        self.is_settled = false;
        self.first_member = None;
    }

    // ---- What it was shown, and says

    /// Ports as they were shown to it.
    pub(super) fn shown(&self) -> &BTreeMap<u32, Vec<u8>> {
        &self.shown
    }

    /// It is shown these. Gives those that were shown before.
    pub(super) fn show(&mut self, ports: BTreeMap<u32, Vec<u8>>) -> BTreeMap<u32, Vec<u8>> {
        core::mem::replace(&mut self.shown, ports)
    }

    /// It has sent a SET_CONFIG or SET_ASYNC.
    pub(super) fn set_config(&mut self, type_: u8, message: &[u8]) {
        self.configs.insert(type_, message.to_vec());
    }

    /// What it sent last of those.
    pub(super) fn configs(&self) -> Vec<Vec<u8>> {
        self.configs.values().cloned().collect()
    }
}
