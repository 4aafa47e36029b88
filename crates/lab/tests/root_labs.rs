//! Labs on this machine, for real: they need root and Open vSwitch, and skip by name without.

#![allow(clippy::unwrap_used)] // A helper of tests fails as a test does.

use std::path::PathBuf;

use lab::{Lab, LabGuard, Options, PingOptions, Requirements, StateDirectory, Topology};

/// A state directory of one test's own.
struct Place {
    state: StateDirectory,
    name: String,
}

impl Place {
    fn new(name: &str) -> Place {
        let path: PathBuf =
            std::env::temp_dir().join(format!("weir-lab-{}-{name}", std::process::id()));
        Place { state: StateDirectory::at(path), name: format!("t{}-{name}", std::process::id()) }
    }

    fn options(&self) -> Options {
        Options {
            name: Some(self.name.clone()),
            state: self.state.clone(),
            ephemeral: true,
            ..Options::default()
        }
    }

    fn up(&self, topology: &str, options: &Options) -> LabGuard {
        LabGuard::new(Lab::up(&Topology::builtin(topology).unwrap(), options).unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(self.state.path());
    }
}

#[test]
fn root_linear_forwards_and_leaves_nothing() {
    if lab::testing::skip("root_linear_forwards_and_leaves_nothing", Requirements::ALL) {
        return;
    }
    let place = Place::new("linear");
    let lab = place.up("linear,2", &place.options());
    let report = lab.ping_all(&PingOptions::default()).unwrap();
    assert!(report.is_complete(), "{report:?}");
    lab.down().unwrap();
}
