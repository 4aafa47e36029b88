//! The model that every behaviour test uses: one core, one switch, any number of tenants' controllers, in virtual time.
//!
//! Start reading at [`play`]: a scenario is text. [`World`] plays the scenario. [`request`] turns words into messages
//! of either version, and [`describe`] turns messages into words. [`Testbed::play`] plays a scenario of several
//! switches.
// Some items are unused in other test binaries, and `pub` items are visible only inside the test binary.
#![allow(dead_code, unused_imports, unreachable_pub)]

mod actions;
mod agreement;
pub mod big_switches;
pub mod courses;
mod describe;
pub mod hairpin;
pub mod mixed;
mod network_script;
pub mod networks;
mod packets;
mod places;
mod policy;
mod replies;
mod request;
mod request_v13;
mod rounds;
mod script;
pub mod shared_ports;
pub mod sharing;
mod testbed;
mod warm;
mod warm_big;
mod world;

pub use agreement::tables_agree;
pub use describe::describe;
pub use network_script::both_versions;
pub use packets::{ONE_PACKET, announcement, but_for_the_port, changes, packet, probe};
pub use places::{Plan, cut};
pub use policy::policy;
pub use replies::{at_once, is_divided};
pub use request::request;
pub use rounds::{Rounds, nth_add};
pub use script::{both, happen, play, play_on, play_with};
pub use testbed::{Big, Counted, LOCAL, Make, SWITCHES, Seen, Testbed, Versions, datapath};
pub use warm::{Mode, WarmCore, median, nanoseconds, row, seconds, virtual_port};
pub use warm_big::WarmBig;
pub use world::{
    DPID, LLDP_KEY, Left, Seat, Setup, World, core_of, drain, frames, keep, shake_hands,
};

pub use openflow::Version;

/// Both versions, for tests that are the same on both.
pub const VERSIONS: [Version; 2] = [Version::V1_0, Version::V1_3];
