//! The folder and the programs of a measurement.

use crate::signals;
use anyhow::Context;
use bench::Stop;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder for the systems' configurations and logs. The command removes the folder at every end.
pub struct Work {
    path: PathBuf,
    stop: Stop,
}

impl Work {
    pub fn new() -> anyhow::Result<Work> {
        Work::beside(|| {})
    }

    /// Makes the folder. If a second signal ends the command at once, `clean_up` runs first.
    pub fn beside(clean_up: impl FnOnce() + Send + 'static) -> anyhow::Result<Work> {
        let path = std::env::temp_dir().join(format!("weir-bench-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        let again = path.clone();
        let stop = Stop::default();
        let asked = stop.clone();
        signals::stop_with_children(
            move || asked.ask(),
            move || {
                clean_up();
                remove(&again);
            },
        )?;
        Ok(Work { path, stop })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The request to stop that a signal makes.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    // When a signal ends the command, the measurement may be writing into the folder. The measurement stops at its next
    // progress message ([`crate::talk::progress`]). A failure to remove the folder has no receiver.
    for _ in 0..50 {
        let _ = fs::remove_dir_all(path);
        if !path.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// This program's own `serve`, as a command.
pub fn own_serve() -> anyhow::Result<Vec<String>> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(vec![program.display().to_string(), "serve".to_owned()])
}
