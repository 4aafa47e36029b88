//! The nominal rate of each flow, if a tenant buys only the bandwidth of its virtual interfaces.
//!
//! In the hose model (Duffield et al., SIGCOMM 1999) a virtual interface (VNIC) may send and receive at its bandwidth,
//! to and from all others. EyeQ (Jeyakumar et al., NSDI 2013) enforces this model at the edge: senders to a congested
//! receiver get shares in proportion to their own bandwidths. The nominal rate of a flow is computed in two steps:
//!
//! ```text
//! offer(f)   = receiver's bandwidth * min(1, w(f) / sum of w over the flows to that receiver), at most the sender's,
//!              where w(f) is the sender's bandwidth divided among its flows to that receiver
//! nominal(f) = offer(f) * min(1, sender's bandwidth / sum of its flows' offers)
//! ```
//!
//! So the sum of nominal rates to a receiver, or of a sender, never exceeds the bought bandwidth. Labels use nominal
//! rates until rates are measured. Tracking is incremental: a new or ended flow changes the flows to the same receiver,
//! and the remaining bandwidth of their senders.
//!
//! [`shares`] also uses the demand of each flow, if known: bandwidth that one flow does not use goes to the others,
//! max-min fairly in proportion to the senders' bandwidths.

use crate::error::Error;
use crate::share::{Demand, max_min};
use crate::units::Bandwidth;
use crate::usage::FlowId;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use hashbrown::HashMap;

/// The number of a virtual interface, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VnicId(pub u64);

/// Virtual interfaces, the flows between them, and the flows' nominal rates.
#[derive(Clone, Debug, Default)]
pub struct Hose {
    vnics: HashMap<VnicId, Vnic>,
    flows: HashMap<FlowId, Stream>,
}

#[derive(Clone, Debug, Default)]
struct Vnic {
    bandwidth: Bandwidth,
    sends: BTreeSet<FlowId>,
    receives: BTreeSet<FlowId>,
}

#[derive(Clone, Copy, Debug)]
struct Stream {
    from: VnicId,
    to: VnicId,
    offer: Bandwidth,
    nominal: Bandwidth,
}

/// A flow whose nominal rate has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The flow.
    pub flow: FlowId,
    /// The new nominal rate.
    pub rate: Bandwidth,
}

impl Hose {
    /// Adds a virtual interface with this bandwidth.
    pub fn add_vnic(&mut self, id: VnicId, bandwidth: Bandwidth) -> Result<(), Error> {
        if self.vnics.contains_key(&id) {
            return Err(Error::DuplicateId(id.0));
        }
        self.vnics.insert(id, Vnic { bandwidth, ..Vnic::default() });
        Ok(())
    }

    /// Adds a flow. The result is the flows whose rate has changed, including the new flow.
    pub fn connect(
        &mut self,
        flow: FlowId,
        from: VnicId,
        to: VnicId,
    ) -> Result<Vec<Change>, Error> {
        self.change(&[], &[(flow, from, to)])
    }

    /// Removes a flow. The result is the other flows whose rate has changed.
    pub fn disconnect(&mut self, flow: FlowId) -> Result<Vec<Change>, Error> {
        self.change(&[flow], &[])
    }

    /// Removes flows and adds others (with sender and receiver) in one step, so that common senders and receivers are
    /// computed once. The result is the flows whose rate has changed, each once, including all added flows. If one flow
    /// cannot be removed or added, nothing changes.
    pub fn change(
        &mut self,
        gone: &[FlowId],
        new: &[(FlowId, VnicId, VnicId)],
    ) -> Result<Vec<Change>, Error> {
        let mut leaving = BTreeSet::new();
        for flow in gone {
            if !self.flows.contains_key(flow) || !leaving.insert(*flow) {
                return Err(Error::UnknownId(flow.0));
            }
        }
        let mut coming = BTreeSet::new();
        for (flow, from, to) in new {
            let is_taken = self.flows.contains_key(flow) && !leaving.contains(flow);
            if is_taken || !coming.insert(*flow) {
                return Err(Error::DuplicateId(flow.0));
            }
            for vnic in [from, to] {
                self.vnics.get(vnic).ok_or(Error::UnknownId(vnic.0))?;
            }
        }
        let (mut senders, mut receivers) = (BTreeSet::new(), BTreeSet::new());
        for flow in gone {
            let Some(stream) = self.flows.remove(flow) else { continue };
            self.vnic(stream.from).sends.remove(flow);
            self.vnic(stream.to).receives.remove(flow);
            senders.insert(stream.from);
            receivers.insert(stream.to);
        }
        for &(flow, from, to) in new {
            self.vnic(from).sends.insert(flow);
            self.vnic(to).receives.insert(flow);
            let (offer, nominal) = (Bandwidth::ZERO, Bandwidth::ZERO);
            self.flows.insert(flow, Stream { from, to, offer, nominal });
            receivers.insert(to);
        }
        for receiver in receivers {
            senders.append(&mut self.offer(receiver));
        }
        let mut changes = self.settle(&senders);
        // A new flow may have rate 0. This is no change, but the caller has to learn the rate.
        let is_idle =
            |flow: &FlowId| self.flows.get(flow).is_some_and(|it| it.nominal == Bandwidth::ZERO);
        let idle = coming.into_iter().filter(is_idle);
        changes.extend(idle.map(|flow| Change { flow, rate: Bandwidth::ZERO }));
        Ok(changes)
    }

    /// A flow's nominal rate.
    pub fn rate(&self, flow: FlowId) -> Option<Bandwidth> {
        self.flows.get(&flow).map(|stream| stream.nominal)
    }

    /// Computes again the offers of a receiver to its flows, and returns the senders whose offers have changed.
    fn offer(&mut self, receiver: VnicId) -> BTreeSet<VnicId> {
        let Some(vnic) = self.vnics.get(&receiver) else { return BTreeSet::new() };
        let mut senders: BTreeMap<VnicId, u128> = BTreeMap::new();
        for flow in &vnic.receives {
            if let Some(stream) = self.flows.get(flow) {
                *senders.entry(stream.from).or_default() += 1;
            }
        }
        let bandwidth = |id: &VnicId| self.vnics.get(id).map_or(Bandwidth::ZERO, |it| it.bandwidth);
        let wanted: u128 =
            senders.keys().map(|id| u128::from(bandwidth(id).bits_per_second())).sum();
        let capacity = vnic.bandwidth;
        let fits = wanted <= u128::from(capacity.bits_per_second());
        let mut offers = Vec::with_capacity(vnic.receives.len());
        for flow in &vnic.receives {
            let Some(stream) = self.flows.get(flow) else { continue };
            let own = bandwidth(&stream.from);
            let count = senders.get(&stream.from).copied().unwrap_or(1);
            let offer = if fits {
                own.share(1, count)
            } else {
                capacity.share(u128::from(own.bits_per_second()), wanted.saturating_mul(count))
            };
            offers.push((*flow, offer));
        }
        let mut concerned = BTreeSet::new();
        for (flow, offer) in offers {
            if let Some(stream) = self.flows.get_mut(&flow)
                && stream.offer != offer
            {
                stream.offer = offer;
                concerned.insert(stream.from);
            }
        }
        concerned
    }

    /// Computes again the rates of these senders' flows from the offers.
    fn settle(&mut self, senders: &BTreeSet<VnicId>) -> Vec<Change> {
        let mut changes = Vec::new();
        for sender in senders {
            let Some(vnic) = self.vnics.get(sender) else { continue };
            let offer =
                |flow: &FlowId| self.flows.get(flow).map_or(0, |it| it.offer.bits_per_second());
            let offered: u128 = vnic.sends.iter().map(|flow| u128::from(offer(flow))).sum();
            let fits = offered <= u128::from(vnic.bandwidth.bits_per_second());
            for flow in &vnic.sends {
                let Some(stream) = self.flows.get_mut(flow) else { continue };
                let offer = stream.offer;
                let part = u128::from(offer.bits_per_second());
                let rate = if fits { offer } else { vnic.bandwidth.share(part, offered) };
                if rate != stream.nominal {
                    stream.nominal = rate;
                    changes.push(Change { flow: *flow, rate });
                }
            }
        }
        changes
    }

    /// A virtual interface that is known to exist.
    fn vnic(&mut self, id: VnicId) -> &mut Vnic {
        self.vnics.entry(id).or_default()
    }
}

/// A flow between two virtual interfaces, with its demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// The sender's row in the table of bandwidths.
    pub from: usize,
    /// The receiver's row in the table of bandwidths.
    pub to: usize,
    /// The demand of the flow; infinite: as much as possible.
    pub most: f64,
}

/// The rates of flows with known demands. Each flow gets at most its demand, and no sender and no receiver exceeds its
/// bandwidth. The bandwidth that one flow leaves is divided among the others in proportion to their senders' bandwidths
/// (divided among a sender's flows to the same receiver). Bandwidths are in bits per second.
pub fn shares(bandwidths: &[Bandwidth], wishes: &[Wish]) -> Result<Vec<f64>, Error> {
    let rows = bandwidths.len();
    if let Some(place) = wishes.iter().position(|wish| wish.from >= rows || wish.to >= rows) {
        return Err(Error::ImpossibleDemand(place));
    }
    // Each virtual interface counts as two links: one for sending, one for receiving.
    let both = bandwidths.iter().chain(bandwidths);
    let capacities: Vec<f64> = both.map(|bandwidth| bandwidth.bits_per_second() as f64).collect();
    let links: Vec<[usize; 2]> = wishes.iter().map(|wish| [wish.from, rows + wish.to]).collect();
    let mut alike: BTreeMap<[usize; 2], u64> = BTreeMap::new();
    for pair in &links {
        *alike.entry(*pair).or_default() += 1;
    }
    let demands = wishes.iter().zip(&links).map(|(wish, links)| {
        let own = bandwidths[wish.from].bits_per_second();
        let weight = own / alike.get(links).copied().unwrap_or(1);
        // A virtual interface without bandwidth may send nothing, so its weight has no effect.
        Demand { links, weight: weight.max(1), most: wish.most }
    });
    max_min(&capacities, &demands.collect::<Vec<_>>())
}
