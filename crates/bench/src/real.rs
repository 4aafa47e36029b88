//! The interface to real switches in the place of emulated switches. The provider of the switches (a lab of network
//! namespaces, a rack) implements the interface.

use crate::Error;
use crate::plan::{DataPort, Topology, Version};
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

/// The number of real switches, and the number of data ports of each switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// The number of switches.
    pub switches: usize,
    /// Ports of each switch by which the data plane's packets enter and leave.
    pub ports: usize,
    /// The number of entries of each table; 0: the switch's own number.
    pub entries: u32,
}

/// The available real switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// This machine's address as the switches see it. A program that the switches dial must listen at this address.
    pub host: IpAddr,
    /// The first switch's datapath id.
    pub dpid: u64,
    /// All ports, with the ports of the first switch first.
    pub ports: Vec<DataPort>,
}

/// Real switches that are ready to be connected.
pub trait RealSwitches: Debug + Send + Sync {
    /// The name in results, such as `Open vSwitch 3.1.0`.
    fn name(&self) -> String;

    /// Prepares this number of switches with this number of ports.
    ///
    /// # Errors
    /// The error, as a sentence.
    fn prepare(&self, size: Size) -> Result<Stand, String>;

    /// Empties the switches' tables and makes switch *i* dial address *i* only.
    ///
    /// # Errors
    /// The error, as a sentence.
    fn connect(&self, size: Size, addresses: &[SocketAddr], version: Version)
    -> Result<(), String>;

    /// Notifies the provider that the controllers of these switches listen now. The switches must drop their cached
    /// state of the time when no controller listened.
    ///
    /// # Errors
    /// The error, as a sentence.
    fn forget(&self, size: Size) -> Result<(), String>;

    /// Removes or returns the switches of [`RealSwitches::prepare`]. After this call no switches are available.
    fn down(&self);
}

/// Connects real switches in the place of the emulated switches, and returns the topology with the real switches.
/// `controllers` are the tenants' controllers.
pub(crate) fn topology(
    switches: &dyn RealSwitches,
    (size, stand): (Size, Stand),
    emulated: &Topology,
    controllers: &[SocketAddr],
    version: Version,
) -> Result<Topology, Error> {
    let addresses = match emulated {
        Topology::Direct => controllers.to_vec(),
        Topology::PerTenant { switch_addresses } => switch_addresses.clone(),
        Topology::Shared { switch_address, switches } => vec![*switch_address; *switches],
        Topology::Interfaces { .. } | Topology::Controller { .. } => return Ok(emulated.clone()),
    };
    // With a hypervisor a tenant has a session with every switch; without a hypervisor a tenant has its own switch.
    let sessions = if matches!(emulated, Topology::Shared { .. }) { addresses.len() } else { 1 };
    let seen: Vec<SocketAddr> =
        addresses.iter().map(|address| SocketAddr::new(stand.host, address.port())).collect();
    switches.connect(size, &seen, version).map_err(Error::System)?;
    Ok(Topology::Interfaces { ports: stand.ports, switches: sessions, dpid: stand.dpid })
}
