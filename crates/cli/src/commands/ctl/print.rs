//! Prints tables, networks, and changes of networks in a readable form.

use daemon::api::trace::wrapped;
use daemon::networks::{NetworkView, Outcome, Passed, RouteDocument, SetAside};
use std::io::{Result, Write};

/// The largest width of the first column. A longer text has its own line.
const WIDEST: usize = 26;

/// Rows under a head: text on the left, numbers on the right.
pub struct Columns {
    rows: Vec<Row>,
    /// The number of text columns, from the first column on.
    text: usize,
}

enum Row {
    Cells(Vec<String>),
    /// A note about the previous row.
    Note(String),
}

impl Columns {
    /// A table with this head. The first `text` columns are text columns.
    pub fn new(head: &[&str], text: usize) -> Columns {
        let head = head.iter().map(|&word| word.to_owned()).collect();
        Columns { rows: vec![Row::Cells(head)], text }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(Row::Cells(cells.into()));
    }

    pub fn note(&mut self, text: String) {
        self.rows.push(Row::Note(text));
    }

    /// Writes all rows, or `none` if there are no rows.
    pub fn write(&self, out: &mut dyn Write, none: &str) -> Result<()> {
        if self.rows.len() == 1 {
            return writeln!(out, "{none}");
        }
        let mut widths = Vec::new();
        for row in &self.rows {
            let Row::Cells(cells) = row else { continue };
            widths.resize(widths.len().max(cells.len()), 0);
            for (at, (width, cell)) in widths.iter_mut().zip(cells).enumerate() {
                let length = cell.chars().count();
                if at > 0 || length <= WIDEST {
                    *width = length.max(*width);
                }
            }
        }
        self.rows.iter().try_for_each(|row| match row {
            Row::Cells(cells) => self.write_cells(out, cells, &widths),
            Row::Note(text) => wrapped(4, text).iter().try_for_each(|line| writeln!(out, "{line}")),
        })
    }

    fn write_cells(&self, out: &mut dyn Write, cells: &[String], widths: &[usize]) -> Result<()> {
        let mut line = String::new();
        for (at, (cell, &width)) in cells.iter().zip(widths).enumerate() {
            if at > 0 {
                line.push_str("  ");
            }
            match at < self.text {
                true => line.push_str(&format!("{cell:width$}")),
                false => line.push_str(&format!("{cell:>width$}")),
            }
            if at == 0 && cell.chars().count() > width {
                writeln!(out, "{line}")?;
                line = " ".repeat(width);
            }
        }
        writeln!(out, "{}", line.trim_end())
    }
}

pub fn networks(out: &mut dyn Write, all: &[NetworkView]) -> Result<()> {
    if all.is_empty() {
        return writeln!(out, "no tenant has a network of its own");
    }
    for view in all {
        let network = &view.network;
        let up = view.ports.iter().filter(|port| port.up).count();
        writeln!(
            out,
            "{}: {}, switches {}, links {}, hosts {}, ports {} of {} up{}",
            view.tenant,
            if network.started { "started" } else { "stopped" },
            network.switches.len(),
            network.links.len(),
            network.hosts.len(),
            up,
            view.ports.len(),
            if view.as_configured { "" } else { ", changed since the file" },
        )?;
    }
    Ok(())
}

/// Prints the changes that the configuration file replaced at a start.
pub fn set_aside(out: &mut dyn Write, all: &[SetAside]) -> Result<()> {
    for SetAside { tenant, reason, .. } in all {
        writeln!(out, "{tenant}: what was changed was set aside at a start: {reason}")?;
    }
    Ok(())
}

pub fn network(out: &mut dyn Write, view: &NetworkView) -> Result<()> {
    networks(out, std::slice::from_ref(view))?;
    let network = &view.network;
    let stopped = |started: bool| if started { "" } else { "  (stopped)" };
    if let Some(block) = &network.addresses {
        writeln!(out, "addresses {block}")?;
    }
    for switch in &network.switches {
        writeln!(
            out,
            "switch {} on {}{}",
            switch.dpid,
            switch.on.join(", "),
            stopped(switch.started)
        )?;
    }
    let state = |name: &str| match view.ports.iter().find(|port| port.port == name) {
        Some(port) if port.up => "up",
        Some(port) if port.refused => "down (refused by the switch)",
        Some(_) => "down",
        None => "-",
    };
    for port in &network.ports {
        let name = format!("{} port {}", port.switch, port.number);
        let shared = if port.shared { ", shared" } else { "" };
        writeln!(
            out,
            "port {name} at {}{shared}  {}{}",
            port.at,
            state(&name),
            stopped(port.started)
        )?;
    }
    for host in &network.hosts {
        let assigned = view.assigned.iter().find(|assigned| assigned.mac == host.mac);
        let mut addresses = host.address.clone();
        addresses.extend(assigned.map(|assigned| assigned.address.clone()));
        writeln!(out, "host {} {} at {}", host.mac, addresses.join(", "), host.at)?;
    }
    for link in &network.links {
        let [a, b] = &link.between;
        let bandwidth = link.bandwidth.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
        let given = matches!(link.route, RouteDocument::Given(_));
        let given = if given { ", way given" } else { "" };
        let state = match (state(a), state(b)) {
            (a, b) if a == b => a.to_owned(),
            (a, b) => format!("{a} - {b}"),
        };
        writeln!(out, "link {a} - {b}{bandwidth}{given}  {state}{}", stopped(link.started))?;
        let same = |other: &[String; 2]| other == &link.between || [&other[1], &other[0]] == [a, b];
        for path in view.paths.iter().filter(|path| path.carries == "link" && same(&path.between)) {
            passed(out, "path", &path.path)?;
            passed(out, "backup", &path.backup)?;
            if let Some(trouble) = &path.trouble {
                writeln!(out, "  {trouble}")?;
            }
        }
    }
    for path in view.paths.iter().filter(|path| path.carries == "inside") {
        writeln!(out, "inside {} - {}", path.between[0], path.between[1])?;
        passed(out, "path", &path.path)?;
        if let Some(trouble) = &path.trouble {
            writeln!(out, "  {trouble}")?;
        }
    }
    Ok(())
}

fn passed(out: &mut dyn Write, what: &str, path: &[Passed]) -> Result<()> {
    for wire in path {
        write!(out, "  {what:6} {} -> {}", wire.from, wire.to)?;
        if !wire.tags.is_empty() {
            write!(out, "  tag {}", listed(&wire.tags))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn listed(numbers: &[u16]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

pub fn outcome(out: &mut dyn Write, outcome: &Outcome) -> Result<()> {
    let Outcome { dry_run, parts, switches, ports, paths } = outcome;
    if parts.is_empty() && switches.is_empty() && ports.is_empty() && paths.is_empty() {
        return writeln!(
            out,
            "{}",
            if *dry_run { "nothing would change" } else { "nothing changes" }
        );
    }
    let state = |state: Option<bool>| match state {
        None => "-",
        Some(true) => "up",
        Some(false) => "down",
    };
    for part in parts {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
        writeln!(out, "{} {}: {} -> {}", part.tenant, part.part, side(&part.was), side(&part.is))?;
    }
    for port in ports {
        writeln!(
            out,
            "{} port {}: {} -> {}",
            port.tenant,
            port.port,
            state(port.was),
            state(port.is)
        )?;
    }
    let way = |ports: &[String]| if ports.is_empty() { "-".to_owned() } else { ports.join(", ") };
    for path in paths {
        let [a, b] = &path.between;
        writeln!(
            out,
            "{} {} {a} - {b}: {} -> {}",
            path.tenant,
            path.carries,
            way(&path.was),
            way(&path.is)
        )?;
    }
    let verb = if *dry_run { "would get" } else { "get" };
    let switches = if switches.is_empty() { "none".to_owned() } else { switches.join(", ") };
    writeln!(out, "physical switches that {verb} other rules: {switches}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn changes_set_aside_at_a_start_are_printed_with_tenant_and_reason() {
        let aside = json!([{"tenant": "red", "reason": "red: port 1: it is taken"}]);
        let mut out = Vec::new();
        set_aside(&mut out, &serde_json::from_value::<Vec<_>>(aside).unwrap()).unwrap();
        let expected = "red: what was changed was set aside at a start: red: port 1: it is taken\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// In the last case the switch at the second end refuses the link.
    #[test]
    fn a_link_is_printed_with_both_states_when_its_ends_differ() {
        let (first, second) = ("00:00:00:00:00:00:00:a1 port 2", "00:00:00:00:00:00:00:a2 port 2");
        for (ends, expected) in [
            ([json!({"up": true}), json!({"up": true})], "up"),
            ([json!({"up": false}), json!({"up": false})], "down"),
            (
                [json!({"up": true}), json!({"up": false, "refused": true})],
                "up - down (refused by the switch)",
            ),
        ] {
            let [mut a, mut b] = ends;
            (a["port"], b["port"]) = (json!(first), json!(second));
            let link = json!({"between": [first, second]});
            let view = json!({
                "tenant": "red",
                "as_configured": true,
                "network": {"switches": [], "ports": [], "links": [link]},
                "assigned": [],
                "ports": [a, b],
                "paths": [],
            });
            let mut out = Vec::new();
            network(&mut out, &serde_json::from_value(view).unwrap()).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert_eq!(text.lines().last(), Some(&*format!("link {first} - {second}  {expected}")));
        }
    }
}
