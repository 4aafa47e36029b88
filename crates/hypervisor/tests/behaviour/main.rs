//! Behaviour tests of the hypervisor core through its messages: in memory, in virtual time, over OpenFlow 1.0 and 1.3.
//!
//! `support` explains how to write a scenario.

// In a test a panic is the finding.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stderr, reason = "what is skipped is said loudly")]

#[path = "../../../emulate/tests/ovs/mod.rs"]
mod ovs;
mod support;

mod action_sets;
mod actions;
mod adopted;
mod agreement;
mod answers_in_turns;
mod attacks;
mod bad_input;
mod barriers;
mod big_switch_reasons;
mod big_switches;
mod big_switches_refused;
mod big_switches_slow;
mod big_switches_timed;
mod big_switches_wide;
mod buckets;
mod counting_anew;
mod courses;
mod deleted_beneath;
mod deliveries;
mod durability;
mod egress_groups_unused;
mod entries_in_order;
mod exact;
mod fairness;
mod flow_mod;
mod groups;
mod groups_agree;
mod groups_in_order;
mod groups_kept;
mod groups_shared;
mod groups_watched;
mod idle;
mod in_turn;
mod installations;
mod kept_packets;
mod labels;
mod link_probes;
mod lists_shared;
mod local;
mod message_policy;
mod meters_kept;
mod mixed;
mod networks;
mod new_policy;
mod odd_switches;
mod on_open_vswitch;
mod one_rule;
mod other_version;
mod own_in_turns;
mod packets;
mod port_counts;
mod port_mod;
mod properties;
mod reasons;
mod reconcile_in_turns;
mod refusals;
mod refused_ports;
mod replay_in_turns;
mod sent_into_tables;
mod sessions;
mod shared_v10;
mod sharing;
mod sheet;
mod shown;
mod sizes;
mod slice_ports;
mod slow_readers;
mod space;
mod standby;
mod state_quota;
mod stated_bounds;
mod statistics;
mod switch_bounds;
mod traced;
mod uninstalled;
mod v13;
mod waiting;
mod work_is_charged;
