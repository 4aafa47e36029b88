//! Sends packets through the flow tables, and executes actions.
//!
//! [`Datapath::receive`] takes packets from a port. [`Datapath::packet_out`] takes packets from a
//! controller.

use std::sync::Arc;

use flowspace::{Field, Key};
use openflow::v13::OxmField;

use crate::action::{Action, ActionSet, Instructions, port};
use crate::datapath::Datapath;
use crate::effects::{Effects, Event, PacketInReason, ToController, Transmit};
use crate::frame;
use crate::meters::{BandKind, Verdict};
use crate::ports::config;
use crate::rewrite;

/// The bits of the fragment handling (`OFPC_FRAG_*`).
const FRAG_MASK: u16 = 3;
const FRAG_DROP: u16 = 1;

/// The maximum depth of groups and tables to which actions send packets.
const MAX_DEPTH: u32 = 16;

/// A packet during its processing.
struct Packet {
    frame: Vec<u8>,
    /// The length of the packet at its arrival.
    length: usize,
    in_port: u32,
    metadata: u64,
    tunnel: u64,
    queue: u32,
    /// The bytes at the arrival, stored only if the fault that drops changed packets is planted.
    original: Option<Vec<u8>>,
    /// The current table, for PACKET_IN.
    table: u8,
    cookie: u64,
    reason: PacketInReason,
    /// Whether the actions are from a PACKET_OUT, which may output to `OFPP_TABLE`.
    from_controller: bool,
    depth: u32,
}

impl Packet {
    fn new(in_port: u32, frame: Vec<u8>) -> Packet {
        Packet {
            length: frame.len(),
            frame,
            in_port,
            metadata: 0,
            tunnel: 0,
            queue: 0,
            original: None,
            table: 0,
            cookie: u64::MAX,
            reason: PacketInReason::Action,
            from_controller: false,
            depth: 0,
        }
    }

    fn key(&self) -> Key {
        Key::extract(self.in_port, &self.frame)
            .with(Field::Metadata, self.metadata.into())
            .with(Field::TunnelId, self.tunnel.into())
    }

    /// Makes a copy for a bucket, because a bucket must not change the original.
    fn copy(&self) -> Packet {
        Packet {
            frame: self.frame.clone(),
            original: self.original.clone(),
            depth: self.depth + 1,
            ..*self
        }
    }
}

impl Datapath {
    /// Processes a frame that arrived at a port. Unknown ports and ports that do not receive drop
    /// the frame.
    pub(crate) fn receive(&mut self, now: u64, in_port: u32, frame: &[u8], effects: &mut Effects) {
        let accepted = self.ports.get_mut(&in_port).is_some_and(|port| port.receive(frame.len()));
        let is_dropped = self.fragments & FRAG_MASK == FRAG_DROP && frame::is_fragment(frame);
        if accepted && frame.len() >= 14 && !is_dropped {
            let packet = self.packet(in_port, frame.to_vec());
            self.walk_tables(now, packet, effects);
        }
    }

    /// Executes the actions of a PACKET_OUT on its frame.
    pub(crate) fn packet_out(
        &mut self,
        now: u64,
        in_port: u32,
        frame: Vec<u8>,
        actions: &[Action],
        effects: &mut Effects,
    ) {
        let mut packet = Packet { from_controller: true, ..self.packet(in_port, frame) };
        self.execute(now, actions, &mut packet, effects);
    }

    /// Sends a buffered frame, which a FLOW_MOD released, through the tables.
    pub(crate) fn resubmit(
        &mut self,
        now: u64,
        in_port: u32,
        frame: Vec<u8>,
        effects: &mut Effects,
    ) {
        let packet = self.packet(in_port, frame);
        self.walk_tables(now, packet, effects);
    }

    fn packet(&self, in_port: u32, frame: Vec<u8>) -> Packet {
        let original = self.drops_changed_packets.then(|| frame.clone());
        Packet { original, ..Packet::new(in_port, frame) }
    }

    fn walk_tables(&mut self, now: u64, mut packet: Packet, effects: &mut Effects) {
        packet.from_controller = false;
        let mut set = ActionSet::default();
        let mut table = 0u8;
        loop {
            packet.table = table;
            let Some(instructions) = self.look_up(now, &mut packet) else {
                packet.reason = PacketInReason::NoMatch;
                packet.cookie = u64::MAX;
                self.punt(&packet, None, true, effects);
                if !self.runs_set_on_miss {
                    return;
                }
                // The values are those of an internal entry of Open vSwitch that matches all
                // packets.
                packet.reason = PacketInReason::Action;
                packet.cookie = 0;
                break;
            };
            match self.follow(now, &instructions, &mut packet, &mut set, effects) {
                Next::Table(next) => table = next,
                Next::End => break,
                Next::Dropped => return,
            }
        }
        let actions = set.into_ordered();
        self.execute(now, &actions, &mut packet, effects);
    }

    /// Finds the entry for the packet in its current table, and stores the cookie and the reason
    /// for PACKET_IN.
    fn look_up(&mut self, now: u64, packet: &mut Packet) -> Option<Arc<Instructions>> {
        let key = packet.key();
        let table = self.tables.get_mut(usize::from(packet.table))?;
        let flow = table.lookup(now, &key, packet.frame.len())?;
        packet.cookie = flow.cookie;
        packet.reason =
            if flow.is_table_miss() { PacketInReason::NoMatch } else { PacketInReason::Action };
        Some(Arc::clone(&flow.instructions))
    }

    fn follow(
        &mut self,
        now: u64,
        instructions: &Instructions,
        packet: &mut Packet,
        set: &mut ActionSet,
        effects: &mut Effects,
    ) -> Next {
        if let Some(id) = instructions.meter
            && !self.passes_meter(now, id, packet)
        {
            return Next::Dropped;
        }
        self.execute(now, &instructions.apply, packet, effects);
        if instructions.clear {
            set.clear();
        }
        for action in &instructions.write {
            set.write(action);
        }
        if let Some((value, mask)) = instructions.metadata {
            packet.metadata = packet.metadata & !mask | value & mask;
        }
        match instructions.goto {
            Some(next) if next > packet.table => Next::Table(next),
            _ => Next::End,
        }
    }

    fn passes_meter(&mut self, now: u64, id: u32, packet: &mut Packet) -> bool {
        let Some(meter) = self.meters.get_mut(&id) else { return true };
        match meter.apply(now, packet.frame.len()) {
            Verdict::Pass => true,
            Verdict::Exceeded(BandKind::Drop) => false,
            Verdict::Exceeded(BandKind::DscpRemark(levels)) => {
                rewrite::raise_drop_precedence(&mut packet.frame, levels);
                true
            }
        }
    }

    fn execute(
        &mut self,
        now: u64,
        actions: &[Action],
        packet: &mut Packet,
        effects: &mut Effects,
    ) {
        for action in actions {
            match *action {
                Action::Output { port, max_len } => {
                    self.output(now, port, max_len, packet, effects)
                }
                Action::Enqueue { port, queue } => {
                    let before = std::mem::replace(&mut packet.queue, queue);
                    self.output(now, port, 0, packet, effects);
                    packet.queue = before;
                }
                Action::Resubmit { in_port, table } => {
                    self.execute_table(now, (in_port, table), packet, effects);
                }
                Action::SetQueue(queue) => packet.queue = queue,
                Action::Group(id) => self.execute_group(now, id, packet, effects),
                Action::DecNwTtl | Action::DecMplsTtl => {
                    if !rewrite::decrement_ttl(action, &mut packet.frame) {
                        packet.reason = PacketInReason::InvalidTtl;
                        return self.punt(packet, None, false, effects);
                    }
                }
                Action::SetField { field: OxmField::METADATA, value } => {
                    packet.metadata = value as u64;
                }
                Action::SetField { field: OxmField::TUNNEL_ID, value } => {
                    packet.tunnel = value as u64;
                }
                _ => rewrite::apply(action, &mut packet.frame),
            }
        }
    }

    /// Executes the apply-actions of a table for packets of this ingress port, but no other instructions. The table
    /// counts the length of the packet at its arrival, as Open vSwitch does for its `resubmit`.
    fn execute_table(
        &mut self,
        now: u64,
        (in_port, table): (u32, u8),
        packet: &mut Packet,
        effects: &mut Effects,
    ) {
        if packet.depth >= MAX_DEPTH {
            return;
        }
        let key = packet.key().with(Field::InPort, in_port.into());
        let Some(table) = self.tables.get_mut(usize::from(table)) else { return };
        let Some(flow) = table.lookup(now, &key, packet.length) else { return };
        let instructions = Arc::clone(&flow.instructions);
        packet.depth += 1;
        self.execute(now, &instructions.apply, packet, effects);
        packet.depth -= 1;
    }

    fn execute_group(&mut self, now: u64, id: u32, packet: &mut Packet, effects: &mut Effects) {
        if packet.depth >= MAX_DEPTH {
            return;
        }
        let hash = flow_hash(&packet.key());
        let ports = &self.ports;
        let is_live = |number: u32| ports.get(&number).is_some_and(|port| port.is_up());
        let chosen = self.groups.choose(id, packet.frame.len(), hash, &is_live);
        for index in chosen {
            let bucket = self.groups.get(id).and_then(|group| group.buckets.get(index));
            let Some(actions) = bucket.map(|bucket| bucket.actions.clone()) else { continue };
            let mut set = ActionSet::default();
            actions.iter().for_each(|action| set.write(action));
            self.execute(now, &set.into_ordered(), &mut packet.copy(), effects);
        }
    }

    fn output(
        &mut self,
        now: u64,
        to: u32,
        max_len: u16,
        packet: &mut Packet,
        effects: &mut Effects,
    ) {
        match to {
            port::CONTROLLER => self.punt(packet, Some(max_len), false, effects),
            port::IN_PORT => self.send(packet.in_port, packet, effects),
            port::ALL => self.send_to_many(packet, |_| true, effects),
            port::FLOOD => self.send_to_many(packet, |bits| bits & config::NO_FLOOD == 0, effects),
            port::NORMAL => self.normal(packet, effects),
            port::TABLE if packet.from_controller => {
                let again = self.packet(packet.in_port, packet.frame.clone());
                self.walk_tables(now, again, effects);
            }
            // Only IN_PORT sends a packet back to its ingress port (1.0, section 5.3.3; 1.3,
            // section 5.12).
            to if to == packet.in_port => {}
            to => self.send(to, packet, effects),
        }
    }

    /// Forwards as a learning switch: learns the source, and sends the packet to the port of the destination.
    fn normal(&mut self, packet: &Packet, effects: &mut Effects) {
        let key = packet.key();
        let vlan = key.get(Field::VlanVid) as u16;
        let (source, destination) = (key.get(Field::DlSrc) as u64, key.get(Field::DlDst) as u64);
        const MULTICAST: u64 = 1 << 40;
        if source & MULTICAST == 0 && self.stations.len() < MAX_STATIONS {
            self.stations.insert((vlan, source), packet.in_port);
        }
        match self.stations.get(&(vlan, destination)) {
            Some(&known) if destination & MULTICAST == 0 => {
                if known != packet.in_port {
                    self.send(known, packet, effects);
                }
            }
            _ => self.send_to_many(packet, |bits| bits & config::NO_FLOOD == 0, effects),
        }
    }

    /// Sends the packet to every port except its ingress port. The local port is included, as in
    /// Open vSwitch.
    fn send_to_many(
        &mut self,
        packet: &Packet,
        wanted: impl Fn(u32) -> bool,
        effects: &mut Effects,
    ) {
        let numbers: Vec<u32> = self
            .ports
            .values()
            .filter(|port| port.made.number != packet.in_port && wanted(port.config))
            .map(|port| port.made.number)
            .collect();
        for number in numbers {
            self.send(number, packet, effects);
        }
    }

    fn send(&mut self, number: u32, packet: &Packet, effects: &mut Effects) {
        if packet.original.as_ref().is_some_and(|original| *original != packet.frame) {
            return;
        }
        let queue = if self.ignores_queues { 0 } else { packet.queue };
        if let Some(port) = self.ports.get_mut(&number)
            && port.send(packet.frame.len(), queue)
        {
            let frame = packet.frame.clone();
            effects.sent.push(Transmit { port: number, queue, frame });
        }
    }

    fn punt(
        &mut self,
        packet: &Packet,
        max_len: Option<u16>,
        implicit_miss: bool,
        effects: &mut Effects,
    ) {
        let is_muted = |port: &crate::ports::Port| port.config & config::NO_PACKET_IN != 0;
        if self.ports.get(&packet.in_port).is_some_and(is_muted) {
            return;
        }
        effects.events.push(Event::PacketIn(ToController {
            frame: packet.frame.clone(),
            in_port: packet.in_port,
            reason: packet.reason,
            table: packet.table,
            cookie: packet.cookie,
            metadata: packet.metadata,
            tunnel: packet.tunnel,
            max_len,
            implicit_miss,
        }));
    }
}

/// The maximum number of stations that NORMAL stores.
const MAX_STATIONS: usize = 8192;

enum Next {
    Table(u8),
    End,
    Dropped,
}

/// The hash that selects a bucket of a select group (FNV-1a). All packets of a flow have the same
/// hash.
fn flow_hash(key: &Key) -> u64 {
    const FIELDS: [Field; 11] = [
        Field::DlSrc,
        Field::DlDst,
        Field::DlType,
        Field::VlanVid,
        Field::NwProto,
        Field::NwSrc,
        Field::NwDst,
        Field::Ipv6Src,
        Field::Ipv6Dst,
        Field::TpSrc,
        Field::TpDst,
    ];
    let hash = FIELDS
        .iter()
        .flat_map(|field| key.get(*field).to_be_bytes())
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    // The low bits of FNV are weak, and the modulo of a small total uses only the low bits.
    hash ^ (hash >> 32)
}
