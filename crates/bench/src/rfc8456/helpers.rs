//! Controls a controller without OpenFlow, by orders at its northbound interface, and by commands
//! that end and restart the controller.
//!
//! The benchmark does not know any controller's own API. The user gives commands. A command runs as
//! long as the benchmark, or once for each failure. Each command has its own process group, which
//! ends with the benchmark.

use crate::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// The helpers. A test whose helper is missing is not measured.
#[derive(Default)]
pub struct Helpers {
    /// Sends orders for entries to the controller, and queries the discovered topology.
    pub northbound: Option<Box<dyn Northbound>>,
    /// Ends the active controller, and starts the controller again.
    pub operator: Option<Box<dyn Operator>>,
}

/// A controller's northbound interface.
pub trait Northbound {
    /// Orders these flow entries. Returns when the controller has the order, perhaps before the
    /// controller acts.
    ///
    /// # Errors
    /// [`Error::System`] if the order cannot be sent, or the controller refuses the order.
    fn install(&mut self, flows: &[FlowOrder]) -> Result<(), Error>;

    /// The discovered topology; `None` if the interface cannot report the topology.
    ///
    /// # Errors
    /// [`Error::System`] if the query cannot be sent.
    fn topology(&mut self) -> Result<Option<Discovered>, Error>;
}

/// A flow entry that the controller must install: packets between two addresses leave by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOrder {
    /// The switch.
    pub dpid: u64,
    /// The Ethernet source.
    pub source: [u8; 6],
    /// The Ethernet destination.
    pub destination: [u8; 6],
    /// The port.
    pub out_port: u32,
}

/// The size of the network that a controller knows. Links are counted in each direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// Switches.
    pub switches: usize,
    /// Links.
    pub links: usize,
}

impl fmt::Display for Discovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} switches and {} links", self.switches, self.links)
    }
}

/// The operator of the controllers.
pub trait Operator {
    /// Ends the active controller.
    ///
    /// # Errors
    /// [`Error::System`] if the command failed.
    fn fail(&mut self) -> Result<(), Error>;

    /// Starts the controller again.
    ///
    /// # Errors
    /// [`Error::System`] if the command failed.
    fn restore(&mut self) -> Result<(), Error>;
}

/// A northbound interface by a command: orders go to the command's stdin, one JSON object a line in
/// the form of `examples/os-ken/flow_installer.py`. Answers are read from the command's output:
///
/// ```json
/// {"send": "flow", "dpid": 1, "command": "add", "flow": {"priority": 100,
///     "match": {"dl_src": "…", "dl_dst": "…"}, "actions": [{"type": "OUTPUT", "port": 2}]}}
/// {"send": "topology"}
/// ```
///
/// The answer to the second order is `{"event": "topology", "switches": 3, "links": 4}`, with links
/// counted in each direction. The answer to a refused order is a line with the event `bad_order` or
/// `error`. Lines with other events are ignored.
pub struct NorthboundCommand {
    process: Process,
    stdin: ChildStdin,
    answers: Receiver<Answer>,
    /// Whether the command ever reported a topology. A command that did not answer the first query
    /// gets no further queries.
    reports_topology: Option<bool>,
}

/// An answer of a northbound command.
enum Answer {
    Topology(Discovered),
    Refused(String),
}

/// The most unread answers. Further answers are dropped, because no order waits for these answers.
const MOST_ANSWERS: usize = 1024;
/// The longest line that is read. A longer line is cut into several lines, which are no answers.
const LONGEST_LINE: u64 = 1 << 20;
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl NorthboundCommand {
    /// Starts `sh -c COMMAND`.
    ///
    /// # Errors
    /// [`Error::System`] if there is no shell.
    pub fn start(command: &str) -> Result<Self, Error> {
        let mut process = Process::start(command)?;
        let (Some(stdin), Some(stdout)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err(Error::Internal("a child's pipes are missing"));
        };
        let (sender, answers) = sync_channel(MOST_ANSWERS);
        let listen = move || listen(stdout, &sender);
        let thread = std::thread::Builder::new().name("bench-northbound".to_owned());
        thread.spawn(listen).map_err(Error::io("thread"))?;
        Ok(Self { process, stdin, answers, reports_topology: None })
    }

    fn order(&mut self, text: &str) -> Result<(), Error> {
        let written = self.stdin.write_all(text.as_bytes()).and_then(|()| self.stdin.flush());
        written.map_err(|error| {
            let end = self.process.0.try_wait().ok().flatten();
            let end = end.map(|status| format!(" ({status})")).unwrap_or_default();
            Error::System(format!("the northbound command takes no orders{end}: {error}"))
        })
    }
}

impl Northbound for NorthboundCommand {
    fn install(&mut self, flows: &[FlowOrder]) -> Result<(), Error> {
        let text: String = flows.iter().map(|flow| order(flow) + "\n").collect();
        self.order(&text)?;
        for answer in self.answers.try_iter() {
            if let Answer::Refused(why) = answer {
                return Err(Error::System(format!("northbound interface: {why}")));
            }
        }
        Ok(())
    }

    fn topology(&mut self) -> Result<Option<Discovered>, Error> {
        if self.reports_topology == Some(false) {
            return Ok(None);
        }
        // Earlier refusals do not belong to this order.
        self.answers.try_iter().for_each(drop);
        self.order("{\"send\": \"topology\"}\n")?;
        let deadline = Instant::now() + ANSWER_WITHIN;
        loop {
            match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Answer::Topology(discovered)) => {
                    self.reports_topology = Some(true);
                    return Ok(Some(discovered));
                }
                Ok(Answer::Refused(_)) => {}
                Err(RecvTimeoutError::Timeout) if self.reports_topology.is_none() => {
                    self.reports_topology = Some(false);
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let text = "the northbound command does not report the topology any more";
                    return Err(Error::System(text.to_owned()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::System("the northbound command ended".to_owned()));
                }
            }
        }
    }
}

/// A flow order as a line of JSON.
fn order(flow: &FlowOrder) -> String {
    let mac = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    serde_json::json!({
        "send": "flow",
        "dpid": flow.dpid,
        "command": "add",
        "flow": {
            "priority": 100,
            "match": { "dl_src": mac(flow.source), "dl_dst": mac(flow.destination) },
            "actions": [{ "type": "OUTPUT", "port": flow.out_port }],
        },
    })
    .to_string()
}

fn listen(stdout: impl std::io::Read, sender: &SyncSender<Answer>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match std::io::Read::take(&mut stdout, LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        if let Some(answer) = answer(&line)
            && matches!(sender.try_send(answer), Err(TrySendError::Disconnected(_)))
        {
            return;
        }
    }
}

fn answer(line: &[u8]) -> Option<Answer> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    let count = |name: &str| usize::try_from(line.get(name)?.as_u64()?).ok();
    match line.get("event")?.as_str()? {
        "topology" => {
            let (switches, links) = (count("switches")?, count("links")?);
            Some(Answer::Topology(Discovered { switches, links }))
        }
        "bad_order" | "error" => Some(Answer::Refused(line.to_string())),
        _ => None,
    }
}

/// An operator that runs one command to end the active controller, and another command to start the
/// controller again.
pub struct OperatorCommands {
    /// The command that ends the controller. The controller has ended when the command ends.
    pub fail: String,
    /// The command that starts the controller again. The command must end, so the command must put
    /// the controller into the background.
    pub restore: String,
}

impl Operator for OperatorCommands {
    fn fail(&mut self) -> Result<(), Error> {
        once(&self.fail)
    }

    fn restore(&mut self) -> Result<(), Error> {
        once(&self.restore)
    }
}

fn once(command: &str) -> Result<(), Error> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
    let status = shell.status().map_err(Error::io("sh"))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::System(format!("`{command}` failed ({status})")))
}

/// A shell with its own process group, and with pipes to its input and from its output. All processes of the group end
/// when this value is dropped.
struct Process(Child);

impl Process {
    fn start(command: &str) -> Result<Self, Error> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = shell
            .spawn()
            .map_err(|error| Error::System(format!("`{command}` could not be started: {error}")))?;
        Ok(Self(child))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) else { return };
        for signal in [Signal::TERM, Signal::KILL] {
            // All processes may have ended already.
            let _ = kill_process_group(group, signal);
            for _ in 0..100 {
                if !matches!(self.0.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowOrder = FlowOrder {
        dpid: 3,
        source: [2, 0, 0, 0, 0, 1],
        destination: [2, 0, 0, 0, 0, 0xff],
        out_port: 4,
    };

    #[test]
    fn a_northbound_flow_order_is_written_as_json() {
        let line = order(&FLOW);
        let order: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((order["dpid"].as_u64(), order["command"].as_str()), (Some(3), Some("add")));
        assert_eq!(order["flow"]["match"]["dl_dst"], "02:00:00:00:00:ff");
        assert_eq!(order["flow"]["actions"][0]["port"], 4);
    }

    #[test]
    fn a_northbound_command_reports_the_topology_and_refused_orders() {
        let script = r#"while read -r line; do case "$line" in
            *topology*) echo noise; echo '{"event": "switch"}'
                        echo '{"event": "topology", "switches": 3, "links": 4}';;
            *) echo '{"event": "bad_order", "why": "full"}';;
        esac; done"#;
        let mut command = NorthboundCommand::start(script).unwrap();
        let known = Discovered { switches: 3, links: 4 };
        assert_eq!(command.topology().unwrap(), Some(known));
        // The refusal arrives with this order, or with a later order.
        let refused = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            command.install(&[FLOW]).err()
        });
        assert!(refused.unwrap().to_string().contains("full"));
        assert_eq!(command.topology().unwrap(), Some(known));
    }

    #[test]
    fn an_ended_northbound_command_is_an_error_and_drop_ends_child_processes() {
        let mut command = NorthboundCommand::start("exec true").unwrap();
        command.process.0.wait().unwrap();
        let error = command.install(&[FLOW]).unwrap_err();
        assert!(error.to_string().contains("takes no orders"), "{error}");

        let mut command = NorthboundCommand::start("sleep 1000 & echo $!; sleep 1000").unwrap();
        let group = command.process.0.id().to_string();
        command.order("").unwrap();
        drop(command);
        let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let behind = stat.rsplit(") ").next().unwrap_or_default().to_owned();
            let mut fields = behind.split(' ');
            fields.next() != Some("Z") && fields.nth(1) == Some(group.as_str())
        });
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn the_error_of_a_failed_operator_command_contains_the_command() {
        let mut operator =
            OperatorCommands { fail: "exit 7".to_owned(), restore: "true".to_owned() };
        assert!(operator.fail().unwrap_err().to_string().contains("exit 7"));
        operator.restore().unwrap();
    }
}
