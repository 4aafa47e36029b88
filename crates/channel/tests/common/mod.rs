//! A key infrastructure made by the real `ovs-pki`, for the TLS tests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]
#![allow(clippy::print_stderr, reason = "a skipped test must say so")]
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use channel::{Tls, TlsFiles};

/// A folder that goes away with its owner.
pub struct TempDir(pub PathBuf);

impl TempDir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("channel-{}-{number}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The two CAs of `ovs-pki`, with one switch's and one controller's certificate.
pub struct Pki {
    pub dir: TempDir,
}

impl Pki {
    /// `None` (and a loud word) where `ovs-pki` is missing; under CI that is a failure.
    pub fn new(test: &str) -> Option<Self> {
        if !has_tool(test, "ovs-pki") {
            return None;
        }
        let pki = Pki { dir: TempDir::new() };
        pki.fill();
        Some(pki)
    }

    /// Other keys; the CAs' names are the same, or (as `ovs-pki` puts the second into them)
    /// certainly others.
    pub fn other(&self, same_names: bool) -> Self {
        let other = Pki { dir: TempDir::new() };
        for ca in ["controllerca", "switchca"] {
            let file = format!("pki/{ca}/ca.cnf");
            let text = std::fs::read_to_string(self.path(&file)).unwrap();
            let name = if same_names { "CA Certificate" } else { "CA Certificate of others" };
            std::fs::create_dir_all(other.path(&format!("pki/{ca}"))).unwrap();
            std::fs::write(other.path(&file), text.replace("CA Certificate", name)).unwrap();
        }
        other.fill();
        other
    }

    fn fill(&self) {
        self.run(&["--force", "init"]);
        self.run(&["req+sign", "sw", "switch"]);
        self.run(&["req+sign", "ctl", "controller"]);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.0.join(name)
    }

    /// What `ovs-vsctl set-ssl` would be given on the switch.
    pub fn switch(&self) -> TlsFiles {
        self.files("sw", "controllerca")
    }

    /// What a controller is given.
    pub fn controller(&self) -> TlsFiles {
        self.files("ctl", "switchca")
    }

    pub fn files(&self, holder: &str, ca: &str) -> TlsFiles {
        TlsFiles {
            private_key: self.path(&format!("{holder}-privkey.pem")),
            certificate: self.path(&format!("{holder}-cert.pem")),
            ca_certificate: self.path(&format!("pki/{ca}/cacert.pem")),
        }
    }

    pub fn run(&self, arguments: &[&str]) {
        let output = Command::new("ovs-pki")
            .current_dir(&self.dir.0)
            .arg(format!("--dir={}", self.path("pki").display()))
            .arg(format!("--log={}", self.path("log").display()))
            .arg("--batch")
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "ovs-pki {arguments:?}: {output:?}");
    }
}

pub fn load(files: &TlsFiles) -> Tls {
    Tls::load(files).unwrap_or_else(|error| panic!("{error}"))
}

/// Whether a program can be started. If not, says that `test` is skipped; under CI it fails.
pub fn has_tool(test: &str, tool: &str) -> bool {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file()));
    if !found {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci != "true"), "{tool} is missing under CI");
        eprintln!("SKIPPED {test}: {tool} is not installed (Debian: openvswitch-common)");
    }
    found
}
