//! The problem: servers, their traffic, and other constraints of the plan.

use crate::cost::Costs;
use crate::error::{Error, Result, Shortfall};
use std::collections::HashSet;

/// The largest volume or capacity that is accepted: a terabit link carries 1.5·10⁹ of the smallest packets per second.
pub(crate) const LARGEST_VOLUME: f64 = 1e13;

/// A server with its one virtual switch (assumption A4).
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// The unique name.
    pub name: String,
    /// C: its capacity for forwarding and sampling; forwarding one packet per second costs 1.
    pub capacity: f64,
    /// α and β.
    pub costs: Costs,
    /// The least share of the server's traffic that has to be sampled, 0 to 1.
    pub minimum: f64,
    /// The value of a sampled packet of the server's traffic, above 0.
    pub weight: f64,
}

impl Server {
    /// A server without a minimum, of weight 1.
    pub fn new(name: impl Into<String>, capacity: f64, costs: Costs) -> Server {
        Server { name: name.into(), capacity, costs, minimum: 0.0, weight: 1.0 }
    }
}

/// A tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Tenant {
    /// The unique name.
    pub name: String,
    /// The least share of the tenant's traffic, over all servers, that has to be sampled, 0 to 1.
    pub minimum: f64,
    /// The value of a sampled packet of the tenant's traffic, above 0; multiplied by the server's weight.
    pub weight: f64,
}

impl Tenant {
    /// A tenant without a minimum, of weight 1.
    pub fn new(name: impl Into<String>) -> Tenant {
        Tenant { name: name.into(), minimum: 0.0, weight: 1.0 }
    }
}

/// V: traffic that virtual machines of one server send to virtual machines of another or the same server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// The sending server, which also samples the traffic (assumption A7).
    pub from: usize,
    /// The receiving server.
    pub to: usize,
    /// The tenant; `None` if the traffic belongs to no tenant.
    pub tenant: Option<usize>,
    /// Packets per second.
    pub volume: f64,
}

/// The limit of mirroring from one server to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkLimit {
    /// The server that mirrors.
    pub from: usize,
    /// The server that processes.
    pub to: usize,
    /// Packets per second; 0 forbids the pair.
    pub capacity: f64,
}

/// A valid problem: every value is finite and within its range, and every name refers to an existing server or tenant.
#[derive(Clone, Debug)]
pub struct Problem {
    servers: Vec<Server>,
    tenants: Vec<Tenant>,
    links: Vec<LinkLimit>,
    classes: Vec<Class>,
    own: Vec<f64>,
    load: Vec<f64>,
    total: f64,
}

/// A class of traffic with its own sampling rate: the traffic of one server, or of one tenant at one server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Class {
    pub(crate) server: usize,
    pub(crate) tenant: Option<usize>,
    pub(crate) volume: f64,
    pub(crate) weight: f64,
}

impl Problem {
    /// Checks every value, so that solvers need no checks.
    ///
    /// # Errors
    /// [`Error::Input`] with the place of the first invalid value; [`Error::Overloaded`] with every server that cannot
    /// forward its own traffic.
    pub fn new(
        servers: Vec<Server>,
        tenants: Vec<Tenant>,
        traffic: &[Entry],
        links: Vec<LinkLimit>,
    ) -> Result<Problem> {
        check_servers(&servers)?;
        check_tenants(&tenants)?;
        check_links(&links, servers.len())?;
        let mut own = vec![0.0; servers.len()];
        let mut load = vec![0.0; servers.len()];
        for (index, entry) in traffic.iter().enumerate() {
            let place = || format!("traffic entry {}", index + 1);
            quantity(&place(), "volume", entry.volume)?;
            if entry.tenant.is_some_and(|tenant| tenant >= tenants.len()) {
                return Err(Error::input(place(), "there is no such tenant"));
            }
            let missing = || Error::input(place(), "there is no such server");
            *own.get_mut(entry.from).ok_or_else(missing)? += entry.volume;
            *load.get_mut(entry.from).ok_or_else(missing)? += entry.volume;
            let received = load.get_mut(entry.to).ok_or_else(missing)?;
            if entry.to != entry.from {
                *received += entry.volume;
            }
        }
        let overloaded: Vec<Shortfall> = servers
            .iter()
            .zip(&load)
            .filter(|(server, load)| **load > server.capacity)
            .map(|(server, load)| Shortfall {
                who: format!("server {}", server.name),
                by: load - server.capacity,
                of: *load,
            })
            .collect();
        if !overloaded.is_empty() {
            return Err(Error::Overloaded(overloaded));
        }
        let classes = classes(&servers, &tenants, traffic, &own);
        let total = own.iter().sum();
        Ok(Problem { servers, tenants, links, classes, own, load, total })
    }

    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The tenants; none if no traffic belongs to a tenant.
    #[must_use]
    pub fn tenants(&self) -> &[Tenant] {
        &self.tenants
    }

    /// The limits between servers.
    #[must_use]
    pub fn links(&self) -> &[LinkLimit] {
        &self.links
    }

    /// U: the traffic that each server has to sample, in packets per second.
    #[must_use]
    pub fn own(&self) -> &[f64] {
        &self.own
    }

    /// The packets per second that each server forwards: its own traffic and the traffic that it receives.
    #[must_use]
    pub fn load(&self) -> &[f64] {
        &self.load
    }

    /// The sum of U.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// R: each server's capacity minus forwarding; never negative.
    pub fn headroom(&self) -> impl ExactSizeIterator<Item = f64> + '_ {
        self.servers.iter().zip(&self.load).map(|(server, load)| server.capacity - load)
    }

    /// The first feature beyond the paper's full mesh, if there is one.
    #[must_use]
    pub fn extension(&self) -> Option<&'static str> {
        let weights = self.servers.iter().map(|one| one.weight);
        let weights = weights.chain(self.tenants.iter().map(|one| one.weight));
        let mut minimums = self.servers.iter().map(|one| one.minimum);
        let mut tenants = self.tenants.iter().map(|one| one.minimum);
        if !self.links.is_empty() {
            Some("limits between servers")
        } else if minimums.any(|minimum| minimum > 0.0) || tenants.any(|minimum| minimum > 0.0) {
            Some("minimum rates")
        } else if weights.into_iter().any(|weight| weight != 1.0) {
            Some("weights")
        } else {
            None
        }
    }

    pub(crate) fn classes(&self) -> &[Class] {
        &self.classes
    }
}

/// One class per server, or one per server and tenant if tenants differ in weight or minimum.
fn classes(servers: &[Server], tenants: &[Tenant], traffic: &[Entry], own: &[f64]) -> Vec<Class> {
    let differ = tenants.iter().any(|tenant| tenant.minimum > 0.0 || tenant.weight != 1.0);
    if !differ {
        let class = |(server, volume): (usize, &f64)| Class {
            server,
            tenant: None,
            volume: *volume,
            weight: servers.get(server).map_or(1.0, |one| one.weight),
        };
        return own.iter().enumerate().map(class).filter(|class| class.volume > 0.0).collect();
    }
    let mut volumes = std::collections::BTreeMap::new();
    for entry in traffic {
        *volumes.entry((entry.from, entry.tenant)).or_insert(0.0) += entry.volume;
    }
    let weight = |server: usize, tenant: Option<usize>| {
        servers.get(server).map_or(1.0, |one| one.weight)
            * tenant.and_then(|tenant| tenants.get(tenant)).map_or(1.0, |one| one.weight)
    };
    let class = |((server, tenant), volume)| Class {
        server,
        tenant,
        volume,
        weight: weight(server, tenant),
    };
    volumes.into_iter().map(class).filter(|class| class.volume > 0.0).collect()
}

fn check_servers(servers: &[Server]) -> Result<()> {
    if servers.is_empty() {
        return Err(Error::input("servers", "there are none"));
    }
    let mut names = HashSet::with_capacity(servers.len());
    for server in servers {
        let place = format!("server {}", server.name);
        check_name(&mut names, "servers", &server.name)?;
        quantity(&place, "capacity", server.capacity)?;
        Costs::new(server.costs.alpha, server.costs.beta).map_err(|error| within(&place, error))?;
        check_minimum_and_weight(&place, server.minimum, server.weight)?;
    }
    Ok(())
}

fn check_tenants(tenants: &[Tenant]) -> Result<()> {
    let mut names = HashSet::with_capacity(tenants.len());
    for tenant in tenants {
        check_name(&mut names, "tenants", &tenant.name)?;
        check_minimum_and_weight(
            &format!("tenant {}", tenant.name),
            tenant.minimum,
            tenant.weight,
        )?;
    }
    Ok(())
}

fn check_links(links: &[LinkLimit], servers: usize) -> Result<()> {
    let mut pairs = HashSet::with_capacity(links.len());
    for (index, link) in links.iter().enumerate() {
        let place = format!("link {}", index + 1);
        if link.from >= servers || link.to >= servers {
            return Err(Error::input(place, "there is no such server"));
        }
        if link.from == link.to {
            return Err(Error::input(place, "a server does not mirror to itself"));
        }
        if !pairs.insert((link.from, link.to)) {
            return Err(Error::input(place, "this pair has a limit already"));
        }
        quantity(&place, "capacity", link.capacity)?;
    }
    Ok(())
}

fn check_name<'a>(names: &mut HashSet<&'a str>, place: &str, name: &'a str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::input(place, "one has no name"));
    }
    if names.insert(name) {
        Ok(())
    } else {
        Err(Error::input(place, format!("two are named {name:?}")))
    }
}

fn check_minimum_and_weight(place: &str, minimum: f64, weight: f64) -> Result<()> {
    if !(0.0..=1.0).contains(&minimum) {
        return Err(Error::input(place, format!("minimum {minimum} is not within 0 to 1")));
    }
    // The solver cannot distinguish weights that differ by more than six orders of magnitude.
    if !(1e-3..=1e3).contains(&weight) {
        return Err(Error::input(place, format!("weight {weight} is not within 0.001 to 1000")));
    }
    Ok(())
}

/// A volume or capacity.
fn quantity(place: &str, what: &str, value: f64) -> Result<()> {
    if (0.0..=LARGEST_VOLUME).contains(&value) {
        return Ok(());
    }
    let why = if value.is_nan() {
        "is not a number"
    } else if value < 0.0 {
        "is negative"
    } else {
        "is absurd: more than 10^13 packets/s"
    };
    Err(Error::input(place, format!("{what} {value} {why}")))
}

fn within(place: &str, error: Error) -> Error {
    match error {
        Error::Input { place: inner, message } => {
            Error::Input { place: format!("{place}, {inner}"), message }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Vec<Server> {
        ["a", "b"].map(|name| Server::new(name, 100.0, Costs::PUBLISHED)).to_vec()
    }

    fn entry(from: usize, to: usize, volume: f64) -> Entry {
        Entry { from, to, tenant: None, volume }
    }

    #[test]
    fn load_and_headroom_follow_the_definitions_of_the_paper() {
        let traffic = [entry(0, 0, 5.0), entry(0, 1, 7.0), entry(1, 0, 11.0)];
        let problem = Problem::new(two(), vec![], &traffic, vec![]).unwrap();
        assert_eq!(problem.own(), [12.0, 11.0]);
        assert_eq!(problem.load(), [23.0, 18.0]);
        assert_eq!(problem.headroom().collect::<Vec<_>>(), [77.0, 82.0]);
        assert_eq!(problem.total(), 23.0);
    }

    #[test]
    fn every_wrong_value_is_reported_with_its_place() {
        let link = |from, to, capacity| LinkLimit { from, to, capacity };
        let changed = |change: fn(&mut Server)| {
            let mut servers = two();
            change(&mut servers[1]);
            servers
        };
        type Case = (Vec<Server>, Vec<Entry>, Vec<LinkLimit>, &'static str);
        let cases: Vec<Case> = vec![
            (vec![], vec![], vec![], "servers: there are none"),
            (two(), vec![entry(0, 1, -1.0)], vec![], "traffic entry 1: volume -1 is negative"),
            (
                two(),
                vec![entry(0, 1, 1.0), entry(0, 1, f64::NAN)],
                vec![],
                "traffic entry 2: volume NaN is not a number",
            ),
            (
                two(),
                vec![entry(0, 1, 1e20)],
                vec![],
                "traffic entry 1: volume 100000000000000000000 is absurd: more than 10^13 packets/s",
            ),
            (two(), vec![entry(0, 2, 1.0)], vec![], "traffic entry 1: there is no such server"),
            (two(), vec![], vec![link(1, 1, 5.0)], "link 1: a server does not mirror to itself"),
            (
                two(),
                vec![],
                vec![link(0, 1, 5.0), link(0, 1, 6.0)],
                "link 2: this pair has a limit already",
            ),
            (
                changed(|one| one.capacity = -3.0),
                vec![],
                vec![],
                "server b: capacity -3 is negative",
            ),
            (
                changed(|one| one.costs.alpha = 0.0),
                vec![],
                vec![],
                "server b, alpha: 0 is not within (0, 1000000]",
            ),
            (
                changed(|one| one.minimum = 1.5),
                vec![],
                vec![],
                "server b: minimum 1.5 is not within 0 to 1",
            ),
            (
                changed(|one| one.weight = 0.0),
                vec![],
                vec![],
                "server b: weight 0 is not within 0.001 to 1000",
            ),
            (changed(|one| one.name = "a".into()), vec![], vec![], "servers: two are named \"a\""),
            (
                two(),
                vec![entry(0, 1, 130.0)],
                vec![],
                "no plan is possible: server a has to forward 130.0 packets/s, 30.0 more than its capacity; \
                 server b has to forward 130.0 packets/s, 30.0 more than its capacity",
            ),
        ];
        for (servers, traffic, links, expected) in cases {
            let error = Problem::new(servers, vec![], &traffic, links).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
