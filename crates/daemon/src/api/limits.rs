//! `/api/v1/limits`: how many rules, groups and meters each tenant may have on each switch, and why.

use axum::extract::State;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use axum::{Extension, Router};
use hypervisor::{NumberShare, SaidBy, TableShare};
use serde::{Deserialize, Serialize};
use std::sync::PoisonError;
use utoipa::ToSchema;

use super::answers::Elsewhere;
use super::bounds::Bounds;
use super::sources::Sources;
use crate::access::Reach;
use crate::access::caller::Caller;
use crate::dpid::Dpid;
use crate::metrics::{Grant, Registry};

/// How many rules each tenant may have on each switch.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = LimitsOnSwitches)]
pub struct Limits {
    /// By switch, then by tenant.
    pub limits: Vec<LimitOf>,
}

/// How many rules a tenant may have in some tables of a switch.
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
    /// The switch's tables for which that holds, each by itself: `1` or `1-253`; `all` for all of them together. Or `groups`, or
    /// `groups (select)` where types differ, or `meters`.
    pub tables: String,
    /// How many rules the tenant has on the switch, in all tables; or groups, of all types; or meters.
    pub rules: u64,
    /// How many it may have.
    pub may: u32,
    /// Why so many.
    pub why: String,
}

impl Limits {
    fn new(metrics: &Registry, reach: &Reach) -> Limits {
        let mut limits = Vec::new();
        for switch in metrics.switches() {
            for tenant in switch.tenants().iter().filter(|it| reach.sees(&it.name)) {
                let grant = tenant.grant.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let row = |(tables, may, why), rules| LimitOf {
                    tenant: tenant.name.clone(),
                    switch: Dpid(switch.known_as()).to_string(),
                    tables,
                    rules,
                    may,
                    why,
                };
                let of_tables = reasons(&grant, reach.tenant().is_some());
                limits.extend(of_tables.into_iter().map(|it| row(it, tenant.entries.get())));
                let of_groups = numbers(&grant, true, reach.tenant().is_some());
                limits.extend(of_groups.into_iter().map(|it| row(it, tenant.groups.get())));
                let of_meters = numbers(&grant, false, reach.tenant().is_some());
                limits.extend(of_meters.into_iter().map(|it| row(it, tenant.meters.get())));
            }
        }
        Limits { limits }
    }
}

/// For which tables, how many, and why. The tenant's own limit holds beside all others. A tenant is not told what weight others have.
fn reasons(grant: &Grant, is_for_tenant: bool) -> Vec<(String, u32, String)> {
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

/// The same of groups, or of meters.
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

/// How many rules each tenant may have on each switch, and why.
#[utoipa::path(
    get,
    path = "/api/v1/limits",
    responses((status = 200, description = "all tenants on all switches", body = Limits), Elsewhere)
)]
pub(super) async fn limits(
    State(sources): State<Sources>,
    Extension(bounds): Extension<Bounds>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let work = move || Json(Limits::new(&sources.metrics, &caller.reach)).into_response();
    bounds.off_thread(work).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use hypervisor::Holds;

    #[test]
    fn each_figure_has_its_reason() {
        let share = |tables, rules, by, may| TableShare { tables, holds: Holds { rules, by }, may };
        let grant = |shares: &[TableShare]| Grant {
            served: true,
            weight: 1,
            weights: 3,
            most_rules: 5_000,
            shares: shares.to_vec(),
            numbers: Vec::new(),
        };
        let check = |grant: Grant, expected: &[(&str, u32, &str)]| {
            let told = reasons(&grant, false);
            let told: Vec<_> = told.iter().map(|(a, b, c)| (a.as_str(), *b, c.as_str())).collect();
            assert_eq!(told, expected);
        };
        let share_of_all = grant(&[share((0, 0), 900, SaidBy::Switch, 300)]);
        assert_eq!(reasons(&share_of_all, true)[0].2, "its share of the table");
        check(Grant::default(), &[]);
        let why = "its own limit (entries); the switch does not say how much it holds";
        check(grant(&[]), &[("all", 5_000, why)]);
        check(
            grant(&[
                share((0, 0), 900, SaidBy::Switch, 300),
                share((1, 9), 99_000, SaidBy::Switch, 5_000),
                share((10, 10), 300, SaidBy::Full, 100),
            ]),
            &[
                ("0", 300, "weight 1 of 3, of 900 rules that the switch says a table holds"),
                ("1-9", 5_000, "its own limit (entries)"),
                ("10", 100, "weight 1 of 3, of 300 rules that were there when the table was full"),
            ],
        );
    }

    #[test]
    fn groups_and_meters_have_rows_of_their_own() {
        let group = |type_, holds, may| {
            let type_ = Some(openflow::v13::GroupType(type_));
            NumberShare { type_, holds, may }
        };
        let mut grant = Grant { served: true, weight: 1, weights: 3, ..Grant::default() };
        grant.numbers = (0..4).map(|type_| group(type_, Some(90), 30)).collect();
        grant.numbers.push(NumberShare { type_: None, holds: None, may: 256 });
        let told = numbers(&grant, true, false);
        let why = "weight 1 of 3, of 90 groups of each type that the switch says there can be; no more than its own limit (groups)";
        assert_eq!(told, [("groups".to_owned(), 30, why.to_owned())]);
        assert!(!numbers(&grant, true, true)[0].2.contains("weight"));
        let why = "its own limit (meters); the switch does not say how many there can be";
        assert_eq!(numbers(&grant, false, false), [("meters".to_owned(), 256, why.to_owned())]);
        grant.numbers[1] = group(1, Some(9), 3);
        let told = numbers(&grant, true, false);
        let names: Vec<_> = told.iter().map(|it| (it.0.as_str(), it.1)).collect();
        assert_eq!(names, [("groups (all, indirect, fast failover)", 30), ("groups (select)", 3)]);
    }
}
