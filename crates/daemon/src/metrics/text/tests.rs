//! `/metrics` read back by a parser that accepts nothing but the format's own rules.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Direction, DropReason, Kind, Registry, Rejection};
use super::seconds;

#[test]
fn a_populated_registry_reads_back() {
    let registry = Registry::new();
    let switch = registry.switch(0x10, 0x04);
    let nasty = switch.tenant(1, "a\\b\"c\nd");
    let red = switch.tenant(2, "red");
    switch.received.count(10);
    switch.received.count(77);
    switch.received.count(30);
    switch.window.set(64);
    red.messages(Direction::ToController).count(10);
    red.messages(Direction::ToController).count(10);
    red.messages(Direction::FromController).count(29);
    red.dropped(DropReason::QueueFull).add(3);
    red.refuse(1, 5);
    red.refuse(0xffff, 9);
    red.added_northbound.observe(1_500);
    red.added_northbound.observe(9_000_000_000);
    nasty.queue_southbound.set(7);
    registry.process.rejected(Kind::Switch, Rejection::Tls).increment();

    let scrape = Scrape::parse(&registry.encode()).unwrap();
    let dpid = "switch=00:00:00:00:00:00:00:10";
    for (series, value) in [
        ("weir_switches", "1"),
        (&format!("weir_switch_messages_total|{dpid}|direction=from_switch|type=packet_in"), "1"),
        (&format!("weir_switch_messages_total|{dpid}|direction=from_switch|type=unknown"), "2"),
        (&format!("weir_switch_window_messages|{dpid}"), "64"),
        (
            &format!(
                "weir_messages_total|{dpid}|tenant=red|direction=to_controller|type=packet_in"
            ),
            "2",
        ),
        (
            &format!(
                "weir_messages_total|{dpid}|tenant=red|direction=from_controller|type=meter_mod"
            ),
            "1",
        ),
        (&format!("weir_packet_in_dropped_total|{dpid}|tenant=red|reason=queue_full"), "3"),
        (&format!("weir_packet_in_dropped_total|{dpid}|tenant=red|reason=tenant_absent"), "0"),
        (&format!("weir_queue_messages|{dpid}|tenant=a\\b\"c\nd|towards=south"), "7"),
        (
            &format!(
                "weir_added_latency_seconds_bucket|{dpid}|tenant=red|towards=north|le=0.000001024"
            ),
            "0",
        ),
        (
            &format!(
                "weir_added_latency_seconds_bucket|{dpid}|tenant=red|towards=north|le=0.000002048"
            ),
            "1",
        ),
        (
            &format!("weir_added_latency_seconds_bucket|{dpid}|tenant=red|towards=north|le=+Inf"),
            "2",
        ),
        (&format!("weir_added_latency_seconds_sum|{dpid}|tenant=red|towards=north"), "9.0000015"),
        ("weir_connections_rejected_total|peer=switch|reason=tls", "1"),
    ] {
        assert_eq!(
            scrape.samples.get(series).map(String::as_str),
            Some(value),
            "{series}\n{:#?}",
            scrape.samples
        );
    }
    for error in ["OFPBRC_EPERM", "65535/9"] {
        let series = format!("weir_refused_total|{dpid}|tenant=red|error={error}");
        assert_eq!(scrape.samples.get(&series).map(String::as_str), Some("1"), "{series}");
    }
}

#[test]
fn the_page_documents_every_family_and_no_other() {
    let page = include_str!("../../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `weir_"));
    let documented: BTreeSet<String> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            format!("weir_{} {}", cells[0].trim_end_matches('`'), cells[1])
        })
        .collect();
    let text = Registry::new().encode();
    let printed: BTreeSet<String> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect();
    assert_eq!(documented, printed);
}

#[test]
fn an_empty_registry_is_valid_too() {
    let scrape = Scrape::parse(&Registry::new().encode()).unwrap();
    assert_eq!(scrape.samples.get("weir_switches").map(String::as_str), Some("0"));
}

#[test]
fn seconds_are_exact() {
    for (nanos, text) in
        [(0, "0"), (1, "0.000000001"), (1_000, "0.000001"), (8_388_608_000, "8.388608")]
    {
        assert_eq!(seconds(nanos), text);
    }
    assert_eq!(seconds(u64::MAX), "18446744073.709551615");
    assert_eq!(seconds(10_000_000_000), "10");
}

/// The parser itself must refuse what the format forbids, or the tests above prove nothing.
#[test]
fn the_parser_is_strict() {
    let head = "# HELP a b\n# TYPE a counter\n";
    for (text, why) in [
        ("a 1\n".to_owned(), "sample without a TYPE"),
        (format!("{head}a 1\na 1\n"), "same series twice"),
        (format!("{head}a{{x=\"1\" 1\n"), "unclosed labels"),
        (format!("{head}a{{x=\"\\t\"}} 1\n"), "unknown escape"),
        (format!("{head}a one\n"), "not a number"),
        (format!("{head}a 1"), "no newline at the end"),
        (
            format!("{head}a 1\n# HELP b c\n# TYPE b gauge\nb 1\na{{x=\"1\"}} 1\n"),
            "family in two places",
        ),
        (format!("{head}a 1\n{head}"), "family declared twice"),
    ] {
        assert!(Scrape::parse(&text).is_err(), "{why}");
    }
}

/// Series as `name|label=value|…` with their values.
#[derive(Debug, Default)]
struct Scrape {
    samples: BTreeMap<String, String>,
}

impl Scrape {
    fn parse(text: &str) -> Result<Scrape, String> {
        let text = text.strip_suffix('\n').ok_or("no newline at the end")?;
        let mut scrape = Scrape::default();
        let (mut declared, mut family, mut kind) = (BTreeSet::new(), String::new(), String::new());
        let mut lines = text.split('\n');
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, _) = help.split_once(' ').ok_or("HELP without text")?;
                let typed = lines
                    .next()
                    .and_then(|l| l.strip_prefix("# TYPE "))
                    .ok_or("HELP without TYPE")?;
                let (typed_name, typed_kind) =
                    typed.split_once(' ').ok_or("TYPE without a type")?;
                let known = ["counter", "gauge", "histogram"].contains(&typed_kind);
                if typed_name != name || !known || !declared.insert(name.to_owned()) {
                    return Err(format!("bad declaration: {line}"));
                }
                (family, kind) = (name.to_owned(), typed_kind.to_owned());
                continue;
            }
            let (name, labels, value) = sample(line)?;
            let suffixes: &[&str] =
                if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            if !suffixes.iter().any(|suffix| name == format!("{family}{suffix}")) {
                return Err(format!("{name} stands in family {family}"));
            }
            if kind == "counter" && !name.ends_with("_total") && name != "a" {
                return Err(format!("counter {name} does not end in _total"));
            }
            value.parse::<f64>().map_err(|e| format!("{line}: {e}"))?;
            let series = labels.iter().fold(name, |series, (k, v)| format!("{series}|{k}={v}"));
            if scrape.samples.insert(series, value).is_some() {
                return Err(format!("twice: {line}"));
            }
        }
        Ok(scrape)
    }
}

type Labels = Vec<(String, String)>;

fn sample(line: &str) -> Result<(String, Labels, String), String> {
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (name, mut rest) = line.split_at(end);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':') {
        return Err(format!("bad name in {line}"));
    }
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").ok_or("label without a value")?;
            let (value, after) = quoted(after)?;
            labels.push((label.to_owned(), value));
            match after.chars().next() {
                Some(',') => rest = &after[1..],
                Some('}') => {
                    rest = &after[1..];
                    break;
                }
                _ => return Err(format!("labels do not end in {line}")),
            }
        }
    }
    let value = rest.strip_prefix(' ').ok_or("no space before the value")?;
    Ok((name.to_owned(), labels, value.to_owned()))
}

fn quoted(text: &str) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match (c, c == '\\') {
            ('"', _) => return Ok((value, &text[i + 1..])),
            (_, true) => match chars.next() {
                Some((_, '\\')) => value.push('\\'),
                Some((_, '"')) => value.push('"'),
                Some((_, 'n')) => value.push('\n'),
                _ => return Err("unknown escape".to_owned()),
            },
            _ => value.push(c),
        }
    }
    Err("unclosed quote".to_owned())
}
