//! What NORMAL is on a tenant's own network, by its definition: from the lowest switch of each part to each other one there is
//! a way that a repeater's packets take, the shortest; of several, that through the lowest switches, then by the lowest ports.

use super::stage::{Plan, head, reference_index, switches_of};
use emulate::Network;
use std::collections::BTreeSet;

/// A step: the switch that is reached, the port by which the one before is left, and that of arrival.
type Step = (u64, u32, u32);

/// Makes the switches repeaters, by their ports at the edge and those of the ways.
pub fn repeat(network: &mut Network, plan: &Plan) {
    let mut ports: BTreeSet<(u64, u32)> = BTreeSet::new();
    ports.extend(plan.edges.iter().map(|edge| (head(plan, edge.0), edge.2)));
    ports.extend(plan.shared.iter().map(|edge| (head(plan, edge.0), edge.2)));
    let switches = switches_of(plan);
    for &to in &switches {
        // The lowest from which it is reached is the root of its part.
        let ways = switches.iter().find_map(|&from| best(plan, from, to).map(|way| (from, way)));
        let Some((mut from, way)) = ways else { continue };
        for (to, leaves, arrives) in way {
            ports.extend([(from, leaves), (to, arrives)]);
            from = to;
        }
    }
    for switch in switches {
        let own = ports.iter().filter(|port| port.0 == switch).map(|port| port.1);
        let index = reference_index(plan, switch);
        network.switch_mut(index).unwrap().repeat_by(own.collect());
    }
}

fn best(plan: &Plan, from: u64, to: u64) -> Option<Vec<Step>> {
    let mut ways = Vec::new();
    walk(plan, from, to, &mut Vec::new(), &mut ways);
    let switches = |way: &[Step]| way.iter().map(|step| step.0).collect::<Vec<_>>();
    let ports = |way: &[Step]| way.iter().map(|step| step.1).collect::<Vec<_>>();
    ways.into_iter().min_by_key(|way| (way.len(), switches(way), ports(way)))
}

/// All ways that come to no switch twice.
fn walk(plan: &Plan, at: u64, to: u64, way: &mut Vec<Step>, ways: &mut Vec<Vec<Step>>) {
    if at == to {
        ways.push(way.clone());
        return;
    }
    let came = way.clone();
    for link in plan.links.iter().filter(|link| !plan.cut.contains(link)) {
        let [a, b] = link.map(|end| (head(plan, end.0), end.1));
        for (near, far) in [(a, b), (b, a)] {
            let is_back = came.iter().any(|step| step.0 == far.0);
            if near.0 == at && !is_back {
                way.push((far.0, near.1, far.1));
                walk(plan, far.0, to, way, ways);
                way.pop();
            }
        }
    }
}
