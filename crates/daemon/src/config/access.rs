//! `[api]`: the accounts of the REST interface, and their limits. `[listen]` has the addresses.

use std::path::PathBuf;

use channel::{CertificateName, ServiceFiles};

use super::reader::{Table, Value};
use crate::access::{Reach, Role};

/// The most certificates; more would be a mistake.
const MOST: usize = 1_024;

/// The accounts of REST, and their limits. Files, rates and subscribers are read at start only.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Weir's key and certificate towards REST clients, and the authority of their certificates; present if there is an
    /// `ssl:` address.
    pub files: Option<ServiceFiles>,
    /// Clients' certificates, and the reach of each.
    pub certificates: Vec<(CertificateName, Reach)>,
    /// Host names of Weir, in addition to addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Whether plain TCP on the loopback needs no account. Default true.
    pub loopback_is_open: bool,
    /// Requests of an account per second; the burst is twice this number. Default 100.
    pub requests: u32,
    /// The most listeners to events. Default 64.
    pub subscribers: usize,
}

impl Default for Access {
    fn default() -> Self {
        Access {
            files: None,
            certificates: Vec::new(),
            hosts: Vec::new(),
            loopback_is_open: true,
            requests: 100,
            subscribers: 64,
        }
    }
}

pub(super) fn read(table: &mut Table<'_, '_>) -> Access {
    let default = Access::default();
    let private_key = table.get("private_key", Value::file);
    let certificate = match private_key {
        Some(_) => table.require("certificate", "\"api-cert.pem\"", Value::file),
        None => table.get("certificate", |value| {
            let help = "add private_key = \"api-privkey.pem\"".to_owned();
            value.refuse::<PathBuf>("a certificate without its private key", Some(help))
        }),
    };
    let has_files = private_key.is_some();
    let client_ca = table.get("client_ca", |value| match has_files {
        true => value.file(),
        false => value.refuse("certificates are shown over TLS alone", Some(NO_FILES.to_owned())),
    });
    let has_ca = client_ca.is_some();
    let certificates = table.get("certificates", |value| {
        let all = value.tables(account)?;
        match (has_ca, all.len() > MOST) {
            (_, true) => value.refuse(format!("more than {MOST} certificates"), None),
            (false, _) => {
                let help = "add client_ca = \"clients-ca.pem\", who signs for them".to_owned();
                value.refuse("nobody says which certificates are genuine", Some(help))
            }
            _ => Some(all),
        }
    });
    let hosts = table.get("hosts", |value| value.list(host));
    let loopback = [("open", true), ("accounts", false)];
    let loopback_is_open = table.get("loopback", |value| value.choice(&loopback));
    let requests = table.get("requests", |value| value.integer(1..=1_000_000));
    let subscribers = table.get("subscribers", |value| value.integer(1..=10_000));
    let files = private_key.zip(certificate);
    Access {
        files: files.map(|(private_key, certificate)| ServiceFiles {
            private_key,
            certificate,
            client_ca,
        }),
        certificates: certificates.unwrap_or_default(),
        hosts: hosts.unwrap_or_default(),
        loopback_is_open: loopback_is_open.unwrap_or(default.loopback_is_open),
        requests: requests.unwrap_or(default.requests),
        subscribers: subscribers.unwrap_or(default.subscribers),
    }
}

const NO_FILES: &str = "add private_key and certificate";

fn account(table: &mut Table<'_, '_>) -> Option<(CertificateName, Reach)> {
    let certificate =
        table.require("certificate", "\"name:alice\"", |value| value.parsed::<CertificateName>());
    let tenant = table.get("tenant", |value| value.string().map(str::to_owned));
    let reach = table.require("role", "\"operator\"", |value| {
        let role = value.parsed::<Role>()?;
        Reach::new(role, tenant.as_deref()).map_or_else(|why| value.refuse(why, None), Some)
    });
    certificate.zip(reach)
}

fn host(value: &Value<'_, '_>) -> Option<String> {
    let text = value.string()?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    match !text.is_empty() && text.chars().all(is_name) {
        true => Some(text.to_owned()),
        false => {
            let help = "a name without a port, such as \"weir.example\"".to_owned();
            value.refuse("this is no host name", Some(help))
        }
    }
}
