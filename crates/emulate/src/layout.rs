//! The network topologies for the measurement of controllers (RFC 8456, section 4.1 and appendix
//! A.1). The switches have the dpids 1, 2, …, and each end of the network has one host.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use hashbrown::HashMap;

use crate::config::Config;
use crate::network::{HostIndex, Network, Point, SwitchIndex};
use crate::switch::Switch;

/// A topology. Port 1 of each switch is for a host. The ports from 2 on lead to neighbour switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Every leaf has a link to every spine. Leaves have the dpids 1, 2, …, and spines have the
    /// dpids that follow.
    LeafSpine {
        /// The number of leaf switches. Hosts are connected to leaf switches.
        leaves: u16,
        /// The number of spine switches.
        spines: u16,
    },
    /// A row of switches.
    Linear {
        /// The number of switches.
        switches: u16,
    },
    /// A row of switches with a link between the first and the last switch.
    Ring {
        /// The number of switches, at least three.
        switches: u16,
    },
}

/// One switch on the path of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The switch.
    pub switch: SwitchIndex,
    /// The ingress port of the packet.
    pub in_port: u32,
    /// The egress port of the packet.
    pub out_port: u32,
}

/// The most switches that a layout may have.
const MOST_SWITCHES: u16 = 1000;

impl Layout {
    /// The host at the first switch (the first leaf). The host has number 1, see
    /// [`Network::add_numbered_host`].
    pub const NEAR: HostIndex = HostIndex(0);
    /// The host at the last switch (linear), at the last leaf, or half way round the ring. The host
    /// has number 2.
    pub const FAR: HostIndex = HostIndex(1);

    /// The number of switches.
    pub fn switches(self) -> usize {
        match self {
            Layout::LeafSpine { leaves, spines } => usize::from(leaves) + usize::from(spines),
            Layout::Linear { switches } | Layout::Ring { switches } => switches.into(),
        }
    }

    /// The same topology with this number of switches, or with the minimum of the topology if that
    /// is more.
    #[must_use]
    pub fn with_switches(self, switches: u16) -> Layout {
        match self {
            Layout::LeafSpine { spines, .. } => {
                Layout::LeafSpine { leaves: switches.saturating_sub(spines).max(1), spines }
            }
            Layout::Linear { .. } => Layout::Linear { switches: switches.max(1) },
            Layout::Ring { .. } => Layout::Ring { switches: switches.max(3) },
        }
    }

    /// Whether two switches have more than one path between them, so that flooded packets multiply.
    pub fn has_loops(self) -> bool {
        match self {
            Layout::LeafSpine { leaves, spines } => leaves > 1 && spines > 1,
            Layout::Linear { .. } => false,
            Layout::Ring { .. } => true,
        }
    }

    /// Builds the network. `configure` may change the configuration of each switch. A single switch
    /// has both hosts.
    pub fn build(self, mut configure: impl FnMut(&mut Config)) -> Network {
        let mut network = Network::new();
        let links = self.links();
        let count = self.switches();
        // Port 1 is for the near host. On a single switch the port behind the last link is for the far host.
        let mut next_port = vec![2; count];
        for index in 0..count {
            let degree = links.iter().filter(|(a, b)| *a == index || *b == index).count() as u32;
            let ports = 1 + degree + u32::from(count == 1);
            let mut config = Config::new(index as u64 + 1, ports);
            configure(&mut config);
            network.add_switch(Switch::new(config));
        }
        let mut take = |index: usize| {
            let place = next_port.get_mut(index);
            let port = place.map_or(0, |port| std::mem::replace(port, *port + 1));
            Point { switch: SwitchIndex(index), port }
        };
        for (a, b) in links {
            network.link(take(a), take(b));
        }
        let far = self.far_switch();
        let far_port = if count == 1 { 2 } else { 1 };
        network.add_numbered_host(1, Point { switch: SwitchIndex(0), port: 1 });
        network.add_numbered_host(2, Point { switch: SwitchIndex(far), port: far_port });
        network
    }

    fn far_switch(self) -> usize {
        match self {
            Layout::LeafSpine { leaves, .. } => usize::from(leaves) - 1,
            Layout::Linear { switches } => usize::from(switches) - 1,
            Layout::Ring { switches } => usize::from(switches) / 2,
        }
    }

    fn links(self) -> Vec<(usize, usize)> {
        match self {
            Layout::LeafSpine { leaves, spines } => {
                let spine = |n: u16| usize::from(leaves + n);
                let pairs = |leaf| (0..spines).map(move |n| (usize::from(leaf), spine(n)));
                (0..leaves).flat_map(pairs).collect()
            }
            Layout::Linear { switches } => {
                (1..usize::from(switches)).map(|right| (right - 1, right)).collect()
            }
            Layout::Ring { switches } => {
                let switches = usize::from(switches);
                (0..switches).map(|left| (left, (left + 1) % switches)).collect()
            }
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::LeafSpine { leaves, spines } => write!(f, "leafspine,{leaves},{spines}"),
            Layout::Linear { switches } => write!(f, "linear,{switches}"),
            Layout::Ring { switches } => write!(f, "ring,{switches}"),
        }
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(text: &str) -> Result<Layout, String> {
        let parts: Vec<&str> = text.split(',').collect();
        let number = |text: &str| text.parse::<u16>().ok();
        let layout = match parts.as_slice() {
            ["leafspine", leaves, spines] => {
                number(leaves).zip(number(spines)).and_then(|(leaves, spines)| {
                    let total = u32::from(leaves) + u32::from(spines);
                    let fits = leaves >= 1 && spines >= 1 && total <= MOST_SWITCHES.into();
                    fits.then_some(Layout::LeafSpine { leaves, spines })
                })
            }
            ["linear", switches] => number(switches)
                .filter(|switches| (1..=MOST_SWITCHES).contains(switches))
                .map(|switches| Layout::Linear { switches }),
            ["ring", switches] => number(switches)
                .filter(|switches| (3..=MOST_SWITCHES).contains(switches))
                .map(|switches| Layout::Ring { switches }),
            _ => None,
        };
        layout.ok_or_else(|| {
            format!(
                "{text}: must be leafspine,LEAVES,SPINES or linear,SWITCHES (1 to {MOST_SWITCHES} \
                 switches) or ring,SWITCHES (3 to {MOST_SWITCHES})"
            )
        })
    }
}

/// Finds links and paths.
impl Network {
    /// All links between switches, each in both directions, as the ports at the start and at the
    /// end.
    pub fn links(&self) -> impl Iterator<Item = (Point, Point)> {
        self.switch_wires()
    }

    /// The hops of a shortest path from host to host over links with ports that are up. `None`
    /// means that there is no path.
    pub fn shortest_path(&self, from: HostIndex, to: HostIndex) -> Option<Vec<Hop>> {
        let (start, goal) = (self.place_of(from)?, self.place_of(to)?);
        let is_up = |point: Point| {
            let switch = self.switch(point.switch);
            switch.and_then(|switch| switch.port(point.port)).is_some_and(|port| port.is_up())
        };
        let mut links: Vec<(Point, Point)> =
            self.links().filter(|(a, b)| is_up(*a) && is_up(*b)).collect();
        links.sort_unstable();
        // The link by which the search reached each switch first.
        let mut reached: HashMap<SwitchIndex, Option<(Point, Point)>> = HashMap::new();
        reached.insert(start.switch, None);
        let mut waiting = VecDeque::from([start.switch]);
        while let Some(switch) = waiting.pop_front() {
            for &(a, b) in links.iter().filter(|(a, _)| a.switch == switch) {
                if !reached.contains_key(&b.switch) {
                    reached.insert(b.switch, Some((a, b)));
                    waiting.push_back(b.switch);
                }
            }
        }
        let mut hops = Vec::new();
        let (mut switch, mut out_port) = (goal.switch, goal.port);
        while let Some((a, b)) = *reached.get(&switch)? {
            hops.push(Hop { switch, in_port: b.port, out_port });
            (switch, out_port) = (a.switch, a.port);
        }
        hops.push(Hop { switch, in_port: start.port, out_port });
        hops.reverse();
        Some(hops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_texts_are_parsed_and_printed_or_refused() {
        for text in ["leafspine,2,1", "linear,1", "ring,3"] {
            assert_eq!(text.parse::<Layout>().unwrap().to_string(), text);
        }
        for text in
            ["", "ring,2", "linear,0", "linear,1001", "leafspine,999,2", "leafspine,2", "x,1"]
        {
            let error = text.parse::<Layout>().unwrap_err();
            assert!(error.contains("leafspine,LEAVES,SPINES") && error.contains("1000"), "{error}");
        }
    }

    /// Checks the number of links, and the hops from the near to the far host as (dpid, ingress
    /// port, egress port).
    #[track_caller]
    fn check(text: &str, links: usize, hops: &[(u64, u32, u32)]) {
        let layout: Layout = text.parse().unwrap();
        let network = layout.build(|_| {});
        assert_eq!(network.switches().len(), layout.switches(), "{text}");
        assert_eq!(network.links().count(), links * 2, "{text}");
        let path = network.shortest_path(Layout::NEAR, Layout::FAR).unwrap();
        let found: Vec<_> =
            path.iter().map(|hop| (hop.switch.0 as u64 + 1, hop.in_port, hop.out_port)).collect();
        assert_eq!(found, hops, "{text}");
    }

    #[test]
    fn layouts_have_the_expected_switches_links_and_paths() {
        check("linear,1", 0, &[(1, 1, 2)]);
        check("linear,3", 2, &[(1, 1, 2), (2, 2, 3), (3, 2, 1)]);
        check("ring,4", 4, &[(1, 1, 2), (2, 2, 3), (3, 2, 1)]);
        check("leafspine,2,1", 2, &[(1, 1, 2), (3, 2, 3), (2, 2, 1)]);
        check("leafspine,3,2", 6, &[(1, 1, 2), (4, 2, 4), (3, 2, 1)]);
    }

    #[test]
    fn a_different_path_is_found_when_a_link_is_down() {
        let mut network = "ring,4".parse::<Layout>().unwrap().build(|_| {});
        network.set_link_up(Point { switch: SwitchIndex(0), port: 2 }, false);
        let path = network.shortest_path(Layout::NEAR, Layout::FAR).unwrap();
        let switches: Vec<usize> = path.iter().map(|hop| hop.switch.0).collect();
        assert_eq!(switches, [0, 3, 2]);
        network.set_link_up(Point { switch: SwitchIndex(0), port: 3 }, false);
        assert_eq!(network.shortest_path(Layout::NEAR, Layout::FAR), None);
    }

    #[test]
    fn a_layout_with_another_switch_count_keeps_the_topology_type() {
        for (text, switches, grown) in [
            ("leafspine,2,2", 10, "leafspine,8,2"),
            ("linear,2", 5, "linear,5"),
            ("ring,4", 2, "ring,3"),
        ] {
            let layout: Layout = text.parse().unwrap();
            assert_eq!(layout.with_switches(switches).to_string(), grown);
        }
    }
}
