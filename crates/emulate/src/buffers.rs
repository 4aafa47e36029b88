//! The packet buffers of a switch. A packet waits until a PACKET_OUT or FLOW_MOD names its buffer.

/// A ring of packet buffers. A buffer id can be used once. A new packet replaces the oldest packet.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    slots: Vec<Slot>,
    next: usize,
}

#[derive(Debug, Default)]
struct Slot {
    /// Counts how often the slot was used. The count is in the upper bits of the id, so a stale id differs from a new
    /// id.
    generation: u32,
    packet: Option<(u32, Vec<u8>)>,
}

/// The reason why a buffer id cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BufferError {
    /// The switch never sent the id, or a newer packet is in the slot.
    Unknown,
    /// The packet was already taken out.
    Empty,
}

/// The number of lower bits of an id that hold the slot.
const SLOT_BITS: u32 = 16;

impl Buffers {
    /// Makes buffers for `capacity` packets, at most 65,535.
    pub(crate) fn new(capacity: u32) -> Buffers {
        let capacity = capacity.min((1 << SLOT_BITS) - 1);
        Buffers { slots: (0..capacity).map(|_| Slot::default()).collect(), next: 0 }
    }

    /// The number of packets that fit.
    pub(crate) fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Stores a packet and returns its buffer id; `None` if the switch has no buffers.
    pub(crate) fn store(&mut self, in_port: u32, frame: &[u8]) -> Option<u32> {
        let (index, count) = (self.next, self.slots.len());
        let slot = self.slots.get_mut(index)?;
        self.next = (index + 1) % count;
        // The generation has 15 bits, so no id is 0xffffffff (OFP_NO_BUFFER).
        slot.generation = slot.generation % 0x7fff + 1;
        let id = slot.generation << SLOT_BITS | index as u32;
        match &mut slot.packet {
            Some((port, kept)) => {
                *port = in_port;
                kept.clear();
                kept.extend_from_slice(frame);
            }
            None => slot.packet = Some((in_port, frame.to_vec())),
        }
        Some(id)
    }

    /// Takes the packet out. Returns the ingress port and the bytes of the packet.
    pub(crate) fn take(&mut self, id: u32) -> Result<(u32, Vec<u8>), BufferError> {
        let index = (id & ((1 << SLOT_BITS) - 1)) as usize;
        match self.slots.get_mut(index) {
            Some(slot) if slot.generation == id >> SLOT_BITS && slot.generation != 0 => {
                slot.packet.take().ok_or(BufferError::Empty)
            }
            _ => Err(BufferError::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_id_is_valid_once_and_old_buffers_are_overwritten() {
        let mut buffers = Buffers::new(2);
        let first = buffers.store(1, b"one").unwrap();
        let second = buffers.store(2, b"two").unwrap();
        assert_eq!(buffers.take(first), Ok((1, b"one".to_vec())));
        assert_eq!(buffers.take(first), Err(BufferError::Empty));
        let third = buffers.store(3, b"three").unwrap();
        let fourth = buffers.store(4, b"four").unwrap();
        assert_eq!(buffers.take(second), Err(BufferError::Unknown), "overwritten by the fourth");
        assert_eq!(buffers.take(third), Ok((3, b"three".to_vec())));
        assert_eq!(buffers.take(fourth), Ok((4, b"four".to_vec())));
        assert_eq!(buffers.take(u32::MAX), Err(BufferError::Unknown));
        assert_eq!(buffers.take(0), Err(BufferError::Unknown));
    }

    #[test]
    fn a_switch_without_buffers_stores_no_packet() {
        assert_eq!(Buffers::new(0).store(1, b"x"), None);
    }
}
