//! A thread that sends requests to the SNMP agent during an experiment, so that no experiment waits for the agent.
//!
//! ```text
//!   read(), snmp() ──▶ bounded queue ──▶ thread "snmp": asks, waits ──▶ the testbed's inbox ──▶ module
//! ```
//!
//! Every request gets one reply, also when the agent is silent or there are too many requests.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::data::Answers;
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
    pub(super) fn start(agent: Agent, process: Option<u32>, answers: Answers) -> Result<Poller> {
        let (questions, inbox) = sync_channel(QUEUE);
        let agent_has_no_cpu = agent.cpu.is_none();
        let worker = Worker {
            name: agent.to_string(),
            interfaces: agent.interfaces.iter().map(|name| (name.clone(), None)).collect(),
            cpu: agent.cpu.clone(),
            session: Session::new(agent),
            process,
            // The CPU time of a local process has a unit of nanoseconds; an agent refreshes its values every 5 or 30
            // seconds.
            fallen_back: (process.is_some() && agent_has_no_cpu).then_some(true),
            used: (Instant::now(), 0.0),
            silent: None,
        };
        let thread =
            Builder::new().name("snmp".to_owned()).spawn(move || worker.work(&inbox, &answers));
        let thread = thread.map_err(|error| Error::Thread(format!("no thread: {error}")))?;
        Ok(Poller { questions: Some(questions), thread: Some(thread) })
    }

    /// Sends a request to the thread; the reply arrives later. If that is impossible, the result has the request and
    /// the reason.
    pub(super) fn ask(&self, question: Question) -> std::result::Result<(), (Question, String)> {
        let Some(questions) = &self.questions else { return Ok(()) };
        questions.try_send(question).map_err(|error| match error {
            TrySendError::Full(it) => (it, format!("{QUEUE} questions to the SNMP agent wait")),
            TrySendError::Disconnected(it) => (it, "the thread for SNMP ended".to_owned()),
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
    interfaces: Vec<(String, Option<u64>)>,
    silent: Option<(Instant, String)>,
}

impl Worker {
    fn work(mut self, inbox: &Receiver<Question>, answers: &Answers) {
        while let Ok(question) = inbox.recv() {
            let is_heard = match question {
                Question::Gauge(gauge) => {
                    let (value, remark) = self.gauge(&gauge);
                    answers.reading(gauge, value, remark)
                }
                Question::Object(oid) => {
                    let value = self.get(std::slice::from_ref(&oid));
                    let (value, remark) = match value {
                        Ok(mut values) => (values.pop().flatten(), None),
                        Err(remark) => (None, Some(remark)),
                    };
                    answers.object(oid, value, remark)
                }
            };
            if !is_heard {
                return;
            }
        }
    }

    fn gauge(&mut self, gauge: &Gauge) -> (Option<f64>, Option<String>) {
        let value = match gauge {
            Gauge::Cpu => return self.cpu(),
            // The agent has no information about the control channel.
            Gauge::Segments => return (None, None),
            Gauge::Interface { name, counter } => self.interface(name, *counter),
        };
        match value {
            Ok(value) => (value, None),
            Err(remark) => (None, Some(remark)),
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

    fn cpu_of_agent(&mut self) -> std::result::Result<Option<f64>, String> {
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
                let values = self.get(&CPU_OF_SYSTEM.map(Oid::of))?;
                let sum: f64 = values.iter().flatten().filter_map(Value::number).sum();
                // A sum of zero means that the agent has not read the CPU times yet.
                Ok((sum > 0.0).then_some(sum * HUNDREDTH))
            }
        }
    }

    fn interface(
        &mut self,
        name: &str,
        counter: Counter,
    ) -> std::result::Result<Option<f64>, String> {
        let Some(at) = self.interfaces.iter().position(|(known, _)| known == name) else {
            return Ok(None);
        };
        let number = match self.interfaces.get(at).and_then(|(_, number)| *number) {
            Some(number) => number,
            None => {
                let number = self.find_interface(name)?;
                if let Some((_, known)) = self.interfaces.get_mut(at) {
                    *known = Some(number);
                }
                number
            }
        };
        self.number(&column(counter).child(number))
    }

    fn find_interface(&mut self, name: &str) -> std::result::Result<u64, String> {
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

    fn number(&mut self, oid: &Oid) -> std::result::Result<Option<f64>, String> {
        let values = self.get(std::slice::from_ref(oid))?;
        Ok(values.into_iter().next().flatten().and_then(|value| value.number()))
    }

    fn get(&mut self, oids: &[Oid]) -> std::result::Result<Vec<Option<Value>>, String> {
        self.spoken(|session| session.get(oids))
    }

    /// Sends a request, unless the agent was silent a moment ago: each timeout takes seconds.
    fn spoken<T>(
        &mut self,
        ask: impl FnOnce(&mut Session) -> std::result::Result<T, String>,
    ) -> std::result::Result<T, String> {
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
