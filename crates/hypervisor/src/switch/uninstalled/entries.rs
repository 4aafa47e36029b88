//! When entries without a rule on the switch end.

use crate::flows::Flow;
use crate::ids::TenantIndex;
use crate::south::held::Timeout;
use crate::time::{Duration, Instant};
use alloc::collections::BTreeSet;
use hashbrown::HashMap;

/// Those of them that have timeouts.
#[derive(Debug, Default)]
pub(crate) struct Uninstalled {
    entries: HashMap<(TenantIndex, u32), Times>,
    /// When each is looked at, the first first.
    order: BTreeSet<(Instant, TenantIndex, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    /// Since when nothing stands for it.
    since: Instant,
    /// When it is looked at.
    at: Instant,
}

impl Uninstalled {
    fn put(&mut self, tenant: TenantIndex, number: u32, times: Times) {
        self.remove(tenant, number);
        self.entries.insert((tenant, number), times);
        self.order.insert((times.at, tenant, number));
    }

    /// An entry is gone, or something stands for it.
    pub(crate) fn remove(&mut self, tenant: TenantIndex, number: u32) {
        if let Some(times) = self.entries.remove(&(tenant, number)) {
            self.order.remove(&(times.at, tenant, number));
        }
    }

    /// An entry has changed. If the entry has no rule on the switch, its time-outs are kept here.
    pub(crate) fn keep(
        &mut self,
        tenant: TenantIndex,
        number: u32,
        flow: Option<&Flow>,
        now: Instant,
    ) {
        let Some(flow) = flow.filter(|flow| flow.rules.is_empty()) else {
            self.remove(tenant, number);
            return;
        };
        let known = self.entries.get(&(tenant, number)).map(|times| times.since);
        // An entry that was added again begins again.
        let since = known.filter(|since| *since >= flow.installed).unwrap_or(now);
        match end(flow, since) {
            Some((at, _)) => self.put(tenant, number, Times { since, at }),
            None => self.remove(tenant, number),
        }
    }

    /// When the next is to be looked at.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, ..)| *at)
    }

    /// The first entry, if its time has come.
    pub(crate) fn first(&self, now: Instant) -> Option<(TenantIndex, u32)> {
        let (at, tenant, number) = *self.order.first()?;
        (at <= now).then_some((tenant, number))
    }

    /// The time-out by which an entry ends.
    pub(crate) fn timeout(&self, tenant: TenantIndex, number: u32, flow: &Flow) -> Option<Timeout> {
        let times = self.entries.get(&(tenant, number))?;
        Some(end(flow, times.since)?.1)
    }

    /// The time of an entry comes later.
    pub(crate) fn look_again(&mut self, tenant: TenantIndex, number: u32, at: Instant) {
        if let Some(times) = self.entries.get(&(tenant, number)).copied() {
            self.put(tenant, number, Times { at, ..times });
        }
    }
}

/// When an entry ends that has had no packet since then, and by which timeout; if both are over at once, it is the hard one.
fn end(flow: &Flow, since: Instant) -> Option<(Instant, Timeout)> {
    let after = |begin: Instant, seconds: u16, timeout| {
        (seconds > 0).then(|| (begin + Duration::from_secs(seconds.into()), timeout))
    };
    let hard = after(flow.installed, flow.hard_timeout, Timeout::Hard);
    let idle = after(since, flow.idle_timeout, Timeout::Idle);
    hard.into_iter().chain(idle).min_by_key(|(at, _)| *at)
}
