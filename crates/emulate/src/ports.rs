//! The ports of a switch, with their configuration, state and counters.

use std::collections::BTreeMap;

use crate::frame::build::Mac;

/// Configuration bits of a port (`OFPPC_*`). 1.0 has all bits of 1.3 and some more.
pub mod config {
    /// The port is administratively down.
    pub const PORT_DOWN: u32 = 1 << 0;
    /// 1.0: the port does not run spanning tree.
    pub const NO_STP: u32 = 1 << 1;
    /// The port drops packets that it receives.
    pub const NO_RECV: u32 = 1 << 2;
    /// 1.0: the port drops received spanning tree packets.
    pub const NO_RECV_STP: u32 = 1 << 3;
    /// 1.0: the switch does not flood packets to the port.
    pub const NO_FLOOD: u32 = 1 << 4;
    /// The switch drops packets that are forwarded to the port.
    pub const NO_FWD: u32 = 1 << 5;
    /// The switch sends no PACKET_INs for packets of the port.
    pub const NO_PACKET_IN: u32 = 1 << 6;
}

/// The configuration of a port of a new switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// The port number: 1 to [`port::MAX`](crate::port::MAX), or
    /// [`port::LOCAL`](crate::port::LOCAL).
    pub number: u32,
    /// The port name. On the wire the name is cut to 15 bytes.
    pub name: String,
    /// Hardware address.
    pub hw_addr: Mac,
    /// Link rate, kilobits per second.
    pub speed_kbps: u32,
    /// The ids of the queues of the port.
    pub queues: Vec<u32>,
}

impl PortConfig {
    /// Makes a 10 Gbit/s port with the name `ethN` and one queue, 0.
    pub fn new(number: u32) -> PortConfig {
        let [_, _, high, low] = number.to_be_bytes();
        PortConfig {
            number,
            name: format!("eth{number}"),
            hw_addr: [0x0e, 0, 0, 0, high, low],
            speed_kbps: 10_000_000,
            queues: vec![0],
        }
    }
}

/// A port of a running switch.
#[derive(Clone, Debug)]
pub struct Port {
    /// The configuration with which the port was added.
    pub made: PortConfig,
    /// The [`config`] bits, which PORT_MOD sets.
    pub config: u32,
    /// Whether the link is up.
    pub link_up: bool,
    /// The time when the port was added, ns.
    pub created: u64,
    /// Counters.
    pub counters: PortCounters,
    /// Counters of each queue.
    pub queues: BTreeMap<u32, QueueCounters>,
}

/// The counters of a port. An emulated link has no errors and no collisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets that arrived while the port was down or had the bit `NO_RECV`.
    pub rx_dropped: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets for the port while the port was down or had the bit `NO_FWD`.
    pub tx_dropped: u64,
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounters {
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
}

impl Port {
    /// Makes a port with its link up.
    pub fn new(now: u64, made: PortConfig) -> Port {
        let queues = made.queues.iter().map(|id| (*id, QueueCounters::default())).collect();
        let counters = PortCounters::default();
        Port { made, config: 0, link_up: true, created: now, counters, queues }
    }

    /// Whether the link is up and the port is not administratively down.
    pub fn is_up(&self) -> bool {
        self.link_up && self.config & config::PORT_DOWN == 0
    }

    /// Counts a received frame. Returns whether the frame may enter the pipeline.
    pub(crate) fn receive(&mut self, bytes: usize) -> bool {
        let accepted = self.is_up() && self.config & config::NO_RECV == 0;
        if accepted {
            self.counters.rx_packets += 1;
            self.counters.rx_bytes += bytes as u64;
        } else {
            self.counters.rx_dropped += 1;
        }
        accepted
    }

    /// Counts a frame to be sent. Returns whether the port may send the frame. If the port lacks
    /// the queue, the frame counts for the default queue.
    pub(crate) fn send(&mut self, bytes: usize, queue: u32) -> bool {
        let accepted = self.is_up() && self.config & config::NO_FWD == 0;
        if accepted {
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += bytes as u64;
            if let Some(counters) = self.queues.get_mut(&queue) {
                counters.tx_packets += 1;
                counters.tx_bytes += bytes as u64;
            }
        } else {
            self.counters.tx_dropped += 1;
        }
        accepted
    }
}
