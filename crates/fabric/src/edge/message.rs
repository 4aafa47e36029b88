//! The messages: the entries of a datagram.

use super::datagram::{LONGEST_DATAGRAM, OVERHEAD};
use crate::units::{Bandwidth, MacAddress};
use alloc::vec::Vec;

/// The bytes that one VNIC has sent to another, and the rate that it wishes to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The sending VNIC.
    pub from: MacAddress,
    /// The receiving one.
    pub to: MacAddress,
    /// Bytes since the shaper was created, with Ethernet headers. The counter never restarts, so a lost datagram loses
    /// no bytes.
    pub bytes: u64,
    /// The wished rate; [`Report::EVERYTHING`]: as much as possible.
    pub wish: Bandwidth,
}

impl Report {
    /// A rate above the capacity of every link.
    pub const EVERYTHING: Bandwidth = Bandwidth::from_bits_per_second(u64::MAX);
}

/// The rate that one VNIC may send to another for the next tenth of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The sending VNIC.
    pub from: MacAddress,
    /// The receiving one.
    pub to: MacAddress,
    /// The granted rate.
    pub rate: Bandwidth,
}

/// The measured rates of a VNIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The VNIC.
    pub vnic: MacAddress,
    /// The rate that the VNIC receives.
    pub received: Bandwidth,
    /// The rate that the VNIC sends to other VNICs.
    pub sent: Bandwidth,
}

/// The content of one datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The hello gives the peer the token for its datagrams; `life` is the life of the peer.
    Hello {
        /// The life of the peer that gets the hello.
        life: u64,
    },
    /// From senders to a receiver's agent.
    Reports(Vec<Report>),
    /// From a receiver to the senders' agent.
    Grants(Vec<Grant>),
    /// From an agent to the hypervisor.
    Rates(Vec<Rates>),
}

/// An entry of a datagram that can be written and read.
pub(super) trait Entry: Sized {
    const KIND: u8;
    const LEN: usize;
    fn write(&self, out: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Option<Self>;
}

impl Message {
    /// The number of reports that fit into a datagram.
    pub const MOST_REPORTS: usize = most::<Report>();
    /// The number of grants that fit into a datagram.
    pub const MOST_GRANTS: usize = most::<Grant>();
    /// The number of rates that fit into a datagram.
    pub const MOST_RATES: usize = most::<Rates>();

    pub(super) fn kind(&self) -> u8 {
        match self {
            Message::Hello { .. } => 0,
            Message::Reports(_) => Report::KIND,
            Message::Grants(_) => Grant::KIND,
            Message::Rates(_) => Rates::KIND,
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Message::Hello { .. } => 1,
            Message::Reports(entries) => entries.len(),
            Message::Grants(entries) => entries.len(),
            Message::Rates(entries) => entries.len(),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Message::Hello { life } => out.extend_from_slice(&life.to_be_bytes()),
            Message::Reports(entries) => entries.iter().for_each(|entry| entry.write(out)),
            Message::Grants(entries) => entries.iter().for_each(|entry| entry.write(out)),
            Message::Rates(entries) => entries.iter().for_each(|entry| entry.write(out)),
        }
    }

    /// Reads exactly `count` entries; further bytes are an error.
    pub(super) fn read(kind: u8, count: usize, bytes: &[u8]) -> Option<Message> {
        match kind {
            0 if count == 1 => {
                Some(Message::Hello { life: u64::from_be_bytes(bytes.try_into().ok()?) })
            }
            Report::KIND => read_all(count, bytes).map(Message::Reports),
            Grant::KIND => read_all(count, bytes).map(Message::Grants),
            Rates::KIND => read_all(count, bytes).map(Message::Rates),
            _ => None,
        }
    }
}

const fn most<T: Entry>() -> usize {
    (LONGEST_DATAGRAM - OVERHEAD) / T::LEN
}

fn read_all<T: Entry>(count: usize, bytes: &[u8]) -> Option<Vec<T>> {
    if count > most::<T>() || bytes.len() != count * T::LEN {
        return None;
    }
    bytes.chunks_exact(T::LEN).map(T::read).collect()
}

impl Entry for Report {
    const KIND: u8 = 1;
    const LEN: usize = 28;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.from.octets());
        out.extend_from_slice(&self.to.octets());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&self.wish.bits_per_second().to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Report> {
        Some(Report {
            from: mac(bytes, 0)?,
            to: mac(bytes, 6)?,
            bytes: number(bytes, 12)?,
            wish: bandwidth(bytes, 20)?,
        })
    }
}

impl Entry for Grant {
    const KIND: u8 = 2;
    const LEN: usize = 20;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.from.octets());
        out.extend_from_slice(&self.to.octets());
        out.extend_from_slice(&self.rate.bits_per_second().to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Grant> {
        Some(Grant { from: mac(bytes, 0)?, to: mac(bytes, 6)?, rate: bandwidth(bytes, 12)? })
    }
}

impl Entry for Rates {
    const KIND: u8 = 3;
    const LEN: usize = 22;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.vnic.octets());
        out.extend_from_slice(&self.received.bits_per_second().to_be_bytes());
        out.extend_from_slice(&self.sent.bits_per_second().to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Rates> {
        Some(Rates {
            vnic: mac(bytes, 0)?,
            received: bandwidth(bytes, 6)?,
            sent: bandwidth(bytes, 14)?,
        })
    }
}

fn mac(bytes: &[u8], at: usize) -> Option<MacAddress> {
    MacAddress::new(bytes.get(at..at + 6)?.try_into().ok()?).ok()
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn bandwidth(bytes: &[u8], at: usize) -> Option<Bandwidth> {
    number(bytes, at).map(Bandwidth::from_bits_per_second)
}
