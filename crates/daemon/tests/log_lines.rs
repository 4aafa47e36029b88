//! Tests of the fields of log lines in the sources: a switch is shown by its datapath id and a tenant by its name, and
//! no field has the `Debug` format.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

/// Times may have the `Debug` format, which is readable.
const TIMES: [&str; 2] = ["?delay", "?begun.elapsed()"];

#[test]
fn log_fields_have_names_and_values_for_operators() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = ["daemon/src", "channel/src", "hypervisor/src", "cli/src"];
    let mut lines = Vec::new();
    folders.iter().for_each(|folder| collect(&crates.join(folder), &mut lines));
    assert!(lines.len() > 80, "only {} were found", lines.len());
    let wrong: Vec<_> = lines.iter().filter_map(|line| Some((wrong(line)?, line))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The error in the fields of a log line (without its message), if any.
fn wrong(fields: &str) -> Option<&'static str> {
    let words: Vec<&str> = fields.split([',', '\n']).map(str::trim).collect();
    words.iter().find_map(|word| {
        let (name, value) = word.split_once(" = ").unwrap_or(("", word));
        let is_debug = value.starts_with('?') && !TIMES.contains(&value);
        let name = if name.is_empty() { value.trim_start_matches(['%', '?']) } else { name };
        match name {
            _ if is_debug => Some("written for programmers"),
            "dpid" | "switch" if !value.starts_with('%') => Some("a datapath id as a number"),
            "tenant" if value.ends_with(".0") || value.contains("id") => Some("a tenant's number"),
            "version" => Some("a version as a number"),
            _ => None,
        }
    })
}

/// The fields of all log lines of a folder.
fn collect(folder: &Path, lines: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, lines);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for level in ["error", "warn", "info", "debug", "trace"] {
                let call = format!("tracing::{level}!(");
                let begun = text.split(&call).skip(1);
                lines.extend(begun.map(|rest| rest.split('"').next().unwrap().to_owned()));
            }
        }
    }
}

#[test]
fn log_fields_for_programmers_are_found_by_the_check() {
    for fields in ["dpid,", "peer = ?source, ", "?peer,", "version = established.version.0,"] {
        assert!(wrong(fields).is_some(), "{fields}");
    }
    assert!(wrong("\n    tenant = id.0,\n").is_some());
    let right = "\n   tenant, %switch, controller = %way, reason, ?delay, ";
    assert_eq!(wrong(right), None);
    assert_eq!(wrong("dpid = %Dpid(dpid), peer = peer.map(display), "), None);
}
