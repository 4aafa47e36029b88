//! `modify`: measures delay, deviation and loss of plain forwarding, of each modification and of combinations (OFLOPS,
//! section 4.1, table 2; the modules `action_delay`, `action_scalability`, `vlan_mod` of OFLOPS).
//!
//! A probe that was forwarded without the modification, or with a wrong checksum, gives a finding.

use std::net::Ipv4Addr;
use std::str::FromStr;

use packet::VlanTag;

use crate::module::Module;
use crate::modules::experiment::{Common, Experiment, MILLISECOND};
use crate::modules::path::{Path, Trial};
use crate::probe::headers;
use crate::record::Case;
use crate::rule::Action;

/// A modification of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Modification {
    /// The Ethernet source address.
    SourceMac,
    /// The Ethernet destination address.
    DestinationMac,
    /// The IPv4 source address.
    SourceIp,
    /// The IPv4 destination address.
    DestinationIp,
    /// The type of service.
    Tos,
    /// The UDP source port.
    SourcePort,
    /// The UDP destination port.
    DestinationPort,
    /// The VLAN priority; the modification adds a tag.
    VlanPriority,
    /// The VLAN id; the modification adds a tag.
    VlanId,
    /// Removes the tag; the probes of this modification have a tag.
    StripVlan,
}

impl Modification {
    /// The ten modifications of OpenFlow 1.0.
    pub const ALL: [Modification; 10] = [
        Modification::SourceMac,
        Modification::DestinationMac,
        Modification::SourceIp,
        Modification::DestinationIp,
        Modification::Tos,
        Modification::SourcePort,
        Modification::DestinationPort,
        Modification::VlanPriority,
        Modification::VlanId,
        Modification::StripVlan,
    ];

    /// The name in commands and results.
    pub fn name(self) -> &'static str {
        match self {
            Modification::SourceMac => "source-mac",
            Modification::DestinationMac => "destination-mac",
            Modification::SourceIp => "source-ip",
            Modification::DestinationIp => "destination-ip",
            Modification::Tos => "tos",
            Modification::SourcePort => "source-port",
            Modification::DestinationPort => "destination-port",
            Modification::VlanPriority => "vlan-priority",
            Modification::VlanId => "vlan-id",
            Modification::StripVlan => "strip-vlan",
        }
    }

    /// The action of the modification; no unmodified probe has the values of the action.
    fn action(self) -> Action {
        match self {
            Modification::SourceMac => Action::SetSourceMac([2, 0x57, 0x45, 1, 1, 1]),
            Modification::DestinationMac => Action::SetDestinationMac([2, 0x57, 0x45, 1, 1, 2]),
            Modification::SourceIp => Action::SetSource(Ipv4Addr::new(198, 19, 255, 1)),
            Modification::DestinationIp => Action::SetDestination(Ipv4Addr::new(198, 19, 255, 2)),
            Modification::Tos => Action::SetTos(0x48),
            Modification::SourcePort => Action::SetSourcePort(9001),
            Modification::DestinationPort => Action::SetDestinationPort(9002),
            Modification::VlanPriority => Action::SetVlanPriority(5),
            Modification::VlanId => Action::SetVlanId(123),
            Modification::StripVlan => Action::StripVlan,
        }
    }

    fn needs_tag(self) -> bool {
        matches!(self, Modification::VlanPriority | Modification::VlanId)
    }
}

impl FromStr for Modification {
    type Err = String;

    fn from_str(text: &str) -> Result<Modification, String> {
        let known = Modification::ALL.into_iter().find(|it| it.name() == text);
        known.ok_or_else(|| {
            let names: Vec<_> = Modification::ALL.iter().map(|it| it.name()).collect();
            format!("{text:?} is not one of {}", names.join(", "))
        })
    }
}

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Modify {
    /// The parameters of all modules.
    pub common: Common,
    /// The duration of each repetition, ns.
    pub duration: u64,
    /// The sets of modifications of an entry; an entry with an empty set only forwards.
    pub sets: Vec<Vec<Modification>>,
}

impl Modify {
    /// Forwarding, each modification, and then 2, 4, 6 and 9 modifications at once.
    pub fn new(common: Common) -> Modify {
        let all = Modification::ALL;
        let mut sets = vec![Vec::new()];
        sets.extend(all.iter().map(|one| vec![*one]));
        sets.extend([2, 4, 6, 9].map(|count| all.iter().copied().take(count).collect()));
        Modify { common, duration: 1_000 * MILLISECOND, sets }
    }

    fn trial(&self, set: &[Modification]) -> Trial {
        let name = match set {
            [] => "forward".to_owned(),
            set => set.iter().map(|it| it.name()).collect::<Vec<_>>().join("+"),
        };
        let mut headers = headers(0);
        let strips = set.contains(&Modification::StripVlan);
        if strips {
            headers.vlan = Some(VlanTag { id: 100, priority: 3 });
        }
        let mut actions = Vec::new();
        if !strips && set.iter().any(|it| it.needs_tag()) {
            actions.push(Action::PushVlan);
        }
        actions.extend(set.iter().map(|it| it.action()));
        let case = Case::new().with("actions", set.len()).with("set", name);
        let length = self.common.length.max(packet::ProbeTemplate::shortest(&headers));
        Trial { case, actions, queue: None, headers, length, rate: self.common.rate }
    }
}

impl Experiment for Modify {
    fn name(&self) -> &str {
        "modify"
    }

    fn module(&self) -> Box<dyn Module> {
        let trials = self.sets.iter().map(|set| self.trial(set)).collect();
        Box::new(Path::new(trials, &self.common, self.duration))
    }
}
