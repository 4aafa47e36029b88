//! Requests that wait until it is known what became of others before them.
//!
//! A change of a group is accepted before the switch has carried it out. Whether a group may be deleted depends on the
//! others that name it; where a change of those is on its way, and might come back, the deletion waits until that is settled,
//! and with it what its controller sends after it. So does a change of entries that went with a group and may stand again, and one of
//! those that send somewhere or bear a cookie, where entries are about to or to cease to. A switch of the tenant's own does one
//! after the other as well.

use super::tables::Operation;
use super::{Controller, Request, Switch};
use crate::flows::Flow;
use crate::ids::{ControllerIndex, TenantIndex};
use crate::time::Instant;
use alloc::vec::Vec;
use hashbrown::HashMap;
use openflow::{Header, Version};

/// A message of a controller, put off.
pub(crate) struct Postponed {
    tenant: TenantIndex,
    controller: ControllerIndex,
    frame: Vec<u8>,
    /// Since when it waits; `None` if it only stands behind another.
    since: Option<Instant>,
}

impl Switch {
    /// Puts a request off. What it waits for is asked about at once.
    pub(crate) fn postpone(&mut self, request: &Request<'_>) {
        let Request { tenant, controller, frame, now, .. } = *request;
        let since = Some(now);
        self.postponed.push(Postponed { tenant, controller, frame: frame.into(), since });
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
        // There may be many changes on their way, and mostly none of them deletes any.
        if !self.has_condemned(tenant) {
            return false;
        }
        let gone = self.gone_with_numbers(tenant);
        let mut changes = self.operations.iter().filter(|(_, change)| change.tenant == tenant);
        let is_earlier = |at: u32, deleted: u32| at.wrapping_sub(deleted) > u32::MAX / 2;
        !gone.is_empty()
            && changes.any(|(at, change)| {
                change.before.iter().any(|(number, before)| {
                    let (Some(before), Some(by)) = (before, gone.get(number)) else { return false };
                    let comes_back = by.iter().any(|(deleted, deletion)| {
                        at == deleted || is_earlier(*at, *deleted) && deletion.spares(before)
                    });
                    comes_back && is_meant(before)
                })
            })
    }

    /// How many entries may stand again so at most, and of how many pieces they are.
    pub(crate) fn may_come_back(&self, tenant: TenantIndex) -> (usize, usize) {
        if !self.has_condemned(tenant) {
            return (0, 0);
        }
        let changes = || self.operations.values().filter(|change| change.tenant == tenant);
        let deletions = changes().filter(|change| change.deletes_numbers());
        let count = deletions.map(|deletion| deletion.before.len()).sum();
        let pieces = if count > 0 { changes().map(|it| it.pieces_before).sum() } else { 0 };
        (count, pieces)
    }

    /// The entries that have gone with groups or meters which are about to be deleted, and by which changes.
    fn gone_with_numbers(&self, tenant: TenantIndex) -> HashMap<u32, Vec<(u32, &Operation)>> {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let changes = self.operations.iter().filter(|(_, change)| change.tenant == tenant);
        let mut gone: HashMap<u32, Vec<(u32, &Operation)>> = HashMap::new();
        for (deleted, deletion) in changes.filter(|(_, change)| change.deletes_numbers()) {
            for number in deletion.changed().filter(|number| flows.get(*number).is_none()) {
                gone.entry(number).or_default().push((*deleted, deletion));
            }
        }
        gone
    }

    /// Whether changes are on their way of entries that a request covers, and which of them decides whether it means them.
    pub(crate) fn is_undecided(
        &self,
        tenant: TenantIndex,
        is_covered: impl Fn(&Flow) -> bool,
        is_meant: impl Fn(&Flow) -> bool,
    ) -> bool {
        let flows = &self.tenants[tenant.0 as usize].flows;
        let changes = self.operations.values().filter(|change| change.tenant == tenant);
        let mut before = changes.flat_map(|change| &change.before);
        before.any(|(number, before)| {
            let before = before.as_ref().filter(|before| is_covered(before));
            let both = before.zip(flows.get(*number));
            both.is_some_and(|(before, now)| is_meant(before) != is_meant(now))
        })
    }

    /// Whether messages of a controller wait, and others have to stand behind them.
    pub(super) fn is_postponed(&self, controller: ControllerIndex) -> bool {
        self.postponed.iter().any(|it| it.controller == controller)
    }

    /// Puts a message behind those that wait. A driver that asks whether to read brings none.
    pub(super) fn postpone_behind(&mut self, request: &Request<'_>) {
        let Request { tenant, controller, frame, .. } = *request;
        let waiting = self.postponed.iter().filter(|it| it.controller == controller).count();
        if waiting < self.settings.tenant_backlog {
            let frame = frame.into();
            self.postponed.push(Postponed { tenant, controller, frame, since: None });
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
        for Postponed { tenant, controller, frame, since } in core::mem::take(&mut self.postponed) {
            let Ok(header) = Header::parse(&frame) else { continue };
            // What one has asked for that is gone is still done; there is nobody to be answered.
            let is_gone = match self.controllers.get(controller) {
                Some(&Controller { closing: true, .. }) => continue,
                Some(_) => false,
                None => true,
            };
            if is_gone && !self.changes_something(header) {
                continue;
            }
            let request = Request { tenant, controller, header, frame: &frame, now };
            // What is sent before it, and at which rate, is the tenant's own affair.
            let is_sent = self.tenants[tenant.0 as usize].queue.is_empty();
            let since = since.map(|since| if is_sent { since } else { now });
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

    /// Whether a message is one of those that do something.
    fn changes_something(&self, header: Header) -> bool {
        use openflow::v13::MessageType as It;
        let both = [It::PACKET_OUT, It::FLOW_MOD, It::PORT_MOD];
        let newer = [It::GROUP_MOD, It::METER_MOD];
        both.map(|it| it.0).contains(&header.type_)
            || self.version != Version::V1_0 && newer.map(|it| it.0).contains(&header.type_)
    }
}
