//! Starts the tenants' controllers: os-ken's learning switch, Open vSwitch's own test controller, or an emulated
//! controller.

use anyhow::Context;
use channel::Address;
use emulate::controller::{Behaviour, ControllerRunner, RunningController};
use lab::programs::{Process, find_program, os_ken_python};
use openflow::{Version, VersionSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// The applications of `examples/os-ken` that the demo runs, so that the demo works without the repository.
const OS_KEN: [(&str, &str); 4] = [
    ("run.py", include_str!("../../../examples/os-ken/run.py")),
    ("events.py", include_str!("../../../examples/os-ken/events.py")),
    ("learning_switch_10.py", include_str!("../../../examples/os-ken/learning_switch_10.py")),
    ("learning_switch_13.py", include_str!("../../../examples/os-ken/learning_switch_13.py")),
];

/// A free address for a program that cannot report the port of its socket.
fn own_address() -> anyhow::Result<SocketAddr> {
    let port = packet::free_port().context("cannot find a free port")?;
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// A controller of a tenant: a learning switch of another project, if this machine has one.
pub(crate) struct Peer {
    /// The description of the controller, for the user.
    pub(crate) name: String,
    /// The address at which the controller listens, or will listen soon.
    pub(crate) address: SocketAddr,
    /// Whether the controller's rules have no wildcards. On OpenFlow 1.0 such rules are above every priority.
    pub(crate) is_exact: bool,
    _owner: Owner,
}

enum Owner {
    Process { _it: Process },
    Thread { _it: RunningController },
}

impl Peer {
    /// Starts os-ken's learning switch. Without os-ken, starts [`Peer::testcontroller`].
    pub(crate) fn os_ken(version: Version, work: &Path) -> anyhow::Result<Peer> {
        let Some((python, release)) = os_ken_python() else {
            return Peer::testcontroller(version, work);
        };
        let folder = work.join("os-ken");
        fs::create_dir_all(&folder).context("cannot make a folder for os-ken")?;
        for (name, text) in OS_KEN {
            fs::write(folder.join(name), text).context("cannot write os-ken's application")?;
        }
        let address = own_address()?;
        let application = match version {
            Version::V1_0 => "learning_switch_10",
            _ => "learning_switch_13",
        };
        let mut command = Command::new(python);
        command
            .arg(folder.join("run.py"))
            .arg(application)
            .args(["--listen", &address.to_string()]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let process = Process::start(&mut command, work.join("os-ken.log"))?;
        let name = format!("os-ken {release}, a learning switch");
        Ok(Peer { name, address, is_exact: false, _owner: Owner::Process { _it: process } })
    }

    /// Starts `ovs-testcontroller`. Without this program, starts an emulated controller.
    pub(crate) fn testcontroller(version: Version, work: &Path) -> anyhow::Result<Peer> {
        let Some(program) = find_program("ovs-testcontroller") else {
            return Peer::emulated(version);
        };
        let address = own_address()?;
        let mut command = Command::new(program);
        command.args(["--unixctl=none", "--verbose=warn"]);
        command.arg(format!("ptcp:{}:{}", address.port(), address.ip()));
        let process = Process::start(&mut command, work.join("ovs-testcontroller.log"))?;
        let name = "ovs-testcontroller, a learning switch".to_owned();
        Ok(Peer { name, address, is_exact: true, _owner: Owner::Process { _it: process } })
    }

    fn emulated(version: Version) -> anyhow::Result<Peer> {
        let behaviour = Behaviour::LearningSwitch { idle_timeout: 60 };
        let running = ControllerRunner::new(behaviour)
            .versions(VersionSet::only(version))
            .start(Address::tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
            .context("cannot start an emulated controller")?;
        let address = running.address().addr;
        let name = "Weir's emulated learning switch (install os-ken or \
                    openvswitch-testcontroller for a real one)";
        let (name, _owner) = (name.to_owned(), Owner::Thread { _it: running });
        Ok(Peer { name, address, is_exact: true, _owner })
    }
}
