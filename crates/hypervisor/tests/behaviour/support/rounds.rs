//! The workloads that the examples measure, in rounds.

use super::request;
use super::warm::{WarmCore, median, seconds};
use openflow::Version;
use std::time::Duration;

/// The rounds of a measurement: the CPU time of the core, the messages to the switch, and the longest call into the
/// core. All tenants of the event loop wait for a call, so the longest call is the delay of another tenant.
#[derive(Default)]
pub struct Rounds {
    times: Vec<f64>,
    sent: Vec<f64>,
    longest: Vec<f64>,
}

impl Rounds {
    /// The names of the columns that [`show`](Self::show) gives.
    pub const COLUMNS: &str = "  CPU ms to the switch  longest call us";

    /// Measures one round.
    pub fn measure(&mut self, core: &mut WarmCore, act: impl FnOnce(&mut WarmCore)) {
        let before = core.south;
        core.longest = Some(Duration::ZERO);
        self.times.push(seconds(|| act(core)));
        self.sent.push((core.south - before) as f64);
        self.longest.push(core.longest.unwrap_or_default().as_secs_f64());
    }

    /// The medians of the rounds.
    pub fn show(&mut self) -> String {
        let time = median(&mut self.times) * 1e3;
        let longest = median(&mut self.longest) * 1e6;
        format!("{time:>8.1} {:>13.0} {longest:>16.0}", median(&mut self.sent))
    }
}

/// The nth of many FLOW_MODs, each of which adds another entry.
pub fn nth_add(version: Version, n: u32) -> Vec<u8> {
    let (high, low) = (n / 250, n % 250);
    let words = format!("flow add match=ip,nw_src=10.1.{high}.{low} priority=5 actions=output:2");
    request(version, n, &words)
}
