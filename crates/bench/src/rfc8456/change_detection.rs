//! Network topology change detection time (RFC 8456, section 5.1.8). A device fails. The time is
//! from the first notification (PORT_STATUS) of its neighbours until the controller's first
//! discovery message.
//!
//! The device's own connection is cut just before the failure, as in a loss of power. A controller
//! that probes all the time sends its next probe soon, with or without knowledge of the failure.
//! The RFC does not distinguish these cases, and an outside observer cannot distinguish these
//! cases. `probes_per_s` before the change shows how far regular probes may explain the figure.

use super::context::{Case, Context, Sheet};
use super::discovery_time::{Discovery, discover};
use super::event::What;
use super::fabric::Fabric;
use super::test::Test;
use crate::error::Error;
use crate::measure::Measurement;
use emulate::SwitchIndex;
use report::Better;
use std::ops::ControlFlow;
use std::time::Duration;

pub(super) const TEST: Test = Test {
    name: "change-detection",
    section: "5.1.8",
    about: "from the notification that a device is gone until discovery starts anew",
    needs: &[],
    headline: &["detection_ms", "probes_per_s"],
    measure: |context| Ok(vec![change(context, &Case::plain(TEST.name))?]),
};

/// The time before the change in which probes are counted.
const LOOK: Duration = Duration::from_millis(500);

/// Runs the trials, with or without a disturbance.
pub(super) fn change(context: &mut Context<'_>, case: &Case) -> Result<Measurement, Error> {
    let mut sheet = Sheet::new(context, case);
    let layout = context.plan.layout();
    // The trial needs stations at other switches. This switch is never the first switch.
    let device = SwitchIndex(layout.switches() - 1);
    let mut trials = 0..context.plan.trials;
    while context.next_trial(case, &mut trials)?.is_some() {
        let fabric = Fabric::raise(context.plan, layout, &[context.plan.address])?;
        let _trouble = case.trouble.begin(context.plan, &fabric)?;
        match discover(&fabric, context.limit())? {
            Discovery::Silent => {
                sheet.finding("no-discovery", "the controller sent no discovery message");
                break;
            }
            Discovery::Partial { .. } => {
                sheet.finding("discovery-incomplete", "not every link was discovered in time");
                continue;
            }
            Discovery::Complete { .. } => {}
        }
        context.rest();
        fabric.forget();
        std::thread::sleep(LOOK);
        let is_probe = |what: &What| matches!(what, What::PacketOut { discovery: true });
        let probes = fabric.events(0)?.iter().filter(|event| is_probe(&event.what)).count();
        let per_second = probes as f64 / LOOK.as_secs_f64();
        sheet.sample("probes_per_s", "1/s", Better::Neither, per_second);

        fabric.forget();
        fabric.set_device(device, false)?;
        let mut notified = None;
        let detected = fabric.watch(0, context.limit(), |event| {
            match event.what {
                What::PortStatus => {
                    notified.get_or_insert(event.at);
                }
                What::PacketOut { discovery: true } if notified.is_some() => {
                    return ControlFlow::Break(event.at);
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        match notified.zip(detected) {
            Some((notified, detected)) => {
                sheet.time("detection_ms", detected.saturating_sub(notified));
            }
            None => sheet.finding("change-not-detected", "no discovery message followed in time"),
        }
        drop(fabric);
        context.rest();
    }
    Ok(sheet.finish())
}
