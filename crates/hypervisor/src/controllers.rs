//! The controller connections of a switch, by numbers that are not reused soon.

use crate::ids::ControllerIndex;
use crate::tenant::Controller;
use alloc::vec::Vec;

/// Slots with generations: a number that outlives its connection finds nothing, rather than its successor.
#[derive(Default)]
pub(crate) struct Controllers {
    slots: Vec<(u32, Option<Controller>)>,
    free: Vec<u32>,
}

const SLOT_BITS: u32 = 16;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

impl Controllers {
    /// Adds a connection; `None` when 65,536 are connected.
    pub(crate) fn insert(&mut self, controller: Controller) -> Option<ControllerIndex> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot =
                    u32::try_from(self.slots.len()).ok().filter(|&slot| slot <= SLOT_MASK)?;
                self.slots.push((0, None));
                slot
            }
        };
        let (generation, state) = self.slots.get_mut(slot as usize)?;
        *state = Some(controller);
        Some(ControllerIndex(*generation << SLOT_BITS | slot))
    }

    /// Removes a connection.
    pub(crate) fn remove(&mut self, index: ControllerIndex) -> Option<Controller> {
        let slot = index.0 & SLOT_MASK;
        let (generation, state) = self.slots.get_mut(slot as usize)?;
        if *generation != index.0 >> SLOT_BITS {
            return None;
        }
        let controller = state.take()?;
        *generation = (*generation + 1) & (u32::MAX >> SLOT_BITS);
        self.free.push(slot);
        Some(controller)
    }

    /// A connection.
    #[inline]
    pub(crate) fn get(&self, index: ControllerIndex) -> Option<&Controller> {
        match self.slots.get((index.0 & SLOT_MASK) as usize) {
            Some((generation, Some(controller))) if *generation == index.0 >> SLOT_BITS => {
                Some(controller)
            }
            _ => None,
        }
    }

    /// A connection.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: ControllerIndex) -> Option<&mut Controller> {
        match self.slots.get_mut((index.0 & SLOT_MASK) as usize) {
            Some((generation, Some(controller))) if *generation == index.0 >> SLOT_BITS => {
                Some(controller)
            }
            _ => None,
        }
    }
}
