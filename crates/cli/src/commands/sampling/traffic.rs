//! Sends the traffic of the guests of `weir sampling run --lab` (`weir sampling traffic`).

use crate::exit::Exit;
use crate::signals;
use std::io::Write;
use std::net::Ipv4Addr;

/// Send frames with numbers and timestamps at a rate: the load of `weir sampling run --lab`
///
/// The load is open loop, in small batches, and ends with the standard input. The generator is a process of its own,
/// which has the CPU of its server.
#[derive(clap::Args)]
pub struct Traffic {
    /// The network namespace
    #[arg(long)]
    namespace: String,
    /// Frames per second
    #[arg(long)]
    rate: f64,
    /// Bytes of each frame
    #[arg(long, default_value_t = 256)]
    length: usize,
    /// A mark in each frame
    #[arg(long)]
    tag: u64,
    /// The sender's number, from which its addresses follow
    #[arg(long)]
    source_mac: String,
    /// The sender's address
    #[arg(long)]
    source: Ipv4Addr,
    /// A receiver, as MAC,IP; may be repeated, and the receivers take turns
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
