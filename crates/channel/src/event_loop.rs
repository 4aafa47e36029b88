//! One event loop per core: readiness, timers and wake-ups for everything that a core serves.
//!
//! The loop starts no thread and owns no connection. The daemon runs one on each core, gives it
//! the switches of that core's shard with all their tenants' connections, and drives them:
//!
//! ```text
//!            core 0                              core 1
//!  ┌─────────────────────────┐        ┌─────────────────────────┐
//!  │ EventLoop::wait ◀─────┐ │ Waker  │ EventLoop::wait         │
//!  │   │ Ready / Timer /   │ │◀───────│   …                     │
//!  │   ▼ Woken             │ │        └─────────────────────────┘
//!  │ Connection::receive   │ │            ▲ a message queue of the
//!  │   ▼ frames            │ │            │ daemon's, then Waker
//!  │ hypervisor core       │ │        ┌───┴─────────────────────┐
//!  │   ▼ frames            │ │        │ control side (REST,     │
//!  │ Connection::flush ────┘ │        │ reload, metrics)        │
//!  └─────────────────────────┘        └─────────────────────────┘
//! ```
//!
//! epoll is used edge-triggered, registered once for both directions, so a busy connection costs
//! no system call beyond its own reads and writes. The price is that a change is reported only once.
//! A reader that stops before the socket is drained (because its turn's budget is used up) says so by
//! [`EventLoop::again`], and gets another turn after everybody else had theirs.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mio::event::Source;
use mio::{Interest, Poll};

use crate::Error;
use crate::timers::Timers;

/// Events taken from the kernel in one go.
const BATCH: usize = 512;
const WAKER: mio::Token = mio::Token(usize::MAX);

/// Names a registered source. Never used twice, so that an event that was under way when its
/// source left cannot reach the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    index: u32,
    generation: u32,
}

impl Token {
    /// A small number, unique among the registered sources: an index for the caller's own table.
    /// It is used again after [`EventLoop::deregister`].
    pub fn index(self) -> usize {
        self.index as usize
    }

    fn from_mio(token: mio::Token) -> Self {
        Token { index: token.0 as u32, generation: (token.0 >> 32) as u32 }
    }

    fn to_mio(self) -> mio::Token {
        mio::Token((self.generation as usize) << 32 | self.index as usize)
    }
}

const _: () = assert!(usize::BITS == 64, "a token packs two 32-bit numbers into a usize");

/// A timer's name, chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TimerKey(pub u64);

/// What [`EventLoop::wait`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A source can be read or written, or asked for another turn.
    Ready(Readiness),
    /// A deadline has passed; the timer is gone.
    Timer(TimerKey),
    /// A [`Waker`] was used, once or more.
    Woken,
}

/// What a source is ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// Which source.
    pub token: Token,
    /// There may be something to read, accept, or learn about the connection's end.
    pub readable: bool,
    /// Writing may work (again).
    pub writable: bool,
    /// The peer has closed its direction, or both: read until the end. See
    /// [`Connection::note`](crate::Connection::note).
    pub read_closed: bool,
    /// The source asked for this turn by [`EventLoop::again`]. In an answer of [`EventLoop::wait`] these come last.
    pub again: bool,
}

/// Wakes an event loop from any other thread.
#[derive(Debug, Clone)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    /// Makes the loop's current or next [`wait`](EventLoop::wait) return with [`Event::Woken`].
    pub fn wake(&self) -> io::Result<()> {
        self.0.wake()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    generation: u32,
    occupied: bool,
    /// In the `again` list.
    again: bool,
    /// The peer's end was reported; every later turn must know of it.
    read_closed: bool,
}

/// Readiness, timers and wake-ups, for one thread.
#[derive(Debug)]
pub struct EventLoop {
    poll: Poll,
    kernel_events: mio::Events,
    waker: Waker,
    slots: Vec<Slot>,
    free: Vec<u32>,
    again: Vec<Token>,
    timers: Timers<TimerKey>,
    now: Instant,
    interval: Duration,
}

impl EventLoop {
    /// An empty loop.
    pub fn new() -> Result<Self, Error> {
        let failed = |error| Error::io("set up an event loop", error);
        let poll = Poll::new().map_err(failed)?;
        let waker = mio::Waker::new(poll.registry(), WAKER).map_err(failed)?;
        Ok(EventLoop {
            poll,
            kernel_events: mio::Events::with_capacity(BATCH),
            waker: Waker(Arc::new(waker)),
            slots: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            timers: Timers::new(),
            now: Instant::now(),
            interval: Duration::ZERO,
        })
    }

    /// Watches `source` for both directions, once and for all. A source that is ready already is
    /// reported by the next [`wait`](Self::wait).
    pub fn register(&mut self, source: &mut impl Source) -> Result<Token, Error> {
        let index = match self.free.last() {
            Some(index) => *index,
            None => u32::try_from(self.slots.len())
                .map_err(|_| Error::io("register", io::ErrorKind::OutOfMemory.into()))?,
        };
        let generation = self.slots.get(index as usize).map_or(0, |slot| slot.generation);
        let token = Token { index, generation };
        self.poll
            .registry()
            .register(source, token.to_mio(), Interest::READABLE | Interest::WRITABLE)
            .map_err(|error| Error::io("watch a socket", error))?;
        let slot = Slot { generation, occupied: true, ..Slot::default() };
        match self.slots.get_mut(index as usize) {
            Some(place) => {
                *place = slot;
                self.free.pop();
            }
            None => self.slots.push(slot),
        }
        Ok(token)
    }

    /// Stops watching `source`. Events of `token` that are under way are dropped. The source can
    /// then be registered with another core's loop.
    pub fn deregister(&mut self, token: Token, source: &mut impl Source) -> Result<(), Error> {
        if let Some(slot) = self.slot(token) {
            slot.occupied = false;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(token.index);
        }
        let result = self.poll.registry().deregister(source);
        result.map_err(|error| Error::io("stop watching a socket", error))
    }

    /// Asks for another turn of `token`: the next [`wait`](Self::wait) does not sleep, and reports
    /// it readable after what the kernel reports.
    pub fn again(&mut self, token: Token) {
        if let Some(slot) = self.slot(token)
            && !slot.again
        {
            slot.again = true;
            self.again.push(token);
        }
    }

    /// Sets (or moves) a timer. It fires on time or up to a millisecond late, which is epoll's
    /// grain; who must be more exact waits with a limit of zero as the time draws near.
    pub fn set_timer(&mut self, key: TimerKey, at: Instant) {
        self.timers.set(key, at);
    }

    /// Removes a timer, if it is set.
    pub fn cancel_timer(&mut self, key: TimerKey) {
        self.timers.cancel(key);
    }

    /// A handle for other threads.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Sets the least time from one turn to the next: [`wait`](Self::wait) sleeps before it asks the kernel, so that
    /// one turn reads several messages. A turn that [`again`](Self::again) or a limit of zero asks for comes at once.
    pub fn set_interval(&mut self, interval: Duration) {
        self.interval = interval;
    }

    /// The time when [`wait`](Self::wait) last returned: exact enough for deadlines, and free.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Waits until something happens, at most `limit` (`None`: for ever), and puts it in `events`,
    /// which is cleared first. It may return with none. Expired timers come first, then what the
    /// kernel reports, then all sources that asked for the turn by [`again`](Self::again).
    pub fn wait(&mut self, events: &mut Vec<Event>, limit: Option<Duration>) -> Result<(), Error> {
        events.clear();
        if self.again.is_empty() && limit != Some(Duration::ZERO) {
            self.rest();
        }
        let timeout = self.timeout(limit);
        match self.poll.poll(&mut self.kernel_events, timeout) {
            Ok(()) => {}
            // A signal: the caller looks around, as after a time-out.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => self.kernel_events.clear(),
            Err(error) => return Err(Error::io("wait for events", error)),
        }
        self.now = Instant::now();
        while let Some(key) = self.timers.expired(self.now) {
            events.push(Event::Timer(key));
        }
        self.push_ready(events, false);
        self.push_ready(events, true);
        self.push_again(events);
        Ok(())
    }

    /// Adds what the kernel reports of sources that have asked for another turn, or of the others.
    fn push_ready(&mut self, events: &mut Vec<Event>, again: bool) {
        for event in &self.kernel_events {
            if event.token() == WAKER {
                if !again {
                    events.push(Event::Woken);
                }
                continue;
            }
            let token = Token::from_mio(event.token());
            let Some(slot) = live(&mut self.slots, token) else { continue };
            if slot.again != again {
                continue;
            }
            slot.again = false;
            // An error is learned by reading; it may come without any other flag.
            let read_closed = event.is_read_closed() || event.is_error();
            slot.read_closed |= read_closed;
            events.push(Event::Ready(Readiness {
                token,
                readable: event.is_readable() || read_closed || again,
                writable: event.is_writable(),
                read_closed: slot.read_closed,
                again,
            }));
        }
    }

    /// Sleeps until `interval` after the last turn began.
    fn rest(&self) {
        if !self.interval.is_zero() {
            let next = self.now + self.interval;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    }

    fn push_again(&mut self, events: &mut Vec<Event>) {
        for token in self.again.drain(..) {
            // Not in the list any more: the kernel has just reported it, or it has left.
            let Some(slot) = live(&mut self.slots, token) else { continue };
            if std::mem::take(&mut slot.again) {
                events.push(Event::Ready(Readiness {
                    token,
                    readable: true,
                    writable: false,
                    read_closed: slot.read_closed,
                    again: true,
                }));
            }
        }
    }

    fn timeout(&self, limit: Option<Duration>) -> Option<Duration> {
        if !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        let Some(at) = self.timers.next() else { return limit };
        // epoll counts in milliseconds and mio rounds up, so a timer is never early.
        let until = at.saturating_duration_since(Instant::now());
        Some(limit.map_or(until, |limit| limit.min(until)))
    }

    fn slot(&mut self, token: Token) -> Option<&mut Slot> {
        live(&mut self.slots, token)
    }
}

fn live(slots: &mut [Slot], token: Token) -> Option<&mut Slot> {
    slots
        .get_mut(token.index as usize)
        .filter(|slot| slot.occupied && slot.generation == token.generation)
}
