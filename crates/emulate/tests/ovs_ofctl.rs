//! Tests of the emulated switch with `ovs-ofctl`, an independent client.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stderr, reason = "what is skipped is said loudly")]

mod common;

use std::process::Command;

use emulate::{HostIndex, Network, Runner, Running, SwitchIndex};

const SWITCH: SwitchIndex = SwitchIndex(0);

/// Whether a program is installed. If the program is missing, the test prints that it is skipped, and fails in CI.
fn is_installed(program: &str, test: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{test}: {program} is missing");
        eprintln!("SKIPPED {test}: {program} is not installed (Debian package openvswitch-common)");
    }
    found
}

struct Ofctl {
    running: Running,
    version: &'static str,
}

impl Ofctl {
    fn new(version: &'static str) -> Ofctl {
        let network = Network::single(3, |config| config.n_tables = 4);
        let address = "tcp:127.0.0.1:0".parse().unwrap();
        let running = Runner::new(network).listen(SWITCH, address).start().unwrap();
        Ofctl { running, version }
    }

    /// Runs a command, and returns standard output and standard error, which has the OpenFlow errors.
    fn run(&self, arguments: &[&str]) -> (String, String) {
        let address = self.running.listening_on(SWITCH).unwrap().to_string();
        let (command, rest) = arguments.split_first().unwrap();
        let output = Command::new("ovs-ofctl")
            .args(["--timeout=20", "-O", self.version, command, &address])
            .args(rest)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }

    /// Runs a command that must print nothing.
    fn run_silently(&self, arguments: &[&str]) {
        let (out, err) = self.run(arguments);
        assert_eq!((out.as_str(), err.as_str()), ("", ""), "{arguments:?}");
    }

    /// The lines of `dump-flows` without the values that depend on time.
    fn flows(&self, arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<&str> = ["dump-flows"].iter().chain(arguments).copied().collect();
        let (out, err) = self.run(&arguments);
        assert_eq!(err, "", "{arguments:?}");
        let mut lines: Vec<String> = out
            .lines()
            .filter(|line| line.starts_with(" cookie="))
            .map(|line| {
                let parts = line.trim().split(", ");
                parts.filter(|part| !part.starts_with("duration=")).collect::<Vec<_>>().join(", ")
            })
            .collect();
        lines.sort();
        lines
    }

    fn inject(&self, host: usize, frame: Vec<u8>) -> emulate::Journey {
        self.running.call(move |n, now| n.inject(now, HostIndex(host), &frame)).unwrap()
    }
}

#[test]
fn switch_serves_ovs_ofctl_commands_over_openflow_10() {
    if !is_installed("ovs-ofctl", "switch_serves_ovs_ofctl_commands_over_openflow_10") {
        return;
    }
    let ofctl = Ofctl::new("OpenFlow10");
    let rules = [
        "cookie=0x1,priority=10,ip,nw_src=10.0.0.0/8,actions=output:2",
        "cookie=0x2,priority=20,in_port=1,dl_vlan=5,actions=strip_vlan,output:3",
        "cookie=0x3,priority=30,tcp,tp_dst=80,actions=mod_nw_dst:1.2.3.4,mod_tp_dst:8080,output:2",
        "cookie=0x4,priority=5,arp,idle_timeout=60,actions=FLOOD",
        "cookie=0x5,priority=4,dl_src=00:00:00:00:00:01,actions=mod_vlan_vid:7,enqueue:2:0",
        "cookie=0x6,priority=3,actions=CONTROLLER:64",
    ];
    for rule in rules {
        ofctl.run_silently(&["add-flow", rule]);
    }
    ofctl.inject(0, common::path(1, 2).udp(1, 2, b"x"));
    let expected = [
        "cookie=0x1, table=0, n_packets=1, n_bytes=60, priority=10,ip,nw_src=10.0.0.0/8 actions=output:2",
        "cookie=0x2, table=0, n_packets=0, n_bytes=0, priority=20,in_port=1,dl_vlan=5 actions=strip_vlan,output:3",
        "cookie=0x3, table=0, n_packets=0, n_bytes=0, priority=30,tcp,tp_dst=80 actions=mod_nw_dst:1.2.3.4,mod_tp_dst:8080,output:2",
        "cookie=0x4, table=0, n_packets=0, n_bytes=0, idle_timeout=60, priority=5,arp actions=FLOOD",
        "cookie=0x5, table=0, n_packets=0, n_bytes=0, priority=4,dl_src=00:00:00:00:00:01 actions=mod_vlan_vid:7,enqueue:2:0",
        "cookie=0x6, table=0, n_packets=0, n_bytes=0, priority=3 actions=CONTROLLER:64",
    ];
    assert_eq!(ofctl.flows(&[]), expected);
    assert_eq!(ofctl.flows(&["ip"]), [expected[0], expected[2]]);
    assert_eq!(ofctl.flows(&["out_port=3"]), [expected[1]]);
    let (aggregate, _) = ofctl.run(&["dump-aggregate", "ip"]);
    assert!(aggregate.contains("packet_count=1 byte_count=60 flow_count=2"), "{aggregate}");

    ofctl.run_silently(&["mod-flows", "ip,actions=output:3"]);
    ofctl.run_silently(&["del-flows", "priority=5,arp", "--strict"]);
    ofctl.run_silently(&["del-flows", "in_port=1"]);
    let cookies: Vec<String> =
        ofctl.flows(&[]).iter().map(|line| line.split(',').next().unwrap().to_owned()).collect();
    assert_eq!(cookies, ["cookie=0x0", "cookie=0x0", "cookie=0x5", "cookie=0x6"]);
    let (_, err) =
        ofctl.run(&["add-flow", "check_overlap,priority=10,ip,nw_src=10.1.0.0/16,actions=drop"]);
    assert!(err.contains("OFPFMFC_OVERLAP"), "{err}");

    let (shown, err) = ofctl.run(&["show"]);
    assert_eq!(err, "");
    for part in
        ["dpid:0000000000000001", "n_tables:4, n_buffers:256", "1(eth1): addr:0e:00:00:00:00:01"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let (ports, _) = ofctl.run(&["dump-ports", "1"]);
    assert!(ports.contains("rx pkts=1, bytes=60, drop=0"), "{ports}");
    let (desc, _) = ofctl.run(&["dump-desc"]);
    assert!(desc.contains("Manufacturer: Weir"), "{desc}");
    let (tables, _) = ofctl.run(&["dump-tables"]);
    assert!(tables.contains("classifier"), "{tables}");
    let (queues, _) = ofctl.run(&["queue-stats"]);
    assert!(queues.contains("3 queues"), "{queues}");
    ofctl.run_silently(&["mod-port", "2", "down"]);
    let (shown, _) = ofctl.run(&["show"]);
    assert!(shown.contains("PORT_DOWN"), "{shown}");
}

#[test]
fn switch_serves_ovs_ofctl_commands_over_openflow_13() {
    if !is_installed("ovs-ofctl", "switch_serves_ovs_ofctl_commands_over_openflow_13") {
        return;
    }
    let ofctl = Ofctl::new("OpenFlow13");
    ofctl.run_silently(&["add-group", "group_id=1,type=all,bucket=output:2,bucket=output:3"]);
    ofctl.run_silently(&[
        "add-group",
        "group_id=2,type=select,bucket=weight:1,output:2,bucket=weight:3,output:3",
    ]);
    ofctl.run_silently(&[
        "add-meter",
        "meter=1,kbps,burst,bands=type=drop,rate=1000,burst_size=100",
    ]);
    let rules = [
        "table=0,cookie=0x1,priority=10,udp,actions=write_metadata:0x5/0xff,goto_table:1",
        "table=1,cookie=0x2,priority=10,metadata=0x5/0xff,actions=meter:1,group:1",
        "table=1,cookie=0x3,priority=9,ipv6,ipv6_src=2001:db8::/32,actions=set_field:0x5->ipv6_label,output:2",
        "table=0,cookie=0x4,priority=8,vlan_vid=0x1005/0x1fff,actions=pop_vlan,push_mpls:0x8847,set_field:77->mpls_label,output:3",
        "table=0,cookie=0x5,priority=7,arp,arp_tpa=10.0.0.9,actions=write_actions(set_field:02:00:00:00:00:09->eth_dst,output:1)",
        "table=0,cookie=0x6,priority=0,send_flow_rem,actions=CONTROLLER:65535",
    ];
    for rule in rules {
        ofctl.run_silently(&["add-flow", rule]);
    }
    assert_eq!(
        ofctl.inject(0, common::path(1, 2).udp(1, 2, b"x")).reached(),
        [HostIndex(1), HostIndex(2)]
    );
    let expected = [
        "cookie=0x1, table=0, n_packets=1, n_bytes=60, priority=10,udp actions=write_metadata:0x5/0xff,goto_table:1",
        "cookie=0x2, table=1, n_packets=1, n_bytes=60, priority=10,metadata=0x5/0xff actions=meter:1,group:1",
        "cookie=0x3, table=1, n_packets=0, n_bytes=0, priority=9,ipv6,ipv6_src=2001:db8::/32 actions=set_field:0x5->ipv6_label,output:2",
        "cookie=0x4, table=0, n_packets=0, n_bytes=0, priority=8,dl_vlan=5 actions=pop_vlan,push_mpls:0x8847,set_field:77->mpls_label,output:3",
        "cookie=0x5, table=0, n_packets=0, n_bytes=0, priority=7,arp,arp_tpa=10.0.0.9 actions=write_actions(set_field:02:00:00:00:00:09->eth_dst,output:1)",
        "cookie=0x6, table=0, n_packets=0, n_bytes=0, send_flow_rem priority=0 actions=CONTROLLER:65535",
    ];
    assert_eq!(ofctl.flows(&[]), expected);
    assert_eq!(ofctl.flows(&["table=1"]), [expected[1], expected[2]]);
    assert_eq!(ofctl.flows(&["cookie=0x4/-1"]), [expected[3]]);

    let shows = |arguments: &[&str], parts: &[&str]| {
        let (out, err) = ofctl.run(arguments);
        assert_eq!(err, "", "{arguments:?}");
        for part in parts {
            assert!(out.contains(part), "{arguments:?}: {part:?} is not in:\n{out}");
        }
    };
    shows(
        &["dump-groups"],
        &[
            "group_id=1,type=all,bucket=actions=output:2,bucket=actions=output:3",
            "group_id=2,type=select,bucket=actions=output:2,bucket=weight:3,actions=output:3",
        ],
    );
    shows(
        &["dump-group-stats", "group_id=1"],
        &["group_id=1", "ref_count=1", "packet_count=1,byte_count=60"],
    );
    shows(&["dump-group-features"], &["Types:  0xf", "max_groups=0x1000"]);
    shows(&["dump-meters"], &["meter=1 kbps burst bands=", "type=drop rate=1000 burst_size=100"]);
    shows(&["meter-stats"], &["meter:1 flow_count:1 packet_in_count:1 byte_in_count:60"]);
    shows(&["meter-features"], &["max_bands:8"]);
    shows(&["dump-ports", "2"], &["tx pkts=1, bytes=60"]);
    shows(&["dump-ports-desc"], &["1(eth1): addr:0e:00:00:00:00:01", "speed: 10000 Mbps now"]);
    shows(&["dump-tables"], &["table 1", "active=2, lookup=1, matched=1"]);
    shows(&["dump-table-features"], &["table 0", "max_entries=1000000"]);
    shows(&["queue-stats"], &["3 queues", "port 2 queue 0: bytes=60, pkts=1"]);
    shows(&["queue-get-config", "2"], &["queue 0"]);
    shows(&["dump-desc"], &["Hardware: emulated switch"]);
    shows(&["get-frags"], &["normal"]);

    let (_, err) = ofctl.run(&["add-flow", "table=0,tcp,actions=group:77"]);
    assert!(err.contains("OFPBAC_BAD_OUT_GROUP"), "{err}");
    let (_, err) = ofctl.run(&["add-flow", "table=9,actions=drop"]);
    assert!(err.contains("OFPFMFC_BAD_TABLE_ID"), "{err}");
    ofctl.run_silently(&["del-groups", "group_id=1"]);
    assert_eq!(ofctl.flows(&["table=1"]), [expected[2]]);
    ofctl.run_silently(&["del-flows"]);
    assert_eq!(ofctl.flows(&[]), Vec::<String>::new());
}
