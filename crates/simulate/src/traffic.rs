//! Who sends to whom, and how much each is entitled to.
//!
//! Each server is divided evenly among some number of virtual interfaces; those of one size are shuffled and dealt out
//! to tenants, two or more to each. Each sends to another one of its tenant, all of them to different ones, so that
//! every server could be busy. From time to time a tenant's job ends, and the next begins: other pairs. What a flow is
//! entitled to is its nominal rate in the hose model ([`fabric::hose`]).

use crate::error::Error;
use crate::random::Random;
use crate::world::World;
use fabric::hose::{Hose, VnicId};
use fabric::usage::FlowId;
use fabric::{Bandwidth, TenantId};

/// How the network is divided.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenancy {
    /// How many tenants.
    pub tenants: usize,
    /// Into how many virtual interfaces a server is divided: each server draws one of these.
    pub divisions: Vec<u64>,
    /// How long a tenant's job lasts on average, in steps; infinite for ever.
    pub lifetime: f64,
}

/// A flow between two virtual interfaces of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The tenant's place among all.
    pub tenant: usize,
    /// The sending server.
    pub from: usize,
    /// The receiving one.
    pub to: usize,
    /// What it is entitled to, in bits per second.
    pub nominal: u64,
}

impl Flow {
    /// The tenant's number.
    pub fn tenant_id(&self) -> TenantId {
        TenantId(u16::try_from(self.tenant + 1).unwrap_or(u16::MAX))
    }
}

/// The traffic of all tenants, step by step; one flow per virtual interface, whose places do not change.
#[derive(Clone, Debug)]
pub struct Traffic {
    random: Random,
    lifetime: f64,
    /// Each tenant's flows are those from its start to its end.
    tenants: Vec<std::ops::Range<usize>>,
    /// The server and the bandwidth of each virtual interface.
    vnics: Vec<(usize, u64)>,
    hose: Hose,
    flows: Vec<Flow>,
}

impl Traffic {
    /// Divides a network; the same seed gives the same traffic.
    pub fn new(world: &World, tenancy: &Tenancy, seed: u64) -> Result<Traffic, Error> {
        let mut random = Random::new(seed);
        if tenancy.divisions.is_empty() || tenancy.divisions.contains(&0) {
            return Err(Error::Setting("a server is divided into at least one virtual interface"));
        }
        if tenancy.lifetime.is_nan() || tenancy.lifetime < 1.0 {
            return Err(Error::Setting("a job lasts at least a step"));
        }
        if tenancy.tenants == 0 || tenancy.tenants >= usize::from(u16::MAX) {
            return Err(Error::Setting("there are 1 to 65534 tenants"));
        }
        let mut by_division = vec![Vec::new(); tenancy.divisions.len()];
        for (place, server) in world.servers().iter().enumerate() {
            let drawn = random.below(tenancy.divisions.len());
            let division = tenancy.divisions[drawn];
            let vnic = (place, server.capacity / division);
            by_division[drawn].extend((0..division).map(|_| vnic));
        }
        let counts: Vec<usize> = by_division.iter().map(Vec::len).collect();
        let shares = deal(tenancy.tenants, &counts)?;
        let (mut vnics, mut tenants) = (Vec::new(), Vec::new());
        for (mut alike, share) in by_division.into_iter().zip(shares) {
            if share == 0 {
                continue;
            }
            random.shuffle(&mut alike);
            let begin = vnics.len();
            vnics.append(&mut alike);
            tenants.extend(cut(begin, vnics.len(), share, &mut random));
        }
        let mut hose = Hose::default();
        for (id, (_, bandwidth)) in (0..).zip(&vnics) {
            hose.add_vnic(VnicId(id), Bandwidth::from_bits_per_second(*bandwidth))?;
        }
        let flows = vec![Flow { tenant: 0, from: 0, to: 0, nominal: 0 }; vnics.len()];
        let lifetime = tenancy.lifetime;
        let mut traffic = Traffic { random, lifetime, tenants, vnics, hose, flows };
        for tenant in 0..traffic.tenants.len() {
            traffic.pair(tenant)?;
        }
        Ok(traffic)
    }

    /// Goes on by one step; the tenants whose job ended and whose next began.
    pub fn step(&mut self) -> Result<Vec<usize>, Error> {
        let mut changed = Vec::new();
        for tenant in 0..self.tenants.len() {
            if self.random.fraction() < 1.0 / self.lifetime {
                self.pair(tenant)?;
                changed.push(tenant);
            }
        }
        Ok(changed)
    }

    /// All flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The places of a tenant's flows.
    pub fn of(&self, tenant: usize) -> std::ops::Range<usize> {
        self.tenants[tenant].clone()
    }

    /// How many tenants there are.
    pub fn tenants(&self) -> usize {
        self.tenants.len()
    }

    /// Draws a tenant's pairs: one cycle through all its virtual interfaces, so that none sends to itself.
    fn pair(&mut self, tenant: usize) -> Result<(), Error> {
        let range = self.of(tenant);
        let mut cycle: Vec<usize> = range.clone().collect();
        self.random.shuffle(&mut cycle);
        for flow in range.clone() {
            if self.hose.rate(FlowId(flow as u64)).is_some() {
                self.hose.disconnect(FlowId(flow as u64))?;
            }
        }
        for (place, &from) in cycle.iter().enumerate() {
            let to = cycle[(place + 1) % cycle.len()];
            self.hose.connect(FlowId(from as u64), VnicId(from as u64), VnicId(to as u64))?;
            let (from_server, to_server) = (self.vnics[from].0, self.vnics[to].0);
            self.flows[from] = Flow { tenant, from: from_server, to: to_server, nominal: 0 };
        }
        for flow in range {
            let rate = self.hose.rate(FlowId(flow as u64)).unwrap_or_default();
            self.flows[flow].nominal = rate.bits_per_second();
        }
        Ok(())
    }
}

/// How many of the tenants get interfaces of each size: in proportion to their numbers, at least one where there are
/// two or more.
fn deal(tenants: usize, counts: &[usize]) -> Result<Vec<usize>, Error> {
    let most: usize = counts.iter().map(|count| count / 2).sum();
    let sizes = counts.iter().filter(|count| **count >= 2).count();
    if tenants > most {
        return Err(Error::TooManyTenants { tenants, most });
    }
    if tenants < sizes {
        return Err(Error::Setting("there are fewer tenants than sizes of virtual interfaces"));
    }
    let all: usize = counts.iter().sum();
    let mut shares: Vec<usize> = counts
        .iter()
        .map(|&count| (tenants * count / all.max(1)).clamp(usize::from(count >= 2), count / 2))
        .collect();
    // What rounding left over goes to the most numerous, and what it took too much comes from there.
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&size| std::cmp::Reverse(counts[size]));
    while shares.iter().sum::<usize>() < tenants {
        let has_room = |size: &&usize| shares[**size] < counts[**size] / 2;
        let Some(&size) = order.iter().find(has_room) else { break };
        shares[size] += 1;
    }
    while shares.iter().sum::<usize>() > tenants {
        let Some(&size) = order.iter().find(|size| shares[**size] > 1) else { break };
        shares[size] -= 1;
    }
    Ok(shares)
}

/// Cuts places into that many parts of two or more, at random.
fn cut(begin: usize, end: usize, parts: usize, random: &mut Random) -> Vec<std::ops::Range<usize>> {
    let spare = end - begin - 2 * parts;
    let mut cuts: Vec<usize> = (1..parts).map(|_| random.below(spare + 1)).collect();
    cuts.sort_unstable();
    let edges = cuts.iter().enumerate().map(|(place, extra)| begin + 2 * (place + 1) + extra);
    let edges: Vec<usize> = std::iter::once(begin).chain(edges).chain([end]).collect();
    edges.windows(2).map(|pair| pair[0]..pair[1]).collect()
}
