//! Samplers that run until the agent closes the samplers, beside the other tasks of an agent: Weir's own samplers on
//! interfaces, and Open vSwitch's sFlow on bridges.
//!
//! ```text
//!   Standing ──▶ thread per sampler:  OwnSampler: ring ──▶ Exporter ══ UDP ══▶ collector       (opened again every second
//!            │                        BridgeSampling: still set?  ◀──▶ Open vSwitch's database   while it is not there)
//!            └◀── events, a sentence each, at most 256
//! ```
//!
//! A sampler that was open at the start and fails later gives one event; the thread tries again every second, and the
//! other samplers continue. Closing or dropping [`Standing`] ends the sampling of all bridges. For an agent that was
//! killed, a process beside the agent calls [`BridgeSampling::end`]; Weir's own samplers end with their process.

use crate::error::{Error, Result};
use crate::exporter::{Exporter, Sent, own_address};
use crate::ovsdb::{Database, OvsSampling};
use crate::sampler::{Sampler, SamplerOptions, Taken, within};
use crate::sflow::Origin;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The time that a thread waits for samples before the thread checks for the end.
const PATIENCE: Duration = Duration::from_millis(100);
/// The interval of attempts to open a missing interface, and of checks that a bridge still samples.
const RETRY: Duration = Duration::from_secs(1);
/// The most events that wait for [`Standing::take_events`].
const MOST_EVENTS: usize = 256;

/// One sampler.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampling {
    /// Weir's own sampler on an interface.
    Interface(OwnSampling),
    /// Open vSwitch's sFlow on a bridge.
    Bridge(BridgeSampling),
}

/// The configuration of Weir's own sampler on an interface.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnSampling {
    /// The interface; the sampler samples the frames that the interface receives.
    pub interface: String,
    /// The network namespace of the interface; the samples leave from this process's own namespace.
    pub namespace: Option<String>,
    /// N of a sampling rate of one in N packets; N need not be a whole number.
    pub one_in: f64,
    /// The number of packets that each sample represents: `one_in`, or more for packets that were already sampled
    /// before.
    pub stands_for: f64,
    /// The bytes of each sampled packet.
    pub header: u32,
    /// The address of the collector.
    pub collector: SocketAddr,
    /// The agent address in the samples; `None` is the source address of the datagrams.
    pub agent: Option<IpAddr>,
    /// Distinguishes several origins of one agent.
    pub sub_agent: u32,
}

/// The sFlow of Open vSwitch on a bridge, and the place of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeSampling {
    /// The bridge; Open vSwitch samples the packets that arrive at any port of the bridge.
    pub bridge: String,
    /// The folder of Open vSwitch's sockets.
    pub switch: PathBuf,
    /// The sFlow configuration.
    pub sampling: OvsSampling,
}

/// Weir's own sampler at work: sends the samples to the collector.
pub struct OwnSampler {
    sampler: Sampler,
    exporter: Exporter,
}

impl OwnSampler {
    /// Opens the sampler and the exporter.
    ///
    /// # Errors
    /// As [`Sampler::open`] and [`Exporter::new`]; [`Error::Packet`] when the namespace does not exist.
    pub fn open(sampling: &OwnSampling) -> Result<OwnSampler> {
        let options = SamplerOptions {
            rate: 1.0 / sampling.one_in,
            header: sampling.header,
            ..SamplerOptions::default()
        };
        let open = || -> Result<(Sampler, u32)> {
            let index = packet::Interface::find(&sampling.interface)?.index;
            Ok((Sampler::open(&sampling.interface, &options)?, index))
        };
        let (sampler, interface) = within(sampling.namespace.as_deref(), open)?;
        let agent = sampling.agent.map_or_else(|| address_towards(sampling.collector), Ok)?;
        let origin = Origin { agent, sub_agent: sampling.sub_agent, interface };
        let exporter = Exporter::new(sampling.collector, origin, sampling.stands_for)?;
        Ok(OwnSampler { sampler, exporter })
    }

    /// Sends the samples that are ready or arrive within `patience`.
    ///
    /// # Errors
    /// [`Error::Packet`] when the interface disappeared.
    pub fn turn(&mut self, patience: Duration) -> Result<()> {
        self.sampler.read(patience, |bytes, length| self.exporter.add(bytes, length))?;
        self.exporter.set_drops(self.sampler.taken()?.dropped);
        // The samples leave now: an estimate has to describe the present.
        self.exporter.flush();
        Ok(())
    }

    /// The counters of taken samples and sent datagrams.
    ///
    /// # Errors
    /// As [`Sampler::taken`].
    pub fn counts(&mut self) -> Result<(Taken, Sent)> {
        Ok((self.sampler.taken()?, self.exporter.sent()))
    }
}

/// The address of this machine that is the source of datagrams to the collector.
fn address_towards(collector: SocketAddr) -> Result<IpAddr> {
    let local = UdpSocket::bind(own_address(collector)).and_then(|socket| {
        socket.connect(collector)?;
        socket.local_addr()
    });
    Ok(local.map_err(|error| Error::io(format!("reach {collector}"), error))?.ip())
}

impl BridgeSampling {
    /// Starts the sampling of the bridge.
    ///
    /// # Errors
    /// [`Error::Database`] when the bridge does not exist or already samples; [`Error::Io`].
    pub fn begin(&self) -> Result<()> {
        if self.is_on()? {
            let message = format!("{} samples by sFlow already, which this would end", self.bridge);
            return Err(Error::Database(message));
        }
        self.database()?.set_sampling(&self.bridge, &self.sampling)
    }

    /// Whether the bridge samples now, with any configuration.
    ///
    /// # Errors
    /// As [`Database::is_sampling`].
    pub fn is_on(&self) -> Result<bool> {
        self.database()?.is_sampling(&self.bridge)
    }

    /// Ends the sampling of the bridge.
    ///
    /// # Errors
    /// As [`Database::clear_sampling`].
    pub fn end(&self) -> Result<()> {
        self.database()?.clear_sampling(&self.bridge)
    }

    /// Each call opens a new connection: the database closes connections that are silent for long.
    fn database(&self) -> Result<Database> {
        Database::connect(&self.switch.join("db.sock"))
    }
}

/// Running samplers.
pub struct Standing {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    bridges: Vec<BridgeSampling>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    events: Mutex<VecDeque<String>>,
    sent: Mutex<Sent>,
}

impl Standing {
    /// Starts all samplers.
    ///
    /// # Errors
    /// The error of the first sampler that cannot start, as [`OwnSampler::open`] or [`BridgeSampling::begin`]; the
    /// samplers before it are ended.
    pub fn start(samplings: &[Sampling]) -> Result<Standing> {
        let mut standing =
            Standing { shared: Arc::default(), threads: Vec::new(), bridges: Vec::new() };
        for sampling in samplings {
            match sampling {
                Sampling::Interface(own) => {
                    let (own, opened) = (own.clone(), OwnSampler::open(own)?);
                    standing.spawn(move |shared| sample(&own, opened, shared))?;
                }
                Sampling::Bridge(bridge) => {
                    bridge.begin()?;
                    standing.bridges.push(bridge.clone());
                    let bridge = bridge.clone();
                    standing.spawn(move |shared| look_after(&bridge, shared))?;
                }
            }
        }
        Ok(standing)
    }

    fn spawn(&mut self, work: impl FnOnce(&Shared) + Send + 'static) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name("sampler".to_owned());
        let thread = builder.spawn(move || work(&shared));
        self.threads.push(thread.map_err(|error| Error::io("start a thread", error))?);
        Ok(())
    }

    /// The bridges that sample.
    pub fn bridges(&self) -> &[BridgeSampling] {
        &self.bridges
    }

    /// Takes the events since the last call; each event is a sentence.
    pub fn take_events(&self) -> Vec<String> {
        lock(&self.shared.events).drain(..).collect()
    }

    /// Ends all samplers, and returns the counters of Weir's own samplers.
    ///
    /// # Errors
    /// The error of the first bridge that still samples; the others are ended nonetheless.
    pub fn close(mut self) -> Result<Sent> {
        self.end()?;
        Ok(*lock(&self.shared.sent))
    }

    fn end(&mut self) -> Result<()> {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            if thread.join().is_err() {
                self.shared.note("a sampler's thread ended by a panic".to_owned());
            }
        }
        let mut outcome = Ok(());
        for bridge in self.bridges.drain(..) {
            outcome = outcome.and(bridge.end());
        }
        outcome
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        // The caller already has a more useful error.
        let _ = self.end();
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn note(&self, event: String) {
        let mut events = lock(&self.events);
        if events.len() < MOST_EVENTS {
            events.push_back(event);
        }
    }

    fn add(&self, sent: Sent) {
        let mut all = lock(&self.sent);
        all.samples += sent.samples;
        all.datagrams += sent.datagrams;
        all.lost += sent.lost;
    }

    /// Waits for the next attempt. Returns false at the end.
    fn pause(&self) -> bool {
        if !self.is_over() {
            std::thread::park_timeout(RETRY);
        }
        !self.is_over()
    }
}

fn sample(sampling: &OwnSampling, opened: OwnSampler, shared: &Shared) {
    let mut running = Some(opened);
    while !shared.is_over() {
        match running.take() {
            Some(mut sampler) => match sampler.turn(PATIENCE) {
                Ok(()) => running = Some(sampler),
                Err(error) => {
                    shared.add(sampler.exporter.sent());
                    shared.note(format!("{error}; tried again every second"));
                }
            },
            None => {
                if shared.pause()
                    && let Ok(opened) = OwnSampler::open(sampling)
                {
                    shared.note(format!("{} is sampled again", sampling.interface));
                    running = Some(opened);
                }
            }
        }
    }
    if let Some(mut sampler) = running {
        // The samples in the ring count as taken.
        let _ = sampler.turn(Duration::ZERO);
        shared.add(sampler.exporter.sent());
    }
}

/// Checks a bridge again and again: another program may end the sampling of the bridge, or create the bridge again.
fn look_after(sampling: &BridgeSampling, shared: &Shared) {
    let mut was_reported = false;
    while shared.pause() {
        let outcome = match sampling.is_on() {
            Ok(true) => Ok(false),
            Ok(false) => sampling.begin().map(|()| true),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(is_new) if is_new || was_reported => {
                was_reported = false;
                shared.note(format!("{} samples again", sampling.bridge));
            }
            Err(error) if !was_reported => {
                was_reported = true;
                shared.note(format!("{}: {error}; tried again every second", sampling.bridge));
            }
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_address_is_the_source_address_towards_the_collector() {
        for address in ["127.0.0.1", "::1"] {
            let address: IpAddr = address.parse().unwrap();
            // The test needs no process at the collector's address.
            assert_eq!(address_towards(SocketAddr::new(address, 6343)).unwrap(), address);
        }
    }
}
