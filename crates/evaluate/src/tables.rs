//! Reads the flow tables of a switch, to check that an experiment restored the tables.

use std::collections::BTreeSet;

use openflow::{Version, v10, v13};

use crate::error::{Error, Result};
use crate::request::Request;
use crate::testbed::{Happening, Testbed};

/// The entries of all tables, without their counters and durations.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    entries: BTreeSet<Entry>,
}

/// The identity of an entry, as bytes of its OpenFlow version.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    table: u8,
    priority: u16,
    cookie: u64,
    timeouts: (u16, u16),
    match_: Vec<u8>,
    does: Vec<u8>,
}

/// The transaction id of the request.
const XID: u32 = 0x0057_4549;
/// The most entries that are stored; further entries are not compared.
const MAX_ENTRIES: usize = 2_000_000;

impl Tables {
    /// Requests the entries of the switch.
    ///
    /// # Errors
    /// The switch does not reply within `patience` ns, refuses, or closes the connection.
    pub(crate) fn read(testbed: &mut dyn Testbed, patience: u64) -> Result<Tables> {
        let version = testbed.bench().version;
        let mut bytes = Vec::new();
        // The request is short, so writing cannot fail.
        let _ = Request::FlowStatistics { own: false }.write(version, XID, &mut bytes);
        testbed.send(bytes, None)?;
        let mut tables = Tables::default();
        let mut until = testbed.now().saturating_add(patience);
        while let Some(arrival) = testbed.next(until)? {
            let Happening::Message(frame) = arrival.what else { continue };
            if openflow::frame::xid(&frame) != Some(XID) {
                continue;
            }
            let more = match version {
                Version::V1_0 => tables.add_v10(&frame)?,
                _ => tables.add_v13(&frame)?,
            };
            if !more {
                return Ok(tables);
            }
            until = testbed.now().saturating_add(patience);
        }
        let what = "the answer to a request for flow statistics";
        Err(Error::Control(channel::Error::TimedOut { what }))
    }

    /// A sentence about the differences afterwards; `None` without a difference.
    pub(crate) fn difference(&self, after: &Tables) -> Option<String> {
        let gone = self.entries.difference(&after.entries).count();
        let new = after.entries.difference(&self.entries).count();
        (gone + new > 0).then(|| {
            format!("the flow tables are not as they were found: {gone} entries are gone, {new} are new (somebody else may have changed them meanwhile)")
        })
    }

    fn insert(&mut self, entry: Entry) {
        if self.entries.len() < MAX_ENTRIES {
            self.entries.insert(entry);
        }
    }

    /// Adds the entries of a reply. Returns whether more parts follow.
    fn add_v10(&mut self, frame: &[u8]) -> Result<bool> {
        let (_, message) =
            v10::Message::parse(frame).map_err(|error| Error::NotOpenFlow(error.to_string()))?;
        let v10::Message::StatsReply(reply) = message else { return Err(refused()) };
        if let v10::StatsReplyBody::Flow(list) = reply.body {
            for flow in list.iter() {
                let mut match_ = Vec::new();
                flow.match_.write(&mut match_);
                self.insert(Entry {
                    table: flow.table_id,
                    priority: flow.priority,
                    cookie: flow.cookie,
                    timeouts: (flow.idle_timeout, flow.hard_timeout),
                    match_,
                    does: flow.actions.as_bytes().to_vec(),
                });
            }
        }
        Ok(reply.flags.contains(v10::StatsFlags::REPLY_MORE))
    }

    fn add_v13(&mut self, frame: &[u8]) -> Result<bool> {
        let (_, message) =
            v13::Message::parse(frame).map_err(|error| Error::NotOpenFlow(error.to_string()))?;
        let v13::Message::MultipartReply(reply) = message else { return Err(refused()) };
        if let v13::MultipartReplyBody::Flow(list) = reply.body {
            for flow in list.iter() {
                let mut match_ = Vec::new();
                flow.match_.write(&mut match_);
                self.insert(Entry {
                    table: flow.table_id,
                    priority: flow.priority,
                    cookie: flow.cookie,
                    timeouts: (flow.idle_timeout, flow.hard_timeout),
                    match_,
                    does: flow.instructions.as_bytes().to_vec(),
                });
            }
        }
        Ok(reply.flags.contains(v13::MultipartFlags::MORE))
    }
}

fn refused() -> Error {
    Error::NotOpenFlow("it answers a request for flow statistics with something else".to_owned())
}
