//! A path, and disjointness of two paths.

use crate::error::Error;
use crate::index::{LinkId, SwitchIndex};
use crate::network::Network;
use alloc::vec::Vec;

/// Links that follow one another from a switch to a switch; no links if both are the same switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(Vec<LinkId>);

impl Path {
    /// Checks a given path: its links exist, follow one another and lead from `from` to `to`.
    pub fn given(
        network: &Network,
        from: SwitchIndex,
        to: SwitchIndex,
        links: Vec<LinkId>,
    ) -> Result<Path, Error> {
        let mut at = from;
        let mut seen = Vec::from([from]);
        for &id in &links {
            let ends = network.find_link(id)?.switches();
            let (start, end) = ends.ok_or(Error::BrokenPath(id))?;
            if start != at {
                return Err(Error::BrokenPath(id));
            }
            if seen.contains(&end) {
                return Err(Error::RepeatedLink(id));
            }
            seen.push(end);
            at = end;
        }
        match links.last() {
            _ if at == to => Ok(Path(links)),
            Some(&last) => Err(Error::BrokenPath(last)),
            None => Err(Error::NoPath),
        }
    }

    /// A path that a search has found.
    pub(super) const fn found(links: Vec<LinkId>) -> Path {
        Path(links)
    }

    /// The links of the path, in order.
    pub fn links(&self) -> &[LinkId] {
        &self.0
    }

    /// The number of links.
    pub fn hops(&self) -> usize {
        self.0.len()
    }

    /// Whether all links of the path are up.
    pub fn is_up(&self, network: &Network) -> bool {
        self.0.iter().all(|&link| network.link(link).is_up())
    }

    /// The switches of the path without the two ends.
    pub fn interior<'a>(&'a self, network: &'a Network) -> impl Iterator<Item = SwitchIndex> + 'a {
        let but_last = self.0.split_last().map_or(&[][..], |(_, before)| before);
        but_last.iter().filter_map(|&link| Some(network.link(link).switches()?.1))
    }

    /// Whether two paths have no common wire or, with [`Disjoint::Switches`], no common switch
    /// except their ends.
    pub fn is_disjoint(&self, other: &Path, network: &Network, disjoint: Disjoint) -> bool {
        let no_wire = self.0.iter().all(|a| other.0.iter().all(|b| a.wire() != b.wire()));
        let no_switch = || self.interior(network).all(|a| other.interior(network).all(|b| a != b));
        no_wire && (disjoint == Disjoint::Links || no_switch())
    }
}

/// The parts that two disjoint paths must not have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disjoint {
    /// A wire, in either direction.
    Links,
    /// A wire, or a switch other than their ends.
    Switches,
}
