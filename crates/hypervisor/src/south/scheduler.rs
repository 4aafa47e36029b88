//! The scheduler: it decides which tenant may send the next message to the switch.
//!
//! The scheduler is weighted deficit round robin over tenants (Shreedhar and Varghese, 1996), with two lists as in
//! FQ-CoDel (RFC 8290, section 4.1.1): tenants that have just become active are served before tenants with a backlog. A
//! tenant is in the first list only while it has *credit*: the part of its share that the tenant did not use while
//! others were served, at most eight units for each unit of weight. So a tenant with few messages is served at once,
//! whatever other tenants do, also if some messages come together after a pause. Over any time a tenant gets at most
//! its share and one burst of eight units for each unit of weight, however often the tenant becomes idle and returns.
//! All operations take constant time, whatever the number of tenants.
//!
//! ```text
//!   idle ──activate──▶ credit? ──▶ fresh: in turn, one message each, until the credit is used up
//!     ▲                   └──no──▶ old: in turn, a quantum each  ◀──┘
//!     └── nothing more to send
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Fixed point: shares are kept in 1/256 units of work.
const SCALE: i64 = 256;
/// What a tenant of weight 1 may use in one round.
const QUANTUM: i64 = SCALE;
/// The most credit of a tenant of weight 1.
const BURST: i64 = 8 * SCALE;

/// The order of service among backlogged tenants, by index.
#[derive(Debug, Default)]
pub(crate) struct RoundRobin {
    members: Vec<Member>,
    fresh: VecDeque<u32>,
    old: VecDeque<u32>,
    /// What a tenant of weight 1 would have got so far, if it had always been in line.
    share: i64,
    /// The sum of the weights of all tenants in line.
    weights: i64,
    heaviest: i64,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    weight: i64,
    /// What the tenant may use; a negative credit is a debt.
    credit: i64,
    /// The value of `share` when the tenant left the line.
    left: i64,
    /// Whether the tenant has got its quantum since it came to the front.
    refilled: bool,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Idle,
    Fresh,
    Old,
}

impl RoundRobin {
    /// Sets the weight of a tenant. A new tenant begins with a quantum.
    pub(crate) fn set_weight(&mut self, index: u32, weight: u32) {
        let (index, weight) = (index as usize, i64::from(weight.max(1)));
        if self.members.len() <= index {
            let (credit, left) = (QUANTUM, self.share);
            let member = Member { weight: 1, credit, left, refilled: false, place: Place::Idle };
            self.members.resize(index + 1, member);
            self.members[index].credit = QUANTUM * weight;
        }
        let member = &mut self.members[index];
        if member.place != Place::Idle {
            self.weights += weight - member.weight;
        }
        member.weight = weight;
        self.heaviest = self.heaviest.max(weight);
    }

    /// The tenant has something to send. No effect if the tenant is in line.
    pub(crate) fn activate(&mut self, index: u32) {
        let Some(member) = self.members.get_mut(index as usize) else { return };
        if member.place != Place::Idle {
            return;
        }
        let earned = (self.share - member.left).saturating_mul(member.weight);
        member.credit = member.credit.saturating_add(earned).min(BURST * member.weight);
        self.weights += member.weight;
        if member.credit > 0 {
            // A fresh tenant gets no quantum before its turn among the old ones.
            (member.place, member.refilled) = (Place::Fresh, true);
            self.fresh.push_back(index);
        } else {
            (member.place, member.refilled) = (Place::Old, false);
            self.old.push_back(index);
        }
    }

    /// Whether no tenant is in line.
    pub(crate) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.old.is_empty()
    }

    /// The tenant whose turn it is. The caller then either sends something and calls [`served`](Self::served), or calls
    /// [`skip`](Self::skip).
    pub(crate) fn turn(&mut self) -> Option<u32> {
        loop {
            let index = *self.fresh.front().or_else(|| self.old.front())?;
            let member = &mut self.members[index as usize];
            if !member.refilled {
                member.refilled = true;
                member.credit += QUANTUM * member.weight;
            }
            if member.credit > 0 {
                return Some(index);
            }
            self.send_back(index);
        }
    }

    /// The tenant whose turn it was has sent work of this cost. `more`: the tenant has more to send.
    pub(crate) fn served(&mut self, index: u32, cost: u32, more: bool) {
        let Some(member) = self.members.get_mut(index as usize) else { return };
        let cost = i64::from(cost) * SCALE;
        member.credit -= cost;
        // Computed as if one more tenant of the highest weight were in line: so an idle tenant never earns more than in
        // line.
        self.share += cost / (self.weights + self.heaviest).max(1);
        if !more {
            self.skip(index);
        } else if member.credit <= 0 {
            self.send_back(index);
        } else if member.place == Place::Fresh {
            self.fresh.rotate_left(1);
        }
    }

    /// Charges a tenant for work out of turn.
    pub(crate) fn charge(&mut self, index: u32, cost: u32) {
        if let Some(member) = self.members.get_mut(index as usize) {
            member.credit -= i64::from(cost) * SCALE;
        }
    }

    fn send_back(&mut self, index: u32) {
        if self.leave(index) {
            let member = &mut self.members[index as usize];
            member.place = Place::Old;
            member.refilled = false;
            self.weights += member.weight;
            self.old.push_back(index);
        }
    }

    /// The tenant whose turn it was has nothing to send, or cannot send now. The tenant leaves the line until it is
    /// activated again.
    pub(crate) fn skip(&mut self, index: u32) {
        if self.leave(index) {
            let member = &mut self.members[index as usize];
            member.place = Place::Idle;
            member.left = self.share;
        }
    }

    /// Removes the tenant whose turn it is from its list.
    fn leave(&mut self, index: u32) -> bool {
        let list = if self.fresh.front() == Some(&index) { &mut self.fresh } else { &mut self.old };
        let is_first = list.front() == Some(&index);
        if is_first {
            list.pop_front();
            self.weights -= self.members[index as usize].weight;
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Serves `units` units to tenants that always have a backlog; returns how many units each tenant got.
    fn shares(weights: &[u32], costs: &[u32], units: u32) -> Vec<u32> {
        let mut rr = line(weights);
        (0..weights.len() as u32).for_each(|index| rr.activate(index));
        let mut got = vec![0; weights.len()];
        let mut served = 0;
        while served < units {
            let who = rr.turn().unwrap();
            let cost = costs[who as usize];
            rr.served(who, cost, true);
            got[who as usize] += cost;
            served += cost;
        }
        got
    }

    #[test]
    fn equal_weights_get_equal_shares_for_different_message_costs() {
        let got = shares(&[1, 1, 1], &[1, 4, 10], 30_000);
        for g in got {
            assert!((9_900..=10_100).contains(&g), "{g}");
        }
    }

    #[test]
    fn service_is_in_proportion_to_weights() {
        assert_eq!(shares(&[1, 2, 5], &[1, 1, 1], 8_000), [1_000, 2_000, 5_000]);
    }

    /// Serves `units` units; returns the tenant of each unit.
    fn order(rr: &mut RoundRobin, units: usize) -> Vec<u32> {
        let mut order = Vec::new();
        for _ in 0..units {
            let who = rr.turn().unwrap();
            rr.served(who, 1, true);
            order.push(who);
        }
        order
    }

    fn line(weights: &[u32]) -> RoundRobin {
        let mut rr = RoundRobin::default();
        for (index, &weight) in weights.iter().enumerate() {
            rr.set_weight(index as u32, weight);
        }
        rr
    }

    #[test]
    fn a_tenant_that_was_idle_is_served_first_up_to_its_unused_share() {
        let mut rr = line(&[1, 1]);
        rr.activate(0);
        assert_eq!(order(&mut rr, 4), [0; 4]);
        // Tenant 1's share of the four units is two units, and each tenant begins with a credit of one unit. So tenant
        // 1 is served three times before tenant 0.
        rr.activate(1);
        assert_eq!(order(&mut rr, 7), [1, 1, 1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_tenant_that_was_idle_for_long_gets_only_one_burst() {
        for weight in [1, 3] {
            let mut rr = line(&[1, weight]);
            rr.activate(0);
            order(&mut rr, 1_000);
            rr.activate(1);
            let first = order(&mut rr, 100).iter().take_while(|&&who| who == 1).count();
            assert_eq!(first as u32, 8 * weight);
        }
    }

    #[test]
    fn tenants_that_become_active_together_alternate_from_the_first_message() {
        let mut rr = line(&[1, 1, 1]);
        rr.activate(0);
        order(&mut rr, 1_000);
        rr.activate(1);
        rr.activate(2);
        assert_eq!(order(&mut rr, 17), [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 0]);
    }

    #[test]
    fn a_tenant_gains_no_service_by_becoming_idle_and_active_again() {
        // Tenants 1 to 3 become idle after `sends` messages, and active again after `waits` messages of other tenants.
        // Tenant 0 is always active.
        for (sends, waits) in [(1, 0), (1, 1), (1, 2), (2, 1), (3, 5), (8, 8), (1, 7), (20, 3)] {
            let mut rr = line(&[1, 1, 1, 1]);
            rr.activate(0);
            let mut got = [0; 4];
            let mut away = [0; 4];
            let mut left = [0; 4];
            for _ in 0..40_000 {
                for who in 1..4 {
                    if left[who] == 0 && away[who] == 0 {
                        left[who] = sends;
                        rr.activate(who as u32);
                    }
                }
                let who = rr.turn().unwrap() as usize;
                got[who] += 1;
                (1..4).for_each(|other| away[other] = u32::saturating_sub(away[other], 1));
                if who > 0 {
                    left[who] -= 1;
                    away[who] = if left[who] == 0 { waits } else { 0 };
                }
                rr.served(who as u32, 1, who == 0 || left[who] > 0);
            }
            for who in 1..4 {
                assert!(got[who] <= got[0] + 16, "{sends} and {waits}: {got:?}");
            }
        }
    }

    #[test]
    fn no_turn_is_given_without_an_active_tenant() {
        let mut rr = RoundRobin::default();
        assert_eq!(rr.turn(), None);
        rr.set_weight(3, 1);
        rr.activate(3);
        assert_eq!(rr.turn(), Some(3));
        rr.skip(3);
        assert_eq!(rr.turn(), None);
    }
}
