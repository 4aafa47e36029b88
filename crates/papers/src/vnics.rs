//! The hosts of the 2013 paper's examples, and the bandwidths of their VNICs.

use agent::edge::{Settings, Site};
use anyhow::Context;
use fabric::{Bandwidth, MacAddress};
use lab::Lab;

/// The host, the tenant, and the bandwidth of the VNIC in Mbit/s.
pub(crate) const VNICS: [(&str, &str, u64); 6] = [
    ("A", "red", 8),
    ("B", "red", 8),
    ("C", "blue", 2),
    ("D", "blue", 2),
    ("E", "blue", 10),
    ("F", "blue", 10),
];

/// The settings of an agent that serves the VNICs of the paper's hosts.
pub(crate) fn settings(lab: &Lab) -> anyhow::Result<Settings> {
    settings_of(lab, &VNICS)
}

/// The settings of an agent for other hosts.
pub(crate) fn settings_of(lab: &Lab, vnics: &[(&str, &str, u64)]) -> anyhow::Result<Settings> {
    let site = |&(host, tenant, mbit): &(&str, &str, u64)| -> anyhow::Result<Site> {
        let found = lab.topology().host(host).with_context(|| format!("no host {host}"))?;
        Ok(Site {
            name: host.to_owned(),
            mac: MacAddress::new(found.mac.0)?,
            bandwidth: Bandwidth::from_megabits_per_second(mbit),
            tenant: tenant.to_owned(),
            agent: "agent".to_owned(),
            namespace: Some(lab.namespace(host)?),
            interface: "eth0".to_owned(),
        })
    };
    let vnics = vnics.iter().map(site).collect::<anyhow::Result<_>>()?;
    let own = "agent".to_owned();
    Ok(Settings { own, vnics, listen: None, peers: Vec::new(), hypervisor: None, key: None })
}
