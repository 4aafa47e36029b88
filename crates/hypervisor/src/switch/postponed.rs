//! Requests that wait until it is known what became of others before them.
//!
//! A change of a group is accepted before the switch has carried it out. Whether a group may be deleted depends on the
//! others that name it; where a change of those is on its way, and might come back, the deletion waits until that is settled,
//! and with it what its controller sends after it. So does a change of entries that went with a group and may stand again.
//! A switch of the tenant's own does one after the other as well.

use super::{Controller, Request, Switch};
use crate::flows::Flow;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::time::Instant;
use alloc::vec::Vec;
use hashbrown::HashSet;
use openflow::Header;

/// A message of a controller, put off.
pub(crate) struct Postponed {
    controller: ControllerIndex,
    frame: Vec<u8>,
    /// Since when it waits; `None` if it only stands behind another.
    since: Option<Instant>,
}

impl Switch {
    /// Puts a request off. What it waits for is asked about at once.
    pub(crate) fn postpone(&mut self, request: &Request<'_>) {
        let Request { controller, frame, now, .. } = *request;
        self.postponed.push(Postponed { controller, frame: frame.into(), since: Some(now) });
        let is_sent = self.tenants[request.tenant.0 as usize].queue.is_empty();
        if is_sent && self.delayed.is_empty() && self.unbarriered {
            self.send_own_barrier(now);
        }
    }

    /// Whether an entry that went with a group or meter may stand again as one that is meant: if that is refused, or as one
    /// that did not use it, if the change is refused by which it came to.
    pub(crate) fn may_stand_again(
        &self,
        tenant: TenantIndex,
        is_meant: impl Fn(&Flow) -> bool,
    ) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let changes = || self.operations.iter().filter(|(_, change)| change.tenant == tenant);
        let mut deletions = changes().filter(|(_, change)| change.deletes_numbers());
        // There may be many changes on their way, and mostly none of them deletes any.
        self.has_condemned(tenant)
            && deletions.any(|(deleted, deletion)| {
                let gone = deletion.changed().filter(|number| flows.get(*number).is_none());
                let gone: HashSet<u32> = gone.collect();
                let is_earlier = |at: u32| at.wrapping_sub(*deleted) > u32::MAX / 2;
                changes().any(|(at, change)| {
                    let stands = |flow: &Flow| {
                        let comes_back = at == deleted || is_earlier(*at) && deletion.spares(flow);
                        comes_back && is_meant(flow)
                    };
                    let mut before =
                        change.before.iter().filter(|(number, _)| gone.contains(number));
                    before.any(|(_, before)| before.as_ref().is_some_and(stands))
                })
            })
    }

    /// Whether messages of a controller wait, and others have to stand behind them.
    pub(super) fn is_postponed(&self, controller: ControllerIndex) -> bool {
        self.postponed.iter().any(|it| it.controller == controller)
    }

    /// Puts a message behind those that wait. A driver that asks whether to read brings none.
    pub(super) fn postpone_behind(&mut self, request: &Request<'_>) {
        let Request { controller, frame, .. } = *request;
        let waiting = self.postponed.iter().filter(|it| it.controller == controller).count();
        if waiting < self.settings.tenant_backlog {
            self.postponed.push(Postponed { controller, frame: frame.into(), since: None });
        } else {
            self.refuse(&request.origin(), self.codes().unanswered);
        }
    }

    /// When the first that waits is given up.
    pub(super) fn next_postponed(&self) -> Option<Instant> {
        let since = self.postponed.iter().filter_map(|it| it.since).min();
        since.map(|since| since + self.settings.reply_timeout)
    }

    /// Looks anew at what waits: something has become known of what was on its way.
    pub(super) fn take_up_postponed(&mut self, now: Instant) {
        for Postponed { controller, frame, since } in core::mem::take(&mut self.postponed) {
            let Some(&Controller { tenant, closing: false, .. }) = self.controllers.get(controller)
            else {
                continue;
            };
            let Ok(header) = Header::parse(&frame) else { continue };
            let request = Request { tenant, controller, header, frame: &frame, now };
            let at = self.postponed.len();
            if self.is_postponed(controller) {
                self.postpone_behind(&request);
            } else if since.is_some_and(|since| now - since >= self.settings.reply_timeout) {
                // The switch does not say what became of the others.
                self.refuse(&request.origin(), self.codes().unanswered);
            } else {
                self.handle_request(request);
            }
            if let Some(again) = self.postponed.get_mut(at) {
                again.since = since.or(again.since);
            }
            self.resume(tenant);
        }
    }
}
