//! Network topology discovery time (RFC 8456, section 5.1.1): the time from the first discovery
//! message that a switch gets until the controller has received a discovery message over every
//! link, in both directions.
//!
//! The RFC ends a trial when the northbound interface reports the deployed topology, and takes the
//! time of the last discovery message before this report. Since probing never ends, that time only
//! shows when the request was sent. Here the end is the moment at which no link was missing any
//! more, and the northbound interface, if any, must confirm the topology afterwards
//! (`confirmed_ms`).

use super::context::{Case, Context, Sheet};
use super::event::What;
use super::fabric::Fabric;
use super::helpers::Discovered;
use super::test::Test;
use crate::error::Error;
use crate::measure::Measurement;
use emulate::{Layout, Point, SwitchIndex};
use report::Better;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(super) const TEST: Test = Test {
    name: "discovery-time",
    section: "5.1.1",
    about: "from the first discovery message until every link was discovered",
    needs: &[],
    headline: &["discovery_ms", "discovery_messages", "confirmed_ms"],
    measure,
};

fn measure(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    context.plan.layouts.clone().into_iter().map(|layout| measure_one(context, layout)).collect()
}

fn measure_one(context: &mut Context<'_>, layout: Layout) -> Result<Measurement, Error> {
    let case = Case::plain(TEST.name)
        .with("topology", layout.to_string())
        .with("switches", layout.switches());
    let mut sheet = Sheet::new(context, &case);
    let mut trials = 0..context.plan.trials;
    while context.next_trial(&case, &mut trials)?.is_some() {
        let fabric = Fabric::raise(context.plan, layout, &[context.plan.address])?;
        match discover(&fabric, context.limit())? {
            Discovery::Silent => {
                sheet.finding("no-discovery", "the controller sent no discovery message");
                break;
            }
            Discovery::Partial { found, links } => sheet.finding(
                "discovery-incomplete",
                &format!(
                    "{found} of {links} links (each direction counted) were discovered in time"
                ),
            ),
            Discovery::Complete { first, last, messages } => {
                sheet.time("discovery_ms", last - first);
                let count = messages as f64;
                sheet.sample("discovery_messages", "", Better::Neither, count);
                confirm(context, &fabric, first, &mut sheet)?;
            }
        }
        drop(fabric);
        context.rest();
    }
    Ok(sheet.finish())
}

/// The progress of a controller's discovery.
pub(super) enum Discovery {
    /// The controller sent no discovery message.
    Silent,
    /// Some links were not discovered within the limit.
    Partial { found: usize, links: usize },
    /// All links were discovered: the time of the first discovery message, the time when the last
    /// missing message came back, and the number of discovery messages that the controller had sent
    /// until then.
    Complete { first: u64, last: u64, messages: usize },
}

/// Waits until every link was discovered.
pub(super) fn discover(fabric: &Fabric, limit: Duration) -> Result<Discovery, Error> {
    let mut missing = fabric.link_ends()?;
    let links = missing.len();
    let (mut first, mut messages) = (None, 0);
    let last = fabric.watch(0, limit, |event| {
        match event.what {
            What::PacketOut { discovery: true } => {
                first.get_or_insert(event.at);
                messages += 1;
            }
            What::PacketIn { in_port, discovery: true, .. } => {
                missing.remove(&Point { switch: SwitchIndex(event.place), port: in_port });
            }
            _ => {}
        }
        match first {
            Some(_) if missing.is_empty() => ControlFlow::Break(event.at),
            _ => ControlFlow::Continue(()),
        }
    })?;
    Ok(match (first, last) {
        (None, _) => Discovery::Silent,
        (Some(_), None) => Discovery::Partial { found: links - missing.len(), links },
        (Some(first), Some(last)) => Discovery::Complete { first, last: last.max(first), messages },
    })
}

/// Queries the northbound interface until the interface reports the deployed topology, or the same
/// topology three times.
fn confirm(
    context: &mut Context<'_>,
    fabric: &Fabric,
    first: u64,
    sheet: &mut Sheet,
) -> Result<(), Error> {
    let Some(northbound) = context.helpers.northbound.as_mut() else { return Ok(()) };
    let deployed = deployed(fabric)?;
    match ask_until(northbound.as_mut(), &deployed, context.plan.query_ms, context.plan.limit_ms)? {
        Answer::Same => sheet.time("confirmed_ms", fabric.now() - first),
        Answer::Other(reported) => sheet.finding(
            "northbound-differs",
            &format!("the northbound interface reports {reported}, deployed are {deployed}"),
        ),
        Answer::NoTopology => {}
    }
    Ok(())
}

/// The topology that the controller has to discover.
pub(super) fn deployed(fabric: &Fabric) -> Result<Discovered, Error> {
    fabric.call(|network, _| Discovered {
        switches: network.switches().len(),
        links: network.links().count(),
    })
}

/// The final answer of a northbound interface.
pub(super) enum Answer {
    /// The deployed topology.
    Same,
    /// Another topology, three times or until the time limit.
    Other(Discovered),
    /// The interface cannot report a topology.
    NoTopology,
}

/// Sends queries until the answer is `deployed`, or has been the same for the time of three queries
/// with the distance `query_ms`. The first queries have shorter distances, because most controllers
/// finish soon.
pub(super) fn ask_until(
    northbound: &mut dyn super::helpers::Northbound,
    deployed: &Discovered,
    query_ms: u64,
    limit_ms: u64,
) -> Result<Answer, Error> {
    let (query, limit) = (Duration::from_millis(query_ms), Duration::from_millis(limit_ms));
    let start = Instant::now();
    let mut pause = FIRST_PAUSE;
    let mut last: Option<(Discovered, Instant)> = None;
    loop {
        let Some(reported) = northbound.topology()? else { return Ok(Answer::NoTopology) };
        if reported == *deployed {
            return Ok(Answer::Same);
        }
        let since = match last {
            Some((before, since)) if before == reported => since,
            _ => Instant::now(),
        };
        last = Some((reported, since));
        if since.elapsed() >= query * 2 || start.elapsed() >= limit {
            return Ok(Answer::Other(reported));
        }
        std::thread::sleep(pause.min(query));
        pause *= 2;
    }
}

/// The time from the first query to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
