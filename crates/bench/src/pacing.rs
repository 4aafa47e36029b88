//! Decides how the threads of the generator wait for the next message.
//!
//! The kernel wakes a sleeping thread some 50 µs late, so a thread spins for the last part of a wait if spinning is
//! allowed. Beside a real switch a spinning thread takes a core from the switch and the system under test. At low rates
//! cores are idle anyway, and at high rates the thread only sleeps. The rule depends on the rate and the number of
//! cores alone, so all systems under one load have the same pacing.

use crate::load::Load;
use crate::plan::{Setup, Topology};

/// The time between two groups of messages to real switches.
pub(crate) const GROUP_NS: u64 = 50_000;
/// The highest rate at which threads spin beside a real switch, in messages per second. Spinning then takes at most
/// half a core: [`SPIN_NS`] per message.
pub(crate) const SPIN_RATE: f64 = 5_000.0;
/// The time for which a thread spins before a message beside a real switch: longer than the usual delay of a wake-up,
/// which is some 50 µs on a virtual machine with 2 cores.
const SPIN_NS: u64 = 100_000;

/// How a thread waits for the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// The thread spins for this time in ns before each message.
    Spin(u64),
    /// The thread only sleeps. Messages that are due more often than every [`GROUP_NS`] are sent in groups, one every
    /// `GROUP_NS`.
    Groups,
}

impl Pacing {
    /// The pacing of a run on this machine.
    pub(crate) fn of(setup: &Setup, load: &Load) -> Pacing {
        match setup.topology {
            Topology::Interfaces { .. } => {
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                Pacing::beside_a_switch(load.mean_rate(), cores)
            }
            _ => Pacing::Spin(setup.spin_ns),
        }
    }

    /// The pacing beside a real switch. `rate` is `None` without a schedule.
    fn beside_a_switch(rate: Option<f64>, cores: usize) -> Pacing {
        match rate {
            Some(rate) if rate <= SPIN_RATE && cores >= 2 => Pacing::Spin(SPIN_NS),
            _ => Pacing::Groups,
        }
    }

    /// The time that a thread sleeps if the next message is due in `left` ns.
    pub(crate) fn sleep_ns(self, left: u64) -> u64 {
        match self {
            Pacing::Spin(ns) => left.saturating_sub(ns),
            Pacing::Groups if left < GROUP_NS / 2 => GROUP_NS,
            Pacing::Groups => left,
        }
    }

    /// The time for which the thread spins before each message; 0 if the thread only sleeps.
    pub(crate) fn spin_us(self) -> f64 {
        match self {
            Pacing::Spin(ns) => ns as f64 / 1e3,
            Pacing::Groups => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use crate::load::{Kind, Stream};

    #[test]
    fn with_a_real_switch_threads_spin_at_low_rates_on_two_or_more_cores() {
        let spin = Pacing::Spin(SPIN_NS);
        for (rate, cores, expected) in [
            (Some(20.0), 2, spin),
            (Some(SPIN_RATE), 2, spin),
            (Some(SPIN_RATE), 64, spin),
            (Some(SPIN_RATE + 1.0), 2, Pacing::Groups),
            (Some(60_000.0), 64, Pacing::Groups),
            (Some(20.0), 1, Pacing::Groups),
            (None, 2, Pacing::Groups),
        ] {
            assert_eq!(Pacing::beside_a_switch(rate, cores), expected, "{rate:?} {cores}");
        }
    }

    #[test]
    fn the_rate_of_a_load_is_the_sum_of_the_rates_of_its_streams() {
        let rate = |load: &Load| load.mean_rate().map(f64::round);
        let mut load = Load::constant(Kind::Echo, 20, 5_000.0, 1_000);
        assert_eq!(rate(&load), Some(5_000.0));
        load.streams.push(Stream::new(0, Kind::Echo, Arrivals::Poisson { rate: 1_000.0 }));
        assert_eq!(rate(&load), Some(6_000.0));
        load.streams.push(Stream::new(0, Kind::Echo, Arrivals::Closed { outstanding: 1 }));
        assert_eq!(rate(&load), None, "a stream without a schedule");
    }

    #[test]
    fn sleep_time_before_a_message_depends_on_the_pacing_mode() {
        let ports = Topology::Interfaces { ports: Vec::new(), switches: 1, dpid: 1 };
        let fast = Load::constant(Kind::Echo, 1, 60_000.0, 1_000);
        let real = Pacing::of(&Setup::new(ports, 1), &fast);
        assert_eq!(real.sleep_ns(40_000), 40_000, "25,000 messages per second: each for itself");
        assert_eq!(real.sleep_ns(16_000), GROUP_NS, "60,000 messages per second: groups of three");
        let emulated = Pacing::of(&Setup::new(Topology::Direct, 1), &fast);
        assert_eq!(emulated.sleep_ns(40_000), 10_000);
        assert_eq!(emulated.sleep_ns(16_000), 0);
        assert_eq!(Pacing::Spin(SPIN_NS).sleep_ns(1_000_000), 900_000);
    }
}
