//! Where the demo's results go, and what goes with the demo.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// The results' folder, and in it the folder of everything that goes when the demo ends.
pub(crate) struct Folder {
    pub(crate) out: PathBuf,
    /// Whether it is ours to remove when there are no results.
    is_new: bool,
    keep: bool,
}

impl Folder {
    pub(crate) fn claim(out: &Path, keep: bool) -> anyhow::Result<Folder> {
        let is_new = !out.exists();
        let fail = || format!("cannot use --out {}", out.display());
        fs::create_dir_all(out).with_context(fail)?;
        // Programs in other namespaces and folders get the names of files in it.
        let out = out.canonicalize().with_context(fail)?;
        let folder = Folder { out, is_new, keep };
        let work = folder.work();
        if work.exists() {
            fs::remove_dir_all(&work).with_context(fail)?;
        }
        fs::create_dir(&work).with_context(fail)?;
        Ok(folder)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.out.join("work")
    }

    pub(crate) fn finish(mut self, transcript: &str) -> anyhow::Result<()> {
        let file = self.out.join("demo.txt");
        fs::write(&file, transcript).with_context(|| format!("cannot write {}", file.display()))?;
        self.is_new = false;
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nobody is left to be told about a folder that cannot be removed.
        if !self.keep {
            let _ = fs::remove_dir_all(self.work());
        }
        if self.is_new {
            let _ = fs::remove_dir_all(&self.out);
        }
    }
}
