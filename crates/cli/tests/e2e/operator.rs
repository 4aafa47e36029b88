//! Tests of `weir ctl` for an operator of tenants that share a real switch: its output agrees with the output of the
//! switch.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Value, json};

use crate::slices::by_port;
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::{Weir, run};

/// More than two pages of a flow table.
const MANY: u32 = 600;
const ADDRESSES: [&str; 4] = ["10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"];
const NAMED: &str = "[[switches]]\ndpid = \"1\"\nname = \"edge\"\n";

/// Runs `weir ctl` with these words: the exit code, stdout and stderr.
fn ctl(weir: &Weir, words: &[&str]) -> (Option<i32>, String, String) {
    let api = weir.api.to_string();
    run(&[&["ctl", "--api", &api], words].concat())
}

/// Returns the lines that `weir ctl` prints. Each line must have at most 80 characters, except the lines of `flows`.
fn lines(weir: &Weir, words: &[&str]) -> Vec<String> {
    let (code, stdout, stderr) = ctl(weir, words);
    assert_eq!(code, Some(0), "{words:?}: {stderr}");
    let lines: Vec<String> = stdout.lines().map(str::to_owned).collect();
    let wide = lines.iter().find(|line| line.chars().count() > 80);
    assert!(wide.is_none() || words[0] == "flows", "{wide:?}");
    lines
}

/// Returns the JSON output of `weir ctl`.
fn json_of(weir: &Weir, words: &[&str]) -> Value {
    let (code, stdout, stderr) = ctl(weir, &[words, &["--json"]].concat());
    assert_eq!(code, Some(0), "{words:?}: {stderr}");
    serde_json::from_str(&stdout).expect("JSON")
}

fn check(version: Version, openflow: &str) {
    let network = Network::single(&ADDRESSES, version);
    let (mut red, mut blue) = (App::flow_installer(openflow), App::flow_installer(openflow));
    let tenants =
        by_port("red", &red.to_string(), [1, 2]) + &by_port("blue", &blue.to_string(), [3, 4]);
    let weir = network.serve(&(tenants + NAMED));
    red.expect("switch");
    blue.expect("switch");

    let flow = json!({
        "cookie": 5, "priority": 9, "idle_timeout": 700,
        "match": {"dl_type": 0x800, "nw_dst": "10.1.0.2"}, "actions": [{"type": "OUTPUT", "port": 2}],
    });
    red.flow("add", 1, &flow);
    red.barrier(2);
    let expected = " cookie=0x5, idle_timeout=700, priority=9,ip,nw_dst=10.1.0.2 actions=output:2";
    assert_eq!(lines(&weir, &["flows", "red", "edge"]), [expected]);
    assert_eq!(lines(&weir, &["flows", "red", "00:00:00:00:00:00:00:01"]), [expected]);
    assert_eq!(lines(&weir, &["flows", "blue", "1"]), [""; 0]);

    for port in 0..MANY {
        let flow = json!({
            "cookie": 7, "priority": 10,
            "match": {"in_port": 1, "dl_type": 0x800, "nw_proto": 17, "tp_dst": 1000 + port},
            "actions": [{"type": "OUTPUT", "port": 2}],
        });
        red.flow("add", 3, &flow);
    }
    red.barrier(4);
    let shown = lines(&weir, &["flows", "red", "edge"]);
    let all: BTreeSet<&String> = shown.iter().collect();
    assert_eq!((shown.len(), all.len()), (MANY as usize + 1, MANY as usize + 1), "each once");
    let listed = json_of(&weir, &["flows", "red", "1"]);
    assert_eq!(listed["flows"].as_array().map(Vec::len), Some(MANY as usize + 1));
    assert_eq!(
        (&listed["openflow"], &listed["flows"][0]["match"]),
        (&json!(openflow), &json!("ip,nw_dst=10.1.0.2"))
    );

    // The switch has each rule that Weir lists for the switch, with the same text. On OpenFlow 1.0 the switch does not
    // report flags.
    let dump = network.ofctl(&["-O", "OpenFlow10,OpenFlow13", "--no-stats", "dump-flows", "s1"]);
    let dump: BTreeSet<&str> = dump.lines().map(str::trim).collect();
    let physical = lines(&weir, &["flows", "red", "edge", "--physical"]);
    assert!(physical.len() > MANY as usize, "{}", physical.len());
    for line in &physical {
        let line =
            if openflow == "1.0" { line.replace("send_flow_rem ", "") } else { line.clone() };
        assert!(dump.contains(line.trim()), "{line}\nis not among\n{dump:#?}");
    }

    // An output to a port of blue is refused.
    let stray = json!({"priority": 9, "actions": [{"type": "OUTPUT", "port": 3}]});
    red.flow("add", 5, &stray);
    red.expect_reply("error", 5);
    let (red_at, edge) = (red.to_string(), "00:00:00:00:00:00:00:01");
    eventually("refusals are shown", || {
        let refusals = lines(&weir, &["refusals"]);
        refusals
            .iter()
            .any(|line| line.starts_with("red ") && line.contains(edge) && line.contains("OFP"))
    });
    eventually("tenants are shown", || {
        let tenants = lines(&weir, &["tenants"]);
        tenants.iter().any(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&["red", "1", "1", "of", "1", "1", "601"])
                && words.last() == Some(&"1")
        })
    });
    let switches = lines(&weir, &["switches"]);
    assert!(switches[1].starts_with(&format!("{edge}  edge")), "{switches:#?}");
    assert!(switches[1].contains(openflow), "{switches:#?}");
    let controllers = lines(&weir, &["controllers"]);
    let has = |words: &[&str]| {
        controllers.iter().any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(has(&["red", edge, &red_at, "connected"]), "{controllers:#?}");
    eventually("limits are shown: Open vSwitch says a million, which is no figure", || {
        let limits = lines(&weir, &["limits"]).join("\n");
        let words: Vec<&str> = limits.split_whitespace().collect();
        let has = |row: &[&str]| words.windows(row.len()).any(|window| window == row);
        has(&["blue", edge, "all", "0", "100000"]) && limits.contains("the switch does not say")
    });
    for words in [["tenants"], ["switches"], ["controllers"], ["refusals"], ["limits"]] {
        let listed = json_of(&weir, &words);
        let key = if words == ["refusals"] { "requests" } else { words[0] };
        assert!(listed[key].as_array().is_some_and(|all| !all.is_empty()), "{listed}");
    }

    // `head` closes the pipe after one line.
    let program = env!("CARGO_BIN_EXE_weir");
    let script =
        format!("set -o pipefail; {program} ctl --api {} flows red edge | head -1", weir.api);
    let output = Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert!(output.status.success(), "{output:?}");

    for (words, says) in [
        (["flows", "nobody", "edge"], "there is no tenant of this name"),
        (["flows", "../x?y=%2f ü", "edge"], "there is no tenant of this name"),
        (["flows", "red", "2"], "the switch is not connected, or the tenant has no part of it"),
        (["flows", "red", "a/b"], "neither a datapath id nor the name"),
        (["flows", "red", "edge2"], "neither a datapath id nor the name"),
    ] {
        let (code, stdout, stderr) = ctl(&weir, &words);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{words:?}: {stderr}");
        assert!(stderr.contains(says), "{words:?}: {stderr}");
    }

    let connected = weir.logged(&["switch connected"]).join("\n");
    let named = format!("openflow={openflow} peer=");
    assert!(connected.contains(&named) && !connected.contains("Some("), "{connected}");
}

#[test]
fn ovs_an_operator_sees_tenants_and_their_flow_tables_v13() {
    needs!(ovs_an_operator_sees_tenants_and_their_flow_tables_v13: Needs::OpenVSwitch, Needs::OsKen);
    check(V13, "1.3");
}

#[test]
fn ovs_an_operator_sees_tenants_and_their_flow_tables_v10() {
    needs!(ovs_an_operator_sees_tenants_and_their_flow_tables_v10: Needs::OpenVSwitch, Needs::OsKen);
    check(V10, "1.0");
}
