//! `weir sampling collect`: an sFlow v5 collector that says what the samples stand for, and how surely.

use crate::exit::Exit;
use crate::signals;
use agent::{Collector, Limits, Row, Tenant};
use anyhow::Context;
use report::Table;
use report::table::number;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Collect sFlow and estimate the traffic: per agent, tenant and flow, with 95 % error bounds
///
/// Reads sFlow version 5 from any agent, Open vSwitch's or Weir's, until Ctrl-C or for --seconds, then prints what it
/// saw. Memory is bounded: flows beyond the first 65,536 are added up as "others".
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling collect --seconds 60
  weir sampling collect --listen 192.0.2.1:6343 --tenant red=10.1.0.0/16 --tenant blue=10.2.0.0/16 --json")]
pub struct Collect {
    /// Where to listen
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:6343")]
    listen: SocketAddr,
    /// A tenant and its IPv4 network; a packet is its sender's; several times for several
    #[arg(long = "tenant", value_name = "NAME=NETWORK/PREFIX", value_parser = str::parse::<Tenant>)]
    tenants: Vec<Tenant>,
    /// Stop after so many seconds, 1 to 86400 [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: Option<u32>,
    /// How many of the largest flows to show
    #[arg(long, value_name = "N", default_value_t = 20)]
    flows: usize,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl Collect {
    pub fn run(self) -> anyhow::Result<Exit> {
        let interrupt = signals::interrupt()?;
        let socket = UdpSocket::bind(self.listen)
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .context("cannot set a timeout")?;
        writeln!(std::io::stderr(), "listening on {}", socket.local_addr()?)?;
        let mut collector = Collector::new(self.tenants.clone(), Limits::default());
        let end = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        // The largest that UDP carries.
        let mut buffer = vec![0; 1 << 16];
        let mut is_told = false;
        while !interrupt.is_asked() && end.is_none_or(|end| Instant::now() < end) {
            let (count, from) = match socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if is_passing(error.kind()) => continue,
                Err(error) => return Err(error).context("cannot receive samples"),
            };
            if let Err(error) = collector.add(buffer.get(..count).unwrap_or_default())
                && !std::mem::replace(&mut is_told, true)
            {
                // If stderr is gone there is nobody to tell, and still somebody to collect for.
                let _ = writeln!(
                    std::io::stderr(),
                    "from {from}: {error} (told once; all are counted)"
                );
            }
        }
        let mut stdout = std::io::stdout().lock();
        if self.json {
            writeln!(stdout, "{:#}", told::json(&collector, self.flows))?;
        } else {
            write!(stdout, "{}", told::text(&collector, self.flows))?;
        }
        Ok(Exit::Success)
    }
}

/// What a collector has to tell, with the largest flows.
pub mod told {
    use super::table;
    use agent::{Collector, Row};
    use report::table::number;
    use serde_json::{Value, json};

    pub fn text(collector: &Collector, flows: usize) -> String {
        let mut text = String::new();
        for (heading, rows) in sections(collector, flows) {
            if !rows.is_empty() {
                text += &format!("{}\n", table(heading, &rows));
            }
        }
        let ((datagrams, rejected), missing) = (collector.datagrams(), collector.missing());
        let datagrams = number(datagrams as f64);
        text += &format!("{datagrams} datagrams, {rejected} not understood, {missing} missing.\n");
        text
    }

    pub fn json(collector: &Collector, flows: usize) -> Value {
        let row = |row: &Row| {
            json!({
                "name": row.name, "samples": row.samples,
                "packets": row.packets.total, "packets_ci95": row.packets.half95,
                "bytes": row.bytes.total, "bytes_ci95": row.bytes.half95,
            })
        };
        let (datagrams, rejected) = collector.datagrams();
        let mut value = json!({
            "datagrams": datagrams, "rejected": rejected, "missing": collector.missing(),
        });
        for (heading, rows) in sections(collector, flows) {
            value[heading] = rows.iter().map(row).collect();
        }
        value
    }

    fn sections(collector: &Collector, flows: usize) -> [(&'static str, Vec<Row>); 4] {
        [
            ("total", vec![collector.total()]),
            ("agents", collector.agents()),
            ("tenants", collector.tenants()),
            ("flows", collector.flows(flows)),
        ]
    }
}

fn table(heading: &str, rows: &[Row]) -> Table {
    let mut table = Table::new([heading, "samples", "packets", "± 95 %", "bytes", "± 95 %"]);
    for row in rows {
        table.row([
            row.name.clone(),
            number(row.samples as f64),
            number(row.packets.total),
            number(row.packets.half95),
            number(row.bytes.total),
            number(row.bytes.half95),
        ]);
    }
    table
}

fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
