//! Network topology discovery time (RFC 8456, section 5.1.1): from the first discovery message that a
//! switch gets until the controller has one back over every link, in both directions.
//!
//! The RFC ends a trial when the northbound interface tells the deployed topology, and takes the time
//! of the last discovery message until then. Since probing goes on for ever, that time says when the
//! question was asked; here the end is the moment at which nothing was missing any more, and the
//! northbound interface, if there is one, has to confirm the topology afterwards (`confirmed_ms`).

use super::context::{Case, Context, Sheet};
use super::event::What;
use super::fabric::Fabric;
use super::helpers::Discovered;
use super::test::{Need, Test};
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
    needs: NEEDS,
    headline: &["discovery_ms", "discovery_messages", "confirmed_ms"],
    measure,
};
const NEEDS: &[Need] = &[];

fn measure(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    context.plan.layouts.clone().into_iter().map(|layout| measure_one(context, layout)).collect()
}

fn measure_one(context: &mut Context<'_>, layout: Layout) -> Result<Measurement, Error> {
    let case = Case::plain(TEST.name)
        .with("topology", layout.to_string())
        .with("switches", layout.switches());
    let mut sheet = Sheet::new(context, &case);
    for trial in 0..context.plan.trials {
        if !context.begin_trial(&case, trial)? {
            break;
        }
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

/// How far a controller's discovery came.
pub(super) enum Discovery {
    /// It sent no discovery message at all.
    Silent,
    /// Not every link, in the time there was.
    Partial { found: usize, links: usize },
    /// Every link: when the first discovery message came, when the last that was missing came back,
    /// and how many the controller had sent by then.
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

/// Asks the northbound interface until it tells the deployed topology, or the same thrice.
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
        Answer::Other(told) => sheet.finding(
            "northbound-differs",
            &format!("the northbound interface tells {told}, deployed are {deployed}"),
        ),
        Answer::CannotTell => {}
    }
    Ok(())
}

/// What there is to discover.
pub(super) fn deployed(fabric: &Fabric) -> Result<Discovered, Error> {
    fabric.call(|network, _| Discovered {
        switches: network.switches().len(),
        links: network.links().count(),
    })
}

/// What a northbound interface says in the end.
pub(super) enum Answer {
    /// What is deployed.
    Same,
    /// Something else, three times over or until the time was up.
    Other(Discovered),
    /// It has no way to tell.
    CannotTell,
}

/// Asks until the answer is `deployed`, or has been the same for as long as three questions take that
/// are `query_ms` apart. The first ones are nearer to each other: most controllers are done by then.
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
        let Some(told) = northbound.topology()? else { return Ok(Answer::CannotTell) };
        if told == *deployed {
            return Ok(Answer::Same);
        }
        let since = match last {
            Some((before, since)) if before == told => since,
            _ => Instant::now(),
        };
        last = Some((told, since));
        if since.elapsed() >= query * 2 || start.elapsed() >= limit {
            return Ok(Answer::Other(told));
        }
        std::thread::sleep(pause.min(query));
        pause *= 2;
    }
}

/// How long it is from the first question to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
