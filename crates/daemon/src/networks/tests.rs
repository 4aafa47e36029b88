//! Tests of networks without connected switches and without REST. `tests/networks.rs` has the tests through REST.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use super::inner::PLACES;
use super::*;
use crate::store::Store;
use crate::store::tests::{documents, done};
use crate::topology;

const TENANTS: &str = "[listen]\nopenflow = \"127.0.0.1:0\"\n[[tenants]]\nname = \"red\"\n[tenants.network]\n\
    [[tenants.network.switches]]\ndpid = \"0xa1\"\non = \"1\"\n\
    [[tenants.network.ports]]\nswitch = \"0xa1\"\nnumber = 1\nat = \"1 port 1\"\n";

struct Scene {
    config: Config,
    snapshot: Snapshot,
    following: Setup,
    inbox: Arc<Inbox>,
    networks: Networks,
}

impl Scene {
    fn new(documents: Documents) -> Scene {
        let config = Config::parse("weir.toml", TENANTS).unwrap();
        let ids = Store::memory().unwrap().tenant_ids(&["red"]).unwrap();
        let base = Snapshot {
            policy: Arc::new(config.policy(&ids)),
            controllers: Arc::default(),
            settings: hypervisor::Settings::default(),
            keepalive: config.keepalive,
            reconnect: config.reconnect,
            identity: crate::identity::Identity::default(),
            tracks_flows: false,
            admission: Arc::default(),
        };
        let following = Setup::new(&config, base.policy.clone());
        let (_, joining) = big_switches::Prepared::new(Instant::now()).unwrap();
        let inbox = Arc::new(Inbox::default());
        let networks = Networks::prepare(
            &config,
            &mut base.clone(),
            following.clone(),
            documents,
            inbox.clone(),
            joining,
            Arc::default(),
        );
        Scene { config, snapshot: base, following, inbox, networks: networks.unwrap() }
    }

    /// Whether the topology got a configuration since the last call.
    fn has_configured_topology(&self) -> bool {
        self.inbox.wait(Some(Instant::now()), None).setup.is_some()
    }

    fn change(&self, operations: &str) -> Outcome {
        let operations: Vec<Operation> = serde_json::from_str(operations).unwrap();
        self.networks.control().change("red", &operations, &How::plain(false)).unwrap()
    }
}

const HOST: &str =
    r#"[{"put-host": {"mac": "02:00:00:00:00:01", "address": ["10.0.0.1"], "at": "0xa1 port 1"}}]"#;

/// Documents of a store that reports each write under the name `at`, and blocks the write until the sender is dropped.
fn stuck(at: &'static str) -> (Documents, Receiver<()>, Sender<()>) {
    let (sender, asked) = mpsc::channel();
    let (gate, opens) = mpsc::channel();
    let documents = documents(move |name| {
        if name == at {
            let _ = sender.send(());
            let _ = opens.recv();
        }
        Ok(())
    });
    (documents, asked, gate)
}

#[test]
fn networks_follow_the_topology_while_the_store_is_blocked() {
    let (documents, asked, gate) = stuck(PLACES);
    let mut scene = Scene::new(documents);
    // The gate is dropped before the scene, also if the test fails.
    let _gate = gate;
    let watch = Watch::default();
    scene.networks.start(watch.clone(), Vec::new()).unwrap();
    asked.recv().unwrap();
    let shared = Arc::clone(&scene.networks.shared);
    let number = move || shared.lock().number;
    let before = done(number.clone());
    watch.publish(topology::Snapshot::default());
    done(move || {
        while number() == before {
            thread::yield_now();
        }
    });
    let control = scene.networks.control();
    assert_eq!(done(move || control.list()).len(), 1);
}

#[test]
fn networks_are_readable_while_a_change_is_being_stored() {
    let (documents, asked, gate) = stuck("networks/edits");
    let scene = Arc::new(Scene::new(documents));
    let hosts = {
        let control = scene.networks.control();
        move || control.list()[0].network.hosts.len()
    };
    let changing = Arc::clone(&scene);
    let change = thread::spawn(move || changing.change(HOST));
    asked.recv().unwrap();
    assert_eq!(done(hosts.clone()), 0, "stored first, made then");
    drop(gate);
    change.join().unwrap();
    assert_eq!(hosts(), 1);
}

#[test]
fn changes_of_physical_ports_and_each_configuration_configure_the_topology() {
    let scene = Scene::new(Store::memory().unwrap().documents());
    assert!(scene.has_configured_topology() && !scene.has_configured_topology());
    let port = |at: u8| {
        format!(r#"[{{"put-port": {{"switch": "0xa1", "number": 2, "at": "1 port {at}"}}}}]"#)
    };
    let stop = r#"[{"stop": {"port": "0xa1 port 2"}}]"#.to_owned();
    let remove = r#"[{"remove": {"port": "0xa1 port 2"}}]"#.to_owned();
    for (change, configures) in [
        (HOST.to_owned(), false),
        (port(2), true),
        (port(2), false),
        (stop, false),
        (port(3), true),
        (remove, true),
    ] {
        scene.change(&change);
        assert_eq!(scene.has_configured_topology(), configures, "{change}");
    }
    for _ in 0..2 {
        let (snapshot, following) = (scene.snapshot.clone(), scene.following.clone());
        scene.networks.configure(&scene.config, snapshot, following).unwrap();
        assert!(
            scene.has_configured_topology(),
            "what the topology makes of a configuration is its own affair"
        );
    }
}

#[test]
fn the_view_of_networks_is_built_without_the_lock() {
    let scene = Scene::new(Store::memory().unwrap().documents());
    let shared = Arc::clone(&scene.networks.shared);
    let all = scene.networks.control().show(|picture| {
        done(move || drop(shared.lock()));
        picture.views()
    });
    assert_eq!((all.len(), &*all[0].tenant, all[0].network.ports.len()), (1, "red", 1));
}
