//! A tenant's terms in the policy.

use crate::policy::{Limits, Statistics, Tenant};
use alloc::vec::Vec;
use core::ops::Deref;

/// See the module.
pub(crate) struct Terms {
    /// The tenant in the policy, without the flowspace.
    tenant: Tenant,
    is_present: bool,
}

impl Deref for Terms {
    type Target = Tenant;

    #[inline]
    fn deref(&self) -> &Tenant {
        &self.tenant
    }
}

impl Terms {
    /// The terms of a tenant in the policy.
    pub(super) fn new(tenant: &Tenant) -> Terms {
        let tenant = Tenant { flowspace: Vec::new(), ..tenant.clone() };
        Terms { tenant, is_present: true }
    }

    /// The tenant is not in the new policy, unless it is configured again.
    pub(crate) fn forget(&mut self) {
        self.is_present = false;
    }

    /// The switch is a member of the tenant's big switch. Rates and cached answers belong to the big switch.
    pub(crate) fn keep_those_of_member(&mut self) {
        let Limits { flows, entries, .. } = self.limits;
        self.tenant.limits = Limits { flows, entries, ..Limits::default() };
        self.tenant.statistics = Statistics::default();
    }

    /// Whether the tenant is in the policy.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.is_present
    }
}
