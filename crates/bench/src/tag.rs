//! The unique tag of every probe: the run, stream and number of the message, and its intended send
//! time. The receiving side needs only the tag to compute the latency, so the two sides share no
//! memory and need no lock.

/// Eighteen bytes: the space after the UDP header of a 64-byte Ethernet frame with a VLAN tag.
pub(crate) const TAG_LEN: usize = 18;

const MAGIC: u16 = 0x5742; // "WB"

/// A probe's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    /// The run within the session, so that late messages of an earlier run are recognized.
    pub(crate) run: u16,
    /// The stream's place in the load.
    pub(crate) stream: u16,
    /// Counts a stream's messages from 0.
    pub(crate) sequence: u32,
    /// The intended send time in nanoseconds of the session's clock.
    pub(crate) intended: u64,
}

impl Tag {
    /// Writes the tag over the first [`TAG_LEN`] bytes of `at`. If `at` is shorter, writes nothing.
    #[inline]
    pub(crate) fn write(&self, at: &mut [u8]) {
        let Some(room) = at.first_chunk_mut::<TAG_LEN>() else { return };
        room[0..2].copy_from_slice(&MAGIC.to_be_bytes());
        room[2..4].copy_from_slice(&self.run.to_be_bytes());
        room[4..6].copy_from_slice(&self.stream.to_be_bytes());
        room[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        room[10..18].copy_from_slice(&self.intended.to_be_bytes());
    }

    /// Reads a tag from the last [`TAG_LEN`] bytes of a packet, because the end of a packet stays
    /// the same when a system under test adds or removes headers. `None` if there is no tag.
    #[inline]
    #[must_use]
    pub(crate) fn read_end(packet: &[u8]) -> Option<Self> {
        let bytes = packet.last_chunk::<TAG_LEN>()?;
        let [m0, m1, r0, r1, s0, s1, q0, q1, q2, q3, intended @ ..] = *bytes;
        (u16::from_be_bytes([m0, m1]) == MAGIC).then(|| Self {
            run: u16::from_be_bytes([r0, r1]),
            stream: u16::from_be_bytes([s0, s1]),
            sequence: u32::from_be_bytes([q0, q1, q2, q3]),
            intended: u64::from_be_bytes(intended),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_at_the_end_of_a_packet_is_written_and_read_back() {
        let tag = Tag { run: 3, stream: 2045, sequence: u32::MAX, intended: 1 << 50 };
        let mut packet = vec![0; 64];
        tag.write(&mut packet[64 - TAG_LEN..]);
        assert_eq!(Tag::read_end(&packet), Some(tag));
        assert_eq!(Tag::read_end(&packet[..63]), None);
        assert_eq!(Tag::read_end(&packet[50..]), None);
    }
}
