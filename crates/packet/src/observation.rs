//! Reads a probe back, with whatever happened to its headers on the way.

use std::net::Ipv4Addr;

use crate::checksum::{fold, sum};
use crate::probe::{
    ETHERNET, ETHERTYPE_IPV4, ETHERTYPE_SERVICE_VLAN, ETHERTYPE_VLAN, Headers, IPV4, PAYLOAD,
    PROTOCOL_UDP, TIME_BITS, UDP, VLAN, VlanTag, pseudo_header,
};
use crate::receive::Frame;
use crate::timestamp::Timestamp;

/// A probe as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Its headers now; the outermost VLAN tag.
    pub headers: Headers,
    /// Its sequence number.
    pub sequence: u32,
    /// The time that it was stamped with, as completed from `arrived`.
    pub sent: Timestamp,
    /// When it arrived.
    pub arrived: Timestamp,
    /// Whether the IPv4 header checksum is right.
    pub ip_checksum_is_right: bool,
    /// Whether the UDP checksum is right, or absent, which UDP allows.
    pub udp_checksum_is_right: bool,
}

impl Observation {
    /// The probe in a captured frame; `None` for anything that is not a whole probe with that tag.
    pub fn of(frame: &Frame<'_>, tag: u64) -> Option<Observation> {
        Observation::parse(frame.data, tag, frame.timestamp)
    }

    /// The probe in the bytes of a frame that arrived at that time.
    pub fn parse(frame: &[u8], tag: u64, arrived: Timestamp) -> Option<Observation> {
        let mut vlan = None;
        let mut at = ETHERNET - 2;
        while matches!(word(frame, at)?, ETHERTYPE_VLAN | ETHERTYPE_SERVICE_VLAN) {
            vlan = vlan.or(Some(VlanTag::from_control(word(frame, at + 2)?)));
            at += VLAN;
        }
        if word(frame, at)? != ETHERTYPE_IPV4 {
            return None;
        }
        let packet = frame.get(at + 2..)?;
        let first = *packet.first()?;
        let header_length = usize::from(first & 0x0f) * 4;
        let (header, datagram) = packet.split_at_checked(header_length)?;
        let is_udp = first >> 4 == 4 && header_length >= IPV4 && *header.get(9)? == PROTOCOL_UDP;
        let udp_length = word(datagram, 4)?;
        // What follows the datagram is padding.
        let datagram = datagram.get(..usize::from(udp_length))?;
        let payload: &[u8; PAYLOAD] = datagram.get(UDP..)?.first_chunk()?;
        let (carried, rest) = payload.split_first_chunk::<8>()?;
        let (sequence, time) = rest.split_first_chunk::<4>()?;
        if !is_udp || u64::from_be_bytes(*carried) != tag {
            return None;
        }
        let (source, destination) = (address(header, 12)?, address(header, 16)?);
        let covered = pseudo_header(source, destination, udp_length) + sum(datagram);
        Some(Observation {
            headers: Headers {
                destination_mac: *frame.first_chunk()?,
                source_mac: *frame.get(6..)?.first_chunk()?,
                vlan,
                source,
                destination,
                tos: *header.get(1)?,
                ttl: *header.get(8)?,
                source_port: word(datagram, 0)?,
                destination_port: word(datagram, 2)?,
            },
            sequence: u32::from_be_bytes(*sequence),
            sent: complete(time, arrived),
            arrived,
            ip_checksum_is_right: fold(sum(header)) == 0,
            udp_checksum_is_right: word(datagram, 6)? == 0 || fold(covered) == 0,
        })
    }

    /// Nanoseconds from the stamp to the arrival.
    pub fn latency(&self) -> i64 {
        self.arrived.nanoseconds_since(self.sent)
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = *bytes.get(at..)?.first_chunk()?;
    Some(octets.into())
}

/// The point in time nearest to `near` that has these low 48 bits.
fn complete(low: &[u8], near: Timestamp) -> Timestamp {
    let low = low.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let range = 1 << TIME_BITS;
    // The difference modulo 2^48, taken as a signed number: half the range (39 hours) either way.
    let ahead = low.wrapping_sub(near.0) & (range - 1);
    let time = near.0.wrapping_add(ahead);
    Timestamp(if ahead < range / 2 { time } else { time.wrapping_sub(range) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeTemplate;
    use proptest::prelude::*;

    const TAG: u64 = 0x0123_4567_89ab_cdef;

    fn headers() -> Headers {
        Headers {
            source_mac: [0, 0, 0, 0, 0, 1],
            destination_mac: [0, 0, 0, 0, 0, 2],
            vlan: None,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            tos: 0,
            ttl: 64,
            source_port: 5000,
            destination_port: 5001,
        }
    }

    #[test]
    fn the_shortest_probe_has_the_expected_bytes() {
        let mut template = ProbeTemplate::new(&headers(), TAG, 60).unwrap();
        let frame = template.stamp(0x0a0b_0c0d, Timestamp(0x1111_2222_3333_4444));
        // Checksums computed apart from this crate, by a few lines of Python.
        let expected = "000000000002 000000000001 0800 \
            4500002e 00004000 401126bd 0a000001 0a000002 \
            1388 1389 001a 76cf 0123456789abcdef 0a0b0c0d 222233334444";
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.replace(char::is_whitespace, ""));
    }

    #[test]
    fn probes_with_invalid_length_or_vlan_are_refused() {
        let vlan = |id, priority| Headers { vlan: Some(VlanTag { id, priority }), ..headers() };
        let cases = [
            (headers(), 59, false),
            (headers(), 60, true),
            (vlan(1, 0), 63, false),
            (vlan(4095, 7), 64, true),
            (vlan(4096, 0), 64, false),
            (vlan(1, 8), 64, false),
            (headers(), 14 + 65_535, true),
            (headers(), 14 + 65_536, false),
            (headers(), usize::MAX, false),
            (headers(), 0, false),
        ];
        for (headers, length, expected) in cases {
            let template = ProbeTemplate::new(&headers, TAG, length);
            assert_eq!(template.is_ok(), expected, "{headers:?} {length}");
        }
    }

    #[test]
    fn the_send_time_is_completed_from_the_arrival_time() {
        let range = 1_u64 << TIME_BITS;
        for (sent, arrived) in [
            (range * 6000 + 5, range * 6000 + 90),
            (range * 6000 - 5, range * 6000 + 90),
            (range * 6000 + 5, range * 6000 - 90),
            (1, 1),
        ] {
            let low = &sent.to_be_bytes()[2..];
            assert_eq!(complete(low, Timestamp(arrived)), Timestamp(sent));
        }
    }

    #[test]
    fn a_probe_with_padding_or_two_vlan_tags_is_recognized() {
        let tagged = Headers { vlan: Some(VlanTag { id: 7, priority: 5 }), ..headers() };
        let mut template = ProbeTemplate::new(&tagged, TAG, 64).unwrap();
        let mut frame = template.stamp(9, Timestamp(1)).to_vec();
        frame.extend([0xff; 4]); // such as a frame check sequence
        assert_eq!(Observation::parse(&frame, TAG, Timestamp(2)).unwrap().headers, tagged);
        frame.splice(12..12, [0x81, 0x00, 0x60, 0x09]); // an outer tag
        let outer = Observation::parse(&frame, TAG, Timestamp(2)).unwrap();
        assert_eq!(outer.headers.vlan, Some(VlanTag { id: 9, priority: 3 }));
        frame[12..14].copy_from_slice(&[0x88, 0xa8]); // the same, as a service tag
        assert_eq!(Observation::parse(&frame, TAG, Timestamp(2)), Some(outer));
        assert_eq!(Observation::parse(&frame, TAG + 1, Timestamp(2)), None);
    }

    proptest! {
        #[test]
        fn a_stamped_probe_is_observed_with_all_values(
            macs in any::<[[u8; 6]; 2]>(), vlan in proptest::option::of((0..4096_u16, 0..8_u8)),
            ips in any::<[u32; 2]>(), tos: u8, ttl: u8, ports in any::<[u16; 2]>(),
            tag: u64, sequence: u32, time in 0..u64::MAX / 2, extra in 0..1500_usize,
        ) {
            let headers = Headers {
                source_mac: macs[0], destination_mac: macs[1],
                vlan: vlan.map(|(id, priority)| VlanTag { id, priority }),
                source: ips[0].into(), destination: ips[1].into(), tos, ttl,
                source_port: ports[0], destination_port: ports[1],
            };
            let mut template = ProbeTemplate::new(&headers, tag, ProbeTemplate::shortest(&headers) + extra).unwrap();
            template.stamp(!sequence, Timestamp(!time)); // earlier stamps leave no trace
            let arrived = Timestamp(time + 1_000_000_000);
            let observed = Observation::parse(template.stamp(sequence, Timestamp(time)), tag, arrived);
            prop_assert_eq!(observed, Some(Observation {
                headers, sequence, sent: Timestamp(time), arrived,
                ip_checksum_is_right: true, udp_checksum_is_right: true,
            }));
        }

        #[test]
        fn arbitrary_and_damaged_frames_never_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..100), cut in 0..68_usize, at in 0..68_usize, value: u8,
        ) {
            let _ = Observation::parse(&bytes, TAG, Timestamp(0));
            let tagged = Headers { vlan: Some(VlanTag { id: 7, priority: 5 }), ..headers() };
            let mut frame = ProbeTemplate::new(&tagged, TAG, 68).unwrap().stamp(1, Timestamp(1)).to_vec();
            let original = frame[at];
            frame[at] = value;
            let whole = Observation::parse(&frame, TAG, Timestamp(1));
            // Damage to what the checksums cover shows in them, unless it hides the probe.
            if let Some(seen) = whole.filter(|_| at >= 18 && value != original) {
                prop_assert!(!seen.ip_checksum_is_right || !seen.udp_checksum_is_right || (at == 44 || at == 45), "{}", at);
            }
            prop_assert!(Observation::parse(&frame[..cut.min(63)], TAG, Timestamp(1)).is_none());
        }
    }
}
