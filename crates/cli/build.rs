//! Builds the commit that the program is made from into it: `WEIR_COMMIT`, and `WEIR_VERSION` for `--version`.
//!
//! Without git, or outside of a clone of this repository (a tarball), there is none, unless the environment of the
//! build sets
//! `WEIR_COMMIT`. Only this crate is built again when the commit changes.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=WEIR_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let commit = std::env::var("WEIR_COMMIT").ok().filter(|commit| !commit.is_empty());
    let version = env!("CARGO_PKG_VERSION");
    match commit.or_else(commit_of_clone) {
        Some(commit) => {
            println!("cargo::rustc-env=WEIR_COMMIT={commit}");
            println!("cargo::rustc-env=WEIR_VERSION={version} ({commit})");
        }
        None => println!("cargo::rustc-env=WEIR_VERSION={version}"),
    }
}

fn commit_of_clone() -> Option<String> {
    // If a tarball lies in another repository, git would give the commit of that repository.
    if git(&["rev-parse", "--show-prefix"])? != "crates/cli/" {
        return None;
    }
    // The list of where HEAD has been changes with every commit. A file that is not there would have this run every
    // time.
    for name in ["logs/HEAD", "HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
