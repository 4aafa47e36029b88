//! The traffic of a lab's guests: numbered and timestamped frames at a rate, in an open loop and small batches. A
//! separate process sends them, so that it shares its server's CPU.

use anyhow::{Context, bail};
use lab::Interrupt;
use packet::{Headers, ProbeTemplate, Timestamp, TransmitOptions, Transmitter, in_namespace};
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// The traffic of one guest.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The network namespace; frames leave by its `eth0`.
    pub namespace: String,
    /// Frames per second.
    pub rate: f64,
    /// Bytes of each frame.
    pub length: usize,
    /// The mark of these frames.
    pub tag: u64,
    /// The sender's hardware address.
    pub source_mac: String,
    /// The sender's address.
    pub source: Ipv4Addr,
    /// The receivers, each as MAC,IP; frames go to them in turn.
    pub to: Vec<String>,
}

/// The pause between batches. It is a sleep, because busy waiting would use up the CPU share. It is long, because a
/// switch that wakes for every packet spends most of its time on waking.
const PACE: Duration = Duration::from_millis(8);

impl Traffic {
    /// Sends until stdin ends or an interrupt arrives; returns the number of frames.
    ///
    /// # Errors
    /// There is no receiver, or the interface fails.
    pub fn send(&self, ending: &Interrupt) -> anyhow::Result<u32> {
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
        let asked = ending.clone();
        std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            asked.ask();
        })?;
        let start = Instant::now();
        let mut sent = 0_u32;
        while !ending.is_asked() {
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
        Ok(sent)
    }
}

fn mac_of(text: &str) -> anyhow::Result<[u8; 6]> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    bytes.and_then(|bytes| bytes.try_into().ok()).with_context(|| format!("{text:?} is no MAC"))
}
