//! Runs a module on a testbed: passes events in order, executes orders, keeps timers, and restores the switch's tables
//! when the module ends, also after an error.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::message::Message;
use crate::module::{Event, Module, Order, Orders};
use crate::record::Record;
use crate::request::Request;
use crate::tables::Tables;
use crate::testbed::{Arrival, Happening, Testbed};

/// The options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions<'a> {
    /// The time limit of a module, ns; at the limit, the module ends with the results so far.
    pub limit: u64,
    /// The timeout for a reply while the run reads or restores the tables, ns.
    pub patience: u64,
    /// The caller sets this flag to end early.
    pub stop: &'a AtomicBool,
}

/// The result of one module.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The measurements.
    pub record: Record,
    /// The reason why the module did not finish; `None` if the module finished.
    pub partial: Option<String>,
}

/// One second in ns.
const SECOND: u64 = 1_000_000_000;
/// The most orders of a module without any time passing.
const MAX_ORDERS: usize = 1_000_000;

impl<'a> RunOptions<'a> {
    /// Ten minutes per module, five seconds per reply.
    pub fn new(stop: &'a AtomicBool) -> RunOptions<'a> {
        RunOptions { limit: 600 * SECOND, patience: 5 * SECOND, stop }
    }
}

/// Runs one module.
///
/// # Errors
/// Only [`Error::Interrupted`], after the tables were restored, if there are no measurements yet. Every other error,
/// and also a stop, is in [`Outcome::partial`], together with the measurements so far.
pub fn run(
    testbed: &mut dyn Testbed,
    module: &mut dyn Module,
    options: &RunOptions<'_>,
) -> Result<Outcome> {
    let epoch = EPOCH.fetch_add(1, Ordering::Relaxed);
    let mut run = Run {
        testbed,
        module,
        timers: BinaryHeap::new(),
        armed: HashMap::new(),
        queue: VecDeque::new(),
        epoch,
        generators: Vec::new(),
        next_xid: epoch.wrapping_mul(0x0100_0000).wrapping_add(0x1000),
        record: Record::default(),
    };
    let has_switch = run.testbed.bench().has_switch;
    let patience = if has_switch { options.patience } else { 0 };
    let before = match Tables::read(run.testbed, patience) {
        Ok(tables) => Some(tables),
        Err(_) if !has_switch => None,
        Err(error) => {
            run.record.finding("tables-unknown", format!("the flow tables could not be read before the experiment, so it is not known whether they are as they were: {error}"));
            None
        }
    };
    let drops = run.testbed.capture_drops();
    let counters = Counters::read(run.testbed, &mut run.record);
    let ended = run.drive(options);
    let Run { testbed, generators, mut record, .. } = run;
    generators.into_iter().for_each(|generator| testbed.stop(generator));
    counters.difference(testbed, &mut record);
    let lost = testbed.capture_drops().saturating_sub(drops);
    if lost > 0 {
        record.finding("capture-drops", format!("the capture lost {lost} frames because they were not read fast enough: losses below may be the tool's own"));
    }
    let cleaned = clean_up(testbed, before.as_ref(), options, &mut record);
    let partial = match (ended, cleaned) {
        (Err(Error::Interrupted), _) if record.is_empty() => return Err(Error::Interrupted),
        (Err(error), _) => Some(error.to_string()),
        (Ok(Some(why)), _) => Some(why),
        (Ok(None), Err(error)) => Some(format!("while the tables were put back: {error}")),
        (Ok(None), Ok(())) => None,
    };
    Ok(Outcome { record, partial })
}

/// Deletes the entries of the experiment and reports other differences.
fn clean_up(
    testbed: &mut dyn Testbed,
    before: Option<&Tables>,
    options: &RunOptions<'_>,
    record: &mut Record,
) -> Result<()> {
    let version = testbed.bench().version;
    let mut bytes = Vec::new();
    // Both requests are short, so writing cannot fail.
    let _ = Request::DeleteOwn.write(version, 1, &mut bytes);
    let _ = Request::Barrier.write(version, 2, &mut bytes);
    testbed.send(bytes, None)?;
    // A switch with early barrier replies now shows a table that the switch will still change.
    pass(testbed, SECOND / 4)?;
    // There is no table to compare: the switch gets at least time to delete the entries.
    let Some(before) = before else { return pass(testbed, SECOND) };
    // A slow switch takes longer: the function reads the tables more than once.
    let mut difference = None;
    for _ in 0..5 {
        let after = Tables::read(testbed, options.patience)?;
        difference = before.difference(&after);
        if difference.is_none() {
            return Ok(());
        }
        pass(testbed, SECOND)?;
    }
    if let Some(difference) = difference {
        record.finding("tables-changed", difference);
    }
    Ok(())
}

/// Waits for `ns` nanoseconds.
fn pass(testbed: &mut dyn Testbed, ns: u64) -> Result<()> {
    let until = testbed.now().saturating_add(ns);
    while testbed.next(until)?.is_some() {}
    Ok(())
}

/// The epoch separates the generators and transaction ids of one run from those of the run before: the last events of
/// the run before may still be in flight.
static EPOCH: AtomicU32 = AtomicU32::new(1);

struct Run<'r> {
    testbed: &'r mut dyn Testbed,
    module: &'r mut dyn Module,
    epoch: u32,
    /// The started generators, with the testbed's numbers.
    generators: Vec<u32>,
    /// The timers by time, then the timer and the number of its arming.
    timers: BinaryHeap<Reverse<(u64, u32, u64)>>,
    /// The latest arming of each timer.
    armed: HashMap<u32, u64>,
    queue: VecDeque<Order>,
    next_xid: u32,
    record: Record,
}

impl Run<'_> {
    /// Returns the reason why the module gave up, if the module gave up.
    fn drive(&mut self, options: &RunOptions<'_>) -> Result<Option<String>> {
        let end = self.testbed.now().saturating_add(options.limit);
        let mut done = self.deliver(self.testbed.now(), &Event::Start)?;
        while done.is_none() {
            if options.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let due = self.timers.peek().map_or(end, |Reverse((at, ..))| (*at).min(end));
            // The wait is short, so the run sees a stop soon.
            let until = due.min(self.testbed.now().saturating_add(SECOND / 10));
            done = match self.testbed.next(until)? {
                Some(arrival) => self.arrive(&arrival)?,
                None if self.testbed.now() >= end => {
                    let seconds = options.limit / SECOND;
                    Some(Some(format!("the experiment was not over after {seconds} s")))
                }
                None => self.ring()?,
            };
        }
        Ok(done.flatten())
    }

    /// Passes one arrival to the module; the result is `Some` when the experiment is over.
    fn arrive(&mut self, arrival: &Arrival) -> Result<Option<Option<String>>> {
        let at = arrival.at;
        match &arrival.what {
            Happening::Sent(mark) => self.deliver(at, &Event::Sent { mark: *mark }),
            Happening::Message(frame) => {
                let (xid, message) =
                    Message::parse(frame).map_err(|error| Error::NotOpenFlow(error.to_string()))?;
                if let Message::EchoRequest(bytes) = message {
                    return self.answer_echo(xid, bytes).map(|()| None);
                }
                self.deliver(at, &Event::Message { xid, message })
            }
            Happening::Probes { channel, probes } => {
                for (probe, seen) in probes {
                    let event = Event::Probe { channel: *channel, probe, seen: *seen };
                    let done = self.deliver(probe.arrived.0, &event)?;
                    if done.is_some() {
                        return Ok(done);
                    }
                }
                Ok(None)
            }
            Happening::Generated { generator, report } => {
                if generator >> 16 != self.epoch & 0xffff {
                    return Ok(None);
                }
                let event = Event::Generated { generator: generator & 0xffff, report };
                self.deliver(at, &event)
            }
            Happening::Reading { gauge, value, remark } => {
                self.remark(remark.as_deref());
                self.deliver(at, &Event::Reading { gauge, value: *value })
            }
            Happening::Object { oid, value, remark } => {
                self.remark(remark.as_deref());
                self.deliver(at, &Event::Object { oid, value: value.as_ref() })
            }
        }
    }

    /// Adds the reason of a failed reading to the findings.
    fn remark(&mut self, remark: Option<&str>) {
        if let Some(remark) = remark {
            self.record.finding("snmp", remark);
        }
    }

    /// The testbed's number of a module's generator; a module has at most 65,536 generators.
    fn number(&self, generator: u32) -> u32 {
        self.epoch << 16 | generator & 0xffff
    }

    fn answer_echo(&mut self, xid: u32, bytes: &[u8]) -> Result<()> {
        let mut out = Vec::new();
        let (version, kind) =
            (self.testbed.bench().version, openflow::v10::MessageType::ECHO_REPLY.0);
        // The reply is as long as the request, so writing cannot fail.
        let _ = openflow::frame::write(version, kind, xid, &mut out, |out| {
            out.extend_from_slice(bytes);
        });
        self.testbed.send(out, None)
    }

    /// Passes due timers to the module.
    fn ring(&mut self) -> Result<Option<Option<String>>> {
        let now = self.testbed.now();
        while let Some(Reverse((at, timer, arming))) = self.timers.peek().copied() {
            if at > now {
                break;
            }
            self.timers.pop();
            // The timer was armed again.
            if self.armed.get(&timer) != Some(&arming) {
                continue;
            }
            let done = self.deliver(now, &Event::Timer { timer })?;
            if done.is_some() {
                return Ok(done);
            }
        }
        Ok(None)
    }

    fn deliver(&mut self, at: u64, event: &Event<'_>) -> Result<Option<Option<String>>> {
        let mut orders = Orders {
            now: self.testbed.now(),
            bench: self.testbed.bench(),
            next_xid: &mut self.next_xid,
            queue: &mut self.queue,
            record: &mut self.record,
        };
        self.module.handle(at, event, &mut orders);
        for _ in 0..MAX_ORDERS {
            let Some(order) = self.queue.pop_front() else { return Ok(None) };
            match order {
                Order::Send { bytes, mark } => self.testbed.send(bytes, mark)?,
                Order::Generate { generator, traffic } => {
                    check(self.testbed, &traffic)?;
                    let number = self.number(generator);
                    if !self.generators.contains(&number) {
                        self.generators.push(number);
                    }
                    self.testbed.generate(number, &traffic)?;
                }
                Order::Stop { generator } => self.testbed.stop(self.number(generator)),
                Order::Timer { timer, at } => {
                    let arming = self.armed.entry(timer).or_default();
                    *arming += 1;
                    self.timers.push(Reverse((at, timer, *arming)));
                }
                Order::Read(gauge) => self.testbed.read(gauge),
                Order::Ask(oid) => self.testbed.ask(oid),
                Order::SetLink { channel, up } => self.testbed.set_link(channel, up)?,
                Order::End => return Ok(Some(None)),
                Order::GiveUp(why) => return Ok(Some(Some(why))),
            }
        }
        Ok(Some(Some(format!("the module gave more than {MAX_ORDERS} orders at once"))))
    }
}

/// Checks the requirements of every generator.
fn check(testbed: &dyn Testbed, traffic: &crate::module::Traffic) -> Result<()> {
    let channels = testbed.bench().channels.len();
    if traffic.channel >= channels {
        let message = format!("there is no channel {}: there are {channels}", traffic.channel);
        return Err(Error::parameter("channel", message));
    }
    if traffic.headers.is_empty() {
        return Err(Error::parameter("traffic", "it has no headers to send"));
    }
    if !(traffic.rate > 0.001 && traffic.rate <= 1e8) {
        return Err(Error::parameter("rate", format!("{} is no rate", traffic.rate)));
    }
    Ok(())
}
