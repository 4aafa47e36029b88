//! User-defined experiments: a TOML file with parameters and a Rhai script that handles events,
//! without a new build of Weir. This is the main idea of OFLOPS; the experiments of OFLOPS were C
//! libraries.
//!
//! A script has a function for each event that the script handles (see [`HANDLERS`]). The state of the script is
//! `this`, which begins with the file's parameters. The commands of scripts are in `commands.rs`. Generation, capture
//! and timestamps stay in Rust, so a script costs no precision: the script only gets times.
//!
//! A script cannot read files, open sockets or load other scripts. The operations per event, the call depth and the
//! data of a script are bounded.

mod commands;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rhai::packages::{Package, StandardPackage};
use rhai::{AST, CallFnOptions, Dynamic, Engine, Map, Scope};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::message::Message;
use crate::module::{Event, Gauge, Module, Orders};
use crate::modules::Experiment;
use crate::request::Request;
use crate::snmp::Value;
use commands::Desk;

/// The events and their arguments. Times are in ns on the testbed's clock.
pub const HANDLERS: [(&str, &[&str]); 15] = [
    ("start", &[]),
    ("sent", &["at", "mark"]),
    ("barrier_reply", &["at", "xid"]),
    ("echo_reply", &["at", "xid"]),
    ("packet_in", &["at", "sequence", "sent"]),
    ("flow_removed", &["at", "cookie", "priority"]),
    ("port_status", &["at", "port", "up"]),
    ("statistics", &["at", "xid", "entries", "more"]),
    ("refused", &["at", "xid", "type", "code"]),
    ("message", &["at", "xid", "type"]),
    ("probe", &["at", "channel", "sequence", "sent", "seen"]),
    ("timer", &["at", "timer"]),
    ("generated", &["at", "generator", "sent"]),
    ("reading", &["at", "name", "value"]),
    ("snmp_answer", &["at", "oid", "value"]),
];

/// The most operations of a script in one event.
const MAX_OPERATIONS: u64 = 50_000_000;
/// The most elements of one array or map, and the most bytes of a text.
const MAX_SIZE: usize = 4_000_000;

/// The experiment file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    /// The path of the script, relative to the file.
    script: PathBuf,
    #[serde(default = "two")]
    channels: usize,
    #[serde(default = "ten")]
    repetitions: u32,
    #[serde(default)]
    parameters: BTreeMap<String, toml::Value>,
}

fn two() -> usize {
    2
}

fn ten() -> u32 {
    10
}

/// An experiment from a file.
#[derive(Clone, Debug)]
pub struct Script {
    file: File,
    path: PathBuf,
    ast: AST,
}

impl Script {
    /// Reads the experiment file and compiles its script.
    ///
    /// # Errors
    /// A file cannot be read, a key is unknown, the script is not valid Rhai, or a handler has other arguments than its
    /// event.
    pub fn read(path: &Path) -> Result<Script> {
        let read = |path: &Path| {
            fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
        };
        let wrong = |path: &Path, why: String| Error::parameter(&path.display().to_string(), why);
        let file: File =
            toml::from_str(&read(path)?).map_err(|error| wrong(path, error.to_string()))?;
        if !(1..=10_000).contains(&file.repetitions) {
            return Err(wrong(path, "repetitions is not within 1 to 10000".to_owned()));
        }
        let script = path.parent().unwrap_or(Path::new(".")).join(&file.script);
        let ast = engine(&Rc::default())
            .compile(read(&script)?)
            .map_err(|error| wrong(&script, error.to_string()))?;
        for function in ast.iter_functions() {
            let handler = HANDLERS.iter().find(|(name, _)| *name == function.name);
            if let Some((name, arguments)) = handler
                && arguments.len() != function.params.len()
            {
                let why = format!("the event is {name}({})", arguments.join(", "));
                return Err(wrong(&script, why));
            }
        }
        if !ast.iter_functions().any(|function| function.name == "start") {
            return Err(wrong(&script, "it has no function start()".to_owned()));
        }
        Ok(Script { file, path: script, ast })
    }

    /// Sets the number of repetitions.
    pub fn set_repetitions(&mut self, repetitions: u32) {
        self.file.repetitions = repetitions;
    }

    /// Replaces the value of a parameter. The text is parsed as TOML; a text that is not TOML is itself the value.
    ///
    /// # Errors
    /// The file has no such parameter.
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let Some(value) = self.file.parameters.get_mut(name) else {
            let known: Vec<&str> = self.file.parameters.keys().map(String::as_str).collect();
            let why = format!("the experiment has no such parameter; it has {}", known.join(", "));
            return Err(Error::parameter(name, why));
        };
        let read = toml::from_str::<toml::Table>(&format!("value = {text}"));
        let read = read.ok().and_then(|mut table| table.remove("value"));
        *value = read.unwrap_or_else(|| toml::Value::String(text.to_owned()));
        Ok(())
    }
}

impl Experiment for Script {
    fn name(&self) -> &str {
        &self.file.name
    }

    fn module(&self) -> Box<dyn Module> {
        let desk = Rc::default();
        Box::new(Running {
            engine: engine(&desk),
            script: self.clone(),
            desk,
            this: Dynamic::UNIT,
            left: self.file.repetitions,
            is_over: false,
        })
    }
}

fn engine(desk: &Rc<RefCell<Desk>>) -> Engine {
    let mut engine = Engine::new_raw();
    engine.register_global_module(StandardPackage::new().as_shared_module());
    engine.set_max_operations(MAX_OPERATIONS);
    engine.set_max_call_levels(64);
    engine.set_max_expr_depths(128, 64);
    engine.set_max_array_size(MAX_SIZE);
    engine.set_max_map_size(MAX_SIZE);
    engine.set_max_string_size(MAX_SIZE);
    commands::register(&mut engine, desk);
    engine
}

/// A running script.
struct Running {
    engine: Engine,
    script: Script,
    desk: Rc<RefCell<Desk>>,
    this: Dynamic,
    left: u32,
    is_over: bool,
}

impl Running {
    /// Begins a repetition; the state contains only the parameters.
    fn begin(&mut self, orders: &mut Orders<'_>) {
        let parameters = &self.script.file.parameters;
        let this: Map =
            parameters.iter().map(|(name, value)| (name.as_str().into(), dynamic(value))).collect();
        self.this = Dynamic::from_map(this);
        self.call("start", Vec::new(), orders);
    }

    fn call(&mut self, name: &str, arguments: Vec<Dynamic>, orders: &mut Orders<'_>) {
        if self.is_over || !self.script.ast.iter_functions().any(|it| it.name == name) {
            return;
        }
        self.desk.borrow_mut().open(orders);
        let options =
            CallFnOptions::new().eval_ast(false).rewind_scope(true).bind_this_ptr(&mut self.this);
        let result = self.engine.call_fn_with_options::<Dynamic>(
            options,
            &mut Scope::new(),
            &self.script.ast,
            name,
            arguments,
        );
        let ended = self.desk.borrow_mut().close(orders);
        if let Err(error) = result {
            self.is_over = true;
            orders.give_up(format!("{} in {name}(): {error}", self.script.path.display()));
        } else if ended {
            self.left = self.left.saturating_sub(1);
            self.is_over = self.left == 0;
            if self.is_over {
                return orders.end();
            }
            orders.send(&Request::DeleteOwn);
            self.begin(orders);
        }
    }
}

impl Module for Running {
    fn handle(&mut self, at: u64, event: &Event<'_>, orders: &mut Orders<'_>) {
        let int = |value: u64| Dynamic::from_int(i64::try_from(value).unwrap_or(i64::MAX));
        let small = |value: u32| Dynamic::from_int(value.into());
        let at_ = int(at);
        let (name, arguments) = match event {
            Event::Start => {
                let (needed, there) = (self.script.file.channels, orders.bench().channels.len());
                if there < needed {
                    return orders.give_up(format!(
                        "the experiment needs {needed} data channels, and there are {there}"
                    ));
                }
                return self.begin(orders);
            }
            Event::Sent { mark } => ("sent", vec![at_, small(*mark)]),
            Event::Timer { timer } => ("timer", vec![at_, small(*timer)]),
            Event::Generated { generator, report } => {
                ("generated", vec![at_, small(*generator), small(report.sent)])
            }
            Event::Reading { gauge, value } => {
                let name = match gauge {
                    Gauge::Cpu => "cpu",
                    // Scripts read interfaces as SNMP objects.
                    Gauge::Segments | Gauge::Interface { .. } => return,
                };
                let value = value.map_or(Dynamic::UNIT, Dynamic::from_float);
                ("reading", vec![at_, name.into(), value])
            }
            Event::Object { oid, value } => {
                let value = match value {
                    Some(Value::Number(number)) => Dynamic::from_float(*number),
                    Some(Value::Text(text)) => text.as_str().into(),
                    None => Dynamic::UNIT,
                };
                ("snmp_answer", vec![at_, oid.to_string().into(), value])
            }
            Event::Probe { channel, probe, seen } => {
                let (sequence, sent) = (small(probe.sequence), int(probe.sent.0));
                ("probe", vec![at_, int(*channel as u64), sequence, sent, int(*seen)])
            }
            Event::Message { xid, message } => {
                let xid = small(*xid);
                match *message {
                    Message::BarrierReply => ("barrier_reply", vec![at_, xid]),
                    Message::EchoReply => ("echo_reply", vec![at_, xid]),
                    Message::PacketIn { data } => {
                        let probe = orders.bench().probe(data, at);
                        let sequence = probe.map_or(-1, |probe| probe.sequence.into());
                        let sent = probe.map_or(Dynamic::from_int(-1), |probe| int(probe.sent.0));
                        ("packet_in", vec![at_, Dynamic::from_int(sequence), sent])
                    }
                    Message::FlowRemoved { cookie, priority } => {
                        let cookie = Dynamic::from_int(cookie.cast_signed());
                        ("flow_removed", vec![at_, cookie, small(priority.into())])
                    }
                    Message::PortStatus { port, up } => {
                        ("port_status", vec![at_, small(port), up.into()])
                    }
                    Message::FlowStatistics { entries, more } => {
                        ("statistics", vec![at_, xid, int(entries as u64), more.into()])
                    }
                    Message::AggregateStatistics { flows } => {
                        ("statistics", vec![at_, xid, small(flows), false.into()])
                    }
                    Message::Error { code: (type_, code) } => {
                        ("refused", vec![at_, xid, small(type_.into()), small(code.into())])
                    }
                    Message::Other { type_ } => ("message", vec![at_, xid, small(type_.into())]),
                    Message::Queues(_)
                    | Message::QueueStatistics { .. }
                    | Message::EchoRequest(_) => return,
                }
            }
        };
        self.call(name, arguments, orders);
    }
}

/// Converts a parameter to a value of the script. Dates become texts.
fn dynamic(value: &toml::Value) -> Dynamic {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => Dynamic::from_int(*number),
        toml::Value::Float(number) => Dynamic::from_float(*number),
        toml::Value::Boolean(flag) => (*flag).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.iter().map(dynamic).collect::<Vec<_>>().into(),
        toml::Value::Table(table) => {
            let map: Map =
                table.iter().map(|(name, value)| (name.as_str().into(), dynamic(value))).collect();
            Dynamic::from_map(map)
        }
    }
}
