//! Tests of packaging: the Debian package, the systemd unit, the notification of a supervisor, man pages and
//! completions, the version, and the container image.

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

/// Whether this machine has all that a test needs. If not, the missing thing is printed, and under CI the test fails.
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

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn the_debian_package_installs_upgrades_and_purges() {
    let test = "the_debian_package_installs_upgrades_and_purges";
    let missing = match () {
        () if !is_there("dpkg-deb") => Some("dpkg-deb is missing (this is no Debian)"),
        // The owner of `/proc/self` is the user of this process.
        () if fs::metadata("/proc/self").unwrap().uid() != 0 => Some("root is needed"),
        () if !Path::new("/lib/systemd/systemd").exists() => {
            Some("systemd is missing (Debian: systemd)")
        }
        () => None,
    };
    if !has(test, missing) {
        return;
    }
    let mut command = Command::new(repository().join("packaging/try-deb"));
    let output = command.arg(WEIR).stdin(Stdio::null()).output().unwrap();
    let text = printed(&output);
    assert!(output.status.success() && text.contains("purged"), "{text}");
}

#[test]
fn the_systemd_unit_is_valid_and_hardened() {
    let test = "the_systemd_unit_is_valid_and_hardened";
    let missing =
        (!is_there("systemd-analyze")).then_some("systemd-analyze is missing (Debian: systemd)");
    if !has(test, missing) {
        return;
    }
    let dir = scratch("unit");
    let unit = dir.join("weir.service");
    let text = fs::read_to_string(repository().join("packaging/weir.service")).unwrap();
    // systemd checks that the program exists.
    fs::write(&unit, text.replace("/usr/bin/weir", WEIR)).unwrap();
    let analyze = |arguments: &[&str]| {
        Command::new("systemd-analyze").args(arguments).arg(&unit).output().unwrap()
    };
    let verified = analyze(&["verify", "--man=no"]);
    assert!(verified.status.success() && printed(&verified).is_empty(), "{}", printed(&verified));
    // The threshold is in tenths: 2.0 of 10. A service without any protection has 9.6.
    let security = analyze(&["security", "--offline=true", "--threshold=20", "--no-pager"]);
    assert!(security.status.success(), "{}", printed(&security));
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn serve_sends_ready_and_stopping_to_the_notify_socket() {
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

/// The package has a man page for each command, and completions for three shells.
#[test]
fn man_pages_and_shell_completions_are_written_for_every_command() {
    let dir = scratch("pages");
    let output = Command::new(WEIR).arg("pages").arg(&dir).output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    let serve = fs::read_to_string(dir.join("man/man1/weir-serve.1")).unwrap();
    assert!(serve.contains("Run the hypervisor") && serve.contains("take\\-over"), "{serve}");
    assert!(!dir.join("man/man1/weir-pages.1").exists(), "the hidden command has no page");
    // A page names the pages of its subcommands. Each of these pages exists, and has a date.
    let pages: Vec<String> = fs::read_dir(dir.join("man/man1"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let mut commands = Vec::new();
    for page in &pages {
        let head = page.lines().find(|line| line.starts_with(".TH ")).unwrap();
        let words: Vec<&str> = head.split_whitespace().collect();
        let is_date = |word: &str| word.len() == 10 && word.starts_with("20");
        assert!(words.get(3).is_some_and(|word| is_date(word)), "{head}");
        assert!(head.ends_with(&format!("\"weir {}\" Weir", env!("CARGO_PKG_VERSION"))), "{head}");
        let below = page.lines().filter_map(|line| line.strip_suffix("(1)"));
        commands.extend(below.map(|name| name.replace('\\', "")));
    }
    assert!(commands.len() > 80 && commands.len() + 1 == pages.len(), "{commands:?}");
    let completions = [
        "bash-completion/completions/weir",
        "zsh/vendor-completions/_weir",
        "fish/vendor_completions.d/weir.fish",
    ]
    .map(|file| fs::read_to_string(dir.join(file)).unwrap());
    for command in &commands {
        assert!(dir.join(format!("man/man1/{command}.1")).exists(), "{command}");
        let last = command.rsplit('-').next().unwrap();
        assert!(completions.iter().all(|text| text.contains(last)), "{command}");
    }
    bash_completes(&dir.join("bash-completion/completions/weir"));
    renders(&dir.join("man/man1"));
    fs::remove_dir_all(dir).unwrap();
}

fn bash_completes(file: &Path) {
    let script = "source \"$0\"; COMP_WORDS=(weir report d); COMP_CWORD=2; _weir weir d report; echo ${COMPREPLY[@]}";
    let output = Command::new("bash").args(["-c", script]).arg(file).output().unwrap();
    assert_eq!(printed(&output).trim(), "draw");
}

/// Asserts that groff, which `man` runs, reports no faults in the pages.
fn renders(folder: &Path) {
    let test = "man_pages_and_shell_completions_are_written_for_every_command";
    if !has(test, (!is_there("groff")).then_some("groff is missing (Debian: groff-base)")) {
        return;
    }
    let pages = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut groff = Command::new("groff");
    groff.args(["-K", "utf8", "-T", "utf8", "-man", "-ww", "-z", "-rLL=80n"]).args(pages);
    let output = groff.output().unwrap();
    assert!(output.status.success() && printed(&output).is_empty(), "{}", printed(&output));
}

/// A source tarball has no commit, unless the environment of the build gives the commit.
#[test]
fn the_version_shows_the_commit_when_the_commit_is_known() {
    let dir = scratch("version");
    let build = dir.join("build");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-o"]).arg(&build);
    rustc.arg(repository().join("crates/cli/build.rs")).env("CARGO_PKG_VERSION", "9.9.9");
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    let version = |commit: Option<&str>| {
        let mut command = Command::new(&build);
        // A repository in a parent folder does not count.
        command.current_dir(&dir).env_remove("WEIR_COMMIT").env("GIT_CEILING_DIRECTORIES", "/");
        command.envs(commit.map(|commit| ("WEIR_COMMIT", commit)));
        let text = printed(&command.output().unwrap());
        text.lines()
            .find_map(|line| line.strip_prefix("cargo::rustc-env=WEIR_VERSION="))
            .unwrap()
            .to_owned()
    };
    assert_eq!(version(None), "9.9.9");
    assert_eq!(version(Some("")), "9.9.9");
    assert_eq!(version(Some("abc123")), "9.9.9 (abc123)");
    fs::remove_dir_all(dir).unwrap();
}

/// The image in this test has a small program instead of `weir`: a static `weir`, as `packaging/try-image` runs it,
/// takes minutes to build.
#[test]
fn the_container_image_has_an_unprivileged_user_and_a_valid_configuration() {
    let test = "the_container_image_has_an_unprivileged_user_and_a_valid_configuration";
    let missing = match () {
        () if !is_there("buildah") => Some("buildah is missing (Debian: buildah)"),
        () if fs::metadata("/proc/self").unwrap().uid() != 0 => Some("root is needed"),
        () => None,
    };
    if !has(test, missing) {
        return;
    }
    let dir = scratch("image");
    let storage = dir.join("storage.conf");
    let (graph, run) = (dir.join("graph"), dir.join("run"));
    let text = format!("[storage]\ndriver = \"vfs\"\ngraphroot = {graph:?}\nrunroot = {run:?}\n");
    fs::write(&storage, text).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).env("CONTAINERS_STORAGE_CONF", &storage);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", printed(&output));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let build = repository().join("packaging/build-image");
    let size = run(build.to_str().unwrap(), &["/bin/true"]);
    assert!(size.starts_with("localhost/weir") && size.ends_with('B'), "{size}");

    let inspected = run("buildah", &["inspect", "--type", "image", "localhost/weir"]);
    let inspected: serde_json::Value = serde_json::from_str(&inspected).unwrap();
    let config = &inspected["OCIv1"]["config"];
    for (key, expected) in [
        ("User", serde_json::json!("65534:65534")),
        ("Entrypoint", serde_json::json!(["/usr/bin/weir"])),
        ("Cmd", serde_json::json!(["serve", "/etc/weir/weir.toml", "--state", "/var/lib/weir"])),
        ("Volumes", serde_json::json!({"/var/lib/weir": {}})),
        ("ExposedPorts", serde_json::json!({"6653": {}})),
        ("Env", serde_json::json!(["WEIR_API=unix:/var/lib/weir/api.sock"])),
    ] {
        assert_eq!(config[key], expected, "{key}");
    }
    let container = run("buildah", &["from", "localhost/weir"]);
    let root = PathBuf::from(run("buildah", &["mount", &container]));
    let state = fs::metadata(root.join("var/lib/weir")).unwrap();
    assert_eq!((state.uid(), state.gid(), state.mode() & 0o777), (65534, 65534, 0o750));
    assert_eq!(fs::metadata(root.join("var/lib")).unwrap().uid(), 0);
    assert_eq!(fs::metadata(root.join("usr/bin/weir")).unwrap().mode() & 0o777, 0o755);
    let toml = root.join("etc/weir/weir.toml");
    let text = fs::read_to_string(&toml).unwrap();
    assert!(text.contains("\"0.0.0.0:6653\"") && text.contains("unix:/var/lib/weir/"), "{text}");
    let checked = Command::new(WEIR).arg("check").arg(&toml).output().unwrap();
    assert!(checked.status.success(), "{}", printed(&checked));
    run("buildah", &["umount", &container]);
    fs::remove_dir_all(dir).unwrap();
}
