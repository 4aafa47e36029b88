//! A server's capacity, estimated in the paper's three ways (section V): from its CPU, by short tests, and from the
//! users' latency.
//!
//! Each estimator gets measurements from its caller, and returns the load that the server can carry. Load is in the
//! model's unit: forwarded packets per second plus the costs of sampling (`F + α·l + β·e + (α + β)·m`).

/// The fitted line is used up to this multiple of the proportional estimate only: there is no data beyond.
const FARTHEST: f64 = 3.0;

/// From CPU statistics: the CPU use of a server rises linearly with its load.
///
/// The line is fitted to the observations by least squares. Older observations have less weight, so the line follows a
/// server whose packets become more expensive.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuModel {
    weight: f64,
    load: f64,
    busy: f64,
    load_load: f64,
    load_busy: f64,
}

/// The factor by which the weight of an observation falls when the next observation arrives.
const KEEP: f64 = 0.9;
/// Loads that differ by less than this, relative to their mean, show no slope.
const LEAST_SPREAD: f64 = 0.15;

impl CpuModel {
    /// A load, and the share of the server's CPU that was busy at it.
    pub fn handle(&mut self, load: f64, busy: f64) {
        if !(load.is_finite() && busy.is_finite() && load >= 0.0 && busy >= 0.0) {
            return;
        }
        for sum in [
            &mut self.weight,
            &mut self.load,
            &mut self.busy,
            &mut self.load_load,
            &mut self.load_busy,
        ] {
            *sum *= KEEP;
        }
        self.weight += 1.0;
        self.load += load;
        self.busy += busy;
        self.load_load += load * load;
        self.load_busy += load * busy;
    }

    /// The load at which the share `target` of the CPU is busy; `None` before the first observation.
    #[must_use]
    pub fn capacity(&self, target: f64) -> Option<f64> {
        let (load, busy) = (self.load / self.weight, self.busy / self.weight);
        if !(load > 0.0 && busy > 0.0) {
            return None;
        }
        let variance = self.load_load / self.weight - load * load;
        let slope = (self.load_busy / self.weight - load * busy) / variance;
        let intercept = busy - slope * load;
        let is_spread = variance.max(0.0).sqrt() >= LEAST_SPREAD * load;
        // The line is used if the loads differ enough, and if the line rises from a busy share between 0 and `target`
        // at load 0. Otherwise the proportional estimate is used.
        let proportional = load * target / busy;
        if is_spread && slope > 0.0 && (0.0..target).contains(&intercept) {
            return Some(((target - intercept) / slope).min(FARTHEST * proportional));
        }
        Some(proportional)
    }
}

/// By short active tests: bursts beside the users' traffic. Each burst is faster than the one before until one is not
/// carried completely; then bursts between these two follow.
#[derive(Clone, Copy, Debug)]
pub struct ActiveSearch {
    carried: f64,
    refused: Option<f64>,
    next: Option<f64>,
    refinements: u32,
}

/// The number of halvings; the result is then known to an eighth of the last step.
const REFINEMENTS: u32 = 3;
/// A burst of which at least this share arrived was carried.
const WHOLE: f64 = 0.99;

impl ActiveSearch {
    /// Starts with bursts at this rate, in packets per second.
    #[must_use]
    pub fn new(first: f64) -> ActiveSearch {
        ActiveSearch { carried: 0.0, refused: None, next: Some(first), refinements: 0 }
    }

    /// The rate of the next burst; `None` when the search has ended.
    #[must_use]
    pub fn poll_rate(&self) -> Option<f64> {
        self.next
    }

    /// The result of a burst: the share that arrived. The search ends at `most`.
    pub fn handle(&mut self, delivered: f64, most: f64) {
        let Some(rate) = self.next else { return };
        if delivered >= WHOLE {
            self.carried = rate;
        } else {
            self.refused = Some(rate);
        }
        self.next = match self.refused {
            None if rate >= most => None,
            None => Some((rate * 2.0).min(most)),
            Some(_) if self.refinements >= REFINEMENTS => None,
            Some(refused) => {
                self.refinements += 1;
                Some((self.carried + refused) / 2.0)
            }
        };
    }

    /// The load that the server carried beside its users' traffic.
    #[must_use]
    pub fn carried(&self) -> f64 {
        self.carried
    }
}

/// Passively, from rises of latency: while the latency does not rise there is room for more; when it rises there is
/// none.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassiveSearch {
    base: Option<f64>,
    ceiling: Option<f64>,
}

/// A latency of this many times the smallest one counts as a rise.
const RISE: f64 = 3.0;
/// The factor of the estimate after a rise, and its growth without a rise.
const RETREAT: f64 = 0.9;
const ADVANCE: f64 = 1.1;

impl PassiveSearch {
    /// A load, and the latency (or jitter, but always the same measure) at this load.
    pub fn handle(&mut self, load: f64, latency: f64) {
        if !(load > 0.0 && load.is_finite() && latency > 0.0 && latency.is_finite()) {
            return;
        }
        // The smallest latency drifts up slowly, so that the search forgets the old value when the path has changed.
        let base = self.base.map_or(latency, |base| (base * 1.001).min(latency));
        self.base = Some(base);
        self.ceiling = Some(match self.ceiling {
            _ if latency > base * RISE => load * RETREAT,
            // Only a load near the ceiling shows that the ceiling no longer exists.
            Some(ceiling) if load > ceiling * RETREAT => ceiling * ADVANCE,
            Some(ceiling) => ceiling,
            None => load * ADVANCE,
        });
    }

    /// The load that the server is known to carry.
    #[must_use]
    pub fn capacity(&self) -> Option<f64> {
        self.ceiling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_estimated_by_a_line_through_cpu_statistics() {
        let mut model = CpuModel::default();
        assert_eq!(model.capacity(0.8), None);
        // With one load alone the estimate is proportional.
        model.handle(1000.0, 0.4);
        assert!((model.capacity(0.8).unwrap() - 2000.0).abs() < 1e-6);
        // The server is 10 % busy without load, plus 0.02 % for each packet per second.
        for load in [1000.0, 2000.0, 1500.0, 3000.0, 2500.0].iter().cycle().take(60) {
            model.handle(*load, 0.1 + 0.0002 * load);
        }
        assert!((model.capacity(0.8).unwrap() - 3500.0).abs() < 20.0, "{:?}", model.capacity(0.8));
        // Packets cost twice as much, and the line follows.
        for load in [1000.0, 2000.0, 1500.0].iter().cycle().take(60) {
            model.handle(*load, 0.1 + 0.0004 * load);
        }
        assert!((model.capacity(0.8).unwrap() - 1750.0).abs() < 20.0, "{:?}", model.capacity(0.8));
        model.handle(f64::NAN, 0.5);
        model.handle(-1.0, 0.5);
        assert!(model.capacity(0.8).unwrap().is_finite());
    }

    #[test]
    fn test_bursts_find_the_spare_capacity() {
        for (left, expected) in
            [(7300.0, 6500.0..=7300.0), (500.0, 0.0..=500.0), (1e9, 64e3..=64e3)]
        {
            let mut search = ActiveSearch::new(1000.0);
            let mut bursts = 0;
            while let Some(rate) = search.poll_rate() {
                search.handle(if rate <= left { 1.0 } else { left / rate }, 64e3);
                bursts += 1;
            }
            assert!(expected.contains(&search.carried()), "{left}: {}", search.carried());
            assert!(bursts <= 12, "{bursts}");
        }
    }

    #[test]
    fn latency_measurements_find_the_capacity_without_overload() {
        // The server carries a load of 5000, and its latency is the latency of a queue. The load follows the estimate.
        let mut search = PassiveSearch::default();
        let mut load: f64 = 1000.0;
        let mut most: f64 = 0.0;
        for round in 0..200 {
            let latency = 1e-4 / (1.0 - (load / 5000.0).min(0.99));
            search.handle(load, latency);
            load = search.capacity().unwrap();
            if round > 20 {
                most = most.max(load);
                assert!((2500.0..5000.0).contains(&load), "round {round}: {load}");
            }
        }
        assert!(most > 3500.0, "{most}");
        assert!(PassiveSearch::default().capacity().is_none());
    }
}
