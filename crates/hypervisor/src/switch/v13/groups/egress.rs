//! Egress groups in a tenant's group table: see [`compile::egress_group`] for what they are.
//!
//! An egress group is kept among the tenant's [groups](crate::switch::v13::groups), under a number that tenants cannot use. It has instances,
//! is stored, and follows the network as they do. It is made when a group first needs it. It goes with its port or the network, or a
//! while after the last group that [needs](super::unused) it; the tenant never hears of it. If the switch refuses it, the groups
//! that need it are undone, and each is refused.

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
    /// A group is about to come: there are the egress groups that its buckets need, whose numbers are given.
    pub(crate) fn ready_egress_groups(
        &mut self,
        request: &Request<'_>,
        group: &GroupMod<'_>,
    ) -> Result<Vec<u32>, Refused> {
        let network = self.tenants[request.tenant].network.as_deref();
        let outputs = network.map(|network| outputs(network, group)).unwrap_or_default();
        outputs.iter().map(|output| self.ready(request, *output, &outputs)).collect()
    }

    /// There is an egress group for one of the outputs that are wanted.
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

    /// Makes the egress groups that groups need and that are not there, in the tables.
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
                // A group without its egress group is given up.
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
