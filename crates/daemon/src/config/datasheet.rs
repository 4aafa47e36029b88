//! `datasheet.json`, as `weir evaluate all` writes it: the source of limits that the operator has not set.
//!
//! ```text
//!   safe_rates.packet-out                         ▶ packet_out
//!   the lowest of safe_rates.flow-mod-…           ▶ flow_mod
//!   the lowest of safe_rates.stats-…              ▶ statistics; costs the longest of latency_us.stats-…
//!   the lower of safe_rates.barrier and .echo     ▶ barriers, and all else that is answered
//!   safe_rates.packet-in                          ▶ packet_in
//!   the smallest of capacity, where it was full   ▶ the size of a table
//! ```
//! A message costs the time between two messages at the safe rate, except for statistics. Statistics are polled at few
//! rates, and the switch may easily serve the highest of them, so a statistics request costs the time of its reply.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hypervisor::sheet::{Figure, Measured, MessageClass, Sheet, TableSize};
use serde::Deserialize;
use serde_json::Value as Json;

use super::reader::Value;

/// The version of the format that is read.
const SCHEMA: u64 = 2;
/// The most bytes of a data sheet, which has some kilobytes.
const MOST_BYTES: u64 = 1 << 20;
/// A higher figure is a mistake.
const MOST: f64 = 1e12;

/// The sheets that a configuration names, each read once.
#[derive(Default)]
pub(super) struct Sheets(RefCell<HashMap<PathBuf, Result<Arc<Sheet>, String>>>);

impl Sheets {
    /// The sheet that a value names.
    pub(super) fn read(&self, value: &Value<'_, '_>) -> Option<Arc<Sheet>> {
        let mut read = self.0.borrow_mut();
        let sheet = read.entry(value.file()?).or_insert_with_key(|path| load(path).map(Arc::new));
        match sheet {
            Ok(sheet) => Some(Arc::clone(sheet)),
            Err(error) => value.refuse(error.clone(), None),
        }
    }
}

/// The parts of the file that Weir reads.
#[derive(Deserialize)]
struct Document {
    measured: String,
    switch: BTreeMap<String, Json>,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    unfinished: Vec<String>,
    #[serde(default)]
    capacity: BTreeMap<String, Capacity>,
    #[serde(default)]
    safe_rates: BTreeMap<String, f64>,
    #[serde(default)]
    latency_us: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Capacity {
    entries: f64,
    is_full: bool,
}

/// Reads a file. The error is a sentence.
fn load(path: &Path) -> Result<Sheet, String> {
    let name = path.display().to_string();
    let text = text(path).map_err(|error| format!("the data sheet {name} {error}"))?;
    parse(&name, &text).map_err(|error| format!("the data sheet {name} {error}"))
}

fn text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let meta = std::fs::metadata(path).map_err(unreadable)?;
    if !meta.is_file() {
        return Err("is not a file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("has more than {MOST_BYTES} bytes: that is no data sheet"));
    }
    Ok(text)
}

fn parse(name: &str, text: &str) -> Result<Sheet, String> {
    let damaged = |error: serde_json::Error| {
        format!("is damaged: {error}; `weir evaluate all --out DIR` writes a new one")
    };
    let whole: Json = serde_json::from_str(text).map_err(damaged)?;
    match whole.get("schema").and_then(Json::as_u64) {
        Some(SCHEMA) => {}
        Some(other) => {
            return Err(format!(
                "has schema {other}, and this Weir reads schema {SCHEMA}: measure again with this Weir's `weir evaluate all`"
            ));
        }
        None => return Err("has no `schema`: `weir evaluate all` did not write it".to_owned()),
    }
    let document: Document = serde_json::from_value(whole).map_err(damaged)?;
    if document.interrupted {
        return Err("is of a measurement that was interrupted: run `weir evaluate all` to its end"
            .to_owned());
    }
    document.sheet(name)
}

impl Document {
    fn sheet(&self, file: &str) -> Result<Sheet, String> {
        self.check()?;
        let mut classes = BTreeMap::new();
        for class in MessageClass::ALL {
            if let Some(rate) = self.lowest_rate(class) {
                let between = 1e9 / rate.value;
                let cost = match class {
                    MessageClass::Statistics => self.reply_ns().unwrap_or(between).min(between),
                    _ => between,
                };
                // `as` keeps within the range of the integer.
                classes.insert(class, Measured { rate, cost: (cost as u64).max(1) });
            }
        }
        let table = self.table();
        if classes.is_empty() && table.is_none() {
            return Err("has no figure from which a limit can come".to_owned());
        }
        Ok(Sheet {
            file: file.to_owned(),
            measured: self.measured.clone(),
            dpid: self.dpid()?,
            description: self.description(),
            table,
            classes,
        })
    }

    /// An error if a figure is impossible.
    fn check(&self) -> Result<(), String> {
        let capacity = self.capacity.iter().map(|(name, it)| ("capacity", name, it.entries));
        let rates = self.safe_rates.iter().map(|(name, rate)| ("safe_rates", name, *rate));
        let latency = self.latency_us.iter().map(|(name, us)| ("latency_us", name, *us));
        match capacity.chain(rates).chain(latency).find(|(.., it)| !(0.0..=MOST).contains(it)) {
            Some((map, name, value)) => {
                Err(format!("is damaged: {map}.{name} is {value:?}, which cannot be"))
            }
            None => Ok(()),
        }
    }

    /// The lowest safe rate of a class. Weir does not use a rate of 0, at which an experiment has lost all messages,
    /// and no figure of an unfinished experiment.
    fn lowest_rate(&self, class: MessageClass) -> Option<Figure> {
        let is_of = |name: &str| match class {
            MessageClass::PacketOut => name == "packet-out",
            MessageClass::FlowMod => name.starts_with("flow-mod-"),
            MessageClass::Statistics => name.starts_with("stats-"),
            MessageClass::Other => name == "barrier" || name == "echo",
            MessageClass::PacketIn => name == "packet-in",
        };
        let rates = self.safe_rates.iter().filter(|(name, rate)| is_of(name) && **rate > 0.0);
        let rates = rates.map(|(name, rate)| (name, experiment(name), *rate));
        let rates = rates.filter(|(_, experiment, _)| self.is_finished(experiment));
        let (name, experiment, value) = rates.min_by(|a, b| a.2.total_cmp(&b.2))?;
        let name = format!("safe_rates.{name}");
        Some(Figure { name, experiment: experiment.to_owned(), value })
    }

    /// The longest time of a statistics reply, in ns.
    fn reply_ns(&self) -> Option<f64> {
        let replies = self.latency_us.iter().filter(|(name, _)| name.starts_with("stats-"));
        replies.map(|(_, us)| us * 1e3).max_by(f64::total_cmp).filter(|ns| *ns > 0.0)
    }

    /// The smallest number of entries at which the table was full.
    fn table(&self) -> Option<TableSize> {
        let full = self.capacity.iter().filter(|(_, it)| it.is_full && it.entries >= 1.0);
        let full = full.filter(|_| self.is_finished("capacity"));
        let (kind, size) = full.min_by(|a, b| a.1.entries.total_cmp(&b.1.entries))?;
        let (name, experiment) = (format!("capacity.{kind}"), "capacity".to_owned());
        let figure = Figure { name, experiment, value: size.entries };
        Some(TableSize { rules: size.entries as u32, figure })
    }

    fn is_finished(&self, experiment: &str) -> bool {
        !self.unfinished.iter().any(|name| name == experiment)
    }

    fn dpid(&self) -> Result<Option<u64>, String> {
        let Some(dpid) = self.switch.get("dpid") else { return Ok(None) };
        let number = dpid.as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(format!("is damaged: switch.dpid is {dpid}, which is no datapath id")),
        }
    }

    fn description(&self) -> Option<[String; 3]> {
        let text = |key| self.switch.get(key)?.as_str().map(str::to_owned);
        Some([text("manufacturer")?, text("hardware")?, text("software")?])
    }
}

/// The experiment of `weir evaluate` behind a safe rate.
fn experiment(rate: &str) -> &str {
    match rate {
        "flow-mod-add" => "insert",
        "flow-mod-modify" => "change",
        "flow-mod-delete" => "delete",
        _ if rate.starts_with("stats-") => "statistics",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{ "schema": 2, "measured": "2026-01-02T03:04:05Z",
        "switch": { "dpid": "000000000000002a", "manufacturer": "m", "hardware": "h", "software": "s" },
        "capacity": { "exact": { "entries": 2000.0, "is_full": false },
            "wildcard": { "entries": 512.0, "is_full": true } },
        "safe_rates": { "flow-mod-add": 500.0, "flow-mod-delete": 400.0, "packet-in": 9000.0,
            "packet-out": 0.0, "stats-flow": 10.0, "stats-aggregate": 100.0, "echo": 8000.0,
            "barrier": 4000.0 },
        "latency_us": { "stats-flow": 20000.0, "stats-aggregate": 300.0, "echo": 90.0 },
        "findings": [], "modification_loss": {}, "what a later Weir adds": 1 }"#;

    #[test]
    fn data_sheet_figures_become_message_classes_and_a_table_size() {
        let sheet = parse("sheet.json", WHOLE).unwrap();
        let classes = sheet.classes.iter().map(|(class, it)| {
            (*class, it.rate.name.as_str(), it.rate.experiment.as_str(), it.rate.value, it.cost)
        });
        let classes: Vec<_> = classes.collect();
        assert_eq!(
            classes,
            [
                (MessageClass::FlowMod, "safe_rates.flow-mod-delete", "delete", 400.0, 2_500_000),
                (MessageClass::Statistics, "safe_rates.stats-flow", "statistics", 10.0, 20_000_000),
                (MessageClass::Other, "safe_rates.barrier", "barrier", 4000.0, 250_000),
                (MessageClass::PacketIn, "safe_rates.packet-in", "packet-in", 9000.0, 111_111),
            ]
        );
        let table = sheet.table.unwrap();
        assert_eq!((table.rules, table.figure.name.as_str()), (512, "capacity.wildcard"));
        assert_eq!(sheet.dpid, Some(0x2a));
        assert_eq!(sheet.description, Some(["m", "h", "s"].map(str::to_owned)));
    }

    #[test]
    fn an_unfinished_experiment_in_a_data_sheet_gives_no_limit() {
        let partial = r#""unfinished": ["delete", "statistics", "capacity"], "findings""#;
        let sheet = parse("sheet.json", &WHOLE.replace("\"findings\"", partial)).unwrap();
        assert_eq!(sheet.classes[&MessageClass::FlowMod].rate.name, "safe_rates.flow-mod-add");
        assert_eq!(sheet.classes.get(&MessageClass::Statistics), None);
        assert_eq!(sheet.table, None);
    }

    #[test]
    fn an_invalid_data_sheet_is_refused_with_the_reason() {
        let check = |from: &str, to: &str, expected: &str| {
            let error = parse("sheet.json", &WHOLE.replace(from, to)).unwrap_err();
            assert!(error.contains(expected), "{from}: {error}");
        };
        check("\"schema\": 2", "\"schema\": 1", "has schema 1, and this Weir reads schema 2");
        check("\"schema\": 2,", "", "has no `schema`");
        check("\"schema\": 2", "\"schema\": \"2\"", "has no `schema`");
        check("\"measured\"", "\"interrupted\": true, \"measured\"", "was interrupted");
        check("500.0", "-1", "safe_rates.flow-mod-add is -1.0, which cannot be");
        check("500.0", "1e300", "safe_rates.flow-mod-add is 1e300, which cannot be");
        check("500.0", "\"many\"", "is damaged: invalid type");
        check("2000.0", "-7", "capacity.exact is -7.0, which cannot be");
        check("90.0", "-7", "latency_us.echo is -7.0, which cannot be");
        check("000000000000002a", "here", "switch.dpid is \"here\", which is no datapath id");
        check("\"measured\"", "\"measures\"", "missing field `measured`");
        check("}", "", "is damaged");
        let nothing = r#"{ "schema": 2, "measured": "", "switch": {} }"#;
        let error = parse("sheet.json", nothing).unwrap_err();
        assert!(error.contains("no figure"), "{error}");
        for text in ["", "[]", "7", "\u{0}", "{}"] {
            assert!(parse("sheet.json", text).is_err(), "{text}");
        }
    }

    #[test]
    fn missing_files_folders_and_devices_are_refused_as_data_sheets() {
        let error = |path: &str| load(Path::new(path)).unwrap_err();
        assert!(error("/nowhere/sheet.json").contains("/nowhere/sheet.json cannot be read"));
        assert!(error("/").contains("is not a file"));
        assert!(error("/dev/zero").contains("is not a file"));
    }
}
