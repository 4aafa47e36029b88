//! Weir's own certificates, and the check of peers' certificates. The chain of signatures proves that a peer is a
//! switch or a controller; only a name or a fingerprint identifies the peer.

use std::collections::HashMap;
use std::sync::Arc;

use channel::{CertificateName, Error, PeerCertificate, Tls};
use hypervisor::TenantId;

use crate::config::Config;

/// Weir's identity towards switches and controllers, and the certificates of tenants' controllers. Cheap to clone.
#[derive(Clone, Default)]
pub struct Identity {
    /// The identity towards switches, for `ssl:` listeners.
    pub switches: Option<Tls>,
    /// The identity towards controllers, for `ssl:` controllers.
    pub controllers: Option<Tls>,
    others: Arc<Others>,
}

#[derive(Default)]
struct Others {
    tenants: HashMap<TenantId, Vec<CertificateName>>,
    /// The expiry of the certificate towards REST clients.
    rest: Option<u64>,
}

impl Identity {
    /// Reads the files. `ids` are the tenants' numbers, in the order of the configuration.
    pub fn load(config: &Config, ids: &[TenantId]) -> Result<Identity, Error> {
        let tls = config.tls.as_ref();
        let load = |files: Option<channel::TlsFiles>| files.as_ref().map(Tls::load).transpose();
        let switches = load(tls.and_then(|tls| tls.towards_switches()))?;
        let controllers = load(tls.and_then(|tls| tls.towards_controllers()))?;
        if let (Some(switches), Some(controllers)) = (&switches, &controllers)
            && switches.shares_authority(controllers)
        {
            let reason = "switch_ca and controller_ca hold the same authority: a tenant with a certificate for its controller could be any switch";
            return Err(Error::TlsIdentity(reason.to_owned()));
        }
        let tenants = ids.iter().zip(&config.tenants).map(|(id, tenant)| {
            let mut names = tenant.controller_certificates.clone();
            if names.is_empty() {
                names.push(CertificateName::Name(tenant.name.clone()));
            }
            (*id, names)
        });
        let rest =
            config.access.files.as_ref().and_then(|files| {
                channel::certificates_not_after(&files.certificate).ok().flatten()
            });
        let others = Arc::new(Others { tenants: tenants.collect(), rest });
        Ok(Identity { switches, controllers, others })
    }

    /// The earliest expiry of Weir's own certificates, in seconds of Unix time; 0 without a certificate, or if the
    /// expiry is unknown.
    pub fn not_after(&self) -> u64 {
        let either = self.switches.as_ref().or(self.controllers.as_ref());
        let openflow = either.and_then(Tls::not_after);
        openflow.into_iter().chain(self.others.rest).min().unwrap_or(0)
    }

    /// Whether a controller's certificate belongs to the tenant; the error has the reason.
    pub fn judge(&self, tenant: TenantId, shown: &PeerCertificate) -> Result<(), String> {
        let names = self.others.tenants.get(&tenant).map(Vec::as_slice).unwrap_or_default();
        if names.iter().any(|name| shown.is(name)) {
            return Ok(());
        }
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let fingerprint = shown.fingerprint();
        Err(format!(
            "TLS: the controller's certificate is that of {shown} ({fingerprint}), and not the tenant's, {}",
            names.join(" or ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_same_ca_for_switches_and_controllers_is_refused() {
        let folder = std::env::temp_dir().join(format!("weir-identity-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let make = |name: &str| {
            let path = |end: &str| folder.join(format!("{name}{end}"));
            Command::new("openssl")
                .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "5", "-subj"])
                .arg(format!("/CN={name}"))
                .arg("-keyout")
                .arg(path("-key.pem"))
                .arg("-out")
                .arg(path(".pem"))
                .stdin(Stdio::null())
                .output()
        };
        let Ok(made) = make("weir") else {
            eprintln!(
                "SKIPPED the_same_ca_for_switches_and_controllers_is_refused: openssl is not installed (Debian: openssl)"
            );
            return;
        };
        assert!(made.status.success(), "{made:?}");
        make("other").unwrap();
        std::fs::copy(folder.join("weir.pem"), folder.join("copy.pem")).unwrap();
        for (controller_ca, may) in [("copy.pem", false), ("other.pem", true)] {
            let text = format!(
                "[tls]\nprivate_key = \"weir-key.pem\"\ncertificate = \"weir.pem\"\n\
                 switch_ca = \"weir.pem\"\ncontroller_ca = \"{controller_ca}\"\n"
            );
            let file = folder.join("weir.toml").display().to_string();
            let config = Config::parse(&file, &text).unwrap();
            let loaded = Identity::load(&config, &[]);
            assert_eq!(loaded.is_ok(), may, "{controller_ca}: {:?}", loaded.err());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
