//! End to end: `weir` as a process, with real switches and real controllers where the scenario asks for them.
//!
//! One file a scenario; each reads like a specification, and `support` has the tools of all scenarios. Tests whose
//! names begin with `ovs_` need root and Open vSwitch, and skip themselves loudly without.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, unreachable_pub)]

mod support;

mod accounts;
mod adopted;
mod backup;
mod bad_peers;
mod big_switches;
mod controllers;
mod datasheet;
mod demo;
mod described;
mod discovering;
mod ending_a_switch;
mod evaluate;
mod explained;
mod faucet;
mod kill9;
mod labels;
mod mininet;
mod networks;
mod operations;
mod operator;
mod own_groups;
mod own_networks;
mod own_port_counts;
mod own_refused;
mod own_vlans;
mod page;
mod page_of_many;
mod pages;
mod pins;
mod reconnect;
mod reload;
mod restart;
mod riggio2013;
mod shared_big_switches;
mod shared_edges;
mod slices;
mod soak;
mod statistics;
mod strangers;
mod switch_only;
mod tls;
mod topology;
mod watching;
