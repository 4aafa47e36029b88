//! Checks whether the collected samples agree with the plan in force.
//!
//! The expected number is each port's packets, as the switch counted them, times the sampling rates, so a changing load
//! is no deviation. Both numbers are accumulated from the first observation of a plan in force, because the counters of
//! one observation are read at slightly different times.

use crate::site::Site;
use sampling::Flow;
use std::collections::BTreeMap;

/// Packets by server and port.
type Ports = BTreeMap<(usize, String), u64>;

/// Collected samples beside planned ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The samples that the plan takes of those packets.
    pub expected: f64,
    /// The samples that arrived.
    pub collected: u64,
    /// The guests' packets behind these samples.
    pub of: u64,
    /// Three standard deviations of the draw, as a share of the expected number.
    pub scatter: f64,
}

impl Verdict {
    /// The deviation, relative to the expected number.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.expected > 0.0 { self.collected as f64 / self.expected - 1.0 } else { 0.0 }
    }

    /// Whether the deviation is more than chance and 3 % explain.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.deviation().abs() > 0.03 + self.scatter
    }
}

#[derive(Default)]
pub(crate) struct Verify {
    start: Option<(u64, u64, Ports)>,
    verdicts: BTreeMap<u64, Verdict>,
}

impl Verify {
    /// Adds an observation: the plan in force (if nothing is changing), the samples and the packets so far.
    pub(crate) fn handle(
        &mut self,
        site: &Site,
        rates: Option<(u64, &[Flow])>,
        samples: u64,
        ports: &Ports,
    ) -> Option<Verdict> {
        let Some((epoch, flows)) = rates else {
            self.start = None;
            return None;
        };
        if self.start.as_ref().is_none_or(|(of, ..)| *of != epoch) {
            self.start = Some((epoch, samples, ports.clone()));
            return None;
        }
        let (_, first, before) = self.start.as_ref()?;
        let mut verdict =
            Verdict { collected: samples.saturating_sub(*first), ..Verdict::default() };
        let mut variance = 0.0;
        for (index, server) in site.servers.iter().enumerate() {
            for guest in &server.guests {
                let key = (index, guest.port.clone());
                let count = |of: &Ports| of.get(&key).copied().unwrap_or(0);
                let packets = count(ports).saturating_sub(count(before));
                let tenant = site.tenant(guest).ok().flatten();
                let its = flows.iter().filter(|flow| {
                    flow.origin == index && (flow.tenant.is_none() || flow.tenant == tenant)
                });
                let rate = its.map(|flow| flow.rate).sum::<f64>().min(1.0);
                verdict.of += packets;
                verdict.expected += packets as f64 * rate;
                variance += packets as f64 * rate * (1.0 - rate);
            }
        }
        verdict.scatter = 3.0 * variance.sqrt() / verdict.expected.max(1.0);
        self.verdicts.insert(epoch, verdict);
        Some(verdict)
    }

    /// A change: the next observation starts again.
    pub(crate) fn forget(&mut self) {
        self.start = None;
    }

    pub(crate) fn all(&self) -> Vec<(u64, Verdict)> {
        self.verdicts.iter().map(|(epoch, verdict)| (*epoch, *verdict)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_samples_use_the_planned_rate_of_each_tenant() {
        let site = r#"
            collector = "127.0.0.1:1"
            tenants = [{ name = "red", network = "10.1.0.0/16" }, { name = "blue", network = "10.2.0.0/16" }]
            [[servers]]
            name = "a"
            address = "192.0.2.1"
            bridge = "br0"
            guests = [{ port = "r", mac = "x", tenant = "red" }, { port = "b", mac = "y", tenant = "blue" }]
        "#;
        let site = Site::read(site).unwrap();
        let flow =
            |processor, tenant, rate| Flow { origin: 0, processor, tenant, volume: 0.0, rate };
        let flows = [flow(0, Some(0), 0.2), flow(1, Some(0), 0.3), flow(0, Some(1), 0.1)];
        let ports = |red, blue| Ports::from([((0, "r".into()), red), ((0, "b".into()), blue)]);
        let mut verify = Verify::default();
        assert_eq!(verify.handle(&site, Some((1, &flows)), 50, &ports(100, 0)), None);
        let verdict = verify.handle(&site, Some((1, &flows)), 670, &ports(1100, 1000)).unwrap();
        assert_eq!((verdict.expected, verdict.collected, verdict.of), (600.0, 620, 2000));
        assert!((verdict.deviation() - 1.0 / 30.0).abs() < 1e-9 && verdict.scatter > 0.0);
        // During a change nothing is compared; after the change the comparison starts again.
        assert_eq!(verify.handle(&site, None, 900, &ports(2000, 2000)), None);
        assert_eq!(verify.handle(&site, Some((2, &flows)), 950, &ports(2000, 2000)), None);
        verify.forget();
        assert_eq!(verify.handle(&site, Some((2, &flows)), 990, &ports(3000, 3000)), None);
        assert_eq!(verify.all().len(), 1);
    }
}
