//! Checks the tenants' own networks, and their places on the declared topology.

use std::collections::BTreeMap;

use fabric::embedding::{
    Carries, Embedding, Part, Reason, Refusal, Routed, Spec, TrunkStatus, VirtualPortId,
};
use fabric::{LldpKey, TenantId};
use hypervisor::PortState;

use super::{Checker, Severity, Topic};
use crate::config::{self, wanted, why};
use crate::topology::State;

/// The speed of ports that report no speed: such links count as 1 Gbit.
const UNSAID: u32 = 0;

/// The most ports in a FEATURES_REPLY of OpenFlow 1.0, which is one message: 32 bytes, and 48 bytes for each port.
const MOST_PORTS_V10: usize = (u16::MAX as usize - 32) / 48;

/// A speed, in kbit/s, that is enough for every link.
const PLENTY: u32 = u32::MAX;

impl Checker<'_> {
    /// Places the tenants' networks on the declared topology, as if all named switches were connected and all ports up.
    pub(super) fn networks(&mut self) {
        let wanted = wanted(&self.config.tenants);
        if wanted.is_empty() {
            return;
        }
        let topology = &self.config.topology;
        let tenant = |id: TenantId| self.config.tenants.get(usize::from(id.0).wrapping_sub(1));
        let named = |id| tenant(id).map_or("", |tenant| tenant.name.as_str()).to_owned();
        let mut remarks = Vec::new();
        let mut say = |severity, id, part: Option<Part>, message: String| {
            if let Some(tenant) = tenant(id)
                && let Some(network) = &tenant.network
            {
                let at = part.map_or(network.at, |part| network.position_of(part));
                remarks.push((severity, at, tenant.name.clone(), message));
            }
        };
        for (&id, spec) in &wanted {
            let [switches, ports, links, hosts] =
                [spec.switches.len(), spec.ports.len(), spec.links.len(), spec.hosts.len()];
            let message = format!(
                "has a network of its own: switches {switches}, edge ports {ports}, links {links}, hosts {hosts}"
            );
            say(Severity::Note, id, None, message);
            for switch in &spec.switches {
                let ends = spec.links.iter().flat_map(|link| link.ends);
                let ports = spec.ports.iter().map(|port| port.port).chain(ends);
                let count = ports.filter(|port| port.switch == switch.dpid).count();
                if count > MOST_PORTS_V10 {
                    let message = format!(
                        "{count} ports: where its switches speak OpenFlow 1.0, a FEATURES_REPLY can list only {MOST_PORTS_V10}, and this switch is not served"
                    );
                    say(Severity::Note, id, Some(Part::Switch(switch.dpid)), message);
                }
            }
        }
        if topology.links.is_empty() {
            // The paths of links are known only for a declared topology.
            for (&id, spec) in wanted.iter().filter(|_| !topology.discovery) {
                if !spec.links.is_empty() {
                    let message = "has links, but [topology] declares none and does not look for any: they will stay down";
                    say(Severity::Finding, id, None, message.to_owned());
                }
            }
        } else {
            let [least, most] = topology.tags;
            let place = |speed| {
                let mut embedding = Embedding::new(least, most);
                let network = declared(topology, &wanted, speed);
                embedding.apply(&network, &wanted).map(|_| embedding)
            };
            let text =
                |refusal: &Refusal| format!("{}: {}", refusal.part, why(&refusal.why, named));
            let mut placed = place(UNSAID);
            // Switches report the speed of ports when they connect, so a lack of bandwidth is no error of the file.
            if let Err(refusals) = &placed
                && topology.bandwidth.is_none()
                && topology.links.iter().any(|link| link.bandwidth.is_none())
                && let Ok(embedding) = place(PLENTY)
            {
                for refusal in refusals {
                    let message = format!(
                        "{}, if the ports of links whose bandwidth is not declared do 1 Gbit",
                        text(refusal)
                    );
                    say(Severity::Note, refusal.tenant, Some(refusal.part), message);
                }
                placed = Ok(embedding);
            }
            match placed {
                Err(refusals) => {
                    for refusal in refusals {
                        let is_found =
                            topology.discovery && matches!(refusal.why, Reason::Unroutable(_));
                        let (severity, but) = match is_found {
                            true => {
                                (Severity::Note, " among the declared links; others may be found")
                            }
                            false => (Severity::Finding, ""),
                        };
                        let message = format!("{}{but}", text(&refusal));
                        say(severity, refusal.tenant, Some(refusal.part), message);
                    }
                }
                Ok(embedding) => {
                    for &id in wanted.keys() {
                        for (trunk, status) in embedding.trunks(id) {
                            let Carries::Link(ends) = trunk.carries else { continue };
                            let message = lies(ends, &status);
                            say(Severity::Note, id, Some(written(&wanted[&id], ends)), message);
                        }
                    }
                }
            }
        }
        for (severity, at, tenant, message) in remarks {
            self.say(severity, Topic::Network, at, &tenant, message);
        }
    }
}

/// A link as a part of the file, where its ends may be in the other order.
fn written(spec: &Spec, ends: [VirtualPortId; 2]) -> Part {
    let link = spec.links.iter().find(|link| link.ends.contains(&ends[0]));
    Part::Link(link.map_or(ends, |link| link.ends))
}

/// The path of a link in words.
fn lies(ends: [VirtualPortId; 2], status: &TrunkStatus<'_>) -> String {
    let [a, b] = ends;
    let way = |routed: &Routed| {
        let switches = routed.wires.iter().map(|wire| wire.from.dpid);
        let last = routed.wires.last().map(|wire| wire.to.dpid);
        let switches: Vec<String> = switches.chain(last).map(|dpid| dpid.to_string()).collect();
        switches.join(", ")
    };
    match (status.active, status.backup, status.trouble) {
        (Some(active), backup, _) => {
            let backup = backup.map(|backup| format!("; its backup by {}", way(backup)));
            format!("link {a} - {b} goes by {}{}", way(active), backup.unwrap_or_default())
        }
        (None, _, Some(trouble)) => format!("link {a} - {b} waits: {trouble}"),
        (None, _, None) => format!("link {a} - {b} is nowhere"),
    }
}

/// The declared topology, with all ports up that the topology or the networks name, at this speed.
fn declared(
    topology: &config::Topology,
    wanted: &BTreeMap<TenantId, Spec>,
    speed: u32,
) -> fabric::Network {
    let mut state = State::new(topology.clone(), LldpKey([0; 16]));
    let ports = topology.links.iter().flat_map(|link| link.between);
    let ports = ports.chain(topology.edges.iter().copied());
    let edges = wanted.values().flat_map(|spec| spec.ports.iter().map(|port| port.at));
    let now = fabric::Instant(0);
    for port in ports.chain(edges) {
        state.handle_port(port, Some(PortState { is_up: true, speed: speed.into() }), now);
    }
    let members = wanted.values().flat_map(|spec| &spec.switches).flat_map(|it| &it.members);
    members.for_each(|&dpid| state.handle_switch(dpid));
    state.network().clone()
}
