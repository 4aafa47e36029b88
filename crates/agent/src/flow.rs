//! Finds the flow of a sampled header.

use std::fmt;
use std::net::IpAddr;

/// A flow: addresses, protocol, and ports if the protocol has ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// The address of the sender.
    pub source: IpAddr,
    /// The address of the receiver.
    pub destination: IpAddr,
    /// The protocol number of IP.
    pub protocol: u8,
    /// The source port; 0 for a packet without ports, such as a fragment that is not the first fragment.
    pub source_port: u16,
    /// The destination port; 0 for a packet without ports.
    pub destination_port: u16,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

impl FlowKey {
    /// Reads the first bytes of an Ethernet frame with at most two VLAN tags; `None` for a frame that is too short or
    /// not IP.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<FlowKey> {
        let mut at = 12;
        let mut kind = half(frame, at)?;
        for _ in 0..2 {
            if matches!(kind, 0x8100 | 0x88a8) {
                at += 4;
                kind = half(frame, at)?;
            }
        }
        let packet = frame.get(at + 2..)?;
        match kind {
            0x0800 => FlowKey::of_ipv4(packet),
            0x86dd => FlowKey::of_ipv6(packet),
            _ => None,
        }
    }

    /// Reads the first bytes of an IPv4 packet.
    #[must_use]
    pub fn of_ipv4(packet: &[u8]) -> Option<FlowKey> {
        let length = usize::from(packet.first()? & 0x0f) * 4;
        let protocol = *packet.get(9)?;
        let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
        let is_first = half(packet, 6)? & 0x1fff == 0;
        let (source, destination) = (address(12)?, address(16)?);
        let rest = packet.get(length..).filter(|_| is_first);
        Some(with_ports(source, destination, protocol, rest))
    }

    /// Reads the first bytes of an IPv6 packet.
    #[must_use]
    pub fn of_ipv6(packet: &[u8]) -> Option<FlowKey> {
        let address = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
        let (source, destination) = (address(8)?, address(24)?);
        // The number of the first extension header is enough as the protocol of the flow.
        Some(with_ports(source, destination, *packet.get(6)?, packet.get(40..)))
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.protocol {
            TCP => "tcp".to_owned(),
            UDP => "udp".to_owned(),
            SCTP => "sctp".to_owned(),
            other => format!("ip {other}"),
        };
        write!(f, "{name} {}", std::net::SocketAddr::new(self.source, self.source_port))?;
        write!(f, " > {}", std::net::SocketAddr::new(self.destination, self.destination_port))
    }
}

fn with_ports(source: IpAddr, destination: IpAddr, protocol: u8, rest: Option<&[u8]>) -> FlowKey {
    let rest = rest.filter(|_| matches!(protocol, TCP | UDP | SCTP));
    let port = |at: usize| rest.and_then(|rest| half(rest, at)).unwrap_or(0);
    FlowKey { source, destination, protocol, source_port: port(0), destination_port: port(2) }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ipv4(protocol: u8, fragment: u16) -> Vec<u8> {
        let mut packet =
            vec![0x45, 0, 0, 40, 0, 0, (fragment >> 8) as u8, fragment as u8, 64, protocol, 0, 0];
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0, 80]);
        packet
    }

    fn frame(tags: &[u8], kind: u16, packet: &[u8]) -> Vec<u8> {
        [&[2; 12], tags, &kind.to_be_bytes(), packet].concat()
    }

    #[test]
    fn flow_keys_are_read_from_ipv4_and_ipv6_frames_only() {
        let mut v6 = vec![0x60, 0, 0, 0, 0, 20, 17, 64];
        v6.extend([0; 15].iter().chain(&[1]).chain(&[0; 15]).chain(&[2]).chain(&[0, 53, 4, 0]));
        for (frame, expected) in [
            (frame(&[], 0x0800, &ipv4(6, 0)), Some("tcp 10.0.0.1:5000 > 10.0.0.2:80")),
            (
                frame(&[0x81, 0, 0, 5], 0x0800, &ipv4(17, 0)),
                Some("udp 10.0.0.1:5000 > 10.0.0.2:80"),
            ),
            (frame(&[], 0x0800, &ipv4(17, 3)), Some("udp 10.0.0.1:0 > 10.0.0.2:0")),
            (frame(&[], 0x0800, &ipv4(1, 0)), Some("ip 1 10.0.0.1:0 > 10.0.0.2:0")),
            (frame(&[], 0x86dd, &v6), Some("udp [::1]:53 > [::2]:1024")),
            (frame(&[], 0x0806, &[0; 28]), None),
            (vec![], None),
        ] {
            let text = FlowKey::of(&frame).map(|key| key.to_string());
            assert_eq!(text.as_deref(), expected, "{frame:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = FlowKey::of(&bytes);
            let _ = FlowKey::of(&frame(&[], 0x0800, &bytes));
            let _ = FlowKey::of(&frame(&[], 0x86dd, &bytes));
        }
    }
}
