//! What a controller is asked or told otherwise than by OpenFlow: orders at its northbound interface,
//! and its end.
//!
//! The benchmark knows no controller's own API. Whoever measures gives commands; these run for as
//! long as the benchmark does, or once for each failure, in a process group of their own that ends
//! with the benchmark.

use crate::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// Whoever helps; what there is nobody for is not measured.
#[derive(Default)]
pub struct Helpers {
    /// Tells the controller what to install and asks what it has discovered.
    pub northbound: Option<Box<dyn Northbound>>,
    /// Ends the active controller, and starts it again.
    pub operator: Option<Box<dyn Operator>>,
}

/// A controller's northbound interface.
pub trait Northbound {
    /// Has these flow entries installed. Comes back when the controller has been told, which may be
    /// before it has done anything.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be told, or says that it will not.
    fn install(&mut self, flows: &[FlowOrder]) -> Result<(), Error>;

    /// What it has discovered; `None` if it has no way to tell.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be asked.
    fn topology(&mut self) -> Result<Option<Discovered>, Error>;
}

/// A flow entry that somebody else is to install: packets between two addresses leave by a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowOrder {
    /// At which switch.
    pub dpid: u64,
    /// The Ethernet source.
    pub source: [u8; 6],
    /// The Ethernet destination.
    pub destination: [u8; 6],
    /// The port.
    pub out_port: u32,
}

/// How much of a network a controller knows. Links are counted in each direction.
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

/// Whoever runs the controllers.
pub trait Operator {
    /// Ends the active controller.
    ///
    /// # Errors
    /// [`Error::System`] when that failed.
    fn fail(&mut self) -> Result<(), Error>;

    /// Starts it again.
    ///
    /// # Errors
    /// [`Error::System`] when that failed.
    fn restore(&mut self) -> Result<(), Error>;
}

/// A northbound interface behind a command: orders go to its stdin, one JSON object a line in the
/// form of `examples/os-ken/flow_installer.py`; what it prints is read for answers:
///
/// ```json
/// {"send": "flow", "dpid": 1, "command": "add", "flow": {"priority": 100,
///     "match": {"dl_src": "…", "dl_dst": "…"}, "actions": [{"type": "OUTPUT", "port": 2}]}}
/// {"send": "topology"}
/// ```
///
/// The second is answered by `{"event": "topology", "switches": 3, "links": 4}`, links counted in
/// each direction; an order that is refused by a line whose event is `bad_order` or `error`. Lines of
/// other events are passed over.
pub struct NorthboundCommand {
    process: Process,
    stdin: ChildStdin,
    answers: Receiver<Answer>,
    /// Whether it ever told a topology; one that was asked in vain is not asked again.
    tells_topology: Option<bool>,
}

/// What a northbound command said.
enum Answer {
    Topology(Discovered),
    Refused(String),
}

/// Answers that wait to be looked at; what comes on top is dropped, as nobody asked for it.
const MOST_ANSWERS: usize = 1024;
/// The longest line that is read; a longer one is cut into several, which are no answers.
const LONGEST_LINE: u64 = 1 << 20;
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl NorthboundCommand {
    /// Starts `sh -c COMMAND`.
    ///
    /// # Errors
    /// [`Error::System`] when there is no shell.
    pub fn start(command: &str) -> Result<Self, Error> {
        let mut process = Process::start(command, Stdio::piped(), Stdio::piped())?;
        let (Some(stdin), Some(stdout)) = (process.0.stdin.take(), process.0.stdout.take()) else {
            return Err(Error::Internal("a child's pipes are missing"));
        };
        let (told, answers) = sync_channel(MOST_ANSWERS);
        let listen = move || listen(stdout, &told);
        let thread = std::thread::Builder::new().name("bench-northbound".to_owned());
        thread.spawn(listen).map_err(Error::io("thread"))?;
        Ok(Self { process, stdin, answers, tells_topology: None })
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
        match self.answers.try_iter().find_map(refusal) {
            Some(why) => Err(Error::System(format!("northbound interface: {why}"))),
            None => Ok(()),
        }
    }

    fn topology(&mut self) -> Result<Option<Discovered>, Error> {
        if self.tells_topology == Some(false) {
            return Ok(None);
        }
        // What was refused before is not this order's.
        self.answers.try_iter().for_each(drop);
        self.order("{\"send\": \"topology\"}\n")?;
        let deadline = Instant::now() + ANSWER_WITHIN;
        loop {
            match self.answers.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Answer::Topology(discovered)) => {
                    self.tells_topology = Some(true);
                    return Ok(Some(discovered));
                }
                Ok(Answer::Refused(_)) => {}
                Err(RecvTimeoutError::Timeout) if self.tells_topology.is_none() => {
                    self.tells_topology = Some(false);
                    return Ok(None);
                }
                Err(RecvTimeoutError::Timeout) => {
                    let text = "the northbound command does not tell the topology any more";
                    return Err(Error::System(text.to_owned()));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::System("the northbound command ended".to_owned()));
                }
            }
        }
    }
}

fn refusal(answer: Answer) -> Option<String> {
    match answer {
        Answer::Refused(why) => Some(why),
        Answer::Topology(_) => None,
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

fn listen(stdout: impl std::io::Read, told: &SyncSender<Answer>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match std::io::Read::take(&mut stdout, LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        if let Some(answer) = answer(&line)
            && matches!(told.try_send(answer), Err(TrySendError::Disconnected(_)))
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

/// An operator who runs one command to fail the active controller, and another one to start it again.
pub struct OperatorCommands {
    /// Ends the controller; done when it exits.
    pub fail: String,
    /// Starts it again; done when it exits, so it has to put the controller into the background.
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

/// A shell with a process group of its own; both end when this is dropped.
struct Process(Child);

impl Process {
    fn start(command: &str, stdin: Stdio, stdout: Stdio) -> Result<Self, Error> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(stdin).stdout(stdout).process_group(0);
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
            // Everybody may have ended already.
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
    fn an_order_is_a_line_of_json() {
        let line = order(&FLOW);
        let order: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((order["dpid"].as_u64(), order["command"].as_str()), (Some(3), Some("add")));
        assert_eq!(order["flow"]["match"]["dl_dst"], "02:00:00:00:00:ff");
        assert_eq!(order["flow"]["actions"][0]["port"], 4);
    }

    #[test]
    fn a_command_is_told_and_asked() {
        let script = r#"while read -r line; do case "$line" in
            *topology*) echo noise; echo '{"event": "switch"}'
                        echo '{"event": "topology", "switches": 3, "links": 4}';;
            *) echo '{"event": "bad_order", "why": "full"}';;
        esac; done"#;
        let mut command = NorthboundCommand::start(script).unwrap();
        let known = Discovered { switches: 3, links: 4 };
        assert_eq!(command.topology().unwrap(), Some(known));
        // The refusal comes with that order, or with one behind it.
        let refused = (0..1000).find_map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            command.install(&[FLOW]).err()
        });
        assert!(refused.unwrap().to_string().contains("full"));
        assert_eq!(command.topology().unwrap(), Some(known));
    }

    #[test]
    fn a_command_that_ends_is_an_error_and_none_is_left_behind() {
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
    fn an_operators_command_says_when_it_fails() {
        let mut operator =
            OperatorCommands { fail: "exit 7".to_owned(), restore: "true".to_owned() };
        assert!(operator.fail().unwrap_err().to_string().contains("exit 7"));
        operator.restore().unwrap();
    }
}
