//! The state of a switch: its configuration, its datapath, a session for each controller, and the planted faults.
//!
//! The modules `v10` and `v13` execute messages on the state. [`dispatch`](crate::dispatch) selects
//! the module.

use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;
use openflow::hello::Hello;
use openflow::{ErrorCode, Header, Version, error, frame};

use crate::buffers::Buffers;
use crate::config::Config;
use crate::datapath::{Command, Datapath, FlowRequest};
use crate::effects::Effects;
use crate::fault::{Fault, Faults};
use crate::groups::Groups;
use crate::meters::Meters;
use crate::ports::Port;
use crate::refusal;
use crate::request::Request;
use crate::session::{Session, SessionId};
use crate::table::{Flow, FlowTable};

pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) datapath: Datapath,
    pub(crate) faults: Faults,
    /// The largest generation id that a controller used in a role request.
    pub(crate) generation: Option<u64>,
    pub(crate) sessions: Vec<Option<Session>>,
    /// The FLOW_MODs that a fault delays: time of execution, session, request and message.
    pub(crate) unapplied: VecDeque<(u64, SessionId, FlowRequest, Vec<u8>)>,
}

impl State {
    pub(crate) fn new(mut config: Config) -> State {
        config.n_tables = config.n_tables.clamp(1, 254);
        let ports = config.ports.iter().map(|port| (port.number, Port::new(0, port.clone())));
        let faults = Faults::new(config.faults.clone());
        let datapath = Datapath {
            ports: ports.collect::<BTreeMap<_, _>>(),
            tables: (0..config.n_tables).map(|_| FlowTable::new(config.max_flows)).collect(),
            groups: Groups::default(),
            meters: Meters::new(),
            buffers: Buffers::new(config.n_buffers),
            stations: HashMap::new(),
            fragments: 0,
            drops_changed_packets: faults.drops_changed_packets(),
            runs_set_on_miss: faults.runs_set_on_miss(),
            ignores_queues: faults.ignores_queues(),
        };
        State {
            datapath,
            faults,
            generation: None,
            sessions: vec![Some(Session::new())],
            unapplied: VecDeque::new(),
            config,
        }
    }

    /// Replaces the planted faults. Their counters start again at zero.
    pub(crate) fn plant(&mut self, faults: Vec<Fault>) {
        self.faults = Faults::new(faults);
        self.datapath.drops_changed_packets = self.faults.drops_changed_packets();
        self.datapath.runs_set_on_miss = self.faults.runs_set_on_miss();
        self.datapath.ignores_queues = self.faults.ignores_queues();
    }

    /// The ports by number.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Port> {
        self.datapath.ports.values()
    }

    /// The port of this number.
    pub(crate) fn port(&self, number: u32) -> Option<&Port> {
        self.datapath.ports.get(&number)
    }

    /// All flow entries with their tables.
    pub(crate) fn flows(&self) -> impl Iterator<Item = (u8, &Flow)> {
        let tables = (0u8..).zip(&self.datapath.tables);
        tables.flat_map(|(id, table)| table.iter().map(move |flow| (id, flow)))
    }

    pub(crate) fn session(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(id.0)?.as_mut()
    }

    pub(crate) fn session_ref(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(id.0)?.as_ref()
    }

    pub(crate) fn sessions_mut(&mut self) -> impl Iterator<Item = (SessionId, &mut Session)> {
        let sessions = self.sessions.iter_mut().enumerate();
        sessions.filter_map(|(index, session)| Some((SessionId(index), session.as_mut()?)))
    }

    /// Appends a whole reply through `write`. A reply that does not fit in a message is not sent.
    pub(crate) fn reply<E>(
        &mut self,
        id: SessionId,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) {
        if let Some(session) = self.session(id) {
            // A writer that fails does not change the buffer.
            let _ = write(&mut session.out);
        }
    }

    pub(crate) fn greet(&mut self, id: SessionId) {
        let versions = self.config.versions;
        let xid = self.session(id).map_or(0, Session::own_xid);
        self.reply(id, |out| Hello::write_message(versions, xid, out));
    }

    pub(crate) fn refuse(&mut self, request: &Request<'_>, version: Version, code: ErrorCode) {
        /// The number of bytes of the message that both versions require at least, and that Open
        /// vSwitch sends.
        const DATA: usize = 64;
        let data = request.frame.get(..DATA).unwrap_or(request.frame);
        let error = error::Error { code: refusal::for_version(code, version), data };
        let xid = request.header.xid;
        self.reply(request.session, |out| error.write_message(version, xid, out));
    }

    /// Executes a FLOW_MOD now, or queues the FLOW_MOD if the fault [`Fault::BarrierLies`] is
    /// planted.
    pub(crate) fn flow_mod(
        &mut self,
        request: &Request<'_>,
        flow: FlowRequest,
        effects: &mut Effects,
    ) -> Result<(), ErrorCode> {
        let adds = flow.command == Command::Add || flow.modify_adds && flow.command.is_modify();
        if adds && self.faults.refuses_addition() {
            return Err(error::v13::FLOW_MOD_FAILED_TABLE_FULL);
        }
        match self.faults.flow_mod_delay() {
            None => self.datapath.flow_mod(request.now, &flow, effects),
            Some(delay) => {
                let due = request.now.saturating_add(delay);
                self.unapplied.push_back((due, request.session, flow, request.frame.to_vec()));
                Ok(())
            }
        }
    }

    /// Executes the delayed FLOW_MODs that are due at `now`.
    pub(crate) fn apply_due(&mut self, now: u64, effects: &mut Effects) {
        while self.unapplied.front().is_some_and(|(due, ..)| *due <= now) {
            let Some((due, session, flow, frame)) = self.unapplied.pop_front() else { return };
            let result = self.datapath.flow_mod(due, &flow, effects);
            if let Err(code) = result
                && let Ok(header) = Header::parse(&frame)
            {
                let request = Request { now, session, header, frame: &frame };
                self.refuse(&request, header.version, code);
            }
        }
    }

    /// Applies the planted faults to the reply that begins at `start` of the output. Returns
    /// whether the switch must close the connection.
    pub(crate) fn spoil_reply(&mut self, now: u64, id: SessionId, start: usize) -> bool {
        let Some(session) = self.sessions.get_mut(id.0).and_then(Option::as_mut) else {
            return false;
        };
        let spoiled = self.faults.spoil(session.out.len() > start);
        if spoiled.wrong_xid
            && let Some(answer) = session.out.get_mut(start..)
            && let Some(xid) = frame::xid(answer)
        {
            frame::set_xid(answer, xid ^ 0x5a5a_5a5a);
        }
        if spoiled.twice {
            session.out.extend_from_within(start..);
        }
        if spoiled.cut {
            let half = start + (session.out.len() - start).div_ceil(2);
            session.out.truncate(half);
            return true;
        }
        session.out.extend_from_slice(&spoiled.garbage);
        if let Some((_, interval)) = self.faults.statistics_pace() {
            postpone_statistics(session, now, start, interval);
        }
        false
    }
}

/// Takes the statistics replies from `start` on out of the output, to send them one after another.
fn postpone_statistics(session: &mut Session, now: u64, start: usize, interval: u64) {
    let answers = session.out.split_off(start);
    let mut rest = answers.as_slice();
    let mut due = session.later.back().map_or(now, |(at, _)| (*at).max(now));
    while let Ok(Some(length)) = frame::next(rest) {
        let (message, others) = rest.split_at(length);
        rest = others;
        if is_statistics_reply(message) {
            due = due.saturating_add(interval);
            session.later.push_back((due, message.to_vec()));
        } else {
            session.out.extend_from_slice(message);
        }
    }
    session.out.extend_from_slice(rest);
}

fn is_statistics_reply(message: &[u8]) -> bool {
    matches!(
        (frame::version(message), frame::type_(message)),
        (Some(Version::V1_0), Some(17)) | (Some(Version::V1_3), Some(19))
    )
}
