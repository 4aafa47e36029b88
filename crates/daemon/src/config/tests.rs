//! Tests of reading configurations: correct files, and the position and text of each error in wrong files.

use std::time::Duration;

use channel::CertificateName;
use hypervisor::policy::{Limits, Permission, PortCounters, Rate, Statistics, Switches, TenantId};

use super::{Api, Certificate, Config, Diagnostics, Listen, Scheduler, Socket};
use crate::store::Sync;

fn parse(text: &str) -> Result<Config, Diagnostics> {
    Config::parse("etc/weir.toml", text)
}

#[test]
fn an_empty_configuration_file_gives_the_defaults() {
    let config = parse("").unwrap();
    assert_eq!((&config.listen, config.listen.unlisted), (&Listen::default(), 1_024));
    assert_eq!(config.listen.openflow[0].to_string(), "tcp:127.0.0.1:6653");
    assert_eq!(config.listen.api, Api::default());
    assert_eq!(config.listen.api.tcp.unwrap().to_string(), "127.0.0.1:8080");
    assert!(!config.listen.api.tcp_changes);
    let scheduler = Scheduler {
        tenant_backlog: 256,
        controller_buffer: 1 << 20,
        controller_buffer_limit: 8 << 20,
        switch_buffer: 256 << 10,
        reply_timeout: Duration::from_secs(10),
    };
    assert_eq!(config.scheduler, scheduler);
    assert_eq!((config.access.requests, config.access.subscribers), (100, 64));
    assert_eq!(config.store.sync, Sync::Every(Duration::from_millis(100)));
    assert!(config.tls.is_none() && config.tenants.is_empty());
}

/// A limit that a tenant does not set has the value in `[limits]`. `[limits]` may be anywhere in the file.
#[test]
fn limits_of_a_tenant_override_the_common_limits() {
    let text = "[[tenants]]\nname = \"a\"\n[[tenants]]\nname = \"b\"\n\
        limits = { entries = 7, flow_mod = 9, state_bytes = 5 }\n\
        [limits]\nstate_bytes = 8\nentries = 50\nflows = 40\ngroups = 12\nmeters = 3\nstatistics = { rate = 30, burst = 2 }\nflow_mod = 20\n";
    let config = parse(text).unwrap();
    let rate = |per_second, burst| Some(Rate { per_second, burst });
    let common = Limits {
        flows: 40,
        entries: 50,
        groups: 12,
        meters: 3,
        statistics: rate(30, 2),
        flow_mod: rate(20, 2),
        ..Limits::default()
    };
    assert_eq!(config.tenants[0].limits, common);
    let own = Limits { entries: 7, flow_mod: rate(9, 1), ..common };
    assert_eq!(config.tenants[1].limits, own);
    assert_eq!((config.tenants[0].state_bytes, config.tenants[1].state_bytes), (8, 5));
    let wrong = parse("[limits]\nqueues = [1]\nentries = -1\n").unwrap_err().to_string();
    assert!(wrong.contains("queues") && wrong.contains("entries"), "{wrong}");
}

#[test]
fn a_data_sheet_applies_to_every_switch_or_to_a_single_switch() {
    let folder = std::env::temp_dir().join(format!("weir-sheets-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, rate) in [("all.json", 500), ("one.json", 100)] {
        let text = format!(
            "{{ \"schema\": 2, \"measured\": \"\", \"switch\": {{}}, \"safe_rates\": {{ \"echo\": {rate} }} }}"
        );
        std::fs::write(folder.join(name), text).unwrap();
    }
    let file = folder.join("weir.toml").display().to_string();
    let parse = |text: &str| Config::parse(&file, text);
    let file_of = |sheet: Option<&std::sync::Arc<hypervisor::sheet::Sheet>>| {
        let path = std::path::PathBuf::from(&sheet?.file);
        Some(path.file_name()?.to_str()?.to_owned())
    };
    let config = parse("[switches]\ndatasheet = \"all.json\"\n").unwrap();
    assert!(config.switches.is_empty() && config.listen.unlisted > 0, "any switch may come");
    let policy = config.policy(&[]);
    assert_eq!(file_of(policy.sheet(1)).as_deref(), Some("all.json"));
    let text = "[[switches]]\ndpid = \"any\"\ndatasheet = \"all.json\"\n[[switches]]\ndpid = \"1\"\n\
        datasheet = \"one.json\"\n[[switches]]\ndpid = \"2\"\n";
    let config = parse(text).unwrap();
    assert_eq!((config.switches.len(), config.listen.unlisted), (2, 0));
    let policy = config.policy(&[]);
    assert_eq!(file_of(policy.sheet(1)).as_deref(), Some("one.json"));
    assert_eq!(file_of(policy.sheet(2)).as_deref(), Some("all.json"));
    let said = crate::check::check(&config).to_string();
    assert_eq!(said.matches("limits come from the data sheet").count(), 2, "{said}");
    assert!(said.contains("is of another datapath id and has no description"), "{said}");
    for (text, error) in [
        ("[switches]\ndatasheet = \"none.json\"\n", "none.json cannot be read"),
        ("[switches]\ndatasheet = 7\n", "expected a string"),
        ("[switches]\nsheet = \"all.json\"\n", "unknown key `sheet`"),
        ("[[switches]]\ndpid = \"any\"\n", "`datasheet` is missing"),
        (
            "[[switches]]\ndpid = \"any\"\nname = \"x\"\ndatasheet = \"all.json\"\n",
            "unknown key `name`",
        ),
        (
            "[[switches]]\ndpid = \"any\"\ndatasheet = \"all.json\"\n[[switches]]\ndpid = \"any\"\ndatasheet = \"one.json\"\n",
            "there is another entry for any switch",
        ),
    ] {
        let message = parse(text).unwrap_err().to_string();
        assert!(message.contains(error), "{text}: {message}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn by_default_the_rest_socket_accepts_changes_and_tcp_is_read_only() {
    let by_default =
        |text: &str| parse(text).unwrap_or_else(|errors| panic!("{errors}")).listen.api;
    for text in
        ["", "[listen]\nopenflow = \"127.0.0.1:1\"\n", "[listen]\napi_changes = \"socket\"\n"]
    {
        let api = by_default(text);
        assert_eq!(api.socket, Some(Socket::Possible("/run/weir/api.sock".into())), "{text}");
        assert_eq!(api.tcp, Some(([127, 0, 0, 1], 8080).into()), "{text}");
        assert_eq!((api.tls, api.tcp_changes), (None, false), "{text}");
    }
    // With only a TCP address in the file, no socket is created, and TCP stays read-only.
    let api = by_default("[listen]\napi = \"127.0.0.1:1\"\n");
    assert_eq!((api.socket, api.tcp_changes), (None, false));
}

/// The example in docs/configuration.md is a whole file. The file must be valid, and have the expected values.
#[test]
fn the_documented_example_configuration_is_read() {
    let page = include_str!("../../../../docs/configuration.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let config = parse(example).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((config.listen.openflow.len(), config.listen.unlisted), (2, 0));
    let api = &config.listen.api;
    assert_eq!(api.socket, Some(Socket::Wanted("/run/weir/api.sock".into())));
    assert_eq!((api.tcp.unwrap().port(), api.tcp_changes), (8080, false));
    assert_eq!(config.switches[0].name.as_deref(), Some("edge-1"));
    assert_eq!(config.switches[0].address, Some([10, 0, 0, 11].into()));
    let tls = config.tls.unwrap();
    assert_eq!(tls.switch_ca.unwrap().to_str(), Some("etc/pki/switchca/cacert.pem"));
    assert_eq!(tls.controller_ca.unwrap().to_str(), Some("etc/pki/controllerca/cacert.pem"));
    let name = CertificateName::Name("edge-1".to_owned());
    assert_eq!(config.switches[0].certificate, Some(Certificate::Is(name)));
    assert_eq!(config.keepalive.interval, Duration::from_secs(5));
    assert_eq!(config.reconnect.max, Duration::from_secs(10));
    let [red, blue, green] = config.tenants.as_slice() else { panic!("three tenants") };
    assert_eq!(green.network.as_ref().unwrap().spec.switches[1].members.len(), 1);
    assert_eq!((red.name.as_str(), red.weight, red.controllers.len()), ("red", 2, 2));
    let rate = |per_second, burst| Some(Rate { per_second, burst });
    assert_eq!(
        red.limits,
        Limits {
            flows: 2_000,
            entries: 5_000,
            groups: 200,
            meters: 20,
            packet_out: rate(5_000, 500),
            flow_mod: rate(1_000, 50),
            statistics: rate(100, 10),
            packet_in: rate(20_000, 2_000),
            state_changes: Rate { per_second: 10_000, burst: 20_000 },
            shared_port_counters: PortCounters::Unsupported,
        }
    );
    assert_eq!((red.state_bytes, blue.state_bytes), (64 << 20, 256 << 20));
    assert_eq!((&red.queues[..], &red.experimenters[..]), (&[1, 2][..], &[0x2320][..]));
    assert_eq!(red.statistics, Statistics::Cached { max_age: 1_000_000_000 });
    assert_eq!(red.flowspace[0].switches, Switches::Only(vec![1, 2]));
    assert_eq!((red.flowspace[1].priority, red.flowspace[1].permission), (10, Permission::Read));
    assert_eq!(
        (blue.weight, blue.limits, blue.statistics),
        (1, Limits::default(), Statistics::Passthrough)
    );
    assert_eq!(blue.flowspace[0].priority, 100);
}

#[test]
fn the_policy_has_the_given_tenant_ids() {
    let config = parse(
        "[[tenants]]\nname = \"a\"\n[[tenants]]\nname = \"b\"\n[[tenants.flowspace]]\nmatch = \"ip\"\npriority = 7\n",
    )
    .unwrap();
    let policy = config.policy(&[TenantId(5), TenantId(2)]);
    let named: Vec<_> =
        policy.tenants.iter().map(|tenant| (tenant.id.0, tenant.name.as_str())).collect();
    assert_eq!(named, [(5, "a"), (2, "b")]);
    let entry = &policy.tenants[1].flowspace[0];
    assert_eq!((entry.priority, entry.match_.to_string().as_str()), (7, "ip"));
}

/// Each entry is a wrong file and the beginnings of all its errors, in order: `line:column: key: message` with the
/// help.
const WRONG: &[(&str, &[&str])] = &[
    (
        "[listen]\nopenflw = \"127.0.0.1:1\"",
        &["2:1: listen: unknown key `openflw` (did you mean `openflow`?)"],
    ),
    ("[lissten]", &["1:2: unknown key `lissten` (did you mean `listen`?)"]),
    (
        "[zzz]\nx = 1",
        &[
            "1:2: unknown key `zzz` (known keys here: tls, agents, limits, switches, api, listen, scheduler, keepalive, reconnect, store, topology, labels, tenants)",
        ],
    ),
    ("[listen\n", &["1:8: unclosed table, expected `]`"]),
    (
        "a = 1\na = 2\nb == 3",
        &["2:1: duplicate key", "3:4: extra `=`, expected nothing", "3:6: unexpected key"],
    ),
    (
        "[listen]\nopenflow = \"host:1\"",
        &["2:12: listen.openflow: address \"host:1\": the host must be an IP address"],
    ),
    ("[listen]\nopenflow = []", &["2:12: listen.openflow: at least one address is needed"]),
    (
        "[listen]\nopenflow = [\"127.0.0.1:1\", 5]",
        &["2:28: listen.openflow[1]: expected a string, found an integer"],
    ),
    (
        "[[switches]]\ndpid = \"1\"\n[[switches]]\ndpid = \"0x1\"\naddress = \"here\"",
        &[
            "4:8: switches[1].dpid: there is another switch 00:00:00:00:00:00:00:01 (the first stands in line 2)",
            "5:11: switches[1].address: invalid IP address syntax",
        ],
    ),
    ("[[switches]]\nname = \"a\"", &["1:1: switches[0]: `dpid` is missing"]),
    ("[listen]\nunlisted = 65537", &["2:12: listen.unlisted: 65537 is out of range"]),
    (
        "[listen]\napi = [\"off\", \"0.0.0.0:8080\"]\napi_changes = \"everywhere\"",
        &[
            "2:15: listen.api[1]: off the loopback the REST interface needs TLS and accounts (write \"ssl:0.0.0.0:8080\", with private_key and certificate in [api], and make accounts with `weir ctl token create`)",
            "3:15: listen.api_changes: unknown value \"everywhere\" (it must be \"socket\" or \"loopback\")",
        ],
    ),
    (
        "[listen]\napi = [\"ssl:0.0.0.0:8443\", \"ssl:8443\"]",
        &[
            "2:8: listen.api[0]: an ssl: address needs a certificate (add a section [api] with private_key and certificate)",
            "2:28: listen.api[1]: bad address \"ssl:8443\" (expected ssl:IP:PORT, such as \"ssl:0.0.0.0:8443\")",
        ],
    ),
    (
        "[api]\ncertificate = \"c\"\nclient_ca = \"ca\"\nhosts = [\"weir:1\"]\nloopback = \"closed\"\nrequests = 0\n\
        certificates = [{ certificate = \"alice\", role = \"king\" }, { certificate = \"name:a\", role = \"tenant\" }, \
        { certificate = \"name:a\", role = \"admin\", tenant = \"red\" }]",
        &[
            "2:15: api.certificate: a certificate without its private key (add private_key = \"api-privkey.pem\")",
            "3:13: api.client_ca: certificates are shown over TLS alone (add private_key and certificate)",
            "4:10: api.hosts[0]: this is no host name (a name without a port, such as \"weir.example\")",
            "5:12: api.loopback: unknown value \"closed\" (it must be \"open\" or \"accounts\")",
            "6:12: api.requests: 0 is out of range (it must be between 1 and 1000000)",
            "7:16: api.certificates: nobody says which certificates are genuine (add client_ca = \"clients-ca.pem\", who signs for them)",
            "7:33: api.certificates[0].certificate: expected \"name:NAME\" or \"sha256:\" and 64 hexadecimal digits",
            "7:49: api.certificates[0].role: expected admin, operator, tenant or metrics",
            "7:92: api.certificates[1].role: the role tenant needs the name of a tenant",
            "7:137: api.certificates[2].role: only the role tenant takes the name of a tenant",
        ],
    ),
    (
        "[[tenants]]\nname = \"a\"\nmaxima = { switches = 0, ports = -1, bandwidth = \"0bit\", flows = 1, edges = [\"1\", \"x\", \"1 port x\"] }\n\
        [tenants.network]\n[[tenants.network.switches]]\ndpid = \"1\"\non = \"1\"",
        &[
            "3:34: tenants[0].maxima.ports: -1 is out of range (it must be between 0 and 1048576)",
            "3:50: tenants[0].maxima.bandwidth: a bandwidth of nothing",
            "3:58: tenants[0].maxima: unknown key `flows` (known keys here: switches, ports, links, hosts, edges, bandwidth)",
            "3:83: tenants[0].maxima.edges[1]: expected a dpid: eight bytes as \"00:00:00:00:00:00:00:01\", or up to 16 hex digits, 0x or not",
            "3:88: tenants[0].maxima.edges[2]: expected a dpid and a port, such as \"00:00:00:00:00:00:00:01 port 2\"",
            "4:1: tenants[0]: switches: 1, and the tenant may have 0 (raise what [tenants.maxima] says)",
        ],
    ),
    ("[listen]\napi = \"8080\"", &["2:7: listen.api: bad address \"8080\""]),
    ("listen = 5", &["1:10: listen: expected a table, found an integer"]),
    (
        "[listen]\nopenflow = \"ssl:127.0.0.1:6653\"",
        &["2:12: listen.openflow: an ssl: address needs certificates"],
    ),
    ("[tls]\nprivate_key = \"k\"", &["1:1: tls: `certificate` is missing"]),
    (
        "[tls]\nprivate_key = \"k\"\ncertificate = \"c\"\nswitch_ca = \"a\"\ncontroller_ca = \"a\"",
        &[
            "5:17: tls.controller_ca: the same authority for switches and for controllers (a tenant with a certificate for its controller could be any switch)",
        ],
    ),
    (
        "[tls]\nprivate_key = \"k\"\ncertificate = \"c\"\nca = \"a\"",
        &[
            "4:1: tls: unknown key `ca` (known keys here: private_key, certificate, switch_ca, controller_ca)",
        ],
    ),
    (
        "[listen]\nopenflow = \"ssl:127.0.0.1:1\"\n[tls]\nprivate_key = \"k\"\ncertificate = \"c\"\ncontroller_ca = \"a\"",
        &[
            "2:12: listen.openflow: an ssl: address needs certificates (add a section [tls] with private_key, certificate and switch_ca)",
        ],
    ),
    (
        "[[switches]]\ndpid = \"1\"\ncertificate = \"edge\"",
        &[
            "3:15: switches[0].certificate: expected \"name:NAME\" or \"sha256:\" and 64 hexadecimal digits, or \"pin\"",
        ],
    ),
    ("[keepalive]\ninterval = \"5\"", &["2:12: keepalive.interval: bad duration \"5\""]),
    ("[keepalive]\ntimeout = \"1ms\"", &["2:11: keepalive.timeout: \"1ms\" is out of range"]),
    ("[reconnect]\nmin = \"20s\"\nmax = \"10s\"", &["3:7: reconnect.max: \"10s\" is out of range"]),
    ("[scheduler]\ntenant_backlog = 0", &["2:18: scheduler.tenant_backlog: 0 is out of range"]),
    ("[store]\nsync = \"sometimes\"", &["2:8: store.sync: bad duration \"sometimes\""]),
    (
        "[[tenants]]\nweight = 0",
        &["1:1: tenants[0]: `name` is missing", "2:10: tenants[0].weight: 0 is out of range"],
    ),
    (
        "[listen]\nopenflow = \"127.0.0.1:6653\"\n[[tenants]]\nname = \"a\"\ncontrollers = [\"tcp:127.0.0.1:6653\"]",
        &[
            "5:16: tenants[0].controllers[0]: that is Weir itself, which would be its own switch (a controller listens somewhere else than Weir does ([listen]))",
        ],
    ),
    ("[[tenants]]\nname = \"r d\"", &["2:10: tenants[0].name: ' ' cannot stand in a name"]),
    ("[[tenants]]\nname = \"\"", &["2:8: tenants[0].name: a name of 0 characters"]),
    ("[[tenants]]\nname = \"bleu\\u00eb\"", &["2:8: tenants[0].name: 'ë' cannot stand in a name"]),
    (
        "[[tenants]]\nname = \"a\"\n\n[[tenants]]\nname = \"a\"",
        &["5:8: tenants[1].name: there is another tenant \"a\" (the first stands in line 2)"],
    ),
    (
        "[[tenants]]\nname = \"a\"\nweight = 1001",
        &["3:10: tenants[0].weight: 1001 is out of range"],
    ),
    ("[[tenants]]\nname = \"a\"\nweight = -1", &["3:10: tenants[0].weight: -1 is out of range"]),
    (
        "[[tenants]]\nname = \"a\"\nweight = 1.5",
        &["3:10: tenants[0].weight: expected an integer, found a float"],
    ),
    (
        "[[tenants]]\nname = \"a\"\ncontrollers = [\"tcp:1.2.3.4:x\", \"udp:1.2.3.4:5\"]",
        &["3:16: tenants[0].controllers[0]:", "3:33: tenants[0].controllers[1]:"],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\npriority = 70000",
        &[
            "3:1: tenants[0].flowspace[0]: `match` is missing",
            "4:12: tenants[0].flowspace[0].priority: 70000 is out",
        ],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\nmatch = \"ip,nw_scr=10.1.0.0/16\"",
        &["4:13: tenants[0].flowspace[0].match: unknown field `nw_scr`; did you mean `nw_src`?"],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\nmatch = 'nw_src=10.1.0.0/16'",
        &["4:10: tenants[0].flowspace[0].match: `nw_src` needs"],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\nmatch = \"ip,\\u006ew_scr=1\"",
        &["4:9: tenants[0].flowspace[0].match: unknown field `nw_scr`"],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\nmatch = \"\"\nswitches = [\"0:1\", \"any\"]",
        &["5:13: tenants[0].flowspace[0].switches[0]: expected a dpid"],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\nmatch = \"\"\nswitches = [\"1\", \"any\"]",
        &["5:12: tenants[0].flowspace[0].switches: \"any\" beside dpids"],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\nmatch = \"\"\nswitches = []",
        &["5:12: tenants[0].flowspace[0].switches: no switch at all"],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[[tenants.flowspace]]\nmatch = \"\"\npermission = \"wirte\"",
        &[
            "5:14: tenants[0].flowspace[0].permission: unknown value \"wirte\" (did you mean \"write\"?)",
        ],
    ),
    (
        "[[tenants]]\nname = \"a\"\n[tenants.limits]\npacket_out = { rat = 1 }\nqueues = [4294967295]\nexperimenters = [\"zz\"]",
        &[
            "4:14: tenants[0].limits.packet_out: `rate` is missing",
            "4:16: tenants[0].limits.packet_out: unknown key `rat` (did you mean `rate`?)",
            "5:11: tenants[0].limits.queues[0]: 4294967295 is out of range",
            "6:18: tenants[0].limits.experimenters[0]: bad experimenter id \"zz\"",
        ],
    ),
    (
        "[[tenants]]\nname = \"a\"\nstatistics = \"cached\"",
        &["3:14: tenants[0].statistics: unknown value \"cached\" (it must be \"passthrough\")"],
    ),
    ("tenants = 5", &["1:11: tenants: expected an array, found an integer"]),
];

#[test]
fn each_configuration_error_is_reported_with_the_position() {
    for (text, expected) in WRONG {
        let Err(errors) = parse(text) else { panic!("accepted:\n{text}") };
        let found: Vec<String> = errors.iter().map(short).collect();
        assert_eq!(found.len(), expected.len(), "in\n{text}\nfound {found:#?}");
        for (found, expected) in found.iter().zip(*expected) {
            assert!(
                found.starts_with(expected),
                "in\n{text}\nfound    {found}\nexpected {expected}"
            );
        }
    }
}

fn short(error: &super::Diagnostic) -> String {
    let key = if error.key.is_empty() { String::new() } else { format!("{}: ", error.key) };
    let help = error.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    format!("{}: {key}{}{help}", error.at, error.message)
}

#[test]
fn configuration_errors_are_shown_with_the_source_line_and_a_hint() {
    let text = "[[tenants]]\nname = \"red\"\nwieght = 2\n[[tenants.flowspace]]\nmatch = \"ip,nw_scr=10.1.0.0/16\"\n";
    let expected = "\
etc/weir.toml:3:1: tenants[0]: unknown key `wieght`
  |
3 | wieght = 2
  | ^^^^^^
  = help: did you mean `weight`?

etc/weir.toml:5:13: tenants[0].flowspace[0].match: unknown field `nw_scr`; did you mean `nw_src`?
  |
5 | match = \"ip,nw_scr=10.1.0.0/16\"
  |             ^^^^^^

2 errors in the configuration";
    assert_eq!(parse(text).unwrap_err().to_string(), expected);
}

#[test]
fn deep_nesting_is_refused_without_a_stack_overflow() {
    for open in ["[", "{a=", "[{a="] {
        assert!(parse(&format!("tenants = {}", open.repeat(100_000))).is_err());
    }
}

#[test]
fn a_truncated_or_damaged_configuration_file_causes_no_panic() {
    // The input is each prefix of the example in docs/configuration.md, and the example with a quotation mark inserted
    // at each place. Each input is accepted, or refused with a line and a column.
    let page = include_str!("../../../../docs/configuration.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    for at in (0..example.len()).filter(|&at| example.is_char_boundary(at)) {
        for text in [example[..at].to_owned(), format!("{}\"{}", &example[..at], &example[at..])] {
            if let Err(errors) = parse(&text) {
                assert!(errors.iter().all(|error| error.at.line >= 1 && error.at.column >= 1));
                assert!(!errors.to_string().is_empty());
            }
        }
    }
}
