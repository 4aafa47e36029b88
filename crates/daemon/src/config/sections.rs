//! The file's sections, apart from the tenants.

use std::net::IpAddr;
use std::time::Duration;

use toml::de::DeTable;

use super::address::address;
use super::diagnostic::{Diagnostics, Source};
use super::own::Own;
use super::reader::{Reader, Table, has};
use super::settings::{Config, Keepalive, Listen, Reconnect, Scheduler, Store};
use super::{access, agents, api, contradictions, labels, switches, tenants, tls, topology};
use crate::store::Sync;

pub(super) fn parse(
    file: &str,
    text: &str,
    is_here: fn(IpAddr) -> bool,
) -> Result<Config, Diagnostics> {
    let reader = Reader::new(Source::new(file, text));
    let (document, syntax) = DeTable::parse_recoverable(text);
    if !syntax.is_empty() {
        // The document after a syntax error would cause wrong further errors.
        for error in syntax {
            reader.error(
                error.span().unwrap_or(0..0),
                "",
                error.message().replace('\n', ", "),
                None,
            );
        }
        return Err(Diagnostics(reader.into_errors()));
    }
    let mut root = Table::root(&reader, &document);
    let tls = root.table("tls", tls::read).flatten();
    let agents = root.table("agents", agents::read).flatten();
    // Errors in `[agents]` are reported there, and not again at interfaces that name an agent.
    let document = document.get_ref();
    let has_agents = document.contains_key("agents");
    let mut vnics = labels::Vnics::new(has_agents, agents.as_ref());
    let limits = root.table("limits", tenants::common_limits).unwrap_or_default();
    let switches = root.get("switches", switches::read).unwrap_or_default();
    let switches::Switches { listed: switches, datasheet } = switches;
    let has_switches = !switches.is_empty();
    let has_files = has(document, "api", "private_key") && has(document, "api", "certificate");
    let access = root.table("api", access::read);
    let has_switch_ca = has(document, "tls", "switch_ca");
    let has_controller_ca = has(document, "tls", "controller_ca");
    let listen = root
        .table("listen", |table| listen(table, has_switch_ca, has_files, has_switches))
        .unwrap_or(Listen::new(has_switches));
    let own = Own::new(&listen, is_here);
    let config = Config {
        file: file.to_owned(),
        listen: listen.clone(),
        access: access.unwrap_or_default(),
        tls,
        scheduler: root.table("scheduler", scheduler).unwrap_or_default(),
        keepalive: root.table("keepalive", keepalive).unwrap_or_default(),
        reconnect: root.table("reconnect", reconnect).unwrap_or_default(),
        store: root.table("store", store).unwrap_or_default(),
        topology: root.table("topology", topology::read).unwrap_or_default(),
        labels: root.table("labels", labels::read).unwrap_or_default(),
        tenants: root
            .get("tenants", |value| {
                tenants::read(value, has_controller_ca, &own, &limits, &mut vnics)
            })
            .unwrap_or_default(),
        switches,
        datasheet,
        agents,
    };
    root.end();
    if reader.is_content() {
        // Parts that were left out because of errors would cause wrong further errors.
        contradictions::check(&reader, &config);
    }
    let errors = reader.into_errors();
    if errors.is_empty() { Ok(config) } else { Err(Diagnostics(errors)) }
}

fn listen(table: &mut Table<'_, '_>, has_tls: bool, has_files: bool, has_switches: bool) -> Listen {
    let default = Listen::new(has_switches);
    let openflow = table.get("openflow", |value| {
        let addresses = value.one_or_list(|value| address(value, has_tls, "switch_ca"))?;
        if value.is_empty_list() {
            value.refuse("at least one address is needed", None)
        } else {
            Some(addresses)
        }
    });
    let api = api::read(table, has_files);
    let unlisted = table.get("unlisted", |value| value.integer(0..=65_536));
    Listen {
        openflow: openflow.unwrap_or(default.openflow),
        api,
        unlisted: unlisted.unwrap_or(default.unlisted),
    }
}

fn scheduler(table: &mut Table<'_, '_>) -> Scheduler {
    let default = Scheduler::default();
    // A message has up to 64 KiB: with room for less than two messages, forwarding would stop.
    let bytes = 128 << 10..=1 << 30;
    let backlog = table.get("tenant_backlog", |value| value.integer(1..=1 << 20));
    let buffer = table.get("controller_buffer", |value| value.integer(bytes.clone()));
    let controller_buffer = buffer.unwrap_or(default.controller_buffer);
    let limit = table
        .get("controller_buffer_limit", |value| value.integer(controller_buffer as u64..=1 << 30));
    let switch_buffer = table.get("switch_buffer", |value| value.integer(bytes));
    let reply_timeout = table.get("reply_timeout", |value| {
        value.duration(Duration::from_millis(100)..=Duration::from_secs(600))
    });
    Scheduler {
        tenant_backlog: backlog.unwrap_or(default.tenant_backlog),
        controller_buffer,
        controller_buffer_limit: limit
            .unwrap_or(default.controller_buffer_limit.max(controller_buffer)),
        switch_buffer: switch_buffer.unwrap_or(default.switch_buffer),
        reply_timeout: reply_timeout.unwrap_or(default.reply_timeout),
    }
}

fn keepalive(table: &mut Table<'_, '_>) -> Keepalive {
    let default = Keepalive::default();
    let range = Duration::from_millis(100)..=Duration::from_secs(3600);
    Keepalive {
        interval: table
            .get("interval", |value| value.duration(range.clone()))
            .unwrap_or(default.interval),
        timeout: table.get("timeout", |value| value.duration(range)).unwrap_or(default.timeout),
    }
}

fn reconnect(table: &mut Table<'_, '_>) -> Reconnect {
    let default = Reconnect::default();
    let longest = Duration::from_secs(3600);
    let min = table
        .get("min", |value| value.duration(Duration::from_millis(1)..=longest))
        .unwrap_or(default.min);
    let max =
        table.get("max", |value| value.duration(min..=longest)).unwrap_or(default.max.max(min));
    Reconnect { min, max }
}

fn store(table: &mut Table<'_, '_>) -> Store {
    let sync = table.get("sync", |value| match value.maybe_string() {
        Some("always") => Some(Sync::Always),
        _ => value.duration(Duration::from_millis(1)..=Duration::from_secs(60)).map(Sync::Every),
    });
    Store { sync: sync.unwrap_or_default() }
}
