//! Weighted max-min fair rates, by progressive filling.
//!
//! The rates of all flows rise together, each in proportion to its weight, until a link is full or a flow has its
//! demand. Those flows stop, and the others go on rising (Bertsekas and Gallager, *Data Networks*, section 6.5.2). In
//! the resulting allocation no flow can get more without taking from a flow that has, for its weight, no more.
//!
//! The algorithm goes from event to event: to the level (rate per weight) at which the next link is full or the next
//! flow has its demand. *n* flows of *p* links each cost O(*n p* log *n p*).

use crate::error::Error;
use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

/// A flow that wants a share of some links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand<'a> {
    /// Rows in the table of capacities, each at most once.
    pub links: &'a [usize],
    /// The weight of the flow among other flows; above 0. The weight is an integer, so that sums of very different
    /// weights stay exact.
    pub weight: u64,
    /// The demand of the flow; may be infinite if the flow crosses at least one link.
    pub most: f64,
}

/// The max-min fair rate of each flow, in the capacities' unit.
///
/// The function refuses a capacity or a demand that is negative or no number, a weight of 0, an infinite demand without
/// a link, and a link that is not in the table.
pub fn max_min(capacities: &[f64], demands: &[Demand<'_>]) -> Result<Vec<f64>, Error> {
    let is_amount = |amount: f64| amount >= 0.0;
    if let Some(place) = capacities.iter().position(|capacity| !is_amount(*capacity)) {
        return Err(Error::ImpossibleCapacity(place));
    }
    let is_possible = |demand: &Demand<'_>| {
        demand.weight > 0
            && is_amount(demand.most)
            && (demand.most.is_finite() || !demand.links.is_empty())
            && demand.links.iter().all(|&link| link < capacities.len())
    };
    if let Some(place) = demands.iter().position(|demand| !is_possible(demand)) {
        return Err(Error::ImpossibleDemand(place));
    }
    Ok(Filling::new(capacities, demands).run())
}

/// A level; levels are ordered like numbers, and no level is NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level(f64);

impl Eq for Level {}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Level) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Level) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

struct Filling<'a> {
    demands: &'a [Demand<'a>],
    links: Vec<Room>,
    /// Flows by link: the flows of link `l` are at `starts[l]` to `starts[l + 1]`.
    starts: Vec<usize>,
    flows: Vec<usize>,
    rates: Vec<Option<f64>>,
}

/// The room of a link for flows whose rate still rises.
#[derive(Clone, Copy)]
struct Room {
    left: f64,
    weight: u128,
    rising: usize,
}

impl Room {
    /// The level at which the link is full.
    fn level(self) -> Option<Level> {
        // A difference of sums may be a little below 0.
        (self.rising > 0).then(|| Level((self.left / self.weight as f64).max(0.0)))
    }
}

impl<'a> Filling<'a> {
    fn new(capacities: &[f64], demands: &'a [Demand<'a>]) -> Filling<'a> {
        let mut links: Vec<Room> =
            capacities.iter().map(|&left| Room { left, weight: 0, rising: 0 }).collect();
        for demand in demands {
            for &link in demand.links {
                links[link].weight += u128::from(demand.weight);
                links[link].rising += 1;
            }
        }
        let mut starts = vec![0; links.len() + 1];
        for (link, room) in links.iter().enumerate() {
            starts[link + 1] = starts[link] + room.rising;
        }
        let mut ends = starts.clone();
        let mut flows = vec![0; starts[links.len()]];
        for (flow, demand) in demands.iter().enumerate() {
            for &link in demand.links {
                flows[ends[link]] = flow;
                ends[link] += 1;
            }
        }
        Filling { demands, links, starts, flows, rates: vec![None; demands.len()] }
    }

    fn run(mut self) -> Vec<f64> {
        let mut content: Vec<usize> = (0..self.demands.len()).collect();
        let demands = self.demands;
        let wanted = |flow: usize| {
            let demand = &demands[flow];
            Level(demand.most / demand.weight as f64)
        };
        content.sort_by_key(|&flow| wanted(flow));
        let mut content = content.into_iter().peekable();
        let full = self.links.iter().enumerate();
        let full = full.filter_map(|(link, room)| Some(Reverse((room.level()?, link))));
        let mut full: BinaryHeap<Reverse<(Level, usize)>> = full.collect();
        loop {
            // Flows that stop leave room, and so raise the level at which a link is full. An outdated entry is
            // therefore always too low.
            let next = loop {
                let Some(&Reverse((known, link))) = full.peek() else { break None };
                match self.links[link].level() {
                    Some(level) if level <= known => break Some((level, link)),
                    Some(level) => {
                        full.pop();
                        full.push(Reverse((level, link)));
                    }
                    None => _ = full.pop(),
                }
            };
            let flow = content.next_if(|&flow| {
                self.rates[flow].is_some() || next.is_none_or(|(level, _)| wanted(flow) <= level)
            });
            match (flow, next) {
                (Some(flow), _) => self.stop(flow, self.demands[flow].most),
                (None, Some((level, link))) => {
                    full.pop();
                    for place in self.starts[link]..self.starts[link + 1] {
                        let flow = self.flows[place];
                        self.stop(flow, level.0 * self.demands[flow].weight as f64);
                    }
                }
                (None, None) => {
                    return self.rates.into_iter().map(Option::unwrap_or_default).collect();
                }
            }
        }
    }

    fn stop(&mut self, flow: usize, rate: f64) {
        if self.rates[flow].is_some() {
            return;
        }
        self.rates[flow] = Some(rate);
        let demand = &self.demands[flow];
        for &link in demand.links {
            let room = &mut self.links[link];
            room.left -= rate;
            room.weight -= u128::from(demand.weight);
            room.rising -= 1;
        }
    }
}
