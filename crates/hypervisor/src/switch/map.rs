//! The map of the physical network for this switch, and what depends on it: the owners of packets, Weir's own rules on
//! the switch, and the rules that the switch has refused. Also here: the next policy, and entries that do not follow
//! the policy yet.

mod stale;

use crate::lldp::LldpKey;
use crate::policy::Policy;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use compile::ownership::Claims;
use compile::{InfraRule, Ownership};
use fabric::embedding::Transit;
use flowspace::Match;
use hashbrown::HashSet;
pub(crate) use stale::{NextGroup, OwnChange, OwnChanges, Stale, StaleGroups};

/// The most reported refusals of one map: a full switch refuses all rules.
const MOST_REPORTED: usize = 16;

/// See the module.
pub(crate) struct Map {
    policy: Arc<Policy>,
    ownership: Ownership,
    /// The next policy. It comes into force when the store has all changes that were accepted under the present policy.
    upcoming: Option<Arc<Policy>>,
    /// Whether the switch's ports have changed, and rules have to follow.
    has_other_ports: bool,
    /// Entries that do not follow the policy in force or the present ports yet.
    stale: Option<Stale>,
    /// Weir's own rules that the switch holds.
    infra: Vec<InfraRule>,
    /// Whether the switch has refused rules of ports, and these ports are not down yet.
    has_refused_ports: bool,
    /// Transits whose rules the switch has refused, and that the driver does not know yet.
    refused_transits: BTreeSet<Transit>,
    /// How many refused rules of the present map have been reported.
    reported_refusals: usize,
    /// The key of Weir's link probes.
    lldp: LldpKey,
    /// Whether Weir has sent the rule that brings link probes to Weir (1.0; on 1.3 table 0 has this rule).
    expects_probes: bool,
}

impl Map {
    /// The map of a switch without tenants.
    pub(super) fn new(lldp: LldpKey) -> Map {
        Map {
            policy: Arc::new(Policy::default()),
            ownership: Ownership::new(&Claims::default()),
            upcoming: None,
            has_other_ports: false,
            stale: None,
            infra: Vec::new(),
            has_refused_ports: false,
            refused_transits: BTreeSet::new(),
            reported_refusals: 0,
            lldp,
            expects_probes: false,
        }
    }

    /// The policy in force.
    #[inline]
    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// The owners of packets, by the policy in force.
    #[inline]
    pub(crate) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// Puts a policy into force.
    pub(super) fn set(&mut self, policy: Arc<Policy>, ownership: Ownership) {
        (self.policy, self.ownership) = (policy, ownership);
    }

    /// The key of Weir's link probes.
    #[inline]
    pub(crate) fn lldp(&self) -> &LldpKey {
        &self.lldp
    }

    /// Whether Weir has sent the rule that brings link probes to Weir (1.0).
    pub(super) fn expects_probes(&self) -> bool {
        self.expects_probes
    }

    /// Weir has sent the rule that brings link probes to Weir (1.0).
    pub(super) fn note_probes_expected(&mut self) {
        self.expects_probes = true;
    }

    // ---- Changes that are to be followed

    /// Whether a new policy or changed ports have to be followed.
    #[inline]
    pub(super) fn has_upcoming(&self) -> bool {
        self.has_other_ports || self.upcoming.is_some()
    }

    /// Sets the next policy. A newer policy replaces it.
    pub(super) fn plan_policy(&mut self, policy: Arc<Policy>) {
        self.upcoming = Some(policy);
    }

    /// Makes the policy in force the next policy, unless there is a next policy.
    pub(super) fn plan_same_policy(&mut self) {
        self.upcoming.get_or_insert_with(|| Arc::clone(&self.policy));
    }

    /// The switch's ports have changed.
    pub(super) fn plan_ports(&mut self) {
        self.has_other_ports = true;
    }

    /// Weir begins to follow the changes. Returns the next policy, if there is one.
    pub(super) fn take_upcoming(&mut self) -> Option<Arc<Policy>> {
        self.has_other_ports = false;
        self.upcoming.take()
    }

    /// Whether some entries do not follow yet.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.stale.is_some()
    }

    /// Whether some entries do not follow a change of the policy or of the ports yet.
    #[inline]
    pub(super) fn is_changing(&self) -> bool {
        self.has_upcoming() || self.is_stale()
    }

    /// These entries do not follow yet.
    pub(super) fn set_stale(&mut self, stale: Stale) {
        self.stale = Some(stale);
    }

    /// Takes the entries that do not follow yet.
    pub(super) fn take_stale(&mut self) -> Option<Stale> {
        self.stale.take()
    }

    // ---- Weir's own rules

    /// The rules that the switch holds, or that are on their way to the switch.
    pub(crate) fn infra(&self) -> &[InfraRule] {
        &self.infra
    }

    /// The switch holds these rules from now on. Gives the rules from before.
    pub(super) fn replace_infra(&mut self, rules: Vec<InfraRule>) -> Vec<InfraRule> {
        core::mem::replace(&mut self.infra, rules)
    }

    /// The switch does not hold the first rules any longer. It holds the others, each instead of a rule in the same
    /// place.
    pub(super) fn change_infra(&mut self, gone: &[&InfraRule], added: &[&InfraRule]) {
        let places: HashSet<Place<'_>> = gone.iter().chain(added).map(|own| place(own)).collect();
        if !places.is_empty() {
            self.infra.retain(|held| !places.contains(&place(held)));
            self.infra.extend(added.iter().map(|own| (*own).clone()));
        }
    }

    /// The switch has refused a rule twice. Returns whether the refusal has to be reported.
    pub(super) fn note_infra_refused(&mut self) -> bool {
        let is_reported = self.reported_refusals < MOST_REPORTED;
        self.reported_refusals += usize::from(is_reported);
        is_reported
    }

    /// The switch has refused the rule for this transit.
    pub(super) fn refuse_transit(&mut self, transit: Transit) {
        self.refused_transits.insert(transit);
    }

    /// The switch has refused a rule of a port.
    pub(super) fn note_port_refused(&mut self) {
        self.has_refused_ports = true;
    }

    /// Whether some refusals are not reported yet.
    pub(super) fn has_refused(&self) -> bool {
        self.has_refused_ports || !self.refused_transits.is_empty()
    }

    /// Takes the refused transits, and whether rules of ports were refused, since the last call.
    pub(super) fn take_refused(&mut self) -> (BTreeSet<Transit>, bool) {
        let transits = core::mem::take(&mut self.refused_transits);
        (transits, core::mem::take(&mut self.has_refused_ports))
    }

    /// There is a new map: refusals are reported again.
    pub(super) fn forget_reported(&mut self) {
        self.reported_refusals = 0;
    }
}

/// The table, the match and the priority of a rule, by reference: a match is long.
pub(super) type Place<'a> = (u8, &'a Match, u16);

/// The key of a rule: no other rule on the switch has it.
pub(super) fn place(own: &InfraRule) -> Place<'_> {
    (own.table, &own.match_, own.priority)
}
