//! The process beside an agent. When the agent is killed, it gives every destination its VNIC's whole bandwidth: the
//! kernel would keep what was last throttled for ever.
//!
//! ```text
//!   agent ══ stdin: one line of JSON, what to do ══▶ guard: waits for the end of stdin
//!         ── "done": all is given back ──▶            ends
//!         ── the end without it ──▶                   falls back, and ends
//! ```
//!
//! It has a process group of its own, so that Ctrl-C does not reach it, and memory that runs out is not taken from it.

use crate::exit::Exit;
use agent::edge::{Fallback, fall_back};
use agent::shaper::Shape;
use anyhow::Context;
use fabric::{Bandwidth, MacAddress};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

const DONE: &str = "done";

/// A running guard.
pub struct Guard {
    child: Child,
}

/// A [`Fallback`] on the way.
#[derive(Serialize, Deserialize)]
struct Line {
    namespace: Option<String>,
    interface: String,
    bits_per_second: u64,
    destinations: Vec<[u8; 6]>,
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
    pub fn tell(&mut self, fallbacks: &[Fallback]) -> anyhow::Result<()> {
        let line = |fallback: &Fallback| Line {
            namespace: fallback.namespace.clone(),
            interface: fallback.shape.interface.clone(),
            bits_per_second: fallback.shape.bandwidth.bits_per_second(),
            destinations: fallback.shape.destinations.iter().map(|mac| mac.octets()).collect(),
        };
        let lines: Vec<Line> = fallbacks.iter().map(line).collect();
        let text = serde_json::to_string(&lines)?;
        let stdin = self.child.stdin.as_mut().context("the agent's guard does not listen")?;
        writeln!(stdin, "{text}").context("cannot tell the agent's guard what to do")
    }

    /// Starts another one if somebody ended it.
    pub fn check(&mut self, fallbacks: &[Fallback]) -> anyhow::Result<()> {
        if self.child.try_wait().context("cannot look after the agent's guard")?.is_some() {
            writeln!(
                std::io::stderr(),
                "weir: the agent's guard was ended; another one is started"
            )?;
            *self = Guard::start()?;
            self.tell(fallbacks)?;
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
    let mut plan: Vec<Line> = Vec::new();
    for line in std::io::stdin().lock().lines() {
        match line.context("cannot read from the agent")? {
            line if line == DONE => return Ok(Exit::Success),
            line => plan = serde_json::from_str(&line).context("the agent's plan is no JSON")?,
        }
    }
    let fallback = |line: Line| {
        // Its own agent wrote them, and would have refused any other.
        let macs = line.destinations.into_iter().filter_map(|mac| MacAddress::new(mac).ok());
        let shape = Shape {
            interface: line.interface,
            bandwidth: Bandwidth::from_bits_per_second(line.bits_per_second),
            destinations: macs.collect(),
        };
        Fallback { namespace: line.namespace, shape }
    };
    let plan: Vec<Fallback> = plan.into_iter().map(fallback).collect();
    if plan.is_empty() {
        return Ok(Exit::Success);
    }
    let mut stderr = std::io::stderr();
    let errors = fall_back(&plan);
    for error in &errors {
        writeln!(stderr, "weir: {error}")?;
    }
    let done = plan.len() - errors.len();
    writeln!(
        stderr,
        "weir: the agent was killed; {done} of {} VNICs have their whole bandwidth; the next agent removes its shapers",
        plan.len()
    )?;
    Ok(if errors.is_empty() { Exit::Success } else { Exit::Failure })
}
