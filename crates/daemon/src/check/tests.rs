//! Tests of `check`: the remarks about overlapping and unreachable entries, shared ports, links, and incomplete
//! settings of a configuration, and the text of the report.

use super::*;

/// Parses tenants in a short form: each tenant is `name: entries`, each entry `match @ priority [on dpids] [read]`.
fn config(tenants: &[(&str, &[&str])]) -> Config {
    Config::parse("weir.toml", &text(tenants)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn text(tenants: &[(&str, &[&str])]) -> String {
    let mut text = String::new();
    for (i, (name, entries)) in tenants.iter().enumerate() {
        text += &format!(
            "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"tcp:127.0.0.1:{}\"]\n",
            6701 + i
        );
        for entry in *entries {
            let (entry, permission) =
                entry.strip_suffix(" read").map_or((*entry, "write"), |rest| (rest, "read"));
            let (entry, switches) = entry.split_once(" on ").unwrap_or((entry, "any"));
            let (match_, priority) = entry.split_once(" @ ").unwrap_or((entry, "100"));
            let switches = switches.replace(' ', "\", \"");
            text +=
                &format!("[[tenants.flowspace]]\nmatch = \"{match_}\"\npriority = {priority}\n");
            text += &format!("switches = [\"{switches}\"]\npermission = \"{permission}\"\n");
        }
    }
    text
}

/// The initial of the severity, the tenant and the topic of each remark. Remarks about shared ports are left out: most
/// slices share ports, and another test checks these remarks.
fn topics(report: &Report) -> Vec<(char, &str, Topic)> {
    let initial = |severity| if severity == Severity::Finding { 'F' } else { 'N' };
    let remarks = report.remarks.iter().filter(|it| it.topic != Topic::SharedPort);
    remarks.map(|r| (initial(r.severity), r.tenant.as_str(), r.topic)).collect()
}

type Case<'a> = (&'a [(&'a str, &'a [&'a str])], &'a [(char, &'a str, Topic)]);

#[test]
fn overlapping_unreachable_and_read_only_entries_are_reported() {
    use Topic::{EqualPriority, OpenFlow10, Overlap, ReadOnly, Unreachable};
    let cases: &[Case<'_>] = &[
        (&[("a", &["ip,nw_src=10.1.0.0/16"]), ("b", &["ip,nw_src=10.2.0.0/16"])], &[]),
        // With equal priority, the first entry in the file has precedence, and the remark is for the tenant of the
        // second entry.
        (
            &[("a", &["ip,nw_src=10.1.0.0/16"]), ("b", &["ip,nw_dst=10.1.0.0/16"])],
            &[('F', "b", EqualPriority)],
        ),
        // With different priorities, the remark is for the tenant with the lower priority, in any order of the entries.
        (&[("a", &["ip @ 5"]), ("b", &["ip,nw_src=10.0.0.0/8 @ 10"])], &[('N', "a", Overlap)]),
        (
            &[("a", &["ip @ 10"]), ("b", &["tcp,tp_dst=80 @ 5"])],
            &[('N', "b", Overlap), ('F', "b", Unreachable)],
        ),
        // Two entries of higher priority cover the whole entry.
        (
            &[("a", &["ip,nw_src=0.0.0.0/1 @ 9", "ip,nw_src=128.0.0.0/1 @ 8"]), ("b", &["ip @ 5"])],
            &[('N', "b", Overlap), ('N', "b", Overlap), ('F', "b", Unreachable)],
        ),
        // Two entries of higher priority leave a gap, so the third entry is reachable.
        (
            &[("a", &["ip,nw_src=0.0.0.0/1 @ 9", "ip,nw_src=128.0.0.0/2 @ 8"]), ("b", &["ip @ 5"])],
            &[('N', "b", Overlap), ('N', "b", Overlap)],
        ),
        // Entries on different switches do not overlap. An entry is reachable if one of its switches has no entry of
        // higher priority.
        (&[("a", &["ip on 1 2"]), ("b", &["ip on 3"])], &[]),
        (&[("a", &["ip @ 9 on 1 2"]), ("b", &["ip on 2 3"])], &[('N', "a", Overlap)]),
        (
            &[("a", &["ip @ 200 on 1 2"]), ("b", &["ip on 2 1"])],
            &[('N', "b", Overlap), ('F', "b", Unreachable)],
        ),
        (&[("a", &["ip @ 200 on 1"]), ("b", &["ip"])], &[('N', "b", Overlap)]),
        // An overlap of entries of one tenant gives no remark, but an unreachable entry gives a finding.
        (&[("a", &["ip @ 10", "tcp @ 20"])], &[]),
        (&[("a", &["ip @ 20", "tcp @ 10"])], &[('F', "a", Unreachable)]),
        // A read entry of higher priority does not change the owner of packets, and gives no remark about an overlap.
        (&[("a", &["ip"]), ("b", &["ip @ 900 read"])], &[('N', "b", ReadOnly)]),
        (&[("a", &["ip,dl_src=00:00:00:00:00:01/00:00:00:00:00:ff"])], &[('N', "a", OpenFlow10)]),
        (&[("a", &["ipv6,ipv6_src=2001:db8::/32"])], &[('N', "a", OpenFlow10)]),
    ];
    for (tenants, expected) in cases {
        let report = check(&config(tenants));
        assert_eq!(topics(&report), *expected, "{tenants:?}\n{report}");
    }
}

#[test]
fn the_note_that_pins_need_a_state_folder_is_given_once() {
    let text = "[[switches]]\ndpid = \"1\"\n[[switches]]\ndpid = \"2\"\ncertificate = \"pin\"\n\
                [[switches]]\ndpid = \"3\"\ncertificate = \"pin\"\n";
    let report = check(&Config::parse("weir.toml", text).unwrap());
    let expected = [('F', "", Topic::Incomplete), ('N', "", Topic::Pin)];
    assert_eq!(topics(&report), expected, "{report}");
    assert!(report.remarks[1].line == 3 && report.to_string().contains("--state"), "{report}");
}

#[test]
fn missing_tls_files_open_rest_and_incomplete_tenants_are_reported() {
    let text = "[listen]\napi = \"127.0.0.1:8080\"\napi_changes = \"loopback\"\n[tls]\nprivate_key = \"/nonexistent/k\"\ncertificate = \"/dev/null\"\n\
                switch_ca = \"/dev/null\"\ncontroller_ca = \"/dev/zero\"\n[[tenants]]\nname = \"a\"\n[[tenants]]\nname = \"b\"\n\
                controllers = [\"ssl:1.2.3.4:5\", \"ssl:1.2.3.4:5\"]\n[[tenants.flowspace]]\nmatch = \"\"\n\
                [[tenants]]\nname = \"c\"\ncontrollers = [\"ssl:1.2.3.4:5\"]\n[[tenants.flowspace]]\nmatch = \"ip\"\n\
                priority = 200\n";
    let report = check(&Config::parse("weir.toml", text).unwrap());
    assert_eq!(
        topics(&report),
        [
            ('N', "", Topic::OpenApi),
            ('F', "", Topic::TlsFile),
            ('F', "a", Topic::Incomplete),
            ('F', "a", Topic::Incomplete),
            ('F', "b", Topic::SharedController),
            ('N', "b", Topic::Overlap),
            ('N', "c", Topic::SharedController),
        ],
        "{report}"
    );
}

#[test]
fn accounts_of_unknown_tenants_and_missing_rest_tls_files_are_reported() {
    let text = "[listen]\napi = [\"127.0.0.1:8080\", \"ssl:0.0.0.0:8443\"]\napi_changes = \"loopback\"\n\
                [api]\nprivate_key = \"/nonexistent/k\"\ncertificate = \"/dev/null\"\nclient_ca = \"/dev/null\"\n\
                loopback = \"accounts\"\ncertificates = [{ certificate = \"name:a\", role = \"tenant\", tenant = \"a\" },\n\
                { certificate = \"name:b\", role = \"tenant\", tenant = \"b\" }]\n\
                [[tenants]]\nname = \"a\"\ncontrollers = [\"1.2.3.4:5\"]\n[[tenants.flowspace]]\nmatch = \"\"\n";
    let report = check(&Config::parse("weir.toml", text).unwrap());
    let expected =
        [('N', "", Topic::OpenApi), ('F', "", Topic::Account), ('F', "", Topic::TlsFile)];
    assert_eq!(topics(&report), expected, "{report}");
}

#[test]
fn a_file_without_tenants_is_a_finding() {
    for text in ["", "[listen]\nopenflow = \"127.0.0.1:6653\"\n"] {
        let report = check(&Config::parse("weir.toml", text).unwrap());
        assert_eq!(topics(&report), [('F', "", Topic::Incomplete)], "{report}");
        assert!(report.to_string().contains("there is no tenant"), "{report}");
    }
}

#[test]
fn a_remark_that_concerns_many_tenants_is_given_once() {
    let mut text = String::new();
    for number in 0..2000 {
        text += &format!(
            "[[tenants]]\nname = \"t{number}\"\ncontrollers = [\"tcp:127.0.0.1:6701\"]\n\
             [[tenants.flowspace]]\nmatch = \"ipv6,ipv6_src=2001:db8::{number:x}\"\n"
        );
    }
    let report = check(&Config::parse("weir.toml", &text).unwrap());
    let shared = report.remarks.iter().filter(|it| it.topic == Topic::SharedController);
    let shared: Vec<_> = shared.map(|it| (it.tenant.as_str(), it.message.as_str())).collect();
    let words = "shares its controller tcp:127.0.0.1:6701 with \"t0\", \"t2\", \"t3\", \"t4\", \"t5\", 1994 others";
    assert_eq!(shared, [("t1", words)]);
    let shared = report.remarks.iter().filter(|it| it.topic == Topic::SharedPort);
    assert_eq!(shared.map(|it| it.tenant.as_str()).collect::<Vec<_>>(), ["t1"]);
    // The list of remarks has all 2,000 entries that OpenFlow 1.0 cannot match. The text has only 20 of these remarks.
    assert_eq!(report.remarks.len(), 2002);
    let text = report.to_string();
    assert_eq!(text.lines().count(), 1 + 1 + 20 + 1 + 1, "{text}");
    assert!(text.contains("and 1980 more notes of these kinds"), "{text}");
    assert!(text.ends_with("0 findings, 2002 notes"), "{text}");
}

#[test]
fn port_slices_that_cannot_use_links_between_switches_are_reported() {
    let link = "[topology]\nlinks = [{ between = [\"1 port 9\", \"2 port 9\"] }]\n";
    let ring = "[topology]\nlinks = [{ between = [\"1 port 9\", \"2 port 9\"] }, \
                { between = [\"2 port 8\", \"3 port 8\"] }, { between = [\"3 port 7\", \"1 port 7\"] }]\n";
    for (topology, entries, expected) in [
        // The configuration does not declare links.
        ("", &["in_port=3 on 1 2"][..], &[('N', "a", Topic::Trunk)][..]),
        ("", &["in_port=3 on 1", "in_port=4 on 2"], &[('N', "a", Topic::Trunk)]),
        ("", &["in_port=3 on 1"], &[]),
        ("", &["in_port=3"], &[]),
        ("", &["in_port=3 on 1 2", "ip on 1"], &[]),
        // The configuration declares a link between the ports 9 of switches 1 and 2.
        (link, &["in_port=3 on 1 2"], &[('F', "a", Topic::Trunk)]),
        (link, &["in_port=3"], &[('F', "a", Topic::Trunk)]),
        (link, &["in_port=3", "in_port=9 on 1"], &[('F', "a", Topic::Trunk)]),
        (link, &["in_port=3", "in_port=9"], &[]),
        (link, &["in_port=3,ip on 1", "in_port=9,ip on 1 2"], &[]),
        (link, &["in_port=3 on 1"], &[]),
        (link, &["ip"], &[]),
        // The first slice has only the ports of the link between switches 1 and 2. The second slice also has the ports
        // of a link to switch 3.
        (ring, &["in_port=3", "in_port=9 on 1 2"], &[('F', "a", Topic::Trunk)]),
        (ring, &["in_port=3", "in_port=9 on 1 2", "in_port=8 on 2 3"], &[]),
    ] {
        let text = format!("{topology}{}", text(&[("a", entries)]));
        let report = check(&Config::parse("weir.toml", &text).unwrap());
        assert_eq!(topics(&report), *expected, "{entries:?}\n{report}");
        let names_ports = report.to_string().contains("the ports of a link between them, are not");
        assert_eq!(names_ports, expected.first().is_some_and(|it| it.0 == 'F'), "{report}");
    }
}

/// The section `[limits]`, the tenants, and the tenant and a part of the text of each expected remark.
type SharingCase<'a> = (&'a str, &'a [(&'a str, &'a [&'a str])], &'a [(&'a str, &'a str)]);

#[test]
fn ports_shared_by_slices_are_reported_with_the_tenants_that_see_counters() {
    const ONE: &str = "00:00:00:00:00:00:00:01";
    let three = |whom: &str, seeing: &str| {
        format!("port 3 of {ONE} with {whom}: the port counters of the switch show {seeing} how")
    };
    let every = "every port of every switch with \"a\": the";
    let hidden = "[limits]\nshared_port_counters = \"unsupported\"\n";
    let cases: &[SharingCase<'_>] = &[
        ("", &[("a", &["in_port=3"]), ("b", &["in_port=4"])], &[]),
        ("", &[("a", &["in_port=3 on 1"]), ("b", &["in_port=3 on 2"])], &[]),
        ("", &[("a", &["in_port=3", "in_port=3,ip"])], &[]),
        // A tenant with a read entry sends no packets.
        ("", &[("a", &["in_port=3"]), ("b", &["in_port=3 read"])], &[]),
        (
            "",
            &[("a", &["ip,nw_src=10.1.0.0/16"]), ("b", &["ip,nw_src=10.2.0.0/16"])],
            &[("b", every)],
        ),
        (hidden, &[("a", &["ip,nw_src=10.1.0.0/16"]), ("b", &["ip,nw_src=10.2.0.0/16"])], &[]),
        (
            "",
            &[("a", &["in_port=3,ip on 1 2"]), ("b", &["in_port=3,arp on 1 3"])],
            &[("b", &three("\"a\"", "\"a\", \"b\""))],
        ),
        // One of the two tenants has every port, on one switch or on all switches.
        (
            "",
            &[("a", &["in_port=3"]), ("b", &["ip on 1"])],
            &[("b", &three("\"a\"", "\"a\", \"b\""))],
        ),
        (
            "",
            &[("a", &["ip"]), ("b", &["in_port=3 on 1"])],
            &[("b", &three("\"a\"", "\"a\", \"b\""))],
        ),
        // Two tenants share every port, and a third tenant shares port 3 with both.
        (
            "",
            &[("a", &["tcp"]), ("b", &["udp"]), ("c", &["in_port=3 on 1"])],
            &[("b", every), ("b", &three("\"a\", \"c\"", "\"a\", \"b\", \"c\""))],
        ),
    ];
    for (limits, tenants, expected) in cases {
        let report =
            check(&Config::parse("weir.toml", &format!("{limits}{}", text(tenants))).unwrap());
        let shared: Vec<&Remark> =
            report.remarks.iter().filter(|it| it.topic == Topic::SharedPort).collect();
        assert_eq!(shared.len(), expected.len(), "{tenants:?}\n{report}");
        for (remark, (tenant, says)) in shared.iter().zip(*expected) {
            assert_eq!((remark.severity, remark.tenant.as_str()), (Severity::Note, *tenant));
            assert!(remark.message.contains(says), "{says}\n{report}");
        }
    }
    // The key `shared_port_counters` of a tenant takes precedence over the key in `[limits]`.
    let one = text(&[("a", &["in_port=3"]), ("b", &["in_port=3"])]);
    let one = format!("{hidden}{one}[tenants.limits]\nshared_port_counters = \"switch\"\n");
    let report = check(&Config::parse("weir.toml", &one).unwrap()).to_string();
    assert!(report.contains("of the switch show \"b\" how much"), "{report}");
}

#[test]
fn an_unreadable_agent_key_and_unmeasured_interfaces_are_reported() {
    let text = "[agents]\nlisten = \"127.0.0.1:6641\"\nkey = \"/nowhere/edge.key\"\nservers = [\"a\", \"b\"]\n\
                [[tenants]]\nname = \"red\"\ncontrollers = [\"tcp:127.0.0.1:6701\"]\n\
                [[tenants.flowspace]]\nmatch = \"\"\n\
                [[tenants.vnics]]\nport = \"1 port 1\"\nmac = \"02:00:00:00:00:01\"\nbandwidth = \"1Mbit\"\n\
                [[tenants.vnics]]\nport = \"1 port 2\"\nmac = \"02:00:00:00:00:02\"\nbandwidth = \"1Mbit\"\n\
                agent = \"b\"\n";
    let report = check(&Config::parse("weir.toml", text).unwrap());
    assert_eq!(
        topics(&report),
        [('F', "", Topic::Agents), ('N', "red", Topic::Agents)],
        "{report}"
    );
    let text = report.to_string();
    for says in [
        "cannot read [agents] key /nowhere/edge.key",
        "weir.toml:10:1: note: red: virtual interface 02:00:00:00:00:01: it names none of 2 agents",
    ] {
        assert!(text.contains(says), "{text}");
    }
}

#[test]
fn a_network_with_local_ports_is_placed_without_findings() {
    let check = |at: &str, end: &str| {
        let text = format!(
            "[topology]\nlinks = [{{ between = [\"1 port 2\", \"2 port 2\"] }}]\n\
             [[tenants]]\nname = \"red\"\ncontrollers = [\"tcp:127.0.0.1:6701\"]\n[tenants.network]\n\
             [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
             [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\n\
             [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = \"LOCAL\"\nat = \"{at}\"\n\
             [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port {end}\"]\n"
        );
        check(&Config::parse("weir.toml", &text).unwrap_or_else(|errors| panic!("{errors}")))
    };
    for at in ["1 port LOCAL", "1 port 7"] {
        let report = check(at, "local");
        assert!(report.remarks.iter().all(|it| it.severity == Severity::Note), "{report}");
        let link =
            "link 00:00:00:00:00:00:00:a1 port 2 - 00:00:00:00:00:00:00:a2 port LOCAL goes by";
        assert!(report.to_string().contains(link), "{report}");
    }
}

#[test]
fn links_and_port_speeds_that_only_switches_know_give_no_finding() {
    const ELSEWHERE: &str = "between = [\"7 port 1\", \"8 port 1\"]";
    const THERE: &str = "between = [\"1 port 2\", \"2 port 2\"]";
    for (topology, link, bandwidth, is_finding, says) in [
        // A link between other switches is declared. With discovery, probes may find a link between switches 1 and 2.
        ("", ELSEWHERE, "1Mbit", true, "there is no path"),
        ("discovery = true\n", ELSEWHERE, "1Mbit", false, "others may be found"),
        // Ports whose bandwidth is not declared may be faster than the assumed 1 Gbit/s, so a faster link gives no
        // finding.
        (
            "",
            THERE,
            "5Gbit",
            false,
            "if the ports of links whose bandwidth is not declared do 1 Gbit",
        ),
        ("", THERE, "900Mbit", false, " goes by "),
        ("bandwidth = \"1Gbit\"\n", THERE, "5Gbit", true, "only 1Gbit left"),
        ("", &format!("{THERE}, bandwidth = \"1Gbit\""), "5Gbit", true, "only 1Gbit left"),
        ("", &format!("{THERE}, bandwidth = \"9Gbit\""), "5Gbit", false, " goes by "),
    ] {
        let text = format!(
            "[topology]\n{topology}links = [{{ {link} }}]\n\
             [[tenants]]\nname = \"red\"\ncontrollers = [\"tcp:127.0.0.1:6701\"]\n[tenants.network]\n\
             [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
             [[tenants.network.switches]]\ndpid = \"0xa2\"\non = \"2\"\n\
             [[tenants.network.links]]\nbetween = [\"0xa1 port 2\", \"0xa2 port 2\"]\nbandwidth = \"{bandwidth}\"\n"
        );
        let config = Config::parse("weir.toml", &text);
        let report = check(&config.unwrap_or_else(|errors| panic!("{errors}")));
        assert_eq!(report.findings(), usize::from(is_finding), "{report}");
        assert!(report.to_string().contains(says), "{report}");
    }
}

#[test]
fn a_switch_with_more_ports_than_openflow_1_0_can_list_gets_a_note() {
    for (ports, is_noted) in [(1364, false), (1365, true)] {
        let mut text = "[[tenants]]\nname = \"red\"\ncontrollers = [\"tcp:127.0.0.1:6701\"]\n[tenants.network]\n\
                        [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n"
            .to_owned();
        for number in 1..=ports {
            text.push_str(&format!(
                "[[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = {number}\nat = \"1 port {number}\"\n"
            ));
        }
        let config = Config::parse("weir.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
        let report = check(&config).to_string();
        let note = format!("note: red: {ports} ports: where its switches speak OpenFlow 1.0");
        assert_eq!(report.contains(&note), is_noted, "{report}");
    }
}

#[test]
fn the_report_has_the_expected_text_and_json() {
    let report =
        check(&config(&[("red", &["ip,nw_src=10.1.0.0/16"]), ("blue", &["ip @ 100", "arp read"])]));
    let expected = "\
weir.toml:9:1: note: blue: shares every port of every switch with \"red\": the port counters of the switch show \"red\", \"blue\" how much the others send; [limits] shared_port_counters = \"unsupported\" hides them
weir.toml:12:1: finding: blue: overlaps \"red\" in line 4 (ip,nw_src=10.1.0.0/16, priority 100), which owns what both match (ip,nw_src=10.1.0.0/16) only by its place in the file: give one a higher priority
weir.toml:17:1: note: blue: read-only, and no other tenant owns what it matches
weir.toml: 2 tenants, 3 flowspace entries: 1 finding, 2 notes";
    assert_eq!(report.to_string(), expected);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["remarks"][1]["topic"], "equal-priority");
    assert_eq!(json["remarks"][1]["severity"], "finding");
    assert_eq!(json["remarks"][1]["line"], 12);
}

#[test]
fn many_overlaps_are_counted_but_only_a_maximum_is_listed() {
    let everything: Vec<(String, [&str; 1])> = (0..40).map(|i| (format!("t{i}"), [""])).collect();
    let tenants: Vec<(&str, &[&str])> =
        everything.iter().map(|(name, entries)| (name.as_str(), &entries[..])).collect();
    let report = check(&config(&tenants));
    let listed =
        report.remarks.iter().filter(|remark| remark.topic == Topic::EqualPriority).count();
    assert_eq!(listed, MAX_OVERLAPS);
    assert_eq!(listed + report.overlaps_left_off, 40 * 39 / 2);
    assert!(report.to_string().contains("and 580 more overlaps"));
}

#[test]
fn tenants_with_permitted_experimenters_get_a_note() {
    let text = |experimenters: &str| {
        format!(
            "[[tenants]]\nname = \"a\"\ncontrollers = [\"tcp:127.0.0.1:6701\"]\n\
             [tenants.limits]\nexperimenters = [{experimenters}]\n\
             [[tenants.flowspace]]\nmatch = \"\"\n"
        )
    };
    let of = |text: &str| check(&Config::parse("weir.toml", text).unwrap());
    let report = of(&text("\"0x2320\", \"0x4f4e4600\""));
    assert_eq!(topics(&report), [('N', "a", Topic::Experimenters)]);
    assert!(report.remarks[0].message.contains("0x00002320, 0x4f4e4600"), "{report:?}");
    assert_eq!(topics(&of(&text(""))), []);
}
