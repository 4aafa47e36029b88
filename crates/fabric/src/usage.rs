//! The load of each tenant's flows on links, and the residual bandwidth for each tenant.
//!
//! The paper (Riggio et al., *The Price of Virtualization*, 2013, section III) defines a link's label first as the
//! fraction that other tenants use, then as the residual capacity. Here it is the residual:
//!
//! ```text
//! others(link, tenant) = sum of the rates of all flows on the link that are not the tenant's
//! label(link, tenant)  = capacity(link) - min(capacity(link), others(link, tenant))
//! ```
//!
//! So at every instant `label + min(capacity, others) = capacity`. A tenant's own flows do not lower its own label,
//! because the tenant knows them and may move them. The sum of nominal rates can exceed the capacity of a link; then
//! the label is 0.
//!
//! Tracking is incremental: the cost of a flow's change depends on the length of its path, and not on the number of
//! flows.

use crate::error::Error;
use crate::index::LinkId;
use crate::network::Network;
use crate::units::{Bandwidth, TenantId};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use hashbrown::HashMap;

/// The number of a flow, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A tenant's flow over some links at some rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The tenant of the flow.
    pub tenant: TenantId,
    /// The nominal or the measured rate.
    pub rate: Bandwidth,
    /// The links of the flow, each once.
    pub links: Box<[LinkId]>,
}

/// All flows, and the load of each link.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    flows: HashMap<FlowId, Flow>,
    /// The load by link.
    links: Vec<Load>,
    /// Links whose load has changed since they were last taken.
    touched: BTreeSet<LinkId>,
}

/// The load of a link, in bits per second.
#[derive(Clone, Debug, Default)]
struct Load {
    total: u64,
    by_tenant: BTreeMap<TenantId, TenantLoad>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TenantLoad {
    bits: u64,
    flows: u32,
}

impl Usage {
    /// Adds a flow. The function refuses a number in use, an unknown link, a link named twice, and a sum that does not
    /// fit. A refused flow changes nothing.
    pub fn add(&mut self, network: &Network, id: FlowId, flow: Flow) -> Result<(), Error> {
        if self.flows.contains_key(&id) {
            return Err(Error::DuplicateId(id.0));
        }
        self.check(network, &flow, None)?;
        self.put(&flow);
        self.flows.insert(id, flow);
        Ok(())
    }

    /// Removes a flow.
    pub fn remove(&mut self, id: FlowId) -> Result<Flow, Error> {
        let flow = self.flows.remove(&id).ok_or(Error::UnknownId(id.0))?;
        self.take(&flow);
        Ok(flow)
    }

    /// Gives a flow another rate.
    pub fn set_rate(
        &mut self,
        network: &Network,
        id: FlowId,
        rate: Bandwidth,
    ) -> Result<(), Error> {
        let Usage { flows, links, touched } = self;
        let flow = flows.get_mut(&id).ok_or(Error::UnknownId(id.0))?;
        if flow.rate == rate {
            return Ok(());
        }
        let (before, after) = (flow.rate.bits_per_second(), rate.bits_per_second());
        for &link in &flow.links {
            network.find_link(link)?;
            let total = links.get(link.index()).map_or(0, |load| load.total);
            total.saturating_sub(before).checked_add(after).ok_or(Error::Overflow)?;
        }
        // Most rates change because another flow of the same sender or receiver has changed. These frequent changes are
        // made in place.
        for &link in &flow.links {
            let Some(load) = links.get_mut(link.index()) else { continue };
            let Some(own) = load.by_tenant.get_mut(&flow.tenant) else { continue };
            load.total = load.total - before + after;
            own.bits = own.bits - before + after;
            touched.insert(link);
        }
        flow.rate = rate;
        Ok(())
    }

    /// Puts a flow on another path.
    pub fn reroute(
        &mut self,
        network: &Network,
        id: FlowId,
        links: Box<[LinkId]>,
    ) -> Result<(), Error> {
        let before = self.flows.get(&id).cloned().ok_or(Error::UnknownId(id.0))?;
        let flow = Flow { links, ..before };
        self.check(network, &flow, Some(&before))?;
        self.take(&before);
        self.put(&flow);
        self.flows.insert(id, flow);
        Ok(())
    }

    /// The flow with this number.
    pub fn get(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(&id)
    }

    /// The number of flows.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is no flow.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The load of a link by all tenants together.
    pub fn total(&self, link: LinkId) -> Bandwidth {
        Bandwidth::from_bits_per_second(self.links.get(link.index()).map_or(0, |load| load.total))
    }

    /// The load of a link by one tenant.
    pub fn of(&self, link: LinkId, tenant: TenantId) -> Bandwidth {
        let load = self.links.get(link.index()).and_then(|load| load.by_tenant.get(&tenant));
        Bandwidth::from_bits_per_second(load.map_or(0, |load| load.bits))
    }

    /// The load of a link by all other tenants.
    pub fn others(&self, link: LinkId, tenant: TenantId) -> Bandwidth {
        self.total(link).saturating_sub(self.of(link, tenant))
    }

    /// The residual bandwidth of a link for a tenant; 0 if the link is down.
    pub fn label(&self, network: &Network, link: LinkId, tenant: TenantId) -> Bandwidth {
        let state = network.link(link);
        if !state.is_up() {
            return Bandwidth::ZERO;
        }
        state.capacity.saturating_sub(self.others(link, tenant))
    }

    /// Links whose load has changed since the last call.
    pub fn take_touched(&mut self) -> BTreeSet<LinkId> {
        core::mem::take(&mut self.touched)
    }

    /// An error if a flow cannot be added to its links after the load of `instead` is removed.
    fn check(&self, network: &Network, flow: &Flow, instead: Option<&Flow>) -> Result<(), Error> {
        for (place, &link) in flow.links.iter().enumerate() {
            network.find_link(link)?;
            if flow.links.iter().skip(place + 1).any(|other| *other == link) {
                return Err(Error::RepeatedLink(link));
            }
            let leaves = instead.filter(|before| before.links.contains(&link));
            let left = self.total(link).saturating_sub(leaves.map_or(Bandwidth::ZERO, |f| f.rate));
            left.checked_add(flow.rate).ok_or(Error::Overflow)?;
        }
        Ok(())
    }

    fn put(&mut self, flow: &Flow) {
        for &link in &flow.links {
            if self.links.len() <= link.index() {
                self.links.resize_with(link.index() + 1, Load::default);
            }
            let load = &mut self.links[link.index()];
            let own = load.by_tenant.entry(flow.tenant).or_default();
            load.total += flow.rate.bits_per_second();
            own.bits += flow.rate.bits_per_second();
            own.flows += 1;
            self.touched.insert(link);
        }
    }

    fn take(&mut self, flow: &Flow) {
        for &link in &flow.links {
            let Some(load) = self.links.get_mut(link.index()) else { continue };
            let Some(own) = load.by_tenant.get_mut(&flow.tenant) else { continue };
            load.total -= flow.rate.bits_per_second();
            own.bits -= flow.rate.bits_per_second();
            own.flows -= 1;
            if own.flows == 0 {
                load.by_tenant.remove(&flow.tenant);
            }
            self.touched.insert(link);
        }
    }
}
