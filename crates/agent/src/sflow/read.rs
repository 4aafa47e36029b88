//! Reads datagrams in place: the reader copies nothing and checks every length.

use super::numbers::{
    ETHERNET, EXPANDED_FLOW, FLOW, HEADER_IPV4, HEADER_IPV6, IPV4, IPV6, RAW_HEADER,
    SAMPLED_ETHERNET, SAMPLED_IPV4, SAMPLED_IPV6, VERSION,
};
use crate::error::{Error, Result};
use crate::flow::FlowKey;
use std::net::IpAddr;

/// A datagram with a valid header.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The agent's address.
    pub agent: IpAddr,
    /// Distinguishes several origins of one agent.
    pub sub_agent: u32,
    /// Counts the datagrams of one sub-agent.
    pub sequence: u32,
    samples: u32,
    rest: Words<'a>,
}

/// A sampled packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample<'a> {
    /// The sampling rate: the sample represents this number of packets.
    pub rate: u32,
    /// The first bytes of the packet; empty for a sample without a header.
    pub header: &'a [u8],
    /// The flow from the sample's header, else from its record of IP addresses; `None` when the sample has neither.
    pub flow: Option<FlowKey>,
    /// The length of the packet on the wire, with the frame check sequence. For an agent that sends only the length of
    /// the IP packet, the length of the IP packet.
    pub length: u32,
}

impl<'a> Datagram<'a> {
    /// Reads the header of a datagram.
    ///
    /// # Errors
    /// [`Error::Datagram`] describes the fault.
    pub fn parse(bytes: &'a [u8]) -> Result<Datagram<'a>> {
        let mut words = Words(bytes);
        let short = || Error::Datagram("it is too short".to_owned());
        let version = words.word().ok_or_else(short)?;
        if version != VERSION {
            return Err(Error::Datagram(format!("version {version}")));
        }
        let agent = match words.word().ok_or_else(short)? {
            IPV4 => IpAddr::from(words.word().ok_or_else(short)?.to_be_bytes()),
            IPV6 => {
                let bytes = words.bytes(16).ok_or_else(short)?;
                IpAddr::from(<[u8; 16]>::try_from(bytes).map_err(|_| short())?)
            }
            other => return Err(Error::Datagram(format!("address type {other}"))),
        };
        let mut word = || words.word().ok_or_else(short);
        let (sub_agent, sequence, _uptime, samples) = (word()?, word()?, word()?, word()?);
        Ok(Datagram { agent, sub_agent, sequence, samples, rest: words })
    }

    /// The flow samples of the datagram. The iterator skips other samples (counters), and ends with an error at the
    /// first incomplete sample.
    #[must_use]
    pub fn flow_samples(&self) -> FlowSamples<'a> {
        FlowSamples { left: self.samples, rest: self.rest }
    }
}

/// The flow samples of a datagram.
pub struct FlowSamples<'a> {
    left: u32,
    rest: Words<'a>,
}

impl<'a> Iterator for FlowSamples<'a> {
    type Item = Result<FlowSample<'a>>;

    fn next(&mut self) -> Option<Result<FlowSample<'a>>> {
        while self.left > 0 {
            self.left -= 1;
            let sample = self.rest.word().zip(self.rest.word());
            let body = sample.and_then(|(kind, length)| {
                Some((kind, self.rest.bytes(usize::try_from(length).ok()?)?))
            });
            let read = match body {
                Some((kind @ (FLOW | EXPANDED_FLOW), body)) => flow_sample(kind, Words(body)),
                Some(_) => continue,
                None => None,
            };
            if read.is_none() {
                self.left = 0;
            }
            return Some(read.ok_or_else(|| Error::Datagram("a sample is cut short".to_owned())));
        }
        None
    }
}

fn flow_sample<'a>(kind: u32, mut words: Words<'a>) -> Option<FlowSample<'a>> {
    let is_expanded = kind == EXPANDED_FLOW;
    // The sequence number, and the source in one word or in two words.
    words.skip(if is_expanded { 3 } else { 2 })?;
    let rate = words.word()?;
    // The possible packets, the lost samples, and two interfaces in one word or in two words each.
    words.skip(if is_expanded { 6 } else { 4 })?;
    let mut header: &[u8] = &[];
    // The order is from the most to the least exact: a header, a record of Ethernet, a record of IP.
    let (mut lengths, mut flows) = ([None; 3], [None; 2]);
    for _ in 0..words.word()? {
        let (kind, length) = (words.word()?, words.word()?);
        let mut record = Words(words.bytes(usize::try_from(length).ok()?)?);
        match kind {
            RAW_HEADER => {
                let (protocol, length) = (record.word()?, record.word()?);
                record.skip(1)?;
                let size = usize::try_from(record.word()?).ok()?;
                header = record.0.get(..size)?;
                // The length is valid for every protocol.
                lengths[0] = Some(length);
                flows[0] = match protocol {
                    ETHERNET => FlowKey::of(header),
                    HEADER_IPV4 => FlowKey::of_ipv4(header),
                    HEADER_IPV6 => FlowKey::of_ipv6(header),
                    _ => None,
                };
            }
            SAMPLED_ETHERNET => lengths[1] = Some(record.word()?),
            SAMPLED_IPV4 | SAMPLED_IPV6 => {
                lengths[2] = Some(record.word()?);
                flows[1] = Some(sampled_ip(kind, record)?);
            }
            _ => {}
        }
    }
    let length = lengths.into_iter().flatten().next().unwrap_or(0);
    let flow = flows.into_iter().flatten().next();
    Some(FlowSample { rate, header, flow, length })
}

/// Reads the rest of `sampled_ipv4` or `sampled_ipv6` after the length.
fn sampled_ip(kind: u32, mut record: Words<'_>) -> Option<FlowKey> {
    let protocol = record.word()?;
    let mut address = || -> Option<IpAddr> {
        if kind == SAMPLED_IPV4 {
            return Some(record.word()?.to_be_bytes().into());
        }
        Some(<[u8; 16]>::try_from(record.bytes(16)?).ok()?.into())
    };
    let (source, destination) = (address()?, address()?);
    let (source_port, destination_port) = (record.word()?, record.word()?);
    Some(FlowKey {
        source,
        destination,
        protocol: protocol as u8,
        source_port: source_port as u16,
        destination_port: destination_port as u16,
    })
}

/// The unread bytes.
#[derive(Clone, Copy, Debug)]
struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn skip(&mut self, words: usize) -> Option<()> {
        self.0 = self.0.get(words * 4..)?;
        Some(())
    }

    /// Reads that many bytes, and skips the padding to a whole word.
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let bytes = self.0.get(..length)?;
        self.0 = self.0.get(length.checked_next_multiple_of(4)?..).unwrap_or_default();
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DatagramBuilder, Origin};
    use super::*;
    use flowparser_sflow::{FlowRecord, SflowParser, SflowSample};
    use proptest::prelude::*;

    const ORIGIN: Origin = Origin {
        agent: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 9)),
        sub_agent: 3,
        interface: 7,
    };

    proptest! {
        /// The reader and a third-party parser read the written samples back.
        #[test]
        fn written_samples_are_read_back_by_weir_and_by_a_third_party_parser(
            over_ipv6: bool,
            headers in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..200), 60..1515_usize), 1..40),
            one_in in 1.0..1000.0_f64,
        ) {
            let agent = if over_ipv6 { "2001:db8::9".parse().unwrap() } else { ORIGIN.agent };
            let mut builder = DatagramBuilder::new(Origin { agent, ..ORIGIN }, one_in);
            let mut datagrams = Vec::new();
            for (header, length) in &headers {
                if builder.is_full_for(header.len()) {
                    datagrams.push(builder.finish(5).unwrap().to_vec());
                }
                builder.add(header, *length);
            }
            datagrams.push(builder.finish(5).unwrap().to_vec());
            prop_assert!(builder.finish(5).is_none());
            let (mut ours, mut theirs, mut pool) = (Vec::new(), Vec::new(), 0);
            for (index, bytes) in datagrams.iter().enumerate() {
                prop_assert!(bytes.len() <= 1400);
                let datagram = Datagram::parse(bytes).unwrap();
                prop_assert_eq!(datagram.agent, agent);
                prop_assert_eq!((datagram.sub_agent, datagram.sequence), (3, index as u32 + 1));
                for sample in datagram.flow_samples() {
                    let sample = sample.unwrap();
                    pool += u64::from(sample.rate);
                    ours.push((sample.header.to_vec(), sample.length as usize - 4));
                }
                let parsed = SflowParser::default().parse_bytes(bytes);
                prop_assert!(parsed.error.is_none(), "{:?}", parsed.error);
                for sample in &parsed.datagrams[0].samples {
                    let SflowSample::Flow(sample) = sample else { panic!() };
                    prop_assert_eq!(sample.source_id_index, 7);
                    let FlowRecord::RawPacketHeader(raw) = &sample.records[0] else { panic!() };
                    theirs.push((raw.header.clone(), raw.frame_length as usize - 4));
                }
            }
            prop_assert_eq!(&ours, &headers);
            prop_assert_eq!(&theirs, &headers);
            // The sum of the stated rates is the number of packets that the samples represent.
            prop_assert!((pool as f64 - headers.len() as f64 * one_in).abs() <= 0.5 + 1e-6);
        }

        /// Any bytes give an error or samples, and never a panic.
        #[test]
        fn any_bytes_are_parsed_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), head: bool, cut in 0..300_usize) {
            if head {
                let mut builder = DatagramBuilder::new(ORIGIN, 2.5);
                (0..3).for_each(|_| builder.add(&bytes, 100));
                let mut whole = builder.finish(0).unwrap().to_vec();
                let place = cut % whole.len();
                whole[place] = whole[place].wrapping_add(bytes.first().copied().unwrap_or(1));
                whole.truncate(whole.len() - cut % 4);
                bytes = whole;
            }
            if let Ok(datagram) = Datagram::parse(&bytes) {
                prop_assert!(datagram.flow_samples().count() <= bytes.len());
            }
        }
    }
}
