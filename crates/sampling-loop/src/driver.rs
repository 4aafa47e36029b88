//! Runs the loop on real servers: agents at pipes, the collector at a socket, time from a clock.
//!
//! ```text
//!   agent 1 ── stdout ──▶ reader 1 ─┐
//!   agent 2 ── stdout ──▶ reader 2 ─┼─ bounded channel ──▶ this thread: Conduct ──▶ agents' stdin
//!   ...                             ┘                            ▲ totals
//!   sFlow ══ UDP ══▶ collector's thread ── Collector ────────────┘
//! ```

use crate::protocol::{Observed, Report, Request};
use crate::site::Site;
use crate::verify::{Verdict, Verify};
use agent::station::Processing;
use agent::{Collector, Limits};
use anyhow::{Context, anyhow};
use sampling::Costs;
use sampling::control::{
    Conduct, CpuModel, Estimate, Estimator, Event, Member, Observation, Order, PassiveSearch,
    Sampled, Settings, Step, Traffic,
};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How to estimate a capacity that the site file does not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityOption {
    /// From CPU statistics, with a line fitted.
    Cpu,
    /// By short tests through the switch.
    Active,
    /// From rises of latency through the switch.
    Passive,
    /// From rises of the jitter of this latency.
    Jitter,
    /// A known capacity, the same for all servers.
    Known(f64),
}

impl FromStr for CapacityOption {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<CapacityOption, &'static str> {
        match text {
            "cpu" => Ok(CapacityOption::Cpu),
            "active" => Ok(CapacityOption::Active),
            "passive" => Ok(CapacityOption::Passive),
            "jitter" => Ok(CapacityOption::Jitter),
            _ => match text.parse() {
                Ok(known) if (1.0..=1e12).contains(&known) => Ok(CapacityOption::Known(known)),
                _ => Err("neither cpu, active, passive or jitter, nor a number from 1 to 1e12"),
            },
        }
    }
}

/// The options of the loop.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The settings of plans.
    pub settings: Settings,
    /// How to estimate capacities.
    pub capacity: CapacityOption,
    /// The cost of local sampling; `None`: the site's.
    pub alpha: Option<f64>,
    /// The cost of mirroring; `None`: the site's.
    pub beta: Option<f64>,
    /// Whether α and β are only the start, and are estimated during the run.
    pub is_learning: bool,
    /// The processing of each sample.
    pub processing: Processing,
    /// The CPU share above which a server has no headroom.
    pub limit: f64,
    /// The time between observations.
    pub observe: Duration,
}

/// An event of the loop.
pub enum News {
    /// An event of plans or servers.
    Event(Event),
    /// An observation of all servers.
    Round(Round),
}

/// The observations of all servers at about the same time.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// The time since the loop began.
    pub seconds: f64,
    /// The plan in force.
    pub epoch: Option<u64>,
    /// The packets per second that guests send.
    pub own: f64,
    /// The samples collected under the plan in force, once there are enough.
    pub verdict: Option<Verdict>,
    /// By server; `None` for a server that has vanished.
    pub servers: Vec<Option<Seen>>,
}

/// One server in a round.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The packets per second of its guests.
    pub own: f64,
    /// The share of its CPU that was busy.
    pub busy: Option<f64>,
    /// The latency of probes through its switch, in seconds.
    pub latency: Option<f64>,
    /// Its capacity, in packets per second.
    pub capacity: Option<f64>,
    /// Its load, in the unit of its capacity.
    pub load: f64,
    /// Sampled packets per second: own, mirrored, and other servers'.
    pub sampled: Sampled,
    /// The costs that plans use.
    pub costs: Option<Costs>,
    /// The estimates of α and β.
    pub estimated: Option<[Estimate; 2]>,
}

struct Link {
    child: Child,
    input: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
    /// The previous observation, and the distribution of its ports' packets.
    before: Option<Observed>,
    spread: BTreeMap<String, Vec<(Option<usize>, f64)>>,
    round: Option<Seen>,
    /// The number of requested observations that have not arrived.
    asked: usize,
    /// The number of these observations that do not count for the round, because a server was lost after the request.
    early: usize,
    has_reported: bool,
}

/// A running loop.
pub struct Driver {
    site: Site,
    manner: Manner,
    conduct: Conduct,
    links: Vec<Option<Link>>,
    reports: Receiver<(usize, Option<Report>)>,
    sink: Sink,
    started: Instant,
    next_round: Instant,
    verify: Verify,
}

/// The time that agents have to clean up before they are ended.
const PATIENCE: Duration = Duration::from_secs(5);

impl Driver {
    /// Starts the agents, and returns when each is ready. `joins` receives the process of each agent.
    pub fn start(
        site: Site,
        manner: Manner,
        mut joins: impl FnMut(usize, i32) -> anyhow::Result<()>,
    ) -> anyhow::Result<Driver> {
        let sink = Sink::open(site.collector, Collector::new(site.tenants()?, Limits::default()))?;
        let (sender, reports) = sync_channel(1024);
        let costs = site.costs(manner.alpha, manner.beta)?;
        let members = site.servers.iter().map(|server| Member {
            name: server.name.clone(),
            costs,
            is_learning: manner.is_learning,
            minimum: server.minimum,
            estimator: match (server.capacity, manner.capacity) {
                (Some(capacity), _) => Estimator::Fixed(capacity),
                (None, CapacityOption::Known(capacity)) => Estimator::Fixed(capacity),
                (None, CapacityOption::Cpu) => Estimator::Cpu(CpuModel::default()),
                (None, CapacityOption::Active) => {
                    Estimator::Active { last: None, found: None, search: None }
                }
                (None, CapacityOption::Passive | CapacityOption::Jitter) => {
                    Estimator::Passive(PassiveSearch::default())
                }
            },
        });
        let conduct = Conduct::new(manner.settings, members.collect(), site.planned_tenants());
        let mut driver = Driver {
            conduct,
            links: Vec::new(),
            reports,
            sink,
            started: Instant::now(),
            next_round: Instant::now(),
            verify: Verify::default(),
            site,
            manner,
        };
        for index in 0..driver.site.servers.len() {
            let setup =
                driver.site.setup(index, driver.sink.address, manner.processing, manner.limit)?;
            let mut link = Link::start(&driver.site.servers[index].agent, index, &sender)?;
            let pid = i32::try_from(link.child.id()).unwrap_or(0);
            let joined = joins(index, pid);
            link.send(&Request::Setup(Box::new(setup)));
            driver.links.push(Some(link));
            joined?;
        }
        for _ in 0..driver.links.len() {
            match driver.reports.recv_timeout(2 * PATIENCE) {
                Ok((_, Some(Report::Ready))) => {}
                Ok((server, Some(Report::Failed(why)))) => {
                    return Err(anyhow!("{}: {why}", driver.name(server)));
                }
                Ok((server, _)) => return Err(anyhow!("{}: its agent ended", driver.name(server))),
                Err(_) => return Err(anyhow!("not all agents are ready in time")),
            }
        }
        Ok(driver)
    }

    /// The name of a server in the site file.
    pub fn name(&self, server: usize) -> &str {
        self.site.servers.get(server).map_or("?", |one| &one.name)
    }

    /// The collector with all samples so far.
    pub fn with_collector<T>(&self, look: impl FnOnce(&Collector) -> T) -> T {
        look(&self.sink.lock())
    }

    /// Collected and planned samples of each plan that was in force for a while.
    pub fn verdicts(&self) -> Vec<(u64, Verdict)> {
        self.verify.all()
    }

    /// The process ids of the agents.
    pub fn agents(&self) -> impl Iterator<Item = u32> {
        self.links.iter().flatten().map(|link| link.child.id())
    }

    /// Runs until `end` or until `is_over` returns true, and reports events.
    pub fn run(
        &mut self,
        end: Option<Instant>,
        is_over: impl Fn() -> bool,
        mut on_news: impl FnMut(&Driver, &News) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        while !is_over() && end.is_none_or(|end| Instant::now() < end) {
            if self.links.iter().all(Option::is_none) {
                return Err(anyhow!("no server is left"));
            }
            let now = Instant::now();
            if now >= self.next_round {
                self.next_round = now + self.manner.observe;
                self.begin_round();
            }
            let due = self.conduct.poll_timeout().map(|due| self.started + due);
            let wake =
                due.into_iter().chain([self.next_round, now + Duration::from_millis(100)]).min();
            let wait = wake.unwrap_or(now).saturating_duration_since(now);
            match self.reports.recv_timeout(wait) {
                Ok((server, report)) => self.handle(server, report),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("no agent is left")),
            }
            self.conduct.handle_timeout(self.started.elapsed());
            self.carry_out();
            while let Some(event) = self.conduct.poll_event() {
                on_news(self, &News::Event(event))?;
            }
            if let Some(round) = self.end_round() {
                on_news(self, &News::Round(round))?;
            }
        }
        Ok(())
    }

    /// Ends the agents, which remove everything that they made.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        // Close all pipes first, so that the agents clean up at the same time.
        for link in self.links.iter_mut().flatten() {
            link.input = None;
        }
        let mut failed = None;
        for (server, link) in self.links.iter_mut().enumerate() {
            if let Some(link) = link.take()
                && let Err(error) = link.end()
            {
                failed = failed.or(Some(anyhow!("the agent of server {}: {error:#}", server + 1)));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn begin_round(&mut self) {
        for link in self.links.iter_mut().flatten() {
            (link.round, link.has_reported) = (None, false);
            link.asked += 1;
            link.send(&Request::Observe);
        }
    }

    /// Ends a round once every present server has been observed.
    fn end_round(&mut self) -> Option<Round> {
        let mut links = self.links.iter().flatten().peekable();
        links.peek()?;
        if !links.all(|link| link.has_reported) {
            return None;
        }
        for link in self.links.iter_mut().flatten() {
            link.has_reported = false;
        }
        let servers: Vec<Option<Seen>> =
            self.links.iter().map(|link| link.as_ref().and_then(|link| link.round)).collect();
        let epoch = self.conduct.in_force().map(|(epoch, _)| epoch);
        let (samples, ports) = (self.sink.lock().total().samples, self.ports());
        let settled = self.conduct.in_force().filter(|_| !self.conduct.is_enacting());
        let verdict = self.verify.handle(&self.site, settled, samples, &ports);
        let own = servers.iter().flatten().map(|seen| seen.own).sum();
        servers.iter().any(Option::is_some).then(|| Round {
            seconds: self.started.elapsed().as_secs_f64(),
            epoch,
            own,
            verdict,
            servers,
        })
    }

    /// The packets received so far, by server and port.
    fn ports(&self) -> BTreeMap<(usize, String), u64> {
        let links = self.links.iter().enumerate();
        let seen =
            links.filter_map(|(server, link)| Some((server, link.as_ref()?.before.as_ref()?)));
        let ports = seen.flat_map(|(server, seen)| {
            seen.ports.iter().map(move |(port, packets)| ((server, port.clone()), *packets))
        });
        ports.collect()
    }

    fn handle(&mut self, server: usize, report: Option<Report>) {
        let now = self.started.elapsed();
        match report {
            Some(Report::Answer { step, error }) => {
                self.conduct.handle_answer(now, server, step, error.map_or(Ok(()), Err));
            }
            Some(Report::Observed(observed)) => self.handle_observed(now, server, observed),
            Some(Report::Tested(delivered)) => self.conduct.handle_tested(now, server, delivered),
            Some(Report::HeadroomGone(_)) => {
                self.verify.forget();
                self.conduct.handle_headroom_gone(now, server);
            }
            Some(Report::Ready) => {}
            Some(Report::Failed(why)) => self.lose(now, server, &why),
            None => self.lose(now, server, "its agent ended"),
        }
    }

    fn lose(&mut self, now: Duration, server: usize, why: &str) {
        let Some(link) = self.links.get_mut(server).and_then(Option::take) else { return };
        self.verify.forget();
        self.conduct.handle_gone(now, server, why);
        // Before all other work: the other servers must stop mirroring to the lost server.
        self.carry_out();
        // The current round may have observed the others before this order, so the round does not end. Agents carry out
        // their orders in turn, so the next round sees the effect of this order.
        for link in self.links.iter_mut().flatten() {
            (link.early, link.has_reported) = (link.asked, false);
        }
        // The agent of the lost server may still run, but ignore its orders.
        let _ = link.end();
    }

    fn handle_observed(&mut self, now: Duration, server: usize, observed: Observed) {
        let use_jitter = self.manner.capacity == CapacityOption::Jitter;
        let Some(Some(link)) = self.links.get_mut(server) else { return };
        link.asked = link.asked.saturating_sub(1);
        match link.early {
            0 => link.has_reported = true,
            _ => link.early -= 1,
        }
        let before = link.before.replace(observed.clone());
        let Some(before) = before else { return };
        let traffic = traffic(&self.site, server, &before, &observed, &mut link.spread);
        let own = traffic.iter().map(|one| one.volume).sum();
        let (busy, latency) = (observed.busy, observed.latency);
        let felt = if use_jitter { observed.jitter } else { latency };
        let sampled = sampled(&before, &observed);
        let seen = Observation { traffic, busy, sampled: Some(sampled), latency: felt };
        self.conduct.handle_observation(now, server, seen);
        let seen = Seen {
            own,
            busy,
            latency,
            capacity: self.conduct.capacity(server),
            load: self.conduct.load(server),
            sampled,
            costs: self.conduct.costs(server),
            estimated: self.conduct.estimated_costs(server),
        };
        if let Some(Some(link)) = self.links.get_mut(server) {
            link.round = Some(seen);
        }
    }

    /// Carries out all orders of the loop.
    fn carry_out(&mut self) {
        while let Some((server, order)) = self.conduct.poll_order() {
            let request = match order {
                Order::Prepare(plan) => Request::Prepare(plan),
                Order::Step(step) => {
                    if matches!(step, Step::Commit(_)) {
                        self.verify.forget();
                    }
                    Request::Step(step)
                }
                Order::CutOff(of) => {
                    self.verify.forget();
                    Request::CutOff(of)
                }
                Order::Test(rate) => Request::Test(rate),
            };
            if let Some(Some(link)) = self.links.get_mut(server) {
                link.send(&request);
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The caller already reports an earlier error.
        let _ = self.end();
    }
}

impl Link {
    fn start(
        command: &[String],
        server: usize,
        sender: &SyncSender<(usize, Option<Report>)>,
    ) -> anyhow::Result<Link> {
        let mut command = match command.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            None => {
                let own = std::env::current_exe().context("cannot find this program")?;
                let mut command = Command::new(own);
                command.args(["agent", "--sampling"]);
                command
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("cannot start an agent")?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let sender = sender.clone();
        let read = move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).lines()) {
                let Ok(line) = line else { break };
                // A line that is no report does not come from this program's agent.
                let report = serde_json::from_str(&line).unwrap_or_else(|error| {
                    Report::Failed(format!("it is not understood: {error}"))
                });
                if sender.send((server, Some(report))).is_err() {
                    return;
                }
            }
            let _ = sender.send((server, None));
        };
        let reader = std::thread::Builder::new().name(format!("agent {server}")).spawn(read);
        Ok(Link {
            child,
            input,
            reader: Some(reader.context("cannot start a thread")?),
            before: None,
            spread: BTreeMap::new(),
            round: None,
            asked: 0,
            early: 0,
            has_reported: false,
        })
    }

    /// If an agent does not read any more, its missing answer shows that.
    fn send(&mut self, request: &Request) {
        let Ok(mut line) = serde_json::to_string(request) else { return };
        line.push('\n');
        if self.input.as_mut().is_some_and(|input| input.write_all(line.as_bytes()).is_err()) {
            self.input = None;
        }
    }

    fn end(mut self) -> anyhow::Result<()> {
        self.input = None;
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                self.child.kill()?;
                self.child.wait()?;
                return Err(anyhow!("it did not end, and was ended"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // The reader may wait for room in the channel, but nothing empties the channel any more.
        drop(self.reader.take());
        Ok(())
    }
}

/// The samples per second between two observations.
fn sampled(before: &Observed, now: &Observed) -> Sampled {
    let seconds = (now.seconds - before.seconds).max(1e-3);
    let rate = |of: fn(&Observed) -> u64| of(now).saturating_sub(of(before)) as f64 / seconds;
    Sampled {
        local: rate(|one| one.sampled.local),
        mirrored: rate(|one| one.sampled.mirrored),
        imported: rate(|one| one.sampled.imported),
    }
}

/// The guests' traffic between two observations: the volume from the ports' counters, the receivers from the flows'
/// counters.
fn traffic(
    site: &Site,
    server: usize,
    before: &Observed,
    now: &Observed,
    spread: &mut BTreeMap<String, Vec<(Option<usize>, f64)>>,
) -> Vec<Traffic> {
    let seconds = (now.seconds - before.seconds).max(1e-3);
    let mut traffic = Vec::new();
    let Some(server) = site.servers.get(server) else { return traffic };
    for guest in &server.guests {
        let count =
            |of: &Observed| of.ports.iter().find(|one| one.0 == guest.port).map(|one| one.1);
        let packets = count(now).unwrap_or(0).saturating_sub(count(before).unwrap_or(0));
        let volume = packets as f64 / seconds;
        let mut to: BTreeMap<Option<usize>, f64> = BTreeMap::new();
        for (port, mac, count) in now.flows.iter().filter(|(port, ..)| *port == guest.port) {
            let old = before.flows.iter().find(|one| one.0 == *port && one.1 == *mac);
            let packets = count.saturating_sub(old.map_or(0, |one| one.2));
            *to.entry(site.server_of(mac)).or_default() += packets as f64;
        }
        let sum: f64 = to.values().sum();
        // Flow counters lag behind. If a port's flows have counted nothing, the port keeps its previous distribution.
        if sum > 0.0 {
            let shares = to.into_iter().map(|(to, packets)| (to, packets / sum)).collect();
            spread.insert(guest.port.clone(), shares);
        }
        let tenant = site.tenant(guest).ok().flatten();
        let nobody = vec![(None, 1.0)];
        for (to, share) in spread.get(&guest.port).unwrap_or(&nobody) {
            traffic.push(Traffic { to: *to, tenant, volume: volume * share });
        }
    }
    traffic
}

/// The collector, and the thread that fills it.
struct Sink {
    address: SocketAddr,
    collector: Arc<Mutex<Collector>>,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sink {
    fn open(address: SocketAddr, collector: Collector) -> anyhow::Result<Sink> {
        let socket = UdpSocket::bind(address)
            .with_context(|| format!("cannot listen for samples on {address}"))?;
        let address = socket.local_addr()?;
        socket.set_read_timeout(Some(Duration::from_millis(100)))?;
        let collector = Arc::new(Mutex::new(collector));
        let ending = Arc::new(AtomicBool::new(false));
        let (seen, filled) = (Arc::clone(&ending), Arc::clone(&collector));
        let thread = std::thread::Builder::new().name("collector".to_owned()).spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while !seen.load(Ordering::Relaxed) {
                let Ok(count) = socket.recv(&mut buffer) else { continue };
                let bytes = buffer.get(..count).unwrap_or_default();
                // The collector counts datagrams that it does not understand.
                let _ = filled.lock().unwrap_or_else(PoisonError::into_inner).add(bytes);
            }
        });
        Ok(Sink {
            address,
            collector,
            ending,
            thread: Some(thread.context("cannot start a thread")?),
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Collector> {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
