//! Reads one agent's configuration from the file that all agents share.
//!
//! ```toml
//! key = "edge.key"                  # 32 hexadecimal digits, beside this file; not needed by an agent alone
//!
//! [[agents]]
//! name = "server1"
//! address = "192.0.2.1:6640"        # the agent receives datagrams here; not needed by an agent alone
//!
//! [hypervisor]                      # gets the rates; may be left out
//! name = "weir"
//! address = "192.0.2.9:6641"
//!
//! [[vnics]]
//! name = "A"
//! mac = "00:00:00:00:00:01"
//! bandwidth = "8Mbit"
//! tenant = "red"                    # VNICs of one tenant send to each other
//! agent = "server1"                 # the agent that serves the VNIC; not needed if there is one
//! namespace = "weir-iso.A"          # on that server; may be left out
//! interface = "eth0"                # default eth0
//!
//! [[samplers]]                      # may be left out; see samplers.rs
//! bridge = "br0"
//! one_in = 100
//! collector = "192.0.2.9"
//! ```

mod samplers;

pub use samplers::{SWITCH, collector, one_in};

use crate::edge::{Settings, Site};
use crate::error::Error;
use crate::exporter::own_address;
use crate::standing::Sampling;
use fabric::edge::EdgeKey;
use fabric::{Bandwidth, MacAddress};
use samplers::SamplerTable;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    key: Option<String>,
    #[serde(default)]
    agents: Vec<AgentTable>,
    hypervisor: Option<AgentTable>,
    #[serde(default)]
    vnics: Vec<VnicTable>,
    #[serde(default)]
    samplers: Vec<SamplerTable>,
}

/// The tasks of one agent.
#[derive(Clone, Debug)]
pub struct Duties {
    /// The VNICs that the agent shapes.
    pub settings: Settings,
    /// The interfaces and bridges that the agent samples.
    pub samplers: Vec<Sampling>,
}

impl Duties {
    /// Whether the agent has interfaces to shape. An agent without samplers always counts as an agent that shapes.
    #[must_use]
    pub fn has_vnics(&self) -> bool {
        let own = &self.settings.own;
        self.samplers.is_empty() || self.settings.vnics.iter().any(|vnic| vnic.agent == *own)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    name: String,
    address: Option<SocketAddr>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VnicTable {
    name: String,
    #[serde(deserialize_with = "text")]
    mac: MacAddress,
    #[serde(deserialize_with = "text")]
    bandwidth: Bandwidth,
    #[serde(default = "one_tenant")]
    tenant: String,
    agent: Option<String>,
    namespace: Option<String>,
    #[serde(default = "first_interface")]
    interface: String,
}

/// Reads a type of `fabric` from text.
fn text<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|error| D::Error::custom(format_args!("{text:?}: {error}")))
}

fn one_tenant() -> String {
    "all".to_owned()
}

fn first_interface() -> String {
    "eth0".to_owned()
}

/// Reads the tasks of one agent from the shared file; errors name the file.
///
/// # Errors
/// [`Error::Config`] with the place in the file.
pub fn read(file: &Path, own: Option<&str>) -> Result<Duties, Error> {
    let shown = file.display();
    let text = read_text(file)?;
    let parsed: File = toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        Error::Config(format!("{shown}:{line}: {}", error.message()))
    })?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let key = parsed.key.as_ref().map(|name| read_key(&folder.join(name))).transpose()?;
    settle(parsed, key, own).map_err(|error| Error::Config(format!("{shown}: {error}")))
}

fn settle(file: File, key: Option<EdgeKey>, own: Option<&str>) -> Result<Duties, String> {
    let names: Vec<&str> = file.agents.iter().map(|agent| agent.name.as_str()).collect();
    let own = match (own, names.as_slice()) {
        (Some(own), names) if names.contains(&own) => own,
        (Some(own), []) => own,
        (Some(own), names) => {
            return Err(format!("there is no agent {own:?} (there are {})", names.join(", ")));
        }
        (None, [only]) => only,
        (None, []) => "agent",
        (None, names) => {
            return Err(format!("say with --name which agent this is: {}", names.join(", ")));
        }
    };
    let samplers = samplers::settle(file.samplers, &names, own)?;
    let mut vnics = Vec::new();
    for vnic in file.vnics {
        if vnic.bandwidth == Bandwidth::ZERO {
            return Err(format!("VNIC {}: a bandwidth of nothing", vnic.name));
        }
        let agent = match vnic.agent {
            Some(agent) => agent,
            None if names.len() < 2 => own.to_owned(),
            None => return Err(format!("VNIC {}: say which agent serves it", vnic.name)),
        };
        vnics.push(Site {
            mac: vnic.mac,
            name: vnic.name,
            bandwidth: vnic.bandwidth,
            tenant: vnic.tenant,
            agent,
            namespace: vnic.namespace,
            interface: vnic.interface,
        });
    }
    let mut peers = Vec::new();
    let mut listen = None;
    for agent in &file.agents {
        match agent.address {
            Some(address) if agent.name == own => listen = Some(address),
            Some(address) => peers.push((agent.name.clone(), address)),
            None if names.len() == 1 => {}
            None => return Err(format!("agent {}: it has no address", agent.name)),
        }
    }
    let hypervisor = match file.hypervisor {
        Some(AgentTable { name, address: Some(address) }) => Some((name, address)),
        Some(AgentTable { name, address: None }) => {
            return Err(format!("hypervisor {name}: it has no address"));
        }
        None => None,
    };
    let settings = Settings { own: own.to_owned(), vnics, listen, peers, hypervisor, key };
    Ok(Duties { settings, samplers })
}

/// Reads a key of 32 hexadecimal digits. Only the owner of the file may have read permission.
///
/// # Errors
/// [`Error::Config`].
pub fn read_key(file: &Path) -> Result<EdgeKey, Error> {
    use std::os::unix::fs::PermissionsExt;
    let shown = file.display();
    let text = read_text(file)?;
    let mode = std::fs::metadata(file).map(|found| found.permissions().mode()).unwrap_or(0);
    if mode & 0o077 != 0 {
        return Err(Error::Config(format!("{shown}: others may read this key; chmod 600 it")));
    }
    text.parse().map_err(|error| Error::Config(format!("{shown}: {error}")))
}

fn read_text(file: &Path) -> Result<String, Error> {
    let fail = |error| Error::Config(format!("cannot read {}: {error}", file.display()));
    std::fs::read_to_string(file).map_err(fail)
}

/// Configures an agent to send its measured rates to Weir.
pub fn report(settings: &mut Settings, weir: SocketAddr, key: EdgeKey) {
    // Weir replies to the source address of the agent's datagrams.
    settings.listen = Some(own_address(weir));
    settings.hypervisor = Some(("weir".to_owned(), weir));
    settings.key = Some(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
[[agents]]
name = 'one'
address = '192.0.2.1:6640'
[[agents]]
name = 'two'
address = '192.0.2.2:6640'
[hypervisor]
name = 'weir'
address = '192.0.2.9:6641'
[[vnics]]
name = 'A'
mac = '00:00:00:00:00:01'
bandwidth = '8Mbit'
agent = 'two'
";

    fn duties(text: &str, own: Option<&str>) -> Result<Duties, Error> {
        let thread = std::thread::current().id();
        let name = format!("weir-agent-{}-{thread:?}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("edge.toml");
        std::fs::write(&file, text).unwrap();
        let duties = read(&file, own);
        std::fs::remove_dir_all(&folder).unwrap();
        duties
    }

    fn settings(text: &str, own: Option<&str>) -> Result<Settings, Error> {
        Ok(duties(text, own)?.settings)
    }

    #[test]
    fn the_settings_of_an_agent_are_read_from_the_shared_file() {
        let two = settings(TWO, Some("two")).unwrap();
        assert_eq!(two.listen, "192.0.2.2:6640".parse().ok());
        assert_eq!(two.peers, [("one".to_owned(), "192.0.2.1:6640".parse().unwrap())]);
        assert_eq!(two.hypervisor.map(|(name, _)| name).as_deref(), Some("weir"));
        assert_eq!(
            (two.vnics[0].tenant.as_str(), two.vnics[0].interface.as_str()),
            ("all", "eth0")
        );
        let alone = "[[vnics]]\nname='A'\nmac='00:00:00:00:00:01'\nbandwidth='8Mbit'\n";
        assert_eq!(settings(alone, None).unwrap().vnics[0].agent, "agent");
    }

    #[test]
    fn each_agent_reads_its_own_samplers_and_wrong_samplers_are_refused() {
        let samplers = "
[[samplers]]
agent = 'one'
bridge = 'br0'
one_in = 100
collector = '192.0.2.9'
[[samplers]]
agent = 'two'
interface = 'eth1'
namespace = 'vm-a'
one_in = 2.5
collector = '[2001:db8::9]:7000'
header = 64
[[samplers]]
agent = 'two'
interface = 'eth2'
one_in = 1
collector = '192.0.2.9'
";
        let text = TWO.to_owned() + samplers;
        let one = duties(&text, Some("one")).unwrap();
        assert!(!one.has_vnics());
        let [Sampling::Bridge(bridge)] = &one.samplers[..] else { panic!("{:?}", one.samplers) };
        assert_eq!((&*bridge.bridge, bridge.switch.to_str()), ("br0", Some("/run/openvswitch")));
        assert_eq!((bridge.sampling.one_in, bridge.sampling.header), (100, 128));
        assert_eq!(bridge.sampling.collector, "192.0.2.9:6343".parse().unwrap());
        let two = duties(&text, Some("two")).unwrap();
        assert!(two.has_vnics());
        let [Sampling::Interface(first), Sampling::Interface(second)] = &two.samplers[..] else {
            panic!("{:?}", two.samplers)
        };
        assert_eq!((&*first.interface, first.namespace.as_deref()), ("eth1", Some("vm-a")));
        assert_eq!((first.one_in, first.stands_for, first.header), (2.5, 2.5, 64));
        assert_eq!(first.collector, "[2001:db8::9]:7000".parse().unwrap());
        assert_eq!((first.sub_agent, second.sub_agent), (0, 1));
        for (from, to, expected) in [
            ("agent = 'one'\nbridge", "bridge", "sampler 1: say which agent's it is"),
            (
                "agent = 'one'\nbridge",
                "agent = 'six'\nbridge",
                "sampler 1: there is no agent \"six\"",
            ),
            (
                "one_in = 100",
                "one_in = 2.5",
                "sampler 1: Open vSwitch samples one of a whole number",
            ),
            ("one_in = 100", "one_in = 0", "not a number within 1 to"),
            ("one_in = 100", "", "missing field `one_in`"),
            ("'br0'", "'br0'\ninterface = 'eth0'", "sampler 1: an interface or a bridge, not both"),
            ("bridge = 'br0'\n", "", "sampler 1: an interface or a bridge"),
            ("'br0'", "'br0'\nnamespace = 'vm-a'", "sampler 1: a namespace is of an interface"),
            ("'eth1'", "'eth1'\nswitch = '/run'", "sampler 2: a switch is of a bridge"),
            ("header = 64", "header = 9", "sampler 2: 14 to 1024 bytes"),
            ("'[2001:db8::9]:7000'", "'here'", "not an address such as"),
            ("'br0'", "'br0'\nheader = 513", "sampler 1: Open vSwitch sends at most 512 bytes"),
            ("'br0'", "'br0'\nrate = 1", "unknown field `rate`"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = duties(&text.replacen(from, to, 1), Some("one")).err().unwrap();
            assert!(format!("{error:#}").contains(expected), "{to}: {error:#}");
        }
    }

    #[test]
    fn a_wrong_configuration_is_refused_with_the_reason() {
        let without = TWO.replace("agent = 'two'", "");
        let cases: [(&str, Option<&str>, &str); 10] = [
            (TWO, None, "say with --name which agent this is: one, two"),
            (TWO, Some("three"), "there is no agent \"three\""),
            (&without, Some("one"), "VNIC A: say which agent serves it"),
            ("\n[[vnics]]\nnam = 'A'", None, ":3: unknown field `nam`, expected one of `name`"),
            (
                "[[vnics]]\nname='A'\nmac='00:00'\nbandwidth='1Mbit'",
                None,
                ":3: \"00:00\": expected a host's MAC address",
            ),
            (
                "[[vnics]]\nname='A'\nmac='01:00:00:00:00:00'\nbandwidth='1Mbit'",
                None,
                ":3: \"01:00:00:00:00:00\": expected a host's MAC address",
            ),
            ("[[vnics]]\nname='A'\nmac='00:00:00:00:00:01'\nbandwidth='1Parsec'", None, ":4: "),
            (
                "[[vnics]]\nname='A'\nmac='00:00:00:00:00:01'\nbandwidth='0Mbit'",
                None,
                "VNIC A: a bandwidth of nothing",
            ),
            ("key = 'missing.key'", None, "cannot read"),
            ("[hypervisor]\nname='weir'", None, "it has no address"),
        ];
        for (text, own, expected) in cases {
            let error = format!("{:#}", settings(text, own).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_file_needs_32_hexadecimal_digits_and_private_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let file = std::env::temp_dir().join(format!("weir-agent-key-{}", std::process::id()));
        let check = |text: &str, mode: u32| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            read_key(&file).map(|key| key.0).map_err(|error| error.to_string())
        };
        let mut expected = [0; 16];
        expected[15] = 0xab;
        assert_eq!(check("000000000000000000000000000000AB\n", 0o600), Ok(expected));
        assert!(
            check("000000000000000000000000000000AB\n", 0o644).unwrap_err().contains("chmod 600")
        );
        for wrong in
            ["", "ab", "+00000000000000000000000000000ab", "zz000000000000000000000000000000"]
        {
            assert!(check(wrong, 0o600).unwrap_err().contains("32 hexadecimal digits"), "{wrong}");
        }
        std::fs::remove_file(&file).unwrap();
    }
}
