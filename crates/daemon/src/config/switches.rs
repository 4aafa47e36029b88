//! `[[switches]]`: the switches that may connect, and data sheets of switches.

use std::collections::HashMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use channel::CertificateName;
use hypervisor::sheet::Sheet;

use super::datasheet::Sheets;
use super::diagnostic::Position;
use super::reader::{Table, Value};
use crate::dpid::Dpid;

/// The most listed switches; more would be a mistake.
const MOST: usize = 65_536;

/// Which certificate a switch has to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// This one.
    Is(CertificateName),
    /// The one that it showed first (`"pin"`).
    Pin,
}

impl FromStr for Certificate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pin" => Ok(Certificate::Pin),
            _ => text.parse().map(Certificate::Is).map_err(|error| format!("{error}, or \"pin\"")),
        }
    }
}

/// One switch that may connect.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// The place in the file.
    pub at: Position,
    /// The datapath id.
    pub dpid: u64,
    /// The name for people.
    pub name: Option<String>,
    /// The address from which the switch has to connect.
    pub address: Option<IpAddr>,
    /// The certificate that it has to show.
    pub certificate: Option<Certificate>,
    /// What was measured of it.
    pub datasheet: Option<Arc<Sheet>>,
}

/// The contents of the section.
#[derive(Default)]
pub(super) struct Switches {
    pub(super) listed: Vec<Listed>,
    /// The data sheet of switches without one of their own, and of unlisted switches.
    pub(super) datasheet: Option<Arc<Sheet>>,
}

/// Reads `[switches]`, which has keys for all switches, or `[[switches]]`, which lists switches.
pub(super) fn read(value: &Value<'_, '_>) -> Option<Switches> {
    let sheets = Sheets::default();
    if value.is_table() {
        let datasheet = value.table(|table| table.get("datasheet", |value| sheets.read(value)))?;
        return Some(Switches { listed: Vec::new(), datasheet });
    }
    let (mut lines, mut datasheet) = (HashMap::new(), None);
    let listed = value.tables(|table| match is_any(table) {
        true => any(table, &sheets, &mut datasheet),
        false => listed(table, &sheets, &mut lines),
    })?;
    if listed.len() > MOST {
        return value.refuse(format!("more than {MOST} switches"), None);
    }
    Some(Switches { listed, datasheet })
}

/// The datapath id of the entry for all switches, which lists no switch.
const ANY: &str = "any";

fn is_any(table: &Table<'_, '_>) -> bool {
    table.text("dpid") == Some(ANY)
}

/// The entry for all switches: a data sheet, and nothing else.
fn any(
    table: &mut Table<'_, '_>,
    sheets: &Sheets,
    datasheet: &mut Option<Arc<Sheet>>,
) -> Option<Listed> {
    table.get("dpid", |value| match datasheet {
        Some(_) => value.refuse::<()>("there is another entry for any switch", None),
        None => Some(()),
    });
    let read = table.require("datasheet", "\"datasheet.json\"", |value| sheets.read(value));
    if datasheet.is_none() {
        *datasheet = read;
    }
    None
}

fn listed(
    table: &mut Table<'_, '_>,
    sheets: &Sheets,
    lines: &mut HashMap<u64, Position>,
) -> Option<Listed> {
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
    let certificate = table.get("certificate", |value| value.parsed::<Certificate>());
    let datasheet = table.get("datasheet", |value| sheets.read(value));
    Some(Listed { at: table.position(), dpid: dpid?, name, address, certificate, datasheet })
}
