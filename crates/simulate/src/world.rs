//! The network as the simulation uses it: servers, and distances to the switches that they are at.

use crate::error::Error;
use fabric::paths::Distances;
use fabric::{End, LinkId, Network, Path, SwitchIndex};
use std::collections::BTreeMap;

/// A network with servers.
#[derive(Clone, Debug)]
pub struct World {
    network: Network,
    servers: Vec<Server>,
    /// To each switch with servers.
    distances: BTreeMap<SwitchIndex, Distances>,
}

/// A server at an edge port.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Its switch.
    pub switch: SwitchIndex,
    /// The link that it sends on.
    pub sends: LinkId,
    /// The link that it receives on.
    pub receives: LinkId,
    /// Of its interface, in bits per second.
    pub capacity: u64,
}

impl World {
    /// Every host of the network is a server.
    pub fn new(network: Network) -> Result<World, Error> {
        let server = |(_, port)| {
            let (sends, receives) = network.edge(port)?;
            let link = network.link(sends);
            match link.to {
                End::Switch { index, .. } => {
                    let capacity = link.capacity.bits_per_second();
                    Ok(Server { switch: index, sends, receives, capacity })
                }
                End::Hosts(port) => Err(fabric::Error::NotAnEdgePort(port)),
            }
        };
        let servers = network.hosts().map(server).collect::<Result<Vec<_>, _>>()?;
        let mut distances = BTreeMap::new();
        for server in &servers {
            let to = server.switch;
            distances.entry(to).or_insert_with(|| Distances::to(&network, to));
        }
        let first = servers.first().filter(|_| servers.len() > 1).ok_or(Error::NoServers)?;
        let from_first = distances.get(&first.switch);
        let is_reached = |it: &Server| from_first.is_some_and(|to| to.hops(it.switch).is_some());
        if !servers.iter().all(is_reached) {
            return Err(Error::Unconnected);
        }
        Ok(World { network, servers, distances })
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The servers.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// Distances to the switch of a server.
    ///
    /// # Panics
    /// When it is no server's switch, as indexing does.
    pub fn towards(&self, switch: SwitchIndex) -> &Distances {
        &self.distances[&switch]
    }

    /// All links of a flow from server to server, by that path between their switches.
    pub fn route(&self, from: usize, to: usize, path: &Path) -> Vec<LinkId> {
        let (from, to) = (self.servers[from].sends, self.servers[to].receives);
        std::iter::once(from).chain(path.links().iter().copied()).chain([to]).collect()
    }
}
