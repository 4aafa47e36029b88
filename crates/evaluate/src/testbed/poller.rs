//! A thread that asks the SNMP agent while an experiment goes on, so that no experiment waits for the agent.
//!
//! ```text
//!   read(), snmp() ──▶ bounded queue ──▶ thread "snmp": asks, waits ──▶ the testbed's inbox ──▶ module
//! ```
//!
//! Every question gets one answer, also when the agent is silent or asked too fast.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::data::Answers;
use crate::error::{Error, Result};
use crate::gauge::process_cpu;
use crate::module::{Counter, Gauge};
use crate::snmp::{Agent, Cpu, Oid, Session, Value};

/// What can be asked.
#[derive(Clone, Debug)]
pub(super) enum Question {
    Gauge(Gauge),
    Object(Oid),
}

/// The thread.
pub(super) struct Poller {
    questions: Option<SyncSender<Question>>,
    thread: Option<JoinHandle<()>>,
}

/// Questions that may wait.
const QUEUE: usize = 64;
/// After a silence the agent is left alone for so long.
const REST: Duration = Duration::from_secs(10);

/// UCD-SNMP-MIB `ssCpuRawUser`, `-Nice`, `-System`, `-Interrupt`, `-SoftIRQ`: hundredths of a second of all CPUs.
const CPU_OF_SYSTEM: [&[u64]; 5] = [
    &[1, 3, 6, 1, 4, 1, 2021, 11, 50, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 51, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 52, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 56, 0],
    &[1, 3, 6, 1, 4, 1, 2021, 11, 61, 0],
];
/// IF-MIB `ifName`, `ifDescr`.
const NAMES: [&[u64]; 2] = [&[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1], &[1, 3, 6, 1, 2, 1, 2, 2, 1, 2]];

/// Where IF-MIB tells a counter: `ifHCInUcastPkts`, `ifHCOutUcastPkts`, `ifInDiscards`, `ifOutDiscards`.
fn column(counter: Counter) -> Oid {
    Oid::of(match counter {
        Counter::PacketsIn => &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7],
        Counter::PacketsOut => &[1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 11],
        Counter::DiscardsIn => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 13],
        Counter::DiscardsOut => &[1, 3, 6, 1, 2, 1, 2, 2, 1, 19],
    })
}

impl Poller {
    /// `process` is the switch's own, if it is on the agent's machine.
    pub(super) fn start(agent: Agent, process: Option<u32>, answers: Answers) -> Result<Poller> {
        let (questions, inbox) = sync_channel(QUEUE);
        let agent_tells_no_cpu = agent.cpu.is_none();
        let worker = Worker {
            name: agent.to_string(),
            interfaces: agent.interfaces.iter().map(|name| (name.clone(), None)).collect(),
            cpu: agent.cpu.clone(),
            session: Session::new(agent),
            process,
            // A local process's time is known to the nanosecond; an agent renews what it tells every 5 or 30 seconds.
            fallen_back: (process.is_some() && agent_tells_no_cpu).then_some(true),
            used: (Instant::now(), 0.0),
            silent: None,
        };
        let thread =
            Builder::new().name("snmp".to_owned()).spawn(move || worker.work(&inbox, &answers));
        let thread = thread.map_err(|error| Error::Thread(format!("no thread: {error}")))?;
        Ok(Poller { questions: Some(questions), thread: Some(thread) })
    }

    /// Asks; the answer comes. If it cannot, the question is given back with the reason.
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
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

struct Worker {
    name: String,
    session: Session,
    process: Option<u32>,
    cpu: Option<Cpu>,
    /// Decided by the first answer, so that two sources are never in one difference.
    fallen_back: Option<bool>,
    /// CPU time of a switch that only tells percent: when it was last added to, and the sum, ns.
    used: (Instant, f64),
    /// Each with its number, once that is known.
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
            // The control channel is not the agent's.
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
        let told = self.cpu_of_agent();
        let is_first = self.fallen_back.is_none();
        match told {
            Ok(Some(value)) => {
                self.fallen_back = Some(false);
                (Some(value), None)
            }
            other => {
                let why = other.err().unwrap_or_else(|| {
                    format!("the SNMP agent at {} tells no CPU time: say where, with cpu= or cpu-percent=", self.name)
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
                // A machine that has run for no time at all is one whose agent has not looked yet.
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

    /// Asks, unless the agent was silent a moment ago: each silence takes seconds.
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
