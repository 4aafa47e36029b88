//! Faucet as a tenant's controller. Faucet has a Python environment of its own, because it pins other versions of
//! os-ken's dependencies.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, iter};

use super::folder::Folder;
use super::program::{GUARDED, Program};
use super::{eventually, free_port, http, repository};

pub struct Faucet {
    pub address: SocketAddr,
    metrics: SocketAddr,
    _folder: Folder,
    _process: Program,
}

impl Faucet {
    /// Starts Faucet with this configuration. Switches reach Faucet at `host`.
    pub fn start(host: IpAddr, configuration: &str) -> Faucet {
        let folder = Folder::new();
        let path = folder.join("faucet.yaml");
        fs::write(&path, configuration).expect("a configuration");
        let address = SocketAddr::new(host, free_port());
        let metrics = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        // Faucet finds its own runner in this folder.
        let folders = env::var_os("PATH").unwrap_or_default();
        let folders = iter::once(environment()).chain(env::split_paths(&folders));
        let path_to_programs = env::join_paths(folders).expect("a PATH");
        let mut command = Command::new(GUARDED[0]);
        command
            .args(&GUARDED[1..])
            .arg(program())
            .arg(format!("--ryu-ofp-listen-host={host}"))
            .arg(format!("--ryu-ofp-tcp-listen-port={}", address.port()))
            .env("PATH", path_to_programs)
            .env("FAUCET_CONFIG", &path)
            .env("FAUCET_LOG", "STDOUT")
            .env("FAUCET_EXCEPTION_LOG", "STDERR")
            .env("FAUCET_PROMETHEUS_ADDR", metrics.ip().to_string())
            .env("FAUCET_PROMETHEUS_PORT", metrics.port().to_string());
        let process = Program::of("faucet", command);
        eventually("Faucet listens", || TcpStream::connect(address).is_ok());
        Faucet { address, metrics, _folder: folder, _process: process }
    }

    /// Returns the value of the first metric whose name and labels begin with `name`.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.values(name).first().copied()
    }

    /// Returns the number of metrics that begin with `name` and have this value.
    pub fn count(&self, name: &str, value: f64) -> usize {
        self.values(name).into_iter().filter(|it| *it == value).count()
    }

    fn values(&self, name: &str) -> Vec<f64> {
        let (_, body) = http::get(self.metrics, "/metrics").unwrap_or_default();
        let lines = body.lines().filter(|line| line.starts_with(name));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse().ok()).collect()
    }
}

/// Faucet's program, which exists only after `scripts/setup`.
pub fn program() -> PathBuf {
    environment().join("faucet")
}

fn environment() -> PathBuf {
    repository().join(".venv-faucet/bin")
}
