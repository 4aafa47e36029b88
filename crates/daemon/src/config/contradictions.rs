//! Contradictions within and between tenants' networks.

use std::collections::BTreeMap;

use fabric::TenantId;
use fabric::embedding::{Embedding, Spec};

use super::reader::Reader;
use super::settings::{Config, Tenant};
use crate::networks::why;

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
