//! Runs the guard, a process beside an agent. If the agent is killed, the guard gives every destination the whole
//! bandwidth of its VNIC, because the kernel would keep the last throttled rates for ever. The guard also ends the
//! sampling of bridges.
//!
//! ```text
//!   agent ══ stdin: one line of JSON, what to do ══▶ guard: waits for the end of stdin
//!         ── "done": all is given back ──▶            ends
//!         ── the end without it ──▶                   falls back, and ends
//! ```
//!
//! The guard has its own process group, so that Ctrl-C does not reach the guard. If memory runs out, the kernel does
//! not kill the guard. [`agent::remains`] has the steps by which the guard falls back.

use crate::exit::Exit;
use agent::remains::Remains;
use anyhow::Context;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const DONE: &str = "done";

/// A running guard.
pub struct Guard {
    child: Child,
}

impl Guard {
    pub fn start() -> anyhow::Result<Guard> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(["agent", "--guard"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let child = command.process_group(0).spawn().context("cannot start the agent's guard")?;
        Ok(Guard { child })
    }

    /// Sends the guard its steps for the case that the agent is killed.
    pub fn send(&mut self, remains: &Remains) -> anyhow::Result<()> {
        let text = serde_json::to_string(remains)?;
        let stdin = self.child.stdin.as_mut().context("the agent's guard does not listen")?;
        writeln!(stdin, "{text}").context("cannot send its steps to the agent's guard")
    }

    /// Starts another guard if the guard has ended.
    pub fn check(&mut self, remains: &Remains) -> anyhow::Result<()> {
        if self.child.try_wait().context("cannot look after the agent's guard")?.is_some() {
            writeln!(
                std::io::stderr(),
                "weir: the agent's guard was ended; another one is started"
            )?;
            *self = Guard::start()?;
            self.send(remains)?;
        }
        Ok(())
    }

    /// Ends the guard, which has no more work.
    pub fn dismiss(mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            // A guard that has ended does not need the message.
            let _ = writeln!(stdin, "{DONE}");
        }
        let _ = self.child.wait();
    }
}

/// Runs the process of the guard.
pub fn watch() -> anyhow::Result<Exit> {
    // If the kernel refuses the setting, the kernel can kill the guard like any other process.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    let mut remains = Remains::default();
    for line in std::io::stdin().lock().lines() {
        match line.context("cannot read from the agent")? {
            line if line == DONE => return Ok(Exit::Success),
            line => {
                remains = serde_json::from_str(&line).context("what the agent says is no JSON")?;
            }
        }
    }
    let ended = remains.end();
    let mut stderr = std::io::stderr();
    for error in &ended.errors {
        writeln!(stderr, "weir: {error}")?;
    }
    if let (vnics @ 1.., whole) = ended.vnics {
        writeln!(
            stderr,
            "weir: the agent was killed; {whole} of {vnics} VNICs have their whole bandwidth; the next agent removes its shapers"
        )?;
    }
    if let (bridges @ 1.., quiet) = ended.bridges {
        writeln!(
            stderr,
            "weir: the agent was killed; {quiet} of {bridges} bridges sample no longer"
        )?;
    }
    Ok(if ended.errors.is_empty() { Exit::Success } else { Exit::Failure })
}
