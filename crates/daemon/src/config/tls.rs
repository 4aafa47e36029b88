//! `[tls]`: who Weir is, and whom it trusts: one authority for switches, another for controllers.

use std::path::{Path, PathBuf};

use channel::TlsFiles;
use toml::de::DeTable;

use super::reader::{Table, Value};

/// PEM files. An authority is there whenever an `ssl:` address of its side is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// Weir's private key.
    pub private_key: PathBuf,
    /// Weir's certificate.
    pub certificate: PathBuf,
    /// Who signs for switches.
    pub switch_ca: Option<PathBuf>,
    /// Who signs for tenants' controllers.
    pub controller_ca: Option<PathBuf>,
}

impl Tls {
    /// Weir's identity, and whom it trusts as a switch.
    pub fn towards_switches(&self) -> Option<TlsFiles> {
        self.files_with(self.switch_ca.as_ref()?)
    }

    /// Weir's identity, and whom it trusts as a controller.
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

/// Which sides may speak TLS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides {
    pub(super) switches: bool,
    pub(super) controllers: bool,
}

impl Sides {
    /// By the keys that are there: what is wrong with their values is reported, and addresses are not wrong beside.
    pub(super) fn of(document: &DeTable<'_>) -> Sides {
        let tls = document.get("tls").map(|tls| tls.get_ref());
        let has = |key| tls.is_some_and(|tls| tls.as_table().is_none_or(|it| it.contains_key(key)));
        Sides { switches: has("switch_ca"), controllers: has("controller_ca") }
    }
}

pub(super) fn read(table: &mut Table<'_, '_>, file: &str) -> Option<Tls> {
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let path = |value: &Value<'_, '_>| -> Option<PathBuf> { Some(folder.join(value.string()?)) };
    let private_key = table.require("private_key", "\"weir-privkey.pem\"", path);
    let certificate = table.require("certificate", "\"weir-cert.pem\"", path);
    let switch_ca = table.get("switch_ca", path);
    let controller_ca = table.get("controller_ca", |value| {
        let controller_ca = path(value)?;
        if switch_ca.as_ref() == Some(&controller_ca) {
            let help =
                "a tenant with a certificate for its controller could be any switch".to_owned();
            return value.refuse("the same authority for switches and for controllers", Some(help));
        }
        Some(controller_ca)
    });
    Some(Tls { private_key: private_key?, certificate: certificate?, switch_ca, controller_ca })
}
