//! Network discovery size (RFC 8456, section 5.2.2): the largest network that a controller
//! discovers completely.
//!
//! The RFC changes the number of devices one by one. Here the number is doubled until discovery is
//! not complete within the limit, and then a bisection follows. If a northbound interface can
//! report the topology, its report decides whether discovery is complete. Otherwise discovery is
//! complete if a discovery message came back over every link, in both directions.

use super::context::{Case, Context, Sheet};
use super::discovery_time::{Answer, Discovery, ask_until, deployed, discover};
use super::fabric::Fabric;
use super::sessions::highest;
use super::test::Test;
use crate::error::Error;
use crate::measure::Measurement;
use emulate::Layout;
use report::Better;

pub(super) const TEST: Test = Test {
    name: "discovery-size",
    section: "5.2.2",
    about: "the largest network that is discovered whole",
    needs: &[],
    headline: &["switches", "links"],
    measure,
};

fn measure(context: &mut Context<'_>) -> Result<Vec<Measurement>, Error> {
    let shape = context.plan.layout();
    let case = Case::plain(TEST.name).with("shape", shape.to_string());
    let mut sheet = Sheet::new(context, &case);
    let most = usize::from(context.plan.most_switches);
    let mut trials = 0..context.plan.trials;
    while context.next_trial(&case, &mut trials)?.is_some() {
        let mut links = 0;
        let mut silent = false;
        let size = highest(most, |wanted| {
            let layout = shape.with_switches(wanted as u16);
            // The shape has a smallest size; below this size there is nothing to discover.
            if layout.switches() > wanted || layout.switches() < 2 {
                return Ok(true);
            }
            context.say(&format!("{layout}"));
            let found = is_discovered(context, layout)?;
            context.rest();
            silent |= found == Found::Silent;
            if let Found::Whole { links: these } = found {
                links = links.max(these);
            }
            Ok::<_, Error>(matches!(found, Found::Whole { .. }))
        })?;
        if silent && links == 0 {
            sheet.finding("no-discovery", "the controller sent no discovery message");
            break;
        }
        let size = if links == 0 { 0 } else { size };
        sheet.sample("switches", "", Better::Higher, size as f64);
        sheet.sample("links", "", Better::Higher, links as f64);
        if size == most {
            sheet.finding(
                "at-upper-bound",
                &format!("it discovers all {most} switches that were tried"),
            );
        }
    }
    Ok(vec![sheet.finish()])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Silent,
    Partial,
    /// Links are counted in each direction.
    Whole {
        links: usize,
    },
}

fn is_discovered(context: &mut Context<'_>, layout: Layout) -> Result<Found, Error> {
    let fabric = match Fabric::raise(context.plan, layout, &[context.plan.address]) {
        Ok(fabric) => fabric,
        // A controller that does not accept this number of switches is a result, not an error.
        Err(Error::Handshake { ready: 1.., .. }) => return Ok(Found::Partial),
        Err(error) => return Err(error),
    };
    let links = match discover(&fabric, context.limit())? {
        Discovery::Silent => return Ok(Found::Silent),
        Discovery::Partial { .. } => return Ok(Found::Partial),
        Discovery::Complete { .. } => fabric.link_ends()?.len(),
    };
    let Some(northbound) = context.helpers.northbound.as_mut() else {
        return Ok(Found::Whole { links });
    };
    let deployed = deployed(&fabric)?;
    let (query, limit) = (context.plan.query_ms, context.plan.limit_ms);
    match ask_until(northbound.as_mut(), &deployed, query, limit)? {
        Answer::Same | Answer::NoTopology => Ok(Found::Whole { links }),
        Answer::Other(_) => Ok(Found::Partial),
    }
}
