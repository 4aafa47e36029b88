//! Emulated switches on real sockets: one thread with one event loop for a whole [`Network`].
//!
//! ```text
//!  caller                          thread "emulate"
//!  ┌──────────────┐  call(work)   ┌───────────────────────────────────────────┐
//!  │ Running      │──────────────▶│ Network: switches, links, hosts            │
//!  │  counters ◀──┼── atomics ────│   ▲ frame, when the switch's Cpu is done   │
//!  │  stop        │               │ Station (one per switch): Cpu, connections │──▶ controllers
//!  └──────────────┘               └───────────────────────────────────────────┘
//! ```
//!
//! A switch with a [`ServiceTime`] takes one message at a time from its connections, in turn, and
//! leaves the others in the socket, so that the controller feels the back-pressure of a slow switch. With [`Runner::queue`] the
//! switch reads all that comes instead, and drops what its queue has no room for, as real switches do.
//! Service is exact on average however late the thread wakes, and within some microseconds for each
//! message on an idle machine: the thread sleeps towards the end of a service and spins at last.

mod counters;
mod door;
mod line;
mod pace;
mod station;
mod tap;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use channel::{Address, EventLoop, Options, Tls, Waker};

pub use counters::Counters;
pub(crate) use line::Line;
pub use tap::Seen;

use crate::error::Error;
use crate::network::{Network, SwitchIndex};
use crate::service::ServiceTime;
use counters::Shared;
use door::Door;
use tap::Tap;
use worker::{Command, Worker};

/// A network and how its switches meet their controllers; [`Runner::start`] sets it going.
pub struct Runner {
    network: Network,
    doors: Vec<(SwitchIndex, Door)>,
    services: Vec<(SwitchIndex, ServiceTime)>,
    queues: Vec<(SwitchIndex, usize)>,
    tls: Option<Tls>,
    options: Options,
    tap: Option<Tap>,
}

impl Runner {
    /// Runs this network; nobody is connected yet.
    pub fn new(network: Network) -> Runner {
        let options = Options { send_buffer: 1 << 20, ..Options::default() };
        let (doors, services, queues) = (Vec::new(), Vec::new(), Vec::new());
        Runner { network, doors, services, queues, tls: None, options, tap: None }
    }

    /// The switch dials a controller, and again with back-off whenever the connection is lost.
    #[must_use]
    pub fn dial(mut self, switch: SwitchIndex, controller: Address) -> Runner {
        self.doors.push((switch, Door::Dial(controller)));
        self
    }

    /// Every switch dials the same controller.
    #[must_use]
    pub fn dial_all(self, controller: Address) -> Runner {
        let switches = self.network.switch_indices();
        switches.fold(self, |runner, switch| runner.dial(switch, controller))
    }

    /// The switch listens for controllers (like `ptcp:` of Open vSwitch), any number at once.
    ///
    /// With port 0 the kernel chooses; see [`Running::listening_on`].
    #[must_use]
    pub fn listen(mut self, switch: SwitchIndex, address: Address) -> Runner {
        self.doors.push((switch, Door::Listen(address)));
        self
    }

    /// How long the switch's CPU takes for messages; none at all if not said.
    #[must_use]
    pub fn service(mut self, switch: SwitchIndex, service: ServiceTime) -> Runner {
        self.services.push((switch, service));
        self
    }

    /// How many messages may wait for the switch's CPU, beside the one that is served. What comes beyond is dropped, and counted
    /// as [`Counters::overflowed`].
    #[must_use]
    pub fn queue(mut self, switch: SwitchIndex, messages: usize) -> Runner {
        self.queues.push((switch, messages));
        self
    }

    /// The identity for `ssl:` addresses.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Runner {
        self.tls = Some(tls);
        self
    }

    /// How connections are set up.
    #[must_use]
    pub fn options(mut self, options: Options) -> Runner {
        self.options = options;
        self
    }

    /// Shows everything that happens between switches and controllers, with its time in ns (as in
    /// [`Running::now`]). It runs on the network's thread: it must be quick, and must not wait.
    #[must_use]
    pub fn tap(mut self, tap: impl FnMut(u64, Seen<'_>) + Send + 'static) -> Runner {
        self.tap = Some(Box::new(tap));
        self
    }

    /// Binds the listeners and starts the thread.
    pub fn start(self) -> Result<Running, Error> {
        let event_loop = EventLoop::new()?;
        let waker = event_loop.waker();
        let (sender, receiver) = mpsc::channel();
        let shared: Vec<Arc<Shared>> = self.network.switches().map(|_| Arc::default()).collect();
        let started = Instant::now();
        let mut worker =
            Worker::new(event_loop, self.network, receiver, &shared, started, self.options);
        worker.set_tap(self.tap);
        for (switch, service) in self.services {
            worker.set_service(switch, service)?;
        }
        for (switch, messages) in self.queues {
            worker.set_queue(switch, messages)?;
        }
        let mut listening = Vec::new();
        for (switch, door) in self.doors {
            if let Some(address) = worker.add_door(switch, door, self.tls.as_ref())? {
                listening.push((switch, address));
            }
        }
        let thread = std::thread::Builder::new()
            .name("emulate".to_owned())
            .spawn(move || worker.run())
            .map_err(Error::Thread)?;
        Ok(Running { sender, waker, shared, started, listening, thread: Some(thread) })
    }
}

/// A network in motion. Dropping it stops it.
pub struct Running {
    sender: Sender<Command>,
    waker: Waker,
    shared: Vec<Arc<Shared>>,
    started: Instant,
    listening: Vec<(SwitchIndex, Address)>,
    thread: Option<JoinHandle<Result<Network, Error>>>,
}

impl Running {
    /// Where a switch that listens does so.
    pub fn listening_on(&self, switch: SwitchIndex) -> Option<Address> {
        self.listening.iter().find(|(index, _)| *index == switch).map(|(_, address)| *address)
    }

    /// Does something with the network, on its thread, between two messages; the second argument is
    /// its time, ns. What switches say because of it goes to their controllers.
    pub fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Network, u64) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = mpsc::channel();
        let command = move |network: &mut Network, now: u64| {
            // The caller may have gone away; then nobody wants the answer.
            let _ = sender.send(work(network, now));
        };
        self.sender.send(Command::Work(Box::new(command))).map_err(|_| Error::Stopped)?;
        self.waker.wake().map_err(Error::Thread)?;
        receiver.recv().map_err(|_| Error::Stopped)
    }

    /// Changes a switch's service time, from its next message on.
    pub fn set_service(&self, switch: SwitchIndex, service: ServiceTime) -> Result<(), Error> {
        self.sender.send(Command::Service(switch, service)).map_err(|_| Error::Stopped)?;
        self.waker.wake().map_err(Error::Thread)
    }

    /// Takes a switch's control plane away, as when it loses power: its connections are cut, and it
    /// neither dials nor accepts until it is powered again. Its links and tables are the caller's.
    pub fn set_powered(&self, switch: SwitchIndex, powered: bool) -> Result<(), Error> {
        self.sender.send(Command::Power(switch, powered)).map_err(|_| Error::Stopped)?;
        self.waker.wake().map_err(Error::Thread)
    }

    /// The network's time: ns since the runner started.
    pub fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Waits until `is_so` says yes, looking once a millisecond.
    pub fn wait_for(
        &self,
        what: &str,
        timeout: Duration,
        mut is_so: impl FnMut(&mut Network) -> bool + Send + Clone + 'static,
    ) -> Result<(), Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let mut look = is_so.clone();
            let (found, state) = self.call(move |network, _| (look(network), look))?;
            is_so = state;
            if found {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::TimedOut { what: what.to_owned(), instead: Vec::new() });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until every switch has agreed on a version with its main controller.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), Error> {
        self.wait_for("the switches to connect", timeout, |network| {
            network.switches().all(|(_, switch)| switch.version().is_some())
        })
    }

    /// What a switch has done so far. Takes no lock.
    pub fn counters(&self, switch: SwitchIndex) -> Option<Counters> {
        let shared = self.shared.get(switch.0)?;
        Some(shared.read(self.started.elapsed()))
    }

    /// Stops and gives the network back.
    pub fn stop(mut self) -> Result<Network, Error> {
        self.end().ok_or(Error::Stopped)?
    }

    fn end(&mut self) -> Option<Result<Network, Error>> {
        let thread = self.thread.take()?;
        // If the thread is gone already, joining says why.
        let _ = self.sender.send(Command::Stop);
        let _ = self.waker.wake();
        thread.join().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
