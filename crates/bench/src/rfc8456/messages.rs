//! The measurements of a controller with the load generator: cbench's latency and throughput modes,
//! which are also the asynchronous message processing time (RFC 8456, section 5.1.2), and the
//! processing rate (section 5.1.3).
//!
//! Every switch is alone here, and has its own hosts. Each PACKET_IN is matched to its own answer.

use super::context::{Case, Context};
use super::test::Test;
use super::trouble::Trouble;
use crate::arrivals::Arrivals;
use crate::error::Error;
use crate::load::{Kind, Load, Stream};
use crate::measure::{Collector, Measurement};
use crate::outcome::Outcome;
use crate::search::{Found, Goal, Search};
use crate::session::{Controllers, Session};
use crate::track::Counts;
use report::{Better, Finding};
use std::collections::BTreeSet;

pub(super) const LATENCY: Test = Test {
    name: "latency",
    section: "5.1.2",
    about: "one message in flight per switch (cbench's latency mode)",
    needs: &[],
    headline: &["mean_us", "p50_us", "p99_us", "failed_percent"],
    measure: |context| {
        let load = closed(context, 1, context.plan.trial_ms);
        Ok(vec![repeat(context, &Case::plain(LATENCY.name), &load)?])
    },
};
pub(super) const THROUGHPUT: Test = Test {
    name: "throughput",
    section: "",
    about: "many messages in flight per switch (cbench's throughput mode)",
    needs: &[],
    headline: &["rate_per_s", "p50_us", "p99_us"],
    measure: |context| {
        let load = closed(context, context.plan.outstanding, context.plan.trial_ms);
        Ok(vec![repeat(context, &Case::plain(THROUGHPUT.name), &load)?])
    },
};
pub(super) const RATE: Test = Test {
    name: "rate",
    section: "5.1.3",
    about: "the highest rate, and the highest without loss",
    needs: &[],
    headline: &["highest_rate_per_s", "loss_free_rate_per_s"],
    measure: |context| Ok(vec![rate(context)?]),
};

/// An open session whose hosts the controller has learned.
fn session(context: &Context<'_>) -> Result<Session, Error> {
    let setup = context.plan.setup(context.plan.switches);
    let stop = context.plan.stop.clone();
    let mut session = Session::open_until(setup, &Controllers::none(), stop)?;
    // The warm-up excludes the controller's work at the start of connections, and the learning of
    // hosts.
    let warm_up = Load { drain_ms: 500, ..closed(context, 1, 500) };
    session.run(&warm_up, &[])?;
    Ok(session)
}

fn closed(context: &Context<'_>, outstanding: u32, duration_ms: u64) -> Load {
    let arrivals = Arrivals::Closed { outstanding };
    Load::each(Kind::Response, context.plan.switches, &arrivals, duration_ms)
}

fn repeat(context: &mut Context<'_>, case: &Case, load: &Load) -> Result<Measurement, Error> {
    let _trouble = case.trouble.begin_attack()?;
    let pids: Vec<u32> = context.plan.pid.into_iter().collect();
    let mut session = session(context)?;
    let mut collector = Collector::new(&context.plan.name, &case.parameters);
    let mut trials = 0..context.plan.trials;
    while let Some(trial) = context.next_trial(case, &mut trials)? {
        let outcome = match session.run(load, &pids) {
            // The earlier trials count.
            Err(Error::Interrupted) if trial > 0 => break,
            outcome => outcome?,
        };
        collector.add(&outcome);
        collector.sample("failed_percent", "%", Better::Lower, failed_percent(&outcome));
    }
    Ok(collector.finish())
}

/// The RFC's (1 − Nrx/Ntx) · 100, of the messages that the steady streams sent.
fn failed_percent(outcome: &Outcome) -> f64 {
    let Counts { sent, received, .. } = outcome.counts();
    if sent == 0 { 0.0 } else { (1.0 - received as f64 / sent as f64) * 100.0 }
}

/// Measures latency at the steady rate, with or without a disturbance.
pub(super) fn steady(context: &mut Context<'_>, case: &Case) -> Result<Measurement, Error> {
    let plan = context.plan;
    let load = Load::constant(Kind::Response, plan.switches, plan.steady_rate, plan.trial_ms);
    let mut load = Load { seed: plan.seed, ..load };
    if let Trouble::Malformed { per_second: rate } = case.trouble {
        let arrivals = Arrivals::Constant { rate };
        load.streams.push(Stream::new(0, Kind::Malformed, arrivals).as_background());
        // Malformed messages have no answer, so their end cannot be seen.
        load.drain_ms = 500;
    }
    repeat(context, case, &load)
}

fn rate(context: &mut Context<'_>) -> Result<Measurement, Error> {
    let case = Case::plain(RATE.name);
    let mut collector = Collector::new(&context.plan.name, &case.parameters);
    let mut remarks = BTreeSet::new();
    let mut session = session(context)?;
    let mut trials = 0..context.plan.trials;
    while context.next_trial(&case, &mut trials)?.is_some() {
        for (goal, name) in
            [(Goal::Highest, "highest_rate_per_s"), (Goal::LossFree, "loss_free_rate_per_s")]
        {
            let search = Search {
                kind: Kind::Response,
                tenants: context.plan.switches,
                low: LOWEST_RATE,
                high: context.plan.highest_rate,
                resolution: 0.05,
                trial_ms: context.plan.trial_ms.min(1_000),
                goal,
            };
            let found = search.run(&mut session, &mut |_| {})?;
            if found.is_partial {
                continue;
            }
            if let Some(rate) = found.rate {
                collector.sample(name, "1/s", Better::Higher, rate);
            }
            remarks.extend(remark(name, &found));
        }
    }
    let mut measurement = collector.finish();
    measurement.findings.extend(remarks.into_iter().map(|(code, text)| Finding {
        code: code.to_owned(),
        text: format!("{} {}: {text}", context.plan.name, case.label()),
    }));
    Ok(measurement)
}

/// The lowest rate that is tried, per second.
const LOWEST_RATE: f64 = 100.0;

/// The reason why a found rate is not the controller's own limit, or why no rate was found.
fn remark(name: &str, found: &Found) -> Option<(&'static str, String)> {
    if found.at_upper_bound {
        return Some((
            "at-upper-bound",
            format!("{name}: the highest rate that was tried is served"),
        ));
    }
    if found.limited_by_generator() {
        let text =
            format!("{name}: in some trial the generator, not the controller, was the limit");
        return Some(("generator-behind", text));
    }
    let text = format!("{name}: in some trial not even {LOWEST_RATE}/s were served");
    found.rate.is_none().then_some(("at-lower-bound", text))
}
