//! Tests of the loss of the state folder: Weir makes tenants' entries from the rules on the switches.

use std::fs;

use serde_json::json;

use crate::restart::{ADDRESSES, check_untouched, install_both_ways, texts};
use crate::slices::by_port;
use crate::support::app::App;
use crate::support::network::{Network, V10, V13, Version};
use crate::support::requirements::{Needs, needs};
use crate::support::weir::run;

#[test]
fn ovs_rules_are_adopted_as_entries_after_a_lost_state_folder_on_openflow_10() {
    needs!(ovs_rules_are_adopted_as_entries_after_a_lost_state_folder_on_openflow_10:
        Needs::OpenVSwitch, Needs::OsKen);
    check(V10, "1.0");
}

#[test]
fn ovs_rules_are_adopted_as_entries_after_a_lost_state_folder_on_openflow_13() {
    needs!(ovs_rules_are_adopted_as_entries_after_a_lost_state_folder_on_openflow_13:
        Needs::OpenVSwitch, Needs::OsKen);
    check(V13, "1.3");
}

fn check(version: Version, openflow: &str) {
    let network = Network::single(&ADDRESSES, version);
    let (mut red, mut blue) = (App::flow_installer(openflow), App::flow_installer(openflow));
    let tenants =
        by_port("red", &red.to_string(), [1, 2]) + &by_port("blue", &blue.to_string(), [3, 4]);
    let mut weir = network.serve(&tenants);
    install_both_ways(&mut red, [1, 2]);
    install_both_ways(&mut blue, [3, 4]);
    assert!(network.pings("h1", "h2"));
    let before = network.flows("s1");
    // Weir's cookies begin with 5. The next three digits are the id of the installation.
    let cookie = before.iter().find_map(|flow| flow.text.split_once("cookie=0x5"));
    let id = cookie.expect("a cookie").1.get(..3).expect("three digits").to_owned();

    weir.crash();
    let (state, lost) = (weir.folder.join("state"), weir.folder.join("lost"));
    fs::rename(&state, lost).expect("the state folder is lost");
    assert!(network.pings("h3", "h4"), "the switch goes on by itself");
    weir.restart_on("state", &["--adopt", &id]);
    red.expect("switch");
    blue.expect("switch");
    red.barrier(100);
    blue.barrier(100);
    weir.expect_log(0, &["INFO", "tenants' entries are made", "entries=4", "left=0"]);
    weir.expect_log(0, &["tables are reconciled", "installed=0", "removed=0"]);

    let after = network.flows("s1");
    check_untouched(&before, &after);
    assert!(network.pings("h1", "h2") && network.pings("h3", "h4"));

    // The tenant sees its entries with their packet counts, and can delete its entries.
    let shown = red.flows(101);
    assert_eq!(shown.len(), 2, "{shown:?}");
    let one = shown.iter().find(|flow| flow["match"]["in_port"] == 1).expect("an entry");
    assert_eq!((&one["cookie"], &one["priority"]), (&json!(0), &json!(9)));
    assert!(one["packets"].as_u64() > Some(0), "{one}");
    red.flow("delete", 102, &json!({"table_id": 255, "match": {"in_port": 1}}));
    red.barrier(103);
    let left = texts(&network.flows("s1"));
    assert_eq!(left.len(), before.len() - 1, "{left:#?}");
    assert_eq!((red.flows(104).len(), blue.flows(104).len()), (1, 2));

    // After the adoption the state folder is like any other: a second `--adopt` is refused, and a restart keeps the
    // rules.
    weir.crash();
    let config = weir.folder.join("weir.toml");
    let (code, _, stderr) = run(&["serve", &config, "--state", &state, "--adopt", &id]);
    assert!(code == Some(3) && stderr.contains("is there already"), "{stderr}");
    weir.restart();
    red.expect("switch");
    red.barrier(105);
    assert_eq!(texts(&network.flows("s1")), left);
    assert_eq!(red.flows(106).len(), 1);
    assert_eq!(weir.logged(&["entries are made"]), [""; 0]);
}
