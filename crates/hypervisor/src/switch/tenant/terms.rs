//! What the policy says of a tenant.

use crate::policy;
use crate::policy::{LabelForm, Limits, Statistics};
use alloc::string::String;
use alloc::vec::Vec;

/// See the module.
pub(crate) struct Terms {
    name: String,
    is_present: bool,
    limits: Limits,
    queues: Vec<u32>,
    experimenters: Vec<u32>,
    statistics: Statistics,
    label_form: Option<LabelForm>,
    weight: u32,
}

impl Terms {
    /// The terms of a tenant in the policy.
    pub(super) fn new(tenant: &policy::Tenant) -> Terms {
        Terms {
            name: tenant.name.clone(),
            is_present: true,
            limits: tenant.limits,
            queues: tenant.queues.clone(),
            experimenters: tenant.experimenters.clone(),
            statistics: tenant.statistics,
            label_form: tenant.labels,
            weight: tenant.weight,
        }
    }

    /// The tenant may not be in the new policy.
    pub(crate) fn forget(&mut self) {
        self.is_present = false;
    }

    /// The switch is only a member of the tenant's big switch. Rates and cached answers belong to the big switch.
    pub(crate) fn keep_those_of_member(&mut self) {
        let Limits { flows, entries, .. } = self.limits;
        self.limits = Limits { flows, entries, ..Limits::default() };
        self.statistics = Statistics::default();
    }

    /// Whether the tenant is in the policy.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.is_present
    }

    /// The name that the operator gave the tenant.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the tenant may use.
    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The queue ids that the tenant may use.
    pub(crate) fn queues(&self) -> &[u32] {
        &self.queues
    }

    /// The vendor and experimenter ids whose messages and actions the tenant may send.
    pub(crate) fn experimenters(&self) -> &[u32] {
        &self.experimenters
    }

    /// Where answers to the tenant's statistics requests come from.
    pub(crate) fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The form of the link labels that the tenant gets.
    pub(crate) fn label_form(&self) -> Option<LabelForm> {
        self.label_form
    }

    /// The tenant's share of control-plane service.
    #[inline]
    pub(crate) fn weight(&self) -> u32 {
        self.weight
    }
}
