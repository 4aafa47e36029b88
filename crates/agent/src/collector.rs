//! Estimates traffic from samples: totals per agent, tenant and flow, with error bounds.
//!
//! The collector holds no socket: the caller receives datagrams and passes the datagrams to the collector. [`Limits`]
//! bound the memory. Traffic beyond the limits is counted as "others" and stays in the totals.

use crate::error::Result;
use crate::flow::FlowKey;
use crate::sflow::Datagram;
use sampling::estimate::{Estimate, Tally};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

/// A tenant. The collector knows a tenant by the tenant's IPv4 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// The tenant's network.
    pub network: Ipv4Addr,
    /// The network's prefix length, 0 to 32.
    pub prefix: u8,
}

impl FromStr for Tenant {
    type Err = &'static str;

    /// The text is `red=10.1.0.0/16`; without a prefix length the network is one address.
    fn from_str(text: &str) -> Result<Tenant, &'static str> {
        let read = || {
            let (name, network) = text.split_once('=')?;
            let (address, prefix) = network.split_once('/').unwrap_or((network, "32"));
            let network: Ipv4Addr = address.parse().ok()?;
            let prefix = prefix.parse().ok().filter(|prefix| *prefix <= 32)?;
            (!name.is_empty()).then(|| Tenant { name: name.to_owned(), network, prefix })
        };
        read().ok_or("not a tenant such as red=10.1.0.0/16")
    }
}

impl Tenant {
    fn has(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix.min(32))).unwrap_or(0);
        (address.to_bits() ^ self.network.to_bits()) & mask == 0
    }
}

/// How much a collector stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The number of flows that get counters of their own.
    pub flows: usize,
    /// The number of agents and sub-agents that get counters of their own.
    pub agents: usize,
}

impl Default for Limits {
    /// 65,536 flows and 4,096 agents take about 15 MB.
    fn default() -> Limits {
        Limits { flows: 1 << 16, agents: 1 << 12 }
    }
}

/// Estimates of packets and bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: Tally,
    bytes: Tally,
}

impl Count {
    fn add(&mut self, length: u32, rate: u32) {
        self.packets.add(1.0, f64::from(rate));
        self.bytes.add(f64::from(length), f64::from(rate));
    }

    fn row(&self, name: String) -> Row {
        let (packets, bytes) = (self.packets.estimate(), self.bytes.estimate());
        Row { name, samples: self.packets.samples(), packets, bytes }
    }
}

/// One line of the collected traffic.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The agent, tenant or flow of the traffic.
    pub name: String,
    /// The number of samples behind the estimates.
    pub samples: u64,
    /// Packets.
    pub packets: Estimate,
    /// Bytes on the wire.
    pub bytes: Estimate,
}

/// The window of late datagrams: a datagram counts as late when its sequence number is less than this number below the
/// highest sequence number. Beyond the window, the datagram may come from an agent that restarted.
const WINDOW: u32 = 128;

/// The datagrams of one sub-agent.
#[derive(Clone, Copy, Debug)]
struct Stream {
    count: Count,
    /// The highest sequence number so far.
    last: u32,
    /// The sequence numbers that arrived: bit i is the number `last - i`.
    seen: u128,
    /// The sequence number after a number that was far from the others. After a restart of the agent, the next datagram
    /// has this number.
    after_restart: Option<u32>,
    missing: u64,
}

impl Stream {
    /// Datagrams before the first received datagram do not count as missing.
    fn beginning_at(sequence: u32) -> Stream {
        let count = Count::default();
        Stream { count, last: sequence, seen: u128::MAX, after_restart: None, missing: 0 }
    }

    /// The network may reorder datagrams: a skipped datagram counts as missing until the datagram arrives.
    fn arrive(&mut self, sequence: u32) {
        let (ahead, behind) = (sequence.wrapping_sub(self.last), self.last.wrapping_sub(sequence));
        if behind < WINDOW {
            let bit = 1 << behind;
            self.missing -= u64::from(self.seen & bit == 0);
            self.seen |= bit;
        } else if ahead < 1 << 16 {
            self.missing += u64::from(ahead - 1);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.last = sequence;
        } else if self.after_restart == Some(sequence) {
            // After a restart, the number of missing datagrams is unknown.
            (self.last, self.seen) = (sequence, u128::MAX);
        } else {
            // A single datagram out of the window is very late; the numbers of the other datagrams continue.
            self.after_restart = Some(sequence.wrapping_add(1));
        }
    }
}

/// Adds up samples.
#[derive(Debug)]
pub struct Collector {
    limits: Limits,
    tenants: Vec<Tenant>,
    by_tenant: Vec<Count>,
    by_flow: HashMap<FlowKey, Count>,
    by_agent: HashMap<(IpAddr, u32), Stream>,
    other_flows: Count,
    other_agents: Count,
    other_tenants: Count,
    total: Count,
    datagrams: u64,
    rejected: u64,
}

impl Collector {
    /// An empty collector. A sample belongs to the first tenant with a network that contains the source address of the
    /// sample.
    #[must_use]
    pub fn new(tenants: Vec<Tenant>, limits: Limits) -> Collector {
        Collector {
            by_tenant: vec![Count::default(); tenants.len()],
            limits,
            tenants,
            by_flow: HashMap::new(),
            by_agent: HashMap::new(),
            other_flows: Count::default(),
            other_agents: Count::default(),
            other_tenants: Count::default(),
            total: Count::default(),
            datagrams: 0,
            rejected: 0,
        }
    }

    /// Adds a datagram. The samples before a fault in the datagram are counted.
    ///
    /// # Errors
    /// [`crate::Error::Datagram`] describes the fault; [`Collector::datagrams`] counts the datagram.
    pub fn add(&mut self, bytes: &[u8]) -> Result<()> {
        let result = self.add_samples(bytes);
        self.datagrams += 1;
        self.rejected += u64::from(result.is_err());
        result
    }

    fn add_samples(&mut self, bytes: &[u8]) -> Result<()> {
        let datagram = Datagram::parse(bytes)?;
        let key = (datagram.agent, datagram.sub_agent);
        if self.by_agent.contains_key(&key) || self.by_agent.len() < self.limits.agents {
            let sequence = datagram.sequence;
            let stream = self.by_agent.entry(key).or_insert_with(|| Stream::beginning_at(sequence));
            stream.arrive(sequence);
        }
        for sample in datagram.flow_samples() {
            let sample = sample?;
            self.total.add(sample.length, sample.rate);
            match self.by_agent.get_mut(&key) {
                Some(stream) => &mut stream.count,
                None => &mut self.other_agents,
            }
            .add(sample.length, sample.rate);
            let flow = sample.flow;
            let tenant =
                flow.and_then(|flow| self.tenants.iter().position(|one| one.has(flow.source)));
            tenant
                .and_then(|tenant| self.by_tenant.get_mut(tenant))
                .unwrap_or(&mut self.other_tenants)
                .add(sample.length, sample.rate);
            let has_room = self.by_flow.len() < self.limits.flows;
            match flow {
                Some(flow) if has_room || self.by_flow.contains_key(&flow) => {
                    self.by_flow.entry(flow).or_default()
                }
                _ => &mut self.other_flows,
            }
            .add(sample.length, sample.rate);
        }
        Ok(())
    }

    /// The total of all traffic.
    #[must_use]
    pub fn total(&self) -> Row {
        self.total.row("total".to_owned())
    }

    /// The traffic by agent and sub-agent, in ascending order.
    #[must_use]
    pub fn agents(&self) -> Vec<Row> {
        let mut all: Vec<_> = self.by_agent.iter().collect();
        all.sort_by_key(|(key, _)| **key);
        let row = |((agent, sub), stream): (&(IpAddr, u32), &Stream)| {
            stream.count.row(format!("{agent}/{sub}"))
        };
        with_others(all.into_iter().map(row).collect(), &self.other_agents)
    }

    /// The traffic by tenant, in the order of the configuration. Without tenants the list is empty.
    #[must_use]
    pub fn tenants(&self) -> Vec<Row> {
        if self.tenants.is_empty() {
            return Vec::new();
        }
        let rows = self
            .tenants
            .iter()
            .zip(&self.by_tenant)
            .map(|(tenant, count)| count.row(tenant.name.clone()));
        with_others(rows.collect(), &self.other_tenants)
    }

    /// The `most` largest flows by packets, largest first; the last row is the sum of all other flows.
    #[must_use]
    pub fn flows(&self, most: usize) -> Vec<Row> {
        let mut all: Vec<_> = self.by_flow.iter().collect();
        let packets = |count: &Count| count.packets.estimate().total;
        all.sort_by(|a, b| packets(b.1).total_cmp(&packets(a.1)).then(a.0.cmp(b.0)));
        let mut others = self.other_flows;
        for (_, count) in all.iter().skip(most) {
            others.packets.merge(&count.packets);
            others.bytes.merge(&count.bytes);
        }
        let rows = all.iter().take(most).map(|(flow, count)| count.row(flow.to_string()));
        with_others(rows.collect(), &others)
    }

    /// The number of received datagrams, and the number of received datagrams that were not complete sFlow v5.
    #[must_use]
    pub fn datagrams(&self) -> (u64, u64) {
        (self.datagrams, self.rejected)
    }

    /// The number of missing datagrams, from the gaps in their sequence numbers. A late datagram counts as missing
    /// until the datagram arrives.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.by_agent.values().map(|stream| stream.missing).sum()
    }
}

fn with_others(mut rows: Vec<Row>, others: &Count) -> Vec<Row> {
    if others.packets.samples() > 0 {
        rows.push(others.row("others".to_owned()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sflow::{DatagramBuilder, Origin};

    fn udp(source: [u8; 4], port: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame
            .extend(source.iter().chain(&[10, 9, 9, 9]).chain(&port.to_be_bytes()).chain(&[0, 53]));
        frame
    }

    fn datagram(builder: &mut DatagramBuilder, frames: &[Vec<u8>]) -> Vec<u8> {
        frames.iter().for_each(|frame| builder.add(frame, 96));
        builder.finish(1).unwrap().to_vec()
    }

    fn summaries(rows: &[Row]) -> Vec<(String, u64, f64)> {
        rows.iter().map(|row| (row.name.clone(), row.samples, row.packets.total)).collect()
    }

    #[test]
    fn samples_are_scaled_up_and_summed_by_agent_tenant_and_flow() {
        let origin = Origin { agent: [10, 0, 0, 1].into(), sub_agent: 2, interface: 1 };
        let mut builder = DatagramBuilder::new(origin, 2.5);
        let tenant = |name: &str, network: [u8; 4], prefix| Tenant {
            name: name.into(),
            network: network.into(),
            prefix,
        };
        let tenants = vec![tenant("red", [10, 1, 0, 0], 16), tenant("blue", [10, 2, 0, 0], 16)];
        let mut collector = Collector::new(tenants, Limits { flows: 2, agents: 1 });
        let frames: Vec<Vec<u8>> =
            [([10, 1, 0, 1], 5), ([10, 1, 0, 1], 5), ([10, 2, 0, 1], 6), ([192, 0, 2, 1], 7)]
                .map(|(source, port)| udp(source, port))
                .to_vec();
        collector.add(&datagram(&mut builder, &frames)).unwrap();
        // The network loses one datagram.
        datagram(&mut builder, &frames);
        collector.add(&datagram(&mut builder, &frames)).unwrap();
        assert_eq!(collector.missing(), 1);

        let other = Origin { sub_agent: 9, ..origin };
        collector.add(&datagram(&mut DatagramBuilder::new(other, 1.0), &frames[..1])).unwrap();
        assert_eq!(
            summaries(&collector.agents()),
            [("10.0.0.1/2".into(), 8, 20.0), ("others".into(), 1, 1.0)]
        );
        assert_eq!(collector.tenants()[2].name, "others");
        assert_eq!(
            summaries(&collector.tenants()).iter().map(|row| row.1).collect::<Vec<_>>(),
            [5, 2, 2]
        );
        let flows = collector.flows(1);
        assert_eq!((flows[0].name.as_str(), flows[0].samples), ("udp 10.1.0.1:5 > 10.9.9.9:53", 5));
        assert_eq!((flows[1].name.as_str(), flows[1].samples), ("others", 4));
        let total = collector.total();
        assert_eq!((total.samples, total.packets.total, total.bytes.total), (9, 21.0, 2100.0));
        assert!(total.packets.half95 > 0.0);

        assert!(collector.add(b"nonsense").is_err());
        assert_eq!(collector.datagrams(), (4, 1));
    }

    /// The samples are IP headers without Ethernet, and records of lengths and addresses without a header.
    #[test]
    fn samples_without_an_ethernet_header_are_counted() {
        let head = "00000005000000010a0000090000000000000001000003e800000001";
        let sample = |length: &str, records: &str| {
            let counts = "00000001 00000003 00000064 00000064 00000000 00000003 00000000";
            format!("{head}00000001{length}{counts}{records}")
        };
        let ipv4 = "4500001c00000000401100000a0100010a0100021388003500080000";
        let ipv6 = "60000000000811402001 0db8000000000000000000000001 20010db8000000000000000000000002 1388003500080000";
        let ethernet = "0000000200000018000000c8 0000000000000000 0000000000000000 00000800";
        let of_ipv4 = "0000000300000020000000b6 00000011 0a010001 0a010002 00001388 00000035 0000000000000000";
        let of_ipv6 = "0000000400000038000000b6 00000011 20010db8000000000000000000000001 \
            20010db8000000000000000000000002 00001388 00000035 0000000000000000";
        let raw = |words: &str, header: &str| format!("{words}{header}");
        let (v4, v6) =
            ("udp 10.1.0.1:5000 > 10.1.0.2:53", "udp [2001:db8::1]:5000 > [2001:db8::2]:53");
        for (length, records, bytes, flow) in [
            (
                "00000054",
                raw("00000001000000010000002c0000000b000000c8000000000000001c", ipv4),
                20_000.0,
                v4,
            ),
            (
                "00000068",
                raw("0000000100000001000000400000000c000000c80000000000000030", ipv6),
                20_000.0,
                v6,
            ),
            // The header belongs to another protocol, here MPLS: at least the length counts.
            (
                "0000003c",
                raw("0000000100000001000000140000000d000000c80000000000000004", "00001140"),
                20_000.0,
                "others",
            ),
            ("00000068", format!("00000002{ethernet}{of_ipv4}"), 20_000.0, v4),
            ("00000080", format!("00000002{ethernet}{of_ipv6}"), 20_000.0, v6),
            // Without an Ethernet length, the collector knows only the length of the IP packet.
            ("00000048", format!("00000001{of_ipv4}"), 18_200.0, v4),
            // The collector prefers a header to a record, in either order.
            (
                "00000094",
                format!("00000002{of_ipv6}000000010000002c0000000b000000c8000000000000001c{ipv4}"),
                20_000.0,
                v4,
            ),
        ] {
            let text = sample(length, &records).replace(char::is_whitespace, "");
            let bytes_of = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            let datagram: Vec<u8> = (0..text.len()).step_by(2).map(bytes_of).collect();
            let red = Tenant { name: "red".into(), network: [10, 1, 0, 0].into(), prefix: 16 };
            let mut collector = Collector::new(vec![red], Limits::default());
            collector.add(&datagram).unwrap();
            let total = collector.total();
            assert_eq!((total.packets.total, total.bytes.total), (100.0, bytes), "{text}");
            assert_eq!(collector.flows(9)[0].name, flow, "{text}");
            assert_eq!(collector.tenants()[0].samples, u64::from(flow == v4), "{text}");
            // A datagram that is cut at any byte gives an error or fewer samples, and never a panic.
            (0..datagram.len()).for_each(|end| drop(collector.add(&datagram[..end])));
        }
    }

    #[test]
    fn reordered_datagrams_are_not_counted_as_missing() {
        let late: Vec<u32> = [1].into_iter().chain(3..=WINDOW + 1).chain([2]).collect();
        let too_late: Vec<u32> =
            [1].into_iter().chain(3..=WINDOW + 2).chain([2, WINDOW + 3]).collect();
        for (sequence, expected) in [
            (&[1, 2, 4, 3, 5, 6, 8, 7][..], 0),
            (&[1, 2, 4, 5], 1),
            (&[1, 5, 3], 2),
            // A repeated datagram does not replace a missing datagram.
            (&[1, 4, 4, 3, 3], 1),
            (&[7, 6, 8], 0),
            (&[u32::MAX - 1, 0, u32::MAX, 2, 1], 0),
            (&[0, 2], 1),
            (&[9000, 1, 2, 4], 1),
            (&[1, 1 << 20, (1 << 20) + 1, (1 << 20) + 3], 1),
            (&[1, 1000], 998),
            (&late, 0),
            (&too_late, 1),
        ] {
            let mut collector = Collector::new(Vec::new(), Limits::default());
            for number in sequence {
                let head = [5, 1, 0x0a00_0001, 0, *number, 0, 0];
                let datagram: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
                collector.add(&datagram).unwrap();
            }
            assert_eq!(collector.missing(), expected, "{sequence:?}");
        }
    }
}
