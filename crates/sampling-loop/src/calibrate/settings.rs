//! The settings of a calibration.

use super::borrowed::Target;
use super::mechanism::Mechanism;

/// The settings of a calibration: what is measured, how often and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Mechanisms to measure.
    pub mechanism: Vec<Mechanism>,
    /// Sampling rates as "one of N packets".
    pub one_in: Vec<u32>,
    /// Bytes of each sample of mechanisms that send sFlow.
    pub header: u32,
    /// How often each case is measured.
    pub repetitions: u16,
    /// Seconds of each measurement; both paths have half of it.
    pub seconds: f64,
    /// Frames that are sent together.
    pub batch: u16,
    /// Bytes of a frame, without the frame check sequence.
    pub length: u16,
    /// Seconds of each line over time.
    pub course: u16,
    /// Whether this is a quick look without a verdict; results say so.
    pub quick: bool,
    /// The running bridge to measure at; `None`: a lab's own.
    pub target: Option<Target>,
    /// The CPU that switch, hosts and samplers share; the last if none is given.
    pub cpu: Option<usize>,
    /// The seed for the order of cases.
    pub seed: u64,
}
