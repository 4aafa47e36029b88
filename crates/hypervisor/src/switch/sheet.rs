//! Limits from a data sheet: whether a data sheet is of this switch, and each tenant's share of its figures.
//!
//! The operator names sheets. The switch's description says which kind of switch is connected. Until the switch
//! answers, Weir uses a sheet that may be right: for a moment, limits that are too low are better than limits that are
//! too high.

use super::{Event, Switch};
use crate::messages;
use crate::policy::{Limits, TenantId};
use crate::sheet::{MessageClass, RateBy, RateShare, Standing};
use crate::south::pending::{Awaits, Purpose};
use crate::south::rates::{Pace, SheetShare};
use crate::time::Instant;
use alloc::string::String;
use alloc::vec::Vec;

impl Switch {
    /// Whether there is a data sheet for the switch, and whether it is of this switch.
    pub fn sheet(&self) -> &Standing {
        self.datapath.described().standing()
    }

    /// The switch's description: manufacturer, hardware, software. Known only if a data sheet needs it.
    pub fn description(&self) -> Option<&[String; 3]> {
        self.datapath.described().description()
    }

    /// How many messages a tenant may send or get, as far as there are limits.
    pub fn rates_of(&self, tenant: TenantId) -> Vec<RateShare> {
        let Some(at) = self.served_tenant(tenant) else { return Vec::new() };
        // On a member of a big switch, the operator's limits apply to the big switch; here they are shown, too.
        let tenant = self.map.policy().tenants.iter().find(|it| it.id == tenant);
        let limits = tenant.map(|it| it.limits).unwrap_or_default();
        let weight = u64::from(self.tenants[at].terms.weight);
        let weights = self.space.weights();
        let of = |class: MessageClass| {
            let (pace, by) = match (limit(&limits, class), self.sheet()) {
                (Some(pace), _) => (pace, RateBy::Operator),
                (None, Standing::Holds(sheet)) => {
                    let share = SheetShare::of(sheet, class, weight, weights)?;
                    (share.rate, RateBy::Sheet(sheet.classes.get(&class)?.clone()))
                }
                _ => return None,
            };
            Some(RateShare { class, per_second: pace.per_second(), burst: pace.burst(), by })
        };
        MessageClass::ALL.into_iter().filter_map(of).collect()
    }

    /// Finds out whether the sheet is of this switch, as far as Weir knows.
    pub(super) fn judge_sheet(&mut self) {
        let dpid = self.dpid();
        let sheet = self.map.policy().sheet(dpid).filter(|_| !self.datapath.is_joined());
        if self.datapath.described_mut().judge(sheet, dpid) {
            self.reports.push(Event::SheetOfAnother);
        }
    }

    /// Gives each tenant its share of the sheet's figures.
    pub(super) fn divide_rates(&mut self) {
        let sheet = self.datapath.described().in_force().cloned();
        let sheet = sheet.as_deref();
        let prices = MessageClass::ALL.map(|class| sheet.map_or(1, |sheet| sheet.units(class)));
        self.session.queues_mut().set_prices(prices);
        let weights = self.tenants.indices().map(|at| u64::from(self.weight(at)));
        let weights: Vec<u64> = weights.collect();
        let all = weights.iter().sum();
        self.space.set_weights(all);
        for (tenant, weight) in self.tenants.indices().zip(weights) {
            let share = |class| SheetShare::of(sheet?, class, weight, all);
            let shares = MessageClass::ALL.map(share);
            let packet_in = shares[MessageClass::PacketIn as usize].map(|share| share.rate);
            self.tenants[tenant].packets.set_share(packet_in);
            self.session.queues_mut().set_shares(tenant, shares);
        }
        let limited = self.map.policy().tenants.iter().filter(|it| it.limits.packet_in.is_some());
        for it in limited {
            let Some(at) = self.tenants.find(it.id) else { continue };
            self.tenants[at].packets.set_share(None);
        }
    }

    /// Asks for the switch's description, if a sheet needs it. Nothing waits for the answer.
    pub(super) fn ask_description(&mut self, now: Instant) {
        if !self.datapath.described_mut().ask() {
            return;
        }
        let question = messages::description(self.wire);
        self.send_own(Awaits::Own(Purpose::Description), &question, now);
    }

    /// The switch has answered the question for its description, or has refused the question.
    pub(crate) fn is_described(&mut self, description: Option<[&str; 3]>) {
        self.datapath.described_mut().answered(description);
        self.divide_space();
    }
}

/// A rate of the operator.
fn limit(limits: &Limits, class: MessageClass) -> Option<Pace> {
    let rate = match class {
        MessageClass::PacketOut => limits.packet_out,
        MessageClass::FlowMod => limits.flow_mod,
        MessageClass::Statistics => limits.statistics,
        MessageClass::PacketIn => limits.packet_in,
        MessageClass::Other => None,
    };
    rate.map(Pace::from)
}
