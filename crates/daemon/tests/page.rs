//! Tests of the files of the web page as a client gets them: complete, small, and restricted by the content security
//! policy.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

#[path = "support/rest.rs"]
mod rest;

use rest::Scene;

/// The largest size of all files of the page together, without data. The first view may have at most 300 kB.
const FILES: usize = 220_000;

#[test]
fn page_files_are_compressed_have_security_headers_and_an_etag() {
    let scene = Scene::new("page");
    let mut sum = 0;
    for (path, kind) in files() {
        let (head, body) = get(scene.api(), &path, "");
        let has = |line: &str| head.lines().any(|is| is == line);
        assert!(head.starts_with("HTTP/1.1 200 "), "{path}: {head}");
        assert!(has(&format!("content-type: {kind}")) && has("content-encoding: gzip"), "{head}");
        assert!(has("x-content-type-options: nosniff") && has("referrer-policy: no-referrer"));
        let policy = head.lines().find_map(|it| it.strip_prefix("content-security-policy: "));
        let policy = policy.unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        sum += head.len() + body.len();
        let tag = head.lines().find_map(|it| it.strip_prefix("etag: ")).unwrap();
        let (again, body) = get(scene.api(), &path, &format!("If-None-Match: {tag}\r\n"));
        assert!(again.starts_with("HTTP/1.1 304 ") && body.is_empty(), "{path}: {again}");
    }
    assert!(sum < FILES, "the page has {sum} bytes");
    let (head, _) = get(scene.api(), "/page/other.js", "");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

/// A browser would refuse inline scripts, handlers, styles and external resources. Functions such as `innerHTML` could
/// make markup from names.
#[test]
fn page_files_have_no_inline_code_and_no_external_resources() {
    for (name, text) in own() {
        for forbidden in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
            "https://",
            "//cdn",
            "<style",
            " style=",
            " onclick=",
            "javascript:",
            "@import",
        ] {
            assert!(!text.contains(forbidden), "{name}: {forbidden}");
        }
        let foreign = text.matches("http://").count() - text.matches("http://www.w3.org/").count();
        assert_eq!(foreign, 0, "{name}");
    }
}

#[test]
fn requests_of_the_page_scripts_are_in_the_openapi_document() {
    let scene = Scene::new("page-document");
    let document = scene.ask("GET", "/api/v1/openapi.json", None).1;
    let said: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(|path| {
            path.split('/')
                .map(|it| if it.starts_with('{') { "{}" } else { it })
                .collect::<Vec<_>>()
                .join("/")
        })
        .collect();
    let mut asked = BTreeSet::new();
    for (_, text) in own().into_iter().filter(|(name, _)| name.ends_with(".js")) {
        for rest in text.split("/api/").skip(1) {
            let path = rest.split(['"', '`', '?', ' ']).next().unwrap();
            let parts = path.split('/').map(|it| if it.contains("${") { "{}" } else { it });
            asked.insert(format!("/api/{}", parts.collect::<Vec<_>>().join("/")));
        }
    }
    assert!(asked.len() >= 7, "{asked:?}");
    let missing: Vec<_> = asked.difference(&said).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn event_viewers_get_summaries_repeatedly_and_are_limited_to_64() {
    let scene = Scene::new("events");
    let mut viewers: Vec<_> = (0..50).map(|_| events(scene.api())).collect();
    for viewer in &mut viewers {
        let first = summary(viewer);
        let names = first["tenants"].as_array().unwrap().iter().map(|it| it["name"].clone());
        assert_eq!(names.collect::<Vec<_>>(), ["green", "blue", "red"]);
        assert_eq!(first["tenants"][2]["has_network"], true);
    }
    let first = summary(&mut viewers[0]);
    let second = summary(&mut viewers[0]);
    assert!(second["time_ms"].as_u64() > first["time_ms"].as_u64());
    assert_eq!(second["started_ms"], first["started_ms"]);
    // At most 64 viewers may connect. After the viewers have disconnected, another viewer may connect.
    while viewers.len() < 64 {
        viewers.push(events(scene.api()));
    }
    let refused = get(scene.api(), "/api/v1/events", "").0;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    viewers.clear();
    let mut again = false;
    for _ in 0..100 {
        again = try_events(scene.api()).is_some();
        if again {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(again, "no place is free");
}

type Stream = BufReader<TcpStream>;

fn events(api: SocketAddr) -> Stream {
    try_events(api).unwrap_or_else(|| panic!("no stream of events"))
}

fn try_events(api: SocketAddr) -> Option<Stream> {
    let mut stream = TcpStream::connect(api).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET /api/v1/events HTTP/1.1\r\nHost: {api}\r\n\r\n").unwrap();
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.starts_with("HTTP/1.1 200 ").then_some(stream)
}

/// The next summary.
fn summary(stream: &mut Stream) -> Value {
    let mut line = String::new();
    while line != "event: summary\n" {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "the stream has ended");
    }
    line.clear();
    stream.read_line(&mut line).unwrap();
    serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap()
}

/// Head and body of an answer.
fn get(api: SocketAddr, path: &str, more: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(api).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {api}\r\nConnection: close\r\n{more}\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").unwrap();
    let body = answer.split_off(end + 4);
    (String::from_utf8(answer).unwrap(), body)
}

/// Paths of all files that `index.html` and the scripts name, and their kinds.
fn files() -> BTreeSet<(String, &'static str)> {
    let mut files = BTreeSet::from([("/".to_owned(), "text/html; charset=utf-8")]);
    for (_, text) in own() {
        let named = text.split(['"', '\'']).filter_map(|it| {
            it.strip_prefix("./")
                .map(|it| format!("/page/{it}"))
                .or_else(|| it.starts_with("/page/").then(|| it.to_owned()))
        });
        for path in named {
            let kind = match path.rsplit('.').next().unwrap() {
                "js" => "text/javascript; charset=utf-8",
                "css" => "text/css; charset=utf-8",
                "svg" => "image/svg+xml",
                other => panic!("{other}"),
            };
            files.insert((path, kind));
        }
    }
    assert!(files.len() > 12, "{files:?}");
    files
}

/// The names and texts of the files in the folder `page`, without its subfolders.
fn own() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    files
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}
