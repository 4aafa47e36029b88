//! Messages that Weir has sent to the switch, by xid.
//!
//! On the switch's connection Weir chooses the xids: consecutive numbers, each for a slot of a ring. The slot has the
//! tenant, the xid and the first bytes of the tenant's message, so a reply or an error goes to the right controller.
//! Tenants may use the same xid.

use super::installed::Written;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::south::window::Sent;
use crate::time::Instant;
use alloc::vec::Vec;

/// Slots in the ring. The ring bounds the messages without a known outcome; the window stays far below this bound.
pub(crate) const CAPACITY: usize = 4096;

/// The bytes of a message that an error must carry (OpenFlow 1.0 section 5.4.4, 1.3 section 7.4.4: at least 64).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excerpt {
    len: u8,
    bytes: [u8; 64],
}

impl Excerpt {
    /// The first 64 bytes of a message, or all of a shorter one.
    pub(crate) fn of(message: &[u8]) -> Self {
        let len = message.len().min(64);
        let mut bytes = [0; 64];
        bytes[..len].copy_from_slice(&message[..len]);
        Excerpt { len: len as u8, bytes }
    }

    /// The bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The sender of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The tenant.
    pub tenant: TenantIndex,
    /// The controller of that tenant.
    pub controller: ControllerIndex,
    /// The xid that the controller chose.
    pub xid: u32,
    /// The message as the controller sent it.
    pub excerpt: Excerpt,
}

/// The expected answer of the switch, and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaits {
    /// No answer, except an ERROR.
    Nothing,
    /// One reply. The controller gets the reply with the controller's xid, without parts that are not the tenant's.
    Reply,
    /// The reply to a barrier, of a controller or on behalf of a tenant.
    Barrier(TenantIndex),
    /// The parts of a statistics reply, collected under this number.
    Collection(u32),
    /// The reply to a barrier of Weir's own.
    OwnBarrier,
    /// An answer to Weir's own question for this purpose.
    Own(Purpose),
    /// The counters of rules of table 0 for a tenant's ports (1.3).
    Counts(TenantIndex),
    /// Whether rules of a tenant's entry have counted packets since they were idle, and when the round of questions
    /// began.
    Idle(TenantIndex, u32, Instant),
}

/// Why Weir has asked the switch a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Learn the ports (1.3).
    Ports,
    /// Learn the rules, to reconcile the tables.
    Flows,
    /// Learn the groups (1.3).
    Groups,
    /// Learn the meters (1.3).
    Meters,
    /// Learn how much the switch's tables hold.
    Space,
    /// Learn how many rules this full table has.
    Full(u8),
    /// Learn the switch's description.
    Description,
    /// Learn the counters of the ports, for observers.
    PortCounters,
}

/// One message without a known outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The sender; `None` for Weir's own messages.
    pub origin: Option<Origin>,
    /// The expected answer.
    pub awaits: Awaits,
    /// The table operation of the message, if any (see [`crate::flows`]).
    pub operation: Option<u32>,
    /// The effects of the message on rules, if any.
    pub written: Option<Written>,
    /// The state of the window when the message was sent.
    pub sent: Sent,
    /// Whether the window has got the message's cost back.
    pub released: bool,
    /// Whether the switch has answered the message, at least in part.
    pub answered: bool,
}

/// The ring.
#[derive(Debug)]
pub(crate) struct Pending {
    slots: Vec<Option<(u32, Entry)>>,
    next: u32,
    /// All messages before this xid are released to the window.
    released: u32,
    /// The number of messages that wait for an answer.
    awaited: usize,
}

impl Default for Pending {
    /// An empty ring.
    fn default() -> Self {
        Pending { slots: Vec::new(), next: 1, released: 1, awaited: 0 }
    }
}

impl Pending {
    /// Takes the next xid for a message. `None` when all slots wait for replies.
    #[inline]
    pub(crate) fn add(&mut self, entry: Entry) -> Option<u32> {
        if self.slots.is_empty() {
            self.slots.resize_with(CAPACITY, || None);
        }
        // A slot that waits for a reply is not used again: some replies take long.
        for _ in 0..CAPACITY {
            let xid = self.next;
            self.next = self.next.wrapping_add(1);
            let slot = &mut self.slots[xid as usize % CAPACITY];
            let free = match slot {
                None => true,
                Some((_, old)) => old.awaits == Awaits::Nothing,
            };
            if free && xid != 0 {
                *slot = Some((xid, entry));
                self.awaited += usize::from(entry.awaits != Awaits::Nothing);
                return Some(xid);
            }
        }
        None
    }

    /// The entry of an xid.
    pub(crate) fn get(&self, xid: u32) -> Option<&Entry> {
        match self.slots.get(xid as usize % CAPACITY) {
            Some(Some((at, entry))) if *at == xid => Some(entry),
            _ => None,
        }
    }

    /// Removes and returns the entry of an xid.
    pub(crate) fn take(&mut self, xid: u32) -> Option<Entry> {
        let found = *self.get(xid)?;
        self.slots[xid as usize % CAPACITY] = None;
        self.awaited -= usize::from(found.awaits != Awaits::Nothing);
        Some(found)
    }

    /// Whether any message waits for an answer, or for the rest of an answer.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited > 0
    }

    /// Releases the work of all messages up to and including `xid`: the switch has read them. Returns the released
    /// cost.
    pub(crate) fn release_up_to(&mut self, xid: u32) -> u32 {
        let mut cost = 0;
        // At most as many slots as the ring has, however far apart the xids are.
        if xid.wrapping_sub(self.released) as usize >= CAPACITY {
            if xid.wrapping_sub(self.released) > u32::MAX / 2 {
                return 0;
            }
            self.released = xid.wrapping_sub(CAPACITY as u32 - 1);
        }
        while self.released != xid.wrapping_add(1) {
            let at = self.released;
            self.released = at.wrapping_add(1);
            if let Some(Some((number, entry))) = self.slots.get_mut(at as usize % CAPACITY)
                && *number == at
                && !entry.released
            {
                entry.released = true;
                cost += entry.sent.cost();
            }
        }
        cost
    }

    /// Notes that a message has been answered; returns whether that is new.
    pub(crate) fn note_answered(&mut self, xid: u32) -> bool {
        match self.slots.get_mut(xid as usize % CAPACITY) {
            Some(Some((number, entry))) if *number == xid => {
                !core::mem::replace(&mut entry.answered, true)
            }
            _ => false,
        }
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        self.slots.iter().flatten().map(|(xid, entry)| (*xid, entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::south::window::Window;

    fn entry(awaits: Awaits) -> Entry {
        let sent = Window::new(Instant(0)).on_send(1, Instant(0));
        Entry {
            origin: None,
            awaits,
            operation: None,
            written: None,
            sent,
            released: false,
            answered: false,
        }
    }

    #[test]
    fn an_xid_finds_its_pending_message_once() {
        let mut pending = Pending::default();
        let xid = pending.add(entry(Awaits::Reply)).unwrap();
        assert!(pending.take(xid).is_some());
        assert!(pending.take(xid).is_none());
        assert!(pending.get(xid.wrapping_add(CAPACITY as u32)).is_none());
    }

    #[test]
    fn slots_that_await_a_reply_are_not_reused() {
        let mut pending = Pending::default();
        let slow = pending.add(entry(Awaits::Reply)).unwrap();
        for _ in 0..3 * CAPACITY {
            pending.add(entry(Awaits::Nothing)).unwrap();
        }
        assert!(pending.get(slow).is_some());
    }

    #[test]
    fn a_ring_full_of_open_requests_refuses_another_request() {
        let mut pending = Pending::default();
        for _ in 0..CAPACITY {
            pending.add(entry(Awaits::Reply)).unwrap();
        }
        assert_eq!(pending.add(entry(Awaits::Reply)), None);
    }

    #[test]
    fn work_is_released_once_and_in_order() {
        let mut pending = Pending::default();
        let xids: Vec<u32> =
            (0..10).map(|_| pending.add(entry(Awaits::Nothing)).unwrap()).collect();
        assert_eq!(pending.release_up_to(xids[3]), 4);
        assert_eq!(pending.release_up_to(xids[1]), 0);
        assert_eq!(pending.release_up_to(xids[9]), 6);
    }
}
