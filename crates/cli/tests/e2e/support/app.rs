//! A tenant's real controller: an os-ken application of `examples/os-ken`. Orders and events are JSON lines.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::program::Program;
use super::{PATIENCE, eventually, free_port, repository};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub struct App {
    name: &'static str,
    pub address: SocketAddr,
    scheme: &'static str,
    process: Program,
    /// The index of the first unread line.
    read: usize,
}

/// The certificate, the key and the CA of a controller that speaks TLS.
pub struct Credentials<'a> {
    pub certificate: &'a Path,
    pub private_key: &'a Path,
    pub ca: &'a Path,
}

impl App {
    pub fn learning_switch_10() -> App {
        App::start("learning_switch_10", LOOPBACK, &[], None)
    }

    pub fn learning_switch_13() -> App {
        App::start("learning_switch_13", LOOPBACK, &[], None)
    }

    pub fn topology() -> App {
        App::start("topology", LOOPBACK, &[], None)
    }

    /// Starts an application that discovers links, learns hosts, and forwards by the shortest paths.
    pub fn shortest_path() -> App {
        App::start("shortest_path", LOOPBACK, &[], None)
    }

    /// Starts the load balancer of this OpenFlow version, which reads link labels. `vnics` is kbit/s by MAC address, as
    /// JSON.
    pub fn multipath(openflow: &str, vnics: &Value) -> App {
        let name = if openflow == "1.0" { "multipath_10" } else { "multipath_13" };
        App::start(name, LOOPBACK, &["--vnics", &vnics.to_string()], None)
    }

    /// `openflow` is "1.0" or "1.3".
    pub fn flow_installer(openflow: &str) -> App {
        App::start("flow_installer", LOOPBACK, &["--openflow", openflow], None)
    }

    /// Starts an application by name that switches reach without Weir.
    ///
    /// A refused switch waits a second before its next attempt, so this function returns after the application listens.
    pub fn switch_only(name: &'static str, host: IpAddr) -> App {
        let app = App::start(name, host, &[], None);
        eventually("os-ken listens", || TcpStream::connect(app.address).is_ok());
        app
    }

    pub fn with_tls(name: &'static str, credentials: &Credentials<'_>) -> App {
        App::start(name, LOOPBACK, &[], Some(credentials))
    }

    fn start(
        name: &'static str,
        host: IpAddr,
        more: &[&str],
        tls: Option<&Credentials<'_>>,
    ) -> App {
        App::start_at(SocketAddr::new(host, free_port()), name, more, tls)
    }

    fn start_at(
        address: SocketAddr,
        name: &'static str,
        more: &[&str],
        tls: Option<&Credentials<'_>>,
    ) -> App {
        let run = repository().join("examples/os-ken/run.py").display().to_string();
        let listen = address.to_string();
        let mut arguments = vec![run.as_str(), name, "--listen", &listen];
        arguments.extend(more);
        let paths = tls.map(|tls| {
            [tls.certificate, tls.private_key, tls.ca].map(|path| path.display().to_string())
        });
        for (option, path) in
            ["--certificate", "--private-key", "--ca"].iter().zip(paths.iter().flatten())
        {
            arguments.extend([*option, path]);
        }
        let process = Program::start(name, &python().display().to_string(), &arguments);
        let scheme = if tls.is_some() { "ssl" } else { "tcp" };
        App { name, address, scheme, process, read: 0 }
    }

    /// Kills the application, and starts it again at the same address without its state.
    pub fn restart(&mut self) {
        self.process.kill();
        *self = App::start_at(self.address, self.name, &[], None);
    }

    /// Waits for the next event of this kind.
    pub fn expect(&mut self, event: &str) -> Value {
        self.expect_where(event, |_| true)
    }

    /// Waits for the next event of this kind with this xid.
    pub fn expect_reply(&mut self, event: &str, xid: u32) -> Value {
        self.expect_where(event, |found| found["xid"] == xid)
    }

    /// Waits for the next event of this kind that satisfies `wanted`. Earlier events count as read.
    pub fn expect_where(&mut self, event: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let found = self.find(event, PATIENCE, &wanted);
        found.unwrap_or_else(|| {
            panic!("{}: no such event `{event}`; saw {:#?}", self.name, self.process.stdout.all())
        })
    }

    /// Whether an event of this kind has arrived after the last read event. The function does not wait.
    pub fn has_seen(&mut self, event: &str) -> bool {
        self.find(event, Duration::ZERO, &|_| true).is_some()
    }

    fn find(
        &mut self,
        event: &str,
        at_most: Duration,
        wanted: &dyn Fn(&Value) -> bool,
    ) -> Option<Value> {
        let found = self.process.stdout.wait_for(self.read, at_most, |line| {
            serde_json::from_str::<Value>(line)
                .ok()
                .filter(|found| found["event"] == event && wanted(found))
        })?;
        let all = self.process.stdout.all();
        let text =
            |line: &String| serde_json::from_str::<Value>(line).is_ok_and(|parsed| parsed == found);
        self.read += all[self.read..].iter().position(text).map_or(0, |index| index + 1);
        Some(found)
    }

    /// Sends an order to `flow_installer`. The first lines of `flow_installer` describe the orders.
    pub fn order(&mut self, order: &Value) {
        self.process.write_line(&order.to_string());
    }

    /// Sends a FLOW_MOD; `flow` is written as in os-ken's ofctl library.
    pub fn flow(&mut self, command: &str, xid: u32, flow: &Value) {
        self.order(&json!({"send": "flow", "command": command, "xid": xid, "flow": flow}));
    }

    /// Waits until the switch has done all earlier requests; `xid` must be unused.
    pub fn barrier(&mut self, xid: u32) {
        self.order(&json!({"send": "barrier", "xid": xid}));
        self.expect_reply("barrier_reply", xid);
    }

    /// [`App::barrier`] at one of several switches.
    pub fn barrier_at(&mut self, dpid: u64, xid: u32) {
        self.order(&json!({"send": "barrier", "dpid": dpid, "xid": xid}));
        self.expect_reply("barrier_reply", xid);
    }

    /// Returns the tenant's flows in the flow statistics of the switch; each is an object with `match`, `priority`,
    /// `packets`, ...
    pub fn flows(&mut self, xid: u32) -> Vec<Value> {
        self.order(&json!({"send": "flow_stats", "xid": xid}));
        let mut flows = Vec::new();
        loop {
            let part = self.expect_reply("stats", xid);
            flows.extend(part["body"].as_array().expect("a list of flows").clone());
            if part["more"] == false {
                return flows;
            }
        }
    }
}

/// The address, as in a tenant's `controllers`.
impl fmt::Display for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scheme, self.address)
    }
}

/// Starts Open vSwitch's own controller, a learning switch, and returns when the controller listens.
pub fn testcontroller() -> (Program, SocketAddr) {
    let address = SocketAddr::new(LOOPBACK, free_port());
    let listen = format!("ptcp:{}:{}", address.port(), address.ip());
    let arguments = ["--unixctl=none", "--verbose=warn", &listen];
    let process = Program::start("ovs-testcontroller", "ovs-testcontroller", &arguments);
    eventually("ovs-testcontroller listens", || TcpStream::connect(address).is_ok());
    (process, address)
}

/// The Python of os-ken, which exists only after `scripts/setup`.
pub fn python() -> PathBuf {
    repository().join(".venv/bin/python")
}
