//! A server's α and β from what it reports anyway: how busy it was, and what it did meanwhile.
//!
//! The cost model (section III-C of the paper) says of an interval in which F packets per second were forwarded, l
//! sampled and processed here, e mirrored and m processed for others:
//!
//! > busy = idle + f·F + a·(l + m) + b·(e + m) + d·D,   α = a/f,   β = b/f
//!
//! where D is 1 if a plan was enacted meanwhile, which takes CPU time as well, and else 0. That is linear in (idle, f, a,
//! b, d): recursive least squares. What was believed at the beginning is a prior like any
//! earlier observation, so coefficients that the data cannot tell apart stay where they were. Old data is forgotten only
//! in the direction that an observation renews (directional forgetting, after Cao and Schwartz, *A directional forgetting
//! algorithm based on the decomposition of the information matrix*, Automatica 2000): a server that does the same for an
//! hour does not forget what it cost to do something else.
//!
//! While F stays about the same, nothing tells idling from forwarding. The plan does not need it: what it needs is how much
//! busier sampling makes the server, and that is a and b. So the intervals of α and β are those of a and b, in units of
//! what forwarding a packet is thought to cost.

use crate::cost::{Costs, LARGEST_COST};

/// What a server did in an interval, in packets per second.
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
    /// D: whether a plan was enacted meanwhile.
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
    /// So many packets per second are 1, so that all coefficients are of about the same size.
    unit: f64,
    theta: Vector,
    /// Their covariance, in units of the noise.
    covariance: Matrix,
    /// How far observations are off, squared.
    noise: f64,
    /// F of the last observation, and what it counts as: the same as before until it has clearly changed.
    forwarded: f64,
    counts_as: f64,
}

/// What is left of an observation's weight when the next like it comes.
const KEEP: f64 = 0.96;
/// How wrong what is believed at the beginning may be (standard deviations): idling, as a share of a CPU; f, relatively;
/// α and β together, relatively; each for itself, relatively and at least by so much. What they are in units of forwarding
/// is easily misjudged, their ratio less so: what is learnt of one says something of the other, which may not even be used
/// while it is believed to be dear.
const IDLE_PRIOR: f64 = 0.3;
const FORWARD_PRIOR: f64 = 0.5;
const COSTS_PRIOR: f64 = 3.0;
const COST_PRIOR: f64 = 0.3;
const LEAST_COST_PRIOR: f64 = 0.05;
/// How far what idling takes wanders from one interval to the next (standard deviation), since others use the machine, too:
/// what sampling costs shows when sampling changes, not in how busy the server was long before.
const DRIFT: f64 = 0.005;
/// What enacting a plan takes is believed to be this much of a CPU for an interval, give or take as much.
const DISTURBANCE: f64 = 0.1;
/// What is busy without sampling is at least by so much busy forwarding.
const LEAST_FORWARDING: f64 = 0.1;
/// Loads that differ by less, relatively, count as the same: the scatter of a load that stays, which counters and clocks
/// that are not read at one moment add to, would pass for packets that cost nothing.
const SAME_LOAD: f64 = 0.15;
/// How far observations are thought to be off, as shares of a CPU: at first, and at least.
const NOISE: f64 = 0.03;
const LEAST_NOISE: f64 = 0.005;
/// The residuals of one interval may be off by so many standard deviations; what is more is not the server's work.
const OUTLIER: f64 = 4.0;
/// A CPU as busy as this may have wanted more: such an observation says "at least".
const FULL: f64 = 0.97;
/// The 97.5th percentile of the normal distribution.
const NORMAL: f64 = 1.96;
/// A change enters plans when the interval excludes the value in use, and all values as near to it as this share of it.
/// Then a higher cost is what the estimate says, since too much sampling harms; a lower one is the interval's upper end,
/// since too little only lacks.
const MARGIN: f64 = 0.1;
/// The same, absolutely, where that is more.
const LEAST_MARGIN: f64 = 0.02;
/// α is above 0.
const LEAST_ALPHA: f64 = 0.01;

impl CostModel {
    /// Nothing is known but what is believed.
    #[must_use]
    pub fn new(believed: Costs) -> CostModel {
        CostModel { in_use: believed, learnt: None }
    }

    /// What plans reckon with.
    #[must_use]
    pub fn in_use(&self) -> Costs {
        self.in_use
    }

    /// An interval: what the server did, and which share of its CPU was busy. Answers whether the costs in use changed.
    pub fn handle(&mut self, work: Work, busy: f64) -> bool {
        let Work { forwarded, local, mirrored, imported, .. } = work;
        let all = [forwarded, local, mirrored, imported, busy];
        if !all.iter().all(|one| one.is_finite() && *one >= 0.0) {
            return false;
        }
        let Some(learnt) = &mut self.learnt else {
            // Before anything is forwarded there is no scale.
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

    /// α and β as the data has them, within their bounds.
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
    /// Before the first observation: all of it is forwarding, at those costs.
    fn new(believed: Costs, forwarded: f64, busy: f64) -> Learnt {
        let Costs { alpha, beta } = believed;
        let theta = [0.0, busy, alpha * busy, beta * busy, DISTURBANCE];
        let forward = (FORWARD_PRIOR * busy).powi(2);
        let spread = |cost: f64| (COST_PRIOR * cost).max(LEAST_COST_PRIOR) * busy;
        let (a, b) = (spread(alpha).powi(2), spread(beta).powi(2));
        // a and b are known in units of f: what f is off, they are.
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

    /// The coefficients that are likeliest where forwarding costs something; `None` where nothing seems to.
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
        // It is off by the noise and by what was not known; the noise's part of it is this.
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

/// The solution z of a positive definite system, by elimination; `None` where rounding has made it none.
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
