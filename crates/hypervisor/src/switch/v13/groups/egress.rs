//! Egress groups in a tenant's group table: see [`compile::egress_group`].
//!
//! An egress group is in the tenant's [group table](crate::switch::v13::groups), under a number that tenants cannot
//! use. Like other groups, an egress group has instances, is stored, and follows the network. Weir makes an egress
//! group when a tenant's group first needs one. Weir deletes the egress group with its port or the network, or in a
//! [collection](super::unused) when no group needs the egress group. Tenants never see egress groups. If the switch
//! refuses an egress group, Weir undoes the groups that need the egress group, and refuses each request that made such
//! a group.

use crate::ids::TenantIndex;
use crate::store::Kind;
use crate::switch::{NumberBefore, Object, Request, Switch, in_turn};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use compile::Refused;
use compile::egress_group::{description, numbers, outputs};
use openflow::error::v13 as code;
use openflow::v13::{GroupMod, PortNo};

impl Switch {
    /// Makes the egress groups that the buckets of a new group need. Returns their numbers.
    pub(crate) fn ready_egress_groups(
        &mut self,
        request: &Request<'_>,
        group: &GroupMod<'_>,
    ) -> Result<Vec<u32>, Refused> {
        let network = self.tenants[request.tenant].network.as_deref();
        let outputs = network.map(|network| outputs(network, group)).unwrap_or_default();
        outputs.iter().map(|output| self.ready(request, *output, &outputs)).collect()
    }

    /// The number of the egress group for an output. Makes the group if it is missing; if the switch has no room,
    /// deletes egress groups that are not `wanted`.
    fn ready(
        &mut self,
        request: &Request<'_>,
        output: PortNo,
        wanted: &BTreeSet<PortNo>,
    ) -> Result<u32, Refused> {
        let tenant = request.tenant;
        if let Some(known) = self.numbers(tenant, Kind::Group).egress_group(output) {
            return Ok(known);
        }
        let (change, messages) = match self.make_egress_group(tenant, output) {
            Err(it) if it.code() == code::GROUP_MOD_FAILED_OUT_OF_GROUPS => {
                self.collect_egress_groups(tenant, wanted, request.now);
                self.make_egress_group(tenant, output)?
            }
            made => made?,
        };
        let number = change.number;
        let object = Object::Number(Kind::Group, number);
        let cause = self.begin_repair(&in_turn(tenant, request.now), object);
        messages.iter().for_each(|message| self.submit_number(&cause, message));
        self.commit(&cause);
        Ok(number)
    }

    /// Makes the missing egress groups of all groups, in the tables.
    pub(crate) fn make_missing_egress_groups(&mut self, tenant: TenantIndex) {
        let state = &self.tenants[tenant];
        let Some(network) = state.network.as_deref().filter(|_| state.terms.is_present()) else {
            return;
        };
        let mut wanted = BTreeSet::new();
        for (_, known) in self.numbers(tenant, Kind::Group).iter() {
            wanted.extend(known.group().iter().flat_map(|it| outputs(network, it)));
        }
        for output in wanted {
            if self.numbers(tenant, Kind::Group).egress_group(output).is_none() {
                // A group without its egress group is removed from the tables later.
                let _ = self.make_egress_group(tenant, output);
            }
        }
    }

    fn make_egress_group(
        &mut self,
        tenant: TenantIndex,
        output: PortNo,
    ) -> Result<(NumberBefore, Vec<Vec<u8>>), Refused> {
        let known = self.numbers(tenant, Kind::Group);
        let number = numbers().find(|number| known.any(*number).is_none());
        let number = number.ok_or(code::GROUP_MOD_FAILED_OUT_OF_GROUPS)?;
        self.make_group(tenant, number, description(output))
    }
}
