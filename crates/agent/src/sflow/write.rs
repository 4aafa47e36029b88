//! Writes sampled headers into datagrams.

use super::numbers::{ETHERNET, FLOW, IPV4, IPV6, RAW_HEADER, VERSION};
use std::net::IpAddr;

/// The origin of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The address of the agent: the server that samples.
    pub agent: IpAddr,
    /// Distinguishes several origins of one agent. For mirrored samples, the sub-agent is the server that sent the
    /// traffic.
    pub sub_agent: u32,
    /// The index of the interface, 1 to 2²⁴ − 1.
    pub interface: u32,
}

/// The length of the frame check sequence. Captured frames lack the check sequence, and the lengths of sFlow include
/// the check sequence (section 5.3 of the specification).
const CHECK_SEQUENCE: u32 = 4;
/// The bytes of a datagram's header without the agent's address: version, address type, sub-agent, sequence, uptime,
/// number of samples.
const HEADER: usize = 24;
/// The bytes of a flow sample before the packet header: type and length, eight words, record type and length, four
/// words.
const SAMPLE: usize = 64;
/// The largest datagram: a frame of 1,500 bytes also has room for the IPv6 and UDP headers.
const LARGEST: usize = 1400;
/// The most bytes of a packet; no collector asks for more.
const LARGEST_HEADER: usize = 1024;

/// A datagram in construction.
///
/// The sum of the stated sampling rates is the true number of packets. Where 1/s is not a whole number, samples
/// alternate between the two nearest whole numbers, so a collector that multiplies gets the correct total.
#[derive(Clone, Debug)]
pub struct DatagramBuilder {
    origin: Origin,
    /// The inverse rate 1/s.
    one_in: f64,
    bytes: Vec<u8>,
    samples: u32,
    datagrams: u32,
    /// The number of flow samples since the start.
    sequence: u32,
    /// The number of packets that the samples since the start represent.
    pool: u64,
    /// The sum of the true inverse rates minus the sum of the stated rates: at most half a packet.
    short: f64,
    drops: u32,
}

impl DatagramBuilder {
    /// A builder for samples at the rate 1/`one_in`; a value below 1 counts as 1.
    #[must_use]
    pub fn new(origin: Origin, one_in: f64) -> DatagramBuilder {
        DatagramBuilder {
            origin,
            one_in: usable(one_in),
            bytes: Vec::with_capacity(LARGEST),
            samples: 0,
            datagrams: 0,
            sequence: 0,
            pool: 0,
            short: 0.0,
            drops: 0,
        }
    }

    /// Whether a sample with that many bytes of header has to wait for the next datagram.
    #[must_use]
    pub fn is_full_for(&self, header: usize) -> bool {
        self.samples > 0 && self.bytes.len() + SAMPLE + padded(header.min(LARGEST_HEADER)) > LARGEST
    }

    /// Adds a sample: the first bytes of a frame, and its length on the wire without the check sequence.
    pub fn add(&mut self, header: &[u8], length: usize) {
        self.add_at(header, length, self.one_in);
    }

    /// Adds a sample with its own rate 1/`one_in`.
    pub fn add_at(&mut self, header: &[u8], length: usize, one_in: f64) {
        if self.samples == 0 {
            self.bytes.clear();
            self.bytes.resize(HEADER + address_length(self.origin.agent), 0);
        }
        let header = header.get(..header.len().min(LARGEST_HEADER)).unwrap_or(header);
        self.sequence = self.sequence.wrapping_add(1);
        let rate = self.next_rate(usable(one_in));
        self.pool += u64::from(rate);
        let size = padded(header.len()) as u32;
        let words = [
            FLOW,
            SAMPLE as u32 - 8 + size,
            self.sequence,
            self.origin.interface & 0x00ff_ffff,
            rate,
            self.pool as u32,
            self.drops,
            self.origin.interface,
            // The output interface of a received frame is unknown.
            0,
            1,
            RAW_HEADER,
            SAMPLE as u32 - 48 + size,
            ETHERNET,
            length as u32 + CHECK_SEQUENCE,
            CHECK_SEQUENCE,
            header.len() as u32,
        ];
        for word in words {
            self.bytes.extend_from_slice(&word.to_be_bytes());
        }
        self.bytes.extend_from_slice(header);
        let end = self.bytes.len() + padded(header.len()) - header.len();
        self.bytes.resize(end, 0);
        self.samples += 1;
    }

    /// Sets the number of samples that were lost since the start because a buffer was full.
    pub fn set_drops(&mut self, drops: u64) {
        self.drops = drops as u32;
    }

    /// The datagram with the samples since the last datagram; `None` when there are no samples. `uptime` is in
    /// milliseconds.
    pub fn finish(&mut self, uptime: u32) -> Option<&[u8]> {
        if self.samples == 0 {
            return None;
        }
        self.datagrams = self.datagrams.wrapping_add(1);
        let words =
            [self.origin.sub_agent, self.datagrams, uptime, std::mem::take(&mut self.samples)];
        let mut head = Vec::with_capacity(HEADER + address_length(self.origin.agent));
        head.extend(VERSION.to_be_bytes());
        match self.origin.agent {
            IpAddr::V4(address) => {
                head.extend(IPV4.to_be_bytes());
                head.extend(address.octets());
            }
            IpAddr::V6(address) => {
                head.extend(IPV6.to_be_bytes());
                head.extend(address.octets());
            }
        }
        words.iter().for_each(|word| head.extend(word.to_be_bytes()));
        for (place, byte) in self.bytes.iter_mut().zip(head) {
            *place = byte;
        }
        Some(&self.bytes)
    }

    /// The rate of the next sample: the sum of all rates is the nearest whole number to the sum of 1/s.
    fn next_rate(&mut self, one_in: f64) -> u32 {
        let due = self.short + one_in;
        let rate = due.round().clamp(1.0, f64::from(u32::MAX));
        self.short = (due - rate).clamp(-0.5, 0.5);
        rate as u32
    }
}

fn address_length(address: IpAddr) -> usize {
    if address.is_ipv4() { 4 } else { 16 }
}

fn usable(one_in: f64) -> f64 {
    if one_in.is_finite() { one_in.max(1.0) } else { 1.0 }
}

fn padded(length: usize) -> usize {
    length.div_ceil(4) * 4
}
