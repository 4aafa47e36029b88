//! Tests of TLS to switches and controllers, with certificates of `ovs-pki`, beside plain connections.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::slices::by_port;
use crate::support::app::{App, Credentials};
use crate::support::folder::Folder;
use crate::support::network::{Network, V13};
use crate::support::pki::Pki;
use crate::support::program::Program;
use crate::support::requirements::{Needs, needs};
use crate::support::scripted::{Controller, FEATURES_REPLY, HELLO, Message, Switch};
use crate::support::weir::{SHORT_BACK_OFF, Weir, run};
use crate::support::{PATIENCE, eventually, free_port};

const ADDRESSES: [&str; 4] = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"];

/// The certificates and addresses of a Weir. One authority signs switches' certificates, and another authority signs
/// the certificates of Weir and of controllers.
pub struct Site {
    pub pki: Pki,
    folder: Folder,
    plain: SocketAddr,
    encrypted: SocketAddr,
    api: SocketAddr,
}

impl Site {
    pub fn new(host: std::net::IpAddr) -> Site {
        let (pki, folder) = (Pki::new(), Folder::new());
        pki.sign("weir", "controller");
        pki.sign("switch", "switch");
        pki.sign("red", "controller");
        Site {
            pki,
            folder,
            plain: SocketAddr::new(host, free_port()),
            encrypted: SocketAddr::new(host, free_port()),
            api: SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())),
        }
    }

    pub fn serve(self, tenants: &str) -> (Weir, Pki, SocketAddr) {
        let config = self.config(tenants);
        let Site { pki, folder, plain, encrypted, api } = self;
        (Weir::start(folder, plain, api, &config), pki, encrypted)
    }

    /// [`Site::serve`] with a limit of file descriptors.
    fn serve_with_descriptors(self, limit: u32, tenants: &str) -> (Weir, Pki, SocketAddr) {
        let config = self.config(tenants);
        let Site { pki, folder, plain, encrypted, api } = self;
        (Weir::start_with_descriptors(limit, folder, plain, api, &config), pki, encrypted)
    }

    fn config(&self, tenants: &str) -> String {
        let Site { pki, plain, encrypted, api, .. } = self;
        let (key, certificate) = (pki.private_key("weir"), pki.certificate("weir"));
        format!(
            r#"
[listen]
openflow = ["tcp:{plain}", "ssl:{encrypted}"]
api = ["{api}", "unix:api.sock"]
{SHORT_BACK_OFF}
[tls]
private_key = "{}"
certificate = "{}"
switch_ca = "{}"
controller_ca = "{}"
{tenants}"#,
            key.display(),
            certificate.display(),
            pki.ca("switch").display(),
            pki.ca("controller").display()
        )
    }
}

#[test]
fn ovs_switches_and_controllers_connect_over_tls_and_over_plain_tcp() {
    needs!(ovs_switches_and_controllers_connect_over_tls_and_over_plain_tcp:
        Needs::OpenVSwitch, Needs::OsKen, Needs::Program("ovs-pki"));
    let network = Network::single(&ADDRESSES, V13);
    let site = Site::new(network.controller_host());
    let credentials = Credentials {
        certificate: &site.pki.certificate("red"),
        private_key: &site.pki.private_key("red"),
        ca: &site.pki.ca("controller"),
    };
    let mut red = App::with_tls("learning_switch_13", &credentials);
    let mut blue = App::learning_switch_13();
    let tenants =
        by_port("red", &red.to_string(), [1, 2]) + &by_port("blue", &blue.to_string(), [3, 4]);
    // The entry gives the name in the certificate of the switch. With `name` instead of `certificate`, the plain port
    // accepts the switch as well.
    let switches = "[[switches]]\ndpid = \"1\"\nname = \"switch\"\n";
    let (weir, pki, encrypted) = site.serve(&(tenants + switches));

    let (key, certificate) = (pki.private_key("switch"), pki.certificate("switch"));
    network.connect_with_tls(encrypted, &key, &certificate, &pki.ca("controller"));
    red.expect("switch");
    blue.expect("switch");
    assert!(network.pings("h1", "h2"), "a controller over TLS");
    assert!(network.pings("h3", "h4"), "a plain one");

    // The plain listener serves the same switch.
    network.connect_to(weir.openflow);
    red.expect("switch");
    assert!(network.pings("h1", "h2"));
}

#[test]
fn ovs_a_switch_with_a_certificate_of_another_ca_is_refused() {
    needs!(ovs_a_switch_with_a_certificate_of_another_ca_is_refused: Needs::OpenVSwitch, Needs::Program("ovs-pki"));
    let network = Network::single(&ADDRESSES, V13);
    let (weir, pki, encrypted) = Site::new(network.controller_host()).serve("");
    let stranger = Pki::new();
    stranger.sign("switch", "switch");
    let (key, certificate) = (stranger.private_key("switch"), stranger.certificate("switch"));
    network.connect_with_tls(encrypted, &key, &certificate, &pki.ca("controller"));
    eventually("it is counted", || {
        weir.metric("weir_connections_rejected_total", &["peer=\"switch\"", "reason=\"tls\""])
            >= 1.0
    });
    weir.expect_log(0, &["WARN", "the TLS of a switch failed", "peer=", "not signed by our CA"]);
    weir.wait_for_switches(0);
}

/// Red's controller speaks no TLS, the authority of blue's certificate is unknown to Weir, and green's address refuses
/// connections.
#[test]
fn failed_tls_connections_to_controllers_are_logged_counted_and_shown() {
    needs!(failed_tls_connections_to_controllers_are_logged_counted_and_shown:
        Needs::Program("ovs-pki"), Needs::Program("openssl"));
    let plain = Controller::listen();
    let (foreign, nobody) = (free_port(), free_port());
    let stranger = Pki::new();
    stranger.sign("blue", "controller");
    let mut server = Command::new("openssl");
    server
        .args(["s_server", "-accept", &format!("127.0.0.1:{foreign}"), "-cert"])
        .arg(stranger.certificate("blue"))
        .arg("-key")
        .arg(stranger.private_key("blue"));
    let _server = Program::of("openssl", server);
    let tenant = |name: &str, port: u16| {
        format!(
            "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"ssl:127.0.0.1:{port}\"]\n\
             [[tenants.flowspace]]\nmatch = \"in_port=1\"\npermission = \"read\"\n"
        )
    };
    let tenants =
        tenant("red", plain.address.port()) + &tenant("blue", foreign) + &tenant("green", nobody);
    let (weir, _pki, _) = Site::new(Ipv4Addr::LOCALHOST.into()).serve(&tenants);
    let _switch = Switch::connect(weir.openflow, 7, &[1]);
    for (tenant, why, words) in [
        ("red", "tls", "plain OpenFlow"),
        ("blue", "tls", "not signed by our CA"),
        ("green", "unreachable", "cannot connect"),
    ] {
        let tenant_label = format!("tenant=\"{tenant}\"");
        let line = weir.expect_log(0, &["WARN", &tenant_label, words]);
        assert!(line.contains("ssl:127.0.0.1:") && line.contains("00:07"), "{line}");
        let reason = format!("reason=\"{why}\"");
        eventually("it is counted and shown", || {
            let (_, text) = weir.get(&format!("/api/v1/tenants/{tenant}"));
            let shown: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let contact = &shown["switches"][0]["controllers"][0];
            let last = contact["last_error"].as_str().unwrap_or_default();
            weir.metric("weir_controller_lost_total", &[&tenant_label, &reason]) > 2.0
                && last.contains(words)
                && contact["connected"] == false
        });
        let rejected = ["peer=\"controller\"", &reason];
        assert!(weir.metric("weir_connections_rejected_total", &rejected) > 2.0, "{tenant}");
        let lines = weir.logged(&[&tenant_label, words]);
        assert!(lines.len() <= 3, "one per change of state: {lines:#?}");
    }
}

#[test]
fn a_certificate_of_weir_that_expires_soon_is_reported() {
    needs!(a_certificate_of_weir_that_expires_soon_is_reported: Needs::Program("openssl"));
    let folder = Folder::new();
    let path = |name: &str| folder.join(name);
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "5", "-subj", "/CN=weir"])
        .args(["-keyout", &path("key.pem"), "-out", &path("cert.pem")])
        .stdin(Stdio::null())
        .output()
        .expect("start openssl");
    assert!(made.status.success(), "{made:?}");
    let openflow = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let api = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let config = format!(
        "[listen]\nopenflow = \"{openflow}\"\napi = \"{api}\"\n\
         [tls]\nprivate_key = \"key.pem\"\ncertificate = \"cert.pem\"\nswitch_ca = \"cert.pem\"\n"
    );
    let file = path("weir.toml");
    fs::write(&file, &config).expect("a configuration");
    let (code, said, _) = run(&["check", &file]);
    assert!(code == Some(1) && said.contains("cert.pem expires in "), "{code:?} {said}");
    let weir = Weir::start(folder, openflow, api, &config);
    weir.expect_log(0, &["WARN", "own certificate expires in "]);
    let until = weir.metric("weir_certificate_expiry_timestamp_seconds", &[]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs_f64();
    assert!((until - now - 5.0 * 86_400.0).abs() < 600.0, "{until} at {now}");
}

#[test]
fn new_certificates_of_weir_are_used_after_a_reload() {
    needs!(new_certificates_of_weir_are_used_after_a_reload: Needs::Program("ovs-pki"), Needs::Program("openssl"));
    let site = Site::new(Ipv4Addr::LOCALHOST.into());
    site.pki.sign("renewed", "controller");
    let (weir, pki, encrypted) = site.serve("");
    let shown = || {
        let output = Command::new("openssl")
            .args(["s_client", "-connect", &encrypted.to_string(), "-CAfile"])
            .arg(pki.ca("controller"))
            .arg("-cert")
            .arg(pki.certificate("switch"))
            .arg("-key")
            .arg(pki.private_key("switch"))
            .stdin(Stdio::null())
            .output()
            .expect("start openssl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().find(|line| line.starts_with("subject=")).map(str::to_owned)
    };
    let before = shown().expect("a certificate");
    fs::copy(pki.certificate("renewed"), pki.certificate("weir")).expect("a new certificate");
    fs::copy(pki.private_key("renewed"), pki.private_key("weir")).expect("a new key");
    assert_eq!(shown().as_ref(), Some(&before), "not before SIGHUP");
    weir.hang_up();
    eventually("the new certificate is shown", || shown().is_some_and(|now| now != before));
}

#[test]
fn plain_openflow_at_the_tls_port_is_disconnected() {
    needs!(plain_openflow_at_the_tls_port_is_disconnected: Needs::Program("ovs-pki"));
    let (weir, _pki, encrypted) = Site::new(Ipv4Addr::LOCALHOST.into()).serve("");
    let mut stream = TcpStream::connect(encrypted).expect("connect to Weir");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(&[1, 0, 0, 8, 0, 0, 0, 1]).expect("send an OpenFlow HELLO");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("Weir hangs up, in time");
    // Weir sends at most a TLS alert (record type 21), and no OpenFlow.
    assert!(answer.first().is_none_or(|first| *first == 21), "{answer:?}");
    assert_eq!(weir.get("/healthz").0, 200);
}

/// Starts a switch that connects over TLS by `openssl s_client`. The switch is connected until its standard input is
/// closed.
pub fn tls_switch(address: SocketAddr, pki: &Pki, holder: &str, dpid: u64) -> Child {
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address.to_string(), "-cert"])
        .arg(pki.certificate(holder))
        .arg("-key")
        .arg(pki.private_key(holder))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("start openssl");
    let mut features = dpid.to_be_bytes().to_vec();
    features.extend([0; 16]);
    let hello = Message::new(HELLO, 1, &[]).bytes();
    let reply = Message::new(FEATURES_REPLY, 2, &features).bytes();
    let stdin = client.stdin.as_mut().expect("its standard input");
    stdin.write_all(&[hello, reply].concat()).expect("say who it is");
    client
}

#[test]
fn a_certificate_is_accepted_only_for_the_switch_configured_with_its_name() {
    needs!(a_certificate_is_accepted_only_for_the_switch_configured_with_its_name:
        Needs::Program("ovs-pki"), Needs::Program("openssl"));
    let site = Site::new(Ipv4Addr::LOCALHOST.into());
    site.pki.sign("edge-2", "switch");
    site.pki.sign("edge-3", "controller");
    site.pki.sign("0000000000000004", "switch");
    let listed = |dpid: u64, key: &str, name: &str| {
        format!("[[switches]]\ndpid = \"{dpid}\"\n{key} = \"{name}\"\n")
    };
    let switches = listed(1, "name", "edge-1")
        + &listed(2, "certificate", "name:edge-2")
        + &listed(3, "name", "edge-3")
        + &listed(4, "name", "fourth");
    let (weir, pki, encrypted) = site.serve(&switches);
    let rejected = |reason: &str| {
        let reason = format!("reason=\"{reason}\"");
        weir.metric("weir_connections_rejected_total", &["peer=\"switch\"", &reason])
    };
    let mut others = Vec::new();
    for (dpid, count) in [(1, 1.0), (4, 2.0), (9, 2.0)] {
        others.push(tls_switch(encrypted, &pki, "edge-2", dpid));
        eventually("another switch's certificate is refused", || rejected("impostor") >= count);
    }
    eventually("so is a switch that is not listed", || rejected("unlisted") >= 1.0);
    weir.expect_log(0, &["WARN", "a switch is turned away", "00:01", "edge-2", "sha256:"]);
    // The authority of controllers signs no certificates of switches, whatever the name is.
    others.push(tls_switch(encrypted, &pki, "edge-3", 3));
    eventually("a controller's certificate is refused", || rejected("tls") >= 1.0);
    // A switch that must show a certificate is refused at the plain port.
    let plain = Switch::connect(weir.openflow, 2, &[1]);
    assert!(plain.peer.is_closed());
    eventually("that is counted", || rejected("impostor") >= 3.0);
    assert!(weir.metric("weir_switches", &[]) < 0.5);

    let mut own = vec![tls_switch(encrypted, &pki, "edge-2", 2)];
    weir.wait_for_switches(1);
    own.push(tls_switch(encrypted, &pki, "0000000000000004", 4));
    weir.wait_for_switches(2);
    for mut client in own.into_iter().chain(others) {
        drop(client.stdin.take());
        let _ = client.kill();
        let _ = client.wait();
    }
}

/// A program that listens at an address, shows a certificate, and keeps the bytes that it receives.
struct Shows {
    address: SocketAddr,
    received: String,
    _server: Program,
}

impl Shows {
    fn certificate(pki: &Pki, folder: &Folder, holder: &str) -> Shows {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let received = folder.join(&format!("{}-received", address.port()));
        let mut server = Command::new("sh");
        // With -quiet the standard output has only the bytes of the peer.
        server
            .args(["-c", "exec openssl s_server -quiet \"$@\" > \"$0\"", &received, "-accept"])
            .arg(address.to_string())
            .arg("-cert")
            .arg(pki.certificate(holder))
            .arg("-key")
            .arg(pki.private_key(holder));
        Shows { address, received, _server: Program::of("openssl", server) }
    }

    /// Returns all bytes that Weir has sent after the TLS handshake.
    fn received(&self) -> Vec<u8> {
        fs::read(&self.received).expect("the received bytes")
    }

    /// Returns a tenant with this program as its controller; `more` has more keys of the tenant.
    fn tenant(&self, name: &str, more: &str) -> String {
        format!(
            "[[tenants]]\nname = \"{name}\"\ncontrollers = [\"ssl:{}\"]\n{more}\
             [[tenants.flowspace]]\nmatch = \"in_port=1\"\npermission = \"read\"\n",
            self.address
        )
    }
}

/// Asserts that Weir dials a tenant's controller again and again, and sends no byte after the TLS handshake.
fn is_turned_away(weir: &Weir, tenant: &str, words: &str, shows: &Shows) {
    let label = format!("tenant=\"{tenant}\"");
    let address = shows.address.to_string();
    weir.expect_log(0, &["WARN", &label, &address, words]);
    eventually("the lost controller is counted and shown", || {
        let (_, text) = weir.get(&format!("/api/v1/tenants/{tenant}"));
        let shown: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let contact = &shown["switches"][0]["controllers"][0];
        let last = contact["last_error"].as_str().unwrap_or_default();
        weir.metric("weir_controller_lost_total", &[&label, "reason=\"tls\""]) > 2.0
            && last.contains(words)
            && contact["connected"] == false
    });
    let received = shows.received();
    assert!(received.is_empty(), "{tenant}: it has received {received:?}");
}

#[test]
fn a_controller_with_another_tenants_certificate_gets_no_bytes() {
    needs!(a_controller_with_another_tenants_certificate_gets_no_bytes:
        Needs::Program("ovs-pki"), Needs::Program("openssl"));
    let site = Site::new(Ipv4Addr::LOCALHOST.into());
    let folder = Folder::new();
    site.pki.sign("blue", "controller");
    let [first, second, own, listed] =
        ["blue", "red", "blue", "blue"].map(|name| Shows::certificate(&site.pki, &folder, name));
    let tenants = first.tenant("red", "")
        // A tenant with `controller_certificates` accepts only the certificates in this list.
        + &second.tenant("green", "controller_certificates = [\"name:green-1\", \"name:green-2\"]\n")
        + &own.tenant("blue", "")
        + &listed.tenant("yellow", "controller_certificates = [\"name:yellow\", \"name:blue\"]\n");
    let (weir, _pki, _) = site.serve(&tenants);
    let _switch = Switch::connect(weir.openflow, 1, &[1, 2]);
    eventually("those with the right certificates get HELLO", || {
        [&own, &listed].iter().all(|shows| shows.received().get(1) == Some(&HELLO))
    });
    is_turned_away(&weir, "red", "not the tenant's, name:red", &first);
    is_turned_away(&weir, "green", "not the tenant's, name:green-1", &second);
    weir.expect_log(0, &["WARN", "tenant=\"red\"", "blue"]);
}

#[test]
fn a_controller_with_a_switch_certificate_gets_no_bytes() {
    needs!(a_controller_with_a_switch_certificate_gets_no_bytes:
        Needs::Program("ovs-pki"), Needs::Program("openssl"));
    let site = Site::new(Ipv4Addr::LOCALHOST.into());
    let folder = Folder::new();
    // The name is the tenant's, but the authority is that of switches.
    site.pki.sign("green", "switch");
    let [switchs, own] = ["green", "red"].map(|name| Shows::certificate(&site.pki, &folder, name));
    let tenants = switchs.tenant("green", "") + &own.tenant("red", "");
    let (weir, _pki, _) = site.serve(&tenants);
    let _switch = Switch::connect(weir.openflow, 1, &[1, 2]);
    eventually("the one with a controller's certificate gets HELLO", || {
        own.received().get(1) == Some(&HELLO)
    });
    is_turned_away(&weir, "green", "not signed by our CA", &switchs);
}

#[test]
fn silent_connections_at_the_tls_port_do_not_block_a_listed_switch() {
    const SILENT: usize = 300;
    needs!(silent_connections_at_the_tls_port_do_not_block_a_listed_switch:
        Needs::Program("ovs-pki"), Needs::Program("openssl"));
    let site = Site::new(Ipv4Addr::LOCALHOST.into());
    let listed = "[[switches]]\ndpid = \"1\"\nname = \"switch\"\n";
    let (weir, pki, encrypted) = site.serve_with_descriptors(256, listed);
    let connect = || TcpStream::connect(encrypted).expect("connect to Weir");
    let silent: Vec<TcpStream> = (0..SILENT).map(|_| connect()).collect();
    let mut switch = tls_switch(encrypted, &pki, "switch", 1);
    weir.wait_for_switches(1);
    assert_eq!(weir.get("/healthz").0, 200);
    let too_many = ["peer=\"switch\"", "reason=\"too_many\""];
    eventually("those that waited longest were turned away", || {
        weir.metric("weir_connections_rejected_total", &too_many) > 200.0
    });
    drop(silent);
    drop(switch.stdin.take());
    let _ = switch.kill();
    let _ = switch.wait();
}
