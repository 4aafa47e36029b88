//! A folder of one test, which is removed with its contents.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("weir-e2e-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of `name` in this folder, as text for arguments of programs.
    pub fn join(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a path in UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
