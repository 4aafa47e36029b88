//! Tests of labs on this machine. The tests need root and Open vSwitch, and are skipped by name without them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)] // Helpers of tests, too.

use std::io::Read;
use std::net::TcpListener;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lab::{
    Controller, Datapath, Error, IperfOptions, Lab, LabGuard, Options, PingOptions, Protocol,
    Requirements, StateDirectory, Topology,
};

/// The state directory and the names of one test, with a check that no part of the test's labs is left.
struct Place {
    state: StateDirectory,
    prefix: String,
    _alone: MutexGuard<'static, ()>,
}

/// Only one test runs at a time, because the tests measure, and share the machine's cores.
static ALONE: Mutex<()> = Mutex::new(());

impl Place {
    fn new(name: &str) -> Place {
        let prefix = format!("t{}-{name}", std::process::id());
        let state = StateDirectory::at(std::env::temp_dir().join(format!("weir-{prefix}")));
        // After a failed test the lock is poisoned, but the failed test leaves nothing that disturbs the next test.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Place { state, prefix, _alone: alone }
    }

    fn options(&self) -> Options {
        Options {
            name: Some(self.prefix.clone()),
            state: self.state.clone(),
            ephemeral: true,
            ..Options::default()
        }
    }

    fn up(&self, topology: &str, options: &Options) -> LabGuard {
        LabGuard::new(Lab::up(&Topology::builtin(topology).unwrap(), options).unwrap())
    }

    /// Checks that no part of this test's labs is left, and that the control link `link` does not exist.
    fn check_nothing_left(&self, link: Option<&str>) {
        let namespaces: Vec<PathBuf> = entries("/run/netns");
        let ours = |path: &PathBuf| path.to_string_lossy().contains(&self.prefix);
        assert_eq!(namespaces.into_iter().filter(ours).collect::<Vec<_>>(), Vec::<PathBuf>::new());
        let processes: Vec<String> = entries("/proc")
            .iter()
            .filter_map(|process| std::fs::read(process.join("cmdline")).ok())
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|line| line.contains(&self.prefix))
            .collect();
        assert_eq!(processes, Vec::<String>::new());
        if let Some(link) = link {
            assert!(!Path::new("/sys/class/net").join(link).exists(), "{link}");
        }
        assert_eq!(self.state.list().unwrap().len(), 0);
        assert!(!self.state.path().exists());
    }
}

fn entries(folder: &str) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .map_or_else(|_| Vec::new(), |list| list.flatten().map(|entry| entry.path()).collect())
}

fn link(lab: &Lab) -> Option<String> {
    lab.control_link().map(|control| control.interface.clone())
}

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn root_a_linear_lab_forwards_and_is_removed_completely() {
    if lab::testing::skip("root_a_linear_lab_forwards_and_is_removed_completely", Requirements::ALL)
    {
        return;
    }
    let place = Place::new("linear");
    let lab = place.up("linear,2", &place.options());
    let report = lab.ping_all(&PingOptions::default()).unwrap();
    assert_eq!((report.reached(), report.pairs.len()), (2, 2), "{report:?}");

    // Names are the same as in Mininet. Ports have the numbers of the topology.
    let ports = lab
        .open_vswitch()
        .unwrap()
        .vsctl(["--columns=name,ofport", "--format=csv", "list", "Interface"])
        .unwrap();
    for expected in ["s1-eth1,1", "s1-eth2,2", "s2-eth1,1", "s2-eth2,2"] {
        assert!(ports.lines().any(|line| line == expected), "{expected} in {ports}");
    }
    let features = lab.exec("s2", &["ovs-ofctl", "show", "s2"]).unwrap();
    assert!(text(&features).contains("dpid:0000000000000002"), "{features:?}");
    let address = lab.exec("h2", &["ip", "-brief", "addr", "show", "eth0"]).unwrap();
    assert!(text(&address).contains("10.0.0.2/8"), "{address:?}");
    assert_eq!(lab.exec("h1", &["sh", "-c", "exit 3"]).unwrap().status.code(), Some(3));
    assert!(matches!(
        lab.exec("h11", &["true"]),
        Err(Error::NoSuchNode { suggestion: Some(_), .. })
    ));

    let link = link(&lab);
    lab.down().unwrap();
    place.check_nothing_left(link.as_deref());
}

#[test]
fn root_the_kernel_datapath_forwards_or_is_reported_as_missing() {
    let test = "root_the_kernel_datapath_forwards_or_is_reported_as_missing";
    if lab::testing::skip(test, Requirements::ALL) {
        return;
    }
    let place = Place::new("kernel");
    let options = Options { datapath: Datapath::System, ..place.options() };
    match Lab::up(&Topology::builtin("linear,2").unwrap(), &options) {
        Ok(lab) => {
            let lab = LabGuard::new(lab);
            let forwards = lab.exec("s1", &["ovs-appctl", "dpif/show"]).unwrap();
            assert!(text(&forwards).contains("system@ovs-system"), "{forwards:?}");
            let report = lab.ping_all(&PingOptions::default()).unwrap();
            assert_eq!(report.reached(), 2, "{report:?}");
            let link = link(&lab);
            lab.down().unwrap();
            place.check_nothing_left(link.as_deref());
        }
        Err(error) => {
            assert!(!Path::new("/sys/module/openvswitch").exists(), "{error}");
            assert!(error.to_string().contains("the kernel module openvswitch: "), "{error}");
            place.check_nothing_left(None);
        }
    }
}

#[test]
fn root_two_labs_run_at_once_without_conflict() {
    if lab::testing::skip("root_two_labs_run_at_once_without_conflict", Requirements::ALL) {
        return;
    }
    let place = Place::new("two");
    let named = |suffix: &str| Options {
        name: Some(format!("{}-{suffix}", place.prefix)),
        ..place.options()
    };
    let (one, two) = std::thread::scope(|scope| {
        let one = scope.spawn(|| place.up("single,2", &named("a")));
        let two = scope.spawn(|| place.up("single,2", &named("b")));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_ne!(one.controller_address(), two.controller_address());
    // Names that the lab chooses are different, also across state directories.
    let elsewhere = StateDirectory::at(place.state.path().with_extension("elsewhere"));
    let unnamed = |state: &StateDirectory| {
        let options = Options { name: None, state: state.clone(), ..place.options() };
        place.up("single,1", &options)
    };
    let (three, four) = (unnamed(&place.state), unnamed(&elsewhere));
    assert_ne!(three.name(), four.name());
    drop((three, four));
    assert_eq!(Lab::list(&place.state).unwrap().len(), 2);
    let links = (link(&one), link(&two));
    assert!(one.ping_all(&PingOptions::default()).unwrap().is_complete());
    one.down().unwrap();
    assert!(two.ping_all(&PingOptions::default()).unwrap().is_complete());
    two.down().unwrap();
    place.check_nothing_left(links.0.as_deref());
    place.check_nothing_left(links.1.as_deref());
}

/// The next test starts this function as a process and kills the process. The process makes a lab and waits.
#[test]
#[ignore = "run by root_down_removes_a_lab_after_its_process_was_killed"]
fn helper_makes_a_lab_and_waits() {
    let (Some(state), Some(name)) =
        (std::env::var_os("WEIR_TEST_STATE"), std::env::var("WEIR_TEST_NAME").ok())
    else {
        return;
    };
    let options = Options {
        name: Some(name),
        state: StateDirectory::at(state),
        ephemeral: true,
        ..Options::default()
    };
    let _lab = Lab::up(&Topology::builtin("linear,3").unwrap(), &options).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
fn root_down_removes_a_lab_after_its_process_was_killed() {
    if lab::testing::skip("root_down_removes_a_lab_after_its_process_was_killed", Requirements::ALL)
    {
        return;
    }
    let place = Place::new("kill");
    let folder = place.state.path().join(&place.prefix);
    let namespaces = |wanted: usize| {
        entries("/run/netns")
            .iter()
            .filter(|path| path.to_string_lossy().contains(&place.prefix))
            .count()
            >= wanted
    };
    let record = |word: &str| {
        std::fs::read_to_string(folder.join("lab.json")).unwrap_or_default().contains(word)
    };
    // The moments while the lab is set up, from the first moment to the finished lab.
    let moments: [(&str, &dyn Fn() -> bool); 6] = [
        ("its name is claimed", &|| record("starting")),
        ("one namespace is there", &|| namespaces(1)),
        ("all namespaces are there", &|| namespaces(4)),
        ("the database runs", &|| folder.join("openvswitch/ovsdb-server.pid").exists()),
        ("the switch runs", &|| folder.join("openvswitch/ovs-vswitchd.pid").exists()),
        ("it is up", &|| record("\"up\"")),
    ];
    for (moment, has_come) in moments {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "helper_makes_a_lab_and_waits", "--ignored"])
            .env("WEIR_TEST_STATE", place.state.path())
            .env("WEIR_TEST_NAME", &place.prefix)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while !has_come() {
            assert!(Instant::now() < deadline, "{moment}: never");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let link = Lab::open(&place.prefix, &place.state).ok().and_then(|lab| link(&lab));
        assert_eq!(
            Lab::down_abandoned(&place.state).unwrap(),
            std::slice::from_ref(&place.prefix),
            "{moment}"
        );
        place.check_nothing_left(link.as_deref());
    }
}

#[test]
fn root_down_removes_a_lab_with_missing_parts() {
    if lab::testing::skip("root_down_removes_a_lab_with_missing_parts", Requirements::ALL) {
        return;
    }
    let place = Place::new("gone");
    let lab = place.up("single,2", &place.options());
    let link = link(&lab);
    // The switch is stopped, the namespace of host h1 is removed, and a program runs at host h2.
    lab.open_vswitch().unwrap().stop().unwrap();
    let mut at_host = lab.command("h2", "sleep").unwrap();
    let mut at_host = at_host.arg("1000").spawn().unwrap();
    let removed =
        Command::new("ip").args(["netns", "delete", &lab.namespace("h1").unwrap()]).status();
    assert!(removed.unwrap().success());
    lab.down().unwrap();
    assert!(!at_host.wait().unwrap().success());
    place.check_nothing_left(link.as_deref());
}

/// A removal continues while it makes progress, however long a process or the machine takes.
#[test]
fn root_down_succeeds_with_a_process_that_ignores_sigterm() {
    if lab::testing::skip(
        "root_down_succeeds_with_a_process_that_ignores_sigterm",
        Requirements::ALL,
    ) {
        return;
    }
    let place = Place::new("slow");
    let lab = place.up("single,2", &place.options());
    let link = link(&lab);
    // The process ignores SIGTERM, so the lab has to wait for the process and then kill it.
    let mut stubborn = lab.command("h1", "sh").unwrap();
    let stubborn = stubborn.args(["-c", "trap '' TERM; echo; while :; do sleep 1; done"]);
    let mut stubborn = stubborn.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let said = stubborn.stdout.as_mut().unwrap();
    said.read_exact(&mut [0]).unwrap();
    lab.down().unwrap();
    assert!(!stubborn.wait().unwrap().success());
    place.check_nothing_left(link.as_deref());
}

#[test]
fn root_up_is_refused_when_a_name_is_taken_and_foreign_parts_stay() {
    if lab::testing::skip(
        "root_up_is_refused_when_a_name_is_taken_and_foreign_parts_stay",
        Requirements::ALL,
    ) {
        return;
    }
    let place = Place::new("foreign");
    let foreign = format!("weir-{}.h1", place.prefix);
    assert!(Command::new("ip").args(["netns", "add", &foreign]).status().unwrap().success());
    let topology = Topology::builtin("single,2").unwrap();
    let refused = Lab::up(&topology, &place.options());
    let stays = Path::new("/run/netns").join(&foreign).exists();
    assert!(Command::new("ip").args(["netns", "delete", &foreign]).status().unwrap().success());
    assert!(matches!(refused, Err(Error::Occupied(_))), "{refused:?}");
    assert!(stays);
    place.check_nothing_left(None);

    let lab = place.up("single,2", &place.options());
    assert!(matches!(Lab::up(&topology, &place.options()), Err(Error::NameTaken(_))));
    assert!(lab.ping_all(&PingOptions::default()).unwrap().is_complete());
    assert!(
        matches!(Lab::open("none", &place.state), Err(Error::NoSuchLab { existing, .. }) if existing == [lab.name()])
    );
}

/// A new lab gets the name and the addresses of a control link as soon as they are free.
#[test]
fn root_a_second_removal_does_not_remove_the_link_of_the_next_lab() {
    if lab::testing::skip(
        "root_a_second_removal_does_not_remove_the_link_of_the_next_lab",
        Requirements::ALL,
    ) {
        return;
    }
    let place = Place::new("twice");
    let lab = place.up("single,1", &place.options());
    let late = Lab::open(&place.prefix, &place.state).unwrap();
    let first = link(&lab).unwrap();
    lab.down().unwrap();
    let options = Options { name: Some(format!("{}-b", place.prefix)), ..place.options() };
    let next = place.up("single,1", &options);
    assert_eq!(link(&next).as_ref(), Some(&first), "the test needs the same link again");
    late.down().unwrap();
    assert!(Path::new("/sys/class/net").join(&first).exists());
    next.down().unwrap();
    place.check_nothing_left(Some(&first));
}

#[test]
fn root_twenty_switches_and_forty_hosts_are_up_within_15_seconds() {
    if lab::testing::skip(
        "root_twenty_switches_and_forty_hosts_are_up_within_15_seconds",
        Requirements::ALL,
    ) {
        return;
    }
    let place = Place::new("large");
    let start = Instant::now();
    let lab = place.up("linear,20,2", &place.options());
    let up = start.elapsed();
    let start = Instant::now();
    let report = lab.ping_all(&PingOptions { attempts: 5, ..PingOptions::default() }).unwrap();
    let ping = start.elapsed();
    let link = link(&lab);
    let start = Instant::now();
    lab.down().unwrap();
    let down = start.elapsed();
    println!(
        "20 switches, 40 hosts: up {up:.1?}, {} of {} pings {ping:.1?}, down {down:.1?}",
        report.reached(),
        report.pairs.len()
    );
    assert!(up < Duration::from_secs(15), "{up:?}");
    assert_eq!((report.reached(), report.pairs.len()), (1560, 1560));
    place.check_nothing_left(link.as_deref());
}

/// Measures up to five times until the value is as expected: a machine that is busy with other work can make a network
/// slower.
fn settles(what: &str, expected: RangeInclusive<f64>, measure: impl Fn() -> f64) {
    let mut seen = Vec::new();
    while seen.len() < 5 {
        seen.push(measure());
        if seen.last().is_some_and(|value| expected.contains(value)) {
            println!("{what}: {seen:.3?}");
            return;
        }
    }
    panic!("{what}: {seen:.3?}, never in {expected:?}");
}

#[test]
fn root_links_have_the_configured_rate() {
    if lab::testing::skip("root_links_have_the_configured_rate", Requirements::ALL) {
        return;
    }
    let place = Place::new("rate");
    let topology = "
        [[switches]]
        name = 's1'
        [[hosts]]
        name = 'h1'
        [[hosts]]
        name = 'h2'
        [[links]]
        ends = ['h1', 's1']
        [[links]]
        ends = ['s1', 'h2']
        rate = '20Mbit'";
    let lab =
        LabGuard::new(Lab::up(&Topology::from_toml(topology).unwrap(), &place.options()).unwrap());
    let options = IperfOptions { duration: Duration::from_secs(2), ..IperfOptions::default() };
    // To host h2 the switch's end of the link limits the rate; from host h2 the host's end limits the rate.
    for (from, to) in [("h1", "h2"), ("h2", "h1")] {
        settles(&format!("Mbit/s from {from} to {to} over 20 Mbit/s"), 16.0..=20.5, || {
            let megabits = lab.iperf(from, to, &options).unwrap().received / 1e6;
            assert!(megabits < 20.5, "{megabits} Mbit/s over 20 Mbit/s");
            megabits
        });
    }
    // UDP below the rate arrives. Of UDP above the rate a part is lost.
    for (rate, expected) in [("10Mbit", 0.0..=0.05), ("40Mbit", 0.3..=0.7)] {
        let udp = IperfOptions { udp: rate.parse().ok(), ..options.clone() };
        settles(&format!("loss of {rate}/s UDP over 20 Mbit/s"), expected, || {
            lab.iperf("h1", "h2", &udp).unwrap().loss.unwrap()
        });
    }
    // When a bridge is added, ovs-vswitchd checks every port again. The rate must not change.
    lab.open_vswitch()
        .unwrap()
        .vsctl(["add-br", "s9", "--", "set", "Bridge", "s9", "datapath_type=netdev"])
        .unwrap();
    let listing = text(&lab.exec("s1", &["tc", "class", "show", "dev", "s1-eth2"]).unwrap());
    assert!(listing.contains("20Mbit"), "{listing}");
}

#[test]
fn root_a_topology_with_loops_has_no_broadcast_storm() {
    if lab::testing::skip("root_a_topology_with_loops_has_no_broadcast_storm", Requirements::ALL) {
        return;
    }
    let place = Place::new("loop");
    let lab = place.up("leafspine,2,2,1", &place.options());
    let start = Instant::now();
    while !lab.is_forwarding().unwrap() {
        assert!(start.elapsed() < Duration::from_secs(60), "no spanning tree");
        std::thread::sleep(Duration::from_millis(50));
    }
    // After that, the first pings arrive.
    assert!(lab.ping_all(&PingOptions::default()).unwrap().is_complete());
    println!("spanning tree: hosts reach each other after {:.1?}", start.elapsed());
    let seen = |lab: &Lab| -> u64 {
        text(&lab.exec("h1", &["cat", "/sys/class/net/eth0/statistics/rx_packets"]).unwrap())
            .trim()
            .parse()
            .unwrap()
    };
    let before = seen(&lab);
    std::thread::sleep(Duration::from_millis(500));
    assert!(seen(&lab) - before < 100, "{} packets in half a second", seen(&lab) - before);
}

#[test]
fn root_switches_connect_to_a_controller_on_this_machine() {
    if lab::testing::skip(
        "root_switches_connect_to_a_controller_on_this_machine",
        Requirements::ALL,
    ) {
        return;
    }
    let place = Place::new("control");
    let options = Options { protocols: vec![Protocol::OPENFLOW13], ..place.options() };
    let mut lab = Lab::up(&Topology::builtin("single,2").unwrap(), &options).unwrap();
    let listener = TcpListener::bind((lab.controller_address().unwrap(), 0)).unwrap();
    // The address is the loopback of this machine, as a user writes it.
    let controller: Controller =
        format!("tcp:127.0.0.1:{}", listener.local_addr().unwrap().port()).parse().unwrap();
    lab.set_controllers(std::slice::from_ref(&controller)).unwrap();
    let (mut connection, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip(), lab.control_link().unwrap().switches);
    let mut hello = [0; 2];
    connection.read_exact(&mut hello).unwrap();
    assert_eq!(hello, [4, 0], "an OpenFlow 1.3 HELLO");
    let summary = Lab::list(&place.state).unwrap();
    assert_eq!(summary[0].controllers, [controller.to_string()]);
    // The test never completes the handshake, so the switch is not connected.
    let error = lab.wait_connected(Duration::from_millis(100)).unwrap_err().to_string();
    assert!(error.contains("must listen on 198.1"), "{error}");
    let link = link(&lab);
    lab.down().unwrap();
    place.check_nothing_left(link.as_deref());
}

#[test]
fn root_hosts_reach_each_other_through_a_controller() {
    let test = "root_hosts_reach_each_other_through_a_controller";
    let programs = [("ovs-testcontroller", "openvswitch-testcontroller")];
    if lab::testing::skip(test, Requirements::ALL) || lab::testing::skip_without(test, &programs) {
        return;
    }
    let place = Place::new("learn");
    let mut lab = Lab::up(&Topology::builtin("linear,3").unwrap(), &place.options()).unwrap();
    // The controller cannot report a port, so the test chooses the port.
    let port = packet::free_port().unwrap();
    let passive = format!("ptcp:{port}:{}", lab.controller_address().unwrap());
    let mut controller = Command::new("ovs-testcontroller")
        .args(["-vconsole:off", "-vsyslog:off", &passive])
        .env("OVS_RUNDIR", lab.folder())
        .spawn()
        .unwrap();
    lab.set_controllers(&[format!("tcp:localhost:{port}").parse().unwrap()]).unwrap();
    let connected = lab.wait_connected(Duration::from_secs(10));
    let report = lab.ping_all(&PingOptions::default());
    let flows = lab.open_vswitch().unwrap().ofctl(["dump-flows", "s2"]);
    controller.kill().unwrap();
    controller.wait().unwrap();
    lab.down().unwrap();
    connected.unwrap();
    assert!(report.unwrap().is_complete());
    assert!(
        flows.unwrap().contains("idle_timeout=60"),
        "the controller's flows, not the switch's own"
    );
    place.check_nothing_left(None);
}

#[test]
fn root_two_hosts_without_a_switch_reach_each_other() {
    let needs = Requirements { switches: false, rates: false };
    if lab::testing::skip("root_two_hosts_without_a_switch_reach_each_other", needs) {
        return;
    }
    let place = Place::new("pair");
    let mut topology = Topology::builder();
    topology.host("h1").unwrap().host("h2").unwrap().link("h1", "h2", None).unwrap();
    let lab = LabGuard::new(Lab::up(&topology.build().unwrap(), &place.options()).unwrap());
    assert_eq!(lab.controller_address(), None);
    assert!(lab.ping_all(&PingOptions::default()).unwrap().is_complete());
    lab.down().unwrap();
    place.check_nothing_left(None);
}
