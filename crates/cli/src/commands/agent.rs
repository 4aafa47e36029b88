//! `weir agent`: shapers and meters of virtual interfaces, on one server or for a whole lab.
//!
//! [`config`] reads the file that all agents share, or makes the same of a lab and `--vnic`; [`guard`] is the process
//! beside it that undoes throttling when the agent is killed. The work is [`agent::edge`]'s.

mod config;
mod guard;
mod show;

use crate::exit::Exit;
use crate::signals::Interrupt;
use agent::edge::Edge;
use anyhow::Context;
use guard::Guard;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Give virtual interfaces the bandwidth that they were promised
///
/// Shapes what each virtual interface (VNIC) sends to its bandwidth, and meters what it receives. When more is sent to one
/// than its bandwidth, its senders get shares in proportion to their own bandwidths; what one leaves goes to the others.
/// Agents on several servers tell each other every 5 ms; one can serve a whole lab. Ctrl-C gives every interface back as
/// it was. Needs root.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir agent --lab iso --vnic A=8Mbit@red --vnic B=8Mbit@red --vnic C=2Mbit@blue --vnic D=2Mbit@blue --every 1
  weir agent edge.toml --name server1

See docs/agent.md.")]
pub struct Agent {
    /// The file that names all agents and VNICs
    #[arg(value_name = "CONFIG", conflicts_with = "lab")]
    config: Option<PathBuf>,
    /// Which of the file's agents this is [default: the only one]
    #[arg(long, value_name = "NAME", requires = "config")]
    name: Option<String>,
    /// Serve the hosts of that lab, each host's eth0 a VNIC
    #[arg(long, value_name = "LAB")]
    lab: Option<String>,
    /// A host's bandwidth, and whose it is; may be repeated [default: every host, at its link's rate, of one tenant]
    #[arg(long, value_name = "HOST=RATE[@TENANT]", value_parser = config::host_rate, requires = "lab")]
    vnic: Vec<config::HostRate>,
    /// Tell Weir, its `[agents] listen`, what the lab's VNICs send; it calls this agent `agent`
    #[arg(long, value_name = "ADDRESS", requires = "lab", requires = "key")]
    report: Option<std::net::SocketAddr>,
    /// The file with the key that Weir has, too
    #[arg(long, value_name = "FILE", requires = "report")]
    key: Option<PathBuf>,
    /// The folder of labs' files, as for `weir lab`
    #[arg(long, value_name = "DIR", requires = "lab")]
    state: Option<PathBuf>,
    /// Print what every VNIC sends and receives, so often
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    every: Option<f64>,
    /// Stop after so many seconds, 0.1 to 86400 [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    seconds: Option<f64>,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Be the process beside an agent, which tells by stdin what to do if it is killed
    #[arg(long, hide = true, conflicts_with_all = ["config", "lab"])]
    guard: bool,
}

impl Agent {
    pub fn run(self) -> anyhow::Result<Exit> {
        if self.guard {
            return guard::watch();
        }
        let settings = match (&self.config, &self.lab) {
            (Some(file), _) => match config::read(file, self.name.as_deref()) {
                Ok(settings) => settings,
                Err(error) => return Ok(Exit::usage(&format_args!("{error:#}"))),
            },
            (None, Some(lab)) => {
                let mut settings = config::of_lab(lab, self.state.as_deref(), &self.vnic)?;
                if let (Some(weir), Some(key)) = (self.report, &self.key) {
                    match config::read_key(key) {
                        Ok(key) => config::report(&mut settings, weir, key),
                        Err(error) => return Ok(Exit::usage(&format_args!("{error:#}"))),
                    }
                }
                settings
            }
            (None, None) => {
                return Ok(Exit::usage(&"neither a CONFIG nor a --lab; see weir agent --help"));
            }
        };
        let interrupt = Interrupt::catch()?;
        // Before anything is shaped: between the two nothing may be left alone.
        let mut guard = Guard::start()?;
        let mut edge = Edge::open(&settings)?;
        guard.tell(&edge.fallbacks())?;
        let mut stderr = std::io::stderr();
        match edge.address() {
            Some(address) => writeln!(
                stderr,
                "agent {}: {} VNICs shaped, listening on {address}",
                settings.own,
                edge.status().len()
            )?,
            None => writeln!(stderr, "{} VNICs shaped", edge.status().len())?,
        }
        let result = self.serve(&mut edge, &mut guard, &interrupt);
        let counts = edge.counts();
        edge.close().context("cannot give back every interface as it was")?;
        guard.dismiss();
        result?;
        writeln!(stderr, "interfaces are as they were; {}", show::counts(&counts))?;
        Ok(Exit::Success)
    }

    fn serve(
        &self,
        edge: &mut Edge,
        guard: &mut Guard,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let start = Instant::now();
        let stop = std::sync::atomic::AtomicBool::new(false);
        let mut shown = start;
        let mut checked = start;
        edge.run(&stop, |edge| -> anyhow::Result<()> {
            let now = Instant::now();
            for event in edge.take_events() {
                writeln!(std::io::stderr(), "weir: {event}")?;
            }
            if self.every.is_some_and(|every| now - shown >= Duration::from_secs_f64(every)) {
                shown = now;
                show::status(&edge.status(), now - start, self.json)?;
            }
            if now - checked >= Duration::from_secs(1) {
                checked = now;
                guard.check(&edge.fallbacks())?;
            }
            let is_over = self.seconds.is_some_and(|most| (now - start).as_secs_f64() >= most);
            stop.store(is_over || interrupt.is_asked(), std::sync::atomic::Ordering::SeqCst);
            Ok(())
        })
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number| (0.1..=86_400.0).contains(number));
    number.ok_or_else(|| "not a number of seconds within 0.1 to 86400".to_owned())
}
