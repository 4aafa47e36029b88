//! The orders for the hostile peers: the attack, and the addresses.

use super::attack::Attack;
use crate::cpus::Cpus;
use crate::plan::Setup;
use std::net::SocketAddr;

/// The orders for the hostile peers: the attack, and the addresses.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) attack: Attack,
    /// Rules of each hostile tenant before the attack.
    pub(crate) rules: u32,
    /// The address that switches dial.
    pub(crate) switch_address: SocketAddr,
    pub(crate) api: Option<SocketAddr>,
    /// The generator's CPU, if the generator has its own CPU.
    pub(crate) cpus: Option<Cpus>,
    /// The setup of the system under test: all tenants, the quiet tenant first.
    pub(crate) setup: Setup,
}
