//! What NORMAL is on a tenant's own network, by its definition: a repeater by links of which no two lead to the same switch. Those
//! by which it repeated stay, as long as they have a way. The others are looked at in the order in which switches are reached
//! from the lowest of each part, by the shortest way, of several by that through the lowest switches; at each switch by the
//! neighbours and then by the ports. One comes that joins what is apart.

use super::places::Plan;
use super::stage::{reference_index, switches_of};
use emulate::Network;
use std::collections::BTreeSet;

/// A link, by the physical switches under its ends and the tenant's ports there.
pub type Link = [(u64, u32); 2];

/// Makes the switches repeaters by their ports at the edge and by links, which it gives, those `before` among them if they can be.
pub fn repeat(network: &mut Network, plan: &Plan, before: &[Link]) -> Vec<Link> {
    let repeating = repeating(plan, before);
    let mut ports: BTreeSet<(u64, u32)> = BTreeSet::new();
    ports.extend(plan.edges.iter().map(|edge| (plan.head(edge.0), edge.2)));
    ports.extend(plan.shared.iter().map(|edge| (plan.head(edge.0), edge.2)));
    ports.extend(repeating.iter().flatten().map(|end| (plan.head(end.0), end.1)));
    for switch in switches_of(plan) {
        let own = ports.iter().filter(|port| port.0 == switch).map(|port| port.1);
        let index = reference_index(plan, switch);
        network.switch_mut(index).unwrap().repeat_by(own.collect());
    }
    repeating
}

fn repeating(plan: &Plan, before: &[Link]) -> Vec<Link> {
    let up: Vec<Link> =
        plan.links.iter().filter(|link| !plan.cut.contains(link)).copied().collect();
    let mut repeating: Vec<Link> =
        up.iter().filter(|link| before.contains(link)).copied().collect();
    let mut others = Vec::new();
    for link in up.iter().filter(|link| !before.contains(link)) {
        let [a, b] = link.map(|end| (plan.head(end.0), end.1));
        // It is met from the end that is reached first.
        let met =
            [(a, b), (b, a)].map(|(near, far)| (place(plan, &up, near.0), far.0, near.1, far.1));
        others.push((met.into_iter().min(), *link));
    }
    others.sort();
    for (_, link) in others {
        let [from, to] = link.map(|end| plan.head(end.0));
        if ways(plan, &repeating, from, to).is_empty() {
            repeating.push(link);
        }
    }
    repeating
}

/// How soon a switch is reached: the lowest of its part, and the way from there.
fn place(plan: &Plan, links: &[Link], to: u64) -> (u64, usize, Vec<u64>) {
    let ways_from = |from| ways(plan, links, from, to).into_iter().map(move |way| (from, way));
    let mut all = switches_of(plan)
        .into_iter()
        .map(ways_from)
        .filter_map(|ways| ways.map(|(from, way)| (from, way.len(), way)).min());
    // The lowest from which there is any way comes first; there is one from itself.
    all.next().unwrap()
}

/// The switches that are passed, by every way that comes to none twice.
fn ways(plan: &Plan, links: &[Link], from: u64, to: u64) -> Vec<Vec<u64>> {
    let mut found = Vec::new();
    walk(plan, links, to, &mut vec![from], &mut found);
    found
}

fn walk(plan: &Plan, links: &[Link], to: u64, way: &mut Vec<u64>, found: &mut Vec<Vec<u64>>) {
    let at = way[way.len() - 1];
    if at == to {
        found.push(way.clone());
        return;
    }
    for link in links {
        let [a, b] = link.map(|end| plan.head(end.0));
        for (near, far) in [(a, b), (b, a)] {
            if near == at && !way.contains(&far) {
                way.push(far);
                walk(plan, links, to, way, found);
                way.pop();
            }
        }
    }
}
