//! The result of the compiler: rules on the switch, and the limits for the rules of one entry.

use crate::metadata::to_16_bits;
use crate::refusal::{Reason, Refused};
use crate::wire::Wire;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use fabric::TenantId;
use flowspace::Match;
use openflow::error::v13 as code;

/// An entry on the physical switch. Copies share their bytes, because Weir keeps the old rules of a changed entry until
/// the switch has confirmed the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The match on the wire.
    pub match_wire: Arc<[u8]>,
    /// The priority on the switch: the tenant's priority, or the highest priority if the match has no wildcards (1.0).
    pub priority: u16,
    /// The actions (1.0) or instructions (1.3) on the wire.
    pub actions: Arc<[u8]>,
}

/// The identity of a rule on the switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleKey {
    /// The tenant's table; 0 on OpenFlow 1.0.
    pub table: u8,
    /// The priority on the switch.
    pub priority: u16,
    /// The match on the wire.
    pub match_wire: Arc<[u8]>,
}

/// An infrastructure rule.
#[derive(Clone, Debug, PartialEq)]
pub struct InfraRule {
    /// The switch's table (1.3).
    pub table: u8,
    /// The match.
    pub match_: Match,
    /// The priority.
    pub priority: u16,
    /// Actions (1.0) or instructions (1.3).
    pub actions: Vec<u8>,
    /// The port whose received packets the rule counts, if any (1.3).
    pub counted: Option<CountedPort>,
}

/// A port of a network whose received packets a rule of table 0 counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CountedPort {
    /// The tenant.
    pub tenant: TenantId,
    /// The virtual port.
    pub port: u32,
}

/// Bytes that all rules of one entry may take together, and the bytes of each rule in addition to its match and
/// actions.
const MOST: usize = 4 << 20;
const EACH: usize = 256;
/// Bytes in flow statistics of 1.0 before an entry's actions. A FLOW_MOD has fewer bytes before the actions.
const BEFORE_ACTIONS_V10: usize = 12 + 88;
/// Bytes in flow statistics of 1.3 before an entry's match. A FLOW_MOD has fewer bytes before the match.
const BEFORE_MATCH_V13: usize = 16 + 48;
/// The most bytes of an OpenFlow message.
const LONGEST: usize = u16::MAX as usize;

/// The memory of the rules of one entry during the compilation: the check for room comes only after the compilation.
#[derive(Debug, Default)]
pub struct Budget(Cell<usize>);

impl Rule {
    /// Bytes of the rule's match and actions.
    pub fn size(&self) -> usize {
        self.match_wire.len() + self.actions.len()
    }

    /// The identity of the rule in this table of the tenant.
    pub fn key(&self, table: u8) -> RuleKey {
        RuleKey { table, priority: self.priority, match_wire: Arc::clone(&self.match_wire) }
    }
}

impl CountedPort {
    /// A port of a network; `None` for a port that table 0 cannot distinguish from other ports.
    pub fn new(tenant: TenantId, port: u32) -> Option<CountedPort> {
        to_16_bits(port).filter(|port| *port != 0)?;
        Some(CountedPort { tenant, port })
    }
}

impl Budget {
    /// Adds one more rule. The error says which limit the rule exceeds.
    pub fn add(&self, rule: &Rule, wire: Wire) -> Result<(), Refused> {
        let taken = self.0.get() + rule.size() + EACH;
        self.0.set(taken);
        check_reportable(wire, &rule.match_wire, &rule.actions)?;
        bounded(taken <= MOST, Reason::TooManyRules)
    }
}

/// An error if flow statistics have no room for an entry.
pub fn check_reportable(wire: Wire, match_: &[u8], actions: &[u8]) -> Result<(), Refused> {
    let before = match wire {
        Wire::V10 => BEFORE_ACTIONS_V10,
        Wire::V13 => BEFORE_MATCH_V13 + match_.len(),
    };
    bounded(before + actions.len() <= LONGEST, Reason::ByCode)
}

/// Whether statistics of 1.3 have room for a group or a meter: for its description, whose buckets or bands take
/// `described` bytes, and for the counters of its `parts`.
pub fn is_reportable(described: usize, parts: usize) -> bool {
    // The header of a reply; then the header of the description, or the header of the counters and two counters for
    // each part.
    16 + (8 + described).max(40 + 16 * parts) <= LONGEST
}

/// An error as soon as a list that is being written is too long for any message.
pub fn check_length(list: &[u8]) -> Result<(), Refused> {
    bounded(list.len() <= LONGEST, Reason::ByCode)
}

fn bounded(is_within: bool, reason: Reason) -> Result<(), Refused> {
    // The same number in both versions.
    is_within.then_some(()).ok_or(reason.with(code::BAD_ACTION_TOO_MANY))
}
