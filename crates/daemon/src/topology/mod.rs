//! The physical network as Weir knows it, kept on a thread of its own beside the shards.
//!
//! ```text
//!   shards ── ports, probes that came in ──▶ Inbox ──▶ ┌──── thread "topology" ────┐ ──▶ Watch ──▶ REST
//!     ▲                                                │ State: Network, Discovery │        └──▶ subscribers
//!     └────────── Command::Frames: probes ◀────────────└───────────────────────────┘
//! ```
//!
//! Shards never wait for it (`inbox`), nor does it wait for them: what a shard has not taken is bounded by
//! `FRAMES`, beyond which probes are left out. Subscribers run on threads of their own ([`Watch`]).
//!
//! Start reading at [`Topology::start`], then [`State`], which decides everything.

mod inbox;
mod state;
mod watch;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fabric::{Dpid, LldpKey, PortId, PortNumber};

pub use inbox::Inbox;
use inbox::News;
pub use state::{Origin, State, Wire};
pub use watch::{Change, Snapshot, Subscription, Watch};

use crate::config;
use crate::shard::{Command, Handle};

/// Batches of frames that a shard may have been given and not sent.
const FRAMES: usize = 64;

/// Frames for a shard's switches: datapath id, port, frame.
pub struct Frames {
    /// What is to be sent.
    pub frames: Vec<(u64, u32, Vec<u8>)>,
    _under_way: UnderWay,
}

/// Counts down when the shard is done.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The running thread.
pub struct Topology {
    inbox: Arc<Inbox>,
    watch: Watch,
    thread: Option<JoinHandle<()>>,
}

impl Topology {
    /// Starts the thread. Shards tell `inbox`, and are sent to by `shards`; `origin` is their time zero.
    pub fn start(
        config: &config::Topology,
        key: LldpKey,
        origin: Instant,
        inbox: Arc<Inbox>,
        shards: Vec<Handle>,
    ) -> io::Result<Topology> {
        let watch = Watch::default();
        let shards = shards.into_iter().map(|shard| (shard, Arc::default())).collect();
        let worker = Worker {
            state: State::new(config.clone(), key),
            origin,
            inbox: Arc::clone(&inbox),
            watch: watch.clone(),
            shards,
            number: 0,
        };
        let thread =
            std::thread::Builder::new().name("topology".to_owned()).spawn(move || worker.run())?;
        Ok(Topology { inbox, watch, thread: Some(thread) })
    }

    /// Where the topology can be had.
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }

    /// Takes over another configuration.
    pub fn configure(&self, config: &config::Topology) {
        self.inbox.configure(config.clone());
    }
}

impl Drop for Topology {
    fn drop(&mut self) {
        self.inbox.stop();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the topology's thread ended by a panic");
        }
    }
}

struct Worker {
    state: State,
    origin: Instant,
    inbox: Arc<Inbox>,
    watch: Watch,
    /// And how many batches each has not sent yet.
    shards: Vec<(Handle, Arc<AtomicUsize>)>,
    number: u64,
}

impl Worker {
    fn run(mut self) {
        loop {
            let due = self.state.next_due();
            let due = due.map(|due| self.origin + Duration::from_nanos(due.0));
            let news = self.inbox.wait(due);
            if news.stop {
                return;
            }
            let now = self.now();
            self.take(news, now);
            self.state.handle_timeout(now);
            self.send_probes(now);
            self.publish();
        }
    }

    fn now(&self) -> fabric::Instant {
        fabric::Instant(self.origin.elapsed().as_nanos() as u64)
    }

    fn take(&mut self, news: News, now: fabric::Instant) {
        if news.dropped > 0 {
            tracing::warn!(dropped = news.dropped, "more probes or ports than could be kept");
        }
        if let Some(config) = news.config {
            self.state.configure(config, now);
        }
        for (dpid, news) in news.switches {
            let dpid = Dpid(dpid);
            if news.is_gone {
                self.state.handle_switch_gone(dpid, now);
            }
            for (number, port) in news.ports {
                // The others are none that a wire can be put into, such as LOCAL.
                if let Ok(number) = PortNumber::new(number) {
                    self.state.handle_port(PortId::new(dpid, number), port, now);
                }
            }
        }
        for (dpid, port, frame) in news.probes {
            let Ok(port) = PortNumber::new(port) else { continue };
            let at = PortId::new(Dpid(dpid), port);
            if let Err(refusal) = self.state.handle_probe(at, &frame, now) {
                tracing::debug!(%at, ?refusal, "a probe counts for nothing");
            }
        }
        self.watch.set_refused_probes(self.state.refused());
    }

    fn send_probes(&mut self, now: fabric::Instant) {
        let mut batches: BTreeMap<usize, Vec<(u64, u32, Vec<u8>)>> = BTreeMap::new();
        while let Some(probe) = self.state.poll_probe(now) {
            let dpid = probe.port.dpid.0;
            let shard = (dpid % self.shards.len().max(1) as u64) as usize;
            batches.entry(shard).or_default().push((dpid, probe.port.port.get(), probe.frame));
        }
        for (shard, frames) in batches {
            let Some((handle, under_way)) = self.shards.get(shard) else { continue };
            if under_way.load(Ordering::Relaxed) >= FRAMES {
                tracing::warn!(shard, "a shard does not send its probes; they are left out");
                continue;
            }
            under_way.fetch_add(1, Ordering::Relaxed);
            let under_way = UnderWay(Arc::clone(under_way));
            handle.send(Command::Frames(Frames { frames, _under_way: under_way }));
        }
    }

    fn publish(&mut self) {
        let Some(changed) = self.state.take_changed() else { return };
        self.number += 1;
        for link in &changed {
            self.log(*link);
        }
        let snapshot = Snapshot {
            number: self.number,
            network: self.state.network().clone(),
            wires: self.state.wires().copied().collect(),
        };
        self.watch.publish(snapshot, &changed);
    }

    /// Says once of each wire between switches what has become of it.
    fn log(&self, link: fabric::LinkId) {
        let state = self.state.network().link(link);
        if let (fabric::End::Switch { port: a, .. }, fabric::End::Switch { port: b, .. }) =
            (state.from, state.to)
            && a < b
        {
            let capacity = state.capacity;
            match state.is_up() {
                true => tracing::info!(%a, %b, %capacity, "a link is up"),
                false => tracing::warn!(%a, %b, "a link is down"),
            }
        }
    }
}
