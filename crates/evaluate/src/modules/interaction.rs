//! `interaction`: changes entries while the controller polls statistics (OFLOPS, section 4.4, figure 6).

use crate::module::Module;
use crate::modules::experiment::{Common, Experiment};
use crate::modules::insert::Insert;
use crate::modules::update::{Kind, Plan, Update};

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Interaction {
    /// The parameters of all modules.
    pub common: Common,
    /// The number of entries that change at once.
    pub rules: u32,
    /// The number of all entries in the table.
    pub table: u32,
    /// The polls of all flow statistics per second.
    pub polls: Vec<f64>,
}

impl Interaction {
    /// 100 of 1,024 entries, as in the paper, with 0 to 50 polls per second.
    pub fn new(common: Common) -> Interaction {
        Interaction { common, rules: 100, table: 1024, polls: vec![0.0, 1.0, 5.0, 10.0, 50.0] }
    }
}

impl Experiment for Interaction {
    fn name(&self) -> &str {
        "interaction"
    }

    fn module(&self) -> Box<dyn Module> {
        let insert = Insert { rules: vec![self.rules], ..Insert::new(self.common.clone()) };
        Box::new(Update::new(Plan {
            kind: Kind::Change,
            polls: self.polls.clone(),
            others: self.table.saturating_sub(self.rules).max(1),
            ..insert.plan()
        }))
    }
}
