//! Network re-provisioning time (RFC 8456, section 5.4.2): packets are sent in both directions
//! between the traffic ports, and a link on their path is cut. For each direction the gap is the
//! time between the last arrival before the cut and the first arrival after the cut. The figure is
//! the mean of the two gaps.
//!
//! The RFC counts lost packets of the forward direction at the sending port. Here lost packets are
//! counted at the port where the packets should have arrived. `control_ms` is the re-provisioning
//! time as the controller sees it: from the first notification until the last FLOW_MOD.

use super::context::{Case, Context, Sheet};
use super::event::What;
use super::fabric::{End, Fabric};
use super::gaps::{arrivals, longest_gap, lost};
use super::path_time::announce;
use super::test::{Need, Test};
use crate::error::Error;
use crate::measure::Measurement;
use emulate::Point;
use report::Better;
use std::time::{Duration, Instant};

pub(super) const TEST: Test = Test {
    name: "reprovisioning",
    section: "5.4.2",
    about: "the gap in traffic both ways when a link on its way is cut",
    needs: &[Need::Loop],
    headline: &[
        "reprovisioning_ms",
        "forward_ms",
        "reverse_ms",
        "control_ms",
        "lost_forward",
        "lost_reverse",
    ],
    measure,
};

/// Traffic in both directions, with one packet in each direction per spacing.
struct Traffic {
    probe: super::traffic::Probe,
    next_tag: u64,
    spacing: Duration,
    bytes: usize,
    /// The path of the last packet from the near port.
    hops: Vec<Point>,
}

impl Traffic {
    fn send_for(
        &mut self,
        fabric: &Fabric,
        duration: Duration,
        mut done: impl FnMut(&Fabric) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let start = Instant::now();
        let mut due = start;
        while start.elapsed() < duration {
            if done(fabric)? {
                return Ok(true);
            }
            let tag = self.next_tag;
            self.next_tag += 1;
            let (_, hops) = fabric.inject(End::Near, vec![self.probe.there(tag, self.bytes)])?;
            self.hops = hops;
            fabric.inject(End::Far, vec![self.probe.back(tag, self.bytes)])?;
            due += self.spacing;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        done(fabric)
    }
}

fn measure(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    let layout = context.plan.layout();
    let case = Case::plain(TEST.name).with("topology", layout.to_string());
    let mut sheet = Sheet::new(context, &case);
    let mut trials = 0..context.plan.trials;
    while context.next_trial(&case, &mut trials)?.is_some() {
        let fabric = Fabric::raise(context.plan, layout, &[context.plan.address])?;
        // The controller must know the topology before the controller can find another path.
        super::discovery_time::discover(&fabric, context.limit())?;
        context.rest();
        cut(context, &fabric, &mut sheet)?;
        drop(fabric);
        context.rest();
    }
    Ok(vec![sheet.finish()])
}

fn cut(context: &mut Context<'_>, fabric: &Fabric, sheet: &mut Sheet) -> Result<(), Error> {
    let probe = context.probe();
    announce(fabric, context, &[(End::Far, probe.far), (End::Near, probe.near)])?;
    fabric.forget();
    let spacing = Duration::from_secs_f64(1.0 / context.plan.traffic_rate);
    let bytes = context.plan.frame_bytes;
    let mut traffic = Traffic { probe, next_tag: 0, spacing, bytes, hops: Vec::new() };
    let flows = |fabric: &Fabric| both_arrived_since(fabric, 0, 0);
    let established = traffic.send_for(fabric, context.limit(), flows)?;
    if !established {
        sheet.finding("path-not-provisioned", "packets did not arrive in both directions");
        return Ok(());
    }
    traffic.send_for(fabric, context.trial(), |_| Ok(false))?;
    // The port where the packet entered its second switch is the end of the link that the packet
    // used.
    let Some(link) = traffic.hops.get(1).copied() else {
        sheet.finding("no-provisioning", "packets do not go along a path of flow entries");
        return Ok(());
    };
    let mark = fabric.mark();
    let failure = fabric.call(move |network, now| {
        network.set_link_up(link, false);
        now
    })?;
    let back = |fabric: &Fabric| both_arrived_since(fabric, mark, failure + 1);
    if !traffic.send_for(fabric, context.limit(), back)? {
        sheet.finding("not-reprovisioned", "packets did not arrive again in both directions");
        return Ok(());
    }
    // Traffic goes on for the remaining work of the controller.
    traffic.send_for(fabric, Duration::from_millis(200), |_| Ok(false))?;
    let (forward, reverse) = (arrivals(fabric, 0, End::Far)?, arrivals(fabric, 0, End::Near)?);
    let times = |of: &[(u64, u64)]| of.iter().map(|(at, _)| *at).collect::<Vec<u64>>();
    let (there, here) =
        (longest_gap(&times(&forward), failure), longest_gap(&times(&reverse), failure));
    sheet.time("forward_ms", there);
    sheet.time("reverse_ms", here);
    sheet.time("reprovisioning_ms", there.midpoint(here));
    sheet.time("spacing_ms", spacing.as_nanos() as u64);
    sheet.sample("lost_forward", "", Better::Lower, lost(&forward) as f64);
    sheet.sample("lost_reverse", "", Better::Lower, lost(&reverse) as f64);
    let events = fabric.events(0)?;
    let mut after = events.iter().filter(|event| event.at >= failure);
    let notified = after.find(|event| event.what == What::PortStatus).map(|event| event.at);
    let last = after.filter(|event| event.what == What::Provisioned).map(|event| event.at).max();
    if let (Some(notified), Some(last)) = (notified, last) {
        sheet.time("control_ms", last.saturating_sub(notified));
    }
    Ok(())
}

/// Whether packets have arrived at both ends from this time on, in the events behind `mark`.
fn both_arrived_since(fabric: &Fabric, mark: usize, from: u64) -> Result<bool, Error> {
    let at = |end| {
        let arrivals = arrivals(fabric, mark, end)?;
        Ok::<_, Error>(arrivals.last().is_some_and(|(at, _)| *at >= from))
    };
    Ok(at(End::Near)? && at(End::Far)?)
}
