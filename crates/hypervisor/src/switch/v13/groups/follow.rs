//! Groups and meters follow a new policy, changed ports, or a new connection of the switch, in
//! [batches](crate::switch::follow) as entries do.

use crate::store::Kind;
use crate::switch::Switch;
use crate::switch::map::{NextGroup, StaleGroups};
use crate::time::Instant;
use crate::v13::numbers::GroupOrMeter;
use openflow::v13::GroupType;

/// Listing this many groups takes about as long as compiling one group.
const LISTED: usize = 8;

impl Switch {
    /// Compiles the next groups again, as many as are left for this turn. A group that is to be deleted is deleted
    /// later, behind the entries. Of the meters, only those change that the switch does not hold.
    pub(crate) fn groups_follow(
        &mut self,
        stale: &mut StaleGroups,
        left: &mut usize,
        now: Instant,
    ) {
        while *left > 0
            && let Some(next) = stale.next()
        {
            let work = match next {
                NextGroup::Tenant(tenant) => {
                    self.drop_absent_meters(tenant);
                    self.make_missing_egress_groups(tenant);
                    let numbers = self.numbers_in_order(tenant);
                    let work = numbers.len() / LISTED;
                    stale.begin(tenant, numbers);
                    work
                }
                NextGroup::Number(tenant, (Kind::Meter, number)) => {
                    self.submit_number_repair(tenant, Kind::Meter, number, now);
                    1
                }
                NextGroup::Number(tenant, (_, number)) => {
                    self.reform_group(tenant, number);
                    let known = self.numbers(tenant, Kind::Group).any(number);
                    let group = known.and_then(GroupOrMeter::group);
                    if group.is_some_and(|it| it.type_ == GroupType::FF) {
                        stale.note_watching(number);
                    }
                    let instances = known.map_or(1, |it| it.instances.ids().count());
                    self.submit_number_repair(tenant, Kind::Group, number, now);
                    instances
                }
                NextGroup::Watching(tenant, number) => {
                    self.submit_number_repair(tenant, Kind::Group, number, now);
                    1
                }
            };
            *left = left.saturating_sub(work);
        }
    }
}
