//! The JSON form of a problem.

use super::number::usable;
use crate::cost::Costs;
use crate::error::{Error, Result};
use crate::problem::{Entry, LinkLimit, Problem, Server, Tenant};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    alpha: Option<Value>,
    beta: Option<Value>,
    servers: Vec<ServerText>,
    traffic: Value,
    #[serde(default)]
    tenants: Vec<TenantText>,
    #[serde(default)]
    links: Vec<LinkText>,
    #[serde(default)]
    forbidden: Vec<PairText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerText {
    name: String,
    capacity: Option<Value>,
    alpha: Option<Value>,
    beta: Option<Value>,
    minimum: Option<Value>,
    weight: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantText {
    name: String,
    minimum: Option<Value>,
    weight: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    from: String,
    to: String,
    capacity: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PairText {
    from: String,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryText {
    from: String,
    to: String,
    volume: Option<Value>,
    tenant: Option<String>,
}

/// Reads a problem.
///
/// # Errors
/// [`Error::Input`] with the place of the error: line and column if the text is no JSON of this form (NaN is not JSON),
/// the path of the value if a number cannot be used; and the errors of [`Problem::new`].
pub fn problem_from_json(text: &str) -> Result<Problem> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        // serde puts the place at the end of its message; here the place comes first.
        let message = message.rsplit_once(" at line").map_or(message.as_str(), |(front, _)| front);
        Error::input(format!("line {}, column {}", error.line(), error.column()), message)
    })?;
    let alpha = optional("alpha", document.alpha.as_ref())?;
    let beta = optional("beta", document.beta.as_ref())?;
    let mut servers = Vec::with_capacity(document.servers.len());
    for (index, server) in document.servers.into_iter().enumerate() {
        let place = |field: &str| format!("servers[{index}].{field}");
        let cost = |field: &str, own: Option<&Value>, all: Option<f64>| {
            let missing =
                || Error::input(place(field), "missing, and there is no default beside servers");
            optional(&place(field), own)?.or(all).ok_or_else(missing)
        };
        let costs = Costs {
            alpha: cost("alpha", server.alpha.as_ref(), alpha)?,
            beta: cost("beta", server.beta.as_ref(), beta)?,
        };
        let capacity = required(&place("capacity"), server.capacity.as_ref())?;
        let mut read = Server::new(server.name, capacity, costs);
        read.minimum = optional(&place("minimum"), server.minimum.as_ref())?.unwrap_or(0.0);
        read.weight = optional(&place("weight"), server.weight.as_ref())?.unwrap_or(1.0);
        servers.push(read);
    }
    let mut tenants = Vec::with_capacity(document.tenants.len());
    for (index, tenant) in document.tenants.into_iter().enumerate() {
        let place = |field: &str| format!("tenants[{index}].{field}");
        let mut read = Tenant::new(tenant.name);
        read.minimum = optional(&place("minimum"), tenant.minimum.as_ref())?.unwrap_or(0.0);
        read.weight = optional(&place("weight"), tenant.weight.as_ref())?.unwrap_or(1.0);
        tenants.push(read);
    }
    let names = Names {
        servers: servers.iter().enumerate().map(|(index, one)| (one.name.clone(), index)).collect(),
        tenants: tenants.iter().enumerate().map(|(index, one)| (one.name.clone(), index)).collect(),
    };
    let traffic = traffic(document.traffic, servers.len(), &names)?;
    let mut links = Vec::new();
    for (index, link) in document.links.into_iter().enumerate() {
        let place = format!("links[{index}]");
        let (from, to) = (names.server(&place, &link.from)?, names.server(&place, &link.to)?);
        let capacity = required(&format!("{place}.capacity"), link.capacity.as_ref())?;
        links.push(LinkLimit { from, to, capacity });
    }
    for (index, pair) in document.forbidden.into_iter().enumerate() {
        let place = format!("forbidden[{index}]");
        let (from, to) = (names.server(&place, &pair.from)?, names.server(&place, &pair.to)?);
        links.push(LinkLimit { from, to, capacity: 0.0 });
    }
    Problem::new(servers, tenants, &traffic, links)
}

/// The servers and tenants by name.
struct Names {
    servers: HashMap<String, usize>,
    tenants: HashMap<String, usize>,
}

impl Names {
    fn server(&self, place: &str, name: &str) -> Result<usize> {
        let found = self.servers.get(name).copied();
        found.ok_or_else(|| Error::input(place, format!("there is no server {name:?}")))
    }

    fn tenant(&self, place: &str, name: &str) -> Result<usize> {
        let found = self.tenants.get(name).copied();
        found.ok_or_else(|| {
            Error::input(place, format!("there is no tenant {name:?} among the tenants"))
        })
    }
}

/// Dense (rows of numbers, in the order of servers) or sparse (a list of entries).
fn traffic(value: Value, servers: usize, names: &Names) -> Result<Vec<Entry>> {
    let Value::Array(rows) = value else {
        return Err(Error::input("traffic", "not a list of rows or of entries"));
    };
    if rows.iter().any(Value::is_object) {
        let entry = |(index, value)| sparse_entry(index, value, names);
        return rows.into_iter().enumerate().map(entry).collect();
    }
    if rows.len() != servers {
        return Err(Error::input("traffic", format!("{} rows for {servers} servers", rows.len())));
    }
    let mut entries = Vec::new();
    for (from, row) in rows.iter().enumerate() {
        let Value::Array(row) = row else {
            return Err(Error::input(format!("traffic[{from}]"), "not a row of numbers"));
        };
        if row.len() != servers {
            let message = format!("{} values for {servers} servers", row.len());
            return Err(Error::input(format!("traffic[{from}]"), message));
        }
        for (to, value) in row.iter().enumerate() {
            let volume = required(&format!("traffic[{from}][{to}]"), Some(value))?;
            if volume > 0.0 {
                entries.push(Entry { from, to, tenant: None, volume });
            }
        }
    }
    Ok(entries)
}

fn sparse_entry(index: usize, value: Value, names: &Names) -> Result<Entry> {
    let place = format!("traffic[{index}]");
    let entry: EntryText =
        serde_json::from_value(value).map_err(|error| Error::input(&*place, error.to_string()))?;
    let tenant = entry.tenant.map(|name| names.tenant(&place, &name)).transpose()?;
    Ok(Entry {
        from: names.server(&place, &entry.from)?,
        to: names.server(&place, &entry.to)?,
        tenant,
        volume: required(&format!("{place}.volume"), entry.volume.as_ref())?,
    })
}

fn optional(place: &str, value: Option<&Value>) -> Result<Option<f64>> {
    value.map(|value| required(place, Some(value))).transpose()
}

fn required(place: &str, value: Option<&Value>) -> Result<f64> {
    match value {
        None | Some(Value::Null) => Err(Error::input(place, "the value is missing")),
        Some(Value::Number(number)) => usable(number.as_f64().unwrap_or(f64::INFINITY))
            .map_err(|message| Error::input(place, message)),
        Some(other) => Err(Error::input(place, format!("{other} is not a number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVERS: &str = r#""alpha":1.5,"beta":0.5,"servers":[{"name":"a","capacity":100},{"name":"b","capacity":50,"alpha":2}]"#;

    fn read(rest: &str) -> Result<Problem> {
        problem_from_json(&format!("{{{SERVERS},{rest}}}"))
    }

    #[test]
    fn a_traffic_matrix_and_a_traffic_list_give_the_same_problem() {
        let dense = read(r#""traffic":[[1,2],[3,4]]"#).unwrap();
        let sparse = read(
            r#""traffic":[{"from":"a","to":"a","volume":1},{"from":"a","to":"b","volume":2},
               {"from":"b","to":"a","volume":3},{"from":"b","to":"b","volume":4}]"#,
        )
        .unwrap();
        assert_eq!(dense.own(), sparse.own());
        assert_eq!(dense.load(), sparse.load());
        assert_eq!(dense.servers()[1].costs, Costs { alpha: 2.0, beta: 0.5 });
    }

    #[test]
    fn tenants_links_and_forbidden_pairs_are_read_from_json() {
        let problem = read(
            r#""tenants":[{"name":"red","minimum":0.25,"weight":3}],"links":[{"from":"a","to":"b","capacity":7}],
               "forbidden":[{"from":"b","to":"a"}],"traffic":[{"from":"a","to":"b","volume":2,"tenant":"red"}]"#,
        )
        .unwrap();
        assert_eq!(problem.tenants()[0], Tenant { name: "red".into(), minimum: 0.25, weight: 3.0 });
        let link = |from, to, capacity| LinkLimit { from, to, capacity };
        assert_eq!(problem.links(), [link(0, 1, 7.0), link(1, 0, 0.0)]);
    }

    #[test]
    fn every_json_error_is_reported_with_its_place() {
        for (rest, expected) in [
            (r#""traffic":[[1,2],[3,NaN]]"#, "line 1, column"),
            (r#""traffic":[[1,2],[3,null]]"#, "traffic[1][1]: the value is missing"),
            (r#""traffic":[[1,2],[-3,1]]"#, "traffic[1][0]: -3 is negative"),
            (r#""traffic":[[1,2],[1e300,1]]"#, "traffic[1][0]: 1e300 is absurd: more than 10^13"),
            (r#""traffic":[[1,2],[1e999,1]]"#, "line 1, column"),
            (r#""traffic":[[1,2],["x",1]]"#, "traffic[1][0]: \"x\" is not a number"),
            (r#""traffic":[[1,2],[3]]"#, "traffic[1]: 1 values for 2 servers"),
            (r#""traffic":[[1,2]]"#, "traffic: 1 rows for 2 servers"),
            (r#""traffic":7"#, "traffic: not a list"),
            (
                r#""traffic":[{"from":"a","to":"c","volume":1}]"#,
                "traffic[0]: there is no server \"c\"",
            ),
            (r#""traffic":[{"from":"a","to":"b"}]"#, "traffic[0].volume: the value is missing"),
            (
                r#""traffic":[{"from":"a","to":"b","volume":1,"tenant":"t"}]"#,
                "traffic[0]: there is no tenant \"t\"",
            ),
            (r#""traffic":[],"linx":[]"#, "unknown field `linx`"),
            (
                r#""traffic":[[0,0],[0,0]],"links":[{"from":"a","to":"b"}]"#,
                "links[0].capacity: the value is missing",
            ),
        ] {
            let error = read(rest).unwrap_err().to_string();
            assert!(error.contains(expected), "{rest}: {error}");
        }
        let error = problem_from_json(r#"{"servers":[{"name":"a","capacity":1}],"traffic":[]}"#);
        assert!(error.unwrap_err().to_string().starts_with("servers[0].alpha: missing"));
    }
}
