//! Measures the paper's future work: real servers under skewed load, with local sampling only and with collaboration.
//!
//! Each server is a namespace with its own Open vSwitch and a bounded share of the CPU. The guests, the switch and the
//! agent of the server run in this share. First, the experiment measures the costs in the same lab, from CPU time. Then
//! no sampling, local sampling only and collaboration alternate. Each stretch without sampling measures the capacity of
//! the servers again: the machine may be faster or slower than before.

use agent::station::Processing;
use anyhow::ensure;
use lab::Interrupt;
use report::pace::Pace;
use report::table::number;
use report::terminal::talk;
use report::{Better, Metric, Point, Table};
use sampling::control::{Event, Settings};
use sampling_loop::{CapacityOption, Driver, Manner, News, Received, Servers, Verdict};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// The proportions of the guests' traffic of each server: the load is skewed, like the paper's geometric load.
const SKEW: [f64; 3] = [6.0, 1.0, 1.0];
/// The CPU use of forwarding at the first server; the packets per second for this CPU use depend on the machine.
const BUSY: f64 = 0.6;
/// The packets per second of the pilot measurement, for a value of 1 in `SKEW`.
const PILOT: f64 = 800.0;
/// The most packets per second after the pilot: where forwarding seems to cost almost nothing, another load disturbed
/// the pilot.
const MOST: f64 = 20.0 * PILOT;
/// The share of one CPU for each server.
const SHARE: f64 = 0.25;
/// The bytes of guests' packets, and the number of times that each byte of a sample is read. Reading the content makes
/// sampling expensive compared with mirroring, as in the paper.
const LENGTH: usize = 1000;
const PASSES: u32 = 20;
/// The maximum CPU use of servers.
const FILL: f64 = 0.75;

/// The kind of sampling of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nothing,
    Alone,
    Together,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Nothing => "no sampling",
            Way::Alone => "local only",
            Way::Together => "collaborative",
        }
    }
}

/// One period of measurement.
struct Stretch {
    received: Received,
    verdict: Option<Verdict>,
    /// The packets per second that the plan samples.
    planned: f64,
    seconds: f64,
    /// The CPU use of each server.
    busy: Vec<f64>,
    own: Vec<f64>,
}

/// The measured costs.
struct Costs {
    /// The packets per second that the guests of each server send.
    load: [f64; SKEW.len()],
    alpha: f64,
    beta: f64,
    /// The cost of an imported sample at its processor; α + β in the model.
    import: f64,
    /// The share of a server's CPU time for forwarding one packet per second.
    forward: f64,
    /// The CPU use of forwarding at the first server during the cost measurement.
    busy: f64,
}

/// The result of the experiment.
pub(super) struct Collaboration {
    costs: Costs,
    /// The capacity of each server in each repetition, in units of forwarding.
    capacities: Vec<Vec<f64>>,
    stretches: Vec<(Way, Stretch)>,
    /// The number of completed repetitions, and the number of planned repetitions.
    made: (u16, u16),
}

/// Measures `repetitions` of each kind of sampling, in turn, `seconds` each. After an interrupt, the complete
/// repetitions are the result.
pub(super) fn measure(
    repetitions: u16,
    seconds: u16,
    interrupt: &Interrupt,
) -> anyhow::Result<Collaboration> {
    let mut servers = Servers::up(&[SHARE; SKEW.len()])?;
    let result = measure_in(&mut servers, repetitions, seconds, interrupt);
    servers.down()?;
    if result.is_err() {
        interrupt.check()?;
    }
    result
}

fn measure_in(
    servers: &mut Servers,
    repetitions: u16,
    seconds: u16,
    interrupt: &Interrupt,
) -> anyhow::Result<Collaboration> {
    let time = Duration::from_secs(seconds.into());
    // There are five measurements of costs; the preparation and the end of each measurement take some more seconds.
    let steps = 5 + usize::from(repetitions) * 3;
    let mut pace = Pace::new(steps, time + AROUND);
    talk(&format!("servers: {steps} measurements: {}", pace.whole()));
    let costs = costs(servers, time, &mut pace, interrupt)?;
    let mut all = Collaboration {
        costs,
        capacities: Vec::new(),
        stretches: Vec::new(),
        made: (0, repetitions),
    };
    for repetition in 1..=repetitions {
        let made = all.stretches.len();
        match repeat(&mut all, servers, (repetition, time), &mut pace, interrupt) {
            Err(_) if interrupt.is_asked() && repetition > 1 => {
                all.stretches.truncate(made);
                all.capacities.truncate(usize::from(repetition) - 1);
                break;
            }
            outcome => outcome?,
        }
        all.made.0 = repetition;
    }
    Ok(all)
}

/// Measures one repetition of each kind of sampling.
fn repeat(
    all: &mut Collaboration,
    servers: &mut Servers,
    (repetition, time): (u16, Duration),
    pace: &mut Pace,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut capacities = vec![0.0; SKEW.len()];
    for way in [Way::Nothing, Way::Alone, Way::Together] {
        let (name, of) = (way.name(), all.made.1);
        talk(&format!("servers, {repetition} of {of}: {name} ({})", pace.step()));
        let stretch = Run {
            capacities: &capacities,
            costs: (all.costs.alpha, all.costs.beta),
            is_collaborative: way == Way::Together,
        }
        .measure(servers, time, interrupt)?;
        if way == Way::Nothing {
            capacities = all.costs.capacities(&stretch);
            all.capacities.push(capacities.clone());
        }
        all.stretches.push((way, stretch));
    }
    Ok(())
}

/// The time for the preparation and the end of a measurement.
const AROUND: Duration = Duration::from_secs(5);

impl Costs {
    /// The capacity of the servers from a stretch without sampling.
    fn capacities(&self, stretch: &Stretch) -> Vec<f64> {
        let now = stretch.busy.first().map_or(1.0, |busy| busy / self.busy);
        let capacity = |(forwards, busy): (f64, &f64)| {
            (forwards + (FILL - busy) / (self.forward * now)).max(0.0)
        };
        forwards(&stretch.own).into_iter().zip(&stretch.busy).map(capacity).collect()
    }
}

/// Measures α and β in units of forwarding, from the CPU time of each operation.
fn costs(
    servers: &mut Servers,
    time: Duration,
    pace: &mut Pace,
    interrupt: &Interrupt,
) -> anyhow::Result<Costs> {
    let nothing = [0.0; SKEW.len()];
    let all = [1e9; SKEW.len()];
    let at = |of: &[f64], server: usize| of.get(server).copied().unwrap_or(0.0);
    let mut run = |what: &str, load: &[f64], capacities: &[f64], costs, is_collaborative| {
        talk(&format!("servers: what costs what: {what} ({})", pace.step()));
        servers.send(load, LENGTH)?;
        Run { capacities, costs, is_collaborative }.measure(servers, time, interrupt)
    };
    let mut pilot =
        |what, one: f64| run(what, &SKEW.map(|part| part * one), &nothing, (1.0, 1.0), false);
    let at_half = pilot("forwarding a little", PILOT / 2.0)?;
    let at_pilot = pilot("forwarding twice as much", PILOT)?;
    let (more, less) = (forwards(&at_pilot.own), forwards(&at_half.own));
    let forward =
        (at(&at_pilot.busy, 0) - at(&at_half.busy, 0)) / (at(&more, 0) - at(&less, 0)).max(1.0);
    ensure!(
        forward > 0.0,
        "forwarding twice as much took no more CPU: this machine is too busy to measure on"
    );
    let room = (BUSY - at(&at_pilot.busy, 0)) / forward;
    let one = ((at(&more, 0) + room) / at(&forwards(&SKEW), 0)).clamp(PILOT, MOST);
    let load = SKEW.map(|part| part * one);
    let forwarding = run("forwarding", &load, &nothing, (1.0, 1.0), false)?;
    let local = run("all sampled locally", &load, &all, (1.0, 1.0), false)?;
    // When sampling is expensive and mirroring is cheap, the plan mirrors all samples of the first server to the other
    // servers.
    let first = forwards(&forwarding.own).first().copied().unwrap_or(0.0);
    let mut tight = all;
    tight[0] = first * 1.02 + 100.0;
    let mirrored = run("the first server's mirrored", &load, &tight, (10.0, 1e-3), true)?;

    let dearer = |stretch: &Stretch, server: usize, volume: f64| {
        (at(&stretch.busy, server) - at(&forwarding.busy, server)) / volume.max(1.0) / forward
    };
    let alpha = dearer(&local, 0, at(&local.own, 0)).max(0.01);
    let beta = dearer(&mirrored, 0, at(&mirrored.own, 0)).max(0.001);
    // In this stretch, the other servers also sample all of their own traffic, as in the stretch `local`.
    let others = 1..SKEW.len();
    let imported = at(&mirrored.own, 0) / (SKEW.len() - 1) as f64;
    let import = others.clone().map(|server| {
        (at(&mirrored.busy, server) - at(&local.busy, server)) / imported.max(1.0) / forward
    });
    let import = import.sum::<f64>() / others.len() as f64;
    let busy = at(&forwarding.busy, 0);
    ensure!(busy > 0.0, "forwarding took no CPU time: this machine cannot be measured on");
    Ok(Costs { load, alpha, beta, import, forward, busy })
}

/// The forwarded packets of each server, from the sent packets of all servers: each server sends half of its packets to
/// the others, in equal parts.
fn forwards(own: &[f64]) -> Vec<f64> {
    let others = (own.len() - 1).max(1) as f64;
    let sum: f64 = own.iter().sum();
    own.iter().map(|own| own + (sum - own) / 2.0 / others).collect()
}

struct Run<'a> {
    capacities: &'a [f64],
    costs: (f64, f64),
    is_collaborative: bool,
}

impl Run<'_> {
    /// Starts agents, waits until the plan is active, and measures for `time`.
    fn measure(
        &self,
        servers: &mut Servers,
        time: Duration,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Stretch> {
        let site = servers.site().clone().with_capacities(self.capacities);
        let settings = Settings {
            // The plan stays the same during the measurement.
            interval: Duration::from_secs(3600),
            change: 1.0,
            is_collaborative: self.is_collaborative,
            ..Settings::default()
        };
        let manner = Manner {
            settings,
            capacity: CapacityOption::Cpu,
            alpha: Some(self.costs.0),
            beta: Some(self.costs.1),
            is_learning: false,
            processing: Processing { header: LENGTH as u32, passes: PASSES },
            // The measurement shows the effect of the plan on users, not the protection of the guard.
            limit: 10.0,
            observe: Duration::from_secs(1),
        };
        let mut driver = Driver::start(site, manner, |at, pid| servers.join(at, pid))?;
        let (enacted, planned) = (RefCell::new(false), RefCell::new(0.0));
        let deadline = Instant::now() + Duration::from_secs(20);
        driver.run(
            Some(deadline),
            || interrupt.is_asked() || *enacted.borrow(),
            |_, news| {
                match news {
                    News::Event(Event::Planned { sampled, .. }) => *planned.borrow_mut() = *sampled,
                    News::Event(Event::Enacted(_)) => *enacted.borrow_mut() = true,
                    _ => {}
                }
                Ok(())
            },
        )?;
        interrupt.check()?;
        ensure!(*enacted.borrow(), "no plan came into force");
        // After this wait, an earlier round is over, and the CPU use belongs to this plan alone.
        driver.run(
            Some(Instant::now() + Duration::from_millis(2500)),
            || interrupt.is_asked(),
            |_, _| Ok(()),
        )?;
        servers.watch()?;
        let start = Instant::now();
        let count = servers.count();
        let mut sums = vec![(0.0, 0.0); count];
        let (mut rounds, mut verdict) = (0.0_f64, None);
        driver.run(
            Some(start + time),
            || interrupt.is_asked(),
            |_, news| {
                if let News::Round(round) = news {
                    rounds += 1.0;
                    verdict = round.verdict.or(verdict);
                    for (sum, seen) in sums.iter_mut().zip(&round.servers) {
                        if let Some(seen) = seen {
                            *sum = (sum.0 + seen.busy.unwrap_or(0.0), sum.1 + seen.own);
                        }
                    }
                }
                Ok(())
            },
        )?;
        interrupt.check()?;
        let received = servers.received();
        driver.stop()?;
        let planned = *planned.borrow();
        Ok(Stretch {
            received,
            verdict,
            planned,
            seconds: start.elapsed().as_secs_f64(),
            busy: sums.iter().map(|sum| sum.0 / rounds.max(1.0)).collect(),
            own: sums.iter().map(|sum| sum.1 / rounds.max(1.0)).collect(),
        })
    }
}

impl Stretch {
    /// The samples per second: the collected share of the sent packets, times the sending rate.
    fn sampled(&self) -> f64 {
        let own: f64 = self.own.iter().sum();
        self.verdict.map_or(0.0, |one| one.collected as f64 / (one.of as f64).max(1.0) * own)
    }
}

impl Collaboration {
    /// A note about the completed repetitions, if the experiment is incomplete.
    pub(super) fn partial(&self) -> Option<String> {
        let (made, of) = self.made;
        (made < of).then(|| format!("interrupted: {made} of {of} repetitions with servers"))
    }

    fn of(&self, way: Way, value: impl Fn(&Stretch) -> f64) -> Vec<f64> {
        let its = self.stretches.iter().filter(|(one, _)| *one == way);
        its.map(|(_, stretch)| value(stretch)).collect()
    }

    fn mean(&self, way: Way, value: impl Fn(&Stretch) -> f64) -> f64 {
        report::stats::mean(&self.of(way, value)).unwrap_or(0.0)
    }

    pub(super) fn table(&self) -> Table {
        let mut table = Table::new([
            "way",
            "planned/s",
            "sampled/s",
            "off plan",
            "users receive/s",
            "of no sampling",
            "median µs",
            "p99 µs",
            "busiest",
        ]);
        let users = self.mean(Way::Nothing, |one| one.received.rate());
        for way in [Way::Nothing, Way::Alone, Way::Together] {
            let of = |value: fn(&Stretch) -> f64| self.mean(way, value);
            let off = self.mean(way, |one| one.verdict.map_or(0.0, |one| one.deviation()));
            let is_sampled = way != Way::Nothing;
            let when = |text: String| if is_sampled { text } else { "–".to_owned() };
            let rate = of(|one| one.received.rate());
            table.row([
                way.name().to_owned(),
                when(number(of(|one| one.planned))),
                when(number(of(Stretch::sampled))),
                when(format!("{:+.1} %", off * 100.0)),
                number(rate),
                format!("{:.1} %", rate / users.max(1.0) * 100.0),
                format!("{:.0}", of(|one| one.received.latency(0.5).unwrap_or(0.0)) * 1e6),
                format!("{:.0}", of(|one| one.received.latency(0.99).unwrap_or(0.0)) * 1e6),
                format!("{:.0} %", of(|one| one.busy.iter().copied().fold(0.0, f64::max)) * 100.0),
            ]);
        }
        table
    }

    pub(super) fn remarks(&self) -> String {
        let Costs { load, alpha, beta, import, forward, .. } = &self.costs;
        let gain = |value: fn(&Stretch) -> f64| {
            (self.mean(Way::Together, value) / self.mean(Way::Alone, value).max(1e-9) - 1.0) * 100.0
        };
        let mean = |server| {
            let its: Vec<f64> =
                self.capacities.iter().filter_map(|all| all.get(server).copied()).collect();
            number(report::stats::mean(&its).unwrap_or(0.0))
        };
        let capacities: Vec<String> = (0..SKEW.len()).map(mean).collect();
        let measured: f64 = gain(Stretch::sampled);
        format!(
            "Guests send {} packets/s. Measured in this lab: α = {alpha:.2}, β = {beta:.2}; processing another's sample {import:.2} (the model: α + β). \
             Forwarding takes {:.1} µs of CPU time, servers bear {}.\nCollaboration samples {measured:+.1} % of what servers sample alone; planned {:+.1} %.\n",
            load.map(number).join(", "),
            forward * SHARE * 1e6,
            capacities.join(", "),
            gain(|one| one.planned),
        )
    }

    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for way in [Way::Nothing, Way::Alone, Way::Together] {
            let mut point = Point::new("servers", [("way", way.name())]);
            let mut put = |name: &str, unit: &str, better, values| {
                point.metrics.insert(name.to_owned(), Metric::new(unit, better, values));
            };
            put("planned", "packet/s", Better::Higher, self.of(way, |one| one.planned));
            put("sampled", "packet/s", Better::Higher, self.of(way, Stretch::sampled));
            put("received", "packet/s", Better::Higher, self.of(way, |one| one.received.rate()));
            for (name, share) in [("latency_p50", 0.5), ("latency_p99", 0.99)] {
                let values = self.of(way, |one| one.received.latency(share).unwrap_or(0.0));
                put(name, "s", Better::Lower, values);
            }
            put("seconds", "s", Better::Higher, self.of(way, |one| one.seconds));
            points.push(point);
        }
        let mut point = Point::new("servers' costs", [("of", "forwarding")]);
        let Costs { alpha, beta, import, .. } = &self.costs;
        for (name, value) in [("alpha", alpha), ("beta", beta), ("import", import)] {
            point.metrics.insert(name.to_owned(), Metric::new("", Better::Lower, vec![*value]));
        }
        points.push(point);
        points
    }
}
