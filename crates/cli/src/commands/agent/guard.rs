//! The process beside an agent. When the agent is killed, it gives every destination its VNIC's whole bandwidth: the
//! kernel would keep what was last throttled for ever. Bridges that sample no longer do.
//!
//! ```text
//!   agent ══ stdin: one line of JSON, what to do ══▶ guard: waits for the end of stdin
//!         ── "done": all is given back ──▶            ends
//!         ── the end without it ──▶                   falls back, and ends
//! ```
//!
//! It has a process group of its own, so that Ctrl-C does not reach it, and memory that runs out is not taken from it.

use crate::exit::Exit;
use agent::edge::{Edge, Fallback, fall_back};
use agent::ovsdb::Database;
use agent::shaper::Shape;
use agent::standing::{BridgeSampling, Standing};
use anyhow::Context;
use fabric::{Bandwidth, MacAddress};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const DONE: &str = "done";

/// A running guard.
pub struct Guard {
    child: Child,
}

/// What an agent that is killed leaves behind, and its guard sees to.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remains {
    vnics: Vec<Line>,
    bridges: Vec<Sampled>,
}

/// A bridge that samples.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Sampled {
    bridge: String,
    switch: PathBuf,
}

/// A [`Fallback`] on the way.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
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

impl Remains {
    /// Of these, as they are now.
    pub fn of(edge: Option<&Edge>, samplers: &Standing) -> Remains {
        let line = |fallback: Fallback| Line {
            namespace: fallback.namespace,
            interface: fallback.shape.interface,
            bits_per_second: fallback.shape.bandwidth.bits_per_second(),
            destinations: fallback.shape.destinations.iter().map(|mac| mac.octets()).collect(),
        };
        let sampled = |it: &BridgeSampling| {
            let (bridge, switch) = (it.bridge.clone(), it.switch.clone());
            Sampled { bridge, switch }
        };
        let fallbacks = edge.map(Edge::fallbacks).unwrap_or_default();
        Remains {
            vnics: fallbacks.into_iter().map(line).collect(),
            bridges: samplers.bridges().iter().map(sampled).collect(),
        }
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
    let (vnics, bridges) = (remains.vnics.len(), remains.bridges.len());
    let plan: Vec<Fallback> = remains.vnics.into_iter().map(fallback).collect();
    let unshaped = fall_back(&plan);
    let sampling = remains.bridges.iter().filter_map(|it| end_sampling(it).err());
    let sampling: Vec<agent::Error> = sampling.collect();
    let mut stderr = std::io::stderr();
    for error in unshaped.iter().chain(&sampling) {
        writeln!(stderr, "weir: {error}")?;
    }
    if vnics > 0 {
        writeln!(
            stderr,
            "weir: the agent was killed; {} of {vnics} VNICs have their whole bandwidth; the next agent removes its shapers",
            vnics - unshaped.len()
        )?;
    }
    if bridges > 0 {
        writeln!(
            stderr,
            "weir: the agent was killed; {} of {bridges} bridges sample no longer",
            bridges - sampling.len()
        )?;
    }
    let all_done = unshaped.is_empty() && sampling.is_empty();
    Ok(if all_done { Exit::Success } else { Exit::Failure })
}

fn end_sampling(sampled: &Sampled) -> agent::Result<()> {
    Database::connect(&sampled.switch.join("db.sock"))?.clear_sampling(&sampled.bridge)
}
