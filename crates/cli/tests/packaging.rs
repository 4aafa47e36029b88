//! The package installs, serves as its user, keeps state over upgrades, refuses a downgrade, and leaves what it should; the
//! service's unit is what systemd takes, and hardened; `weir serve` tells a supervisor when it serves.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests are test code too")]

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("weir-packaging-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Whether what a test needs is there; else it is told, and under CI that is a failure.
fn has(test: &str, missing: Option<&str>) -> bool {
    if let Some(missing) = missing {
        eprintln!("SKIPPED {test}: {missing}");
        assert!(std::env::var_os("CI").is_none(), "{test}: {missing}");
    }
    missing.is_none()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn the_package_installs_upgrades_and_leaves_what_it_should() {
    let test = "the_package_installs_upgrades_and_leaves_what_it_should";
    let missing = match () {
        () if !is_there("dpkg-deb") => Some("dpkg-deb is missing (this is no Debian)"),
        // The owner of a process' own entry is who it runs as.
        () if fs::metadata("/proc/self").unwrap().uid() != 0 => Some("root is needed"),
        () => None,
    };
    if !has(test, missing) {
        return;
    }
    let mut command = Command::new(repository().join("packaging/try-deb"));
    let output = command.arg(WEIR).stdin(Stdio::null()).output().unwrap();
    let text = told(&output);
    assert!(output.status.success() && text.contains("purged"), "{text}");
}

#[test]
fn the_unit_is_what_systemd_takes_and_hardened() {
    let test = "the_unit_is_what_systemd_takes_and_hardened";
    let missing =
        (!is_there("systemd-analyze")).then_some("systemd-analyze is missing (Debian: systemd)");
    if !has(test, missing) {
        return;
    }
    let dir = scratch("unit");
    let unit = dir.join("weir.service");
    let text = fs::read_to_string(repository().join("packaging/weir.service")).unwrap();
    // systemd looks whether the program is there.
    fs::write(&unit, text.replace("/usr/bin/weir", WEIR)).unwrap();
    let analyze = |arguments: &[&str]| {
        Command::new("systemd-analyze").args(arguments).arg(&unit).output().unwrap()
    };
    let verified = analyze(&["verify", "--man=no"]);
    assert!(verified.status.success() && told(&verified).is_empty(), "{}", told(&verified));
    // In tenths: 2.0 of 10, where a service without any protection has 9.6.
    let security = analyze(&["security", "--offline=true", "--threshold=20", "--no-pager"]);
    assert!(security.status.success(), "{}", told(&security));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn serve_tells_the_supervisor_when_it_serves_and_when_it_ends() {
    let dir = scratch("notify");
    let socket = UnixDatagram::bind(dir.join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let config = dir.join("weir.toml");
    fs::write(&config, "[listen]\nopenflow = \"127.0.0.1:0\"\napi = \"127.0.0.1:0\"\n").unwrap();
    let mut child = Command::new(WEIR)
        .arg("serve")
        .arg(&config)
        .env("NOTIFY_SOCKET", dir.join("notify"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let hear = || {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let first = hear();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let second = hear();
    assert_eq!((first.as_str(), second.as_str()), ("READY=1", "STOPPING=1"));
    assert!(child.wait().unwrap().success());
    fs::remove_dir_all(dir).unwrap();
}

/// What a package has of the command line: a man page for each command, completions for three shells.
#[test]
fn pages_are_written_for_every_command() {
    let dir = scratch("pages");
    let output = Command::new(WEIR).arg("pages").arg(&dir).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let serve = fs::read_to_string(dir.join("man/man1/weir-serve.1")).unwrap();
    assert!(serve.contains("Run the hypervisor") && serve.contains("take\\-over"), "{serve}");
    assert!(!dir.join("man/man1/weir-pages.1").exists(), "the hidden command has no page");
    for file in [
        "bash-completion/completions/weir",
        "zsh/vendor-completions/_weir",
        "fish/vendor_completions.d/weir.fish",
    ] {
        assert!(fs::read_to_string(dir.join(file)).unwrap().contains("reproduce"), "{file}");
    }
    fs::remove_dir_all(dir).unwrap();
}
