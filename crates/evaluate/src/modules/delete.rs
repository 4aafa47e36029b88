//! `delete`: deletes N entries that forward, and waits until the traffic stops.
//!
//! `last_rule_us` and `all_rules_us` are the arrival times of the last packets.

use crate::module::Module;
use crate::modules::experiment::Experiment;
use crate::modules::insert::Insert;
use crate::modules::update::{Kind, Plan, Update};

/// The parameters of the experiment, which are those of `insert`.
#[derive(Clone, Debug)]
pub struct Delete(pub Insert);

impl Experiment for Delete {
    fn name(&self) -> &str {
        "delete"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Update::new(Plan { kind: Kind::Delete, ..self.0.plan() }))
    }
}
