//! Buffer ids, per tenant.
//!
//! A switch that keeps a packet announces it by a buffer id. The tenant is given a number of its own for it, which is
//! good for one use, by that tenant, while it is among the last [`CAPACITY`] given out and the switch has not announced
//! another packet by the same id. A stale or foreign number can therefore never release another tenant's packet.

use alloc::vec::Vec;
use flowspace::Key;

/// Numbers that stay valid at once, for one tenant on one switch.
pub const CAPACITY: usize = 256;

/// A packet that the switch keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// The switch's own number for it.
    pub physical: u32,
    /// The packet's headers and input port.
    pub key: Key,
    /// Its length as the tenant was told.
    pub length: u16,
}

/// The buffer ids that one tenant has been given.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Allocated when the first packet is announced: most switches today keep none.
    slots: Vec<Option<(u32, Buffered)>>,
    next: u32,
}

impl Buffers {
    /// Gives the tenant a number for a packet that the switch keeps. The oldest number is forgotten, with this packet.
    pub fn give(&mut self, buffered: Buffered) -> (u32, Option<Buffered>) {
        if self.slots.is_empty() {
            self.slots.resize(CAPACITY, None);
        }
        let id = self.next;
        // 0xffffffff is NO_BUFFER.
        self.next = if id >= u32::MAX - 1 { 0 } else { id + 1 };
        let slot = id as usize % CAPACITY;
        let forgotten = self.slots[slot].replace((id, buffered));
        (id, forgotten.map(|(_, buffered)| buffered))
    }

    /// Makes a buffer id valid again that was taken and not used. Returns false if a newer packet has the place of this id.
    pub fn give_back(&mut self, id: u32, buffered: Buffered) -> bool {
        let slot = self.slots.get_mut(id as usize % CAPACITY).filter(|slot| slot.is_none());
        slot.map(|slot| *slot = Some((id, buffered))).is_some()
    }

    /// Looks without using it up.
    pub fn peek(&self, id: u32) -> Option<&Buffered> {
        match self.slots.get(id as usize % CAPACITY) {
            Some(Some((given, buffered))) if *given == id => Some(buffered),
            _ => None,
        }
    }

    /// Uses a number up.
    pub fn take(&mut self, id: u32) -> Option<Buffered> {
        let found = *self.peek(id)?;
        self.slots[id as usize % CAPACITY] = None;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(physical: u32) -> Buffered {
        Buffered { physical, key: Key::extract(1, &[]), length: 0 }
    }

    #[test]
    fn a_number_is_good_for_one_use() {
        let mut buffers = Buffers::default();
        let (id, _) = buffers.give(packet(77));
        assert_eq!(buffers.take(id), Some(packet(77)));
        assert_eq!(buffers.take(id), None);
    }

    #[test]
    fn numbers_never_given_are_refused() {
        let mut buffers = Buffers::default();
        assert_eq!(buffers.take(0), None);
        buffers.give(packet(1));
        for id in [1, CAPACITY as u32, u32::MAX] {
            assert_eq!(buffers.take(id), None, "{id}");
        }
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut buffers = Buffers::default();
        let (first, _) = buffers.give(packet(0));
        for physical in 1..CAPACITY as u32 {
            assert_eq!(buffers.give(packet(physical)).1, None);
        }
        assert_eq!(buffers.give(packet(CAPACITY as u32)).1, Some(packet(0)));
        assert_eq!(buffers.take(first), None);
        assert_eq!(buffers.take(first + 1), Some(packet(1)));
    }

    #[test]
    fn no_buffer_is_never_given() {
        let mut buffers = Buffers { slots: Vec::new(), next: u32::MAX - 1 };
        assert_eq!(buffers.give(packet(1)).0, u32::MAX - 1);
        assert_eq!(buffers.give(packet(2)).0, 0);
    }
}
