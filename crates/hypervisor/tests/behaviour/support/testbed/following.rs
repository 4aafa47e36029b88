//! The testbed's cores follow changes of the physical network.

use super::{FIRST_TAG, Seen, Testbed, reference_index, tenant};
use crate::support::places::{know_versions, maps};
use crate::support::{describe, frames};
use emulate::SessionId;
use fabric::embedding::SwitchMap;
use hypervisor::{Instant, Policy, big_switch};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

impl Testbed {
    /// All cores get new maps, with the versions of the testbed's switches.
    pub fn set_maps(&mut self, maps: &BTreeMap<u64, SwitchMap>, tags: RangeInclusive<u16>) {
        let mut maps = maps.clone();
        know_versions(&mut maps, &self.versions);
        self.put_maps(maps, tags);
    }

    /// All cores get new maps. The maps already say which versions the ends of links speak.
    pub fn put_maps(&mut self, maps: BTreeMap<u64, SwitchMap>, tags: RangeInclusive<u16>) {
        let maps = maps.into_iter().map(|(dpid, map)| (dpid, Arc::new(map))).collect();
        let tenants = self.plans.iter().enumerate().map(tenant).collect();
        let policy = Arc::new(Policy { tenants, maps, tags: Some(tags), ..Policy::default() });
        let now = Instant(self.now);
        self.policy = policy.clone();
        self.cores.iter_mut().for_each(|core| core.handle_policy(policy.clone(), now));
        let plans = big_switch::plans(&policy);
        for big in &mut self.bigs {
            let own = |plan: &&big_switch::Plan| usize::from(plan.tenant.0) == big.tenant + 1;
            if let Some(plan) = plans.values().find(own) {
                big.joint.handle_plan(plan.clone(), now);
            }
            if let Some(front) = &mut big.front {
                front.handle_policy(policy.clone(), now);
            }
        }
        self.pump();
    }

    /// The messages that a switch of the tenant's reference network sends to the controller because time has passed.
    pub fn messages_beside(&mut self, tenant: usize, switch: u64) -> Vec<String> {
        let at = reference_index(&self.plans[tenant], switch);
        self.references[tenant].tick(self.now);
        let output = self.references[tenant].take_output(at, SessionId::MAIN);
        frames(&output).map(|frame| describe(&frame)).collect()
    }

    /// The messages of [`messages_beside`](Self::messages_beside) for all switches of all tenants.
    pub fn all_messages_beside(&mut self) -> Seen {
        let mut seen = Seen::default();
        for tenant in 0..self.plans.len() {
            for switch in self.switches_of(tenant) {
                let messages = self.messages_beside(tenant, switch).into_iter();
                seen.received.extend(messages.map(|words| (tenant, switch, words)));
            }
        }
        seen
    }

    /// All links get tags from this number on. Returns the messages that the tenants' controllers receive.
    pub fn set_tags(&mut self, first: u16) -> Seen {
        let (maps, tags) = maps(&self.plans, first);
        self.set_maps(&maps, FIRST_TAG..=tags);
        std::mem::take(&mut self.seen)
    }

    /// From now on these links of a tenant have no path, and all its other links have one, in the tenant's network and
    /// in its reference network. Returns the messages that the controllers receive in both.
    pub fn cut(&mut self, tenant: usize, links: Vec<[(u64, u32); 2]>, first: u16) -> [Seen; 2] {
        self.plans[tenant].cut = links;
        let seen = self.set_tags(first);
        let plan = &self.plans[tenant];
        let mut beside = Seen::default();
        for link in &plan.links {
            for &(switch, port) in link {
                let index = reference_index(plan, switch);
                let switch = plan.head(switch);
                let reference = self.references[tenant].switch_mut(index).unwrap();
                reference.set_link(port, !plan.cut.contains(link));
                let output = self.references[tenant].take_output(index, SessionId::MAIN);
                let received = frames(&output).map(|frame| (tenant, switch, describe(&frame)));
                beside.received.extend(received);
            }
        }
        [seen, beside]
    }
}
