//! Selects the emulated switches, or real switches in their place (`--switch`).

use super::values;
use super::work::Work;
use crate::commands::switches::{Bridge, OpenVSwitches};
use bench::{DataPort, RealSwitches, Version};
use lab::Requirements;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

/// Which switch.
#[derive(clap::Args)]
pub struct Switch {
    /// emulated; openvswitch: a real Open vSwitch in a lab of the run's own (needs root); or the name of a bridge of a
    /// running Open vSwitch, without controllers and rules, with its data ports as --channel
    #[arg(long, value_name = "SWITCH", default_value = "emulated")]
    switch: String,
    /// An interface, and the bridge's port at its other end
    #[arg(long = "channel", value_name = "INTERFACE[@NAMESPACE]=PORT", value_parser = values::data_port)]
    channels: Vec<DataPort>,
    /// The directory with the sockets of the bridge's Open vSwitch
    #[arg(long, value_name = "DIR", default_value = "/run/openvswitch")]
    ovs_rundir: PathBuf,
    /// This machine's address as the bridge sees it
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    here: IpAddr,
}

/// Real switches. The switches are given back when this value is dropped.
pub struct Taken(pub Option<Arc<dyn RealSwitches>>);

impl Switch {
    /// Makes or takes the real switches, if the options name real switches, and the folder of the measurement. A second
    /// signal gives the switches back, too.
    pub fn take(&self, version: Version) -> anyhow::Result<(Taken, Work)> {
        let also = Shared::default();
        let again = Arc::clone(&also);
        // The signal handlers are installed before a bridge is changed.
        let work = Work::beside(move || again.get().into_iter().for_each(|it| it.down()))?;
        let taken = Taken(self.open(version)?);
        if let Some(switches) = &taken.0 {
            // No other code sets this value.
            let _ = also.set(Arc::clone(switches));
        }
        Ok((taken, work))
    }

    fn open(&self, version: Version) -> anyhow::Result<Option<Arc<dyn RealSwitches>>> {
        match self.switch.as_str() {
            "emulated" => Ok(None),
            "openvswitch" => {
                Requirements { switches: true, rates: false }.require()?;
                // Before Open vSwitch and all systems are started.
                bench::cpus::go_first();
                Ok(Some(Arc::new(OpenVSwitches::new(version)?)))
            }
            bridge => {
                let (folder, ports) = (&self.ovs_rundir, self.channels.clone());
                Ok(Some(Arc::new(Bridge::take(bridge, folder, ports, self.here, version)?)))
            }
        }
    }

    /// The error in the combination of the arguments, if any.
    pub fn wrong(&self) -> Option<String> {
        let is_a_bridge = self.is_real() && self.switch != "openvswitch";
        match (is_a_bridge, self.channels.is_empty()) {
            (true, true) => Some(format!(
                "--switch {}: its data ports are needed, as --channel INTERFACE[@NAMESPACE]=PORT",
                self.switch
            )),
            (false, false) => {
                Some("--channel is for a bridge that is named by --switch".to_owned())
            }
            _ => None,
        }
    }

    pub fn is_real(&self) -> bool {
        self.switch != "emulated"
    }
}

type Shared = Arc<std::sync::OnceLock<Arc<dyn RealSwitches>>>;

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.iter().for_each(|switches| switches.down());
    }
}
