//! The servers of `weir sampling run`, from a site file or from a lab.

use crate::protocol::{CpuSource, Setup};
use agent::Tenant;
use agent::station::{self, Port, Processing};
use sampling::{Costs, Error};
use serde::Deserialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The servers, their tenants, and where samples are collected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Where agents send samples, and this program listens.
    pub(crate) collector: SocketAddr,
    #[serde(default)]
    pub(crate) alpha: Option<f64>,
    #[serde(default)]
    pub(crate) beta: Option<f64>,
    #[serde(default)]
    pub(crate) tenants: Vec<SiteTenant>,
    pub(crate) servers: Vec<SiteServer>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SiteTenant {
    pub(crate) name: String,
    /// Such as `10.1.0.0/16`.
    pub(crate) network: String,
    #[serde(default)]
    pub(crate) minimum: f64,
    #[serde(default = "one")]
    pub(crate) weight: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SiteServer {
    pub(crate) name: String,
    /// The address where tunnels to this server end.
    pub(crate) address: Ipv4Addr,
    #[serde(default)]
    pub(crate) namespace: Option<String>,
    #[serde(default = "system_switch")]
    pub(crate) switch: PathBuf,
    pub(crate) bridge: String,
    pub(crate) guests: Vec<Guest>,
    #[serde(default)]
    pub(crate) test: Option<[String; 2]>,
    #[serde(default)]
    pub(crate) cpu: Option<CpuSource>,
    /// The capacity in packets per second, if known.
    #[serde(default)]
    pub(crate) capacity: Option<f64>,
    #[serde(default)]
    pub(crate) minimum: f64,
    /// How to start its agent; empty: this program.
    #[serde(default)]
    pub(crate) agent: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Guest {
    pub(crate) port: String,
    pub(crate) mac: String,
    #[serde(default)]
    pub(crate) tenant: Option<String>,
}

fn one() -> f64 {
    1.0
}

fn system_switch() -> PathBuf {
    PathBuf::from("/run/openvswitch")
}

impl Site {
    /// Reads and checks a site file.
    ///
    /// # Errors
    /// The error, with its place.
    pub fn read(text: &str) -> anyhow::Result<Site> {
        let site: Site = toml::from_str(text)
            .map_err(|error| wrong("the site", error.to_string().trim_end().to_owned()))?;
        if site.servers.is_empty() {
            return Err(wrong("servers", "there are none".to_owned()).into());
        }
        site.costs(None, None)?;
        let tenants = site.tenants()?;
        for (index, tenant) in tenants.iter().enumerate() {
            let meets = |other: &&Tenant| {
                let prefix = tenant.prefix.min(other.prefix);
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                (tenant.network.to_bits() ^ other.network.to_bits()) & mask == 0
            };
            if let Some(other) = tenants.iter().take(index).find(meets) {
                let message =
                    format!("{} and {} have addresses in common", other.name, tenant.name);
                return Err(wrong("tenants", message).into());
            }
        }
        for server in &site.servers {
            for guest in &server.guests {
                site.tenant(guest)?;
            }
        }
        Ok(site)
    }

    /// The same site with these capacities, in packets per second.
    #[must_use]
    pub fn with_capacities(mut self, capacities: &[f64]) -> Site {
        for (server, capacity) in self.servers.iter_mut().zip(capacities) {
            server.capacity = Some(*capacity);
        }
        self
    }

    pub(crate) fn costs(&self, alpha: Option<f64>, beta: Option<f64>) -> Result<Costs, Error> {
        let published = Costs::PUBLISHED;
        let alpha = alpha.or(self.alpha).unwrap_or(published.alpha);
        Costs::new(alpha, beta.or(self.beta).unwrap_or(published.beta))
    }

    /// The tenants, for the collector.
    pub(crate) fn tenants(&self) -> anyhow::Result<Vec<Tenant>> {
        let read = |one: &SiteTenant| {
            format!("{}={}", one.name, one.network).parse().map_err(|why| {
                wrong(&format!("tenant {}", one.name), format!("{:?}: {why}", one.network)).into()
            })
        };
        self.tenants.iter().map(read).collect()
    }

    /// The tenants, for the planner.
    pub(crate) fn planned_tenants(&self) -> Vec<sampling::Tenant> {
        let tenant = |one: &SiteTenant| sampling::Tenant {
            name: one.name.clone(),
            minimum: one.minimum,
            weight: one.weight,
        };
        self.tenants.iter().map(tenant).collect()
    }

    pub(crate) fn tenant(&self, guest: &Guest) -> Result<Option<usize>, Error> {
        let Some(name) = &guest.tenant else { return Ok(None) };
        let found = self.tenants.iter().position(|tenant| tenant.name == *name);
        found.map(Some).ok_or_else(|| {
            wrong(&format!("guest at {}", guest.port), format!("there is no tenant {name:?}"))
        })
    }

    /// The setup for a server's agent.
    pub(crate) fn setup(
        &self,
        index: usize,
        collector: SocketAddr,
        processing: Processing,
        limit: f64,
    ) -> anyhow::Result<Setup> {
        let Some(server) = self.servers.get(index) else { anyhow::bail!("no such server") };
        let others = self.servers.iter().enumerate().filter(|(other, _)| *other != index);
        let ports = server
            .guests
            .iter()
            .map(|guest| Ok(Port { name: guest.port.clone(), tenant: self.tenant(guest)? }));
        let tenants = self.tenants()?;
        Ok(Setup {
            station: station::Setup {
                index,
                address: server.address,
                peers: others.map(|(other, one)| (other, one.address)).collect(),
                ports: ports.collect::<Result<_, Error>>()?,
                tenants: tenants.iter().map(|one| (one.network, one.prefix)).collect(),
                collector,
                processing,
            },
            namespace: server.namespace.clone(),
            switch: server.switch.clone(),
            bridge: server.bridge.clone(),
            test: server.test.clone(),
            cpu: server.cpu.clone(),
            limit,
        })
    }

    /// The server that has a guest with this hardware address.
    pub(crate) fn server_of(&self, mac: &str) -> Option<usize> {
        let has = |server: &SiteServer| {
            server.guests.iter().any(|guest| guest.mac.eq_ignore_ascii_case(mac))
        };
        self.servers.iter().position(has)
    }
}

fn wrong(place: &str, message: String) -> Error {
    Error::Input { place: place.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: &str = r#"
        collector = "127.0.0.1:6343"
        alpha = 1.2
        [[tenants]]
        name = "red"
        network = "10.1.0.0/16"
        minimum = 0.1
        [[servers]]
        name = "rack1"
        address = "192.0.2.1"
        bridge = "br0"
        guests = [{ port = "vnet0", mac = "52:54:00:00:00:01", tenant = "red" }]
        agent = ["ssh", "rack1", "weir", "agent", "--sampling"]
        [[servers]]
        name = "rack2"
        address = "192.0.2.2"
        bridge = "br0"
        guests = []
        cpu = { usage = "/sys/fs/cgroup/x/cpu.stat", share = 2.0 }
    "#;

    #[test]
    fn a_site_file_gives_the_setup_of_its_servers() {
        let site = Site::read(SITE).unwrap();
        let collector = ([127, 0, 0, 1], 1).into();
        let setup = site.setup(0, collector, Processing::default(), 0.9).unwrap();
        assert_eq!(setup.station.peers, [(1, Ipv4Addr::new(192, 0, 2, 2))]);
        assert_eq!(setup.station.ports, [Port { name: "vnet0".into(), tenant: Some(0) }]);
        assert_eq!(setup.switch, PathBuf::from("/run/openvswitch"));
        assert_eq!(site.server_of("52:54:00:00:00:01"), Some(0));
        let costs = site.costs(None, Some(0.1)).unwrap();
        assert_eq!((costs.alpha, costs.beta), (1.2, 0.1));
    }

    #[test]
    fn errors_in_a_site_file_are_reported() {
        let changed = |from: &str, to: &str| Site::read(&SITE.replace(from, to));
        for (from, to, words) in [
            ("tenant = \"red\"", "tenant = \"rde\"", "there is no tenant \"rde\""),
            ("10.1.0.0/16", "10.1.0.0/99", "not a tenant"),
            ("alpha = 1.2", "alpha = -1.0", "alpha"),
            ("bridge = \"br0\"\n        guests = []", "guests = []", "bridge"),
            ("minimum = 0.1", "minimun = 0.1", "minimun"),
            (
                "[[servers]]\n        name = \"rack1\"",
                "[[tenants]]\n name=\"b\"\n network=\"10.1.2.0/24\"\n[[servers]]\n        name = \"rack1\"",
                "in common",
            ),
        ] {
            let error = format!("{:#}", changed(from, to).unwrap_err());
            assert!(error.contains(words), "{error}");
        }
    }
}
