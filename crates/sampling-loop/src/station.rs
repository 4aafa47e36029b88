//! `weir agent --sampling`: the agent that `weir sampling run` starts on each server.
//!
//! ```text
//!   stdin ── lines ──▶ reader's thread ── bounded channel ──▶ this thread ── lines ──▶ stdout
//!                                                                │ every 100 ms: is there headroom?
//!                                          receivers' threads ◀──┘ Station
//! ```
//!
//! The agent removes everything that it made when stdin ends, after ten seconds without an order, or when its caller
//! ends it.

use crate::counters;
use crate::protocol::{Counted, CpuSource, Observed, Report, Request, Setup};
use agent::station::{Machine, Receiver, ReceiverOptions, Reporter, Station, is_out};
use anyhow::{Context, bail};
use lab::{CpuBound, OpenVSwitch};
use packet::{
    Capture, CaptureOptions, Filter, Headers, Observation, ProbeTemplate, TransmitOptions,
    Transmitter, in_namespace,
};
use sampling::control::{Guard, Import, Step};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver as Channel, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the agent checks headroom, and for how long headroom must be gone. This time is longer than enacting a
/// plan, which runs programs, and short enough that sampling stops within a second.
const TICK: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_millis(600);
/// A caller that sends nothing for this time counts as gone.
const LEASE: Duration = Duration::from_secs(10);
/// Every order is shorter than this.
const LONGEST_LINE: u64 = 1 << 20;

/// Reads orders from stdin and writes reports to stdout, one line of JSON each, until stdin ends, stdin is silent for
/// too long, or `ending` is set.
///
/// # Errors
/// The reason why the agent cannot go on; the driver has received it too.
pub fn serve(ending: &AtomicBool) -> anyhow::Result<()> {
    let (sender, orders) = sync_channel(64);
    std::thread::Builder::new()
        .name("orders".to_owned())
        .spawn(move || {
            let mut input = BufReader::new(std::io::stdin());
            loop {
                let mut line = String::new();
                match (&mut input).take(LONGEST_LINE).read_line(&mut line) {
                    Ok(count) if count > 0 && sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        })
        .context("cannot start a thread")?;
    let Ok(first) = orders.recv() else { bail!("no orders come from stdin") };
    let setup = match serde_json::from_str(&first).context("this is no order")? {
        Request::Setup(setup) => *setup,
        _ => bail!("the first order has to say which server this is"),
    };
    Server::open(setup).and_then(|mut server| server.serve(&orders, ending)).inspect_err(|error| {
        let _ = say(&Report::Failed(format!("{error:#}")));
    })
}

fn say(report: &Report) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(report)?;
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).context("cannot report")
}

/// The real system: `ip` and `tc` in the server's namespace, rings on its interfaces.
struct Real {
    namespace: Option<String>,
    options: ReceiverOptions,
    /// By the server whose traffic is sampled.
    reporters: Reporters,
}

type Reporters = Arc<Mutex<BTreeMap<usize, Reporter>>>;

impl Machine for Real {
    type Receiver = Receiver;

    fn ip(&mut self, script: &str) -> Result<(), String> {
        lab::tools::ip(self.namespace.as_deref(), script).map_err(|error| error.to_string())
    }

    fn tc(&mut self, script: &str) -> Result<(), String> {
        lab::tools::tc(self.namespace.as_deref(), script).map_err(|error| error.to_string())
    }

    fn receive(&mut self, interface: &str, import: &Import) -> Result<Receiver, String> {
        let start = |reporter| Receiver::start(interface, import, &self.options, reporter);
        let mut reporters = self.reporters.lock().unwrap_or_else(PoisonError::into_inner);
        let reporter = match reporters.get(&import.from) {
            Some(reporter) => Ok(Reporter::clone(reporter)),
            None => Receiver::reporter(import.from, &self.options),
        };
        let reporter = reporter.map_err(|error| error.to_string())?;
        reporters.insert(import.from, Reporter::clone(&reporter));
        start(reporter).map_err(|error| error.to_string())
    }
}

struct Server {
    setup: Setup,
    station: Station<Real>,
    switch: OpenVSwitch,
    started: Instant,
    tick_cpu: (Instant, f64),
    seen_cpu: (Instant, f64),
    guard: Guard,
    probes: Option<Probes>,
    reporters: Reporters,
    mirrored: Mirrored,
}

impl Server {
    fn open(setup: Setup) -> anyhow::Result<Server> {
        let options = ReceiverOptions {
            namespace: setup.namespace.clone(),
            agent: setup.station.address.into(),
            tenants: setup.station.tenants.clone(),
            collector: setup.station.collector,
            processing: setup.station.processing,
        };
        let reporters = Reporters::default();
        let machine =
            Real { namespace: setup.namespace.clone(), options, reporters: Arc::clone(&reporters) };
        let station = Station::new(setup.station.clone(), machine)?;
        let now = (Instant::now(), busy(&setup)?);
        let probes = setup.test.as_ref();
        let probes = probes.map(|ports| Probes::open(setup.namespace.as_deref(), ports));
        let server = Server {
            switch: OpenVSwitch::attach(&setup.switch),
            guard: Guard::new(setup.limit, PATIENCE),
            started: now.0,
            tick_cpu: now,
            seen_cpu: now,
            probes: probes.transpose()?,
            setup,
            station,
            reporters,
            mirrored: Mirrored::default(),
        };
        // A missing switch is reported now.
        server.counters()?;
        say(&Report::Ready)?;
        Ok(server)
    }

    fn serve(&mut self, orders: &Channel<String>, ending: &AtomicBool) -> anyhow::Result<()> {
        let mut heard = Instant::now();
        let mut tick = Instant::now() + TICK;
        while !ending.load(Ordering::SeqCst) {
            match orders.recv_timeout(tick.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    heard = Instant::now();
                    self.carry_out(&line)?;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if heard.elapsed() > LEASE {
                bail!("nothing was heard for {} seconds", LEASE.as_secs());
            }
            if Instant::now() >= tick {
                tick = Instant::now() + TICK;
                self.look()?;
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, line: &str) -> anyhow::Result<()> {
        let (step, result) = match serde_json::from_str(line).context("this is no order")? {
            Request::Prepare(plan) => (Step::Prepare(plan.epoch), self.station.prepare(&plan)),
            Request::Step(step) => (step, self.station.step(step)),
            Request::CutOff(server) => {
                // If this fails, this server sends nothing to any server, which is as good for that server.
                let _ = self.station.cut_off(server);
                return Ok(());
            }
            Request::Observe => return say(&Report::Observed(self.observe()?)),
            Request::Test(rate) => {
                let probes = self.probes.as_mut().context("there are no interfaces for tests")?;
                return say(&Report::Tested(probes.burst(rate)?));
            }
            Request::Setup(_) => bail!("it is set up already"),
        };
        say(&Report::Answer { step, error: result.err() })
    }

    /// The tick.
    fn look(&mut self) -> anyhow::Result<()> {
        let now = (Instant::now(), busy(&self.setup)?);
        let busy = share(self.tick_cpu, now);
        let since = self.tick_cpu.0.duration_since(self.started);
        self.tick_cpu = now;
        let is_at_work = self.station.is_sending() || self.station.receivers().next().is_some();
        if self.guard.handle_busy(since, now.0.duration_since(self.started), busy) && is_at_work {
            // The agent removes its own filters first, because this needs no other server.
            let _ = self.station.stop();
            say(&Report::HeadroomGone(busy))?;
        }
        if let Some(probes) = &mut self.probes {
            probes.probe()?;
        }
        Ok(())
    }

    fn counters(&self) -> anyhow::Result<Observed> {
        let mut observed = Observed::default();
        counters::read(&self.switch, &self.setup.bridge, &mut observed)?;
        Ok(observed)
    }

    fn observe(&mut self) -> anyhow::Result<Observed> {
        let mut observed = self.counters()?;
        observed.sampled = self.sampled()?;
        let now = (Instant::now(), busy(&self.setup)?);
        observed.seconds = now.0.duration_since(self.started).as_secs_f64();
        observed.busy = Some(share(self.seen_cpu, now));
        self.seen_cpu = now;
        if let Some((latency, jitter)) = self.probes.as_mut().and_then(Probes::take) {
            (observed.latency, observed.jitter) = (Some(latency), Some(jitter));
        }
        Ok(observed)
    }

    fn sampled(&mut self) -> anyhow::Result<Counted> {
        let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let text = match &self.setup.namespace {
            Some(namespace) => in_namespace(namespace, read)?,
            None => read(),
        };
        self.mirrored.handle(&text.context("cannot read what interfaces count")?);
        let mut counted = Counted { mirrored: self.mirrored.total, ..Counted::default() };
        let reporters = self.reporters.lock().unwrap_or_else(PoisonError::into_inner);
        for (from, reporter) in reporters.iter() {
            let samples = reporter.lock().unwrap_or_else(PoisonError::into_inner).sent().samples;
            let is_own = *from == self.setup.station.index;
            *if is_own { &mut counted.local } else { &mut counted.imported } += samples;
        }
        Ok(counted)
    }
}

/// Packets sent to other servers, on interfaces that come and go with plans.
#[derive(Default)]
struct Mirrored {
    total: u64,
    last: BTreeMap<String, u64>,
}

impl Mirrored {
    /// What `/proc/net/dev` has: lines of a name, eight receive counters, and eight transmit counters.
    fn handle(&mut self, text: &str) {
        let mut now = BTreeMap::new();
        for (name, numbers) in text.lines().filter_map(|line| line.split_once(':')) {
            let name = name.trim();
            let packets = numbers.split_whitespace().nth(9).and_then(|one| one.parse().ok());
            let Some(packets) = packets.filter(|_| is_out(name)) else { continue };
            // A smaller counter means a new interface with the same name.
            let before = self.last.get(name).copied().filter(|before| *before <= packets);
            self.total += packets - before.unwrap_or(0);
            now.insert(name.to_owned(), packets);
        }
        self.last = now;
    }
}

fn share((from, before): (Instant, f64), (to, after): (Instant, f64)) -> f64 {
    (after - before).max(0.0) / to.duration_since(from).as_secs_f64().max(1e-3)
}

/// Seconds that a server has been busy, as a share of its CPU time.
fn busy(setup: &Setup) -> anyhow::Result<f64> {
    match &setup.cpu {
        Some(CpuSource { usage, share }) => {
            Ok(CpuBound::read_usage(usage)?.as_secs_f64() / share.max(1e-3))
        }
        None => machine_busy(&std::fs::read_to_string("/proc/stat")?)
            .context("/proc/stat is not understood"),
    }
}

/// The first line: `cpu  user nice system idle iowait irq softirq steal …`, in hundredths of a second, of all CPUs.
fn machine_busy(text: &str) -> Option<f64> {
    let fields: Vec<f64> = text
        .lines()
        .next()?
        .split_whitespace()
        .skip(1)
        .filter_map(|one| one.parse().ok())
        .collect();
    let idle = fields.get(3)? + fields.get(4)?;
    let cpus = text.lines().skip(1).filter(|line| line.starts_with("cpu")).count().max(1);
    // Guest time is already part of user time.
    Some((fields.iter().take(8).sum::<f64>() - idle) / 100.0 / cpus as f64)
}

/// Sparse probes through the switch for latency, and bursts that test its capacity.
struct Probes {
    transmitter: Transmitter,
    capture: Capture,
    template: ProbeTemplate,
    next: u32,
    latencies: Vec<f64>,
}

const TAG: u64 = 0x5e41_7e57_0000_0001;
const BURST: Duration = Duration::from_millis(100);
/// The pause between groups of frames of a burst.
const PACE: Duration = Duration::from_millis(2);
/// The most latencies that are kept between two observations.
const MOST_LATENCIES: usize = 4096;

impl Probes {
    fn open(namespace: Option<&str>, [from, to]: &[String; 2]) -> anyhow::Result<Probes> {
        let open = || -> packet::Result<(Transmitter, Capture)> {
            let options =
                CaptureOptions { filter: Some(Filter::probes(TAG)), ..CaptureOptions::default() };
            Ok((
                Transmitter::open(from, &TransmitOptions::default())?,
                Capture::open(to, &options)?,
            ))
        };
        let (transmitter, capture) = match namespace {
            Some(namespace) => in_namespace(namespace, open)??,
            None => open()?,
        };
        let headers = Headers {
            source_mac: [2, 0, 0x5e, 0x41, 0, 1],
            destination_mac: [2, 0, 0x5e, 0x41, 0, 2],
            vlan: None,
            source: [192, 0, 2, 1].into(),
            destination: [192, 0, 2, 2].into(),
            tos: 0,
            ttl: 64,
            source_port: 9,
            destination_port: 9,
        };
        let template = ProbeTemplate::new(&headers, TAG, 64)?;
        Ok(Probes { transmitter, capture, template, next: 0, latencies: Vec::new() })
    }

    fn probe(&mut self) -> anyhow::Result<()> {
        self.send(1)?;
        self.receive(Duration::ZERO, 0)?;
        Ok(())
    }

    fn send(&mut self, count: usize) -> anyhow::Result<()> {
        let (next, template) = (self.next, &mut self.template);
        self.transmitter.send(count, |index, slot| {
            let time = packet::Timestamp::now();
            let frame = template.stamp(next.wrapping_add(index as u32), time);
            if let Some(slot) = slot.get_mut(..frame.len()) {
                slot.copy_from_slice(frame);
            }
            frame.len()
        })?;
        self.next = next.wrapping_add(count as u32);
        Ok(())
    }

    /// The number of frames that came back, from this number on.
    fn receive(&mut self, patience: Duration, from: u32) -> anyhow::Result<u32> {
        let mut count = 0;
        while let Some(block) = self.capture.next_block(patience)? {
            for frame in block.frames() {
                let Some(seen) = Observation::of(&frame, TAG) else { continue };
                count += u32::from(seen.sequence.wrapping_sub(from) < u32::MAX / 2);
                if self.latencies.len() < MOST_LATENCIES {
                    self.latencies.push(seen.latency() as f64 / 1e9);
                }
            }
        }
        Ok(count)
    }

    fn burst(&mut self, rate: f64) -> anyhow::Result<f64> {
        self.receive(Duration::ZERO, 0)?;
        let latencies = self.latencies.len();
        let (first, start) = (self.next, Instant::now());
        let total = (rate.clamp(1.0, 1e7) * BURST.as_secs_f64()).ceil() as u32;
        let mut sent = 0;
        while sent < total && start.elapsed() < 3 * BURST {
            let due = (rate * start.elapsed().as_secs_f64()).ceil() as u32;
            let ready = due.min(total).saturating_sub(sent).min(64);
            if ready == 0 {
                std::thread::sleep(PACE);
                continue;
            }
            self.send(ready as usize)?;
            sent += ready;
        }
        // A server that cannot even send the frames in time does not have the capacity for them.
        let late = (start.elapsed().as_secs_f64() / BURST.as_secs_f64()).max(1.0) - 1.0;
        let received = self.receive(Duration::from_millis(30), first)?;
        // A burst's latencies show the effect of the burst, not the latency of users.
        self.latencies.truncate(latencies);
        let delivered = f64::from(received) / f64::from(total.max(1));
        Ok(if late > 0.25 { delivered.min(1.0 / (1.0 + late)) } else { delivered })
    }

    fn take(&mut self) -> Option<(f64, f64)> {
        let all = std::mem::take(&mut self.latencies);
        let count = all.len() as f64;
        let mean = all.iter().sum::<f64>() / count;
        let variance = all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count;
        (!all.is_empty()).then_some((mean, variance.sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrored_packets_are_added_up_while_interfaces_are_added_and_removed() {
        let mut mirrored = Mirrored::default();
        let text = |lines: &[(&str, u64)]| {
            // The text has the format of Linux.
            let mut text = "Inter-|   Receive                                                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n".to_owned();
            for (name, packets) in lines {
                text += &format!("{name:>6}: 900 7 0 0 0 0 0 0 5000 {packets} 0 0 0 0 0 0\n");
            }
            text
        };
        for (lines, total) in [
            (&[("lo", 9)][..], 0),
            (&[("weiro0x1", 10), ("weiri0x1", 99), ("eth0", 99)], 10),
            (&[("weiro0x1", 15), ("weiro1x2", 4)], 19),
            (&[("weiro1x2", 6)], 21),
            (&[("weiro0x1", 3), ("weiro1x2", 6)], 24),
            (&[("weiro1x2", 2)], 26),
        ] {
            mirrored.handle(&text(lines));
            assert_eq!(mirrored.total, total, "{lines:?}");
        }
        mirrored.handle("weiro0x1: 1 2\nnothing\n");
        assert_eq!(mirrored.total, 26);
    }

    #[test]
    fn cpu_use_of_the_machine_is_read_from_proc_stat() {
        let text = "cpu  100 0 100 600 200 0 0 0 50 0\ncpu0 1\ncpu1 1\nintr 5\n";
        assert_eq!(machine_busy(text), Some(1.0));
        assert_eq!(machine_busy("cpu 1 2\n"), None);
        assert_eq!(machine_busy(""), None);
    }
}
