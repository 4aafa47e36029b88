//! Disturbances during a benchmark: switches that send malformed messages, or strangers that
//! attack.

use super::fabric::{Fabric, MainSessions};
use crate::controller::plan::ControllerPlan;
use crate::error::Error;
use crate::plan::Version;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A disturbance during a benchmark.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Trouble {
    /// No disturbance.
    None,
    /// The emulated switches send malformed messages.
    Malformed {
        /// Malformed messages per second, of all switches together.
        per_second: f64,
    },
    /// Strangers connect to the controller.
    Attack {
        /// The attacked addresses.
        at: Vec<SocketAddr>,
        /// Whether strangers send nonsense and disconnect. Otherwise the strangers stay connected
        /// and silent.
        nonsense: bool,
    },
}

/// Connections per second to each attacked address.
const STRANGERS_PER_SECOND: u64 = 1000;
/// The number of silent connections to each address at any time; the oldest connection is closed
/// first.
const SILENT: usize = 500;

impl Trouble {
    /// Begins the disturbance, which ends when the returned value is dropped.
    pub(crate) fn begin(&self, plan: &ControllerPlan, fabric: &Fabric) -> Result<Begun, Error> {
        match self {
            Self::Malformed { per_second } => {
                let (version, switches) = (plan.version, plan.layout().switches());
                let (sessions, per_second) = (fabric.main_sessions(), *per_second);
                Begun::start(vec![Box::new(move |stop| {
                    disturb(&sessions, version, switches, per_second, stop);
                })])
            }
            _ => self.begin_attack(),
        }
    }

    /// Like [`Trouble::begin`], for a disturbance that needs no network of switches.
    pub(crate) fn begin_attack(&self) -> Result<Begun, Error> {
        let Self::Attack { at, nonsense } = self else { return Ok(Begun::default()) };
        let nonsense = *nonsense;
        let attack = |address: &SocketAddr| -> Work {
            let address = *address;
            Box::new(move |stop| connect_again_and_again(address, nonsense, stop))
        };
        Begun::start(at.iter().map(attack).collect())
    }
}

type Work = Box<dyn FnOnce(&AtomicBool) + Send>;

/// Threads that run until this value is dropped.
#[derive(Default)]
pub(crate) struct Begun {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Begun {
    fn start(works: Vec<Work>) -> Result<Self, Error> {
        let mut begun = Self::default();
        for work in works {
            let stop = Arc::clone(&begun.stop);
            let thread = std::thread::Builder::new().name("bench-trouble".to_owned());
            let thread = thread.spawn(move || work(&stop)).map_err(Error::io("thread"))?;
            begun.threads.push(thread);
        }
        Ok(begun)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

/// Sends malformed messages from the switches in turn.
fn disturb(
    sessions: &MainSessions,
    version: Version,
    switches: usize,
    per_second: f64,
    stop: &AtomicBool,
) {
    let messages = malformed(version);
    let start = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * per_second) as usize;
        let batch = (sent..due).map(|index| {
            let message = messages.get(index % messages.len()).cloned().unwrap_or_default();
            (index % switches, message)
        });
        // If the network is just ending, this thread ends as well.
        if due > sent && sessions.say(batch.collect()).is_err() {
            return;
        }
        sent = due.max(sent);
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Messages that no switch would send. The length field of each message is correct, so the
/// controller can find the next message.
fn malformed(version: Version) -> Vec<Vec<u8>> {
    use crate::wire::{kind, message};
    let bodies: [(u8, &[u8]); 6] = [
        (kind::PACKET_IN, &[0xff; 4]),
        (kind::PACKET_IN, &[0xff; 9]),
        (kind::PORT_STATUS, &[0; 9]),
        (FLOW_REMOVED, &[0xff; 12]),
        (UNKNOWN, &[0; 8]),
        (kind::FLOW_MOD, &[0; 72]),
    ];
    let frame = |(kind, body): &(u8, &[u8])| {
        let mut frame = Vec::new();
        message(&mut frame, version, *kind, 0, body);
        frame
    };
    bodies.iter().map(frame).collect()
}

const FLOW_REMOVED: u8 = 11;
/// A message type that no version has.
const UNKNOWN: u8 = 99;

/// Connects to one address again and again. A connection either sends bytes that are no OpenFlow
/// and is closed, or stays open and silent.
fn connect_again_and_again(address: SocketAddr, nonsense: bool, stop: &AtomicBool) {
    let gap = Duration::from_nanos(1_000_000_000 / STRANGERS_PER_SECOND);
    let mut held = std::collections::VecDeque::new();
    while !stop.load(Ordering::Relaxed) {
        if let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            if nonsense {
                // The controller may have closed the connection already.
                let _ = stream.write_all(&[0xff; 64]);
            } else {
                held.push_back(stream);
                if held.len() > SILENT {
                    held.pop_front();
                }
            }
        }
        std::thread::sleep(gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_messages_have_valid_frames_and_an_invalid_body_or_type() {
        for version in [Version::V1_0, Version::V1_3] {
            for frame in malformed(version) {
                assert_eq!(openflow::frame::next(&frame), Ok(Some(frame.len())));
                let is_wrong = match version {
                    Version::V1_0 => openflow::v10::Message::parse(&frame).is_err(),
                    Version::V1_3 => openflow::v13::Message::parse(&frame).is_err(),
                };
                // A message of an unknown type, or of a type for switches alone, can be parsed, but
                // must still be refused.
                assert!(is_wrong || [UNKNOWN, 14].contains(&frame[1]), "{version:?} {frame:?}");
            }
        }
    }
}
