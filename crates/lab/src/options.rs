//! How a lab is to be made: everything beside its topology.

use std::str::FromStr;

use crate::controller::Controller;
use crate::error::Error;
use crate::names;
use crate::state::StateDirectory;
use crate::topology::Rate;

/// How a lab is to be made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The lab's name; the first free of `lab1`, `lab2`, ... when `None`.
    pub name: Option<String>,
    /// Where it is remembered.
    pub state: StateDirectory,
    /// Where the switches' controllers are; none makes learning switches.
    pub controllers: Vec<Controller>,
    /// OpenFlow versions that the switches offer; Open vSwitch's default (all) when empty.
    pub protocols: Vec<Protocol>,
    /// By what the switches forward.
    pub datapath: Datapath,
    /// What switches do without a controller; [`FailMode::Secure`] when there are controllers,
    /// [`FailMode::Standalone`] when there are none.
    pub fail_mode: Option<FailMode>,
    /// Queues 0, 1, ... that every port of every switch gets, by the most that each lets through; none is no queueing of
    /// Open vSwitch's. See [`crate::Lab::set_queues`].
    pub queues: Vec<Rate>,
    /// Gives every host every other host's hardware address, so that there is no ARP.
    pub static_arp: bool,
    /// Leaves IPv6 on in the hosts, which then send neighbour discovery unasked.
    pub ipv6: bool,
    /// Ties the lab to the calling process: [`crate::Lab::down_abandoned`] removes it when that
    /// process is gone. Set it wherever a [`crate::LabGuard`] is used.
    pub ephemeral: bool,
}

/// By what switches forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Datapath {
    /// The one of `ovs-vswitchd` itself, on any kernel.
    #[default]
    Netdev,
    /// The kernel's, which is faster, if it has the module `openvswitch`.
    System,
}

impl Datapath {
    /// As Open vSwitch's `datapath_type` has it.
    pub fn name(self) -> &'static str {
        match self {
            Datapath::Netdev => "netdev",
            Datapath::System => "system",
        }
    }
}

/// What a switch does while it has no controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailMode {
    /// It drops what no flow says how to forward.
    Secure,
    /// It learns addresses like an ordinary switch. In a topology with loops and without
    /// controllers it also runs the rapid spanning tree protocol, which takes some seconds.
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

    /// Open vSwitch's name for it.
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
