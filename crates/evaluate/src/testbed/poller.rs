//! A thread that sends requests to the SNMP agent during an experiment, so that no experiment waits for the agent.
//!
//! ```text
//!   read(), snmp() ──▶ bounded queue ──▶ thread "snmp": asks, waits ──▶ the testbed's inbox ──▶ module
//! ```
//!
//! Every request gets one reply, also when the agent is silent or there are too many requests.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::data::Outlet;
use super::interface::{Arrival, Happening};
use crate::error::{Error, Result};
use crate::gauge::process_cpu;
use crate::module::{Counter, Gauge};
use crate::snmp::{Agent, Cpu, Oid, Session, Value};

/// A request to the thread.
#[derive(Clone, Debug)]
pub(super) enum Question {
    Gauge(Gauge),
    Object(Oid),
}

/// A value, or the reason for its absence.
type Answer<T> = std::result::Result<T, String>;

/// The handle of the thread.
pub(super) struct Poller {
    questions: Option<SyncSender<Question>>,
    thread: Option<JoinHandle<()>>,
}

/// The most requests that may wait.
const QUEUE: usize = 64;
/// The pause without requests after the agent was silent.
const REST: Duration = Duration::from_secs(10);

/// The objects `ssCpuRawUser`, `-Nice`, `-System`, `-Interrupt`, `-SoftIRQ` of UCD-SNMP-MIB: hundredths of a second of
/// all CPUs.
const CPU_OF_SYSTEM: [&[u64]; 5] = [
    &[1, 3, 6, 1, 4, 1, 2021, 11, 50, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 51, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 52, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 56, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 61, 0],
];
/// The columns `ifName` and `ifDescr` of IF-MIB.
const NAMES: [&[u64]; 2] = [&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2]];

/// The column of a counter in IF-MIB: `ifHCInUcastPkts`, `ifHCOutUcastPkts`, `ifInDiscards`, `ifOutDiscards`.
fn column(counter: Counter) -> Oid {
    Oid::of(match counter {
        Counter::PacketsIn => &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7],
        Counter::PacketsOut => &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11],
        Counter::DiscardsIn => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13],
        Counter::DiscardsOut => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 19],
    })
}

impl Poller {
    /// Starts the thread. `process` is the switch's own process, if the process is on the agent's machine.
    pub(super) fn start(
        agent: Agent,
        process: Option<u32>,
        clock: Clock,
        outlet: Outlet,
    ) -> Result<Poller> {
        let (questions, inbox) = sync_channel(QUEUE);
        let worker = Worker {
            name: agent.to_string(),
            interfaces: agent.interfaces.iter().map(|name| (name.clone(), None)).collect(),
            cpu: agent.cpu.clone(),
            // The CPU time of a local process has a unit of nanoseconds; an agent refreshes its values every 5 or 30
            // seconds.
            fallen_back: (process.is_some() && agent.cpu.is_none()).then_some(true),
            session: Session::new(agent),
            process,
            used: (Instant::now(), 0.0),
            silent: None,
        };
        let work = move || worker.work(&inbox, clock, &outlet);
        let thread = Builder::new().name("snmp".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Error::Thread(format!("no thread: {error}")))?;
        Ok(Poller { questions: Some(questions), thread: Some(thread) })
    }

    /// Sends a request to the thread; the reply arrives later. If that is impossible, the result is the reason.
    pub(super) fn ask(&self, question: Question) -> Answer<()> {
        let Some(questions) = &self.questions else { return Ok(()) };
        questions.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => format!("{QUEUE} questions to the SNMP agent wait"),
            TrySendError::Disconnected(_) => "the thread for SNMP ended".to_owned(),
        })
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already printed a message.
            let _ = thread.join();
        }
    }
}

struct Worker {
    name: String,
    session: Session,
    process: Option<u32>,
    cpu: Option<Cpu>,
    /// The first reply decides on the source, so one difference never mixes two sources.
    fallen_back: Option<bool>,
    /// For a switch that gives only percent: the time of the last addition, and the sum of the CPU time, ns.
    used: (Instant, f64),
    /// The interfaces, each with its number once the number is known.
    interfaces: HashMap<String, Option<u64>>,
    silent: Option<(Instant, String)>,
}

impl Worker {
    fn work(mut self, inbox: &Receiver<Question>, clock: Clock, outlet: &Outlet) {
        while let Ok(question) = inbox.recv() {
            let what = match question {
                Question::Gauge(gauge) => {
                    let (value, remark) = self.gauge(&gauge);
                    Happening::Reading { gauge, value, remark }
                }
                Question::Object(oid) => {
                    let (value, remark) = with_remark(self.get_one(&oid));
                    Happening::Object { oid, value, remark }
                }
            };
            if !outlet.put(Ok(Arrival { at: clock.now(), what })) {
                return;
            }
        }
    }

    fn gauge(&mut self, gauge: &Gauge) -> (Option<f64>, Option<String>) {
        match gauge {
            Gauge::Cpu => self.cpu(),
            // The agent has no information about the control channel.
            Gauge::Segments => (None, None),
            Gauge::Interface { name, counter } => with_remark(self.interface(name, *counter)),
        }
    }

    fn cpu(&mut self) -> (Option<f64>, Option<String>) {
        if self.fallen_back == Some(true) {
            return (self.process.and_then(process_cpu), None);
        }
        let reading = self.cpu_of_agent();
        let is_first = self.fallen_back.is_none();
        match reading {
            Ok(Some(value)) => {
                self.fallen_back = Some(false);
                (Some(value), None)
            }
            other => {
                let why = other.err().unwrap_or_else(|| {
                    format!("the SNMP agent at {} reports no CPU time: say where, with cpu= or cpu-percent=", self.name)
                });
                let local = self.process.filter(|_| is_first).and_then(process_cpu);
                if local.is_none() {
                    return (None, Some(why));
                }
                self.fallen_back = Some(true);
                (local, Some(format!("{why}; its process's CPU time is read from /proc instead")))
            }
        }
    }

    fn cpu_of_agent(&mut self) -> Answer<Option<f64>> {
        const HUNDREDTH: f64 = 1e7;
        match self.cpu.clone() {
            Some(Cpu::Percent(oid)) => {
                let percent = self.number(&oid)?;
                let now = Instant::now();
                let elapsed = now.duration_since(self.used.0).as_nanos() as f64;
                self.used = (now, self.used.1 + percent.unwrap_or(0.0) / 100.0 * elapsed);
                Ok(percent.map(|_| self.used.1))
            }
            Some(Cpu::Counter(oid)) => Ok(self.number(&oid)?.map(|it| it * HUNDREDTH)),
            None => {
                let values = self.spoken(|session| session.get(&CPU_OF_SYSTEM.map(Oid::of)))?;
                let sum: f64 = values.iter().flatten().filter_map(Value::number).sum();
                // A sum of zero means that the agent has not read the CPU times yet.
                Ok((sum > 0.0).then_some(sum * HUNDREDTH))
            }
        }
    }

    fn interface(&mut self, name: &str, counter: Counter) -> Answer<Option<f64>> {
        let number = match self.interfaces.get(name).copied() {
            None => return Ok(None),
            Some(Some(number)) => number,
            Some(None) => self.find_interface(name)?,
        };
        self.interfaces.insert(name.to_owned(), Some(number));
        self.number(&column(counter).child(number))
    }

    fn find_interface(&mut self, name: &str) -> Answer<u64> {
        if let Ok(number) = name.parse() {
            return Ok(number);
        }
        let mut known = Vec::new();
        for column in NAMES {
            for (row, value) in self.spoken(|session| session.column(&Oid::of(column)))? {
                let Value::Text(text) = value else { continue };
                if text == name {
                    return Ok(row);
                }
                if !known.contains(&text) {
                    known.push(text);
                }
            }
        }
        known.truncate(20);
        let (agent, known) = (&self.name, known.join(", "));
        Err(format!("the SNMP agent at {agent} knows no interface {name}; it has {known}"))
    }

    fn number(&mut self, oid: &Oid) -> Answer<Option<f64>> {
        Ok(self.get_one(oid)?.and_then(|value| value.number()))
    }

    fn get_one(&mut self, oid: &Oid) -> Answer<Option<Value>> {
        let mut values = self.spoken(|session| session.get(std::slice::from_ref(oid)))?;
        Ok(values.pop().flatten())
    }

    /// Sends a request, unless the agent was silent a moment ago: each timeout takes seconds.
    fn spoken<T>(&mut self, ask: impl FnOnce(&mut Session) -> Answer<T>) -> Answer<T> {
        if let Some((until, why)) = &self.silent
            && Instant::now() < *until
        {
            return Err(why.clone());
        }
        self.silent = None;
        ask(&mut self.session).map_err(|why| {
            let why = format!("the SNMP agent at {} {why}", self.name);
            self.silent = Some((Instant::now() + REST, why.clone()));
            why
        })
    }
}

/// The value, and the reason for its absence as a remark.
fn with_remark<T>(answer: Answer<Option<T>>) -> (Option<T>, Option<String>) {
    match answer {
        Ok(value) => (value, None),
        Err(remark) => (None, Some(remark)),
    }
}
