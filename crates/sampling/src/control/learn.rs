//! Learns a server's α and β from the server's reports: its CPU use, and its work in the same interval.
//!
//! In an interval the server forwarded F packets per second, sampled and processed l itself, mirrored e, and processed
//! m for others. The cost model (section III-C of the paper) is:
//!
//! > busy = idle + f·F + a·(l + m) + b·(e + m) + d·D,   α = a/f,   β = b/f
//!
//! where D is 1 if a plan was enacted in the interval, which also takes CPU time, and 0 otherwise. The model is linear
//! in (idle, f, a, b, d), so recursive least squares estimates the coefficients. The initial costs are a prior, like an
//! earlier observation, so coefficients that the data cannot separate keep their values. Old data is forgotten only in
//! the direction that an observation renews (directional forgetting, after Cao and Schwartz, *A directional forgetting
//! algorithm based on the decomposition of the information matrix*, Automatica 2000): a server that does the same work
//! for an hour does not forget the costs of other work.
//!
//! While F stays about the same, the data cannot separate idle use from forwarding. A plan does not need this: a plan
//! needs how much busier sampling makes the server, which is a and b. So the intervals of α and β are those of a and b,
//! in units of the assumed cost of forwarding a packet.

use crate::cost::{Costs, LARGEST_COST};

/// The work of a server in an interval, in packets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// F: forwarded.
    pub forwarded: f64,
    /// l: sampled of its own and processed here.
    pub local: f64,
    /// e: mirrored to others.
    pub mirrored: f64,
    /// m: processed for others.
    pub imported: f64,
    /// D: whether a plan was enacted in the interval.
    pub is_disturbed: bool,
}

/// A cost with half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// In units of forwarding a packet.
    pub value: f64,
    /// Half the interval's width.
    pub half: f64,
}

/// Learns one server's costs.
#[derive(Clone, Copy, Debug)]
pub struct CostModel {
    in_use: Costs,
    learnt: Option<Learnt>,
}

/// idle, f, a, b and d, in shares of a CPU; f, a and b for [`Learnt::unit`] packets per second.
type Vector = [f64; SIZE];
type Matrix = [Vector; SIZE];
const SIZE: usize = 5;

#[derive(Clone, Copy, Debug)]
struct Learnt {
    /// The packets per second that count as 1, so that all coefficients have about the same size.
    unit: f64,
    theta: Vector,
    /// The covariance of the coefficients, in units of the noise.
    covariance: Matrix,
    /// The variance of the observations' errors.
    noise: f64,
    /// F of the last observation, and the F that is used in its place: the used F stays the same until F has clearly
    /// changed.
    forwarded: f64,
    counts_as: f64,
}

/// The factor by which an observation's weight falls when the next similar one arrives.
const KEEP: f64 = 0.96;
/// Standard deviations of the initial values: idle use, as a share of a CPU; f, relative; α and β together, relative;
/// each alone, relative and absolute. Their values in units of forwarding are easily misjudged, their ratio less so. So
/// data about one also corrects the other, which a plan may not even use while its cost seems high.
const IDLE_PRIOR: f64 = 0.3;
const FORWARD_PRIOR: f64 = 0.5;
const COSTS_PRIOR: f64 = 3.0;
const COST_PRIOR: f64 = 0.3;
const LEAST_COST_PRIOR: f64 = 0.05;
/// The standard deviation of the change of idle use between two intervals, since other programs use the machine too.
/// Changes of sampling show its cost; the CPU use of long ago does not.
const DRIFT: f64 = 0.005;
/// The initial cost of enacting a plan: this share of a CPU for an interval, with the same standard deviation.
const DISTURBANCE: f64 = 0.1;
/// The smallest share of the CPU use without sampling that counts as forwarding.
const LEAST_FORWARDING: f64 = 0.1;
/// Loads with a smaller relative difference count as equal. Counters and clocks are not read at the same moment, so a
/// constant load scatters; this scatter would look like packets without a cost.
const SAME_LOAD: f64 = 0.15;
/// The initial and the smallest standard deviation of observations, as shares of a CPU.
const NOISE: f64 = 0.03;
const LEAST_NOISE: f64 = 0.005;
/// Residuals beyond so many standard deviations are cut: they are not the server's work.
const OUTLIER: f64 = 4.0;
/// A CPU that is this busy may have needed more time: such an observation is a lower bound.
const FULL: f64 = 0.97;
/// The 97.5th percentile of the normal distribution.
const NORMAL: f64 = 1.96;
/// Plans use another cost only when the interval excludes the cost in use and all costs within this share of it. A
/// higher cost is then the estimate, because too much sampling harms users. A lower cost is then the interval's upper
/// end, because too little sampling only loses samples.
const MARGIN: f64 = 0.1;
/// The margin as an absolute difference, if this difference is larger.
const LEAST_MARGIN: f64 = 0.02;
/// α is above 0.
const LEAST_ALPHA: f64 = 0.01;

impl CostModel {
    /// A model with the initial costs and no data.
    #[must_use]
    pub fn new(believed: Costs) -> CostModel {
        CostModel { in_use: believed, learnt: None }
    }

    /// The costs that plans use.
    #[must_use]
    pub fn in_use(&self) -> Costs {
        self.in_use
    }

    /// Adds an interval: the server's work, and the busy share of its CPU. Returns whether the costs in use changed.
    pub fn handle(&mut self, work: Work, busy: f64) -> bool {
        let Work { forwarded, local, mirrored, imported, .. } = work;
        let all = [forwarded, local, mirrored, imported, busy];
        if !all.iter().all(|one| one.is_finite() && *one >= 0.0) {
            return false;
        }
        let Some(learnt) = &mut self.learnt else {
            // Before the server forwards packets, there is no scale for costs.
            if forwarded >= 1.0 && busy > 0.0 {
                let mut first = Learnt::new(self.in_use, forwarded, busy);
                first.handle(work, busy);
                self.learnt = Some(first);
            }
            return false;
        };
        learnt.handle(work, busy);
        self.adopt()
    }

    /// The estimates of α and β, within their bounds.
    #[must_use]
    pub fn estimates(&self) -> Option<[Estimate; 2]> {
        let learnt = self.learnt.as_ref()?;
        let [_, forward, a, b, _] = learnt.coefficients()?;
        let [.., [_, _, a_variance, ..], [_, _, _, b_variance, _], _] = learnt.covariance;
        let estimate = |value: f64, variance: f64, least: f64| Estimate {
            value: (value / forward).clamp(least, LARGEST_COST),
            half: NORMAL * (learnt.noise * variance.max(0.0)).sqrt() / forward,
        };
        Some([estimate(a, a_variance, LEAST_ALPHA), estimate(b, b_variance, 0.0)])
    }

    /// The load, in forwarded packets per second, at which the share `target` of the CPU is busy.
    #[must_use]
    pub fn capacity(&self, target: f64) -> Option<f64> {
        let learnt = self.learnt.as_ref()?;
        let [idle, forward, ..] = learnt.coefficients()?;
        let forward = forward / learnt.unit;
        let busy = idle + forward * learnt.counts_as;
        Some((learnt.forwarded + (target - busy) / forward).max(0.0))
    }

    fn adopt(&mut self) -> bool {
        let Some([alpha, beta]) = self.estimates() else { return false };
        let before = self.in_use;
        let adopted = |estimate: Estimate, used: f64| {
            let margin = (MARGIN * used).max(LEAST_MARGIN);
            let (least, most) = (estimate.value - estimate.half, estimate.value + estimate.half);
            if least > used + margin {
                estimate.value
            } else if most < used - margin {
                most
            } else {
                used
            }
        };
        self.in_use.alpha = adopted(alpha, before.alpha);
        self.in_use.beta = adopted(beta, before.beta);
        self.in_use != before
    }
}

impl Learnt {
    /// Before the first observation: all CPU use is forwarding, at these costs.
    fn new(believed: Costs, forwarded: f64, busy: f64) -> Learnt {
        let Costs { alpha, beta } = believed;
        let theta = [0.0, busy, alpha * busy, beta * busy, DISTURBANCE];
        let forward = (FORWARD_PRIOR * busy).powi(2);
        let spread = |cost: f64| (COST_PRIOR * cost).max(LEAST_COST_PRIOR) * busy;
        let (a, b) = (spread(alpha).powi(2), spread(beta).powi(2));
        // a and b are known in units of f, so an error of f is also an error of a and b.
        let both = forward + (COSTS_PRIOR * busy).powi(2);
        let covariance = [
            [IDLE_PRIOR * IDLE_PRIOR, 0.0, 0.0, 0.0, 0.0],
            [0.0, forward, alpha * forward, beta * forward, 0.0],
            [0.0, alpha * forward, alpha * alpha * both + a, alpha * beta * both, 0.0],
            [0.0, beta * forward, alpha * beta * both, beta * beta * both + b, 0.0],
            [0.0, 0.0, 0.0, 0.0, DISTURBANCE * DISTURBANCE],
        ];
        let noise = NOISE * NOISE;
        let covariance = covariance.map(|row| row.map(|value| value / noise));
        Learnt { unit: forwarded, theta, covariance, noise, forwarded, counts_as: forwarded }
    }

    /// The most likely coefficients under the condition that forwarding has a cost; `None` if forwarding seems to have
    /// none.
    fn coefficients(&self) -> Option<Vector> {
        let [idle, forward, ..] = self.theta;
        let forwarded = self.counts_as / self.unit;
        let least = LEAST_FORWARDING * (idle + forward * forwarded) / forwarded;
        if least.is_nan() || least <= 0.0 {
            return None;
        }
        let [_, by @ [_, variance, ..], ..] = self.covariance;
        let lacking = (least - forward).max(0.0);
        let mut theta = self.theta;
        for (value, covariance) in theta.iter_mut().zip(by) {
            *value += lacking * covariance / variance;
        }
        theta.iter().all(|value| value.is_finite()).then_some(theta)
    }

    fn handle(&mut self, work: Work, busy: f64) {
        let Work { forwarded, local, mirrored, imported, is_disturbed } = work;
        self.forwarded = forwarded;
        if (forwarded - self.counts_as).abs() > SAME_LOAD * self.counts_as.max(forwarded) {
            self.counts_as = forwarded;
        }
        let volumes = [self.counts_as, local + imported, mirrored + imported];
        let [forwarding, processing, mirroring] = volumes.map(|volume| volume / self.unit);
        let x = [1.0, forwarding, processing, mirroring, f64::from(u8::from(is_disturbed))];
        let residual = busy - dot(&x, &self.theta);
        if busy >= FULL && residual <= 0.0 {
            return;
        }
        self.forget(&x);
        let [[idle, ..], ..] = &mut self.covariance;
        *idle = (*idle + DRIFT * DRIFT / self.noise)
            .min((*idle).max(IDLE_PRIOR * IDLE_PRIOR / self.noise));
        let px = multiply(&self.covariance, &x);
        let spread = 1.0 + dot(&x, &px);
        let most = OUTLIER * (self.noise * spread).sqrt();
        let residual = residual.clamp(-most, most);
        let gain = px.map(|one| one / spread);
        for (value, gain) in self.theta.iter_mut().zip(&gain) {
            *value += gain * residual;
        }
        for (row, gain) in self.covariance.iter_mut().zip(&gain) {
            for (value, px) in row.iter_mut().zip(&px) {
                *value -= gain * px;
            }
        }
        // The residual has two parts: the noise, and the uncertainty of the coefficients. This is the part of the
        // noise.
        let own = residual * residual / spread;
        self.noise = (KEEP * self.noise + (1.0 - KEEP) * own).max(LEAST_NOISE * LEAST_NOISE);
    }

    /// Makes the covariance larger where an observation of `x` will make it smaller, and nowhere else: the information
    /// about x falls to [`KEEP`] of what it was.
    fn forget(&mut self, x: &Vector) {
        let Some(z) = solve(self.covariance, *x) else { return };
        let information = dot(x, &z);
        if information <= 0.0 {
            return;
        }
        let share = (1.0 - KEEP) / KEEP / information;
        for (row, left) in self.covariance.iter_mut().zip(x) {
            for (value, right) in row.iter_mut().zip(x) {
                *value += share * left * right;
            }
        }
    }
}

fn dot(a: &Vector, b: &Vector) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn multiply(matrix: &Matrix, vector: &Vector) -> Vector {
    matrix.map(|row| dot(&row, vector))
}

/// The solution z of a positive definite system, by elimination; `None` if the system is not positive definite after
/// rounding.
fn solve(mut matrix: Matrix, mut right: Vector) -> Option<Vector> {
    for at in 0..SIZE {
        let (pivot_row, pivot_right) = (*matrix.get(at)?, *right.get(at)?);
        let pivot = *pivot_row.get(at)?;
        if pivot.is_nan() || pivot <= 1e-30 {
            return None;
        }
        for below in at + 1..SIZE {
            let row = matrix.get_mut(below)?;
            let factor = *row.get(at)? / pivot;
            for (value, top) in row.iter_mut().zip(&pivot_row) {
                *value -= factor * top;
            }
            *right.get_mut(below)? -= factor * pivot_right;
        }
    }
    for at in (0..SIZE).rev() {
        let row = *matrix.get(at)?;
        let rest: f64 = row.iter().zip(&right).skip(at + 1).map(|(a, z)| a * z).sum();
        *right.get_mut(at)? = (*right.get(at)? - rest) / row.get(at)?;
    }
    Some(right)
}

#[cfg(test)]
#[path = "learn_tests.rs"]
mod tests;
