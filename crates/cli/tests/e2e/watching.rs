//! Tests of the files for Prometheus and Grafana in `packaging/`, with a Prometheus that reads a running Weir.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use serde_json::Value;

use crate::slices::by_port;
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{self, Controller, FLOW_MOD, Message, PACKET_OUT, Switch};
use crate::support::weir::Weir;
use crate::support::{eventually, free_port, http, repository};

const PORTS: &[u16] = &[1, 2, 3, 4];

fn packaged(path: &str) -> String {
    fs::read_to_string(repository().join("packaging").join(path)).expect("a packaged file")
}

fn dashboard() -> Value {
    serde_json::from_str(&packaged("grafana/weir.json")).expect("JSON")
}

/// Returns the queries of all panels, with values in place of Grafana's variables.
fn queries() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let filled = |query: &str| {
        let any = ["$instance", "$tenant", "$switch"].iter();
        let query = any.fold(query.to_owned(), |query, name| query.replace(name, ".*"));
        query.replace("$__rate_interval", "30s")
    };
    targets.map(|target| filled(target["expr"].as_str().expect("a query"))).collect()
}

/// Returns the names of Weir's metrics in a text.
fn series(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("weir_"));
    let bare = ours.map(|word| word.strip_suffix("_bucket").unwrap_or(word).to_owned());
    bare.collect()
}

#[test]
fn prometheus_alert_rules_are_valid_and_pass_their_tests() {
    needs!(prometheus_alert_rules_are_valid_and_pass_their_tests: Needs::Program("promtool"));
    for arguments in
        [["check", "rules", "weir.rules.yml"], ["test", "rules", "weir.rules.test.yml"]]
    {
        let output = Command::new("promtool")
            .args(arguments)
            .current_dir(repository().join("packaging/prometheus"))
            .output()
            .expect("promtool");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
    let tests = packaged("prometheus/weir.rules.test.yml");
    let rules = packaged("prometheus/weir.rules.yml");
    let alerts = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    let untested: Vec<&str> = alerts.filter(|name| !tests.contains(name)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn prometheus_rules_and_dashboard_use_only_documented_metrics() {
    let page = fs::read_to_string(repository().join("docs/metrics.md")).expect("a page");
    let documented = series(&page);
    for file in ["prometheus/weir.rules.yml", "grafana/weir.json"] {
        let unknown: Vec<String> =
            series(&packaged(file)).difference(&documented).cloned().collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
}

#[test]
fn every_query_of_the_dashboard_returns_data_from_a_run() {
    needs!(every_query_of_the_dashboard_returns_data_from_a_run: Needs::Program("prometheus"));
    let red = Controller::listen();
    // Blue's controller does not run.
    let nobody = format!("tcp:127.0.0.1:{}", free_port());
    let tenants = by_port("red", &red.name(), [1, 2]) + &by_port("blue", &nobody, [3, 4]);
    let weir = Weir::serve(&tenants);
    let switch = Switch::connect(weir.openflow, 1, PORTS);
    let controller = red.switch(0);

    let prometheus = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let rules = repository().join("packaging/prometheus/weir.rules.yml");
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [\"{}\"]\n\
         scrape_configs: [{{job_name: weir, static_configs: [{{targets: [\"{}\"]}}]}}]\n",
        rules.display(),
        weir.api
    );
    fs::write(weir.folder.join("prometheus.yml"), config).expect("a configuration");
    let _prometheus = Program::start(
        "prometheus",
        "prometheus",
        &[
            &format!("--config.file={}", weir.folder.join("prometheus.yml")),
            &format!("--storage.tsdb.path={}", weir.folder.join("prometheus")),
            &format!("--web.listen-address={prometheus}"),
        ],
    );
    let ask = |path: &str| -> Option<Value> {
        let (status, text) = http::get(prometheus, path)?;
        (status == 200).then(|| serde_json::from_str(&text).ok()).flatten()
    };

    let address = Ipv4Addr::new(10, 0, 0, 1);
    let frame = scripted::frame(address, address);
    let mut number = 0;
    let mut missing = queries();
    assert!(missing.len() > 24, "{missing:?}");
    eventually("every query returns data", || {
        number += 1;
        let flow = |out, cookie| scripted::add_flow(1, out, 100 + number % 100, cookie);
        controller.send(&Message::new(FLOW_MOD, u32::from(number), &flow(2, 1)));
        // Port 3 is blue's, so this FLOW_MOD is refused.
        controller.send(&Message::new(FLOW_MOD, u32::from(number), &flow(3, 2)));
        let out = scripted::packet_out(1, 2, &frame);
        controller.send(&Message::new(PACKET_OUT, u32::from(number), &out));
        switch.packet_in(1, &frame);
        switch.packet_in(3, &frame);
        http::get(weir.api, "/api/v1/nothing");
        missing.retain(|query| {
            let found = ask(&format!("/api/v1/query?query={}", escaped(query)));
            let result = found.as_ref().and_then(|it| it["data"]["result"].as_array());
            result.is_none_or(Vec::is_empty)
        });
        if number.is_multiple_of(50) {
            eprintln!("no data yet: {missing:?}");
        }
        missing.is_empty()
    });
    eventually("the rules are evaluated", || {
        let Some(found) = ask("/api/v1/rules") else { return false };
        let rules = found["data"]["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
        rules.len() > 10 && rules.iter().all(|rule| rule["health"] == "ok")
    });
}

fn escaped(query: &str) -> String {
    query.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
