//! All hostile peers, which one thread plays.
//!
//! ```text
//!   hostile tenants' controllers ◀── the system under test dials
//!   strangers, silent connections ──▶ where switches connect
//!   half-sent requests, subscribers ──▶ REST interface
//! ```
//!
//! The thread never blocks: each turn of a millisecond reads the arrived bytes, adds the due messages of each peer, and
//! writes as much as the sockets accept.

use super::clients::Clients;
use super::orders::Orders;
use super::strangers::Strangers;
use super::tenants::{self, Tenant};
use crate::Error;
use crate::cpus;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const TURN: Duration = Duration::from_millis(1);
/// The time that the installation of the hostile tenants' rules may take.
const PREPARATION: Duration = Duration::from_secs(120);

/// The progress of the hostile peers.
#[derive(Debug, Default)]
struct Phase {
    phase: AtomicU8,
    /// Tenants whose rules are installed.
    ready: AtomicUsize,
    /// The attacks so far: messages, connections, requests.
    done: AtomicU64,
}

const ATTACKS: u8 = 1;
const ENDS: u8 = 2;

/// The thread, and the channels to the thread.
#[derive(Debug)]
pub(crate) struct Crowd {
    phase: Arc<Phase>,
    tenants: usize,
    thread: Option<JoinHandle<()>>,
}

impl Crowd {
    /// Starts the thread. Hostile tenants behave well at first: each tenant completes the handshake and adds its rules.
    pub(crate) fn start(orders: Orders, listeners: Vec<TcpListener>) -> Result<Crowd, Error> {
        let tenants = listeners.len();
        let phase = Arc::new(Phase::default());
        let shared = Arc::clone(&phase);
        allow_many_connections();
        let each = orders.setup.controllers_each;
        let listeners = listeners.into_iter().map(|first| tenants::listeners(first, each));
        let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
        let thread = std::thread::Builder::new().name("bench-hostile".to_owned());
        let thread = thread.spawn(move || work(&orders, listeners, &shared));
        Ok(Crowd { phase, tenants, thread: Some(thread.map_err(Error::io("thread"))?) })
    }

    /// Waits until all hostile tenants' rules are installed or refused, and begins the attack.
    pub(crate) fn attack(&self) -> Result<(), Error> {
        let deadline = Instant::now() + PREPARATION;
        while self.phase.ready.load(Ordering::Relaxed) < self.tenants {
            if Instant::now() > deadline {
                let ready = self.phase.ready.load(Ordering::Relaxed);
                let tenants = self.tenants;
                return Err(Error::System(format!(
                    "the rules of {ready} of {tenants} hostile tenants were acknowledged in time"
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.phase.phase.store(ATTACKS, Ordering::Relaxed);
        Ok(())
    }

    /// Messages, connections and requests so far.
    pub(crate) fn done(&self) -> u64 {
        self.phase.done.load(Ordering::Relaxed)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.phase.phase.store(ENDS, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has already printed its message.
            let _ = thread.join();
        }
    }
}

/// Raises the limit of descriptors. A shell usually allows only as many descriptors as there are silent connections.
/// With this limit there would be fewer attacks than the results state.
fn allow_many_connections() {
    let limit = getrlimit(Resource::Nofile);
    // If the kernel refuses the limit, there are fewer attacks, and `attacks/s` shows this.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn work(orders: &Orders, listeners: Vec<Vec<TcpListener>>, phase: &Phase) {
    // The thread runs on the generator's CPU with a lower priority than the generator, because the thread must not use
    // the CPUs of the system under test. With a real switch it runs on any CPU, also with a lower priority.
    cpus::go_behind();
    if let Some(cpus) = &orders.cpus {
        cpus.beside();
    }
    let mut tenants: Vec<Tenant> = (1..)
        .zip(listeners)
        .map(|(index, listeners)| Tenant::new(orders, index, listeners))
        .collect();
    let mut strangers = Strangers::new(orders);
    let mut clients = Clients::new(orders);
    let mut scratch = vec![0; 1 << 17];
    let mut since = None;
    loop {
        let now = Instant::now();
        match phase.phase.load(Ordering::Relaxed) {
            ENDS => return,
            ATTACKS if since.is_none() => since = Some(now),
            _ => {}
        }
        let since = since.map(|since: Instant| now - since);
        let mut done = 0;
        for tenant in &mut tenants {
            done += tenant.turn(since, &mut scratch);
        }
        if since.is_some() {
            done += strangers.turn(now, &mut scratch) + clients.turn(now);
        }
        phase.ready.store(tenants.iter().filter(|it| it.is_ready()).count(), Ordering::Relaxed);
        phase.done.fetch_add(done, Ordering::Relaxed);
        std::thread::sleep(TURN.saturating_sub(now.elapsed()));
    }
}
