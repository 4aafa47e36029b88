//! The last counters of the switch's ports.

use crate::tally::Count;
use crate::time::Instant;
use alloc::collections::BTreeMap;

/// The last counters of the switch's ports.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// Received and sent, by physical port.
    pub(super) ports: BTreeMap<u32, (Count, Count)>,
    /// The counters of an answer that is not complete.
    coming: BTreeMap<u32, (Count, Count)>,
    is_asked: bool,
    /// When the switch answered.
    answered_at: Option<Instant>,
    /// Bits per second that each physical port sent between the last two answers.
    pub(super) loads: BTreeMap<u32, u64>,
}

/// A counter that the switch does not have is all ones.
const NOT_COUNTED: u64 = u64::MAX;

const NS_PER_S: u128 = 1_000_000_000;

impl Traffic {
    /// The switch has answered, or will not answer.
    pub(crate) fn answered(&mut self) {
        self.is_asked = false;
        self.coming.clear();
    }

    /// Whether the switch has to be asked. After this call Weir counts the question as asked.
    pub(super) fn ask(&mut self) -> bool {
        !core::mem::replace(&mut self.is_asked, true)
    }

    /// A part of the switch's answer.
    pub(super) fn part(
        &mut self,
        ports: impl Iterator<Item = (u32, (Count, Count))>,
        has_more: bool,
        now: Instant,
    ) {
        self.coming.extend(ports);
        if !has_more {
            self.measure(now);
            self.ports = core::mem::take(&mut self.coming);
            self.answered();
        }
    }

    /// Compares the new answer with the one before.
    fn measure(&mut self, now: Instant) {
        self.loads.clear();
        let before = self.answered_at.replace(now);
        let passed = before.map(|before| now.nanos_since(before));
        let Some(ns) = passed.filter(|ns| *ns > 0) else { return };
        for (port, (_, sent)) in &self.coming {
            let Some((_, before)) = self.ports.get(port) else { continue };
            if sent.bytes == NOT_COUNTED {
                continue;
            }
            // A port that was replaced counts from zero.
            let bytes = u128::from(sent.bytes.saturating_sub(before.bytes));
            let load = bytes * 8 * NS_PER_S / u128::from(ns);
            self.loads.insert(*port, u64::try_from(load).unwrap_or(u64::MAX));
        }
    }
}

/// The counters of a tenant's port; `None` where packets are not counted for the tenant alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortTraffic {
    /// The port, as the tenant numbers it.
    pub port: u32,
    /// What has come in by the port.
    pub received: Option<Count>,
    /// What has left by the port.
    pub sent: Option<Count>,
}
