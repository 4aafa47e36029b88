//! Checks the access to the REST interface, and its files.

use super::{Checker, Severity, Topic};
use crate::config::Position;

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
        self.files("api", all.into_iter().flatten(), &files.certificate);
    }
}
