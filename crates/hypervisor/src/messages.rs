//! The messages of the version that a switch speaks: functions that `v10` and `v13` both have, with the same names.
//! Only this module chooses between the versions. The functions at the end are the same for both versions, except for
//! such a choice.

use crate::buffers::Buffered;
use crate::flows::{Asked, Counted, Flow, FlowMod, Head, Outputs, Rule, SentFlowMod, Wanted};
use crate::label::Label;
use crate::port_desc::{PortChange, PortState, speed_of};
use crate::south::diff::{Change, Writing};
use crate::south::features::Connected;
use crate::south::pending::Awaits;
use crate::south::queue::Question;
use crate::south::reports::{Age, Removed, ReportedRule};
use crate::tally::Count;
pub(crate) use crate::v10::statistics::Reported;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use compile::{InfraRule, Network, PhysicalPort, Refused, Wire};
use flowspace::Match;
use hashbrown::HashSet;
use openflow::text::Name;
use openflow::v10::PortConfig;
use openflow::v13::{self, FlowModFlags, MessageType, Port, PortFeatures, PortNo, PortStats};
use openflow::{DecodeError, ErrorCode, TooLong};

/// Makes functions that call the function of the same name in the module of the version.
macro_rules! of_both_versions {
    ($module:ident: $($(#[$doc:meta])* fn $name:ident($($argument:ident: $type_:ty),*) -> $result:ty;)*) => {
        $(
            $(#[$doc])*
            pub(crate) fn $name(wire: Wire, $($argument: $type_),*) -> $result {
                match wire {
                    Wire::V10 => crate::v10::$module::$name($($argument),*),
                    Wire::V13 => crate::v13::$module::$name($($argument),*),
                }
            }
        )*
    };
}

of_both_versions! { requests:
    /// The name of a message type.
    fn type_name(type_: u8) -> Option<&'static str>;

    /// A message type in the numbering of 1.3; a number that no type has if the version has no such type.
    fn type_in_v13(type_: u8) -> MessageType;

    /// The experimenter id of an experimenter's message.
    fn experimenter(body: &[u8]) -> Result<u32, ErrorCode>;

    /// The port of a QUEUE_GET_CONFIG_REQUEST, and the first bytes of the reply.
    fn queue_port(body: &[u8]) -> Result<(PortNo, [u8; 8]), ErrorCode>;

    /// The queues in a QUEUE_GET_CONFIG_REPLY: port, queue, and the queue's description.
    fn queues(body: &[u8]) -> Result<Vec<(u32, u32, Vec<u8>)>, ErrorCode>;
}

of_both_versions! { flow_mod:
    /// A match from its wire form.
    fn read_match(bytes: &[u8]) -> Option<Match>;

    /// A match on the wire; nothing if the version cannot say the match.
    fn write_match(match_: &Match) -> Vec<u8>;

    /// The table to which an entry's actions send packets on.
    fn next_table(actions: &[u8]) -> Option<u8>;

    /// A tenant's FLOW_MOD; `metadata_kept` are the bits of the metadata that are not the tenant's.
    fn read_flow_mod(body: &[u8], metadata_kept: u64) -> Result<FlowMod<'_>, Refused>;

    /// Whether an entry's actions send to the `out_port` and `out_group` of a request.
    fn sends_to(actions: &[u8], wanted: &Wanted) -> bool;

    /// Whether an entry's actions name a port, or a reserved port that may include this port.
    fn names_port(actions: &[u8], number: u32) -> bool;

    /// The actions of a rule as a tenant would write them.
    fn tenants_actions(actions: &[u8], first_table: u8) -> Option<Vec<u8>>;

    /// Whether Weir may have to examine other entries for a FLOW_MOD than the entry with its match and priority.
    fn examines_others(body: &[u8]) -> bool;

    /// The command of a FLOW_MOD. Its numbers are the same in both versions.
    fn command(body: &[u8]) -> Option<u16>;

    /// The fields in the first bytes of a FLOW_MOD.
    fn head(body: &[u8]) -> Option<Head>;

    /// The buffer id for the MODIFY of a rule, if the message releases the buffered packet.
    fn buffer_for(rule: &Rule, buffered: &mut Option<Buffered>) -> u32;

    /// Appends a FLOW_MOD that Weir sends.
    fn write_flow_mod(it: &SentFlowMod<'_>, out: &mut Vec<u8>) -> Result<(), TooLong>;

    /// An entry from the store, with the priority and the match that Weir uses.
    fn restored(flow: Flow, metadata_kept: u64) -> Option<Flow>;

    /// The switch's report that a rule was removed; `first_table` is the first table of tenants.
    fn removed(body: &[u8], first_table: u8) -> Result<Removed, ErrorCode>;

    /// Appends the FLOW_REMOVED for a tenant's entry that was installed for this time.
    fn write_removed(
        flow: &Flow, reason: u8, stood: Age, out: &mut Vec<u8>
    ) -> Result<(), TooLong>;
}

of_both_versions! { ports:
    /// A FEATURES_REPLY.
    fn connected(body: &[u8]) -> Result<Connected, DecodeError>;

    /// The switch's report that a port was added, removed or changed: the reason and the port.
    fn port_status(body: &[u8]) -> Result<(u8, u32, PhysicalPort), ErrorCode>;

    /// A tenant's PORT_MOD.
    fn port_mod(body: &[u8]) -> Result<PortChange, ErrorCode>;

    /// A port in the form of 1.3. Configuration, state and features have the bits of the version.
    fn read_port(description: &[u8]) -> Option<Port>;

    /// The description of a port in this form.
    fn write_port(port: &Port) -> Vec<u8>;

    /// A port's description with a label, in the form that the version has for it.
    fn labelled(description: Vec<u8>, label: Option<Label>) -> Vec<u8>;

    /// A PACKET_OUT of Weir's own; `None` for a port that the version cannot name.
    fn packet_out(port: u32, frame: &[u8]) -> Option<Vec<u8>>;
}

of_both_versions! { statistics:
    /// A tenant's request for statistics; `metadata_kept` are the bits of the metadata that are not the tenant's.
    fn asked(body: &[u8], metadata_kept: u64) -> Result<Asked<'_>, Refused>;

    /// The question for a tenant's request, as Weir's own message.
    fn ask_again(body: &[u8]) -> Vec<u8>;

    /// Whether more parts of the switch's answer follow.
    fn has_more(body: &[u8]) -> Result<bool, ErrorCode>;

    /// Appends flow statistics of a tenant's entry.
    fn write_flow_statistics(flow: &Flow, count: Count, stood: Age, out: &mut Vec<u8>) -> ();

    /// Table statistics of one table: its number, how many entries it can hold and holds, and how many packets were
    /// looked up and matched.
    fn written_table(table: u8, most: u32, active: u32, looked_up: u64, matched: u64) -> Vec<u8>;

    /// Port statistics.
    fn ports(entries: &[u8]) -> Vec<PortStats>;

    /// Port statistics of one port; `None` for a port that the version cannot name.
    fn written_port(port: &PortStats) -> Option<Vec<u8>>;

    /// Queue statistics of the tenant's own queues, by port and queue.
    fn own_queues(entries: &[u8], is_own: impl Fn(u32, u32) -> bool) -> Vec<Vec<u8>>;

    /// The configuration and the questions that a switch gets when it connects.
    fn questions(miss_send_len: u16) -> Vec<(Awaits, Vec<u8>)>;

    /// The rules in the switch's answer to a question for its flows.
    fn reported_rules(entries: &[u8]) -> Vec<ReportedRule>;

    /// Questions for the counters of all rules of an entry except one.
    fn questions_of(flow: &Flow, except: &Rule, cookie: u64, first_table: u8) -> Vec<Question>;

    /// The question for the switch's description.
    fn description() -> Vec<u8>;

    /// The question for the counters of all ports.
    fn port_counters() -> Vec<u8>;

    /// The questions for the sizes of the tables, and for the most groups and meters.
    fn room() -> Vec<Vec<u8>>;

    /// The question for the numbers of rules in the tables.
    fn rules_in_tables() -> Vec<u8>;
}

/// Reads the ports that actions output to.
pub(crate) fn outputs(wire: Wire) -> Outputs {
    match wire {
        Wire::V10 => crate::v10::flow_mod::outputs,
        Wire::V13 => crate::v13::flow_mod::outputs,
    }
}

/// The rules of the entry with this cookie that have counted packets, by the switch's answer.
pub(crate) fn used(wire: Wire, entries: &[u8], cookie: u64) -> HashSet<Match> {
    /// The counter of a switch that does not count.
    const NOT_COUNTED: u64 = u64::MAX;
    let own = reported_rules(wire, entries).into_iter().filter(|it| it.cookie == cookie);
    own.filter(|it| !matches!(it.packets, 0 | NOT_COUNTED)).map(|it| it.match_).collect()
}

/// The counts of the rules in a whole answer of the switch.
pub(crate) fn counted(wire: Wire, entries: &[u8]) -> Vec<Counted<'_>> {
    counted_part(wire, entries, &mut Reported::default())
}

/// The counts of the rules in one part of the switch's answer. Leaves out rules that earlier parts have `reported`
/// (1.0).
pub(crate) fn counted_part<'a>(
    wire: Wire,
    entries: &'a [u8],
    reported: &mut Reported,
) -> Vec<Counted<'a>> {
    match wire {
        Wire::V10 => crate::v10::statistics::counted(entries, reported),
        Wire::V13 => crate::v13::statistics::counted(entries),
    }
}

/// Appends the FLOW_MOD that adds or modifies one rule of an entry; `first_table` is the first of the tenants' tables.
pub(crate) fn write_rule(
    wire: Wire,
    flow: &Flow,
    rule: &Rule,
    writing: &Writing,
    first_table: u8,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    const COUNTING: u16 = FlowModFlags::NO_PKT_COUNTS.0 | FlowModFlags::NO_BYT_COUNTS.0;
    let &Writing { cookie, change, buffer_id, hard_timeout, resets_counts } = writing;
    // Weir always asks for a FLOW_REMOVED, so that its tables stay true.
    let mut flags = FlowModFlags::SEND_FLOW_REM;
    if wire == Wire::V13 {
        flags |= FlowModFlags(flow.flags & COUNTING);
        flags |= if resets_counts { FlowModFlags::RESET_COUNTS } else { FlowModFlags::NONE };
    }
    let message = SentFlowMod {
        cookie,
        table: flow.table.saturating_add(first_table),
        idle_timeout: flow.idle_timeout,
        hard_timeout,
        priority: rule.priority,
        buffer_id,
        flags,
        match_wire: &rule.match_wire,
        ..SentFlowMod::of(change, &rule.actions)
    };
    write_flow_mod(wire, &message, out)
}

/// Appends the FLOW_MOD that removes a rule with this table and priority from the switch. It removes only the rule with
/// this cookie, not a newer rule in the same place.
pub(crate) fn write_removal(
    wire: Wire,
    match_wire: &[u8],
    table: u8,
    priority: u16,
    cookie: u64,
    out: &mut Vec<u8>,
) -> Result<(), TooLong> {
    let removal = SentFlowMod::of(Change::Delete, &[]);
    let place = SentFlowMod { match_wire, table, priority, ..removal };
    write_flow_mod(wire, &SentFlowMod { cookie, cookie_mask: u64::MAX, ..place }, out)
}

/// Appends the FLOW_MOD that makes this change to one of Weir's own rules. False if the version cannot express the
/// rule.
pub(crate) fn write_infra(
    wire: Wire,
    own: &InfraRule,
    cookie: u64,
    change: Change,
    out: &mut Vec<u8>,
) -> bool {
    let &InfraRule { table, priority, .. } = own;
    let match_wire = &write_match(wire, &own.match_);
    let message = SentFlowMod::of(change, &own.actions);
    let message = SentFlowMod { match_wire, table, priority, cookie, ..message };
    write_flow_mod(wire, &message, out).is_ok()
}

/// The FLOW_MOD by which a tenant would add this entry.
pub(crate) fn as_written(wire: Wire, flow: &Flow) -> Option<Vec<u8>> {
    let mut message = Vec::new();
    let written = write_flow_mod(wire, &SentFlowMod::of_flow(Change::Add, flow), &mut message);
    written.is_ok().then_some(message)
}

/// A physical port after a PORT_MOD that changes the bits of its configuration in this way.
pub(crate) fn configured(
    wire: Wire,
    known: &PhysicalPort,
    change: impl Fn(u32) -> u32,
) -> Option<PhysicalPort> {
    let mut port = read_port(wire, &known.description)?;
    port.config.0 = change(port.config.0);
    let no_flood = wire == Wire::V10 && PortConfig(port.config.0).contains(PortConfig::NO_FLOOD);
    Some(PhysicalPort { description: write_port(wire, &port), no_flood })
}

/// The state of a physical port, by its description. A port counts as down if its description cannot be read.
pub(crate) fn port_state(wire: Wire, description: &[u8]) -> PortState {
    let rates = match wire {
        Wire::V10 => 0x7f,
        Wire::V13 => 0x3ff,
    };
    read_port(wire, description).map_or(PortState::default(), |port| PortState {
        is_up: !port.config.contains(v13::PortConfig::PORT_DOWN)
            && !port.state.contains(v13::PortState::LINK_DOWN),
        speed: match port.curr_speed {
            0 => speed_of(port.curr.0 & rates),
            speed => u64::from(speed),
        },
    })
}

/// The description of one port of a network.
pub(crate) fn port_of(wire: Wire, network: &Network, number: u32) -> Option<Vec<u8>> {
    let (port, config) = (network.ports().get(&number)?, network.config(number));
    let kilobits = port.speed.map_or(0, |speed| speed.kilobits_per_second());
    let speed = u32::try_from(kilobits).unwrap_or(u32::MAX);
    let state = match wire {
        _ if !port.up => v13::PortState::LINK_DOWN,
        // A port that is taken down is not live (1.3, section 7.2.1), even if the link is up.
        Wire::V13 if !config.contains(PortConfig::PORT_DOWN) => v13::PortState::LIVE,
        _ => v13::PortState::NONE,
    };
    let described = Port {
        port_no: PortNo(number),
        hw_addr: port.mac,
        name: Name::new(port.name.as_str()),
        config: v13::PortConfig(config.0),
        state,
        curr: PortFeatures::NONE,
        advertised: PortFeatures::NONE,
        supported: PortFeatures::NONE,
        peer: PortFeatures::NONE,
        curr_speed: speed,
        max_speed: speed,
    };
    Some(write_port(wire, &described))
}

/// The descriptions of all ports of a network, by number.
pub(crate) fn ports_of(wire: Wire, network: &Network) -> BTreeMap<u32, Vec<u8>> {
    let numbers = network.ports().keys();
    numbers.filter_map(|&number| Some((number, port_of(wire, network, number)?))).collect()
}
