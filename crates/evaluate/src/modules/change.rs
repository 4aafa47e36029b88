//! `change`: modifies N entries that drop to entries that forward (OFLOPS, section 4.2, figure 4).
//!
//! The times and the verdict are those of [`super::Insert`].

use crate::module::Module;
use crate::modules::experiment::Experiment;
use crate::modules::insert::Insert;
use crate::modules::update::{Kind, Plan, Update};

/// The parameters of the experiment, which are those of `insert`.
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
