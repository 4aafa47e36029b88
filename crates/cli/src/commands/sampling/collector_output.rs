//! The results of a collector, with the largest flows, as text and as JSON.

use agent::{Collector, Row};
use report::Table;
use report::table::number;
use serde_json::{Value, json};

pub fn text(collector: &Collector, flows: usize) -> String {
    let mut text = String::new();
    for (heading, rows) in sections(collector, flows) {
        if !rows.is_empty() {
            text += &format!("{}\n", table(heading, &rows));
        }
    }
    let ((datagrams, rejected), missing) = (collector.datagrams(), collector.missing());
    let datagrams = number(datagrams as f64);
    text += &format!("{datagrams} datagrams, {rejected} not understood, {missing} missing.\n");
    text
}

pub fn json(collector: &Collector, flows: usize) -> Value {
    let row = |row: &Row| {
        json!({
            "name": row.name, "samples": row.samples,
            "packets": row.packets.total, "packets_ci95": row.packets.half95,
            "bytes": row.bytes.total, "bytes_ci95": row.bytes.half95,
        })
    };
    let (datagrams, rejected) = collector.datagrams();
    let mut value = json!({
        "datagrams": datagrams, "rejected": rejected, "missing": collector.missing(),
    });
    for (heading, rows) in sections(collector, flows) {
        value[heading] = rows.iter().map(row).collect();
    }
    value
}

fn sections(collector: &Collector, flows: usize) -> [(&'static str, Vec<Row>); 4] {
    [
        ("total", vec![collector.total()]),
        ("agents", collector.agents()),
        ("tenants", collector.tenants()),
        ("flows", collector.flows(flows)),
    ]
}

fn table(heading: &str, rows: &[Row]) -> Table {
    let mut table = Table::new([heading, "samples", "packets", "± 95 %", "bytes", "± 95 %"]);
    for row in rows {
        table.row([
            row.name.clone(),
            number(row.samples as f64),
            number(row.packets.total),
            number(row.packets.half95),
            number(row.bytes.total),
            number(row.bytes.half95),
        ]);
    }
    table
}
