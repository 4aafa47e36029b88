//! Measures a real controller (`weir bench controller`).
//!
//! This module has the tests and the output; [`settings`] has the numbers and times.

mod settings;

use super::output;
use super::values::{self, OpenFlow};
use crate::exit::Exit;
use crate::out::Output;
use crate::signals;
use crate::talk;
use anyhow::Context;
use bench::rfc8456::helpers::{NorthboundCommand, OperatorCommands};
use bench::rfc8456::{Helpers, Need, table};
use bench::{ControllerPlan, Identity, Test};
use channel::{Address, Scheme};
use settings::Settings;
use std::net::SocketAddr;
use std::str::FromStr;

/// Measure a real controller by emulated switches that connect to it
///
/// The tests are the latency and throughput modes of cbench and the benchmarks of RFC 8456. --list prints the tests and
/// what each test needs. --test all runs each test whose needs are met.
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  ovs-testcontroller ptcp:6653 &
  weir bench controller tcp:127.0.0.1:6653 --test latency,reactive-path-time --trials 3

See docs/bench-controller.md.")]
pub struct Controller {
    /// The address of the controller
    #[arg(value_name = "tcp:IP:PORT", required_unless_present = "list")]
    address: Option<Address>,
    /// The switches' identity for ssl:IP:PORT as PEM files, as for `ovs-vsctl set-ssl`
    #[arg(long, value_name = "KEY,CERT,CA", value_parser = values::identity)]
    switch_tls: Option<Identity>,
    /// Print the tests and what each test needs
    #[arg(long, exclusive = true)]
    list: bool,
    /// The controller's name in results
    #[arg(long, default_value = "controller")]
    name: String,
    /// The controller's version, for the report
    #[arg(long, value_name = "TEXT", default_value = "")]
    controller_version: String,
    /// The controller's process id, if it runs on this machine, to measure its CPU and memory
    #[arg(long)]
    pid: Option<u32>,
    /// The tests: all, or names [default: all]
    #[arg(long = "test", value_name = "TESTS", value_delimiter = ',')]
    tests: Vec<Wanted>,
    /// The OpenFlow version
    #[arg(long, value_name = "VERSION", default_value = "1.0")]
    openflow: OpenFlow,
    /// A command that calls the controller's northbound interface, with one JSON object per line on its standard input
    #[arg(long, value_name = "COMMAND")]
    northbound: Option<String>,
    /// The address of a second controller of the same network; may be repeated for a larger cluster
    #[arg(long = "backup", value_name = "tcp:IP:PORT", requires = "fail", requires = "restore")]
    backups: Vec<Address>,
    /// A command that stops the first controller
    #[arg(long, value_name = "COMMAND", requires = "backups")]
    fail: Option<String>,
    /// A command that starts the first controller again
    #[arg(long, value_name = "COMMAND", requires = "backups")]
    restore: Option<String>,
    /// The addresses that denial-of-service tests attack [default: the OpenFlow port]
    #[arg(long = "attack", value_name = "tcp:IP:PORT", value_parser = tcp)]
    attacks: Vec<SocketAddr>,
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    output: Output,
}

impl Controller {
    pub fn run(self) -> anyhow::Result<Exit> {
        let Some(address) = self.address else { return list() };
        if let Some(wrong) = wrong_scheme(address, &self.backups, self.switch_tls.is_some()) {
            return Ok(Exit::usage(&wrong));
        }
        let mut plan = ControllerPlan::new(&self.name, address.addr, self.openflow.version());
        plan.tls = self.switch_tls;
        plan.controller_version = self.controller_version;
        plan.pid = self.pid;
        plan.backups = self.backups.iter().map(|backup| backup.addr).collect();
        plan.attacks = self.attacks;
        self.settings.apply(&mut plan);
        // A northbound command and its child processes end with this process, also after a signal.
        let stop = plan.stop.clone();
        signals::stop_with_children(move || stop.ask(), || {})?;
        let mut helpers = Helpers::default();
        if let Some(command) = &self.northbound {
            helpers.northbound = Some(Box::new(NorthboundCommand::start(command)?));
        }
        if let (Some(fail), Some(restore)) = (self.fail, self.restore) {
            helpers.operator = Some(Box::new(OperatorCommands { fail, restore }));
        }
        let (tests, left_out) = match choose(&self.tests, &plan, &helpers) {
            Ok(chosen) => chosen,
            Err(error) => return Ok(Exit::usage(&error)),
        };
        for text in &left_out {
            talk::progress(text);
        }
        let mut verdict = plan
            .run(&tests, &mut helpers, &mut talk::progress)
            .with_context(|| format!("is a controller listening on {address}?"))?;
        verdict.results.settings.insert("left_out".to_owned(), left_out.join("; ").into());
        let shown = table(&verdict.results);
        output::give_as(&self.output, &verdict, &shown.to_string(), |out| {
            let tables = vec![("Mean and sample variance over trials".to_owned(), shown.clone())];
            let extras = report::Extras { tables, ..report::Extras::default() };
            Ok(verdict.results.write_with(out, &verdict.histograms, verdict.window, &extras)?)
        })
    }
}

/// The value of `--test`.
#[derive(Clone, Debug, PartialEq)]
enum Wanted {
    All,
    One(Test),
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        if text == "all" { Ok(Wanted::All) } else { text.parse().map(Wanted::One) }
    }
}

/// The tests to run, and a line about each test of `all` that is left out. If a test is requested by name and its needs
/// are not met, the result is an error.
fn choose(
    wanted: &[Wanted],
    plan: &ControllerPlan,
    helpers: &Helpers,
) -> Result<(Vec<Test>, Vec<String>), String> {
    let (mut tests, mut left_out) = (Vec::new(), Vec::new());
    for one in if wanted.is_empty() { &[Wanted::All] } else { wanted } {
        let (these, by_name) = match one {
            Wanted::All => (Test::ALL.to_vec(), false),
            Wanted::One(test) => (vec![*test], true),
        };
        for test in these {
            match plan.missing(test, helpers) {
                None if tests.contains(&test) => {}
                None => tests.push(test),
                Some(need) if by_name => {
                    return Err(format!("--test {} needs {}", test.name, flag(need)));
                }
                Some(need) => {
                    left_out.push(format!("{} left out: needs {}", test.name, flag(need)))
                }
            }
        }
    }
    Ok((tests, left_out))
}

/// The options that meet a need.
fn flag(need: Need) -> &'static str {
    match need {
        Need::Northbound => "--northbound",
        Need::Backup => "--backup, --fail and --restore",
        Need::Loop => {
            "a --topology with a second way: ring,N, or leafspine,N,N with two spines or more"
        }
    }
}

fn list() -> anyhow::Result<Exit> {
    let mut table = report::Table::new(["test", "RFC 8456", "measures", "needs"]);
    for test in Test::ALL {
        let needs: Vec<&str> = test.needs.iter().map(|need| flag(*need)).collect();
        let section = if test.section.is_empty() { "–" } else { test.section };
        table.row([test.name, section, test.about, &needs.join(", ")]);
    }
    std::io::Write::write_all(&mut std::io::stdout(), table.whole().as_bytes())?;
    Ok(Exit::Success)
}

/// The error of an address with this scheme, if any. TLS needs an identity, and all controllers must have the same
/// scheme.
fn wrong_scheme(address: Address, backups: &[Address], has_identity: bool) -> Option<String> {
    match (address.scheme, has_identity) {
        (Scheme::Ssl, false) => Some(format!("{address} needs --switch-tls KEY,CERT,CA")),
        (Scheme::Tcp, true) => Some(format!("--switch-tls needs ssl:IP:PORT, not {address}")),
        _ if backups.iter().any(|backup| backup.scheme != address.scheme) => {
            Some("--backup: all controllers must be tcp: or all ssl:".to_owned())
        }
        _ => None,
    }
}

/// Reads an address for an attack. The scheme must be tcp, because strangers have no certificates.
fn tcp(text: &str) -> Result<SocketAddr, String> {
    let address: Address =
        text.parse().map_err(|error: channel::AddressError| error.to_string())?;
    match address.scheme {
        Scheme::Tcp => Ok(address.addr),
        Scheme::Ssl => Err("strangers connect to tcp: only".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, topology: &str, expected: Result<(usize, usize), &str>) {
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut plan = ControllerPlan::new("c", address, OpenFlow::V1_0.version());
        plan.layouts = vec![topology.parse().expect("a topology")];
        let wanted: Vec<Wanted> =
            wanted.split_terminator(',').map(|one| one.parse().expect("a test")).collect();
        match (choose(&wanted, &plan, &Helpers::default()), expected) {
            (Ok((tests, left_out)), Ok(counts)) => {
                assert_eq!((tests.len(), left_out.len()), counts);
            }
            (Err(error), Err(word)) => assert!(error.contains(word), "{error}"),
            (found, _) => panic!("{found:?}"),
        }
    }

    #[test]
    fn all_skips_tests_without_their_options_and_a_named_test_demands_them() {
        check("", "leafspine,2,1", Ok((12, 4)));
        check("all", "leafspine,2,2", Ok((13, 3)));
        check("latency,latency,all", "leafspine,2,1", Ok((12, 4)));
        check("latency", "leafspine,2,1", Ok((1, 0)));
        check("proactive-path-time", "ring,3", Err("--northbound"));
        check("latency,failover", "ring,3", Err("--backup, --fail and --restore"));
        check("reprovisioning", "linear,3", Err("--topology"));
    }
}
