//! The compared mechanisms of sampling. Each is started before and stopped after a measurement.

use super::bridge::Bridge;
use super::cpu::ThreadTime;
use agent::mirror::{self, Destination};
use agent::ovsdb::OvsSampling;
use agent::sflow::Origin;
use agent::{Exporter, Sampler, SamplerOptions};
use anyhow::{Context, anyhow};
use packet::{Filter, RandomSample, Tap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A mechanism of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Open vSwitch's own sFlow.
    OvsSflow,
    /// The kernel clones frames into a VXLAN tunnel to a remote server.
    Mirror,
    /// A program receives whole frames, and does not read them.
    UserSpace,
    /// A program receives whole frames, and reads every byte.
    UserSpaceRead,
    /// Weir's sampler: the first bytes go to a program, which sends sFlow.
    Weir,
}

impl Mechanism {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mechanism::OvsSflow => "ovs-sflow",
            Mechanism::Mirror => "mirror",
            Mechanism::UserSpace => "user-space",
            Mechanism::UserSpaceRead => "user-space-read",
            Mechanism::Weir => "weir",
        }
    }

    /// The model's cost that this mechanism measures.
    pub(crate) fn symbol(self) -> &'static str {
        if self == Mechanism::Mirror { "β" } else { "α" }
    }

    /// The paper's value (section IV-A); the paper has none for the other mechanisms.
    pub(crate) fn published(self) -> Option<f64> {
        match self {
            Mechanism::OvsSflow => Some(sampling::Costs::PUBLISHED.alpha),
            Mechanism::Mirror => Some(sampling::Costs::PUBLISHED.beta),
            _ => None,
        }
    }

    /// Whether the law applies at this rate. If every packet is sampled, Open vSwitch draws nothing and leaves the
    /// action `sample` out of its flows, which is another mechanism.
    pub(crate) fn is_itself_at(self, rate: f64) -> bool {
        self != Mechanism::OvsSflow || rate < 1.0
    }

    /// The time until a start or stop has its full effect: Open vSwitch installs its flows again.
    pub(crate) fn settles(self) -> Duration {
        Duration::from_millis(if self == Mechanism::OvsSflow { 300 } else { 50 })
    }

    /// Samples one of so many frames until the result is stopped or dropped, with so many bytes of each if it sends
    /// sFlow.
    pub(crate) fn start(
        self,
        bridge: &Bridge,
        one_in: u32,
        header: u32,
    ) -> anyhow::Result<Running<'_>> {
        let mut running = Running { bridge, mechanism: self, workers: Vec::new(), is_on: true };
        match self {
            Mechanism::OvsSflow => {
                let sampling = OvsSampling { collector: bridge.collector(), one_in, header };
                bridge.database()?.set_sampling(&bridge.place.bridge, &sampling)?;
            }
            Mechanism::Mirror => {
                let share = share(one_in);
                let to =
                    [Destination { share, tenant: None, interface: bridge.place.tunnel.clone() }];
                let ports = bridge.place.ports.each_ref().map(String::as_str);
                let scripts = ports.iter().map(|port| mirror::script(port, &to, &ports));
                bridge.tc(&scripts.collect::<Result<String, _>>()?)?;
            }
            Mechanism::UserSpace | Mechanism::UserSpaceRead | Mechanism::Weir => {
                for port in &bridge.place.ports {
                    running.workers.push(Worker::start(self, bridge, port, (one_in, header))?);
                }
            }
        }
        Ok(running)
    }
}

/// The share of packets. For all packets it is a billionth less, so that the kernel still draws for each packet, which
/// has a cost.
fn share(one_in: u32) -> f64 {
    (1.0 / f64::from(one_in)).min(1.0 - 1e-9)
}

/// A running mechanism.
pub(crate) struct Running<'a> {
    bridge: &'a Bridge,
    mechanism: Mechanism,
    workers: Vec<Worker>,
    is_on: bool,
}

impl Running<'_> {
    /// The threads of this process that process its samples.
    pub(crate) fn samplers(&self) -> anyhow::Result<Vec<ThreadTime>> {
        let process = i32::try_from(std::process::id()).context("a process without a number")?;
        self.workers.iter().map(|worker| ThreadTime::of(process, worker.number)).collect()
    }

    /// Ends the mechanism. Reports errors, which dropping cannot do, and the number of lost samples, if known.
    pub(crate) fn stop(mut self) -> anyhow::Result<u64> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<u64> {
        if !std::mem::take(&mut self.is_on) {
            return Ok(0);
        }
        let mut lost = 0;
        match self.mechanism {
            Mechanism::OvsSflow => {
                self.bridge.database()?.clear_sampling(&self.bridge.place.bridge)?;
            }
            Mechanism::Mirror => {
                let scripts = self.bridge.place.ports.iter().map(|port| mirror::clear(port));
                self.bridge.tc(&scripts.collect::<Result<String, _>>()?)?;
            }
            _ => {
                for worker in self.workers.drain(..) {
                    lost += worker.stop()?;
                }
            }
        }
        Ok(lost)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // The caller that sees the earlier error takes the lab down.
        let _ = self.end();
    }
}

/// A thread that reads one port's samples.
struct Worker {
    ending: Arc<AtomicBool>,
    /// The kernel's number of the thread.
    number: i32,
    /// The number of lost samples.
    thread: JoinHandle<anyhow::Result<u64>>,
}

/// The time after which a thread checks whether it must end.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often a thread that is not woken checks for samples.
const TICK: Duration = Duration::from_millis(1);

impl Worker {
    fn start(
        mechanism: Mechanism,
        bridge: &Bridge,
        port: &str,
        (one_in, header): (u32, u32),
    ) -> anyhow::Result<Worker> {
        let ending = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ending);
        let is_on = move || !seen.load(Ordering::Relaxed);
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let name = std::thread::Builder::new().name(format!("sample {port}"));
        let thread = if mechanism == Mechanism::Weir {
            let (sampler, exporter) = ours(bridge, port, one_in, header)?;
            name.spawn(move || {
                let _ = sender.send(nix::unistd::gettid().as_raw());
                report(sampler, exporter, is_on)
            })
        } else {
            let below = RandomSample::limit(share(one_in));
            let sample = RandomSample { below, keep: u32::MAX, except_port: None, source: None };
            let open = || Tap::open(port, &Filter::random(&sample), 4 << 20);
            let tap = packet::in_namespace(&bridge.place.namespace, open)??;
            name.spawn(move || {
                let _ = sender.send(nix::unistd::gettid().as_raw());
                receive(tap, mechanism == Mechanism::UserSpaceRead, is_on)
            })
        };
        let thread = thread.context("cannot start a thread")?;
        let number = receiver.recv().context("a thread ended before it began")?;
        Ok(Worker { ending, number, thread })
    }

    fn stop(self) -> anyhow::Result<u64> {
        self.ending.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("a sampler panicked"))?
    }
}

fn ours(
    bridge: &Bridge,
    port: &str,
    one_in: u32,
    header: u32,
) -> anyhow::Result<(Sampler, Exporter)> {
    let rate = share(one_in);
    let options = SamplerOptions { rate, header, ..SamplerOptions::default() };
    let collector = bridge.collector();
    let agent = collector.ip();
    let open = || -> anyhow::Result<(Sampler, Exporter)> {
        let origin = Origin { agent, sub_agent: 0, interface: 1 };
        let sampler = Sampler::open(port, &options)?;
        Ok((sampler, Exporter::new(collector, origin, f64::from(one_in))?))
    };
    packet::in_namespace(&bridge.place.namespace, open)?
}

/// The sampler of `weir sampling sample`.
fn report(
    mut sampler: Sampler,
    mut exporter: Exporter,
    is_on: impl Fn() -> bool,
) -> anyhow::Result<u64> {
    while is_on() {
        sampler.read(PATIENCE, |bytes, length| exporter.add(bytes, length))?;
        exporter.flush();
    }
    Ok(sampler.taken()?.dropped)
}

/// Reads all received frames every millisecond. If a frame woke it, one wake-up would serve one sample or many,
/// depending on the load, and a sample would have no cost of its own.
fn receive(mut tap: Tap, reads: bool, is_on: impl Fn() -> bool) -> anyhow::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut sum = 0_u64;
    while is_on() {
        std::thread::sleep(TICK);
        while let Some(frame) = tap.receive(&mut buffer)? {
            if reads {
                sum = frame.iter().fold(sum, |sum, byte| sum.wrapping_mul(31) + u64::from(*byte));
            }
        }
    }
    // The bytes must be used, or the compiler would remove the reads.
    std::hint::black_box(sum);
    Ok(tap.drops()?)
}
