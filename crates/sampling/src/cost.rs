//! The cost model (section III-C of the paper).
//!
//! Forwarding a packet costs a server one unit of its capacity. Sampling the packet locally costs α more, mirroring the
//! packet to another server β more. Receiving a mirrored packet costs β as well, so processing another server's packet
//! costs α + β.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The costs of sampling for one server, in units of forwarding one packet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// α: to sample a packet and process it here; above 0.
    pub alpha: f64,
    /// β: to mirror a packet to another server, and equally to receive one; at least 0.
    pub beta: f64,
}

/// The largest cost that is accepted: a sampled packet does not cost as much as a million forwarded packets.
pub const LARGEST_COST: f64 = 1e6;

impl Costs {
    /// The paper's measured costs of sFlow in Open vSwitch and of port mirroring (section IV-A).
    pub const PUBLISHED: Costs = Costs { alpha: 1.54, beta: 0.46 };

    /// Valid costs.
    ///
    /// # Errors
    /// [`Error::Input`] unless α is within (0, 10⁶] and β within [0, 10⁶].
    pub fn new(alpha: f64, beta: f64) -> Result<Costs> {
        if !(alpha > 0.0 && alpha <= LARGEST_COST) {
            return Err(Error::input("alpha", format!("{alpha} is not within (0, 1000000]")));
        }
        if !(0.0..=LARGEST_COST).contains(&beta) {
            return Err(Error::input("beta", format!("{beta} is not within 0 to 1000000")));
        }
        Ok(Costs { alpha, beta })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_costs_are_refused() {
        for (alpha, beta, fine) in [
            (1.54, 0.46, true),
            (1.0, 0.0, true),
            (0.0, 0.1, false),
            (-1.0, 0.1, false),
            (f64::NAN, 0.1, false),
            (f64::INFINITY, 0.1, false),
            (1.0, -0.1, false),
            (1.0, f64::NAN, false),
            (1.0, 1e7, false),
        ] {
            assert_eq!(Costs::new(alpha, beta).is_ok(), fine, "{alpha} {beta}");
        }
    }

    #[test]
    fn published_costs_give_the_throughput_drops_of_the_paper() {
        // Section III-B: all packets to sFlow leave about 40 % of the throughput, all mirrored about 70 %.
        let share = |cost: f64| 1.0 / (1.0 + cost);
        assert!((share(Costs::PUBLISHED.alpha) - 0.394).abs() < 1e-3);
        assert!((share(Costs::PUBLISHED.beta) - 0.685).abs() < 1e-3);
    }
}
