//! Runs an sFlow v5 collector that estimates the traffic from the samples, with error bounds (`weir sampling collect`).

use super::collector_output;
use crate::exit::Exit;
use crate::signals;
use agent::{Collector, Limits, Tenant};
use anyhow::Context;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The size of the receive buffer in bytes. Datagrams wait there while a busy machine does not let this process read. A
/// small datagram takes 768 bytes, so the buffer holds the datagrams of a sampler for some seconds. The kernel's
/// default holds some tens of milliseconds.
const ROOM: usize = 4 << 20;

/// Collect sFlow and estimate the traffic: per agent, tenant and flow, with 95 % error bounds
///
/// The command reads sFlow version 5 of any agent, such as Open vSwitch or Weir, until Ctrl-C or for --seconds, and
/// then prints the estimates. Memory is bounded: flows after the first 65,536 count together as "others".
#[derive(clap::Args)]
#[command(after_help = "\
Example:
  weir sampling collect --seconds 60
  weir sampling collect --listen 192.0.2.1:6343 --tenant red=10.1.0.0/16 --tenant blue=10.2.0.0/16 --json")]
pub struct Collect {
    /// The address and port to listen on
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:6343")]
    listen: SocketAddr,
    /// A tenant and its IPv4 network, which has the source addresses of the tenant's packets; may be repeated
    #[arg(long = "tenant", value_name = "NAME=NETWORK/PREFIX", value_parser = str::parse::<Tenant>)]
    tenants: Vec<Tenant>,
    /// Stop after so many seconds, 1 to 86400 [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: Option<u32>,
    /// The number of largest flows that are shown
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
        // Without the permission for a forced size, the kernel gives the size that its limit allows.
        setsockopt(&socket, sockopt::RcvBufForce, &ROOM)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &ROOM))
            .context("cannot make room for datagrams")?;
        socket
            .set_read_timeout(Some(Duration::from_millis(100)))
            .context("cannot set a timeout")?;
        writeln!(std::io::stderr(), "listening on {}", socket.local_addr()?)?;
        let mut collector = Collector::new(self.tenants.clone(), Limits::default());
        let end = self.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into()));
        // The buffer has the size of the largest UDP datagram.
        let mut buffer = vec![0; 1 << 16];
        let mut is_reported = false;
        while !interrupt.is_asked() && end.is_none_or(|end| Instant::now() < end) {
            let (count, from) = match socket.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(error) if is_passing(error.kind()) => continue,
                Err(error) => return Err(error).context("cannot receive samples"),
            };
            if let Err(error) = collector.add(buffer.get(..count).unwrap_or_default())
                && !std::mem::replace(&mut is_reported, true)
            {
                // If stderr is closed, the collector goes on without this message.
                let _ = writeln!(
                    std::io::stderr(),
                    "from {from}: {error} (reported once; all are counted)"
                );
            }
        }
        let mut stdout = std::io::stdout().lock();
        if self.json {
            writeln!(stdout, "{:#}", collector_output::json(&collector, self.flows))?;
        } else {
            write!(stdout, "{}", collector_output::text(&collector, self.flows))?;
        }
        Ok(Exit::Success)
    }
}

fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
