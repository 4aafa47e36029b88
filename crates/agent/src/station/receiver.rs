//! Processes samples: reads an interface and reports every frame as sFlow.

use crate::error::{Error, Result};
use crate::exporter::Exporter;
use crate::flow::FlowKey;
use crate::sampler::{Sampler, SamplerOptions, within};
use crate::sflow::Origin;
use sampling::control::Import;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The processing of each sample before the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processing {
    /// The number of bytes of a sample to take.
    pub header: u32,
    /// The number of times that every byte is read, in place of a measurement that works beyond the headers. 0 for no
    /// reading.
    pub passes: u32,
}

impl Default for Processing {
    /// The processing of sFlow: the first 128 bytes, reported without change.
    fn default() -> Processing {
        Processing { header: 128, passes: 0 }
    }
}

/// The options of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverOptions {
    /// The network namespace of the interface; `None` is the process's own namespace.
    pub namespace: Option<String>,
    /// The address of the receiver's server.
    pub agent: IpAddr,
    /// The network of each tenant.
    pub tenants: Vec<(Ipv4Addr, u8)>,
    /// The address of the collector.
    pub collector: SocketAddr,
    /// The processing of each sample.
    pub processing: Processing,
}

/// Reports the samples of one origin. A reporter outlives receivers, so the sequence numbers of datagrams continue from
/// plan to plan.
pub type Reporter = Arc<Mutex<Exporter>>;

/// A thread that reads one interface until the receiver is dropped.
#[derive(Debug)]
pub struct Receiver {
    ending: Arc<AtomicBool>,
    samples: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// The time that the thread waits for samples before the thread checks for the end.
const PATIENCE: Duration = Duration::from_millis(50);
/// The time to gather samples before the thread processes the samples together. The time is short: each portion of CPU
/// time has to be shorter than the buffering of a switch's queues. At 4,300 samples per second of 12 µs each, a portion
/// is 0.4 ms and not 2.6 ms.
const PORTION: Duration = Duration::from_millis(8);
/// The lowest scheduler priority: forwarding comes before sampling.
const NICE: i32 = 19;
/// The most bytes of a sample that are reported, also when more bytes were read.
const REPORTED: usize = 128;
const RING: usize = 4 << 20;

impl Receiver {
    /// The reporter for samples that come from that server.
    ///
    /// # Errors
    /// As [`Exporter::new`].
    pub fn reporter(from: usize, options: &ReceiverOptions) -> Result<Reporter> {
        // The number of the interface is constant: interfaces change with plans.
        let origin = Origin { agent: options.agent, sub_agent: from as u32 + 1, interface: 1 };
        Ok(Arc::new(Mutex::new(Exporter::new(options.collector, origin, 1.0)?)))
    }

    /// Starts a receiver.
    ///
    /// # Errors
    /// As [`Sampler::open`].
    pub fn start(
        interface: &str,
        import: &Import,
        options: &ReceiverOptions,
        reporter: Reporter,
    ) -> Result<Receiver> {
        let header = options.processing.header.clamp(64, 1 << 14);
        // The sender's filter already sampled all frames that arrive here.
        let sampler =
            SamplerOptions { rate: 1.0, header, except_port: None, memory: RING, wait: PORTION };
        let open = || Sampler::open(interface, &sampler);
        let mut sampler = within(options.namespace.as_deref(), open)?;
        let rates = Rates::new(import, &options.tenants);
        let ending = Arc::new(AtomicBool::new(false));
        let samples = Arc::new(AtomicU64::new(0));
        let (seen, counted) = (Arc::clone(&ending), Arc::clone(&samples));
        let passes = options.processing.passes;
        let work = move || {
            // On Linux the priority applies to the calling thread only. If the kernel refuses, the thread keeps the
            // normal priority.
            let _ = rustix::process::setpriority_process(None, NICE);
            loop {
                // The thread reads the flag first: at the end, the thread still reads the samples in the ring.
                let is_last = seen.load(Ordering::Relaxed);
                let mut sum = 0_u64;
                let read = sampler.read(PATIENCE, |bytes, length| {
                    for _ in 0..passes {
                        sum = digest(sum, bytes);
                    }
                    let header = bytes.get(..REPORTED.min(bytes.len())).unwrap_or(bytes);
                    lock(&reporter).add_at(header, length, rates.of(header));
                    counted.fetch_add(1, Ordering::Relaxed);
                });
                std::hint::black_box(sum);
                let mut reporter = lock(&reporter);
                if let Ok(taken) = sampler.taken() {
                    reporter.set_drops(taken.dropped);
                }
                reporter.flush();
                // When the interface disappears, the thread ends: somebody removed the interface on purpose.
                if read.is_err() || (is_last && read.is_ok_and(|count| count == 0)) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("receiver".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Error::io("start a thread", error))?;
        Ok(Receiver { ending, samples, thread: Some(thread) })
    }

    /// The number of processed samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(reporter: &Reporter) -> std::sync::MutexGuard<'_, Exporter> {
    reporter.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of packets that each sample represents.
struct Rates {
    everybody: f64,
    tenants: Vec<((Ipv4Addr, u8), f64)>,
}

impl Rates {
    fn new(import: &Import, networks: &[(Ipv4Addr, u8)]) -> Rates {
        let of = |tenant| import.one_in.iter().find(|(one, _)| *one == tenant).map(|(_, n)| *n);
        let tenants = networks.iter().enumerate();
        let tenants = tenants.filter_map(|(index, network)| Some((*network, of(Some(index))?)));
        Rates { everybody: of(None).unwrap_or(1.0), tenants: tenants.collect() }
    }

    fn of(&self, header: &[u8]) -> f64 {
        if self.tenants.is_empty() {
            return self.everybody;
        }
        let Some(IpAddr::V4(source)) = FlowKey::of(header).map(|flow| flow.source) else {
            return self.everybody;
        };
        let has = |((network, prefix), _): &&((Ipv4Addr, u8), f64)| {
            let mask = u32::MAX.checked_shl(32 - u32::from((*prefix).min(32))).unwrap_or(0);
            (network.to_bits() ^ source.to_bits()) & mask == 0
        };
        self.tenants.iter().find(has).map_or(self.everybody, |(_, one_in)| *one_in)
    }
}

/// Computes a polynomial over all bytes: a computation that needs each byte.
fn digest(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_scaled_by_the_sampling_rate_of_their_tenant() {
        let import = Import { from: 3, one_in: vec![(None, 9.0), (Some(1), 2.0), (Some(0), 4.0)] };
        let networks = [([10, 1, 0, 0].into(), 16), ([10, 2, 0, 0].into(), 16)];
        let rates = Rates::new(&import, &networks);
        let frame = |source: [u8; 4]| {
            let mut frame = vec![2; 12];
            frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]);
            frame.extend(source.iter().chain(&[10, 9, 9, 9, 0, 1, 0, 2]));
            frame
        };
        for (source, expected) in
            [([10, 1, 2, 3], 4.0), ([10, 2, 2, 3], 2.0), ([192, 0, 2, 1], 9.0)]
        {
            assert_eq!(rates.of(&frame(source)), expected);
        }
        assert_eq!(rates.of(b"short"), 9.0);
        assert_eq!(Rates::new(&Import { from: 0, one_in: vec![] }, &[]).of(&[]), 1.0);
    }
}
