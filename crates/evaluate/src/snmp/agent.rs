//! The address of an SNMP agent, the credentials, and the objects to read.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use snmp2::v3::{AuthProtocol, Cipher};

use super::object::Oid;
use crate::error::Error;

/// The most watched interfaces; the four counters of all interfaces are requested at once.
const MAX_INTERFACES: usize = 16;

/// The address of the switch's SNMP agent, and the credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Agent {
    pub(crate) address: SocketAddr,
    pub(crate) access: Access,
    /// The object of the CPU time; `None` for the usual objects.
    pub(crate) cpu: Option<Cpu>,
    /// The interfaces with counters to read, by name or number.
    pub(crate) interfaces: Vec<String>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Access {
    Community(String),
    User { name: String, auth: Option<(AuthProtocol, String)>, cipher: Option<(Cipher, String)> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cpu {
    /// A counter with a unit of hundredths of a second.
    Counter(Oid),
    /// The present CPU load in percent.
    Percent(Oid),
}

const DIGESTS: [(&str, AuthProtocol); 6] = [
    ("md5", AuthProtocol::Md5),
    ("sha", AuthProtocol::Sha1),
    ("sha224", AuthProtocol::Sha224),
    ("sha256", AuthProtocol::Sha256),
    ("sha384", AuthProtocol::Sha384),
    ("sha512", AuthProtocol::Sha512),
];

const CIPHERS: [(&str, Cipher); 4] = [
    ("des", Cipher::Des),
    ("aes", Cipher::Aes128),
    ("aes192", Cipher::Aes192),
    ("aes256", Cipher::Aes256),
];

/// The output leaves out passwords and communities.
impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Agent({self})")
    }
}

/// The output is the address for people: passwords and communities are left out.
impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// The text is `HOST:PORT,community=NAME` or `HOST:PORT,user=NAME[,auth=DIGEST:PASSWORD[,priv=CIPHER:PASSWORD]]`, and
/// then `cpu=OID`, `cpu-percent=OID` and any number of `if=NAME`.
impl FromStr for Agent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Agent, Error> {
        let wrong = |message: String| Error::parameter("--snmp", message);
        let mut words = text.split(',');
        let address = words.next().unwrap_or_default();
        let mut found = address.to_socket_addrs().map_err(|error| {
            wrong(format!("{address:?} is not HOST:PORT, such as 192.0.2.1:161 ({error})"))
        })?;
        let address = found.next().ok_or_else(|| wrong(format!("{address:?} has no address")))?;
        let (mut community, mut user, mut auth, mut cipher) = (None, None, None, None);
        let (mut cpu, mut interfaces) = (None, Vec::new());
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            if value.is_empty() {
                return Err(wrong(format!("{key:?} has no value: write {key}=...")));
            }
            let oid = || value.parse::<Oid>().map_err(wrong);
            match key {
                "community" => community = Some(value.to_owned()),
                "user" => user = Some(value.to_owned()),
                "auth" => auth = Some(secret(key, value, &DIGESTS)?),
                "priv" => cipher = Some(secret(key, value, &CIPHERS)?),
                "cpu" => cpu = Some(Cpu::Counter(oid()?)),
                "cpu-percent" => cpu = Some(Cpu::Percent(oid()?)),
                "if" if interfaces.len() == MAX_INTERFACES => {
                    return Err(wrong(format!("more than {MAX_INTERFACES} interfaces")));
                }
                "if" => interfaces.push(value.to_owned()),
                _ => {
                    let known = "community, user, auth, priv, cpu, cpu-percent and if";
                    return Err(wrong(format!("{key:?} is unknown; there are {known}")));
                }
            }
        }
        let access = match (community, user) {
            (Some(name), None) if auth.is_none() && cipher.is_none() => Access::Community(name),
            (None, Some(_)) if cipher.is_some() && auth.is_none() => {
                return Err(wrong(
                    "priv= needs auth=: SNMP v3 knows no privacy without".to_owned(),
                ));
            }
            (None, Some(name)) => Access::User { name, auth, cipher },
            _ => {
                let two = "either community=NAME (v2c) or user=NAME with auth= and priv= (v3)";
                return Err(wrong(format!("say {two}")));
            }
        };
        Ok(Agent { address, access, cpu, interfaces })
    }
}

/// Parses `METHOD:PASSWORD`.
fn secret<T: Copy>(key: &str, text: &str, methods: &[(&str, T)]) -> Result<(T, String), Error> {
    let wrong = |why: String| Error::parameter("--snmp", format!("{key}={why}"));
    let known = || methods.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (method, password) = text
        .split_once(':')
        .ok_or_else(|| wrong(format!("METHOD:PASSWORD, where METHOD is one of {}", known())))?;
    let found = methods.iter().find(|(name, _)| *name == method);
    let (_, found) =
        found.ok_or_else(|| wrong(format!("{method}: is unknown; there are {}", known())))?;
    if password.len() < 8 {
        return Err(wrong(format!("{method}: the password has less than 8 characters (RFC 3414)")));
    }
    Ok((*found, password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snmp_agent_options_are_parsed_and_invalid_options_are_refused() {
        for (text, access) in [
            ("127.0.0.1:161,community=public", "v2c"),
            ("127.0.0.1:161,user=a", "v3"),
            ("127.0.0.1:161,user=a,auth=sha256:12345678,priv=aes:a:b,c", ""),
            ("127.0.0.1:161,user=a,auth=sha256:12345678,priv=aes:12:45678,if=s1-eth1,if=2", "v3"),
            ("127.0.0.1:161,community=public,cpu-percent=1.3.6.1.4.1.9.2.1.56.0", "v2c"),
            ("127.0.0.1:161", ""),
            ("127.0.0.1,community=public", ""),
            ("127.0.0.1:161,community=", ""),
            ("127.0.0.1:161,community=a,user=b", ""),
            ("127.0.0.1:161,user=b,priv=aes:12345678", ""),
            ("127.0.0.1:161,user=b,auth=sha9:12345678", ""),
            ("127.0.0.1:161,user=b,auth=sha:1234567", ""),
            ("127.0.0.1:161,community=a,cpu=5.1", ""),
            ("127.0.0.1:161,colour=red", ""),
        ] {
            let kind = match text.parse::<Agent>().map(|agent| agent.access) {
                Ok(Access::Community(_)) => "v2c",
                Ok(Access::User { .. }) => "v3",
                Err(_) => "",
            };
            assert_eq!(kind, access, "{text}");
        }
    }

    #[test]
    fn display_and_debug_of_an_snmp_agent_do_not_contain_the_password() {
        let agent: Agent = "127.0.0.1:161,user=a,auth=sha:secretsecret".parse().unwrap();
        assert_eq!(format!("{agent} {agent:?}"), "127.0.0.1:161 Agent(127.0.0.1:161)");
    }
}
