//! Which links repeat, from one drawing of the maps to the next.
//!
//! Switches follow a change each in its own time: for a moment some repeat by the tree that was, others by the one that is.
//! What they do together must not let a frame go round either.
//!
//! - **A link that stays** is the same in both trees, also where it has moved to another path or has other tags: by whichever it
//!   goes, it joins the same two switches. While it [moves](super::moving) it counts as being where its ends send.
//! - **A link that comes** joins what nothing else of the new tree joins, and nothing that may still carry frames.
//! - **A link that leaves** has no way any more. Where that is so because a port on its path is down or gone, nothing passes
//!   there, whoever still sends into it. So all that carries frames is in the new tree, which has no cycle.
//! - **A link that leaves and may still carry frames**: it has been stopped or removed while its path stands; or its path is not
//!   believed any more (no probes come through, a switch has disconnected), which does not keep frames off it; or it has just
//!   moved away from such a path, by which ends that have not followed still send. It carries them while neither of its ends
//!   has followed: with one end's new map goes the entry by which that takes its tag, and what would send into it. So till then
//!   its place is taken, as if it were in the tree, to which it may come back: none comes that would make a cycle with it, and others
//!   do. The network is *parting*, and [`Changes::parted`](super::Changes) asks for [`Embedding::rejoin`], after a time in which
//!   switches follow (`embedding::rounds`). It has all of that anew when it leaves again.
//!
//! What may still carry frames is stored: after a restart the network parts still.
//!
//! A link that comes back when its place is not kept any more finds what it joined joined by others, and stays out. So of two
//! trees, whatever lies between them, only those links differ that had no way at some time since the first. What is left: a
//! link whose ends have not followed when it has failed, another has come in its place, and it works again; and ends that take
//! longer than the time that they are given.

use super::draw::{link_trunk, works};
use super::rounds::{Round, Rounds};
use super::spec::{Spec, VirtualPortId};
use super::tree::{Ends, spanning_tree};
use super::trunk::{Trunk, Wire, is_broken};
use super::{Embedding, draw};
use crate::network::Network;
use crate::units::TenantId;
use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The links by which a network's switches repeat.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeating {
    /// Those of the tree.
    tree: BTreeMap<Ends, Place>,
    /// Those that have left it and by which frames may still pass until switches have followed, also if they have come back. With
    /// those of the tree they make no cycle.
    left: BTreeMap<Ends, Round>,
}

/// Where a link of the tree is.
#[derive(Clone, Debug)]
struct Place {
    wires: Vec<Wire>,
    /// It has moved there from where frames may still pass, until switches have followed.
    moved: Option<Round>,
}

impl Place {
    /// Whether none pass any more, whoever still sends into it.
    fn is_broken(&self, network: &Network) -> bool {
        self.moved.is_none() && is_broken(network, &self.wires)
    }

    /// Where it is now; whether frames may still pass where it was.
    fn follow(&mut self, network: &Network, wires: Vec<Wire>, until: Round) -> bool {
        let moves = self.wires != wires && !is_broken(network, &self.wires);
        self.wires = wires;
        if moves {
            self.moved = Some(until);
        }
        moves
    }
}

impl Repeating {
    /// As it was before a restart: where each link was, and whether it was about to go there, or had gone, from where frames may still
    /// pass; and which had left it. What waited for switches to follow does so until that round.
    pub(super) fn restored(
        tree: BTreeMap<Ends, (Vec<Wire>, bool)>,
        left: &BTreeSet<Ends>,
        until: Round,
    ) -> Repeating {
        let place = |(link, (wires, has_moved)): (Ends, (Vec<Wire>, bool))| {
            (link, Place { wires, moved: has_moved.then_some(until) })
        };
        let left = left.iter().map(|&link| (link, until)).collect();
        Repeating { tree: tree.into_iter().map(place).collect(), left }
    }

    pub(super) fn has(&self, link: &Ends) -> bool {
        self.tree.contains_key(link)
    }

    /// Whether a link of the tree has moved from where frames may still pass.
    pub(super) fn has_moved(&self, link: &Ends) -> bool {
        self.tree.get(link).is_some_and(|place| place.moved.is_some())
    }

    /// Those that have left the tree and by which frames may still pass.
    pub(super) fn left(&self) -> impl Iterator<Item = &Ends> {
        self.left.keys()
    }

    /// The ends of the tree's links.
    pub(super) fn ends(&self) -> BTreeSet<VirtualPortId> {
        self.tree.keys().flatten().copied().collect()
    }

    fn is_parting(&self) -> bool {
        !self.left.is_empty()
    }

    /// Whether anything waits for switches to follow.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_parting() || self.tree.values().any(|place| place.moved.is_some())
    }

    /// Goes on to the links that have a way now; whether switches that have not followed may still use another. They will have by then.
    fn follow(&mut self, network: &Network, up: BTreeMap<Ends, Vec<Wire>>, until: Round) -> bool {
        let left = self.tree.iter().filter(|(link, _)| !up.contains_key(*link));
        let left = left.filter(|(_, place)| !place.is_broken(network));
        let left: Vec<Ends> = left.map(|(link, _)| *link).collect();
        let has_parted = !left.is_empty();
        self.left.extend(left.into_iter().map(|link| (link, until)));
        let before = self.tree.keys().chain(self.left.keys()).copied().collect();
        // What may still carry frames is in the way like what is in the tree.
        let tree = spanning_tree(&before, up.keys().chain(self.left.keys()).copied());
        self.tree.retain(|link, _| up.contains_key(link) && tree.contains(link));
        let mut has_moved = false;
        for (link, wires) in up.into_iter().filter(|(link, _)| tree.contains(link)) {
            match self.tree.entry(link) {
                Entry::Vacant(new) => {
                    new.insert(Place { wires, moved: None });
                }
                Entry::Occupied(mut place) => {
                    has_moved |= place.get_mut().follow(network, wires, until);
                }
            }
        }
        has_parted || has_moved
    }

    /// Switches have followed what had to be followed until a round that has ended.
    pub(super) fn settle(&mut self, rounds: Rounds) {
        self.left.retain(|_, until| !rounds.has_ended(*until));
        for place in self.tree.values_mut() {
            place.moved.take_if(|until| rounds.has_ended(*until));
        }
    }
}

impl Embedding {
    /// Lets each network repeat by links that have a way now; whether one has left a tree, or its path, that may still carry
    /// frames there.
    pub(super) fn follow_links(&mut self, network: &Network) -> bool {
        let mut repeating = core::mem::take(&mut self.repeating);
        for &tenant in self.wanted.keys() {
            repeating.entry(tenant).or_default();
        }
        let (until, mut has_parted) = (self.rounds.next_whole(), false);
        for (&tenant, it) in &mut repeating {
            let spec = self.wanted.get(&tenant).filter(|spec| spec.started);
            let up = spec.map(|spec| self.links_up(tenant, spec)).unwrap_or_default();
            has_parted |= it.follow(network, up, until);
        }
        // What is wanted no more is known till its switches have followed: it may be wanted again.
        repeating.retain(|tenant, it| it.is_parting() || self.wanted.contains_key(tenant));
        self.repeating = repeating;
        has_parted
    }

    /// The links that have a way, and where they are.
    fn links_up(&self, tenant: TenantId, spec: &Spec) -> BTreeMap<Ends, Vec<Wire>> {
        let stopped = draw::stopped(spec);
        let links = spec.links.iter().filter(|link| works(link, &stopped));
        let up = links.filter_map(|link| {
            let route = self.trunks.get(&link_trunk(tenant, link)).and_then(Trunk::standing)?;
            Some((draw::sorted(link.ends), route.wires.clone()))
        });
        up.collect()
    }
}
