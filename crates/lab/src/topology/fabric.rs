//! Converts a topology to the network model of the crate `fabric`, for paths, labels and shares.

use std::collections::HashMap;

use fabric::{Bandwidth, Dpid, Duration, MacAddress, Network, PortId, PortNumber};

use super::model::{LinkEnd, Topology};
use super::units::Rate;
use crate::error::{Error, Result};

impl Topology {
    /// Makes the network model with the same switches, ports and links, and each host at its edge port. Links without a
    /// rate get `rate`.
    ///
    /// A link between two hosts is an error, because the network model has no such links. A host with several links is
    /// at the link of its `eth0`.
    pub fn network(&self, rate: Rate) -> Result<Network> {
        let mut network = Network::default();
        let dpids: HashMap<&str, Dpid> =
            self.switches().iter().map(|switch| (&*switch.name, Dpid(switch.dpid))).collect();
        let hosts: HashMap<&str, MacAddress> = self
            .hosts()
            .iter()
            .map(|host| Ok((&*host.name, MacAddress::new(host.mac.0).map_err(wrong)?)))
            .collect::<Result<_>>()?;
        for switch in self.switches() {
            network.add_switch(Dpid(switch.dpid)).map_err(wrong)?;
        }
        let port = |end: &LinkEnd| match dpids.get(&*end.node) {
            Some(&dpid) => PortNumber::new(end.port.into()).map(|p| Some(PortId::new(dpid, p))),
            None => Ok(None),
        };
        for link in self.links() {
            let bits = link.rate.unwrap_or(rate).bits_per_second();
            let capacity = Bandwidth::from_bits_per_second(bits);
            let [a, b] = &link.ends;
            let ports = [port(a).map_err(wrong)?, port(b).map_err(wrong)?];
            for port in ports.into_iter().flatten() {
                network.add_port(port).map_err(wrong)?;
            }
            let (port, host) = match ports {
                [Some(a), Some(b)] => {
                    network.connect(a, b, capacity, Duration::ZERO).map_err(wrong)?;
                    continue;
                }
                [Some(port), None] => (port, b),
                [None, Some(port)] => (port, a),
                [None, None] => {
                    return Err(Error::topology(format!(
                        "a link joins the hosts {:?} and {:?}, with no switch between them",
                        a.node, b.node
                    )));
                }
            };
            network.add_edge(port, capacity, Duration::ZERO).map_err(wrong)?;
            if let Some(&mac) = hosts.get(&*host.node).filter(|_| host.port == 0) {
                network.add_host(mac, port).map_err(wrong)?;
            }
        }
        Ok(network)
    }
}

fn wrong(error: impl std::error::Error) -> Error {
    Error::topology(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(specification: &str, switches: usize, links: usize, hosts: usize) {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        let network = Topology::builtin(specification).unwrap().network(rate).unwrap();
        assert!(network.links().all(|(_, link)| link.is_up()), "{specification}");
        let found = (network.switches().count(), network.links().count(), network.hosts().count());
        assert_eq!(found, (switches, links, hosts), "{specification}");
    }

    #[test]
    fn the_network_model_has_the_expected_switches_links_and_hosts() {
        check("single,3", 1, 6, 3);
        check("leafspine,3,2,4", 5, 36, 12);
        check("fattree,4", 20, 96, 16);
        check("isolation2013", 4, 20, 6);
    }

    #[test]
    fn links_with_a_rate_keep_their_rate_in_the_network_model() {
        let rate = Rate::from_bits_per_second(1_000_000_000).unwrap();
        let network = Topology::builtin("isolation2013").unwrap().network(rate).unwrap();
        let ten = Bandwidth::from_megabits_per_second(10);
        assert!(network.links().all(|(_, link)| link.capacity == ten));
    }

    #[test]
    fn a_link_between_two_hosts_is_refused() {
        let mut builder = Topology::builder();
        builder.host("a").unwrap().host("b").unwrap().link("a", "b", None).unwrap();
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        let error = builder.build().unwrap().network(rate).unwrap_err().to_string();
        assert!(error.contains("no switch between"), "{error}");
    }
}
