//! Tests of README.md: its commands work, and the first command is near the beginning. `book.rs` tests its links.
//!
//! The test runs each command of a `sh` block in the repository, as a reader does, with the built `weir`. A comment
//! below says who runs the command that cannot run inside a test.

#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};

/// CI runs exactly this command. Inside a test, the command would start the test again.
const RUN_BY_CI: &str = "make test";

#[test]
fn commands_of_the_readme_work() {
    let commands = shell_commands(&read("README.md"));
    assert!(commands.iter().any(|command| command == RUN_BY_CI), "{commands:?}");
    assert!(read(".ci/run").lines().any(|line| line == format!("exec {RUN_BY_CI}")));
    let results = env::temp_dir().join(format!("weir-readme-{}", process::id()));
    for command in commands.iter().filter(|command| *command != RUN_BY_CI) {
        let weir = Path::new(env!("CARGO_BIN_EXE_weir"));
        let mut path = weir.parent().expect("a folder").as_os_str().to_owned();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(repository())
            .env("PATH", path)
            // By default, the Makefile would build a release, and the demo would run for a minute and write into the
            // repository.
            .env("WEIR", weir)
            .env("DEMO", format!("--quick --out {}", results.display()))
            .stdin(Stdio::null())
            .output()
            .expect("start bash");
        let [stdout, stderr] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let _ = fs::remove_dir_all(&results);
        assert!(output.status.success(), "`{command}`: {}\n{stdout}\n{stderr}", output.status);
    }
}

#[test]
fn the_first_command_of_the_readme_is_within_300_words() {
    let readme = read("README.md");
    let before = readme.split("```sh").next().unwrap_or_default();
    let words = before.split_whitespace().count();
    assert!(words <= 300, "{words} words before the first command");
}

/// `scripts/setup` reports a Rust that is too old at once, before any errors of the compiler.
#[test]
fn setup_refuses_an_old_rust_and_prints_the_needed_version() {
    let folder = env::temp_dir().join(format!("weir-old-rust-{}", process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let manifest = read("Cargo.toml");
    let needed = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let needed = needed.expect("a version").trim_matches('"');
    let setup = |version: &str| {
        for program in ["cargo", "rustc"] {
            let path = folder.join(program);
            let script = format!("#!/bin/sh\necho {program} {version} '(0123abc 2026-01-01)'\n");
            fs::write(&path, script).expect("a program");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&path, mode).expect("it can be run");
        }
        // The script is sourced without its last line, so that the script installs nothing.
        let script = "source <(sed '$d' scripts/setup); require_cargo";
        let output = Command::new("bash")
            .args(["-c", script, "scripts/setup"])
            .current_dir(repository())
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()))
            .output()
            .expect("start bash");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (version, expected) in
        [("1.63.0", 1), ("1.9.0", 1), (needed, 0), (&format!("{needed}.1"), 0), ("2.0.0", 0)]
    {
        let (code, said) = setup(version);
        assert_eq!(code, Some(expected), "{version}: {said}");
        assert!(expected == 0 || (said.contains(version) && said.contains(needed)), "{said}");
    }
    fs::remove_dir_all(&folder).expect("it goes");
    assert!(read("README.md").contains(&format!("Rust {needed} or later")));
}

/// Returns the lines of the blocks that begin with ```` ```sh ````.
fn shell_commands(page: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(language) => in_block = !in_block && language == "sh",
            None if in_block && !line.is_empty() => commands.push(line.to_owned()),
            None => {}
        }
    }
    commands
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}
