//! A tenant's view of its own network and of its changes, without information about other tenants.
//!
//! The view omits moves of other networks. It also omits tags, because the numbers of tags reveal how many other
//! networks there are.

use crate::networks::{NetworkView, Outcome};

/// A network as its tenant may see it.
pub(super) fn network(mut view: NetworkView) -> NetworkView {
    let passed = view.paths.iter_mut().flat_map(|it| it.path.iter_mut().chain(&mut it.backup));
    passed.for_each(|passed| passed.tags.clear());
    view
}

/// The changes that concern this tenant.
pub(super) fn outcome(outcome: Outcome, tenant: &str) -> Outcome {
    let Outcome { dry_run, mut parts, mut ports, mut paths, .. } = outcome;
    parts.retain(|part| part.tenant == tenant);
    ports.retain(|port| port.tenant == tenant);
    paths.retain(|path| path.tenant == tenant);
    // The changed switches are omitted, because a switch may change for other tenants alone.
    Outcome { dry_run, parts, ports, paths, switches: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::networks::{PathOutcome, PortOutcome};

    #[test]
    fn an_outcome_for_a_tenant_has_no_changes_of_another_tenant() {
        let port = |tenant: &str| PortOutcome {
            tenant: tenant.to_owned(),
            port: String::new(),
            was: None,
            is: Some(true),
        };
        let path = |tenant: &str| PathOutcome {
            tenant: tenant.to_owned(),
            carries: "link".to_owned(),
            between: Default::default(),
            was: Vec::new(),
            is: Vec::new(),
        };
        let whole = Outcome {
            ports: vec![port("red"), port("blue")],
            paths: vec![path("blue"), path("red")],
            switches: vec!["1".to_owned()],
            ..Outcome::default()
        };
        let shown = outcome(whole, "red");
        assert_eq!((shown.ports, shown.paths), (vec![port("red")], vec![path("red")]));
        assert!(shown.switches.is_empty());
    }
}
