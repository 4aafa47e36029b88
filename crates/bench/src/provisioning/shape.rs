//! The requested networks: a physical network with redundant links, and tenants' own networks on this physical network.
//!
//! ```text
//!    leaves 6, 8, …       1 ───────────── 3        leaves 7, 9, …
//!    (each to 1 and 2) ═                     ═     (each to 3 and 4)
//!                         2 ───── 5 ───── 4
//! ```
//!
//! All switches are equal except for their links; each switch has port 1 for a host. Every shortest path from a left
//! leaf to a right leaf crosses the link from 1 to 3, the *trunk*. There is one more path, which is one switch longer.

use crate::plan::Version;
use emulate::{Config, Network, Point, Switch, SwitchIndex, frame::build::ethernet};
use openflow::{ListBuf, VersionSet, v10, v13};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The number of switches in the middle: two for each side, and one on the longer path.
const CORE: usize = 5;
/// The fewest switches: the middle, and two leaves on each side.
pub(super) const LEAST_SWITCHES: usize = CORE + 4;
/// The port of each switch, physical or virtual, for a host.
const EDGE: u32 = 1;
/// The virtual switch's datapath id is this number plus the physical switch's index.
const VIRTUAL: u64 = 0x1001;
/// An Ethernet type for local experiments (IEEE 802).
const ETHERTYPE: u16 = 0x88b5;

/// The index of a switch, and the number of a port of this switch.
pub(super) type Place = (usize, u32);

/// The physical network.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) switches: usize,
    links: Vec<[Place; 2]>,
}

/// A tenant's network, with one virtual switch on each physical switch.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    switches: usize,
    pub(super) links: Vec<[Place; 2]>,
    backups: bool,
}

impl Shape {
    pub(super) fn new(switches: usize) -> Shape {
        let mut next_port = vec![EDGE + 1; switches];
        let mut links = Vec::new();
        let mut join = |a: usize, b: usize| {
            let ports = [a, b].map(|at| {
                let port = next_port[at];
                next_port[at] += 1;
                (at, port)
            });
            links.push(ports);
        };
        for (a, b) in [(0, 2), (1, 4), (4, 3)] {
            join(a, b);
        }
        for leaf in CORE..switches {
            for hub in hubs(leaf) {
                join(leaf, hub);
            }
        }
        Shape { switches, links }
    }

    /// The link that all shortest paths from left to right cross.
    pub(super) fn trunk(&self) -> [Place; 2] {
        self.links.first().copied().unwrap_or_default()
    }

    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// The emulated network.
    pub(super) fn build(&self, version: Version) -> Network {
        let mut network = Network::new();
        for index in 0..self.switches {
            let used = self.links.iter().flatten().filter(|(at, _)| *at == index).count() as u32;
            let mut config = Config::new(index as u64 + 1, EDGE + used);
            config.versions = VersionSet::only(version.openflow());
            config.n_buffers = 0;
            config.n_tables = 4;
            network.add_switch(Switch::new(config));
        }
        for [a, b] in &self.links {
            network.link(point(*a), point(*b));
        }
        network
    }

    /// The physical network in the configuration file.
    pub(super) fn declared(&self) -> String {
        let mut text = String::from("[topology]\nbandwidth = \"10Gbit\"\n");
        for [a, b] in &self.links {
            let (a, b) = (physical(*a), physical(*b));
            // Writing to a String cannot fail.
            let _ = write!(text, "[[topology.links]]\nbetween = [\"{a}\", \"{b}\"]\n");
        }
        text
    }
}

impl Wanted {
    /// All switches in a row, and links between random pairs of switches.
    pub(super) fn anywhere(shape: &Shape, links: usize, backups: bool, seed: u64) -> Wanted {
        let count = shape.switches;
        let mut state = seed;
        let mut random = move || {
            // Knuth's MMIX generator: its high bits are good enough to scatter links.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let pair = |number: usize| match number {
            near if near + 1 < count => (near, near + 1),
            _ => {
                let from = random() % count;
                (from, (from + 1 + random() % (count - 1)) % count)
            }
        };
        Wanted::of((0..links).map(pair), count, backups)
    }

    /// Links from the left to the right, over the trunk.
    pub(super) fn across(shape: &Shape, links: usize, backups: bool) -> Wanted {
        let [left, right] = [1, 0].map(|odd| -> Vec<usize> {
            (CORE..shape.switches).filter(|leaf| leaf % 2 == odd).collect()
        });
        let pair = |number: usize| {
            let turn = number / left.len();
            (left[number % left.len()], right[(number + turn) % right.len()])
        };
        Wanted::of((0..links).map(pair), shape.switches, backups)
    }

    fn of(pairs: impl Iterator<Item = (usize, usize)>, switches: usize, backups: bool) -> Wanted {
        let mut next_port = vec![EDGE + 1; switches];
        let mut end = |at: usize| {
            let port = next_port[at];
            next_port[at] += 1;
            (at, port)
        };
        let links = pairs.map(|(a, b)| [end(a), end(b)]).collect();
        Wanted { switches, links, backups }
    }

    /// The number of ports that the tenant must see: one edge port of each switch, and both ends of each link.
    pub(super) fn ports(&self) -> usize {
        self.switches + 2 * self.links.len()
    }

    pub(super) fn switches(&self) -> usize {
        self.switches
    }

    /// The network in the format of the REST interface.
    pub(super) fn document(&self) -> Value {
        let switches = (0..self.switches)
            .map(|index| json!({"dpid": dpid(index), "on": [format!("{:#x}", index + 1)]}));
        let ports = (0..self.switches).map(
            |index| json!({"switch": dpid(index), "number": EDGE, "at": physical((index, EDGE))}),
        );
        let links = self.links.iter().map(|ends| {
            let between = ends.map(|(at, port)| format!("{} port {port}", dpid(at)));
            match self.backups {
                true => json!({"between": between, "backup": "links"}),
                false => json!({"between": between}),
            }
        });
        let [switches, ports, links] =
            [switches.collect::<Value>(), ports.collect(), links.collect()];
        json!({"switches": switches, "ports": ports, "links": links})
    }

    /// The rules of the tenant's controller, by virtual switch. Packets that enter at the edge for an end of a link go
    /// to this end; all other packets go to the controller. A BARRIER_REQUEST follows the rules.
    pub(super) fn rules(&self, version: Version) -> BTreeMap<u64, Vec<u8>> {
        let mut rules: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for index in 0..self.switches {
            miss(version, rules.entry(index as u64 + VIRTUAL).or_default());
        }
        for &(at, port) in self.links.iter().flatten() {
            rule(version, (at, port), rules.entry(at as u64 + VIRTUAL).or_default());
        }
        for out in rules.values_mut() {
            // A message without a body always fits.
            let _ = match version {
                Version::V1_0 => v10::Message::BarrierRequest.write(BARRIER_XID, out),
                Version::V1_3 => v13::Message::BarrierRequest.write(BARRIER_XID, out),
            };
        }
        rules
    }

    /// A packet for each direction of each link, with the ingress place and the switch of the PACKET_IN.
    pub(super) fn packets(&self) -> Vec<(Point, Vec<u8>, SwitchIndex)> {
        let both = self.links.iter().flat_map(|&[a, b]| [(a, b), (b, a)]);
        let packet = |(from, to): (Place, Place)| {
            let frame = ethernet(address(from), [2, 0, 0, 0, 0, 1], ETHERTYPE, b"weir bench");
            (point((from.0, EDGE)), frame, SwitchIndex(to.0))
        };
        both.map(packet).collect()
    }

    /// The tagged packets for which the switches must have entries: for each physical link on a path, the ingress port
    /// and the VLAN id. `view` is the REST interface's answer about the network. On 1.0 a switch at the end of a
    /// virtual link has such entries only for the tenant's own rules.
    pub(super) fn tagged(view: &Value, version: Version) -> BTreeSet<(usize, u32, u16)> {
        let mut wanted = BTreeSet::new();
        for path in list(view, "paths").iter().flat_map(|it| [list(it, "path"), list(it, "backup")])
        {
            for (at, wire) in path.iter().enumerate() {
                let tags = list(wire, "tags");
                let ends =
                    [("to", tags.first(), at + 1 == path.len()), ("from", tags.last(), at == 0)];
                for (end, tag, is_last) in ends {
                    let port = wire.get(end).and_then(Value::as_str).and_then(read_port);
                    let tag = tag.and_then(Value::as_u64).and_then(|tag| u16::try_from(tag).ok());
                    if let (Some((at, port)), Some(tag)) = (port, tag)
                        && !(is_last && version == Version::V1_0)
                    {
                        wanted.insert((at, port, tag));
                    }
                }
            }
        }
        wanted
    }
}

/// The number of links with `end` on their path, and the number of links without a path.
pub(super) fn crossing(view: &Value, end: Place) -> (usize, usize) {
    let paths = list(view, "paths");
    let crosses = |path: &&Value| {
        let passed = list(path, "path").iter();
        let mut ends = passed.flat_map(|wire| ["from", "to"].map(|key| wire.get(key)));
        ends.any(|it| it.and_then(Value::as_str).and_then(read_port) == Some(end))
    };
    let nowhere = paths.iter().filter(|path| list(path, "path").is_empty()).count();
    (paths.iter().filter(crosses).count(), nowhere)
}

/// The xid of the barrier that ends the tenant's rules.
pub(super) const BARRIER_XID: u32 = 0x5eed;

pub(super) fn point((at, port): Place) -> Point {
    Point { switch: SwitchIndex(at), port }
}

fn hubs(leaf: usize) -> [usize; 2] {
    if leaf % 2 == 1 { [0, 1] } else { [2, 3] }
}

fn dpid(index: usize) -> String {
    format!("{:#x}", index as u64 + VIRTUAL)
}

fn physical((at, port): Place) -> String {
    format!("{:#x} port {port}", at + 1)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Reads a physical port in the format of the REST interface.
fn read_port(text: &str) -> Option<Place> {
    let (dpid, port) = text.split_once(" port ")?;
    let dpid = usize::from_str_radix(&dpid.replace(':', ""), 16).ok()?;
    Some((dpid.checked_sub(1)?, port.parse().ok()?))
}

/// The destination address of packets for an end of a link.
fn address((at, port): Place) -> [u8; 6] {
    let ([high, low], [port_high, port_low]) =
        ((at as u16).to_be_bytes(), (port as u16).to_be_bytes());
    [2, 1, high, low, port_high, port_low]
}

fn rule(version: Version, (at, port): Place, out: &mut Vec<u8>) {
    let to = address((at, port));
    // Rules of one action always fit.
    let _ = match version {
        Version::V1_0 => {
            let actions =
                ListBuf::from([v10::Action::Output { port: v10::PortNo(port as u16), max_len: 0 }]);
            let seen = v10::Wildcards::IN_PORT | v10::Wildcards::DL_DST;
            let match_ = v10::Match {
                wildcards: v10::Wildcards::ALL.without(seen),
                in_port: v10::PortNo(EDGE as u16),
                dl_dst: to,
                ..v10::Match::ANY
            };
            let body = v10::FlowMod { match_, actions: actions.as_list(), ..Default::default() };
            v10::Message::FlowMod(body).write(1, out)
        }
        Version::V1_3 => {
            let mut match_ = v13::MatchBuf::new();
            match_.exact(v13::OxmField::IN_PORT, EDGE.into());
            let to = to.iter().fold(0, |value, byte| value << 8 | u128::from(*byte));
            match_.exact(v13::OxmField::ETH_DST, to);
            add(match_, 1000, v13::PortNo(port), out)
        }
    };
}

/// On 1.3 a switch sends packets to the controller only by an entry; on 1.0 a switch sends misses without an entry.
fn miss(version: Version, out: &mut Vec<u8>) {
    if version == Version::V1_3 {
        // Rules of one action always fit.
        let _ = add(v13::MatchBuf::new(), 0, v13::PortNo::CONTROLLER, out);
    }
}

fn add(
    match_: v13::MatchBuf,
    priority: u16,
    port: v13::PortNo,
    out: &mut Vec<u8>,
) -> Result<(), openflow::TooLong> {
    let actions = ListBuf::from([v13::Action::Output { port, max_len: 128 }]);
    let instructions = ListBuf::from([v13::Instruction::ApplyActions(actions.as_list())]);
    let body = v13::FlowMod {
        match_: match_.as_match(),
        priority,
        instructions: instructions.as_list(),
        ..Default::default()
    };
    v13::Message::FlowMod(body).write(1, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fabric_ports_are_used_once_and_links_across_join_both_leaf_sides() {
        for switches in [LEAST_SWITCHES, 100] {
            let shape = Shape::new(switches);
            assert_eq!(shape.links(), 3 + 2 * (switches - CORE));
            let ends: BTreeSet<Place> = shape.links.iter().flatten().copied().collect();
            assert_eq!(ends.len(), 2 * shape.links());
            let network = shape.build(Version::V1_3);
            assert!(ends.iter().all(|&(at, port)| {
                network.switch(SwitchIndex(at)).is_some_and(|it| it.port(port).is_some())
            }));
            let wanted = Wanted::across(&shape, 50, false);
            assert!(wanted.links.iter().all(|[a, b]| a.0 % 2 == 1 && b.0 % 2 == 0));
            let wanted = Wanted::anywhere(&shape, 300, true, 1);
            assert!(wanted.links.iter().all(|[a, b]| a.0 != b.0 && a.0.max(b.0) < switches));
            assert_eq!(wanted.packets().len(), 600);
        }
    }

    #[test]
    fn expected_tags_and_path_counts_are_read_from_the_rest_reply() {
        let hop = |from: &str, to: &str, tags: Value| json!({"from": from, "to": to, "tags": tags});
        let view = json!({"paths": [
            {"path": [hop("00:00:00:00:00:00:00:06 port 2", "00:00:00:00:00:00:00:01 port 3", json!([2000])),
                      hop("00:00:00:00:00:00:00:01 port 2", "00:00:00:00:00:00:00:03 port 2", json!([2001, 2002]))],
             "backup": [hop("00:00:00:00:00:00:00:06 port 3", "00:00:00:00:00:00:00:03 port 9", json!([2005]))]},
            {"path": []},
        ]});
        let all =
            [(5, 2, 2000), (0, 3, 2000), (0, 2, 2002), (2, 2, 2001), (5, 3, 2005), (2, 9, 2005)];
        assert_eq!(Wanted::tagged(&view, Version::V1_3), BTreeSet::from(all));
        let through = [(0, 3, 2000), (0, 2, 2002)];
        assert_eq!(Wanted::tagged(&view, Version::V1_0), BTreeSet::from(through));
        assert_eq!(crossing(&view, (0, 2)), (1, 1));
        assert_eq!(crossing(&view, (5, 3)), (0, 1));
    }
}
