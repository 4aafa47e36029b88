//! Certificates as Open vSwitch users make them: by `ovs-pki`, one authority for controllers and one for switches.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::folder::Folder;

pub struct Pki {
    folder: Folder,
}

impl Pki {
    pub fn new() -> Pki {
        let pki = Pki { folder: Folder::new() };
        pki.run(&["init", "--force"]);
        pki
    }

    /// Makes a key and a certificate of `name`; `class` is "switch" or "controller".
    pub fn sign(&self, name: &str, class: &str) {
        self.run(&["req+sign", name, class]);
    }

    pub fn private_key(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}-privkey.pem"))
    }

    pub fn certificate(&self, name: &str) -> PathBuf {
        self.folder.path().join(format!("{name}-cert.pem"))
    }

    /// The certificate of the authority for this class, for peers that check its certificates.
    pub fn ca(&self, class: &str) -> PathBuf {
        self.folder.path().join(format!("{class}ca/cacert.pem"))
    }

    fn run(&self, arguments: &[&str]) {
        let directory = format!("--dir={}", self.folder.path().display());
        let log = format!("--log={}", self.folder.join("log"));
        let output = Command::new("ovs-pki")
            .args([directory, log])
            .args(arguments)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("start ovs-pki");
        assert!(
            output.status.success(),
            "ovs-pki {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
