//! Makes the settings of an agent for a whole lab.

use agent::config::Duties;
use agent::edge::{Settings, Site};
use fabric::{Bandwidth, MacAddress};
use lab::{Lab, Rate, StateDirectory};
use std::path::Path;

/// A value of the form `HOST=RATE[@TENANT]`.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRate {
    host: String,
    rate: Rate,
    tenant: String,
}

pub fn host_rate(text: &str) -> Result<HostRate, String> {
    let (host, rest) = text.split_once('=').ok_or("write it as HOST=RATE, such as A=8Mbit@red")?;
    let (rate, tenant) = rest.split_once('@').unwrap_or((rest, "all"));
    if host.is_empty() || tenant.is_empty() {
        return Err("write it as HOST=RATE@TENANT, such as A=8Mbit@red".to_owned());
    }
    let rate = rate.parse().map_err(|error: lab::Error| {
        let message = error.to_string();
        // `lab` reads the rate, and begins an error with the word topology.
        message.strip_prefix("topology: ").unwrap_or(&message).to_owned()
    })?;
    Ok(HostRate { host: host.to_owned(), rate, tenant: tenant.to_owned() })
}

/// The settings of one agent for all hosts of a lab.
pub fn duties(name: &str, state: Option<&Path>, rates: &[HostRate]) -> anyhow::Result<Duties> {
    let state = state.map_or_else(StateDirectory::default, StateDirectory::at);
    let lab = Lab::open(name, &state)?;
    let mut wanted = rates.to_vec();
    if wanted.is_empty() {
        for host in lab.topology().hosts() {
            let is_its = |link: &&lab::Link| link.ends.iter().any(|end| end.node == host.name);
            let link = lab.topology().links().iter().find(is_its);
            let Some(rate) = link.and_then(|link| link.rate) else {
                return Err(agent::Error::Option(format!(
                    "the link of host {} has no rate; say --vnic {}=RATE",
                    host.name, host.name
                ))
                .into());
            };
            wanted.push(HostRate { host: host.name.clone(), rate, tenant: "all".to_owned() });
        }
    }
    let mut vnics = Vec::new();
    for HostRate { host, rate, tenant } in wanted {
        // The error of this call lists the hosts of the lab.
        let namespace = lab.namespace(&host)?;
        let Some(found) = lab.topology().host(&host) else {
            return Err(agent::Error::Option(format!("{host} is a switch, not a host")).into());
        };
        vnics.push(Site {
            name: host,
            mac: mac(found.mac)?,
            bandwidth: Bandwidth::from_bits_per_second(rate.bits_per_second()),
            tenant,
            agent: "agent".to_owned(),
            namespace: Some(namespace),
            interface: "eth0".to_owned(),
        });
    }
    let own = "agent".to_owned();
    let settings =
        Settings { own, vnics, listen: None, peers: Vec::new(), hypervisor: None, key: None };
    Ok(Duties { settings, samplers: Vec::new() })
}

fn mac(mac: lab::MacAddress) -> anyhow::Result<MacAddress> {
    MacAddress::new(mac.0).map_err(|_| anyhow::anyhow!("{mac} is not a host's address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_rate_options_are_parsed_with_an_optional_tenant() {
        let good = host_rate("A=8Mbit@red").unwrap();
        assert_eq!((good.host.as_str(), good.tenant.as_str()), ("A", "red"));
        assert_eq!(host_rate("A=8Mbit").unwrap().tenant, "all");
        for wrong in ["A", "=8Mbit", "A=", "A=8", "A=8Mbit@", "A=-1Mbit"] {
            assert!(host_rate(wrong).is_err(), "{wrong}");
        }
    }
}
