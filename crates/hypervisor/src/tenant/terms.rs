//! What the policy says of a tenant.

use crate::policy::{self, LabelForm, Limits, Statistics};
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
    /// Those of a tenant that is in the policy.
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

    /// The policy may know the tenant no more.
    pub(crate) fn forget(&mut self) {
        self.is_present = false;
    }

    /// Only a part of the tenant's big switch is here: what limits the tenant, and what is cached for it, is where the members are
    /// joined.
    pub(crate) fn keep_those_of_member(&mut self) {
        let Limits { flows, entries, .. } = self.limits;
        self.limits = Limits { flows, entries, ..Limits::default() };
        self.statistics = Statistics::default();
    }

    /// Whether the policy still knows it.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        self.is_present
    }

    /// The name that the operator gave it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it may use.
    #[inline]
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Queues that it may enqueue to.
    pub(crate) fn queues(&self) -> &[u32] {
        &self.queues
    }

    /// Vendors and experimenters of which it may send messages and actions.
    pub(crate) fn experimenters(&self) -> &[u32] {
        &self.experimenters
    }

    /// Where the answers to its requests for statistics come from.
    pub(crate) fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The form in which it is told what is left of links.
    pub(crate) fn label_form(&self) -> Option<LabelForm> {
        self.label_form
    }

    /// Its share of control-plane service.
    #[inline]
    pub(crate) fn weight(&self) -> u32 {
        self.weight
    }
}
