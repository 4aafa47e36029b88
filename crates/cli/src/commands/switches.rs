//! Makes Open vSwitches in labs, as the switches of a measurement.
//!
//! The switches of a case are bridges of one `ovs-vswitchd`. Each bridge has as many hosts as the case needs ports.
//! Unused bridges and ports would cost this process time, so every size has its own lab.
//!
//! ```text
//!   generator ══ h1 ── s1 ──► the address that is given ──► ...
//!   generator ══ h2 ── s2 ──► ...
//! ```

mod bridge;
mod protocol;

use bench::{DataPort, RealSwitches, Size, Stand, Version};
pub use bridge::Bridge;
use lab::{Controller, FailMode, Lab, LabGuard, OpenVSwitch, Options, StateDirectory, Topology};
use protocol::protocol;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Open vSwitches that are made on request. Clones share the switches.
#[derive(Clone, Debug)]
pub struct OpenVSwitches {
    version: Version,
    labs: Arc<Mutex<Labs>>,
}

#[derive(Debug, Default)]
struct Labs {
    by_size: BTreeMap<Size, LabGuard>,
    /// Whether the command is ending, so that no more switches are made.
    ended: bool,
}

impl OpenVSwitches {
    /// Starts without switches.
    pub fn new(version: Version) -> anyhow::Result<OpenVSwitches> {
        Lab::down_abandoned(&StateDirectory::default())?;
        Ok(OpenVSwitches { version, labs: Arc::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Labs> {
        self.labs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, size: Size) -> lab::Result<LabGuard> {
        let Size { switches, ports, entries } = size;
        let mut topology = Topology::builder();
        for number in 1..=switches {
            topology.switch(&switch(number))?;
            for place in 0..ports {
                let host = host_at(size, number, place);
                topology.host(&host)?;
                topology.link(&switch(number), &host, None)?;
            }
        }
        let options = Options {
            name: Some(format!("bench{}-{switches}-{ports}-{entries}", std::process::id())),
            protocols: vec![protocol(self.version)],
            fail_mode: Some(FailMode::Secure),
            ephemeral: true,
            ..Options::default()
        };
        let lab = LabGuard::new(Lab::up(&topology.build()?, &options)?);
        if let Some(instance) = lab.open_vswitch().filter(|_| entries > 0) {
            for number in 1..=switches {
                instance.vsctl(bounded(&switch(number), entries))?;
            }
        }
        Ok(lab)
    }

    fn connect_lab(&self, lab: &Lab, addresses: &[SocketAddr]) -> lab::Result<()> {
        let mut controllers = Vec::new();
        for (number, address) in (1..).zip(addresses) {
            if let Some(instance) = lab.open_vswitch() {
                let protocol = protocol(self.version);
                instance.ofctl(["-O", protocol.name(), "del-flows", &switch(number)])?;
            }
            controllers.push((switch(number), [format!("tcp:{address}").parse::<Controller>()?]));
        }
        let orders: Vec<(&str, &[Controller])> =
            controllers.iter().map(|(switch, one)| (switch.as_str(), &one[..])).collect();
        lab.set_controllers_of(&orders)
    }
}

/// The switches and ports of a lab.
fn stand(lab: &Lab, size: Size) -> Result<Stand, String> {
    let host = lab.controller_address().ok_or("the lab has no control channel")?;
    let mut ports = Vec::new();
    for number in 1..=size.switches {
        for place in 0..size.ports {
            let namespace = lab.namespace(&host_at(size, number, place));
            ports.push(DataPort {
                interface: "eth0".to_owned(),
                namespace: Some(namespace.map_err(|error| error.to_string())?),
                switch_port: u16::try_from(place + 1).unwrap_or(u16::MAX),
            });
        }
    }
    Ok(Stand { host: host.into(), dpid: 1, ports })
}

impl RealSwitches for OpenVSwitches {
    fn name(&self) -> String {
        let version = OpenVSwitch::version().unwrap_or_default();
        format!("Open vSwitch {version}, userspace datapath").replace("  ", " ")
    }

    fn prepare(&self, size: Size) -> Result<Stand, String> {
        let mut labs = self.lock();
        if labs.ended {
            return Err("the switches are gone".to_owned());
        }
        let lab = match labs.by_size.entry(size) {
            std::collections::btree_map::Entry::Occupied(place) => place.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(self.make(size).map_err(|error| error.to_string())?)
            }
        };
        stand(lab, size)
    }

    fn connect(
        &self,
        size: Size,
        addresses: &[SocketAddr],
        version: Version,
    ) -> Result<(), String> {
        if version != self.version {
            return Err("the switches speak another version".to_owned());
        }
        let labs = self.lock();
        // The system of the earlier measurement has ended, so its switches must not dial it again.
        let others = labs.by_size.iter().filter(|(other, _)| **other != size);
        for (other, lab) in others {
            let names: Vec<String> = (1..=other.switches).map(switch).collect();
            let orders: Vec<(&str, &[Controller])> =
                names.iter().map(|name| (name.as_str(), &[][..])).collect();
            lab.set_controllers_of(&orders).map_err(|error| error.to_string())?;
        }
        let lab = labs.by_size.get(&size).ok_or("there is no such lab")?;
        self.connect_lab(lab, addresses).map_err(|error| error.to_string())
    }

    fn forget(&self, size: Size) -> Result<(), String> {
        let labs = self.lock();
        let lab = labs.by_size.get(&size).ok_or("there is no such lab")?;
        let instance = lab.open_vswitch().ok_or("the lab has no switch")?;
        // A packet of the previous run may have arrived while there was no controller. The datapath then drops all
        // similar packets, as long as similar packets arrive.
        instance.appctl(["revalidator/purge"]).map(drop).map_err(|error| error.to_string())
    }

    fn down(&self) {
        let mut labs = self.lock();
        labs.ended = true;
        // A guard removes its lab, and logs each failure.
        labs.by_size.clear();
    }
}

fn switch(number: usize) -> String {
    format!("s{number}")
}

/// The number of an Open vSwitch's tables to which rules can be added.
const TABLES: usize = 254;

/// The arguments that bound all tables of a bridge. On OpenFlow 1.0 no rule names its table, so the size of the largest
/// table would otherwise count as the size of the switch.
fn bounded(bridge: &str, entries: u32) -> [String; 9] {
    let tables: Vec<String> = (0..TABLES).map(|table| format!("{table}=@small")).collect();
    let tables = format!("flow_tables={{{}}}", tables.join(","));
    let limit = format!("flow_limit={entries}");
    ["--id=@small", "create", "Flow_Table", &limit, "--", "set", "Bridge", bridge, &tables]
        .map(str::to_owned)
}

/// The host at this port of this switch. Ports are counted from 0.
fn host_at(size: Size, switch: usize, place: usize) -> String {
    format!("h{}", (switch - 1) * size.ports + place + 1)
}
