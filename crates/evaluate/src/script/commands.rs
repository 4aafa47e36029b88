//! The commands that a script may call.
//!
//! | call | does |
//! |---|---|
//! | `add(flow, priority, out)`, `modify(…)`, `remove(…)` | FLOW_MOD of flow number `flow` (exact match); `out` is a channel, or -1 to drop |
//! | `guard()` | an entry of low priority that drops probes that no other entry takes |
//! | `to_controller()` | an entry that sends all probes to the controller |
//! | `delete_own()` | deletes all of the experiment's entries |
//! | `barrier()`, `echo()`, `flow_statistics()`, `aggregate_statistics()` | requests; they return the transaction id |
//! | `packet_out(channel, sequence)` | PACKET_OUT of a probe |
//! | `send(mark)` | sends the orders before it together; `sent(at, mark)` reports the end of sending |
//! | `generate(generator, channel, flows, rate, count, length)`, `stop(generator)` | probes of flows 0 to `flows` - 1 in turn |
//! | `after(ns, timer)`, `now()` | time |
//! | `read_cpu()`, `get_snmp(oid)` | a reading; any object of the switch's SNMP agent |
//! | `set_link(channel, up)` | takes a link down or up |
//! | `record(case, metric, unit, value)`, `delay(case, name, ns)`, `finding(code, text)` | results; `case` is a map such as `#{rules: 10}` |
//! | `end()`, `give_up(text)` | ends this repetition, or the experiment |
//!
//! The orders of an event are sent at the end of the event at the latest.

use std::cell::RefCell;
use std::rc::Rc;

use packet::ProbeTemplate;
use report::{Better, Scalar};
use rhai::{Dynamic, Engine, EvalAltResult, INT, Map};

use crate::module::{Gauge, Orders, Traffic};
use crate::modules::for_all_probes;
use crate::probe::{MAX_FLOWS, MatchKind, flow_match, headers};
use crate::record::Case;
use crate::request::Request;
use crate::rule::{Action, Rule};
use crate::snmp::Oid;

/// The orders of a script during one event.
#[derive(Default)]
pub(crate) struct Desk {
    now: u64,
    next_xid: u32,
    ports: Vec<u32>,
    /// The requests that are not sent yet.
    requests: Vec<Request>,
    todo: Vec<Todo>,
    /// Whether the script ended the repetition.
    is_over: bool,
    tag: u64,
    day_ahead: u64,
}

/// Passes on one order, in the sequence of the script.
type Todo = Box<dyn FnOnce(&mut Orders<'_>)>;

/// The most orders in one event.
const MAX_ORDERS: usize = 1_000_000;

type Outcome<T> = Result<T, Box<EvalAltResult>>;

impl Desk {
    pub(crate) fn open(&mut self, orders: &Orders<'_>) {
        let bench = orders.bench();
        *self = Desk {
            now: orders.now(),
            next_xid: *orders.next_xid,
            ports: bench.channels.iter().map(|channel| channel.port).collect(),
            tag: bench.tag,
            day_ahead: bench.day_ahead,
            ..Desk::default()
        };
    }

    /// Passes the orders on. Returns whether the repetition is over.
    pub(crate) fn close(&mut self, orders: &mut Orders<'_>) -> bool {
        self.todo.drain(..).for_each(|todo| todo(orders));
        if !self.requests.is_empty() {
            orders.send_all(&std::mem::take(&mut self.requests), None);
        }
        self.is_over
    }

    fn push(&mut self, todo: impl FnOnce(&mut Orders<'_>) + 'static) -> Outcome<()> {
        if self.todo.len() >= MAX_ORDERS {
            return Err(format!("more than {MAX_ORDERS} orders in one event").into());
        }
        self.todo.push(Box::new(todo));
        Ok(())
    }

    fn request(&mut self, request: Request) -> Outcome<INT> {
        if self.requests.len() >= MAX_ORDERS {
            return Err(format!("more than {MAX_ORDERS} requests in one event").into());
        }
        self.requests.push(request);
        self.next_xid = self.next_xid.wrapping_add(1);
        Ok(self.next_xid.into())
    }

    fn port(&self, channel: INT) -> Outcome<u32> {
        let port = usize::try_from(channel).ok().and_then(|channel| self.ports.get(channel));
        port.copied().ok_or_else(|| format!("there is no channel {channel}").into())
    }

    fn rule(&self, flow: INT, priority: INT, out: INT) -> Outcome<Rule> {
        let actions = match out {
            -1 => Vec::new(),
            out => vec![Action::Output(self.port(out)?)],
        };
        let flow = within(flow, "flow", 0, (MAX_FLOWS - 1).into())? as u32;
        let priority = within(priority, "priority", 1, 0xffff)? as u16;
        let match_ = flow_match(flow, MatchKind::Exact, self.port(0)?);
        Ok(Rule { match_, priority, actions })
    }
}

/// Registers every command in the engine.
pub(crate) fn register(engine: &mut Engine, desk: &Rc<RefCell<Desk>>) {
    /// Registers a command: its name, its arguments and its effect on the desk.
    macro_rules! command {
        ($name:literal, |$desk:ident $(, $argument:ident: $type:ty)*| -> $result:ty $body:block) => {
            let shared = Rc::clone(desk);
            engine.register_fn($name, move |$($argument: $type),*| -> Outcome<$result> {
                let $desk = &mut *shared.borrow_mut();
                $body
            });
        };
    }
    command!("now", |desk| -> INT { Ok(desk.now as INT) });
    command!("add", |desk, flow: INT, priority: INT, out: INT| -> INT {
        let rule = desk.rule(flow, priority, out)?;
        desk.request(Request::Add(rule))
    });
    command!("modify", |desk, flow: INT, priority: INT, out: INT| -> INT {
        let rule = desk.rule(flow, priority, out)?;
        desk.request(Request::Modify(rule))
    });
    command!("remove", |desk, flow: INT, priority: INT, out: INT| -> INT {
        let rule = desk.rule(flow, priority, out)?;
        desk.request(Request::Delete(rule))
    });
    command!("guard", |desk| -> INT { desk.request(Request::Add(for_all_probes(Vec::new()))) });
    command!("to_controller", |desk| -> INT {
        desk.request(Request::Add(for_all_probes(vec![Action::Controller])))
    });
    command!("delete_own", |desk| -> INT { desk.request(Request::DeleteOwn) });
    command!("barrier", |desk| -> INT { desk.request(Request::Barrier) });
    command!("echo", |desk| -> INT { desk.request(Request::Echo(Vec::new())) });
    command!("flow_statistics", |desk| -> INT {
        desk.request(Request::FlowStatistics { own: true })
    });
    command!("aggregate_statistics", |desk| -> INT { desk.request(Request::AggregateStatistics) });
    command!("packet_out", |desk, channel: INT, sequence: INT| -> INT {
        let port = desk.port(channel)?;
        let sequence = within(sequence, "sequence", 0, u32::MAX.into())? as u32;
        let template = ProbeTemplate::new(&headers(0), desk.tag, LENGTH);
        let mut template = template.map_err(|error| error.to_string())?;
        let time = packet::Timestamp(desk.now.saturating_add(desk.day_ahead));
        desk.request(Request::PacketOut { port, frame: template.stamp(sequence, time).to_vec() })
    });
    command!("send", |desk, mark: INT| -> () {
        let mark = within(mark, "mark", 0, u32::MAX.into())? as u32;
        let requests = std::mem::take(&mut desk.requests);
        desk.push(move |orders| {
            orders.send_all(&requests, Some(mark));
        })
    });
    command!("generate", |desk,
                          generator: INT,
                          channel: INT,
                          flows: INT,
                          rate: Dynamic,
                          count: INT,
                          length: INT|
     -> () {
        desk.port(channel)?;
        let flows = within(flows, "flows", 1, MAX_FLOWS.into())? as u32;
        let traffic = Traffic {
            channel: channel as usize,
            headers: (0..flows).map(headers).collect(),
            length: within(length, "length", 60, 9_000)? as usize,
            rate: number(&rate)?,
            count: within(count, "count", 1, u32::MAX.into())? as u32,
            first: 0,
        };
        let generator = within(generator, "generator", 0, 0xffff)? as u32;
        desk.push(move |orders| orders.generate(generator, traffic))
    });
    command!("stop", |desk, generator: INT| -> () {
        let generator = within(generator, "generator", 0, 0xffff)? as u32;
        desk.push(move |orders| orders.stop(generator))
    });
    command!("after", |desk, ns: INT, timer: INT| -> () {
        let ns = within(ns, "ns", 0, INT::MAX)? as u64;
        let timer = within(timer, "timer", 0, u32::MAX.into())? as u32;
        desk.push(move |orders| orders.after(ns, timer))
    });
    command!("read_cpu", |desk| -> () { desk.push(|orders| orders.read(Gauge::Cpu)) });
    command!("get_snmp", |desk, oid: &str| -> () {
        let oid: Oid = oid.parse()?;
        desk.push(move |orders| orders.ask(oid))
    });
    command!("set_link", |desk, channel: INT, up: bool| -> () {
        desk.port(channel)?;
        desk.push(move |orders| orders.set_link(channel as usize, up))
    });
    command!("record", |desk, in_case: Map, metric: &str, unit: &str, value: Dynamic| -> () {
        let (case, value) = (case(&in_case), number(&value)?);
        let (metric, unit) = (metric.to_owned(), unit.to_owned());
        desk.push(move |orders| {
            orders.record.sample_named(&case, &metric, &unit, Better::Neither, value);
        })
    });
    command!("delay", |desk, in_case: Map, name: &str, ns: INT| -> () {
        let ns = within(ns, "ns", 0, INT::MAX)? as u64;
        let (case, name) = (case(&in_case), name.to_owned());
        desk.push(move |orders| orders.record.delay(&case, &name, ns))
    });
    command!("finding", |desk, code: &str, text: &str| -> () {
        let (code, text) = (code.to_owned(), text.to_owned());
        desk.push(move |orders| orders.record.finding(&code, text))
    });
    command!("end", |desk| -> () {
        desk.is_over = true;
        Ok(())
    });
    command!("give_up", |desk, text: &str| -> () {
        let text = text.to_owned();
        desk.push(move |orders| orders.give_up(text))
    });
}

/// The bytes of a probe in a PACKET_OUT.
const LENGTH: usize = 100;

fn within(value: INT, name: &str, least: INT, most: INT) -> Outcome<INT> {
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(format!("{name} {value} is not within {least} to {most}").into())
}

fn number(value: &Dynamic) -> Outcome<f64> {
    let number = value.as_float().or_else(|_| value.as_int().map(|value| value as f64));
    number.map_err(|type_| format!("{type_} is no number").into())
}

fn case(map: &Map) -> Case {
    map.iter().fold(Case::new(), |case, (name, value)| {
        let value = match (value.as_bool(), number(value)) {
            (Ok(flag), _) => Scalar::Flag(flag),
            (_, Ok(number)) => Scalar::Number(number),
            _ => Scalar::Text(value.to_string()),
        };
        case.with(name, value)
    })
}
