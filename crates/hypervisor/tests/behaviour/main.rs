//! Behaviour tests of the hypervisor core through its messages: in memory, in virtual time, over OpenFlow 1.0 and 1.3.
//!
//! `support` explains how to write a scenario.

// A test reports a failure with a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stderr, reason = "what is skipped is said loudly")]

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
mod buffered_packets;
mod courses;
mod data_sheets;
mod durability;
mod entries_in_order;
mod entries_without_rules;
mod exact_entries;
mod fairness;
mod flow_mod;
mod groups;
mod groups_agree;
mod groups_in_order;
mod groups_restarted;
mod groups_shared;
mod groups_watched;
mod idle;
mod in_turn;
mod installations;
mod labels;
mod link_probes;
mod long_messages;
mod message_policy;
mod meters_restarted;
mod mixed;
mod networks;
mod new_policy;
mod odd_switches;
mod on_open_vswitch;
mod one_rule;
mod operator_views;
mod other_version;
#[path = "../../../emulate/tests/ovs/mod.rs"]
mod ovs;
mod own_in_turns;
mod packets;
mod port_counts;
mod port_mod;
mod properties;
mod reasons;
mod reconcile_in_turns;
mod refusals;
mod refused_ports;
mod replaced_counters;
mod replay_in_turns;
mod reserved_ports;
mod rests;
mod rules_deleted_outside;
mod sent_into_tables;
mod sessions;
mod shared_port_outputs;
mod shared_ports_v10;
mod shared_ports_v13;
mod sharing;
mod slice_ports;
mod slice_traces;
mod slow_readers;
mod standby;
mod state_quota;
mod stated_bounds;
mod statistics;
mod support;
mod switch_bounds;
mod table_shares;
mod unused_egress_groups;
mod v13;
mod waiting_requests;
mod work_is_charged;
