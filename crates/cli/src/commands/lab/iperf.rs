//! Measures the throughput between two hosts (`weir lab iperf`).

use super::which::Which;
use crate::exit::Exit;
use lab::{IperfOptions, Rate};
use std::io::Write;
use std::time::Duration;

/// Measure the throughput from one host to another with iperf3
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir lab iperf h1 h2
  weir lab iperf h1 h2 --udp 10Mbit --seconds 3")]
pub struct Iperf {
    /// The host that sends
    from: String,
    /// The host that receives
    to: String,
    /// How long, 1 to 3600
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Send UDP at this rate, such as 10Mbit, instead of TCP without a limit
    #[arg(long, value_name = "RATE")]
    udp: Option<Rate>,
    /// Print iperf3's own JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

impl Iperf {
    pub fn run(self) -> anyhow::Result<Exit> {
        let lab = self.which.open()?;
        let duration = Duration::from_secs(self.seconds);
        let options = IperfOptions { duration, udp: self.udp };
        let report = lab.iperf(&self.from, &self.to, &options)?;
        let mut stdout = std::io::stdout().lock();
        if self.json {
            writeln!(stdout, "{:#}", report.json)?;
            return Ok(Exit::Success);
        }
        let megabits = |rate: f64| report::table::number(rate / 1e6);
        let (sent, received) = (megabits(report.sent), megabits(report.received));
        write!(stdout, "{} to {}: sent {sent} Mbit/s, received {received}", self.from, self.to)?;
        if let Some(count) = report.retransmits {
            write!(stdout, ", {count} retransmissions")?;
        }
        if let Some(loss) = report.loss {
            write!(stdout, ", lost {:.2} %", loss * 100.0)?;
        }
        writeln!(stdout)?;
        Ok(Exit::Success)
    }
}
