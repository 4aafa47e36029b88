//! Checks the access to the REST interface, and its files.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Checker, Severity, Topic};
use crate::config::Position;
use crate::expiry;

impl Checker<'_> {
    /// Reports where changes need no account, where accounts are required, and errors in the accounts.
    pub(super) fn access(&mut self) {
        let (config, nowhere) = (self.config, Position::default());
        let (listen, access) = (&config.listen.api, &config.access);
        let is_open = listen.tcp_changes && access.loopback_is_open;
        if let Some(api) = listen.tcp.filter(|_| is_open) {
            let message =
                format!("changes are taken at {api} from every user and program of this machine");
            self.say(Severity::Note, Topic::OpenApi, nowhere, "", message);
        }
        if let Some(api) = listen.tls {
            let message = format!("REST is for accounts at https://{api}");
            self.say(Severity::Note, Topic::OpenApi, nowhere, "", message);
        }
        for (name, reach) in &access.certificates {
            let tenant = reach.tenant().unwrap_or_default();
            let is_there = config.tenants.iter().any(|it| it.name == tenant);
            if !tenant.is_empty() && !is_there {
                let message =
                    format!("[api]: {name} is an account of {tenant}, which there is not");
                self.say(Severity::Finding, Topic::Account, nowhere, "", message);
            }
        }
        let Some(files) = &access.files else { return };
        let all = [Some(&files.private_key), Some(&files.certificate), files.client_ca.as_ref()];
        for path in all.into_iter().flatten() {
            if let Err(error) = std::fs::File::open(path) {
                let message = format!("[api]: {} cannot be read: {error}", path.display());
                self.say(Severity::Finding, Topic::TlsFile, nowhere, "", message);
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if let Ok(Some(not_after)) = channel::certificates_not_after(&files.certificate)
            && let Some(warning) = expiry::warning(not_after, now)
        {
            let path = files.certificate.display();
            let message = format!("[api]: the certificate {path} {warning}");
            self.say(Severity::Finding, Topic::Certificate, nowhere, "", message);
        }
    }
}
