//! `weir sampling traffic`: what the guests of `weir sampling run --lab` send.

use crate::exit::Exit;
use anyhow::{Context, bail};
use packet::{Headers, ProbeTemplate, Timestamp, TransmitOptions, Transmitter, in_namespace};
use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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

/// Between batches: a sleep, since a share of a CPU is not to be spun away, and a long one, since a switch that is woken
/// for every packet spends most of its time on waking.
const PACE: Duration = Duration::from_millis(8);

impl Traffic {
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut templates = Vec::new();
        for to in &self.to {
            let (mac, address) = to.split_once(',').context("a receiver is MAC,IP")?;
            let headers = Headers {
                source_mac: mac_of(&self.source_mac)?,
                destination_mac: mac_of(mac)?,
                vlan: None,
                source: self.source,
                destination: address.parse().context("no address")?,
                tos: 0,
                ttl: 64,
                source_port: 5000,
                destination_port: 5001,
            };
            templates.push(ProbeTemplate::new(&headers, self.tag, self.length)?);
        }
        if templates.is_empty() || !(self.rate > 0.0 && self.rate < 1e8) {
            bail!("there is nobody to send to, or no rate");
        }
        let open = || {
            Transmitter::open("eth0", &TransmitOptions { batch: 256, ..TransmitOptions::default() })
        };
        let mut transmitter = in_namespace(&self.namespace, open)??;
        let ending = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ending);
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&ending))?;
        }
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            seen.store(true, Ordering::SeqCst);
        })?;
        let start = Instant::now();
        let mut sent = 0_u32;
        while !ending.load(Ordering::SeqCst) {
            let due = (self.rate * start.elapsed().as_secs_f64()) as u32;
            let ready = due.saturating_sub(sent).min(256);
            if ready == 0 {
                std::thread::sleep(PACE);
                continue;
            }
            let time = Timestamp::now();
            let first = sent;
            let taken = transmitter.send(ready as usize, |index, slot| {
                let number = first.wrapping_add(index as u32);
                let turn = number as usize % templates.len();
                let Some(template) = templates.get_mut(turn) else { return 0 };
                let frame = template.stamp(number, time);
                if let Some(slot) = slot.get_mut(..frame.len()) {
                    slot.copy_from_slice(frame);
                }
                frame.len()
            })?;
            sent += taken as u32;
        }
        writeln!(std::io::stdout().lock(), "{sent}")?;
        Ok(Exit::Success)
    }
}

fn mac_of(text: &str) -> anyhow::Result<[u8; 6]> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes.and_then(|bytes| bytes.try_into().ok()).with_context(|| format!("{text:?} is no MAC"))
}
