//! Real switches where the emulated ones would stand: what a measurement needs of them, so that who
//! makes them (a lab of network namespaces, a rack) need not be known here.

use crate::Error;
use crate::plan::{DataPort, Topology, Version};
use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};

/// How many real switches, and how many data ports each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size {
    /// How many switches.
    pub switches: usize,
    /// Ports of each that the data plane's packets go in and out by.
    pub ports: usize,
}

/// What there is of real switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stand {
    /// This machine's address as the switches see it: what they are to dial must listen there.
    pub host: IpAddr,
    /// The first switch's datapath id.
    pub dpid: u64,
    /// All ports, those of the first switch first.
    pub ports: Vec<DataPort>,
}

/// Real switches that stand ready to be connected.
pub trait RealSwitches: Debug + Send + Sync {
    /// What results call them, such as `Open vSwitch 3.1.0`.
    fn name(&self) -> String;

    /// Makes sure that there are so many switches with so many ports.
    ///
    /// # Errors
    /// A sentence.
    fn prepare(&self, size: Size) -> Result<Stand, String>;

    /// Empties the switches' tables and makes switch *i* dial address *i*, and nobody else.
    ///
    /// # Errors
    /// A sentence.
    fn connect(&self, size: Size, addresses: &[SocketAddr], version: Version)
    -> Result<(), String>;

    /// These switches' controllers are there now: what a switch has cached of the time when
    /// nobody listened has to go.
    ///
    /// # Errors
    /// A sentence.
    fn forget(&self, size: Size) -> Result<(), String>;

    /// Removes or gives back what [`RealSwitches::prepare`] made or took. No more are to be had.
    fn down(&self);
}

/// Connects real switches in the place of the emulated ones. The answer is the topology with them; `controllers` are the
/// tenants'.
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
    // A tenant behind a hypervisor has a session with every switch, one without has its own switch.
    let sessions = if matches!(emulated, Topology::Shared { .. }) { addresses.len() } else { 1 };
    let seen: Vec<SocketAddr> =
        addresses.iter().map(|address| SocketAddr::new(stand.host, address.port())).collect();
    switches.connect(size, &seen, version).map_err(Error::System)?;
    Ok(Topology::Interfaces { ports: stand.ports, switches: sessions, dpid: stand.dpid })
}
