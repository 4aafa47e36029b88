//! Tests of `weir ctl why` and `weir ctl trace`: their output agrees with the behaviour of real switches.

use serde_json::{Value, json};

use crate::own_networks::number;
use crate::slices::by_port;
use crate::support::app::App;
use crate::support::eventually;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::{Weir, run};

const ADDRESSES: [&str; 4] = ["10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"];

/// Runs `weir ctl` with these words: the exit code, stdout and stderr.
fn ctl(weir: &Weir, words: &[&str]) -> (Option<i32>, String, String) {
    let api = weir.api.to_string();
    run(&[&["ctl", "--api", &api], words].concat())
}

/// Returns the output of `weir ctl`, whose lines must have at most 80 characters.
fn printed(weir: &Weir, words: &[&str]) -> String {
    let (code, stdout, stderr) = ctl(weir, words);
    assert_eq!(code, Some(0), "{words:?}: {stderr}");
    let wide = stdout.lines().find(|line| line.chars().count() > 80);
    assert!(wide.is_none(), "{wide:?}");
    stdout
}

/// Returns the places where a traced packet ends.
fn ends(weir: &Weir, words: &[&str]) -> Vec<String> {
    let stdout = printed_json(weir, words);
    let ends = stdout["ends"].as_array().expect("ends");
    ends.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn printed_json(weir: &Weir, words: &[&str]) -> Value {
    let (code, stdout, stderr) = ctl(weir, &[words, &["--json"]].concat());
    assert_eq!(code, Some(0), "{words:?}: {stderr}");
    serde_json::from_str(&stdout).expect("JSON")
}

/// Packets that a switch has sent out of a port.
fn sent(network: &Network, port: u32) -> u64 {
    let port = port.to_string();
    let dump = network.ofctl(&["-O", "OpenFlow10,OpenFlow13", "dump-ports", "s1", &port]);
    let count = dump.split("tx pkts=").nth(1).and_then(|rest| rest.split(',').next());
    count.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("{dump}"))
}

fn check_slice(version: Version, openflow: &str) {
    let network = Network::single(&ADDRESSES, version);
    let mut red = App::flow_installer(openflow);
    let weir = network.serve(&by_port("red", &red.to_string(), [1, 2]));
    red.expect("switch");

    // Red installs an entry that outputs to red's port, and an entry that drops packets. An entry that outputs to a
    // port outside red's slice is refused.
    let entry = |priority: u16, to: &str, actions: Value| {
        let match_ = json!({"in_port": 1, "dl_type": 0x800, "nw_dst": to});
        json!({"priority": priority, "cookie": 5, "match": match_, "actions": actions})
    };
    let out = |port: u16| json!([{"type": "OUTPUT", "port": port}]);
    red.flow("add", 1, &entry(9, "10.1.0.2", out(2)));
    red.flow("add", 2, &entry(9, "10.1.0.9", json!([])));
    red.flow("add", 3, &entry(9, "10.1.0.8", out(3)));
    red.expect_reply("error", 3);
    red.barrier(4);
    let why = printed(&weir, &["why", "red"]);
    assert!(why.contains("FLOW_MOD ADD") && why.contains("xid 3"), "{why}");
    assert!(why.contains("OFPBAC_BAD_OUT_PORT: Weir refused: an action sends to port 3"), "{why}");
    network.limit_first_table("s1", Some(1));
    if openflow == "1.0" {
        red.flow("add", 5, &entry(7, "10.1.0.7", out(2)));
        red.expect_reply("error", 5);
        let why = printed(&weir, &["why", "red"]);
        assert!(why.contains("the switch refused: OFPFMFC_"), "{why}");
    }
    network.limit_first_table("s1", None);

    // Each packet is traced and then sent. The trace and the counters of the switch must agree.
    let (from, to) = (network.mac("h1"), network.mac("h2"));
    let traced = |address: &str| {
        let flow = format!(
            "in_port=1,icmp,dl_src={from},dl_dst={to},nw_src=10.1.0.1,nw_dst={address},icmp_type=8"
        );
        let words = ["trace", "red", "1", &flow];
        let text = printed(&weir, &words);
        assert!(
            text.contains("red's, by the flowspace entry in_port=1 with priority 100"),
            "{text}"
        );
        network.exec("h1", &["ip", "neigh", "replace", address, "lladdr", &to, "dev", "eth0"]);
        let before = sent(&network, 2);
        let ping = format!("ping -c 3 -i 0.2 -W 1 {address} >/dev/null; true");
        network.exec("h1", &["sh", "-c", &ping]);
        let ends = ends(&weir, &words);
        (ends, text, sent(&network, 2) - before)
    };
    network.exec("h1", &["ip", "route", "replace", "10.1.0.0/24", "dev", "eth0"]);
    let (end, text, count) = traced("10.1.0.2");
    let s1 = "at 00:00:00:00:00:00:00:01";
    assert_eq!((end, count), (vec![format!("{s1}: leaves by port 2")], 3), "{text}");
    assert!(text.contains("table 0: cookie=0x5, priority=9,ip,in_port=1,"), "{text}");
    let rule = printed_json(&weir, &["flows", "red", "1", "--physical"]);
    let rules = rule["flows"].as_array().expect("flows");
    let flat: String = text.split_whitespace().collect();
    let is_named = |rule: &Value| {
        let rule: String = rule["text"].as_str().unwrap_or_default().split_whitespace().collect();
        flat.contains(&rule)
    };
    assert!(rules.iter().any(is_named), "{text}\n{rules:#?}");
    let (end, text, count) = traced("10.1.0.9");
    assert_eq!((end, count), (vec![format!("{s1}: dropped")], 0), "{text}");

    let (_, _, stderr) = ctl(&weir, &["trace", "red", "1", "in_port=1,nw_scr=10.1.0.1"]);
    assert!(stderr.contains("did you mean `nw_src`?"), "{stderr}");
    for (words, says) in [
        (["why", "nobody", "", ""], "there is no tenant of this name"),
        (["trace", "nobody", "1", "in_port=1"], "there is no tenant of this name"),
        (["trace", "red", "2", "in_port=1"], "the switch is not connected"),
        (["trace", "red", "1", "in_port=77"], "the switch has no port 77"),
        (["trace", "any", "1", "ip"], "in_port"),
        (["trace", "any", "somewhere", "in_port=1"], "neither a datapath id nor the name"),
    ] {
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let (code, _, stderr) = ctl(&weir, &words);
        assert_eq!(code, Some(1), "{words:?}: {stderr}");
        assert!(stderr.contains(says), "{words:?}: {stderr}");
    }
    let nobodys = printed(&weir, &["trace", "any", "1", "in_port=3,ip"]);
    assert!(nobodys.contains("nobody's"), "{nobodys}");

    // After the switch has disconnected `why` still lists the refusals, each with the rule that refused.
    let normal: u32 = if openflow == "1.0" { 0xfffa } else { 0xffff_fffa };
    red.flow("add", 6, &entry(9, "10.1.0.7", json!([{"type": "OUTPUT", "port": normal}])));
    red.expect_reply("error", 6);
    network.disconnect();
    eventually("the switch is gone", || printed(&weir, &["switches"]).lines().count() == 1);
    let why = printed(&weir, &["why", "red"]);
    assert!(why.contains("switch 00:00:00:00:00:00:00:01, xid 3"), "{why}");
    assert!(why.contains("an action sends to port 3"), "{why}");
    assert!(why.contains("an action sends to NORMAL"), "{why}");
}

#[test]
fn ovs_ctl_why_and_ctl_trace_agree_with_a_real_switch_v10() {
    needs!(ovs_ctl_why_and_ctl_trace_agree_with_a_real_switch_v10: Needs::OpenVSwitch, Needs::OsKen);
    check_slice(V10, "1.0");
}

#[test]
fn ovs_ctl_why_and_ctl_trace_agree_with_a_real_switch_v13() {
    needs!(ovs_ctl_why_and_ctl_trace_agree_with_a_real_switch_v13: Needs::OpenVSwitch, Needs::OsKen);
    check_slice(V13, "1.3");
}

/// Red has a network on two switches in a row, with a host at port 1 of each switch.
fn check_network(version: Version, red: App) {
    let network = Network::linear(2, version);
    let tenant = format!(
        "[topology]\ndiscovery = true\n[[tenants]]\nname = \"red\"\ncontrollers = [\"{red}\"]\n[tenants.network]\n\
         [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
         [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\n\
         [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 1\"\n\
         [[tenants.network.ports]]\nswitch = \"0xa2\"\nnumber = 1\nat = \"2 port 1\"\n\
         [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\n"
    );
    let weir = network.serve(&tenant);
    number(&network, [["h1", "h2"], ["h1", "h2"]]);
    eventually("red's hosts reach each other", || network.answers("h1", "10.0.0.2"));
    let (from, to) = (network.mac("h1"), network.mac("h2"));
    let flow = format!(
        "in_port=1,icmp,dl_src={from},dl_dst={to},nw_src=10.0.0.1,nw_dst=10.0.0.2,icmp_type=8"
    );
    let words = ["trace", "red", "0xa1", &flow];
    let text = printed(&weir, &words);
    assert_eq!(
        ends(&weir, &words),
        ["at 00:00:00:00:00:00:00:02: leaves by port 1 (the tenant's port 1)"],
        "{text}"
    );
    assert!(text.contains("1. switch 00:00:00:00:00:00:00:01, port 1"), "{text}");
    assert!(text.contains("(the tenant's port 2), to hop 2"), "{text}");
    assert!(text.contains("link at port 2 of its switch"), "{text}");
    // A trace of the same packet at the physical switch has the same result.
    assert_eq!(ends(&weir, &["trace", "any", "1", &flow]), ends(&weir, &words));
    // A trace from the other end of the link has the same result.
    let behind = format!("in_port=2,{}", flow.trim_start_matches("in_port=1,"));
    assert_eq!(ends(&weir, &["trace", "red", "0xa2", &behind]), ends(&weir, &words));
}

#[test]
fn ovs_a_packet_is_traced_through_a_network_v10() {
    needs!(ovs_a_packet_is_traced_through_a_network_v10: Needs::OpenVSwitch, Needs::OsKen);
    check_network(V10, App::learning_switch_10());
}

#[test]
fn ovs_a_packet_is_traced_through_a_network_v13() {
    needs!(ovs_a_packet_is_traced_through_a_network_v13: Needs::OpenVSwitch, Needs::OsKen);
    check_network(V13, App::learning_switch_13());
}
