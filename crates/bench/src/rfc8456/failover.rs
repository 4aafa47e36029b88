//! Controller failover time (RFC 8456, section 5.4.1): switches are connected to two controllers, or to a cluster of
//! more controllers, and the active controller ends. The figure is the longest gap in a one-way stream of packets. Each
//! packet has another source, so each packet needs a decision of a controller.
//!
//! `gap_ms` is the time between two arrivals at the far traffic port. The first arrival is at or before the failure. If
//! two controllers are both active, no packet is lost, and the gap is the distance of two packets (`spacing_ms`). When
//! a process ends, its peers notice the end of the connection at once. Keepalives detect a controller or switch that
//! only stops answering; the time of this detection would be another figure.

use super::context::{Case, Context, Sheet};
use super::fabric::{End, Fabric};
use super::gaps::{arrivals, longest_gap, lost};
use super::path_time::announce;
use super::test::{Need, Test};
use super::traffic::Probe;
use crate::error::Error;
use crate::measure::Measurement;
use report::Better;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

pub(super) const TEST: Test = Test {
    name: "failover",
    section: "5.4.1",
    about: "the gap in traffic that needs decisions when the active controller ends",
    needs: &[Need::Backup],
    headline: &["gap_ms", "lost_packets", "spacing_ms"],
    measure,
};

fn measure(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    if context.plan.backups.is_empty() {
        return Err(Error::System("there is no second controller".to_owned()));
    }
    let case = Case::plain(TEST.name).with("failure", "process ends");
    // Most clusters are pairs, so figures without this parameter mean a pair.
    let case = match context.plan.backups.len() {
        1 => case,
        others => case.with("controllers", (others + 1) as u64),
    };
    let mut sheet = Sheet::new(context, &case);
    let mut controllers = vec![context.plan.address];
    controllers.extend(&context.plan.backups);
    let mut trials = 0..context.plan.trials;
    while context.next_trial(&case, &mut trials)?.is_some() {
        let fabric = Fabric::raise(context.plan, context.plan.layout(), &controllers)?;
        context.rest();
        let failed = fail_over(context, &fabric, &mut sheet);
        drop(fabric);
        operator(context)?.restore()?;
        failed?;
        wait_listening(context)?;
        context.rest();
    }
    Ok(vec![sheet.finish()])
}

fn operator<'a>(
    context: &'a mut Context<'_>,
) -> Result<&'a mut dyn super::helpers::Operator, Error> {
    match &mut context.helpers.operator {
        Some(operator) => Ok(operator.as_mut()),
        None => Err(Error::System("there is nobody to end the active controller".to_owned())),
    }
}

fn fail_over(context: &mut Context<'_>, fabric: &Fabric, sheet: &mut Sheet) -> Result<(), Error> {
    let far = context.station();
    announce(fabric, context, &[(End::Far, far)])?;
    fabric.forget();
    let mut stream = Stream { far, next_tag: 0, spacing: spacing(context) };
    let trial = context.trial();
    stream.send_for(context, fabric, trial, |_| false)?;
    if arrivals(fabric, 0, End::Far)?.is_empty() {
        sheet.finding("path-not-provisioned", "no packet arrived before the failure");
        return Ok(());
    }
    let failure = fabric.now();
    operator(context)?.fail()?;
    // Watches at least for one trial's time, because the effect of the failure may be late, and then until packets
    // arrive again.
    let before = fabric.mark();
    stream.send_for(context, fabric, trial, |_| false)?;
    let limit = context.limit();
    let last = fabric.now();
    let came_back = |fabric: &Fabric| match arrivals(fabric, before, End::Far).as_deref() {
        Ok([.., (at, _)]) => *at >= last,
        _ => false,
    };
    stream.send_for(context, fabric, limit, came_back)?;
    let mut first_arrivals = arrivals(fabric, 0, End::Far)?;
    let mut seen = BTreeSet::new();
    first_arrivals.retain(|(_, tag)| seen.insert(*tag));
    if !came_back(fabric) {
        sheet.finding("no-failover", "no packet arrived any more after the failure");
        return Ok(());
    }
    let times: Vec<u64> = first_arrivals.iter().map(|(at, _)| *at).collect();
    sheet.time("gap_ms", longest_gap(&times, failure));
    sheet.time("spacing_ms", stream.spacing.as_nanos() as u64);
    sheet.sample("lost_packets", "", Better::Lower, lost(&first_arrivals) as f64);
    Ok(())
}

fn spacing(context: &Context<'_>) -> Duration {
    Duration::from_secs_f64(1.0 / context.plan.traffic_rate)
}

/// One-way packets, each with its own source.
struct Stream {
    far: u32,
    next_tag: u64,
    spacing: Duration,
}

impl Stream {
    fn send_for(
        &mut self,
        context: &mut Context<'_>,
        fabric: &Fabric,
        duration: Duration,
        done: impl Fn(&Fabric) -> bool,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let mut due = start;
        while start.elapsed() < duration && !done(fabric) {
            let probe = Probe { near: context.station(), far: self.far };
            let packet = probe.there(self.next_tag, context.plan.frame_bytes);
            self.next_tag += 1;
            fabric.inject(End::Near, vec![packet])?;
            due += self.spacing;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}

/// Waits until the restarted controller accepts connections.
fn wait_listening(context: &Context<'_>) -> Result<(), Error> {
    let deadline = Instant::now() + context.limit();
    while std::net::TcpStream::connect(context.plan.address).is_err() {
        if Instant::now() >= deadline {
            let text = format!("it does not listen on {} again", context.plan.address);
            return Err(Error::System(text));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
