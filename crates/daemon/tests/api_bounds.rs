//! Tests of the limits for REST clients: some clients use as much as possible, and other clients still get answers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

#[path = "support/rest.rs"]
mod rest;

use daemon::metrics::ApiRefusal;
use rest::Scene;
use serde_json::json;

/// Sends the head of a request, and the beginning of a body if `body` is not empty. The connection stays open.
fn begin(scene: &Scene, head: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(scene.api()).unwrap();
    write!(stream, "{head}\r\nHost: localhost\r\n\r\n").unwrap();
    stream.write_all(body).unwrap();
    stream
}

fn wait(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::yield_now();
    }
}

fn status(stream: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    stream.read_exact(&mut line).unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

fn refused(scene: &Scene, why: ApiRefusal) -> u64 {
    scene.daemon.as_ref().unwrap().metrics().process.api.refused(why).get()
}

#[test]
fn event_listeners_are_bounded_and_other_requests_are_answered() {
    let mut scene = Scene::new("listeners");
    let names: Vec<String> = (0..10).map(|number| format!("tenant{number}")).collect();
    let tenants = names.iter().map(|name| {
        format!(
            "[[tenants]]\nname = \"{name}\"\nlabels = \"rest\"\n[[tenants.flowspace]]\nmatch = \"\"\n"
        )
    });
    scene.restart(&tenants.collect::<String>());
    let listen = |name: &str| {
        let mut stream =
            begin(&scene, &format!("GET /api/v1/tenants/{name}/labels/events HTTP/1.1"), b"");
        (status(&mut stream), stream)
    };
    let mut streams = Vec::new();
    for name in &names {
        let mut answers = Vec::new();
        for _ in 0..10 {
            let (status, stream) = listen(name);
            answers.push(status);
            streams.push(stream);
        }
        let all = if name < &names[8] { 8 } else { 0 };
        assert_eq!(answers.iter().filter(|status| **status == 200).count(), all, "{name}");
        assert_eq!(answers.iter().filter(|status| **status == 503).count(), 10 - all, "{name}");
    }
    assert_eq!(refused(&scene, ApiRefusal::Listeners), 36);
    assert_eq!(scene.ask("GET", "/healthz", None).0, 200);
    drop(streams);
    // A new listener is accepted after the server has noticed that streams have ended.
    wait("a free place", || listen(&names[9]).0 == 200);
}

#[test]
fn of_10000_event_viewers_64_are_served_and_the_rest_get_503() {
    let scene = Scene::new("viewers");
    let mut viewers = Vec::new();
    let mut refused_viewers = 0;
    for _ in 0..10_000 {
        let mut stream = begin(&scene, "GET /api/v1/events HTTP/1.1", b"");
        match status(&mut stream) {
            200 => viewers.push(stream),
            503 => refused_viewers += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((viewers.len(), refused_viewers), (64, 10_000 - 64));
    assert_eq!(refused(&scene, ApiRefusal::Listeners), 10_000 - 64);
    assert_eq!(scene.ask("GET", "/healthz", None).0, 200);
}

#[test]
fn unfinished_request_bodies_use_bounded_memory_and_small_changes_succeed() {
    const MIB: usize = 1 << 20;
    let scene = Scene::new("bodies");
    let part = vec![b' '; 8 * MIB];
    let head = "PUT /api/v1/networks/green HTTP/1.1\r\nContent-Type: application/json\r\n\
                Content-Length: 16000000";
    let unfinished: Vec<_> = (0..60).map(|_| begin(&scene, head, &part)).collect();
    // 60 clients send 8 MiB each, and finish no body. Weir keeps at most 32 MiB, so at least 56 bodies are refused and
    // counted.
    wait("a count of the bodies without room", || refused(&scene, ApiRefusal::Bodies) >= 56);
    let counted = refused(&scene, ApiRefusal::Bodies);
    let large = format!("{}{{}}", " ".repeat(MIB));
    let put = |body: &str| {
        let path = "/api/v1/networks/green?dry_run=true";
        scene.send("PUT", path, "application/json", body).status
    };
    assert_eq!(put(&large), 503);
    assert_eq!(refused(&scene, ApiRefusal::Bodies), counted + 1, "each refused body counts once");
    assert_eq!(put("{\"switches\": []}"), 200, "a small change");
    assert_eq!(scene.ask("GET", "/healthz", None).0, 200);
    drop(unfinished);
    wait("room for a body", || put(&large) == 200);
}

#[test]
fn changes_are_accepted_by_the_socket_and_refused_by_read_only_tcp() {
    let mut scene = Scene::new("socket");
    scene.restart_for_reading();
    let change = "[{\"stop\": \"network\"}]";
    let path = "/api/v1/networks/red/changes";
    let answer = scene.send("POST", path, "application/json", change);
    assert_eq!(answer.status, 403, "{}", answer.text);
    assert!(answer.text.contains("unix:PATH"), "{}", answer.text);
    assert_eq!(refused(&scene, ApiRefusal::ReadOnly), 1);
    assert_eq!(scene.ask("GET", "/api/v1/networks/red", None).0, 200);

    let (_, session) = scene.ask("GET", "/api/v1/session", None);
    assert_eq!(session, json!({"role": "operator", "tenant": null, "may_change": false}));

    let socket = scene.folder.join("api.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let mut stream = UnixStream::connect(&socket).unwrap();
    let length = change.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{change}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");

    let mut stream = UnixStream::connect(&socket).unwrap();
    write!(stream, "GET /api/v1/session HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let admin = r#"{"role":"admin","tenant":null,"may_change":true}"#;
    assert!(text.ends_with(admin), "{text}");

    // The socket of a killed process does not prevent the next start.
    scene.stop();
    assert!(!socket.exists(), "an orderly end removes it");
    drop(UnixListener::bind(&socket).unwrap());
    scene.begin();
    assert!(UnixStream::connect(&socket).is_ok());
}
