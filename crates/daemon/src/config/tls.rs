//! `[tls]`: Weir's identity, and the trusted authorities: one for switches, another for controllers.

use std::path::{Path, PathBuf};

use channel::TlsFiles;

use super::reader::{Table, Value};

/// PEM files. The authority of a side is present if the side has an `ssl:` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Weir's private key.
    pub private_key: PathBuf,
    /// Weir's certificate.
    pub certificate: PathBuf,
    /// The authority that signs switches' certificates.
    pub switch_ca: Option<PathBuf>,
    /// The authority that signs controllers' certificates.
    pub controller_ca: Option<PathBuf>,
}

impl Tls {
    /// Weir's identity, and the authority for switches.
    pub fn towards_switches(&self) -> Option<TlsFiles> {
        self.files_with(self.switch_ca.as_ref()?)
    }

    /// Weir's identity, and the authority for controllers.
    pub fn towards_controllers(&self) -> Option<TlsFiles> {
        self.files_with(self.controller_ca.as_ref()?)
    }

    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let own = [Some(&self.private_key), Some(&self.certificate)];
        own.into_iter().chain([self.switch_ca.as_ref(), self.controller_ca.as_ref()]).flatten()
    }

    fn files_with(&self, ca: &Path) -> Option<TlsFiles> {
        Some(TlsFiles {
            private_key: self.private_key.clone(),
            certificate: self.certificate.clone(),
            ca_certificate: ca.to_owned(),
        })
    }
}

pub(super) fn read(table: &mut Table<'_, '_>) -> Option<Tls> {
    let private_key = table.require("private_key", "\"weir-privkey.pem\"", Value::file);
    let certificate = table.require("certificate", "\"weir-cert.pem\"", Value::file);
    let switch_ca = table.get("switch_ca", Value::file);
    let controller_ca = table.get("controller_ca", |value| {
        let controller_ca = value.file()?;
        if switch_ca.as_ref() == Some(&controller_ca) {
            let help =
                "a tenant with a certificate for its controller could be any switch".to_owned();
            return value.refuse("the same authority for switches and for controllers", Some(help));
        }
        Some(controller_ca)
    });
    Some(Tls { private_key: private_key?, certificate: certificate?, switch_ca, controller_ca })
}
