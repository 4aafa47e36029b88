//! One server's part of a plan that all servers enact together.
//!
//! ```text
//!   guest's port ── tc ingress ── prio 1: clone to "weirh0" ══ "weirc0" ── receiver: own samples
//!                             └── prio 2: clone to "weiro0x2" ══ VXLAN ══▶ server 2, "weiri0x1" ── its receiver
//! ```
//!
//! Interfaces have two generations, 0 and 1: the interfaces of a new plan are made while the interfaces of the old plan
//! are in use. A tunnel has its own VXLAN identifier for each direction and generation. Therefore the receiver
//! separates samples of the old plan and reports the samples with the rate of the old plan.
//!
//! A station has no state of the other servers: [`sampling::control::Enactment`] determines the order of steps. Filters
//! are only on guests' ports, and send clones to interfaces that the station made; those interfaces have no filters.
//! Therefore a mirrored frame is not mirrored again.
//!
//! The station runs no program and opens no ring: the [`Machine`] does both. Start reading at [`Station`].

mod receiver;

pub use receiver::{Processing, Receiver, ReceiverOptions, Reporter};

use crate::error::{Error, Result};
use crate::mirror::{self, Destination, VXLAN_PORT};
use sampling::control::{Assignment, Epoch, Import, Step};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

/// A server's knowledge of itself and of the other servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The number of the server. The sub-agent of the server's traffic in sFlow is this number plus one.
    pub index: usize,
    /// The address at which tunnels to this server end.
    pub address: Ipv4Addr,
    /// The other servers: number, and address at which tunnels to the server end.
    pub peers: Vec<(usize, Ipv4Addr)>,
    /// The ports at which guests' packets arrive.
    pub ports: Vec<Port>,
    /// The network of each tenant.
    pub tenants: Vec<(Ipv4Addr, u8)>,
    /// The address of the collector.
    pub collector: SocketAddr,
    /// The processing of each sample.
    pub processing: Processing,
}

/// A guest's port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The interface.
    pub name: String,
    /// The tenant of the port.
    pub tenant: Option<usize>,
}

/// The operations that a station needs from its machine.
pub trait Machine {
    /// Reads one interface until the interface disappears.
    type Receiver;
    /// Runs `ip -batch`.
    ///
    /// # Errors
    /// The error text of `ip`.
    fn ip(&mut self, script: &str) -> Result<(), String>;
    /// Runs `tc -batch`.
    ///
    /// # Errors
    /// The error text of `tc`.
    fn tc(&mut self, script: &str) -> Result<(), String>;
    /// Starts to process the frames that an interface receives.
    ///
    /// # Errors
    /// The reason why that is not possible.
    fn receive(&mut self, interface: &str, import: &Import) -> Result<Self::Receiver, String>;
}

/// The sampling of one server.
pub struct Station<M: Machine> {
    setup: Setup,
    machine: M,
    generations: [Option<Generation<M::Receiver>>; 2],
    /// The generation of the present filters, and the generation before.
    active: Option<usize>,
    before: Option<usize>,
    has_filters: bool,
}

struct Generation<R> {
    epoch: Epoch,
    interfaces: Vec<String>,
    receivers: Vec<R>,
    /// For each port: the destination servers and their mirror destinations.
    sends: Vec<(String, Vec<(usize, Destination)>)>,
}

/// The base of the station's VXLAN identifiers.
const TUNNELS: u32 = 0x5e_0000;
/// An identifier has room for two server numbers and a generation.
const MOST_SERVERS: usize = 256;

impl<M: Machine> Station<M> {
    /// A server that samples nothing. The function removes the interfaces and filters of an earlier station.
    ///
    /// # Errors
    /// [`Error::Option`] when there are more servers than tunnel identifiers, or a port has an invalid name.
    pub fn new(setup: Setup, mut machine: M) -> Result<Station<M>> {
        let largest = setup.peers.iter().map(|(index, _)| *index).chain([setup.index]).max();
        if largest.is_some_and(|index| index >= MOST_SERVERS) {
            return Err(Error::Option(format!("more than {MOST_SERVERS} servers")));
        }
        for port in &setup.ports {
            // The command fails when there are no filters; that is fine.
            let _ = machine.tc(&mirror::clear(&port.name)?);
        }
        for generation in 0..2 {
            let local = [local_names(generation)[0].clone()];
            let peers = setup.peers.iter();
            let tunnels = peers
                .flat_map(|(peer, _)| [out_name(generation, *peer), in_name(generation, *peer)]);
            for interface in local.into_iter().chain(tunnels) {
                let _ = machine.ip(&format!("link delete {interface}\n"));
            }
        }
        Ok(Station {
            setup,
            machine,
            generations: [None, None],
            active: None,
            before: None,
            has_filters: false,
        })
    }

    /// Creates the receivers of a plan, and computes the filters of the plan.
    ///
    /// # Errors
    /// The error as text; after an error nothing of the plan is left.
    pub fn prepare(&mut self, plan: &Assignment) -> Result<(), String> {
        let at = usize::from(plan.generation.min(1));
        if self.active == Some(at) {
            return Err(format!("generation {at} is in use"));
        }
        self.remove(at);
        let result = self.make(at, plan);
        if result.is_err() {
            self.remove(at);
        }
        result
    }

    /// Executes any step other than `Prepare`.
    ///
    /// # Errors
    /// The error as text; after an error the station sends as before.
    pub fn step(&mut self, step: Step) -> Result<(), String> {
        match step {
            Step::Prepare(_) => Err("a plan to prepare has to be given".to_owned()),
            Step::Commit(epoch) => {
                let at = self.find(epoch).ok_or("that plan was not prepared")?;
                let before = self.active;
                self.send_by(Some(at)).inspect_err(|_| {
                    // The station sends as before; if that fails as well, the station sends nothing.
                    let _ = self.send_by(before).or_else(|_| self.send_by(None));
                })?;
                self.before = before;
                Ok(())
            }
            Step::Restore(epoch) => match self.find(epoch).filter(|at| self.active == Some(*at)) {
                Some(_) => {
                    let before = self.before.take();
                    self.send_by(before).or_else(|_| self.send_by(None))
                }
                None => Ok(()),
            },
            Step::Retire(epoch) => {
                let old = (0..2).filter(|at| self.epoch(*at).is_some_and(|one| one != epoch));
                old.collect::<Vec<_>>().into_iter().for_each(|at| self.remove(at));
                self.before = None;
                Ok(())
            }
            Step::Drop(epoch) => {
                if let Some(at) = self.find(epoch) {
                    self.remove(at);
                }
                Ok(())
            }
        }
    }

    /// Stops sending to that server, under every plan.
    ///
    /// # Errors
    /// The error as text; after an error the station sends nothing.
    pub fn cut_off(&mut self, server: usize) -> Result<(), String> {
        self.forget(|to| to == server)
    }

    /// Stops all sending under every known plan, also to the server itself.
    ///
    /// # Errors
    /// The error as text.
    pub fn stop(&mut self) -> Result<(), String> {
        self.forget(|_| true)
    }

    /// Whether the station samples.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        self.has_filters
    }

    /// The receivers of samples, by plan.
    pub fn receivers(&self) -> impl Iterator<Item = &M::Receiver> {
        self.generations.iter().flatten().flat_map(|generation| &generation.receivers)
    }

    /// Removes everything that the station made.
    pub fn clear(&mut self) {
        let _ = self.send_by(None);
        (0..2).for_each(|at| self.remove(at));
    }

    fn forget(&mut self, which: impl Fn(usize) -> bool) -> Result<(), String> {
        let mut is_in_force = false;
        for (at, generation) in self.generations.iter_mut().enumerate() {
            for (_, sends) in generation.iter_mut().flat_map(|one| &mut one.sends) {
                let count = sends.len();
                sends.retain(|(to, _)| !which(*to));
                is_in_force |= sends.len() < count && self.active == Some(at);
            }
        }
        if !is_in_force {
            return Ok(());
        }
        let active = self.active;
        self.send_by(active).inspect_err(|_| {
            let _ = self.send_by(None);
        })
    }

    /// Replaces the present filters by the filters of that generation, with one `tc` for all ports.
    fn send_by(&mut self, generation: Option<usize>) -> Result<(), String> {
        let mut script = String::new();
        if self.has_filters {
            for port in &self.setup.ports {
                script += &mirror::clear(&port.name).map_err(|error| error.to_string())?;
            }
        }
        let sends = generation.and_then(|at| self.generations.get(at)?.as_ref());
        let ports: Vec<&str> = self.setup.ports.iter().map(|port| port.name.as_str()).collect();
        let has_filters = sends.is_some();
        for (port, sends) in sends.iter().flat_map(|one| &one.sends) {
            let destinations: Vec<Destination> = sends.iter().map(|(_, to)| to.clone()).collect();
            let filters = mirror::script(port, &destinations, &ports);
            script += &filters.map_err(|error| error.to_string())?;
        }
        match self.machine.tc(&script) {
            Ok(()) => {
                (self.has_filters, self.active) = (has_filters, generation);
                Ok(())
            }
            Err(why) => {
                // The command stopped at some line: the station removes all filters, port by port.
                for port in &self.setup.ports {
                    if let Ok(script) = mirror::clear(&port.name) {
                        let _ = self.machine.tc(&script);
                    }
                }
                (self.has_filters, self.active) = (false, None);
                Err(why)
            }
        }
    }

    fn make(&mut self, at: usize, plan: &Assignment) -> Result<(), String> {
        let mut script = String::new();
        let mut interfaces = Vec::new();
        let own = self.setup.index;
        let sends_here = plan.sends.iter().any(|share| share.to == own);
        if sends_here || plan.receives.iter().any(|import| import.from == own) {
            let [here, other] = local_names(at);
            // Writing to a String cannot fail.
            let _ = writeln!(script, "link add {here} type veth peer name {other}");
            let _ = writeln!(script, "link set {here} up\nlink set {other} up");
            interfaces.push(here);
        }
        let out = plan.sends.iter().map(|share| share.to).filter(|to| *to != own);
        let mut out: Vec<usize> = out.collect();
        out.sort_unstable();
        out.dedup();
        let from = plan.receives.iter().map(|import| import.from).filter(|from| *from != own);
        let ways = out.iter().map(|to| (out_name(at, *to), *to, tunnel(own, *to, at)));
        let ways = ways.chain(from.map(|from| (in_name(at, from), from, tunnel(from, own, at))));
        for (name, peer, identifier) in ways {
            let address = self.setup.peers.iter().find(|(index, _)| *index == peer);
            let (_, address) = address.ok_or_else(|| format!("there is no server {peer}"))?;
            let _ = writeln!(
                script,
                "link add {name} type vxlan id {identifier} local {} remote {address} dstport {VXLAN_PORT} nolearning",
                self.setup.address
            );
            let _ = writeln!(script, "link set {name} up");
            interfaces.push(name);
        }
        let sends = self.setup.ports.iter().map(|port| {
            let its = plan.sends.iter();
            let its = its.filter(|share| share.tenant.is_none() || share.tenant == port.tenant);
            let way = |to| if to == own { local_names(at)[0].clone() } else { out_name(at, to) };
            let send = |share: &sampling::control::Share| {
                let interface = way(share.to);
                // The port belongs to one tenant: the filters of the port need no match on the tenant.
                (share.to, Destination { share: share.rate, tenant: None, interface })
            };
            (port.name.clone(), its.map(send).collect())
        });
        let sends = sends.collect();
        let generation = Generation { epoch: plan.epoch, interfaces, receivers: Vec::new(), sends };
        let Some(place) = self.generations.get_mut(at) else { return Ok(()) };
        let place = place.insert(generation);
        self.machine.ip(&script)?;
        for import in &plan.receives {
            let [_, local] = local_names(at);
            let name = if import.from == own { local } else { in_name(at, import.from) };
            place.receivers.push(self.machine.receive(&name, import)?);
        }
        Ok(())
    }

    fn remove(&mut self, at: usize) {
        if self.active == Some(at) {
            let _ = self.send_by(None);
        }
        let Some(generation) = self.generations.get_mut(at).and_then(Option::take) else { return };
        drop(generation.receivers);
        for interface in generation.interfaces {
            // The interface may not exist.
            let _ = self.machine.ip(&format!("link delete {interface}\n"));
        }
    }

    fn epoch(&self, at: usize) -> Option<Epoch> {
        Some(self.generations.get(at)?.as_ref()?.epoch)
    }

    fn find(&self, epoch: Epoch) -> Option<usize> {
        (0..2).find(|at| self.epoch(*at) == Some(epoch))
    }
}

impl<M: Machine> Drop for Station<M> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Both ends of the veth pair to the server's own receiver.
fn local_names(generation: usize) -> [String; 2] {
    [format!("weirh{generation}"), format!("weirc{generation}")]
}

fn out_name(generation: usize, to: usize) -> String {
    format!("{OUT}{generation}x{to}")
}

const OUT: &str = "weiro";

/// Whether samples leave through that interface to another server.
#[must_use]
pub fn is_out(interface: &str) -> bool {
    interface.starts_with(OUT)
}

fn in_name(generation: usize, from: usize) -> String {
    format!("weiri{generation}x{from}")
}

fn tunnel(from: usize, to: usize, generation: usize) -> u32 {
    TUNNELS + ((from * MOST_SERVERS + to) * 2 + generation) as u32
}

#[cfg(test)]
mod tests;
