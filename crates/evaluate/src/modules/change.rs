//! `change`: N entries that drop are modified to forward (OFLOPS, section 4.2, figure 4).
//!
//! The same times and the same verdict as [`super::Insert`].

use crate::module::Module;
use crate::modules::experiment::Experiment;
use crate::modules::insert::Insert;
use crate::modules::update::{Kind, Plan, Update};

/// What to change: as what to insert.
#[derive(Clone, Debug)]
pub struct Change(pub Insert);

impl Experiment for Change {
    fn name(&self) -> &str {
        "change"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Update::new(Plan { kind: Kind::Change, ..self.0.plan() }))
    }
}
