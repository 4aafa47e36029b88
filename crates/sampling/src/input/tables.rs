//! The CSV forms: servers, and the matrix, dense or sparse.

use super::number::number;
use crate::cost::Costs;
use crate::error::{Error, Result};
use crate::problem::Server;
use csv::StringRecord;

/// A traffic matrix whose servers are still names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// The entries that are not zero.
    pub entries: Vec<NamedEntry>,
    /// The servers, in the order of their first occurrence.
    pub servers: Vec<String>,
}

/// One entry of a matrix, with its place for error messages.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedEntry {
    /// The sending server.
    pub from: String,
    /// The receiving server.
    pub to: String,
    /// The tenant that the traffic belongs to.
    pub tenant: Option<String>,
    /// Packets per second.
    pub volume: f64,
    /// Such as `line 3, column "s2"`.
    pub place: String,
}

/// Reads a matrix.
///
/// *Sparse*: the header `from,to,volume` or `from,to,volume,tenant`, one entry a line. *Dense*: the header starts with an
/// empty field (or any other word) and names the receiving servers; each line starts with the sending server's name.
///
/// # Errors
/// [`Error::Input`] with line and column.
pub fn traffic_from_csv(text: &str) -> Result<Traffic> {
    let mut reader = reader(text);
    let header = reader.headers().map_err(broken)?.clone();
    let fields: Vec<&str> = header.iter().map(str::trim).collect();
    let mut traffic = Traffic::default();
    let is_sparse =
        matches!(fields.as_slice(), ["from", "to", "volume"] | ["from", "to", "volume", "tenant"]);
    if !is_sparse && fields.len() < 2 {
        return Err(Error::input(
            "line 1",
            "neither a matrix (an empty field, then the servers) nor a list (from,to,volume)",
        ));
    }
    if !is_sparse {
        traffic.servers = fields.iter().skip(1).map(|name| (*name).to_owned()).collect();
    }
    let mut known: std::collections::HashSet<String> = traffic.servers.iter().cloned().collect();
    let mut rows = std::collections::HashSet::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = line(&record);
        if is_sparse {
            let entry = sparse(&record, line)?;
            for name in [&entry.from, &entry.to] {
                if known.insert(name.clone()) {
                    traffic.servers.push(name.clone());
                }
            }
            traffic.entries.push(entry);
        } else {
            let from = name(&record, 0, line)?;
            if !rows.insert(from.clone()) {
                return Err(Error::input(
                    format!("line {line}"),
                    format!("a second row for {from:?}"),
                ));
            }
            if known.insert(from.clone()) {
                return Err(Error::input(
                    format!("line {line}"),
                    format!("there is no column for {from:?}"),
                ));
            }
            dense(&record, line, &from, &mut traffic)?;
        }
    }
    if !is_sparse && let Some(missing) = traffic.servers.iter().find(|name| !rows.contains(*name)) {
        return Err(Error::input("traffic", format!("there is no row for {missing:?}")));
    }
    Ok(traffic)
}

/// Reads servers: the header `server,capacity`, and any of `alpha,beta,minimum,weight`, in any order.
///
/// `default` has α and β of servers without their own.
///
/// # Errors
/// [`Error::Input`] with line and column.
pub fn servers_from_csv(text: &str, default: Option<Costs>) -> Result<Vec<Server>> {
    const COLUMNS: [&str; 6] = ["server", "capacity", "alpha", "beta", "minimum", "weight"];
    let mut reader = reader(text);
    let header = reader.headers().map_err(broken)?.clone();
    let mut places = [None; 6];
    for (index, field) in header.iter().enumerate() {
        let column = COLUMNS.iter().position(|column| *column == field.trim());
        match column.and_then(|column| places.get_mut(column)) {
            Some(place) => *place = Some(index),
            None => {
                let message = format!("{field:?} is none of {}", COLUMNS.join(", "));
                return Err(Error::input("line 1", message));
            }
        }
    }
    let [Some(server), Some(capacity), alpha, beta, minimum, weight] = places else {
        return Err(Error::input("line 1", "the columns server and capacity are needed"));
    };
    let mut servers = Vec::new();
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = line(&record);
        let value = |column: usize, name: &str| {
            let text = record.get(column).unwrap_or_default();
            number(|| format!("line {line}, column {name:?}"), text)
        };
        let cost = |column: Option<usize>, name: &str, default: Option<f64>| {
            let missing = || Error::input(format!("line {line}"), format!("{name} is not known"));
            match column {
                Some(column) => value(column, name),
                None => default.ok_or_else(missing),
            }
        };
        let costs = Costs {
            alpha: cost(alpha, "alpha", default.map(|costs| costs.alpha))?,
            beta: cost(beta, "beta", default.map(|costs| costs.beta))?,
        };
        let name = name(&record, server, line)?;
        let mut read = Server::new(name, value(capacity, "capacity")?, costs);
        if let Some(column) = minimum {
            read.minimum = value(column, "minimum")?;
        }
        if let Some(column) = weight {
            read.weight = value(column, "weight")?;
        }
        servers.push(read);
    }
    Ok(servers)
}

fn sparse(record: &StringRecord, line: u64) -> Result<NamedEntry> {
    let place = format!("line {line}, column \"volume\"");
    let volume = number(|| place.clone(), record.get(2).unwrap_or_default())?;
    let tenant = record.get(3).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let (from, to) = (name(record, 0, line)?, name(record, 1, line)?);
    Ok(NamedEntry { from, to, tenant, volume, place })
}

fn dense(record: &StringRecord, line: u64, from: &str, traffic: &mut Traffic) -> Result<()> {
    for (to, text) in traffic.servers.iter().zip(record.iter().skip(1)) {
        let place = || format!("line {line}, column {to:?}");
        let volume = number(place, text)?;
        if volume > 0.0 {
            let (from, to, place) = (from.to_owned(), to.clone(), place());
            traffic.entries.push(NamedEntry { from, to, tenant: None, volume, place });
        }
    }
    Ok(())
}

fn name(record: &StringRecord, column: usize, line: u64) -> Result<String> {
    let name = record.get(column).map(str::trim).unwrap_or_default();
    if name.is_empty() {
        Err(Error::input(format!("line {line}"), "the server's name is missing"))
    } else {
        Ok(name.to_owned())
    }
}

fn reader(text: &str) -> csv::Reader<&[u8]> {
    csv::Reader::from_reader(text.as_bytes())
}

fn line(record: &StringRecord) -> u64 {
    record.position().map_or(0, csv::Position::line)
}

/// With text the only possible error is a row of another length.
fn broken(error: csv::Error) -> Error {
    let place = error.position().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => Error::input(
            format!("line {place}"),
            format!("{len} fields, {expected_len} in the header"),
        ),
        _ => Error::input(format!("line {place}"), error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traffic_matrix_and_a_traffic_list_give_the_same_traffic() {
        let dense = traffic_from_csv(",a,b\na,1,2\nb,0,4\n").unwrap();
        let sparse = traffic_from_csv("from,to,volume\na,a,1\na,b,2\nb,b,4\n").unwrap();
        let values = |traffic: &Traffic| -> Vec<(String, String, f64)> {
            traffic.entries.iter().map(|e| (e.from.clone(), e.to.clone(), e.volume)).collect()
        };
        assert_eq!(values(&dense), values(&sparse));
        assert_eq!(dense.servers, sparse.servers);
    }

    #[test]
    fn tenants_and_servers_are_read_from_csv() {
        let traffic = traffic_from_csv("from,to,volume,tenant\na,b,2,red\nb,a,3,\n").unwrap();
        assert_eq!(traffic.entries[0].tenant.as_deref(), Some("red"));
        assert_eq!(traffic.entries[1].tenant, None);
        let servers = servers_from_csv(
            "capacity,server,beta,minimum\n100,a,0.2,0.5\n",
            Some(Costs::PUBLISHED),
        );
        let server = servers.unwrap().remove(0);
        assert_eq!((server.name.as_str(), server.capacity, server.minimum), ("a", 100.0, 0.5));
        assert_eq!(server.costs, Costs { alpha: 1.54, beta: 0.2 });
    }

    #[test]
    fn every_csv_error_is_reported_with_its_place() {
        for (text, expected) in [
            (",a,b\na,1,2\nb,-3,1\n", "line 3, column \"a\": -3 is negative"),
            (",a,b\na,1,\nb,3,1\n", "line 2, column \"b\": the value is missing"),
            (",a,b\na,1,NaN\nb,3,1\n", "line 2, column \"b\": NaN is not a finite number"),
            (",a,b\na,1,inf\nb,3,1\n", "line 2, column \"b\": inf is not a finite number"),
            (",a,b\na,1,1e30\nb,3,1\n", "line 2, column \"b\": 1e30 is absurd"),
            (",a,b\na,1,x\nb,3,1\n", "line 2, column \"b\": \"x\" is not a number"),
            (",a,b\na,1,2\nb,3\n", "line 3: 2 fields, 3 in the header"),
            (",a,b\na,1,2\n", "traffic: there is no row for \"b\""),
            (",a,b\na,1,2\na,1,2\n", "line 3: a second row for \"a\""),
            (",a,b\na,1,2\nc,1,2\n", "line 3: there is no column for \"c\""),
            ("from,to,volume\na,b,\n", "line 2, column \"volume\": the value is missing"),
            ("from,to,volume\n,b,1\n", "line 2: the server's name is missing"),
            ("", "line 1: neither a matrix"),
        ] {
            let error = traffic_from_csv(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
        for (text, expected) in [
            ("server,capacity\na,1\n", "line 2: alpha is not known"),
            ("server\na\n", "line 1: the columns server and capacity are needed"),
            ("server,capacity,gamma\na,1,2\n", "line 1: \"gamma\" is none of"),
            (
                "server,capacity,alpha,beta\na,-1,1,1\n",
                "line 2, column \"capacity\": -1 is negative",
            ),
        ] {
            let error = servers_from_csv(text, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
