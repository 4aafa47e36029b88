//! Path provisioning time, reactive and proactive (RFC 8456, sections 5.1.4 and 5.1.5).
//!
//! Reactive: a packet is sent between two stations, and the controller knows only the far station.
//! `path_ms` is the time from the first switch's PACKET_IN until the controller's last FLOW_MOD.
//! Appendix A.4.4 measures in the data plane instead, from the packet's departure to its arrival
//! (with the sign reversed): this is `first_packet_ms`.
//!
//! Proactive: the northbound interface gets the entries of a whole path. `path_ms` is the time from
//! the first order until the last FLOW_MOD. `first_packet_ms` is the time until a packet arrives,
//! with one packet sent every millisecond. During this time switches do not send packets without an
//! entry to the controller.

use super::context::{Case, Context, Sheet};
use super::event::What;
use super::fabric::{End, Fabric};
use super::helpers::FlowOrder;
use super::test::{Need, Test};
use super::traffic::{Probe, announcement};
use crate::error::Error;
use crate::measure::Measurement;
use emulate::Layout;
use report::Better;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

pub(super) const REACTIVE: Test = Test {
    name: "reactive-path-time",
    section: "5.1.4",
    about: "from a packet's question until the last flow entry on its path",
    needs: &[],
    headline: HEADLINE,
    measure: |context| Ok(vec![reactive(context, &Case::plain(REACTIVE.name))?]),
};
pub(super) const PROACTIVE: Test = Test {
    name: "proactive-path-time",
    section: "5.1.5",
    about: "from a northbound order until the last flow entry of the path",
    needs: &[Need::Northbound],
    headline: HEADLINE,
    measure: |context| Ok(vec![proactive(context, &Case::plain(PROACTIVE.name))?]),
};
const HEADLINE: &[&str] = &["path_ms", "first_packet_ms"];

/// The silence of the controller after which its work counts as complete.
const QUIET: Duration = Duration::from_millis(100);

/// Runs trials of one packet each, with or without a disturbance.
pub(super) fn reactive(context: &mut Context<'_>, case: &Case) -> Result<Measurement, Error> {
    let mut sheet = Sheet::new(context, case);
    let fabric = Fabric::raise(context.plan, context.plan.layout(), &[context.plan.address])?;
    let _trouble = case.trouble.begin(context.plan, &fabric)?;
    context.rest();
    let mut trials = 0..context.plan.trials;
    while let Some(trial) = context.next_trial(case, &mut trials)? {
        let probe = context.probe();
        announce(&fabric, context, &[(End::Far, probe.far)])?;
        fabric.forget();
        let packet = probe.there(trial as u64, context.plan.frame_bytes);
        let (departure, _) = fabric.inject(End::Near, vec![packet])?;
        let arrival = arrival(&fabric, trial as u64, context.limit())?;
        let Some(arrival) = arrival else {
            sheet.finding("path-not-provisioned", "a packet did not arrive in time");
            continue;
        };
        fabric.settle(QUIET, context.limit(), is_provisioning)?;
        sheet.time("first_packet_ms", arrival - departure);
        let events = fabric.events(0)?;
        let asks = |what: &What| matches!(what, What::PacketIn { tag: Some(_), .. });
        let question = events.iter().find(|event| asks(&event.what)).map(|event| event.at);
        let entries = events.iter().filter(|event| is_provisioning(&event.what));
        let (count, last) = entries.fold((0, None), |(n, _), event| (n + 1, Some(event.at)));
        sheet.sample("flow_mods", "", Better::Neither, f64::from(count));
        match (question, last) {
            (Some(question), Some(last)) => sheet.time("path_ms", last.saturating_sub(question)),
            _ => sheet.finding(
                "no-provisioning",
                "the controller forwards packets one by one and installs no flow entry",
            ),
        }
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
        let probe = context.probe();
        let orders = orders(&fabric, probe)?;
        fabric.forget();
        let start = fabric.now();
        northbound(context)?.install(&orders)?;
        let packet = probe.there(trial as u64, context.plan.frame_bytes);
        let deadline = Instant::now() + context.limit();
        let arrival = loop {
            fabric.inject(End::Near, vec![packet.clone()])?;
            let found = arrival(&fabric, trial as u64, Duration::from_millis(1))?;
            if found.is_some() || Instant::now() >= deadline {
                break found;
            }
        };
        let Some(arrival) = arrival else {
            sheet.finding("path-not-provisioned", "no packet arrived in time");
            continue;
        };
        fabric.settle(QUIET, context.limit(), is_provisioning)?;
        sheet.time("first_packet_ms", arrival - start);
        let events = fabric.events(0)?;
        let entries = events.iter().filter(|event| is_provisioning(&event.what));
        if let Some(last) = entries.map(|event| event.at).max() {
            sheet.time("path_ms", last.saturating_sub(start));
        }
    }
    Ok(sheet.with_closed_connections(&fabric).finish())
}

pub(super) fn northbound<'a>(
    context: &'a mut Context<'_>,
) -> Result<&'a mut dyn super::helpers::Northbound, Error> {
    match &mut context.helpers.northbound {
        Some(northbound) => Ok(northbound.as_mut()),
        None => Err(Error::System("there is no northbound interface".to_owned())),
    }
}

/// The orders for a path from near to far.
pub(super) fn orders(fabric: &Fabric, probe: Probe) -> Result<Vec<FlowOrder>, Error> {
    let (source, destination) = probe.addresses();
    fabric.call(move |network, _| {
        let path = network.shortest_path(Layout::NEAR, Layout::FAR).unwrap_or_default();
        let order = |hop: &emulate::Hop| {
            let dpid = network.switch(hop.switch)?.dpid();
            Some(FlowOrder { dpid, source, destination, out_port: hop.out_port })
        };
        path.iter().filter_map(order).collect()
    })
}

/// Stations announce their ports, and the controller has time to learn the ports.
pub(super) fn announce(
    fabric: &Fabric,
    context: &Context<'_>,
    stations: &[(End, u32)],
) -> Result<(), Error> {
    for (end, station) in stations {
        fabric.inject(*end, vec![announcement(*station)])?;
    }
    // The controller's reaction to the announcement must not count for the next packet.
    let of_packets = |what: &What| {
        matches!(
            what,
            What::PacketIn { discovery: false, .. } | What::PacketOut { discovery: false }
        ) || is_provisioning(what)
    };
    fabric.settle(QUIET, context.limit(), of_packets)
}

/// The time when the packet with this tag reached the far end.
fn arrival(fabric: &Fabric, tag: u64, limit: Duration) -> Result<Option<u64>, Error> {
    fabric.watch(0, limit, |event| match event.what {
        What::Delivered { tag: Some(arrived) } if arrived == tag && End::Far.is(event.place) => {
            ControlFlow::Break(event.at)
        }
        _ => ControlFlow::Continue(()),
    })
}

fn is_provisioning(what: &What) -> bool {
    *what == What::Provisioned
}
