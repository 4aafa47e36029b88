//! Runs emulated switches on real sockets, with one thread and one event loop for a whole
//! [`Network`].
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
//! A switch with a [`ServiceTime`] takes one message at a time from its connections, in turn. The other messages stay
//! in the sockets, so the controller gets the back-pressure of a slow switch. With [`Runner::queue`] the switch reads
//! all messages, and drops messages when its queue is full, as real switches do. The service time is exact on average,
//! even if the thread wakes late. On an idle machine the error is some microseconds for each message, because the
//! thread sleeps until shortly before the end of a service and then spins.

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

/// A network with the controller connections of its switches. [`Runner::start`] starts the network.
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
    /// Makes a runner for this network, without connections.
    pub fn new(network: Network) -> Runner {
        let options = Options { send_buffer: 1 << 20, ..Options::default() };
        let (doors, services, queues) = (Vec::new(), Vec::new(), Vec::new());
        Runner { network, doors, services, queues, tls: None, options, tap: None }
    }

    /// Makes the switch dial a controller. The switch dials again, with back-off, when it loses the
    /// connection.
    #[must_use]
    pub fn dial(mut self, switch: SwitchIndex, controller: Address) -> Runner {
        self.doors.push((switch, Door::Dial(controller)));
        self
    }

    /// Makes every switch dial the same controller.
    #[must_use]
    pub fn dial_all(self, controller: Address) -> Runner {
        let switches = self.network.switch_indices();
        switches.fold(self, |runner, switch| runner.dial(switch, controller))
    }

    /// Makes the switch listen for any number of controllers (like `ptcp:` of Open vSwitch).
    ///
    /// With port 0 the kernel chooses the port; see [`Running::listening_on`].
    #[must_use]
    pub fn listen(mut self, switch: SwitchIndex, address: Address) -> Runner {
        self.doors.push((switch, Door::Listen(address)));
        self
    }

    /// Sets the CPU time of the switch for messages. Without this call messages need no time.
    #[must_use]
    pub fn service(mut self, switch: SwitchIndex, service: ServiceTime) -> Runner {
        self.services.push((switch, service));
        self
    }

    /// Sets how many messages may wait for the CPU of the switch, in addition to the message in service. The switch
    /// drops further messages, and counts them in [`Counters::overflowed`].
    #[must_use]
    pub fn queue(mut self, switch: SwitchIndex, messages: usize) -> Runner {
        self.queues.push((switch, messages));
        self
    }

    /// Sets the TLS identity for `ssl:` addresses.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Runner {
        self.tls = Some(tls);
        self
    }

    /// Sets the options of connections.
    #[must_use]
    pub fn options(mut self, options: Options) -> Runner {
        self.options = options;
        self
    }

    /// Calls `tap` for every event between switches and controllers, with the time of the event in
    /// ns (as in [`Running::now`]). The function runs on the network's thread, so the function must
    /// be quick and must not wait.
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

/// A running network. Dropping the value stops the network.
pub struct Running {
    sender: Sender<Command>,
    waker: Waker,
    shared: Vec<Arc<Shared>>,
    started: Instant,
    listening: Vec<(SwitchIndex, Address)>,
    thread: Option<JoinHandle<Result<Network, Error>>>,
}

impl Running {
    /// The address on which a switch listens; `None` if the switch does not listen.
    pub fn listening_on(&self, switch: SwitchIndex) -> Option<Address> {
        self.listening.iter().find(|(index, _)| *index == switch).map(|(_, address)| *address)
    }

    /// Calls `work` with the network, on the network's thread, between two messages. The second
    /// argument is the time of the network, ns. Messages that switches send because of the call go
    /// to their controllers.
    pub fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Network, u64) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = mpsc::channel();
        let command = move |network: &mut Network, now: u64| {
            // The caller may have ended. Then the result is dropped.
            let _ = sender.send(work(network, now));
        };
        self.sender.send(Command::Work(Box::new(command))).map_err(|_| Error::Stopped)?;
        self.waker.wake().map_err(Error::Thread)?;
        receiver.recv().map_err(|_| Error::Stopped)
    }

    /// Changes the service time of a switch, from its next message on.
    pub fn set_service(&self, switch: SwitchIndex, service: ServiceTime) -> Result<(), Error> {
        self.sender.send(Command::Service(switch, service)).map_err(|_| Error::Stopped)?;
        self.waker.wake().map_err(Error::Thread)
    }

    /// Turns the control plane of a switch off or on, as a power failure does. Without power the
    /// connections are closed, and the switch neither dials nor accepts connections. The caller has
    /// to change the links and tables.
    pub fn set_powered(&self, switch: SwitchIndex, powered: bool) -> Result<(), Error> {
        self.sender.send(Command::Power(switch, powered)).map_err(|_| Error::Stopped)?;
        self.waker.wake().map_err(Error::Thread)
    }

    /// The time of the network: ns since the start of the runner.
    pub fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Waits until `is_so` returns true. The function is called once per millisecond.
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

    /// Waits until every switch has negotiated a version with its main controller.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), Error> {
        self.wait_for("the switches to connect", timeout, |network| {
            network.switches().all(|(_, switch)| switch.version().is_some())
        })
    }

    /// Returns the counters of a switch, without a lock.
    pub fn counters(&self, switch: SwitchIndex) -> Option<Counters> {
        let shared = self.shared.get(switch.0)?;
        Some(shared.read(self.started.elapsed()))
    }

    /// Stops the runner and returns the network.
    pub fn stop(mut self) -> Result<Network, Error> {
        self.end().ok_or(Error::Stopped)?
    }

    fn end(&mut self) -> Option<Result<Network, Error>> {
        let thread = self.thread.take()?;
        // If the thread has already ended, the join returns the reason.
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
