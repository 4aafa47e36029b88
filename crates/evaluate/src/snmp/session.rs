//! Asks an agent, and waits for its answers: on a thread that has nothing else to do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use snmp2::v3::{Auth, AuthProtocol, KeyExtension, Security};
use snmp2::{SyncSession, v3};

use super::agent::{Access, Agent, Cipher, Digest};
use super::object::{Oid, Value};

/// How long an agent has to answer, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 3;
/// Rows of a table that are looked at; a large switch has some hundred interfaces.
const MAX_ROWS: usize = 4_096;

/// A conversation with an agent.
pub(crate) struct Session {
    agent: Agent,
    /// Begun again after every silence, at another port: a late answer to the question before cannot be taken for the
    /// next one's then.
    open: Option<SyncSession>,
    request: i32,
}

impl Session {
    pub(crate) fn new(agent: Agent) -> Session {
        Session { agent, open: None, request: 1 }
    }

    /// The value of each object; `None` for those that the agent does not have.
    pub(crate) fn get(&mut self, oids: &[Oid]) -> Result<Vec<Option<Value>>, String> {
        let found = self.ask(oids, false)?;
        if found.len() != oids.len() {
            let (asked, told) = (oids.len(), found.len());
            return Err(format!("was asked for {asked} objects and told of {told}"));
        }
        Ok(found.into_iter().map(|(_, value)| value).collect())
    }

    /// The object that comes next in the agent's order.
    fn next(&mut self, oid: &Oid) -> Result<Option<(Oid, Value)>, String> {
        let found = self.ask(std::slice::from_ref(oid), true)?.into_iter().next();
        Ok(found.and_then(|(oid, value)| Some((oid, value?))))
    }

    /// A column of a table: each row's number and value.
    pub(crate) fn column(&mut self, column: &Oid) -> Result<Vec<(u64, Value)>, String> {
        let mut rows = Vec::new();
        let mut last = column.clone();
        while rows.len() < MAX_ROWS {
            let Some((oid, value)) = self.next(&last)? else { break };
            let Some([row]) = oid.parts().strip_prefix(column.parts()) else { break };
            // An agent that does not go forward would be asked for ever.
            if oid.parts() <= last.parts() {
                return Err("tells its objects in no order".to_owned());
            }
            rows.push((*row, value));
            last = oid;
        }
        Ok(rows)
    }

    fn ask(&mut self, oids: &[Oid], next: bool) -> Result<Vec<(Oid, Option<Value>)>, String> {
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            // What comes from the network is read by somebody else's code: a mistake there must not end this thread.
            let asked = catch_unwind(AssertUnwindSafe(|| self.ask_once(oids, next)));
            match asked.unwrap_or_else(|_| Err("its answer could not be read".to_owned())) {
                Ok(found) => return Ok(found),
                Err(error) => why = error,
            }
            self.open = None;
        }
        Err(why)
    }

    fn ask_once(&mut self, oids: &[Oid], next: bool) -> Result<Vec<(Oid, Option<Value>)>, String> {
        let mut session = match self.open.take() {
            Some(session) => session,
            None => self.begin()?,
        };
        let wrong = |_| "an object identifier that SNMP does not know".to_owned();
        let asked: Vec<snmp2::Oid<'_>> = oids
            .iter()
            .map(|oid| snmp2::Oid::from(oid.parts()).map_err(wrong))
            .collect::<Result<_, _>>()?;
        let references: Vec<&snmp2::Oid<'_>> = asked.iter().collect();
        // v3: the agent's clock was behind or ahead, and is known now.
        for _ in 0..2 {
            let answer = match references.as_slice() {
                [one] if next => session.getnext(one),
                many => session.get_many(many),
            };
            match answer {
                Ok(pdu) => {
                    // noSuchName and the like, of agents that answer v2c as if it were v1.
                    if pdu.error_status != 0 {
                        return Err(format!("refused: error status {}", pdu.error_status));
                    }
                    let found = pdu.varbinds.map(|(oid, value)| Some((own(&oid)?, told(&value))));
                    let found: Option<Vec<_>> = found.collect();
                    self.open = Some(session);
                    return found.ok_or_else(|| "an object identifier is too large".to_owned());
                }
                Err(snmp2::Error::AuthUpdated) => {}
                Err(error) => return Err(explain(&error)),
            }
        }
        Err("its clock cannot be agreed on".to_owned())
    }

    fn begin(&mut self) -> Result<SyncSession, String> {
        self.request = self.request.wrapping_add(1000) & 0x7fff_ffff;
        let (address, patience) = (self.agent.address, Some(PATIENCE));
        let session = match &self.agent.access {
            Access::Community(name) => {
                SyncSession::new_v2c(address, name.as_bytes(), patience, self.request)
            }
            Access::User { name, auth, cipher } => {
                let security = security(name, auth.as_ref(), cipher.as_ref());
                SyncSession::new_v3(address, patience, self.request, security)
            }
        };
        let mut session = session.map_err(|error| error.to_string())?;
        session.init().map_err(|error| explain(&error))?;
        Ok(session)
    }
}

fn security(
    name: &str,
    auth: Option<&(Digest, String)>,
    cipher: Option<&(Cipher, String)>,
) -> Security {
    let Some((digest, password)) = auth else {
        return Security::new(name.as_bytes(), b"").with_auth(Auth::NoAuthNoPriv);
    };
    let digest = match digest {
        Digest::Md5 => AuthProtocol::Md5,
        Digest::Sha1 => AuthProtocol::Sha1,
        Digest::Sha224 => AuthProtocol::Sha224,
        Digest::Sha256 => AuthProtocol::Sha256,
        Digest::Sha384 => AuthProtocol::Sha384,
        Digest::Sha512 => AuthProtocol::Sha512,
    };
    let security = Security::new(name.as_bytes(), password.as_bytes()).with_auth_protocol(digest);
    let Some((cipher, password)) = cipher else { return security.with_auth(Auth::AuthNoPriv) };
    let cipher = match cipher {
        Cipher::Des => v3::Cipher::Des,
        Cipher::Aes128 => v3::Cipher::Aes128,
        Cipher::Aes192 => v3::Cipher::Aes192,
        Cipher::Aes256 => v3::Cipher::Aes256,
    };
    let privacy_password = password.as_bytes().to_vec();
    // Of the two ways to make a short digest's key long enough, this is Net-SNMP's.
    security
        .with_auth(Auth::AuthPriv { cipher, privacy_password })
        .with_key_extension_method(KeyExtension::Blumenthal)
}

fn own(oid: &snmp2::Oid<'_>) -> Option<Oid> {
    oid.iter().map(|parts| Oid::of(&parts.collect::<Vec<_>>()))
}

fn told(value: &snmp2::Value<'_>) -> Option<Value> {
    use snmp2::Value as V;
    Some(match value {
        V::Boolean(flag) => Value::Number(f64::from(u8::from(*flag))),
        V::Integer(number) => Value::Number(*number as f64),
        V::Counter32(number) | V::Unsigned32(number) | V::Timeticks(number) => {
            Value::Number(f64::from(*number))
        }
        V::Counter64(number) => Value::Number(*number as f64),
        V::OctetString(bytes) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        V::ObjectIdentifier(oid) => Value::Text(oid.to_string()),
        V::IpAddress([a, b, c, d]) => Value::Text(format!("{a}.{b}.{c}.{d}")),
        _ => return None,
    })
}

fn explain(error: &snmp2::Error) -> String {
    match error {
        snmp2::Error::Receive => "does not answer".to_owned(),
        snmp2::Error::Send => "cannot be reached".to_owned(),
        other => other.to_string(),
    }
}
