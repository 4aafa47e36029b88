//! Runs the closed loop on real servers (`weir sampling run`). The steps of the loop are in `sampling_loop`.

use super::collector_output;
use super::text::{percent, read};
use crate::exit::Exit;
use crate::signals;
use agent::station::Processing;
use anyhow::Context;
use lab::{Interrupt, Interrupted};
use report::table::number;
use sampling::control::{Event, Settings};
use sampling_loop::{CapacityOption, Driver, Manner, News, Round, Seen, Servers, Site, Verdict};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Sample as much as the servers can, in a closed loop: estimate, plan, apply, verify
///
/// Weir starts an agent on each server, reads from the counters of the server's switch how much its guests send, and
/// estimates how many packets the server can process. Weir applies a plan on all servers or on none, and makes a new
/// plan at an interval and when something changes. A server without spare CPU stops sampling within a second. If a
/// server is lost, no other server mirrors to it. This process collects the samples and compares them with the plan.
/// Ctrl-C removes all that the command made. Exit status 1: the number of samples differs from the plan by more than 3
/// % plus the statistical error.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling run --lab --seconds 60
  weir sampling run site.toml --capacity active --alpha 1.2 --beta 0.3
  weir sampling run --lab --load 9000,2000,2000 --cpu 0.3 --alone

See docs/sampling-run.md for the keys of a site file.")]
pub struct Run {
    /// The servers, as TOML
    #[arg(value_name = "SITE", required_unless_present = "lab", conflicts_with = "lab")]
    site: Option<PathBuf>,
    /// Make a lab of servers with an Open vSwitch each, and guests that send; needs root
    #[arg(long)]
    lab: bool,
    /// Packets per second of the guests, one number for each server of the lab, 2 to 16 servers
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_value = "12000,3000,3000", value_parser = rate)]
    load: Vec<f64>,
    /// CPU of each server of the lab, in CPUs, 0.05 to 64
    #[arg(long, value_name = "SHARE", default_value_t = 0.25, value_parser = cpu)]
    cpu: f64,
    /// Bytes of the packets that the lab's guests send, 64 to 1400
    #[arg(long, value_name = "BYTES", default_value_t = 256, value_parser = clap::value_parser!(u16).range(64..=1400))]
    length: u16,
    /// How to estimate the capacity of a server: cpu, active, passive or jitter; or a number, the capacity of each
    /// server in packets per second
    #[arg(long, value_name = "WAY", default_value = "cpu")]
    capacity: CapacityOption,
    /// Cost of sampling a packet locally, in units of the cost of forwarding [default: from the site's file, or 1.54,
    /// as published]
    #[arg(long, value_name = "COST")]
    alpha: Option<f64>,
    /// Cost of mirroring a packet, and of receiving a mirrored packet [default: from the site's file, or 0.46, as
    /// published]
    #[arg(long, value_name = "COST")]
    beta: Option<f64>,
    /// Whether α and β are fixed, or estimated from the servers' reports [default: given with --alpha or --beta, else
    /// estimated]
    #[arg(long, value_name = "WAY")]
    costs: Option<CostsOption>,
    /// The share of a server's CPU that a plan may use, 0.1 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.7, value_parser = share)]
    fill: f64,
    /// The share of a server's CPU above which the server's sampling is reduced, 0.1 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = share)]
    limit: f64,
    /// Seconds between plans if nothing changes, 2 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=3600))]
    interval: u16,
    /// Seconds between readings of the servers' counters, 1 to 60
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=60))]
    observe: u16,
    /// No collaboration: each server samples its own packets only
    #[arg(long)]
    alone: bool,
    /// Bytes of each sample that are processed, 64 to 16384
    #[arg(long, value_name = "BYTES", default_value_t = 128, value_parser = clap::value_parser!(u32).range(64..=16_384))]
    header: u32,
    /// How often each byte of a sample is read, as an analysis of the payload does, 0 to 1000
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    passes: u32,
    /// Stop after so many seconds, 1 to 86400 [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: Option<u32>,
    /// Print one JSON object per line for each event
    #[arg(long)]
    json: bool,
}

/// Where costs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CostsOption {
    /// The costs are those of the options, or the published costs
    Given,
    /// The first costs are those of the options; Weir estimates the costs during the run
    Estimated,
}

impl Run {
    pub fn run(self) -> anyhow::Result<Exit> {
        let interrupt = signals::interrupt()?;
        let manner = self.manner();
        let result = match &self.site {
            Some(path) => {
                let site = Site::read(&read(path)?).with_context(|| path.display().to_string())?;
                self.drive(Driver::start(site, manner, |_, _| Ok(()))?, &interrupt)
            }
            None => {
                let mut servers = Servers::up(&vec![self.cpu; self.load.len()])?;
                let site = servers.site().clone();
                let driver = Driver::start(site, manner, |at, pid| servers.join(at, pid));
                let result = driver.and_then(|driver| {
                    servers.send(&self.load, self.length.into())?;
                    self.drive(driver, &interrupt)
                });
                servers.down()?;
                result
            }
        };
        match result {
            // A signal also ends child processes of the measurement, so an error after a signal is no failure.
            Err(error) if interrupt.is_asked() && !error.is::<Interrupted>() => {
                Err(Interrupted.into())
            }
            result => result,
        }
    }

    fn manner(&self) -> Manner {
        let settings = Settings {
            interval: Duration::from_secs(self.interval.into()),
            fill: self.fill,
            is_collaborative: !self.alone,
            ..Settings::default()
        };
        Manner {
            settings,
            capacity: self.capacity,
            alpha: self.alpha,
            beta: self.beta,
            is_learning: match self.costs {
                Some(costs) => costs == CostsOption::Estimated,
                None => self.alpha.is_none() && self.beta.is_none(),
            },
            processing: Processing { header: self.header, passes: self.passes },
            limit: self.limit,
            observe: Duration::from_secs(self.observe.into()),
        }
    }

    fn drive(&self, mut driver: Driver, interrupt: &Interrupt) -> anyhow::Result<Exit> {
        let end = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        let agents: Vec<String> = driver.agents().map(|pid| pid.to_string()).collect();
        writeln!(std::io::stderr(), "running; agents are processes {}", agents.join(", "))?;
        driver.run(
            end,
            || interrupt.is_asked(),
            |driver, news| {
                let line = if self.json {
                    to_json(driver, news).to_string()
                } else {
                    to_text(driver, news)
                };
                writeln!(std::io::stdout().lock(), "{line}").context("cannot print")
            },
        )?;
        let verdicts = driver.verdicts();
        let text = if self.json {
            let verdict = |(epoch, one): &(u64, Verdict)| {
                json!({
                    "epoch": epoch, "expected": one.expected, "collected": one.collected,
                    "of": one.of, "deviation": one.deviation(), "scatter": one.scatter,
                })
            };
            let plans: Vec<Value> = verdicts.iter().map(verdict).collect();
            let collected =
                driver.with_collector(|collector| collector_output::json(collector, 10));
            json!({ "plans": plans, "collected": collected }).to_string() + "\n"
        } else {
            driver.with_collector(|collector| collector_output::text(collector, 10))
        };
        write!(std::io::stdout().lock(), "{text}")?;
        driver.stop()?;
        let off = verdicts.iter().filter(|(_, one)| one.is_off());
        let mut exit = Exit::Success;
        for (epoch, one) in off {
            exit = Exit::finding(&format!(
                "plan {epoch}: {} samples were collected, {:.0} are planned of {} packets",
                one.collected, one.expected, one.of
            ));
        }
        Ok(exit)
    }
}

fn to_text(driver: &Driver, news: &News) -> String {
    match news {
        News::Event(event) => match event {
            Event::Planned { epoch, sampled, total, alone } => format!(
                "plan {epoch}: {} of {} packets/s ({}); each server alone {}",
                number(*sampled),
                number(*total),
                percent(sampled / total.max(1.0)),
                number(*alone)
            ),
            Event::Enacted(epoch) => format!("plan {epoch}: in force on all servers"),
            Event::RolledBack { epoch, server, why } => {
                format!("plan {epoch}: rolled back, because of {}: {why}", driver.name(*server))
            }
            Event::Gone { server, why } => {
                format!("{} is gone: {why}; nobody mirrors to it", driver.name(*server))
            }
            Event::Cut(server) => {
                format!(
                    "{} has no headroom: it samples nothing, nobody mirrors to it",
                    driver.name(*server)
                )
            }
            Event::Costs { server, before, now } => format!(
                "{}: plans reckon with α = {:.2}, β = {:.2} (before: {:.2}, {:.2})",
                driver.name(*server),
                now.alpha,
                now.beta,
                before.alpha,
                before.beta
            ),
            Event::NoPlan(why) => why.clone(),
        },
        News::Round(round) => round_text(driver, round),
    }
}

fn round_text(driver: &Driver, round: &Round) -> String {
    let mut text = format!("{:.0} s: {} packets/s", round.seconds, number(round.own));
    if let Some(one) = &round.verdict {
        text += &format!(
            "; {} sampled, {} planned ({:+.1} %)",
            number(one.collected as f64),
            number(one.expected),
            one.deviation() * 100.0
        );
    }
    for (server, seen) in round.servers.iter().enumerate() {
        let Some(seen) = seen else { continue };
        text += &format!("; {}", driver.name(server));
        if let Some(busy) = seen.busy {
            text += &format!(" {:.0} % busy", busy * 100.0);
        }
        if let Some(capacity) = seen.capacity {
            text += &format!(", bears {}", number(capacity));
        }
        if let Some([alpha, beta]) = seen.estimated {
            text += &format!(
                ", α {:.2} ± {:.2}, β {:.2} ± {:.2}",
                alpha.value, alpha.half, beta.value, beta.half
            );
        }
        if let Some(latency) = seen.latency {
            text += &format!(", {:.0} µs", latency * 1e6);
        }
    }
    text
}

fn to_json(driver: &Driver, news: &News) -> Value {
    match news {
        News::Event(event) => match event {
            Event::Planned { epoch, sampled, total, alone } => json!({
                "event": "planned", "epoch": epoch, "sampled": sampled, "total": total, "alone": alone,
            }),
            Event::Enacted(epoch) => json!({ "event": "enacted", "epoch": epoch }),
            Event::RolledBack { epoch, server, why } => json!({
                "event": "rolled-back", "epoch": epoch, "server": driver.name(*server), "why": why,
            }),
            Event::Gone { server, why } => {
                json!({ "event": "gone", "server": driver.name(*server), "why": why })
            }
            Event::Cut(server) => json!({ "event": "cut", "server": driver.name(*server) }),
            Event::Costs { server, before, now } => {
                let server = driver.name(*server);
                json!({ "event": "costs", "server": server, "before": before, "now": now })
            }
            Event::NoPlan(why) => json!({ "event": "no-plan", "why": why }),
        },
        News::Round(round) => {
            let server = |(server, seen): (usize, &Option<Seen>)| {
                let seen = seen.as_ref()?;
                Some(json!({
                    "server": driver.name(server), "own": seen.own, "busy": seen.busy,
                    "latency": seen.latency, "capacity": seen.capacity, "load": seen.load,
                    "sampled": seen.sampled.local, "mirrored": seen.sampled.mirrored,
                    "imported": seen.sampled.imported, "costs": seen.costs,
                    "estimated": seen.estimated.map(|[alpha, beta]| json!({
                        "alpha": [alpha.value, alpha.half], "beta": [beta.value, beta.half],
                    })),
                }))
            };
            let servers: Vec<Value> = round.servers.iter().enumerate().filter_map(server).collect();
            let verdict = round.verdict.map(
                |one| json!({ "expected": one.expected, "collected": one.collected, "of": one.of }),
            );
            json!({
                "event": "round", "seconds": round.seconds, "epoch": round.epoch,
                "own": round.own, "verdict": verdict, "servers": servers,
            })
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, 0.0..=1e7, "0 to 10000000 packets per second")
}

fn cpu(text: &str) -> Result<f64, String> {
    within(text, 0.05..=64.0, "0.05 to 64")
}

fn share(text: &str) -> Result<f64, String> {
    within(text, 0.1..=1.0, "0.1 to 1")
}

fn within(text: &str, range: std::ops::RangeInclusive<f64>, words: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("not a number within {words}"))
}
