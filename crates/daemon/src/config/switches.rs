//! `[[switches]]`: the switches that may connect.

use std::collections::HashMap;
use std::net::IpAddr;

use channel::CertificateName;

use super::diagnostic::Position;
use super::reader::{Table, Value};
use crate::dpid::Dpid;

/// More would be a mistake.
const MOST: usize = 65_536;

/// One switch that may connect.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// Where it stands in the file.
    pub at: Position,
    /// Its datapath id.
    pub dpid: u64,
    /// What people call it.
    pub name: Option<String>,
    /// The address that it has to come from.
    pub address: Option<IpAddr>,
    /// The certificate that it has to show.
    pub certificate: Option<CertificateName>,
}

pub(super) fn read(value: &Value<'_, '_>) -> Option<Vec<Listed>> {
    let mut lines = HashMap::new();
    let switches = value.list(|value| value.table(|table| listed(table, &mut lines)).flatten())?;
    if switches.len() > MOST {
        return value.refuse(format!("more than {MOST} switches"), None);
    }
    Some(switches)
}

fn listed(table: &mut Table<'_, '_>, lines: &mut HashMap<u64, Position>) -> Option<Listed> {
    let dpid = table.require("dpid", "\"00:00:00:00:00:00:00:01\"", |value| {
        let dpid = value.parsed::<Dpid>()?.0;
        if let Some(first) = lines.get(&dpid) {
            let help = format!("the first stands in line {}", first.line);
            return value.refuse(format!("there is another switch {}", Dpid(dpid)), Some(help));
        }
        lines.insert(dpid, value.position());
        Some(dpid)
    });
    let name = table.get("name", |value| value.string().map(str::to_owned));
    let address = table.get("address", |value| value.parsed::<IpAddr>());
    let certificate = table.get("certificate", |value| value.parsed::<CertificateName>());
    Some(Listed { at: table.position(), dpid: dpid?, name, address, certificate })
}
