//! How a tenant chooses paths.
//!
//! All choose among the paths of the fewest links. At random and by hashing nobody looks at the load; with labels a
//! tenant knows what others leave of each link, as of the last update, and what it uses itself, as of now.
//!
//! When all tenants see the same labels at the same time and all go where there is the most room, they meet there
//! again: they herd, and oscillate ([`Moves::All`]). The remedy ([`Moves::Damped`]) is in the tenant's own hands: go
//! only if there is too little room, and even then only by chance; and do not look for the most room, but draw among
//! all paths that have enough.

use crate::random::{Random, mix};
use crate::traffic::Flow;
use crate::world::World;
use fabric::labels::Privacy;
use fabric::usage::Usage;
use fabric::{LinkId, Path};

/// How paths are chosen.
#[derive(Clone, Debug)]
pub enum Choice {
    /// A tenant draws one path for each pair of switches, as the paper's controller does without labels.
    Random,
    /// Every switch picks the next link by a hash of the flow, with a seed of its own (RFC 2992).
    EqualCost,
    /// By labels.
    Labels {
        /// Steps between two updates of all labels.
        interval: u32,
        /// What a tenant does at an update.
        moves: Moves,
        /// How the labels are blurred.
        privacy: Privacy,
    },
}

/// What a tenant does with its flows when labels come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moves {
    /// Nothing: labels only guide new flows.
    Never,
    /// Every flow goes to the path with the most room.
    All,
    /// A flow that has not enough room goes to one of the paths that have the most of what it needs; but only with the
    /// chance that lets, on average, as much leave the link as is too much on it: excess / (capacity + excess), which
    /// the tenant knows from the label.
    Damped {
        /// That chance is taken so many times: 1 settles; far above 1 too many leave, and it oscillates again.
        eagerness: f64,
    },
}

/// What a tenant knows when it chooses.
pub(crate) struct View<'a> {
    pub(crate) world: &'a World,
    /// As of the last update of labels.
    pub(crate) labelled: &'a Usage,
    /// As of now; a tenant looks only at its own.
    pub(crate) now: &'a Usage,
    pub(crate) privacy: &'a Privacy,
}

impl Moves {
    /// [`Moves::Damped`] as it should be.
    pub const DAMPED: Moves = Moves::Damped { eagerness: 1.0 };
}

impl View<'_> {
    /// What is left on a link for a flow of this tenant, beside its other flows. `own` is what this flow uses there.
    fn room(&self, flow: &Flow, link: LinkId, own: u64) -> u64 {
        let (tenant, network) = (flow.tenant_id(), self.world.network());
        let label = self.labelled.label(network, link, tenant);
        let label = self.privacy.blur(tenant, link, label, network.link(link).capacity);
        let beside = self.now.of(link, tenant).bits_per_second().saturating_sub(own);
        label.bits_per_second().saturating_sub(beside)
    }

    /// The narrowest link of the path that a flow is on, and the room there; `None` without links.
    pub(crate) fn narrowest(&self, flow: &Flow, path: &Path) -> Option<(u64, LinkId)> {
        let room = |&link: &LinkId| (self.room(flow, link, flow.nominal), link);
        path.links().iter().map(room).min()
    }

    /// The path with the most room, and how much that is. With `random`, room beyond what the flow needs does not
    /// count, and equals are drawn.
    pub(crate) fn widest(
        &self,
        flow: &Flow,
        current: Option<&Path>,
        random: Option<&mut Random>,
    ) -> Option<(Path, u64)> {
        let servers = self.world.servers();
        let (from, to) = (servers[flow.from].switch, servers[flow.to].switch);
        let room = |link: LinkId| {
            let is_on = current.is_some_and(|path| path.links().contains(&link));
            self.room(flow, link, if is_on { flow.nominal } else { 0 })
        };
        let towards = self.world.towards(to);
        let network = self.world.network();
        let Some(random) = random else { return towards.widest(network, from, room) };
        let seed = random.bits();
        // Room in kbit/s, and below it what equals are drawn by.
        let rank = |link: LinkId| {
            let enough = room(link).min(flow.nominal) / 1_000;
            (enough.min(u64::from(u32::MAX)) << 32) | (mix(seed ^ link.index() as u64) >> 32)
        };
        let (path, _) = towards.widest(network, from, rank)?;
        let narrowest = path.links().iter().map(|&link| room(link)).min();
        Some((path, narrowest.unwrap_or(u64::MAX)))
    }
}

/// A path chosen without looking: the same seed draws the same one.
pub(crate) fn blind(world: &World, flow: &Flow, seed: u64) -> Option<Path> {
    let servers = world.servers();
    let (from, to) = (servers[flow.from].switch, servers[flow.to].switch);
    let mut random = Random::new(seed);
    world.towards(to).path_by(world.network(), from, |count| random.below(count))
}
