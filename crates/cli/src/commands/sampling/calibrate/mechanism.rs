//! The ways to sample that are compared, each started and stopped around a measurement.

use super::bridge::{Bridge, PORTS, REMOTE, SWITCH};
use agent::mirror::{self, Destination};
use agent::ovsdb::OvsSampling;
use agent::sflow::Origin;
use agent::{Exporter, Sampler, SamplerOptions};
use anyhow::{Context, anyhow};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A way to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mechanism {
    /// Open vSwitch's own sFlow
    OvsSflow,
    /// The kernel clones frames to a port behind which a remote server is
    Mirror,
    /// Whole frames go to a program, which does not look at them
    UserSpace,
    /// Whole frames go to a program, which reads every byte
    UserSpaceRead,
    /// Weir's sampler: the first 128 bytes go to a program, which sends sFlow
    Weir,
}

impl Mechanism {
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::OvsSflow => "ovs-sflow",
            Mechanism::Mirror => "mirror",
            Mechanism::UserSpace => "user-space",
            Mechanism::UserSpaceRead => "user-space-read",
            Mechanism::Weir => "weir",
        }
    }

    /// Which of the model's costs it is.
    pub fn symbol(self) -> &'static str {
        if self == Mechanism::Mirror { "β" } else { "α" }
    }

    /// What the paper states (section IV-A); it gives no cost for the others.
    pub fn published(self) -> Option<f64> {
        match self {
            Mechanism::OvsSflow => Some(sampling::Costs::PUBLISHED.alpha),
            Mechanism::Mirror => Some(sampling::Costs::PUBLISHED.beta),
            _ => None,
        }
    }

    /// Takes one of so many frames from now on until the answer is stopped or dropped.
    pub fn start(self, bridge: &Bridge, one_in: u32) -> anyhow::Result<Running<'_>> {
        let running = Running { bridge, mechanism: self, workers: Vec::new(), is_on: true };
        let mut running = running;
        match self {
            Mechanism::OvsSflow => {
                let sampling = OvsSampling { collector: bridge.collector(), one_in, header: 128 };
                bridge.database()?.set_sampling(SWITCH, &sampling)?;
            }
            Mechanism::Mirror => {
                let share = 1.0 / f64::from(one_in);
                let to = [Destination { share, tenant: None, interface: REMOTE.to_owned() }];
                let scripts = PORTS.iter().map(|port| mirror::script(port, &to, &PORTS));
                bridge.tc(&scripts.collect::<Result<String, _>>()?)?;
            }
            Mechanism::UserSpace | Mechanism::UserSpaceRead | Mechanism::Weir => {
                for port in PORTS {
                    running.workers.push(Worker::start(self, bridge, port, one_in)?);
                }
            }
        }
        Ok(running)
    }
}

/// A mechanism at work.
pub struct Running<'a> {
    bridge: &'a Bridge,
    mechanism: Mechanism,
    workers: Vec<Worker>,
    is_on: bool,
}

impl Running<'_> {
    /// Ends it, and says what went wrong, which dropping cannot.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        if !std::mem::take(&mut self.is_on) {
            return Ok(());
        }
        match self.mechanism {
            Mechanism::OvsSflow => self.bridge.database()?.clear_sampling(SWITCH)?,
            Mechanism::Mirror => {
                let scripts = PORTS.iter().map(|port| mirror::clear(port));
                self.bridge.tc(&scripts.collect::<Result<String, _>>()?)?;
            }
            _ => self.workers.drain(..).try_for_each(Worker::stop)?,
        }
        Ok(())
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // The lab that it stands in is taken down by whoever sees the error that led here.
        let _ = self.end();
    }
}

/// A thread that reads one port's samples.
struct Worker {
    ending: Arc<AtomicBool>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Worker {
    fn start(
        mechanism: Mechanism,
        bridge: &Bridge,
        port: &str,
        one_in: u32,
    ) -> anyhow::Result<Worker> {
        let header = if mechanism == Mechanism::Weir { 128 } else { 1 << 16 };
        let rate = 1.0 / f64::from(one_in);
        let options = SamplerOptions { rate, header, ..SamplerOptions::default() };
        let agent = match bridge.collector().ip() {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let open = || -> anyhow::Result<(Sampler, Exporter)> {
            let origin = Origin { agent, sub_agent: 0, interface: 1 };
            let sampler = Sampler::open(port, &options)?;
            Ok((sampler, Exporter::new(bridge.collector(), origin, f64::from(one_in))?))
        };
        let (mut sampler, mut exporter) = packet::in_namespace(&bridge.namespace()?, open)??;
        let ending = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ending);
        let work = move || -> anyhow::Result<()> {
            let mut sum = 0_u64;
            while !seen.load(Ordering::Relaxed) {
                sampler.read(Duration::from_millis(100), |bytes, length| match mechanism {
                    Mechanism::Weir => exporter.add(bytes, length),
                    Mechanism::UserSpaceRead => {
                        sum = bytes
                            .iter()
                            .fold(sum, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
                    }
                    _ => {}
                })?;
                exporter.flush();
            }
            // What is read must be seen to be used, or it would not be read.
            std::hint::black_box(sum);
            Ok(())
        };
        let thread = std::thread::Builder::new().name(format!("sample {port}")).spawn(work);
        Ok(Worker { ending, thread: thread.context("cannot start a thread")? })
    }

    fn stop(self) -> anyhow::Result<()> {
        self.ending.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("a sampler panicked"))?
    }
}
