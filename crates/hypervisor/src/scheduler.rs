//! Fair service: who may send next.
//!
//! Deficit round robin over tenants, with weights, after Shreedhar and Varghese (1996), with the two lists of FQ-CoDel
//! (RFC 8290, section 4.1.1): a tenant that has just become active goes before those that have been waiting in line
//! with a backlog, for one quantum. A tenant that asks for little is thus served at once, whatever its neighbours do,
//! and cannot gain by falling silent and returning. All operations take constant time, in the number of tenants too.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Units of work that a tenant of weight 1 may use in one round.
const QUANTUM: i64 = 1;

/// The order of service among backlogged tenants, by index.
#[derive(Debug, Default)]
pub struct RoundRobin {
    members: Vec<Member>,
    fresh: VecDeque<u32>,
    old: VecDeque<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    weight: u32,
    deficit: i64,
    /// Whether it was given its quantum since it came to the front.
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
    /// Sets the weight of a tenant, making room for it.
    pub fn set_weight(&mut self, index: u32, weight: u32) {
        let index = index as usize;
        if self.members.len() <= index {
            self.members.resize(
                index + 1,
                Member { weight: 1, deficit: 0, refilled: false, place: Place::Idle },
            );
        }
        self.members[index].weight = weight.max(1);
    }

    /// Says that the tenant has something to send; no effect if it is in line already.
    pub fn activate(&mut self, index: u32) {
        let Some(member) = self.members.get_mut(index as usize) else { return };
        if member.place == Place::Idle {
            member.place = Place::Fresh;
            // A debt from the last time stays; credit does not.
            member.deficit = member.deficit.min(0) + QUANTUM * i64::from(member.weight);
            member.refilled = true;
            self.fresh.push_back(index);
        }
    }

    /// Whether nobody is in line.
    pub fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.old.is_empty()
    }

    /// Whose turn it is. The caller then either sends something and calls [`served`](Self::served), or calls
    /// [`skip`](Self::skip).
    pub fn turn(&mut self) -> Option<u32> {
        loop {
            let index = *self.fresh.front().or_else(|| self.old.front())?;
            let member = &mut self.members[index as usize];
            if !member.refilled {
                member.refilled = true;
                member.deficit += QUANTUM * i64::from(member.weight);
            }
            if member.deficit > 0 {
                return Some(index);
            }
            self.send_back(index);
        }
    }

    /// The tenant whose turn it was has sent work of this cost, and has more or not.
    ///
    /// With nothing left it still goes round once behind those who wait, so that returning often earns no precedence.
    pub fn served(&mut self, index: u32, cost: u32, more: bool) {
        let Some(member) = self.members.get_mut(index as usize) else { return };
        member.deficit -= i64::from(cost);
        if !more && self.fresh.len() + self.old.len() == 1 {
            self.skip(index);
        } else if !more || member.deficit <= 0 {
            self.send_back(index);
        }
    }

    fn send_back(&mut self, index: u32) {
        let list = if self.fresh.front() == Some(&index) { &mut self.fresh } else { &mut self.old };
        if list.pop_front().is_some() {
            let member = &mut self.members[index as usize];
            member.place = Place::Old;
            member.refilled = false;
            self.old.push_back(index);
        }
    }

    /// The tenant whose turn it was has nothing to send, or cannot send it now; it leaves the line until it is activated
    /// again.
    pub fn skip(&mut self, index: u32) {
        let list = if self.fresh.front() == Some(&index) { &mut self.fresh } else { &mut self.old };
        if list.front() == Some(&index) {
            list.pop_front();
            self.members[index as usize].place = Place::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Serves `rounds` units among always-backlogged tenants; gives how many each got.
    fn shares(weights: &[u32], costs: &[u32], units: u32) -> Vec<u32> {
        let mut rr = RoundRobin::default();
        for (i, &weight) in weights.iter().enumerate() {
            rr.set_weight(i as u32, weight);
            rr.activate(i as u32);
        }
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
    fn equal_weights_share_equally_whatever_a_message_costs() {
        let got = shares(&[1, 1, 1], &[1, 4, 10], 30_000);
        for g in got {
            assert!((9_900..=10_100).contains(&g), "{g}");
        }
    }

    #[test]
    fn service_is_in_proportion_to_weights() {
        assert_eq!(shares(&[1, 2, 5], &[1, 1, 1], 8_000), [1_000, 2_000, 5_000]);
    }

    #[test]
    fn a_newcomer_goes_first_once() {
        let mut rr = RoundRobin::default();
        rr.set_weight(0, 1);
        rr.set_weight(1, 1);
        rr.activate(0);
        for _ in 0..5 {
            assert_eq!(rr.turn(), Some(0));
            rr.served(0, 1, true);
        }
        rr.activate(1);
        assert_eq!(rr.turn(), Some(1));
        rr.served(1, 1, true);
        assert_eq!(rr.turn(), Some(0));
        rr.served(0, 1, true);
        assert_eq!(rr.turn(), Some(1));
    }

    #[test]
    fn returning_often_earns_no_precedence() {
        // Tenant 1 always empties its queue at once and comes back; tenant 0 is backlogged. Both get the same.
        let mut rr = RoundRobin::default();
        rr.set_weight(0, 1);
        rr.set_weight(1, 1);
        rr.activate(0);
        let mut got = [0, 0];
        let mut queued = false;
        for _ in 0..1_000 {
            if !queued {
                rr.activate(1);
                queued = true;
            }
            let who = rr.turn().unwrap();
            if who == 1 && !queued {
                rr.skip(1);
                continue;
            }
            got[who as usize] += 1;
            rr.served(who, 1, who == 0);
            if who == 1 {
                queued = false;
            }
        }
        assert!(got[1] <= got[0] + 1, "{got:?}");
    }

    #[test]
    fn nobody_in_line_means_no_turn() {
        let mut rr = RoundRobin::default();
        assert_eq!(rr.turn(), None);
        rr.set_weight(3, 1);
        rr.activate(3);
        assert_eq!(rr.turn(), Some(3));
        rr.skip(3);
        assert_eq!(rr.turn(), None);
    }
}
