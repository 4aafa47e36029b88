//! `[agents]`: the agents that measure tenants' virtual interfaces at the network's edge.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fabric::edge::AgentId;

use super::reader::{Table, Value};

/// The most agents. Each agent has a session of its own.
const MOST_SERVERS: usize = 1024;

/// `[agents]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agents {
    /// The UDP address where Weir listens to agents. Read at start only.
    pub listen: SocketAddr,
    /// The file with the agents' common key. Relative paths are relative to the configuration file's folder.
    pub key: PathBuf,
    /// The name of Weir in the agents' file. Default `weir`.
    pub name: String,
    /// The agents' names.
    pub servers: Vec<String>,
    /// Silence after which the rates of a virtual interface are unknown. Default 1 s.
    pub lifetime: Duration,
}

pub(super) fn read(table: &mut Table<'_, '_>) -> Option<Agents> {
    let listen = table.require("listen", "\"127.0.0.1:6641\"", |value| value.socket_address());
    let key = table.require("key", "\"edge.key\"", Value::file);
    let own = table.get("name", name).unwrap_or_else(|| "weir".to_owned());
    let mut known = vec![AgentId::of(&own)];
    let servers = table.require("servers", "[\"server1\"]", |value| {
        let servers = value.list(|value| {
            let name = name(value)?;
            if known.contains(&AgentId::of(&name)) {
                return value.refuse(format!("two have the name \"{name}\""), None);
            }
            known.push(AgentId::of(&name));
            Some(name)
        })?;
        match value.length() {
            Some(0) => value.refuse("at least one agent is needed", None),
            Some(count) if count > MOST_SERVERS => {
                value.refuse(format!("more than {MOST_SERVERS} agents"), None)
            }
            _ => Some(servers),
        }
    });
    // Agents send every 100 ms, and datagrams can be lost.
    let range = Duration::from_millis(300)..=Duration::from_secs(3600);
    let lifetime = table.get("lifetime", |value| value.duration(range));
    Some(Agents {
        listen: listen?,
        key: key?,
        name: own,
        servers: servers?,
        lifetime: lifetime.unwrap_or(Duration::from_secs(1)),
    })
}

fn name(value: &Value<'_, '_>) -> Option<String> {
    let name = value.string()?;
    if name.is_empty() {
        return value.refuse("an empty name", None);
    }
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;

    const AGENTS: &str =
        "[agents]\nlisten = \"127.0.0.1:6641\"\nkey = \"edge.key\"\nservers = [\"a\", \"b\"]\n";

    fn tenant(name: &str, mac: u8, more: &str) -> String {
        format!(
            "[[tenants]]\nname = \"{name}\"\n[[tenants.vnics]]\nport = \"1 port {mac}\"\n\
             mac = \"02:00:00:00:00:0{mac}\"\nbandwidth = \"1Mbit\"\n{more}\n"
        )
    }

    #[test]
    fn the_agents_section_and_agents_of_interfaces_are_read() {
        let text = format!("{AGENTS}lifetime = \"2s\"\n{}", tenant("red", 1, "agent = \"b\""));
        let config = Config::parse("/etc/weir/weir.toml", &text).unwrap();
        let agents = config.agents.unwrap();
        assert_eq!(agents.key, Path::new("/etc/weir/edge.key"));
        assert_eq!((agents.name.as_str(), agents.lifetime.as_secs()), ("weir", 2));
        assert_eq!(config.tenants[0].vnics[0].agent.as_deref(), Some("b"));
        // With several agents, each interface names its agent; a single agent measures all interfaces.
        let of = |text: String| Config::parse("", &text).unwrap().tenants[0].vnics[0].agent.clone();
        assert_eq!(of(format!("{AGENTS}{}", tenant("red", 1, ""))), None);
        let one = AGENTS.replace(", \"b\"", "");
        assert_eq!(of(format!("{one}{}", tenant("red", 1, ""))).as_deref(), Some("a"));
        // Without agents, tenants may have the same addresses.
        let both = format!("{}{}", tenant("red", 1, ""), tenant("blue", 1, ""));
        assert!(Config::parse("", &both).unwrap().agents.is_none());
    }

    #[test]
    fn errors_in_the_agent_configuration_are_reported_with_the_line() {
        let both = format!("{AGENTS}{}{}", tenant("red", 1, ""), tenant("blue", 1, ""));
        for (text, line, message) in [
            ("[agents]\n".to_owned(), 1, "`listen` is missing"),
            (AGENTS.replace("127.0.0.1:6641", "here"), 2, "bad address \"here\""),
            (AGENTS.replace("\"a\", \"b\"", ""), 4, "at least one agent is needed"),
            (AGENTS.replace("\"b\"", "\"a\""), 4, "two have the name \"a\""),
            (AGENTS.replace("\"b\"", "\"weir\""), 4, "two have the name \"weir\""),
            (AGENTS.replace("\"b\"", "\"\""), 4, "an empty name"),
            (format!("{AGENTS}lifetime = \"100ms\""), 5, "\"100ms\" is out of range"),
            (format!("{AGENTS}lifetim = \"1s\""), 5, "unknown key `lifetim`"),
            (
                format!("{AGENTS}{}", tenant("red", 1, "agent = \"c\"")),
                11,
                "there is no agent \"c\"",
            ),
            (tenant("red", 1, "agent = \"a\""), 7, "there is no section [agents]"),
            (both, 16, "two virtual interfaces have the address 02:00:00:00:00:01"),
        ] {
            let errors = Config::parse("weir.toml", &text).unwrap_err();
            let found = errors.iter().any(|it| it.at.line == line && it.message.contains(message));
            assert!(found, "{text}: {errors}");
        }
    }
}
