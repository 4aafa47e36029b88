//! `[[tenants]]`: the tenants, and the part of each in the network.

use std::collections::HashMap;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use channel::Address;
use flowspace::{Match, ParseError};
use hypervisor::policy::{Limits, Permission, PortCounters, Rate, Statistics, Switches};

use super::address::address;
use super::diagnostic::Position;
use super::own::Own;
use super::reader::{Table, Value};
use super::settings::{Entry, Tenant};
use super::{labels, maxima, networks};
use crate::dpid::Dpid;

/// Tenant ids have 16 bits, and 0 is Weir itself.
const MAX_TENANTS: usize = u16::MAX as usize;

pub(super) fn read(
    value: &Value<'_, '_>,
    has_tls: bool,
    own: &Own<'_>,
    common: &TenantLimits,
    vnics: &mut labels::Vnics<'_>,
) -> Option<Vec<Tenant>> {
    let mut names = HashMap::new();
    let tenants = value.tables(|table| tenant(table, &mut names, has_tls, own, common, vnics))?;
    if tenants.len() > MAX_TENANTS {
        return value.refuse(format!("more than {MAX_TENANTS} tenants"), None);
    }
    Some(tenants)
}

fn tenant(
    table: &mut Table<'_, '_>,
    names: &mut HashMap<String, Position>,
    has_tls: bool,
    own: &Own<'_>,
    common: &TenantLimits,
    vnics: &mut labels::Vnics<'_>,
) -> Option<Tenant> {
    let name = table.require("name", "\"red\"", |value| name(value, names));
    let controllers =
        table.get("controllers", |value| value.list(|value| controller(value, has_tls, own)));
    let certificates =
        table.get("controller_certificates", |value| value.one_or_list(Value::parsed));
    let weight = table.get("weight", |value| value.integer(1..=1000));
    let flowspace = table.get("flowspace", |value| value.tables(entry));
    let network = table.get("network", networks::read);
    if let (Some(network), Some(true)) = (&network, flowspace.as_ref().map(|all| !all.is_empty())) {
        table.refuse(
            network.span(),
            "a tenant has a flowspace or a network of its own, not both",
            Some("make it two tenants".to_owned()),
        );
    }
    let maxima = table.table("maxima", maxima::read).unwrap_or_default();
    if let Some(network) = &network {
        for over in maxima.exceeded(None, &network.spec) {
            let help = "raise what [tenants.maxima] says".to_owned();
            table.refuse(network.span(), &over, Some(help));
        }
    }
    let limits = table.table("limits", |table| limits(table, common));
    let limits = limits.unwrap_or_else(|| common.clone());
    let statistics = table.get("statistics", statistics);
    let label_policy = table.get("labels", labels::policy);
    let vnics = table.get("vnics", |value| vnics.read(value)).unwrap_or_default();
    Some(Tenant {
        name: name?,
        at: table.position(),
        controllers: controllers.unwrap_or_default(),
        controller_certificates: certificates.unwrap_or_default(),
        weight: weight.unwrap_or(1),
        flowspace: flowspace.unwrap_or_default(),
        network,
        maxima,
        limits: limits.rates,
        state_bytes: limits.state_bytes,
        queues: limits.queues,
        experimenters: limits.experimenters,
        statistics: statistics.unwrap_or_default(),
        labels: label_policy,
        vnics,
    })
}

fn controller(value: &Value<'_, '_>, has_tls: bool, own: &Own<'_>) -> Option<Address> {
    let address = address(value, has_tls, "controller_ca")?;
    if own.is(address.addr) {
        let help = "a controller listens somewhere else than Weir does ([listen])".to_owned();
        return value.refuse("that is Weir itself, which would be its own switch", Some(help));
    }
    Some(address)
}

fn name(value: &Value<'_, '_>, names: &mut HashMap<String, Position>) -> Option<String> {
    let name = value.string()?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let help = || Some("a name has 1 to 63 letters, digits, _ or -".to_owned());
    if let Some((at, c)) = name.char_indices().find(|&(_, c)| !allowed(c)) {
        return value.refuse_part(
            at..at + c.len_utf8(),
            format!("{c:?} cannot stand in a name"),
            help(),
        );
    }
    if name.is_empty() || name.len() > 63 {
        return value.refuse(format!("a name of {} characters", name.len()), help());
    }
    if let Some(first) = names.get(name) {
        let help = format!("the first stands in line {}", first.line);
        return value.refuse(format!("there is another tenant \"{name}\""), Some(help));
    }
    names.insert(name.to_owned(), value.position());
    Some(name.to_owned())
}

fn entry(table: &mut Table<'_, '_>) -> Option<Entry> {
    let match_ = table.require("match", "\"ip,nw_src=10.1.0.0/16\"", |value| {
        Some((parse_match(value)?, value.string()?))
    });
    let priority = table.get("priority", |value| value.integer(0..=u64::from(u16::MAX)));
    let switches = table.get("switches", switches);
    let permissions = [("write", Permission::Write), ("read", Permission::Read)];
    let permission = table.get("permission", |value| value.choice(&permissions));
    let (match_, text) = match_?;
    Some(Entry {
        at: table.position(),
        match_,
        text: text.to_owned(),
        priority: priority.unwrap_or(100),
        switches: switches.unwrap_or(Switches::Any),
        permission: permission.unwrap_or(Permission::Write),
    })
}

fn parse_match(value: &Value<'_, '_>) -> Option<Match> {
    let text = value.string()?;
    match text.parse::<Match>() {
        Ok(match_) => Some(match_),
        Err(error) => value.refuse_part(word_span(text, &error), without_column(&error), None),
    }
}

/// The wrong bytes of a match's text.
fn word_span(text: &str, error: &ParseError) -> Range<usize> {
    let start =
        text.char_indices().nth(error.column.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    start..start + error.word.len()
}

/// A match error without its column: the column counts within the match, and the place in the file is reported
/// separately.
fn without_column(error: &ParseError) -> String {
    let text = error.to_string();
    text.strip_prefix(&format!("column {}: ", error.column)).map(str::to_owned).unwrap_or(text)
}

fn switches(value: &Value<'_, '_>) -> Option<Switches> {
    let mut any = false;
    let dpids = value.one_or_list(|value| {
        if value.maybe_string() == Some("any") {
            any = true;
            return None;
        }
        value.parsed::<Dpid>().map(|dpid| dpid.0)
    })?;
    match (any, dpids.is_empty()) {
        (true, true) => Some(Switches::Any),
        (true, false) => {
            value.refuse("\"any\" beside dpids", Some("leave out one or the other".to_owned()))
        }
        // The list is empty because its elements were refused, or because it had none; only the second case needs an
        // error.
        (false, true) if value.is_empty_list() => {
            value.refuse("no switch at all", Some("write [\"any\"] for all switches".to_owned()))
        }
        (false, _) => Some(Switches::Only(dpids)),
    }
}

/// The default of `state_bytes`: enough for more than 10,000 rules of 150 bytes on each of 100 switches.
const STATE_BYTES: u64 = 256 << 20;

/// The limits of a tenant.
#[derive(Clone)]
pub(super) struct TenantLimits {
    rates: Limits,
    state_bytes: u64,
    queues: Vec<u32>,
    experimenters: Vec<u32>,
}

impl Default for TenantLimits {
    fn default() -> Self {
        TenantLimits {
            rates: Limits::default(),
            state_bytes: STATE_BYTES,
            queues: Vec::new(),
            experimenters: Vec::new(),
        }
    }
}

/// `[limits]`: the defaults for all tenants.
pub(super) fn common_limits(table: &mut Table<'_, '_>) -> TenantLimits {
    let default = TenantLimits::default();
    let (rates, state_bytes) = bounds(table, &default);
    TenantLimits { rates, state_bytes, ..default }
}

fn limits(table: &mut Table<'_, '_>, common: &TenantLimits) -> TenantLimits {
    let (rates, state_bytes) = bounds(table, common);
    // The last number means "all queues" in both versions of the protocol.
    let queues =
        table.get("queues", |value| value.list(|value| value.integer(0..=u64::from(u32::MAX) - 1)));
    let experimenters = table.get("experimenters", |value| value.list(experimenter));
    TenantLimits {
        rates,
        state_bytes,
        queues: queues.unwrap_or_default(),
        experimenters: experimenters.unwrap_or_default(),
    }
}

/// Reads limits, and the bytes in the store; absent keys have the values of `default`.
fn bounds(table: &mut Table<'_, '_>, default: &TenantLimits) -> (Limits, u64) {
    let state_bytes = table.get("state_bytes", |value| value.integer(0..=1 << 50));
    let state_bytes = state_bytes.unwrap_or(default.state_bytes);
    let default = &default.rates;
    let mut number = |key, default| {
        table.get(key, |value| value.integer(0..=u64::from(u32::MAX))).unwrap_or(default)
    };
    let (flows, entries) = (number("flows", default.flows), number("entries", default.entries));
    let (groups, meters) = (number("groups", default.groups), number("meters", default.meters));
    let limits = Limits {
        flows,
        entries,
        groups,
        meters,
        packet_out: table.get("packet_out", rate).or(default.packet_out),
        flow_mod: table.get("flow_mod", rate).or(default.flow_mod),
        statistics: table.get("statistics", rate).or(default.statistics),
        packet_in: table.get("packet_in", rate).or(default.packet_in),
        state_changes: table.get("state_changes", rate).unwrap_or(default.state_changes),
        shared_port_counters: table
            .get("shared_port_counters", port_counters)
            .unwrap_or(default.shared_port_counters),
    };
    (limits, state_bytes)
}

fn port_counters(value: &Value<'_, '_>) -> Option<PortCounters> {
    value.choice(&[("switch", PortCounters::Switch), ("unsupported", PortCounters::Unsupported)])
}

/// `1000`, or `{ rate = 1000, burst = 50 }`.
fn rate(value: &Value<'_, '_>) -> Option<Rate> {
    const RANGE: RangeInclusive<u64> = 1..=1_000_000_000;
    let (per_second, burst) = if value.is_integer() {
        (value.integer(RANGE), None)
    } else {
        value.table(|table| {
            let per_second = table.require("rate", "1000", |value| value.integer(RANGE));
            (per_second, table.get("burst", |value| value.integer(RANGE)))
        })?
    };
    let per_second: u32 = per_second?;
    // A tenth of the rate per second: enough for a controller's burst, too little to harm others.
    let burst = burst.unwrap_or((per_second / 10).max(1));
    Some(Rate { per_second, burst })
}

/// `"0x00002320"` or `0x2320`.
fn experimenter(value: &Value<'_, '_>) -> Option<u32> {
    if value.is_integer() {
        return value.integer(0..=u64::from(u32::MAX));
    }
    let text = value.string()?;
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let valid = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let id = valid.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
    id.or_else(|| {
        let help =
            "expected a 32-bit number in hexadecimal, such as \"0x00002320\" (Nicira)".to_owned();
        value.refuse(format!("bad experimenter id \"{text}\""), Some(help))
    })
}

/// `"passthrough"`, or `{ cached = "1s" }`.
fn statistics(value: &Value<'_, '_>) -> Option<Statistics> {
    if value.maybe_string().is_some() {
        return value.choice(&[("passthrough", Statistics::Passthrough)]);
    }
    value.table(|table| {
        let range = Duration::from_millis(1)..=Duration::from_secs(3600);
        let age = table.require("cached", "\"1s\"", |value| value.duration(range))?;
        Some(Statistics::Cached { max_age: age.as_nanos() as u64 })
    })?
}
