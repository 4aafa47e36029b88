//! Makes one point of a result from the outcomes of several runs: samples per run, merged distributions, findings.

use crate::arrivals::Arrivals;
use crate::criterion::{GENERATOR_BEHIND, GENERATOR_BEHIND_CODE};
use crate::kind::PROBED;
use crate::outcome::Outcome;
use crate::plan::Setup;
use crate::session::{Controllers, Session};
use crate::track::Counts;
use crate::{Error, Kind, Load, Topology};
use report::stats::jain;
use report::{Better, Finding, Histogram, Interval, Metric, Point, Precision, Scalar, TenantRow};
use std::collections::BTreeMap;

/// If the 99th percentile of (actual − intended send time) is above 100 µs, the generator did not keep its schedule.
pub const LAG_LIMIT_NS: u64 = 100_000;

/// The metric for the CPU time of the system per sent message, in µs.
pub(crate) const CPU_PER_MESSAGE: &str = "cpu_us_per_message";
/// The metric for the system's own messages to the switch per hundred messages of tenants.
pub(crate) const OWN_MESSAGES: &str = "own_messages_percent";

/// The results of one system with one combination of parameters.
#[derive(Debug)]
pub struct Measurement {
    /// The point for the result.
    pub point: Point,
    /// The raw distributions of the point, by name.
    pub histograms: Vec<(String, Histogram)>,
    /// The findings of the point.
    pub findings: Vec<Finding>,
}

/// Gathers the runs of one point.
#[derive(Debug)]
pub struct Collector {
    point: Point,
    samples: BTreeMap<&'static str, (&'static str, Better, Vec<f64>)>,
    latency: Histogram,
    lag: Histogram,
    by_kind: BTreeMap<Kind, Histogram>,
    tenants: BTreeMap<usize, (Counts, Histogram)>,
    faults: crate::fault::Faults,
    /// The reason why no further run could be made.
    failure: Option<String>,
    /// Faults that the caller observed: the code and the text of the finding, and the number of runs.
    remarks: BTreeMap<(&'static str, &'static str), u64>,
    /// The number of runs in which the generator was behind, and the largest lag of these runs in ns.
    behind: (u64, u64),
    /// The number of late runs that do not count.
    aside: usize,
    runs: u64,
}

impl Collector {
    /// A collector for `system` with these parameters.
    #[must_use]
    pub fn new(system: &str, parameters: &[(&str, Scalar)]) -> Self {
        Self {
            point: Point::new(system, parameters.iter().cloned()),
            samples: BTreeMap::new(),
            latency: Histogram::new(Precision::Fine),
            lag: Histogram::new(Precision::Fine),
            by_kind: BTreeMap::new(),
            tenants: BTreeMap::new(),
            faults: crate::fault::Faults::default(),
            failure: None,
            remarks: BTreeMap::new(),
            behind: (0, 0),
            aside: 0,
            runs: 0,
        }
    }

    /// Adds a sample that the caller took.
    pub fn sample(&mut self, name: &'static str, unit: &'static str, better: Better, value: f64) {
        self.samples.entry(name).or_insert_with(|| (unit, better, Vec::new())).2.push(value);
    }

    /// Whether the collector has a run, or the reason why no run was possible.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs == 0 && self.failure.is_none()
    }

    /// Records the reason why a run was not possible.
    pub fn fail(&mut self, error: &Error) {
        self.failure = Some(error.to_string());
    }

    /// Records a fault of a run that the caller observed. The fault becomes a finding with this code.
    pub(crate) fn remark(&mut self, code: &'static str, text: &'static str) {
        *self.remarks.entry((code, text)).or_default() += 1;
    }

    /// Whether a run does not count because the generator was behind its schedule: such a run shows other work of the
    /// machine. At most as many runs are set aside as runs count; with more late runs the generator's delay is normal
    /// on this machine. Faults of the system in a run that is set aside are reported all the same.
    pub fn sets_aside(&mut self, outcome: &Outcome, runs: usize) -> bool {
        let is_aside = self.aside < runs && is_behind(outcome).is_some();
        if is_aside {
            self.aside += 1;
            self.faults.add(&outcome.faults);
        }
        is_aside
    }

    /// Adds one run.
    pub fn add(&mut self, outcome: &Outcome) {
        let counts = outcome.counts();
        let latency = outcome.latency();
        self.add_latency(&latency);
        self.add_counts(outcome, &counts);
        self.add_usage(outcome);
        self.add_fairness(outcome);
        let lag = outcome.lag.percentile(99.0);
        if let Some(lag) = lag {
            self.sample("lag_p99_us", "µs", Better::Neither, lag as f64 / 1e3);
        }
        if let Some(lag) = is_behind(outcome) {
            self.behind = (self.behind.0 + 1, self.behind.1.max(lag));
        }
        self.latency.merge(&latency);
        self.lag.merge(&outcome.lag);
        for (kind, latency) in &outcome.by_kind {
            let place = self.by_kind.entry(*kind);
            place.or_insert_with(|| Histogram::new(Precision::Fine)).merge(latency);
        }
        let many = outcome.streams.len() > 64;
        for stream in &outcome.streams {
            let (counts, latency) = self.tenants.entry(stream.tenant).or_insert_with(|| {
                let precision = if many { Precision::Coarse } else { Precision::Fine };
                (Counts::default(), Histogram::new(precision))
            });
            counts.add(&stream.counts);
            latency.merge(&stream.latency);
        }
        self.faults.add(&outcome.faults);
        if self.runs == 0 {
            self.point.intervals = intervals(outcome);
        }
        self.runs += 1;
    }

    fn add_latency(&mut self, latency: &Histogram) {
        if latency.count() == 0 {
            return;
        }
        let us = |percent| latency.percentile(percent).unwrap_or(0) as f64 / 1e3;
        for (name, percent) in [
            ("p50_us", 50.0),
            ("p90_us", 90.0),
            ("p99_us", 99.0),
            ("p999_us", 99.9),
            ("max_us", 100.0),
        ] {
            self.sample(name, "µs", Better::Lower, us(percent));
        }
        self.sample("mean_us", "µs", Better::Lower, latency.mean().unwrap_or(0.0) / 1e3);
    }

    fn add_counts(&mut self, outcome: &Outcome, counts: &Counts) {
        self.sample("rate_per_s", "1/s", Better::Higher, outcome.rate());
        let due = (counts.sent + counts.blocked).max(1) as f64;
        let percent = |part: u64| part as f64 / due * 100.0;
        self.sample("unanswered_percent", "%", Better::Lower, percent(counts.unanswered()));
        self.sample("blocked_percent", "%", Better::Lower, percent(counts.blocked));
        self.sample("refused_percent", "%", Better::Lower, percent(counts.refused));
        for (name, count) in [
            ("late", counts.late),
            ("duplicates", counts.duplicates),
            ("reordered", counts.reordered),
            ("leaked", outcome.faults.of("leak")),
        ] {
            self.sample(name, "", Better::Lower, count as f64);
        }
        self.sample("messages_per_write", "", Better::Neither, outcome.messages_per_write);
        if let Some(segments) = &outcome.segments {
            for (name, value) in [
                ("messages_per_segment", segments.messages_per_segment),
                ("sent_per_segment", segments.sent_per_segment),
            ] {
                if value > 0.0 {
                    self.sample(name, "", Better::Neither, value);
                }
            }
        }
        if outcome.switch_busy > 0.0 {
            self.sample("switch_busy_percent", "%", Better::Higher, outcome.switch_busy * 100.0);
        }
    }

    fn add_usage(&mut self, outcome: &Outcome) {
        if outcome.usage.is_empty() {
            return;
        }
        let sum = |of: fn(&crate::observe::Usage) -> f64| outcome.usage.iter().map(of).sum::<f64>();
        let cpu = sum(|usage| usage.user_percent + usage.system_percent);
        self.sample("cpu_percent", "%", Better::Lower, cpu);
        let (sent, cpu_ns) = outcome.whole;
        if sent > 0 {
            let us = cpu_ns as f64 / 1e3 / sent as f64;
            self.sample(CPU_PER_MESSAGE, "µs", Better::Lower, us);
        }
        self.sample("cpu_user_percent", "%", Better::Lower, sum(|usage| usage.user_percent));
        self.sample("cpu_system_percent", "%", Better::Lower, sum(|usage| usage.system_percent));
        self.sample(
            "resident_bytes",
            "bytes",
            Better::Lower,
            sum(|usage| usage.resident_bytes as f64),
        );
        let switches = sum(|usage| usage.voluntary_switches + usage.involuntary_switches);
        self.sample("context_switches_per_s", "1/s", Better::Neither, switches);
        let busiest = outcome.usage.iter().flat_map(|usage| &usage.threads).map(|thread| thread.1);
        self.sample("busiest_thread_percent", "%", Better::Neither, busiest.fold(0.0, f64::max));
    }

    /// Adds the fairness of the mean latencies of tenants whose streams are measured.
    fn add_fairness(&mut self, outcome: &Outcome) {
        let subjects = outcome.streams.iter().filter(|stream| stream.subject);
        let means: Vec<f64> = subjects.filter_map(|stream| stream.latency.mean()).collect();
        if means.len() < 2 {
            return;
        }
        if let Some(index) = jain(&means) {
            self.sample("jain_index", "", Better::Higher, index);
        }
        let (best, worst) = means
            .iter()
            .fold((f64::MAX, 0.0_f64), |(low, high), &mean| (low.min(mean), high.max(mean)));
        self.sample("worst_to_best_tenant", "", Better::Lower, worst / best);
    }

    /// The point with all its runs.
    #[must_use]
    pub fn finish(mut self) -> Measurement {
        self.sample("set_aside", "", Better::Neither, self.aside as f64);
        self.sample(GENERATOR_BEHIND, "", Better::Neither, self.behind.0 as f64);
        let label = format!("{} {}", self.point.system, self.point.label());
        let findings = self.findings(label.trim_end());
        let mut histograms = vec![
            (format!("{label} latency"), self.latency.clone()),
            (format!("{label} lag"), self.lag.clone()),
        ];
        for (name, (unit, better, samples)) in self.samples {
            self.point.metrics.insert(name.to_owned(), Metric::new(unit, better, samples));
        }
        self.point.latency.insert("latency".to_owned(), self.latency.summary());
        self.point.latency.insert("lag".to_owned(), self.lag.summary());
        for (kind, latency) in self.by_kind {
            self.point.latency.insert(format!("latency {}", kind.name()), latency.summary());
            histograms.push((format!("{label} {}", kind.name()), latency));
        }
        for (tenant, (counts, latency)) in self.tenants {
            let mut summary = latency.summary();
            // The curves of a thousand tenants would be most of the file. The raw log has these curves.
            summary.cdf.clear();
            self.point.tenants.push(TenantRow {
                tenant: format!("tenant {tenant}"),
                sent: counts.sent,
                received: counts.received,
                latency: summary,
            });
            histograms.push((format!("{label} tenant {tenant}"), latency));
        }
        Measurement { point: self.point, histograms, findings }
    }

    fn findings(&self, label: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(why) = &self.failure {
            let text = format!("{label}: after {} runs: {why}", self.runs);
            findings.push(Finding { code: "not-measured".to_owned(), text });
        }
        if let (1.., worst) = self.behind {
            findings.push(Finding {
                code: GENERATOR_BEHIND_CODE.to_owned(),
                text: format!(
                    "{label}: the generator fell behind its schedule in {} of {} runs (99th percentile \
                     of its lag up to {:.0} µs): these figures contain its own delay",
                    self.behind.0,
                    self.runs,
                    worst as f64 / 1e3
                ),
            });
        }
        for ((code, text), runs) in &self.remarks {
            let text = format!("{label}: {text} (in {runs} of {} runs)", self.runs);
            findings.push(Finding { code: (*code).to_owned(), text });
        }
        for (fault, count) in self.faults.iter() {
            let text = format!("{label}: {fault} ({count} times)");
            findings.push(Finding { code: fault.code().to_owned(), text });
        }
        findings
    }
}

/// The 99th percentile of the generator's lag in ns, if the generator did not keep its schedule.
fn is_behind(outcome: &Outcome) -> Option<u64> {
    outcome.lag.percentile(99.0).filter(|&lag| lag > LAG_LIMIT_NS)
}

fn intervals(outcome: &Outcome) -> Vec<Interval> {
    let seconds = outcome.streams.iter().map(|stream| stream.seconds.len()).max().unwrap_or(0);
    let one = |index: usize| {
        let mut interval = Interval { start_s: index as f64, ..Interval::default() };
        let mut sum = 0;
        for stream in outcome.streams.iter().filter(|stream| stream.subject) {
            let Some(second) = stream.seconds.get(index) else { continue };
            interval.received += second.received;
            sum += second.sum_ns;
            interval.max_us = interval.max_us.max(second.max_ns as f64 / 1e3);
        }
        if interval.received > 0 {
            interval.mean_us = sum as f64 / interval.received as f64 / 1e3;
        }
        interval
    };
    (0..seconds).map(one).collect()
}

/// The generator's own maximum with messages of `kind`: the messages per second that go directly from one side of the
/// generator to the other (the null reflector), in `duration_ms`.
///
/// # Errors
/// As [`Session::open`] and [`Session::run`].
pub fn ceiling(setup: &Setup, kind: Kind, duration_ms: u64) -> Result<f64, Error> {
    // A rule whose first packet is measured needs a schedule. For the generator such a rule is a FLOW_MOD.
    let kind = if kind == PROBED { Kind::FlowMod } else { kind };
    // More than a few connections would measure the kernel's socket table, not the generator.
    let tenants = setup.tenants.min(4);
    let mut direct = Setup { topology: Topology::Direct, tenants, ..setup.clone() };
    if direct.check_tls_sides(&Topology::Direct).is_err() {
        // If both sides are connected directly, both must use the same protocol.
        direct.tls = crate::TlsSides::default();
    }
    let direct =
        Setup { switch: crate::SwitchModel { service_ns: 0, ..direct.switch.clone() }, ..direct };
    let controllers = Controllers::bind(tenants, std::net::SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let mut session = Session::open(direct, &controllers)?;
    let load = if kind.has_reply() {
        Load::each(kind, tenants, &Arrivals::Closed { outstanding: 1000 }, duration_ms)
    } else {
        Load::saturating(kind, tenants, duration_ms)
    };
    let load = Load { cut_ms: duration_ms / 5, ..load };
    Ok(session.run(&load, &[])?.rate())
}
