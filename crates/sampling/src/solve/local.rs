//! The solver without collaboration, and the function by which all solvers make flows.

use crate::plan::Flow;
use crate::problem::Problem;

/// Each server samples its own traffic in the limit of its own capacity.
pub(super) fn local(problem: &Problem) -> Vec<Flow> {
    let servers = problem.servers().iter().zip(problem.own()).zip(problem.headroom());
    let flow = |(origin, ((server, own), headroom)): (usize, ((&crate::Server, &f64), f64))| {
        let volume = own.min(headroom / server.costs.alpha);
        flow(origin, origin, volume, *own)
    };
    servers.enumerate().filter_map(flow).collect()
}

/// A flow of a server's whole traffic; `None` if the volume is 0.
pub(super) fn flow(origin: usize, processor: usize, volume: f64, own: f64) -> Option<Flow> {
    let rate = (volume / own).min(1.0);
    (volume > 0.0).then_some(Flow { origin, processor, tenant: None, volume, rate })
}
