//! Uses a bridge of an Open vSwitch that runs already as the switch of a measurement.
//!
//! The bridge must be without use: a bridge with a controller or with rules would lose them, and is refused. The
//! changed settings (controller, fail mode, protocols) are restored at the end.

use super::protocol::protocol;
use bench::{DataPort, RealSwitches, Size, Stand, Version};
use lab::OpenVSwitch;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A bridge with its data ports. Clones share the bridge.
#[derive(Clone, Debug)]
pub struct Bridge {
    switch: OpenVSwitch,
    name: String,
    version: Version,
    stand: Stand,
    before: Arc<Mutex<Option<Before>>>,
}

/// The settings that are restored at the end.
#[derive(Debug)]
struct Before {
    fail_mode: String,
    protocols: String,
}

impl Bridge {
    /// Takes the bridge with this name. `folder` has the sockets of the bridge's Open vSwitch, and `host` is the
    /// address of this machine as the Open vSwitch sees this machine.
    pub fn take(
        name: &str,
        folder: &Path,
        ports: Vec<DataPort>,
        host: IpAddr,
        version: Version,
    ) -> anyhow::Result<Bridge> {
        let switch = OpenVSwitch::attach(folder);
        anyhow::ensure!(
            switch.switch_process().is_some(),
            "no Open vSwitch runs in {}: see --ovs-rundir",
            folder.display()
        );
        let get = |column: &str| -> anyhow::Result<String> {
            let value = switch.vsctl(["get", "Bridge", name, column])?;
            Ok(value.trim().trim_matches('"').to_owned())
        };
        let controllers = switch.vsctl(["get-controller", name])?;
        anyhow::ensure!(
            controllers.trim().is_empty(),
            "bridge {name} has a controller ({}): measure a bridge that nobody uses",
            controllers.trim()
        );
        let before = Before { fail_mode: get("fail_mode")?, protocols: get("protocols")? };
        let dpid = u64::from_str_radix(&get("datapath_id")?, 16)?;
        let rules = switch.ofctl(["-O", protocol_of(&before, version), "dump-flows", name])?;
        let is_a_rule = |line: &&str| line.contains("actions=") && !line.contains("actions=NORMAL");
        if let Some(rule) = rules.lines().find(is_a_rule) {
            anyhow::bail!(
                "bridge {name} has rules ({}): measure a bridge that nobody uses",
                rule.trim()
            );
        }
        let taken = Bridge {
            switch,
            name: name.to_owned(),
            version,
            stand: Stand { host, dpid, ports },
            before: Arc::new(Mutex::new(Some(before))),
        };
        let protocols = format!("protocols={}", protocol(version).name());
        taken.switch.vsctl(["set", "Bridge", name, "fail_mode=secure", &protocols])?;
        Ok(taken)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Before>> {
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A protocol that the bridge spoke before the measurement.
fn protocol_of(before: &Before, version: Version) -> &str {
    let names =
        ["OpenFlow10", "OpenFlow13", "OpenFlow11", "OpenFlow12", "OpenFlow14", "OpenFlow15"];
    let spoken = names.into_iter().find(|name| before.protocols.contains(name));
    spoken.unwrap_or(if version == Version::V1_0 { "OpenFlow10" } else { "OpenFlow13" })
}

impl RealSwitches for Bridge {
    fn name(&self) -> String {
        let version = OpenVSwitch::version().unwrap_or_default();
        format!("Open vSwitch {version}, bridge {}", self.name)
    }

    fn prepare(&self, size: Size) -> Result<Stand, String> {
        let Size { switches, ports, entries } = size;
        let (name, channels) = (&self.name, self.stand.ports.len());
        if self.lock().is_none() {
            return Err("the bridge has been given back".to_owned());
        }
        if switches > 1 {
            return Err(format!(
                "without a hypervisor each of {switches} tenants needs a switch of its own, and bridge {name} is one"
            ));
        }
        if entries > 0 {
            return Err(format!("the tables of bridge {name} stay as large as they are"));
        }
        if ports > channels {
            return Err(format!(
                "{ports} ports of bridge {name} are needed: {channels} are given with --channel"
            ));
        }
        let ports = self.stand.ports.iter().take(ports).cloned().collect();
        Ok(Stand { ports, ..self.stand.clone() })
    }

    fn connect(&self, _: Size, addresses: &[SocketAddr], version: Version) -> Result<(), String> {
        if version != self.version {
            return Err("the bridge speaks another version".to_owned());
        }
        let [address] = addresses else {
            return Err(format!("bridge {} can dial one address only", self.name));
        };
        let clear = ["-O", protocol(version).name(), "del-flows", self.name.as_str()];
        self.switch.ofctl(clear).map_err(|error| error.to_string())?;
        let order = ["set-controller", self.name.as_str(), &format!("tcp:{address}")];
        let out_of_band = ["--", "set", "Controller", self.name.as_str()];
        let settings = ["connection_mode=out-of-band", "max_backoff=1000"];
        self.switch
            .vsctl(order.into_iter().chain(out_of_band).chain(settings))
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn forget(&self, _: Size) -> Result<(), String> {
        let purged = self.switch.appctl(["revalidator/purge"]);
        purged.map(drop).map_err(|error| error.to_string())
    }

    fn down(&self) {
        let Some(before) = self.lock().take() else { return };
        let set = |column: &str, value: &str| match value {
            "[]" | "" => ["clear", "Bridge", &self.name, column].map(str::to_owned).to_vec(),
            value => ["set", "Bridge", &self.name, &format!("{column}={value}")]
                .map(str::to_owned)
                .to_vec(),
        };
        let mut words = ["del-controller", &self.name, "--"].map(str::to_owned).to_vec();
        words.extend(set("fail_mode", &before.fail_mode));
        words.push("--".to_owned());
        words.extend(set("protocols", &before.protocols));
        if let Err(error) = self.switch.vsctl(words) {
            crate::talk::progress(&format!(
                "bridge {} cannot be put back as it was: {error}",
                self.name
            ));
        }
    }
}
