//! The reasons for a refused change as the tenant may read them: without information about other tenants.
//!
//! A physical port of another tenant is reported as a port that does not exist, and reasons of other tenants' networks
//! are omitted.

use std::collections::BTreeSet;

use fabric::embedding::{Reason, Refusal, Spec};
use fabric::{PortId, TenantId};

use crate::config::Maxima;

/// The reasons in words.
pub(super) fn reasons(id: TenantId, tenant: &str, all: &[Refusal]) -> Vec<String> {
    let reasons: BTreeSet<String> = all.iter().map(|refusal| reason(id, tenant, refusal)).collect();
    reasons.into_iter().collect()
}

/// If two tenants request the same resource, either may be refused, so the text is the same for both.
fn reason(id: TenantId, tenant: &str, refusal: &Refusal) -> String {
    let is_own = refusal.tenant == id;
    match refusal.why {
        Reason::PortTaken(port, by) if is_own || by == id => nowhere(tenant, port),
        Reason::NoSuchPhysicalPort(port) if is_own => nowhere(tenant, port),
        Reason::HostTaken(by) if is_own || by == id => {
            format!("{tenant}: the address of a host cannot be had at its physical port")
        }
        ref why if is_own => format!("{tenant}: {}: {why}", refusal.part),
        _ => format!("{tenant}: the physical network does not allow it"),
    }
}

/// The refusals of new ports at physical ports that the tenant's account may not use: otherwise the tenant could take
/// over other tenants' hosts there.
pub(super) fn ports_elsewhere(
    tenant: &str,
    network: &Spec,
    known: [Option<&Spec>; 2],
    maxima: &Maxima,
) -> Vec<String> {
    let known: BTreeSet<PortId> =
        known.into_iter().flatten().flat_map(|spec| &spec.ports).map(|port| port.at).collect();
    let may = |at: &PortId| known.contains(at) || maxima.has_edge(*at);
    let all = network.ports.iter().map(|port| port.at).filter(|at| !may(at));
    all.map(|at| nowhere(tenant, at)).collect()
}

fn nowhere(tenant: &str, port: PortId) -> String {
    format!("{tenant}: {port} is not there, or not for this tenant")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::embedding::Part;
    use fabric::{Dpid, MacAddress, PortNumber};

    #[test]
    fn a_port_of_another_tenant_is_refused_like_a_missing_port() {
        let port = PortId::new(Dpid(1), PortNumber::new(5).unwrap());
        let (red, blue) = (TenantId(1), TenantId(2));
        let part = Part::Host("02:00:00:00:00:01".parse::<MacAddress>().unwrap());
        let shown = |tenant, why| reasons(red, "red", &[Refusal { tenant, part, why }]);
        let taken = shown(red, Reason::PortTaken(port, blue));
        assert_eq!(taken, shown(red, Reason::NoSuchPhysicalPort(port)));
        assert!(taken[0].starts_with("red: ") && !taken[0].contains("blue"), "{taken:?}");
        assert_eq!(taken, shown(blue, Reason::PortTaken(port, red)), "whoever is refused");
        let host = shown(red, Reason::HostTaken(blue));
        assert_eq!(host, shown(blue, Reason::HostTaken(red)));
        assert_eq!(
            shown(red, Reason::SelfLink),
            [format!("red: {part}: {}", Reason::SelfLink)],
            "what is its own"
        );
        let others = shown(blue, Reason::NoSuchPhysicalPort(port));
        assert_eq!(others, ["red: the physical network does not allow it"]);
    }
}
