//! The data channels of a real switch: one thread per capture, and one thread per generator.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use channel::Waker;
use packet::{
    Capture, CaptureOptions, Filter, GenerateOptions, Interface, Observation, ProbeTemplate,
    Timestamp, TransmitOptions, Transmitter,
};

use super::clock::Clock;
use super::interface::{Arrival, Happening};
use crate::error::{Error, Result};
use crate::module::{Generated, Traffic};

/// An interface that leads to a port of the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataPort {
    /// The name of the interface.
    pub interface: String,
    /// The network namespace of the interface; `None` for the namespace of this process.
    pub namespace: Option<String>,
    /// The port of the switch.
    pub switch_port: u32,
}

/// The queue in which threads put arrivals.
#[derive(Clone)]
pub(crate) struct Outlet {
    pub(crate) sender: SyncSender<Result<Arrival>>,
    /// The waker of a receiver that waits for more than the queue.
    pub(crate) waker: Option<Waker>,
}

impl Outlet {
    /// Puts an arrival into the queue. Returns whether the receiver still exists.
    pub(crate) fn put(&self, what: Result<Arrival>) -> bool {
        // If the wake-up fails, the receiver checks the queue by itself soon.
        let is_heard = self.sender.send(what).is_ok();
        if let Some(waker) = &self.waker {
            let _ = waker.wake();
        }
        is_heard
    }
}

/// The threads of the data channels.
pub(crate) struct DataPlane {
    ports: Vec<DataPort>,
    tag: u64,
    clock: Clock,
    outlet: Outlet,
    stop: Arc<AtomicBool>,
    drops: Arc<AtomicU64>,
    captures: Vec<JoinHandle<()>>,
    generators: HashMap<u32, (Arc<AtomicBool>, JoinHandle<()>)>,
}

/// The time that a capture waits before the capture checks for the end.
const LOOK: Duration = Duration::from_millis(50);

impl DataPlane {
    pub(crate) fn open(
        ports: &[DataPort],
        tag: u64,
        clock: Clock,
        outlet: Outlet,
    ) -> Result<DataPlane> {
        let mut plane = DataPlane {
            ports: ports.to_vec(),
            tag,
            clock,
            outlet,
            stop: Arc::default(),
            drops: Arc::default(),
            captures: Vec::new(),
            generators: HashMap::new(),
        };
        let options =
            CaptureOptions { filter: Some(Filter::probes(tag)), ..CaptureOptions::default() };
        for (channel, port) in ports.iter().enumerate() {
            let capture = on_port(port, |interface| Capture::open(interface, &options))?;
            let capturer = Capturer {
                channel,
                capture,
                interface: port.interface.clone(),
                tag,
                clock,
                outlet: plane.outlet.clone(),
                stop: Arc::clone(&plane.stop),
                drops: Arc::clone(&plane.drops),
            };
            plane.captures.push(thread("capture", move || capturer.work())?);
        }
        Ok(plane)
    }

    pub(crate) fn generate(&mut self, generator: u32, traffic: &Traffic) -> Result<()> {
        let Some(port) = self.ports.get(traffic.channel) else {
            let message = format!("there is no channel {}", traffic.channel);
            return Err(Error::parameter("channel", message));
        };
        let data = |source| Error::Data { interface: port.interface.clone(), source };
        let template = |headers| ProbeTemplate::new(headers, self.tag, traffic.length);
        let templates = traffic.headers.iter().map(template).collect::<packet::Result<Vec<_>>>();
        let mut templates = templates.map_err(data)?;
        let longest = traffic.length.max(1518);
        let options = TransmitOptions { longest, ..TransmitOptions::default() };
        let mut transmitter = on_port(port, |interface| Transmitter::open(interface, &options))?;
        // Each entry gets one probe per round, so the time of a change is known within one round. A lateness of a
        // twentieth of a round is acceptable.
        let round = traffic.headers.len() as f64 / traffic.rate;
        let options = GenerateOptions {
            rate: traffic.rate,
            count: traffic.count,
            first: traffic.first,
            tolerance: Duration::try_from_secs_f64(round / 20.0).unwrap_or(Duration::MAX),
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (outlet, clock, flag) = (self.outlet.clone(), self.clock, Arc::clone(&stop));
        let interface = port.interface.clone();
        let work = move || {
            let report = packet::generate(&mut transmitter, &mut templates, &options, &flag);
            let report = report.map(|it| Generated {
                sent: it.sent,
                start: clock.of(it.start),
                interval: it.interval,
                elapsed: it.elapsed.as_nanos() as u64,
                mean_lateness: it.mean_lateness.as_nanos() as u64,
                worst_lateness: it.worst_lateness.as_nanos() as u64,
            });
            let arrival = |report| Arrival {
                at: clock.now(),
                what: Happening::Generated { generator, report },
            };
            let end = report.map(arrival);
            // After the end of the testbed, nobody receives the report.
            outlet.put(end.map_err(|source| Error::Data { interface, source }));
        };
        let handle = thread("generator", work)?;
        if let Some((before, handle)) = self.generators.insert(generator, (stop, handle)) {
            before.store(true, Ordering::Relaxed);
            // A thread that panicked has already printed a message.
            let _ = handle.join();
        }
        Ok(())
    }

    pub(crate) fn stop(&mut self, generator: u32) {
        if let Some((stop, _)) = self.generators.get(&generator) {
            stop.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_link(&self, channel: usize, up: bool) -> Result<()> {
        let Some(port) = self.ports.get(channel) else { return Ok(()) };
        on_port(port, |interface| Interface::set_up(interface, up))
    }

    pub(crate) fn drops(&self) -> u64 {
        self.drops.load(Ordering::Relaxed)
    }
}

impl Drop for DataPlane {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for (stop, _) in self.generators.values() {
            stop.store(true, Ordering::Relaxed);
        }
        let threads = self.captures.drain(..);
        for handle in threads.chain(self.generators.drain().map(|(_, (_, handle))| handle)) {
            // A thread that panicked has already printed a message.
            let _ = handle.join();
        }
    }
}

struct Capturer {
    channel: usize,
    capture: Capture,
    interface: String,
    tag: u64,
    clock: Clock,
    outlet: Outlet,
    stop: Arc<AtomicBool>,
    drops: Arc<AtomicU64>,
}

impl Capturer {
    fn work(mut self) {
        let mut dropped = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let block = match self.capture.next_block(LOOK) {
                Ok(Some(block)) => block,
                Ok(None) => continue,
                // The capture continues when an interface that an experiment set down is up again.
                Err(packet::Error::InterfaceDown(_)) => {
                    std::thread::sleep(LOOK);
                    continue;
                }
                Err(source) => {
                    let interface = self.interface.clone();
                    self.outlet.put(Err(Error::Data { interface, source }));
                    return;
                }
            };
            let clock = self.clock;
            let seen = clock.now();
            let probes: Vec<_> = block
                .frames()
                .filter_map(|frame| {
                    let mut probe = Observation::of(&frame, self.tag)?;
                    probe.sent = Timestamp(clock.of(probe.sent));
                    probe.arrived = Timestamp(clock.of(probe.arrived));
                    Some((probe, seen))
                })
                .collect();
            drop(block);
            if let Ok(statistics) = self.capture.statistics() {
                self.drops.fetch_add(statistics.drops - dropped, Ordering::Relaxed);
                dropped = statistics.drops;
            }
            let Some((last, _)) = probes.last() else { continue };
            let at = last.arrived.0;
            let what = Happening::Probes { channel: self.channel, probes };
            if !self.outlet.put(Ok(Arrival { at, what })) {
                return;
            }
        }
    }
}

/// Calls `work` with a port's interface, in the namespace of the interface.
fn on_port<T: Send>(
    port: &DataPort,
    work: impl FnOnce(&str) -> packet::Result<T> + Send,
) -> Result<T> {
    let done = match &port.namespace {
        Some(namespace) => {
            packet::in_namespace(namespace, || work(&port.interface)).and_then(|it| it)
        }
        None => work(&port.interface),
    };
    done.map_err(|source| Error::Data { interface: port.interface.clone(), source })
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| Error::Thread(format!("cannot start a thread: {error}")))
}
