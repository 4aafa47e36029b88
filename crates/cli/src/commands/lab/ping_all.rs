//! Pings every host from every other host (`weir lab ping-all`).

use super::which::{Which, wait_until_forwarding};
use crate::exit::Exit;
use lab::{PingOptions, PingReport};
use report::Table;
use serde_json::json;
use std::io::Write;
use std::time::Duration;

/// Ping every host from every other
///
/// Prints a matrix of round-trip times in ms, senders down, receivers across. Exit status 1 if a pair was not reached.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  weir lab ping-all --timeout 0.5")]
pub struct PingAll {
    #[command(flatten)]
    which: Which,
    /// Seconds to wait for an answer, 0.001 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    timeout: Duration,
    /// Requests to a pair of hosts without an answer, 1 to 100
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    attempts: u16,
    /// Print a JSON list of pairs
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|it| (0.001..=3600.0).contains(it));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "not within 0.001 to 3600".to_owned())
}

impl PingAll {
    pub fn run(self) -> anyhow::Result<Exit> {
        let lab = self.which.open()?;
        if !wait_until_forwarding(&lab, || Ok(()))? {
            writeln!(std::io::stderr(), "the switches agree on no spanning tree")?;
        }
        let options = PingOptions { timeout: self.timeout, attempts: self.attempts };
        let report = lab.ping_all(&options)?;
        let mut stdout = std::io::stdout().lock();
        if self.json {
            writeln!(stdout, "{:#}", as_json(&report))?;
        } else {
            let hosts: Vec<&str> =
                lab.topology().hosts().iter().map(|host| host.name.as_str()).collect();
            write!(stdout, "{}", matrix(&hosts, &report))?;
            writeln!(stdout, "{} of {} pairs reached", report.reached(), report.pairs.len())?;
        }
        Ok(if report.is_complete() { Exit::Success } else { Exit::Finding })
    }
}

fn matrix(hosts: &[&str], report: &PingReport) -> Table {
    let mut table = Table::new([&["ms"], hosts].concat());
    for from in hosts {
        let cells = hosts.iter().map(|to| {
            let pair = report.pairs.iter().find(|pair| pair.from == *from && pair.to == *to);
            match pair.map(|pair| pair.round_trip) {
                None => String::new(),
                Some(None) => "–".to_owned(),
                Some(Some(time)) => format!("{:.2}", time.as_secs_f64() * 1e3),
            }
        });
        table.row(std::iter::once((*from).to_owned()).chain(cells));
    }
    table
}

fn as_json(report: &PingReport) -> serde_json::Value {
    let pairs = report.pairs.iter().map(|pair| {
        let ms = pair.round_trip.map(|time| time.as_secs_f64() * 1e3);
        json!({ "from": pair.from, "to": pair.to, "round_trip_ms": ms })
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::Ping;

    #[test]
    fn the_ping_matrix_has_senders_in_rows_and_receivers_in_columns() {
        let pair = |from: &str, to: &str, ms: Option<u64>| Ping {
            from: from.to_owned(),
            to: to.to_owned(),
            round_trip: ms.map(Duration::from_millis),
        };
        let report = PingReport { pairs: vec![pair("h1", "h2", Some(2)), pair("h2", "h1", None)] };
        let text = matrix(&["h1", "h2"], &report).to_string();
        assert_eq!(text, "ms  h1    h2\nh1      2.00\nh2   –\n");
    }

    #[test]
    fn ping_timeouts_outside_the_range_are_refused() {
        for (text, expected) in [
            ("1", Some(1000)),
            ("0.5", Some(500)),
            ("0", None),
            ("-1", None),
            ("x", None),
            ("1e9", None),
        ] {
            assert_eq!(seconds(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }
}
