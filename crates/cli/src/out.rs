//! Writes the results of commands that measure, to stdout and to the folder of `--out DIR`. The folder is checked
//! before the measurement, so that no result is lost because the folder cannot be written to.

use crate::talk;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The options that all commands with a results folder have.
#[derive(clap::Args)]
pub struct Output {
    /// Write result.json, CSV, figures and report.html here
    #[arg(long, value_name = "DIR", value_parser = folder)]
    out: Option<PathBuf>,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

impl Output {
    /// Prints the text, or the JSON if the user has asked for JSON; then writes the folder, if the user has named one.
    pub fn give(
        &self,
        text: &str,
        json: impl FnOnce() -> String,
        write: impl FnOnce(&Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        talk::wipe();
        let mut stdout = std::io::stdout().lock();
        match self.json {
            true => stdout.write_all(json().as_bytes())?,
            false => stdout.write_all(text.as_bytes())?,
        }
        if let Some(out) = &self.out {
            write(out)?;
            writeln!(std::io::stderr(), "results: {}", out.join("report.html").display())?;
        }
        Ok(())
    }
}

/// Checks that results can be written to the folder. The folder exists, or can be made. The check makes and removes a
/// test folder, because permissions alone do not show that a file system refuses writes.
pub fn folder(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let absolute = std::path::absolute(&path).map_err(|error| error.to_string())?;
    // The test folder is made in the nearest existing folder. A link without a target exists, but is no folder.
    let is_there = |place: &PathBuf| place.symlink_metadata().is_ok();
    let mut nearest = absolute;
    while !is_there(&nearest) && nearest.pop() {}
    if !nearest.is_dir() {
        return Err(format!("{} is no folder", nearest.display()));
    }
    let trial = nearest.join(format!(".weir-{}", std::process::id()));
    match fs::create_dir(&trial).and_then(|()| fs::remove_dir(&trial)) {
        Ok(()) => Ok(path),
        Err(error) => Err(format!("cannot write to {}: {error}", nearest.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritable_output_folder_is_refused_and_the_check_makes_no_folder() {
        let home = std::env::temp_dir().join(format!("weir-out-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("file"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", home.join("link")).unwrap();
        let of = |name: &str| folder(home.join(name).to_str().unwrap());
        for name in ["", "new", "new/deep/er"] {
            assert_eq!(of(name), Ok(home.join(name)), "{name}");
        }
        for name in ["file", "file/below", "link", "link/below"] {
            assert!(of(name).unwrap_err().contains("is no folder"), "{name}");
        }
        assert!(folder("/proc/weir").unwrap_err().contains("cannot write to /proc"));
        assert_eq!(fs::read_dir(&home).unwrap().count(), 2);
        fs::remove_dir_all(&home).unwrap();
    }
}
