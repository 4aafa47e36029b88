//! Manages the folder of the demo's results. The folder also holds the files that the demo removes at its end.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the results, with a subfolder of all files that the demo removes at its end.
pub(crate) struct Folder {
    pub(crate) out: PathBuf,
    /// Whether the demo made the folder, and so removes the folder if there are no results.
    is_new: bool,
    keep: bool,
}

impl Folder {
    pub(crate) fn claim(out: &Path, keep: bool) -> anyhow::Result<Folder> {
        let is_new = !out.exists();
        let fail = || format!("cannot use --out {}", out.display());
        fs::create_dir_all(out).with_context(fail)?;
        // Programs in other namespaces and folders get the names of files in this folder.
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
        // A failure to remove the folder has no receiver.
        if !self.keep {
            let _ = fs::remove_dir_all(self.work());
        }
        if self.is_new {
            let _ = fs::remove_dir_all(&self.out);
        }
    }
}
