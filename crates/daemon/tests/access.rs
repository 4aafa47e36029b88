//! Tests of accounts at the REST interface: the rights of roles, the data that a tenant sees, the limits of requests,
//! and the audit log of changes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "who skips a test says so")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "support/rest.rs"]
mod rest;

use channel::ServiceTrust;
use daemon::api::http;
use daemon::metrics::ApiRefusal;
use rest::Scene;

/// Names that do not occur in answers by chance.
const TENANTS: &str = "[[tenants]]\nname = \"quokka\"\nlabels = \"rest\"\n[tenants.network]\n\
    [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
    [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 1\"\n\
    [[tenants]]\nname = \"walrus\"\nlabels = \"rest\"\ncontrollers = [\"127.0.0.1:9\"]\n\
    [[tenants.flowspace]]\nmatch = \"ip\"\n\
    [[tenants]]\nname = \"zebra\"\n[tenants.network]\n\
    [[tenants.network.switches]]\ndpid = \"0xb1\"\non = \"1\"\n\
    [[tenants.network.ports]]\nswitch = \"0xb1\"\nnumber = 1\nat = \"1 port 7\"\n\
    [[switches]]\ndpid = \"1\"\nname = \"gate\"\n";
const OTHERS: [&str; 3] = ["walrus", "zebra", "gate"];

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("weir-access-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Creates a token through the Unix socket, where the caller is an admin.
fn token(scene: &Scene, role: &str, tenant: Option<&str>) -> String {
    let wish = json!({"role": role, "tenant": tenant, "name": role});
    let (status, made) = scene.ask_socket("POST", "/api/v1/tokens", wish);
    assert_eq!(status, 200, "{made}");
    made["token"].as_str().unwrap().to_owned()
}

/// The method and the path of all operations in the OpenAPI document, with this tenant in the paths.
fn operations(scene: &Scene, tenant: &str) -> Vec<(String, String)> {
    let document = scene.ask_socket("GET", "/api/v1/openapi.json", json!({})).1;
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, methods)| {
        let path = path.replace("{name}", tenant).replace("{tenant}", tenant);
        let path = path.replace("{switch}", "1").replace("{id}", "9999");
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    all.collect()
}

/// Whether the answer ends. Event streams do not end.
fn ends(path: &str) -> bool {
    !path.ends_with("/events")
}

#[test]
fn a_tenant_account_sees_no_data_of_another_tenant() {
    let scene = Scene::with(folder("tenant"), TENANTS, false);
    let registry = scene.daemon.as_ref().unwrap().metrics();
    let switch = registry.switch(1, 4);
    let counting = ["quokka", "walrus", "zebra"].into_iter().zip(1..).map(|(name, number)| {
        let metrics = switch.tenant(number, name);
        metrics.publish_refused(1, 5, 1);
        metrics.flows.set(12);
        metrics
    });
    let _counting: Vec<_> = counting.collect();
    let quokka = token(&scene, "tenant", Some("quokka"));
    let ask = |method: &str, path: &str, body: &str| scene.ask_as(&quokka, method, path, body);
    let session: Value = serde_json::from_str(&ask("GET", "/api/v1/session", "").text).unwrap();
    assert_eq!(session, json!({"role": "tenant", "tenant": "quokka", "may_change": true}));

    let mut seen = BTreeMap::new();
    let operations_of = operations(&scene, "quokka").into_iter();
    // The tenant's network must not be deleted here.
    let harmless = operations_of.filter(|(method, path)| method != "DELETE" && ends(path));
    for (method, path) in &harmless.collect::<Vec<_>>() {
        let answer = ask(method, path, "");
        if path != "/api/v1/openapi.json" {
            let shown = OTHERS.iter().find(|name| answer.text.contains(**name));
            assert_eq!(shown, None, "{method} {path}: {}", answer.text);
        }
        seen.insert(format!("{method} {path}"), answer.status);
    }
    for (operation, status) in [
        ("GET /api/v1/tenants", 200),
        ("GET /api/v1/tenants/quokka", 200),
        ("GET /api/v1/tenants/quokka/labels", 200),
        ("GET /api/v1/networks/quokka", 200),
        ("GET /api/v1/refusals", 200),
        ("GET /api/v1/topology", 200),
        ("GET /healthz", 200),
        ("GET /metrics", 403),
        ("GET /api/v1/switches", 403),
        ("GET /api/v1/tokens", 403),
        ("POST /api/v1/tokens", 403),
        ("POST /api/v1/backup", 403),
    ] {
        assert_eq!(seen[operation], status, "{operation}");
    }
    let refusals: Value = serde_json::from_str(&ask("GET", "/api/v1/refusals", "").text).unwrap();
    assert_eq!(refusals["requests"].as_array().unwrap().len(), 1, "its own: {refusals}");
    let health: Value = serde_json::from_str(&ask("GET", "/healthz", "").text).unwrap();
    assert_eq!(health, json!({"status": "ok"}));

    // For every operation, a request for another tenant gets the same answer as a request for a tenant that does not
    // exist.
    let pairs = operations(&scene, "walrus").into_iter().zip(operations(&scene, "nobody"));
    let pairs: Vec<_> = pairs.filter(|((_, other), (_, nobody))| other != nobody).collect();
    assert!(pairs.len() >= 8);
    let refused = || registry.process.api.refused(ApiRefusal::Role).get();
    let (before, requests) = (refused(), pairs.len() as u64 * 6);
    for ((method, other), (_, nobody)) in pairs {
        for body in ["", "[]", "{}"] {
            let (other, nobody) = (ask(&method, &other, body), ask(&method, &nobody, body));
            assert_eq!((other.status, &other.text), (nobody.status, &nobody.text), "{method}");
            assert_eq!(other.status, 404, "{method}: {}", other.text);
        }
    }
    assert_eq!(refused() - before, requests, "each is counted as beyond the role");
    let flows = |switch: &str| {
        let answer = ask("GET", &format!("/api/v1/tenants/quokka/switches/{switch}/flows"), "");
        (answer.status, answer.text)
    };
    assert_eq!(flows("gate"), flows("nowhere"), "what switches are called");
    let physical = ask("GET", "/api/v1/tenants/quokka/switches/1/flows?side=switch", "");
    assert_eq!(physical.status, 403);
}

#[test]
fn a_tenant_account_changes_only_own_networks_within_ports_and_maxima() {
    let text =
        TENANTS.replacen("[tenants.network]", "maxima = { ports = 3, edges = [\"1 port 2\", \"1 port 3\", \"1 port 4\", \"1 port 7\"] }\n[tenants.network]", 1);
    let scene = Scene::with(folder("changes"), &text, false);
    let quokka = token(&scene, "tenant", Some("quokka"));
    let change = |body: Value| {
        let path = "/api/v1/networks/quokka/changes";
        let answer = scene.ask_as(&quokka, "POST", path, &body.to_string());
        (answer.status, serde_json::from_str::<Value>(&answer.text).unwrap())
    };
    let port = |at: &str| json!([{"change-port": {"switch": "0xa1", "number": 2, "at": at}}]);
    let (status, outcome) = change(port("1 port 2"));
    assert_eq!((status, outcome["parts"].as_array().map(Vec::len)), (200, Some(1)), "{outcome}");
    let (status, refused) = change(port("1 port 7"));
    assert_eq!(status, 409);
    let reasons = refused.to_string();
    assert!(reasons.contains("is not there, or not for this tenant"), "{reasons}");
    assert!(!reasons.contains("zebra"), "{reasons}");
    // A port without an owner is refused, too, if the tenant's `edges` do not have the port: another tenant's slice may
    // use the port.
    let (status, elsewhere) = change(port("1 port 9"));
    let as_taken = refused.to_string().replace("port 7", "port 9");
    assert_eq!((status, elsewhere.to_string()), (409, as_taken));
    // The tenant may not exceed its maxima.
    let port = |number: u32| {
        let at = format!("1 port {number}");
        json!({"change-port": {"switch": "0xa1", "number": number, "at": at}})
    };
    let (status, over) = change(json!([port(3), port(4)]));
    let expected = "quokka: ports: 4, and the tenant may have 3";
    assert_eq!((status, &over["reasons"][0]), (409, &expected.into()));
    assert_eq!(change(json!([port(3)])).0, 200);
    let own = scene.ask_as(&quokka, "GET", "/api/v1/tenants/quokka", "");
    let own: Value = serde_json::from_str(&own.text).unwrap();
    assert_eq!((&own["maxima"]["ports"], &own["maxima"]["hosts"]), (&json!(3), &Value::Null));
    let (_, refused) = scene.ask_socket(
        "PUT",
        "/api/v1/networks/quokka?dry_run=true",
        json!({"switches": [{"dpid": "0xa1", "on": ["1"]}],
            "ports": [{"switch": "0xa1", "number": 1, "at": "1 port 7"}]}),
    );
    assert!(refused.to_string().contains("zebra"), "an admin sees the owner: {refused}");
}

#[test]
fn admin_operator_and_metrics_roles_have_the_expected_rights() {
    let scene = Scene::with(folder("roles"), TENANTS, false);
    for (role, changes, tokens, networks, metrics) in [
        ("admin", 200, 200, 200, 200),
        ("operator", 403, 403, 200, 200),
        ("metrics", 403, 403, 403, 200),
    ] {
        let token = token(&scene, role, None);
        let ask = |method, path, body| scene.ask_as(&token, method, path, body).status;
        let change = ("POST", "/api/v1/networks/quokka/changes?dry_run=true", "[]");
        assert_eq!(ask(change.0, change.1, change.2), changes, "{role}");
        assert_eq!(ask("GET", "/api/v1/tokens", ""), tokens, "{role}");
        assert_eq!(ask("GET", "/api/v1/networks", ""), networks, "{role}");
        assert_eq!(ask("GET", "/metrics", ""), metrics, "{role}");
        assert_eq!(ask("GET", "/api/v1/nothing", ""), 404, "{role}");
        assert_eq!(ask("POST", "/healthz", ""), 405, "{role}");
    }
    let refused = scene.daemon.as_ref().unwrap().metrics();
    assert_eq!(refused.process.api.refused(ApiRefusal::Role).get(), 5);
    // A caller on this machine without an account is an operator.
    let (status, why) = scene.ask("GET", "/api/v1/tokens", None);
    assert!(status == 403 && why["error"].as_str().unwrap().contains("by the socket"), "{why}");
    assert_eq!(scene.ask("GET", "/api/v1/networks", None).0, 200);
}

#[test]
fn requests_without_a_valid_account_get_401_when_accounts_are_required() {
    let text = format!("{TENANTS}[api]\nloopback = \"accounts\"\n");
    let scene = Scene::with(folder("strangers"), &text, false);
    let operations: Vec<_> = operations(&scene, "quokka");
    for (method, path) in operations.iter().chain([&("GET".to_owned(), "/nothing".to_owned())]) {
        let answer = scene.send(method, path, "application/json", "");
        assert_eq!(answer.status, 401, "{method} {path}");
        assert!(answer.text.contains("weir ctl token create"), "{}", answer.text);
        assert!(answer.head.to_lowercase().contains("www-authenticate: bearer"), "{}", answer.head);
    }
    let operator = token(&scene, "operator", None);
    assert_eq!(scene.ask_as(&operator, "GET", "/api/v1/tenants", "").status, 200);
    let ids = || scene.ask_socket("GET", "/api/v1/tokens", json!({})).1["tokens"].clone();
    let id = ids()[0]["id"].clone();
    let gone = scene.ask_socket("DELETE", &format!("/api/v1/tokens/{id}"), json!({}));
    assert_eq!((gone.0, ids()), (200, json!([])), "{}", gone.1);
    let brief = json!({"role": "operator", "expires_in_s": 1});
    let brief = scene.ask_socket("POST", "/api/v1/tokens", brief).1["token"].clone();
    let deadline = Instant::now() + Duration::from_secs(20);
    while scene.ask_as(brief.as_str().unwrap(), "GET", "/healthz", "").status != 401 {
        assert!(Instant::now() < deadline, "it does not expire");
    }
    for wrong in [operator.as_str(), &operator[..20], "", "weir_", "x"] {
        assert_eq!(scene.ask_as(wrong, "GET", "/healthz", "").status, 401, "{wrong}");
    }
}

/// The requests with a wrong token from one address are limited to 100 at once and 20 per second. A request with a
/// valid token is answered meanwhile.
#[test]
fn requests_with_wrong_tokens_are_limited_per_address() {
    let scene = Scene::with(folder("wrong"), TENANTS, false);
    let right = token(&scene, "operator", None);
    let ask = |token: &str| scene.ask_as(token, "GET", "/api/v1/tenants", "");
    let wrong = format!("weir_{}", "0".repeat(right.len() - "weir_".len()));
    let began = Instant::now();
    let mut answers = 0;
    let refused = loop {
        let answer = ask(&wrong);
        if answer.status != 401 {
            break answer;
        }
        answers += 1;
        let most = 101 + 20 * (began.elapsed().as_secs() + 1);
        assert!(answers <= most, "{answers} answers, and {most} are allowed so far");
    };
    assert!(answers >= 100, "{answers}");
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(refused.head.to_lowercase().contains("retry-after: 1"), "{}", refused.head);
    assert_eq!(ask(&right).status, 200);
    let metrics = scene.daemon.as_ref().unwrap().metrics();
    let count = |why| metrics.process.api.refused(why).get();
    assert_eq!((count(ApiRefusal::Stranger), count(ApiRefusal::Rate)), (answers, 1));
}

/// Two tokens of one tenant share the limit of eight listeners. A token of another tenant has its own limit.
#[test]
fn accounts_of_a_tenant_share_a_limit_of_eight_event_listeners() {
    let scene = Scene::with(folder("listeners"), TENANTS, false);
    let tenant = |name| token(&scene, "tenant", Some(name));
    let (first, second, other) = (tenant("quokka"), tenant("quokka"), tenant("walrus"));
    let listen = |token: &str| {
        let mut stream = TcpStream::connect(scene.api()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let account = format!("Authorization: Bearer {token}\r\n");
        let host = scene.api().to_string();
        let request = rest::request(&host, "GET", "/api/v1/events", &account, "");
        stream.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        (String::from_utf8_lossy(&status[9..]).into_owned(), stream)
    };
    let listeners: Vec<_> =
        (0..9).map(|number| listen(if number % 2 == 0 { &first } else { &second })).collect();
    let statuses: Vec<&str> = listeners.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, [["200"; 8].as_slice(), &["503"]].concat());
    let metrics = scene.daemon.as_ref().unwrap().metrics();
    assert_eq!(metrics.process.api.refused(ApiRefusal::Listeners).get(), 1);
    assert_eq!(listen(&other).0, "200", "another tenant's account");
}

#[test]
fn requests_of_an_account_are_limited_per_second() {
    let text = format!("{TENANTS}[api]\nrequests = 1\n");
    let scene = Scene::with(folder("rate"), &text, false);
    let tenant = || token(&scene, "tenant", Some("quokka"));
    let (first, second, other) = (tenant(), tenant(), token(&scene, "metrics", None));
    let began = Instant::now();
    let mut answer = scene.ask_as(&first, "GET", "/api/v1/session", "");
    assert_eq!(answer.status, 200);
    let mut answered = 0;
    while answer.status == 200 {
        answered += 1;
        // The requests of both tokens of the tenant count together.
        answer = scene.ask_as(&second, "GET", "/api/v1/session", "");
    }
    // The burst is twice the number of requests per second.
    let most = 2 + began.elapsed().as_secs() + 1;
    assert!((2..=most).contains(&answered), "{answered} answers, and {most} are allowed so far");
    assert_eq!(answer.status, 429);
    assert!(answer.head.to_lowercase().contains("retry-after: 1"), "{}", answer.head);
    assert_eq!(scene.ask_as(&other, "GET", "/metrics", "").status, 200);
    assert_eq!(scene.ask("GET", "/healthz", None).0, 200, "without an account on the loopback");
}

/// Two tokens of one tenant share a limit. Another account has its own limit.
#[test]
fn traces_of_an_account_are_limited_per_second() {
    let text = format!("{TENANTS}[api]\nrequests = 1000\n");
    let scene = Scene::with(folder("traces"), &text, false);
    let tenant = || token(&scene, "tenant", Some("quokka"));
    let (first, second, other) = (tenant(), tenant(), token(&scene, "operator", None));
    let path = "/api/v1/tenants/quokka/switches/1/trace/in_port=1";
    let asked = |token| scene.ask_as(token, "GET", path, "");
    let began = Instant::now();
    let mut answers = (0..500).map(|n| asked(if n % 2 == 0 { &first } else { &second }));
    let mut answered = 0;
    let refused = answers.find(|answer| {
        answered += usize::from(answer.status == 404);
        answer.status != 404
    });
    let refused = refused.unwrap();
    assert!(
        answered >= 20,
        "no switch is connected, and so many traces may be at once: {answered}"
    );
    let most = 20 + 10 * (began.elapsed().as_secs() as usize + 1);
    assert!(answered <= most, "{answered} traces, and {most} are allowed so far");
    assert_eq!(refused.status, 429);
    assert!(refused.text.contains("10 traces in a second"), "{}", refused.text);
    assert_eq!(asked(&other).status, 404, "another account");
    assert_eq!(scene.ask_as(&first, "GET", "/api/v1/session", "").status, 200, "no trace");
}

#[test]
fn changes_are_written_to_the_audit_log_in_order_without_token_secrets() {
    let text =
        TENANTS.replacen("[tenants.network]", "maxima = { edges = [\"1\"] }\n[tenants.network]", 1);
    let scene = Scene::with(folder("audit"), &text, false);
    let quokka = token(&scene, "tenant", Some("quokka"));
    let change = |number: u32, how: &str| {
        let body = json!([{"change-port":
            {"switch": "0xa1", "number": number, "at": format!("1 port {number}")}}]);
        let path = format!("/api/v1/networks/quokka/changes{how}");
        scene.ask_as(&quokka, "POST", &path, &body.to_string()).status
    };
    assert_eq!(change(2, "?dry_run=true"), 200);
    assert_eq!(change(7, ""), 409);
    std::thread::scope(|scope| {
        let all: Vec<_> = (10..30).map(|number| scope.spawn(move || change(number, ""))).collect();
        assert!(all.into_iter().all(|one| one.join().unwrap() == 200));
    });
    let text = fs::read_to_string(scene.folder.join("state/audit.jsonl")).unwrap();
    assert!(!text.contains(&quokka["weir_".len()..]), "no token stands there");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 21, "a dry run and what is refused change nothing");
    assert_eq!((&lines[0]["what"], &lines[0]["role"]), (&"make token".into(), &"admin".into()));
    assert!(lines[0]["from"].as_str().unwrap().starts_with("unix user"), "{}", lines[0]);
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(line["seq"], number + 1);
    }
    for line in &lines[1..] {
        assert_eq!((&line["who"], &line["tenant"]), (&"token 1 (tenant)".into(), &"quokka".into()));
        assert_eq!(line["difference"].as_array().unwrap().len(), 1, "{line}");
        assert!(line["from"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
    }
}

/// Makes certificates with the commands of docs/access.md, signed by an authority with this name. Returns whether
/// openssl succeeded.
fn certificates(folder: &Path, authority: &str, names: &[&str]) -> bool {
    let script = r#"set -e; cd "$0"; ca=$1; shift
        openssl req -x509 -newkey rsa:2048 -nodes -days 9 -subj "/CN=$ca" -keyout $ca-key.pem -out $ca.pem
        for name; do
            openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout $name-key.pem -out $name.csr
            echo "subjectAltName=DNS:$name,IP:127.0.0.1" > $name.ext
            openssl x509 -req -in $name.csr -CA $ca.pem -CAkey $ca-key.pem -CAcreateserial -days 9 -extfile $name.ext -out $name.pem
        done"#;
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(folder).arg(authority).args(names);
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
fn over_tls_an_account_is_required_and_a_certificate_can_be_an_account() {
    let folder = folder("tls");
    let made = certificates(&folder, "ca", &["weir"])
        && certificates(&folder, "clients", &["alice", "bob"])
        && certificates(&folder, "strangers", &["mallory"]);
    if !made {
        eprintln!(
            "SKIPPED over_tls_an_account_is_required_and_a_certificate_can_be_an_account: openssl is not installed (Debian: openssl)"
        );
        return;
    }
    let text = format!(
        "{TENANTS}[api]\nprivate_key = \"weir-key.pem\"\ncertificate = \"weir.pem\"\n\
         client_ca = \"clients.pem\"\nhosts = [\"weir.example\"]\n\
         certificates = [{{ certificate = \"name:alice\", role = \"tenant\", tenant = \"quokka\" }}]\n"
    );
    let scene = Scene::with(folder.clone(), &text, true);
    let ask = |host: &str, certificate: Option<&str>, headers: &str| {
        let file = |name: &str, end: &str| folder.join(format!("{name}{end}.pem"));
        let identity = certificate.map(|name| (file(name, "-key"), file(name, "")));
        let trust = ServiceTrust { ca_certificate: file("ca", ""), identity };
        let stream = TcpStream::connect(scene.tls()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let stream = trust.connect("127.0.0.1", stream).unwrap();
        rest::talk_if_it_goes(stream, &rest::request(host, "GET", "/api/v1/session", headers, ""))
    };
    let here = scene.tls().to_string();
    assert_eq!(ask(&here, None, "").unwrap().status, 401);
    let answer = ask(&here, Some("alice"), "").unwrap();
    let session = json!({"role": "tenant", "tenant": "quokka", "may_change": true});
    assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), session);
    assert_eq!(ask(&here, Some("bob"), "").unwrap().status, 401, "genuine, and nobody's account");
    assert!(ask(&here, Some("mallory"), "").is_none(), "of another authority");
    let account = format!("Authorization: Bearer {}\r\n", token(&scene, "operator", None));
    for (host, certificate, origin, status) in [
        (here.as_str(), None, "", 200),
        (&here, Some("alice"), "", 200),
        ("weir.example", None, "Origin: https://weir.example\r\n", 200),
        ("weir.example", None, "Origin: http://weir.example\r\n", 403),
        ("other.example", None, "", 403),
    ] {
        let answer = ask(host, certificate, &format!("{account}{origin}")).unwrap();
        assert_eq!(answer.status, status, "{host} {origin} {}", answer.text);
        assert!(status != 200 || answer.text.contains("operator"), "a token goes first");
    }
    // A request without TLS gets no answer.
    let plain = TcpStream::connect(scene.tls()).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(rest::talk_if_it_goes(plain, &rest::request(&here, "GET", "/", "", "")).is_none());
}

#[test]
fn a_revoked_token_ends_events_and_silent_tls_connections_are_closed() {
    let folder = folder("cut");
    if !certificates(&folder, "ca", &["weir"]) {
        eprintln!(
            "SKIPPED a_revoked_token_ends_events_and_silent_tls_connections_are_closed: openssl is not installed (Debian: openssl)"
        );
        return;
    }
    let text =
        format!("{TENANTS}[api]\nprivate_key = \"weir-key.pem\"\ncertificate = \"weir.pem\"\n");
    let mut scene = Scene::with(folder, &text, true);
    let short = Duration::from_secs(2);
    let limits = http::Limits { header: short, request: short, ..http::Limits::default() };
    scene.restart_within(limits, &text);
    let walrus = token(&scene, "tenant", Some("walrus"));
    let mut events = TcpStream::connect(scene.api()).unwrap();
    events.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let account = format!("Authorization: Bearer {walrus}\r\n");
    let path = "/api/v1/tenants/walrus/labels/events";
    let request = rest::request(&scene.api().to_string(), "GET", path, &account, "");
    events.write_all(request.as_bytes()).unwrap();
    let mut status = [0; 12];
    events.read_exact(&mut status).unwrap();
    assert_eq!(&status[9..], b"200");
    assert_eq!(scene.ask_socket("DELETE", "/api/v1/tokens/1", json!({})).0, 200);
    let mut rest = Vec::new();
    // The stream may end or be reset; a time-out is an error.
    let ended = events.read_to_end(&mut rest).map_or_else(|it| it.kind(), |_| ErrorKind::Other);
    assert!(![ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&ended), "{ended:?}");

    let mut silent = TcpStream::connect(scene.tls()).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "it is closed");
}

/// Runs this test again in a child process, with a small file system in the folder of the test.
fn on_a_small_disk(test: &str, megabytes: u32) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("WEIR_TEST_SMALL_DISK") {
        return Some(folder.into());
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED {test}: root is needed");
        return None;
    }
    let folder = folder(test);
    let script = format!(
        "mount -t tmpfs -o size={megabytes}m weir \"$1\" && exec \"$0\" --exact {test} --nocapture"
    );
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .args([&std::env::current_exe().unwrap(), &folder])
        .env("WEIR_TEST_SMALL_DISK", &folder)
        .output()
        .unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}{output:?}");
    None
}

#[test]
fn on_a_full_disk_a_new_token_is_refused() {
    let test = "on_a_full_disk_a_new_token_is_refused";
    let Some(folder) = on_a_small_disk(test, 24) else { return };
    let scene = Scene::with(folder.clone(), TENANTS, false);
    let before = token(&scene, "operator", None);
    let filler = folder.join("filler");
    fill(&filler);
    let list = || scene.ask_socket("GET", "/api/v1/tokens", json!({})).1;
    let make = || scene.ask_socket("POST", "/api/v1/tokens", json!({"role": "operator"}));
    let (kept, refused) = (1..200)
        .find_map(|kept| {
            let (status, answer) = make();
            (status != 200).then_some((kept, (status, answer)))
        })
        .unwrap();
    assert_eq!(refused.0, 503, "{}", refused.1);
    let why = refused.1["error"].as_str().unwrap();
    assert!(why.starts_with("no token was made: "), "{why}");
    assert_eq!(list()["tokens"].as_array().unwrap().len(), kept);
    assert_eq!(scene.ask_as(&before, "GET", "/api/v1/tenants", "").status, 200);
    // A change of a network is refused in the same way, and the audit log has all changes that were made.
    let change = |number: u32| {
        let at = format!("1 port {number}");
        let change = json!([{"change-port": {"switch": "0xa1", "number": number, "at": at}}]);
        scene.ask_socket("POST", "/api/v1/networks/quokka/changes", change).0
    };
    let statuses: Vec<u16> = (100..400).map(change).take_while(|it| *it == 200).collect();
    assert!(statuses.len() < 300, "the disk is full");
    let network = scene.ask_socket("GET", "/api/v1/networks/quokka", json!({})).1;
    let ports = network["network"]["ports"].as_array().unwrap().len();
    assert_eq!(ports, 1 + statuses.len(), "what was refused was not made");
    fs::remove_file(&filler).unwrap();
    let text = fs::read_to_string(folder.join("state/audit.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().zip(1..).all(|(line, seq)| line["seq"] == seq), "{text}");
    let of = |what: &str| lines.iter().filter(|line| line["what"] == what).count();
    let not_made = lines.iter().filter(|line| line.get("not_made").is_some()).count();
    let written = of("make token") + of("change network");
    let most = kept + statuses.len() + not_made;
    assert!(written >= kept + statuses.len() && written <= most, "{written} {most}");
    let (status, made) = make();
    assert_eq!(status, 200, "{made}");
    assert_eq!(list()["tokens"].as_array().unwrap().len(), kept + 1);
}

fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    while file.write(&[7; 4096]).is_ok_and(|written| written > 0) {}
}
