//! What samples say about the traffic: totals per agent, tenant and flow, with error bounds.
//!
//! It holds no socket: whoever receives datagrams passes them in. Memory is bounded by [`Limits`]; what does not fit is
//! counted under "others", never dropped from the totals.

use crate::error::Result;
use crate::flow::FlowKey;
use crate::sflow::Datagram;
use sampling::estimate::{Estimate, Tally};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// A tenant, known by its IPv4 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its network.
    pub network: Ipv4Addr,
    /// The network's prefix length, 0 to 32.
    pub prefix: u8,
}

impl Tenant {
    fn has(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix.min(32))).unwrap_or(0);
        (address.to_bits() ^ self.network.to_bits()) & mask == 0
    }
}

/// How much a collector remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Flows told apart.
    pub flows: usize,
    /// Agents and sub-agents told apart.
    pub agents: usize,
}

impl Default for Limits {
    /// 65,536 flows, 4,096 agents: some 15 MB.
    fn default() -> Limits {
        Limits { flows: 1 << 16, agents: 1 << 12 }
    }
}

/// Packets and bytes.
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

/// One line of what was collected.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Whose traffic.
    pub name: String,
    /// How many samples the estimates are made from.
    pub samples: u64,
    /// Packets.
    pub packets: Estimate,
    /// Bytes on the wire.
    pub bytes: Estimate,
}

/// Datagrams of one sub-agent.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    count: Count,
    last: u32,
    missing: u64,
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
    /// An empty one; a sample belongs to the first tenant that has its source address.
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

    /// Adds a datagram. What precedes a fault in it is counted.
    ///
    /// # Errors
    /// [`crate::Error::Datagram`] says what is wrong; [`Collector::datagrams`] counts it.
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
            let stream = self.by_agent.entry(key).or_default();
            let gap = datagram.sequence.wrapping_sub(stream.last);
            // A first datagram, a restart or one out of order tells nothing of what is missing.
            if stream.last != 0 && (1..1 << 16).contains(&gap) {
                stream.missing += u64::from(gap - 1);
            }
            stream.last = datagram.sequence;
        }
        for sample in datagram.flow_samples() {
            let sample = sample?;
            self.total.add(sample.length, sample.rate);
            match self.by_agent.get_mut(&key) {
                Some(stream) => &mut stream.count,
                None => &mut self.other_agents,
            }
            .add(sample.length, sample.rate);
            let flow = FlowKey::of(sample.header);
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

    /// All of it.
    #[must_use]
    pub fn total(&self) -> Row {
        self.total.row("total".to_owned())
    }

    /// By agent and sub-agent, in order.
    #[must_use]
    pub fn agents(&self) -> Vec<Row> {
        let mut all: Vec<_> = self.by_agent.iter().collect();
        all.sort_by_key(|(key, _)| **key);
        let row = |((agent, sub), stream): (&(IpAddr, u32), &Stream)| {
            stream.count.row(format!("{agent}/{sub}"))
        };
        with_others(all.into_iter().map(row).collect(), &self.other_agents)
    }

    /// By tenant, in the order in which they were given; none where none were.
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

    /// The `most` largest flows by packets, largest first, and all others together.
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

    /// Datagrams that came, and of those the ones that were not whole sFlow v5.
    #[must_use]
    pub fn datagrams(&self) -> (u64, u64) {
        (self.datagrams, self.rejected)
    }

    /// Datagrams that did not come, by the gaps in their sequence numbers.
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

    fn told(rows: &[Row]) -> Vec<(String, u64, f64)> {
        rows.iter().map(|row| (row.name.clone(), row.samples, row.packets.total)).collect()
    }

    #[test]
    fn samples_are_scaled_up_and_told_apart() {
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
        // One datagram is lost on the way.
        datagram(&mut builder, &frames);
        collector.add(&datagram(&mut builder, &frames)).unwrap();
        assert_eq!(collector.missing(), 1);

        let other = Origin { sub_agent: 9, ..origin };
        collector.add(&datagram(&mut DatagramBuilder::new(other, 1.0), &frames[..1])).unwrap();
        assert_eq!(
            told(&collector.agents()),
            [("10.0.0.1/2".into(), 8, 20.0), ("others".into(), 1, 1.0)]
        );
        assert_eq!(collector.tenants()[2].name, "others");
        assert_eq!(
            told(&collector.tenants()).iter().map(|row| row.1).collect::<Vec<_>>(),
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
}
