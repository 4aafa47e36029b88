//! The controllers of one tenant on one switch, and the generation id for the master role.

use crate::ids::ControllerIndex;
use alloc::vec::Vec;
use core::ops::Deref;

/// See the module.
#[derive(Default)]
pub(crate) struct Connections {
    controllers: Vec<ControllerIndex>,
    /// The generation id of the last accepted mastership claim (1.3).
    generation: Option<u64>,
}

impl Deref for Connections {
    type Target = [ControllerIndex];

    #[inline]
    fn deref(&self) -> &[ControllerIndex] {
        &self.controllers
    }
}

impl Connections {
    /// A controller has connected.
    pub(crate) fn add(&mut self, controller: ControllerIndex) {
        self.controllers.push(controller);
    }

    /// A controller's connection is gone.
    pub(crate) fn remove(&mut self, controller: ControllerIndex) {
        self.controllers.retain(|other| *other != controller);
    }

    /// A controller asks to be master or slave, with this generation id. False if the generation id is out of date.
    pub(crate) fn claim(&mut self, generation: u64) -> bool {
        // Generation ids wrap around; the newer one is less than half the circle ahead.
        let is_stale =
            self.generation.is_some_and(|known| (generation.wrapping_sub(known) as i64) < 0);
        if !is_stale {
            self.generation = Some(generation);
        }
        !is_stale
    }

    /// The generation id of the last accepted claim; all ones if there was none.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.unwrap_or(u64::MAX)
    }
}
