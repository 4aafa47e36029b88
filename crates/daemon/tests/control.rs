//! Tests of the control thread: HTTP over real sockets, real signals, and a real configuration file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use daemon::api::{Sources, http};
use daemon::big_switches;
use daemon::config::{self, Api, Config};
use daemon::control::{Control, Setup};
use daemon::metrics::{ApiRefusal, Direction, Registry};
use daemon::networks::Networks;
use daemon::pins::Pins;
use daemon::reload::{Current, Reloader};
use daemon::serve::{Daemon, ServeOptions};
use daemon::shard::Snapshot;
use daemon::store::Store;
use daemon::topology::{self, LabelFeed, Watch};
use serde_json::Value;

const CONFIG: &str = "[[tenants]]\nname = \"red\"\ncontrollers = [\"127.0.0.1:6701\"]\nweight = 3\n\
                      statistics = { cached = \"250ms\" }\n[tenants.limits]\npacket_out = 50\nexperimenters = [0x2320]\n\
                      [[tenants.flowspace]]\nmatch = \"ip,nw_src=10.1.0.0/16\"\nswitches = [\"a\"]\n";

/// The longest wait of a test for an expected event.
const LONG: Duration = Duration::from_secs(20);

struct Scene {
    folder: PathBuf,
    control: Control,
    metrics: Arc<Registry>,
    healthy: Arc<AtomicBool>,
    applied: Receiver<Vec<String>>,
    terminated: Receiver<&'static str>,
}

/// The networks of a configuration without connected switches.
fn networks(current: &Current) -> daemon::networks::Control {
    let config = current.get();
    let store = Store::memory().unwrap();
    let names: Vec<&str> = config.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    let ids = store.tenant_ids(&names).unwrap();
    let mut snapshot = Snapshot {
        policy: Arc::new(config.policy(&ids)),
        controllers: Arc::default(),
        settings: hypervisor::Settings::default(),
        keepalive: config.keepalive,
        reconnect: config.reconnect,
        identity: daemon::identity::Identity::default(),
        tracks_flows: false,
        admission: Arc::default(),
    };
    let following = topology::Setup::new(&config, snapshot.policy.clone());
    let documents = store.documents();
    let (_, joining) = big_switches::Prepared::new(Instant::now()).unwrap();
    Networks::prepare(
        &config,
        &mut snapshot,
        following,
        documents,
        Arc::default(),
        joining,
        Arc::default(),
    )
    .unwrap()
    .control()
}

impl Scene {
    fn new(name: &str, limits: http::Limits) -> Scene {
        let folder =
            std::env::temp_dir().join(format!("weir-control-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("weir.toml");
        fs::write(&path, CONFIG).unwrap();
        let metrics = Registry::new();
        let current = Current::new(config::load(&path).unwrap());
        let healthy = Arc::new(AtomicBool::new(true));
        let pulse = Arc::clone(&healthy);
        let sources = Sources {
            documents: Store::memory().unwrap().documents(),
            pins: Pins::load(Store::memory().unwrap().documents()).unwrap(),
            metrics: Arc::clone(&metrics),
            current: current.clone(),
            pulse: Arc::new(move |_| pulse.load(Ordering::SeqCst).then_some(2)),
            reader: Default::default(),
            topology: Watch::default(),
            labels: LabelFeed::default(),
            networks: networks(&current),
        };
        let (sender, applied) = mpsc::channel();
        let sink = move |config: &Config| {
            let names = config.tenants.iter().map(|tenant| tenant.name.clone()).collect();
            sender.send(names).map_err(|error| error.to_string())
        };
        let reloader = Reloader::new(&path, current, Box::new(sink), Arc::clone(&metrics));
        let (sender, terminated) = mpsc::channel();
        let terminate = Box::new(move |name| sender.send(name).unwrap());
        let api = Api::by_tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
        let control =
            Control::start(Setup { api, limits, state: None, sources, reloader, terminate })
                .unwrap();
        Scene { folder, control, metrics, healthy, applied, terminated }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.control.api().unwrap()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream
    }

    /// Sends a request. Returns the status and the body.
    fn request(&self, method: &str, path: &str) -> (u16, String) {
        request(self.control.api().unwrap(), method, path)
    }

    fn json(&self, path: &str) -> (u16, Value) {
        let (status, body) = self.request("GET", path);
        (status, serde_json::from_str(&body).unwrap())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn request(api: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let stream = TcpStream::connect(api).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let answer = rest::ask(stream, &rest::Request::new(method, path, "localhost")).unwrap();
    (answer.status, answer.text(64 << 20).unwrap())
}

/// Signals reach every control thread of the process, so each test holds this lock, and the tests run one after the
/// other.
fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn signal(name: &str) {
    let status =
        Command::new("kill").args([name, &std::process::id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::yield_now();
    }
}

#[test]
fn rest_answers_requests_for_health_metrics_tenants_and_switches() {
    let _turn = turn();
    let scene = Scene::new("paths", http::Limits::default());
    let switch = scene.metrics.switch(10, 4);
    let red = switch.tenant(1, "red");
    red.messages(Direction::FromController).count(14);
    red.publish_refused(1, 5, 1);
    red.flows.set(12);
    red.added_southbound.observe(30_000);
    switch.received.count(10);

    let (status, health) = scene.json("/healthz");
    assert_eq!(
        (status, &health["status"], &health["switches"], &health["tenants"]),
        (200, &"ok".into(), &2.into(), &1.into())
    );
    scene.metrics.set_store_full(Some("no space left".to_owned()));
    let (status, health) = scene.json("/healthz");
    assert_eq!((status, &health["status"]), (200, &"degraded".into()));
    assert!(health["reason"].as_str().unwrap().ends_with(": no space left"), "{health}");
    scene.metrics.set_store_full(None);
    assert_eq!(scene.json("/healthz").1["status"], "ok");
    // Without a state folder, a backup is refused.
    assert_eq!(scene.request("POST", "/api/v1/backup").0, 503);
    scene.healthy.store(false, Ordering::SeqCst);
    assert_eq!(scene.json("/healthz").0, 503);

    let (status, text) = scene.request("GET", "/metrics");
    assert_eq!(status, 200);
    let refused = "weir_refused_total{tenant=\"red\",error=\"OFPBRC_EPERM\"} 1\n";
    assert!(text.contains(refused), "{text}");
    let (status, text) = scene.request("GET", "/metrics?detail=product");
    let refused = "weir_refused_total{switch=\"00:00:00:00:00:00:00:0a\",tenant=\"red\",error=\"OFPBRC_EPERM\"} 1\n";
    assert!(status == 200 && text.contains(refused), "{text}");
    assert_eq!(scene.json("/metrics?detail=all").0, 400);

    let (status, tenants) = scene.json("/api/v1/tenants");
    let red = &tenants["tenants"][0];
    assert_eq!((status, &red["name"], &red["weight"]), (200, &"red".into(), &3.into()));
    assert_eq!(red["controllers"][0], "tcp:127.0.0.1:6701");
    assert_eq!(red["flowspace"][0]["match"], "ip,nw_src=10.1.0.0/16");
    assert_eq!(red["flowspace"][0]["switches"][0], "00:00:00:00:00:00:00:0a");
    assert_eq!(red["limits"]["packet_out"], serde_json::json!({ "rate": 50, "burst": 5 }));
    assert_eq!(
        (&red["limits"]["flow_mod"], &red["experimenters"][0]),
        (&Value::Null, &"0x00002320".into())
    );
    assert_eq!(red["statistics_max_age_ms"], 250);
    assert_eq!(red["switches"][0]["dpid"], "00:00:00:00:00:00:00:0a");
    assert_eq!(
        (&red["switches"][0]["flows"], &red["switches"][0]["refused"]),
        (&12.into(), &1.into())
    );

    let (_, switches) = scene.json("/api/v1/switches");
    let found = &switches["switches"][0];
    assert_eq!((&found["openflow"], &found["messages_received"]), (&"1.3".into(), &1.into()));
    assert_eq!(found["tenants"][0]["messages_from_controllers"], 1);
    let p50 = found["tenants"][0]["added_latency_south"]["p50_us"].as_f64().unwrap();
    assert!((30.0..=37.5).contains(&p50), "{p50}");

    assert_eq!(scene.json("/api/v1/tenants/red").1["name"], "red");
    assert_eq!(scene.json("/api/v1/tenants/green").0, 404);
    assert_eq!(scene.json("/nothing").0, 404);
    let (status, body) = scene.request("POST", "/metrics");
    assert_eq!((status, body.contains("takes another method")), (405, true));
}

#[test]
fn slow_and_invalid_http_clients_are_disconnected() {
    let _turn = turn();
    let brief = Duration::from_millis(150);
    let limits = http::Limits {
        connections: 3,
        header: brief,
        connection: brief * 2,
        ..http::Limits::default()
    };
    let scene = Scene::new("bad-clients", limits);
    // Clients open all allowed connections, send half a header, and wait. The server closes these connections, so a new
    // client is answered.
    let mut slow: Vec<TcpStream> = (0..3).map(|_| scene.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
    }
    assert_eq!(scene.request("GET", "/metrics").0, 200);
    for stream in &mut slow {
        let mut rest = Vec::new();
        // The connection ends or is reset; a time-out would be an error.
        let ended = stream.read_to_end(&mut rest).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(_) | Err(std::io::ErrorKind::ConnectionReset)), "{ended:?}");
    }
    // One client sends a header without an end, and another client sends no HTTP.
    for bytes in [
        format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(100_000)),
        "\u{1}\u{0}\u{0}\u{8}hello".repeat(500),
    ] {
        let mut stream = scene.connect();
        let _ = stream.write_all(bytes.as_bytes());
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(_) | Err(std::io::ErrorKind::ConnectionReset)), "{ended:?}");
        assert!(!answer.starts_with(b"HTTP/1.1 2"));
    }
    // An idle connection is closed after the time limit of a connection.
    let mut idle = scene.connect();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    idle.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn half_sent_requests_and_idle_connections_do_not_block_new_clients() {
    let _turn = turn();
    let long = Duration::from_secs(3600);
    let limits = http::Limits { connections: 8, header: long, request: long, connection: long };
    let scene = Scene::new("half-sent", limits);
    let mut slow: Vec<TcpStream> = (0..8).map(|_| scene.connect()).collect();
    for (number, stream) in slow.iter_mut().enumerate() {
        let half: &[u8] = if number < 4 { b"GET /metrics HTTP/1.1\r\nHost:" } else { b"" };
        stream.write_all(half).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(scene.request("GET", "/healthz").0, 200);
    }
    let refused = scene.metrics.process.api.refused(ApiRefusal::Connections).get();
    assert!(refused >= 1, "{refused}");
    // The oldest connection was closed.
    let mut rest = Vec::new();
    let ended = slow[0].read_to_end(&mut rest).map_err(|error| error.kind());
    assert!(matches!(ended, Ok(_) | Err(std::io::ErrorKind::ConnectionReset)), "{ended:?}");
}

#[test]
fn http_limits_are_as_the_security_page_says() {
    let limits = http::Limits::default();
    let seconds = [limits.header, limits.request].map(|limit| limit.as_secs());
    assert_eq!((limits.connections, seconds), (256, [10, 30]));
}

#[test]
fn an_http_client_that_does_not_read_the_answer_is_disconnected() {
    let _turn = turn();
    // The thread that answers has a low priority. On a busy machine the thread may need seconds for the other requests.
    let limits = http::Limits { request: Duration::from_secs(10), ..http::Limits::default() };
    let scene = Scene::new("deaf", limits);
    // The answer is larger than the buffers of a socket.
    let switches: Vec<_> = (0..400).map(|dpid| scene.metrics.switch(dpid, 4)).collect();
    let tenants: Vec<_> = switches
        .iter()
        .flat_map(|switch| (0..100).map(|id| switch.tenant(id, &format!("tenant{id}"))))
        .collect();
    let mut deaf = scene.connect();
    deaf.write_all(b"GET /metrics?detail=product HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut status = [0; 12];
    deaf.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    // Only one client at a time gets `detail=product`.
    let product = || scene.request("GET", "/metrics?detail=product").0;
    assert_eq!(product(), 503);
    assert_eq!(scene.metrics.process.api.refused(ApiRefusal::Answers).get(), 1);
    assert_eq!(scene.request("GET", "/metrics").0, 200, "sums are for all");
    wait("the end", || scene.metrics.process.api.refused(ApiRefusal::Slow).get() > 0);
    assert_eq!(scene.request("GET", "/healthz").0, 200);
    drop((deaf, tenants));
    wait("the next", || product() == 200);
}

#[test]
fn a_changed_file_and_sighup_reload_and_sigterm_terminates() {
    let _turn = turn();
    let scene = Scene::new("signals", http::Limits::default());
    let file = scene.folder.join("weir.toml");
    fs::write(&file, format!("{CONFIG}[[tenants]]\nname = \"blue\"\n")).unwrap();
    assert_eq!(
        scene.applied.recv_timeout(LONG).unwrap(),
        ["red", "blue"],
        "the new file is found without SIGHUP"
    );
    wait("the new tenant", || scene.json("/api/v1/tenants/blue").0 == 200);

    fs::write(&file, "[[tenants]]\nname = \"green\"\n").unwrap();
    signal("-HUP");
    assert_eq!(scene.applied.recv_timeout(LONG).unwrap(), ["green"]);

    fs::write(&file, "tenants = 1\n").unwrap();
    signal("-HUP");
    wait("the refusal", || scene.metrics.process.reloads_refused.get() > 0);
    assert_eq!(scene.json("/api/v1/tenants/green").0, 200, "the old one stays");

    signal("-TERM");
    assert_eq!(scene.terminated.recv_timeout(LONG).unwrap(), "SIGTERM");
}

/// The daemon has a store and a control thread, as in `weir serve`. A configuration with missing certificates is
/// refused as a whole.
#[test]
fn a_complete_daemon_reports_health_reloads_and_stops() {
    let _turn = turn();
    let folder = std::env::temp_dir().join(format!("weir-control-whole-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("weir.toml");
    let listen = "[listen]\nopenflow = \"127.0.0.1:0\"\n";
    fs::write(&path, format!("{listen}[[tenants]]\nname = \"red\"\n")).unwrap();
    let config = config::load(&path).unwrap();
    let options =
        ServeOptions { state: Some(folder.join("state")), threads: 2, ..Default::default() };
    let daemon = Arc::new(Daemon::start(&config, &options).unwrap());
    let current = Current::new(config);
    let sources = Sources {
        documents: Store::memory().unwrap().documents(),
        pins: Pins::load(Store::memory().unwrap().documents()).unwrap(),
        metrics: daemon.metrics(),
        current: current.clone(),
        pulse: Arc::new(daemon.pulse()),
        reader: daemon.reader(),
        topology: daemon.topology(),
        labels: daemon.labels(),
        networks: daemon.networks(),
    };
    let target = Arc::clone(&daemon);
    let sink = move |config: &Config| target.apply(config).map_err(|error| error.to_string());
    let reloader = Reloader::new(&path, current, Box::new(sink), daemon.metrics());
    let api = Api::by_tcp(SocketAddr::from(([127, 0, 0, 1], 0)));
    let limits = http::Limits::default();
    let control = Control::start(Setup {
        api,
        limits,
        state: None,
        sources,
        reloader,
        terminate: Box::new(|_| {}),
    })
    .unwrap();
    let get = |path: &str| request(control.api().unwrap(), "GET", path);

    let (status, health) = get("/healthz");
    assert_eq!((status, health.contains("\"switches\":0")), (200, true), "{health}");
    fs::write(&path, format!("{listen}[[tenants]]\nname = \"blue\"\n")).unwrap();
    signal("-HUP");
    wait("the new tenant", || get("/api/v1/tenants/blue").0 == 200);
    fs::write(
        &path,
        format!(
            "{listen}[tls]\nprivate_key = \"none\"\ncertificate = \"none\"\nswitch_ca = \"none\"\n"
        ),
    )
    .unwrap();
    signal("-HUP");
    wait("the refusal", || daemon.metrics().process.reloads_refused.get() > 0);
    assert_eq!(
        get("/api/v1/tenants/blue").0,
        200,
        "certificates that are not there refuse the whole"
    );
    drop(control);
    Arc::into_inner(daemon).expect("the control thread has let go of it").stop();
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_rest_address_in_use_is_an_error_at_start() {
    let _turn = turn();
    let scene = Scene::new("in-use", http::Limits::default());
    let current = Current::new(Config::parse("x", "").unwrap());
    let metrics = Registry::new();
    let sources = Sources {
        documents: Store::memory().unwrap().documents(),
        pins: Pins::load(Store::memory().unwrap().documents()).unwrap(),
        metrics: metrics.clone(),
        current: current.clone(),
        pulse: Arc::new(|_| None),
        reader: Default::default(),
        topology: Watch::default(),
        labels: LabelFeed::default(),
        networks: networks(&current),
    };
    let sink = |_: &Config| Ok(());
    let reloader = Reloader::new(&scene.folder.join("weir.toml"), current, Box::new(sink), metrics);
    let setup = Setup {
        state: None,
        api: Api::by_tcp(scene.control.api().unwrap()),
        limits: http::Limits::default(),
        sources,
        reloader,
        terminate: Box::new(|_| {}),
    };
    let error = Control::start(setup).err().unwrap().to_string();
    assert!(error.contains(&scene.control.api().unwrap().to_string()), "{error}");
}

#[test]
fn a_stop_lets_the_current_request_finish() {
    let _turn = turn();
    let scene = Scene::new("stop", http::Limits::default());
    let mut stream = scene.connect();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let api = scene.control.api().unwrap();
    drop(scene);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"}"), "{}", String::from_utf8_lossy(&rest));
    assert!(TcpStream::connect(api).is_err(), "nobody listens any more");
}
