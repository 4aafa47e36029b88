//! What one run found: the parts of all threads put together.

use crate::fault::Faults;
use crate::load::{Kind, Load};
use crate::observe::Usage;
use crate::run::Part;
use crate::segments::Segments;
use crate::track::{Counts, Record, Second};
use report::{Histogram, Precision};
use std::io::{self, Write};

/// What one run found.
#[derive(Debug)]
pub struct Outcome {
    /// By stream, in the load's order.
    pub streams: Vec<StreamOutcome>,
    /// By kind, where the load has several.
    pub by_kind: Vec<(Kind, Histogram)>,
    /// How far behind schedule messages were written, for what the system under test did not hold up.
    pub lag: Histogram,
    /// Times of single messages, where the load asked for them: by stream, then by number.
    pub records: Vec<Record>,
    /// What was wrong.
    pub faults: Faults,
    /// The share of the window that slow switches were busy: 1 is always. 0 without service time.
    pub switch_busy: f64,
    /// By tenant: PORT_STATUS that came in the window.
    pub notices: Vec<u64>,
    /// Messages per write call of the generator.
    pub messages_per_write: f64,
    /// Messages per TCP segment, where the kernel could be asked.
    pub segments: Option<Segments>,
    /// What the observed processes used in the window.
    pub usage: Vec<Usage>,
    /// Messages that were sent in the whole run, and the observed processes' CPU time from its beginning until what was sent
    /// had arrived, in ns: what is sent in the window may be worked on after it.
    pub whole: (u64, u64),
    /// The window's length in seconds.
    pub window_s: f64,
}

/// What one run found about one stream.
#[derive(Debug)]
pub struct StreamOutcome {
    /// Whose it is.
    pub tenant: usize,
    /// Whether its latency is the subject.
    pub subject: bool,
    /// What became of its messages.
    pub counts: Counts,
    /// Their latency.
    pub latency: Histogram,
    /// Second by second.
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

    /// The kept times of single messages as CSV, in ns of the session's clock; an empty arrival
    /// never came.
    ///
    /// # Errors
    /// Whatever `out` refuses.
    pub fn write_times(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"tenant,stream,sequence,intended_ns,actual_ns,arrival_ns\r\n")?;
        for record in &self.records {
            let tenant = self.streams.get(usize::from(record.stream)).map_or(0, |one| one.tenant);
            let Record { stream, sequence, intended, actual, arrival } = record;
            let arrival = if *arrival == 0 { String::new() } else { arrival.to_string() };
            write!(out, "{tenant},{stream},{sequence},{intended},{actual},{arrival}\r\n")?;
        }
        Ok(())
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
        records: Vec::new(),
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
    outcome.records = join(parts);
    outcome
}

/// Puts both sides' times of each message together.
fn join(parts: Vec<Part>) -> Vec<Record> {
    let (mut sent, mut arrived) = (Vec::new(), Vec::new());
    for part in parts {
        sent.extend(part.sent);
        arrived.extend(part.arrived);
    }
    let key = |record: &Record| (record.stream, record.sequence);
    sent.sort_unstable_by_key(key);
    arrived.sort_unstable_by_key(key);
    let mut arrivals = arrived.into_iter().peekable();
    for record in &mut sent {
        while arrivals.next_if(|arrival| key(arrival) < key(record)).is_some() {}
        if let Some(arrival) = arrivals.next_if(|arrival| key(arrival) == key(record)) {
            record.arrival = arrival.arrival;
        }
    }
    sent
}
