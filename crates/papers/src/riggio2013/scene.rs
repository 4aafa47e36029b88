//! Makes one run: the paper's network, two tenants with their controllers, and three flows that start one after
//! another.
//!
//! ```text
//!   iperf3 A ─▶ B, E ─▶ F, C ─▶ D     Open vSwitch in a lab: leaves s3, s4, spines s1, s2, 10 Mbit/s links
//!   s1 .. s4 ──▶ weir serve ──▶ red's os-ken (A, B), blue's os-ken (C, D, E, F)
//!   A .. F are in their tenant's VLAN; an agent on a thread of the scene shapes their traffic to the VNICs' rates
//! ```
//!
//! Several scenes can run at the same time. Each scene has its own lab and agent, and for each run its own hypervisor
//! and controllers.

use crate::vnics::{VNICS, settings};
use agent::Tagging;
use agent::edge::Edge;
use anyhow::{Context, bail, ensure};
use fabric::{End, Network, PortId};
use lab::Interrupt;
use lab::programs::{Process, Weir, no_os_ken, os_ken_python};
use lab::{FailMode, Lab, LabGuard, StateDirectory, Topology};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The sender, the receiver, and the number of gaps before the start of the flow.
pub(super) const FLOWS: [(&str, &str, u32); 3] = [("A", "B", 0), ("E", "F", 1), ("C", "D", 2)];
/// The VLANs that distinguish the tenants, as in the paper.
const VLANS: [(&str, u16); 2] = [("red", 10), ("blue", 20)];
/// The time between two samples in seconds, as in the paper.
pub(super) const SAMPLE: u32 = 2;
const SWITCHES: usize = 4;
/// The number of link directions that a controller must have discovered before the flows start.
const LINKS: usize = 8;
/// On a busy machine, a controller starts slowly.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// The applications of the controllers. The binary contains the files and does not need the repository.
const OS_KEN: [(&str, &str); 8] = [
    ("run.py", include_str!("../../../../examples/os-ken/run.py")),
    ("events.py", include_str!("../../../../examples/os-ken/events.py")),
    ("flow_installer.py", include_str!("../../../../examples/os-ken/flow_installer.py")),
    ("shortest_path.py", include_str!("../../../../examples/os-ken/shortest_path.py")),
    ("multipath.py", include_str!("../../../../examples/os-ken/multipath.py")),
    ("multipath_10.py", include_str!("../../../../examples/os-ken/multipath_10.py")),
    ("multipath_blind.py", include_str!("../../../../examples/os-ken/multipath_blind.py")),
    ("multipath_13.py", include_str!("../../../../examples/os-ken/multipath_13.py")),
];

/// The path choice of controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// By the link labels of Weir.
    Labels,
    /// Without labels, at random: each path has the same probability.
    Random,
    /// Without labels, all controllers choose the same path: the worst case.
    Same,
}

impl Choice {
    /// The name for people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Choice::Labels => "with labels",
            Choice::Random => "without labels, at random",
            Choice::Same => "without labels, worst case",
        }
    }

    fn option(self) -> &'static str {
        match self {
            Choice::Labels => "labels",
            Choice::Random => "random",
            Choice::Same => "first",
        }
    }
}

/// The form of link labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// OpenFlow 1.0 with the field of the paper.
    V1_0,
    /// OpenFlow 1.3; the label is the speed of the port.
    V1_3,
}

/// The measurements of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// For each flow: the Mbit/s of frames that arrived at the receiver's interface, for each sample from the flow's
    /// start.
    pub(super) wire: [Vec<f64>; 3],
    /// For each flow: the Mbit/s that the receiver's TCP received, for each sample from the flow's start.
    pub(super) goodput: [Vec<f64>; 3],
    /// The spine that each flow took.
    pub(super) spines: [Option<u64>; 3],
    /// The percentage of idle processor time.
    pub(super) idle: Option<f64>,
}

/// The conditions to give up: the user asks for the end, or another scene failed.
#[derive(Clone)]
pub(super) struct Halt {
    interrupt: Interrupt,
    failed: Arc<AtomicBool>,
}

impl Halt {
    /// A halt that is set by `interrupt` or by [`Halt::fail`].
    pub(super) fn new(interrupt: Interrupt) -> Halt {
        Halt { interrupt, failed: Arc::default() }
    }

    /// From now on, every check makes the caller give up.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::SeqCst);
    }

    fn check(&self) -> anyhow::Result<()> {
        self.interrupt.check()?;
        ensure!(!self.failed.load(Ordering::SeqCst), GaveUp);
        Ok(())
    }
}

/// The error of a run that ended because another scene failed.
#[derive(Debug)]
pub(super) struct GaveUp;

impl std::fmt::Display for GaveUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("given up, because another run failed")
    }
}

impl std::error::Error for GaveUp {}

/// The network of many runs.
pub(super) struct Scene {
    shapers: Option<Shapers>,
    _tagged: Vec<Tagging>,
    lab: LabGuard,
    network: Network,
    form: Form,
    python: std::path::PathBuf,
}

/// A running agent.
struct Shapers {
    stop: Arc<AtomicBool>,
    work: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Shapers {
    fn start(lab: &Lab) -> anyhow::Result<Shapers> {
        let mut edge = Edge::open(&settings(lab)?).context("cannot shape what hosts send")?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let work = move || {
            edge.run(&asked, |_| Ok::<(), agent::Error>(()))?;
            Ok(edge.close()?)
        };
        let work = std::thread::Builder::new().name("shapers".to_owned()).spawn(work);
        Ok(Shapers { stop, work: Some(work.context("cannot start a thread")?) })
    }

    fn check(&self) -> anyhow::Result<()> {
        let ended = self.work.as_ref().is_none_or(JoinHandle::is_finished);
        ensure!(!ended, "the shapers ended by themselves");
        Ok(())
    }
}

impl Drop for Shapers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // The lab with all its interfaces is removed next: an error here has no effect.
        let _ = self.work.take().map(JoinHandle::join);
    }
}

impl Scene {
    /// Removes the labs of killed runs.
    pub(super) fn clear() -> anyhow::Result<()> {
        let cleared = Lab::down_abandoned(&StateDirectory::default());
        cleared.context("cannot clear old labs").map(drop)
    }

    /// Needs root, Open vSwitch, iperf3 and os-ken; the error names the missing program. `number` distinguishes scenes
    /// that run at the same time.
    pub(super) fn up(form: Form, shaped: bool, number: usize) -> anyhow::Result<Scene> {
        let (python, _) = os_ken_python().with_context(no_os_ken)?;
        let topology = Topology::builtin("isolation2013")?;
        let network = topology.network(lab::Rate::from_bits_per_second(10_000_000)?)?;
        let protocol = match form {
            Form::V1_0 => lab::Protocol::OPENFLOW10,
            Form::V1_3 => lab::Protocol::OPENFLOW13,
        };
        let options = lab::Options {
            name: Some(format!("riggio{}-{number}", std::process::id())),
            protocols: vec![protocol],
            fail_mode: Some(FailMode::Secure),
            ephemeral: true,
            ..lab::Options::default()
        };
        let lab = LabGuard::new(Lab::up(&topology, &options)?);
        let shapers = shaped.then(|| Shapers::start(&lab)).transpose()?;
        let tagged = VNICS.iter().map(|&(host, tenant, _)| tag(&lab, host, tenant));
        let tagged = tagged.collect::<anyhow::Result<_>>()?;
        Ok(Scene { shapers, _tagged: tagged, lab, network, form, python })
    }

    /// Runs three flows. The second flow and the third flow start one `gap` after the flow before; then all flows run
    /// for one more `gap`.
    pub(super) fn run(
        &self,
        choice: Choice,
        gap: Duration,
        work: &Path,
        halt: &Halt,
    ) -> anyhow::Result<Outcome> {
        for (name, text) in OS_KEN {
            fs::write(work.join(name), text).context("cannot write os-ken's application")?;
        }
        let red = self.controller("red", choice, work)?;
        let blue = self.controller("blue", choice, work)?;
        let config = self.config(choice, red.1, blue.1)?;
        let weir = Weir::serve(&config, work)?;
        let target: lab::Controller = format!("tcp:{}", weir.address()).parse()?;
        let targets = [target];
        let switches: Vec<(&str, &[lab::Controller])> =
            ["s1", "s2", "s3", "s4"].iter().map(|name| (*name, targets.as_slice())).collect();
        self.lab.set_controllers_of(&switches)?;
        for (controller, name) in [(&red.0, "red"), (&blue.0, "blue")] {
            let found = wait(halt, &format!("{name}'s controller to find the links"), || {
                let said = controller.said();
                let of = |event: &str| events(&said, event).count();
                Ok(of("switch") >= SWITCHES && of("link") >= LINKS)
            });
            if found.is_err() && halt.check().is_ok() {
                let said = controller.said();
                let last = said.trim().lines().last().unwrap_or("nothing");
                found.with_context(|| format!("{name}'s controller said last: {last}"))?;
            } else {
                found?;
            }
        }
        let flows = self.flows(gap, work, halt);
        let spines = FLOWS.map(|(from, to, _)| {
            let said = format!("{}\n{}", red.0.said(), blue.0.said());
            spine(&said, &self.mac(from), &self.mac(to))
        });
        let (wire, goodput) = flows?;
        self.shapers.as_ref().map_or(Ok(()), Shapers::check)?;
        Ok(Outcome { wire, goodput, spines, idle: None })
    }

    fn controller(
        &self,
        tenant: &str,
        choice: Choice,
        work: &Path,
    ) -> anyhow::Result<(Process, SocketAddr)> {
        let port = packet::free_port().context("cannot find a free port")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let vnics: serde_json::Map<String, Value> = VNICS
            .iter()
            .filter(|(_, of, _)| *of == tenant)
            .map(|(host, _, mbit)| (self.mac(host), (mbit * 1_000).into()))
            .collect();
        let mut command = Command::new(&self.python);
        command.arg(work.join("run.py")).arg(match (choice, self.form) {
            // Without labels, the controller does not need the label field.
            (Choice::Labels, Form::V1_0) => "multipath_10",
            (_, Form::V1_0) => "multipath_blind",
            (_, Form::V1_3) => "multipath_13",
        });
        command.args(["--listen", &address.to_string(), "--choose", choice.option()]);
        command.args(["--vnics", &Value::Object(vnics).to_string()]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let process = Process::start(&mut command, work.join(format!("{tenant}.log")))?;
        Ok((process, address))
    }

    fn config(&self, choice: Choice, red: SocketAddr, blue: SocketAddr) -> anyhow::Result<String> {
        let host = self.lab.controller_address().context("the lab has no switches")?;
        let mut text = format!(
            "[listen]\nopenflow = \"{host}:0\"\napi = \"off\"\n[reconnect]\nmax = \"500ms\"\n[topology]\nedge_ports = ["
        );
        for (_, port) in self.network.hosts() {
            write!(text, "\"{port}\", ")?;
        }
        text.push_str("]\n");
        for (_, link) in self.network.links() {
            if let (End::Switch { port: a, .. }, End::Switch { port: b, .. }) = (link.from, link.to)
                && a < b
            {
                let capacity = link.capacity;
                writeln!(
                    text,
                    "[[topology.links]]\nbetween = [\"{a}\", \"{b}\"]\nbandwidth = \"{capacity}\""
                )?;
            }
        }
        for ((tenant, vlan), controller) in VLANS.into_iter().zip([red, blue]) {
            writeln!(
                text,
                "[[tenants]]\nname = \"{tenant}\"\ncontrollers = [\"tcp:{controller}\"]\nflowspace = [{{ match = \"dl_vlan={vlan}\" }}]"
            )?;
            if choice == Choice::Labels {
                let form = match self.form {
                    Form::V1_0 => "of10",
                    Form::V1_3 => "of13",
                };
                writeln!(text, "labels = \"{form}\"")?;
            }
            let own = VNICS.iter().filter(|(_, of, _)| *of == tenant);
            for (host, _, mbit) in own {
                let mac = self.mac(host);
                writeln!(
                    text,
                    "[[tenants.vnics]]\nport = \"{}\"\nmac = \"{mac}\"\nbandwidth = \"{mbit}Mbit\"",
                    self.port(host)?
                )?;
            }
        }
        Ok(text)
    }

    fn mac(&self, host: &str) -> String {
        self.lab.topology().host(host).map(|it| it.mac.to_string()).unwrap_or_default()
    }

    fn port(&self, host: &str) -> anyhow::Result<PortId> {
        let mac = self.lab.topology().host(host).context("no host")?.mac.0;
        Ok(self.network.host(fabric::MacAddress::new(mac)?)?)
    }

    /// Runs the flows and returns the rates of each flow: of frames, and of TCP payload.
    fn flows(&self, gap: Duration, work: &Path, halt: &Halt) -> anyhow::Result<Measured> {
        let started = Instant::now();
        let mut meters = Vec::new();
        for (_, to, after) in FLOWS {
            meters.push(Meter::new(self.lab.namespace(to)?, started + gap * after));
        }
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for (from, to, after) in FLOWS {
            wait_until(halt, started + gap * after, &mut meters)?;
            // The client runs at the receiver, so the report of the client has the received bytes.
            let log = work.join(format!("iperf-{from}.log"));
            let mut server = self.lab.command(from, "iperf3")?;
            server.args(["--server", "--one-off", "--forceflush"]);
            let server = Process::start(&mut server, log)?;
            wait(halt, "iperf3 to listen", || {
                meters.iter_mut().try_for_each(Meter::look)?;
                Ok(server.said().contains("Server listening"))
            })?;
            servers.push(server);
            let address = self.lab.topology().host(from).context("no host")?.ip.to_string();
            let seconds = (gap * (3 - after)).as_secs().to_string();
            let mut client = self.lab.command(to, "iperf3")?;
            client.args(["--client", &address, "--reverse", "--json", "--time", &seconds]);
            client.args(["--interval", &SAMPLE.to_string(), "--connect-timeout", "5000"]);
            // The window is enough for 10 Mbit/s, and too small to fill the links' queues with seconds of data.
            client.args(["--window", "256K"]).env("LC_ALL", "C");
            let log = work.join(format!("iperf-{to}.json"));
            clients.push(Process::start(&mut client, log)?);
        }
        // Every flow began a little late, so all flows still run at this time.
        wait_until(halt, started + gap * 3, &mut meters)?;
        meters.iter_mut().try_for_each(Meter::read)?;
        let end = Instant::now() + PATIENCE;
        while clients.iter_mut().any(Process::is_alive) {
            halt.check()?;
            if Instant::now() > end {
                bail!("a flow does not end");
            }
            std::thread::sleep(LOOK);
        }
        let mut goodput = [const { Vec::new() }; 3];
        for (client, flow) in clients.iter().zip(&mut goodput) {
            *flow = samples(&client.said())?;
        }
        let mut wire = [const { Vec::new() }; 3];
        for (meter, flow) in meters.iter().zip(&mut wire) {
            *flow = meter.rates(started + gap * 3);
        }
        Ok((wire, goodput))
    }
}

/// Puts the traffic of a host into its tenant's VLAN.
fn tag(lab: &Lab, host: &str, tenant: &str) -> anyhow::Result<Tagging> {
    let (_, vlan) =
        VLANS.into_iter().find(|(of, _)| *of == tenant).context("a tenant without a VLAN")?;
    let tagging = packet::in_namespace(&lab.namespace(host)?, || Tagging::start("eth0", vlan))?;
    tagging.with_context(|| format!("cannot put {host} into VLAN {vlan}"))
}

type Measured = ([Vec<f64>; 3], [Vec<f64>; 3]);

/// Counts received frames at a host, from sample to sample.
///
/// The kernel counts a frame of a veth pair with its Ethernet header and without the checksum; HTB counts in the same
/// way.
struct Meter {
    namespace: String,
    begin: Instant,
    next: Instant,
    read: Vec<(Instant, u64)>,
}

impl Meter {
    fn new(namespace: String, begin: Instant) -> Meter {
        Meter { namespace, begin, next: begin, read: Vec::new() }
    }

    /// Reads the counter, if the time for a sample has come.
    fn look(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        while self.next <= now {
            self.next += Duration::from_secs(SAMPLE.into());
        }
        self.read()
    }

    fn read(&mut self) -> anyhow::Result<()> {
        // The path names the thread: the thread is in the host's namespace, and the process is not.
        let read = || fs::read_to_string("/proc/thread-self/net/dev");
        let text = packet::in_namespace(&self.namespace, read)?.context("cannot read counters")?;
        let bytes = received(&text, "eth0").context("the kernel counts nothing at eth0")?;
        self.read.push((Instant::now(), bytes));
        Ok(())
    }

    /// The Mbit/s of each sample until `end`. A late reading of the counter is interpolated to its intended time.
    fn rates(&self, end: Instant) -> Vec<f64> {
        let sample = Duration::from_secs(SAMPLE.into());
        let count = (end - self.begin).as_secs() / u64::from(SAMPLE);
        let bytes: Vec<f64> =
            (0..=count).map(|at| self.bytes_at(self.begin + sample * at as u32)).collect();
        let rate = |pair: &[f64]| match pair {
            [before, after] => (after - before) * 8e-6 / sample.as_secs_f64(),
            _ => 0.0,
        };
        bytes.windows(2).map(rate).collect()
    }

    fn bytes_at(&self, time: Instant) -> f64 {
        let after = self.read.partition_point(|(read, _)| *read < time);
        let before = after.checked_sub(1).and_then(|at| self.read.get(at));
        match (before, self.read.get(after)) {
            (Some(&(t0, b0)), Some(&(t1, b1))) => {
                let share = (time - t0).as_secs_f64() / (t1 - t0).as_secs_f64();
                b0 as f64 + b1.saturating_sub(b0) as f64 * share
            }
            (Some(&(_, only)), None) | (None, Some(&(_, only))) => only as f64,
            (None, None) => 0.0,
        }
    }
}

/// The received bytes of an interface, from the kernel's table of all interfaces.
fn received(table: &str, interface: &str) -> Option<u64> {
    let mut rows = table.lines().filter_map(|line| line.split_once(':'));
    let (_, counters) = rows.find(|(name, _)| name.trim() == interface)?;
    counters.split_whitespace().next()?.parse().ok()
}

/// The Mbit/s of each interval in a report of iperf3.
fn samples(report: &str) -> anyhow::Result<Vec<f64>> {
    let json: Value = serde_json::from_str(report).with_context(|| {
        format!("iperf3 said: {}", report.chars().take(300).collect::<String>())
    })?;
    if let Some(error) = json.get("error").and_then(Value::as_str) {
        bail!("iperf3: {error}");
    }
    let intervals = json.get("intervals").and_then(Value::as_array);
    let rate = |interval: &Value| {
        let sum = interval.get("sum")?;
        // The last interval may have only some milliseconds; the rate of such an interval has no meaning.
        let whole = sum.get("seconds")?.as_f64()? > f64::from(SAMPLE) / 2.0;
        sum.get("bits_per_second")?.as_f64().filter(|_| whole)
    };
    let rates: Vec<f64> =
        intervals.into_iter().flatten().filter_map(rate).map(|bits| bits / 1e6).collect();
    if rates.is_empty() { bail!("iperf3 reports no interval") } else { Ok(rates) }
}

/// The spine on the path that a controller chose for a flow.
fn spine(said: &str, from: &str, to: &str) -> Option<u64> {
    let path =
        events(said, "path").find(|event| event["source"] == from && event["destination"] == to)?;
    path.get("hops")?.get(1)?.get(0)?.as_u64()
}

/// The events of one kind in the output of an application.
fn events<'a>(said: &'a str, kind: &'a str) -> impl Iterator<Item = Value> + 'a {
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(move |event| event.get("event").and_then(Value::as_str) == Some(kind))
}

fn wait(
    halt: &Halt,
    what: &str,
    mut happened: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !happened()? {
        halt.check()?;
        if Instant::now() > deadline {
            bail!("waited {} s in vain for {what}", PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Waits until `when`. The meters count during the wait and once more at the end.
fn wait_until(halt: &Halt, when: Instant, meters: &mut [Meter]) -> anyhow::Result<()> {
    while Instant::now() < when {
        halt.check()?;
        meters.iter_mut().try_for_each(Meter::look)?;
        std::thread::sleep(LOOK.min(when.saturating_duration_since(Instant::now())));
    }
    meters.iter_mut().try_for_each(Meter::look)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Late readings change neither the number of samples nor the sum of the bytes.
    #[test]
    fn late_counter_readings_keep_the_number_of_samples_and_the_sum() {
        let begin = Instant::now();
        let at = |seconds: f64, bytes: u64| (begin + Duration::from_secs_f64(seconds), bytes);
        for (read, expected) in [
            (vec![at(0.0, 0), at(2.0, 1_000_000), at(4.0, 1_500_000)], [4.0, 2.0]),
            (vec![at(0.0, 0), at(2.5, 1_250_000), at(4.0, 2_000_000)], [4.0, 4.0]),
            (vec![at(0.0, 0), at(5.0, 2_500_000)], [4.0, 4.0]),
            (vec![at(0.0, 7), at(3.0, 7)], [0.0, 0.0]),
            (vec![], [0.0, 0.0]),
        ] {
            let meter = Meter { read, ..Meter::new(String::new(), begin) };
            let found = meter.rates(begin + Duration::from_secs(4));
            let near =
                found.iter().zip(expected).all(|(it, expected)| (it - expected).abs() < 1e-6);
            assert!(found.len() == 2 && near, "{found:?}, not {expected:?}");
        }
    }

    #[test]
    fn output_of_the_controller_of_iperf3_and_of_proc_net_dev_is_parsed() {
        let said = "noise\n{\"event\": \"path\", \"source\": \"a\", \"destination\": \"b\", \"hops\": [[3, 4], [1, 2], [4, 1]]}\n";
        assert_eq!(spine(said, "a", "b"), Some(1));
        assert_eq!(spine(said, "b", "a"), None);
        let report = r#"{"intervals":[{"sum":{"seconds":2.0,"bits_per_second":9500000.0}},{"sum":{"seconds":2.01,"bits_per_second":4750000.0}},{"sum":{"seconds":0.01,"bits_per_second":77.0}}]}"#;
        assert_eq!(samples(report).unwrap(), [9.5, 4.75]);
        let table = "Inter-|   Receive\n face |bytes    packets\n    lo: 7 1 0\n  eth0:1514000    1000    0\n";
        assert_eq!(received(table, "eth0"), Some(1_514_000));
        assert_eq!(received(table, "eth1"), None);
        for (report, error) in [
            ("", "iperf3 said"),
            ("{}", "no interval"),
            (r#"{"intervals":[],"error":"unable to connect"}"#, "unable to connect"),
        ] {
            assert!(samples(report).unwrap_err().to_string().contains(error), "{report}");
        }
    }
}
