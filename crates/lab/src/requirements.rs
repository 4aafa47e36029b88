//! Checks the requirements of a lab on this machine.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sched::{CloneFlags, unshare};

use crate::command::{find_program, program, run};
use crate::error::{Error, Result};
use crate::missing::Missing;
use crate::options::Datapath;

/// The requirements of labs: privileges, programs and kernel features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// Whether the lab has switches, which need Open vSwitch and `/dev/net/tun`.
    pub switches: bool,
    /// Whether links have rates, which need HTB.
    pub rates: bool,
}

/// Bits of `CapEff` in `/proc/self/status`: the capability's name and number.
const CAPABILITIES: [(&str, u32); 3] =
    [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_SYS_ADMIN", 21)];

const PROGRAMS: [(&str, &str); 2] = [("ip", "iproute2"), ("ethtool", "ethtool")];
const SWITCH_PROGRAMS: [(&str, &str); 5] = [
    ("ovs-vswitchd", "openvswitch-switch"),
    ("ovsdb-server", "openvswitch-switch"),
    ("ovsdb-tool", "openvswitch-switch"),
    ("ovs-vsctl", "openvswitch-switch"),
    ("ovs-ofctl", "openvswitch-switch"),
];

impl Requirements {
    /// All requirements that a lab can have.
    pub const ALL: Requirements = Requirements { switches: true, rates: true };

    /// Returns the requirements that this machine does not meet. An empty list means that a lab can
    /// be made.
    ///
    /// Kernel features are tested in a private network namespace, which is removed afterwards.
    pub fn check(self) -> Vec<Missing> {
        self.check_for(Datapath::default())
    }

    fn check_for(self, datapath: Datapath) -> Vec<Missing> {
        let mut missing = missing_privileges();
        let switch_programs: &[_] = if self.switches { &SWITCH_PROGRAMS } else { &[] };
        let tc: &[_] = if self.rates { &[("tc", "iproute2")] } else { &[] };
        for (name, package) in PROGRAMS.iter().chain(switch_programs).chain(tc) {
            if find_program(name).is_none() {
                missing.push(Missing::program(name, package));
            }
        }
        if self.switches {
            if schema().is_none() {
                missing.push(Missing::new("vswitch.ovsschema", "Open vSwitch's database schema is not where it should be; on Debian: apt-get install openvswitch-switch, elsewhere set OVS_PKGDATADIR"));
            }
            if datapath == Datapath::Netdev && !Path::new("/dev/net/tun").exists() {
                let remedy =
                    "Open vSwitch's userspace datapath needs it; load the kernel module tun";
                missing.push(Missing::new("/dev/net/tun", remedy));
            }
        }
        if missing.is_empty() {
            missing.extend(self.missing_kernel_features());
            if self.switches && datapath == Datapath::System && !has_kernel_datapath() {
                missing.push(Missing::new(
                    "the kernel module openvswitch",
                    "this kernel cannot load it; Open vSwitch's userspace datapath (netdev) needs none",
                ));
            }
        }
        missing
    }

    /// Checks as [`Requirements::check`] does, and returns an error for missing requirements.
    pub fn require(self) -> Result<()> {
        self.require_for(Datapath::default())
    }

    /// Checks as [`Requirements::require`] does, for switches with that datapath.
    pub(crate) fn require_for(self, datapath: Datapath) -> Result<()> {
        let missing = self.check_for(datapath);
        if missing.is_empty() { Ok(()) } else { Err(Error::Missing(missing)) }
    }

    fn missing_kernel_features(self) -> Vec<Missing> {
        let try_out = move || -> Result<Vec<Missing>, Missing> {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| {
                let why = format!("this kernel or container does not allow a new one ({errno})");
                Missing::new("network namespaces", why)
            })?;
            let mut attempts =
                vec![("veth", "ip", "link add name weir0 type veth peer name weir1")];
            if self.rates {
                attempts.push(("HTB", "tc", "qdisc add dev lo root handle 1: htb"));
            }
            let failed = attempts.into_iter().filter_map(|(what, name, arguments)| {
                let error = run(program(name).args(arguments.split(' '))).err()?;
                Some(Missing::new(what, format!("this kernel does not offer it: {error}")))
            });
            Ok(failed.collect())
        };
        // The thread is separate, because the test namespace is removed when this thread ends.
        let outcome = std::thread::scope(|scope| scope.spawn(try_out).join());
        match outcome {
            Ok(Ok(missing)) => missing,
            Ok(Err(missing)) => vec![missing],
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Whether the kernel has the datapath. A missing module is loaded, as by Open vSwitch's own start
/// script.
fn has_kernel_datapath() -> bool {
    Path::new("/sys/module/openvswitch").exists()
        || run(program("modprobe").args(["-q", "openvswitch"])).is_ok()
}

fn missing_privileges() -> Vec<Missing> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok())
        .unwrap_or_default();
    let lacking: Vec<_> = CAPABILITIES
        .iter()
        .filter(|(_, bit)| effective & (1 << bit) == 0)
        .map(|(name, _)| *name)
        .collect();
    if lacking.is_empty() {
        return Vec::new();
    }
    vec![Missing::new("privileges", format!("run as root (lacking {})", lacking.join(", ")))]
}

/// Finds Open vSwitch's database schema in `$OVS_PKGDATADIR`, then in the folders where packages
/// and sources install the schema.
pub(crate) fn schema() -> Option<PathBuf> {
    let set = std::env::var_os("OVS_PKGDATADIR").map(PathBuf::from);
    set.into_iter()
        .chain(["/usr/share/openvswitch", "/usr/local/share/openvswitch"].map(PathBuf::from))
        .map(|folder| folder.join("vswitch.ovsschema"))
        .find(|file| file.is_file())
}
