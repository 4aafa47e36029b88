//! One run: the paper's network, two tenants with their controllers, three flows that start one after the other.
//!
//! ```text
//!   iperf3 A ─▶ B, E ─▶ F, C ─▶ D     Open vSwitch in a lab: leaves s3, s4, spines s1, s2, 10 Mbit/s links
//!   s1 .. s4 ──▶ weir serve ──▶ red's os-ken (A, B), blue's os-ken (C, D, E, F)
//! ```

use crate::commands::demo::peers::{free_address, os_ken_python};
use crate::commands::demo::process::{Process, Weir};
use crate::signals::Interrupt;
use anyhow::{Context, bail};
use fabric::{End, Network, PortId};
use lab::{FailMode, Lab, LabGuard, StateDirectory, Topology};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// From whom to whom, and after how many gaps it starts.
pub const FLOWS: [(&str, &str, u32); 3] = [("A", "B", 0), ("E", "F", 1), ("C", "D", 2)];
/// Each host's tenant and what it bought, in Mbit/s (section II, in Mbit/s instead of Gbit/s).
const VNICS: [(&str, &str, u64); 6] = [
    ("A", "red", 8),
    ("B", "red", 8),
    ("C", "blue", 2),
    ("D", "blue", 2),
    ("E", "blue", 10),
    ("F", "blue", 10),
];
/// Between two samples, in seconds, as in the paper.
pub const SAMPLE: u32 = 2;
const SWITCHES: usize = 4;
/// Directions of links that a controller must have found before the flows start.
const LINKS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

/// The applications that the controllers run, so that it works without the repository.
const OS_KEN: [(&str, &str); 8] = [
    ("run.py", include_str!("../../../../../../examples/os-ken/run.py")),
    ("events.py", include_str!("../../../../../../examples/os-ken/events.py")),
    ("flow_installer.py", include_str!("../../../../../../examples/os-ken/flow_installer.py")),
    ("shortest_path.py", include_str!("../../../../../../examples/os-ken/shortest_path.py")),
    ("multipath.py", include_str!("../../../../../../examples/os-ken/multipath.py")),
    ("multipath_10.py", include_str!("../../../../../../examples/os-ken/multipath_10.py")),
    ("multipath_blind.py", include_str!("../../../../../../examples/os-ken/multipath_blind.py")),
    ("multipath_13.py", include_str!("../../../../../../examples/os-ken/multipath_13.py")),
];

/// How controllers choose among paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By the labels that Weir tells them.
    Labels,
    /// Blindly, each path as likely as the other.
    Random,
    /// Blindly, all the same: the worst case.
    Same,
}

impl Choice {
    /// For people.
    pub fn name(self) -> &'static str {
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

/// The form in which labels are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// OpenFlow 1.0 with the paper's field
    #[value(name = "1.0")]
    V1_0,
    /// OpenFlow 1.3, as the ports' speed
    #[value(name = "1.3")]
    V1_3,
}

/// What one run measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// By flow: Mbit/s that the receiver's TCP got, for each sample from the flow's start.
    pub flows: [Vec<f64>; 3],
    /// The spine that each flow took.
    pub spines: [Option<u64>; 3],
}

/// The network, which serves for many runs.
pub struct Scene {
    lab: LabGuard,
    network: Network,
    form: Form,
    python: std::path::PathBuf,
}

impl Scene {
    /// Needs root, Open vSwitch, iperf3 and os-ken; says what is missing.
    pub fn up(form: Form) -> anyhow::Result<Scene> {
        let (python, _) = os_ken_python().context("os-ken is not installed; run scripts/setup")?;
        // What a killed run left.
        Lab::down_abandoned(&StateDirectory::default()).context("cannot clear old labs")?;
        let topology = Topology::builtin("isolation2013")?;
        let network = topology.network(lab::Rate::from_bits_per_second(10_000_000)?)?;
        let protocol = match form {
            Form::V1_0 => lab::Protocol::OPENFLOW10,
            Form::V1_3 => lab::Protocol::OPENFLOW13,
        };
        let options = lab::Options {
            name: Some(format!("riggio{}", std::process::id())),
            protocols: vec![protocol],
            fail_mode: Some(FailMode::Secure),
            ephemeral: true,
            ..lab::Options::default()
        };
        let lab = LabGuard::new(Lab::up(&topology, &options)?);
        Ok(Scene { lab, network, form, python })
    }

    /// Three flows, the second and the third each `gap` after the one before, all for as long again.
    pub fn run(
        &self,
        choice: Choice,
        gap: Duration,
        work: &Path,
        interrupt: &Interrupt,
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
            wait(interrupt, &format!("{name}'s controller to find the links"), || {
                let said = controller.said();
                let of = |event: &str| events(&said, event).count();
                of("switch") >= SWITCHES && of("link") >= LINKS
            })
            .with_context(|| controller.said())?;
        }
        let outcome = self.flows(gap, work, interrupt);
        let spines = FLOWS.map(|(from, to, _)| {
            let said = format!("{}\n{}", red.0.said(), blue.0.said());
            spine(&said, &self.mac(from), &self.mac(to))
        });
        Ok(Outcome { flows: outcome?, spines })
    }

    fn controller(
        &self,
        tenant: &str,
        choice: Choice,
        work: &Path,
    ) -> anyhow::Result<(Process, SocketAddr)> {
        let address = free_address()?;
        let vnics: serde_json::Map<String, Value> = VNICS
            .iter()
            .filter(|(_, of, _)| *of == tenant)
            .map(|(host, _, mbit)| (self.mac(host), (mbit * 1_000).into()))
            .collect();
        let mut command = Command::new(&self.python);
        command.arg(work.join("run.py")).arg(match (choice, self.form) {
            // Blind, it has no use for a field that nobody sends.
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
        for (tenant, controller) in [("red", red), ("blue", blue)] {
            writeln!(
                text,
                "[[tenants]]\nname = \"{tenant}\"\ncontrollers = [\"tcp:{controller}\"]"
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
                writeln!(text, "[[tenants.flowspace]]\nmatch = \"dl_src={mac}\"")?;
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
        let hosts = self.lab.topology().hosts();
        hosts.iter().find(|it| it.name == host).map(|it| it.mac.to_string()).unwrap_or_default()
    }

    fn port(&self, host: &str) -> anyhow::Result<PortId> {
        let mac = fabric::MacAddress::new(
            self.lab.topology().hosts().iter().find(|it| it.name == host).context("no host")?.mac.0,
        );
        let mac = mac.map_err(|error| anyhow::anyhow!("{error}"))?;
        self.network.host(mac).map_err(|error| anyhow::anyhow!("{error}"))
    }

    fn flows(
        &self,
        gap: Duration,
        work: &Path,
        interrupt: &Interrupt,
    ) -> anyhow::Result<[Vec<f64>; 3]> {
        let started = Instant::now();
        let mut clients = Vec::new();
        let mut servers = Vec::new();
        for (from, to, after) in FLOWS {
            wait_until(interrupt, started + gap * after)?;
            // The receiver asks for the flow, so that what is reported is what it got.
            let log = work.join(format!("iperf-{from}.log"));
            let mut server = self.lab.command(from, "iperf3")?;
            server.args(["--server", "--one-off", "--forceflush"]);
            let server = Process::start(&mut server, log)?;
            wait(interrupt, "iperf3 to listen", || server.said().contains("Server listening"))?;
            servers.push(server);
            let address = &self.lab.topology().hosts().iter().find(|it| it.name == from);
            let address = address.context("no host")?.ip.to_string();
            let seconds = (gap * (3 - after)).as_secs().to_string();
            let mut client = self.lab.command(to, "iperf3")?;
            client.args(["--client", &address, "--reverse", "--json", "--time", &seconds]);
            client.args(["--interval", &SAMPLE.to_string(), "--connect-timeout", "5000"]);
            // Enough for 10 Mbit/s, too little to fill the links' queues with seconds.
            client.args(["--window", "256K"]).env("LC_ALL", "C");
            let log = work.join(format!("iperf-{to}.json"));
            clients.push(Process::start(&mut client, log)?);
        }
        let end = started + gap * 3 + PATIENCE;
        while clients.iter_mut().any(Process::is_alive) {
            interrupt.check()?;
            if Instant::now() > end {
                bail!("a flow does not end");
            }
            std::thread::sleep(LOOK);
        }
        let mut measured = clients.iter().map(|client| samples(&client.said()));
        let mut next = || measured.next().context("a flow is missing")?;
        Ok([next()?, next()?, next()?])
    }
}

/// Mbit/s by interval, from a report of iperf3.
fn samples(report: &str) -> anyhow::Result<Vec<f64>> {
    let json: Value = serde_json::from_str(report).with_context(|| {
        format!("iperf3 said: {}", report.chars().take(300).collect::<String>())
    })?;
    if let Some(error) = json.get("error").and_then(Value::as_str) {
        bail!("iperf3: {error}");
    }
    let intervals = json.get("intervals").and_then(Value::as_array);
    let rate = |interval: &Value| interval.get("sum")?.get("bits_per_second")?.as_f64();
    let rates: Vec<f64> =
        intervals.into_iter().flatten().filter_map(rate).map(|bits| bits / 1e6).collect();
    if rates.is_empty() { bail!("iperf3 reports no interval") } else { Ok(rates) }
}

/// The spine on the path that a controller chose.
fn spine(said: &str, from: &str, to: &str) -> Option<u64> {
    let path =
        events(said, "path").find(|event| event["source"] == from && event["destination"] == to)?;
    path.get("hops")?.get(1)?.get(0)?.as_u64()
}

/// The events of one kind that an application printed.
fn events<'a>(said: &'a str, kind: &'a str) -> impl Iterator<Item = Value> + 'a {
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(move |event| event.get("event").and_then(Value::as_str) == Some(kind))
}

fn wait(
    interrupt: &Interrupt,
    what: &str,
    mut happened: impl FnMut() -> bool,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !happened() {
        interrupt.check()?;
        if Instant::now() > deadline {
            bail!("waited {} s in vain for {what}", PATIENCE.as_secs());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn wait_until(interrupt: &Interrupt, when: Instant) -> anyhow::Result<()> {
    while Instant::now() < when {
        interrupt.check()?;
        std::thread::sleep(LOOK.min(when.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_print_is_read() {
        let said = "noise\n{\"event\": \"path\", \"source\": \"a\", \"destination\": \"b\", \"hops\": [[3, 4], [1, 2], [4, 1]]}\n";
        assert_eq!(spine(said, "a", "b"), Some(1));
        assert_eq!(spine(said, "b", "a"), None);
        let report = r#"{"intervals":[{"sum":{"bits_per_second":9500000.0}},{"sum":{"bits_per_second":4750000.0}}]}"#;
        assert_eq!(samples(report).unwrap(), [9.5, 4.75]);
        for (report, error) in [
            ("", "iperf3 said"),
            ("{}", "no interval"),
            (r#"{"intervals":[],"error":"unable to connect"}"#, "unable to connect"),
        ] {
            assert!(samples(report).unwrap_err().to_string().contains(error), "{report}");
        }
    }
}
