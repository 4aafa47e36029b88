//! Tests of the OpenAPI document: each path, each status and each body is compared with real requests and answers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use channel::PeerCertificate;
use serde_json::{Value, json};

#[path = "support/rest.rs"]
mod rest;
#[path = "support/schema.rs"]
mod schema;

use rest::{Scene, TENANTS};

const RED: &str = "/api/v1/networks/red";
const CHANGES: &str = "/api/v1/networks/red/changes";

/// Requests with their bodies, the expected status, and whether the document's schema accepts the body.
const ASKED: &[(&str, &str, &str, u16, bool)] = &[
    ("GET", "/healthz", "", 200, true),
    ("GET", "/metrics", "", 200, true),
    ("GET", "/metrics?detail=product", "", 200, true),
    ("GET", "/metrics?detail=everything", "", 400, true),
    ("GET", "/api/v1/tenants", "", 200, true),
    ("GET", "/api/v1/tenants/red", "", 200, true),
    ("GET", "/api/v1/tenants/blue", "", 200, true),
    ("GET", "/api/v1/tenants/nobody", "", 404, true),
    ("GET", "/api/v1/tenants/%ff", "", 400, true),
    ("GET", "/api/v1/switches", "", 200, true),
    ("GET", "/api/v1/controllers", "", 200, true),
    ("GET", "/api/v1/refusals", "", 200, true),
    ("GET", "/api/v1/limits", "", 200, true),
    ("GET", "/api/v1/tenants/blue/switches/c/trace/in_port=7", "", 404, true),
    ("GET", "/api/v1/tenants/blue/switches/c/trace/tcp", "", 400, true),
    ("GET", "/api/v1/tenants/blue/switches/c/trace/%ff", "", 400, true),
    ("GET", "/api/v1/tenants/nobody/switches/c/trace/in_port=1", "", 404, true),
    ("GET", "/api/v1/switches/c/trace/in_port=7", "", 404, true),
    ("GET", "/api/v1/switches/d/trace/in_port=7", "", 404, true),
    ("GET", "/api/v1/switches/c/trace/in_port=1,nonsense=5", "", 400, true),
    ("GET", "/api/v1/tenants/blue/why", "", 200, true),
    ("GET", "/api/v1/tenants/nobody/why", "", 404, true),
    ("GET", "/api/v1/tenants/%ff/why", "", 400, true),
    ("GET", "/api/v1/limits?tenant=red", "", 200, true),
    ("GET", "/api/v1/limits?side=red", "", 400, true),
    ("GET", "/api/v1/tenants/blue/switches/c/flows", "", 200, true),
    ("GET", "/api/v1/tenants/blue/switches/0xc/flows?side=switch", "", 200, true),
    ("GET", "/api/v1/tenants/blue/switches/a/flows?side=both", "", 400, true),
    ("GET", "/api/v1/tenants/blue/switches/here/flows", "", 400, true),
    ("GET", "/api/v1/tenants/blue/switches/%ff/flows", "", 400, true),
    ("GET", "/api/v1/tenants/nobody/switches/a/flows", "", 404, true),
    ("GET", "/api/v1/tenants/blue/switches/b/flows", "", 404, true),
    ("GET", "/api/v1/topology", "", 200, true),
    ("GET", "/api/v1/labels", "", 200, true),
    ("GET", "/api/v1/tenants/blue/labels", "", 200, true),
    ("GET", "/api/v1/tenants/red/labels", "", 404, true),
    ("GET", "/api/v1/tenants/%ff/labels", "", 400, true),
    ("GET", "/api/v1/tenants/red/labels/events", "", 404, true),
    ("GET", "/api/v1/tenants/%ff/labels/events", "", 400, true),
    ("GET", "/api/v1/session", "", 200, true),
    (
        "POST",
        "/api/v1/tokens",
        r#"{"role": "tenant", "tenant": "red", "name": "alice", "expires_in_s": 60}"#,
        200,
        true,
    ),
    ("POST", "/api/v1/tokens", r#"{"role": "metrics", "expires_in_s": null}"#, 200, true),
    ("POST", "/api/v1/tokens", r#"{"role": "king"}"#, 400, false),
    ("POST", "/api/v1/tokens", r#"{"role": "tenant"}"#, 400, true),
    ("POST", "/api/v1/tokens", r#"{"role": "admin", "expires_in_s": 0}"#, 400, true),
    ("POST", "/api/v1/tokens", r#"{"role": "tenant", "tenant": "nobody"}"#, 409, true),
    ("GET", "/api/v1/tokens", "", 200, true),
    ("DELETE", "/api/v1/tokens/1", "", 200, true),
    ("DELETE", "/api/v1/tokens/1", "", 404, true),
    ("DELETE", "/api/v1/tokens/one", "", 400, true),
    ("GET", "/api/v1/pins", "", 200, true),
    ("DELETE", "/api/v1/pins/1", "", 200, true),
    ("DELETE", "/api/v1/pins/1", "", 404, true),
    ("DELETE", "/api/v1/pins/one", "", 400, true),
    ("GET", "/api/v1/openapi.json", "", 200, true),
    ("GET", "/api/v1/summary", "", 200, true),
    ("GET", "/api/v1/log", "", 200, true),
    ("GET", "/api/v1/log?after=3", "", 200, true),
    ("GET", "/api/v1/log?after=yesterday", "", 400, true),
    ("POST", "/api/v1/backup", "", 200, true),
    ("GET", "/api/v1/networks", "", 200, true),
    ("GET", RED, "", 200, true),
    ("GET", "/api/v1/networks/%ff", "", 400, true),
    ("GET", "/api/v1/networks/blue", "", 404, true),
    (
        "PUT",
        "/api/v1/networks/green",
        r#"{"switches": [{"dpid": "0xa1", "on": ["1", "2"], "routes": [["1", "2"]]}],
        "ports": [{"switch": "0xa1", "number": "LOCAL", "at": "1 port 5"}, {"switch": "0xa1", "number": 65280, "at": "1 port 6", "shared": true}],
        "hosts": [{"mac": "02:00:00:00:00:01", "address": ["10.0.0.7"], "at": "0xa1 port 65280"}]}"#,
        200,
        true,
    ),
    ("GET", "/api/v1/networks/green", "", 200, true),
    ("PUT", RED, "[]", 400, false),
    ("PUT", RED, r#"{"switches": [["0xa1", "", ["1"]]]}"#, 400, false),
    ("PUT", RED, r#"{"links": [{"between": ["0xa1 port 2"]}]}"#, 400, false),
    (
        "PUT",
        RED,
        r#"{"links": [{"between": ["0xa1 port 2", "0xa2 port 2"], "route": "longest"}]}"#,
        400,
        false,
    ),
    (
        "PUT",
        RED,
        r#"{"switches": [{"dpid": "0xa1", "on": ["1"]}], "ports": [{"switch": "0xa1", "number": 65281, "at": "1 port 1"}]}"#,
        409,
        false,
    ),
    (
        "PUT",
        RED,
        r#"{"switches": [{"dpid": "0xa1", "on": ["1"]}], "ports": [{"switch": "0xa1", "number": 0, "at": "1 port 1"}]}"#,
        409,
        false,
    ),
    ("PUT", RED, r#"{"switches": [{"dpid": "0xa1", "on": []}]}"#, 409, true),
    ("PUT", "/api/v1/networks/%ff", "{}", 400, true),
    ("PUT", "/api/v1/networks/nobody", "{}", 404, true),
    ("PUT", "/api/v1/networks/blue", "{}", 409, true),
    ("DELETE", "/api/v1/networks/green?dry_run=perhaps", "", 400, true),
    ("DELETE", "/api/v1/networks/nobody", "", 404, true),
    ("DELETE", "/api/v1/networks/blue", "", 409, true),
    ("DELETE", "/api/v1/networks/green?dry_run=true", "", 200, true),
    (
        "POST",
        CHANGES,
        r#"[{"put-switch": {"dpid": "0xa1", "on": ["1"], "name": "near"}}, {"stop": "network"}, {"set-addresses": null},
        {"put-host": {"mac": "02:00:00:00:00:02", "at": "0xa1 port 1"}}, {"stop": {"link": ["0xa1 port 2", "0xa2 port 2"]}},
        {"change-switch": {"dpid": "0xa1", "name": "here"}}, {"change-link": {"between": ["0xa1 port 2", "0xa2 port 2"], "backup": "none"}}]"#,
        200,
        true,
    ),
    ("POST", CHANGES, r#"[{"stop": {"link": ["0xa1 port 2"]}}]"#, 400, false),
    ("POST", CHANGES, r#"[{"change-host": ["02:00:00:00:00:02"]}]"#, 400, false),
    ("POST", CHANGES, r#"[{"put-host": []}]"#, 400, false),
    ("POST", CHANGES, r#"{"put-host": {}}"#, 400, false),
    ("POST", CHANGES, r#"[{"stop": {"port": "0xa1 port 9"}}]"#, 404, true),
    ("POST", CHANGES, r#"[{"remove": {"switch": "0xa2"}}]"#, 409, true),
];

#[test]
fn requests_and_answers_match_the_schemas_of_the_openapi_document() {
    let tenants = TENANTS.replace(
        "name = \"blue\"\n",
        "name = \"blue\"\nlabels = \"rest\"\nlimits = { packet_out = 50 }\n\
        statistics = { cached = \"1s\" }\n",
    );
    let topology = "[[topology.links]]\nbetween = [\"1 port 8\", \"2 port 8\"]\n";
    let mut scene = Scene::new("schemas");
    scene.restart(&format!("{tenants}{topology}"));
    let switch = scene.daemon.as_ref().unwrap().metrics().switch(10, 4);
    switch.tenant(2, "blue").added_southbound.observe(30_000);
    let _session = connect_switch(&scene, 0xc);
    let document = scene.ask("GET", "/api/v1/openapi.json", None).1;
    let mut occurred = BTreeSet::new();

    let pins = scene.daemon.as_ref().unwrap().pins();
    pins.pin(1, &PeerCertificate::new(b"any")).unwrap();
    for &(method, path, body, status, fits) in ASKED {
        let answer = scene.send(method, path, "application/json", body);
        let what = format!("{method} {path} {body}: {} {}", answer.status, answer.text);
        assert_eq!(answer.status, status, "{what}");
        occurred.insert(holds(&document, method, path, &answer, &what));
        let schema = &operation(&document, method, path).1["requestBody"]["content"]["application/json"]
            ["schema"];
        if !body.is_empty() {
            let body = serde_json::from_str(body).unwrap();
            let taken = schema::check(&document, schema, &body);
            assert_eq!(taken.is_ok(), fits, "{what}: {taken:?}");
        }
    }
    let large = format!("{}{{}}", " ".repeat(16 << 20));
    for (method, path) in [("PUT", RED), ("POST", CHANGES), ("POST", "/api/v1/tokens")] {
        for (kind, body, status) in
            [("application/jsonx", "{}", 415), ("application/json", large.as_str(), 413)]
        {
            let answer = scene.send(method, path, kind, body);
            assert_eq!(answer.status, status, "{method} {path}: {}", answer.text);
            occurred.insert(holds(&document, method, path, &answer, "large, or of another kind"));
        }
    }
    // Requests with a foreign host name and requests from a page of another site are refused.
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path
            .replace("{name}", "blue")
            .replace("{tenant}", "red")
            .replace("{switch}", "a")
            .replace("{id}", "1")
            .replace("{flow}", "in_port=1");
        for method in methods.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let api = scene.api();
            for headers in [
                "Host: weir.example".to_owned(),
                format!("Host: {api}\r\nOrigin: http://weir.example"),
            ] {
                let head = format!("{method} {path} HTTP/1.1\r\n{headers}\r\nConnection: close");
                let request = format!("{head}\r\nContent-Length: 0\r\n\r\n");
                let answer = rest::exchange(api, &request);
                assert_eq!(answer.status, 403, "{method} {path} {headers}");
                occurred.insert(holds(&document, &method, &path, &answer, "from elsewhere"));
            }
            // Requests with an invalid token are sent until the rate is exceeded, and then until the rate allows a
            // request again.
            let wrong = || scene.ask_as("weir_00", &method, &path, "");
            let mut answer = wrong();
            assert!([401, 429].contains(&answer.status), "{method} {path}");
            occurred.insert(holds(&document, &method, &path, &answer, "a stranger"));
            while answer.status != 429 {
                answer = wrong();
            }
            occurred.insert(holds(&document, &method, &path, &answer, "too often"));
            while answer.status != 401 {
                answer = wrong();
            }
            occurred.insert(holds(&document, &method, &path, &answer, "a stranger"));
        }
    }

    // Every answer of the document has occurred, except answers of an unhealthy Weir, and event streams, which do not
    // end.
    let said = document["paths"].as_object().unwrap().iter().flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().flat_map(move |(method, operation)| {
            let statuses = operation["responses"].as_object().unwrap().keys();
            statuses.map(move |status| format!("{method} {path} {status}"))
        })
    });
    let missing: Vec<String> = said.filter(|it| !occurred.contains(it)).collect();
    let expected = |it: &String| {
        it.ends_with(" 500") || it.ends_with(" 503") || it.ends_with("events 200")
            // No switch of this test has ports.
            || it.ends_with("trace/{flow} 200")
    };
    assert!(missing.iter().all(expected), "{missing:?}");
}

/// Connects a switch of OpenFlow 1.3 that completes the handshake, and sends nothing more.
fn connect_switch(scene: &Scene, dpid: u64) -> TcpStream {
    let daemon = scene.daemon.as_ref().unwrap();
    let address = daemon.addresses()[0].to_string();
    let mut stream = TcpStream::connect(address.strip_prefix("tcp:").unwrap()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut header = [0; 8];
    // Weir sends HELLO, then FEATURES_REQUEST.
    loop {
        stream.read_exact(&mut header).unwrap();
        let rest = usize::from(u16::from_be_bytes([header[2], header[3]])) - header.len();
        stream.read_exact(&mut vec![0; rest]).unwrap();
        if header[1] == 5 {
            break;
        }
    }
    let mut reply = vec![4, 6, 0, 32];
    reply.extend_from_slice(&header[4..]);
    reply.extend_from_slice(&dpid.to_be_bytes());
    reply.extend_from_slice(&[0, 0, 0, 0, 254, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    stream.write_all(&reply).unwrap();
    while daemon.pulse()(Duration::from_secs(20)) != Some(1) {
        std::thread::yield_now();
    }
    stream
}

#[test]
fn the_openapi_document_has_exactly_the_paths_of_the_routes() {
    let scene = Scene::new("openapi");
    let (status, document) = scene.ask("GET", "/api/v1/openapi.json", None);
    assert_eq!(status, 200);
    let said: BTreeSet<&str> =
        document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
    let sources = [
        include_str!("../src/api/mod.rs"),
        include_str!("../src/api/networks.rs"),
        include_str!("../src/api/flows.rs"),
        include_str!("../src/api/limits.rs"),
        include_str!("../src/api/troubles.rs"),
        include_str!("../src/api/session.rs"),
        include_str!("../src/api/live.rs"),
        include_str!("../src/api/tokens.rs"),
        include_str!("../src/api/pins.rs"),
        include_str!("../src/api/why.rs"),
        include_str!("../src/api/trace.rs"),
    ];
    let routes = sources.iter().flat_map(|source| source.split(".route(\"").skip(1));
    let routes: BTreeSet<&str> = routes.map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(said, routes);
    let change = &document["paths"]["/api/v1/networks/{tenant}/changes"]["post"];
    let items = &change["requestBody"]["content"]["application/json"]["schema"]["items"]["$ref"];
    assert_eq!(items, "#/components/schemas/Operation");
    let operation = document["components"]["schemas"]["Operation"].to_string();
    assert!(operation.contains("put-link"), "{operation}");
}

#[test]
fn examples_in_the_openapi_document_match_the_schemas() {
    let scene = Scene::new("examples");
    let document = scene.ask("GET", "/api/v1/openapi.json", None).1;
    let mut checked = 0;
    let mut check = |schema: &Value, example: &Value, what: &str| {
        checked += 1;
        let fits = schema::check(&document, schema, example);
        fits.unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    };
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for example in schema["examples"].as_array().into_iter().flatten() {
            check(schema, example, name);
        }
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let what = format!("{method} {path}");
            let body = &operation["requestBody"]["content"]["application/json"];
            let answer = &operation["responses"]["200"]["content"]["application/json"];
            for content in [body, answer] {
                if let Some(example) = content.get("example") {
                    check(&content["schema"], example, &what);
                }
            }
            // Each request body in the document must have an example.
            let named = body["schema"]["$ref"].as_str().unwrap_or("#/").trim_start_matches('#');
            let in_schema = document.pointer(named).is_some_and(|it| it.get("examples").is_some());
            assert!(body.is_null() || body.get("example").is_some() || in_schema, "{what}");
        }
    }
    assert!(checked >= 12, "{checked}");
}

/// The path in the document, and the operation of the method.
fn operation<'a>(document: &'a Value, method: &str, asked: &str) -> (&'a str, &'a Value) {
    let bare = asked.split('?').next().unwrap();
    let paths = document["paths"].as_object().unwrap();
    let fits = |template: &str| {
        let (parts, asked) = (template.split('/'), bare.split('/'));
        parts.clone().count() == asked.clone().count()
            && parts.zip(asked).all(|(part, asked)| part == asked || part.starts_with('{'))
    };
    let exact = paths.get_key_value(bare);
    let (path, methods) = exact.or_else(|| paths.iter().find(|(path, _)| fits(path))).unwrap();
    (path, &methods[method.to_lowercase()])
}

/// Compares an answer with the document, and returns the matching answer of the document.
fn holds(document: &Value, method: &str, path: &str, answer: &rest::Answer, what: &str) -> String {
    let (path, operation) = operation(document, method, path);
    let response = &operation["responses"][answer.status.to_string()];
    let content = response["content"].as_object().unwrap_or_else(|| panic!("{what} is not said"));
    let kind = answer.kind.split(';').next().unwrap();
    let said = content.get(kind).unwrap_or_else(|| panic!("{what}: {kind} is not said"));
    let body = match kind {
        "application/json" => serde_json::from_str(&answer.text).unwrap(),
        _ => json!(answer.text),
    };
    schema::check(document, &said["schema"], &body)
        .unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    format!("{} {path} {}", method.to_lowercase(), answer.status)
}
