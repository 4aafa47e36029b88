//! A whole daemon with its REST interface, without switches.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use daemon::api::{Sources, http};
use daemon::config::{Api, Config, Socket};
use daemon::control::{Control, Setup};
use daemon::reload::{Current, Reloader};
use daemon::serve::{Daemon, ServeOptions};
use serde_json::Value;

const LISTEN: &str = "[listen]\nopenflow = \"127.0.0.1:0\"\n";

pub(crate) const TENANTS: &str = "[[tenants]]\nname = \"green\"\n[[tenants]]\nname = \"blue\"\n\
    [[tenants.flowspace]]\nmatch = \"\"\n\
    [[tenants]]\nname = \"red\"\n[tenants.network]\naddresses = \"10.0.0.0/30\"\n\
    [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
    [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\n\
    [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 1\"\n\
    [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\n";

pub(crate) struct Scene {
    pub(crate) folder: PathBuf,
    pub(crate) daemon: Option<Arc<Daemon>>,
    control: Option<Control>,
    tcp_changes: bool,
    /// Whether the interface is also served over TLS.
    tls: bool,
    limits: http::Limits,
}

impl Scene {
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn new(name: &str) -> Scene {
        let name = format!("weir-networks-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let mut scene = Scene {
            folder,
            daemon: None,
            control: None,
            tcp_changes: true,
            tls: false,
            limits: http::Limits::default(),
        };
        scene.start(TENANTS);
        scene
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// A daemon in an existing folder, with this text after `[listen]`; changes by TCP need an account.
    pub(crate) fn with(folder: PathBuf, text: &str, tls: bool) -> Scene {
        let mut scene = Scene {
            folder,
            daemon: None,
            control: None,
            tcp_changes: false,
            tls,
            limits: http::Limits::default(),
        };
        scene.start(text);
        scene
    }

    fn start(&mut self, tenants: &str) {
        let config = config(&self.folder, tenants);
        let state = Some(self.folder.join("state"));
        let daemon = Arc::new(
            Daemon::start(
                &config,
                &ServeOptions { state: state.clone(), threads: 1, ..Default::default() },
            )
            .unwrap(),
        );
        let current = Current::new(config);
        let sources = Sources {
            documents: daemon.documents(),
            pins: daemon.pins(),
            metrics: daemon.metrics(),
            current: current.clone(),
            pulse: Arc::new(daemon.pulse()),
            reader: daemon.reader(),
            topology: daemon.topology(),
            labels: daemon.labels(),
            networks: daemon.networks(),
        };
        let path = self.folder.join("weir.toml");
        let reloader =
            Reloader::new(&path, current, Box::new(|_: &Config| Ok(())), daemon.metrics());
        let socket = Some(Socket::Wanted(self.folder.join("api.sock")));
        let tcp = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        let tls = tcp.filter(|_| self.tls);
        let api = Api { tcp, tls, socket, tcp_changes: self.tcp_changes };
        let limits = self.limits;
        let terminate = Box::new(|_| {});
        let setup = Setup { api, limits, state, sources, reloader, terminate };
        self.control = Some(Control::start(setup).unwrap());
        self.daemon = Some(daemon);
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// Restarts the daemon without changes by TCP.
    pub(crate) fn restart_for_reading(&mut self) {
        self.tcp_changes = false;
        self.restart(TENANTS);
    }

    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn restart(&mut self, tenants: &str) {
        self.stop();
        self.start(tenants);
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// Restarts the daemon with another state than that of a normal end.
    pub(crate) fn restart_from(&mut self, state: &[u8]) {
        self.stop();
        fs::write(self.folder.join("state/weir.redb"), state).unwrap();
        self.start(TENANTS);
    }

    pub(crate) fn stop(&mut self) {
        drop(self.control.take());
        Arc::into_inner(self.daemon.take().unwrap()).unwrap().stop();
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// Starts the daemon again after a stop.
    pub(crate) fn begin(&mut self) {
        self.start(TENANTS);
    }

    pub(crate) fn api(&self) -> SocketAddr {
        self.control.as_ref().unwrap().api().unwrap()
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// Restarts the daemon with other bounds for clients.
    pub(crate) fn restart_within(&mut self, limits: http::Limits, text: &str) {
        self.limits = limits;
        self.restart(text);
    }

    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn tls(&self) -> SocketAddr {
        self.control.as_ref().unwrap().tls().unwrap()
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// Sends a request by the socket in the file system.
    pub(crate) fn ask_socket(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let stream = UnixStream::connect(self.folder.join("api.sock")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let answer = talk(stream, &request("weir", method, path, "", &body.to_string()));
        (answer.status, serde_json::from_str(&answer.text).unwrap())
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// Sends a request with an account.
    pub(crate) fn ask_as(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let api = self.api();
        let account = format!("Authorization: Bearer {token}\r\n");
        exchange(api, &request(&api.to_string(), method, path, &account, body))
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let body = body.map(|body| body.to_string()).unwrap_or_default();
        let answer = self.send(method, path, "application/json", &body);
        (answer.status, serde_json::from_str(&answer.text).unwrap())
    }

    pub(crate) fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> Answer {
        let (api, length) = (self.api(), body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n\
             Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        exchange(api, &request)
    }

    #[allow(dead_code, reason = "not all tests need it")]
    /// One network, if there is one.
    pub(crate) fn network(&self, tenant: &str) -> Option<Value> {
        let (status, body) = self.ask("GET", &format!("/api/v1/networks/{tenant}"), None);
        (status == 200).then_some(body)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn config(folder: &Path, tenants: &str) -> Config {
    let path = folder.join("weir.toml");
    let text = format!("{LISTEN}{tenants}");
    fs::write(&path, &text).unwrap();
    Config::parse(&path.display().to_string(), &text).unwrap()
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The content type.
    #[allow(dead_code, reason = "not all tests look at it")]
    pub(crate) kind: String,
    /// The status and the headers.
    #[allow(dead_code, reason = "not all tests look at it")]
    pub(crate) head: String,
    pub(crate) text: String,
}

#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn request(host: &str, method: &str, path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

pub(crate) fn exchange(api: SocketAddr, request: &str) -> Answer {
    let stream = TcpStream::connect(api).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    talk(stream, request)
}

pub(crate) fn talk(stream: impl Read + Write, request: &str) -> Answer {
    talk_if_it_goes(stream, request).unwrap()
}

/// `None` if the answer is no HTTP.
pub(crate) fn talk_if_it_goes(mut stream: impl Read + Write, request: &str) -> Option<Answer> {
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    // A backup is no text.
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    let (kind, head) = (kind.unwrap_or_default().to_owned(), head.to_owned());
    Some(Answer { status, kind, head, text: body.to_owned() })
}
