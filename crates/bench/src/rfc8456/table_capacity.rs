//! Forwarding table capacity (RFC 8456, section 5.2.3): the number of flow entries that a
//! controller keeps.
//!
//! Reactive: packets are sent between new stations from both sides, at the steady rate, until the
//! number of entries is the same at three checks in a row. Proactive: different entries are ordered
//! through the northbound interface, until the interface refuses an entry or no more entries
//! arrive. The emulated switches' tables have space for a million entries each, and the entries are
//! counted in these tables, not by a query to the controller.

use super::context::{Case, Context, Sheet};
use super::fabric::{End, Fabric};
use super::path_time::{northbound, orders};
use super::test::Test;
use super::traffic::{Probe, announcement};
use crate::error::Error;
use crate::measure::Measurement;
use report::Better;
use std::time::{Duration, Instant};

pub(super) const TEST: Test = Test {
    name: "table-capacity",
    section: "5.2.3",
    about: "how many flow entries it keeps",
    needs: &[],
    headline: &["flow_entries"],
    measure,
};

/// The time between two groups of packets or orders.
const TURN: Duration = Duration::from_millis(10);
/// The number of checks without a change that ends a trial.
const LOOKS: usize = 3;

fn measure(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    let mut measured = vec![repeat(context, &mut Way::Reactive { announced: Vec::new() })?];
    if context.helpers.northbound.is_some() {
        measured.push(repeat(context, &mut Way::Proactive)?);
    }
    Ok(measured)
}

/// The way by which more entries are made.
enum Way {
    /// By packets; these pairs of stations have been announced, and send packets next.
    Reactive { announced: Vec<Probe> },
    /// By northbound orders.
    Proactive,
}

impl Way {
    fn name(&self) -> &'static str {
        match self {
            Self::Reactive { .. } => "reactive",
            Self::Proactive => "proactive",
        }
    }

    /// Starts this many more pairs; returns whether the controller accepts no more.
    fn more(
        &mut self,
        context: &mut Context<'_>,
        fabric: &Fabric,
        pairs: usize,
    ) -> Result<bool, Error> {
        let probes: Vec<Probe> = (0..pairs).map(|_| context.probe()).collect();
        match self {
            Self::Reactive { announced } => {
                let bytes = context.plan.frame_bytes;
                let talking = std::mem::replace(announced, probes);
                let there = talking.iter().map(|probe| probe.there(0, bytes)).collect();
                fabric.inject(End::Near, there)?;
                let back = talking.iter().map(|probe| probe.back(0, bytes)).collect();
                fabric.inject(End::Far, back)?;
                let near = announced.iter().map(|probe| announcement(probe.near)).collect();
                fabric.inject(End::Near, near)?;
                let far = announced.iter().map(|probe| announcement(probe.far)).collect();
                fabric.inject(End::Far, far)?;
                Ok(false)
            }
            Self::Proactive => {
                let flows = probes.iter().map(|probe| orders(fabric, *probe));
                let flows = flows.collect::<Result<Vec<_>, _>>()?.concat();
                Ok(!flows.is_empty() && northbound(context)?.install(&flows).is_err())
            }
        }
    }
}

fn repeat(context: &mut Context<'_>, way: &mut Way) -> Result<Measurement, Error> {
    let case = Case::plain(TEST.name).with("way", way.name());
    let mut sheet = Sheet::new(context, &case);
    let most = context.plan.most_flows;
    let mut trials = 0..context.plan.trials;
    while context.next_trial(&case, &mut trials)?.is_some() {
        let fabric = Fabric::raise(context.plan, context.plan.layout(), &[context.plan.address])?;
        context.rest();
        fabric.set_muted(matches!(way, Way::Proactive))?;
        let capacity = fill(context, &fabric, most, way)?;
        sheet.sample("flow_entries", "", Better::Higher, capacity as f64);
        if capacity >= most {
            let text = format!("it keeps all {most} entries that were tried");
            sheet.finding("at-upper-bound", &text);
        }
        sheet = sheet.with_closed_connections(&fabric);
        drop(fabric);
        context.rest();
    }
    Ok(sheet.finish())
}

/// Goes on until the number of entries does not change any more, or is `most`. Returns the number
/// of entries without the entries that the controller installs by itself.
fn fill(
    context: &mut Context<'_>,
    fabric: &Fabric,
    most: usize,
    way: &mut Way,
) -> Result<usize, Error> {
    let before = fabric.flow_count()?;
    let query = Duration::from_millis(context.plan.query_ms);
    // A pair causes about four PACKET_INs at each switch.
    let questions = 4 * context.plan.layout().switches();
    let per_turn = context.plan.steady_rate * TURN.as_secs_f64() / questions as f64;
    let (mut asked, mut due) = (0.0, 0.0);
    let (mut count, mut same) = (0, 0);
    let mut next_look = Instant::now() + query;
    loop {
        due += per_turn;
        let pairs = f64::floor(due - asked);
        asked += pairs;
        let refused = way.more(context, fabric, pairs as usize)?;
        std::thread::sleep(TURN);
        // The entries are counted in the tables, so the log is deleted before the log grows.
        fabric.forget();
        if Instant::now() < next_look && !refused {
            continue;
        }
        next_look = Instant::now() + query;
        let now = fabric.flow_count()?.saturating_sub(before);
        same = if now == count { same + 1 } else { 1 };
        count = now;
        if refused || same >= LOOKS || count >= most {
            return Ok(count.min(most));
        }
    }
}
