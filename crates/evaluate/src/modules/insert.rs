//! `insert`: adds N entries at once (OFLOPS, section 4.2, figures 3 and 4).
//!
//! The experiment measures the times from the first FLOW_MOD until all FLOW_MODs are sent, until
//! the BARRIER_REPLY, until the first packet through the last entry, and until the first packets
//! through all entries. The experiment also checks that the entries take effect before the
//! BARRIER_REPLY.

use crate::module::Module;
use crate::modules::experiment::{Common, Experiment};
use crate::modules::update::{Kind, Plan, Priorities, Update};
pub use crate::probe::MatchKind;

/// The parameters of the experiment.
#[derive(Clone, Debug)]
pub struct Insert {
    /// The parameters of all modules.
    pub common: Common,
    /// The numbers of entries.
    pub rules: Vec<u32>,
    /// The kinds of match of the entries.
    pub matches: Vec<MatchKind>,
    /// The orders of priorities.
    pub priorities: Vec<Priorities>,
}

impl Insert {
    /// 1 to 1,000 exact entries of equal priority; 12,500 probes per second (10 Mb/s of 100 bytes,
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
            common: self.common.clone(),
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
