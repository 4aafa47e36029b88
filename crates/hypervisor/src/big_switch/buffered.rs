//! Packets that members buffer. The front knows these packets by other buffer ids.

use alloc::collections::VecDeque;
use openflow::NO_BUFFER;

/// How many packets are remembered.
const CAPACITY: usize = 1024;

/// See the module.
#[derive(Default)]
pub(super) struct Buffered {
    packets: VecDeque<Packet>,
    next: u32,
}

/// A packet that a member buffers.
#[derive(Clone, Copy)]
pub(super) struct Packet {
    /// The buffer id that the front knows.
    pub(super) number: u32,
    pub(super) member: u64,
    /// The member's buffer id.
    pub(super) at_member: u32,
}

impl Buffered {
    /// Gives a buffer id for a packet that a member buffers. The oldest packet is forgotten if there are too many.
    pub(super) fn give(&mut self, member: u64, at_member: u32) -> u32 {
        self.next = match self.next.wrapping_add(1) {
            NO_BUFFER => 0,
            next => next,
        };
        self.packets.push_back(Packet { number: self.next, member, at_member });
        if self.packets.len() > CAPACITY {
            self.packets.pop_front();
        }
        self.next
    }

    /// Uses a buffer id up.
    pub(super) fn take(&mut self, number: u32) -> Option<Packet> {
        let at = self.packets.iter().position(|it| it.number == number)?;
        self.packets.remove(at)
    }

    /// A member is gone.
    pub(super) fn forget_member(&mut self, member: u64) {
        self.packets.retain(|it| it.member != member);
    }

    /// All members are gone.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
    }
}
