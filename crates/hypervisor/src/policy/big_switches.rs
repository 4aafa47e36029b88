//! Big switches in the maps of a policy: their datapath ids, members and ports.

use super::{FlowspaceEntry as Space, Permission, Policy, Switches, Tenant, TenantId};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use fabric::embedding::PortKind;
use flowspace::Match;

/// The range of datapath ids for fronts of big switches. No other switch may have such an id.
const KEYS: u64 = 0xffff << 48;

/// Whether a datapath id belongs to the front of a big switch.
pub const fn is_key(dpid: u64) -> bool {
    dpid & KEYS == KEYS
}

/// The datapath id of the front of a tenant's virtual switch. The id never changes.
pub fn key(tenant: TenantId, datapath: u64) -> u64 {
    // Datapath ids differ in few bits; the finalizer of SplitMix64 spreads them over all.
    let mixed = (datapath ^ datapath >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    KEYS | u64::from(tenant.0) << 32 | (mixed ^ mixed >> 31) & 0xffff_ffff
}

/// A virtual switch on several physical switches, by the maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The tenant.
    pub tenant: TenantId,
    /// The datapath id that the tenant sees.
    pub datapath: u64,
    /// The physical switches of the virtual switch.
    pub members: BTreeSet<u64>,
    /// The member that has each port. Ports that are on no member now are missing.
    pub owners: BTreeMap<u32, u64>,
}

/// All big switches of a policy, by their keys.
pub fn plans(policy: &Policy) -> BTreeMap<u64, Plan> {
    let mut plans: BTreeMap<u64, Plan> = BTreeMap::new();
    for (&dpid, map) in &policy.maps {
        for (&tenant, member) in map.members.iter().filter(|(_, member)| member.shared_with) {
            let datapath = member.datapath.0;
            let plan = plans.entry(key(tenant, datapath)).or_insert_with(|| Plan {
                tenant,
                datapath,
                members: BTreeSet::new(),
                owners: BTreeMap::new(),
            });
            plan.members.insert(dpid);
            let here = member.ports.iter().filter(|(_, port)| match &port.kind {
                PortKind::Edge { .. } => true,
                PortKind::Link { sends, receives, .. } => sends.is_some() || !receives.is_empty(),
                PortKind::Remote { .. } => false,
            });
            plan.owners.extend(here.map(|(&number, _)| (number, dpid)));
        }
    }
    plans
}

/// The policy for a front: the front's tenant has the whole switch. Also returns the datapath id that the tenant sees.
pub(crate) fn policy(policy: &Policy, dpid: u64) -> (Option<u64>, Policy) {
    let tenant = policy.tenants.iter().find(|tenant| dpid & !0xffff_ffff == key_of(tenant.id));
    let Some(tenant) = tenant else { return (None, Policy::default()) };
    let mut members = policy.maps.values().filter_map(|map| map.members.get(&tenant.id));
    let member = members.find(|it| it.shared_with && key(tenant.id, it.datapath.0) == dpid);
    let Some(member) = member else { return (None, Policy::default()) };
    let all = Space {
        match_: Match::ANY,
        priority: 100,
        switches: Switches::Any,
        permission: Permission::Write,
    };
    // The free bandwidth behind virtual ports is not known, as on the tenant's other switches.
    let whole = Tenant { flowspace: Vec::from([all]), labels: None, ..tenant.clone() };
    let policy = Policy { tenants: Vec::from([whole]), ..Policy::default() };
    (Some(member.datapath.0), policy)
}

fn key_of(tenant: TenantId) -> u64 {
    KEYS | u64::from(tenant.0) << 32
}
