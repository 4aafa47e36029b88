//! The tenants' controllers: os-ken's learning switch, Open vSwitch's own test controller, or an emulated one.

use super::process::Process;
use anyhow::Context;
use channel::Address;
use emulate::controller::{Behaviour, ControllerRunner, RunningController};
use openflow::{Version, VersionSet};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The applications of `examples/os-ken` that the demo runs, so that it works without the repository.
const OS_KEN: [(&str, &str); 4] = [
    ("run.py", include_str!("../../../../../examples/os-ken/run.py")),
    ("events.py", include_str!("../../../../../examples/os-ken/events.py")),
    ("learning_switch_10.py", include_str!("../../../../../examples/os-ken/learning_switch_10.py")),
    ("learning_switch_13.py", include_str!("../../../../../examples/os-ken/learning_switch_13.py")),
];

/// A learning switch that somebody else wrote, where there is one.
pub struct Peer {
    /// What it is, for the audience.
    pub name: String,
    /// Where it listens, or soon will.
    pub address: SocketAddr,
    /// Whether what it installs has no wildcards: on OpenFlow 1.0 that outranks every priority.
    pub is_exact: bool,
    _owner: Owner,
}

enum Owner {
    Process { _it: Process },
    Thread { _it: RunningController },
}

impl Peer {
    /// os-ken's, else what [`Peer::testcontroller`] gives.
    pub fn os_ken(version: Version, work: &Path) -> anyhow::Result<Peer> {
        let Some((python, release)) = os_ken_python() else {
            return Peer::testcontroller(version, work);
        };
        let folder = work.join("os-ken");
        fs::create_dir_all(&folder).context("cannot make a folder for os-ken")?;
        for (name, text) in OS_KEN {
            fs::write(folder.join(name), text).context("cannot write os-ken's application")?;
        }
        let address = free_address()?;
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

    /// `ovs-testcontroller`, else an emulated one.
    pub fn testcontroller(version: Version, work: &Path) -> anyhow::Result<Peer> {
        let Some(program) = find_program("ovs-testcontroller") else {
            return Peer::emulated(version);
        };
        let address = free_address()?;
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

/// A Python that can import os-ken, and os-ken's version: the environment that `make` builds, or one that `PATH` has.
pub fn os_ken_python() -> Option<(PathBuf, String)> {
    pythons().into_iter().find_map(|python| {
        let release = os_ken_of(&python)?;
        Some((python, release))
    })
}

/// The version of os-ken that a Python imports, if it does.
fn os_ken_of(python: &Path) -> Option<String> {
    let question = "import os_ken\n\
                    try:\n import importlib.metadata as m; print(m.version('os-ken'))\n\
                    except Exception: print('of unknown version')";
    let answer = Command::new(python).args(["-c", question]).stderr(Stdio::null()).output();
    let answer = answer.ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8(answer.stdout).ok()?.trim().to_owned())
}

/// Where os-ken is looked for.
fn pythons() -> Vec<PathBuf> {
    let program = std::env::current_exe().ok();
    let folders = program.iter().flat_map(|program| program.ancestors().skip(1));
    let here = std::env::current_dir().ok();
    let environments = folders.chain(here.as_deref()).map(|folder| folder.join(".venv/bin/python"));
    let environments = environments.filter(|python| python.exists());
    environments.chain(programs("python3")).collect()
}

/// For those who cannot do without os-ken: what to install, also where there is no clone of the repository.
pub fn no_os_ken() -> String {
    let pinned = include_str!("../../../../../scripts/requirements.txt").lines();
    let package = pinned.into_iter().find(|line| line.starts_with("os-ken==")).unwrap_or("os-ken");
    let tried: Vec<String> = pythons().iter().map(|it| it.display().to_string()).collect();
    let tried = if tried.is_empty() { "there is no python3".to_owned() } else { tried.join(", ") };
    format!(
        "no Python here imports os_ken (tried: {tried}). Install it, for one by `python3 -m venv os-ken && \
         os-ken/bin/pip install {package}`, and run this again with `PATH=$PWD/os-ken/bin:$PATH`"
    )
}

/// Where administrators' programs live when `PATH` does not say.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/local/bin", "/usr/sbin", "/usr/bin", "/bin"];

pub fn find_program(name: &str) -> Option<PathBuf> {
    programs(name).into_iter().next()
}

/// All programs of that name, the one that a shell would run first.
fn programs(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = Vec::new();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    for candidate in folders.map(|folder| folder.join(name)).filter(|it| it.is_file()) {
        if !found.contains(&candidate) {
            found.push(candidate);
        }
    }
    found
}

/// A port of the loopback interface that was free a moment ago, for programs that do not say which one they got.
pub fn free_address() -> anyhow::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .context("cannot find a free port")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn os_ken_is_what_a_python_imports() {
        let needed = [("python3", "python3")];
        if lab::testing::skip_without("os_ken_is_what_a_python_imports", &needed) {
            return;
        }
        let folder = std::env::temp_dir().join(format!("weir-pythons-{}", std::process::id()));
        fs::create_dir_all(folder.join("packages/os_ken")).unwrap();
        fs::write(folder.join("packages/os_ken/__init__.py"), "").unwrap();
        let python = |packages: &str| {
            let path = folder.join("python3");
            let packages = folder.join(packages).display().to_string();
            let script = format!("#!/bin/sh\nPYTHONPATH='{packages}' exec python3 -S \"$@\"\n");
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        assert_eq!(os_ken_of(&python("packages")).as_deref(), Some("of unknown version"));
        assert_eq!(os_ken_of(&python("nothing")), None);
        assert_eq!(os_ken_of(&folder.join("no-python")), None);
        let words = no_os_ken();
        assert!(words.contains("pip install os-ken=="), "{words}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
