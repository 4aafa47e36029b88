//! Tests of the text of `/metrics`. The tests parse the text with a parser that accepts only the rules of the format.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{ApiRefusal, Detail, Direction, DropReason, Kind, Lost, Registry, Rejection};
use super::encode;
use super::writer::seconds;

fn encoded(registry: &Registry, detail: Detail) -> String {
    let mut text = String::new();
    encode(registry, detail, &mut |piece| {
        text.push_str(&piece);
        true
    });
    text
}

#[test]
fn sums_are_per_tenant_or_per_switch_and_keep_counters_of_ended_sessions() {
    let registry = Registry::new();
    let (first, second) = (registry.switch(1, 0x01), registry.switch(2, 0x04));
    let (red1, red2) = (first.tenant(1, "red"), second.tenant(1, "red"));
    let blue = second.tenant(2, "blue");
    // STATS_REQUEST of 1.0 is type 16, BARRIER_REQUEST of 1.3 is type 20.
    red1.messages(Direction::FromController).count(16);
    red2.messages(Direction::FromController).count(20);
    blue.messages(Direction::FromController).count(20);
    red1.dropped(DropReason::QueueFull).add(3);
    red2.dropped(DropReason::QueueFull).add(4);
    [&red1, &red2].iter().for_each(|red| red.publish_refused(1, 5, 1));
    let mut lost = [0; 32];
    (lost[13], lost[16]) = (2, 1);
    red1.lose(0x01, &lost);
    red1.flows.set(5);
    red2.flows.set(7);
    blue.flows.set(11);
    red1.added_northbound.observe(1_500);
    red2.added_northbound.observe(9_000_000_000);
    red1.totals.contacts.dials.add(9);
    red1.totals.contacts.lost(Lost::Tls).add(8);
    let check = |flows_of_red: &str| {
        let scrape = Scrape::parse(&encoded(&registry, Detail::Sums)).unwrap();
        for (series, value) in [
            ("weir_messages_total|tenant=red|direction=from_controller|type=stats_request", "1"),
            ("weir_messages_total|tenant=red|direction=from_controller|type=barrier_request", "1"),
            ("weir_messages_total|tenant=red|direction=lost|type=packet_out", "2"),
            ("weir_messages_total|tenant=red|direction=lost|type=stats_request", "1"),
            ("weir_packet_in_dropped_total|tenant=red|reason=queue_full", "7"),
            ("weir_refused_total|tenant=red|error=OFPBRC_EPERM", "2"),
            ("weir_flows|tenant=red", flows_of_red),
            ("weir_flows|tenant=blue", "11"),
            ("weir_switch_flows|switch=00:00:00:00:00:00:00:02", "18"),
            ("weir_added_latency_seconds_count|tenant=red|towards=north", "2"),
            ("weir_added_latency_seconds_sum|tenant=red|towards=north", "9.0000015"),
            ("weir_controller_dials_total|tenant=red", "9"),
            ("weir_controller_lost_total|tenant=red|reason=tls", "8"),
        ] {
            let found = scrape.samples.get(series).map(String::as_str);
            assert_eq!(found, Some(value), "{series}\n{:#?}", scrape.samples);
        }
        let product = |series: &&String| series.contains("tenant=") && series.contains("switch=");
        assert_eq!(scrape.samples.keys().find(product), None);
    };
    check("12");
    registry.retire(&first);
    registry.retire(&first);
    check("7");
    drop((first, red1));
    check("7");
}

/// There are 900 switches with 20 tenants each.
#[test]
fn metric_sums_stay_small_when_the_product_detail_is_large() {
    let registry = Registry::new();
    let switches: Vec<_> = (0..900).map(|dpid| registry.switch(dpid, 0x04)).collect();
    let names: Vec<String> = (0..20).map(|number| format!("tenant{number}")).collect();
    let tenants: Vec<_> = switches
        .iter()
        .flat_map(|switch| (0..20).map(|number| switch.tenant(number as u16, &names[number])))
        .collect();
    for tenant in &tenants {
        Direction::ALL
            .iter()
            .for_each(|&(it, _)| (0..30).for_each(|t| tenant.messages(it).count(t)));
        tenant.added_northbound.observe(1_000);
        tenant.added_southbound.observe(1_000);
    }
    let sums = encoded(&registry, Detail::Sums);
    assert!(sums.len() < 2 << 20, "{} bytes", sums.len());
    let mut largest = 0;
    let mut length = 0;
    encode(&registry, Detail::Product, &mut |piece| {
        largest = largest.max(piece.len());
        length += piece.len();
        true
    });
    assert!(length > 20 * sums.len(), "{length} bytes");
    assert!(largest < 100_000, "in pieces: {largest} bytes");
    // The encoder writes no more text after the client has disconnected: the third call returns `false`.
    let mut pieces = 0;
    encode(&registry, Detail::Product, &mut |_| {
        pieces += 1;
        pieces < 3
    });
    assert_eq!(pieces, 3);
}

#[test]
fn printed_metrics_have_the_values_of_the_registry() {
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
    red.publish_refused(1, 5, 1);
    red.publish_refused(0xffff, 9, 1);
    red.added_northbound.observe(1_500);
    red.added_northbound.observe(9_000_000_000);
    nasty.queue_southbound.set(7);
    registry.process.rejected(Kind::Switch, Rejection::Tls).increment();
    registry.event_loop(1).coalesced.set(1);
    registry.event_loop(1).coalesced_nanos.add(20_000_000);
    registry.event_loop(0);

    let scrape = Scrape::parse(&encoded(&registry, Detail::Product)).unwrap();
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
        ("weir_event_loop_coalesced|event_loop=0", "0"),
        ("weir_event_loop_coalesced|event_loop=1", "1"),
        ("weir_event_loop_coalesced_seconds_total|event_loop=1", "0.02"),
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

/// Each series that docs/security.md names has the value of its own instrument, and each reason its own count.
#[test]
fn series_that_the_security_page_names_have_the_values_of_their_instruments() {
    let registry = Registry::new();
    let switch = registry.switch(0x10, 0x04);
    let red = switch.tenant(1, "red");
    switch.window.set(2);
    switch.unanswered.add(3);
    red.held.set(4);
    red.entries.set(5);
    red.examined.add(6);
    red.totals.contacts.dials.add(7);
    red.dropped(DropReason::QueueFull).add(8);
    red.publish_refused(1, 5, 1);
    registry.process.store_failed.add(9);
    registry.process.store_unjournaled.add(10);
    registry.process.certificate_not_after.set(11);
    registry.process.descriptors.iter().zip([12, 13, 14]).for_each(|(of, value)| of.set(value));
    registry.set_store_full(Some("no room".to_owned()));
    let [api, lost, rejected] = [100, 200, 300];
    for (count, (why, _)) in (api..).zip(ApiRefusal::ALL) {
        registry.process.api.refused(why).add(count);
    }
    (lost..).zip(Lost::ALL).for_each(|(count, (why, _))| red.totals.contacts.lost(why).add(count));
    for (kind, _) in Kind::ALL {
        for (count, (why, _)) in (rejected + 10 * kind as u64..).zip(Rejection::ALL) {
            registry.process.rejected(kind, why).add(count);
        }
    }
    let dpid = "switch=00:00:00:00:00:00:00:10";
    let mut expected: BTreeMap<String, u64> = [
        (format!("weir_switch_window_messages|{dpid}"), 2),
        (format!("weir_switch_unanswered_total|{dpid}"), 3),
        ("weir_held_bytes|tenant=red".to_owned(), 4),
        ("weir_entries|tenant=red".to_owned(), 5),
        ("weir_examined_entries_total|tenant=red".to_owned(), 6),
        ("weir_controller_dials_total|tenant=red".to_owned(), 7),
        ("weir_packet_in_dropped_total|tenant=red|reason=queue_full".to_owned(), 8),
        ("weir_refused_total|tenant=red|error=OFPBRC_EPERM".to_owned(), 1),
        ("weir_store_failures_total".to_owned(), 9),
        ("weir_store_unjournaled_total".to_owned(), 10),
        ("weir_certificate_expiry_timestamp_seconds".to_owned(), 11),
        ("weir_file_descriptors|of=limit".to_owned(), 12),
        ("weir_file_descriptors|of=switches".to_owned(), 13),
        ("weir_file_descriptors|of=controllers".to_owned(), 14),
        ("weir_store_full".to_owned(), 1),
    ]
    .into();
    let mut reasons = |family: &str, first: u64, names: &str| {
        let names = names.split(' ').map(|name| format!("{family}reason={name}"));
        expected.extend(names.zip(first..));
    };
    reasons(
        "weir_api_refused_total|",
        api,
        "connections slow listeners bodies answers elsewhere read_only stranger role rate",
    );
    reasons(
        "weir_controller_lost_total|tenant=red|",
        lost,
        "unreachable tls handshake timeout closed silent fault descriptors",
    );
    for (kind, first) in [("switch", rejected), ("controller", rejected + 10)] {
        reasons(
            &format!("weir_connections_rejected_total|peer={kind}|"),
            first,
            "tls handshake timeout duplicate_dpid too_many unreachable descriptors unlisted impostor",
        );
    }
    assert_eq!(expected.len(), 15 + 10 + 8 + 2 * 9);
    let samples = |detail| Scrape::parse(&encoded(&registry, detail)).unwrap().samples;
    let sums = samples(Detail::Sums);
    for (series, value) in &expected {
        assert_eq!(sums.get(series), Some(&value.to_string()), "{series}");
    }
    let product = samples(Detail::Product);
    for (series, value) in expected {
        // With the product detail, a tenant's series of a switch also have the switch as a label. Series of controller
        // connections have no switch.
        let of_both = series.replace("|tenant=red", &format!("|{dpid}|tenant=red"));
        let series = if series.contains("_controller_") { series } else { of_both };
        assert_eq!(product.get(&series), Some(&value.to_string()), "{series}");
    }
    registry.set_store_full(None);
    assert_eq!(samples(Detail::Sums)["weir_store_full"], "0");
}

#[test]
fn the_metrics_page_documents_exactly_the_printed_families() {
    let page = include_str!("../../../../../docs/metrics.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `weir_"));
    let documented = |is_wanted: fn(&str) -> bool| -> BTreeSet<String> {
        let rows = rows.clone().filter(|row| is_wanted(row));
        rows.map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            format!("weir_{} {}", cells[0].trim_end_matches('`'), cells[1])
        })
        .collect()
    };
    let printed = |detail| -> BTreeSet<String> {
        let text = encoded(&Registry::new(), detail);
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).map(str::to_owned).collect()
    };
    assert_eq!(documented(|_| true), printed(Detail::Product));
    assert_eq!(
        documented(|row| !row.contains("Only with `?detail=product`")),
        printed(Detail::Sums)
    );
}

#[test]
fn metrics_of_an_empty_registry_are_valid() {
    let scrape = Scrape::parse(&encoded(&Registry::new(), Detail::Sums)).unwrap();
    assert_eq!(scrape.samples.get("weir_switches").map(String::as_str), Some("0"));
}

#[test]
fn nanoseconds_are_printed_as_exact_seconds() {
    for (nanos, text) in
        [(0, "0"), (1, "0.000000001"), (1_000, "0.000001"), (8_388_608_000, "8.388608")]
    {
        assert_eq!(seconds(nanos), text);
    }
    assert_eq!(seconds(u64::MAX), "18446744073.709551615");
    assert_eq!(seconds(10_000_000_000), "10");
}

/// The parser of the tests must refuse text that the format forbids. Otherwise the other tests prove nothing.
#[test]
fn the_metrics_parser_refuses_invalid_text() {
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
