//! The result of one run, combined from the parts of all threads.

use crate::fault::Faults;
use crate::load::{Kind, Load};
use crate::observe::Usage;
use crate::run::Part;
use crate::segments::Segments;
use crate::track::{Counts, Second};
use report::{Histogram, Precision};

/// The result of one run.
#[derive(Debug)]
pub struct Outcome {
    /// The results of the streams, in the load's order.
    pub streams: Vec<StreamOutcome>,
    /// Latency by kind, if the load has several kinds.
    pub by_kind: Vec<(Kind, Histogram)>,
    /// The delay of the writes of messages, without messages that the system under test delayed.
    pub lag: Histogram,
    /// The faults.
    pub faults: Faults,
    /// The share of the window in which slow switches were busy: 1 is the whole window. Without service time the share
    /// is 0.
    pub switch_busy: f64,
    /// PORT_STATUS messages that arrived in the window, by tenant.
    pub notices: Vec<u64>,
    /// Messages per write call of the generator.
    pub messages_per_write: f64,
    /// Messages per TCP segment, if the kernel reports segments.
    pub segments: Option<Segments>,
    /// The resources that the observed processes used in the window.
    pub usage: Vec<Usage>,
    /// The messages of the whole run, and the observed processes' CPU time in ns, from the start of the run until all
    /// sent messages had arrived. A system may process messages of the window after the window.
    pub whole: (u64, u64),
    /// The window's length in seconds.
    pub window_s: f64,
}

/// The result of one run for one stream.
#[derive(Debug)]
pub struct StreamOutcome {
    /// The tenant of the stream.
    pub tenant: usize,
    /// Whether the latency of the stream is measured.
    pub subject: bool,
    /// The counts of the stream's messages.
    pub counts: Counts,
    /// The latency of the stream's messages.
    pub latency: Histogram,
    /// The figures of each second.
    pub seconds: Vec<Second>,
}

impl Outcome {
    /// The latency of all subject streams.
    #[must_use]
    pub fn latency(&self) -> Histogram {
        let mut total = Histogram::new(Precision::Fine);
        self.subjects().for_each(|stream| total.merge(&stream.latency));
        total
    }

    /// The counts of all subject streams.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut total = Counts::default();
        self.subjects().for_each(|stream| total.add(&stream.counts));
        total
    }

    /// Messages per second that arrived or were answered, of all subject streams.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.counts().received as f64 / self.window_s
    }

    fn subjects(&self) -> impl Iterator<Item = &StreamOutcome> {
        self.streams.iter().filter(|stream| stream.subject)
    }
}

pub(crate) fn merge(load: &Load, parts: Vec<Part>, switches: usize) -> Outcome {
    let mut outcome = Outcome {
        streams: Vec::with_capacity(load.streams.len()),
        by_kind: Vec::new(),
        lag: Histogram::new(Precision::Fine),
        faults: Faults::default(),
        switch_busy: 0.0,
        notices: Vec::new(),
        messages_per_write: 0.0,
        segments: None,
        usage: Vec::new(),
        whole: (0, 0),
        window_s: load.window_s(),
    };
    for (index, stream) in load.streams.iter().enumerate() {
        let mut merged = StreamOutcome {
            tenant: stream.tenant,
            subject: stream.subject,
            counts: Counts::default(),
            latency: Histogram::new(Precision::Coarse),
            seconds: Vec::new(),
        };
        let all = parts.iter().filter_map(|part| part.streams.get(index));
        for (place, part) in all.enumerate() {
            merged.counts.add(&part.counts);
            if let Some(latency) = &part.latency {
                if place == 0 || merged.latency.count() == 0 {
                    merged.latency = latency.clone();
                } else {
                    merged.latency.merge(latency);
                }
            }
            if merged.seconds.len() < part.seconds.len() {
                merged.seconds.resize(part.seconds.len(), Second::default());
            }
            for (total, second) in merged.seconds.iter_mut().zip(&part.seconds) {
                total.received += second.received;
                total.sum_ns += second.sum_ns;
                total.max_ns = total.max_ns.max(second.max_ns);
            }
        }
        outcome.streams.push(merged);
    }
    for kind in Kind::ALL {
        let mut total: Option<Histogram> = None;
        for part in &parts {
            if let Some(Some(latency)) = part.by_kind.get(kind as usize) {
                total.get_or_insert_with(|| Histogram::new(Precision::Fine)).merge(latency);
            }
        }
        outcome.by_kind.extend(total.map(|latency| (kind, latency)));
    }
    let (mut busy, mut writes, mut sent) = (0, 0, 0);
    for part in &parts {
        outcome.lag.merge(&part.lag);
        outcome.faults.add(&part.faults);
        busy += part.busy_ns;
        if outcome.notices.len() < part.notices.len() {
            outcome.notices.resize(part.notices.len(), 0);
        }
        for (total, notices) in outcome.notices.iter_mut().zip(&part.notices) {
            *total += notices;
        }
        writes += part.writes;
        sent += part.total_sent;
    }
    outcome.switch_busy = busy as f64 / (load.window_s() * 1e9 * switches.max(1) as f64);
    outcome.whole.0 = sent;
    outcome.messages_per_write = if writes == 0 { 0.0 } else { sent as f64 / writes as f64 };
    outcome
}
