//! Groups and meters on the switch: confirmed by the switch, and expected from the messages in flight.

use crate::ids::TenantIndex;
use crate::store::Kind;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use hashbrown::HashMap;
use openflow::v13::MessageType;

/// A group or meter, by its id on the switch.
type Key = (Kind, u32);

/// The content of a group or meter: see [`content_of`]. `None` if the switch has no such group or meter.
type Content = Option<Arc<[u8]>>;

/// All groups and meters of tenants, by their ids on the switch.
#[derive(Debug, Default)]
pub(crate) struct InstalledIds {
    slots: BTreeMap<Key, Slot>,
    /// The group or meter of each message in flight.
    of_message: HashMap<u32, Key>,
}

#[derive(Debug)]
struct Slot {
    tenant: TenantIndex,
    confirmed: Content,
    /// The messages in flight, and the content after each message.
    pending: VecDeque<(u32, Content)>,
}

impl InstalledIds {
    /// A message about a group or meter is written.
    pub(super) fn write(&mut self, number: u32, tenant: TenantIndex, message: &[u8]) {
        let Some((key, content)) = change_of(message) else { return };
        let empty = || Slot { tenant, confirmed: None, pending: VecDeque::new() };
        let slot = self.slots.entry(key).or_insert_with(empty);
        slot.tenant = tenant;
        slot.pending.push_back((number, content));
        self.of_message.insert(number, key);
    }

    /// The switch has carried out a message.
    pub(super) fn confirm(&mut self, message: u32) {
        let Some(key) = self.of_message.remove(&message) else { return };
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let Some(last) = slot.pending.iter().position(|(at, _)| *at == message) else { return };
        for (at, content) in slot.pending.drain(..=last) {
            self.of_message.remove(&at);
            slot.confirmed = content;
        }
        self.collect(&key);
    }

    /// The switch has refused a message.
    pub(super) fn refuse(&mut self, message: u32) {
        let Some(key) = self.of_message.remove(&message) else { return };
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.pending.retain(|(at, _)| *at != message);
        }
        self.collect(&key);
    }

    /// The switch holds this group or meter, by its report at the beginning of the session.
    pub(crate) fn learn(&mut self, tenant: TenantIndex, kind: Kind, id: u32, content: Vec<u8>) {
        let slot = Slot { tenant, confirmed: Some(content.into()), pending: VecDeque::new() };
        self.slots.insert((kind, id), slot);
    }

    /// What the switch will hold when it has read all messages.
    pub(crate) fn projected(&self, kind: Kind, id: u32) -> Option<&[u8]> {
        let slot = self.slots.get(&(kind, id))?;
        match slot.pending.back() {
            Some((_, content)) => content.as_deref(),
            None => slot.confirmed.as_deref(),
        }
    }

    /// Whether the switch holds nothing under an id, and no message in flight is about the id.
    pub(crate) fn is_free(&self, kind: Kind, id: u32) -> bool {
        !self.slots.contains_key(&(kind, id))
    }

    fn collect(&mut self, key: &Key) {
        let is_empty = |slot: &Slot| slot.confirmed.is_none() && slot.pending.is_empty();
        if self.slots.get(key).is_some_and(is_empty) {
            self.slots.remove(key);
        }
    }
}

/// The content of a group or meter after a GROUP_MOD or METER_MOD: type and buckets, or flags and bands. `None` if the
/// message deletes the group or meter.
pub(crate) fn content_of(message: &[u8]) -> Option<Vec<u8>> {
    let (kind, bands) = (message.get(10..12)?, message.get(16..)?);
    Some([kind, bands].concat())
}

/// The group or meter of a GROUP_MOD or METER_MOD, and its content after the message.
pub(crate) fn change_of(message: &[u8]) -> Option<(Key, Content)> {
    /// OFPGC_DELETE and OFPMC_DELETE.
    const DELETE: [u8; 2] = [0, 2];
    let kind = match MessageType(*message.get(1)?) {
        MessageType::GROUP_MOD => Kind::Group,
        MessageType::METER_MOD => Kind::Meter,
        _ => return None,
    };
    let id = u32::from_be_bytes(*message.get(12..)?.first_chunk()?);
    let is_deleted = message.get(8..10)? == DELETE;
    let content = if is_deleted { None } else { content_of(message).map(Arc::from) };
    Some(((kind, id), content))
}
