//! Trunks that move from a working path to another: make before break.
//!
//! Switches follow a change in their own time, in any order. So a move has steps. After each step, packets in flight,
//! and packets of a switch that has not followed yet, still have a path to the other end:
//!
//! 1. *Drawing*: the new path is on the maps, and the ends still use the old one.
//! 2. *Moved*: the ends use the new path, and the old one still forwards packets. A move to a path that is already on
//!    the maps, such as a backup, begins here.
//! 3. The old path and its tags are given up, unless the old path has become the backup.
//!
//! [`Embedding::rejoin`] starts the next step; [`Changes::parted`](super::Changes) asks for that call, when switches
//! have had the time to follow this step, whatever else begins meanwhile (`embedding::rounds`). A trunk leaves its path
//! at once if the path is down, no longer confirmed, without its tags, or refused by a switch. The same holds if a big
//! switch's end of the link moves to another member with it, or if there are not enough tags to keep the old path. If
//! another move begins after the ends use the new path, the old path is given up.
//!
//! Only the tags of the old path are kept. Its bandwidth is free for others from the beginning, because the reservation
//! is on the new path, which the owner also sees. So for one step the old path's links may carry more than is reserved
//! there. After a restart the trunk is on its new path, and the tags of the old path are assigned after all others.

use super::map::Transit;
use super::rounds::{Round, Rounds};
use super::trouble::Trouble;
use super::trunk::{Leaving, Routed, Step, Trunk, Wire, path};
use super::{Changes, Embedding};
use crate::network::Network;
use crate::units::{Dpid, PortId};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The place of a trunk before a move.
pub(super) struct Before {
    /// The path by which the ends sent, if that path still works.
    from: Option<Vec<Wire>>,
    /// The paths that were on the maps long enough for the switches to follow.
    drawn: Vec<Vec<Wire>>,
    going: Option<Going>,
    /// The round at whose end switches have followed a step that begins now.
    until: Round,
}

/// The target of a moving trunk, and its step.
struct Going {
    to: Vec<Wire>,
    step: Step,
    until: Round,
}

impl Going {
    fn of(trunk: &Trunk) -> Option<Going> {
        let (to, leaving) = (trunk.active.as_ref()?, trunk.leaving.as_ref()?);
        Some(Going { to: to.wires.clone(), step: leaving.step, until: leaving.until })
    }

    fn is_same(&self, to: &[Wire], step: Step) -> bool {
        self.to == to && self.step == step
    }
}

impl Before {
    /// `stands`: whether packets on the path by which the ends send still arrive.
    pub(super) fn of(trunk: &Trunk, rounds: Rounds, stands: impl Fn(&[Wire]) -> bool) -> Before {
        let from = trunk.sending().filter(|it| it.carries(&trunk.lanes) && stands(&it.wires));
        let is_new = |route: &&Routed| trunk.is_drawing() && Some(*route) == trunk.active.as_ref();
        let drawn = trunk.routes().filter(|it| it.carries(&trunk.lanes) && !is_new(it));
        Before {
            from: from.map(|it| it.wires.clone()),
            drawn: drawn.map(|it| it.wires.clone()).collect(),
            going: Going::of(trunk),
            until: rounds.next_whole(),
        }
    }

    /// The path to leave when the trunk moves to `to`. `left`: the paths that the trunk does not have any more.
    pub(super) fn leaving(&self, to: &[Wire], left: &mut [Option<Routed>]) -> Option<Leaving> {
        let from = self.from.as_ref()?;
        if from == to {
            // The trunk stays on this path, and may have moved there a moment ago.
            let going = self.going.as_ref().filter(|it| it.step == Step::Moved)?;
            let route = left.last_mut()?.take()?;
            return Some(Leaving { route: Some(route), step: going.step, until: going.until });
        }
        let ends = |wires: &[Wire]| Some((wires.first()?.from.dpid, wires.last()?.to.dpid));
        if ends(from) != ends(to) {
            return None;
        }
        let is_drawn = self.drawn.iter().any(|wires| wires == to);
        let step = if is_drawn { Step::Moved } else { Step::Drawing };
        let mut left = left.iter_mut();
        let route = left.find(|it| it.as_ref().is_some_and(|it| &it.wires == from));
        let route = route.and_then(Option::take);
        let going = self.going.as_ref().filter(|it| it.is_same(to, step));
        let until = going.map_or(self.until, |it| it.until);
        (route.is_some() || step == Step::Drawing).then_some(Leaving { route, step, until })
    }

    /// Whether a trunk has begun a step that switches have to follow.
    pub(super) fn has_begun(&self, trunk: &Trunk) -> bool {
        let is_new = |now: Going| {
            let before = self.going.as_ref();
            !before.is_some_and(|it| it.is_same(&now.to, now.step))
        };
        Going::of(trunk).is_some_and(is_new)
    }
}

impl Embedding {
    /// Starts the next step of moving trunks whose present step has had its time. A step that began while another step
    /// already waited goes on at a later call.
    pub fn rejoin(&mut self, network: &Network) -> Changes {
        let before = self.places();
        if self.are_back(network) {
            self.rounds.end();
        }
        if self.take_steps() {
            self.reservations.note_freed();
            self.share_out(network);
        }
        let mut changes = self.redraw(network, &before);
        changes.parted |= self.is_moving();
        if changes.parted {
            self.rounds.run();
        }
        changes
    }

    /// Whether all switches can follow. Switches that have not returned since a restart cannot follow yet.
    fn are_back(&self, network: &Network) -> bool {
        let is_back = |dpid: &Dpid| network.switch_index(*dpid).is_ok();
        !self.is_holding || self.maps.keys().all(is_back)
    }

    /// Starts the next step of trunks whose last step has been followed, and returns whether tags became free.
    fn take_steps(&mut self) -> bool {
        let (rounds, mut has_freed) = (self.rounds, false);
        for trunk in self.trunks.values_mut() {
            match &mut trunk.leaving {
                Some(leaving) if !rounds.has_ended(leaving.until) => {}
                Some(Leaving { route: Some(_), step: step @ Step::Drawing, until }) => {
                    (*step, *until) = (Step::Moved, rounds.next_whole());
                    self.has_begun = true;
                }
                _ => has_freed |= trunk.leave(&mut self.tags),
            }
        }
        has_freed
    }

    /// Leaves old paths that do not work any more.
    pub(super) fn leave_broken(&mut self, network: &Network) {
        let stands = |wires: &[Wire]| path(network, wires).is_some_and(|it| it.is_up(network));
        self.leave_those(|route| !stands(&route.wires));
    }

    /// Leaves old paths whose transit a switch refuses.
    pub(super) fn leave_refused(&mut self, switch: Dpid, refused: &BTreeSet<Transit>) {
        self.leave_those(|route| {
            let mut transits = route.transits();
            transits.any(|(dpid, transit)| dpid == switch && refused.contains(&transit))
        });
    }

    /// Leaves old paths that have tags which other trunks lack.
    pub(super) fn leave_lacked(&mut self) {
        let trouble = self.trunks.values().filter_map(|trunk| match trunk.trouble {
            Some(Trouble::Tags(port)) => Some(port),
            _ => None,
        });
        let lacking: BTreeSet<PortId> = trouble.collect();
        let is_there = |wire: &Wire| lacking.contains(&wire.from) || lacking.contains(&wire.to);
        if !lacking.is_empty() {
            self.leave_those(|route| route.wires.iter().any(is_there));
        }
    }

    /// Leaves all old paths.
    pub(super) fn leave_all(&mut self) {
        self.leave_those(|_| true);
    }

    pub(super) fn is_moving(&self) -> bool {
        self.trunks.values().any(|trunk| trunk.leaving.is_some())
    }

    fn leave_those(&mut self, which: impl Fn(&Routed) -> bool) {
        for trunk in self.trunks.values_mut() {
            let route = trunk.leaving.as_ref().and_then(|it| it.route.as_ref());
            if route.is_some_and(&which) && trunk.leave(&mut self.tags) {
                self.reservations.note_freed();
            }
        }
    }
}
