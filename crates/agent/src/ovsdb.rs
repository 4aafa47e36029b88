//! A small client of Open vSwitch's database (RFC 7047) with the few operations that sampling needs.
//!
//! The client uses JSON-RPC over the database's Unix socket, one request at a time.

use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// The timeout for the database and for ovs-vswitchd.
const PATIENCE: Duration = Duration::from_secs(5);
/// The limit for a reply. A reply to this client is far smaller; a peer that sends more is not the database.
const LARGEST_ANSWER: usize = 1 << 22;

/// The most bytes of a packet that Open vSwitch's sFlow sends. When a sample with its other fields takes more than half
/// of a datagram of 1,400 bytes, Open vSwitch's sFlow agent only logs that the sample is too big.
pub const LARGEST_HEADER: u32 = 512;

/// The sFlow configuration of Open vSwitch, as in the database's table `sFlow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OvsSampling {
    /// The address of the collector.
    pub collector: SocketAddr,
    /// N of a sampling rate of one in N packets, at least 1.
    pub one_in: u32,
    /// The bytes of each sampled packet, at most [`LARGEST_HEADER`].
    pub header: u32,
}

/// A connection to the database.
pub struct Database {
    stream: UnixStream,
    unread: Vec<u8>,
    next: u64,
}

impl Database {
    /// Connects to the database's socket, such as `/run/openvswitch/db.sock`.
    ///
    /// # Errors
    /// [`Error::Io`] when no process listens at the socket.
    pub fn connect(socket: &Path) -> Result<Database> {
        let fail = |error| Error::io(format!("connect to {}", socket.display()), error);
        let stream = UnixStream::connect(socket).map_err(fail)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(fail)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(fail)?;
        Ok(Database { stream, unread: Vec::new(), next: 1 })
    }

    /// Whether the bridge has an sFlow configuration.
    ///
    /// # Errors
    /// As [`Database::set_sampling`].
    pub fn is_sampling(&mut self, bridge: &str) -> Result<bool> {
        let is_it = json!([["name", "==", bridge]]);
        let select =
            json!({ "op": "select", "table": "Bridge", "where": is_it, "columns": ["sflow"] });
        let results = self.transact(vec![select])?;
        let row = results.first().and_then(|one| one["rows"].get(0));
        let row = row.ok_or_else(|| Error::Database(format!("there is no bridge {bridge:?}")))?;
        // The column has a reference or the empty set.
        Ok(row["sflow"] != json!(["set", []]))
    }

    /// Sets the sampling of a bridge, replaces an earlier configuration, and waits until ovs-vswitchd has applied the
    /// change.
    ///
    /// # Errors
    /// [`Error::Option`] for more bytes of a packet than Open vSwitch sends; [`Error::Database`] when the bridge does
    /// not exist or the database refuses; [`Error::Io`].
    pub fn set_sampling(&mut self, bridge: &str, sampling: &OvsSampling) -> Result<()> {
        if sampling.header > LARGEST_HEADER {
            return Err(Error::Option(format!(
                "Open vSwitch sends at most {LARGEST_HEADER} bytes of a packet, not {}",
                sampling.header
            )));
        }
        let row = json!({
            "targets": sampling.collector.to_string(),
            "sampling": sampling.one_in,
            "header": sampling.header,
            "polling": 0,
        });
        let insert =
            json!({ "op": "insert", "table": "sFlow", "row": row, "uuid-name": "sampling" });
        self.change(bridge, vec![insert], &json!(["named-uuid", "sampling"]))
    }

    /// Removes the sampling of a bridge, and waits until ovs-vswitchd has applied the change.
    ///
    /// # Errors
    /// As [`Database::set_sampling`].
    pub fn clear_sampling(&mut self, bridge: &str) -> Result<()> {
        self.change(bridge, Vec::new(), &json!(["set", []]))
    }

    fn change(&mut self, bridge: &str, mut operations: Vec<Value>, sampling: &Value) -> Result<()> {
        let is_it = json!([["name", "==", bridge]]);
        let update = json!({ "op": "update", "table": "Bridge", "where": is_it, "row": { "sflow": sampling } });
        operations.push(update);
        let updated = operations.len() - 1;
        operations.extend([
            json!({ "op": "mutate", "table": "Open_vSwitch", "where": [], "mutations": [["next_cfg", "+=", 1]] }),
            json!({ "op": "select", "table": "Open_vSwitch", "where": [], "columns": ["next_cfg"] }),
        ]);
        let asked = operations.len() - 1;
        let results = self.transact(operations)?;
        if results.get(updated).and_then(|one| one["count"].as_u64()) != Some(1) {
            // When the bridge does not exist, no row refers to the new row, and the database drops the new row.
            return Err(Error::Database(format!("there is no bridge {bridge:?}")));
        }
        let wanted = results.get(asked).and_then(|one| one["rows"][0]["next_cfg"].as_i64());
        self.wait_for(
            wanted.ok_or_else(|| Error::Database("it does not number its changes".to_owned()))?,
        )
    }

    /// Waits until ovs-vswitchd reports that the change is complete.
    fn wait_for(&mut self, wanted: i64) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let select = json!({ "op": "select", "table": "Open_vSwitch", "where": [], "columns": ["cur_cfg"] });
            let results = self.transact(vec![select])?;
            let current = results.first().and_then(|one| one["rows"][0]["cur_cfg"].as_i64());
            if current.is_some_and(|current| current >= wanted) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::Database(
                    "ovs-vswitchd has not carried out the change".to_owned(),
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn transact(&mut self, operations: Vec<Value>) -> Result<Vec<Value>> {
        let id = self.next;
        self.next += 1;
        let parameters: Vec<Value> =
            std::iter::once(json!("Open_vSwitch")).chain(operations).collect();
        self.send(&json!({ "method": "transact", "params": parameters, "id": id }))?;
        let answer = loop {
            let message = self.receive()?;
            if message["method"] == "echo" {
                // The database checks that the client is alive (RFC 7047, section 4.1.11).
                self.send(
                    &json!({ "result": message["params"], "error": null, "id": message["id"] }),
                )?;
            } else if message["id"] == id {
                break message;
            }
        };
        if !answer["error"].is_null() {
            return Err(Error::Database(answer["error"].to_string()));
        }
        let results = answer["result"].as_array().cloned().unwrap_or_default();
        match results.iter().find(|result| !result["error"].is_null()) {
            Some(failed) => Err(Error::Database(failed.to_string())),
            None => Ok(results),
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let fail = |error| Error::io("write to Open vSwitch's database", error);
        self.stream.write_all(message.to_string().as_bytes()).map_err(fail)
    }

    /// Receives the next message. There is no separator between messages.
    fn receive(&mut self) -> Result<Value> {
        loop {
            let mut values = serde_json::Deserializer::from_slice(&self.unread).into_iter();
            match values.next() {
                Some(Ok(value)) => {
                    let end = values.byte_offset();
                    self.unread.drain(..end);
                    return Ok(value);
                }
                Some(Err(error)) if !error.is_eof() => {
                    return Err(Error::Database(format!("its answer is no JSON: {error}")));
                }
                _ => {}
            }
            if self.unread.len() > LARGEST_ANSWER {
                return Err(Error::Database("its answer does not end".to_owned()));
            }
            let mut buffer = [0; 4096];
            let fail = |error| Error::io("read from Open vSwitch's database", error);
            let count = self.stream.read(&mut buffer).map_err(fail)?;
            if count == 0 {
                return Err(Error::Database("it closed the connection".to_owned()));
            }
            self.unread.extend_from_slice(buffer.get(..count).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A database that sends the next of these replies to each request; `ID` is a placeholder for the request's id.
    fn check(answers: &'static [&'static str], expected: &str) {
        let folder =
            std::env::temp_dir().join(format!("weir-ovsdb-{}-{:p}", std::process::id(), answers));
        let listener = std::os::unix::net::UnixListener::bind(&folder).unwrap();
        let mut database = Database::connect(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        let peer = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for (index, answer) in answers.iter().enumerate() {
                let mut buffer = [0; 4096];
                assert!(stream.read(&mut buffer).unwrap() > 0);
                let id = (index + 1).to_string();
                stream.write_all(answer.replace("ID", &id).as_bytes()).unwrap();
            }
        });
        let error = database.clear_sampling("s1").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        peer.join().unwrap();
    }

    #[test]
    fn unexpected_database_replies_are_errors() {
        check(
            &[r#"{"id":ID,"error":null,"result":[{"count":0},{},{"rows":[{"next_cfg":3}]}]}"#],
            "there is no bridge \"s1\"",
        );
        check(
            &[r#"{"id":ID,"error":null,"result":[{"count":1},{},{"rows":[]}]}"#],
            "does not number",
        );
        check(&[r#"{"id":ID,"error":"unknown database","result":null}"#], "unknown database");
        check(
            &[r#"{"id":ID,"error":null,"result":[null,{"error":"constraint violation"}]}"#],
            "constraint violation",
        );
        check(&[r#"{"id":ID,"error":nul}"#], "no JSON");
        check(&["{"], "closed the connection");
    }

    #[test]
    fn a_bridge_is_sampling_if_the_bridge_has_an_sflow_reference() {
        let answer = |rows: &str| {
            let (mut peer, stream) = UnixStream::pair().unwrap();
            let answer = format!(r#"{{"id":1,"error":null,"result":[{{"rows":{rows}}}]}}"#);
            peer.write_all(answer.as_bytes()).unwrap();
            let mut database = Database { stream, unread: Vec::new(), next: 1 };
            (database.is_sampling("s1"), peer).0
        };
        assert!(!answer(r#"[{"sflow":["set",[]]}]"#).unwrap());
        assert!(answer(r#"[{"sflow":["uuid","36bef046-7da7-43a5-905a-c17899216fcb"]}]"#).unwrap());
        assert!(answer("[]").unwrap_err().to_string().contains("no bridge"));
    }
}
