//! Contradictions within and between tenants' networks, and their reasons in words.

use std::collections::BTreeMap;

use fabric::TenantId;
use fabric::embedding::{Embedding, Reason, Spec};

use super::reader::Reader;
use super::settings::{Config, Tenant};

/// Checks for contradictions that do not depend on the physical network.
pub(super) fn check(reader: &Reader<'_>, config: &Config) {
    let [least, most] = config.topology.tags;
    let wanted = wanted(&config.tenants);
    let mut embedding = Embedding::new(least, most);
    let Err(refusals) = embedding.apply(&fabric::Network::default(), &wanted) else { return };
    let tenant = |id: TenantId| config.tenants.get(usize::from(id.0).wrapping_sub(1));
    for refusal in refusals {
        let Some(Tenant { network: Some(network), .. }) = tenant(refusal.tenant) else { continue };
        let named = |id| tenant(id).map_or("", |tenant| tenant.name.as_str()).to_owned();
        let message = format!("{}: {}", refusal.part, why(&refusal.why, named));
        let key = format!("tenants[{}].network", refusal.tenant.0 - 1);
        reader.error(network.span_of(refusal.part), &key, message, None);
    }
}

/// All networks; the tenants have numbers from 1 in the order of the file.
pub(crate) fn wanted(tenants: &[Tenant]) -> BTreeMap<TenantId, Spec> {
    let specs = tenants.iter().zip(1..);
    specs.filter_map(|(it, id)| Some((TenantId(id), it.network.as_ref()?.spec.clone()))).collect()
}

/// The reason why a part is impossible, with the tenants' names.
pub(crate) fn why(reason: &Reason, name: impl Fn(TenantId) -> String) -> String {
    match *reason {
        Reason::PortTaken(port, by) => {
            format!("{port} is taken by \"{}\"; all who have it must say `shared = true`", name(by))
        }
        Reason::HostTaken(by) => {
            format!("\"{}\" has a host of that address at the same physical port", name(by))
        }
        ref other => other.to_string(),
    }
}
