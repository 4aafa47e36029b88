//! What the crowd is to do, and where.

use super::attack::Attack;
use crate::cpus::Cpus;
use crate::plan::Setup;
use std::net::SocketAddr;

/// What the crowd is to do, and where.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) attack: Attack,
    /// Rules of each hostile tenant before the attack.
    pub(crate) rules: u32,
    /// Where switches connect.
    pub(crate) switch_address: SocketAddr,
    pub(crate) api: Option<SocketAddr>,
    /// The generator's CPU, if it has one to itself.
    pub(crate) cpus: Option<Cpus>,
    /// As the system under test was started with it: all tenants, the quiet one first.
    pub(crate) setup: Setup,
}
