//! Tests with a real Net-SNMP agent, which is asked by v2c and v3 while an experiment runs. The tests need neither root
//! nor a network: the agent and an emulated switch are on loopback.

#![cfg(feature = "scripts")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are test code too")]

mod common;

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{VERSIONS, codes, config, measure, never};
use emulate::{Network, Runner, SwitchIndex};
use evaluate::snmp::Value;
use evaluate::{
    Case, Experiment, Gauges, Hardware, Outcome, Real, RealOptions, RunOptions, Script,
    SwitchAddress, run,
};
use openflow::{Version, VersionSet};

const PASSWORDS: &str = "auth=sha256:authentication,priv=aes:confidentiality";
const NAME: &str = "1.3.6.1.2.1.1.5.0";
const LOCATION: &str = "1.3.6.1.2.1.1.6.0";
const UPTIME: &str = "1.3.6.1.2.1.1.3.0";

/// The script asks the agent for each object in turn, and records an answer as a number, or as the length of a text.
const SCRIPT: &str = r#"
fn start() {
    this.left = this.ask;
    next_one(this);
}
fn next_one(state) {
    if state.left.len() > 0 { get_snmp(state.left[0]); } else { after(state.pause_ms * 1000000, 1); }
}
fn snmp_answer(at, oid, value) {
    let number = switch type_of(value) {
        "string" => value.len() + 0.0,
        "()" => -1.0,
        _ => value,
    };
    record(#{ oid: oid }, "value", "", number);
    this.left.remove(0);
    next_one(this);
}
fn timer(at, timer) {
    read_cpu();
}
fn reading(at, name, value) {
    record(#{}, "cpu", "ns", if type_of(value) == "()" { -1.0 } else { value });
    end();
}
"#;

fn script(oids: &[&str]) -> Script {
    pausing_script(oids, 0)
}

fn pausing_script(oids: &[&str], pause_ms: u32) -> Script {
    let folder = folder("script");
    fs::write(folder.join("it.rhai"), SCRIPT).unwrap();
    let toml = format!(
        "name = \"it\"\nscript = \"it.rhai\"\nchannels = 0\nrepetitions = 1\n[parameters]\nask = {oids:?}\npause_ms = {pause_ms}\n"
    );
    fs::write(folder.join("it.toml"), toml).unwrap();
    let script = Script::read(&folder.join("it.toml"));
    fs::remove_dir_all(&folder).unwrap();
    script.unwrap()
}

fn folder(name: &str) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("weir-snmp-{}-{number}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// `snmpd` with its own configuration and its own port.
struct Agent {
    process: Child,
    folder: PathBuf,
    port: u16,
}

impl Agent {
    fn start() -> Agent {
        let folder = folder("agent");
        let port = packet::free_port().unwrap();
        let config = folder.join("snmpd.conf");
        let text = format!(
            "agentaddress udp:127.0.0.1:{port}\nrocommunity public 127.0.0.1\n\
             createUser weir SHA-256 authentication AES confidentiality\nrouser weir authPriv\n\
             sysName a-switch\nsysLocation here\n[snmp] persistentDir {0}\n",
            folder.display()
        );
        fs::write(&config, text).unwrap();
        let process = Command::new("snmpd")
            .args(["-f", "-Lo", "-C", "-r", "-c"])
            .arg(&config)
            .env("SNMP_PERSISTENT_DIR", &folder)
            .env("MIBS", "")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Agent { process, folder, port }
    }

    fn community(&self) -> String {
        format!("127.0.0.1:{},community=public", self.port)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The process belongs to this test, so `kill` and `wait` succeed.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs an experiment on an emulated switch over a socket. `snmp` says which SNMP agent is asked.
fn evaluate(snmp: &str, process: Option<u32>, experiment: &Script) -> Outcome {
    let switch = SwitchIndex(0);
    let running = Runner::new(Network::single(2, |_| {}))
        .listen(switch, "tcp:127.0.0.1:0".parse().unwrap())
        .start()
        .unwrap();
    let mut real = Real::open(RealOptions {
        name: "emulated".to_owned(),
        address: SwitchAddress::Dial(running.listening_on(switch).unwrap()),
        tls: None,
        versions: VersionSet::only(Version::V1_0),
        ports: Vec::new(),
        patience: Duration::from_secs(10),
        gauges: Gauges { process, snmp: Some(snmp.parse().unwrap()) },
        trace: None,
    })
    .unwrap();
    run(&mut real, experiment.module().as_mut(), &RunOptions::new(never())).unwrap()
}

fn value(outcome: &Outcome, oid: &str) -> Option<f64> {
    outcome.record.samples(&Case::new().with("oid", oid), "value").first().copied()
}

fn cpu(outcome: &Outcome) -> Option<f64> {
    outcome.record.samples(&Case::new(), "cpu").first().copied()
}

/// Waits until the agent answers with a value: the agent needs time to start, and reads the CPU only every few seconds.
fn until(mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < deadline, "never happened");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn snmpd_answers_v2c_and_v3_and_wrong_credentials_are_reported() {
    if lab::testing::skip_without(
        "snmpd_answers_v2c_and_v3_and_wrong_credentials_are_reported",
        &[("snmpd", "snmpd")],
    ) {
        return;
    }
    let agent = Agent::start();
    let here = format!("127.0.0.1:{}", agent.port);
    let asks = script(&[NAME, LOCATION, UPTIME, "1.3.6.1.9.9.9"]);
    until(|| value(&evaluate(&agent.community(), None, &asks), UPTIME) > Some(0.0));
    for access in [agent.community(), format!("{here},user=weir,{PASSWORDS}")] {
        let outcome = evaluate(&access, None, &asks);
        assert_eq!(outcome.partial, None, "{access}");
        assert_eq!(value(&outcome, NAME), Some("a-switch".len() as f64), "{access}");
        assert_eq!(value(&outcome, LOCATION), Some("here".len() as f64), "{access}");
        assert!(value(&outcome, UPTIME) > Some(0.0), "{access}");
        assert_eq!(value(&outcome, "1.3.6.1.9.9.9"), Some(-1.0), "an object that it does not have");
    }
    // The agent refuses these credentials.
    for (wrong, sentence) in [
        (format!("{here},community=private"), "does not answer"),
        (format!("{here},user=nobody,{PASSWORDS}"), "127.0.0.1"),
        (
            format!("{here},user=weir,auth=sha256:wrong-password,priv=aes:confidentiality"),
            "127.0.0.1",
        ),
    ] {
        let outcome = evaluate(&wrong, None, &asks);
        assert_eq!(value(&outcome, NAME), Some(-1.0), "{wrong}");
        let is_found =
            outcome.record.findings().iter().any(|finding| finding.text.contains(sentence));
        assert!(
            is_found && codes(&outcome).contains(&"snmp"),
            "{wrong}: {:?}",
            outcome.record.findings()
        );
    }
}

#[test]
fn snmpd_reports_cpu_time_and_interface_counters() {
    let name = "snmpd_reports_cpu_time_and_interface_counters";
    if lab::testing::skip_without(name, &[("snmpd", "snmpd")]) {
        return;
    }
    let agent = Agent::start();
    let asks = script(&[UPTIME]);
    // First the CPU of the machine is read, then the CPU of one process (hrSWRunPerfCPU), here the agent's own process.
    until(|| cpu(&evaluate(&agent.community(), None, &asks)) > Some(0.0));
    let pid = agent.process.id();
    until(|| {
        let own = format!("{},cpu=1.3.6.1.2.1.25.5.1.1.1.{pid}", agent.community());
        let own = evaluate(&own, None, &asks);
        assert!(codes(&own).is_empty(), "{:?}", own.record.findings());
        cpu(&own) > Some(0.0)
    });
    let percent = format!("{},cpu-percent={UPTIME}", agent.community());
    assert!(cpu(&evaluate(&percent, None, &asks)) > Some(0.0));

    let watched = format!("{},if=lo,if=none9", agent.community());
    // The experiment's own control channel uses the interface, and the agent reads the interface every three seconds.
    let outcome = evaluate(&watched, None, &pausing_script(&[UPTIME], 100));
    let packets = outcome.record.samples(&Case::new().with("interface", "lo"), "snmp_packets_in");
    assert!(matches!(packets, [grown] if *grown >= 1.0), "{packets:?}");
    let missing = outcome.record.findings().iter().find(|it| it.text.contains("none9")).unwrap();
    assert!(missing.text.contains("it has lo"), "{}", missing.text);
}

#[test]
fn a_silent_snmp_agent_is_reported_and_cpu_time_is_read_from_proc() {
    // The port belongs to a socket that never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let snmp = format!("{},community=public", silent.local_addr().unwrap());
    let asks = script(&[UPTIME, NAME]);
    let pid = Some(std::process::id());
    let outcome = evaluate(&format!("{snmp},cpu={UPTIME}"), pid, &asks);
    assert_eq!(outcome.partial, None);
    assert_eq!(value(&outcome, NAME), Some(-1.0));
    assert!(cpu(&outcome) > Some(0.0), "the test's own");
    let texts: Vec<&str> =
        outcome.record.findings().iter().map(|finding| finding.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("does not answer")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("/proc")), "{texts:?}");
    let outcome = evaluate(&snmp, None, &asks);
    assert_eq!(cpu(&outcome), Some(-1.0), "nobody knows");
    // The script asks for no object, so the silent agent does not matter.
    assert!(cpu(&evaluate(&snmp, pid, &pausing_script(&[], 0))) > Some(0.0));
}

#[test]
fn scripts_read_snmp_objects_of_the_emulated_switch() {
    let objects = vec![
        (NAME.parse().unwrap(), Value::Text("eleven char".to_owned())),
        (UPTIME.parse().unwrap(), Value::Number(7.5)),
    ];
    for version in VERSIONS {
        let hardware = Hardware { objects: objects.clone(), ..Hardware::default() };
        let outcome = measure(version, config(&[]), hardware, &script(&[NAME, UPTIME, LOCATION]));
        assert_eq!(outcome.partial, None);
        let found = [NAME, UPTIME, LOCATION].map(|oid| value(&outcome, oid));
        assert_eq!(found, [Some(11.0), Some(7.5), Some(-1.0)]);
        assert_eq!(codes(&outcome), ["snmp"]);
    }
    let wrong = measure(VERSIONS[0], config(&[]), Hardware::default(), &script(&["1.x"]));
    assert!(wrong.partial.unwrap_or_default().contains("no object identifier"));
}
