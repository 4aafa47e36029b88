//! Path provisioning rate, reactive and proactive (RFC 8456, sections 5.1.6 and 5.1.7): the number
//! of different paths per second over which a packet reached the far traffic port.
//!
//! The RFC sends as fast as possible. Here a bounded number of paths is being provisioned at any
//! time (`outstanding`), so that the benchmark measures the controller's pace and not the depth of
//! its queue. A path that does not exist after [`GIVE_UP`] counts as lost, and another path takes
//! its place.

use super::context::{Case, Context, Sheet};
use super::event::What;
use super::fabric::{End, Fabric};
use super::path_time::{announce, northbound, orders};
use super::test::{Need, Test};
use super::traffic::Probe;
use crate::error::Error;
use crate::measure::Measurement;
use report::Better;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(super) const REACTIVE: Test = Test {
    name: "reactive-path-rate",
    section: "5.1.6",
    about: "paths per second that packets find by asking",
    needs: &[],
    headline: HEADLINE,
    measure: |context| Ok(vec![reactive(context, &Case::plain(REACTIVE.name))?]),
};
pub(super) const PROACTIVE: Test = Test {
    name: "proactive-path-rate",
    section: "5.1.7",
    about: "paths per second that are sent to the northbound interface",
    needs: &[Need::Northbound],
    headline: HEADLINE,
    measure: |context| Ok(vec![proactive(context, &Case::plain(PROACTIVE.name))?]),
};
const HEADLINE: &[&str] = &["paths_per_s", "lost_paths"];

/// A path that takes longer counts as lost.
const GIVE_UP: Duration = Duration::from_secs(1);
/// The time between two requests for new paths.
const TURN: Duration = Duration::from_millis(1);

/// The result of one trial.
#[derive(Debug, Default)]
struct Pace {
    arrived: usize,
    lost: usize,
    flow_mods: usize,
    seconds: f64,
}

impl Pace {
    fn write(&self, sheet: &mut Sheet) {
        let paths = self.arrived as f64;
        sheet.sample("paths_per_s", "1/s", Better::Higher, paths / self.seconds);
        sheet.sample("lost_paths", "", Better::Lower, self.lost as f64);
        let per_path = self.flow_mods as f64 / paths;
        sheet.sample("flow_mods_per_path", "", Better::Neither, per_path);
        if self.arrived == 0 {
            sheet.finding("path-not-provisioned", "no packet arrived in a whole trial");
        } else if self.flow_mods == 0 {
            sheet.finding("no-provisioning", "the controller installs no flow entry");
        }
    }
}

/// Sends packets between new pairs of stations: each packet has a new source, and the destination
/// is one of a number of stations (`macs`) that the controller knows.
pub(super) fn reactive(context: &mut Context<'_>, case: &Case) -> Result<Measurement, Error> {
    let mut sheet = Sheet::new(context, case);
    let fabric = Fabric::raise(context.plan, context.plan.layout(), &[context.plan.address])?;
    let _trouble = case.trouble.begin(context.plan, &fabric)?;
    context.rest();
    let known: Vec<u32> = (0..context.plan.macs.max(1)).map(|_| context.station()).collect();
    let places: Vec<(End, u32)> = known.iter().map(|station| (End::Far, *station)).collect();
    announce(&fabric, context, &places)?;
    let mut trials = 0..context.plan.trials;
    while let Some(trial) = context.next_trial(case, &mut trials)? {
        let bytes = context.plan.frame_bytes;
        let mut destinations = known.iter().cycle().copied();
        let pace = run(context, &fabric, trial, |context, fabric, tags| {
            let packet = |tag| {
                let far = destinations.next().unwrap_or_default();
                Probe { near: context.station(), far }.there(tag, bytes)
            };
            let packets: Vec<Vec<u8>> = tags.iter().copied().map(packet).collect();
            fabric.inject(End::Near, packets).map(|_| Vec::new())
        })?;
        pace.write(&mut sheet);
        context.rest();
    }
    Ok(sheet.with_closed_connections(&fabric).finish())
}

fn proactive(context: &mut Context<'_>, case: &Case) -> Result<Measurement, Error> {
    let mut sheet = Sheet::new(context, case);
    let fabric = Fabric::raise(context.plan, context.plan.layout(), &[context.plan.address])?;
    context.rest();
    fabric.set_muted(true)?;
    let mut trials = 0..context.plan.trials;
    while let Some(trial) = context.next_trial(case, &mut trials)? {
        let bytes = context.plan.frame_bytes;
        let pace = run(context, &fabric, trial, |context, fabric, tags| {
            let probes: Vec<(u64, Probe)> =
                tags.iter().map(|tag| (*tag, context.probe())).collect();
            let flows = probes.iter().map(|(_, probe)| orders(fabric, *probe));
            let flows: Vec<_> = flows.collect::<Result<Vec<_>, _>>()?.concat();
            northbound(context)?.install(&flows)?;
            Ok(probes.into_iter().map(|(tag, probe)| (tag, probe.there(tag, bytes))).collect())
        })?;
        pace.write(&mut sheet);
        context.rest();
    }
    Ok(sheet.with_closed_connections(&fabric).finish())
}

/// Keeps a number of paths unfinished for one trial. `begin` starts the paths of these tags, and
/// returns the packets that must be sent until the packets arrive.
fn run(
    context: &mut Context<'_>,
    fabric: &Fabric,
    trial: usize,
    mut begin: impl FnMut(&mut Context<'_>, &Fabric, &[u64]) -> Result<Vec<(u64, Vec<u8>)>, Error>,
) -> Result<Pace, Error> {
    fabric.forget();
    let start = Instant::now();
    let duration = context.trial();
    let outstanding = context.plan.outstanding.max(1) as usize;
    // The start time of each path, and the packet that tests the path.
    let mut making: BTreeMap<u64, (Instant, Option<Vec<u8>>)> = BTreeMap::new();
    // Packets in flight at the end of a trial must not count for the next trial.
    let mut next_tag = (trial as u64) << 32;
    let (mut pace, mut seen) = (Pace::default(), 0);
    while start.elapsed() < duration {
        let before = making.len();
        making.retain(|_, (begun, _)| begun.elapsed() < GIVE_UP);
        pace.lost += before - making.len();
        let free = outstanding.saturating_sub(making.len()) as u64;
        if free > 0 {
            let tags: Vec<u64> = (next_tag..next_tag + free).collect();
            next_tag += free;
            let now = Instant::now();
            making.extend(tags.iter().map(|tag| (*tag, (now, None))));
            for (tag, packet) in begin(context, fabric, &tags)? {
                making.insert(tag, (now, Some(packet)));
            }
        }
        let tries: Vec<Vec<u8>> =
            making.values().filter_map(|(_, packet)| packet.clone()).collect();
        if !tries.is_empty() {
            fabric.inject(End::Near, tries)?;
        }
        std::thread::sleep(TURN);
        let events = fabric.events(seen)?;
        seen += events.len();
        for event in events {
            match event.what {
                What::Delivered { tag: Some(tag) } if End::Far.is(event.place) => {
                    pace.arrived += usize::from(making.remove(&tag).is_some());
                }
                What::Provisioned => pace.flow_mods += 1,
                _ => {}
            }
        }
    }
    pace.seconds = start.elapsed().as_secs_f64();
    Ok(pace)
}
