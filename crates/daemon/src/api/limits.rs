//! `/api/v1/limits`: the rules, groups and meters that each tenant may have on each switch, and the messages that it
//! may send, with the reasons.

use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hypervisor::sheet::Sheet;
use hypervisor::{NumberShare, RateBy, RateShare, SaidBy, Standing, TableShare};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Elsewhere, Failure, error};
use super::bounds::Bounds;
use super::sources::Sources;
use crate::access::Reach;
use crate::access::caller::Caller;
use crate::dpid::Dpid;
use crate::lock::lock;
use crate::metrics::{Grant, Registry, SheetUse};
use crate::sheets;

/// The rules that each tenant may have on each switch, and the messages that it may send and get.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = LimitsOnSwitches)]
pub struct Limits {
    /// Rules, by switch, then by tenant.
    pub limits: Vec<LimitOf>,
    /// Messages, by switch, then by tenant. Classes without a limit are missing.
    pub rates: Vec<RateOf>,
    /// Data sheets of connected switches; missing for a tenant.
    pub datasheets: Vec<SheetOf>,
}

/// The rate of a class of messages that a tenant may send to a switch, or get from it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = RateOfTenant, examples(json!({
    "tenant": "red", "switch": "00:00:00:00:00:00:00:01", "messages": "flow_mod", "per_second": 250.0, "burst": 25,
    "why": "weight 1 of 2, of 500 per second (safe_rates.flow-mod-add by the experiment insert, datasheet.json); one keeps the switch busy for 2,000 us",
    "measured": { "file": "datasheet.json", "figure": "safe_rates.flow-mod-add", "experiment": "insert", "value": 500.0,
        "busy_us": 2000.0, "weight": 1, "weights": 2 }
})))]
pub struct RateOf {
    /// The tenant.
    pub tenant: String,
    /// The switch; a big switch by the datapath id that its tenant sees.
    pub switch: String,
    /// The class of messages: `packet_out`, `flow_mod`, `statistics`, `other` (barriers, and all other requests that
    /// the switch answers), `packet_in`.
    pub messages: String,
    /// Messages per second.
    pub per_second: f64,
    /// The burst: messages at once, after a silence.
    pub burst: u32,
    /// Why so many.
    pub why: String,
    /// The source of the limit, if it is a data sheet; missing for a tenant, because the source reveals the weights of
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredRate>,
}

/// A figure of a data sheet, and a tenant's part of it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = MeasuredRate, examples(json!({
    "file": "datasheet.json", "figure": "safe_rates.flow-mod-add", "experiment": "insert", "value": 500.0, "busy_us": 2000.0,
    "weight": 1, "weights": 2
})))]
pub struct MeasuredRate {
    /// The data sheet.
    pub file: String,
    /// The name of the figure in the data sheet.
    pub figure: String,
    /// The experiment of `weir evaluate` that measured it.
    pub experiment: String,
    /// The value of the figure: messages per second, of all tenants together.
    pub value: f64,
    /// How long one message keeps the switch busy.
    pub busy_us: f64,
    /// The tenant's weight.
    pub weight: u32,
    /// The weights of all tenants that have a part of the switch.
    pub weights: u64,
}

/// A switch's data sheet.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = SheetOfSwitch, examples(json!({
    "switch": "00:00:00:00:00:00:00:01", "file": "datasheet.json", "measured": "2026-11-26T04:16:57Z", "used": true,
    "why": "the switch describes itself as the sheet does: Nicira, Inc. / Open vSwitch / 3.1.0"
})))]
pub struct SheetOf {
    /// The switch.
    pub switch: String,
    /// The file.
    pub file: String,
    /// The time of the measurement.
    pub measured: String,
    /// Whether limits come from the data sheet.
    pub used: bool,
    /// The reason why the data sheet is used or not used.
    pub why: String,
}

/// The rules that a tenant may have in some tables of a switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = LimitOfTenant, examples(json!({
    "tenant": "red", "switch": "00:00:00:00:00:00:00:01", "tables": "0", "rules": 12, "may": 300,
    "why": "weight 1 of 3, of 900 rules that the switch says a table holds"
})))]
pub struct LimitOf {
    /// The tenant.
    pub tenant: String,
    /// The switch; a big switch by the datapath id that its tenant sees.
    pub switch: String,
    /// The switch's tables with this limit, each by itself: `1` or `1-253`; `all`: all tables together. Or `groups`, or
    /// `groups (select)` if types differ, or `meters`.
    pub tables: String,
    /// The number of the tenant's rules on the switch, in all tables; or of groups of all types; or of meters.
    pub rules: u64,
    /// The largest number that the tenant may have.
    pub may: u32,
    /// Why so many.
    pub why: String,
}

impl Limits {
    fn new(metrics: &Registry, reach: &Reach, only: Option<&str>) -> Limits {
        let (mut limits, mut rates, mut datasheets) = (Vec::new(), Vec::new(), Vec::new());
        let is_for_tenant = reach.tenant().is_some();
        for switch in metrics.switches() {
            let of_switch = Dpid(switch.known_as()).to_string();
            let used = lock(&switch.sheet).clone();
            datasheets.extend(sheet_of(&used, &of_switch).filter(|_| !is_for_tenant));
            let is_shown = |name: &str| reach.sees(name) && only.is_none_or(|only| only == name);
            for tenant in switch.tenants().iter().filter(|it| is_shown(&it.name)) {
                let grant = lock(&tenant.grant).clone();
                let row = |(tables, may, why), rules| LimitOf {
                    tenant: tenant.name.clone(),
                    switch: of_switch.clone(),
                    tables,
                    rules,
                    may,
                    why,
                };
                let file = sheets::file(&used.standing);
                let of_tables = reasons(&grant, file, is_for_tenant);
                limits.extend(of_tables.into_iter().map(|it| row(it, tenant.entries.get())));
                let of_groups = numbers(&grant, true, is_for_tenant);
                limits.extend(of_groups.into_iter().map(|it| row(it, tenant.groups.get())));
                let of_meters = numbers(&grant, false, is_for_tenant);
                limits.extend(of_meters.into_iter().map(|it| row(it, tenant.meters.get())));
                let of = |rate| rate_of(rate, &grant, file, is_for_tenant);
                let of = |rate| of(rate).named(&tenant.name, &of_switch);
                rates.extend(grant.rates.iter().map(of));
            }
        }
        Limits { limits, rates, datasheets }
    }
}

impl RateOf {
    fn named(self, tenant: &str, switch: &str) -> RateOf {
        RateOf { tenant: tenant.to_owned(), switch: switch.to_owned(), ..self }
    }
}

/// A rate and its reason.
fn rate_of(share: &RateShare, grant: &Grant, file: &str, is_for_tenant: bool) -> RateOf {
    let (why, measured) = match &share.by {
        RateBy::Operator => ("its own limit".to_owned(), None),
        RateBy::Sheet(_) if is_for_tenant => {
            ("its share of what the switch was measured to do".to_owned(), None)
        }
        RateBy::Sheet(measured) => {
            let why = sheets::reason(measured, file, grant.weight.into(), grant.weights);
            let of = MeasuredRate {
                file: file.to_owned(),
                figure: measured.rate.name.clone(),
                experiment: measured.rate.experiment.clone(),
                value: measured.rate.value,
                busy_us: measured.cost as f64 / 1e3,
                weight: grant.weight,
                weights: grant.weights,
            };
            (why, Some(of))
        }
    };
    RateOf {
        tenant: String::new(),
        switch: String::new(),
        messages: sheets::name(share.class).to_owned(),
        per_second: share.per_second,
        burst: share.burst,
        why,
        measured,
    }
}

/// A switch's data sheet, if there is one.
fn sheet_of(used: &SheetUse, switch: &str) -> Option<SheetOf> {
    let (sheet, used, why): (&Sheet, _, _) = match &used.standing {
        Standing::None => return None,
        Standing::Holds(sheet) => {
            (sheet, true, sheets::agreement(sheet, used.description.as_ref()))
        }
        Standing::OfAnother(sheet) => {
            (sheet, false, sheets::difference(sheet, used.description.as_ref()))
        }
    };
    let (file, measured) = (sheet.file.clone(), sheet.measured.clone());
    Some(SheetOf { switch: switch.to_owned(), file, measured, used, why })
}

/// The tables, the limit, and the reason. The tenant's own limit applies in addition to all others. A tenant does not
/// learn the weights of others.
fn reasons(grant: &Grant, file: &str, is_for_tenant: bool) -> Vec<(String, u32, String)> {
    if !grant.served {
        return Vec::new();
    }
    let own = "its own limit (entries)".to_owned();
    if grant.shares.is_empty() {
        let why = format!("{own}; the switch does not say how much it holds");
        return vec![("all".to_owned(), grant.most_rules, why)];
    }
    let share = |share: &TableShare| {
        let tables = match share.tables {
            (first, last) if first == last => first.to_string(),
            (first, last) => format!("{first}-{last}"),
        };
        let rules = share.holds.rules;
        let held = match share.holds.by {
            SaidBy::Switch => format!("{rules} rules that the switch says a table holds"),
            SaidBy::Sheet => format!("{rules} rules that a table holds by the data sheet {file}"),
            SaidBy::Full => format!("{rules} rules that were there when the table was full"),
        };
        let why = match share.may == grant.most_rules {
            true => own.clone(),
            false if is_for_tenant => "its share of the table".to_owned(),
            false => format!("weight {} of {}, of {held}", grant.weight, grant.weights),
        };
        (tables, share.may, why)
    };
    grant.shares.iter().map(share).collect()
}

/// The limits of groups, or of meters, with the reasons.
fn numbers(grant: &Grant, groups: bool, is_for_tenant: bool) -> Vec<(String, u32, String)> {
    let meant = grant.numbers.iter().filter(|it| grant.served && it.type_.is_some() == groups);
    let meant: Vec<&NumberShare> = meant.collect();
    let kind = if groups { "groups" } else { "meters" };
    let mut rows: Vec<(Vec<&str>, &NumberShare)> = Vec::new();
    for share in meant {
        let type_ = share.type_.and_then(|it| TYPES.get(usize::from(it.0))).copied();
        match rows.iter_mut().find(|(_, it)| (it.holds, it.may) == (share.holds, share.may)) {
            Some((types, _)) => types.extend(type_),
            None => rows.push((type_.into_iter().collect(), share)),
        }
    }
    let is_alike = rows.len() == 1;
    let row = |(types, share): (Vec<&str>, &NumberShare)| {
        let what = match is_alike {
            true => kind.to_owned(),
            false => format!("{kind} ({})", types.join(", ")),
        };
        let of_each = if groups { " of each type" } else { "" };
        let why = match share.holds {
            None => {
                format!("its own limit ({kind}); the switch does not say how many there can be")
            }
            Some(_) if is_for_tenant => {
                format!("its share of the switch's {kind}, or its own limit")
            }
            Some(holds) => format!(
                "weight {} of {}, of {holds} {kind}{of_each} that the switch says there can be; no more than its own limit ({kind})",
                grant.weight, grant.weights
            ),
        };
        (what, share.may, why)
    };
    rows.into_iter().map(row).collect()
}

/// The types of groups, by their numbers.
const TYPES: [&str; 4] = ["all", "select", "indirect", "fast failover"];

pub(super) fn routes() -> Router<Sources> {
    Router::new().route("/api/v1/limits", get(limits))
}

/// The rules that each tenant may have on each switch, and the messages that it may send and get, with the reasons.
#[utoipa::path(
    get,
    path = "/api/v1/limits",
    params(("tenant" = Option<String>, Query, description = "of this tenant alone")),
    responses(
        (status = 200, description = "all tenants on all switches, or one tenant", body = Limits),
        (status = 400, description = "something else stands behind the ?", body = Failure),
        Elsewhere,
    )
)]
pub(super) async fn limits(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Response {
    let only = match uri.query().map(|query| query.strip_prefix("tenant=")) {
        None => None,
        Some(Some(name)) => Some(name.to_owned()),
        Some(None) => {
            let message = "all that can stand behind the ? is tenant= with a name";
            return error(StatusCode::BAD_REQUEST, message);
        }
    };
    let work =
        move || Json(Limits::new(&sources.metrics, &caller.reach, only.as_deref())).into_response();
    bounds.off_thread(work).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use hypervisor::Holds;
    use hypervisor::sheet::{Figure, Measured, MessageClass};

    #[test]
    fn each_table_limit_is_shown_with_the_reason() {
        let share = |tables, rules, by, may| TableShare { tables, holds: Holds { rules, by }, may };
        let grant = |shares: &[TableShare]| Grant {
            served: true,
            weight: 1,
            weights: 3,
            most_rules: 5_000,
            shares: shares.to_vec(),
            numbers: Vec::new(),
            rates: Vec::new(),
        };
        let check = |grant: Grant, expected: &[(&str, u32, &str)]| {
            let shown = reasons(&grant, "sheet.json", false);
            let shown: Vec<_> =
                shown.iter().map(|(a, b, c)| (a.as_str(), *b, c.as_str())).collect();
            assert_eq!(shown, expected);
        };
        let share_of_all = grant(&[share((0, 0), 900, SaidBy::Switch, 300)]);
        assert_eq!(reasons(&share_of_all, "sheet.json", true)[0].2, "its share of the table");
        check(Grant::default(), &[]);
        let why = "its own limit (entries); the switch does not say how much it holds";
        check(grant(&[]), &[("all", 5_000, why)]);
        check(
            grant(&[
                share((0, 0), 900, SaidBy::Switch, 300),
                share((1, 9), 99_000, SaidBy::Switch, 5_000),
                share((10, 10), 300, SaidBy::Full, 100),
                share((11, 11), 600, SaidBy::Sheet, 200),
            ]),
            &[
                ("0", 300, "weight 1 of 3, of 900 rules that the switch says a table holds"),
                ("1-9", 5_000, "its own limit (entries)"),
                ("10", 100, "weight 1 of 3, of 300 rules that were there when the table was full"),
                (
                    "11",
                    200,
                    "weight 1 of 3, of 600 rules that a table holds by the data sheet sheet.json",
                ),
            ],
        );
    }

    #[test]
    fn group_and_meter_limits_are_shown_in_separate_rows() {
        let group = |type_, holds, may| {
            let type_ = Some(openflow::v13::GroupType(type_));
            NumberShare { type_, holds, may }
        };
        let mut grant = Grant { served: true, weight: 1, weights: 3, ..Grant::default() };
        grant.numbers = (0..4).map(|type_| group(type_, Some(90), 30)).collect();
        grant.numbers.push(NumberShare { type_: None, holds: None, may: 256 });
        let shown = numbers(&grant, true, false);
        let why = "weight 1 of 3, of 90 groups of each type that the switch says there can be; no more than its own limit (groups)";
        assert_eq!(shown, [("groups".to_owned(), 30, why.to_owned())]);
        assert!(!numbers(&grant, true, true)[0].2.contains("weight"));
        let why = "its own limit (meters); the switch does not say how many there can be";
        assert_eq!(numbers(&grant, false, false), [("meters".to_owned(), 256, why.to_owned())]);
        grant.numbers[1] = group(1, Some(9), 3);
        let shown = numbers(&grant, true, false);
        let names: Vec<_> = shown.iter().map(|it| (it.0.as_str(), it.1)).collect();
        assert_eq!(names, [("groups (all, indirect, fast failover)", 30), ("groups (select)", 3)]);
    }

    #[test]
    fn a_rate_limit_has_a_source_and_hides_measured_values_from_tenants() {
        let rate =
            Figure { name: "safe_rates.echo".into(), experiment: "echo".into(), value: 90.0 };
        let measured = Measured { rate, cost: 11_111 };
        let grant = Grant { weight: 1, weights: 3, ..Grant::default() };
        let class = MessageClass::Other;
        let by = RateBy::Sheet(measured);
        let share = RateShare { class, per_second: 30.0, burst: 3, by };
        let shown = rate_of(&share, &grant, "sheet.json", false);
        assert_eq!((shown.messages.as_str(), shown.per_second, shown.burst), ("other", 30.0, 3));
        assert_eq!(
            shown.why,
            "weight 1 of 3, of 90 per second (safe_rates.echo by the experiment echo, sheet.json); one keeps the switch busy for 11 us"
        );
        let measured = shown.measured.unwrap();
        assert_eq!((measured.value, measured.weight, measured.weights), (90.0, 1, 3));
        let shown = rate_of(&share, &grant, "sheet.json", true);
        assert!(shown.measured.is_none() && !shown.why.contains("90"), "{}", shown.why);
        let own = RateShare { by: RateBy::Operator, ..share };
        let shown = rate_of(&own, &grant, "sheet.json", false);
        assert_eq!((shown.why.as_str(), shown.measured.is_none()), ("its own limit", true));
    }
}
