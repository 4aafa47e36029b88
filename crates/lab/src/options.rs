//! The options of a lab, in addition to its topology.

use std::str::FromStr;

use crate::controller::Controller;
use crate::error::Error;
use crate::names;
use crate::state::StateDirectory;
use crate::topology::Rate;

/// The options of a lab.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The lab's name. `None` means the first free name of `lab1`, `lab2`, ....
    pub name: Option<String>,
    /// The state directory that records the lab.
    pub state: StateDirectory,
    /// The controllers of the switches. An empty list makes learning switches.
    pub controllers: Vec<Controller>,
    /// The OpenFlow versions that the switches offer. An empty list means Open vSwitch's default
    /// (all versions).
    pub protocols: Vec<Protocol>,
    /// The datapath of the switches.
    pub datapath: Datapath,
    /// The behaviour of switches without a controller connection. `None` means [`FailMode::Secure`]
    /// for a lab with controllers, and [`FailMode::Standalone`] for a lab without controllers.
    pub fail_mode: Option<FailMode>,
    /// The maximum rates of the queues 0, 1, ... of every port of every switch. An empty list means no queues of Open
    /// vSwitch. See [`crate::Lab::set_queues`].
    pub queues: Vec<Rate>,
    /// Gives every host the hardware addresses of all other hosts, so that hosts send no ARP.
    pub static_arp: bool,
    /// Leaves IPv6 on in the hosts, which then send neighbour discovery by themselves.
    pub ipv6: bool,
    /// Binds the lab to the calling process. [`crate::Lab::down_abandoned`] removes the lab after
    /// that process has ended. Set this option for every lab with a [`crate::LabGuard`].
    pub ephemeral: bool,
}

/// The datapath of switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Datapath {
    /// The userspace datapath of `ovs-vswitchd`, which runs on any kernel.
    #[default]
    Netdev,
    /// The datapath of the kernel, which is faster, and needs the kernel module `openvswitch`.
    System,
}

impl Datapath {
    /// The value of Open vSwitch's `datapath_type`.
    pub fn name(self) -> &'static str {
        match self {
            Datapath::Netdev => "netdev",
            Datapath::System => "system",
        }
    }
}

/// The behaviour of a switch without a controller connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailMode {
    /// The switch drops packets without a matching flow entry.
    Secure,
    /// The switch learns addresses like an ordinary switch. In a topology with loops and without
    /// controllers the switch also runs the rapid spanning tree protocol, which takes some seconds.
    Standalone,
}

/// A version of OpenFlow that switches may offer, written `OpenFlow13` or `1.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol(&'static str);

impl Protocol {
    /// OpenFlow 1.0.
    pub const OPENFLOW10: Protocol = Protocol("OpenFlow10");
    /// OpenFlow 1.3.
    pub const OPENFLOW13: Protocol = Protocol("OpenFlow13");

    const ALL: [(&str, Protocol); 6] = [
        ("1.0", Protocol::OPENFLOW10),
        ("1.1", Protocol("OpenFlow11")),
        ("1.2", Protocol("OpenFlow12")),
        ("1.3", Protocol::OPENFLOW13),
        ("1.4", Protocol("OpenFlow14")),
        ("1.5", Protocol("OpenFlow15")),
    ];

    /// Open vSwitch's name of the version.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let known = Protocol::ALL
            .iter()
            .find(|(short, long)| *short == text || long.0.eq_ignore_ascii_case(text));
        known.map(|(_, protocol)| *protocol).ok_or_else(|| Error::Option {
            option: "protocols",
            message: format!(
                "{text:?} is not a version such as OpenFlow13 or 1.3{}",
                names::suggestion(text, Protocol::ALL.iter().map(|(_, long)| long.0))
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols() {
        let cases = [
            ("1.0", Some("OpenFlow10")),
            ("openflow13", Some("OpenFlow13")),
            ("1.6", None),
            ("OpenFlow130", None),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Protocol>().ok().map(Protocol::name), expected, "{text:?}");
        }
        let error = "OpenFlow133".parse::<Protocol>().map_err(|error| error.to_string());
        assert!(error.unwrap_err().contains("did you mean \"OpenFlow13\"?"));
    }
}
