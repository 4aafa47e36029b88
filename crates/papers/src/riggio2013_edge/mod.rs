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
//! [`measure`] runs one of the four combinations on a lab of its own, `burst` how long a neighbour feels a
//! burst; [`Riggio2013Edge`] runs them all.

mod burst;
mod standstill;
mod threads;
mod traffic;

use crate::reproduction::{self, Reproduction};
use crate::vnics::settings;
use agent::edge::Edge;
use anyhow::{Context, ensure};
use burst::Case;
use lab::{FailMode, Interrupt, Lab, LabGuard, Options, Rate, StateDirectory, Topology};
use report::pace::Pace;
use report::results::Extras;
use report::{Better, Environment, Figure, Finding, Metric, Point, Results, Table};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};
use threads::{Ending, wait};
use traffic::{Udp, connect, read, write};

const MBIT: u64 = 1_000_000;
/// Shapers and queues settle within less.
const SETTLE: Duration = Duration::from_secs(2);
/// What a burst takes with what is before and after it, more or less.
const A_BURST: Duration = Duration::from_secs(4);

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

    fn name(self) -> &'static str {
        match (self.labels, self.shapers) {
            (false, false) => "neither",
            (false, true) => "shapers",
            (true, false) => "labels",
            (true, true) => "labels and shapers",
        }
    }
}

/// What arrives, in Mbit/s of whole frames.
#[derive(Clone, Copy, Debug, PartialEq)]
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

    fn rates(&self) -> [(&'static str, f64); 3] {
        [("A→B", self.a_b), ("C→D", self.c_d), ("E→F", self.e_f)]
    }

    /// Those that are more than 5 % from what was bought.
    fn off_share(&self) -> Vec<Finding> {
        let bought = Shares::PUBLISHED_WITH_BOTH.rates().map(|(_, rate)| rate);
        let pairs = self.rates().into_iter().zip(bought);
        let off = pairs.filter(|((_, rate), share)| (rate - share).abs() > 0.05 * share);
        off.map(|((name, rate), share)| Finding {
            code: "off-share".to_owned(),
            text: format!(
                "with labels and shapers {name} had {rate:.2} Mbit/s, not within 5 % of {share}"
            ),
        })
        .collect()
    }
}

/// The experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Riggio2013Edge {
    /// How long each of the four cases is measured, in seconds.
    pub seconds: u32,
    /// Bursts of UDP, without and with shapers each, and as many times without any.
    pub bursts: u32,
}

impl Riggio2013Edge {
    /// Makes labs, and measures. `talk` is told what is being done.
    ///
    /// # Errors
    /// What the labs or the agent lack; [`Interrupted`] if nothing was measured by then.
    ///
    /// [`Interrupted`]: lab::Interrupted
    pub fn run(
        &self,
        interrupt: &Interrupt,
        talk: &mut dyn FnMut(&str),
    ) -> anyhow::Result<Reproduction> {
        let missing = lab::Requirements::ALL.check();
        if !missing.is_empty() {
            return Err(lab::Error::Missing(missing).into());
        }
        let state = StateDirectory::default();
        let time = Duration::from_secs(self.seconds.into());
        let steps = Remedies::ALL.len() + Case::ALL.len();
        let mut pace = Pace::new(steps, SETTLE + time.max(A_BURST * self.bursts));
        let mut begin = |what: &str| talk(&format!("{what} ({})", pace.step()));
        let (mut measured, mut bursts) = (Vec::new(), Vec::new());
        let outcome = (|| -> anyhow::Result<()> {
            for remedies in Remedies::ALL {
                begin(remedies.name());
                measured.push((remedies, measure(remedies, time, &state, interrupt)?));
            }
            for case in Case::ALL {
                begin("bursts");
                bursts.push((case, burst::measure(case, self.bursts, &state, interrupt)?));
            }
            Ok(())
        })();
        let is_partial = interrupt.is_asked() && outcome.is_err() && !measured.is_empty();
        if !is_partial {
            outcome?;
        }
        let (mut results, extras) = self.results(&measured, &bursts);
        if is_partial {
            let made = measured.len() + bursts.len();
            results.mark_partial(&format!("interrupted: {made} of {steps} measurements were made"));
        }
        let remarks = reproduction::remarks(&results);
        let samples = Some(("tenths.csv", burst::tenths(&bursts)));
        Ok(Reproduction { results, extras, remarks, samples })
    }

    fn results(
        &self,
        measured: &[(Remedies, Shares)],
        bursts: &[(Case, Vec<burst::Burst>)],
    ) -> (Results, Extras) {
        let mut results = Results::new("reproduce riggio2013-edge", 0, Environment::capture(&[]));
        results.settings.insert("seconds".to_owned(), f64::from(self.seconds).into());
        results.settings.insert("bursts".to_owned(), f64::from(self.bursts).into());
        for (remedies, shares) in measured {
            let mut point = Point::new(remedies.name(), [("flows", "A-B, C-D, E-F")]);
            let rates = shares.rates().into_iter().chain([("total", shares.total())]);
            for (name, rate) in rates {
                let name = format!("{}_mbit_s", name.replace('→', ""));
                point.metrics.insert(name, Metric::new("Mbit/s", Better::Higher, vec![rate]));
            }
            results.points.push(point);
            if remedies.labels && remedies.shapers {
                results.findings.extend(shares.off_share());
            }
        }
        results.points.extend(bursts.iter().map(|(case, bursts)| burst::point(*case, bursts)));
        results.findings.extend(burst::findings(bursts));
        let mut extras = Extras::default();
        extras.tables.push(("Mbit/s of frames".to_owned(), table(measured)));
        extras.tables.push((burst::HEADING.to_owned(), burst::table(bursts)));
        extras.figures.push(figure(measured));
        extras.figures.push(burst::figure(bursts));
        (results, extras)
    }
}

fn table(measured: &[(Remedies, Shares)]) -> Table {
    let mut table = Table::new(["", "A→B (8)", "C→D (2)", "E→F (10)", "total (20)"]);
    let mut row = |label: &str, shares: &Shares| {
        let rates = shares.rates().map(|(_, rate)| rate).into_iter().chain([shares.total()]);
        table.row([label.to_owned()].into_iter().chain(rates.map(|rate| format!("{rate:.2}"))));
    };
    row("published, neither", &Shares::PUBLISHED);
    for (remedies, shares) in measured {
        row(remedies.name(), shares);
    }
    row("published, both", &Shares::PUBLISHED_WITH_BOTH);
    table
}

fn figure(measured: &[(Remedies, Shares)]) -> Figure {
    let published = [
        ("published, neither".to_owned(), Shares::PUBLISHED),
        ("published, both".to_owned(), Shares::PUBLISHED_WITH_BOTH),
    ];
    let [neither, both] = published;
    let measured = measured.iter().map(|(remedies, shares)| (remedies.name().to_owned(), *shares));
    let groups: Vec<(String, Vec<f64>)> = [neither]
        .into_iter()
        .chain(measured)
        .chain([both])
        .map(|(name, shares)| (name, shares.rates().map(|(_, rate)| rate).to_vec()))
        .collect();
    let names = ["A→B, bought 8", "C→D, bought 2", "E→F, bought 10"];
    let title = "Section II: who gets what";
    Figure {
        name: "section2".to_owned(),
        drawing: report::figure::draw_groups(title, "Mbit/s of frames", &names, &groups),
        caption: "Published: as the paper reckons them (figures 1d and 2c), in Gbit/s.".to_owned(),
    }
}

/// Runs the example in a lab of its own, for so long, and tells what arrived. Needs root and Open vSwitch.
///
/// # Errors
/// What the lab or the agent lacks, and [`lab::Interrupted`].
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
    let udp = Udp::new(&lab, "C", "D")?;
    let stop = AtomicBool::new(false);
    let (on, arrived) = (AtomicBool::new(true), AtomicU64::new(0));
    let shares = std::thread::scope(|scope| -> anyhow::Result<Shares> {
        // Whatever happens below, the threads end.
        let _end = Ending { stop: &stop, on: &on };
        let agent = edge.as_mut().map(|edge| {
            let stop = &stop;
            scope.spawn(move || edge.run(stop, |_| Ok::<(), agent::Error>(())))
        });
        for (from, to) in FLOWS {
            let (stop, on, udp, arrived) = (&stop, &on, &udp, &arrived);
            if (from, to) == ("C", "D") {
                scope.spawn(move || udp.send(BURSTS.0, BURSTS.1, on));
            } else {
                let (sender, receiver) = connect(&lab, from, to)?;
                scope.spawn(move || write(sender, stop));
                scope.spawn(move || read(receiver, stop, arrived));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// More than one link carries, with a margin for what had waited before.
    const TWO_LINKS: f64 = 10.5;

    /// Both effects without, neither with; over seconds, and generously. On busy cores TCP cannot fill a link, whether others send or not,
    /// so A → B is compared with E → F, which has a path of its own and tells what a link carries meanwhile.
    #[test]
    fn ovs_section_two() {
        if lab::testing::skip("ovs_section_two", lab::Requirements::ALL) {
            return;
        }
        let folder = std::env::temp_dir().join(format!("weir-section-two-{}", std::process::id()));
        let state = StateDirectory::at(folder);
        let interrupt = Interrupt::default();
        let [neither, .., both] = Remedies::ALL;
        let shares =
            |remedies| measure(remedies, Duration::from_secs(3), &state, &interrupt).unwrap();
        let without = shares(neither);
        assert!(without.total() < 17.5, "sub-optimal: {without:?}");
        assert!(without.a_b + without.e_f < TWO_LINKS, "on one link: {without:?}");
        assert!(without.c_d > 4.0 && without.a_b < 5.0, "unfair: {without:?}");
        // What is asked for cannot be by chance: one link never carries so much, and beside bursts without shapers A has less than
        // half of one. Cores that are busy for seconds only take away, so one time of five is enough.
        let is_shown = |with: &Shares| {
            let link = with.e_f;
            with.a_b + link > TWO_LINKS && with.a_b > 0.64 * link && with.total() > 1.85 * link
        };
        let mut measured = Vec::new();
        while measured.len() < 5 && !measured.last().is_some_and(is_shown) {
            let with = shares(both);
            // Whatever the machine, shapers let nobody send more than was bought, and bursts of UDP need no answers.
            assert!(with.a_b < 8.8 && (with.c_d - 2.0).abs() < 0.3, "{with:?}");
            measured.push(with);
        }
        assert!(measured.last().is_some_and(is_shown), "{measured:?}");
    }
}
