//! The process beside an agent. When the agent is killed, it gives every destination its VNIC's whole bandwidth: the
//! kernel would keep what was last throttled for ever. Bridges that sample no longer do.
//!
//! ```text
//!   agent ══ stdin: one line of JSON, what to do ══▶ guard: waits for the end of stdin
//!         ── "done": all is given back ──▶            ends
//!         ── the end without it ──▶                   falls back, and ends
//! ```
//!
//! The guard has a process group of its own, so that Ctrl-C does not reach the guard, and memory that runs out is not taken
//! from the guard. [`agent::remains`] has the steps by which the guard falls back.

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

    /// Says what to do from now on.
    pub fn tell(&mut self, remains: &Remains) -> anyhow::Result<()> {
        let text = serde_json::to_string(remains)?;
        let stdin = self.child.stdin.as_mut().context("the agent's guard does not listen")?;
        writeln!(stdin, "{text}").context("cannot tell the agent's guard what to do")
    }

    /// Starts another one if somebody ended it.
    pub fn check(&mut self, remains: &Remains) -> anyhow::Result<()> {
        if self.child.try_wait().context("cannot look after the agent's guard")?.is_some() {
            writeln!(
                std::io::stderr(),
                "weir: the agent's guard was ended; another one is started"
            )?;
            *self = Guard::start()?;
            self.tell(remains)?;
        }
        Ok(())
    }

    /// There is nothing more to do.
    pub fn dismiss(mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            // One that is gone needs no telling.
            let _ = writeln!(stdin, "{DONE}");
        }
        let _ = self.child.wait();
    }
}

/// What the guard does.
pub fn watch() -> anyhow::Result<Exit> {
    // Where that is not allowed it can be killed as anybody can.
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
