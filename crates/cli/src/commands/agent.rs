//! Runs shapers and meters of virtual interfaces and samplers of traffic, on one server or for a whole lab (`weir
//! agent`).
//!
//! [`agent::config`] reads the file that all agents share, and [`of_lab`] makes the same settings from a lab and
//! `--vnic`. [`guard`] is a process beside the agent. If the agent is killed, the guard removes the throttling, and the
//! sampling by Open vSwitch. [`agent::edge`] and [`agent::standing`] do the work. With `--sampling` the process is a
//! [`sampling_loop::station`], which gets orders from `weir sampling run`.

mod guard;
mod of_lab;
mod show;

use crate::exit::Exit;
use crate::signals;
use agent::config::{self, Duties};
use agent::edge::Edge;
use agent::remains::Remains;
use agent::standing::Standing;
use anyhow::Context;
use guard::Guard;
use lab::Interrupt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Give virtual interfaces the bandwidth that they were promised, and sample traffic
///
/// The agent shapes the traffic that each virtual interface (VNIC) sends to the bandwidth of the VNIC, and meters the
/// traffic that the VNIC receives. If VNICs send more to a VNIC than its bandwidth, these senders get shares in
/// proportion to their own bandwidths; a share that a sender does not use goes to the other senders. Agents on several
/// servers send each other messages every 5 ms; one agent can serve a whole lab. The agent also runs the samplers of
/// its file: Weir's own, or Open vSwitch's sFlow. After Ctrl-C the agent restores every interface and bridge. Needs
/// root.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir agent --lab iso --vnic A=8Mbit@red --vnic B=8Mbit@red --vnic C=2Mbit@blue --vnic D=2Mbit@blue --every 1
  weir agent edge.toml --name server1
  ssh server1 weir agent --sampling

See docs/agent.md.")]
pub struct Agent {
    /// The file that names all agents and VNICs
    #[arg(value_name = "CONFIG", conflicts_with = "lab")]
    config: Option<PathBuf>,
    /// The name of this agent in the file [default: the only one]
    #[arg(long, value_name = "NAME", requires = "config")]
    name: Option<String>,
    /// Serve the hosts of that lab, each host's eth0 a VNIC
    #[arg(long, value_name = "LAB")]
    lab: Option<String>,
    /// A host's bandwidth, and its tenant; may be repeated [default: every host, at its link's rate, of one tenant]
    #[arg(long, value_name = "HOST=RATE[@TENANT]", value_parser = of_lab::host_rate, requires = "lab")]
    vnic: Vec<of_lab::HostRate>,
    /// Report the rates of the lab's VNICs to Weir at this address (`[agents] listen`), as the agent `agent`
    #[arg(long, value_name = "ADDRESS", requires = "lab", requires = "key")]
    report: Option<std::net::SocketAddr>,
    /// The file with the key that Weir and its agents share
    #[arg(long, value_name = "FILE", requires = "report")]
    key: Option<PathBuf>,
    /// The folder of labs' files, as for `weir lab`
    #[arg(long, value_name = "DIR", requires = "lab")]
    state: Option<PathBuf>,
    /// Print the rates of every VNIC at this interval
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    every: Option<f64>,
    /// Seconds until the end, 0.1 to 86400 [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<f64>,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Run as the sampler that `weir sampling run` starts on each server: commands come by stdin, reports go to stdout.
    /// When stdin ends, or has nothing for ten seconds, the sampler restores the state from before
    #[arg(long, conflicts_with_all = ["config", "lab", "every", "seconds", "json", "guard"])]
    sampling: bool,
    /// Run as the guard of an agent: stdin has the steps for the case that the agent is killed
    #[arg(long, hide = true, conflicts_with_all = ["config", "lab"])]
    guard: bool,
}

impl Agent {
    pub fn run(self) -> anyhow::Result<Exit> {
        if self.guard {
            return guard::watch();
        }
        if self.sampling {
            let ending = signals::only_term()?;
            sampling_loop::station::serve(&ending)?;
            return Ok(Exit::Success);
        }
        let duties = match (&self.config, &self.lab) {
            (Some(file), _) => match config::read(file, self.name.as_deref()) {
                Ok(duties) => duties,
                Err(error) => return Ok(Exit::usage(&format_args!("{error:#}"))),
            },
            (None, Some(lab)) => {
                let mut duties = of_lab::duties(lab, self.state.as_deref(), &self.vnic)?;
                if let (Some(weir), Some(key)) = (self.report, &self.key) {
                    match config::read_key(key) {
                        Ok(key) => config::report(&mut duties.settings, weir, key),
                        Err(error) => return Ok(Exit::usage(&format_args!("{error:#}"))),
                    }
                }
                duties
            }
            (None, None) => {
                return Ok(Exit::usage(&"neither a CONFIG nor a --lab; see weir agent --help"));
            }
        };
        self.do_all(&duties, &signals::interrupt()?)
    }

    fn do_all(&self, duties: &Duties, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        // The guard starts before any interface is shaped and before any sampler starts, so that a killed agent always
        // has a guard.
        let mut guard = Guard::start()?;
        let samplers = Standing::start(&duties.samplers)?;
        guard.send(&Remains::of(None, &samplers))?;
        let edge = duties.has_vnics().then(|| Edge::open(&duties.settings)).transpose();
        let mut edge = match edge {
            Ok(edge) => edge,
            Err(error) => {
                samplers.close().context("a bridge may still sample")?;
                guard.dismiss();
                return Err(error.into());
            }
        };
        guard.send(&Remains::of(edge.as_ref(), &samplers))?;
        let mut stderr = std::io::stderr();
        if let Some(edge) = &edge {
            let shaped = format!("{} VNICs shaped", edge.status().len());
            match edge.address() {
                Some(address) => {
                    let own = &duties.settings.own;
                    writeln!(stderr, "agent {own}: {shaped}, listening on {address}")?;
                }
                None => writeln!(stderr, "{shaped}")?,
            }
        }
        for sampler in &duties.samplers {
            writeln!(stderr, "{}", show::sampler(sampler))?;
        }
        let result = self.serve(edge.as_mut(), &samplers, &mut guard, interrupt);
        let counts = edge.as_ref().map(Edge::counts);
        let shaped = edge.map(Edge::close).transpose();
        let sampled = samplers.close();
        shaped.context("cannot give back every interface as it was")?;
        let sent = sampled.context("a bridge may still sample")?;
        guard.dismiss();
        result?;
        if let Some(counts) = counts {
            writeln!(stderr, "interfaces are as they were; {}", show::counts(&counts))?;
        }
        if !duties.samplers.is_empty() {
            writeln!(stderr, "sampling has ended; {}", show::sent(&sent))?;
        }
        Ok(Exit::Success)
    }

    fn serve(
        &self,
        edge: Option<&mut Edge>,
        samplers: &Standing,
        guard: &mut Guard,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let stop = AtomicBool::new(false);
        let mut shown = start;
        let mut checked = start;
        let mut look = |mut edge: Option<&mut Edge>| -> anyhow::Result<()> {
            let now = Instant::now();
            let mut events = samplers.take_events();
            events.extend(edge.as_mut().map(|edge| edge.take_events()).unwrap_or_default());
            for event in events {
                writeln!(std::io::stderr(), "weir: {event}")?;
            }
            if let Some(edge) = &edge
                && self.every.is_some_and(|every| now - shown >= Duration::from_secs_f64(every))
            {
                shown = now;
                show::status(&edge.status(), now - start, self.json)?;
            }
            if now - checked >= Duration::from_secs(1) {
                checked = now;
                guard.check(&Remains::of(edge.as_deref(), samplers))?;
            }
            let is_over = self.seconds.is_some_and(|most| (now - start).as_secs_f64() >= most);
            stop.store(is_over || interrupt.is_asked(), Ordering::SeqCst);
            Ok(())
        };
        match edge {
            Some(edge) => edge.run(&stop, |edge| look(Some(edge))),
            None => {
                while !stop.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(50));
                    look(None)?;
                }
                Ok(())
            }
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (0.1..=86_400.0).contains(number));
    number.ok_or_else(|| "not a number of seconds within 0.1 to 86400".to_owned())
}
