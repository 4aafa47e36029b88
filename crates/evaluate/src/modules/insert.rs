//! `insert`: N entries added at once (OFLOPS, section 4.2, figures 3 and 4).
//!
//! Measures, from the first FLOW_MOD: until all are sent, until the barrier reply, until the first
//! packet through the last entry and through all of them; and whether the barrier tells the truth.

use crate::module::Module;
use crate::modules::experiment::{Common, Experiment};
use crate::modules::update::{Kind, Plan, Priorities, Update};
pub use crate::probe::MatchKind;

/// What to insert.
#[derive(Clone, Debug)]
pub struct Insert {
    /// What all modules share.
    pub common: Common,
    /// Numbers of entries.
    pub rules: Vec<u32>,
    /// How entries match.
    pub matches: Vec<MatchKind>,
    /// In which order of priorities.
    pub priorities: Vec<Priorities>,
}

impl Insert {
    /// 1 to 1,000 entries, exact, of equal priority; 12,500 probes a second (10 Mb/s of 100 bytes,
    /// as in the paper).
    pub fn new(common: Common) -> Insert {
        Insert {
            common,
            rules: vec![1, 10, 100, 1000],
            matches: vec![MatchKind::Exact],
            priorities: vec![Priorities::Equal],
        }
    }

    pub(crate) fn plan(&self) -> Plan {
        Plan {
            kind: Kind::Insert,
            rules: self.rules.clone(),
            matches: self.matches.clone(),
            priorities: self.priorities.clone(),
            polls: vec![0.0],
            others: 0,
            repetitions: self.common.repetitions,
            rate: self.common.rate,
            length: self.common.length,
            patience: self.common.patience,
            channels: (0, 1),
        }
    }
}

impl Experiment for Insert {
    fn name(&self) -> &str {
        "insert"
    }

    fn module(&self) -> Box<dyn Module> {
        Box::new(Update::new(self.plan()))
    }
}
