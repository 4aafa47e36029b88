//! Sends requests to an SNMP agent and waits for the replies, on a thread without other work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use snmp2::SyncSession;
use snmp2::v3::{Auth, AuthProtocol, Cipher, KeyExtension, Security};

use super::agent::{Access, Agent};
use super::object::{Oid, Value};

/// The timeout for a reply, and the number of attempts.
const PATIENCE: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 3;
/// The most rows of a table that are read; a large switch has some hundred interfaces.
const MAX_ROWS: usize = 4_096;

/// A session with an SNMP agent.
pub(crate) struct Session {
    agent: Agent,
    /// The session opens again after every timeout, with another local port: a late reply to an earlier request cannot
    /// be mistaken for the reply to a later request.
    open: Option<SyncSession>,
    request: i32,
}

impl Session {
    pub(crate) fn new(agent: Agent) -> Session {
        Session { agent, open: None, request: 1 }
    }

    /// The value of each object; `None` for objects that the agent does not have.
    pub(crate) fn get(&mut self, oids: &[Oid]) -> Result<Vec<Option<Value>>, String> {
        let found = self.ask(oids, false)?;
        if found.len() != oids.len() {
            let (asked, answered) = (oids.len(), found.len());
            return Err(format!("was asked for {asked} objects and answered with {answered}"));
        }
        Ok(found.into_iter().map(|(_, value)| value).collect())
    }

    /// The next object in the agent's order.
    fn next(&mut self, oid: &Oid) -> Result<Option<(Oid, Value)>, String> {
        let found = self.ask(std::slice::from_ref(oid), true)?.into_iter().next();
        Ok(found.and_then(|(oid, value)| Some((oid, value?))))
    }

    /// A column of a table: the number and value of each row.
    pub(crate) fn column(&mut self, column: &Oid) -> Result<Vec<(u64, Value)>, String> {
        let mut rows = Vec::new();
        let mut last = column.clone();
        while rows.len() < MAX_ROWS {
            let Some((oid, value)) = self.next(&last)? else { break };
            let Some([row]) = oid.parts().strip_prefix(column.parts()) else { break };
            // Without this check, an agent with identifiers that do not increase would get requests
            // for ever.
            if oid.parts() <= last.parts() {
                return Err("answers with objects that are not in order".to_owned());
            }
            rows.push((*row, value));
            last = oid;
        }
        Ok(rows)
    }

    fn ask(&mut self, oids: &[Oid], next: bool) -> Result<Vec<(Oid, Option<Value>)>, String> {
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            // A third-party crate parses the data from the network: a bug in that crate must not end this thread.
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
        // With v3, the first reply may only correct the clock of the session; the second attempt uses the agent's
        // clock.
        for _ in 0..2 {
            let answer = match references.as_slice() {
                [one] if next => session.getnext(one),
                many => session.get_many(many),
            };
            match answer {
                Ok(pdu) => {
                    // The error is noSuchName or similar, from an agent that replies to v2c as to v1.
                    if pdu.error_status != 0 {
                        return Err(format!("refused: error status {}", pdu.error_status));
                    }
                    let found =
                        pdu.varbinds.map(|(oid, value)| Some((own(&oid)?, own_value(&value))));
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
    auth: Option<&(AuthProtocol, String)>,
    cipher: Option<&(Cipher, String)>,
) -> Security {
    let Some((digest, password)) = auth else {
        return Security::new(name.as_bytes(), b"").with_auth(Auth::NoAuthNoPriv);
    };
    let security = Security::new(name.as_bytes(), password.as_bytes()).with_auth_protocol(*digest);
    let Some((cipher, password)) = cipher else { return security.with_auth(Auth::AuthNoPriv) };
    let (cipher, privacy_password) = (*cipher, password.as_bytes().to_vec());
    // There are two methods to extend the key of a short digest; this is the method of Net-SNMP.
    security
        .with_auth(Auth::AuthPriv { cipher, privacy_password })
        .with_key_extension_method(KeyExtension::Blumenthal)
}

fn own(oid: &snmp2::Oid<'_>) -> Option<Oid> {
    oid.iter().map(|parts| Oid::of(&parts.collect::<Vec<_>>()))
}

fn own_value(value: &snmp2::Value<'_>) -> Option<Value> {
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
