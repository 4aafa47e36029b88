//! Reads the counters of the switch's interfaces before and after an experiment through the switch's SNMP agent, in
//! addition to the probes.
//!
//! An agent refreshes its counters every few seconds only (Net-SNMP every three), so the second reading waits for that
//! time.

use crate::module::{Counter, Gauge};
use crate::record::{Case, Measure, Record};
use crate::testbed::{Happening, Testbed};

/// Counters before an experiment.
pub(crate) struct Counters(Vec<(Gauge, f64)>);

/// The timeout for all counters of an agent, ns.
const PATIENCE: u64 = 20_000_000_000;
/// The maximum age of an agent's counters, ns.
const STALE: u64 = 5_000_000_000;

impl Counters {
    /// Reads the counters of the watched interfaces; a missing counter is a finding.
    pub(crate) fn read(testbed: &mut dyn Testbed, record: &mut Record) -> Counters {
        let mut open = Vec::new();
        for name in testbed.bench().interfaces.clone() {
            for (counter, _) in Counter::ALL {
                open.push(Gauge::Interface { name: name.clone(), counter });
            }
        }
        open.iter().for_each(|gauge| testbed.read(gauge.clone()));
        let until = testbed.now().saturating_add(PATIENCE);
        let mut found = Vec::new();
        while !open.is_empty() {
            // The experiment reports a switch that disconnected.
            let Ok(Some(arrival)) = testbed.next(until) else { break };
            let Happening::Reading { gauge, value, remark } = arrival.what else { continue };
            let Some(at) = open.iter().position(|asked| *asked == gauge) else { continue };
            open.swap_remove(at);
            if let Some(remark) = remark {
                record.finding("snmp", remark);
            }
            found.extend(value.map(|value| (gauge, value)));
        }
        Counters(found)
    }

    /// Reads the counters again, and records the differences.
    pub(crate) fn difference(&self, testbed: &mut dyn Testbed, record: &mut Record) {
        if !testbed.bench().interfaces.is_empty() {
            let until = testbed.now().saturating_add(STALE);
            while let Ok(Some(_)) = testbed.next(until) {}
        }
        let Counters(after) = Counters::read(testbed, record);
        for (gauge, after) in after {
            let before = self.0.iter().find(|(known, _)| *known == gauge);
            if let (Some((_, before)), Gauge::Interface { name, counter }) = (before, &gauge) {
                let metric = Counter::ALL.iter().find(|(known, _)| known == counter);
                let metric = metric.map_or("", |(_, metric)| *metric);
                let case = Case::new().with("interface", name.as_str());
                record.sample(&case, Measure::plain(metric), after - before);
            }
        }
    }
}
