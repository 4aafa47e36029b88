//! Tests of reloading: changes of the configuration file, and the configuration in force after each change.

use std::sync::mpsc::{self, Receiver};

use super::*;

const RED: &str = "[[tenants]]\nname = \"red\"\n";
const BOTH: &str = "[[tenants]]\nname = \"blue\"\n[[tenants]]\nname = \"red\"\n";

struct Scene {
    folder: PathBuf,
    reloader: Reloader,
    applied: Receiver<Vec<String>>,
    metrics: Arc<Registry>,
}

impl Scene {
    fn new(name: &str) -> Scene {
        let folder =
            std::env::temp_dir().join(format!("weir-reload-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("weir.toml");
        fs::write(&path, RED).unwrap();
        let (sender, applied) = mpsc::channel();
        let metrics = Registry::new();
        let current = Current::new(config::load(&path).unwrap());
        let sink = move |config: &Config| {
            let tenants: Vec<String> = config.tenants.iter().map(|it| it.name.clone()).collect();
            if tenants.iter().any(|name| name == "unwanted") {
                return Err("the sink wants none of it".to_owned());
            }
            sender.send(tenants).map_err(|error| error.to_string())
        };
        let reloader = Reloader::new(&path, current, Box::new(sink), Arc::clone(&metrics));
        Scene { folder, reloader, applied, metrics }
    }

    fn write(&self, text: &str) {
        fs::write(&self.reloader.path, text).unwrap();
    }

    /// The result of the second of two polls: the first poll sees a changed file, and the second poll sees the same
    /// file.
    fn settle(&mut self) -> Outcome {
        match self.reloader.poll() {
            Outcome::Unchanged => self.reloader.poll(),
            early => panic!("read before it stood still: {early:?}"),
        }
    }

    fn names(&self) -> Vec<String> {
        self.reloader.current.get().tenants.iter().map(|tenant| tenant.name.clone()).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_changed_configuration_file_is_applied_when_the_contents_are_stable() {
    let mut scene = Scene::new("change");
    assert!(matches!(scene.settle(), Outcome::Unchanged), "it is what it was at start");
    scene.write("");
    assert!(matches!(scene.reloader.poll(), Outcome::Unchanged), "an editor has truncated it");
    scene.write(BOTH);
    assert!(matches!(scene.reloader.poll(), Outcome::Unchanged), "it may write more");
    assert!(matches!(scene.reloader.poll(), Outcome::Applied));
    assert_eq!(scene.applied.try_iter().collect::<Vec<_>>(), [["blue", "red"]]);
    assert_eq!(scene.names(), ["blue", "red"]);
    assert!(matches!(scene.settle(), Outcome::Unchanged));
    assert_eq!(
        (scene.metrics.process.reloads_applied.get(), scene.metrics.process.reloads_refused.get()),
        (2, 0)
    );
}

#[test]
fn a_configuration_file_replaced_by_renaming_is_applied() {
    let mut scene = Scene::new("rename");
    assert!(matches!(scene.settle(), Outcome::Unchanged));
    let other = scene.folder.join("other");
    fs::write(&other, BOTH).unwrap();
    fs::rename(&other, &scene.reloader.path).unwrap();
    assert!(matches!(scene.settle(), Outcome::Applied));
}

#[test]
fn an_invalid_file_is_refused_and_the_old_configuration_stays_active() {
    let mut scene = Scene::new("error");
    for (text, part) in [
        (
            "[[tenants]]\nname = \"red\"\nwieght = 1\n",
            "weir.toml:3:1: tenants[0]: unknown key `wieght`",
        ),
        ("[[tenants\n", "weir.toml:1:"),
        ("[[tenants]]\nname = \"unwanted\"\n", "wants none of it"),
    ] {
        scene.write(text);
        let Outcome::Refused(refusal) = scene.settle() else { panic!("{text}") };
        assert!(refusal.to_string().contains(part), "{refusal}");
        assert_eq!(scene.names(), ["red"]);
        assert!(matches!(scene.settle(), Outcome::Unchanged), "said once");
    }
    assert_eq!(scene.applied.try_iter().count(), 0);
    assert_eq!(scene.metrics.process.reloads_refused.get(), 3);
    scene.write(BOTH);
    assert!(matches!(scene.settle(), Outcome::Applied), "and the next good one is taken");
}

#[test]
fn a_missing_configuration_file_leaves_the_configuration_active() {
    let mut scene = Scene::new("away");
    fs::remove_file(&scene.reloader.path).unwrap();
    assert!(matches!(scene.settle(), Outcome::Unchanged));
    let Outcome::Refused(refusal) = scene.reloader.reload() else {
        panic!("SIGHUP wants an answer")
    };
    assert!(refusal.to_string().contains("cannot read"), "{refusal}");
    scene.write(BOTH);
    assert!(matches!(scene.settle(), Outcome::Applied));
}

#[test]
fn sighup_applies_the_file_at_once_even_if_unchanged() {
    let mut scene = Scene::new("sighup");
    scene.write(BOTH);
    assert!(matches!(scene.reloader.reload(), Outcome::Applied));
    assert!(matches!(scene.reloader.reload(), Outcome::Applied), "certificates may be new");
    assert!(matches!(scene.settle(), Outcome::Unchanged));
    assert_eq!(scene.applied.try_iter().count(), 2);
}

#[test]
fn a_reload_does_not_change_listen_addresses_and_store_settings() {
    let mut scene = Scene::new("listen");
    scene.write(&format!(
        "[listen]\nopenflow = \"127.0.0.1:1\"\n[store]\nsync = \"always\"\n{BOTH}"
    ));
    assert!(matches!(scene.settle(), Outcome::Applied));
    let active = scene.reloader.current.get();
    assert_eq!(active.listen.openflow[0].to_string(), "tcp:127.0.0.1:6653");
    assert_eq!(active.store, config::Store::default());
    assert_eq!(active.tenants.len(), 2);
}
