//! Tests of networks through REST: reading, changes as transactions, refusals with reasons, and restarts. No switch
//! connects in these tests, so parts that need a switch wait.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use serde_json::{Value, json};

#[path = "support/rest.rs"]
mod rest;

use rest::{Scene, TENANTS, exchange};

fn green() -> Value {
    json!({
        "switches": [{ "dpid": "0xa1", "on": ["1"] }],
        "ports": [{ "switch": "0xa1", "number": 1, "at": "1 port 2" }],
    })
}

#[test]
fn a_network_request_is_applied_completely_or_refused_without_a_change() {
    let scene = Scene::new("whole");
    let red = scene.network("red").unwrap();
    assert_eq!(red["ports"].as_array().map(Vec::len), Some(3));
    let trouble = red["paths"][0]["trouble"].as_str().unwrap();
    assert!(trouble.ends_with("00:00:00:00:00:00:00:01 has not connected"), "{trouble}");

    // A dry run returns the result, and changes nothing.
    let path = "/api/v1/networks/green";
    let (status, outcome) = scene.ask("PUT", &format!("{path}?dry_run=true"), Some(green()));
    assert_eq!((status, &outcome["dry_run"]), (200, &json!(true)), "{outcome}");
    let came =
        json!([{ "tenant": "green", "port": "00:00:00:00:00:00:00:a1 port 1", "is": false }]);
    assert_eq!(outcome["ports"], came);
    assert_eq!(scene.network("green"), None);
    assert_eq!(scene.ask("PUT", path, Some(green())).0, 200);
    assert_eq!(scene.network("green").unwrap()["as_configured"], false);

    let add = json!({ "put-host": { "mac": "02:00:00:00:00:01", "at": "0xa1 port 1" } });
    let before = scene.network("red");
    for (what, status, reason) in [
        // The first operation alone would succeed.
        (json!([add, { "remove": { "switch": "0xa2" } }]), 409, "the tenant has no switch"),
        (
            json!([{ "put-port": { "switch": "0xa1", "number": 5, "at": "1 port 2" } }]),
            409,
            "is taken by \"green\"",
        ),
        (json!([{ "stop": { "port": "0xa1 port 9" } }]), 404, "the network has no edge port"),
        (json!([{ "explode": "network" }]), 400, "unknown variant `explode`"),
        (
            json!([{ "set-physical-addresses": "172.16.5.0/24" }]),
            400,
            "not supported: hosts keep their addresses on all links",
        ),
        (json!([{ "set-vlans": [10] }]), 400, "not supported: a frame has one VLAN tag"),
    ] {
        let (found, body) = scene.ask("POST", "/api/v1/networks/red/changes", Some(what.clone()));
        assert_eq!(found, status, "{what}: {body}");
        assert!(body.to_string().replace("\\\"", "\"").contains(reason), "{what}: {body}");
        assert_eq!(scene.network("red"), before, "{what}");
    }
    for body in [json!([]), json!([false, "10.0.0.0/24"])] {
        let (found, answer) = scene.ask("PUT", "/api/v1/networks/red", Some(body.clone()));
        assert_eq!(found, 400, "{body}: {answer}");
        assert!(answer.to_string().contains("expected a network as an object"), "{body}: {answer}");
        assert_eq!(scene.network("red"), before, "{body}");
    }
    // The address block has two addresses for hosts, so a third host is refused.
    let hosts = |count: u8| {
        let host = |last| json!({ "put-host": { "mac": format!("02:00:00:00:00:0{last}"), "at": "0xa1 port 1" } });
        Value::Array((1..=count).map(host).collect())
    };
    let (status, body) = scene.ask("POST", "/api/v1/networks/red/changes", Some(hosts(3)));
    let reasons = json!(["red: host 02:00:00:00:00:03: all addresses of 10.0.0.0/30 are taken"]);
    assert_eq!((status, &body["reasons"]), (409, &reasons));
    assert_eq!(scene.ask("POST", "/api/v1/networks/red/changes", Some(hosts(2))).0, 200);
    assert_eq!(scene.network("red").unwrap()["assigned"][1]["address"], "10.0.0.2");

    for (method, path, status) in [
        ("GET", "/api/v1/networks/nobody", 404),
        ("PUT", "/api/v1/networks/nobody", 404),
        // A slice has no network.
        ("PUT", "/api/v1/networks/blue", 409),
        ("PUT", "/api/v1/networks/green?dry=1", 400),
        ("PATCH", "/api/v1/networks/green", 405),
    ] {
        assert_eq!(scene.ask(method, path, Some(green())).0, status, "{method} {path}");
    }
}

#[test]
fn changes_with_a_foreign_host_or_another_content_type_are_refused() {
    let scene = Scene::new("browser");
    let api = scene.api();
    for (header, status) in [
        ("Host: weir.example\r\nContent-Type: application/json", 403),
        ("Host: 127.0.0.1\r\nContent-Type: text/plain", 415),
        ("Host: 127.0.0.1\r\nContent-Type: application/jsonx", 415),
        ("Host: localhost:8080\r\nContent-Type: application/json", 200),
        ("Host: localhost\r\nContent-Type: Application/JSON ; charset=utf-8", 200),
        ("Host: [::1]:8080\r\nContent-Type: application/json", 200),
    ] {
        let path = "/api/v1/networks/red/changes";
        let head = format!("POST {path} HTTP/1.1\r\nConnection: close\r\n{header}\r\n");
        let answer = exchange(api, &format!("{head}Content-Length: 2\r\n\r\n[]"));
        assert_eq!(answer.status, status, "{header}");
    }
}

#[test]
fn network_changes_survive_a_restart_until_the_configured_network_changes() {
    let mut scene = Scene::new("restart");
    assert_eq!(scene.ask("PUT", "/api/v1/networks/green", Some(green())).0, 200);
    assert_eq!(scene.ask("DELETE", "/api/v1/networks/red", None).0, 200);
    assert_eq!(scene.ask("DELETE", "/api/v1/networks/red", None).0, 404);
    let wanted = |scene: &Scene| scene.network("green").map(|it| it["network"].clone());
    let made = wanted(&scene);
    scene.restart(TENANTS);
    assert_eq!((wanted(&scene), scene.network("red")), (made.clone(), None));
    // The configured network of red has changed; the configured network of green has not.
    scene.restart(&TENANTS.replace("10.0.0.0/30", "10.0.0.0/24"));
    assert_eq!(wanted(&scene), made);
    let red = scene.network("red").unwrap();
    assert_eq!(
        (&red["as_configured"], &red["network"]["addresses"]),
        (&json!(true), &json!("10.0.0.0/24"))
    );
}

#[test]
fn at_start_the_file_takes_precedence_over_contradicting_network_changes() {
    let mut scene = Scene::new("contradiction");
    let port = json!([{ "put-port": { "switch": "0xa1", "number": 7, "at": "1 port 7" } }]);
    assert_eq!(scene.ask("POST", "/api/v1/networks/red/changes", Some(port)).0, 200);
    assert_eq!(scene.ask("PUT", "/api/v1/networks/green", Some(green())).0, 200);
    // The configured networks of red and green are unchanged, but the file assigns port 7 of switch 1 to blue.
    let network = "[tenants.network]\n[[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
        [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 7\"\n";
    let tenants = TENANTS.replace("[[tenants.flowspace]]\nmatch = \"\"\n", network);
    assert_eq!(set_aside(&scene), json!([]));
    for _ in 0..2 {
        scene.restart(&tenants);
        let aside = &set_aside(&scene)[0];
        let reason = aside["reason"].as_str().unwrap();
        assert!(reason.contains(" is taken by "), "{reason}");
        let ports = aside["network"]["ports"].as_array().unwrap();
        let port = ports.iter().find(|port| port["number"] == 7).unwrap();
        assert_eq!(
            (&aside["tenant"], &port["at"]),
            (&json!("red"), &json!("00:00:00:00:00:00:00:01 port 7"))
        );
        let red = scene.network("red").unwrap();
        assert_eq!(
            (&red["as_configured"], red["ports"].as_array().unwrap().len()),
            (&json!(true), 3)
        );
        assert_eq!(scene.network("blue").unwrap()["ports"].as_array().unwrap().len(), 1);
        assert_eq!(scene.network("green").unwrap()["as_configured"], false, "contradicts nothing");
    }
    // The file has its old contents again, but red's earlier change stays set aside, and is only shown. The next change
    // of red's network removes the earlier change.
    scene.restart(TENANTS);
    assert_eq!(scene.network("red").unwrap()["as_configured"], true);
    assert_eq!(set_aside(&scene).as_array().unwrap().len(), 1);
    let change = Some(json!([{ "set-addresses": "10.0.0.0/24" }]));
    assert_eq!(scene.ask("POST", "/api/v1/networks/red/changes", change).0, 200);
    assert_eq!(set_aside(&scene), json!([]));
    assert_eq!(scene.network("red").unwrap()["as_configured"], false);
}

fn set_aside(scene: &Scene) -> Value {
    scene.ask("GET", "/api/v1/networks", None).1["set_aside"].clone()
}

#[test]
fn a_host_keeps_the_assigned_address_after_a_restart() {
    let mut scene = Scene::new("addresses");
    let changes = "/api/v1/networks/red/changes";
    let host = |last: u8| json!({ "mac": format!("02:00:00:00:00:0{last}"), "at": "0xa1 port 1" });
    let add = json!([{ "put-host": host(1) }, { "put-host": host(2) }]);
    assert_eq!(scene.ask("POST", changes, Some(add)).0, 200);
    let remove = json!([{ "remove": { "host": "02:00:00:00:00:01" } }]);
    assert_eq!(scene.ask("POST", changes, Some(remove)).0, 200);
    let assigned = json!([{ "mac": "02:00:00:00:00:02", "address": "10.0.0.2" }]);
    assert_eq!(scene.network("red").unwrap()["assigned"], assigned);
    // The copy is the state of the store after SIGKILL.
    let left = fs::read(scene.folder.join("state/weir.redb")).unwrap();
    scene.restart(TENANTS);
    assert_eq!(scene.network("red").unwrap()["assigned"], assigned);
    scene.restart_from(&left);
    assert_eq!(scene.network("red").unwrap()["assigned"], assigned);
}
