//! `weir sampling traffic`: what the guests of `weir sampling run --lab` send.

use crate::exit::Exit;
use crate::signals;
use std::io::Write;
use std::net::Ipv4Addr;

/// Send numbered and stamped frames at a rate: the load of `weir sampling run --lab`
///
/// Open loop, in small batches; until stdin ends. A process of its own, so that it shares its server's CPU.
#[derive(clap::Args)]
pub struct Traffic {
    /// The network namespace
    #[arg(long)]
    namespace: String,
    /// Frames per second
    #[arg(long)]
    rate: f64,
    /// Bytes of each
    #[arg(long, default_value_t = 256)]
    length: usize,
    /// Marks them
    #[arg(long)]
    tag: u64,
    /// The sender's number, from which its addresses follow
    #[arg(long)]
    source_mac: String,
    /// The sender's address
    #[arg(long)]
    source: Ipv4Addr,
    /// A receiver, as MAC,IP; several times for several, which are sent to in turn
    #[arg(long)]
    to: Vec<String>,
}

impl Traffic {
    pub fn run(self) -> anyhow::Result<Exit> {
        let traffic = sampling_loop::traffic::Traffic {
            namespace: self.namespace,
            rate: self.rate,
            length: self.length,
            tag: self.tag,
            source_mac: self.source_mac,
            source: self.source,
            to: self.to,
        };
        let sent = traffic.send(&signals::interrupt()?)?;
        writeln!(std::io::stdout().lock(), "{sent}")?;
        Ok(Exit::Success)
    }
}
