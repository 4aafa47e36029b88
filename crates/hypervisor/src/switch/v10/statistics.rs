//! Questions to a switch of 1.0 for a tenant's entries: a question names a match, and no cookie.

use crate::ids::TenantIndex;
use crate::switch::Switch;
use crate::v10::statistics::{flow_question, port_questions};
use alloc::vec::Vec;
use flowspace::Match;
use openflow::v10;

impl Switch {
    /// One question for each of the tenant's flowspace entries that overlaps the match; in a network, one for each
    /// ingress port.
    pub(crate) fn flow_questions_v10(&self, tenant: TenantIndex, wanted: &Match) -> Vec<u8> {
        let mut asked: Vec<v10::Match> = Vec::new();
        if let Some(network) = self.tenants[tenant].network.as_deref() {
            asked = port_questions(network);
        } else if let Some(space) = self.map.ownership().space(tenant) {
            for own in &space.write {
                let met = own.match_.intersect(wanted);
                if let Some(Ok(match_)) = met.map(|it| it.to_v10())
                    && !asked.contains(&match_)
                {
                    asked.push(match_);
                }
            }
        }
        asked.into_iter().flat_map(flow_question).collect()
    }
}
