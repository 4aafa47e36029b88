//! The example of section II of *The Price of Virtualization* (2013), in Mbit/s instead of Gbit/s, with bursty UDP.
//!
//! ```text
//!        s1 ─────── s2            spines                    VNICs: A, B 8 (red)
//!       /  \       /  \                                            C, D 2, E, F 10 (blue)
//!     s3 ────×────── s4           leaves                    links: 10 each
//!    /  \            /  \
//!   s5   E         s6    F        s5: the server of A and C; s6: the server of B and D
//!  / \            / \
//! A   C          B   D            A → B and E → F: TCP; C → D: bursts of UDP, 6 on average, for 2 that it bought
//! ```
//!
//! With these loads the paper's figures are what a plain network does: the bursts leave TCP 4 of the server's link, E → F
//! has the other 6 of the link to s1 that A → B does not use, and all three together have 16 of 20.
//!
//! Without labels the red and the blue controller both choose s1, for A → B and E → F (figure 1d); C → D goes by s2. With
//! labels E → F has s2 to itself and C → D goes by s1 (figure 2c). The paths are written onto the switches as the figures
//! show them; that controllers find them by labels is the experiment of section V. Shapers are [`agent::edge`]'s.
//!
//! [`measure`] runs one of the four combinations on a lab of its own; [`Riggio2013Edge`] runs and prints them all.

use crate::exit::Exit;
use crate::signals::{Interrupt, Interrupted};
use agent::edge::{Edge, Settings, Site};
use anyhow::{Context, ensure};
use fabric::{Bandwidth, MacAddress};
use lab::{FailMode, Lab, LabGuard, Options, Rate, StateDirectory, Topology};
use serde::Serialize;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MBIT: u64 = 1_000_000;
/// What the links and VNICs count: the payload and the headers of Ethernet, IP and UDP.
const PAYLOAD: usize = 1472;
const FRAME: usize = PAYLOAD + 42;
const PORT: u16 = 5001;
/// Shapers and queues settle within less.
const SETTLE: Duration = Duration::from_secs(2);
/// How often threads that wait for the network look whether they are to end.
const LOOK: Duration = Duration::from_millis(50);

/// Host, tenant, VNIC bandwidth in Mbit/s.
pub(super) const VNICS: [(&str, &str, u64); 6] = [
    ("A", "red", 8),
    ("B", "red", 8),
    ("C", "blue", 2),
    ("D", "blue", 2),
    ("E", "blue", 10),
    ("F", "blue", 10),
];

/// From, to.
const FLOWS: [(&str, &str); 3] = [("A", "B"), ("C", "D"), ("E", "F")];
/// What C sends: three times what it bought, all that A is to leave; and how often it sends a burst.
const BURSTS: (u64, Duration) = (6 * MBIT, Duration::from_millis(20));

/// Which remedies are at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedies {
    /// Paths as controllers choose them who see link labels.
    pub labels: bool,
    /// Senders are shaped to their VNICs' bandwidths, and to their shares of congested receivers.
    pub shapers: bool,
}

impl Remedies {
    /// The four combinations, none first.
    pub const ALL: [Remedies; 4] = [
        Remedies { labels: false, shapers: false },
        Remedies { labels: false, shapers: true },
        Remedies { labels: true, shapers: false },
        Remedies { labels: true, shapers: true },
    ];
}

/// What arrives, in Mbit/s of whole frames.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shares {
    /// A → B, which bought 8.
    pub a_b: f64,
    /// C → D, which bought 2.
    pub c_d: f64,
    /// E → F, which bought 10.
    pub e_f: f64,
}

impl Shares {
    /// As the paper reckons them for case 1d.
    pub const PUBLISHED: Shares = Shares { a_b: 4.0, c_d: 6.0, e_f: 6.0 };
    /// And for 2c.
    pub const PUBLISHED_WITH_BOTH: Shares = Shares { a_b: 8.0, c_d: 2.0, e_f: 10.0 };

    /// All together, of 20.
    pub fn total(&self) -> f64 {
        self.a_b + self.c_d + self.e_f
    }
}

/// The example of section II of The Price of Virtualization (2013): who gets what, with and without labels and shapers
#[derive(clap::Args)]
pub struct Riggio2013Edge {
    /// How long to measure each of the four cases, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Riggio2013Edge {
    pub fn run(self) -> anyhow::Result<Exit> {
        let interrupt = Interrupt::catch()?;
        let time = Duration::from_secs(self.seconds.into());
        let mut measured = Vec::new();
        for remedies in Remedies::ALL {
            let shares = measure(remedies, time, &StateDirectory::default(), &interrupt)?;
            measured.push((remedies, shares));
        }
        let mut stdout = std::io::stdout().lock();
        if self.json {
            let case = |(remedies, shares): &(Remedies, Shares)| json!({ "labels": remedies.labels, "shapers": remedies.shapers, "mbit_per_second": shares, "total": shares.total() });
            let cases: Vec<_> = measured.iter().map(case).collect();
            writeln!(stdout, "{:#}", json!({ "cases": cases }))?;
            return Ok(Exit::Success);
        }
        writeln!(stdout, "Mbit/s of frames        A→B (8)  C→D (2)  E→F (10)  total (20)")?;
        let mut row = |label: &str, shares: &Shares| {
            let Shares { a_b, c_d, e_f } = shares;
            writeln!(
                stdout,
                "{label:<22} {a_b:>8.2} {c_d:>8.2} {e_f:>9.2} {:>11.2}",
                shares.total()
            )
        };
        row("published, neither", &Shares::PUBLISHED)?;
        for (remedies, shares) in &measured {
            let label = match (remedies.labels, remedies.shapers) {
                (false, false) => "neither",
                (false, true) => "shapers",
                (true, false) => "labels",
                (true, true) => "labels and shapers",
            };
            row(label, shares)?;
        }
        row("published, both", &Shares::PUBLISHED_WITH_BOTH)?;
        Ok(Exit::Success)
    }
}

/// Runs the example in a lab of its own, for so long, and tells what arrived. Needs root and Open vSwitch.
///
/// # Errors
/// What the lab or the agent lacks, and [`Interrupted`].
pub fn measure(
    remedies: Remedies,
    time: Duration,
    state: &StateDirectory,
    interrupt: &Interrupt,
) -> anyhow::Result<Shares> {
    let options = Options {
        state: state.clone(),
        fail_mode: Some(FailMode::Secure),
        static_arp: true,
        ephemeral: true,
        ..Options::default()
    };
    let lab = LabGuard::new(Lab::up(&topology()?, &options)?);
    write_paths(&lab, remedies.labels)?;
    let settings = settings(&lab)?;
    let mut edge = remedies.shapers.then(|| Edge::open(&settings)).transpose()?;
    let stop = AtomicBool::new(false);
    let shares = std::thread::scope(|scope| -> anyhow::Result<Shares> {
        // Whatever happens below, the threads end.
        let _end = Ending(&stop);
        let agent = edge.as_mut().map(|edge| {
            let stop = &stop;
            scope.spawn(move || edge.run(stop, |_| Ok::<(), agent::Error>(())))
        });
        let mut receivers = Vec::new();
        for (from, to) in FLOWS {
            let stop = &stop;
            if (from, to) == ("C", "D") {
                let (sender, receiver, address) = sockets(&lab, from, to)?;
                receivers.push(receiver);
                scope.spawn(move || send_bursts(&sender, address, stop));
            } else {
                let (sender, receiver) = connect(&lab, from, to)?;
                scope.spawn(move || write(sender, stop));
                scope.spawn(move || read(receiver, stop));
            }
        }
        wait(SETTLE, interrupt)?;
        let start = Instant::now();
        let before = received(&lab)?;
        wait(time, interrupt)?;
        let after = received(&lab)?;
        let elapsed = start.elapsed().as_secs_f64();
        ensure!(agent.is_none_or(|agent| !agent.is_finished()), "the agent ended by itself");
        let [a_b, c_d, e_f] =
            std::array::from_fn(|flow| (after[flow] - before[flow]) as f64 * 8e-6 / elapsed);
        Ok(Shares { a_b, c_d, e_f })
    })?;
    if let Some(edge) = edge {
        edge.close()?;
    }
    Ok(shares)
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Ports count in the order of the links: at s5 and s6 the hosts come first, at s3 and s4 the server, the host, s1, s2.
fn topology() -> anyhow::Result<Topology> {
    let rate = Some(Rate::from_bits_per_second(10 * MBIT)?);
    let mut builder = Topology::builder();
    for switch in ["s1", "s2", "s3", "s4", "s5", "s6"] {
        builder.switch(switch)?;
    }
    for host in ["A", "B", "C", "D", "E", "F"] {
        builder.host(host)?;
    }
    for (a, b) in [
        ("A", "s5"),
        ("C", "s5"),
        ("B", "s6"),
        ("D", "s6"),
        ("s5", "s3"),
        ("s6", "s4"),
        ("E", "s3"),
        ("F", "s4"),
        ("s3", "s1"),
        ("s3", "s2"),
        ("s4", "s1"),
        ("s4", "s2"),
    ] {
        builder.link(a, b, rate)?;
    }
    Ok(builder.build()?)
}

fn write_paths(lab: &Lab, labels: bool) -> anyhow::Result<()> {
    // At the leaves, port 3 leads to s1 and port 4 to s2.
    let up = |to: &str| match (to, labels) {
        ("B", _) | ("F", false) | ("D", true) => 3,
        _ => 4,
    };
    for (from, to) in FLOWS {
        let mac = lab.topology().host(to).with_context(|| format!("no host {to}"))?.mac;
        let way = up(to);
        let spine = if way == 3 { "s1" } else { "s2" };
        let (down, last) = match to {
            "B" => (1, Some(1)),
            "D" => (1, Some(2)),
            _ => (2, None),
        };
        let mut hops = vec![("s5", 3), ("s3", way), (spine, 2), ("s4", down)];
        hops.extend(last.map(|port| ("s6", port)));
        for (switch, port) in hops {
            add_entry(lab, switch, mac, port)?;
        }
        // Acknowledgements go back the same way.
        let back = lab.topology().host(from).with_context(|| format!("no host {from}"))?.mac;
        let (down, last) = match from {
            "A" => (1, Some(1)),
            "C" => (1, Some(2)),
            _ => (2, None),
        };
        let mut hops = vec![("s6", 3), ("s4", way), (spine, 1), ("s3", down)];
        hops.extend(last.map(|port| ("s5", port)));
        for (switch, port) in hops {
            add_entry(lab, switch, back, port)?;
        }
    }
    Ok(())
}

fn add_entry(lab: &Lab, switch: &str, to: lab::MacAddress, port: u16) -> anyhow::Result<()> {
    let entry = format!("dl_dst={to},actions=output:{port}");
    let output = lab.exec(switch, &["ovs-ofctl", "add-flow", switch, &entry])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ovs-ofctl add-flow {switch} {entry}: {}", said.trim());
    Ok(())
}

/// An agent's that serves all of a lab's VNICs.
pub(super) fn settings(lab: &Lab) -> anyhow::Result<Settings> {
    let site = |(host, tenant, mbit): (&str, &str, u64)| -> anyhow::Result<Site> {
        let found = lab.topology().host(host).with_context(|| format!("no host {host}"))?;
        Ok(Site {
            name: host.to_owned(),
            mac: MacAddress::new(found.mac.0).map_err(|error| anyhow::anyhow!("{error}"))?,
            bandwidth: Bandwidth::from_megabits_per_second(mbit),
            tenant: tenant.to_owned(),
            agent: "agent".to_owned(),
            namespace: Some(lab.namespace(host)?),
            interface: "eth0".to_owned(),
        })
    };
    let vnics = VNICS.into_iter().map(site).collect::<anyhow::Result<_>>()?;
    let own = "agent".to_owned();
    Ok(Settings { own, vnics, listen: None, peers: Vec::new(), hypervisor: None, key: None })
}

/// The sender's; one at the receiver, so that it answers nothing; and the receiver's address.
fn sockets(lab: &Lab, from: &str, to: &str) -> anyhow::Result<(UdpSocket, UdpSocket, SocketAddr)> {
    let ip = |host: &str| lab.topology().host(host).map(|host| host.ip);
    let own = SocketAddr::from((ip(from).context("no such host")?, 0));
    let address = SocketAddr::from((ip(to).context("no such host")?, PORT));
    let sender = packet::in_namespace(&lab.namespace(from)?, || UdpSocket::bind(own))??;
    let receiver = packet::in_namespace(&lab.namespace(to)?, || UdpSocket::bind(address))??;
    sender.set_nonblocking(true)?;
    Ok((sender, receiver, address))
}

fn send_bursts(socket: &UdpSocket, to: SocketAddr, stop: &AtomicBool) {
    let (bits_per_second, every) = BURSTS;
    let start = Instant::now();
    let mut sent = 0.0;
    while !stop.load(Ordering::SeqCst) {
        let due = start.elapsed().as_secs_f64() * bits_per_second as f64 / 8.0;
        while sent < due {
            // What finds no room is lost, as it would be in a virtual machine.
            let _ = socket.send_to(&[0; PAYLOAD], to);
            sent += FRAME as f64;
        }
        std::thread::sleep(every);
    }
}

fn connect(lab: &Lab, from: &str, to: &str) -> anyhow::Result<(TcpStream, TcpStream)> {
    let ip = lab.topology().host(to).context("no such host")?.ip;
    let address = SocketAddr::from((ip, PORT));
    let listener = packet::in_namespace(&lab.namespace(to)?, || TcpListener::bind(address))??;
    let dial = || TcpStream::connect_timeout(&address, Duration::from_secs(5));
    let sender = packet::in_namespace(&lab.namespace(from)?, dial)??;
    let (receiver, _) = listener.accept()?;
    sender.set_write_timeout(Some(LOOK))?;
    receiver.set_read_timeout(Some(LOOK))?;
    Ok((sender, receiver))
}

fn write(mut stream: TcpStream, stop: &AtomicBool) {
    let buffer = vec![0; 1 << 14];
    while !stop.load(Ordering::SeqCst) {
        if let Err(error) = stream.write(&buffer)
            && error.kind() != ErrorKind::WouldBlock
        {
            return;
        }
    }
}

fn read(mut stream: TcpStream, stop: &AtomicBool) {
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::SeqCst) {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Err(error) if error.kind() != ErrorKind::WouldBlock => return,
            _ => {}
        }
    }
}

/// Bytes that came in at B, D and F.
fn received(lab: &Lab) -> anyhow::Result<[u64; 3]> {
    let mut found = [0; 3];
    for ((_, to), bytes) in FLOWS.into_iter().zip(&mut found) {
        let output = lab.exec(to, &["cat", "/sys/class/net/eth0/statistics/rx_bytes"])?;
        let text = String::from_utf8_lossy(&output.stdout);
        *bytes = text.trim().parse().with_context(|| format!("{to} counts {:?}", text.trim()))?;
    }
    Ok(found)
}

fn wait(time: Duration, interrupt: &Interrupt) -> Result<(), Interrupted> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        interrupt.check()?;
        std::thread::sleep(Duration::from_millis(20).min(end - Instant::now().min(end)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both effects without, neither with; over seconds, and generously.
    #[test]
    fn ovs_section_two() {
        if lab::testing::skip("ovs_section_two", lab::Requirements::ALL) {
            return;
        }
        let folder = std::env::temp_dir().join(format!("weir-section-two-{}", std::process::id()));
        let state = StateDirectory::at(folder);
        let interrupt = Interrupt::catch().unwrap();
        let [neither, .., both] = Remedies::ALL;
        let shares =
            |remedies| measure(remedies, Duration::from_secs(3), &state, &interrupt).unwrap();
        let without = shares(neither);
        assert!(without.total() < 17.5, "sub-optimal: {without:?}");
        assert!(without.c_d > 4.0 && without.a_b < 5.0, "unfair: {without:?}");
        let with = shares(both);
        assert!(with.total() > 18.5, "{with:?}");
        assert!((with.a_b - 8.0).abs() < 0.8 && (with.c_d - 2.0).abs() < 0.3, "{with:?}");
    }
}
