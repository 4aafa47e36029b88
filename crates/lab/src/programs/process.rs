//! Runs child processes, such as `weir serve`, that end with their owner, even if the owner is
//! killed.

use crate::command::find_program;
use crate::error::{Error, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const START: Duration = Duration::from_secs(10);
const STOP: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

/// A child process. Dropping the value ends the process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts the process with both outputs in `log`. Ctrl-C in a terminal does not reach the process, because the
    /// owner ends the process.
    ///
    /// The process belongs to the calling thread, and ends with that thread.
    ///
    /// # Errors
    /// [`Error::Io`]: the log cannot be written, or the program cannot be started.
    pub fn start(command: &mut Command, log: PathBuf) -> Result<Process> {
        let program = command.get_program().to_string_lossy().into_owned();
        let mut guarded = guarded(command);
        let command = guarded.as_mut().unwrap_or(command);
        let file = File::create(&log).map_err(Error::path("write", &log))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(Error::path("share", &log))?)
            .stderr(file)
            .process_group(0)
            .spawn()
            .map_err(Error::io(format!("start {program}")))?;
        Ok(Process { child, log })
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The output of the process so far.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error is ignored, because the process may have ended by itself.
        let _ = kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM);
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            if !self.is_alive() {
                return;
            }
            sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes the same command, but the kernel ends the process when its parent ends, because a killed parent runs no
/// `Drop`. Returns `None` without util-linux.
fn guarded(command: &Command) -> Option<Command> {
    let mut guarded = Command::new(find_program("setpriv")?);
    guarded.args(["--pdeathsig", "TERM", "--"]).arg(command.get_program());
    guarded.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guarded.env(name, value),
            None => guarded.env_remove(name),
        };
    }
    Some(guarded)
}

/// A `weir serve`, which tests measure and kill as the process that an operator would run.
#[derive(Debug)]
pub struct Weir {
    process: Process,
    address: SocketAddr,
}

impl Weir {
    /// Starts `weir serve` with this configuration. The OpenFlow address may have port 0. Files are
    /// written to `work`.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Command`] with the output of `weir serve` if `weir serve` does
    /// not start.
    pub fn serve(config: &str, work: &Path) -> Result<Weir> {
        let file = work.join("weir.toml");
        fs::write(&file, config).map_err(Error::path("write", &file))?;
        let mut command = Command::new(own_program()?);
        command.arg("serve").arg(&file).arg("--state").arg(work.join("state"));
        command.args(["--log-format", "json"]).env("WEIR_LOG", "info");
        let mut process = Process::start(&mut command, work.join("weir.log"))?;
        let deadline = Instant::now() + START;
        loop {
            if let Some(address) = process.said().lines().find_map(listening) {
                return Ok(Weir { process, address });
            }
            if !process.is_alive() || Instant::now() > deadline {
                return Err(Error::Command {
                    command: "weir serve".to_owned(),
                    status: "it does not start".to_owned(),
                    stderr: process.said().trim().to_owned(),
                });
            }
            sleep(LOOK);
        }
    }

    /// The address for switches.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id of `weir serve`.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

/// The path of this program, to run its other commands.
///
/// # Errors
/// [`Error::Io`].
pub fn own_program() -> Result<PathBuf> {
    std::env::current_exe().map_err(Error::io("find this program's own file"))
}

/// The address for switches, from the log line that contains the address.
fn listening(line: &str) -> Option<SocketAddr> {
    let event: serde_json::Value = serde_json::from_str(line).ok()?;
    if event.get("message")?.as_str()? != "switches can connect" {
        return None;
    }
    event.get("address")?.as_str()?.strip_prefix("tcp:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::listening;

    #[test]
    fn the_listening_address_is_read_from_the_log() {
        let line = |message: &str| {
            format!(r#"{{"level":"INFO","message":"{message}","address":"tcp:127.0.0.1:4711"}}"#)
        };
        for (line, expected) in [
            (line("switches can connect"), Some("127.0.0.1:4711")),
            (line("a switch connected"), None),
            ("not JSON".to_owned(), None),
        ] {
            assert_eq!(listening(&line), expected.and_then(|text| text.parse().ok()), "{line}");
        }
    }
}
