//! The map of the physical network as far as it is about this switch, and what derives from it: who owns which packets, Weir's own
//! rules on the switch, and which of those the switch has refused. What is to be followed next is here as well.

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

/// How many refused rules of one map are reported: a switch without room refuses them all.
const TOLD: usize = 16;

/// See the module.
pub(crate) struct Map {
    policy: Arc<Policy>,
    ownership: Ownership,
    /// The next policy. It comes into force once the store has all that was accepted under the present policy.
    upcoming: Option<Arc<Policy>>,
    /// Whether the switch's ports have changed, and rules have to follow.
    has_other_ports: bool,
    /// Entries that do not follow the policy in force or the present ports yet.
    stale: Option<Stale>,
    /// Weir's own rules that the switch holds.
    infra: Vec<InfraRule>,
    /// Whether the switch has refused rules of ports, and these ports are not down yet.
    has_refused_ports: bool,
    /// Transit whose rules the switch has refused, and which the driver does not know yet.
    refused_transits: BTreeSet<Transit>,
    /// How many refused rules of the present map have been reported.
    told_refused: usize,
    /// What marks Weir's link probes.
    lldp: LldpKey,
    /// Whether the rule that brings link probes here has been sent (1.0; table 0 has one on 1.3).
    expects_probes: bool,
}

impl Map {
    /// Nobody has a part of the switch.
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
            told_refused: 0,
            lldp,
            expects_probes: false,
        }
    }

    /// The policy in force.
    #[inline]
    pub(crate) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Who owns which packets, by the policy in force.
    #[inline]
    pub(crate) fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// This policy is in force from now on.
    pub(super) fn set(&mut self, policy: Arc<Policy>, ownership: Ownership) {
        (self.policy, self.ownership) = (policy, ownership);
    }

    /// What marks Weir's link probes.
    #[inline]
    pub(crate) fn lldp(&self) -> &LldpKey {
        &self.lldp
    }

    /// Whether the rule that brings link probes here has been sent (1.0).
    pub(super) fn expects_probes(&self) -> bool {
        self.expects_probes
    }

    /// The rule that brings link probes here has been sent (1.0).
    pub(super) fn note_probes_expected(&mut self) {
        self.expects_probes = true;
    }

    // ---- What is to be followed

    /// Whether a new policy or changed ports have to be followed.
    #[inline]
    pub(super) fn has_upcoming(&self) -> bool {
        self.has_other_ports || self.upcoming.is_some()
    }

    /// This is the next policy. A newer one replaces it.
    pub(super) fn plan_policy(&mut self, policy: Arc<Policy>) {
        self.upcoming = Some(policy);
    }

    /// The policy in force is followed once more, unless there is a next one.
    pub(super) fn plan_same_policy(&mut self) {
        self.upcoming.get_or_insert_with(|| Arc::clone(&self.policy));
    }

    /// The switch's ports have changed.
    pub(super) fn plan_ports(&mut self) {
        self.has_other_ports = true;
    }

    /// Weir follows changes now. Gives the next policy, if there is one.
    pub(super) fn take_upcoming(&mut self) -> Option<Arc<Policy>> {
        self.has_other_ports = false;
        self.upcoming.take()
    }

    /// Whether entries do not follow yet.
    #[inline]
    pub(super) fn is_stale(&self) -> bool {
        self.stale.is_some()
    }

    /// Whether a change of the policy or of the ports is not followed by all entries yet.
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

    /// The switch does not hold the first rules any longer. It holds the others, each instead of a rule in the same place.
    pub(super) fn change_infra(&mut self, gone: &[&InfraRule], added: &[&InfraRule]) {
        let places: HashSet<Place<'_>> = gone.iter().chain(added).map(|own| place(own)).collect();
        if !places.is_empty() {
            self.infra.retain(|held| !places.contains(&place(held)));
            self.infra.extend(added.iter().map(|own| (*own).clone()));
        }
    }

    /// The switch has refused a rule twice. Says whether that is to be reported.
    pub(super) fn note_infra_refused(&mut self) -> bool {
        let is_told = self.told_refused < TOLD;
        self.told_refused += usize::from(is_told);
        is_told
    }

    /// The switch has refused the rule for this transit.
    pub(super) fn refuse_transit(&mut self, transit: Transit) {
        self.refused_transits.insert(transit);
    }

    /// The switch has refused a rule of a port.
    pub(super) fn note_port_refused(&mut self) {
        self.has_refused_ports = true;
    }

    /// Whether the switch has refused something that nobody was told.
    pub(super) fn has_refused(&self) -> bool {
        self.has_refused_ports || !self.refused_transits.is_empty()
    }

    /// The refused transit, and whether rules of ports were refused, since the last call.
    pub(super) fn take_refused(&mut self) -> (BTreeSet<Transit>, bool) {
        let transits = core::mem::take(&mut self.refused_transits);
        (transits, core::mem::take(&mut self.has_refused_ports))
    }

    /// There is a new map: refusals are reported again.
    pub(super) fn forget_told(&mut self) {
        self.told_refused = 0;
    }
}

/// The table, the match and the priority of a rule: a match is long.
pub(super) type Place<'a> = (u8, &'a Match, u16);

/// The place of a rule on the switch, which no other rule has.
pub(super) fn place(own: &InfraRule) -> Place<'_> {
    (own.table, &own.match_, own.priority)
}
